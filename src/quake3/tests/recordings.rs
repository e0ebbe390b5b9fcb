//! Recordings as files: they are read as they are used up, and what fuzz targets begin with is one of them.

use std::cell::Cell;
use std::io::Read;

use super::played;
use crate::quake3::{ServerLog, Source, import};

/// Records come while the recording is still being read: however long it is, it is not kept.
#[test]
fn recordings_are_imported_as_they_are_read() {
    struct Counted<'a>(&'a [u8], &'a Cell<usize>);
    impl Read for Counted<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            // A few bytes at a time: nobody may take a part for all.
            let most = to.len().min(100);
            let read = self.0.read(&mut to[..most])?;
            self.1.set(self.1.get() + read);
            Ok(read)
        }
    }
    let (scribe, none) = (played().0, ServerLog::default());
    for (source, bytes) in [(Source::Capture, &scribe.capture), (Source::Demo, &scribe.demo)] {
        let (mut whole, mut parts, mut at) = (Vec::new(), Vec::new(), Vec::new());
        import(source, &bytes[..], &none, &mut |record| whole.push(record)).expect("a recording");
        let read = Cell::new(0);
        let took = &mut |record| {
            parts.push(record);
            at.push(read.get());
        };
        import(source, Counted(bytes, &read), &none, took).expect("a recording");
        assert!(parts == whole && !whole.is_empty(), "{source:?}");
        assert!(at.windows(2).filter(|pair| pair[0] < pair[1]).count() > 3, "they do not come at the end: {at:?}");
    }
}

/// What fuzz targets begin with is such a session.
#[test]
fn what_is_fuzzed_is_as_it_is_made() {
    let scribe = played().0;
    for (name, made) in [("captures", scribe.capture), ("client-demos", scribe.demo)] {
        let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fuzz").join(name).join("000");
        if std::fs::read(&kept).ok().as_ref() != Some(&made) {
            let written = std::env::temp_dir().join(format!("hitreg-{name}"));
            std::fs::write(&written, made).expect("written");
            panic!("{} is not what is made: that is in {}", kept.display(), written.display());
        }
    }
}

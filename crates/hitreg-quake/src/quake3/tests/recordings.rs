//! Tests of recordings as streams. One of them is the seed input of the fuzz targets.

use std::cell::Cell;
use std::io::{Read, Write};

use super::played;
use crate::quake3::{RecordingKind, ServerLog, import, survey};

/// Records come out while the recording is still being read, so memory use does not depend on its length.
#[test]
fn recordings_are_imported_as_streams() {
    struct CountingReader<'a>(&'a [u8], &'a Cell<usize>);
    impl Read for CountingReader<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            // Reads return a few bytes at a time, so that code cannot assume complete reads.
            let most = to.len().min(100);
            let read = self.0.read(&mut to[..most])?;
            self.1.set(self.1.get() + read);
            Ok(read)
        }
    }
    let (scribe, none) = (played().0, ServerLog::default());
    for (source, bytes) in [(RecordingKind::Capture, &scribe.capture), (RecordingKind::Demo, &scribe.demo)] {
        let (mut whole, mut parts, mut at) = (Vec::new(), Vec::new(), Vec::new());
        import(source, &bytes[..], &none, &mut |record| whole.push(record)).expect("a recording");
        let read = Cell::new(0);
        let took = &mut |record| {
            parts.push(record);
            at.push(read.get());
        };
        import(source, CountingReader(bytes, &read), &none, took).expect("a recording");
        assert!(parts == whole && !whole.is_empty(), "{source:?}");
        assert!(at.windows(2).filter(|pair| pair[0] < pair[1]).count() > 3, "they do not come at the end: {at:?}");
    }
}

/// A truncated compressed capture is read up to the truncation, like a plain one.
#[test]
fn a_truncated_packed_capture_is_read() {
    let (scribe, none) = (played().0, ServerLog::default());
    let mut records = Vec::new();
    import(RecordingKind::Capture, &scribe.capture[..], &none, &mut |record| records.push(record)).expect("a capture");
    let mut packer = zstd::stream::write::Encoder::new(Vec::new(), 0).expect("memory");
    for part in scribe.capture.chunks(500) {
        packer.write_all(part).expect("memory");
        packer.flush().expect("memory");
    }
    let packed = packer.finish().expect("memory");
    for short in [packed.len() / 2, packed.len() / 4] {
        let (mut some, cut) = (Vec::new(), &packed[..packed.len() - short]);
        import(RecordingKind::Capture, cut, &none, &mut |record| some.push(record)).expect("what there is");
        let overview = survey(RecordingKind::Capture, cut, &none).expect("what there is");
        assert!(overview.cut.is_some() && some.len() > 10 && some.len() < records.len(), "{short}: {}", some.len());
    }
    // Everything is present except the end marker.
    let overview = survey(RecordingKind::Capture, &packed[..packed.len() - 1], &none).expect("what there is");
    assert_eq!(overview.cut, Some(scribe.capture.len() as u64));
    let nothing = survey(RecordingKind::Capture, &packed[..10], &none).expect_err("nothing of it is there");
    assert!(nothing.to_string().contains("incomplete frame"), "{nothing}");
}

/// The seed input of the fuzz targets is such a session.
#[test]
fn the_seed_input_of_the_fuzz_targets_is_current() {
    let scribe = played().0;
    for (name, made) in [("captures", scribe.capture), ("client-demos", scribe.demo)] {
        let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fuzz").join(name).join("000");
        if std::fs::read(&kept).ok().as_ref() != Some(&made) {
            let written = std::env::temp_dir().join(format!("hitreg-{name}-{}", std::process::id()));
            std::fs::write(&written, made).expect("written");
            panic!("{} differs from the current result, which is in {}", kept.display(), written.display());
        }
    }
}

//! Notes skipped tests, so that the test run can list them at its end.

#![expect(clippy::disallowed_methods, reason = "a test's name is that of its thread")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The file of notes for one run of cargo, whose child processes the tests are.
pub(crate) fn notes() -> PathBuf {
    #[cfg(unix)]
    let run = std::os::unix::process::parent_id();
    #[cfg(not(unix))]
    let run = 0;
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("skipped-{run}.txt"))
}

/// Notes that the running test is skipped because of `why`.
pub(crate) fn skipped(why: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {why}\n", thread.name().unwrap_or("a test"));
    eprint!("skipped: {line}");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(notes());
    drop(file.and_then(|mut file| file.write_all(line.as_bytes())));
}

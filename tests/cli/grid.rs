//! A sample of the grid in `tests/oracle`: every command runs over sound recordings, and the answers must agree.

use std::path::Path;
use std::process::Command;

use crate::folder::{Folder, text};

/// The number of cases in the sample.
const CASES: &str = "60";

#[test]
fn a_sample_of_the_grid_agrees() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        crate::note::skipped("there is no python3");
        return;
    }
    let grid = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/grid.py");
    let folder = Folder::empty();
    let output = Command::new("python3")
        .arg("-B")
        .arg(grid)
        .args(["--hitreg", env!("CARGO_BIN_EXE_hitreg"), "--sample", CASES, "--work"])
        .arg(folder.dir.path().join("grid"))
        .output()
        .expect("python3 starts");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

//! The example builds, compiled with the profile of the tests, and a session for them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use super::folder::word;

/// The command line under test.
pub(crate) fn hitreg() -> Command {
    #[cfg(unix)]
    crate::signals::hangups_end_programs();
    Command::new(env!("CARGO_BIN_EXE_hitreg"))
}

/// The path of an example build. `cargo test` builds all examples, but a run of one test does not.
pub(crate) fn example(name: &str) -> PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let profile = Path::new(env!("CARGO_BIN_EXE_hitreg")).parent().expect("a folder");
        let mut cargo = Command::new(env!("CARGO"));
        let games = ["boats", "pucks", "pucks_bug", "pucks_delay", "tanks", "tanks_bug"];
        cargo.args(["build", "--quiet"]).args(games.iter().flat_map(|game| ["--example", game]));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).arg("--target-dir").arg(profile.parent().expect("a folder"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo").success(), "the examples do not build");
        profile.join("examples")
    });
    FOLDER.join(name)
}

/// Records a session in which the bug of `pucks_bug` shows.
pub(crate) fn session(folder: &Path) -> PathBuf {
    let log = folder.join("game.hitlog");
    let mut record = Command::new(example("pucks"));
    record.args(["record", "synth", "--players", "6", "--seconds", "12", "--seed", "1", "-o"]).arg(&log);
    assert!(record.output().expect("pucks").status.success());
    log
}

/// Writes an executable script.
pub(crate) fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a script");
}

/// Writes a script that runs version `number` of the example with the bug and adds a line to `count`.
pub(crate) fn version(path: &Path, number: usize, count: &Path) {
    let (build, count) = (word(example("pucks_bug")), word(count));
    script(path, &format!("echo {number} >> {count}\nPUCKS_VERSION={number} exec {build} \"$@\""));
}

/// The JSON output of a command, and its exit code.
pub(crate) fn json(command: &mut Command) -> (serde_json::Value, i32) {
    let Output { status, stdout, stderr } = command.args(["--format", "json"]).output().expect("hitreg");
    let code = status.code().expect("an exit code");
    let output = String::from_utf8_lossy(&stderr);
    let value = serde_json::from_slice(&stdout);
    (value.unwrap_or_else(|error| panic!("{error}: exit code {code}\n{output}")), code)
}

/// The number of lines in a file.
pub(crate) fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

//! Printed texts: help, snapshots, colour.

use super::folder::{Folder, text};

#[test]
fn commands_print_the_snapshots() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").run();
}

#[test]
fn help_and_version_go_to_stdout_and_wrong_usage_is_trouble() {
    let folder = Folder::empty();
    let commands = "quickstart record import info replay verify why claims export recover settings completions man";
    let searches = ["diff", "bisect ticks", "bisect builds", "bisect git", "shrink", "sweep", "record proxy"];
    for command in commands.split(' ').chain(searches) {
        let help = folder.done(&format!("{command} --help"));
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{command} --help is too wide:\n{help}");
        if command != "record" && command != "import" {
            assert!(help.contains("Examples:"), "{command} --help has no examples");
        }
    }
    assert!(folder.done("--version").starts_with("hitreg "));
    for wrong in ["", "frobnicate", "replay", "info a b", "verify", "export a --all", "replay a --mode sideways"] {
        folder.refused(wrong);
    }
}

#[test]
fn colour_goes_only_to_terminals() {
    let folder = Folder::with_session();
    let output = folder.command("verify a.hitlog").env("NO_COLOR", "1").env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(!text(&output.stdout).contains('\u{1b}'), "NO_COLOR comes first");
    let output = folder.command("verify a.hitlog").env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(text(&output.stdout).contains('\u{1b}'), "there is colour to be left out");
    assert!(!folder.done("verify a.hitlog").contains('\u{1b}'));
}

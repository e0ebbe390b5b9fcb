//! Printed texts: help, snapshots, the README, colour.

use std::fs;
use std::path::Path;

use super::folder::{Folder, text};

#[test]
fn commands_print_the_snapshots() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").run();
}

#[test]
fn the_readme_shows_real_output() {
    let mut readme = fs::read_to_string("README.md").expect("README.md");
    let folder = Folder::empty();
    if is_readme_update() {
        readme = with_real_outputs(&readme);
        fs::write("README.md", &readme).unwrap();
    }
    fs::create_dir(folder.path("README.in")).unwrap();
    fs::create_dir(folder.path("README.out")).unwrap();
    let mut cases = String::new();
    let mut in_case = false;
    for line in readme.lines() {
        // trycmd needs an empty line after an output, before the next command.
        if in_case && (line == "```" || (line.starts_with("$ ") && !cases.ends_with("```console\n"))) {
            cases.push('\n');
        }
        in_case = line == "```console" || (in_case && line != "```");
        // Speeds depend on the machine.
        match line.split_once(" times real time") {
            Some((before, after)) => {
                let number = before.rfind(' ').map_or(0, |space| space + 1);
                cases.push_str(&format!("{}[..] times real time{after}\n", &before[..number]));
            }
            None => cases.push_str(&format!("{line}\n")),
        }
    }
    fs::write(folder.path("README.md"), cases).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_hitreg")).parent().unwrap();
    trycmd::TestCases::new().env("PATH", bin.display().to_string()).case(folder.path("README.md")).run();
}

/// `HITREG_README=write cargo test --release --test cli readme` writes real outputs into the README. Review the diff.
#[expect(clippy::disallowed_methods, reason = "an environment variable makes tests write the expected output")]
fn is_readme_update() -> bool {
    std::env::var_os("HITREG_README").is_some_and(|value| value == "write")
}

/// The README with the current output of each `$ hitreg` command.
fn with_real_outputs(readme: &str) -> String {
    let folder = Folder::empty();
    let bin = Path::new(env!("CARGO_BIN_EXE_hitreg")).parent().unwrap();
    let mut written = String::new();
    let mut in_case = false;
    for line in readme.lines() {
        let command = line.strip_prefix("$ hitreg ").filter(|_| in_case);
        if line == "```console" || line == "```" {
            in_case = line == "```console";
        } else if in_case && command.is_none() {
            continue;
        }
        written.push_str(line);
        written.push('\n');
        if let Some(command) = command {
            let output = folder.command(command).env("PATH", bin).output().unwrap();
            written.push_str(&text(&output.stdout));
        }
    }
    written
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

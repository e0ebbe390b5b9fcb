//! Output of searches: bisections, shrinking, sweeps. Paths are relative and commit hashes are fixed, so the texts
//! never vary.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use crate::pucks::{example, hitreg, script, session};
use crate::repository::{Commit, history};

use super::folder::word;

/// A folder with a log, a build `good` and a build `bug`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    session(folder.path());
    build(folder.path(), "good", 1);
    build(folder.path(), "bug", 99);
    folder
}

fn build(folder: &Path, name: &str, version: usize) {
    script(&folder.join(name), &format!("PUCKS_VERSION={version} exec {} \"$@\"", word(example("pucks_bug"))));
}

/// The output of a command, which must fit 80 columns, and its exit code.
fn printed(folder: &Path, command: &mut Command) -> (String, Option<i32>) {
    command.current_dir(folder).env("PUCKS", example("pucks_bug")).env_remove("CLICOLOR_FORCE");
    let output = command.output().expect("the command");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "wider than the page: {line}");
        assert_eq!(line, line.trim_end(), "blanks at the end of a line");
    }
    (text, output.status.code())
}

fn assert_reads(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn bisect_ticks() {
    let folder = folder();
    let ticks = |args: &[&str]| {
        let mut pucks = Command::new(example("pucks"));
        let runs_builds = args.iter().any(|arg| ["--a", "--b"].contains(arg));
        pucks.args(["bisect", "ticks", "game.hitlog"]).args(args).args(runs_builds.then_some("--no-cache"));
        printed(folder.path(), &mut pucks)
    };
    let (text, code) = ticks(&["--a", "./good", "--b", "./bug"]);
    assert_reads("cli_bisect_ticks", &text);
    assert_eq!(code, Some(1));
    let (text, code) = ticks(&["--a", "./good", "--b", "./bug", "--on", "hits"]);
    assert_reads("cli_bisect_ticks_on_hits", &text);
    assert_eq!(code, Some(1));
    let (text, code) = ticks(&["--b", "./good"]);
    assert_reads("cli_bisect_ticks_same", &text);
    assert_eq!(code, Some(0));
    let (text, code) = ticks(&[]);
    assert_reads("cli_bisect_ticks_as_recorded", &text);
    assert_eq!(code, Some(0));
    script(&folder.path().join("broken"), "echo no such map: e1m9 >&2; exit 128");
    let (text, code) = ticks(&["--b", "./broken"]);
    assert_reads("cli_bisect_ticks_untestable", &text);
    assert_eq!(code, Some(125));
}

#[test]
fn bisect_builds() {
    let folder = folder();
    let line = |broken: &[usize]| {
        for n in 1..=12 {
            let name = format!("build-{n:02}");
            match broken.contains(&n) {
                true => script(&folder.path().join(&name), "echo it has no map of that name >&2; exit 3"),
                false => build(folder.path(), &name, if n < 8 { 1 } else { 99 }),
            }
        }
    };
    let bisect = |builds: std::ops::RangeInclusive<usize>, more: &[&str]| {
        let mut bisect = hitreg();
        bisect.args(["bisect", "builds", "game.hitlog", "--no-cache"]).args(more);
        bisect.args(builds.map(|n| format!("build-{n:02}")));
        printed(folder.path(), &mut bisect)
    };
    line(&[]);
    let (text, code) = bisect(1..=12, &["--on", "hits"]);
    assert_reads("cli_bisect_builds", &text);
    assert_eq!(code, Some(1));
    let (text, code) = bisect(1..=7, &[]);
    assert_reads("cli_bisect_builds_none", &text);
    assert_eq!(code, Some(0));
    let (text, code) = bisect(8..=12, &["--verify-ends", "--while", "{build} verify {} > /dev/null"]);
    assert_reads("cli_bisect_builds_all", &text);
    assert_eq!(code, Some(1));
    line(&[6, 7, 8]);
    let (text, code) = bisect(1..=12, &["--on", "hits"]);
    assert_reads("cli_bisect_builds_range", &text);
    assert_eq!(code, Some(1));
    line(&[1]);
    let (text, code) = bisect(1..=12, &[]);
    assert_reads("cli_bisect_builds_untestable", &text);
    assert_eq!(code, Some(125));
}

#[test]
fn bisect_git() {
    let folder = folder();
    let bisect = |name: &str, broken: &[usize]| {
        history(&folder.path().join(name), 20, |n| {
            let version = if n < 13 { 1 } else { 99 };
            let text = format!("#!/bin/sh\nPUCKS_VERSION={version} exec \"$PUCKS\" \"$@\"\n");
            Commit::with(if broken.contains(&n) { "moved.sh" } else { "game.sh" }, &text)
        });
        let mut bisect = hitreg();
        bisect.args(["bisect", "git", "game.hitlog", "main~19..main", "--repo", name, "--on", "hits"]);
        let build = "test -e game.sh || { echo game.sh is not there >&2; exit 2; }; cp game.sh game";
        bisect.args(["--build-cmd", build, "--artifact", "game", "--cache", "cache"]);
        printed(folder.path(), &mut bisect)
    };
    let (text, code) = bisect("whole", &[10]);
    assert_reads("cli_bisect_git", &text);
    assert_eq!(code, Some(1));
    let (text, code) = bisect("broken", &[11, 12]);
    assert_reads("cli_bisect_git_range", &text);
    assert_eq!(code, Some(1));
}

#[test]
fn shrink() {
    let folder = folder();
    let shrink = |args: &[&str]| {
        let mut shrink = Command::new(example("pucks"));
        shrink.args(["shrink", "game.hitlog", "-o", "small.hitlog", "--force"]).args(args);
        printed(folder.path(), &mut shrink)
    };
    let (text, code) = shrink(&["--a", "./good", "--b", "./bug", "--on", "hits"]);
    assert_reads("cli_shrink", &text);
    assert_eq!(code, Some(0));
    let (text, code) = shrink(&["--while", "exit 1"]);
    assert_reads("cli_shrink_while", &text);
    assert_eq!(code, Some(0));
}

#[test]
fn sweep() {
    let folder = folder();
    let sweep = |args: &[&str]| {
        let mut sweep = Command::new(example("pucks"));
        sweep.args(["sweep", "game.hitlog"]).args(args);
        printed(folder.path(), &mut sweep)
    };
    let (text, code) = sweep(&["--set", "interpolation.lerp_ms=0..100:25"]);
    assert_reads("cli_sweep", &text);
    assert_eq!(code, Some(0));
    let two = ["--set", "lag_compensation.max_unlag_ms=0,500", "--presets", "half-life,quake3"];
    assert_reads("cli_sweep_of_two", &sweep(&two).0);
}

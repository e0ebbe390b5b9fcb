//! `bisect builds` and `bisect git` as processes.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests wait for processes, and print the duration")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::pucks::{example, hitreg, json, lines, script, session, version};
use crate::repository::{Commit, git};
use serde_json::Value;

use super::folder::word;

/// Scripts `build-01` to `build-64`. `build-37` is the first with the bug.
fn write_builds(folder: &Path) -> Vec<PathBuf> {
    let builds: Vec<PathBuf> = (1..=64).map(|n| folder.join(format!("build-{n:02}"))).collect();
    for (number, path) in (1..).zip(&builds) {
        version(path, number, &folder.join("count"));
    }
    builds
}

fn bisect_builds(folder: &Path, log: &Path, builds: &[PathBuf]) -> Command {
    let mut command = hitreg();
    command.args(["bisect", "builds"]).arg(log).args(builds).arg("--cache").arg(folder.join("cache"));
    command
}

fn names(value: &Value) -> Vec<String> {
    let name = |value: &Value| value.as_str().expect("a name").rsplit('/').next().expect("a name").to_owned();
    value.as_array().map_or_else(|| vec![name(value)], |values| values.iter().map(name).collect())
}

#[test]
fn the_37th_of_64_builds_is_found_in_six_probes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let builds = write_builds(folder);
    for on in ["any", "state", "hits"] {
        let _ = std::fs::remove_file(folder.join("count"));
        let (found, code) = json(bisect_builds(folder, &log, &builds).args(["--on", on, "--jobs", "1"]));
        assert_eq!(
            (names(&found["first_bad"]), names(&found["last_good"])),
            (vec!["build-37".into()], vec!["build-36".into()])
        );
        assert_eq!((found["verdict"].as_str(), code), (Some("found"), 1));
        let (probes, replays) = (found["probes"].as_u64().unwrap(), lines(&folder.join("count")));
        eprintln!("--on {on}: {probes} probes, {replays} replays");
        assert!(probes <= 6 && replays <= 9, "{probes} probes, {replays} replays");
        assert_eq!((found["diff"]["verdict"].as_str(), found["speculative"].as_u64()), (Some("differs"), Some(0)));
    }
    let condition = "PUCKS=1 {build} verify {} > /dev/null";
    let (found, code) = json(bisect_builds(folder, &log, &builds).args(["--while", condition]));
    assert_eq!((names(&found["first_bad"]), code), (vec!["build-37".into()], 1));
    // Without --jobs, a command runs alone, because it may write a fixed file.
    assert_eq!(found["speculative"], 0);
}

#[test]
fn speculative_builds_run_beside_the_current_probe() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let (builds, count) = (write_builds(folder), folder.join("at-once"));
    for (number, path) in (1..).zip(&builds) {
        // Each build writes how many builds run when it starts, itself included.
        let (pids, count) = (word(folder.join("pids")), word(&count));
        let alive = format!(
            "echo $$ >> {0}\nn=0\nfor p in $(cat {0}); do kill -0 $p 2> /dev/null && n=$((n + 1)); done\necho $n >> {count}",
            pids
        );
        let run = format!("PUCKS_VERSION={number} exec {} \"$@\"", word(example("pucks_bug")));
        script(path, &format!("{alive}\nsleep 0.1\n{run}"));
    }
    let mut took = Vec::new();
    for jobs in [1, 3] {
        let _ = std::fs::remove_file(&count);
        let started = Instant::now();
        let (found, code) = json(bisect_builds(folder, &log, &builds).args(["--jobs", &jobs.to_string()]));
        took.push(started.elapsed());
        let alive = std::fs::read_to_string(&count).unwrap();
        let at_once = alive.lines().map(|line| line.parse::<usize>().unwrap()).max().unwrap();
        eprintln!("{jobs} at once: {:?}, {} ahead in vain, {at_once} ran at once", took.last(), found["speculative"]);
        assert_eq!((names(&found["first_bad"]), code), (vec!["build-37".into()], 1));
        assert_eq!(names(&found["last_good"]), ["build-36"]);
        // Speculative builds do not change the number of probes.
        assert_eq!(found["probes"].as_u64(), Some(6), "{found}");
        assert_eq!(found["tested"].as_array().unwrap().len(), 6);
        let begun = alive.lines().count() as u64;
        let speculative = found["speculative"].as_u64().unwrap();
        assert!(begun <= 9 + speculative, "{begun} begun, {speculative} in vain");
        assert_eq!((at_once > 1, at_once <= jobs, speculative > 0), (jobs > 1, true, jobs > 1), "{jobs} jobs");
    }
}

#[test]
fn untestable_builds_are_skipped_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let builds = write_builds(folder);
    let broken = [
        "kill -SEGV $$",
        "echo no such map >&2; exit 128",
        "exit 125",
        "exit 0",
        "echo rubbish > \"$4\"",
        "exec sleep 60",
        "exit 101",
    ];
    // Ten scattered builds; hitreg names the last good and the first bad of the remaining builds.
    let spread = [5, 12, 20, 29, 32, 33, 39, 44, 50, 61];
    for (at, text) in spread.iter().zip(broken.iter().cycle()) {
        script(&builds[at - 1], text);
    }
    let (found, code) = json(bisect_builds(folder, &log, &builds).args(["--time-limit", "1"]));
    assert_eq!(
        (names(&found["first_bad"]), names(&found["last_good"])),
        (vec!["build-37".into()], vec!["build-36".into()])
    );
    assert_eq!((found["verdict"].as_str(), code), (Some("found"), 1));
    eprintln!("10 of 64 untestable: {} probes, skipped {:?}", found["probes"], found["skipped"]);
    assert!(!found["skipped"].as_array().unwrap().is_empty());

    // Ten consecutive builds, around the first bad one.
    let builds = write_builds(folder);
    for (at, text) in (31..=40).zip(broken.iter().cycle()) {
        script(&builds[at - 1], text);
    }
    let (found, code) = json(bisect_builds(folder, &log, &builds).args(["--time-limit", "1"]));
    let range: Vec<String> = (31..=41).map(|n| format!("build-{n}")).collect();
    assert_eq!((names(&found["candidates"]), found["verdict"].as_str(), code), (range, Some("range"), 1));
    assert_eq!(
        (names(&found["first_bad"]), names(&found["last_good"])),
        (vec!["build-41".into()], vec!["build-30".into()])
    );
    assert_eq!(found["skipped"].as_array().unwrap().len(), 10);
}

#[test]
fn wrong_good_and_bad_ends_give_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let builds = write_builds(folder);
    let (found, code) = json(&mut bisect_builds(folder, &log, &builds[..20]));
    assert_eq!((found["verdict"].as_str(), code), (Some("none_is_bad"), 0));
    let (found, code) = json(bisect_builds(folder, &log, &builds[..20]).arg("--verify-ends"));
    assert_eq!((found["verdict"].as_str(), found["probes"].as_u64(), code), (Some("none_is_bad"), Some(2), 0));
    let condition = ["--while", "{build} verify {} > /dev/null"];
    let (found, code) = json(bisect_builds(folder, &log, &builds[40..]).args(condition));
    assert_eq!((found["verdict"].as_str(), code), (Some("all_are_bad"), 1));
    script(&builds[0], "exit 3");
    let (found, code) = json(&mut bisect_builds(folder, &log, &builds));
    assert_eq!((found["verdict"].as_str(), code), (Some("untestable"), 125));
}

/// With other builds and another setting, replays of A with the setting tell which of them gives the difference.
#[test]
fn the_cause_is_the_build_if_the_setting_gives_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    let [a, same, bug] = [("a", 1), ("same", 2), ("bug", 37)].map(|(name, number)| {
        let path = folder.join(name);
        version(&path, number, &folder.join("count"));
        path
    });
    let cause = |b: &Path, setting: &str| {
        let mut bisect = hitreg();
        bisect.args(["bisect", "ticks"]).arg(&log).arg("--a").arg(&a).arg("--b").arg(b);
        let (found, code) = json(bisect.args(["--b-set", setting]));
        assert_eq!(code, 1, "{found}");
        ["cause", "evidence"].map(|name| found["cause"][name].as_str().expect("text").to_owned())
    };
    let [name, evidence] = cause(&same, "interpolation.lerp_ms=50");
    assert!(name == "settings" && evidence.ends_with("and alone gives this difference"), "{name}: {evidence}");
    let [name, evidence] = cause(&bug, "lag_compensation.max_unlag_ms=900");
    assert!(name == "build" && evidence.ends_with("with the settings of B"), "{name}: {evidence}");
    let (found, _) = json(hitreg().args(["bisect", "ticks"]).arg(&log).arg("--a").arg(&a).arg("--b").arg(&bug));
    assert_eq!(found["cause"]["cause"], "build", "{found}");
}

/// A repository of 100 commits. Commit `bad` adds the bug; commits in `broken` do not build. Its checkout has one
/// staged and one unstaged change.
fn history(folder: &Path, bad: usize, broken: &[usize]) -> PathBuf {
    let repository = folder.join("repository");
    crate::repository::history(&repository, 100, |commit| {
        let number = if commit < bad { 1 } else { 99 };
        let build = format!("#!/bin/sh\nPUCKS_VERSION={number} exec {} \"$@\"\n", word(example("pucks_bug")));
        Commit::with(if broken.contains(&commit) { "moved.sh" } else { "game.sh" }, &build)
    });
    std::fs::write(repository.join("ready"), "ready").unwrap();
    git(&repository, &["add", "ready"]);
    std::fs::write(repository.join("game.sh"), "changed").unwrap();
    repository
}

/// The state that a search must not change.
fn checkout(repository: &Path) -> Vec<String> {
    let state =
        ["status --porcelain=v2 --branch", "symbolic-ref HEAD", "diff", "diff --cached", "worktree list", "reflog"];
    let mut state: Vec<String> =
        state.iter().map(|args| git(repository, &args.split(' ').collect::<Vec<_>>())).collect();
    state.push(format!("{:?}", std::fs::read(repository.join(".git/index")).unwrap()));
    state.push(std::fs::read_to_string(repository.join(".git/HEAD")).unwrap());
    state
}

fn bisect_git(folder: &Path, repository: &Path, log: &Path, build: &str) -> Command {
    let mut command = hitreg();
    command.args(["bisect", "git"]).arg(log).arg("main~99..main").arg("--repo").arg(repository);
    command.args(["--build-cmd", build, "--artifact", "out/game", "--cache"]).arg(folder.join("cache"));
    command
}

#[test]
fn bisect_git_names_one_of_100_commits_and_keeps_the_checkout() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let repository = history(folder, 58, &[]);
    let before = checkout(&repository);
    let build = format!("echo x >> {}; mkdir -p out && cp game.sh out/game", word(folder.join("count")));
    let (found, code) = json(&mut bisect_git(folder, &repository, &log, &build));
    assert_eq!((found["subject"].as_str(), code), (Some("Change number 58"), 1));
    assert_eq!(found["first_bad"], git(&repository, &["rev-parse", "main~42"]).as_str());
    assert_eq!(found["last_good"], git(&repository, &["rev-parse", "main~43"]).as_str());
    assert_eq!((found["verdict"].as_str(), found["diff"]["verdict"].as_str()), (Some("found"), Some("differs")));
    let (probes, builds) = (found["probes"].as_u64().unwrap(), lines(&folder.join("count")));
    eprintln!("100 commits: {probes} probes, {builds} builds");
    assert!(probes <= 7 && builds <= 10, "{probes} probes, {builds} builds");
    assert_eq!(checkout(&repository), before);

    // Three jobs find the same commit.
    let (together, code) = json(bisect_git(folder, &repository, &log, &build).args(["--jobs", "3"]));
    assert_eq!((together["subject"].as_str(), code), (Some("Change number 58"), 1));
    assert_eq!(together["probes"], found["probes"]);
    assert_eq!(checkout(&repository), before);

    // Within a process of git, with git's own environment, the result is the same.
    let mut inside = bisect_git(folder, &repository, &log, &build);
    inside.env("GIT_DIR", repository.join(".git")).env("GIT_INDEX_FILE", repository.join(".git/index"));
    assert_eq!(json(&mut inside).0["subject"], "Change number 58");
    assert_eq!(checkout(&repository), before);
}

#[test]
fn a_killed_search_resumes() {
    kill_and_resume("1");
}

#[test]
fn a_killed_search_with_several_worktrees_resumes() {
    kill_and_resume("3");
}

fn kill_and_resume(jobs: &str) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let repository = history(folder, 23, &[30, 31, 50]);
    let before = checkout(&repository);
    let count = folder.join("count");
    let build = format!("echo x >> {}; mkdir -p out && cp game.sh out/game", word(&count));
    let mut first = bisect_git(folder, &repository, &log, &build);
    let mut first = first.args(["--jobs", jobs]).stdout(Stdio::null()).spawn().expect("hitreg");
    let started = Instant::now();
    while (jobs == "1" && lines(&count) < 5) || answers(&folder.join("cache/bisect")) < 2 {
        assert!(started.elapsed() < Duration::from_secs(120), "no progress");
        std::thread::sleep(Duration::from_millis(2));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let built_before = lines(&count);
    let (found, code) = json(bisect_git(folder, &repository, &log, &build).args(["--jobs", jobs]));
    assert_eq!((found["subject"].as_str(), code), (Some("Change number 23"), 1));
    let resumed = found["resumed"].as_u64().unwrap_or(0) as usize;
    let (probes, builds) = (found["probes"].as_u64().unwrap(), lines(&count));
    eprintln!(
        "killed after {built_before} builds: {resumed} answers were there, {probes} probes, {builds} builds in all"
    );
    let jobs: usize = jobs.parse().unwrap();
    if jobs == 1 {
        assert!(resumed >= built_before - 2, "{resumed} answers of {built_before} builds");
    }
    assert!(resumed >= 2);
    // The reference, one build per probe, the repetitions of both ends, speculative builds, and builds without an answer at the time of the kill.
    let ahead = if jobs == 1 { 0 } else { found["speculative"].as_u64().unwrap() as usize + built_before };
    assert!(builds <= probes as usize + 3 + jobs + ahead, "{builds} builds for {probes} probes");
    assert_eq!(checkout(&repository), before);
}

/// A commit that takes too long under one limit may be good under another, so answers belong to one search.
#[test]
fn a_search_under_another_time_limit_reuses_no_answers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let repository = history(folder, 23, &[]);
    let build = "mkdir -p out && cp game.sh out/game && sleep 0.1";
    let mut first = bisect_git(folder, &repository, &log, build).stdout(Stdio::null()).spawn().expect("hitreg");
    let started = Instant::now();
    while answers(&folder.join("cache/bisect")) < 1 {
        assert!(started.elapsed() < Duration::from_secs(120), "no progress");
        std::thread::sleep(Duration::from_millis(2));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    for other in ["--build-time-limit", "--time-limit"] {
        let (found, code) = json(bisect_git(folder, &repository, &log, build).args([other, "3000"]));
        assert_eq!((found["subject"].as_str(), code), (Some("Change number 23"), 1), "{other}");
        assert_eq!(found["resumed"], Value::Null, "{other}");
    }
    let (found, _) = json(&mut bisect_git(folder, &repository, &log, build));
    assert!(found["resumed"].as_u64() >= Some(1), "{}", found["resumed"]);
}

/// The number of answers that the only search below a folder has saved.
fn answers(searches: &Path) -> usize {
    let Some(Ok(search)) = std::fs::read_dir(searches).ok().and_then(|mut entries| entries.next()) else { return 0 };
    let state = std::fs::read(search.path().join("state.json")).unwrap_or_default();
    let state: Value = serde_json::from_slice(&state).unwrap_or_default();
    state["answers"].as_array().map_or(0, Vec::len)
}

#[test]
fn commits_that_do_not_build_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let repository = history(folder, 50, &[49, 50, 51]);
    let build = "mkdir -p out && cp game.sh out/game";
    let (found, code) = json(&mut bisect_git(folder, &repository, &log, build));
    assert_eq!((found["verdict"].as_str(), code), (Some("range"), 1));
    let candidates: Vec<String> = found["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| git(&repository, &["log", "-1", "--format=%s", c.as_str().unwrap()]))
        .collect();
    assert_eq!(candidates, [49, 50, 51, 52].map(|n| format!("Change number {n}")));
    let why = &found["skipped"][0];
    assert_eq!(why["reason"], "the build command failed (exit code 1)");
    assert!(why["last_words"][0].as_str().unwrap().contains("game.sh"), "{why}");
}

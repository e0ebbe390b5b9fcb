//! Bisecting builds and histories, at the process boundary.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests wait for processes, and say how long they took")]

mod pucks;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pucks::{example, hitreg, json, lines, script, session, version};
use serde_json::Value;

/// `build-01` to `build-64`, of which the 37th brings the bug.
fn line_of_builds(folder: &Path) -> Vec<PathBuf> {
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
    let builds = line_of_builds(folder);
    for on in ["any", "state", "hits"] {
        let _ = std::fs::remove_file(folder.join("count"));
        let (found, code) = json(bisect_builds(folder, &log, &builds).args(["--on", on]));
        assert_eq!(
            (names(&found["first_bad"]), names(&found["last_good"])),
            (vec!["build-37".into()], vec!["build-36".into()])
        );
        assert_eq!((found["verdict"].as_str(), code), (Some("found"), 1));
        let (probes, replays) = (found["probes"].as_u64().unwrap(), lines(&folder.join("count")));
        eprintln!("--on {on}: {probes} probes, {replays} replays");
        assert!(probes <= 6 && replays <= 7, "{probes} probes, {replays} replays");
        assert_eq!(found["diff"]["verdict"], "differs");
    }
    let condition = "PUCKS=1 {build} verify {} > /dev/null";
    let (found, code) = json(bisect_builds(folder, &log, &builds).args(["--while", condition]));
    assert_eq!((names(&found["first_bad"]), code), (vec!["build-37".into()], 1));
}

#[test]
fn untestable_builds_are_stepped_over_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let builds = line_of_builds(folder);
    let broken = [
        "kill -SEGV $$",
        "echo no such map >&2; exit 128",
        "exit 125",
        "exit 0",
        "echo rubbish > \"$4\"",
        "exec sleep 60",
        "exit 101",
    ];
    // Ten here and there; the last good and the first bad one among those that work.
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

    // Ten in a row, across the place where the bug came.
    let builds = line_of_builds(folder);
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
fn ends_that_are_not_what_they_are_said_to_be_are_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let builds = line_of_builds(folder);
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

fn git(repository: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(repository).args(args).output().expect("git");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A repository of 100 commits, of which `bad` brings the bug; `broken` ones do not build. Its checkout has a change that
/// is staged and one that is not.
fn history(folder: &Path, bad: usize, broken: &[usize]) -> PathBuf {
    use std::fmt::Write;
    let repository = folder.join("repository");
    std::fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    let mut stream = String::new();
    for commit in 1..=100 {
        let number = if commit < bad { 1 } else { 99 };
        let build = format!(
            "#!/bin/sh\n# revision {commit}\nPUCKS_VERSION={number} exec {} \"$@\"\n",
            example("pucks_bug").display()
        );
        let name = if broken.contains(&commit) { "moved.sh" } else { "game.sh" };
        let message = format!("Change number {commit}");
        let who = format!("Somebody <somebody@example.org> {} +0000", 1_700_000_000 + commit * 60);
        writeln!(stream, "commit refs/heads/main\nmark :{commit}\nauthor {who}\ncommitter {who}").unwrap();
        writeln!(stream, "data {}\n{message}", message.len()).unwrap();
        if commit > 1 {
            writeln!(stream, "from :{}", commit - 1).unwrap();
        }
        writeln!(stream, "deleteall\nM 100755 inline {name}\ndata {}\n{build}", build.len()).unwrap();
    }
    let mut import = Command::new("git");
    import.arg("-C").arg(&repository).args(["fast-import", "--quiet"]).stdin(Stdio::piped());
    let mut import = import.spawn().expect("git");
    std::io::Write::write_all(&mut import.stdin.take().unwrap(), stream.as_bytes()).unwrap();
    assert!(import.wait().unwrap().success());
    git(&repository, &["reset", "--quiet", "--hard"]);
    std::fs::write(repository.join("staged"), "staged").unwrap();
    git(&repository, &["add", "staged"]);
    std::fs::write(repository.join("game.sh"), "changed").unwrap();
    repository
}

/// All that must stay as it is.
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
fn a_commit_of_a_hundred_is_named_and_the_checkout_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let repository = history(folder, 58, &[]);
    let before = checkout(&repository);
    let build = format!("echo x >> {}; mkdir -p out && cp game.sh out/game", folder.join("count").display());
    let (found, code) = json(&mut bisect_git(folder, &repository, &log, &build));
    assert_eq!((found["subject"].as_str(), code), (Some("Change number 58"), 1));
    assert_eq!(found["first_bad"], git(&repository, &["rev-parse", "main~42"]).as_str());
    assert_eq!(found["last_good"], git(&repository, &["rev-parse", "main~43"]).as_str());
    assert_eq!((found["verdict"].as_str(), found["diff"]["verdict"].as_str()), (Some("found"), Some("differs")));
    let (probes, builds) = (found["probes"].as_u64().unwrap(), lines(&folder.join("count")));
    eprintln!("100 commits: {probes} probes, {builds} builds");
    assert!(probes <= 7 && builds <= 8, "{probes} probes, {builds} builds");
    assert_eq!(checkout(&repository), before);

    // From inside of what git runs, with git's own environment, it finds the same.
    let mut inside = bisect_git(folder, &repository, &log, &build);
    inside.env("GIT_DIR", repository.join(".git")).env("GIT_INDEX_FILE", repository.join(".git/index"));
    assert_eq!(json(&mut inside).0["subject"], "Change number 58");
    assert_eq!(checkout(&repository), before);
}

#[test]
fn a_search_that_was_killed_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let repository = history(folder, 23, &[30, 31, 50]);
    let before = checkout(&repository);
    let count = folder.join("count");
    let build = format!("echo x >> {}; mkdir -p out && cp game.sh out/game", count.display());
    let mut first = bisect_git(folder, &repository, &log, &build);
    let mut first = first.stdout(Stdio::null()).spawn().expect("hitreg");
    let started = Instant::now();
    while lines(&count) < 5 {
        assert!(started.elapsed() < Duration::from_secs(120), "it does not get on");
        std::thread::sleep(Duration::from_millis(2));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let built_before = lines(&count);
    let (found, code) = json(&mut bisect_git(folder, &repository, &log, &build));
    assert_eq!((found["subject"].as_str(), code), (Some("Change number 23"), 1));
    let resumed = found["resumed"].as_u64().unwrap_or(0) as usize;
    let (probes, builds) = (found["probes"].as_u64().unwrap(), lines(&count));
    eprintln!(
        "killed after {built_before} builds: {resumed} answers were there, {probes} probes, {builds} builds in all"
    );
    assert!(resumed >= built_before - 2, "{resumed} answers of {built_before} builds");
    // The reference, each probe once, and the build that the kill cut off.
    assert!(builds <= probes as usize + 2, "{builds} builds for {probes} probes");
    assert_eq!(checkout(&repository), before);
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
    let mut candidates: Vec<String> = found["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| git(&repository, &["log", "-1", "--format=%s", c.as_str().unwrap()]))
        .collect();
    candidates.sort();
    assert_eq!(candidates, [49, 50, 51, 52].map(|n| format!("Change number {n}")));
    let why = &found["skipped"][0];
    assert_eq!(why["reason"], "the build command failed (exit code 1)");
    assert!(why["last_words"][0].as_str().unwrap().contains("game.sh"), "{why}");
}

//! hitreg as the command of the real `git bisect run`. git names the first bad commit, skips untestable commits, and
//! stops after trouble instead of blaming a commit.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "git finds hitreg by the search path of the environment")]

use std::path::Path;
use std::process::Command;

use crate::pucks::{example, hitreg, session};
use crate::repository::{Commit, git, history};

use super::folder::word;

/// The first commit with the bug.
const FIRST_BAD: usize = 13;
const COMMITS: usize = 20;

/// The command in docs/bisect.md; the build command is a copy.
const DIFF: &str = "cp game.sh game || exit 125
exec hitreg diff good.hittrace match.hitlog --b ./game --no-cache --summary";

/// A repository of commits with `PUCKS_VERSION=1`; from [`FIRST_BAD`] on, with a version that has the bug. The log and
/// the good end's trace are beside it, untracked.
fn repository(folder: &Path, change: impl Fn(usize) -> Option<Commit>) {
    let usual = |n: usize| Commit::with("game.sh", &version(if n < FIRST_BAD { 1 } else { 99 }));
    history(folder, COMMITS, |n| change(n).unwrap_or_else(|| usual(n)));
    std::fs::rename(session(folder), folder.join("match.hitlog")).unwrap();
    let mut replay = Command::new(example("pucks"));
    replay.current_dir(folder).args(["replay", "match.hitlog", "-o", "good.hittrace"]);
    assert!(replay.output().unwrap().status.success());
}

fn version(number: usize) -> String {
    format!("#!/bin/sh\nPUCKS_VERSION={number} exec \"$PUCKS\" \"$@\"\n")
}

/// The output of `git bisect run`, whether it finished, and its log.
struct BisectOutcome {
    output: String,
    code: Option<i32>,
    log: String,
}

fn git_bisect_run(folder: &Path, script: &str) -> BisectOutcome {
    git(folder, &["bisect", "start", "HEAD", "HEAD~19"]);
    let hitreg = hitreg();
    let programs = Path::new(hitreg.get_program()).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut run = Command::new("git");
    run.current_dir(folder).args(["bisect", "run", "sh", "-c", script]);
    run.env("PATH", path).env("PUCKS", example("pucks_bug")).env("LC_ALL", "C");
    let output = run.output().expect("git");
    let message = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    eprintln!("{message}");
    BisectOutcome { output: message, code: output.status.code(), log: git(folder, &["bisect", "log"]) }
}

impl BisectOutcome {
    /// The subjects of the commits that git logged as good, bad or skipped.
    fn subjects(&self, what: &str) -> Vec<&str> {
        let prefix = format!("# {what}: [");
        let entries = self.log.lines().filter_map(|line| line.strip_prefix(prefix.as_str())?.split_once("] "));
        entries.map(|(_, subject)| subject).collect()
    }
}

#[test]
fn git_names_the_first_bad_commit_with_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    repository(folder, |_| None);
    let scripts = [
        DIFF,
        "cp game.sh game || exit 125\nexec hitreg bisect ticks good.hittrace match.hitlog --b ./game --no-cache",
        "cp game.sh game || exit 125\nexec hitreg bisect builds match.hitlog \"$PUCKS_GOOD\" ./game --no-cache",
        // The build, made with hitreg: does it still replay the log as recorded?
        "cp game.sh game || exit 125\nexec ./game verify match.hitlog",
    ];
    for script in scripts {
        let script = script.replace("\"$PUCKS_GOOD\"", &word(example("pucks")));
        let found = git_bisect_run(folder, &script);
        assert!(found.output.contains(" is the first bad commit"), "{script}\n{}", found.output);
        assert!(found.log.contains("# first bad commit: ["), "{}", found.log);
        assert!(found.log.trim_end().ends_with("] Change number 13"), "{}", found.log);
        assert_eq!((found.code, found.subjects("skip").len()), (Some(0), 0), "{script}");
        // Each verdict is the true one of its commit.
        let number = |subject: &str| subject.rsplit(' ').next().unwrap().parse::<usize>().unwrap();
        assert!(found.subjects("good").into_iter().all(|subject| number(subject) < FIRST_BAD));
        assert!(found.subjects("bad").into_iter().all(|subject| number(subject) >= FIRST_BAD));
        git(folder, &["bisect", "reset"]);
    }
}

#[test]
fn git_skips_untestable_commits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Commit 10, which git tries first, crashes. Commit 15 does not build. Commit 11 reports that it cannot run.
    repository(folder, |n| match n {
        10 => Some(Commit::with("game.sh", "#!/bin/sh\nkill -SEGV $$\n")),
        11 => Some(Commit::with("game.sh", "#!/bin/sh\necho no such map >&2; exit 128\n")),
        15 => Some(Commit::with("moved.sh", &version(99))),
        _ => None,
    });
    let found = git_bisect_run(folder, DIFF);
    assert!(found.log.trim_end().ends_with("] Change number 13"), "{}", found.log);
    assert_eq!(found.code, Some(0));
    let skipped = found.subjects("skip");
    assert!(skipped.contains(&"Change number 10"), "{}", found.log);
    assert!(skipped.iter().all(|subject| ["10", "11", "15"].contains(&&subject[subject.len() - 2..])), "{skipped:?}");
}

#[test]
fn git_gives_a_range_when_the_first_bad_commit_was_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    repository(folder, |n| (12..=13).contains(&n).then(|| Commit::with("game.sh", "#!/bin/sh\nexit 125\n")));
    let found = git_bisect_run(folder, DIFF);
    assert!(found.output.contains("There are only 'skip'ped commits left to test."), "{}", found.output);
    assert_eq!(found.code, Some(2));
    let mut possible: Vec<String> = (found.log.lines())
        .filter_map(|line| line.strip_prefix("# possible first bad commit: [")?.split_once("] "))
        .map(|(_, subject)| subject.to_owned())
        .collect();
    possible.sort();
    assert_eq!(possible, [12, 13, 14].map(|n| format!("Change number {n}")));
}

#[test]
fn git_stops_after_trouble_and_blames_no_commit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    repository(folder, |_| None);
    let log = std::fs::read(folder.join("match.hitlog")).unwrap();
    let damaged: Vec<u8> =
        log.iter().enumerate().map(|(at, byte)| if at == log.len() / 2 { !byte } else { *byte }).collect();
    let troubles: [(&str, Option<&[u8]>); 3] =
        [(DIFF, Some(&damaged)), (DIFF, None), ("exec hitreg diff good.hittrace --no-such-option", Some(&log))];
    for (script, bytes) in troubles {
        let path = folder.join("match.hitlog");
        match bytes {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let stopped = git_bisect_run(folder, script);
        assert!(stopped.output.contains("exit code 128"), "{}", stopped.output);
        assert_ne!(stopped.code, Some(0));
        assert!(!stopped.output.contains("first bad commit"), "{}", stopped.output);
        // The log contains only the ends that the test marked.
        assert_eq!(stopped.subjects("bad"), ["Change number 20"]);
        assert_eq!(stopped.subjects("good"), ["Change number 1"]);
        assert_eq!(stopped.subjects("skip").len(), 0);
        git(folder, &["bisect", "reset"]);
    }
}

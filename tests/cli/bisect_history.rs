//! `bisect git` in histories with branches, in shallow clones, and beside a user's own worktrees.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "a test waits for a process, and git is found by the search path")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::pucks::{example, hitreg, json, session};
use crate::repository::{Commit, git, history};

use super::folder::{text, word};

/// The bug of `pucks_bug`.
const BUG: u32 = 99;
/// A change that the good end has on purpose.
const INTENDED: &str = "--set interpolation.lerp_ms=50";

/// A program that plays with a version of `pucks_bug` and more options.
fn game(version: u32, options: &str) -> String {
    format!("#!/bin/sh\nPUCKS_VERSION={version} exec {} \"$@\" {options}\n", word(example("pucks_bug")))
}

/// A repository whose first commit plays without the bug, and a log.
struct GameRepository {
    folder: tempfile::TempDir,
    log: PathBuf,
}

impl GameRepository {
    fn new() -> GameRepository {
        let folder = tempfile::tempdir().unwrap();
        let log = session(folder.path());
        history(&folder.path().join("repository"), 1, |_| Commit::with("game.sh", &game(1, "")));
        GameRepository { folder, log }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn git(&self, args: &[&str]) -> String {
        let who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"];
        git(&self.path(), &[&who, args].concat())
    }

    /// Commits a change of a file on the current branch, and tags it with the name of the change.
    fn commit(&self, name: &str, file: &str, text: &str) {
        std::fs::write(self.path().join(file), text).unwrap();
        self.git(&["add", file]);
        self.git(&["commit", "--quiet", "-m", name]);
        self.git(&["tag", name]);
    }

    /// Merges a commit into the current branch, and tags the result.
    fn merge(&self, other: &str, name: &str) {
        self.git(&["merge", "--quiet", "--no-ff", "-m", name, other]);
        self.git(&["tag", name]);
    }

    fn branch(&self, name: &str, from: &str) {
        self.git(&["checkout", "--quiet", "-b", name, from]);
    }

    fn switch(&self, name: &str) {
        self.git(&["checkout", "--quiet", name]);
    }

    /// A search in a repository, whose commits a command builds.
    fn built_by(&self, build: &str, repository: &Path, range: &str) -> Command {
        let mut command = hitreg();
        command.args(["bisect", "git"]).arg(&self.log).arg(range).arg("--repo").arg(repository);
        command.args(["--build-cmd", build, "--artifact", "out/game"]);
        command.arg("--cache").arg(self.folder.path().join("cache"));
        command
    }

    fn command(&self, repository: &Path, range: &str) -> Command {
        self.built_by("mkdir -p out && cp game.sh out/game", repository, range)
    }

    fn search(&self, range: &str) -> (Value, i32) {
        json(&mut self.command(&self.path(), range))
    }

    /// The tag of a commit in a result.
    fn name(&self, commit: &Value) -> String {
        self.git(&["describe", "--tags", "--exact-match", commit.as_str().expect("a commit")])
    }
}

/// A branch that began before the good commit lacks its change, but that is no fault of the branch.
#[test]
fn a_branch_from_before_good_is_not_blamed() {
    let repository = GameRepository::new();
    repository.git(&["tag", "base"]);
    repository.branch("feature", "main");
    for n in ["readme-1", "readme-2", "readme-3"] {
        repository.commit(n, "README", n);
    }
    repository.switch("main");
    repository.commit("intended", "game.sh", &game(1, INTENDED));
    repository.merge("feature", "merge");
    repository.commit("bug", "game.sh", &game(BUG, INTENDED));
    let (found, code) = repository.search("intended..main");
    assert_eq!((repository.name(&found["first_bad"]), code), ("bug".to_owned(), 1));
    assert_eq!((repository.name(&found["last_good"]), &found["unsearched"]), ("merge".to_owned(), &Value::Null));
    // A range whose ends are on two branches begins at the commit that both contain, which is not good.
    let (found, code) = repository.search("intended..feature");
    assert_eq!((found["verdict"].as_str(), code), (Some("untestable"), 125));
    let why = found["untestable"].as_str().unwrap();
    let [base, tip] = ["base", "feature"].map(|name| repository.git(&["rev-parse", name]));
    assert!(why.ends_with(&format!("is not good: search {base}..{tip}")), "{why}");
}

#[test]
fn a_branch_from_before_good_is_searched_if_it_began_good() {
    let repository = GameRepository::new();
    repository.branch("feature", "main");
    repository.commit("readme", "README", "1");
    repository.commit("bug", "game.sh", &game(BUG, ""));
    repository.commit("readme-2", "README", "2");
    repository.switch("main");
    repository.commit("other", "notes", "1");
    repository.commit("other-2", "notes", "2");
    repository.merge("feature", "merge");
    for range in ["other..main", "other..feature"] {
        let (found, code) = repository.search(range);
        assert_eq!((repository.name(&found["first_bad"]), code), ("bug".to_owned(), 1), "{range}");
        assert_eq!(repository.name(&found["last_good"]), "readme", "{range}");
    }
}

#[test]
fn a_branch_that_cannot_be_compared_is_named() {
    let repository = GameRepository::new();
    repository.git(&["tag", "base"]);
    repository.branch("feature", "main");
    repository.commit("bug", "other.sh", "");
    repository.switch("main");
    repository.commit("intended", "game.sh", &game(1, INTENDED));
    repository.git(&["merge", "--quiet", "--no-ff", "--no-commit", "feature"]);
    repository.commit("merge", "game.sh", &game(BUG, INTENDED));
    let (found, code) = repository.search("intended..main");
    assert_eq!((repository.name(&found["first_bad"]), code), ("merge".to_owned(), 1));
    let branch = &found["unsearched"][0];
    assert_eq!(
        (repository.name(&branch["base"]), repository.name(&branch["tip"])),
        ("base".to_owned(), "bug".to_owned())
    );
    let page = repository.command(&repository.path(), "intended..main").output().unwrap();
    let page = text(&page.stdout);
    let [base, tip] = ["base", "bug"].map(|name| repository.git(&["rev-parse", "--short=10", name]));
    assert!(page.contains(&format!("It also contains {base}..{tip}")), "{page}");
}

/// A good commit does not show that those before it are good: a change may have come and gone.
#[test]
fn the_parent_of_the_first_bad_commit_is_tried() {
    for merged in [["fixed", "bad"], ["bad", "fixed"]] {
        let repository = GameRepository::new();
        repository.git(&["tag", "good"]);
        repository.commit("bug", "game.sh", &game(BUG, ""));
        repository.branch("fixed-branch", "main");
        repository.commit("fixed", "game.sh", &game(1, ""));
        repository.branch("bad-branch", "main");
        repository.commit("bad", "notes", "1");
        repository.switch(&format!("{}-branch", merged[0]));
        repository.git(&["merge", "--quiet", "--no-ff", "--no-commit", "-s", "ours", &format!("{}-branch", merged[1])]);
        repository.commit("merge", "game.sh", &game(BUG, INTENDED));
        let (found, code) = repository.search("good..merge");
        assert_eq!((repository.name(&found["first_bad"]), code), ("bug".to_owned(), 1));
        assert_eq!(repository.name(&found["last_good"]), "good");
    }
}

#[test]
fn a_command_also_judges_the_good_end() {
    let repository = GameRepository::new();
    repository.git(&["tag", "good"]);
    for n in ["1", "2", "3"] {
        repository.commit(n, "README", n);
    }
    let mut search = repository.command(&repository.path(), "good..main");
    let (found, code) = json(search.args(["--while", "test ! -e {build}"]));
    assert_eq!((found["verdict"].as_str(), code), (Some("all_are_bad"), 1));
    assert_eq!(repository.name(&found["first_bad"]), "good");
}

#[test]
fn a_shallow_clone_blames_no_commit() {
    let repository = GameRepository::new();
    repository.git(&["tag", "good"]);
    repository.commit("bug", "game.sh", &game(BUG, ""));
    for n in ["1", "2", "3"] {
        repository.commit(n, "README", n);
    }
    let clone = repository.folder.path().join("clone");
    let from = format!("file://{}", repository.path().display());
    repository.git(&["clone", "--quiet", "--depth", "3", &from, clone.to_str().unwrap()]);
    git(&clone, &["fetch", "--quiet", "--depth", "1", "origin", "tag", "good"]);
    for (range, why) in [
        ("good..HEAD", "`good..HEAD` reaches the end of this repository's history"),
        ("HEAD~4..HEAD", "`HEAD~4` is not a commit of this repository"),
    ] {
        let refused = repository.command(&clone, range).output().unwrap();
        let message = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(128), "{message}");
        assert!(message.contains(why) && message.contains("git fetch --unshallow"), "{message}");
    }
    // The whole range is there.
    assert_eq!(json(&mut repository.command(&clone, "HEAD~2..HEAD")).0["verdict"], "none_is_bad");
}

/// The folder of a worktree may be missing only for now, such as on an unmounted disk.
#[test]
fn worktrees_of_the_user_stay() {
    let repository = GameRepository::new();
    repository.git(&["tag", "good"]);
    repository.commit("bug", "game.sh", &game(BUG, ""));
    let [there, away] = ["there", "away"].map(|name| repository.folder.path().join(name));
    repository.git(&["worktree", "add", "--quiet", "--detach", there.to_str().unwrap()]);
    std::fs::write(there.join("staged"), "").unwrap();
    git(&there, &["add", "staged"]);
    let before = repository.git(&["worktree", "list"]);
    std::fs::rename(&there, &away).unwrap();
    assert_eq!(repository.search("good..main").1, 1);
    std::fs::rename(&away, &there).unwrap();
    assert_eq!(git(&there, &["status", "--short"]), "A  staged");
    assert_eq!(repository.git(&["worktree", "list"]), before);
}

/// A commit may change only files that the build reads.
#[test]
fn traces_are_not_those_of_another_commit() {
    let repository = GameRepository::new();
    let folder = repository.folder.path();
    let source = format!(
        "#include <libgen.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n\
         int main(int count, char **words) {{\n\
           char own[4096], line[200], *all[64];\n\
           int n = 0;\n\
           for (int i = 0; i < count; i++) all[n++] = words[i];\n\
           strcpy(own, words[0]);\n\
           if (chdir(dirname(own)) != 0) return 125;\n\
           FILE *data = fopen(\"data\", \"r\");\n\
           if (data && fgets(line, sizeof line, data)) all[n++] = \"--set\", all[n++] = line;\n\
           all[0] = \"{}\";\n\
           all[n] = NULL;\n\
           return execv(all[0], all);\n\
         }}\n",
        example("pucks").display()
    );
    std::fs::write(folder.join("game.c"), source).unwrap();
    let game = folder.join("game");
    let made = Command::new("cc").arg("-o").arg(&game).arg(folder.join("game.c")).output().expect("a C compiler");
    assert!(made.status.success(), "{}", text(&made.stderr));
    repository.commit("data", "data", "interpolation.lerp_ms=100");
    for n in ["1", "2", "3"] {
        repository.commit(n, "README", n);
    }
    repository.commit("other-data", "data", "interpolation.lerp_ms=50");
    repository.commit("4", "README", "4");
    let build = format!("mkdir -p out && cp {} data out", word(&game));
    let (found, code) = json(&mut repository.built_by(&build, &repository.path(), "data..main"));
    assert_eq!((repository.name(&found["first_bad"]), code), ("other-data".to_owned(), 1));

    // Other commands say that they reuse a trace.
    let builds = ["a", "b"].map(|name| {
        let build = folder.join(name).join("game");
        std::fs::create_dir(folder.join(name)).unwrap();
        std::fs::copy(&game, &build).unwrap();
        std::fs::write(folder.join(name).join("data"), "interpolation.lerp_ms=100").unwrap();
        build
    });
    let compare = |build: &Path| {
        let mut bisect = hitreg();
        bisect.args(["bisect", "builds", "--jobs", "1"]).arg(&repository.log).args([&builds[0], build]);
        let output = bisect.arg("--cache").arg(folder.join("cache")).output().unwrap();
        text(&output.stderr)
    };
    let note = "note: traces come from the cache: if a build reads other files, add --no-cache";
    let message = compare(&builds[1]);
    assert_eq!(message.matches(note).count(), 1, "{message}");
}

/// A resumed search knows the bad commits of its earlier run.
#[test]
fn a_resumed_search_uses_saved_bad_answers() {
    let repository = GameRepository::new();
    repository.git(&["tag", "good"]);
    for n in 1..=9 {
        let text = game(if n < 5 { 1 } else { BUG }, &format!("# {n}"));
        repository.commit(&format!("commit-{n}"), "game.sh", &text);
    }
    let build = "sleep 0.2; mkdir -p out && cp game.sh out/game";
    let search = || repository.built_by(build, &repository.path(), "good..main");
    let (whole, _) = json(&mut search());
    let mut first = search().stdout(Stdio::null()).spawn().expect("hitreg");
    let started = Instant::now();
    let searches = repository.folder.path().join("cache/bisect");
    let is_bad_saved = || {
        let entries = std::fs::read_dir(&searches).into_iter().flatten().flatten();
        let mut states = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("state.json")).ok());
        states.any(|state| state.contains("\"bad\""))
    };
    while !is_bad_saved() {
        assert!(started.elapsed() < Duration::from_secs(120), "no progress");
        std::thread::sleep(Duration::from_millis(2));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let (resumed, code) = json(&mut search());
    assert_eq!((repository.name(&resumed["first_bad"]), code), ("commit-5".to_owned(), 1));
    assert!(resumed["resumed"].as_u64() >= Some(1), "{resumed}");
    for same in ["verdict", "tested", "candidates"] {
        assert_eq!(resumed[same], whole[same], "{same}");
    }
}

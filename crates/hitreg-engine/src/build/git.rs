//! Histories of builds: reads a user's git repository, and builds its commits in a separate worktree.
//!
//! The user's own checkout, index and HEAD are never changed. The repository only gains the worktree's entry, which is
//! removed together with the worktree.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::process::{self, ProcessEnd, StopSignal};
use super::{UntestableBuild, not_started, why_untestable};
use hitreg_log::sorted::SortedSet;

/// Variables that git sets for the commands that it runs. Commands in another worktree must not inherit them.
const INHERITED: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
];

/// The options with which git replaces or removes a worktree that is locked or has changes.
const FORCE: [&str; 2] = ["--force", "--force"];

/// What a shallow clone is, and what to do.
const IS_SHALLOW: &str = "which is a shallow clone. To get its whole history, run: git fetch --unshallow";

/// The error of a git operation.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git cannot be started.
    #[error("git cannot be started: {0}")]
    Start(#[from] std::io::Error),
    /// git reported an error.
    #[error("git {command}: {output}")]
    Failed {
        /// The arguments of the command.
        command: String,
        /// What git wrote.
        output: String,
    },
    /// The repository lacks something that the request needs. The text names it, and what to do.
    #[error("{0}")]
    Request(String),
}

/// A user's git repository.
#[derive(Clone, Debug)]
pub struct Repository {
    folder: PathBuf,
}

impl Repository {
    /// Opens the repository that a folder belongs to.
    ///
    /// # Errors
    /// When the folder belongs to no repository.
    pub fn at(folder: &Path) -> Result<Repository, GitError> {
        let common = git(folder, ["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        let common = common.map_err(|error| match error {
            GitError::Failed { output, .. }
                if output.starts_with("not a git") || output.starts_with("cannot change to") =>
            {
                let folder = folder.display();
                GitError::Request(format!(
                    "{folder}: not in a git repository: name the game's repository with --repo FOLDER"
                ))
            }
            error => error,
        })?;
        Ok(Repository { folder: PathBuf::from(common) })
    }

    /// The repository's common git folder, which identifies it on this machine.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The commits at the ends of `GOOD..BAD`, as full hashes.
    ///
    /// # Errors
    /// When the text is not a range, names no commits, or the range is empty.
    pub fn range(&self, text: &str) -> Result<(String, String), GitError> {
        let no_range =
            || GitError::Request(format!("`{text}` is not a range of commits: write GOOD..BAD, such as v1.0..HEAD"));
        let (good, bad) = text.split_once("..").ok_or_else(no_range)?;
        if good.is_empty() || bad.starts_with('.') {
            return Err(no_range());
        }
        let bad = if bad.is_empty() { "HEAD" } else { bad };
        let boundary = self.shallow_boundary()?;
        let commit = |name: &str| {
            // Appended to a search such as `:/text`, `^{commit}` would become part of the text.
            let found = self.git(["rev-parse", "--verify", "--end-of-options", name]);
            let found = found.and_then(|found| self.git(["rev-parse", "--verify", &format!("{found}^{{commit}}")]));
            found.map_err(|error| match error {
                GitError::Failed { .. } if boundary.is_empty() => GitError::Request(format!(
                    "`{name}` is not a commit of this repository. To list its commits, run: git log --oneline"
                )),
                GitError::Failed { .. } => {
                    GitError::Request(format!("`{name}` is not a commit of this repository, {IS_SHALLOW}"))
                }
                error => error,
            })
        };
        let (good, bad) = (commit(good)?, commit(bad)?);
        let listed = self.git(["rev-list", &bad, "--not", &good])?;
        if listed.is_empty() {
            return Err(GitError::Request(format!("{good}..{bad} has no commits: BAD must come after GOOD")));
        }
        if listed.lines().any(|commit| boundary.contains(commit)) {
            return Err(GitError::Request(format!(
                "`{text}` reaches the end of this repository's history, {IS_SHALLOW}"
            )));
        }
        match self.merge_bases(&good, &bad)?.is_empty() {
            true => {
                Err(GitError::Request(format!("{good} and {bad} have no common history: BAD must come after GOOD")))
            }
            false => Ok((good, bad)),
        }
    }

    /// The commits of a shallow clone whose parents it lacks; empty in a complete repository.
    fn shallow_boundary(&self) -> Result<SortedSet<String>, GitError> {
        match std::fs::read_to_string(self.folder.join("shallow")) {
            Ok(listed) => Ok(listed.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(SortedSet::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// The parents of a commit; empty for a root commit.
    ///
    /// # Errors
    /// When git fails.
    pub fn parents(&self, commit: &str) -> Result<Vec<String>, GitError> {
        let listed = self.git(["rev-list", "--no-walk", "--parents", commit])?;
        Ok(listed.split(' ').skip(1).map(str::to_owned).collect())
    }

    /// The newest common ancestors of two commits: of a commit and its descendant, the commit itself.
    ///
    /// # Errors
    /// When git fails.
    pub fn merge_bases(&self, one: &str, other: &str) -> Result<Vec<String>, GitError> {
        match self.git(["merge-base", "--all", one, other]) {
            Ok(listed) => Ok(listed.lines().map(str::to_owned).collect()),
            // Without a common ancestor, git fails without a message.
            Err(GitError::Failed { output, .. }) if output.is_empty() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The commits between any of `goods` and `bad`, without these ends: the descendants of a good commit that no good
    /// commit contains. The commits that divide the range best come first.
    ///
    /// # Errors
    /// When git fails.
    pub fn candidates(&self, bad: &str, goods: &[String]) -> Result<Vec<String>, GitError> {
        self.between(bad, goods, &["--bisect-all"])
    }

    /// The same commits in topological order, parents first.
    ///
    /// # Errors
    /// When git fails.
    pub fn candidates_in_order(&self, bad: &str, goods: &[String]) -> Result<Vec<String>, GitError> {
        self.between(bad, goods, &["--topo-order", "--reverse"])
    }

    fn between(&self, bad: &str, goods: &[String], order: &[&str]) -> Result<Vec<String>, GitError> {
        let goods = goods.iter().map(String::as_str);
        let range = ["--ancestry-path", bad, "--not"].into_iter().chain(goods);
        let args = ["rev-list"].into_iter().chain(order.iter().copied()).chain(range);
        let listed = self.git(args)?;
        let names = listed.lines().filter_map(|line| line.split_whitespace().next());
        Ok(names.filter(|name| *name != bad).map(str::to_owned).collect())
    }

    /// The branches that `bad` contains and that began before every good commit: their newest commits. No good commit
    /// contains them. If `bad` itself descends from no good commit, it is the only one.
    ///
    /// # Errors
    /// When git fails.
    pub fn older_branches(&self, bad: &str, goods: &[String]) -> Result<Vec<String>, GitError> {
        let list = |option: &str| {
            let goods = goods.iter().map(String::as_str);
            self.git(["rev-list", option, bad, "--not"].into_iter().chain(goods))
        };
        let (all, descendants) = (list("--parents")?, list("--ancestry-path")?);
        let descendants: SortedSet<&str> = descendants.lines().collect();
        let with_parents = all.lines().map(|line| line.split(' ')).filter_map(|mut line| Some((line.next()?, line)));
        let others: Vec<_> = with_parents.filter(|(commit, _)| !descendants.contains(commit)).collect();
        let inner: SortedSet<&str> = others.iter().flat_map(|(_, parents)| parents.clone()).collect();
        Ok(others
            .iter()
            .map(|(commit, _)| *commit)
            .filter(|commit| !inner.contains(commit))
            .map(str::to_owned)
            .collect())
    }

    /// The newest of these commits, in topological order.
    ///
    /// # Errors
    /// When git fails.
    pub fn newest(&self, commits: &[String]) -> Result<Option<String>, GitError> {
        let args = ["rev-list", "--topo-order", "--max-count=1"].into_iter();
        let newest = self.git(args.chain(commits.iter().map(String::as_str)))?;
        Ok((!newest.is_empty()).then_some(newest))
    }

    /// The first line of a commit's message.
    ///
    /// # Errors
    /// When git fails.
    pub fn subject(&self, commit: &str) -> Result<String, GitError> {
        self.git(["log", "-1", "--no-show-signature", "--format=%s", commit])
    }

    /// Checks out a commit in a worktree at `folder`, which may hold a worktree of an earlier run. First removes the
    /// `artifact` that an earlier commit may have left there, so that it is not mistaken for this commit's build.
    ///
    /// # Errors
    /// When the worktree cannot be created.
    pub(crate) fn check_out(&self, folder: &Path, commit: &str, artifact: &Path) -> Result<(), GitError> {
        let _ = std::fs::remove_file(artifact);
        let quietly = ["-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false"];
        let again = ["checkout", "--quiet", "--force", "--detach", commit];
        if folder.join(".git").is_file() && git(folder, quietly.into_iter().chain(again)).is_ok() {
            return Ok(());
        }
        // A worktree that a killed run left incomplete is removed, not repaired.
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        let folder = folder.as_os_str();
        let add = [OsStr::new("worktree"), "add".as_ref(), "--quiet".as_ref(), "--detach".as_ref()];
        // Git asks for `--force` twice to replace an entry whose folder is missing, if it was locked when git was killed.
        let add = quietly.into_iter().map(OsStr::new).chain(add).chain(FORCE.map(OsStr::new));
        self.git(add.chain([folder, commit.as_ref()])).map(drop)
    }

    /// Removes the worktrees in `folder` with the repository's entries for them. Entries for other worktrees stay: the
    /// folder of a user's worktree may be missing only for now, such as on an unmounted disk.
    ///
    /// # Errors
    /// When git cannot be started, or the folder cannot be read.
    pub(crate) fn remove_worktrees(&self, folder: &Path) -> Result<(), GitError> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.join(".git").is_file() {
                let remove = ["worktree", "remove"].into_iter().chain(FORCE).map(OsStr::new);
                match self.git(remove.chain([path.as_os_str()])) {
                    // The repository may have lost its entry for a worktree of an earlier run.
                    Ok(_) | Err(GitError::Failed { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn git<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String, GitError> {
        git(&self.folder, args)
    }
}

/// Runs a user's build command in a worktree.
///
/// # Errors
/// When the command fails, takes too long or is stopped.
pub fn make(worktree: &Path, command: &str, time_limit: Duration, stop: &StopSignal) -> Result<(), UntestableBuild> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(worktree);
    remove_git_variables(&mut shell);
    let ran = process::run(shell, time_limit, stop).map_err(|error| not_started("the build command", &error))?;
    let reason = match ran.ended {
        ProcessEnd::Exit(code @ 1..) => Some(format!("the build command failed (exit code {code})")),
        other => why_untestable(&other, "--build-time-limit").map(|why| format!("the build command: {why}")),
    };
    reason.map_or(Ok(()), |reason| Err(UntestableBuild::because(reason).with_last_words(ran.last_words)))
}

fn git<A: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = A>) -> Result<String, GitError> {
    let mut command = Command::new("git");
    // The messages are compared with English texts.
    command.arg("-C").arg(folder).args(args).stdin(Stdio::null()).env("LC_ALL", "C");
    remove_git_variables(&mut command);
    let Output { status, stdout, stderr } = command.output()?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim_end().to_owned());
    }
    let args: Vec<_> = command.get_args().skip(2).map(|arg| arg.to_string_lossy()).collect();
    let output = String::from_utf8_lossy(&stderr).trim().trim_start_matches("fatal: ").to_owned();
    Err(GitError::Failed { command: args.join(" "), output })
}

fn remove_git_variables(command: &mut Command) {
    for name in INHERITED {
        command.env_remove(name);
    }
}

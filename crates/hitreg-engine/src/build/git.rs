//! Histories of builds: reads a user's git repository, and builds its commits in a separate worktree.
//!
//! The user's own checkout, index and HEAD are never changed. The repository only gains the worktree's entry, which is
//! removed together with the worktree.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::process::{self, ProcessEnd, StopSignal};
use super::{UntestableBuild, why_untestable};

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

/// The error of a git operation.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git cannot be started.
    #[error("git cannot be started: {0}")]
    Start(#[from] std::io::Error),
    /// git reported an error.
    #[error("git {command}: {said}")]
    Failed {
        /// The arguments of the command.
        command: String,
        /// What git wrote.
        said: String,
    },
    /// The repository lacks what was asked for; says what, and what to do.
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
            GitError::Failed { said, .. } if said.starts_with("not a git") || said.starts_with("cannot change to") => {
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
        let commit = |name: &str| {
            let found = self.git(["rev-parse", "--verify", "--end-of-options", &format!("{name}^{{commit}}")]);
            found.map_err(|error| match error {
                GitError::Failed { .. } => GitError::Request(format!(
                    "`{name}` is not a commit of this repository. To list its commits, run: git log --oneline"
                )),
                error => error,
            })
        };
        let (good, bad) = (commit(good)?, commit(bad)?);
        match self.candidates(&bad, std::slice::from_ref(&good))?.is_empty() && !self.parents(&bad)?.contains(&good) {
            true => Err(GitError::Request(format!("{good}..{bad} has no commits: BAD must come after GOOD"))),
            false => Ok((good, bad)),
        }
    }

    fn parents(&self, commit: &str) -> Result<Vec<String>, GitError> {
        let listed = self.git(["rev-list", "--no-walk", "--parents", commit])?;
        Ok(listed.split(' ').skip(1).map(str::to_owned).collect())
    }

    /// The commits between any of `goods` and `bad`, without these ends. The commits that divide the range best come
    /// first.
    ///
    /// # Errors
    /// When git fails.
    pub fn candidates(&self, bad: &str, goods: &[String]) -> Result<Vec<String>, GitError> {
        let mut args = vec!["rev-list", "--bisect-all", bad, "--not"];
        args.extend(goods.iter().map(String::as_str));
        let listed = self.git(args)?;
        let names = listed.lines().filter_map(|line| line.split_whitespace().next());
        Ok(names.filter(|name| *name != bad).map(str::to_owned).collect())
    }

    /// The first parent of a commit; `None` for a root commit.
    ///
    /// # Errors
    /// When git fails.
    pub fn parent(&self, commit: &str) -> Result<Option<String>, GitError> {
        Ok(self.parents(commit)?.into_iter().next())
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
        self.forget_missing_worktrees()?;
        let folder = folder.as_os_str();
        let add = [OsStr::new("worktree"), "add".as_ref(), "--quiet".as_ref(), "--force".as_ref(), "--detach".as_ref()];
        let add = quietly.into_iter().map(OsStr::new).chain(add).chain([folder, commit.as_ref()]);
        self.git(add).map(drop)
    }

    /// Removes the repository's entries for worktrees that are missing.
    ///
    /// # Errors
    /// When git fails.
    pub(crate) fn forget_missing_worktrees(&self) -> Result<(), GitError> {
        self.git(["worktree", "prune"]).map(drop)
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
    let ran = process::run(shell, time_limit, stop)
        .map_err(|error| UntestableBuild::because(format!("the build command cannot be started: {error}")))?;
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
    let asked: Vec<_> = command.get_args().skip(2).map(|arg| arg.to_string_lossy()).collect();
    let said = String::from_utf8_lossy(&stderr).trim().trim_start_matches("fatal: ").to_owned();
    Err(GitError::Failed { command: asked.join(" "), said })
}

fn remove_git_variables(command: &mut Command) {
    for name in INHERITED {
        command.env_remove(name);
    }
}

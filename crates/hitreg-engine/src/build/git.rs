//! Histories of builds: a user's git repository, read as it is, and a worktree beside it in which commits are built.
//!
//! The user's own checkout, index and HEAD are never touched; all that is added to the repository is the worktree's entry, which
//! goes away with it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::process::{self, Ended};
use super::{Stop, Untestable, why_untestable};

/// What git sets for the commands that it runs; what runs inside another worktree must not see it.
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

/// A git command that failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git cannot be started: {0}")]
    Start(#[from] std::io::Error),
    /// It said no.
    #[error("git {command}: {said}")]
    Failed {
        /// What it was asked.
        command: String,
        /// What it said.
        said: String,
    },
    /// A range of another form.
    #[error("`{0}` is no range of commits: write GOOD..BAD, such as v1.0..HEAD")]
    NoRange(String),
    /// A range without commits.
    #[error("{good}..{bad} has no commits: BAD must come after GOOD")]
    Empty {
        /// The good end.
        good: String,
        /// The bad end.
        bad: String,
    },
}

/// A user's repository.
#[derive(Clone, Debug)]
pub struct Repository {
    folder: PathBuf,
}

impl Repository {
    /// The repository that a folder belongs to.
    ///
    /// # Errors
    /// When it belongs to none.
    pub fn at(folder: &Path) -> Result<Repository, GitError> {
        let common = git(folder, ["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
        Ok(Repository { folder: PathBuf::from(common) })
    }

    /// Identifies the repository on this machine.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The commits at the ends of `GOOD..BAD`, by their full names.
    ///
    /// # Errors
    /// When the text is no range, or names no commits, or there are none between.
    pub fn range(&self, text: &str) -> Result<(String, String), GitError> {
        let (good, bad) = text.split_once("..").ok_or_else(|| GitError::NoRange(text.to_owned()))?;
        if good.is_empty() || bad.starts_with('.') {
            return Err(GitError::NoRange(text.to_owned()));
        }
        let bad = if bad.is_empty() { "HEAD" } else { bad };
        let commit =
            |name: &str| self.git(["rev-parse", "--verify", "--end-of-options", &format!("{name}^{{commit}}")]);
        let (good, bad) = (commit(good)?, commit(bad)?);
        match self.candidates(&bad, std::slice::from_ref(&good))?.is_empty() && !self.is_parent(&good, &bad)? {
            true => Err(GitError::Empty { good, bad }),
            false => Ok((good, bad)),
        }
    }

    fn is_parent(&self, parent: &str, commit: &str) -> Result<bool, GitError> {
        Ok(self.git(["rev-list", "--no-walk", "--parents", commit])?.split(' ').skip(1).any(|name| name == parent))
    }

    /// The commits that lead from any of `goods` to `bad`, without these, those first that divide them best.
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

    /// The first parent of a commit; `None` when it has none.
    ///
    /// # Errors
    /// When git fails.
    pub fn parent(&self, commit: &str) -> Result<Option<String>, GitError> {
        Ok(self.git(["rev-list", "--no-walk", "--parents", commit])?.split(' ').nth(1).map(str::to_owned))
    }

    /// The commit among these that comes last in history.
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

    /// A worktree at a commit, at a folder that may hold one from an earlier run. The `artifact` that an earlier commit may
    /// have left there goes, so that it is not taken for what this one builds.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn check_out(&self, folder: &Path, commit: &str, artifact: &Path) -> Result<(), GitError> {
        let _ = std::fs::remove_file(artifact);
        let quietly = ["-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false"];
        let again = ["checkout", "--quiet", "--force", "--detach", commit];
        if folder.join(".git").is_file() && git(folder, quietly.into_iter().chain(again)).is_ok() {
            return Ok(());
        }
        // Whatever a killed run has left half done is not worth mending.
        self.remove(folder)?;
        let folder = folder.as_os_str();
        let add = [OsStr::new("worktree"), "add".as_ref(), "--quiet".as_ref(), "--force".as_ref(), "--detach".as_ref()];
        let add = quietly.into_iter().map(OsStr::new).chain(add).chain([folder, commit.as_ref()]);
        self.git(add).map(drop)
    }

    fn remove(&self, folder: &Path) -> Result<(), GitError> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        self.forget_missing_worktrees()
    }

    /// Forgets the repository's entries of worktrees that are gone.
    ///
    /// # Errors
    /// When git fails.
    pub fn forget_missing_worktrees(&self) -> Result<(), GitError> {
        self.git(["worktree", "prune"]).map(drop)
    }

    fn git<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String, GitError> {
        git(&self.folder, args)
    }
}

/// Runs a user's build command in a worktree.
///
/// # Errors
/// When it fails, takes too long, or is stopped.
pub fn make(worktree: &Path, command: &str, time_limit: Duration, stop: &Stop) -> Result<(), Untestable> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(worktree);
    without_inherited(&mut shell);
    let ran = process::run(shell, time_limit, stop)
        .map_err(|error| Untestable::because(format!("the build command cannot be started: {error}")))?;
    let reason = match ran.ended {
        Ended::Exit(code @ 1..) => Some(format!("the build command failed (exit code {code})")),
        other => why_untestable(&other).map(|why| format!("the build command: {why}")),
    };
    reason.map_or(Ok(()), |reason| Err(Untestable::because(reason).saying(ran.last_words)))
}

fn git<A: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = A>) -> Result<String, GitError> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(args).stdin(Stdio::null());
    without_inherited(&mut command);
    let Output { status, stdout, stderr } = command.output()?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim_end().to_owned());
    }
    let asked: Vec<_> = command.get_args().skip(2).map(|arg| arg.to_string_lossy()).collect();
    let said = String::from_utf8_lossy(&stderr).trim().trim_start_matches("fatal: ").to_owned();
    Err(GitError::Failed { command: asked.join(" "), said })
}

fn without_inherited(command: &mut Command) {
    for name in INHERITED {
        command.env_remove(name);
    }
}

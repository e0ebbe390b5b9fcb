//! What a bisection of a history remembers, so that a run that was killed goes on where it was.
#![expect(clippy::disallowed_types, reason = "a lock needs an open file")]

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::judge::Answer;
use crate::cli::trouble::Trouble;
use crate::store;
use crate::trace::Digest;

/// The folder of one search: what was answered, the traces, the worktrees.
pub(super) struct State {
    folder: PathBuf,
    file: Remembered,
    /// Held for as long as the search runs.
    _lock: File,
}

#[derive(Serialize, Deserialize)]
struct Remembered {
    /// What is being searched, in words, for whoever opens the file.
    search: String,
    /// Commits in the order in which they were tried.
    answers: Vec<(String, Answer)>,
}

impl State {
    /// The state of a search, by the words that say what is searched; that of an earlier run if there is one.
    pub(super) fn open(cache: &Path, search: &str, restart: bool) -> Result<State, Trouble> {
        let folder = cache.join("bisect").join(Digest::of_bytes(search.as_bytes()).to_string());
        let trouble = |error: std::io::Error| {
            Trouble::file(
                &folder,
                format!("the search cannot be kept here ({error}); name another folder with --cache"),
            )
        };
        // Git is asked about worktrees in it from the repository, where a relative path would mean another place.
        let folder = std::path::absolute(&folder).map_err(trouble)?;
        std::fs::create_dir_all(&folder).map_err(trouble)?;
        let lock = File::create(folder.join("lock")).map_err(trouble)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Trouble::file(&folder, "the same search is running already"));
            }
            Err(TryLockError::Error(error)) => return Err(trouble(error)),
        }
        if restart {
            forget_traces(&folder).map_err(trouble)?;
        }
        let fresh = || Remembered { search: search.to_owned(), answers: Vec::new() };
        // What cannot be read any more is no help: the search starts anew.
        let before = store::read_bytes(&folder.join("state.json")).ok();
        let before = before.and_then(|bytes| serde_json::from_slice::<Remembered>(&bytes).ok());
        let file = before.filter(|file| !restart && file.search == search).unwrap_or_else(fresh);
        Ok(State { folder, file, _lock: lock })
    }

    pub(super) fn answers(&self) -> &[(String, Answer)] {
        &self.file.answers
    }

    pub(super) fn answer_of(&self, commit: &str) -> Option<&Answer> {
        self.file.answers.iter().find(|(name, _)| name == commit).map(|(_, answer)| answer)
    }

    pub(super) fn remember(&mut self, commit: &str, answer: Answer) -> Result<(), Trouble> {
        self.file.answers.push((commit.to_owned(), answer));
        let text = serde_json::to_vec_pretty(&self.file).map_err(std::io::Error::from)?;
        Ok(store::save_bytes(&self.folder.join("state.json"), &text)?)
    }

    /// Where traces and worktrees are kept beside the answers.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Forgets the search, which has come to its end.
    pub(super) fn forget(self) -> Result<(), Trouble> {
        std::fs::remove_dir_all(&self.folder).map_err(|error| Trouble::file(&self.folder, error))
    }
}

fn forget_traces(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "hittrace") {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

//! What a bisection of a history remembers, so that a run that was killed goes on where it was.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::judge::Answer;
use crate::engine::EngineError;
use hitreg_log::store::{self, FolderError, LockedFolder, OwnFolder};
use hitreg_log::trace::Digest;

/// The folder of one search: what was answered, the traces, the worktrees.
pub(super) struct State {
    folder: LockedFolder,
    file: Remembered,
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
    pub(super) fn open(cache: &Path, search: &str, restart: bool) -> Result<State, EngineError> {
        let folder = cache.join("bisect").join(Digest::of_bytes(search.as_bytes()).to_string());
        let folder = LockedFolder::open(&folder)?;
        if restart {
            folder.remove_ending_in("hittrace")?;
        }
        let fresh = || Remembered { search: search.to_owned(), answers: Vec::new() };
        // What cannot be read any more is no help: the search starts anew.
        let before = store::read_bytes(folder.folder().file("state.json").path()).ok();
        let before = before.and_then(|bytes| serde_json::from_slice::<Remembered>(&bytes).ok());
        let file = before.filter(|file| !restart && file.search == search).unwrap_or_else(fresh);
        Ok(State { folder, file })
    }

    pub(super) fn answers(&self) -> &[(String, Answer)] {
        &self.file.answers
    }

    pub(super) fn answer_of(&self, commit: &str) -> Option<&Answer> {
        self.file.answers.iter().find(|(name, _)| name == commit).map(|(_, answer)| answer)
    }

    pub(super) fn remember(&mut self, commit: &str, answer: Answer) -> Result<(), EngineError> {
        self.file.answers.push((commit.to_owned(), answer));
        let text = serde_json::to_vec_pretty(&self.file)
            .map_err(std::io::Error::from)
            .map_err(|source| EngineError::SearchFolder { folder: self.folder().path().to_owned(), source })?;
        Ok(store::save_bytes(&self.folder().file("state.json"), &text)?)
    }

    /// Where traces and worktrees are kept beside the answers.
    pub(super) fn folder(&self) -> &OwnFolder {
        self.folder.folder()
    }

    /// Forgets the search, which has come to its end.
    pub(super) fn forget(self) -> Result<(), EngineError> {
        Ok(self.folder.remove()?)
    }
}

impl From<FolderError> for EngineError {
    fn from(error: FolderError) -> EngineError {
        match error {
            FolderError::Taken { folder } => EngineError::SearchRuns { folder },
            FolderError::Io { folder, source } => EngineError::SearchFolder { folder, source },
        }
    }
}

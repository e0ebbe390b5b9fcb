//! The saved state of a commit search. An interrupted search resumes from it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::judge::BuildAnswer;
use crate::engine::EngineError;
use hitreg_log::store::{self, FolderError, LockedFolder, OwnFolder};
use hitreg_log::trace::Digest;

/// The folder of one search: answers, traces and worktrees.
pub(super) struct SearchState {
    folder: LockedFolder,
    file: SavedSearch,
}

#[derive(Serialize, Deserialize)]
struct SavedSearch {
    /// A description of the search, for people who open the file.
    search: String,
    /// The answers by commit, in the order of the trials.
    answers: Vec<(String, BuildAnswer)>,
}

impl SearchState {
    /// Opens the state of the search with this description. Loads the saved answers of an earlier run if there are any.
    pub(super) fn open(cache: &Path, search: &str, restart: bool) -> Result<SearchState, EngineError> {
        let folder = cache.join("bisect").join(Digest::of_bytes(search.as_bytes()).to_string());
        let folder = LockedFolder::open(&folder)?;
        if restart {
            folder.remove_ending_in("hittrace")?;
        }
        let fresh = || SavedSearch { search: search.to_owned(), answers: Vec::new() };
        // A state file that cannot be read is ignored, and the search starts from the beginning.
        let before = store::read_bytes(folder.folder().file("state.json").path()).ok();
        let before = before.and_then(|bytes| serde_json::from_slice::<SavedSearch>(&bytes).ok());
        let file = before.filter(|file| !restart && file.search == search).unwrap_or_else(fresh);
        Ok(SearchState { folder, file })
    }

    pub(super) fn answers(&self) -> &[(String, BuildAnswer)] {
        &self.file.answers
    }

    pub(super) fn answer_of(&self, commit: &str) -> Option<&BuildAnswer> {
        self.file.answers.iter().find(|(name, _)| name == commit).map(|(_, answer)| answer)
    }

    pub(super) fn remember(&mut self, commit: &str, answer: BuildAnswer) -> Result<(), EngineError> {
        self.file.answers.push((commit.to_owned(), answer));
        let text = serde_json::to_vec_pretty(&self.file)
            .map_err(std::io::Error::from)
            .map_err(|source| EngineError::SearchFolder { folder: self.folder().path().to_owned(), source })?;
        Ok(store::save_bytes(&self.folder().file("state.json"), &text)?)
    }

    /// The folder for traces and worktrees.
    pub(super) fn folder(&self) -> &OwnFolder {
        self.folder.folder()
    }

    /// Deletes the state of a finished search.
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

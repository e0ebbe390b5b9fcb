//! The saved state of a commit search. An interrupted search resumes from it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::build::condition::BuildAnswer;
use crate::engine::EngineError;
use hitreg_log::store::{self, FolderError, LockedFolder, OwnFolder};
use hitreg_log::trace::Digest;

/// The folder of one search: answers, traces and worktrees.
pub(super) struct SearchState {
    folder: LockedFolder,
    search: String,
}

#[derive(Serialize, Deserialize)]
struct SavedSearch {
    /// A description of the search, for people who open the file.
    search: String,
    /// The answers by commit, in the order of the trials.
    answers: Vec<(String, BuildAnswer)>,
}

impl SearchState {
    /// Opens the state of the search with this description, with the saved answers of an earlier run.
    pub(super) fn open(
        cache: &Path,
        search: &str,
        restart: bool,
    ) -> Result<(SearchState, Vec<(String, BuildAnswer)>), EngineError> {
        let folder = cache.join("bisect").join(Digest::of_bytes(search.as_bytes()).to_string());
        let folder = LockedFolder::open(&folder)?;
        if restart {
            folder.remove_ending_in("hittrace")?;
        }
        // A state file that cannot be read is ignored, and the search starts from the beginning.
        let before = store::read_bytes(folder.folder().file("state.json").path()).ok();
        let before = before.and_then(|bytes| serde_json::from_slice::<SavedSearch>(&bytes).ok());
        let answers = before.filter(|file| !restart && file.search == search).map(|file| file.answers);
        Ok((SearchState { folder, search: search.to_owned() }, answers.unwrap_or_default()))
    }

    pub(super) fn save(&self, answers: &[(String, BuildAnswer)]) -> Result<(), EngineError> {
        let file = SavedSearch { search: self.search.clone(), answers: answers.to_vec() };
        let text = serde_json::to_vec_pretty(&file)
            .map_err(|source| FolderError::Io { folder: self.folder().path().to_owned(), source: source.into() })?;
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
            FolderError::Taken { folder } => EngineError::unsuitable(
                &folder,
                "the same search is already running in another process: wait for it, or name another folder with --cache",
            ),
            FolderError::Io { folder, source } => {
                let what = format!("the search cannot be saved here ({source}): name another folder with --cache");
                EngineError::unsuitable(&folder, what)
            }
        }
    }
}

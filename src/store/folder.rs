//! Folders that one process at a time works in.
#![expect(clippy::disallowed_types, reason = "a lock needs an open file")]

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::StoreError;

/// A folder that no other process works in for as long as this is held.
#[derive(Debug)]
pub struct LockedFolder {
    folder: PathBuf,
    _lock: File,
}

/// Why a folder is not available.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another process works in it.
    #[error("{}: another process works in this folder", folder.display())]
    Taken {
        /// Which.
        folder: PathBuf,
    },
    /// It cannot be made, changed or removed.
    #[error("{}: {source}", folder.display())]
    Io {
        /// Which.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl LockedFolder {
    /// Makes the folder if need be, and locks it. Its path is absolute from then on.
    ///
    /// # Errors
    /// When it cannot be made, or another process has locked it.
    pub fn open(folder: &Path) -> Result<LockedFolder, FolderError> {
        let fail = |source| FolderError::Io { folder: folder.to_owned(), source };
        let path = std::path::absolute(folder).map_err(fail)?;
        std::fs::create_dir_all(&path).map_err(fail)?;
        let lock = File::create(path.join("lock")).map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => Ok(LockedFolder { folder: path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(FolderError::Taken { folder: path }),
            Err(TryLockError::Error(source)) => Err(fail(source)),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Removes the files in it with this ending.
    ///
    /// # Errors
    /// When the folder cannot be listed, or a file not be removed.
    pub fn remove_ending_in(&self, ending: &str) -> Result<(), FolderError> {
        let remove = || {
            for entry in std::fs::read_dir(&self.folder)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == ending) {
                    std::fs::remove_file(path)?;
                }
            }
            Ok(())
        };
        remove().map_err(|source| FolderError::Io { folder: self.folder.clone(), source })
    }

    /// Removes it with all that is in it.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(self) -> Result<(), FolderError> {
        std::fs::remove_dir_all(&self.folder).map_err(|source| FolderError::Io { folder: self.folder.clone(), source })
    }
}

/// A folder for what is needed now and not later; it goes away with what this gives back.
///
/// # Errors
/// When the system has no place for one.
pub fn temporary_folder() -> Result<tempfile::TempDir, StoreError> {
    tempfile::tempdir().map_err(StoreError::NoTemporaryFolder)
}

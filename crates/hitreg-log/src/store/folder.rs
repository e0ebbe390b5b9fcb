//! Folders that one process at a time works in.
#![expect(clippy::disallowed_types, reason = "a lock needs an open file")]

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::StoreError;
use super::target::Target;
use super::unnamed::UnnamedFolder;

/// A folder of hitreg's own, in which it may write what it likes.
#[derive(Clone, Debug)]
pub struct OwnFolder(PathBuf);

impl OwnFolder {
    /// Makes it if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(folder: &Path) -> std::io::Result<OwnFolder> {
        std::fs::create_dir_all(folder)?;
        Ok(OwnFolder(folder.to_owned()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> Target {
        Target::own(self.0.join(name))
    }
}

/// A folder that no other process works in for as long as this is held.
#[derive(Debug)]
pub struct LockedFolder {
    folder: OwnFolder,
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
        let own = OwnFolder::open(&path).map_err(fail)?;
        let lock = File::create(path.join("lock")).map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => Ok(LockedFolder { folder: own, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(FolderError::Taken { folder: path }),
            Err(TryLockError::Error(source)) => Err(fail(source)),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &OwnFolder {
        &self.folder
    }

    /// Removes the files in it with this ending.
    ///
    /// # Errors
    /// When the folder cannot be listed, or a file not be removed.
    pub fn remove_ending_in(&self, ending: &str) -> Result<(), FolderError> {
        let remove = || {
            for entry in std::fs::read_dir(self.folder.path())? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == ending) {
                    std::fs::remove_file(path)?;
                }
            }
            Ok(())
        };
        remove().map_err(|source| FolderError::Io { folder: self.folder.0.clone(), source })
    }

    /// Removes it with all that is in it.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(self) -> Result<(), FolderError> {
        std::fs::remove_dir_all(self.folder.path())
            .map_err(|source| FolderError::Io { folder: self.folder.0.clone(), source })
    }
}

/// A folder for what is needed now and not later.
#[derive(Debug)]
pub struct TemporaryFolder(UnnamedFolder);

impl TemporaryFolder {
    /// A file in it.
    pub fn file(&self, name: &str) -> Target {
        Target::own(self.0.path().join(name))
    }
}

/// A folder for what is needed now and not later; it goes away with what this gives back.
///
/// # Errors
/// When the system has no place for one.
pub fn temporary_folder() -> Result<TemporaryFolder, StoreError> {
    UnnamedFolder::new().map(TemporaryFolder).map_err(StoreError::NoTemporaryFolder)
}

/// All files below a folder whose names end like this, in order. Links to folders are not followed.
///
/// # Errors
/// When a folder cannot be listed.
pub fn files_below(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, StoreError> {
    let list = || std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>();
    let mut paths = list().map_err(|source| StoreError::open(folder, source))?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !path.is_symlink() {
            files.extend(files_below(&path, ending)?);
        } else if name.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.')) {
            files.push(path);
        }
    }
    Ok(files)
}

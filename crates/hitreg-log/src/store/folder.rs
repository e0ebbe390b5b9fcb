//! Folders that only one process at a time may use.
#![expect(clippy::disallowed_types, reason = "a lock needs an open file")]

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::target::Target;
use super::temporary::TemporaryFolder;

/// Creates a folder and those above it, unless it exists.
///
/// # Errors
/// When a file has the name of one of them, or the system refuses.
pub fn create_folder(folder: &Path) -> Result<(), StoreError> {
    std::fs::create_dir_all(folder).map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            let file = folder.ancestors().find(|path| path.exists()).unwrap_or(folder);
            StoreError::NotDirectory { path: file.into() }
        }
        _ => StoreError::Uncreatable { path: folder.into(), source },
    })
}

/// A folder that hitreg owns, where it may write any file.
#[derive(Clone, Debug)]
pub struct OwnFolder(PathBuf);

impl OwnFolder {
    /// Opens the folder and creates it if necessary.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn open(folder: &Path) -> std::io::Result<OwnFolder> {
        std::fs::create_dir_all(folder)?;
        Ok(OwnFolder(folder.to_owned()))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns a target for a file in the folder.
    pub fn file(&self, name: &str) -> Target {
        Target::own(self.0.join(name))
    }
}

/// A folder locked against other processes until this value is dropped.
#[derive(Debug)]
pub struct LockedFolder {
    folder: OwnFolder,
    _lock: File,
}

/// The reasons why a folder is not available.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another process has locked the folder.
    #[error("{}: another process uses this folder: wait for it, or name another folder", folder.display())]
    Taken {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder cannot be created, changed or removed.
    #[error("{}: {source}", folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

impl LockedFolder {
    /// Creates the folder if necessary and locks it. Its path becomes absolute.
    ///
    /// # Errors
    /// When the folder cannot be created, or another process has locked it.
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

    /// Returns the folder.
    pub fn folder(&self) -> &OwnFolder {
        &self.folder
    }

    /// Removes the files in the folder whose names end with `ending`.
    ///
    /// # Errors
    /// When the folder cannot be listed, or a file cannot be removed.
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

    /// Removes the folder and its contents.
    ///
    /// # Errors
    /// When the folder cannot be removed.
    pub fn remove(self) -> Result<(), FolderError> {
        std::fs::remove_dir_all(self.folder.path())
            .map_err(|source| FolderError::Io { folder: self.folder.0.clone(), source })
    }
}

/// Creates a temporary folder, which is removed when the returned value is dropped.
///
/// # Errors
/// When the system has no place for a temporary folder.
pub fn temporary_folder() -> Result<TemporaryFolder, StoreError> {
    TemporaryFolder::new().map_err(StoreError::NoTemporaryFolder)
}

/// Returns all files below a folder whose names end with `ending`, sorted. Links to folders are not followed. Pipes and
/// devices are left out, because reading them might not end. Links to missing files are included.
///
/// # Errors
/// When a folder cannot be listed.
pub fn files_below(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, StoreError> {
    let list = || std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>();
    let mut paths = list().map_err(|source| StoreError::open(folder, source))?;
    paths.sort_unstable();
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !path.is_symlink() {
            files.extend(files_below(&path, ending)?);
        } else if name.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.'))
            && (path.is_file() || !path.exists())
        {
            files.push(path);
        }
    }
    Ok(files)
}

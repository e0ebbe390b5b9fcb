//! Folders, and temporary files and folders. All temporary ones are registered, so that a program that has to end can
//! remove them.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::output::Target;
use super::{StoreError, StoreErrorKind};
use crate::sorted::SortedSet;

/// Creates a folder and those above it, unless it exists.
///
/// # Errors
/// When a file has the name of one of them, or the system refuses.
pub fn create_folder(folder: &Path) -> Result<(), StoreError> {
    std::fs::create_dir_all(folder).map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            let file = folder.ancestors().find(|path| path.exists()).unwrap_or(folder);
            StoreError::new(file, StoreErrorKind::NotDirectory)
        }
        _ => StoreError::new(folder, StoreErrorKind::Uncreatable(source)),
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
#[doc(hidden)]
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
    let mut paths = known_paths();
    let path = create_temporary_folder()
        .map_err(|source| StoreError::new(std::env::temp_dir(), StoreErrorKind::NoTemporaryFolder(source)))?;
    Ok(TemporaryFolder(TemporaryPath::among(&mut paths, path, PathKind::Folder)))
}

/// Returns all files below a folder whose names end with `ending`, in upper or lower case, sorted. Links to folders are
/// followed, and each folder is read once: under the path without a link, if it has one. Pipes and devices are left out,
/// because reading them might not end. Links to missing files are included.
///
/// # Errors
/// When a folder cannot be listed.
pub fn files_below(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, StoreError> {
    let mut unread = Vec::new();
    let files = listed_files_below(folder, endings, &mut unread)?;
    unread.into_iter().next().map_or(Ok(files), Err)
}

/// Returns the same files, without those in folders that cannot be listed. `unread` receives the errors of these folders.
///
/// # Errors
/// When `folder` itself cannot be listed.
pub fn listed_files_below(
    folder: &Path,
    endings: &[&str],
    unread: &mut Vec<StoreError>,
) -> Result<Vec<PathBuf>, StoreError> {
    let (mut files, mut read) = (Vec::new(), SortedSet::new());
    let mut folders = VecDeque::from([folder.to_owned()]);
    while let Some(below) = folders.pop_front() {
        let listed = super::canonical(&below).and_then(|real| match read.insert(real) {
            true => paths_in(&below).map_err(|source| StoreError::open(&below, source)),
            false => Ok(Vec::new()),
        });
        let paths = match listed {
            Ok(paths) => paths,
            Err(error) if below == folder => return Err(error),
            Err(error) => {
                unread.push(error);
                continue;
            }
        };
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
            let is_named = |ending: &&str| name.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.'));
            match path.is_dir() {
                // Links come after all folders.
                true if path.is_symlink() => folders.push_back(path),
                true => folders.push_front(path),
                false if endings.iter().any(is_named) && (path.is_file() || !path.exists()) => files.push(path),
                false => {}
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// The paths in a folder, sorted, so that the order of links does not depend on the file system.
fn paths_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort_unstable();
    Ok(paths)
}

/// A file without its final name, removed on drop.
#[derive(Debug)]
pub(super) struct UnnamedFile {
    pub(super) file: File,
    path: TemporaryPath,
}

impl UnnamedFile {
    /// Creates a file with the default permissions (mode 0666 less the umask on Unix).
    pub(super) fn in_folder(folder: &Path) -> std::io::Result<UnnamedFile> {
        let mut paths = known_paths();
        let created = create_file(folder, ".hitreg-", 0o666);
        let (file, path) = created.map_err(|error| std::io::Error::from(error.kind()))?;
        Ok(UnnamedFile { file, path: TemporaryPath::among(&mut paths, path, PathKind::File) })
    }

    /// Gives the file its final name and replaces any existing file.
    pub(super) fn put(mut self, path: &Path) -> std::io::Result<()> {
        let paths = known_paths();
        let renamed = std::fs::rename(&self.path.path, path);
        drop(paths);
        renamed?;
        self.path.kind = PathKind::Renamed;
        Ok(())
    }
}

/// A temporary folder, removed with its contents on drop.
#[derive(Debug)]
pub struct TemporaryFolder(TemporaryPath);

impl TemporaryFolder {
    /// Returns a target for a file in the folder.
    pub fn file(&self, name: &str) -> Target {
        Target::temporary(self.0.path.join(name))
    }
}

/// Creates a file without a name in the system's temporary folder, readable only by this user. The system removes the
/// file when it is closed.
pub(super) fn anonymous_file() -> std::io::Result<File> {
    // The file may have a name for a moment.
    let _paths = known_paths();
    anonymous_file_in(&std::env::temp_dir())
}

/// Removes all temporary files and folders before the program ends. After that, none can be created or renamed.
#[doc(hidden)]
pub fn remove_unnamed() {
    let paths = known_paths();
    for path in &*paths {
        // A missing file is fine, and a file that cannot be removed cannot be helped.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    std::mem::forget(paths);
}

/// A registered path. On drop, what is there is removed, and then the registration.
#[derive(Debug)]
struct TemporaryPath {
    path: PathBuf,
    kind: PathKind,
}

#[derive(Clone, Copy, Debug)]
enum PathKind {
    File,
    Folder,
    /// The file has its final name, and nothing is left at the path.
    Renamed,
}

impl TemporaryPath {
    fn among(paths: &mut SortedSet<PathBuf>, path: PathBuf, kind: PathKind) -> TemporaryPath {
        paths.insert(path.clone());
        TemporaryPath { path, kind }
    }
}

impl Drop for TemporaryPath {
    fn drop(&mut self) {
        // A drop cannot report an error.
        let _ = match self.kind {
            PathKind::File => std::fs::remove_file(&self.path),
            PathKind::Folder => std::fs::remove_dir_all(&self.path),
            PathKind::Renamed => Ok(()),
        };
        known_paths().remove(&self.path);
    }
}

/// Returns the registered paths. The lock is held while a file is created or renamed.
fn known_paths() -> MutexGuard<'static, SortedSet<PathBuf>> {
    static PATHS: Mutex<SortedSet<PathBuf>> = Mutex::new(SortedSet::new());
    PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many names are tried before creation fails.
const ATTEMPTS: u32 = 1 << 16;

/// Creates a file in `folder` whose name starts with `prefix`, open for reading and writing. Also returns its absolute
/// path. On Unix its mode is `mode` less the umask.
fn create_file(folder: &Path, prefix: &str, mode: u32) -> std::io::Result<(File, PathBuf)> {
    create_unique(folder, prefix, random_number, |path| file_options(mode).open(path))
}

/// Creates a folder in the system's temporary folder. The error names its path.
fn create_temporary_folder() -> std::io::Result<PathBuf> {
    let create_dir = |path: &Path| {
        std::fs::create_dir(path).map_err(|error| {
            let text = format!("{error} at path {path:?}");
            std::io::Error::new(error.kind(), text)
        })
    };
    Ok(create_unique(&std::env::temp_dir(), ".tmp", random_number, create_dir)?.1)
}

#[cfg(unix)]
fn anonymous_file_in(folder: &Path) -> std::io::Result<File> {
    let (file, path) = create_file(folder, ".tmp", 0o600)?;
    // If the file cannot be removed, it is as usable as one without a name.
    let _ = std::fs::remove_file(path);
    Ok(file)
}

#[cfg(windows)]
fn anonymous_file_in(folder: &Path) -> std::io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_ATTRIBUTE_TEMPORARY: u32 = 0x100;
    const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
    let mut options = file_options(0o600);
    options.share_mode(0).custom_flags(FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE);
    Ok(create_unique(folder, ".tmp", random_number, |path| options.open(path))?.0)
}

/// Returns the options that create a new file, never open an existing one.
fn file_options(mode: u32) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options
}

/// Calls `make` with new names until one is free. The path is absolute, so that a change of the current folder does not
/// invalidate it.
fn create_unique<T>(
    folder: &Path,
    prefix: &str,
    mut number: impl FnMut() -> u64,
    make: impl Fn(&Path) -> std::io::Result<T>,
) -> std::io::Result<(T, PathBuf)> {
    let folder = std::path::absolute(folder)?;
    for _ in 0..ATTEMPTS {
        let path = folder.join(unique_name(prefix, number()));
        match make(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return Ok((made?, path)),
        }
    }
    Err(std::io::Error::new(ErrorKind::AlreadyExists, "too many temporary files exist"))
}

/// Returns a name of the prefix and ten characters. It has no capitals, because some file systems ignore case.
fn unique_name(prefix: &str, number: u64) -> String {
    const CHARACTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let characters = (0..10).map(|index| char::from(CHARACTERS[(number >> (5 * index)) as usize & 31]));
    prefix.chars().chain(characters).collect()
}

/// Returns a number from the system's random source.
fn random_number() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn a_dropped_file_is_removed_and_a_put_file_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = || std::fs::read_dir(folder.path()).expect("a folder").count();
        let file = UnnamedFile::in_folder(folder.path()).expect("a file");
        let path = file.path.path.clone();
        assert!(path.exists() && known_paths().contains(&path));
        drop(file);
        assert!(files() == 0 && !known_paths().contains(&path));
        let file = UnnamedFile::in_folder(folder.path()).expect("a file");
        let path = file.path.path.clone();
        file.put(&folder.path().join("a")).expect("renamed");
        assert!(files() == 1 && folder.path().join("a").exists() && !known_paths().contains(&path));
        let file = UnnamedFile::in_folder(folder.path()).expect("a file");
        file.put(&folder.path().join("missing/a")).expect_err("no folder");
        assert_eq!(files(), 1);
    }

    #[test]
    fn a_dropped_folder_is_removed_with_its_contents() {
        let folder = temporary_folder().expect("a folder");
        let path = folder.0.path.clone();
        std::fs::create_dir(path.join("inner")).expect("created");
        std::fs::write(path.join("inner/a"), "text").expect("written");
        assert!(path.is_absolute() && known_paths().contains(&path));
        drop(folder);
        assert!(!path.exists() && !known_paths().contains(&path));
    }

    #[test]
    fn an_error_does_not_show_the_temporary_name() {
        let error = UnnamedFile::in_folder(Path::new("/missing/folder")).expect_err("no folder").to_string();
        assert!(!error.contains(".hitreg-"), "{error}");
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("ASCII")).collect()
    }

    #[test]
    fn a_name_in_use_is_skipped() {
        let folder = tempfile::tempdir().expect("a folder");
        let taken = folder.path().join(unique_name(".a-", 1));
        std::fs::write(&taken, "before").expect("written");
        let mut numbers = [1, 1, 2].into_iter();
        let make = |path: &Path| file_options(0o666).open(path);
        let number = || numbers.next().expect("three names suffice");
        let (mut file, path) = create_unique(folder.path(), ".a-", number, make).expect("a file");
        file.write_all(b"after").expect("written");
        assert_eq!(path, folder.path().join(unique_name(".a-", 2)));
        assert_eq!(std::fs::read_to_string(&taken).expect("readable"), "before");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "after");
        let error = create_unique(folder.path(), ".a-", || 1, make).expect_err("all names are in use");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn names_are_hidden_and_differ() {
        let folder = tempfile::tempdir().expect("a folder");
        for _ in 0..100 {
            create_file(folder.path(), ".hitreg-", 0o666).expect("a file");
        }
        let names = names(folder.path());
        assert_eq!(names.len(), 100);
        assert!(names.iter().all(|name| name.starts_with(".hitreg-") && name.len() == 18), "{names:?}");
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing");
        let error = create_file(&missing, ".a-", 0o666).expect_err("no folder");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = anonymous_file_in(&missing).expect_err("no folder");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn an_anonymous_file_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = anonymous_file_in(folder.path()).expect("a file");
        file.write_all(b"text").expect("written");
        file.rewind().expect("a position");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("readable");
        assert_eq!(text, "text");
        #[cfg(unix)]
        assert_eq!(names(folder.path()), [""; 0]);
        drop(file);
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    #[cfg(unix)]
    fn only_the_user_can_read_a_private_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let mode = |mode| {
            let (file, _) = create_file(folder.path(), ".a-", mode).expect("a file");
            file.metadata().expect("metadata").permissions().mode() & 0o777
        };
        assert_eq!(mode(0o600), 0o600);
        let ordinary = File::create(folder.path().join("ordinary")).expect("a file");
        assert_eq!(mode(0o666), ordinary.metadata().expect("metadata").permissions().mode() & 0o777);
        let anonymous = anonymous_file_in(folder.path()).expect("a file");
        assert_eq!(anonymous.metadata().expect("metadata").permissions().mode() & 0o777, 0o600);
    }
}

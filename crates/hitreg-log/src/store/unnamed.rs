//! Temporary files and folders. All of them are registered, so that a program that has to end can remove them.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file without its final name, removed on drop.
pub(super) struct UnnamedFile {
    file: tempfile::NamedTempFile,
    /// Dropped after the file.
    known: PathClaim,
}

impl UnnamedFile {
    /// Creates a file with the default permissions (mode 0666 less the umask on Unix).
    pub(super) fn in_folder(folder: &Path) -> std::io::Result<UnnamedFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".hitreg-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut paths = known_paths();
        // The error must not show the temporary name, which the user does not know.
        let file = builder.tempfile_in(folder).map_err(|error| std::io::Error::from(error.kind()))?;
        let known = PathClaim::among(&mut paths, file.path());
        Ok(UnnamedFile { file, known })
    }

    pub(super) fn as_file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives the file its final name and replaces any existing file.
    pub(super) fn put(self, path: &Path) -> std::io::Result<()> {
        let UnnamedFile { file, known } = self;
        let paths = known_paths();
        let put = file.persist(path).map(drop).map_err(|error| error.error);
        drop(paths);
        drop(known);
        put
    }
}

/// A temporary folder, removed with its contents on drop.
#[derive(Debug)]
pub(super) struct UnnamedFolder {
    folder: tempfile::TempDir,
    /// Dropped after the folder.
    _known: PathClaim,
}

impl UnnamedFolder {
    pub(super) fn new() -> std::io::Result<UnnamedFolder> {
        let mut paths = known_paths();
        let folder = tempfile::tempdir()?;
        let known = PathClaim::among(&mut paths, folder.path());
        Ok(UnnamedFolder { folder, _known: known })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes all temporary files and folders before the program ends. After that, none can be created or renamed.
pub fn remove_unnamed() {
    let paths = known_paths();
    for path in &*paths {
        // A missing file is fine, and a file that cannot be removed cannot be helped.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    std::mem::forget(paths);
}

/// The registration of one temporary path, until dropped.
#[derive(Debug)]
struct PathClaim(PathBuf);

impl PathClaim {
    fn among(paths: &mut BTreeSet<PathBuf>, path: &Path) -> PathClaim {
        paths.insert(path.to_owned());
        PathClaim(path.to_owned())
    }
}

impl Drop for PathClaim {
    fn drop(&mut self) {
        known_paths().remove(&self.0);
    }
}

/// Returns the registered paths. The lock is held while a file is created or renamed.
fn known_paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Files and folders that are there only while the program runs. All of them are known, so that a program that is told to end
//! leaves none of them behind.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file that has no final name yet. Dropped, it is gone.
pub(super) struct UnnamedFile {
    file: tempfile::NamedTempFile,
    /// Dropped after the file.
    known: Known,
}

impl UnnamedFile {
    /// A new one, readable by whoever may read other files there.
    pub(super) fn in_folder(folder: &Path) -> std::io::Result<UnnamedFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".hitreg-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut paths = known_paths();
        // Where it would have been is nothing that people know of.
        let file = builder.tempfile_in(folder).map_err(|error| std::io::Error::from(error.kind()))?;
        let known = Known::among(&mut paths, file.path());
        Ok(UnnamedFile { file, known })
    }

    pub(super) fn as_file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives it its name, in place of what has that name now.
    pub(super) fn put(self, path: &Path) -> std::io::Result<()> {
        let UnnamedFile { file, known } = self;
        let paths = known_paths();
        let put = file.persist(path).map(drop).map_err(|error| error.error);
        drop(paths);
        drop(known);
        put
    }
}

/// A folder for what is needed now and not later. Dropped, it is gone with all that is in it.
#[derive(Debug)]
pub(super) struct UnnamedFolder {
    folder: tempfile::TempDir,
    /// Dropped after the folder.
    _known: Known,
}

impl UnnamedFolder {
    pub(super) fn new() -> std::io::Result<UnnamedFolder> {
        let mut paths = known_paths();
        let folder = tempfile::tempdir()?;
        let known = Known::among(&mut paths, folder.path());
        Ok(UnnamedFolder { folder, _known: known })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes all of them, for a program that ends now: from here on none is made, and none gets its name.
pub fn remove_unnamed() {
    let paths = known_paths();
    for path in &*paths {
        // What is gone already is as it should be, and nothing can be done about what cannot be removed.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    std::mem::forget(paths);
}

/// That one of them is known, for as long as this lives.
#[derive(Debug)]
struct Known(PathBuf);

impl Known {
    fn among(paths: &mut BTreeSet<PathBuf>, path: &Path) -> Known {
        paths.insert(path.to_owned());
        Known(path.to_owned())
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        known_paths().remove(&self.0);
    }
}

/// Locked while one of them is made or gets its name.
fn known_paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

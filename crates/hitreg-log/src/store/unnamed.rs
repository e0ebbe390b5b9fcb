//! Temporary files and folders. All of them are registered, so that a program that has to end can remove them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::target::Target;
use super::unique;
use crate::sorted::SortedSet;

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
        let created = unique::create_file(folder, ".hitreg-", 0o666);
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
    pub(super) fn new() -> std::io::Result<TemporaryFolder> {
        let mut paths = known_paths();
        let path = unique::create_folder()?;
        Ok(TemporaryFolder(TemporaryPath::among(&mut paths, path, PathKind::Folder)))
    }

    /// Returns a target for a file in the folder.
    pub fn file(&self, name: &str) -> Target {
        Target::temporary(self.0.path.join(name))
    }
}

/// Creates a file without a name, which the system removes when it is closed.
pub(super) fn anonymous_file() -> std::io::Result<File> {
    // The file may have a name for a moment.
    let paths = known_paths();
    let file = unique::anonymous_file();
    drop(paths);
    file
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

#[cfg(test)]
mod tests {
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
        let folder = TemporaryFolder::new().expect("a folder");
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
}

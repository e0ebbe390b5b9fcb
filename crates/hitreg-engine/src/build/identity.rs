//! The identity of a build for the cache, from the files that are part of it.
#![expect(clippy::disallowed_methods, reason = "the environment says where a program's libraries are")]

use std::ffi::OsStr;
use std::io::Error;
use std::path::{Path, PathBuf};

use hitreg_log::store;
use hitreg_log::trace::Digest;

/// The size limit for the libraries beside a build. A build with more is never cached.
const MOST_BYTES: u64 = 256 << 20;
/// Environment variables that choose the libraries of a program.
const LOADERS: [&str; 5] = ["LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DYLD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES"];

/// The digest of the build in a file: of the executable, the shared libraries in its folder, and the library search
/// variables. `None` if these do not determine the build: it is a script, or has too many libraries.
pub(super) fn identity(path: &Path) -> Result<Option<Digest>, Error> {
    let bytes = std::fs::read(path)?;
    if bytes.starts_with(b"#!") {
        return Ok(None);
    }
    let mut all = Digest::of_bytes(&bytes).to_string();
    for loader in LOADERS {
        let value = std::env::var_os(loader).unwrap_or_default();
        all.push_str(&format!(" {}", Digest::of_bytes(value.as_encoded_bytes())));
    }
    let mut left = MOST_BYTES;
    for library in libraries_beside(path)? {
        let Some(less) = left.checked_sub(std::fs::metadata(&library)?.len()) else { return Ok(None) };
        left = less;
        let name = library.file_name().unwrap_or_default().as_encoded_bytes();
        let bytes = store::read_regular(&library).map_err(Error::other)?;
        all.push_str(&format!(" {} {}", Digest::of_bytes(name), Digest::of_bytes(&bytes)));
    }
    Ok(Some(Digest::of_bytes(all.as_bytes())))
}

/// The shared libraries in the executable's folder, in the order of their names.
fn libraries_beside(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut libraries = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if is_library(&entry.file_name()) && entry.path().is_file() {
            libraries.push(entry.path());
        }
    }
    libraries.sort_unstable();
    Ok(libraries)
}

/// Whether a file is a shared library: `libgame.so`, `libgame.so.3`, `game.dll`, `libgame.dylib`.
fn is_library(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    [".so", ".dll", ".dylib"].iter().any(|ending| name.ends_with(ending)) || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_beside_a_program_is_part_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let (game, library) = (folder.path().join("game"), folder.path().join("libgame.so.2"));
        std::fs::write(&game, "\x7fELF").unwrap();
        let alone = identity(&game).unwrap();
        assert!(alone.is_some());
        std::fs::write(folder.path().join("notes.txt"), "not loaded").unwrap();
        assert_eq!(identity(&game).unwrap(), alone);
        std::fs::write(&library, "one").unwrap();
        let one = identity(&game).unwrap();
        std::fs::write(&library, "two").unwrap();
        let two = identity(&game).unwrap();
        assert!(alone != one && one != two && two != alone, "{alone:?} {one:?} {two:?}");
        std::fs::write(&game, "#!/bin/sh").unwrap();
        assert_eq!(identity(&game).unwrap(), None);
    }
}

//! What the cache knows a build by: all that is sure to be part of it.
#![expect(clippy::disallowed_methods, reason = "where a program gets its libraries from is the environment's to say")]

use std::ffi::OsStr;
use std::io::Error;
use std::path::{Path, PathBuf};

use hitreg_log::store;
use hitreg_log::trace::Digest;

/// A build with more than so many bytes of libraries beside it is run each time.
const MOST_BYTES: u64 = 256 << 20;
/// What says which libraries a program gets.
const LOADERS: [&str; 5] = ["LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DYLD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES"];

/// What a build is, as far as its files say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// The bytes of its file, those of the shared libraries in its folder, and where else libraries are looked for.
    Content(Digest),
    /// It is more than its files: a script, a program with too many libraries. Nothing that it wrote is ever used again.
    Open,
}

impl Identity {
    /// Of the build in a file.
    pub(super) fn of(path: &Path) -> Result<Identity, Error> {
        let bytes = std::fs::read(path)?;
        if bytes.starts_with(b"#!") {
            return Ok(Identity::Open);
        }
        let mut all = Digest::of_bytes(&bytes).to_string();
        for loader in LOADERS {
            let value = std::env::var_os(loader).unwrap_or_default();
            all.push_str(&format!(" {}", Digest::of_bytes(value.as_encoded_bytes())));
        }
        let mut left = MOST_BYTES;
        for library in libraries_beside(path)? {
            let Some(less) = left.checked_sub(std::fs::metadata(&library)?.len()) else { return Ok(Identity::Open) };
            left = less;
            let name = library.file_name().unwrap_or_default().as_encoded_bytes();
            let bytes = store::read_regular(&library).map_err(Error::other)?;
            all.push_str(&format!(" {} {}", Digest::of_bytes(name), Digest::of_bytes(&bytes)));
        }
        Ok(Identity::Content(Digest::of_bytes(all.as_bytes())))
    }
}

/// In the order of their names.
fn libraries_beside(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut libraries = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if is_library(&entry.file_name()) && entry.path().is_file() {
            libraries.push(entry.path());
        }
    }
    libraries.sort();
    Ok(libraries)
}

/// `libgame.so`, `libgame.so.3`, `game.dll`, `libgame.dylib`.
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
        let alone = Identity::of(&game).unwrap();
        assert!(matches!(alone, Identity::Content(_)));
        std::fs::write(folder.path().join("notes.txt"), "not loaded").unwrap();
        assert_eq!(Identity::of(&game).unwrap(), alone);
        std::fs::write(&library, "one").unwrap();
        let one = Identity::of(&game).unwrap();
        std::fs::write(&library, "two").unwrap();
        let two = Identity::of(&game).unwrap();
        assert!(alone != one && one != two && two != alone, "{alone:?} {one:?} {two:?}");
        std::fs::write(&game, "#!/bin/sh").unwrap();
        assert_eq!(Identity::of(&game).unwrap(), Identity::Open);
    }
}

//! A cache of traces, by content: the build's identity and file name, the log's bytes, and the options.
#![expect(clippy::disallowed_methods, reason = "the environment says where caches are")]

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hitreg_log::store::{self, OwnFolder, Target};
use hitreg_log::trace::Digest;

/// The size limit; the oldest traces are removed first.
const MOST_BYTES: u64 = 1 << 30;

/// A folder of cached traces.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: OwnFolder,
}

/// The error for a cache folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: traces cannot be cached here ({source}): name another folder with --cache, or use --no-cache", folder.display())]
pub struct CacheError {
    folder: PathBuf,
    source: std::io::Error,
}

impl Cache {
    /// Opens the cache in a folder, and creates the folder if needed. Removes the oldest traces if the cache is larger
    /// than 1 GiB.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn open(folder: &Path) -> Result<Cache, CacheError> {
        let traces = OwnFolder::open(&folder.join("traces"));
        let cache = Cache { folder: traces.map_err(|source| CacheError { folder: folder.to_owned(), source })? };
        cache.forget_oldest(MOST_BYTES);
        Ok(cache)
    }

    /// The default folder: `$XDG_CACHE_HOME/hitreg`, `~/.cache/hitreg`, or a folder in the system's temporary folder.
    /// A home folder that does not exist is not created.
    pub fn usual_folder() -> PathBuf {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || absolute("HOME").filter(|home| home.is_dir()).map(|home| home.join(".cache"));
        absolute("XDG_CACHE_HOME").or_else(home).unwrap_or_else(std::env::temp_dir).join("hitreg")
    }

    /// Stores a trace. A failure is ignored: the next run only has to make the trace again.
    pub(super) fn put(&self, key: Digest, trace: &Path) {
        if let Ok(mut from) = store::open(trace) {
            let _ = store::save(&self.file(key), |out| Ok(std::io::copy(&mut from, out).map(drop)?));
        }
    }

    pub(super) fn file(&self, key: Digest) -> Target {
        self.folder.file(&format!("{key}.hittrace"))
    }

    fn forget_oldest(&self, most_bytes: u64) {
        let Ok(entries) = std::fs::read_dir(self.folder.path()) else { return };
        let kept = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            let meta = entry.metadata().ok()?;
            Some((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path(), meta.len()))
        });
        let mut kept: Vec<_> = kept.collect();
        kept.sort_unstable();
        let mut bytes: u64 = kept.iter().map(|(_, _, length)| length).sum();
        for (_, path, length) in kept {
            if bytes <= most_bytes {
                break;
            }
            // Another process may have removed it already.
            let _ = std::fs::remove_file(path);
            bytes -= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_removed_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        for (n, age_s) in [(1u128, 30), (2, 20), (3, 10)] {
            let file = cache.file(Digest(n));
            let path = file.path();
            std::fs::write(path, [0u8; 100]).unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age_s)).unwrap();
        }
        cache.forget_oldest(250);
        let there = [1u128, 2, 3].map(|n| cache.file(Digest(n)).path().exists());
        assert_eq!(there, [false, true, true]);
    }
}

//! Input files: logs and traces.

use std::io::Read;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3Default;

use super::{Engine, EngineError};
use hitreg_log::log;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::Session;
use hitreg_log::store;
use hitreg_log::trace::Digest;

/// A log in memory.
#[derive(Debug)]
pub struct LogFile {
    /// The session.
    pub session: Session,
    /// The digest of the file, for trace headers.
    pub digest: Digest,
}

impl Engine<'_> {
    /// Reads a complete log.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a complete log.
    pub fn read_log(&self, path: &Path) -> Result<LogFile, EngineError> {
        let log = LogFile::read(self.games.memory(), path)?;
        (self.read)(path, &log.session.header);
        Ok(log)
    }
}

impl LogFile {
    /// Reads a complete log.
    pub(super) fn read(memory: MemoryLimit, path: &Path) -> Result<LogFile, EngineError> {
        let mut read = HashingReader::new(store::open(path)?);
        // The log reader reads to the end of the file, so the digest covers all of it.
        let session =
            log::read_session_within(memory, &mut read).map_err(|source| EngineError::content(path, source))?;
        Ok(LogFile { session, digest: read.digest() })
    }
}

/// A reader that hashes everything it reads.
pub(crate) struct HashingReader<R> {
    from: R,
    hasher: Xxh3Default,
}

impl<R> HashingReader<R> {
    pub(crate) fn new(from: R) -> HashingReader<R> {
        HashingReader { from, hasher: Xxh3Default::new() }
    }

    /// The digest of all bytes read so far.
    pub(crate) fn digest(&self) -> Digest {
        Digest(self.hasher.digest128())
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}

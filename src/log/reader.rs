//! Reads logs: chunk by chunk in bounded memory, or a whole session at once.

use std::io::Read;

use super::chunk;
use super::chunks::Chunks;
use super::error::{LogError, Torn};
use super::header;
use super::limits::{replay_budget, session_budget};
use super::schema::Schema;
use crate::record::{Allowance, Header, Session, Stretch};

/// Reads a log chunk by chunk, however long it is.
///
/// A chunk that it gives out has passed zstd's checksum. The digest over the file's own bytes comes with the chunk
/// after it, so that only a log read to its end without an error is known to be exactly what was written.
pub struct LogReader<R> {
    chunks: Chunks<R>,
    header: Header,
    schema: Schema,
}

impl<R: Read> LogReader<R> {
    /// Opens a log and reads its header. Reads are small: give it a buffered reader.
    ///
    /// # Errors
    /// When it is not a log, or not one that this build reads, or its header is damaged.
    pub fn new(from: R) -> Result<LogReader<R>, LogError> {
        let open =
            |content: &[u8]| header::decode_log(content).map(|(header, schema, sealed)| ((header, schema), sealed));
        let (chunks, (header, schema)) = Chunks::open(from, open)?;
        Ok(LogReader { chunks, header, schema })
    }

    /// The log's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next stretch of the session; `None` at the end of a log that is whole and sound.
    ///
    /// # Errors
    /// When the log is torn or damaged here. What was given out before is good.
    pub fn next_chunk(&mut self) -> Result<Option<Stretch>, LogError> {
        let Some(content) = self.chunks.next()? else { return Ok(None) };
        chunk::decode(&content.bytes, &self.header, &self.schema).map(Some).map_err(|what| content.corrupt(what))
    }

    /// Reads on to the end, or to where the log is cut off.
    fn read_all(mut self) -> Result<(Session, Option<Torn>), LogError> {
        let mut session = Session::new(self.header.clone());
        let (mut used, each) = (0usize, self.schema.empty_chunk_bytes(&self.header));
        let torn = loop {
            match self.next_chunk() {
                Ok(Some(chunk)) => {
                    used = used.saturating_add(each + chunk.bytes());
                    let limit_bytes = session_budget(self.chunks.offset());
                    if used > limit_bytes {
                        return Err(LogError::TooLarge { limit_bytes });
                    }
                    session.append(chunk);
                }
                Ok(None) => break None,
                Err(LogError::Torn(torn)) => break Some(torn),
                Err(error) => return Err(error),
            }
        };
        session.put_in_order();
        session.allowance = Allowance { bytes: replay_budget(self.chunks.offset(), used) };
        Ok((session, torn))
    }
}

/// Reads a log's header, and nothing of what follows it.
///
/// # Errors
/// As [`LogReader::new`].
pub fn read_header(from: impl Read) -> Result<Header, LogError> {
    LogReader::new(from).map(|reader| reader.header)
}

/// Reads a whole session. Nothing is passed over: what it gives back is what was written.
///
/// # Errors
/// When the bytes are no log that this build reads, when a bit of them has changed anywhere, when they stop early, or
/// when they would take more memory than a file of its size may.
pub fn read_session(from: impl Read) -> Result<Session, LogError> {
    match read_prefix(from)? {
        (session, None) => Ok(session),
        (_, Some(torn)) => Err(LogError::Torn(torn)),
    }
}

/// Reads a session that may be cut off: everything up to the last whole chunk, and where the cut is if there is one.
///
/// # Errors
/// As [`read_session`], but for a cut after the header.
pub fn read_prefix(from: impl Read) -> Result<(Session, Option<Torn>), LogError> {
    LogReader::new(from)?.read_all()
}

#[cfg(test)]
mod tests;

//! Reads logs: chunk by chunk in bounded memory, or a whole session at once.

use std::io::Read;

use rayon::prelude::*;

use super::chunk;
use super::chunk::Kinds;
use super::chunks::Chunks;
use super::chunks::Content;
use super::error::{LogError, Torn};
use super::header;
use super::keyframes::keyframe_in;
use super::limits::MAX_CHUNK_MEMORY;
use super::schema::Schema;
use super::version::KEYFRAMES_SINCE;
use super::version::Version;
use crate::memory::MemoryLimit;
use crate::record::Keyframe;
use crate::record::{Header, Outline, Session, Stretch};
use crate::units::Micros;

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

    /// What its first chunk said.
    pub(super) fn opened(self) -> (Header, Schema, bool) {
        let LogReader { chunks, header, schema } = self;
        (header, schema, chunks.is_sealed())
    }

    /// A log that goes on with these chunks.
    pub(super) fn within(chunks: Chunks<R>, header: Header, schema: Schema) -> LogReader<R> {
        LogReader { chunks, header, schema }
    }

    /// The log's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The version of its format.
    pub fn format(&self) -> Version {
        self.schema.version()
    }

    /// The next stretch of the session; `None` at the end of a log that is whole and sound.
    ///
    /// # Errors
    /// When the log is torn or damaged here. What was given out before is good.
    pub fn next_chunk(&mut self) -> Result<Option<Stretch>, LogError> {
        let Some(content) = self.chunks.next()? else { return Ok(None) };
        chunk::decode(&content.bytes, &self.header, &self.schema).map(Some).map_err(|what| content.corrupt(what))
    }

    /// The same, of which only states, frames, snapshots and their arrivals at the clients are read, which is sooner done.
    ///
    /// # Errors
    /// As [`LogReader::next_chunk`].
    pub fn next_chunk_of_clients(&mut self) -> Result<Option<Stretch>, LogError> {
        let Some(content) = self.chunks.next()? else { return Ok(None) };
        let of = (&self.header, Kinds::OfClients);
        let decoded = chunk::decode_within(MAX_CHUNK_MEMORY, &content.bytes, of, &self.schema);
        decoded.map(Some).map_err(|what| content.corrupt(what))
    }

    /// The next stretch, and how many bytes of memory it takes in a session.
    fn next_sized(&mut self) -> Result<Option<(Stretch, usize)>, LogError> {
        let Some(chunk) = self.next_chunk()? else { return Ok(None) };
        let bytes = self.schema.empty_chunk_bytes(&self.header) + chunk.bytes();
        Ok(Some((chunk, bytes)))
    }

    /// The next stretch of what is held as a whole, of which `used` counts the bytes. Where they are more than the memory
    /// limit, the log is read to its end, so that the error says how much memory it needs.
    ///
    /// # Errors
    /// As [`LogReader::next_chunk`], and when the limit does not suffice.
    pub fn next_held(&mut self, limit: MemoryLimit, used: &mut usize) -> Result<Option<Stretch>, LogError> {
        while let Some((chunk, bytes)) = self.next_sized()? {
            *used = used.saturating_add(bytes);
            if limit.check(*used).is_ok() {
                return Ok(Some(chunk));
            }
        }
        limit.check(*used)?;
        Ok(None)
    }

    /// The next few stretches, decoded at the same time; none at the end of a log that is whole and sound. `keyframe` gets each
    /// keyframe that stands among them, and its number is that of the stretch that stands for it, which is empty.
    ///
    /// # Errors
    /// When the log is torn or damaged in them. What was given out before is good.
    pub fn next_chunks(&mut self, keyframe: &mut dyn FnMut(Keyframe)) -> Result<Vec<Stretch>, LogError> {
        const AT_ONCE: usize = 8;
        let has_keyframes = self.schema.version() >= KEYFRAMES_SINCE;
        let mut contents = Vec::with_capacity(AT_ONCE);
        while contents.len() < AT_ONCE
            && let Some(content) = self.chunks.next()?
        {
            if has_keyframes {
                // The header is chunk 0.
                keyframe_in(&content.bytes, content.index as usize - 1).into_iter().for_each(&mut *keyframe);
            }
            contents.push(content);
        }
        let (header, schema) = (&self.header, &self.schema);
        let decode = |content: &Content| {
            chunk::decode_within(MAX_CHUNK_MEMORY / AT_ONCE, &content.bytes, (header, Kinds::All), schema)
        };
        let decoded: Vec<_> = contents.par_iter().map(decode).collect();
        // One that takes more than its share is decoded alone.
        let alone =
            |content: &Content| chunk::decode(&content.bytes, header, schema).map_err(|what| content.corrupt(what));
        decoded.into_iter().zip(&contents).map(|(made, content)| made.or_else(|_| alone(content))).collect()
    }

    /// Reads on to the end, or to where the log is cut off.
    fn read_all(mut self, limit: MemoryLimit) -> Result<(Session, Option<Torn>), LogError> {
        let mut session = Session::new(self.header.clone());
        let mut used = 0;
        let torn = loop {
            match self.next_held(limit, &mut used) {
                Ok(Some(chunk)) => session.append(chunk),
                Ok(None) => break None,
                Err(LogError::Torn(torn)) => break Some(torn),
                Err(error) => return Err(error),
            }
        };
        limit.check(used)?;
        session.put_in_order();
        Ok((session, torn))
    }
}

impl<R: Read + Send> LogReader<R> {
    /// Gives out what each chunk says of connections, which is soon done, up to the end or to where the log is cut off. The file is
    /// read and unpacked on another thread meanwhile.
    ///
    /// # Errors
    /// When the log is damaged, or its outlines need more memory than the limit.
    pub fn outlines(self, to: &mut dyn FnMut(Outline)) -> Result<Option<Torn>, LogError> {
        const AHEAD: usize = 16;
        let LogReader { mut chunks, header, schema } = self;
        let each = schema.empty_chunk_bytes(&header);
        let (sender, waiting) = std::sync::mpsc::sync_channel(AHEAD);
        let read = move || -> Result<(), LogError> {
            while let Some(content) = chunks.next()? {
                // Whoever does not wait for it any more has said why.
                if sender.send(content).is_err() {
                    break;
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("log reader".into()).spawn_scoped(scope, read)?;
            let mut used = 0usize;
            for content in waiting {
                let outline = chunk::outline(&content.bytes, &header, &schema).map_err(|what| content.corrupt(what))?;
                used = used.saturating_add(each + size_of::<[Micros; 2]>() * outline.len());
                MemoryLimit::current().check(used)?;
                to(outline);
            }
            match thread.join() {
                Ok(Ok(())) => Ok(None),
                Ok(Err(LogError::Torn(torn))) => Ok(Some(torn)),
                Ok(Err(error)) => Err(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
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
/// when they need more memory than the limit ([`MemoryLimit`]).
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
    LogReader::new(from)?.read_all(MemoryLimit::current())
}

#[cfg(test)]
mod tests;

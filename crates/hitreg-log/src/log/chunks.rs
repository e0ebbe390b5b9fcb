//! Reads a file chunk by chunk, and checks numbers, digests and sizes against each other.

use std::io::Read;

use super::chunk::ChunkPosition;
use super::container::{
    Chain, FileFrame, FileFrames, FrameError, FrameKind, SEEK_FOOTER_MAGIC, SeekTable, Unpacker, ZSTD_MAGIC,
};
use super::error::{LogError, Truncation};
use super::lookalike::{START_BYTES, looks_like};

/// The content of one chunk.
#[derive(Debug)]
pub(super) struct ChunkContent {
    pub(super) offset: u64,
    pub(super) index: u32,
    pub(super) bytes: Vec<u8>,
}

impl ChunkContent {
    /// Returns the error for content that is wrong although its checksum matches.
    pub(super) fn corrupt(&self, what: impl Into<String>) -> LogError {
        LogError::corrupt_chunk(self.offset, self.index, what)
    }
}

/// The chunks of a file, in order.
pub(super) struct Chunks<R> {
    frames: FileFrames<R>,
    unpacker: Unpacker,
    pub(super) sealed: bool,
    /// The places and sizes of the chunks read so far.
    pub(super) table: SeekTable,
    chain: Chain,
    /// The offset of the last chunk read.
    before_offset: u64,
    /// The last chunk, once it is read.
    pub(super) end: Option<ChunkContent>,
}

impl<R: Read> Chunks<R> {
    /// Opens a file. `decode` reads its first chunk, and returns the header and whether the file is sealed.
    pub(super) fn open<H>(
        from: R,
        decode: impl FnOnce(&[u8]) -> Result<(H, bool), LogError>,
    ) -> Result<(Self, H), LogError> {
        let mut frames = FileFrames::new(from, 0);
        let frame = first_frame(&mut frames)?;
        let mut unpacker = Unpacker::default();
        let content = unpacker.unpack(&frame).map_err(|what| LogError::corrupt(0, "the header", what))?;
        let (header, sealed) = decode(&content)?;
        let (table, chain) = (SeekTable::default(), Chain::default());
        let mut chunks = Chunks { frames, unpacker, sealed, table, chain, before_offset: 0, end: None };
        frame.add_to(&mut chunks.table, &mut chunks.chain);
        Ok((chunks, header))
    }

    /// Continues a file after a chunk. `table` and `chain` cover all chunks before it.
    pub(super) fn after(chunk: &FileFrame, mut table: SeekTable, mut chain: Chain, from: R, sealed: bool) -> Chunks<R> {
        chunk.add_to(&mut table, &mut chain);
        let (frames, unpacker) = (FileFrames::new(from, table.end()), Unpacker::default());
        Chunks { frames, unpacker, sealed, table, chain, before_offset: chunk.offset, end: None }
    }

    /// Returns the offset of the next chunk.
    pub(super) fn offset(&self) -> u64 {
        self.frames.offset
    }

    /// Returns the next chunk; `None` after the last, once the end of the file is verified.
    pub(super) fn next(&mut self) -> Result<Option<ChunkContent>, LogError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let (offset, index) = (self.frames.offset, self.table.len());
        let frame = self.next_frame(index)?;
        let bytes = self.unpacker.unpack(&frame).map_err(|what| LogError::corrupt_chunk(offset, index, what))?;
        let content = ChunkContent { offset, index, bytes };
        let position = read_position(&content.bytes).map_err(|what| content.corrupt(what))?;
        self.check_position(position, &content)?;
        frame.add_to(&mut self.table, &mut self.chain);
        self.before_offset = offset;
        if position.end {
            self.end = Some(content);
            self.check_tail()?;
            return Ok(None);
        }
        Ok(Some(content))
    }

    fn next_frame(&mut self, index: u32) -> Result<FileFrame, LogError> {
        let at_offset = self.frames.offset;
        match self.frames.next() {
            Ok(Some(frame)) if frame.kind == FrameKind::Tail => {
                Err(LogError::corrupt_chunk(at_offset, index, "the end of the file comes before its last chunk"))
            }
            Ok(Some(frame)) => Ok(frame),
            Ok(None) => Err(LogError::Torn(Truncation { at_offset, lost_bytes: 0 })),
            Err(FrameError::Cut { last, .. }) if last == SEEK_FOOTER_MAGIC => {
                Err(LogError::corrupt_chunk(at_offset, index, "its zstd blocks do not end where it ends"))
            }
            Err(FrameError::Cut { bytes, .. }) => Err(LogError::Torn(Truncation { at_offset, lost_bytes: bytes })),
            Err(FrameError::Bad { offset, what, .. }) => Err(LogError::corrupt_chunk(offset, index, what)),
            Err(FrameError::Io(error)) => Err(error.into()),
        }
    }

    fn check_position(&self, position: ChunkPosition, content: &ChunkContent) -> Result<(), LogError> {
        if position.index != content.index {
            return Err(content.corrupt(format!("chunk {} is in its place", position.index)));
        }
        match position.before {
            Some(before) if self.sealed && before != self.chain.0 => {
                let what = "its bytes are not those that were written, although it unpacks";
                Err(LogError::corrupt_chunk(self.before_offset, content.index - 1, what))
            }
            None if self.sealed => Err(content.corrupt("it lacks the checksum of the chunk before it")),
            _ => Ok(()),
        }
    }

    /// Checks that exactly the seal and the seek table follow the last chunk. A foreign writer may leave both out.
    fn check_tail(&mut self) -> Result<(), LogError> {
        let expected = self.table.tail(self.chain);
        let start = self.frames.offset;
        let found = self.frames.rest(expected.len() + 1)?;
        if !self.sealed && found.is_empty() {
            return Ok(());
        }
        if expected.len() > found.len() && expected.starts_with(&found) {
            return Err(LogError::Torn(Truncation { at_offset: start, lost_bytes: found.len() as u64 }));
        }
        let Some(difference) = first_difference(&expected, &found) else { return Ok(()) };
        Err(match difference {
            16..24 => LogError::corrupt(self.before_offset, "the last chunk or the seal after it", "they do not agree"),
            _ if difference == expected.len() => {
                LogError::corrupt(start + difference as u64, "the end", "something follows the seek table")
            }
            _ => LogError::corrupt(start + difference as u64, "the seek table", "it does not agree with the chunks"),
        })
    }
}

/// Returns the position of the first difference between two byte strings; the length of the shorter if one begins the
/// other.
fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    let common = a.iter().zip(b).position(|(a, b)| a != b);
    common.or_else(|| (a.len() != b.len()).then(|| a.len().min(b.len())))
}

/// Reads the entries that begin every chunk.
pub(super) fn read_position(content: &[u8]) -> Result<ChunkPosition, String> {
    crate::serial::from_msgpack(content).map_err(|error| format!("it is not a chunk's map ({error})"))
}

/// The description of a file without a byte.
const EMPTY: &str =
    "it is empty. Check the command that wrote it, or record a session with: hitreg record synth -o session.hitlog";

/// What to do about a file of an unknown kind.
const EXPECTED_FILES: &str = ". Give a log (*.hitlog) or a trace (*.hittrace)";

/// Returns the first frame, or an error that describes the file.
pub(super) fn first_frame<R: Read>(frames: &mut FileFrames<R>) -> Result<FileFrame, LogError> {
    let strange = |what: String| LogError::NotHitreg { what };
    match frames.next() {
        Ok(Some(frame)) if frame.kind == FrameKind::Tail => {
            Err(strange(format!("it begins with a seek table{EXPECTED_FILES}")))
        }
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err(strange(EMPTY.into())),
        Err(FrameError::Cut { start, bytes, last }) => {
            let magic = ZSTD_MAGIC.to_le_bytes();
            match &start[..] {
                _ if last == SEEK_FOOTER_MAGIC => {
                    Err(LogError::corrupt(0, "the header", "its zstd blocks do not end where it ends"))
                }
                start if start.starts_with(&magic) || magic.starts_with(start) => Err(LogError::HeaderTorn { bytes }),
                _ => Err(strange(format!("it has only {bytes} bytes{EXPECTED_FILES}"))),
            }
        }
        Err(FrameError::Bad { start, what, .. }) if start == ZSTD_MAGIC.to_le_bytes() => {
            Err(LogError::corrupt(0, "the header", what))
        }
        Err(FrameError::Bad { mut start, what, .. }) => {
            start.extend(frames.rest(START_BYTES - start.len())?);
            Err(strange(
                looks_like(&start)
                    .map_or_else(|| format!("at its start, {what}{EXPECTED_FILES}"), |look| look.to_string()),
            ))
        }
        Err(FrameError::Io(error)) => Err(error.into()),
    }
}

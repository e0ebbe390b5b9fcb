//! Reads a file chunk by chunk, and checks numbers, digests and sizes against each other. Of other files it says what
//! they seem to be.

use std::io::Read;

use super::chunk::ChunkPosition;
use super::container::{
    Chain, FileFrame, FileFrames, FrameError, FrameKind, SEEK_FOOTER_MAGIC, SeekTable, Unpacker, ZSTD_MAGIC,
};
use super::error::{LogError, Truncation};

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

// Recognizes files that are neither logs nor traces, so that an error can say what to do with them.

/// The number of bytes at a file's start that recognition needs.
pub(crate) const START_BYTES: usize = 64;

/// What a file that is neither a log nor a trace seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookalike {
    /// The kind of the file, such as `a GoldSrc demo`.
    pub kind: &'static str,
    /// What to do with it: the end of a sentence that begins with the kind.
    pub advice: &'static str,
}

impl Lookalike {
    /// A QuakeWorld demo.
    pub const QUAKEWORLD_DEMO: Lookalike =
        Lookalike { kind: "a QuakeWorld demo", advice: ". To import it, run: hitreg import qwd FILE --map MAP -o LOG" };
    /// A capture of a Quake III engine's datagrams.
    pub const CAPTURE: Lookalike = Lookalike {
        kind: "a capture of datagrams",
        advice: ". To import it, run: hitreg import quake3-udp FILE -o LOG",
    };
    /// A file packed with zstd.
    pub const ZSTD: Lookalike = Lookalike {
        kind: "a zstd-compressed file",
        advice: ": `hitreg import quake3-udp` reads compressed captures, other files must be unpacked",
    };
}

impl std::fmt::Display for Lookalike {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it looks like {}{}", self.kind, self.advice)
    }
}

/// Describes what a file with these first bytes seems to be; `None` if unrecognized.
pub fn looks_like(start: &[u8]) -> Option<Lookalike> {
    const PACKED: &str = ": `hitreg import qwd` reads compressed demos and maps, other files must be unpacked";
    const NOT_READ: &str = ", which hitreg does not read (docs/adapters.md shows how to record such a game)";
    const TEXT: &str = ". `hitreg import` converts demos to logs";
    let start = &start[..start.len().min(START_BYTES)];
    let begins = |magic: &[u8]| start.starts_with(magic);
    let (kind, advice) = match () {
        () if begins(b"\xFD7zXZ\0") => ("an xz-compressed file", PACKED),
        () if begins(b"\x1F\x8B") => ("a gzip-compressed file", PACKED),
        () if begins(b"\x28\xB5\x2F\xFD") => return Some(Lookalike::ZSTD),
        () if begins(b"PK\x03\x04") => ("a zip archive (a .pk3 is one)", ": unpack it first"),
        () if begins(b"HL2DEMO\0") => ("a Source demo", NOT_READ),
        () if begins(b"HLDEMO\0") => ("a GoldSrc demo", NOT_READ),
        () if begins(b"IBSP") => ("a Quake II or Quake III map", ": give it to `hitreg import quake3-udp` with --map"),
        () if begins(&[29, 0, 0, 0]) => ("a Quake map", ": give it to `hitreg import qwd` with --map"),
        () if begins(b"hitreg golden") => ("a golden", ": run `hitreg verify` on the log beside it"),
        () if begins(b"\x89PNG") => ("a picture", ": give a log or a trace"),
        () if begins(b"\xD4\xC3\xB2\xA1") || begins(b"\x0A\x0D\x0D\x0A") => {
            ("captured network packets", "; docs/openarena.md describes the captures that hitreg imports")
        }
        () if begins(b"UDPTRC1\n") => return Some(Lookalike::CAPTURE),
        () if is_quakeworld_demo(start) => return Some(Lookalike::QUAKEWORLD_DEMO),
        () if is_text(start) && start.trim_ascii_start().starts_with(b"{") => ("JSON", TEXT),
        () if is_text(start) => ("text", TEXT),
        () => return None,
    };
    Some(Lookalike { kind, advice })
}

/// Whether the bytes begin a QuakeWorld demo: a float of seconds, the kind of message, its length and the first
/// packet. That packet begins with `svc_serverdata` (11).
fn is_quakeworld_demo(start: &[u8]) -> bool {
    const READ: u8 = 1;
    const SERVER_DATA: u8 = 11;
    let length = start.get(5..9).and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
    start.get(4) == Some(&READ) && length.is_some_and(|bytes| bytes <= 8192) && start.get(17) == Some(&SERVER_DATA)
}

fn is_text(start: &[u8]) -> bool {
    let cut = start.len() == START_BYTES;
    let text = match std::str::from_utf8(start) {
        Ok(text) => Some(text),
        // The start may end inside a character.
        Err(error) if cut && error.error_len().is_none() => std::str::from_utf8(&start[..error.valid_up_to()]).ok(),
        Err(_) => None,
    };
    text.is_some_and(|text| !text.is_empty() && !text.chars().any(|c| c.is_control() && !c.is_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kinds_of_files_are_recognized() {
        let demo =
            [&0.5f32.to_le_bytes()[..], &[1], &300u32.to_le_bytes(), &[1, 0, 0, 0, 1, 0, 0, 0], &[11, 28]].concat();
        let known = [
            (&demo[..], "hitreg import qwd FILE"),
            (b"\xFD7zXZ\0\0", "xz"),
            (b"HLDEMO\0\x05", "GoldSrc demo"),
            (b"\x28\xB5\x2F\xFD\x04", "zstd"),
            (b"UDPTRC1\n\0", "quake3-udp"),
            (b"HL2DEMO\0\x04", "Source demo"),
            (b"IBSP\x2E", "Quake III map"),
            (&[29, 0, 0, 0, 124], "--map"),
            (b"hitreg golden 1\n", "golden"),
            (b"  {\"tick\": 1}", "JSON"),
            ("# Prüfung\n".as_bytes(), "text"),
        ];
        for (start, words) in known {
            assert!(looks_like(start).is_some_and(|text| text.to_string().contains(words)), "{start:?}");
        }
        let long = "é".repeat(40);
        assert_eq!(looks_like(&long.as_bytes()[1..][..1]), None, "half a character");
        let cut_in_one = looks_like(&format!("x{long}").as_bytes()[..START_BYTES]);
        assert!(cut_in_one.is_some_and(|text| text.kind == "text"), "{cut_in_one:?}");
        assert_eq!(looks_like(&[0, 1, 2, 3]), None);
        assert_eq!(looks_like(&[]), None);
    }
}

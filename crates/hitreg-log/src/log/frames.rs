//! Finds the frames of a file without unpacking them, in bounded memory (RFC 8878, sections 3.1.1 and 3.1.2).
//!
//! It is stricter than zstd: a chunk must state its size and have a checksum, and must not set bits that zstd ignores.

use std::io::Read;

use super::container::{Chain, SEAL_MAGIC, SEEK_TABLE_MAGIC, SeekTable, ZSTD_MAGIC};
use super::limits::MAX_CHUNK_BYTES;

/// The largest block that zstd makes.
const MAX_BLOCK: usize = 128 << 10;
/// The most bytes of a skippable frame: enough for the seek table of a file of 100 days.
const MAX_SKIPPABLE: usize = 64 << 20;

/// One frame in the file.
#[derive(Debug)]
pub(crate) struct FileFrame {
    /// Its offset in the file.
    pub(crate) offset: u64,
    /// All its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Its kind.
    pub(crate) kind: FrameKind,
}

impl FileFrame {
    /// Adds the frame of a chunk to the sizes and the digest of its file.
    pub(super) fn add_to(&self, table: &mut SeekTable, chain: &mut Chain) {
        if let FrameKind::Chunk { content_bytes } = self.kind {
            table.add(self.bytes.len(), content_bytes);
            chain.add(&self.bytes);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A chunk, and its stated content size in bytes.
    Chunk { content_bytes: usize },
    /// The end of a sealed file, without records.
    Tail,
}

/// Why there is no next frame.
#[derive(Debug)]
pub(crate) enum FrameError {
    Io(std::io::Error),
    /// The file ends inside the frame.
    Cut {
        /// Up to the first four bytes.
        start: Vec<u8>,
        /// The number of bytes present.
        bytes: u64,
        /// The last four bytes, little endian. A complete file ends with the seek table's magic number.
        last: u32,
    },
    /// The bytes are not a valid frame.
    Bad {
        /// Their offset in the file.
        offset: u64,
        /// Up to the first four bytes.
        start: Vec<u8>,
        /// The problem.
        what: String,
    },
}

/// Reads a file frame by frame.
pub(crate) struct FileFrames<R> {
    from: R,
    /// The offset of the next frame.
    pub(crate) offset: u64,
}

impl<R: Read> FileFrames<R> {
    /// Starts `offset` bytes from the start of the file; `from` must already be there.
    pub(crate) fn new(from: R, offset: u64) -> FileFrames<R> {
        FileFrames { from, offset }
    }

    /// Reads the following bytes, at most `most`.
    pub(crate) fn rest(&mut self, most: usize) -> std::io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.from.by_ref().take(most as u64).read_to_end(&mut rest)?;
        self.offset += rest.len() as u64;
        Ok(rest)
    }

    /// Returns the next frame; `None` at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<FileFrame>, FrameError> {
        let mut frame = PartialFrame { from: &mut self.from, bytes: Vec::new(), end: 0 };
        let outcome = frame.walk();
        let (bytes, offset) = (frame.bytes, self.offset);
        self.offset += bytes.len() as u64;
        match outcome {
            Ok(kind) => Ok(Some(FileFrame { offset, bytes, kind })),
            Err(FrameStop::Cut) if bytes.is_empty() => Ok(None),
            Err(FrameStop::Cut) => Err(cut(&bytes)),
            Err(FrameStop::Bad(what)) => Err(FrameError::Bad { offset, start: first_four(&bytes), what }),
            Err(FrameStop::Io(error)) => Err(FrameError::Io(error)),
        }
    }
}

/// Returns the frame that takes all these bytes, which begin at `offset` in the file; `None` if there is no such frame.
pub(crate) fn frame_of(bytes: Vec<u8>, offset: u64) -> Option<FileFrame> {
    let mut frame = PartialFrame { from: &mut std::io::empty(), bytes, end: 0 };
    let kind = frame.walk().ok()?;
    (frame.end == frame.bytes.len()).then_some(FileFrame { offset, bytes: frame.bytes, kind })
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::Io(error) => error.fmt(f),
            FrameError::Cut { .. } => f.write_str("its zstd blocks run beyond the end of the file"),
            FrameError::Bad { what, .. } => f.write_str(what),
        }
    }
}

fn cut(bytes: &[u8]) -> FrameError {
    let last = bytes.last_chunk().map_or(0, |last| u32::from_le_bytes(*last));
    FrameError::Cut { start: first_four(bytes), bytes: bytes.len() as u64, last }
}

fn first_four(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len().min(4)].to_vec()
}

enum FrameStop {
    Cut,
    Bad(String),
    Io(std::io::Error),
}

fn bad<T>(what: impl Into<String>) -> Result<T, FrameStop> {
    Err(FrameStop::Bad(what.into()))
}

/// A frame that is being read.
struct PartialFrame<'a, R> {
    from: &'a mut R,
    /// The bytes read so far.
    bytes: Vec<u8>,
    /// How many of them belong to the parts of the frame that are known.
    end: usize,
}

impl<R: Read> PartialFrame<'_, R> {
    fn walk(&mut self) -> Result<FrameKind, FrameStop> {
        let magic = self.number(4)? as u32;
        match magic {
            ZSTD_MAGIC => self.chunk(),
            SEAL_MAGIC | SEEK_TABLE_MAGIC => self.tail(),
            other => bad(format!("{other:08x} begins neither a chunk nor a seek table")),
        }
    }

    fn chunk(&mut self) -> Result<FrameKind, FrameStop> {
        let descriptor = self.number(1)? as u8;
        let single_segment = descriptor & 0x20 != 0;
        if descriptor & 0x1B != 0 || descriptor & 0x04 == 0 {
            return bad(format!("its zstd frame descriptor {descriptor:02x} is none that a chunk can have"));
        }
        let size_bytes = match (descriptor >> 6, single_segment) {
            (0, false) => return bad("its zstd frame does not say how many bytes it unpacks to"),
            (0, true) => 1,
            (code, _) => 1 << code,
        };
        if !single_segment {
            self.number(1)?;
        }
        let content_bytes = self.number(size_bytes)? + if size_bytes == 2 { 256 } else { 0 };
        let content_bytes = usize::try_from(content_bytes).unwrap_or(usize::MAX);
        if content_bytes > MAX_CHUNK_BYTES {
            return bad(format!("it says that it unpacks to {content_bytes} bytes; the limit is {MAX_CHUNK_BYTES}"));
        }
        while !self.block()? {}
        self.number(4)?;
        Ok(FrameKind::Chunk { content_bytes })
    }

    /// Reads one block. Returns true after the last one.
    fn block(&mut self) -> Result<bool, FrameStop> {
        let header = self.number(3)? as usize;
        let size = header >> 3;
        let stored = match (header >> 1) & 3 {
            0 | 2 => size,
            1 => 1,
            _ => return bad("a zstd block is of the reserved type"),
        };
        if size > MAX_BLOCK || self.end + stored > MAX_CHUNK_BYTES {
            return bad("a zstd block is larger than any can be");
        }
        self.take(stored)?;
        Ok(header & 1 == 1)
    }

    fn tail(&mut self) -> Result<FrameKind, FrameStop> {
        let size = self.number(4)? as usize;
        if size > MAX_SKIPPABLE {
            return bad(format!("a seek table of {size} bytes is larger than any can be"));
        }
        self.take(size)?;
        Ok(FrameKind::Tail)
    }

    /// Reads a little-endian number of up to eight bytes.
    fn number(&mut self, bytes: usize) -> Result<u64, FrameStop> {
        let start = self.end;
        self.take(bytes)?;
        Ok(self.bytes[start..self.end].iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte)))
    }

    /// Takes exactly `bytes` bytes. It allocates no more memory than the file has bytes.
    fn take(&mut self, bytes: usize) -> Result<(), FrameStop> {
        let missing = (self.end + bytes).saturating_sub(self.bytes.len());
        let got = self.from.by_ref().take(missing as u64).read_to_end(&mut self.bytes).map_err(FrameStop::Io)?;
        self.end += bytes;
        if got == missing { Ok(()) } else { Err(FrameStop::Cut) }
    }
}

/// Unpacks a chunk. zstd verifies the frame's checksum.
pub(crate) fn unpack(frame: &FileFrame) -> Result<Vec<u8>, String> {
    Unpacker::default().unpack(frame)
}

/// Unpacks chunks one after the other, and reuses memory.
#[derive(Default)]
pub(crate) struct Unpacker(Option<zstd::bulk::Decompressor<'static>>);

impl Unpacker {
    pub(crate) fn unpack(&mut self, frame: &FileFrame) -> Result<Vec<u8>, String> {
        let FrameKind::Chunk { content_bytes } = frame.kind else { return Err("it is not a chunk".into()) };
        let fail = |error: std::io::Error| format!("it does not unpack ({error})");
        let unpacker = match self.0.take() {
            Some(unpacker) => unpacker,
            None => zstd::bulk::Decompressor::new().map_err(fail)?,
        };
        let content = self.0.insert(unpacker).decompress(&frame.bytes, content_bytes).map_err(fail)?;
        match content.len() == content_bytes {
            true => Ok(content),
            false => Err(format!("it unpacks to {} bytes and not to {content_bytes} as it says", content.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(content: &[u8]) -> Vec<u8> {
        let mut compressor = zstd::bulk::Compressor::new(3).unwrap();
        compressor.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
        compressor.compress(content).unwrap()
    }

    #[test]
    fn frames_of_all_sizes_are_found_and_unpacked() {
        for size in [0, 1, 255, 256, 257, 65_791, 65_792, 300_000, 2_000_000] {
            let content: Vec<u8> = (0..size as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 27) as u8).collect();
            let mut file = frame(&content);
            file.extend(frame(b"next"));
            let mut frames = FileFrames::new(&file[..], 0);
            let first = frames.next().unwrap().unwrap();
            assert_eq!(unpack(&first).unwrap(), content);
            assert_eq!(unpack(&frames.next().unwrap().unwrap()).unwrap(), b"next");
            assert!(frames.next().unwrap().is_none());
        }
    }

    #[test]
    fn a_frame_that_claims_too_many_bytes_is_refused_before_unpacking() {
        let huge = frame(&vec![0; MAX_CHUNK_BYTES + 1]);
        assert!(huge.len() < 10_000);
        let error = FileFrames::new(&huge[..], 7).next().unwrap_err();
        assert!(matches!(error, FrameError::Bad { offset: 7, what, .. } if what.contains("the limit is")));
    }

    #[test]
    fn a_frame_without_checksum_or_size_is_refused() {
        let bare = zstd::bulk::compress(b"bare", 3).unwrap();
        assert!(matches!(FileFrames::new(&bare[..], 0).next(), Err(FrameError::Bad { .. })));
        let streamed = zstd::stream::encode_all(&b"streamed"[..], 3).unwrap();
        assert!(matches!(FileFrames::new(&streamed[..], 0).next(), Err(FrameError::Bad { .. })));
    }
}

//! The container of logs and traces: zstd frames, a seal, and the seek table of zstd's seekable format.
//!
//! zstd's checksum covers the unpacked content of a frame. The chain covers the frames' bytes in the file, so it also
//! detects changes to bits that zstd ignores. Each chunk holds the digest of all frames before it, and the seal holds
//! the digest of all chunks. The seek table repeats the frames' sizes, and readers compare it byte for byte.

use std::io::{Read, Write};

use xxhash_rust::xxh3::xxh3_64_with_seed;
use zstd::zstd_safe::CParameter;

use super::error::{CHUNK_BYTES_MAX, WriteError};
use super::index::{ChunkRows, IndexBuilder};

pub(crate) const ZSTD_MAGIC: u32 = 0xFD2F_B528;
pub(crate) const SEAL_MAGIC: u32 = 0x184D_2A50;
pub(crate) const SEEK_TABLE_MAGIC: u32 = 0x184D_2A5E;
pub(crate) const SEEK_FOOTER_MAGIC: u32 = 0x8F92_EAB1;
const SEAL_TAG: &[u8; 8] = b"hitseal\0";
/// The length of a seal in the file with its frame header, in bytes.
const SEAL_BYTES: u32 = 24;

/// The digest of all frames so far: XXH3-64 of each frame's bytes, seeded with the digest of the earlier frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain(pub(crate) u64);

impl Chain {
    pub(crate) fn add(&mut self, frame: &[u8]) {
        self.0 = xxh3_64_with_seed(frame, self.0);
    }
}

/// The position of the next chunk in its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextChunk {
    /// The chunk's number; the header is chunk 0.
    pub(crate) index: u32,
    /// The digest of all chunks before it.
    pub(crate) before: u64,
}

/// The offsets and sizes of a file's frames, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeekTable {
    entries: Vec<SeekEntry>,
}

/// The offset and the sizes of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeekEntry {
    pub(crate) offset: u64,
    pub(crate) compressed_bytes: u32,
    pub(crate) content_bytes: u32,
}

impl SeekTable {
    pub(crate) fn add(&mut self, compressed: usize, content: usize) {
        let offset = self.end();
        // `CHUNK_BYTES_MAX` bounds both, far below 4 GiB.
        self.entries.push(SeekEntry { offset, compressed_bytes: compressed as u32, content_bytes: content as u32 });
    }

    /// Returns the number of frames added.
    pub(crate) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Returns the offset after the last frame.
    pub(crate) fn end(&self) -> u64 {
        self.entries.last().map_or(0, |last| last.offset + u64::from(last.compressed_bytes))
    }

    /// Returns the entry of a frame.
    pub(crate) fn entry(&self, frame: u32) -> Option<SeekEntry> {
        self.entries.get(frame as usize).copied()
    }

    /// Returns the frames before this one.
    pub(crate) fn before(&self, frame: u32) -> SeekTable {
        SeekTable { entries: self.entries.iter().take(frame as usize).copied().collect() }
    }

    /// Returns the end of a sealed file: the seal and the seek table, each as a skippable frame.
    pub(crate) fn tail(&self, chain: Chain) -> Vec<u8> {
        let frames = self.len() + 1;
        let mut tail = Vec::with_capacity(SEAL_BYTES as usize + frames as usize * 8 + 17);
        let word = |tail: &mut Vec<u8>, word: u32| tail.extend_from_slice(&word.to_le_bytes());
        word(&mut tail, SEAL_MAGIC);
        word(&mut tail, SEAL_BYTES - 8);
        tail.extend_from_slice(SEAL_TAG);
        tail.extend_from_slice(&chain.0.to_le_bytes());
        word(&mut tail, SEEK_TABLE_MAGIC);
        word(&mut tail, frames * 8 + 9);
        let seal = SeekEntry { offset: 0, compressed_bytes: SEAL_BYTES, content_bytes: 0 };
        for entry in self.entries.iter().chain([&seal]) {
            word(&mut tail, entry.compressed_bytes);
            word(&mut tail, entry.content_bytes);
        }
        word(&mut tail, frames);
        tail.push(0);
        word(&mut tail, SEEK_FOOTER_MAGIC);
        tail
    }
}

/// The most bytes of a header that is compressed at its own level.
const HEADER_BYTES_SMALL: usize = 256 << 10;

/// Writes chunks and collects the data of the tail. It writes nothing more after a failure.
pub(crate) struct ChunkSink<W> {
    out: W,
    compressor: zstd::bulk::Compressor<'static>,
    level: i32,
    packed: Vec<u8>,
    chain: Chain,
    table: SeekTable,
    index: IndexBuilder,
    poisoned: bool,
}

impl<W: Write> ChunkSink<W> {
    pub(crate) fn new(out: W, level: i32) -> Result<ChunkSink<W>, WriteError> {
        let mut compressor = zstd::bulk::Compressor::new(level)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        let (chain, table, index) = (Chain::default(), SeekTable::default(), IndexBuilder::default());
        Ok(ChunkSink { out, compressor, level, packed: Vec::new(), chain, table, index, poisoned: false })
    }

    /// Returns the position of the next chunk.
    pub(crate) fn next(&self) -> NextChunk {
        NextChunk { index: self.table.len(), before: self.chain.0 }
    }

    /// Returns the number of bytes written so far.
    pub(crate) fn offset(&self) -> u64 {
        self.table.end()
    }

    /// Writes the first chunk, at `level` unless it is so large that a recording would be delayed.
    pub(crate) fn write_header(&mut self, content: &[u8], level: i32) -> Result<(), WriteError> {
        let level = (content.len() <= HEADER_BYTES_SMALL).then_some(level);
        self.write_chunk("the header", content, level, ChunkRows::new())
    }

    /// Writes one chunk that has these rows, at the usual level or at one of its own.
    pub(crate) fn write_chunk(
        &mut self,
        what: &'static str,
        content: &[u8],
        level: Option<i32>,
        rows: ChunkRows,
    ) -> Result<(), WriteError> {
        if self.poisoned {
            return Err(WriteError::Poisoned);
        }
        self.poisoned = true;
        if content.len() > CHUNK_BYTES_MAX {
            return Err(WriteError::TooLarge { what, bytes: content.len() });
        }
        self.index.add(self.table.len(), rows);
        self.compressor.set_parameter(CParameter::CompressionLevel(level.unwrap_or(self.level)))?;
        self.compress_and_write(content)?;
        self.poisoned = false;
        Ok(())
    }

    fn compress_and_write(&mut self, content: &[u8]) -> std::io::Result<()> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(content.len()));
        self.compressor.compress_to_buffer(content, &mut self.packed)?;
        self.out.write_all(&self.packed)?;
        self.out.flush()?;
        self.chain.add(&self.packed);
        self.table.add(self.packed.len(), content.len());
        Ok(())
    }

    /// Writes the last chunk with the index, the seal and the seek table, and returns the output.
    pub(crate) fn finish(mut self) -> Result<W, WriteError> {
        let end = std::mem::take(&mut self.index).encode_end(self.next())?;
        self.write_chunk("the end", &end, None, ChunkRows::new())?;
        self.out.write_all(&self.table.tail(self.chain))?;
        self.out.flush()?;
        Ok(self.out)
    }
}

// Finds the frames of a file without unpacking them, in bounded memory (RFC 8878, sections 3.1.1 and 3.1.2).
//
// It is stricter than zstd: a chunk must state its size and have a checksum, and must not set bits that zstd ignores.

/// Bit of a zstd frame descriptor: the frame has no window size.
const SINGLE_SEGMENT: u8 = 1 << 5;
/// Bit of a zstd frame descriptor: a checksum follows the blocks.
const CHECKSUM: u8 = 1 << 2;
/// Bits of a zstd frame descriptor that no chunk sets: unused, reserved, and the size of a dictionary's id.
const NOT_IN_CHUNKS: u8 = 0b1_1011;

/// The largest block that zstd makes.
const BLOCK_BYTES_MAX: usize = 128 << 10;
/// The most bytes of a skippable frame: enough for the seek table of a file of 100 days.
const SKIPPABLE_BYTES_MAX: usize = 64 << 20;

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
        let mut frame = PartialFrame { from: &mut self.from, offset: self.offset, bytes: Vec::new(), end: 0 };
        let outcome = frame.walk();
        let (bytes, offset) = (frame.bytes, self.offset);
        self.offset += bytes.len() as u64;
        match outcome {
            Ok(kind) => Ok(Some(FileFrame { offset, bytes, kind })),
            Err(FrameError::Cut { bytes: 0, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns the frame that takes all these bytes, which begin at `offset` in the file; `None` if there is no such frame.
pub(crate) fn frame_of(bytes: Vec<u8>, offset: u64) -> Option<FileFrame> {
    let mut frame = PartialFrame { from: &mut std::io::empty(), offset, bytes, end: 0 };
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

/// A frame that is being read.
struct PartialFrame<'a, R> {
    from: &'a mut R,
    /// Its offset in the file.
    offset: u64,
    /// The bytes read so far.
    bytes: Vec<u8>,
    /// How many of them belong to the parts of the frame that are known.
    end: usize,
}

impl<R: Read> PartialFrame<'_, R> {
    /// Returns up to the first four bytes.
    fn start(&self) -> Vec<u8> {
        self.bytes[..self.bytes.len().min(4)].to_vec()
    }

    fn bad<T>(&self, what: impl Into<String>) -> Result<T, FrameError> {
        Err(FrameError::Bad { offset: self.offset, start: self.start(), what: what.into() })
    }

    fn walk(&mut self) -> Result<FrameKind, FrameError> {
        let magic = self.number(4)? as u32;
        match magic {
            ZSTD_MAGIC => self.chunk(),
            SEAL_MAGIC | SEEK_TABLE_MAGIC => self.tail(),
            other => self.bad(format!("{other:08x} begins neither a chunk nor a seek table")),
        }
    }

    fn chunk(&mut self) -> Result<FrameKind, FrameError> {
        let descriptor = self.number(1)? as u8;
        let single_segment = descriptor & SINGLE_SEGMENT != 0;
        if descriptor & NOT_IN_CHUNKS != 0 || descriptor & CHECKSUM == 0 {
            return self.bad(format!("its zstd frame descriptor {descriptor:02x} is none that a chunk can have"));
        }
        let size_bytes = match (descriptor >> 6, single_segment) {
            (0, false) => return self.bad("its zstd frame does not say how many bytes it unpacks to"),
            (0, true) => 1,
            (code, _) => 1 << code,
        };
        if !single_segment {
            self.number(1)?;
        }
        // A size of two bytes counts from 256.
        let content_bytes = self.number(size_bytes)? + if size_bytes == 2 { 256 } else { 0 };
        let content_bytes = usize::try_from(content_bytes).unwrap_or(usize::MAX);
        if content_bytes > CHUNK_BYTES_MAX {
            return self
                .bad(format!("it says that it unpacks to {content_bytes} bytes; the limit is {CHUNK_BYTES_MAX}"));
        }
        while !self.block()? {}
        self.number(4)?;
        Ok(FrameKind::Chunk { content_bytes })
    }

    /// Reads one block. Returns true after the last one.
    fn block(&mut self) -> Result<bool, FrameError> {
        let header = self.number(3)? as usize;
        let size = header >> 3;
        let stored = match (header >> 1) & 3 {
            0 | 2 => size,
            1 => 1,
            _ => return self.bad("a zstd block is of the reserved type"),
        };
        if size > BLOCK_BYTES_MAX || self.end + stored > CHUNK_BYTES_MAX {
            return self.bad("a zstd block is larger than any can be");
        }
        self.take(stored)?;
        Ok(header & 1 == 1)
    }

    fn tail(&mut self) -> Result<FrameKind, FrameError> {
        let size = self.number(4)? as usize;
        if size > SKIPPABLE_BYTES_MAX {
            return self.bad(format!("a seek table of {size} bytes is larger than any can be"));
        }
        self.take(size)?;
        Ok(FrameKind::Tail)
    }

    /// Reads a little-endian number of up to eight bytes.
    fn number(&mut self, bytes: usize) -> Result<u64, FrameError> {
        let start = self.end;
        self.take(bytes)?;
        Ok(self.bytes[start..self.end].iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte)))
    }

    /// Takes exactly `bytes` bytes. It allocates no more memory than the file has bytes.
    fn take(&mut self, bytes: usize) -> Result<(), FrameError> {
        let missing = (self.end + bytes).saturating_sub(self.bytes.len());
        let got = self.from.by_ref().take(missing as u64).read_to_end(&mut self.bytes).map_err(FrameError::Io)?;
        self.end += bytes;
        if got == missing {
            return Ok(());
        }
        let last = self.bytes.last_chunk().map_or(0, |last| u32::from_le_bytes(*last));
        Err(FrameError::Cut { start: self.start(), bytes: self.bytes.len() as u64, last })
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

    /// A disk that becomes full after some bytes.
    struct FullDisk(usize);

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_failed_writer_writes_nothing_more() {
        let mut sink = ChunkSink::new(FullDisk(100), 3).unwrap();
        let chunk =
            |sink: &mut ChunkSink<FullDisk>, content: &[u8]| sink.write_chunk("a chunk", content, None, Vec::new());
        chunk(&mut sink, b"fits").unwrap();
        let noise: Vec<u8> = (0..200u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert!(matches!(chunk(&mut sink, &noise), Err(WriteError::Io(_))));
        assert!(matches!(chunk(&mut sink, b"fits"), Err(WriteError::Poisoned)));
        assert!(matches!(sink.finish(), Err(WriteError::Poisoned)));
    }

    #[test]
    fn the_tail_is_zstds_seekable_format() {
        let mut table = SeekTable::default();
        table.add(0x1234, 0x5678);
        let tail = table.tail(Chain(0x0102_0304_0506_0708));
        let (seal, seek) = tail.split_at(24);
        assert_eq!(seal[..8], [0x50, 0x2A, 0x4D, 0x18, 16, 0, 0, 0]);
        assert_eq!(seal[16..], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(seek[..8], [0x5E, 0x2A, 0x4D, 0x18, 25, 0, 0, 0]);
        assert_eq!(seek[8..16], [0x34, 0x12, 0, 0, 0x78, 0x56, 0, 0]);
        assert_eq!(seek[16..24], [24, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(seek[24..], [2, 0, 0, 0, 0, 0xB1, 0xEA, 0x92, 0x8F]);
    }

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
        let huge = frame(&vec![0; CHUNK_BYTES_MAX + 1]);
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

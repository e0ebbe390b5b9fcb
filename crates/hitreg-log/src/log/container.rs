//! The container of logs and traces: zstd frames, a seal, and the seek table of zstd's seekable format.
//!
//! zstd's checksum covers the unpacked content of a frame. The chain covers the frames' bytes in the file, so it also
//! detects changes to bits that zstd ignores. Each chunk holds the digest of all frames before it, and the seal holds
//! the digest of all chunks. The seek table repeats the frames' sizes, and readers compare it byte for byte.

use std::io::Write;

use xxhash_rust::xxh3::xxh3_64_with_seed;
use zstd::zstd_safe::CParameter;

use super::error::WriteError;
use super::index::{ChunkRows, IndexBuilder};
use super::limits::MAX_CHUNK_BYTES;

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

/// The places and sizes of a file's frames, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeekTable {
    /// The offset in the file, and the compressed and decompressed bytes.
    entries: Vec<(u64, u32, u32)>,
}

impl SeekTable {
    pub(crate) fn add(&mut self, compressed: usize, content: usize) {
        let offset = self.entries.last().map_or(0, |(offset, compressed, _)| offset + u64::from(*compressed));
        // `MAX_CHUNK_BYTES` bounds both, far below 4 GiB.
        self.entries.push((offset, compressed as u32, content as u32));
    }

    /// Returns the number of frames added.
    pub(crate) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Returns the offset of a frame in the file, and its compressed and decompressed bytes.
    pub(crate) fn of(&self, frame: u32) -> Option<(u64, usize, usize)> {
        let (offset, compressed, content) = self.entries.get(frame as usize)?;
        Some((*offset, *compressed as usize, *content as usize))
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
        for (_, compressed, content) in self.entries.iter().chain([&(0, SEAL_BYTES, 0)]) {
            word(&mut tail, *compressed);
            word(&mut tail, *content);
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

    /// Returns the number of the next chunk, and the digest of all chunks before it.
    pub(crate) fn next(&self) -> (u32, Chain) {
        (self.table.len(), self.chain)
    }

    /// Writes the first chunk, at `level` unless it is so large that a recording would be delayed.
    pub(crate) fn header(&mut self, content: &[u8], level: i32) -> Result<(), WriteError> {
        let level = (content.len() <= HEADER_BYTES_SMALL).then_some(level);
        self.chunk("the header", content, level, ChunkRows::new())
    }

    /// Writes one chunk that has these rows, at the usual level or at one of its own.
    pub(crate) fn chunk(
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
        if content.len() > MAX_CHUNK_BYTES {
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
        self.chunk("the end", &end, None, ChunkRows::new())?;
        self.out.write_all(&self.table.tail(self.chain))?;
        self.out.flush()?;
        Ok(self.out)
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
        let chunk = |sink: &mut ChunkSink<FullDisk>, content: &[u8]| sink.chunk("a chunk", content, None, Vec::new());
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
}

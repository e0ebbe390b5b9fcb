//! Limits on what a part of a file may make its reader allocate. Readers check every limit before the allocation.

/// The most bytes of one chunk, compressed or not. Writers make far smaller chunks.
pub(crate) const MAX_CHUNK_BYTES: usize = 12 << 20;

/// The most bytes of records in memory that a writer puts into one chunk. Writers refuse larger records.
pub(crate) const MAX_RECORD_BYTES: usize = 4 << 20;

/// The most memory for decoding one chunk. Decoding takes at most 14 times the record size for any kind of record, so
/// a reader can decode every chunk that a writer makes.
pub(crate) const MAX_CHUNK_MEMORY: usize = 64 << 20;

/// The most players that a session may have. Games of today have up to 150. The work of a server grows with the square.
pub const MAX_PLAYERS: usize = 200;

/// The most values in MessagePack that a file's header may hold. A hundred classes of thirty fields and all players
/// come to less than half of that.
pub(crate) const MAX_HEADER_VALUES: u64 = 1 << 17;

/// The most columns of a trace table in a file.
pub(crate) const MAX_COLUMNS: usize = 4096;

/// The memory that a decoder may still allocate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit: usize,
    left: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Budget {
        Budget { limit, left: limit }
    }

    /// Reserves memory for `count` items of `size` bytes.
    pub(crate) fn take(&mut self, count: usize, size: usize) -> Result<(), String> {
        let left = self.left.checked_sub(count.saturating_mul(size));
        let over = || format!("its records would take more than {} MiB of memory", self.limit >> 20);
        self.left = left.ok_or_else(over)?;
        Ok(())
    }
}

//! How much a file may make its reader allocate; every limit is checked before the allocation.

/// The most bytes that one chunk may hold, compressed or not. Writers cut far below it.
pub const MAX_CHUNK_BYTES: usize = 12 << 20;

/// The most bytes of records in memory that a writer puts into one chunk; a larger record is refused.
pub const MAX_RECORD_BYTES: usize = 4 << 20;

/// The most memory that decoding one chunk may take. No kind of record takes more than 14 times its own size while it
/// is decoded, so that what a writer may write can always be read.
pub const MAX_CHUNK_MEMORY: usize = 64 << 20;

/// What a file of any size may become in memory. Growing lists may reserve twice that, and one more chunk is being
/// decoded meanwhile: together below 256 MiB.
const SMALL_FILE_MEMORY: usize = 80 << 20;

/// How many times its size a larger file may become. A fight comes to about 40, a server on which all 16 players
/// stand still to about 600, since each tick's hash alone is 8 bytes that do not compress.
const MEMORY_PER_FILE_BYTE: usize = 1024;

/// The most memory that the records of a file of this many bytes may take together: 80 MiB, or 1024 times the file.
/// What is larger is read chunk by chunk with [`LogReader`](super::LogReader).
pub fn session_budget(file_bytes: u64) -> usize {
    let by_size = usize::try_from(file_bytes).unwrap_or(usize::MAX).saturating_mul(MEMORY_PER_FILE_BYTE);
    by_size.max(SMALL_FILE_MEMORY)
}

/// Memory that may still be taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit: usize,
    left: usize,
}

/// More was asked for than is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget {
    limit: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Budget {
        Budget { limit, left: limit }
    }

    /// Sets aside room for `count` things of `size` bytes.
    pub(crate) fn take(&mut self, count: usize, size: usize) -> Result<(), OverBudget> {
        let bytes = count.saturating_mul(size);
        self.left = self.left.checked_sub(bytes).ok_or(OverBudget { limit: self.limit })?;
        Ok(())
    }
}

impl From<OverBudget> for String {
    fn from(over: OverBudget) -> String {
        format!("its records would take more than {} MiB of memory", over.limit >> 20)
    }
}

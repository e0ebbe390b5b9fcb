//! How much a file may make its reader allocate; every limit is checked before the allocation.

use super::error::LogError;

/// The most bytes that one chunk may hold, compressed or not. Writers cut far below it.
pub const MAX_CHUNK_BYTES: usize = 12 << 20;

/// The most memory that one chunk's records may take.
pub const MAX_CHUNK_MEMORY: usize = 64 << 20;

/// What a file of any size may become in memory.
const SMALL_FILE_MEMORY: usize = 144 << 20;

/// How many times its size a larger file may become. Real sessions stay below 60 times.
const MEMORY_PER_FILE_BYTE: usize = 128;

/// The most memory that a whole session or trace may take when read from a file of this many bytes: 144 MiB, or 128
/// times the file. What is larger is read chunk by chunk with [`LogReader`](super::LogReader).
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

    pub(crate) fn spent(&self) -> usize {
        self.limit - self.left
    }
}

impl From<OverBudget> for LogError {
    fn from(over: OverBudget) -> LogError {
        LogError::TooLarge { limit_bytes: over.limit }
    }
}

impl From<OverBudget> for String {
    fn from(over: OverBudget) -> String {
        format!("its records would take more than {} MiB of memory", over.limit >> 20)
    }
}

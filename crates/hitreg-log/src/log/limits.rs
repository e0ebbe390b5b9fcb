//! How much a part of a file may make its reader allocate. Every limit is checked before the allocation.

/// The most bytes that one chunk may hold, compressed or not. Writers cut far below it.
pub(crate) const MAX_CHUNK_BYTES: usize = 12 << 20;

/// The most bytes of records in memory that a writer puts into one chunk; a larger record is refused.
pub(crate) const MAX_RECORD_BYTES: usize = 4 << 20;

/// The most memory that decoding one chunk may take. No kind of record takes more than 14 times its own size while it
/// is decoded, so that what a writer may write can always be read.
pub(crate) const MAX_CHUNK_MEMORY: usize = 64 << 20;

/// The most players that a session may have. Games of today have up to 128, and what a server sends grows with its square.
pub const MAX_PLAYERS: usize = 256;

/// The most values in MessagePack that a file's header may hold. A hundred classes of thirty fields and all players
/// come to less than half of that.
pub(crate) const MAX_HEADER_VALUES: u64 = 1 << 17;

/// The most columns that a table of a trace may have in a file.
pub(crate) const MAX_COLUMNS: usize = 4096;

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

//! How much a file may make its reader allocate; every limit is checked before the allocation.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The most bytes that one chunk may hold, compressed or not. Writers cut far below it.
pub(crate) const MAX_CHUNK_BYTES: usize = 12 << 20;

/// The most bytes of records in memory that a writer puts into one chunk; a larger record is refused.
pub(crate) const MAX_RECORD_BYTES: usize = 4 << 20;

/// The most memory that decoding one chunk may take. No kind of record takes more than 14 times its own size while it
/// is decoded, so that what a writer may write can always be read.
pub(crate) const MAX_CHUNK_MEMORY: usize = 64 << 20;

/// The most players that a session may have.
pub const MAX_PLAYERS: usize = 1024;

/// The most values in MessagePack that a file's header may hold. A hundred classes of thirty fields and a thousand players
/// come to half of that.
pub(crate) const MAX_HEADER_VALUES: u64 = 1 << 17;

/// The most columns that a table of a trace may have in a file.
pub(crate) const MAX_COLUMNS: usize = 4096;

/// What the records of a file of up to 1 MiB may become in memory. One more chunk is being decoded meanwhile.
const SMALL_FILE_MEMORY: usize = 80 << 20;
/// What the tables of a trace of up to 1 MiB may become.
const SMALL_TRACE_MEMORY: usize = 40 << 20;
/// What the records of a log of up to 1 MiB may become together with what is made of them. With the program itself, and what is
/// being moved from one place to another, that stays below 256 MiB.
const SMALL_FILE_REPLAYED: usize = 192 << 20;
/// A file of up to so many bytes.
pub const SMALL_FILE: u64 = 1 << 20;

/// How much more each further byte of a file may become. A fight comes to about 40, a server on which all 16 players
/// stand still to about 600, since each tick's hash alone is 8 bytes that do not compress.
const MEMORY_PER_FILE_BYTE: usize = 1024;

/// What was granted besides, in bytes.
static GRANTED: AtomicUsize = AtomicUsize::new(0);

/// Lets the records of each file, and what is made of them, take so many bytes, however small the file is: for recordings
/// that are known to be good.
pub fn grant_memory(bytes: usize) {
    GRANTED.store(bytes, Ordering::Relaxed);
}

/// The most memory that the records of a file of this many bytes may take together: 80 MiB, and 1024 times what the file
/// has beyond 1 MiB. What is larger is read chunk by chunk with [`LogReader`](super::LogReader).
pub(crate) fn session_budget(file_bytes: u64) -> usize {
    budget(SMALL_FILE_MEMORY, file_bytes)
}

/// The same for a trace: two of them are compared, and what is known of their rows takes as much again.
pub(crate) fn trace_budget(file_bytes: u64) -> usize {
    budget(SMALL_TRACE_MEMORY, file_bytes)
}

/// The most memory that the replay of a log of this many bytes may take: what its records leave of 192 MiB, and of 2048 times
/// what the file has beyond 1 MiB.
pub fn replay_budget(file_bytes: u64, session_bytes: usize) -> usize {
    budget(SMALL_FILE_REPLAYED, file_bytes.saturating_mul(2).saturating_sub(SMALL_FILE)).saturating_sub(session_bytes)
}

fn budget(small: usize, file_bytes: u64) -> usize {
    let beyond = usize::try_from(file_bytes.saturating_sub(SMALL_FILE)).unwrap_or(usize::MAX);
    let by_size = small.saturating_add(beyond.saturating_mul(MEMORY_PER_FILE_BYTE));
    by_size.max(GRANTED.load(Ordering::Relaxed))
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

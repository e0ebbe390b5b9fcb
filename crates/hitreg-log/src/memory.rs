//! The memory limit of commands that hold whole sessions or traces.

/// The most memory that a command may use for whole sessions and traces: a quarter of the machine's memory, at least 2
/// GiB. Streaming commands need less and ignore the limit. The default is the lowest limit, for a library that does not
/// know its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    bytes: usize,
}

impl Default for MemoryLimit {
    fn default() -> MemoryLimit {
        MemoryLimit::MIN
    }
}

impl MemoryLimit {
    /// The lowest limit: that of a machine with 8 GiB or less, or with an unknown amount of memory.
    pub const MIN: MemoryLimit = MemoryLimit { bytes: 2 << 30 };

    /// Returns a limit of this many bytes.
    pub const fn of_bytes(bytes: usize) -> MemoryLimit {
        MemoryLimit { bytes }
    }

    /// Returns the limit of a machine with this many bytes of physical memory; `None` if unknown.
    pub fn of_machine(physical_bytes: Option<u64>) -> MemoryLimit {
        let quarter = physical_bytes.map_or(0, |bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX));
        MemoryLimit { bytes: quarter.max(MemoryLimit::MIN.bytes) }
    }

    /// Returns the limit in bytes.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// Checks a need in bytes against the limit.
    ///
    /// # Errors
    /// When the need exceeds the limit.
    pub fn check(self, needed_bytes: usize) -> Result<(), NeedsMemory> {
        if needed_bytes > self.bytes { Err(NeedsMemory { needed_bytes, limit_bytes: self.bytes }) } else { Ok(()) }
    }

    /// Returns how many tasks of `bytes_each` may run at once: at least one, at most `most`.
    pub fn tasks_at_once(self, bytes_each: usize, most: usize) -> usize {
        (self.bytes / bytes_each.max(1)).clamp(1, most.max(1))
    }
}

/// A file or a replay needs more memory than it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error(
    "this needs about {} MiB of memory, and the limit is {} MiB: set HITREG_MEMORY_MIB={} to allow that much",
    .needed_bytes.div_ceil(1 << 20), .limit_bytes >> 20, .needed_bytes.div_ceil(1 << 20)
)]
pub struct NeedsMemory {
    /// The estimated need, in bytes.
    pub needed_bytes: usize,
    /// The limit, in bytes.
    pub limit_bytes: usize,
}

impl NeedsMemory {
    /// Finds the message of this error in a line that another process printed. Both amounts are rounded to MiB, so the
    /// result has the same message.
    #[doc(hidden)]
    pub fn in_line(line: &str) -> Option<NeedsMemory> {
        let (_, rest) = line.split_once("this needs about ")?;
        let (needed, rest) = rest.split_once(" MiB of memory, and the limit is ")?;
        let (limit, _) = rest.split_once(" MiB: set HITREG_MEMORY_MIB=")?;
        let bytes = |mib: &str| mib.parse::<usize>().ok()?.checked_mul(1 << 20);
        Some(NeedsMemory { needed_bytes: bytes(needed)?, limit_bytes: bytes(limit)? })
    }
}

/// The environment variable `HITREG_MEMORY_MIB` holds no number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HITREG_MEMORY_MIB is {text:?}: set it to a number of MiB, such as 4096")]
pub struct BadMemoryLimit {
    /// The value of the variable.
    pub text: std::ffi::OsString,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_a_quarter_of_the_machine_and_at_least_two_gib() {
        let gib = |physical: Option<u64>| MemoryLimit::of_machine(physical.map(|gib| gib << 30)).bytes() >> 30;
        assert_eq!([None, Some(1), Some(8), Some(24), Some(256)].map(gib), [2, 2, 2, 6, 64]);
    }

    #[test]
    fn needs_up_to_the_limit_pass() {
        let limit = MemoryLimit::of_bytes(100 << 20);
        assert!(limit.check(100 << 20).is_ok());
        let error = limit.check((100 << 20) + 1).expect_err("one byte more").to_string();
        assert!(error.contains("101 MiB") && error.contains("HITREG_MEMORY_MIB=101"), "{error}");
        let read = NeedsMemory::in_line(&format!("error: /a/L.hitlog: {error}")).expect("the message");
        assert_eq!((read.to_string(), read.limit_bytes), (error, 100 << 20));
        assert_eq!(NeedsMemory::in_line("error: /a/L.hitlog: this needs about two maps"), None);
        assert_eq!([1, 30, 60, 101].map(|mib| limit.tasks_at_once(mib << 20, 4)), [4, 3, 1, 1]);
    }
}

//! Estimates the cost of bytes after entropy coding: their order-0 entropy (Shannon 1948). It uses integers, so every
//! machine makes the same choice.

/// Counts how often each byte value occurs.
pub(crate) struct Histogram {
    counts: [u32; 256],
    total: u32,
}

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram { counts: [0; 256], total: 0 }
    }

    /// Counts all these bytes.
    pub(crate) fn of(bytes: impl ExactSizeIterator<Item = u8>) -> Histogram {
        let mut counts = [0; 256];
        let total = bytes.len() as u32;
        bytes.for_each(|byte| counts[usize::from(byte)] += 1);
        Histogram { counts, total }
    }

    #[inline]
    pub(crate) fn add(&mut self, byte: u8) {
        self.counts[usize::from(byte)] += 1;
        self.total += 1;
    }

    /// Returns the total entropy in 256ths of a bit.
    pub(crate) fn cost(&self) -> u64 {
        let parts: u64 = self.counts.iter().filter(|&&c| c > 1).map(|&c| weighted_log2(c)).sum();
        weighted_log2(self.total).saturating_sub(parts)
    }
}

/// Returns `c * log2(c)` in 256ths.
fn weighted_log2(c: u32) -> u64 {
    u64::from(c) * u64::from(log2_256ths(c))
}

/// Returns log2 in 256ths, linear between powers of two: at most 0.09 too low.
fn log2_256ths(c: u32) -> u32 {
    let Some(power) = c.checked_ilog2() else { return 0 };
    let fraction = (u64::from(c) << 8 >> power) as u32 & 0xFF;
    power * 256 + fraction
}

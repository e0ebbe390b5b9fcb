//! Times of which there are many, kept by how many there are of each.

use super::Percentiles;
use super::packed::{Packed, merged};
use crate::units::Micros;

/// Times in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// Those that have been put in order.
    counted: Packed,
    /// Those that have not.
    new: Vec<i64>,
}

/// So many are put in order at once.
const AT_ONCE: usize = 1 << 13;

impl Times {
    pub(super) fn add(&mut self, time: Micros) {
        self.new.push(time.0);
        if self.new.len() >= AT_ONCE {
            self.put_in_order();
        }
    }

    /// All of these, too.
    pub(super) fn add_all(&mut self, others: &Times) {
        self.counted = merged(self.counted.iter(), others.counted.iter());
        others.new.iter().for_each(|time| self.add(Micros(*time)));
    }

    /// Nearest-rank percentiles, in ms.
    pub(super) fn percentiles(&mut self) -> Percentiles {
        self.put_in_order();
        let all: u64 = self.counted.iter().map(|(_, count)| count).sum();
        let at = |percent: f64| {
            let rank = (libm::ceil(percent / 100.0 * all as f64) as u64).max(1);
            let mut so_far = 0;
            let reached = self.counted.iter().find(|(_, count)| {
                so_far += count;
                so_far >= rank
            });
            reached.map(|(time, _)| Micros(time).as_ms_f64())
        };
        Percentiles { p5: at(5.0), p50: at(50.0), p95: at(95.0), p99: at(99.0) }
    }

    /// Each of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Micros> + '_ {
        let counted = self.counted.iter().flat_map(|(time, count)| std::iter::repeat_n(time, count as usize));
        counted.chain(self.new.iter().copied()).map(Micros)
    }

    fn put_in_order(&mut self) {
        let mut new = std::mem::take(&mut self.new);
        new.sort_unstable();
        let each = new.chunk_by(|one, next| one == next).map(|same| (same[0], same.len() as u64));
        self.counted = merged(self.counted.iter(), each);
        new.clear();
        self.new = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::percentile;

    #[test]
    fn percentiles_are_those_of_all_in_order() {
        let mut all: Vec<Micros> = (0..100_001i64).map(|n| Micros(n * 7919 % 997 - 100)).collect();
        let (mut times, mut others) = (Times::default(), Times::default());
        for (n, time) in all.iter().enumerate() {
            if n % 3 == 0 { others.add(*time) } else { times.add(*time) }
        }
        times.add_all(&others);
        let found = times.percentiles();
        let mut given: Vec<Micros> = times.iter().collect();
        given.sort_unstable();
        all.sort_unstable();
        assert_eq!(given, all);
        let at = |percent| percentile(&all, percent).map(Micros::as_ms_f64);
        assert_eq!([found.p5, found.p50, found.p95, found.p99], [5.0, 50.0, 95.0, 99.0].map(at));
        assert!(times.counted.iter().count() < 1_000);
        assert_eq!(Times::default().percentiles(), Percentiles::default());
        let ends = [Micros(i64::MIN), Micros(i64::MAX)];
        let mut far = Times::default();
        ends.into_iter().rev().for_each(|time| far.add(time));
        far.put_in_order();
        assert_eq!(far.iter().collect::<Vec<_>>(), ends);
    }
}

//! Chooses the candidate to try next. Candidates that cannot be judged are skipped, as in `git bisect skip`.

use std::collections::{BTreeSet, VecDeque};

/// Chooses from the remaining candidates, which are sorted best first. `skipped` candidates could not be judged.
///
/// Untestable candidates tend to be neighbours, for example a range of commits that does not build. So the next best
/// candidate is a bad choice. The more were skipped, the further the choice moves into the better half of the list. Its
/// step is the golden ratio, which spreads the choices evenly.
pub(super) fn choose<T>(best_first: &[T], skipped: usize) -> Option<&T> {
    let away = (skipped * 618 % 1000) * best_first.len() / 2000;
    best_first.get(away)
}

/// A search in a list whose first item is good and whose last item is bad.
#[derive(Clone, Debug)]
pub(super) struct Bisector {
    last_good: usize,
    first_bad: usize,
    skipped: BTreeSet<usize>,
}

impl Bisector {
    /// Creates a search over `things` items, at least two. The ends are assumed to be good and bad.
    pub(super) fn new(things: usize) -> Bisector {
        Bisector { last_good: 0, first_bad: things.saturating_sub(1), skipped: BTreeSet::new() }
    }

    /// The next item to try; `None` if no testable item is left.
    pub(super) fn next(&self) -> Option<usize> {
        let middle = self.last_good + (self.first_bad - self.last_good) / 2;
        let mut left: Vec<usize> = self.between().filter(|at| !self.skipped.contains(at)).collect();
        left.sort_by_key(|at| at.abs_diff(middle));
        choose(&left, self.between().count() - left.len()).copied()
    }

    /// Up to `most` items: the one to try now, then the next choice if it is bad, the next if it is good, and so on.
    pub(super) fn ahead(&self, most: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut lines = VecDeque::from([self.clone()]);
        while found.len() < most {
            let Some(line) = lines.pop_front() else { break };
            let Some(at) = line.next() else { continue };
            found.push(at);
            for mark in [Bisector::bad, Bisector::good] {
                let mut line = line.clone();
                mark(&mut line, at);
                lines.push_back(line);
            }
        }
        found
    }

    pub(super) fn good(&mut self, at: usize) {
        self.last_good = self.last_good.max(at);
    }

    pub(super) fn bad(&mut self, at: usize) {
        self.first_bad = self.first_bad.min(at);
    }

    pub(super) fn skip(&mut self, at: usize) {
        self.skipped.insert(at);
    }

    pub(super) fn last_good(&self) -> usize {
        self.last_good
    }

    pub(super) fn first_bad(&self) -> usize {
        self.first_bad
    }

    /// All items that may be the first bad one. There are several if the items before it could not be judged.
    pub(super) fn candidates(&self) -> impl Iterator<Item = usize> + use<> {
        self.last_good + 1..=self.first_bad
    }

    fn between(&self) -> impl Iterator<Item = usize> + use<> {
        self.last_good + 1..self.first_bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a list in which `bad` is the first bad item and some items cannot be judged.
    fn search(things: usize, bad: usize, untestable: &[usize]) -> (Vec<usize>, usize) {
        let mut line = Bisector::new(things);
        let mut probes = 0;
        while let Some(at) = line.next() {
            probes += 1;
            match at {
                at if untestable.contains(&at) => line.skip(at),
                at if at < bad => line.good(at),
                at => line.bad(at),
            }
        }
        (line.candidates().collect(), probes)
    }

    #[test]
    fn any_of_64_is_found_in_six_probes() {
        for bad in 1..64 {
            let (found, probes) = search(64, bad, &[]);
            assert_eq!(found, [bad]);
            assert!(probes <= 6, "{probes} probes for {bad}");
        }
        assert_eq!(search(2, 1, &[]), (vec![1], 0));
    }

    #[test]
    fn possible_next_probes_are_known_ahead() {
        let line = Bisector::new(64);
        assert_eq!(line.ahead(7), [31, 15, 47, 7, 23, 39, 55]);
        assert_eq!((line.ahead(1), line.ahead(1000).len()), (vec![31], 62));
        for bad in 1..64 {
            let mut line = Bisector::new(64);
            let mut ahead = vec![31];
            while let Some(at) = line.next() {
                assert!(ahead.contains(&at));
                ahead = line.ahead(3);
                if at < bad { line.good(at) } else { line.bad(at) }
            }
        }
        assert!(Bisector::new(2).ahead(5).is_empty());
    }

    #[test]
    fn candidates_are_the_first_bad_and_the_untestable_before_it() {
        let mut most = 0;
        for bad in 1..64 {
            for start in 1..54 {
                let broken: Vec<usize> = (start..start + 10).collect();
                let (found, probes) = search(64, bad, &broken);
                let before = broken.iter().filter(|at| **at < bad && (**at..bad).all(|i| broken.contains(&i)));
                let after = (bad..64).find(|at| !broken.contains(at)).unwrap();
                let expected: Vec<usize> = before.copied().chain(bad..=after).collect();
                assert_eq!(found, expected, "bad {bad}, broken from {start}");
                most = most.max(probes);
            }
        }
        assert!(most <= 16, "{most} probes");
    }
}

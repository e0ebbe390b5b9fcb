//! The weapon whose hit rate changed most, with a confidence interval over logs.

use serde::Serialize;

use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::ShareEstimate;

/// The least number of logs in which the hit rate of a weapon differs between the sides.
///
/// By the sign test, ten changes by chance have one sign with a probability of 0.2 %. For up to 25 weapons together, this
/// is less than 5 %.
pub(crate) const LEAST_CHANGED_LOGS: usize = 10;
/// The probability beyond the ends of the interval, for all weapons together.
const ERROR: f64 = 0.05;

/// The change of a weapon's hit rate. Hit rates are shares of shots, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WeaponChange {
    /// The weapon.
    pub weapon: String,
    /// The hit rate on side A.
    pub rate_a: f64,
    /// The hit rate on side B.
    pub rate_b: f64,
    /// The ends of the 95 % confidence interval of `rate_b - rate_a`, for all weapons together.
    pub interval: [f64; 2],
    /// The logs whose first changed shot is one of this weapon.
    pub first_in: u64,
    /// The logs with a changed shot.
    pub changed_logs: u64,
}

/// Shots of both sides, such as those of one weapon in one log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShotSums {
    pub(super) shots: [u64; 2],
    pub(super) hits: [u64; 2],
    /// Shots with another outcome.
    pub(super) changed: u64,
}

impl ShotSums {
    pub(super) fn add(&mut self, more: &ShotSums) {
        for side in [0, 1] {
            self.shots[side] += more.shots[side];
            self.hits[side] += more.hits[side];
        }
        self.changed += more.changed;
    }

    /// Whether both sides have shots, and another share of them hit.
    fn has_other_rate(&self) -> bool {
        let [a, b] = [0, 1].map(|side| u128::from(self.hits[side]) * u128::from(self.shots[1 - side]));
        self.shots.iter().all(|shots| *shots > 0) && a != b
    }
}

/// The weapon whose hit rate changed most, in units of its uncertainty. `None` if no interval excludes 0. Only weapons whose
/// hit rate changed in [`LEAST_CHANGED_LOGS`] have an interval. Logs without a change tell nothing of the size of changes,
/// so the degrees of freedom are those of the changed logs.
pub(super) fn most_changed(
    weapons: &SortedMap<String, Vec<ShotSums>>,
    first_in: &SortedMap<String, u64>,
) -> Option<WeaponChange> {
    let changed_logs = first_in.values().sum();
    // The more weapons there are, the more probable it is that one changes by chance.
    let tail = ERROR / 2.0 / weapons.len().max(1) as f64;
    let of_weapon = |(weapon, logs): (&String, &Vec<ShotSums>)| {
        let changed = logs.iter().filter(|log| log.has_other_rate()).count();
        if changed < LEAST_CHANGED_LOGS {
            return None;
        }
        // In one order, so that the rounding of sums does not depend on the order of the logs.
        let mut logs = logs.clone();
        logs.sort_unstable();
        let rate = |side: usize| ShareEstimate::of(logs.iter().map(|log| (log.hits[side], log.shots[side])));
        let (rate_a, rate_b) = (rate(0)?, rate(1)?);
        let change = rate_b.minus(&rate_a);
        // Logs that all change alike have an interval without width.
        let half = change.half_width(tail, changed - 1).unwrap_or_default();
        let found = WeaponChange {
            weapon: weapon.clone(),
            rate_a: rate_a.share,
            rate_b: rate_b.share,
            interval: [change.share - half, change.share + half],
            first_in: first_in.get(weapon).copied().unwrap_or_default(),
            changed_logs,
        };
        (change.share.abs() > half).then_some((change.share.abs() / half, found))
    };
    let changes = weapons.iter().filter_map(of_weapon);
    changes.max_by(|(x, _), (y, _)| x.total_cmp(y)).map(|(_, change)| change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::rng::Rng;
    use hitreg_log::units::Seed;

    fn logs(extra: impl Fn(u64) -> u64) -> Vec<ShotSums> {
        let log = |log| ShotSums { shots: [10; 2], hits: [4 + log % 3, 4 + log % 3 + extra(log)], changed: 0 };
        (0..300).map(log).collect()
    }

    #[test]
    fn a_weapon_that_gains_hits_is_named_and_no_other() {
        let weapons = SortedMap::from([
            ("pistol".to_owned(), logs(|_| 0)),
            ("rifle".to_owned(), logs(|log| u64::from(log % 10 == 0))),
        ]);
        let first_in = SortedMap::from([("rifle".to_owned(), 30)]);
        let found = most_changed(&weapons, &first_in).expect("a change");
        assert_eq!((found.weapon.as_str(), found.first_in, found.changed_logs), ("rifle", 30, 30));
        let difference = found.rate_b - found.rate_a;
        assert!((difference - 0.01).abs() < 1e-9, "{found:?}");
        assert!(found.interval[0] > 0.0 && found.interval[0] < difference && found.interval[1] > difference);
    }

    #[test]
    fn equal_sides_and_noise_name_no_weapon() {
        let equal = SortedMap::from([("rifle".to_owned(), logs(|_| 0))]);
        assert_eq!(most_changed(&equal, &SortedMap::new()), None);
        let mut noise = logs(|_| 1);
        noise.iter_mut().step_by(2).for_each(|log| log.hits[1] -= 2);
        assert_eq!(most_changed(&SortedMap::from([("rifle".to_owned(), noise)]), &SortedMap::new()), None);
        assert_eq!(most_changed(&SortedMap::new(), &SortedMap::new()), None);
    }

    #[test]
    fn a_weapon_needs_ten_logs_with_another_hit_rate() {
        let gained = |count: u64, unchanged: u64| {
            let log = |log| ShotSums { shots: [9; 2], hits: [4, 4 + u64::from(log < count)], changed: 0 };
            let weapons = SortedMap::from([("rifle".to_owned(), (0..count + unchanged).map(log).collect())]);
            most_changed(&weapons, &SortedMap::new())
        };
        assert_eq!([gained(1, 0), gained(1, 4), gained(9, 0), gained(9, 90)], [const { None }; 4]);
        assert!(gained(10, 0).is_some() && gained(10, 90).is_some());
        // A log with shots on one side has no change of the hit rate.
        let log = |log| ShotSums { shots: [9, if log == 0 { 9 } else { 0 }], hits: [4, 0], changed: 0 };
        let one_sided = SortedMap::from([("rifle".to_owned(), (0..20).map(log).collect())]);
        assert_eq!(most_changed(&one_sided, &SortedMap::new()), None);
    }

    /// If nothing changed, a weapon is named in at most 7 of 100 corpora. The interval promises 5, and 400 corpora have a
    /// standard deviation of 1.
    #[test]
    fn chance_names_a_weapon_as_rarely_as_the_interval_says() {
        let mut rng = Rng::new(Seed(3), 0);
        let mut named = 0;
        for _ in 0..400 {
            let mut corpus = SortedMap::new();
            for weapon in ["pistol", "rifle", "shotgun"] {
                let mut hits = || (0..10).filter(|_| rng.below(10) < 3).count() as u64;
                let log = |_| ShotSums { shots: [10; 2], hits: [hits(), hits()], changed: 0 };
                corpus.insert(weapon.to_owned(), (0..15).map(log).collect::<Vec<_>>());
            }
            named += u32::from(most_changed(&corpus, &SortedMap::new()).is_some());
        }
        assert!((8..=28).contains(&named), "{named} of 400");
    }
}

//! The weapon whose hit rate changed most, with a confidence interval by bootstrap over logs.

use serde::Serialize;

use hitreg_log::rng::Rng;
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::percentile;
use hitreg_log::units::Seed;

/// How often the logs are drawn again.
const RESAMPLES: usize = 1_000;
/// The least number of logs in which the hit rate of a weapon differs between the sides.
///
/// By the sign test, ten changes by chance have one sign with a probability of 0.2 %. For up to 25 weapons together, this
/// is less than 5 %. With fewer logs, percentile intervals are much too narrow (Hesterberg 2015, "What Teachers Should Know
/// About the Bootstrap").
pub(crate) const LEAST_CHANGED_LOGS: usize = 10;
/// The confidence of the interval, in percent, for all weapons together.
const CONFIDENCE: f64 = 95.0;

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
    /// How often the logs were drawn again.
    pub resamples: u64,
    /// The random seed of the draws.
    pub seed: u64,
}

/// The shots and hits of one weapon in one log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogHits {
    /// The hash of the log's path, which orders logs whatever the order of their rows is.
    pub(super) log: u64,
    pub(super) shots: [u64; 2],
    pub(super) hits: [u64; 2],
}

/// The sums of some logs.
#[derive(Clone, Copy, Default)]
struct HitSums {
    shots: [u64; 2],
    hits: [u64; 2],
}

impl HitSums {
    fn add(&mut self, log: &LogHits) {
        for side in 0..2 {
            self.shots[side] += log.shots[side];
            self.hits[side] += log.hits[side];
        }
    }

    /// The hit rate of each side; `None` if one has no shot.
    fn rates(&self) -> Option<[f64; 2]> {
        let has_shots = self.shots.iter().all(|shots| *shots > 0);
        has_shots.then(|| [0, 1].map(|side| self.hits[side] as f64 / self.shots[side] as f64))
    }
}

impl LogHits {
    /// Whether both sides have shots, and another share of them hit.
    fn has_other_rate(&self) -> bool {
        let [a, b] = [0, 1].map(|side| u128::from(self.hits[side]) * u128::from(self.shots[1 - side]));
        self.shots.iter().all(|shots| *shots > 0) && a != b
    }
}

/// The weapon whose hit rate changed most, in units of its uncertainty. `None` if no interval excludes 0. Only weapons whose
/// hit rate changed in [`LEAST_CHANGED_LOGS`] have an interval.
pub(super) fn most_changed(
    weapons: &SortedMap<String, Vec<LogHits>>,
    first_in: &SortedMap<String, u64>,
    seed: u64,
) -> Option<WeaponChange> {
    let changed_logs = first_in.values().sum();
    // The more weapons there are, the more probable it is that one changes by chance.
    let tail = (100.0 - CONFIDENCE) / 2.0 / weapons.len().max(1) as f64;
    let of_weapon = |(number, (weapon, logs)): (usize, (&String, &Vec<LogHits>))| {
        if logs.iter().filter(|log| log.has_other_rate()).count() < LEAST_CHANGED_LOGS {
            return None;
        }
        let mut logs = logs.clone();
        logs.sort_unstable();
        let sums = |logs: &mut dyn Iterator<Item = &LogHits>| {
            let mut sums = HitSums::default();
            logs.for_each(|log| sums.add(log));
            sums
        };
        let [rate_a, rate_b] = sums(&mut logs.iter()).rates()?;
        let mut rng = Rng::new(Seed(seed), number as u64);
        let differences: Vec<Option<f64>> = (0..RESAMPLES)
            .map(|_| {
                let mut draws = (0..logs.len()).map(|_| &logs[rng.below(logs.len() as u64) as usize]);
                sums(&mut draws).rates().map(|[a, b]| b - a)
            })
            .collect();
        let interval = interval_of(&differences, tail)?;
        let width = interval[1] - interval[0];
        let excludes_0 = interval[0] > 0.0 || interval[1] < 0.0;
        let change = WeaponChange {
            weapon: weapon.clone(),
            rate_a,
            rate_b,
            interval,
            first_in: first_in.get(weapon).copied().unwrap_or_default(),
            changed_logs,
            resamples: RESAMPLES as u64,
            seed,
        };
        excludes_0.then_some(((rate_b - rate_a).abs() / width.max(f64::MIN_POSITIVE), change))
    };
    let changes = weapons.iter().enumerate().filter_map(of_weapon);
    changes.max_by(|(x, _), (y, _)| x.total_cmp(y)).map(|(_, change)| change)
}

/// The interval between two percentiles of differences of hit rates, each `tail` percent from its end. A sample in which
/// one side has no shot has no difference. It counts as -1 for the low end and as 1 for the high end, and so widens the
/// interval.
fn interval_of(differences: &[Option<f64>], tail: f64) -> Option<[f64; 2]> {
    let at = |percent: f64, unknown: f64| {
        let mut sorted: Vec<f64> = differences.iter().map(|difference| difference.unwrap_or(unknown)).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        percentile(&sorted, percent)
    };
    Some([at(tail, -1.0)?, at(100.0 - tail, 1.0)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(extra: impl Fn(u64) -> u64) -> Vec<LogHits> {
        let log = |log| LogHits { log, shots: [10; 2], hits: [4 + log % 3, 4 + log % 3 + extra(log)] };
        (0..300).map(log).collect()
    }

    #[test]
    fn a_weapon_that_gains_hits_is_named_and_no_other() {
        let weapons = SortedMap::from([
            ("pistol".to_owned(), logs(|_| 0)),
            ("rifle".to_owned(), logs(|log| u64::from(log % 10 == 0))),
        ]);
        let first_in = SortedMap::from([("rifle".to_owned(), 30)]);
        let found = most_changed(&weapons, &first_in, 1).expect("a change");
        assert_eq!((found.weapon.as_str(), found.first_in, found.changed_logs), ("rifle", 30, 30));
        let difference = found.rate_b - found.rate_a;
        assert!((difference - 0.01).abs() < 1e-9, "{found:?}");
        assert!(found.interval[0] > 0.0 && found.interval[0] < difference && found.interval[1] > difference);
        assert_eq!(most_changed(&weapons, &first_in, 1), Some(found), "the seed decides the draws");
    }

    #[test]
    fn equal_sides_and_noise_name_no_weapon() {
        let equal = SortedMap::from([("rifle".to_owned(), logs(|_| 0))]);
        assert_eq!(most_changed(&equal, &SortedMap::new(), 1), None);
        let mut noise = logs(|_| 1);
        noise.iter_mut().filter(|log| log.log % 2 == 0).for_each(|log| log.hits[1] -= 2);
        assert_eq!(most_changed(&SortedMap::from([("rifle".to_owned(), noise)]), &SortedMap::new(), 1), None);
        assert_eq!(most_changed(&SortedMap::new(), &SortedMap::new(), 1), None);
    }

    #[test]
    fn a_weapon_needs_ten_logs_with_another_hit_rate() {
        let gained = |count: u64, unchanged: u64| {
            let log = |log| LogHits { log, shots: [9; 2], hits: [4, 4 + u64::from(log < count)] };
            let weapons = SortedMap::from([("rifle".to_owned(), (0..count + unchanged).map(log).collect())]);
            most_changed(&weapons, &SortedMap::new(), 1)
        };
        assert_eq!([gained(1, 0), gained(1, 4), gained(9, 0), gained(9, 90)], [const { None }; 4]);
        assert!(gained(10, 0).is_some() && gained(10, 90).is_some());
        // A log with shots on one side has no change of the hit rate.
        let log = |log| LogHits { log, shots: [9, if log == 0 { 9 } else { 0 }], hits: [4, 0] };
        let one_sided = SortedMap::from([("rifle".to_owned(), (0..20).map(log).collect())]);
        assert_eq!(most_changed(&one_sided, &SortedMap::new(), 1), None);
    }

    #[test]
    fn samples_without_shots_widen_the_interval() {
        let mut differences = vec![Some(0.1); 90];
        assert_eq!(interval_of(&differences, 2.5), Some([0.1, 0.1]));
        differences.extend([None; 10]);
        assert_eq!(interval_of(&differences, 2.5), Some([-1.0, 1.0]));
        assert_eq!(interval_of(&[], 2.5), None);
    }
}

//! The summary of any set of rows: figures, the logs that changed most with their commands, and the weapon whose hit rate
//! changed most. It does not depend on the order of the logs.

use std::cmp::Ordering;

use serde::Serialize;

use super::side::counted_values;
use super::threshold::ThresholdResult;
use super::{LogRow, ResultRow};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::stats::{CountedValues, ShareEstimate, Spread};
use hitreg_log::store::shown::shell_word;

/// The schema of the summary's JSON (`docs/schemas`).
const SCHEMA: &str = "hitreg-corpus-1";

/// The summary of the results of one command with one build and one set of options. All figures leave out logs that could
/// not be judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CorpusSummary {
    /// The schema of this JSON.
    pub schema: &'static str,
    /// `verify` or `diff`.
    pub command: String,
    /// The build that was judged.
    pub build: String,
    /// The digest of that build; empty if its files do not determine it.
    pub build_digest: String,
    /// The options that change verdicts.
    pub options: String,
    /// The logs by verdict.
    pub logs: VerdictCounts,
    /// What could not be read besides logs, one sentence each.
    pub problems: Vec<String>,
    /// The figures of side A; `None` for `verify`, which has no side A, and if no log was judged.
    pub a: Option<SideCounts>,
    /// The figures of side B.
    pub b: SideCounts,
    /// Shots with another outcome; `None` for `verify`, and if no log was judged.
    pub hits_changed: Option<u64>,
    /// Shots and impacts that a server judged on side A or B; `None` for `verify`, and if no log was judged.
    pub shots_judged: Option<u64>,
    /// View errors of both sides.
    pub view_errors: ViewErrors,
    /// The shots by weapon.
    pub weapons: Vec<ShotGroup>,
    /// The shots by the shooter's latency.
    pub latencies: Vec<ShotGroup>,
    /// The shots by the number of players.
    pub players: Vec<ShotGroup>,
    /// The shots by map.
    pub maps: Vec<ShotGroup>,
    /// The corrections by cause.
    pub causes: Vec<CorrectionCause>,
    /// The weapon whose hit rate changed most; `None` if no change is beyond chance.
    pub weapon_changed: Option<WeaponChange>,
    /// The weapons whose change was tested: their hit rates changed in enough logs.
    pub weapons_tested: u64,
    /// The logs with the same bytes as another, which do not count in these tests.
    pub copies: u64,
    /// The logs that changed most.
    pub worst: Vec<WorstLog>,
    /// The first logs that could not be judged.
    pub unjudged: Vec<UnjudgedLog>,
    /// The results of thresholds.
    pub thresholds: Vec<ThresholdResult>,
}

/// How many logs have each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerdictCounts {
    /// All logs.
    pub total: u64,
    /// Logs that are the same.
    pub same: u64,
    /// Logs with a new golden.
    pub accepted: u64,
    /// Logs that differ.
    pub differs: u64,
    /// Logs that cannot be judged.
    pub untestable: u64,
    /// Logs that cannot be read.
    pub broken: u64,
}

/// The figures of one side. A count leaves out logs for which it is not known, and is null if no log is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SideCounts {
    /// Client frames.
    pub usercmds: u64,
    /// Shots.
    pub shots: Option<u64>,
    /// Hits.
    pub hits: Option<u64>,
    /// Corrections.
    pub corrections: Option<u64>,
    /// The client frames of the logs whose corrections are known.
    pub usercmds_of_corrections: u64,
}

/// The view errors of all shots, in units. Values are rounded to three digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ViewErrors {
    /// Side A.
    pub a: Option<Spread>,
    /// Side B.
    pub b: Option<Spread>,
}

/// The shots of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShotGroup {
    /// The group.
    pub name: String,
    /// Shots on side A; null without a side A.
    pub shots_a: Option<u64>,
    /// Shots on side B.
    pub shots_b: u64,
    /// Hits on side A; null without a side A.
    pub hits_a: Option<u64>,
    /// Hits on side B.
    pub hits_b: u64,
    /// Shots with another outcome; null without a side A.
    pub changed: Option<u64>,
}

impl ShotGroup {
    /// Whether a side has shots.
    pub(crate) fn has_shots(&self) -> bool {
        self.shots_a > Some(0) || self.shots_b > 0
    }
}

/// The corrections of one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CorrectionCause {
    /// The cause.
    pub cause: String,
    /// Corrections on side A.
    pub a: u64,
    /// Corrections on side B.
    pub b: u64,
}

/// A log that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorstLog {
    /// The path.
    pub log: String,
    /// Shots with another outcome; null without a side A.
    pub hits_changed: Option<u64>,
    /// The change in the number of corrections; null if a side does not know them.
    pub corrections_changed: Option<i64>,
    /// The tick of the first difference.
    pub tick: Option<i64>,
    /// The table and the column of the first difference, joined by a dot.
    pub field: String,
    /// The command that explains the difference.
    pub next: String,
    /// The command that writes the report page of the log, up to `-o FILE`.
    pub report: String,
    /// The name of that page's file, which no other log here has.
    pub page: String,
}

/// A log that could not be judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UnjudgedLog {
    /// The path.
    pub log: String,
    /// `untestable` or `broken`.
    pub verdict: String,
    /// The reason.
    pub detail: String,
    /// The command that shows how the build plays the log; empty if no build has failed.
    pub next: String,
}

/// How many logs the lists of a summary have.
const LISTED_LOGS: usize = 10;

/// Accumulates the rows of logs.
#[derive(Debug, Default)]
pub struct CorpusSummaryBuilder {
    summary: CorpusSummary,
    weapons: SortedMap<String, ShotSums>,
    latencies: SortedMap<Option<super::LatencyBand>, ShotSums>,
    players: SortedMap<u64, ShotSums>,
    maps: SortedMap<String, ShotSums>,
    /// The corrections of both sides by cause.
    causes: SortedMap<String, [u64; 2]>,
    view_errors: [CountedValues; 2],
    /// The shots of each weapon, log by log, without copies of logs.
    hits: SortedMap<String, Vec<ShotSums>>,
    /// The digests of the logs.
    digests: SortedSet<String>,
    first_in: SortedMap<String, u64>,
}

impl CorpusSummaryBuilder {
    /// Adds a problem besides the logs.
    pub fn add_problem(&mut self, problem: String) {
        self.summary.problems.push(problem);
    }

    /// Adds the rows of one log.
    pub fn add(&mut self, rows: &[ResultRow]) {
        let Some(log) = rows.iter().find_map(|row| if let ResultRow::Log(log) = row { Some(log) } else { None }) else {
            return;
        };
        let is_judged = log.verdict != "broken" && log.verdict != "untestable";
        let summary = &mut self.summary;
        (summary.command, summary.build) = (log.command.clone(), log.build.clone());
        (summary.build_digest, summary.options) = (log.build_digest.clone(), log.options.clone());
        summary.logs.add(&log.verdict);
        if !is_judged {
            let [name, verdict, detail, next] = [&log.log, &log.verdict, &log.detail, &log.next].map(String::clone);
            let unjudged = UnjudgedLog { log: name, verdict, detail, next };
            keep_first(&mut self.summary.unjudged, unjudged, |log| (log.verdict != "broken", log.log.clone()));
            return;
        }
        self.add_figures(log);
        let mut of_weapons: SortedMap<&String, ShotSums> = SortedMap::new();
        for row in rows {
            match row {
                ResultRow::Weapon(row) => {
                    let shots = ShotSums {
                        shots: [row.shots_a, row.shots_b],
                        hits: [row.hits_a, row.hits_b],
                        changed: row.changed,
                    };
                    self.weapons.entry(row.weapon.clone()).or_default().add(&shots);
                    self.latencies.entry(row.latency_ms).or_default().add(&shots);
                    of_weapons.entry(&row.weapon).or_default().add(&shots);
                }
                ResultRow::Cause(row) => {
                    let [a, b] = self.causes.entry(row.cause.clone()).or_default();
                    *a += row.corrections_a;
                    *b += row.corrections_b;
                }
                ResultRow::Log(_) | ResultRow::Shot(_) | ResultRow::Miss(_) => {}
            }
        }
        // A copy is no other evidence.
        if !log.log_digest.is_empty() && !self.digests.insert(log.log_digest.clone()) {
            self.summary.copies += 1;
            return;
        }
        for (weapon, hits) in of_weapons {
            self.hits.entry(weapon.clone()).or_default().push(hits);
        }
    }

    /// Adds the figures of a log that was judged.
    fn add_figures(&mut self, log: &LogRow) {
        let summary = &mut self.summary;
        summary.b.add(log.usercmds, [log.shots_b, log.hits_b, log.corrections_b]);
        if let Some(usercmds) = log.usercmds_a {
            let counts = [log.shots_a, log.hits_a, log.corrections_a];
            summary.a.get_or_insert_default().add(usercmds, counts);
        }
        for (sum, of_log) in
            [(&mut summary.hits_changed, log.hits_changed), (&mut summary.shots_judged, log.shots_judged)]
        {
            if let Some(count) = of_log {
                *sum.get_or_insert(0) += count;
            }
        }
        for (side, text) in [&log.view_errors_a, &log.view_errors_b].into_iter().enumerate() {
            self.view_errors[side].add_counted(counted_values(text));
        }
        let shots = ShotSums {
            shots: [log.shots_a, log.shots_b].map(Option::unwrap_or_default),
            hits: [log.hits_a, log.hits_b].map(Option::unwrap_or_default),
            changed: log.hits_changed.unwrap_or_default(),
        };
        self.players.entry(log.players).or_default().add(&shots);
        self.maps.entry(log.map.clone()).or_default().add(&shots);
        if !log.first_weapon.is_empty() {
            *self.first_in.entry(log.first_weapon.clone()).or_default() += 1;
        }
        if log.verdict == "differs" {
            let parts = [&log.table, &log.field].into_iter().filter(|part| !part.is_empty()).cloned();
            let worst = WorstLog {
                log: log.log.clone(),
                hits_changed: log.hits_changed,
                corrections_changed: log.corrections_a.zip(log.corrections_b).map(|(a, b)| b as i64 - a as i64),
                tick: log.tick,
                field: parts.collect::<Vec<String>>().join("."),
                next: log.next.clone(),
                report: report_command(log),
                page: String::new(),
            };
            let rank = |log: &WorstLog| {
                let most_first = |number: u64| u64::MAX - number;
                let corrections = log.corrections_changed.map_or(0, i64::unsigned_abs);
                (most_first(log.hits_changed.unwrap_or_default()), most_first(corrections), log.log.clone())
            };
            keep_first(&mut self.summary.worst, worst, rank);
        }
    }

    /// The summary of all logs.
    pub fn summary(mut self) -> CorpusSummary {
        let pages = page_names(self.summary.worst.iter().map(|log| log.log.as_str()));
        self.summary.worst.iter_mut().zip(pages).for_each(|(log, page)| log.page = page);
        let has_a = self.summary.a.is_some();
        let named = |(name, sums): (String, ShotSums)| {
            let ShotSums { shots: [shots_a, shots_b], hits: [hits_a, hits_b], changed } = sums;
            let [shots_a, hits_a, changed] = [shots_a, hits_a, changed].map(|count| has_a.then_some(count));
            ShotGroup { name, shots_a, shots_b, hits_a, hits_b, changed }
        };
        let changes = self.summary.a.map_or_else(Vec::new, |_| weapon_changes(&self.hits, &self.first_in));
        let [a, b] = [0, 1].map(|side| self.view_errors[side].spread());
        let latency = |band: Option<super::LatencyBand>| band.map_or("unknown".to_owned(), |band| band.to_string());
        CorpusSummary {
            schema: SCHEMA,
            view_errors: ViewErrors { a, b },
            weapons_tested: changes.len() as u64,
            weapon_changed: most_changed(changes),
            weapons: self.weapons.into_iter().map(named).collect(),
            latencies: self.latencies.into_iter().map(|(band, sums)| named((latency(band), sums))).collect(),
            players: self.players.into_iter().map(|(players, sums)| named((players.to_string(), sums))).collect(),
            maps: self.maps.into_iter().map(named).collect(),
            causes: self.causes.into_iter().map(|(cause, [a, b])| CorrectionCause { cause, a, b }).collect(),
            ..self.summary
        }
    }
}

/// Inserts an item into a sorted list of at most [`LISTED_LOGS`].
fn keep_first<T, K: Ord>(list: &mut Vec<T>, item: T, rank: impl Fn(&T) -> K) {
    let of_item = rank(&item);
    let place = list.partition_point(|known| rank(known) <= of_item);
    if place < LISTED_LOGS {
        list.insert(place, item);
        list.truncate(LISTED_LOGS);
    }
}

impl VerdictCounts {
    fn add(&mut self, verdict: &str) {
        self.total += 1;
        let count = match verdict {
            "same" => &mut self.same,
            "accepted" => &mut self.accepted,
            "differs" => &mut self.differs,
            "untestable" => &mut self.untestable,
            _ => &mut self.broken,
        };
        *count += 1;
    }
}

impl SideCounts {
    /// Adds the counts of a log: usercmds; shots, hits and corrections.
    fn add(&mut self, usercmds: u64, counts: [Option<u64>; 3]) {
        self.usercmds += usercmds;
        if counts[2].is_some() {
            self.usercmds_of_corrections += usercmds;
        }
        for (sum, count) in [&mut self.shots, &mut self.hits, &mut self.corrections].into_iter().zip(counts) {
            if let Some(count) = count {
                *sum.get_or_insert(0) += count;
            }
        }
    }

    /// The hits of all shots, as a part and a whole.
    pub(crate) fn hit_share(&self) -> Option<(u64, u64)> {
        self.hits.zip(self.shots)
    }

    /// The corrections of the usercmds of logs that know them, as a part and a whole.
    pub(crate) fn correction_share(&self) -> Option<(u64, u64)> {
        self.corrections.map(|corrections| (corrections, self.usercmds_of_corrections))
    }
}

/// A command line as a shell takes it back.
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The command that writes the report page of a log that differs, up to `-o FILE`: both sides of `diff`, or the replay
/// that `verify` judged.
fn report_command(log: &LogRow) -> String {
    let (program, arguments) = split_program(&log.next);
    if log.command == "diff" {
        let arguments = arguments.split(" --why ").next().unwrap_or_default();
        return format!("{program}{}", arguments.replacen(" diff ", " report ", 1));
    }
    let program = if program.is_empty() { "hitreg" } else { program };
    let words = ["report", &log.log].map(str::to_owned).into_iter();
    let build = (log.build != THIS_BUILD).then(|| ["--b".to_owned(), log.build.clone(), NO_CACHE.to_owned()]);
    let limit = log.options.split(' ').skip_while(|word| *word != "--time-limit").take(2).map(str::to_owned);
    let words: Vec<String> = words.chain(build.into_iter().flatten()).chain(limit).collect();
    format!("{program} {}", command_line(&words))
}

/// Splits a command line after its first word, which may be quoted.
fn split_program(line: &str) -> (&str, &str) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = line.find(|letter| {
        let was_escaped = is_escaped;
        is_escaped = letter == '\\' && !is_quoted && !was_escaped;
        is_quoted ^= letter == '\'' && !was_escaped;
        letter == ' ' && !is_quoted && !was_escaped
    });
    line.split_at(end.unwrap_or(line.len()))
}

/// The option with which every build runs again. `verify` never takes the trace of a build from the cache, so its report
/// page does not either.
pub const NO_CACHE: &str = "--no-cache";

/// The name of the program that judged, as a build.
pub const THIS_BUILD: &str = "this build";

/// A name for the report page of each log, from the names of the logs.
fn page_names<'a>(logs: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for log in logs {
        let name = log.rsplit(['/', '\\']).next().unwrap_or(log);
        let name = name.strip_suffix(".hitlog").unwrap_or(name);
        let numbered = (1..).map(|number| match number {
            1 => format!("{name}.html"),
            number => format!("{name}-{number}.html"),
        });
        names.extend(numbered.into_iter().find(|name| !names.contains(name)));
    }
    names
}

/// The least number of logs in which the hit rate of a weapon differs between the sides.
pub(crate) const CHANGED_LOGS_MIN: usize = 10;
/// The probability beyond the ends of the interval, and of the signs, for all weapons together.
const ERROR: f64 = 0.05;

/// A weapon that was tested.
struct TestedWeapon {
    change: WeaponChange,
    /// The probability that the signs of its changes are at least as unequal by chance.
    by_chance: f64,
}

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
struct ShotSums {
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

    /// How the hit rate of side B compares with that of side A; `None` if a side has no shots.
    fn rate_order(&self) -> Option<Ordering> {
        let [a, b] = [0, 1].map(|side| u128::from(self.hits[side]) * u128::from(self.shots[1 - side]));
        self.shots.iter().all(|shots| *shots > 0).then(|| b.cmp(&a))
    }
}

/// The changes of the weapons whose hit rate changed in [`CHANGED_LOGS_MIN`]: others have no interval. Logs without a
/// change tell nothing of the size of changes, so the degrees of freedom are those of the changed logs.
fn weapon_changes(weapons: &SortedMap<String, Vec<ShotSums>>, first_in: &SortedMap<String, u64>) -> Vec<TestedWeapon> {
    let changed_logs = first_in.values().sum();
    // The more weapons there are, the more probable it is that one changes by chance.
    let tail = ERROR / 2.0 / weapons.len().max(1) as f64;
    let of_weapon = |(weapon, logs): (&String, &Vec<ShotSums>)| {
        let count = |order| logs.iter().filter(|log| log.rate_order() == Some(order)).count();
        let (less, more) = (count(Ordering::Less), count(Ordering::Greater));
        let changed = less + more;
        if changed < CHANGED_LOGS_MIN {
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
        let change = WeaponChange {
            weapon: weapon.clone(),
            rate_a: rate_a.share,
            rate_b: rate_b.share,
            interval: [change.share - half, change.share + half],
            first_in: first_in.get(weapon).copied().unwrap_or_default(),
            changed_logs,
        };
        Some(TestedWeapon { change, by_chance: sign_test([less, more]) * weapons.len() as f64 })
    };
    weapons.iter().filter_map(of_weapon).collect()
}

/// The probability that coins show heads and tails at least as unequally as these counts: the sign test of both sides.
fn sign_test(counts: [usize; 2]) -> f64 {
    let (least, all) = (counts[0].min(counts[1]), counts[0] + counts[1]);
    // The logarithm of the probability of `heads` heads, from that of one less.
    let mut log = -(all as f64) * std::f64::consts::LN_2;
    let mut sum = libm::exp(log);
    for heads in 1..=least {
        log += libm::log((all - heads + 1) as f64 / heads as f64);
        sum += libm::exp(log);
    }
    (2.0 * sum).min(1.0)
}

/// The weapon whose hit rate changed most, in units of its uncertainty. `None` if chance explains all changes: an interval
/// must exclude 0, and the signs must be unequal enough. Few changes of one size make the interval too narrow; the signs
/// have an exact probability.
fn most_changed(tested: Vec<TestedWeapon>) -> Option<WeaponChange> {
    let size = |change: &WeaponChange| {
        let [low, high] = change.interval;
        (low + high).abs() / (high - low)
    };
    let unequal = tested.into_iter().filter(|tested| tested.by_chance <= ERROR).map(|tested| tested.change);
    let certain = unequal.filter(|change| change.interval[0] > 0.0 || change.interval[1] < 0.0);
    certain.max_by(|x, y| size(x).total_cmp(&size(y)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::WeaponRow;
    use hitreg_log::rng::Rng;
    use hitreg_log::units::Seed;

    fn rows(number: u64) -> Vec<ResultRow> {
        let key = number.to_string();
        let verdicts = [("same", "0:1 2.5:2"), ("differs", "0:1 2.5:2"), ("untestable", "9:1"), ("broken", "9:1")];
        let (verdict, view_errors) = verdicts[number as usize % 4];
        let weapon =
            WeaponRow { key: key.clone(), weapon: "rifle".into(), shots_a: 5, shots_b: 5, ..WeaponRow::default() };
        let log = LogRow {
            key,
            log: format!("{number}.hitlog"),
            verdict: verdict.to_owned(),
            players: 4,
            usercmds_a: Some(10),
            shots_a: Some(5),
            hits_a: Some(1),
            corrections_a: Some(3),
            hits_changed: Some(number),
            view_errors_b: view_errors.to_owned(),
            ..LogRow::default()
        };
        vec![ResultRow::Weapon(weapon), ResultRow::Log(Box::new(log))]
    }

    #[test]
    fn the_order_of_logs_does_not_matter() {
        let of = |numbers: &mut dyn Iterator<Item = u64>| {
            let mut builder = CorpusSummaryBuilder::default();
            numbers.for_each(|number| builder.add(&rows(number)));
            builder.summary()
        };
        let (there, back) = (of(&mut (0..100)), of(&mut (0..100).rev()));
        assert_eq!(there, back);
        assert_eq!((there.logs.total, there.logs.differs, there.worst.len()), (100, 25, LISTED_LOGS));
        assert_eq!((there.worst[0].log.as_str(), there.worst[0].hits_changed), ("97.hitlog", Some(97)));
        assert!(there.unjudged.iter().all(|log| log.verdict == "broken"), "broken logs come first");
        assert_eq!(there.view_errors.b.map(|spread| (spread.p50, spread.max)), Some((2.5, 2.5)));
    }

    #[test]
    fn totals_and_groups_count_the_same_logs() {
        let mut builder = CorpusSummaryBuilder::default();
        (0..100).for_each(|number| builder.add(&rows(number)));
        let summary = builder.summary();
        // 25 logs are the same, and 25 differ. The others could not be judged.
        let shots = |groups: &[ShotGroup]| groups.iter().filter_map(|group| group.shots_a).sum::<u64>();
        let groups = [&summary.weapons, &summary.latencies, &summary.players, &summary.maps];
        assert_eq!(groups.map(|groups| shots(groups)), [50 * 5; 4]);
        assert_eq!(summary.a.map(|a| (a.shots, a.hits, a.corrections)), Some((Some(50 * 5), Some(50), Some(50 * 3))));
        assert_eq!(summary.view_errors.b.map(|spread| spread.max), Some(2.5));
        assert_eq!(summary.hits_changed, Some((0..100).filter(|number| number % 4 < 2).sum()));
    }

    /// A replay counts on side A even if it knows neither shots nor corrections. A recording does not, even if it knows some.
    #[test]
    fn side_a_counts_all_replays_and_no_recording() {
        let side_a = |of_logs: &[(Option<u64>, Option<u64>)]| {
            let mut builder = CorpusSummaryBuilder::default();
            for (usercmds_a, corrections_a) in of_logs {
                let (verdict, usercmds_a, corrections_a) = ("same".to_owned(), *usercmds_a, *corrections_a);
                let row = LogRow { verdict, usercmds_a, corrections_a, ..LogRow::default() };
                builder.add(&[ResultRow::Log(Box::new(row))]);
            }
            builder.summary().a.map(|a| (a.usercmds, a.corrections, a.usercmds_of_corrections))
        };
        assert_eq!(side_a(&[(Some(10), Some(1)), (Some(90), None)]), Some((100, Some(1), 10)));
        assert_eq!(side_a(&[(Some(90), None)]), Some((90, None, 0)));
        assert_eq!(side_a(&[(None, Some(0))]), None);
    }

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let words = ["hitreg", "diff", "a b.hitlog", "--b-set", "x=1", "it's"].map(str::to_owned);
        assert_eq!(command_line(&words), "hitreg diff 'a b.hitlog' --b-set x=1 'it'\\''s'");
    }

    #[test]
    fn each_differing_log_has_a_report() {
        let of = |command: &str, next: &str, build: &str| {
            let [command, next, build] = [command, next, build].map(str::to_owned);
            report_command(&LogRow { log: "a b.hitlog".to_owned(), command, next, build, ..LogRow::default() })
        };
        let diff = of("diff", "hitreg diff 'a b.hitlog' --b ./game --why 'p1#3'", "./game");
        assert_eq!(diff, "hitreg report 'a b.hitlog' --b ./game");
        assert_eq!(of("verify", "hitreg bisect ticks a b.hitlog", THIS_BUILD), "hitreg report 'a b.hitlog'");
        assert_eq!(of("verify", "", "my game"), "hitreg report 'a b.hitlog' --b 'my game' --no-cache");
        let program = r"'/my games/it'\''s diff a'";
        assert_eq!(of("diff", &format!("{program} diff a --why 1"), "x"), format!("{program} report a"));
        let verified = of("verify", &format!("{program} verify a"), THIS_BUILD);
        assert_eq!(verified, format!("{program} report 'a b.hitlog'"));
        let slow = LogRow {
            log: "a.hitlog".to_owned(),
            command: "verify".to_owned(),
            build: "g".to_owned(),
            options: "--require-golden --time-limit 600".to_owned(),
            ..LogRow::default()
        };
        assert_eq!(report_command(&slow), "hitreg report a.hitlog --b g --no-cache --time-limit 600");
        let names = page_names(["day/a.hitlog", "night/a.hitlog", "a-2.hitlog", "c"].into_iter());
        assert_eq!(names, ["a.html", "a-2.html", "a-2-2.html", "c.html"]);
    }

    /// Changes of one size give a narrow interval. Nine of ten signs are alike by chance in 2 % of cases, so one of ten
    /// weapons has such signs in 20 % of corpora.
    #[test]
    fn a_few_signs_are_no_evidence_among_many_weapons() {
        let named = |weapons: u64, up: u64| {
            let log = |log, up| ShotSums { shots: [20; 2], hits: [8, if log < up { 9 } else { 7 }], changed: 1 };
            let logs = |weapon| (0..10).map(|number| log(number, if weapon == 0 { up } else { 5 })).collect();
            let weapons = (0..weapons).map(|weapon| (weapon.to_string(), logs(weapon))).collect();
            most_changed(weapon_changes(&weapons, &SortedMap::new())).is_some()
        };
        assert_eq!([named(1, 9), named(2, 9), named(3, 9), named(10, 9)], [true, true, false, false]);
        assert_eq!([named(10, 10), named(25, 10), named(26, 10)], [true, true, false]);
    }

    #[test]
    fn signs_have_the_probabilities_of_coins() {
        assert_eq!([sign_test([0, 0]), sign_test([3, 3]), sign_test([1, 0])], [1.0; 3]);
        assert!((sign_test([0, 10]) - 2.0 / 1024.0).abs() < 1e-12);
        assert!((sign_test([9, 1]) - 22.0 / 1024.0).abs() < 1e-12);
        // By the normal approximation with continuity correction: 99 steps of 3,000 coins' standard deviation.
        assert!((sign_test([1_450, 1_550]) - 0.0707).abs() < 0.0005);
    }

    /// Twelve copies of one log are one log.
    #[test]
    fn copies_of_a_log_are_no_other_evidence() {
        let summary = |digest: fn(u64) -> String| {
            let mut builder = CorpusSummaryBuilder::default();
            for number in 0..12 {
                let weapon =
                    WeaponRow { weapon: "rifle".into(), shots_a: 9, shots_b: 9, hits_a: 4, ..WeaponRow::default() };
                let log = LogRow {
                    verdict: "differs".to_owned(),
                    log_digest: digest(number),
                    usercmds_a: Some(1),
                    ..LogRow::default()
                };
                builder.add(&[ResultRow::Weapon(weapon), ResultRow::Log(Box::new(log))]);
            }
            builder.summary()
        };
        let (apart, alike) = (summary(|number| number.to_string()), summary(|_| "a".to_owned()));
        assert_eq!((apart.copies, apart.weapons_tested, apart.weapon_changed.is_some()), (0, 1, true));
        assert_eq!((alike.copies, alike.weapons_tested, alike.weapon_changed), (11, 0, None));
        assert_eq!(alike.weapons[0].shots_a, Some(12 * 9), "all logs count in the figures");
    }

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
        let found = most_changed(weapon_changes(&weapons, &first_in)).expect("a change");
        assert_eq!((found.weapon.as_str(), found.first_in, found.changed_logs), ("rifle", 30, 30));
        let difference = found.rate_b - found.rate_a;
        assert!((difference - 0.01).abs() < 1e-9, "{found:?}");
        assert!(found.interval[0] > 0.0 && found.interval[0] < difference && found.interval[1] > difference);
    }

    #[test]
    fn equal_sides_and_noise_name_no_weapon() {
        let equal = SortedMap::from([("rifle".to_owned(), logs(|_| 0))]);
        assert_eq!(most_changed(weapon_changes(&equal, &SortedMap::new())), None);
        let mut noise = logs(|_| 1);
        noise.iter_mut().step_by(2).for_each(|log| log.hits[1] -= 2);
        let noise = SortedMap::from([("rifle".to_owned(), noise)]);
        assert_eq!(most_changed(weapon_changes(&noise, &SortedMap::new())), None);
        assert_eq!(most_changed(weapon_changes(&SortedMap::new(), &SortedMap::new())), None);
    }

    #[test]
    fn a_weapon_is_tested_with_ten_logs_of_another_hit_rate() {
        let gained = |count: u64, unchanged: u64| {
            let log = |log| ShotSums { shots: [9; 2], hits: [4, 4 + u64::from(log < count)], changed: 0 };
            let weapons = SortedMap::from([("rifle".to_owned(), (0..count + unchanged).map(log).collect())]);
            let changes = weapon_changes(&weapons, &SortedMap::new());
            (changes.len(), most_changed(changes).is_some())
        };
        assert_eq!([gained(1, 0), gained(1, 4), gained(9, 0), gained(9, 90)], [(0, false); 4]);
        assert_eq!([gained(10, 0), gained(10, 90)], [(1, true); 2]);
        // A log with shots on one side has no change of the hit rate.
        let log = |log| ShotSums { shots: [9, if log == 0 { 9 } else { 0 }], hits: [4, 0], changed: 0 };
        let one_sided = SortedMap::from([("rifle".to_owned(), (0..20).map(log).collect())]);
        assert_eq!(most_changed(weapon_changes(&one_sided, &SortedMap::new())), None);
    }

    /// If nothing changed, a weapon is named in at most 5 of 100 corpora.
    #[test]
    fn chance_names_a_weapon_as_rarely_as_promised() {
        let mut rng = Rng::new(Seed(3), 0);
        let mut named = 0;
        for _ in 0..400 {
            let mut corpus = SortedMap::new();
            for weapon in ["pistol", "rifle", "shotgun"] {
                let mut hits = || (0..10).filter(|_| rng.below(10) < 3).count() as u64;
                let log = |_| ShotSums { shots: [10; 2], hits: [hits(), hits()], changed: 0 };
                corpus.insert(weapon.to_owned(), (0..15).map(log).collect::<Vec<_>>());
            }
            named += u32::from(most_changed(weapon_changes(&corpus, &SortedMap::new())).is_some());
        }
        assert!((1..=20).contains(&named), "{named} of 400");
    }
}

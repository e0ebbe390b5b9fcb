//! Results of a corpus: rows of `verify` and `diff` over many logs, their summary, and thresholds for it.
//!
//! Rows are lines of JSON, and rows of several runs concatenate. [`CorpusSummary`] has the figures of any set of rows.

mod side;
mod summary;
mod threshold;

use std::fmt::{Display, Formatter};

use serde::{Deserialize, Serialize};

pub use side::{SideFigures, compared_rows};
pub(crate) use side::{paired, three_digits};
pub(crate) use summary::CHANGED_LOGS_MIN;
pub use summary::{
    CorpusSummary, CorpusSummaryBuilder, CorrectionCause, NO_CACHE, ShotGroup, SideCounts, THIS_BUILD, UnjudgedLog,
    VerdictCounts, ViewErrors, WeaponChange, WorstLog, command_line,
};
pub use threshold::{MeasuredFigures, Threshold, ThresholdError, ThresholdFigure, ThresholdResult};

/// The version of result rows, in the field `v` of every row.
pub const RESULTS_VERSION: u32 = 1;

/// A row of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "row")]
pub enum ResultRow {
    /// The verdict on one log. It follows the other rows of its log, and completes them.
    Log(Box<LogRow>),
    /// The shots of one weapon in one log, by shooters of one latency band.
    Weapon(WeaponRow),
    /// The corrections of one cause in one log.
    Cause(CauseRow),
    /// A shot with another outcome: hit or miss, target, or wound.
    Shot(Box<ShotRow>),
    /// A shot that hits on neither side, for another reason or on one side only.
    Miss(Box<ShotRow>),
}

/// The verdict on one log, with its figures. Side A is the first side of `diff`; `verify` measures only side B, the
/// replay. A figure that was not measured is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    /// The digest of log, build and options: what the verdict depends on.
    pub key: String,
    /// The path of the log.
    pub log: String,
    /// The absolute path of the log, with links resolved; empty without kept results. It identifies the log.
    pub absolute_path: String,
    /// When the verdict was reached, or reused by a later run, in milliseconds since 1970 (UTC).
    pub judged_at_ms: u64,
    /// Whether later runs may reuse the verdict.
    pub is_reusable: bool,
    /// The digest of the log's bytes.
    pub log_digest: String,
    /// The command that judged the log: `verify` or `diff`.
    pub command: String,
    /// The build that was judged.
    pub build: String,
    /// The digest of that build; empty if its files do not determine it.
    pub build_digest: String,
    /// The options that change verdicts, as on the command line.
    pub options: String,
    /// The game.
    pub game: String,
    /// The map.
    pub map: String,
    /// The preset; empty if the log names none.
    pub preset: String,
    /// The number of players.
    pub players: u64,
    /// `same`, `accepted`, `untestable`, `differs` or `broken`.
    pub verdict: String,
    /// The kind of reason of `verify`, as in its JSON (`docs/commands.md`).
    pub why: String,
    /// The reason for the verdict, for people.
    pub detail: String,
    /// The tick of the first difference.
    pub tick: Option<i64>,
    /// The table of the first difference.
    pub table: String,
    /// The column of the first difference.
    pub field: String,
    /// The command that explains the difference.
    pub next: String,
    /// The weapon of the first changed shot.
    pub first_weapon: String,
    /// Server ticks.
    pub ticks: u64,
    /// Client frames on side A; null without a replay as side A.
    pub usercmds_a: Option<u64>,
    /// Client frames on side B.
    pub usercmds: u64,
    /// Shots on side A; null if it has no table of them, or no server that judged them.
    pub shots_a: Option<u64>,
    /// Shots on side B; null if it has no table of them, or no server that judged them.
    pub shots_b: Option<u64>,
    /// Hits on side A; null if `shots_a` is.
    pub hits_a: Option<u64>,
    /// Hits on side B; null if `shots_b` is.
    pub hits_b: Option<u64>,
    /// Shots with another outcome: hit or miss, target, or wound.
    pub hits_changed: Option<u64>,
    /// Shots and impacts that a server judged on side A or B.
    pub shots_judged: Option<u64>,
    /// Corrections on side A; null if it has no table of them, or compared no ack because a side of the session is missing.
    pub corrections_a: Option<u64>,
    /// Corrections on side B; null in the same cases.
    pub corrections_b: Option<u64>,
    /// The 95th percentile of the view error on side A, in units.
    pub view_error_p95_a: Option<f32>,
    /// The 95th percentile of the view error on side B, in units.
    pub view_error_p95_b: Option<f32>,
    /// All view errors on side A: `UNITS:SHOTS`, separated by spaces, rounded to three digits.
    pub view_errors_a: String,
    /// All view errors on side B, in the same form.
    pub view_errors_b: String,
    /// The digest of the replay's trace; null for `diff`, and without a replay of the whole log.
    pub trace_digest: Option<String>,
    /// Client frames with input, on side B.
    pub active_usercmds: u64,
    /// Tick hashes in the log.
    pub hashes_recorded: u64,
    /// Recorded tick hashes that `verify` compared.
    pub hashes_compared: u64,
    /// Rollback checks of `verify`.
    pub rollbacks: u32,
    /// Legs between keyframes, if `verify` replayed the log in legs.
    pub legs: Option<u64>,
    /// Keyframes that the legs were compared with.
    pub keyframes: Option<u64>,
    /// What `verify` did with the golden, as in its JSON; empty for `diff`.
    pub golden: String,
}

/// The shots of one weapon in one log, by shooters of one latency band.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WeaponRow {
    /// The key of the log's row.
    pub key: String,
    /// The weapon; empty if the game names none.
    pub weapon: String,
    /// The shooters' latency band; null if it is unknown.
    pub latency_ms: Option<LatencyBand>,
    /// Shots on side A.
    pub shots_a: u64,
    /// Shots on side B.
    pub shots_b: u64,
    /// Hits on side A.
    pub hits_a: u64,
    /// Hits on side B.
    pub hits_b: u64,
    /// Damage on side A, in health points.
    pub damage_a: u64,
    /// Damage on side B, in health points.
    pub damage_b: u64,
    /// Shots with another outcome.
    pub changed: u64,
}

/// The corrections of one cause in one log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CauseRow {
    /// The key of the log's row.
    pub key: String,
    /// The cause.
    pub cause: String,
    /// Corrections on side A.
    pub corrections_a: u64,
    /// Corrections on side B.
    pub corrections_b: u64,
}

/// A shot whose result differs between the sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShotRow {
    /// The key of the log's row.
    pub key: String,
    /// The path of the log.
    pub log: String,
    /// The tick of the judgement; the earlier one if the sides differ.
    pub tick: Option<i64>,
    /// The player who shot.
    pub shooter: u32,
    /// The usercmd that fired.
    pub usercmd: u32,
    /// The shot's index within that usercmd.
    pub index: u32,
    /// The weapon.
    pub weapon: String,
    /// The shooter's latency band; null if it is unknown.
    pub latency_ms: Option<LatencyBand>,
    /// The number of players in the session.
    pub players: u64,
    /// `only_a`, `only_b`, `other_target` or `other_wound`; `other_reason` in a `miss`.
    pub change: String,
    /// The result on side A; empty if the shot was not fired there.
    pub result_a: String,
    /// The result on side B; empty if the shot was not fired there.
    pub result_b: String,
    /// The target on side A.
    pub target_a: String,
    /// The target on side B.
    pub target_b: String,
    /// The command that explains the shot.
    pub next: String,
}

/// A line of results.
#[derive(Serialize, Deserialize)]
struct ResultLine<R> {
    v: u32,
    #[serde(flatten)]
    row: R,
}

/// Writes a row as a line of JSON, with the line's end.
pub fn write_row(row: &ResultRow) -> String {
    let line = serde_json::to_string(&ResultLine { v: RESULTS_VERSION, row });
    // Rows have no maps with other keys than strings, and no errors of their own.
    line.unwrap_or_default() + "\n"
}

/// Reads a row from a line of JSON.
///
/// # Errors
/// When the line is not a row of this version.
pub fn read_row(line: &str) -> Result<ResultRow, String> {
    let no_row = |error: serde_json::Error| {
        let text = error.to_string();
        // The caller names the line, and the parser sees only this one.
        let what = text.split_once(" at line ").map_or(&*text, |(what, _)| what);
        format!("it is no row of results ({what}): delete this line, and run the logs again")
    };
    #[derive(Deserialize)]
    struct Version {
        v: u64,
    }
    let known = format!("{{\"v\":{RESULTS_VERSION},");
    if !line.starts_with(&known) {
        let Version { v } = serde_json::from_str(line).map_err(no_row)?;
        if v != u64::from(RESULTS_VERSION) {
            return Err(format!(
                "it is of version {v}, and this build reads version {RESULTS_VERSION}: run the logs again with this build"
            ));
        }
    }
    Ok(serde_json::from_str::<ResultLine<ResultRow>>(line).map_err(no_row)?.row)
}

/// The name of a verdict, reason or change, as in JSON.
pub fn name_of(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

impl ResultRow {
    /// The key of the log's row.
    pub fn key(&self) -> &str {
        match self {
            ResultRow::Log(row) => &row.key,
            ResultRow::Weapon(row) => &row.key,
            ResultRow::Cause(row) => &row.key,
            ResultRow::Shot(row) | ResultRow::Miss(row) => &row.key,
        }
    }
}

/// A row of each kind in which every figure is measured, for the columns and types of all rows.
pub fn sample_rows() -> [ResultRow; 5] {
    let (count, part) = (Some(0), Some(0.5));
    let log = LogRow {
        tick: Some(0),
        usercmds_a: count,
        shots_a: count,
        shots_b: count,
        hits_a: count,
        hits_b: count,
        hits_changed: count,
        shots_judged: count,
        corrections_a: count,
        corrections_b: count,
        view_error_p95_a: part,
        view_error_p95_b: part,
        trace_digest: Some(String::new()),
        legs: count,
        keyframes: count,
        ..LogRow::default()
    };
    let latency_ms = Some(LatencyBand::of_ms(0.0));
    [
        ResultRow::Log(Box::new(log)),
        ResultRow::Weapon(WeaponRow { latency_ms, ..WeaponRow::default() }),
        ResultRow::Cause(CauseRow::default()),
        ResultRow::Shot(Box::new(ShotRow { tick: Some(0), latency_ms, ..ShotRow::default() })),
        ResultRow::Miss(Box::new(ShotRow { tick: Some(0), latency_ms, ..ShotRow::default() })),
    ]
}

/// The width of a band, in ms.
const WIDTH_MS: u32 = 50;
/// The start of the last band, which has no end, in ms.
const LAST_MS: u32 = 300;

/// A band of round-trip latency, named by its start in ms: `0`, `50`, and so on up to `300` for 300 ms and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LatencyBand(u32);

impl LatencyBand {
    /// The band of a latency in ms.
    fn of_ms(latency_ms: f32) -> LatencyBand {
        // The cast takes negative values and NaN as 0.
        LatencyBand((latency_ms as u32 / WIDTH_MS * WIDTH_MS).min(LAST_MS))
    }
}

impl Display for LatencyBand {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            LAST_MS => write!(f, "{LAST_MS} ms and more"),
            from => write!(f, "{from} to {} ms", from + WIDTH_MS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_from_their_lines() {
        let latency_ms = Some(LatencyBand::of_ms(70.0));
        for row in [
            ResultRow::Log(Box::new(LogRow { tick: Some(3), view_error_p95_a: Some(0.5), ..LogRow::default() })),
            ResultRow::Weapon(WeaponRow { latency_ms, ..WeaponRow::default() }),
            ResultRow::Cause(CauseRow { cause: "a \"b\"\n".to_owned(), ..CauseRow::default() }),
            ResultRow::Shot(Box::new(ShotRow { latency_ms, ..ShotRow::default() })),
        ] {
            let line = write_row(&row);
            assert!(line.starts_with("{\"v\":1,\"row\":\"") && line.ends_with("}\n"), "{line}");
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(read_row(&line).expect("a row"), row);
        }
    }

    #[test]
    fn samples_have_every_figure() {
        for row in sample_rows() {
            let line = write_row(&row);
            assert!(!line.contains("null"), "{line}");
        }
    }

    #[test]
    fn rows_of_another_version_are_refused() {
        let refused = |line: &str| read_row(line).expect_err(line).to_string();
        assert!(
            refused("{\"v\":2,\"row\":\"match\"}").starts_with("it is of version 2, and this build reads version 1")
        );
        let cut = refused("{\"v\":1,\"row\":\"match\"}");
        assert!(
            cut.contains("it is no row of results (") && cut.ends_with("): delete this line, and run the logs again")
        );
        assert!(refused("{\"row\":\"log\"}").contains("missing field `v`"));
        assert!(refused("").contains("it is no row of results"));
    }

    #[test]
    fn bands_have_both_ends() {
        let names = [0.0, 49.9, 50.0, 299.0, 300.0, 4e9, -3.0].map(|ms| LatencyBand::of_ms(ms).to_string());
        let last = "300 ms and more";
        assert_eq!(names, ["0 to 50 ms", "0 to 50 ms", "50 to 100 ms", "250 to 300 ms", last, last, "0 to 50 ms"]);
    }
}

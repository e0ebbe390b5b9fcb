//! The result of a sweep: a row of figures for each combination of settings, and as a table of named columns for files.

use serde::{Serialize, Serializer};

use hitreg_log::record::{UnansweredSettings, WhatIf};
use hitreg_log::sorted::SortedSet;
use hitreg_log::stats::Spread;
use hitreg_log::trace::Table;

/// The result of a sweep: a row for each combination, in the order of the axes' values. The last axis changes fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// How the runs were made, which decides what the counts of hits mean.
    pub what_if: WhatIf,
    /// How often each session was run at each point.
    pub repeats: u16,
    /// The key of each axis: `PRESET` or a setting's key.
    pub keys: Vec<String>,
    /// The rows.
    pub rows: Vec<SweepRow>,
    /// Whether only clients ran, on recorded snapshots.
    pub is_open: bool,
    /// The columns of the traces, if a build made them; a build may leave some out.
    pub of_build: Option<TraceColumns>,
}

/// The columns that are in at least one of several traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceColumns(SortedSet<String>);

impl TraceColumns {
    /// Adds the columns of a table.
    pub fn add(&mut self, table: &Table) {
        self.0.extend(table.columns.iter().map(|column| format!("{}.{}", table.name, column.name)));
    }

    /// Adds the columns of other traces.
    pub fn append(&mut self, other: &TraceColumns) {
        self.0.extend(other.0.iter().cloned());
    }
}

/// The figures of one combination.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRow {
    /// The value of each of [`Sweep::keys`].
    pub values: Vec<String>,
    /// The settings that differ from a log's own, and whose effect the replay of that log cannot show.
    pub unanswered: UnansweredSettings,
    /// The figures of all sessions together.
    pub figures: SweepFigures,
}

/// The figures of all replays under one combination of settings. A figure is `None` if no trace has its table,
/// and a count of shots if no replay has a server that judged them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepFigures {
    /// The number of usercmds.
    pub usercmds: Option<u64>,
    /// Shots that the server judged.
    pub shots: Option<u64>,
    /// The projectiles among the shots.
    pub launched: Option<u64>,
    /// Impacts of projectiles. They count as shots only if their launch is missing.
    pub impacts: Option<u64>,
    /// Shots that a client predicted but the server never ran. They do not count as shots.
    pub not_run: Option<u64>,
    /// Shots and projectiles that hit a target.
    pub hits: Option<u64>,
    /// Half the width of the 95 % confidence interval around the share of shots that hit. Only if bots played again
    /// with several seeds.
    pub hit_share_ci95: Option<f64>,
    /// Shots that hit on the shooter's screen but not on the server; `None` if no client predicts its shots.
    pub missed_on_target: Option<u64>,
    /// Distance between where the shooter's client drew a target and where the server judged it, in units.
    pub view_error_units: Option<Spread>,
    /// Hits on a target that was in cover at its place on the server; `None` if the game does not report cover.
    pub hits_in_cover: Option<u64>,
    /// For how long these targets had been in cover on their own screens, in milliseconds.
    pub in_cover_ms: Option<Spread>,
    /// How far these targets had moved in cover, in units.
    pub in_cover_units: Option<Spread>,
    /// Predictions that were compared with the server's state.
    pub checked: Option<u64>,
    /// Predictions that were corrected.
    pub corrections: Option<u64>,
    /// The usercmds of the sessions whose corrections are known.
    pub usercmds_of_corrections: u64,
    /// Size of the corrections in units, without those of spawns, deaths and teleports.
    pub correction_units: Option<Spread>,
    /// Average bytes/s from the server to one client; `None` in open loop.
    pub down_bytes_per_s: Option<f64>,
    /// Average bytes/s from one client to the server; `None` in open loop, and in the server's own log.
    pub up_bytes_per_s: Option<f64>,
}

impl SweepFigures {
    /// The share of shots that hit; `None` without shots.
    pub fn hit_share(&self) -> Option<f64> {
        let (hits, shots) = (self.hits?, self.shots.filter(|shots| *shots > 0)?);
        Some(hits as f64 / shots as f64)
    }
}

/// Rows of named columns. Serializes as a list of rows, each a map from column to value.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepTable {
    /// The names of the columns: the varied settings, then the figures with their units.
    pub columns: Vec<String>,
    /// Rows with one cell for each column.
    pub rows: Vec<Vec<SweepCell>>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SweepCell {
    /// A setting's value.
    Text(String),
    /// A count.
    Count(u64),
    /// A measured quantity.
    Number(f64),
    /// No value was measured.
    None,
}

impl Serialize for SweepTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct RowOf<'a>(&'a [String], &'a [SweepCell]);
        impl Serialize for RowOf<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().zip(self.1))
            }
        }
        serializer.collect_seq(self.rows.iter().map(|row| RowOf(&self.columns, row)))
    }
}

impl SweepTable {
    /// Formats the table as CSV (RFC 4180), with a header line. An unmeasured value is an empty cell.
    pub fn to_csv(&self) -> String {
        let text = |cell: &SweepCell| match cell {
            SweepCell::Text(text) => text.clone(),
            SweepCell::Count(count) => count.to_string(),
            SweepCell::Number(number) => number.to_string(),
            SweepCell::None => String::new(),
        };
        let mut out = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        let rows = self.rows.iter().map(|row| row.iter().map(text).collect());
        for record in std::iter::once(self.columns.clone()).chain(rows) {
            out.write_record(record).expect("memory takes it, and all rows are of one length");
        }
        String::from_utf8(out.into_inner().expect("memory takes it")).expect("what is written as text is text")
    }
}

impl Sweep {
    /// The names of the figures that no row has because their columns are not in the build's traces.
    pub fn absent(&self) -> Vec<&'static str> {
        let Some(TraceColumns(columns)) = &self.of_build else { return Vec::new() };
        let rows: Vec<_> = self.rows.iter().map(|row| figures(&row.figures)).collect();
        let is_unknown = |place: usize| rows.iter().all(|cells| cells[place].2 == SweepCell::None);
        let is_absent = |column: &str| !column.is_empty() && !columns.contains(column);
        let named = figures(&SweepFigures::default()).into_iter().enumerate();
        let absent = named.filter(|(place, (_, column, _))| is_absent(column) && is_unknown(*place));
        absent.map(|(_, (name, ..))| name).collect()
    }

    /// The settings of all rows whose effect a replay cannot show.
    pub fn unanswered(&self) -> UnansweredSettings {
        let mut unanswered = UnansweredSettings::default();
        self.rows.iter().for_each(|row| unanswered.append(&row.unanswered));
        unanswered
    }

    /// The table of all figures, with one column for each figure.
    pub fn table(&self) -> SweepTable {
        let row = |row: &SweepRow| {
            let values = row.values.iter().cloned().map(SweepCell::Text);
            let what_if = std::iter::once(SweepCell::Text(self.what_if.name().to_owned()));
            let figures = figures(&row.figures).into_iter().map(|(.., cell)| cell);
            let unanswered = match row.unanswered.is_empty() {
                true => SweepCell::None,
                false => SweepCell::Text(row.unanswered.sentences().join("; ")),
            };
            values.chain(what_if).chain(figures).chain([unanswered]).collect()
        };
        let others = figure_names().into_iter().chain(["unanswered".to_owned()]);
        SweepTable {
            columns: self.keys.iter().cloned().chain(["what_if".to_owned()]).chain(others).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }
}

/// The names of the figures' columns, which every sweep has.
pub fn figure_names() -> Vec<String> {
    figures(&SweepFigures::default()).into_iter().map(|(name, ..)| name.to_owned()).collect()
}

/// Each figure: its name, the column of a trace that it needs, and its value. The interval needs bots that play again.
fn figures(f: &SweepFigures) -> Vec<(&'static str, &'static str, SweepCell)> {
    let count = |count: Option<u64>| count.map_or(SweepCell::None, SweepCell::Count);
    let number = |number: Option<f64>| number.map_or(SweepCell::None, SweepCell::Number);
    // The shortest decimal of a 32-bit float, so that 0.1 is not written as 0.10000000149011612.
    let short = |value: f32| value.to_string().parse().ok();
    let part = |spread: Option<Spread>, part: fn(Spread) -> f32| number(spread.and_then(|s| short(part(s))));
    let (view, ms, units) = (f.view_error_units, f.in_cover_ms, f.in_cover_units);
    vec![
        ("usercmds", "executed.player", count(f.usercmds)),
        ("shots", "shots.reason", count(f.shots)),
        ("launched", "shots.reason", count(f.launched)),
        ("impacts", "shots.reason", count(f.impacts)),
        ("not_run", "shots.reason", count(f.not_run)),
        ("hits", "shots.reason", count(f.hits)),
        ("hit_share", "shots.reason", number(f.hit_share())),
        ("hit_share_ci95", "", number(f.hit_share_ci95)),
        ("missed_on_target", "shots.predicted_reason", count(f.missed_on_target)),
        ("view_error_units_p50", "shots.view_error_units", part(view, |s| s.p50)),
        ("view_error_units_p95", "shots.view_error_units", part(view, |s| s.p95)),
        ("view_error_units_max", "shots.view_error_units", part(view, |s| s.max)),
        ("hits_in_cover", "shots.visible_at_present", count(f.hits_in_cover)),
        ("in_cover_ms_p50", "shots.in_cover_ms", part(ms, |s| s.p50)),
        ("in_cover_ms_max", "shots.in_cover_ms", part(ms, |s| s.max)),
        ("in_cover_units_p50", "shots.in_cover_units", part(units, |s| s.p50)),
        ("in_cover_units_max", "shots.in_cover_units", part(units, |s| s.max)),
        ("predictions_checked", "corrections.result", count(f.checked)),
        ("corrections", "corrections.fields", count(f.corrections)),
        ("correction_units_p50", "corrections.error_units", part(f.correction_units, |s| s.p50)),
        ("correction_units_p95", "corrections.error_units", part(f.correction_units, |s| s.p95)),
        ("correction_units_max", "corrections.error_units", part(f.correction_units, |s| s.max)),
        ("down_bytes_per_s", "snapshots.bytes", number(f.down_bytes_per_s)),
        ("up_bytes_per_s", "packets.bytes", number(f.up_bytes_per_s)),
    ]
}

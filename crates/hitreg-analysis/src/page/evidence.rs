//! The shots and corrections of a page, each with the answer of `why`. The rows that explain them are few beside all rows,
//! so they fit in memory.

use serde::Serialize;

use super::packed::{PackedRecords, PageColumns, RecordPacker};
use super::{PageInput, PageLog};
use crate::report::{ShotWords, correction_answer, evidence_in_words, shot_answer};
use crate::why::{CorrectionRows, PlacingSnapshots, RejudgedShot, SnapshotName, TraceRows, UsercmdPath, shot_target};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{bodies, corrections, errors, executed, frames, shots, ticks, views};
use hitreg_log::trace::{Table, Trace, TraceReadError, TraceSource, body_tables, select_rows};
use hitreg_log::units::Micros;

/// What explains the shots and corrections of a trace.
#[derive(Debug)]
pub(super) struct ExplainedRows {
    /// The explaining rows, with all shots and all corrected acks.
    pub(super) trace: Trace,
    /// The views that are needed, by shooter and target.
    views: Vec<([u32; 2], NeededViews)>,
    /// The place of the last row's views. The next row is nearly always of the next ones.
    last: usize,
}

/// The views that are needed of one target on one shooter's screen.
#[derive(Clone, Debug, Default)]
struct NeededViews {
    /// The usercmds in whose frames the target was shot at, ascending.
    commands: Vec<u32>,
    /// The times at which the server judged it, ascending. The views just before and after each are needed.
    judged_us: Vec<i64>,
    next_command: usize,
    next_judged: usize,
    before: Option<RowBefore>,
}

/// The last row of a target on a screen.
#[derive(Clone, Debug)]
enum RowBefore {
    /// In the same part of the table.
    Here(u32),
    /// In an earlier part.
    Earlier(Box<Table>),
}

/// The columns of `bodies` that explanations read.
const BODIES: &[&str] = &["tick", "entity", "origin.x", "origin.y", "origin.z", "view_ofs_z"];
/// The columns of `frames` that explanations and the page read.
pub(super) const FRAMES: &[&str] = &[
    "player",
    "command",
    "at_us",
    "server_time_us",
    "lerp_msec",
    "ran",
    "pitch",
    "yaw",
    "has_body",
    "own.viewangles.x",
    "own.viewangles.y",
    "own.viewangles.w",
    "own.viewangles",
    "own.delta_angles.x",
    "own.delta_angles.y",
    "own.origin.x",
    "own.origin.y",
    "own.origin.z",
    "own.view_ofs_z",
];

impl ExplainedRows {
    /// Reads all evidence except views.
    pub(super) fn read(trace: &dyn TraceSource) -> Result<ExplainedRows, TraceReadError> {
        let fired = select_rows(trace, shots::NAME, (&[], None), &Table::clone)?;
        let corrected = select_rows(trace, corrections::NAME, (&[], None), &CorrectionRows::corrected)?;
        let found = Trace { header: trace.header().clone(), tables: vec![fired, corrected] };

        let (mut usercmds, mut states) = (SortedSet::new(), SortedSet::new());
        let mut needed_views: SortedMap<[u32; 2], NeededViews> = SortedMap::new();
        let of_shots = shots::Columns::of(&found);
        for row in 0..of_shots.rows {
            let (shooter, command) = (of_shots.shooter[row], of_shots.command.get(row).copied().unwrap_or_default());
            usercmds.insert((shooter, command));
            let target = shot_target(&found, row);
            if let Some(tick) = of_shots.tick.get(row) {
                let of_tick = |entity: u32| [(*tick, entity), (tick.saturating_sub(1), entity)];
                states.extend([Some(shooter), target].into_iter().flatten().flat_map(of_tick));
            }
            let Some(target) = target else { continue };
            let needed = needed_views.entry([shooter, target]).or_default();
            needed.commands.push(command);
            let judged = of_shots.at_us.get(row).zip(of_shots.known_rewind_us(row));
            needed.judged_us.extend(judged.map(|(at, rewind)| at.saturating_sub(rewind)));
        }
        let has_times = !of_shots.at_us.is_empty();
        for needed in needed_views.values_mut() {
            needed.commands.sort_unstable();
            needed.judged_us.sort_unstable();
        }
        let of_acks = corrections::Columns::of(&found);
        usercmds.extend(of_acks.player.iter().copied().zip(of_acks.command.iter().copied()));

        let mut evidence = ExplainedRows { trace: found, views: needed_views.into_iter().collect(), last: 0 };
        let of_usercmds = |table: &Table| {
            let all = table.u32s("player").iter().zip(table.u32s("command"));
            table.select_where(all, |(player, command)| usercmds.contains(&(*player, *command)))
        };
        evidence.add(trace, frames::NAME, FRAMES, &of_usercmds)?;
        evidence.add(trace, executed::NAME, &[], &of_usercmds)?;
        evidence.add(trace, errors::NAME, &[], &Table::clone)?;
        for table in body_tables(trace) {
            evidence.add(trace, &table, BODIES, &|table| {
                let rows = bodies::Columns::read(table);
                let all = rows.tick.iter().zip(rows.entity);
                table.select_where(all, |(tick, entity)| states.contains(&(*tick, *entity)))
            })?;
        }
        if !has_times {
            evidence.add(trace, ticks::NAME, &[], &Table::clone)?;
        }
        evidence.trace.tables.push(Table::new(views::NAME, Vec::new()));
        Ok(evidence)
    }

    fn add(
        &mut self,
        trace: &dyn TraceSource,
        name: &str,
        only: &[&str],
        select: &dyn Fn(&Table) -> Table,
    ) -> Result<(), TraceReadError> {
        let mut kept = select_rows(trace, name, (only, None), select)?;
        // A trace in memory has all columns.
        kept.columns.retain(|column| only.is_empty() || only.contains(&&*column.name));
        self.trace.tables.push(kept);
        Ok(())
    }

    /// Adds the needed views among these rows.
    pub(super) fn add_views(&mut self, table: &Table) -> Result<(), TraceReadError> {
        let rows = views::Columns::read(table);
        let (mut kept, mut earlier, mut seen) = (Vec::new(), Vec::new(), SortedSet::new());
        for row in 0..rows.entity.len().min(rows.player.len()) {
            let key = [rows.player[row], rows.entity[row]];
            let near = [self.last + 1, self.last]
                .into_iter()
                .find(|place| self.views.get(*place).is_some_and(|(of, _)| *of == key));
            let place = match near {
                Some(place) => place,
                None => match self.views.binary_search_by_key(&key, |(of, _)| *of) {
                    Ok(place) => place,
                    Err(_) => continue,
                },
            };
            self.last = place;
            let needed = &mut self.views[place].1;
            let is_it = rows.command.get(row).is_some_and(|command| needed.has_command(*command));
            if rows.drawn_at_us.get(row).is_some_and(|at_us| needed.passes(*at_us)) {
                match needed.before.take() {
                    Some(RowBefore::Here(before)) => kept.push(before),
                    Some(RowBefore::Earlier(before)) => earlier.push(*before),
                    None => {}
                }
                kept.push(row as u32);
            }
            kept.extend(is_it.then_some(row as u32));
            if needed.before.replace(RowBefore::Here(row as u32)).is_none_or(|of| matches!(of, RowBefore::Earlier(_))) {
                seen.insert(place);
            }
        }
        for place in seen {
            if let Some(RowBefore::Here(row)) = self.views[place].1.before {
                self.views[place].1.before = Some(RowBefore::Earlier(Box::new(table.select(&[row]))));
            }
        }
        kept.sort_unstable();
        kept.dedup();
        let Some(views) = self.trace.tables.iter_mut().find(|table| table.name == views::NAME) else { return Ok(()) };
        for before in earlier {
            views.append(before)?;
        }
        views.append(table.select(&kept))
    }
}

impl NeededViews {
    /// Whether the target was shot at in the frame of a usercmd.
    fn has_command(&mut self, command: u32) -> bool {
        if self.next_command.checked_sub(1).is_some_and(|before| self.commands[before] >= command) {
            self.next_command = self.commands.partition_point(|of| *of < command);
        }
        while self.commands.get(self.next_command).is_some_and(|of| *of < command) {
            self.next_command += 1;
        }
        self.commands.get(self.next_command) == Some(&command)
    }

    /// Whether the server judged the target at a time up to this one, and after that of the row before.
    fn passes(&mut self, at_us: i64) -> bool {
        let before = self.next_judged;
        while self.judged_us.get(self.next_judged).is_some_and(|judged| *judged <= at_us) {
            self.next_judged += 1;
        }
        self.next_judged > before
    }
}

/// A shot or a correction with the answer of `why`.
#[derive(Debug, Serialize)]
struct PageExplanation<T, W> {
    answer: String,
    /// Other words of `why`.
    #[serde(flatten)]
    words: W,
    /// The shot's results under other rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejudged: Vec<RejudgedShot>,
    #[serde(flatten)]
    it: T,
}

/// The words of `why` about a correction.
#[derive(Debug, Serialize)]
struct CorrectionWords {
    evidence_words: String,
}

/// Packs all shots, with the answers of `why`.
pub(super) fn shots_of(
    evidence: &ExplainedRows,
    shown: &PageInput<'_>,
    columns: &mut PageColumns,
) -> Result<PackedRecords, TraceReadError> {
    let (trace, reader) = (&evidence.trace, TraceRows::new(&evidence.trace));
    let known = shown.log.map_or(Ok(Vec::new()), |log| known_by_log(&reader, log))?;
    let mut packer = RecordPacker::default();
    for row in 0..shots::Columns::of(trace).rows {
        let mut shot = reader.shot(row);
        if let Some(known) = known.get(row) {
            (shot.carried, shot.drawn_from, shot.judged_from, shot.unreceived) = *known;
        }
        let rejudged = shot.otherwise(shown.rejudged);
        let answer = shot_answer(&shot, &trace.header.settings);
        let words = ShotWords::of(&shot, &trace.header.settings);
        packer.push(&PageExplanation { answer, words, rejudged, it: shot })?;
    }
    Ok(packer.finish(columns))
}

/// What the log knows of a shot.
type KnownByLog = (Option<UsercmdPath>, Option<PlacingSnapshots>, Option<PlacingSnapshots>, [Option<SnapshotName>; 2]);

/// The shots of so much time are looked up in the log together.
const LOOKUP_SPAN: Micros = Micros::from_s(24);
/// How much of the log is read before and after them. It includes datagrams in flight.
const LOOKUP_MARGIN: Micros = Micros::from_s(4);

/// What the log knows of each shot. The log is read once, a few seconds at a time.
fn known_by_log(reader: &TraceRows<'_>, log: &dyn PageLog) -> Result<Vec<KnownByLog>, TraceReadError> {
    let table = shots::Columns::of(reader.trace);
    let mut known = vec![KnownByLog::default(); table.rows];
    let mut order: Vec<usize> = (0..table.rows.min(table.at_us.len())).collect();
    order.sort_unstable_by_key(|row| (table.at_us[*row], *row));
    let mut left = &order[..];
    while let Some(first) = left.first() {
        let from = table.at_us[*first];
        let end = from.saturating_add(LOOKUP_SPAN.0);
        let (together, later) = left.split_at(left.partition_point(|row| table.at_us[*row] <= end));
        let [from, to] = [from.saturating_sub(LOOKUP_MARGIN.0), end.saturating_add(LOOKUP_MARGIN.0)].map(Micros);
        let session = log.between(from, to)?;
        for row in together {
            let mut shot = reader.shot(*row);
            shot.know_log(&session);
            known[*row] = (shot.carried, shot.drawn_from, shot.judged_from, shot.unreceived);
        }
        left = later;
    }
    Ok(known)
}

/// Packs all corrections, with the answers of `why`.
pub(super) fn corrections_of(
    evidence: &ExplainedRows,
    columns: &mut PageColumns,
) -> Result<PackedRecords, TraceReadError> {
    let mut packer = RecordPacker::default();
    for it in TraceRows::new(&evidence.trace).corrections() {
        let words = CorrectionWords { evidence_words: evidence_in_words(&it.evidence) };
        let answer = correction_answer(&it);
        packer.push(&PageExplanation { answer, words, rejudged: Vec::new(), it })?;
    }
    Ok(packer.finish(columns))
}

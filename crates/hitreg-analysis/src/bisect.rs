//! Bisects a divergence to the tick, the entity, the field and the cause.
//!
//! A divergence may heal, so agreement in a later tick does not show that earlier ticks agree. Therefore one pass
//! compares all ticks, and nothing is recorded twice.

mod cause;

use std::borrow::Cow;

use serde::Serialize;

use crate::diff::{
    CellValue, DiffError, DiffOptions, Divergence, NamedValue, TraceSide, TraceVerdict, UsercmdRow, diff, pick,
};
use hitreg_log::record::Cause;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{BODIES_OF_CLASS, bodies, corrections, errors, executed, frames, is_input, shots};
use hitreg_log::trace::{Column, ColumnData, ColumnSpan, Table, Trace, TraceReadError, TraceSource, select_rows};

pub use cause::{CauseFinding, DivergenceCause, DivergenceOrigin};

/// Where two runs diverge, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TickBisection {
    /// Whether the runs diverge.
    pub verdict: TraceVerdict,
    /// Why the runs cannot be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// Notes on what differs between the runs' logs, modes and settings.
    pub notes: Vec<String>,
    /// How many ticks both runs have.
    pub ticks_compared: u64,
    /// The first divergence in session time: its tick, entity and field.
    pub first: Option<Divergence>,
    /// Why the runs diverge there.
    pub cause: Option<CauseFinding>,
    /// The result of running that tick's usercmds again from the last common state.
    pub reran: Option<RerunResult>,
}

/// Finds where two runs diverge, and why. Of traces in files, only rows at the divergence are kept. `rerun` runs one usercmd
/// in one of the two builds. Without it, the cause is a build only if nothing else differs.
///
/// To compare a trace with its log, pass [`recorded`](hitreg_log::recorded::recorded()) and set
/// [`DiffOptions::overlap_only`].
///
/// # Errors
/// When neither trace has a column that a tolerance names, or a trace cannot be read.
pub fn bisect_ticks(
    a: &dyn TraceSource,
    b: &dyn TraceSource,
    options: &DiffOptions,
    rerun: Option<&mut RerunFn<'_>>,
) -> Result<TickBisection, DiffError> {
    let found = diff(a, b, &DiffOptions { brief: true, ..options.clone() })?;
    let ticks_compared = found.tables.iter().find(|t| t.name == "ticks").map_or(0, |t| t.rows.compared);
    let mut bisection = TickBisection {
        verdict: found.verdict,
        untestable: found.untestable,
        notes: found.notes,
        ticks_compared,
        first: found.first,
        cause: None,
        reran: None,
    };
    if let Some(first) = &bisection.first {
        let rows = [rows_at_divergence(a, first)?, rows_at_divergence(b, first)?];
        let traces = [&*rows[0], &*rows[1]];
        bisection.reran = rerun.and_then(|run| rerun_usercmds(traces, first, run));
        let is_executed = |(table, rows): &(&Table, u64)| table.name == executed::NAME && *rows > 0;
        let have_executed = [a, b].into_iter().all(|trace| trace.tables().iter().any(is_executed));
        bisection.cause = Some(cause::find_cause(traces, have_executed, first, bisection.reran.as_ref()));
    }
    Ok(bisection)
}

/// The rows at a divergence; the whole trace if it is in memory.
fn rows_at_divergence<'t>(trace: &'t dyn TraceSource, first: &Divergence) -> Result<Cow<'t, Trace>, TraceReadError> {
    if let Some(trace) = trace.in_memory() {
        return Ok(Cow::Borrowed(trace));
    }
    let mut rows = Trace { header: trace.header().clone(), tables: Vec::new() };
    let of_tick = |table, tick: u32| {
        let span = ColumnSpan { column: "tick", first: tick.into(), last: tick.into() };
        let of_tick = |rows: &Table| rows.select_where(rows.u32s("tick").iter(), |of| *of == tick);
        select_rows(trace, table, (&[], Some(span)), &of_tick)
    };
    let usercmds = [&first.usercmds_a, &first.usercmds_b].into_iter().flatten();
    let usercmds = usercmds.map(|usercmd| (usercmd.player, usercmd.command)).collect();
    rows.tables.extend(pick(trace, executed::NAME, ["player", "command"], &usercmds)?);
    if let Some(tick) = first.place.tick {
        rows.tables.push(of_tick(shots::NAME, tick)?);
    }
    if let Some(tick) = first.last_agreeing.as_ref().and_then(|row| row.place.tick) {
        let tables = trace.tables();
        let states =
            tables.iter().map(|(table, _)| &*table.name).filter(|name| StateOwner::in_table(name, 0).is_some());
        for table in states {
            rows.tables.push(of_tick(table, tick)?);
        }
    }
    let usercmd = first.place.player.zip(first.place.command).into_iter().collect();
    rows.tables.extend(pick(trace, corrections::NAME, ["player", "command"], &usercmd)?);
    Ok(Cow::Owned(rows))
}

/// One usercmd to run on one body.
#[derive(Clone, Debug, PartialEq)]
pub struct RerunStep<'a> {
    /// The tick in which the usercmd ran.
    pub tick: u32,
    /// Player and number of the usercmd. The log holds its input.
    pub command: &'a UsercmdRow,
    /// The body before the usercmd, field by field.
    pub body: &'a [NamedValue],
    /// The entities that the usercmd can meet: every entity with the same known state in both runs, including the
    /// player's own.
    pub others: &'a SortedMap<StateOwner, Vec<NamedValue>>,
}

/// An entity, and the class of its state; no class for the table `bodies`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateOwner {
    /// The entity.
    pub entity: u32,
    /// The class, if the state is in a table of its own.
    pub class: Option<String>,
}

impl StateOwner {
    /// The owner of states in a table of states; `None` for another table.
    fn in_table(table: &str, entity: u32) -> Option<StateOwner> {
        let class = table.strip_prefix(BODIES_OF_CLASS).map(str::to_owned);
        (class.is_some() || table == bodies::NAME).then_some(StateOwner { entity, class })
    }
}

/// Runs a step in the build of A or of B, and returns the body after it with the same fields. The error says why the
/// build could not run it.
pub type RerunFn<'a> = dyn FnMut(TraceSide, &RerunStep<'_>) -> Result<Vec<NamedValue>, String> + 'a;

/// The result of running the usercmds again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum RerunResult {
    /// The builds give different results for a usercmd.
    Differs {
        /// The player.
        player: u32,
        /// The usercmd's number.
        command: u32,
        /// The first field that differs.
        field: String,
        /// The field's value after the usercmd in A's build.
        a: CellValue,
        /// The field's value after the usercmd in B's build.
        b: CellValue,
    },
    /// The builds agree about every usercmd of the tick, so the divergence has its origin elsewhere.
    Same,
    /// A build could not run a usercmd.
    Failed {
        /// The build.
        build: TraceSide,
        /// The reason.
        reason: String,
    },
}

/// Runs the usercmds of a tick in their order, up to the last usercmd of the divergence's player, or all usercmds if its
/// entity is no player. Each usercmd meets the other entities in their last common state, or in the state that earlier
/// usercmds left. `None` if no usercmd ran, if there is no earlier common state, or if the runs have different
/// usercmds.
fn rerun_usercmds(traces: [&Trace; 2], first: &Divergence, rerun: &mut RerunFn<'_>) -> Option<RerunResult> {
    let state = first.last_agreeing.as_ref()?;
    let (tick, entity) = (first.place.tick?, state.place.entity?);
    let owner = StateOwner::in_table(&state.table, entity)?;
    let [own_a, own_b] = first.own_usercmds(traces);
    if own_a != own_b || !own_a.iter().any(|command| ran(command)) {
        return None;
    }
    // The log does not have the input that replaced a lost usercmd.
    if own_a.iter().any(|command| command.how.as_deref() == Some("stood_in")) {
        return None;
    }
    let mut bodies = common_state(traces, state.place.tick?);
    bodies.insert(owner, state.values.clone());
    for command in &in_order(traces, tick, &own_a) {
        let player = StateOwner { entity: command.player, class: None };
        let Some(body) = bodies.get(&player) else { continue };
        let step = RerunStep { tick, command, body, others: &bodies };
        let mut after = |build| rerun(build, &step).map_err(|reason| RerunResult::Failed { build, reason });
        let (a, b) = match (after(TraceSide::A), after(TraceSide::B)) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(failed), _) | (_, Err(failed)) => return Some(failed),
        };
        let differing = a.iter().find_map(|of_a| {
            let of_b = b.iter().find(|named| named.name == of_a.name)?;
            (!of_a.value.same(&of_b.value)).then_some((of_a, of_b))
        });
        if let Some((of_a, of_b)) = differing {
            return Some(RerunResult::Differs {
                player: command.player,
                command: command.command,
                field: of_a.name.clone(),
                a: of_a.value.clone(),
                b: of_b.value.clone(),
            });
        }
        bodies.insert(player, a);
    }
    Some(RerunResult::Same)
}

/// Whether the server ran a usercmd, as far as the trace says.
fn ran(command: &UsercmdRow) -> bool {
    command.how.as_deref().is_none_or(|how| how == "run")
}

/// The usercmds of a tick in the order in which both runs ran them. If the orders differ: only the usercmds of the
/// divergence.
fn in_order(traces: [&Trace; 2], tick: u32, own: &[&UsercmdRow]) -> Vec<UsercmdRow> {
    let [a, b] = traces.map(|trace| executed(trace, tick));
    let own: Vec<UsercmdRow> = own.iter().filter(|command| ran(command)).map(|row| (*row).clone()).collect();
    let is_own = |(player, command): &(u32, u32)| own.iter().any(|o| (o.player, o.command) == (*player, *command));
    let Some(last) = a.iter().rposition(is_own).filter(|_| a == b) else { return own };
    let usercmd =
        |(player, command): &(u32, u32)| UsercmdRow { player: *player, command: *command, how: None, input: vec![] };
    let of = |key: &(u32, u32)| own.iter().find(|o| (o.player, o.command) == *key).cloned();
    a[..=last].iter().map(|key| of(key).unwrap_or_else(|| usercmd(key))).collect()
}

/// The usercmds that ran in a tick according to a trace, by player and number.
fn executed(trace: &Trace, tick: u32) -> Vec<(u32, u32)> {
    let executed = executed::Columns::of(trace);
    // A usercmd without a recorded outcome counts as run.
    let ran = |row| matches!(executed.how.get(row), "run" | "");
    let rows = (0..executed.rows).filter(|row| executed.tick.get(*row) == Some(&tick) && ran(*row));
    rows.filter_map(|row| Some((*executed.player.get(row)?, *executed.command.get(row)?))).collect()
}

/// The bodies of a tick that are equal in both runs.
fn common_state(traces: [&Trace; 2], tick: u32) -> SortedMap<StateOwner, Vec<NamedValue>> {
    let of_trace = |trace: &Trace| trace.tables.iter().flat_map(|table| bodies(table, tick)).collect();
    let [mut a, b]: [SortedMap<StateOwner, Vec<NamedValue>>; 2] = traces.map(of_trace);
    let same = |x: &[NamedValue], y: &[NamedValue]| {
        let alike = |(x, y): (&NamedValue, &NamedValue)| x.name == y.name && x.value.same(&y.value);
        x.len() == y.len() && x.iter().zip(y).all(alike)
    };
    a.retain(|owner, body| b.get(owner).is_some_and(|other| same(body, other)));
    a
}

/// The states of a tick in a table of states.
fn bodies(table: &Table, tick: u32) -> Vec<(StateOwner, Vec<NamedValue>)> {
    if StateOwner::in_table(&table.name, 0).is_none() {
        return Vec::new();
    }
    let (ticks, entities) = (table.u32s("tick"), table.u32s("entity"));
    let rows = ticks.iter().zip(entities).enumerate().filter(|(_, (of, _))| **of == tick);
    let fields = || table.columns.iter().filter(|column| !matches!(column.name.as_str(), "tick" | "entity" | "at_us"));
    let body =
        |row| fields().filter_map(move |c| Some(NamedValue { name: c.name.clone(), value: CellValue::at(c, row)? }));
    rows.filter_map(|(row, (_, entity))| Some((StateOwner::in_table(&table.name, *entity)?, body(row).collect())))
        .collect()
}

/// The server's results and the predictions of all acked usercmds.
#[derive(Debug)]
pub struct PredictionTraces {
    /// The server's results.
    pub authoritative: Trace,
    /// The predictions.
    pub predicted: Trace,
    /// How many predictions were compared with the server's result.
    pub checked: usize,
    /// How many predictions were wrong.
    pub misses: usize,
    /// How many wrong predictions have a known cause. The traces leave these out.
    pub explained: usize,
}

/// Splits an open-loop replay of a client's recording into two traces. Each has the usercmds, and `corrections` with the
/// fields that were predicted wrong, and NaN for correct fields. A miss with a known cause, such as a rocket that pushed
/// the player, does not concern the movement code, so the traces have no row of it.
pub fn split_predictions(replay: &Trace) -> PredictionTraces {
    let all = corrections::Columns::of(replay);
    let is_miss = |acks: &corrections::Columns<'_>, row: usize| acks.result.get(row) == "miss";
    let is_explained = |row: &usize| is_miss(&all, *row) && all.cause.get(*row) != Cause::Unknown.name();
    let compared = (0..all.rows).filter(|row| !is_explained(row)).map(|row| row as u32).collect::<Vec<_>>();
    let table = replay.table(corrections::NAME).map(|table| table.select(&compared)).unwrap_or_default();
    let acks = corrections::Columns::read(&table);
    let misses = (0..acks.rows).filter(|&row| is_miss(&acks, row));
    let misses: SortedMap<(u32, u32), usize> = misses.map(|row| ((acks.player[row], acks.command[row]), row)).collect();
    let mut fields: SortedMap<&str, [Vec<f32>; 2]> = SortedMap::new();
    let wrong = errors::Columns::of(replay);
    for row in 0..wrong.rows {
        let Some(&ack) = misses.get(&(wrong.player[row], wrong.command[row])) else { continue };
        let [authoritative, predicted] = fields
            .entry(wrong.field.get(row))
            .or_insert_with(|| [vec![f32::NAN; acks.rows], vec![f32::NAN; acks.rows]]);
        (authoritative[ack], predicted[ack]) = (wrong.authoritative[row], wrong.predicted[row]);
    }
    let (mut authoritative, mut predicted) = (Vec::new(), Vec::new());
    for (name, [by_server, by_client]) in fields {
        authoritative.push(Column::new(name, ColumnData::F32(by_server)));
        predicted.push(Column::new(name, ColumnData::F32(by_client)));
    }
    let usercmds = replay.table(frames::NAME).map(|table| {
        let input = table.columns.iter().filter(|column| is_input(column)).cloned().collect();
        Table { columns: input, ..table.without_rows() }
    });
    let side = |cells: Vec<Column>, kept: &[&str]| {
        let columns = table.columns.iter().filter(|column| kept.contains(&column.name.as_str()));
        let acks = Table::new(corrections::NAME, columns.cloned().chain(cells).collect());
        Trace { header: replay.header.clone(), tables: usercmds.clone().into_iter().chain([acks]).collect() }
    };
    PredictionTraces {
        authoritative: side(authoritative, &["player", "at_us", "command"]),
        predicted: side(predicted, &["player", "at_us", "command", "cause", "evidence"]),
        checked: all.rows,
        misses: (0..all.rows).filter(|&row| is_miss(&all, row)).count(),
        explained: all.rows - acks.rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{DiffOptions, TraceVerdict, diff};
    use hitreg_log::trace::TraceHeader;

    /// A trace with acks of these usercmds: number, result, cause, and error of `origin.x`.
    fn replay(acks: &[(u32, u8, Cause, f32)]) -> Trace {
        let (mut corrections, mut errors) = (corrections::Writer::default(), errors::Writer::default());
        for &(command, result, cause, off) in acks {
            corrections.push(corrections::Row {
                player: 0,
                at_us: i64::from(command) * 1000,
                command,
                commands: 1,
                result,
                on_ground: 1,
                error_units: off,
                velocity_error_units_per_s: 0.0,
                fields: 1,
                reran: 1,
                cause: cause as u8 + 1,
                evidence: "none",
                as_played: None,
            });
            if off != 0.0 {
                let (predicted, authoritative) = (64.0 + off, 64.0f32);
                let (predicted_bits, authoritative_bits) = (predicted.to_bits(), authoritative.to_bits());
                let field = "origin.x";
                errors.push(errors::Row {
                    player: 0,
                    command,
                    field,
                    predicted,
                    authoritative,
                    predicted_bits,
                    authoritative_bits,
                });
            }
        }
        let (game, mode) = ("discs".to_owned(), "open".to_owned());
        let header =
            TraceHeader { game, mode, log_digest: String::new(), settings: Vec::new(), ..TraceHeader::default() };
        Trace { header, tables: vec![corrections.finish(Vec::new()), errors.finish(Vec::new())] }
    }

    /// The first difference between the two sides, the number of misses, and the number of misses with a cause.
    fn first(acks: &[(u32, u8, Cause, f32)]) -> (Option<u32>, usize, usize) {
        let PredictionTraces { authoritative, predicted, misses, explained, checked } =
            split_predictions(&replay(acks));
        assert_eq!(checked, acks.len());
        let found = diff(&authoritative, &predicted, &DiffOptions { overlap_only: true, ..DiffOptions::default() })
            .expect("no tolerance");
        assert_eq!(found.first.is_some(), found.verdict == TraceVerdict::Differs);
        (found.first.and_then(|first| first.place.command), misses, explained)
    }

    #[test]
    fn the_first_correction_without_a_cause_is_named() {
        let [exact, near, miss] = [0, 1, 2];
        let pushed = |command| (command, miss, Cause::Knockback, 9.0);
        assert_eq!(first(&[(1, exact, Cause::Unknown, 0.0), (2, near, Cause::Quantisation, 0.1)]), (None, 0, 0));
        assert_eq!(first(&[(1, exact, Cause::Unknown, 0.0), pushed(2), pushed(3)]), (None, 2, 2));
        assert_eq!(first(&[pushed(2), (3, miss, Cause::Unknown, 2.0), pushed(4)]), (Some(3), 3, 2));
    }
}

//! Converts a session's own records into the tables of a trace. With them hitreg compares a replay with its log, and
//! makes traces for builds that record what they replay.

mod network;
mod own;
mod shots;

use std::ops::Range;

use crate::record::{Class, FieldSchema, LogContents, Scope, Session, StateKey, cells_of, viewer_specific_fields};
use crate::sorted::{SortedMap, SortedSet};
use crate::trace::schema::{
    BODIES_OF_CLASS, ColumnRole, NO_HASH, bodies, executed, frames, is_judged, shots as shots_schema, ticks,
};
use crate::trace::{Column, ColumnData, SessionSource, Table, Trace, TraceHeader};
use crate::units::PlayerId;

/// The error for a log that does not hold the server's state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the log does not hold both the server and its clients: compare two replays of it, or merge all sides with `hitreg merge` first"
)]
pub struct StatesMissing;

/// Returns the tables of a log's own records: `ticks` with a recorded hash, `bodies` with the sent states of all
/// classes, `executed`, and `frames` with the players' input. The states of the classes after the first are also in
/// tables of their own, as other programs write them. All tables lack everything that the server did not send. Compare
/// them with `DiffOptions::overlap_only`.
///
/// # Errors
/// When the log is an imported client recording, which has no server ticks, or holds one side of a session.
pub fn recorded(session: &Session) -> Result<Trace, StatesMissing> {
    match session.header.holds() {
        LogContents::Whole => {
            let hidden = hidden_fields(session);
            let mut trace = recorded_without(session, &hidden);
            trace.tables.extend(bodies_by_class(session, &hidden).into_iter().skip(1));
            Ok(trace)
        }
        _ => Err(StatesMissing),
    }
}

/// Returns the same tables for part of a log, with all states in `bodies` and without the `hidden` fields: the viewers of
/// the log received different values of them.
pub fn recorded_without(session: &Session, hidden: &SortedSet<String>) -> Trace {
    let tables = vec![ticks(session), bodies(session, hidden), executed(session), frames(session, |_| false)];
    Trace { header: header_of(session, "closed"), tables }
}

/// Returns all tables from a log's own records: the tables of [`recorded`] with every tick, a table of states for each
/// class, shots, damage, and one table for each custom kind.
pub fn all_records(session: &Session) -> Trace {
    all_records_without(session, &hidden_fields(session))
}

/// Returns the same tables for part of a log, without the `hidden` fields.
pub fn all_records_without(session: &Session, hidden: &SortedSet<String>) -> Trace {
    let mut tables = vec![all_ticks(session)];
    tables.extend(bodies_by_class(session, hidden));
    tables.extend([executed(session), frames(session, is_time_of_view)]);
    tables.extend(shots::shots(session));
    tables.extend(shots::damage(session));
    own::add(session, &mut tables);
    Trace { header: header_of(session, mode_of(session)), tables }
}

/// Returns the packets and snapshots of a log's own records, as the tables `packets` and `snapshots`. A direction that
/// the log does not record has no table.
pub fn recorded_network(session: &Session) -> Vec<Table> {
    [network::packets(session), network::snapshots(session)].into_iter().filter(|table| table.rows() > 0).collect()
}

/// Returns the shots of a log's own records. They need the predicted and judged shots, the ticks, and the executed
/// usercmds.
pub fn recorded_shots(session: &Session) -> Trace {
    Trace { header: header_of(session, mode_of(session)), tables: shots::shots(session).into_iter().collect() }
}

/// Returns the results of the shots that the recorded server judged, in the table `shots`: what each shot hit. Targets
/// and damage are left out if the log has none. `None` without judged shots.
pub fn judged_shots(session: &Session) -> Option<Table> {
    let all = shots::shots(session)?;
    let read = shots_schema::Columns::read(&all);
    let judged: Vec<u32> =
        (0..).zip(read.reason.iter()).filter(|(_, reason)| is_judged(reason)).map(|(row, _)| row).collect();
    let has_targets = read.target.iter().any(|target| target != "none");
    let has_damage = read.damage.iter().any(|damage| *damage != 0);
    let mut judged = all.select(&judged);
    judged.columns.retain(|column| match column.name.as_str() {
        "shooter" | "command" | "index" | "reason" => true,
        "target" => has_targets,
        "damage" => has_damage,
        _ => false,
    });
    (judged.rows() > 0).then_some(judged)
}

/// Returns the fields that viewers of the log received with different values.
fn hidden_fields(session: &Session) -> SortedSet<String> {
    viewer_specific_fields(&session.header.classes, &session.states).into_iter().map(str::to_owned).collect()
}

/// Returns the mode of a trace that no replay made: whether the log holds a server.
fn mode_of(session: &Session) -> &'static str {
    match session.header.holds() {
        LogContents::Whole | LogContents::Server => "recorded",
        LogContents::Clients => "recorded, open",
    }
}

fn header_of(session: &Session, mode: &str) -> TraceHeader {
    TraceHeader {
        game: session.header.game.clone(),
        mode: mode.to_owned(),
        log_digest: String::new(),
        settings: session.header.settings.clone(),
        part: None,
        session: Some(SessionSource::of(&session.header)),
        capabilities: Vec::new(),
    }
}

/// Returns every tick with its hash, or [`NO_HASH`]. If no tick has a hash, there is no `hash` column.
fn all_ticks(session: &Session) -> Table {
    let mut ticks = ticks::Writer::default();
    for tick in &session.ticks {
        ticks.push(ticks::Row { tick: tick.tick.0, at_us: tick.at.0, hash: tick.hash.unwrap_or(NO_HASH) });
    }
    let mut table = ticks.finish(Vec::new());
    if session.ticks.iter().all(|tick| tick.hash.is_none()) {
        table.columns.retain(|column| column.name != "hash");
    }
    table
}

/// Returns the ticks that have a hash. The others cannot be compared with a replay.
fn ticks(session: &Session) -> Table {
    let mut ticks = ticks::Writer::default();
    for (tick, hash) in session.ticks.iter().filter_map(|tick| Some((tick, tick.hash?))) {
        ticks.push(ticks::Row { tick: tick.tick.0, at_us: tick.at.0, hash });
    }
    ticks.finish(Vec::new())
}

/// Returns the states of all classes in one table, as a replay of the game gives them. Fields that a class lacks are 0.
fn bodies(session: &Session, hidden: &SortedSet<String>) -> Table {
    let classes = &session.header.classes;
    let place_in = |field: &FieldSchema, class: &Class| {
        cells_of(&class.fields).find(|(of_class, _)| of_class.is_same_cell(field)).map(|of| of.1)
    };
    let field = |field: FieldSchema| {
        let places = classes.iter().enumerate().filter_map(|(number, class)| Some((number, place_in(&field, class)?)));
        let places = places.collect();
        (field, places)
    };
    let fields = session.header.body_fields().into_iter().map(field).collect();
    states(session, hidden, fields, |_| true)
}

/// Returns the states of each class in a table of its own. The first class has the table `bodies`, which should be that
/// of the players; the others have `bodies.CLASS`.
fn bodies_by_class(session: &Session, hidden: &SortedSet<String>) -> Vec<Table> {
    let of_class = |(number, class): (usize, &Class)| {
        let fields = cells_of(&class.fields).map(|(field, place)| (field.clone(), SortedMap::from([(number, place)])));
        let mut table = states(session, hidden, fields.collect(), |key| usize::from(key.class.0) == number);
        if number > 0 {
            table.name = format!("{}{}", BODIES_OF_CLASS, class.name);
            table.key = ["tick", "entity"].map(str::to_owned).into();
        }
        table
    };
    let tables: Vec<Table> = session.header.classes.iter().enumerate().map(of_class).collect();
    if tables.is_empty() { vec![states(session, hidden, Vec::new(), |_| true)] } else { tables }
}

/// Returns the shared states whose keys satisfy `is_of`, with these fields and their cells in each class.
fn states(
    session: &Session,
    hidden: &SortedSet<String>,
    fields: Vec<(FieldSchema, SortedMap<usize, Range<usize>>)>,
    is_of: impl Fn(&StateKey) -> bool,
) -> Table {
    let rows = session.states.iter().filter(|(key, _)| key.viewer.is_none() && is_of(key));
    let rows: Vec<(StateKey, &[u32])> = rows.collect();
    let mut keys = bodies::Writer::default();
    for (key, _) in &rows {
        keys.push(bodies::Row { tick: key.tick.0, entity: key.entity.0.into() });
    }
    let is_shown = |field: &FieldSchema| field.scope != Scope::ClientOnly && !hidden.contains(field.name.as_str());
    let column = |(field, places): (FieldSchema, SortedMap<usize, Range<usize>>)| {
        let number = |(key, cells): &(StateKey, &[u32])| {
            let place = places.get(&usize::from(key.class.0)).cloned();
            field.kind.number(place.and_then(|place| cells.get(place)).unwrap_or_default())
        };
        let data = ColumnData::of_numbers(field.kind, rows.iter().map(number).collect(), &session.texts);
        Column::new(field.name.clone(), data).in_unit(field.unit())
    };
    keys.finish(fields.into_iter().filter(|(field, _)| is_shown(field)).map(column).collect())
}

fn executed(session: &Session) -> Table {
    let mut executed = executed::Writer::default();
    for (player, records) in (0..).zip(&session.players) {
        for record in &records.executed {
            let (command, tick, how) = (record.command.0, record.tick.0, record.how as u8);
            executed.push(executed::Row { player, command, tick, how });
        }
    }
    executed.finish(Vec::new())
}

/// Returns the input of every client frame, with the fields that the game declares and the columns that `is_added`.
/// Logs do not record what the client made of it.
fn frames(session: &Session, is_added: fn(&Column) -> bool) -> Table {
    let mut frames = frames::Writer::default();
    for (player, records) in (0..).map(PlayerId).zip(&session.players) {
        for record in &records.frames {
            frames.push(frames::Row::of_usercmd(player, record.at, &record.command));
        }
    }
    let mut table = frames.finish(Vec::new());
    let recorded = ["player", "at_us", "command"].into_iter().chain(frames::SCHEMA.names_of(ColumnRole::Input));
    let recorded: Vec<&str> = recorded.collect();
    table.columns.retain(|column| recorded.contains(&column.name.as_str()) || is_added(column));
    table.columns.extend(own::of_usercmds(session));
    table
}

/// Returns whether a column of `frames` tells for which time clients drew the others. Games without such times leave 0.
fn is_time_of_view(column: &Column) -> bool {
    match (&*column.name, &column.data) {
        ("lerp_msec", ColumnData::U32(values)) => values.iter().any(|value| *value != 0),
        ("server_time_us", ColumnData::I64(values)) => values.iter().any(|value| *value != 0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TickRecord;
    use crate::recorder::Description;
    use crate::units::{Micros, Tick};

    #[test]
    fn ticks_without_a_hash_are_shown_but_not_compared() {
        let mut session = Session::new(Description::new("mygame").player("p0").into_header().unwrap().0);
        let tick = |number, hash| TickRecord { tick: Tick(number), at: Micros(i64::from(number) * 10_000), hash };
        session.ticks = vec![tick(1, None), tick(2, Some(7)), tick(3, None)];
        let rows = |trace: &Trace| {
            let rows = ticks::Columns::of(trace);
            (rows.tick.to_vec(), rows.hash.to_vec())
        };
        assert_eq!(rows(&all_records(&session)), (vec![1, 2, 3], vec![0, 7, 0]));
        assert_eq!(rows(&recorded(&session).unwrap()), (vec![2], vec![7]));
        session.ticks[1].hash = None;
        assert_eq!(rows(&all_records(&session)), (vec![1, 2, 3], vec![]));
    }
}

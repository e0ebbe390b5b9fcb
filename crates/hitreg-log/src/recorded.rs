//! Converts a session's own records into the tables of a trace. With them hitreg compares a replay with its log, and
//! makes traces for builds that record what they replay.

use std::ops::Range;

use crate::record::{
    ArrivalTable, CellKind, Class, DamageRecord, Execution, FieldSchema, FrameRecord, HitResult, LogContents,
    NumberForm, PresenceRecord, Scope, Session, ShotRecord, StateKey, TextCode, UnknownColumn, UnknownKind,
    UnknownRecords, cells_of, viewer_specific_fields,
};
use crate::sorted::{SortedMap, SortedSet};
use crate::trace::schema::{
    BODIES_OF_CLASS, IMPACT, NO_HASH, USERCMD_BYTES, bodies, executed, frames, is_input, is_judged, is_reserved,
    name_missing_server, packets, shots, snapshots, ticks,
};
use crate::trace::{Column, ColumnData, Table, Trace, TraceHeader};
use crate::units::{Micros, PlayerId, Tick};

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
            trace.tables.extend(later_classes(session, &hidden));
            Ok(trace)
        }
        _ => Err(StatesMissing),
    }
}

/// Returns the same tables for part of a log, with all states in `bodies` and without the `hidden` fields: the viewers of
/// the log received different values of them.
pub fn recorded_without(session: &Session, hidden: &SortedSet<String>) -> Trace {
    let tables =
        vec![tick_table(session, false), bodies(session, hidden), executed(session), frames(session, |_| false)];
    Trace { header: TraceHeader::of(session, "closed"), tables }
}

/// Returns the tables `bodies` and `bodies.CLASS` of [`recorded`], of any log.
pub fn recorded_bodies(session: &Session, hidden: &SortedSet<String>) -> Vec<Table> {
    std::iter::once(bodies(session, hidden)).chain(later_classes(session, hidden)).collect()
}

/// Returns all tables from a log's own records: the tables of [`recorded`] with every tick, a table of states for each
/// class, shots, damage, and one table for each custom kind. States that only one viewer received are in no table.
pub fn all_records(session: &Session) -> Trace {
    let mut tables = vec![tick_table(session, true)];
    tables.extend(bodies_by_class(session, &SortedSet::new()));
    tables.extend([executed(session), frames(session, is_time_of_view)]);
    tables.extend(shot_table(session));
    tables.extend(damage_table(session));
    add_custom_tables(session, &mut tables);
    Trace { header: TraceHeader::of(session, mode_of(session)), tables }
}

/// Returns the packets and snapshots of a log's own records, as the tables `packets` and `snapshots`. A direction that
/// the log does not record has no table.
pub fn recorded_network(session: &Session) -> Vec<Table> {
    [packet_table(session), snapshot_table(session)].into_iter().filter(|table| table.rows() > 0).collect()
}

/// Returns the bytes that a log's usercmds have, in the table `usercmd_bytes`; `None` without bytes.
pub fn recorded_bytes(session: &Session) -> Option<Table> {
    let frames =
        (0..).zip(&session.players).flat_map(|(player, of)| of.frames.iter().map(move |frame| (player, frame)));
    let rows: Vec<(u32, &FrameRecord)> = frames.filter(|(_, frame)| !frame.bytes.is_empty()).collect();
    let texts = rows.iter().map(|(_, frame)| hexadecimal(&frame.bytes));
    let columns = vec![
        Column::new("player", ColumnData::U32(rows.iter().map(|(player, _)| *player).collect())),
        Column::new("at_us", ColumnData::I64(rows.iter().map(|(_, frame)| frame.at.0).collect())).in_unit("µs"),
        Column::new("command", ColumnData::U32(rows.iter().map(|(_, frame)| frame.command.seq.0).collect())),
        Column::new("bytes", ColumnData::of_texts(texts)),
    ];
    (!rows.is_empty()).then(|| Table::new(USERCMD_BYTES, columns).keyed_by(["player", "at_us", "command"]))
}

/// Returns when players joined and left, in the table `presence`; `None` without such records.
pub fn recorded_presence(session: &Session) -> Option<Table> {
    let changes =
        (0..).zip(&session.players).flat_map(|(player, of)| of.presence.iter().map(move |change| (player, change)));
    let rows: Vec<(u32, &PresenceRecord)> = changes.collect();
    let columns = vec![
        Column::new("player", ColumnData::U32(rows.iter().map(|(player, _)| *player).collect())),
        Column::new("tick", ColumnData::U32(rows.iter().map(|(_, row)| row.tick.0).collect())),
        Column::new("at_us", ColumnData::I64(rows.iter().map(|(_, row)| row.at.0).collect())).in_unit("µs"),
        Column::new("change", ColumnData::of_texts(rows.iter().map(|(_, row)| row.change.name().to_owned()))),
    ];
    (!rows.is_empty()).then(|| Table::new("presence", columns).keyed_by(["player", "tick"]))
}

/// Returns the spans with missing records, in the table `gaps`; `None` without gaps.
pub fn recorded_gaps(session: &Session) -> Option<Table> {
    let rows = &session.gaps;
    let player = |of: Option<PlayerId>| of.map_or_else(|| "all".to_owned(), |of| format!("p{of}"));
    let columns = vec![
        Column::new("from_us", ColumnData::I64(rows.iter().map(|gap| gap.from.0).collect())).in_unit("µs"),
        Column::new("to_us", ColumnData::I64(rows.iter().map(|gap| gap.to.0).collect())).in_unit("µs"),
        Column::new("player", ColumnData::of_texts(rows.iter().map(|gap| player(gap.player)))),
        Column::new("why", ColumnData::of_texts(rows.iter().map(|gap| gap.why.name().to_owned()))),
    ];
    (!rows.is_empty()).then(|| Table::new("gaps", columns).keyed_by(["from_us", "player"]))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the shots of a log's own records. They need the predicted and judged shots, the ticks, and the executed
/// usercmds.
pub fn recorded_shots(session: &Session) -> Trace {
    Trace { header: TraceHeader::of(session, mode_of(session)), tables: shot_table(session).into_iter().collect() }
}

/// Returns the results of the shots that the recorded server judged, in the table `shots`: what each shot hit. Targets
/// and damage are left out if the log has none. `None` without judged shots.
pub fn judged_shots(session: &Session) -> Option<Table> {
    let all = shot_table(session)?;
    let read = shots::Columns::read(&all);
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

/// Returns the fields that viewers of the log received with different values. A replay's state need not equal them.
pub fn hidden_fields(session: &Session) -> SortedSet<String> {
    viewer_specific_fields(&session.header.classes, &session.states).into_iter().map(str::to_owned).collect()
}

/// Returns the mode of a trace that no replay made: whether the log holds a server.
fn mode_of(session: &Session) -> &'static str {
    match session.header.holds() {
        LogContents::Whole | LogContents::Server => "recorded",
        LogContents::Clients => "recorded, open",
    }
}

/// Returns the ticks that have a hash; the others cannot be compared with a replay. With `has_all`, returns every tick
/// with its hash, or [`NO_HASH`]. If then no tick has a hash, there is no `hash` column.
fn tick_table(session: &Session, has_all: bool) -> Table {
    let mut ticks = ticks::Writer::default();
    for tick in session.ticks.iter().filter(|tick| has_all || tick.hash.is_some()) {
        ticks.push(ticks::Row { tick: tick.tick.0, at_us: tick.at.0, hash: tick.hash.unwrap_or(NO_HASH) });
    }
    let mut table = ticks.finish(Vec::new());
    if has_all && session.ticks.iter().all(|tick| tick.hash.is_none()) {
        table.columns.retain(|column| column.name != "hash");
    }
    table
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

/// Returns the tables of all classes but the first.
fn later_classes(session: &Session, hidden: &SortedSet<String>) -> impl Iterator<Item = Table> {
    bodies_by_class(session, hidden).into_iter().skip(1)
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
    table.columns.retain(|column| is_input(column) || is_added(column));
    table.columns.extend(own_usercmd_columns(session));
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

// Converts recorded packets, snapshots and their arrivals into the tables `packets` and `snapshots`. Logs
// without any size have no column of sizes.

/// Returns the table `packets`. Arrivals of packets that no client recorded have no row.
fn packet_table(session: &Session) -> Table {
    let mut table = packets::Writer::default();
    let has_sizes = session.players.iter().flat_map(|player| &player.sent).any(|packet| packet.bytes > 0);
    for (player, records) in (0..).map(PlayerId).zip(&session.players) {
        let arrivals = ArrivalTable::new(&records.reached);
        for packet in &records.sent {
            let (arrived, took_ms) = transit(&arrivals, packet.number, packet.at);
            let bytes = has_sizes.then_some(packet.bytes.into());
            table.push(packets::Row { arrived, took_ms, bytes, ..packets::Row::of_packet(player, packet) });
        }
    }
    table.finish(Vec::new())
}

/// Returns the table `snapshots`. Arrivals of snapshots that no server recorded have no row.
fn snapshot_table(session: &Session) -> Table {
    let mut table = snapshots::Writer::default();
    let has_sizes = session.players.iter().flat_map(|player| &player.snapshots).any(|sent| sent.bytes > 0);
    for (player, records) in (0..).zip(&session.players) {
        let arrivals = ArrivalTable::new(&records.received);
        for sent in &records.snapshots {
            let (arrived, took_ms) = transit(&arrivals, sent.seq.0, sent.at);
            let timing = sent.timing.as_deref();
            table.push(snapshots::Row {
                player,
                snapshot: sent.seq.0,
                at_us: sent.at.0,
                arrived,
                took_ms,
                ack: sent.ack.0,
                entities: sent.entities.len() as u32,
                effects: sent.effects.len() as u32,
                choked: sent.choked.into(),
                helper_ms: timing.and_then(|timing| timing.helper_ms).map_or(f32::NAN, f32::from),
                warnings: timing.map_or(0, |timing| timing.warnings.len() as u32),
                bytes: has_sizes.then_some(sent.bytes.into()),
                left_out: None,
                saw_avatar_right: None,
                bits: None,
            });
        }
    }
    table.finish(Vec::new())
}

/// Returns the number of a packet's arrivals, and the transit time of the first one in ms; NaN for a packet without
/// arrivals.
fn transit(arrivals: &ArrivalTable, number: u32, sent: Micros) -> (u32, f32) {
    let first = arrivals.of(number).next();
    let took_ms = first.map_or(f32::NAN, |first| Micros(first.0.saturating_sub(sent.0)).as_ms_f64() as f32);
    (arrivals.of(number).count() as u32, took_ms)
}

// Converts custom data: record kinds become tables, usercmd fields become columns of `frames`.

/// The beginning of the name of a game's table that has the name of another table.
const OWN: &str = "own.";

/// Adds the session's custom tables, and the unknown columns of usercmds.
fn add_custom_tables(session: &Session, tables: &mut Vec<Table>) {
    for records in &session.unknown {
        let header = &session.header;
        let Some(kind) = header.unknown.iter().find(|kind| kind.name == records.kind) else { continue };
        if kind.name != frames::NAME {
            let mut table = custom_table(session, kind, records);
            // Older recorders took these names.
            while is_reserved(&table.name) || tables.iter().any(|known| known.name == table.name) {
                table.name.insert_str(0, OWN);
            }
            tables.push(table);
        } else if let Some(known) = tables.iter_mut().find(|table| table.name == frames::NAME) {
            known.columns.extend(unknown_of_usercmds(session, kind, records));
        }
    }
}

/// Returns the table of a custom kind. Its rows are keyed by series and time.
fn custom_table(session: &Session, kind: &UnknownKind, records: &UnknownRecords) -> Table {
    let series = Column::new("series", ColumnData::U32(records.series.clone()));
    let own = kind.columns.iter().zip(&records.columns).map(|(name, column)| {
        let field = kind.field(name);
        let data = own_data(session, field, column, column.values.clone());
        let unit = field.map_or("", |field| field.unit());
        Column::new(name.as_str(), data).in_unit(if name == "at_us" { "µs" } else { unit })
    });
    Table::new(kind.name.as_str(), std::iter::once(series).chain(own).collect()).keyed_by(["series", "at_us"])
}

/// Returns the columns of the usercmd fields that the game declares, in the order of the `frames` rows.
fn own_usercmd_columns(session: &Session) -> Vec<Column> {
    let fields = session.header.own_usercmd_fields();
    let frames = || session.players.iter().flat_map(|player| &player.frames);
    let column = |(field, place): (&FieldSchema, Range<usize>)| {
        let values = frames().map(|frame| frame.command.input.own.number(field.kind, place.clone()));
        let data = ColumnData::of_numbers(field.kind, values.collect(), &session.texts);
        Column::new(field.name.as_str(), data).in_unit(field.unit())
    };
    cells_of(&fields).map(column).collect()
}

/// Returns the unknown columns of usercmds in the order of the `frames` rows; 0 where a usercmd has none.
fn unknown_of_usercmds(session: &Session, kind: &UnknownKind, records: &UnknownRecords) -> Vec<Column> {
    let rows: SortedMap<(u32, i64), usize> = records
        .series
        .iter()
        .zip(&records.keys)
        .enumerate()
        .map(|(row, (series, key))| ((*series, *key), row))
        .collect();
    let usercmds = (0..)
        .zip(&session.players)
        .flat_map(|(player, records)| records.frames.iter().map(move |frame| (player, i64::from(frame.command.seq.0))));
    let places: Vec<Option<usize>> = usercmds.map(|usercmd| rows.get(&usercmd).copied()).collect();
    let column = |(name, column): (&String, &UnknownColumn)| {
        let values = places.iter().map(|row| row.and_then(|row| column.values.get(row)).copied().unwrap_or(0));
        let field = kind.field(name);
        Column::new(name.as_str(), own_data(session, field, column, values.collect()))
            .in_unit(field.map_or("", |field| field.unit()))
    };
    kind.columns.iter().zip(&records.columns).map(column).collect()
}

/// Converts numbers to values of the declared type, or of the type that their form shows.
fn own_data(session: &Session, field: Option<&FieldSchema>, column: &UnknownColumn, values: Vec<i64>) -> ColumnData {
    let shown = match column.form {
        NumberForm::Integer => CellKind::I64,
        NumberForm::F32 => CellKind::F32,
        NumberForm::F64 => CellKind::F64,
    };
    // A log may declare a type that its numbers do not have.
    let declared = field.map(|field| field.kind).filter(|kind| kind.form() == column.form);
    ColumnData::of_numbers(declared.unwrap_or(shown), values, &session.texts)
}

/// The key of a shot: shooter, usercmd, and index within the usercmd.
type RecordedShotKey = (u32, u32, u32);

/// A shot as predicted, and as judged.
type RecordedShotSides<'a> = [Option<&'a ShotRecord>; 2];

/// Returns the shots of all players; `None` without shots.
fn shot_table(session: &Session) -> Option<Table> {
    let mut both: SortedMap<RecordedShotKey, RecordedShotSides<'_>> = SortedMap::new();
    for (player, records) in (0..).zip(&session.players) {
        for (side, shots) in [&records.predicted, &records.judged].into_iter().enumerate() {
            for shot in shots {
                let key = free_key(player, shot, |key| both.get(key).is_some_and(|of| of[side].is_some()));
                both.entry(key).or_default()[side] = Some(shot);
            }
        }
    }
    let ran = ticks_of_usercmds(session, &both);
    let mut table = shots::Writer::default();
    // Judged shots come first, in the server's order.
    let mut rows: Vec<_> = both.into_iter().collect();
    rows.sort_by_key(|(_, [_, judged])| judged.map_or(i64::MAX, |shot| shot.at.0));
    for (key, sides @ [_, judged]) in &rows {
        let tick = judged.and_then(|shot| {
            let at = session.ticks.iter().rev().find(|tick| tick.at <= shot.at).map(|tick| tick.tick);
            match ran.get(&(key.0, key.1)) {
                // A usercmd may act in several ticks.
                Some(ticks) if !shot.impact => ticks.iter().find(|tick| Some(**tick) == at).or(ticks.first()).copied(),
                _ => at,
            }
        });
        push_shot(&mut table, tick, *key, *sides, session);
    }
    let mut table = table.finish(Vec::new());
    // No record of a shot says whether a limit applied.
    table.columns.retain(|column| column.name != "limit");
    if session.header.holds() == LogContents::Clients {
        name_missing_server(&mut table);
    }
    let sides = || rows.iter().flat_map(|(_, sides)| sides).flatten();
    if sides().all(|shot| shot.weapon == TextCode::default()) {
        table.columns.retain(|column| column.name != "weapon");
    }
    // A client may count no pellets although the server does.
    for (side, name) in ["predicted_pellets", "pellets"].into_iter().enumerate() {
        if rows.iter().filter_map(|(_, sides)| sides[side]).all(|shot| shot.pellets.is_none()) {
            table.columns.retain(|column| column.name != name);
        }
    }
    (!rows.is_empty()).then_some(table)
}

/// The key of a shot, with the next free index if another shot of its usercmd was recorded with the same one. Impacts
/// have indices from [`IMPACT`] down, then the next free ones above.
fn free_key(player: u32, shot: &ShotRecord, is_taken: impl Fn(&RecordedShotKey) -> bool) -> RecordedShotKey {
    let (index, most) = (u32::from(shot.index), u32::from(IMPACT));
    let key = |index| (player, shot.command.0, index);
    let down = (1..=most - index.min(most - 1)).rev().filter(|_| shot.impact);
    let up = (if shot.impact { most + 1 } else { index })..;
    let index = down.chain(up).find(|index| !is_taken(&key(*index)));
    key(index.unwrap_or(u32::MAX))
}

/// The ticks in which the server ran the usercmds of these shots, as far as they were recorded, by player and usercmd.
fn ticks_of_usercmds<V>(session: &Session, shots: &SortedMap<RecordedShotKey, V>) -> SortedMap<(u32, u32), Vec<Tick>> {
    let players = (0..).zip(&session.players);
    let ran = players.flat_map(|(player, records)| records.executed.iter().map(move |done| (player, done)));
    let mut ticks: SortedMap<(u32, u32), Vec<Tick>> = SortedMap::new();
    for (player, done) in ran.filter(|(_, done)| done.how == Execution::Run) {
        let first = (player, done.command.0, 0);
        if shots.range(first..=(first.0, first.1, u32::MAX)).next().is_some() {
            ticks.entry((player, done.command.0)).or_default().push(done.tick);
        }
    }
    ticks
}

fn push_shot(
    table: &mut shots::Writer,
    tick: Option<Tick>,
    (shooter, command, index): RecordedShotKey,
    sides @ [predicted, judged]: RecordedShotSides<'_>,
    session: &Session,
) {
    // The code after the last reason means that there was no such shot.
    let reason = |shot: Option<&ShotRecord>| shot.map_or(HitResult::NAMES.len() as u8, |shot| shot.reason as u8);
    let target = |shot: Option<&ShotRecord>| match shot.and_then(|shot| shot.target) {
        Some(target) => target.name(session.header.players.len()),
        None => "none".to_owned(),
    };
    let hitgroup = |shot: Option<&ShotRecord>| match shot {
        Some(shot) if shot.target.is_some() => shot.hitgroup.to_string(),
        _ => "none".to_owned(),
    };
    let damage = |shot: Option<&ShotRecord>| shot.map_or(0, |shot| i64::from(shot.damage));
    // In a game that counts pellets, a hit without a count is one pellet.
    let pellets = |shot: Option<&ShotRecord>| {
        let uncounted = |shot: &ShotRecord| u8::from(shot.reason == HitResult::Hit);
        shot.map_or(0, |shot| shot.pellets.unwrap_or_else(|| uncounted(shot))).into()
    };
    let at = judged.or(predicted).map_or(0, |shot| shot.at.0);
    let weapon = [judged, predicted].into_iter().flatten().map(|shot| session.texts.get(shot.weapon));
    table.push(shots::Row {
        shooter,
        command,
        index,
        impact: sides.into_iter().flatten().any(|shot| shot.impact).into(),
        at_us: at,
        tick: tick.map_or(0, |tick| tick.0),
        weapon: weapon.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
        rewind_us: judged.map_or(0, |shot| shot.rewound.0),
        limit: 0,
        aimed_at: "none",
        aimed_by: 0,
        aim_off_degrees: f32::NAN,
        view_error_units: f32::NAN,
        predicted_reason: reason(predicted),
        predicted_target: &target(predicted),
        predicted_hitgroup: &hitgroup(predicted),
        predicted_damage: damage(predicted),
        predicted_pellets: pellets(predicted),
        predicted_also_hit: "none",
        reason: reason(judged),
        target: &target(judged),
        hitgroup: &hitgroup(judged),
        damage: damage(judged),
        pellets: pellets(judged),
        also_hit: "none",
        visible_at_present: 0,
        in_cover_ms: f32::NAN,
        in_cover_units: f32::NAN,
        given_target: "none",
        given_damage: None,
        present_target: "none",
        off_units: None,
        beyond_spread_units: None,
    });
}

/// Returns the damage records; `None` without damage.
fn damage_table(session: &Session) -> Option<Table> {
    let rows = &session.damage;
    let players = session.header.players.len();
    let attacker = |of: Option<PlayerId>| of.map_or_else(|| "none".to_owned(), |of| of.entity().name(players));
    let mut columns = vec![
        Column::new("tick", ColumnData::U32(rows.iter().map(|row| row.tick.0).collect())),
        Column::new("at_us", ColumnData::I64(rows.iter().map(|row| row.at.0).collect())).in_unit("µs"),
        Column::new("victim", ColumnData::U32(rows.iter().map(|row| row.victim.0.into()).collect())),
        Column::new("attacker", ColumnData::of_texts(rows.iter().map(|row| attacker(row.attacker)))),
        Column::new("amount", ColumnData::I64(rows.iter().map(|row| row.amount.into()).collect())),
    ];
    if rows.iter().any(|row| row.weapon != TextCode::default()) {
        let codes = rows.iter().map(|row| row.weapon.0 as i64).collect();
        columns.push(Column::new("weapon", ColumnData::of_numbers(CellKind::Text, codes, &session.texts)));
    }
    // Rows without a value have NaN.
    let mut measure = |name: &str, unit: &str, value: &dyn Fn(&DamageRecord) -> Option<f32>| {
        let cells: Vec<f32> = rows.iter().map(|row| value(row).unwrap_or(f32::NAN)).collect();
        if cells.iter().any(|cell| !cell.is_nan()) {
            columns.push(Column::new(name, ColumnData::F32(cells)).in_unit(unit));
        }
    };
    measure("armour", "", &|row| row.armour.map(f32::from));
    for (axis, name) in ["force.x", "force.y", "force.z"].into_iter().enumerate() {
        measure(name, "units/s", &|row| row.force.map(|force| force[axis]));
    }
    (!rows.is_empty()).then(|| Table::new("damage", columns).keyed_by(["tick", "victim", "attacker"]))
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

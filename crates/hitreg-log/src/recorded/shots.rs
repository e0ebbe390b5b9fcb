//! Tables of shots, predicted and judged, and of damage.

use crate::record::{CellKind, DamageRecord, Execution, LogContents, Reason, Session, ShotRecord, TextCode};
use crate::sorted::SortedMap;
use crate::trace::schema::{IMPACT, name_missing_server, shots};
use crate::trace::{Column, ColumnData, Table};
use crate::units::{PlayerId, Tick};

/// The key of a shot: shooter, usercmd, and index within the usercmd.
type RecordedShotKey = (u32, u32, u32);

/// A shot as predicted, and as judged.
type RecordedShotSides<'a> = [Option<&'a ShotRecord>; 2];

/// Returns the shots of all players; `None` without shots.
pub(super) fn shots(session: &Session) -> Option<Table> {
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
        push(&mut table, tick, *key, *sides, session);
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

fn push(
    table: &mut shots::Writer,
    tick: Option<Tick>,
    (shooter, command, index): RecordedShotKey,
    sides @ [predicted, judged]: RecordedShotSides<'_>,
    session: &Session,
) {
    // The code after the last reason means that there was no such shot.
    let reason = |shot: Option<&ShotRecord>| shot.map_or(Reason::NAMES.len() as u8, |shot| shot.reason as u8);
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
        let uncounted = |shot: &ShotRecord| u8::from(shot.reason == Reason::Hit);
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
        reason: reason(judged),
        target: &target(judged),
        hitgroup: &hitgroup(judged),
        damage: damage(judged),
        pellets: pellets(judged),
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
pub(super) fn damage(session: &Session) -> Option<Table> {
    let rows = &session.damage;
    let players = session.header.players.len();
    let attacker = |of: Option<PlayerId>| of.map_or_else(|| "none".to_owned(), |of| of.entity().name(players));
    let mut names: Vec<String> = rows.iter().map(|row| attacker(row.attacker)).collect();
    names.sort_unstable();
    names.dedup();
    let code = |name: &String| names.binary_search(name).unwrap_or_default() as u32;
    let codes = rows.iter().map(|row| code(&attacker(row.attacker))).collect();
    let mut columns = vec![
        Column::new("tick", ColumnData::U32(rows.iter().map(|row| row.tick.0).collect())),
        Column::new("at_us", ColumnData::I64(rows.iter().map(|row| row.at.0).collect())).in_unit("µs"),
        Column::new("victim", ColumnData::U32(rows.iter().map(|row| row.victim.0.into()).collect())),
        Column::new("attacker", ColumnData::Name { names, codes }),
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

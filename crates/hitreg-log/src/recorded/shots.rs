//! Tables of shots, predicted and judged, and of damage.

use std::collections::BTreeMap;

use crate::record::{Execution, Reason, Session, ShotRecord};
use crate::trace::schema::{IMPACT, shots};
use crate::trace::{Column, ColumnData, Table};
use crate::units::{EntityId, Tick};

/// The key of a shot: shooter, usercmd, and index within the usercmd.
type RecordedShotKey = (u32, u32, u8);

/// Returns the shots of all players; `None` without shots.
pub(super) fn shots(session: &Session) -> Option<Table> {
    let mut both: BTreeMap<RecordedShotKey, (Option<&ShotRecord>, Option<&ShotRecord>)> = BTreeMap::new();
    for (player, records) in (0..).zip(&session.players) {
        for shot in &records.predicted {
            let key =
                free_key((player, shot.command.0, shot.index), |key| both.get(key).is_some_and(|of| of.0.is_some()));
            both.entry(key).or_default().0 = Some(shot);
        }
        for shot in &records.judged {
            let key =
                free_key((player, shot.command.0, shot.index), |key| both.get(key).is_some_and(|of| of.1.is_some()));
            both.entry(key).or_default().1 = Some(shot);
        }
    }
    let ran = ticks_of_usercmds(session, &both);
    let mut table = shots::Writer::default();
    // Judged shots come first, in the server's order.
    let mut rows: Vec<_> = both.into_iter().collect();
    rows.sort_by_key(|(_, (_, judged))| judged.map_or(i64::MAX, |shot| shot.at.0));
    for (key, (predicted, judged)) in &rows {
        let tick = judged.and_then(|shot| {
            let at = session.ticks.iter().rev().find(|tick| tick.at <= shot.at).map(|tick| tick.tick);
            match ran.get(&(key.0, key.1)) {
                // A usercmd may act in several ticks.
                Some(ticks) if key.2 != IMPACT => {
                    ticks.iter().find(|tick| Some(**tick) == at).or(ticks.first()).copied()
                }
                _ => at,
            }
        });
        push(&mut table, tick, *key, *predicted, *judged);
    }
    (!rows.is_empty()).then(|| table.finish(Vec::new()))
}

/// The key of a shot, with the next free index if another shot of its usercmd was recorded with the same one.
fn free_key(key: RecordedShotKey, is_taken: impl Fn(&RecordedShotKey) -> bool) -> RecordedShotKey {
    let (player, command, index) = key;
    let keys = (index..=u8::MAX).map(|index| (player, command, index));
    keys.into_iter().find(|key| !is_taken(key)).unwrap_or(key)
}

/// The ticks in which the server ran the usercmds of these shots, as far as they were recorded, by player and usercmd.
fn ticks_of_usercmds<V>(session: &Session, shots: &BTreeMap<RecordedShotKey, V>) -> BTreeMap<(u32, u32), Vec<Tick>> {
    let players = (0..).zip(&session.players);
    let ran = players.flat_map(|(player, records)| records.executed.iter().map(move |done| (player, done)));
    let mut ticks: BTreeMap<(u32, u32), Vec<Tick>> = BTreeMap::new();
    for (player, done) in ran.filter(|(_, done)| done.how == Execution::Run) {
        let first = (player, done.command.0, 0);
        if shots.range(first..=(first.0, first.1, u8::MAX)).next().is_some() {
            ticks.entry((player, done.command.0)).or_default().push(done.tick);
        }
    }
    ticks
}

fn push(
    table: &mut shots::Writer,
    tick: Option<Tick>,
    (shooter, command, index): RecordedShotKey,
    predicted: Option<&ShotRecord>,
    judged: Option<&ShotRecord>,
) {
    // The code after the last reason means that there was no such shot.
    let reason = |shot: Option<&ShotRecord>| shot.map_or(Reason::NAMES.len() as u8, |shot| shot.reason as u8);
    let target = |shot: Option<&ShotRecord>| name_of(shot.and_then(|shot| shot.target));
    let hitgroup = |shot: Option<&ShotRecord>| match shot {
        Some(shot) if shot.target.is_some() => shot.hitgroup.to_string(),
        _ => "none".to_owned(),
    };
    let damage = |shot: Option<&ShotRecord>| shot.map_or(0, |shot| i64::from(shot.damage));
    let at = judged.or(predicted).map_or(0, |shot| shot.at.0);
    table.push(shots::Row {
        shooter,
        command,
        index: index.into(),
        impact: (index == IMPACT).into(),
        at_us: at,
        tick: tick.map_or(0, |tick| tick.0),
        weapon: "",
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
        predicted_pellets: 0,
        reason: reason(judged),
        target: &target(judged),
        hitgroup: &hitgroup(judged),
        damage: damage(judged),
        pellets: 0,
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

/// Returns the name of an entity in tables.
fn name_of(entity: Option<EntityId>) -> String {
    entity.map_or_else(|| "none".to_owned(), |entity| format!("p{entity}"))
}

/// Returns the damage records; `None` without damage.
pub(super) fn damage(session: &Session) -> Option<Table> {
    let rows = &session.damage;
    let attacker = |player: Option<crate::units::PlayerId>| name_of(player.map(crate::units::PlayerId::entity));
    let mut names: Vec<String> = rows.iter().map(|row| attacker(row.attacker)).collect();
    names.sort_unstable();
    names.dedup();
    let code = |name: &String| names.binary_search(name).unwrap_or_default() as u32;
    let codes = rows.iter().map(|row| code(&attacker(row.attacker))).collect();
    let columns = vec![
        Column::new("tick", ColumnData::U32(rows.iter().map(|row| row.tick.0).collect())),
        Column::new("at_us", ColumnData::I64(rows.iter().map(|row| row.at.0).collect())).in_unit("µs"),
        Column::new("victim", ColumnData::U32(rows.iter().map(|row| row.victim.0.into()).collect())),
        Column::new("attacker", ColumnData::Name { names, codes }),
        Column::new("amount", ColumnData::I64(rows.iter().map(|row| row.amount.into()).collect())),
    ];
    (!rows.is_empty()).then(|| Table::new("damage", columns).keyed_by(["tick", "victim", "attacker"]))
}

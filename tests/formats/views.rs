//! Views are packed relative to the states that they were interpolated between. Unpacking gives the same bits for any
//! values.

use hitreg::log::{TraceWriter, read_trace, write_trace};
use hitreg::trace::schema::{bodies, ticks, views};
use hitreg::trace::{Column, ColumnData, Table, Trace, TraceHeader};
use proptest::prelude::*;

const TICK_US: i64 = 15_625;
const PLAYERS: u32 = 6;
const TICKS: u32 = 120;

/// An entity's position and view angles after a tick.
fn body_at(tick: u32, entity: u32) -> [f32; 5] {
    let (t, e) = (tick as f32, entity as f32);
    [
        100.0 * e + 3.7 * t,
        libm::sinf(t * 0.1 + e) * 250.0,
        24.0 + 0.031_25 * t * e,
        libm::cosf(t * 0.05) * 40.0,
        // An angle that wraps.
        (t * 7.3 + e * 50.0) % 360.0 - 180.0,
    ]
}

fn between(from: [f32; 5], to: [f32; 5], share: f32) -> [f32; 5] {
    if share >= 1.0 {
        return to;
    }
    std::array::from_fn(|part| {
        let by = to[part] - from[part];
        let by = if part > 2 && by.abs() >= 180.0 { by - 360.0 * libm::roundf(by / 360.0) } else { by };
        from[part] + by * share
    })
}

/// A session in which each player draws the others 50 ms late, between every third tick. Every 50th view is of another
/// kind.
pub(crate) fn session() -> [Table; 3] {
    session_with_resting_players(&|_| false)
}

/// The session, in which some players do not move.
fn session_with_resting_players(stands: &dyn Fn(u32) -> bool) -> [Table; 3] {
    let place = |tick: u32, entity: u32| body_at(if stands(entity) { 0 } else { tick }, entity);
    let (mut ticks, mut bodies, mut views) =
        (ticks::Writer::default(), bodies::Writer::default(), views::Writer::default());
    let mut cells: [Vec<f32>; 5] = Default::default();
    for tick in 1..=TICKS {
        ticks.push(ticks::Row { tick, at_us: i64::from(tick) * TICK_US, hash: u64::from(tick) });
        for entity in 0..PLAYERS {
            bodies.push(bodies::Row { tick, entity });
            cells.iter_mut().zip(place(tick, entity)).for_each(|(column, value)| column.push(value));
        }
    }
    let mut row = 0;
    for command in 1..=100 {
        for player in 0..PLAYERS {
            let drawn_at_us = 200_000 + i64::from(command) * 15_000 + i64::from(player) * 1_777;
            let (tick, phase) = ((drawn_at_us / TICK_US) as u32, player % 3);
            let from = tick - (tick + phase) % 3;
            let share = (drawn_at_us - i64::from(from) * TICK_US) as f32 / (3 * TICK_US) as f32;
            for entity in (0..PLAYERS).filter(|entity| *entity != player) {
                row += 1;
                let is_told = row % 50 == 0;
                let [x, y, z, pitch, yaw] = match is_told {
                    true => [f32::NAN, -0.0, 1.0, f32::INFINITY, row as f32],
                    false => between(place(from, entity), place(from + 3, entity), share),
                };
                views.push(views::Row {
                    player,
                    command,
                    drawn_at_us,
                    entity,
                    origin: hitreg::glam::Vec3::new(x, y, z),
                    pitch,
                    yaw,
                    how: if is_told { 3 } else { 0 },
                    category: None,
                    teleports: None,
                });
            }
        }
    }
    let names = ["origin.x", "origin.y", "origin.z", "viewangles.x", "viewangles.y"];
    let cells = names.into_iter().zip(cells).map(|(name, cells)| Column::new(name, ColumnData::F32(cells)));
    [ticks.finish(Vec::new()), bodies.finish(cells.collect()), views.finish(Vec::new())]
}

pub(crate) fn trace() -> Trace {
    Trace { header: TraceHeader { game: "disc".into(), ..TraceHeader::default() }, tables: session().into() }
}

fn bits(trace: &Trace) -> Vec<hitreg::trace::Digest> {
    trace.tables.iter().map(Table::digest).collect()
}

#[test]
fn views_are_packed_relative_to_states() {
    let trace = trace();
    let file = write_trace(Vec::new(), &trace).unwrap();
    assert_eq!(bits(&read_trace(&file[..]).unwrap()), bits(&trace));
    // The same views without the table of bodies.
    let mut alone = trace.clone();
    alone.tables[1].name = "elsewhere".into();
    let plain = write_trace(Vec::new(), &alone).unwrap();
    assert_eq!(bits(&read_trace(&plain[..]).unwrap())[2], bits(&trace)[2]);
    let without = Trace { tables: trace.tables[..2].to_vec(), ..trace.clone() };
    let bodies = write_trace(Vec::new(), &without).unwrap().len();
    let (packed, plain) = (file.len() - bodies, plain.len() - bodies);
    assert!(packed * 3 < plain, "{packed} bytes of views against {plain}");
}

/// A body at rest fits between any two states, so it does not show which states the other bodies were drawn between.
#[test]
fn views_of_resting_players_are_packed_well() {
    let size = |stands: &dyn Fn(u32) -> bool| {
        let trace = |tables: &[Table]| Trace { tables: tables.to_vec(), ..Trace::default() };
        let (all, tables) = (
            write_trace(Vec::new(), &trace(&session_with_resting_players(stands))).unwrap(),
            session_with_resting_players(stands),
        );
        assert_eq!(bits(&read_trace(&all[..]).unwrap()), bits(&trace(&tables)));
        all.len() - write_trace(Vec::new(), &trace(&tables[..2])).unwrap().len()
    };
    let moving = size(&|_| false);
    for some in [&[0, 1, 2, 3][..], &[0, 3, 5], &[0, 2, 4, 5]] {
        let standing = size(&|entity| some.contains(&entity));
        assert!(standing < moving, "{standing} bytes if {some:?} do not move, {moving} if all move");
    }
}

#[test]
fn views_before_their_states_are_packed_without_them() {
    let [ticks, bodies, views] = session();
    let mut writer = TraceWriter::new(Vec::new(), &TraceHeader::default()).unwrap();
    // The views come first, and again after their states.
    [&views, &bodies, &ticks, &views].into_iter().for_each(|rows| writer.rows(rows).unwrap());
    let read = read_trace(&writer.finish().unwrap()[..]).unwrap();
    let mut twice = views.clone();
    twice.append(views).unwrap();
    assert_eq!(read.tables[0].digest(), twice.digest());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_views_survive_a_round_trip(
        changes in prop::collection::vec((0usize..3_000, 0usize..10, any::<u32>()), 0..40),
        bodies_changes in prop::collection::vec((0usize..700, 0usize..5, any::<u32>()), 0..10),
        rows in 1usize..3_000,
    ) {
        let mut trace = trace();
        for (row, column, value) in bodies_changes {
            if let ColumnData::F32(cells) = &mut trace.tables[1].columns[2 + column].data {
                cells[row] = f32::from_bits(value);
            }
        }
        let views = &mut trace.tables[2];
        for (row, column, value) in changes {
            match &mut views.columns[column].data {
                ColumnData::U32(cells) => cells[row] = value % 9,
                ColumnData::F32(cells) => cells[row] = f32::from_bits(value),
                ColumnData::I64(cells) => cells[row] = i64::from(value),
                ColumnData::Name { codes, .. } => codes[row] = value % 4,
                ColumnData::U64(_) | ColumnData::F64(_) | ColumnData::Bool(_) => {}
            }
        }
        for column in &mut views.columns {
            match &mut column.data {
                ColumnData::U32(cells) | ColumnData::Name { codes: cells, .. } => cells.truncate(rows),
                ColumnData::F32(cells) => cells.truncate(rows),
                ColumnData::I64(cells) => cells.truncate(rows),
                ColumnData::U64(cells) => cells.truncate(rows),
                ColumnData::F64(cells) => cells.truncate(rows),
                ColumnData::Bool(cells) => cells.truncate(rows),
            }
        }
        let file = write_trace(Vec::new(), &trace).unwrap();
        prop_assert_eq!(bits(&read_trace(&file[..]).unwrap()), bits(&trace));
    }
}

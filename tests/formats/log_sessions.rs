//! Sessions from arithmetic alone, for the tests of the log. They never change.

use glam::Vec3;
use hitreg::game::{CellKind, Class, Effect, FieldSchema, Scope};
use hitreg::record::{
    ArrivalRecord, Execution, ExecutionRecord, FrameRecord, Origin, PacketRecord, PlayerInfo, Session, SessionHeader,
    SnapshotRecord, StateRecord, TickRecord, usercmd_fields,
};
use hitreg::rng::Rng;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg::usercmd::{Input, Usercmd};

const CELLS: [(&str, CellKind); 12] = [
    ("origin.x", CellKind::F32),
    ("origin.y", CellKind::F32),
    ("origin.z", CellKind::F32),
    ("velocity.x", CellKind::F32),
    ("velocity.y", CellKind::F32),
    ("velocity.z", CellKind::F32),
    ("viewangles.x", CellKind::F32),
    ("viewangles.y", CellKind::F32),
    ("viewangles.z", CellKind::F32),
    ("health", CellKind::I32),
    ("teleports", CellKind::U32),
    ("alive", CellKind::U32),
];

pub(crate) fn header(players: u16) -> SessionHeader {
    let field = |(name, kind): (&str, CellKind)| FieldSchema::new(name, kind, Scope::Movement);
    SessionHeader {
        game: "disc".into(),
        rules: vec![0x80].into(),
        map: "flat".into(),
        seed: Seed(7),
        settings: vec![("server.tick_hz".into(), "64".into())],
        preset: Some("half-life".into()),
        players: (0..players).map(|p| PlayerInfo { name: format!("p{p}"), recorded: true }).collect(),
        origin: Origin::Synthetic,
        side: None,
        classes: Class::only(CELLS.map(field).to_vec()),
        usercmd: usercmd_fields(),
        usercmd_bytes: false,
        unknown: Vec::new(),
    }
}

/// Players run in circles, look around, and lose some packets, at 64 usercmds and ticks a second.
pub(crate) fn session(players: u16, ticks: u32) -> Session {
    let mut session = Session::new(header(players));
    let mut bodies = vec![[0.0f32; 9]; usize::from(players)];
    for tick in 1..=ticks {
        let at = Micros(i64::from(tick) * 15_625);
        for player in 0..players {
            let rng = Rng::for_command(Seed(7), PlayerId(player), CommandSeq(tick));
            play(&mut session, player, tick, at, rng, &mut bodies[usize::from(player)]);
        }
        for player in 0..players {
            let body = bodies[usize::from(player)];
            let mut cells = body.map(f32::to_bits).to_vec();
            cells.extend([100 - (tick / 50) % 100, 0, 1]);
            session.states.push(StateRecord::shared(Tick(tick), EntityId(player), Vec::new()).key(), &cells);
        }
        session.ticks.push(TickRecord {
            tick: Tick(tick),
            at,
            hash: Some(u64::from(tick).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        });
    }
    session
}

fn play(session: &mut Session, player: u16, tick: u32, at: Micros, mut rng: Rng, body: &mut [f32; 9]) {
    let records = &mut session.players[usize::from(player)];
    let turn = |rng: &mut Rng| (rng.signed_f32() * 900.0) as i32 as f32 * (360.0 / 65536.0);
    let last = records.frames.last().map_or(Vec3::ZERO, |f: &FrameRecord| f.command.input.viewangles);
    let viewangles = Vec3::new(last.x + turn(&mut rng), last.y + turn(&mut rng), 0.0);
    let made = at - Micros(20_000 + (rng.unit_f32() * 900.0) as i64);
    let input = Input {
        msec: if tick.is_multiple_of(3) { 15 } else { 16 },
        viewangles,
        forwardmove: if (tick / 40).is_multiple_of(3) { 320.0 } else { 0.0 },
        sidemove: if (tick / 25).is_multiple_of(2) { -320.0 } else { 320.0 },
        buttons: u16::from(rng.chance(0.05)),
        ..Input::default()
    };
    let buttons = input.buttons;
    let command = Usercmd { seq: CommandSeq(tick), lerp_msec: 100, server_time: made - Micros(18_000), input };
    records.frames.push(FrameRecord { at: made, command, ..FrameRecord::default() });
    let packet = PacketRecord {
        number: tick,
        at: made,
        newest: CommandSeq(tick),
        count: 3,
        ack: SnapshotSeq(tick - 1),
        bytes: 61,
    };
    records.sent.push(packet);
    let lost = rng.chance(0.02);
    if !lost {
        let reached = made + Micros(15_000 + (rng.unit_f32() * 4_000.0) as i64);
        records.reached.push(ArrivalRecord { number: tick, at: reached });
    }
    let how = if lost { Execution::StoodIn } else { Execution::Run };
    records.executed.push(ExecutionRecord { command: CommandSeq(tick), tick: Tick(tick), how });
    let yaw = viewangles.y.to_radians();
    for (axis, pull) in [(0, 1.0 - yaw * yaw / 2.0), (1, yaw)] {
        body[3 + axis] = body[3 + axis] * 0.95 + pull.clamp(-1.0, 1.0) * 16.0;
        body[axis] += body[3 + axis] * 0.015_625;
    }
    body[6..9].copy_from_slice(&viewangles.to_array());
    let effect =
        Effect { kind: 2, entity: EntityId(player), at: Vec3::new(body[0], body[1], body[2]), predictable: true };
    records.snapshots.push(SnapshotRecord {
        seq: SnapshotSeq(tick),
        tick: Tick(tick),
        at,
        server_time: at,
        ack: CommandSeq(tick),
        bytes: 180 + (rng.unit_f32() * 40.0) as u16,
        choked: 0,
        entities: (0..session.header.players.len() as u16).map(EntityId).collect(),
        effects: if buttons == 1 { vec![effect] } else { Vec::new() },
        extra: Vec::new(),
        timing: None,
    });
    records.received.push(ArrivalRecord { number: tick, at: at + Micros(15_000 + (rng.unit_f32() * 4_000.0) as i64) });
}

//! Reconstructs a demo from its session, for tests. The result is exact except for times, which are whole microseconds
//! in a log. A demo that survives the round trip lost nothing in the import.

use crate::quakeworld::body::{FIRST_MODEL, QuakeWorldBody, command_of, flag};
use crate::quakeworld::demo::{Mover, OtherPlayer, OwnState, QuakeWorldDemo, RecordedBy, SentCommand, ServerPacket};
use crate::quakeworld::events::{Extra, PacketEvents};
use crate::quakeworld::{QuakeWorld, QuakeWorldRules};
use hitreg_log::record::{FrameRecord, Session, SnapshotRecord};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg_netcode::game::StateRows;

/// Returns the demo that the session was made from.
pub(crate) fn recorded_demo(session: &Session, rules: &QuakeWorldRules) -> QuakeWorldDemo {
    let records = &session.players[usize::from(rules.player.0)];
    let sent = |frame: &FrameRecord| SentCommand {
        seq: demo_seq(rules, frame.command.seq),
        time_s: time_s(rules, frame.at),
        cmd: command_of(&frame.command.input),
    };
    let demo = QuakeWorldDemo {
        recorded_by: RecordedBy::Player,
        server: rules.server.clone(),
        levels: rules.levels.clone(),
        commands: records.frames.iter().map(sent).collect(),
        packets: Vec::with_capacity(records.snapshots.len()),
        move_vars: rules.move_vars.clone(),
        end: rules.end,
        ..QuakeWorldDemo::default()
    };
    let mut rebuild = DemoRebuilder { bodies: RecordedBodies::of(session), rules, demo, level: 0, move_vars: 0 };
    for snapshot in &records.snapshots {
        rebuild.add(snapshot);
    }
    rebuild.demo
}

/// The bodies of a session.
pub(crate) struct RecordedBodies<'a> {
    session: &'a Session,
    rows: StateRows,
}

impl RecordedBodies<'_> {
    pub(crate) fn of(session: &Session) -> RecordedBodies<'_> {
        let rows = StateRows::new::<QuakeWorld>(&session.header.classes).expect("an import's");
        RecordedBodies { session, rows }
    }

    pub(crate) fn get(&self, tick: Tick, player: PlayerId, entity: EntityId) -> QuakeWorldBody {
        let (class, cells) = self.session.states.sent(tick, player, entity).next().expect("a state");
        self.rows.read::<QuakeWorld>(class, cells).expect("a body").expect("a class of this game")
    }
}

struct DemoRebuilder<'a> {
    bodies: RecordedBodies<'a>,
    rules: &'a QuakeWorldRules,
    demo: QuakeWorldDemo,
    level: u16,
    move_vars: u16,
}

impl DemoRebuilder<'_> {
    fn add(&mut self, snapshot: &SnapshotRecord) {
        let extra = Extra::of_bytes(&snapshot.extra).expect("an import's");
        self.level = extra.level.unwrap_or(self.level);
        self.move_vars = extra.move_vars.unwrap_or(self.move_vars);
        let sorted = PacketEvents { choked: snapshot.choked, effects: snapshot.effects.clone(), rest: extra.events };
        let (mut own, mut others, mut movers) = (None, Vec::new(), Vec::new());
        for entity in &snapshot.entities {
            let row = self.bodies.get(snapshot.tick, self.rules.player, *entity);
            if *entity == self.rules.player.entity() {
                own = Some(own_state(&row));
            } else if row.has(flag::UNSENT) {
                // The demo did not contain it.
            } else if let Some(model) = entity.0.checked_sub(FIRST_MODEL.0) {
                movers.push(Mover { model, origin: row.origin.to_array() });
            } else {
                others.push(self.other(*entity, &row));
            }
        }
        self.demo.packets.push(ServerPacket {
            time_s: time_s(self.rules, snapshot.at),
            sequence: snapshot.seq.0,
            level: self.level,
            ack: demo_seq(self.rules, snapshot.ack),
            own,
            others,
            movers,
            events: sorted.events().expect("an import's"),
            move_vars: self.move_vars,
        });
    }

    fn other(&self, entity: EntityId, row: &QuakeWorldBody) -> OtherPlayer {
        OtherPlayer {
            slot: self.rules.swap_slot(self.level, entity.0 as u8),
            origin: row.origin.to_array(),
            velocity: wire_velocity(row),
            angles: row.viewangles.to_array(),
            age_ms: row.age_ms,
            dead: !row.alive,
            gib: row.has(flag::GIB),
            command: row.last_command(),
            bot: row.has(flag::BOT),
        }
    }
}

/// Returns the player's state in a demo; the inverse of [`QuakeWorldBody::of_own`].
fn own_state(body: &QuakeWorldBody) -> OwnState {
    OwnState {
        origin: body.origin.to_array(),
        velocity: wire_velocity(body),
        dead: !body.alive,
        gib: body.has(flag::GIB),
        lies: body.has(flag::LIES),
        jump_held: body.has(flag::JUMP_TOLD).then(|| body.has(flag::JUMP_HELD)),
        movable: !body.has(flag::FIXED),
        over: body.over(),
    }
}

fn wire_velocity(body: &QuakeWorldBody) -> [i16; 3] {
    body.velocity.to_array().map(|v| v as i16)
}

/// Returns the demo's time; the inverse of [`QuakeWorldRules::at`]. Exact from 16 s on, where a single has steps of at least a
/// microsecond.
fn time_s(rules: &QuakeWorldRules, at: Micros) -> f32 {
    (at.0.saturating_add(rules.start_us) as f64 / 1e6) as f32
}

/// Returns the demo's number of a usercmd.
fn demo_seq(rules: &QuakeWorldRules, seq: CommandSeq) -> i32 {
    i32::try_from(i64::from(seq.0) - i64::from(rules.seq_shift)).expect("an import's")
}

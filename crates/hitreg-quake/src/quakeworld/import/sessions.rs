//! Converts a demo to a session. The recording player's usercmds become frames, packets with the player's state become
//! snapshots, and everything visible becomes entity states.
//!
//! A snapshot has the server's sequence number. Its tick is its index in the recording, because the wire does not carry
//! the server's clock. Its times are arrival times. The sizes of all packets are unknown: a client's demo has usercmds
//! without the datagrams that carried them, and the reader of demos drops the sizes of the server's.
//!
//! Every packet since the first state of a player becomes a snapshot, also if it shows no player, as during a change of
//! level and after the intermission. In a server's demo, which has no packets, the moments with players become
//! snapshots, numbered without gaps. Events of its other moments go into the next snapshot.

use glam::Vec3;

use super::bodies::{UnsentMovers, bodies_of};
use super::{DemoImportError, ImportOptions};
use crate::import::header_of;
use crate::quakeworld::body::{FIRST_MODEL, QuakeWorldBody, input_of};
use crate::quakeworld::demo::{
    DemoEvent, EffectKind, ExecutedUsercmd, Mover, QuakeWorldDemo, RecordedBy, ServerPacket,
};
use crate::quakeworld::events::{Extra, PacketEvents};
use crate::quakeworld::{LATEST_TIME_S, QuakeWorld, QuakeWorldRules};
use hitreg_log::record::{
    ArrivalRecord, DamageRecord, FrameRecord, Origin, PacketRecord, PlayerInfo, Record, Session, SessionHeader,
    SnapshotRecord, StateRecord,
};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::StateRows;
use hitreg_netcode::settings::Settings;

/// Number of usercmds in a QuakeWorld packet: the newest and the two before it.
const COMMANDS_IN_A_PACKET: usize = 3;

/// Creates the session.
///
/// # Errors
/// When times or numbers are out of range, or the map lacks a brush model.
pub(crate) fn session_of(
    demo: &QuakeWorldDemo,
    rules: &QuakeWorldRules,
    options: &ImportOptions,
) -> Result<Session, DemoImportError> {
    let mut importer = Importer {
        demo,
        rules,
        force_map: options.force_map,
        session: Session::new(header(demo, rules)?),
        jumps: JumpCounts::default(),
        last: None,
        events: Vec::new(),
        states: Vec::new(),
        rows: StateRows::own::<QuakeWorld>(),
        ticks: Vec::new(),
        unsent: UnsentMovers::find(demo, &rules.map),
    };
    importer.add_packets()?;
    importer.add_commands()?;
    importer.add_hits()?;
    Ok(importer.session)
}

fn header(demo: &QuakeWorldDemo, rules: &QuakeWorldRules) -> Result<SessionHeader, DemoImportError> {
    let slots = demo
        .packets
        .iter()
        .flat_map(|packet| packet.others.iter().map(|other| rules.swap_slot(packet.level, other.slot)));
    let own = rules.player.0 as u8;
    let is_served = demo.recorded_by == RecordedBy::Server;
    let highest = slots.fold(own, u8::max);
    let player = |slot: u8| PlayerInfo { name: format!("p{slot}"), recorded: slot == own };
    let origin = Origin::Imported { format: if is_served { "mvd" } else { "qwd" }.to_owned() };
    Ok(header_of::<QuakeWorld>(rules, &settings()?, (0..=highest).map(player).collect(), origin)?)
}

/// Returns the preset's settings with two changes. Other players are interpolated from a position history, to show what
/// a history would have given. The QuakeWorld client extrapolates; `--preset quakeworld` draws as it did. Predictions
/// run as the server ran them, because the import tests the movement code and not guesses at other players' input.
fn settings() -> Result<Settings, DemoImportError> {
    let mut settings = Settings::preset("quakeworld")?;
    settings.set("interpolation.mode", "history")?;
    settings.set("interpolation.lerp_ms", "100")?;
    settings.set("prediction.among", "acking-packet")?;
    Ok(settings)
}

struct Importer<'a> {
    demo: &'a QuakeWorldDemo,
    rules: &'a QuakeWorldRules,
    force_map: bool,
    session: Session,
    jumps: JumpCounts,
    last: Option<LastSnapshot>,
    /// Events since the last snapshot, and in the current packet.
    events: Vec<DemoEvent>,
    /// States of the current snapshot, ascending by entity.
    states: Vec<(EntityId, QuakeWorldBody)>,
    rows: StateRows,
    /// The packets that became snapshots.
    ticks: Vec<PacketTick>,
    unsent: UnsentMovers,
}

/// The last snapshot.
#[derive(Clone, Copy)]
struct LastSnapshot {
    seq: SnapshotSeq,
    level: u16,
    move_vars: u16,
}

/// The tick of a packet that became a snapshot.
struct PacketTick {
    packet: u32,
    tick: Tick,
    at: Micros,
}

impl Importer<'_> {
    /// Returns the session time, at least `last`: frames may be recorded slightly out of order. The demo's reader repairs
    /// damaged times.
    fn session_time(
        &self,
        what: &'static str,
        index: usize,
        time_s: f32,
        last: Option<Micros>,
    ) -> Result<Micros, DemoImportError> {
        if !(-LATEST_TIME_S..=LATEST_TIME_S).contains(&time_s) {
            return Err(DemoImportError::Time { what, index, time_s });
        }
        let at = self.rules.at(time_s);
        Ok(last.map_or(at, |last| last.max(at)))
    }

    fn add_packets(&mut self) -> Result<(), DemoImportError> {
        let is_served = self.demo.recorded_by == RecordedBy::Server;
        for (index, packet) in self.demo.packets.iter().enumerate() {
            // A client drops duplicate packets. Packets before the first state contribute only to the rules.
            let is_stale = !is_served && self.last.is_some_and(|last| packet.sequence <= last.seq.0);
            let is_watched = self.demo.recorded_by != RecordedBy::Player;
            let has_players = packet.own.is_some() || is_watched && !packet.others.is_empty();
            let is_before_play = self.last.is_none() && !has_players;
            if is_stale || is_before_play {
                continue;
            }
            self.events.extend_from_slice(&packet.events);
            if has_players || !is_served {
                self.add_snapshot(index, packet)?;
                self.events.clear();
            }
        }
        Ok(())
    }

    fn add_snapshot(&mut self, index: usize, packet: &ServerPacket) -> Result<(), DemoImportError> {
        let player = self.rules.player;
        let before = self.session.players[usize::from(player.0)].snapshots.last();
        let tick = before.map_or(Tick(0), |snapshot| snapshot.tick.next());
        let at = self.session_time("packet", index, packet.time_s, before.map(|snapshot| snapshot.at))?;
        let ack = self.rules.log_seq(packet.ack).ok_or(DemoImportError::Numbers { index, seq: packet.ack })?;
        let is_served = self.demo.recorded_by == RecordedBy::Server;
        let seq = SnapshotSeq(if is_served { tick.0 + 1 } else { packet.sequence });
        self.collect_states(index, packet, at)?;
        let sorted = PacketEvents::of(&self.events);
        let changed = |now: u16, before: Option<u16>| (before != Some(now)).then_some(now);
        let extra = Extra {
            level: changed(packet.level, self.last.map(|last| last.level)),
            move_vars: changed(packet.move_vars, self.last.map(|last| last.move_vars)),
            events: sorted.rest,
        };
        let record = SnapshotRecord {
            seq,
            tick,
            at,
            server_time: at,
            ack,
            bytes: 0,
            choked: sorted.choked,
            entities: self.states.iter().map(|(entity, _)| *entity).collect(),
            effects: sorted.effects,
            extra: extra.to_bytes()?,
            timing: None,
        };
        self.session.push(Record::Snapshot(player, record))?;
        self.session.push(Record::Received(player, ArrivalRecord { number: seq.0, at }))?;
        for (entity, row) in &self.states {
            let mut cells = Vec::new();
            let class = self.rows.write::<QuakeWorld>(row, &mut cells);
            self.session.push(Record::State(StateRecord { class, ..StateRecord::shared(tick, *entity, cells) }))?;
        }
        self.last = Some(LastSnapshot { seq, level: packet.level, move_vars: packet.move_vars });
        self.ticks.push(PacketTick { packet: index as u32, tick, at });
        Ok(())
    }

    /// Collects the states of a packet.
    fn collect_states(&mut self, index: usize, packet: &ServerPacket, at: Micros) -> Result<(), DemoImportError> {
        let models = self.rules.map.models.len();
        let lacks = |mover: &&Mover| usize::from(mover.model) >= models;
        let missing = packet.movers.iter().find(lacks);
        if let (Some(&Mover { model, .. }), false) = (missing, self.force_map) {
            return Err(DemoImportError::NoSuchModel { sequence: packet.sequence, model, models });
        }
        self.states = bodies_of(self.rules, packet, packet.own.as_ref(), self.unsent.of(index));
        for (entity, row) in self.states.iter_mut().filter(|(entity, _)| *entity < FIRST_MODEL) {
            row.teleports = self.jumps.count(*entity, at, row, &self.events);
        }
        Ok(())
    }

    fn add_commands(&mut self) -> Result<(), DemoImportError> {
        let player = self.rules.player;
        let arrivals = std::mem::take(&mut self.session.players[usize::from(player.0)].received);
        let mut waiting = arrivals.iter().peekable();
        let (mut ack, mut last) = (SnapshotSeq(0), None);
        for (index, sent) in self.demo.commands.iter().enumerate() {
            let at = self.session_time("usercmd", index, sent.time_s, last.map(|(at, _)| at))?;
            let follows = |seq: &CommandSeq| last.is_none_or(|(_, last): (Micros, CommandSeq)| *seq == last.next());
            let numbers = DemoImportError::Numbers { index, seq: sent.seq };
            let seq = self.rules.log_seq(sent.seq).filter(follows).ok_or(numbers)?;
            last = Some((at, seq));
            let command = Usercmd { seq, lerp_msec: 0, server_time: Micros::ZERO, input: input_of(&sent.cmd) };
            self.session.push(Record::Frame(player, FrameRecord { at, command, ..FrameRecord::default() }))?;
            while let Some(arrival) = waiting.next_if(|arrival| arrival.at <= at) {
                ack = SnapshotSeq(arrival.number);
            }
            let count = COMMANDS_IN_A_PACKET.min(index + 1);
            let number = index as u32 + 1;
            let packet = PacketRecord { number, at, newest: seq, count: count as u8, ack, bytes: 0 };
            self.session.push(Record::Sent(player, packet))?;
        }
        self.session.players[usize::from(player.0)].received = arrivals;
        Ok(())
    }

    /// Adds the hits and executed usercmds of a server's recording.
    fn add_hits(&mut self) -> Result<(), DemoImportError> {
        let ticks = std::mem::take(&mut self.ticks);
        // Events before the first or after the last snapshot are assigned to that snapshot.
        let of = |packet: u32| {
            let at = ticks.partition_point(|tick| tick.packet < packet).min(ticks.len().saturating_sub(1));
            ticks.get(at).map(|known| (known.tick, known.at))
        };
        for hit in &self.demo.hits {
            let Some((tick, at)) = of(hit.packet) else { continue };
            let (victim, amount) = (EntityId(u16::from(hit.victim)), i32::from(hit.damage));
            let attacker = hit.attacker.map(|slot| PlayerId(u16::from(slot)));
            let damage = DamageRecord { tick, at, victim, attacker, amount, ..DamageRecord::default() };
            self.session.push(Record::Damage(damage))?;
        }
        let mut made: SortedMap<u8, CommandSeq> = SortedMap::new();
        for ExecutedUsercmd { slot, packet, cmd } in &self.demo.executed {
            let player = PlayerId(u16::from(*slot));
            let (Some((_, at)), true) = (of(*packet), usize::from(player.0) < self.session.players.len()) else {
                continue;
            };
            let seq = made.get(slot).map_or(CommandSeq(1), |last| last.next());
            made.insert(*slot, seq);
            let command = Usercmd { seq, lerp_msec: 0, server_time: Micros::ZERO, input: input_of(cmd) };
            self.session.push(Record::Frame(player, FrameRecord { at, command, ..FrameRecord::default() }))?;
        }
        Ok(())
    }
}

/// A move longer than speed allows by this much, in units, is a jump if there is a flash or a return to life.
const MARKED_SLACK: f32 = 32.0;
/// Without such a sign, it must exceed twice that distance by this much, in units.
const UNMARKED_SLACK: f32 = 256.0;
/// Largest distance of a teleporter flash from the player's new position, in units.
const FLASH_REACH: f32 = 64.0;

/// Number of jumps of each player.
#[derive(Debug, Default)]
struct JumpCounts {
    last: SortedMap<EntityId, PlayerSample>,
}

#[derive(Clone, Copy, Debug)]
struct PlayerSample {
    at: Micros,
    origin: Vec3,
    velocity: Vec3,
    alive: bool,
    jumps: u32,
}

impl JumpCounts {
    /// Returns how often a player has jumped, given its state and the events in a packet of time `at`.
    pub(crate) fn count(&mut self, entity: EntityId, at: Micros, now: &QuakeWorldBody, events: &[DemoEvent]) -> u32 {
        let before = self.last.get(&entity).copied();
        let jumps = before.map_or(0, |before| before.jumps + u32::from(has_jumped(&before, at, now, events)));
        let seen = PlayerSample { at, origin: now.origin, velocity: now.velocity, alive: now.alive, jumps };
        self.last.insert(entity, seen);
        jumps
    }
}

fn has_jumped(before: &PlayerSample, at: Micros, now: &QuakeWorldBody, events: &[DemoEvent]) -> bool {
    let moved_units = now.origin.distance(before.origin);
    let speed = before.velocity.length().max(now.velocity.length());
    let reachable = speed * (at - before.at).as_s_f64() as f32;
    let is_flash = |event: &DemoEvent| match *event {
        DemoEvent::Effect { kind: EffectKind::Teleport, origin } => now.origin.distance(origin.into()) < FLASH_REACH,
        _ => false,
    };
    let is_marked = (now.alive && !before.alive) || events.iter().any(is_flash);
    moved_units > if is_marked { reachable + MARKED_SLACK } else { 2.0 * reachable + UNMARKED_SLACK }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(x: f32, speed: f32) -> QuakeWorldBody {
        QuakeWorldBody {
            origin: Vec3::new(x, 0.0, 0.0),
            velocity: Vec3::new(speed, 0.0, 0.0),
            alive: true,
            ..QuakeWorldBody::default()
        }
    }

    #[test]
    fn running_is_not_a_jump_and_a_teleport_is() {
        let mut jumps = JumpCounts::default();
        let mut count = |ms, row, events: &[DemoEvent]| jumps.count(EntityId(1), Micros::from_ms(ms), &row, events);
        assert_eq!(count(0, row(0.0, 320.0), &[]), 0);
        assert_eq!(count(100, row(40.0, 320.0), &[]), 0);
        assert_eq!(count(200, row(140.0, 320.0), &[]), 0, "farther than it should be, but not marked");
        let flash = DemoEvent::Effect { kind: EffectKind::Teleport, origin: [230.0, 0.0, 10.0] };
        assert_eq!(count(300, row(240.0, 320.0), &[flash]), 1);
        assert_eq!(count(400, row(900.0, 320.0), &[]), 2);
        assert_eq!(count(500, row(901.0, 320.0), &[flash]), 2);
    }
}

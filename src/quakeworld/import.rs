//! Turns a client demo into a session: the recording player's usercmds as frames, the packets that arrived as snapshots,
//! and everything that they show as entity states.
//!
//! A snapshot's tick is the packet's place in the recording, since the server's clock is not on the wire; its times are
//! those of arrival. The recording begins with the first packet that has the player's state: what comes before sets up the
//! level and is in the rules. Sizes are nominal, as everywhere in hitreg.

use super::body::{BodyRow, flag, input_of};
use super::demo::{Demo, OwnState, ServerPacket};
use super::extra::{Extra, Told};
use super::game::QuakeWorld;
use super::import_error::ImportError;
use super::jumps::Jumps;
use super::map::Map;
use super::packed::unpacked;
use super::rules::{Rules, entity_of_model, micros, stem};
use super::world::World;
use crate::game::{Body, Game};
use crate::record::{
    ArrivalRecord, FrameRecord, Header, Origin, PacketRecord, PlayerInfo, Record, Session, SnapshotRecord, StateRecord,
};
use crate::settings::Settings;
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use crate::usercmd::Usercmd;

/// A QuakeWorld client sends its newest usercmd and the two before it.
const COMMANDS_IN_A_PACKET: usize = 3;
/// No client has run for longer; beyond it microseconds would not fit, in seconds.
const LATEST_TIME_S: f32 = 1e9;
/// The most of a living player's recorded places, in percent, that may lie in the map's walls.
const MOST_IN_WALLS_PERCENT: usize = 20;
const PRESET: &str = "quakeworld";

/// How to import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The name of the map's file, to be held against the demo's; not compared when there is none.
    pub map_name: Option<String>,
    /// Takes the map even if it does not fit.
    pub force_map: bool,
}

/// Makes a session of a demo and the map that it was played on; both may be packed with gzip or xz.
///
/// # Errors
/// A demo or map that cannot be read, a map that is not the demo's, a demo without play: see [`ImportError`].
pub fn import(demo: &[u8], map: &[u8], options: &ImportOptions) -> Result<Session, ImportError> {
    let unpack = |file, bytes| unpacked(bytes).map_err(|source| ImportError::Unpack { file, source });
    let demo = Demo::parse(&unpack("demo", demo)?)?;
    let map = Map::parse(&unpack("map", map)?)?;
    if !options.force_map {
        check_name(&demo, options)?;
        check_walls(&demo, &map)?;
    }
    let rules = rules(&demo, map)?;
    Importer::new(&demo, &rules)?.run(options)
}

fn check_name(demo: &Demo, options: &ImportOptions) -> Result<(), ImportError> {
    let played = demo.levels.first().map_or("", |level| stem(&level.map));
    match &options.map_name {
        Some(given) if !played.is_empty() && !stem(given).eq_ignore_ascii_case(played) => {
            Err(ImportError::OtherMap { demo: played.to_owned(), map: stem(given).to_owned() })
        }
        _ => Ok(()),
    }
}

/// Rounding to the wire puts a player into a wall now and then; the wrong map does most of the time.
fn check_walls(demo: &Demo, map: &Map) -> Result<(), ImportError> {
    let world = World { map: map, solids: &[] };
    let first = |packet: &&ServerPacket| packet.level == 0;
    let living = demo.packets.iter().filter(first).filter_map(|packet| packet.own).filter(|own| !own.dead);
    let (mut places, mut in_walls) = (0, 0);
    for own in living {
        places += 1;
        in_walls += usize::from(!world.has_room(own.origin.into()));
    }
    if in_walls * 100 > places * MOST_IN_WALLS_PERCENT {
        return Err(ImportError::InWalls { in_walls, places });
    }
    Ok(())
}

fn rules(demo: &Demo, map: Map) -> Result<Rules, ImportError> {
    let first = demo.packets.iter().find(|packet| packet.own.is_some()).ok_or(ImportError::NeverSpawned)?;
    let times = demo.commands.first().map(|sent| sent.time_s).into_iter().chain([first.time_s]);
    let start_s = times.fold(f32::INFINITY, f32::min);
    let first_seq = demo.commands.first().map_or(1, |sent| i64::from(sent.seq));
    Ok(Rules {
        server: demo.server.clone(),
        levels: demo.levels.clone(),
        move_vars: demo.move_vars.clone(),
        end: demo.end,
        map,
        player: PlayerId(demo.levels.first().map_or(0, |level| u16::from(level.player))),
        start_us: micros(start_s.clamp(-LATEST_TIME_S, LATEST_TIME_S)),
        seq_shift: u32::try_from(1 - first_seq.min(1)).unwrap_or(0),
    })
}

struct Importer<'a> {
    demo: &'a Demo,
    rules: &'a Rules,
    packets: &'a [ServerPacket],
    session: Session,
    jumps: Jumps,
    /// Of the last packet taken.
    last: Option<(SnapshotSeq, u16, u16)>,
    states: Vec<(EntityId, BodyRow)>,
}

impl<'a> Importer<'a> {
    fn new(demo: &'a Demo, rules: &'a Rules) -> Result<Importer<'a>, ImportError> {
        let first = demo.packets.iter().position(|packet| packet.own.is_some()).unwrap_or(demo.packets.len());
        let packets = &demo.packets[first..];
        let others =
            packets.iter().flat_map(|packet| packet.others.of(&demo.others).iter().map(|o| (packet.level, o.slot)));
        let highest = others.map(|(level, slot)| rules.swap_slot(level, slot)).chain([rules.player.0 as u8]).max();
        let player = |slot: u8| PlayerInfo { name: format!("p{slot}"), recorded: u16::from(slot) == rules.player.0 };
        let header = Header {
            game: QuakeWorld::NAME.to_owned(),
            rules: rmp_serde::to_vec(rules)?,
            map: rules.map_stem().to_owned(),
            seed: Seed(0),
            settings: Settings::preset(PRESET)?.to_pairs(),
            preset: Some(PRESET.to_owned()),
            players: (0..=highest.unwrap_or(0)).map(player).collect(),
            origin: Origin::Imported { format: "qwd".to_owned() },
            fields: BodyRow::fields(),
        };
        let session = Session::new(header);
        Ok(Importer { demo, rules, packets, session, jumps: Jumps::default(), last: None, states: Vec::new() })
    }

    fn run(mut self, options: &ImportOptions) -> Result<Session, ImportError> {
        for (index, packet) in self.packets.iter().enumerate() {
            // A client drops a packet that it has had already.
            if self.last.is_none_or(|(last, ..)| packet.sequence > last.0) {
                self.add_packet(index, packet, options)?;
            }
        }
        self.add_commands()?;
        Ok(self.session)
    }

    fn at(&self, what: &'static str, index: usize, time_s: f32, last: Option<Micros>) -> Result<Micros, ImportError> {
        if !(time_s.abs() <= LATEST_TIME_S) {
            return Err(ImportError::Time { what, index, time_s });
        }
        // A client's clock does not run backwards; where a damaged stamp does, the one before counts.
        Ok(self.rules.at(time_s).max(last.unwrap_or(Micros(i64::MIN))))
    }

    fn add_packet(&mut self, index: usize, packet: &ServerPacket, options: &ImportOptions) -> Result<(), ImportError> {
        let player = self.rules.player;
        let records = &self.session.players[usize::from(player.0)];
        let at = self.at("packet", index, packet.time_s, records.snapshots.last().map(|s| s.at))?;
        let tick = Tick(records.snapshots.len() as u32);
        let ack = self.rules.log_seq(packet.ack).ok_or(ImportError::Numbers { index, seq: packet.ack })?;
        let told = Told::of(packet.events.of(&self.demo.events));
        self.collect_states(packet, at, options)?;
        let changed = |now: u16, before: Option<u16>| (before != Some(now)).then_some(now);
        let extra = Extra {
            level: changed(packet.level, self.last.map(|(_, level, _)| level)),
            move_vars: changed(packet.move_vars, self.last.map(|(.., move_vars)| move_vars)),
            events: told.rest,
        };
        let seq = SnapshotSeq(packet.sequence);
        let record = SnapshotRecord {
            seq,
            tick,
            at,
            server_time: at,
            ack,
            bytes: nominal_bytes(50 + 20 * self.states.len() + 8 * told.effects.len()),
            choked: told.choked,
            entities: self.states.iter().map(|(entity, _)| *entity).collect(),
            effects: told.effects,
            extra: extra.to_bytes()?,
        };
        self.session.push(Record::Snapshot(player, record))?;
        self.session.push(Record::Received(player, ArrivalRecord { number: seq.0, at }))?;
        for (entity, row) in &self.states {
            let mut cells = vec![0; BodyRow::CELLS];
            row.write(&mut cells);
            self.session.push(Record::State(StateRecord { tick, entity: *entity, cells }))?;
        }
        self.last = Some((seq, packet.level, packet.move_vars));
        Ok(())
    }

    /// The states of a packet in ascending order of entity; of two of one entity, the first.
    fn collect_states(
        &mut self,
        packet: &ServerPacket,
        at: Micros,
        options: &ImportOptions,
    ) -> Result<(), ImportError> {
        let (demo, rules) = (self.demo, self.rules);
        let models = rules.map.model_count();
        self.states.clear();
        self.states.extend(packet.own.as_ref().map(|own| (rules.player.entity(), self.own_row(own))));
        let others = packet.others.of(&demo.others).iter();
        let entity = |slot: u8| EntityId(u16::from(rules.swap_slot(packet.level, slot)));
        self.states.extend(others.map(|other| (entity(other.slot), BodyRow::of_other(other))));
        let events = packet.events.of(&demo.events);
        for (entity, row) in &mut self.states {
            row.move_vars = packet.move_vars;
            row.flags |= if rules.is_here(packet.level) { 0 } else { flag::ELSEWHERE };
            row.teleports = self.jumps.count(*entity, at, row, events);
        }
        for mover in packet.movers.of(&demo.movers) {
            match entity_of_model(mover.model).filter(|_| usize::from(mover.model) < models) {
                Some(entity) => self.states.push((entity, BodyRow::of_mover(mover))),
                None if options.force_map || !rules.is_here(packet.level) => {}
                None => {
                    return Err(ImportError::NoSuchModel { sequence: packet.sequence, model: mover.model, models });
                }
            }
        }
        self.states.sort_by_key(|(entity, _)| *entity);
        self.states.dedup_by_key(|(entity, _)| *entity);
        Ok(())
    }

    fn own_row(&self, own: &OwnState) -> BodyRow {
        BodyRow::of_own(own, self.rules.server.origin_wire())
    }

    fn add_commands(&mut self) -> Result<(), ImportError> {
        let (player, demo) = (self.rules.player, self.demo);
        let arrivals = self.session.players[usize::from(player.0)].received.clone();
        let mut arrivals = arrivals.iter().peekable();
        let (mut ack, mut last) = (SnapshotSeq(0), None);
        let mut expected = None;
        for (index, sent) in demo.commands.iter().enumerate() {
            let at = self.at("usercmd", index, sent.time_s, last)?;
            let numbers = ImportError::Numbers { index, seq: sent.seq };
            let seq = self.rules.log_seq(sent.seq).filter(|seq| expected.is_none_or(|e| e == *seq)).ok_or(numbers)?;
            (last, expected) = (Some(at), Some(CommandSeq(seq.0.saturating_add(1))));
            let command = Usercmd { seq, lerp_msec: 0, server_time: Micros::ZERO, input: input_of(&sent.cmd) };
            self.session.push(Record::Frame(player, FrameRecord { at, command }))?;
            while let Some(arrival) = arrivals.next_if(|arrival| arrival.at <= at) {
                ack = SnapshotSeq(arrival.number);
            }
            let count = COMMANDS_IN_A_PACKET.min(index + 1);
            let bytes = nominal_bytes(42 + 16 * count);
            let packet = PacketRecord { number: index as u32 + 1, at, newest: seq, count: count as u8, ack, bytes };
            self.session.push(Record::Sent(player, packet))?;
        }
        Ok(())
    }
}

/// Sizes on the wire are not kept by the demo's reader; these are what hitreg's own packets of the same content count.
fn nominal_bytes(bytes: usize) -> u16 {
    bytes.min(usize::from(u16::MAX)) as u16
}

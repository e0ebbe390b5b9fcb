//! The NeREIDS update bitfield in the datagrams of a session. Bodies are decoded bit by bit from docs/wire.md, by the
//! positions in the document; nothing is shared with the encoder and decoder of sessions.

use std::sync::{Arc, Mutex};

use glam::{DVec3, Vec3};

use crate::claims::experiment::Experiment;
use crate::claims::nereids::snapshot;
use crate::claims::watch::{ObservedTick, SessionWatch, body_of};
use crate::claims::{Claim, ClaimError, NamedFigures, count, greatest, median};
use hitreg_arena::ArenaBody;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg_netcode::game::{BadCells, Body, CellKind, CellRole, FieldSchema, Scope};
use hitreg_netcode::session::{InjectedDatagram, Intruder};
use hitreg_netcode::wire::{Receiver, Sender, SharedStates};

pub(super) const CLAIMS: &[Claim] = &[claim!(Nereids, "update-bitfield", update_bitfield)];

/// The receiving client.
const LISTENER: PlayerId = PlayerId(0);

/// The meaning of each bit in NeREIDS's list of updates, and the corresponding fields of a body. Bits 1 and 0 also
/// carry the orientation.
const DOCUMENT: [(usize, &str, &[&str]); 8] = [
    (7, "7, controller or AI decision", &["decision"]),
    (6, "6, event and its time", &["alive", "respawn_us", "teleports", "event_in_us"]),
    (5, "5, value", &["kind", "clip", "reserve", "health", "frags", "goal"]),
    (
        4,
        "4, non-moving action and its duration",
        &["weapon", "next_weapon", "switch_ms", "next_attack_ms", "reload_ms"],
    ),
    (3, "3, velocity change or position snap", &["origin", "velocity", "old_buttons", "fall_velocity"]),
    (2, "2, sub-action, sound or effect, and its time", &["step_time_ms", "step_left"]),
    (1, "1, body orientation or style", &["on_ground", "ducked", "in_duck", "duck_time_ms"]),
    (0, "0, head orientation", &[]),
];

/// Message types.
const LIVE_FROM_SERVER: u64 = 8;
const FRAGMENT_FROM_SERVER: u64 = 10;

/// The length of a seal in bytes.
const SEAL: usize = 4;

/// The length of filter and type in bytes.
const BEGINNING: usize = 5;

/// The width of an integer's change in bits, by class.
const WIDTHS: [u32; 8] = [1, 3, 5, 8, 12, 16, 24, 32];

fn update_bitfield(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let overheard = DatagramTap::default();
    let seen = experiment.play_overheard(Box::new(overheard.clone()))?;
    let mut listening = ClientDatagrams::new(positions());
    if experiment.is_off {
        told_without_roles(&seen, &mut listening);
    } else {
        overheard.datagrams().iter().for_each(|datagram| listening.hear(datagram));
    }
    let updates = &listening.updates;
    let wrong = updates.iter().filter(|update| seen.cells(update) != Some(update.new.clone())).count();
    let misplaced = updates.iter().filter(|update| update.bits != bits_by_the_document(update)).count();
    let mut figures = vec![
        ("messages that differ from the document", count(listening.unread)),
        ("updates", count(updates.len())),
        ("of those, with wrong values", count(wrong)),
        ("of those, with wrong bits", count(misplaced)),
    ];
    for (bit, name, _) in DOCUMENT {
        let set = updates.iter().filter(|update| update.bits >> bit & 1 == 1).count();
        figures.push((name, Some(100.0 * set as f64 / updates.len() as f64)));
    }
    let with_velocity = |update: &&Update| update.changes("velocity");
    let (decisions, events) = (seen.applied(updates, sets_out), seen.applied(updates, comes_back));
    let footsteps = seen.applied(updates, steps_again);
    figures.extend([
        (
            "velocity changed without bit 3",
            count(updates.iter().filter(with_velocity).filter(|u| u.bits & 8 == 0).count()),
        ),
        ("footsteps", count(footsteps.len())),
        ("time to the next footstep: error, median", median(&footsteps)),
        ("decisions of an AI", count(decisions.len())),
        ("AI decision: error of its tick, max", greatest(&decisions)),
        ("deaths", count(events.len())),
        ("respawn: error of its tick, max", greatest(&events)),
    ]);
    Ok(figures)
}

/// Returns the bits that the document sets for the change from the old state to the new.
fn bits_by_the_document(update: &Update) -> u8 {
    let mut bits = 0;
    for (bit, _, names) in DOCUMENT {
        bits |= u8::from(names.iter().any(|name| update.changes(name))) << bit;
    }
    let on_ground = body(&update.new).is_some_and(|body| body.on_ground);
    let [pitch, yaw, roll] = turn();
    let differs = |cell: usize| update.old[cell] != update.new[cell];
    // A standing player turns about the up axis and nods. A head level with the body has no bit of its own.
    let is_level = update.new[pitch] == 0 && update.new[roll] == 0;
    bits |= u8::from(differs(yaw) || differs(roll) || (!on_ground && differs(pitch))) << 1;
    bits |= u8::from(on_ground && differs(pitch) && !(is_level && bits & 2 != 0));
    bits
}

/// Returns the time in µs until a walker's decision applies, and the tick at which it did.
fn sets_out(seen: &SessionWatch, update: &Update) -> Option<(i64, Micros)> {
    let (new, entity) = (body(&update.new)?, update.entity);
    (!update.is_definition() && update.bits & 0x80 != 0).then_some(())?;
    let walks = |tick: &&ObservedTick| body_of(&tick.bodies, entity).is_some_and(|body| body.velocity != Vec3::ZERO);
    let applied = seen.since(update.tick).find(walks)?;
    Some((i64::from(new.event_in_us), applied.at))
}

/// Returns the time in µs until a dead player respawns, and the tick at which it did.
fn comes_back(seen: &SessionWatch, update: &Update) -> Option<(i64, Micros)> {
    let (old, new, entity) = (body(&update.old)?, body(&update.new)?, update.entity);
    (old.alive && !new.alive && update.bits & 0x40 != 0).then_some(())?;
    let lives = |tick: &&ObservedTick| body_of(&tick.bodies, entity).is_some_and(|body| body.alive);
    Some((i64::from(new.respawn_us), seen.since(update.tick).find(lives)?.at))
}

/// Returns the time in µs until the next footstep, and the tick at which it was.
fn steps_again(seen: &SessionWatch, update: &Update) -> Option<(i64, Micros)> {
    let (new, entity) = (body(&update.new)?, update.entity);
    (!update.is_definition() && update.changes("step_left") && update.bits & 4 != 0).then_some(())?;
    let other_foot = |tick: &&ObservedTick| body_of(&tick.bodies, entity).is_some_and(|b| b.step_left != new.step_left);
    Some((i64::from(new.step_time_ms) * 1_000, seen.since(update.tick).find(other_foot)?.at))
}

impl SessionWatch {
    /// Returns the ticks from the given number on.
    fn since(&self, tick: u16) -> impl Iterator<Item = &ObservedTick> {
        self.ticks.iter().skip(usize::from(tick).saturating_sub(1))
    }

    /// Returns the server's state of an entity when an update of it was sent.
    fn cells(&self, update: &Update) -> Option<Vec<u32>> {
        let mut body = *body_of(&self.since(update.tick).next()?.bodies, update.entity)?;
        body.strip_client_only();
        Some(body.to_cells())
    }

    /// Returns, for each update of a kind, the difference in ms between the announced and the real time of application.
    fn applied(&self, updates: &[Update], what: impl Fn(&SessionWatch, &Update) -> Option<(i64, Micros)>) -> Vec<f64> {
        let off = |update: &Update| {
            let (in_us, at) = what(self, update)?;
            let sent = self.since(update.tick).next()?.at + Micros(in_us);
            Some((at - sent).as_ms_f64().abs())
        };
        let mut sent = SortedSet::new();
        // An update repeats until it is acked, so only its first copy counts.
        let is_first = |update: &&Update| what(self, update).is_some_and(|(_, at)| sent.insert((update.entity, at)));
        updates.iter().filter(is_first).filter_map(off).collect()
    }
}

impl Update {
    fn is_definition(&self) -> bool {
        self.old.iter().all(|cell| *cell == 0)
    }

    fn changes(&self, name: &str) -> bool {
        cells_named(name).any(|cell| self.old[cell] != self.new[cell])
    }
}

/// The datagrams sent to one client.
#[derive(Clone, Default)]
struct DatagramTap(Arc<Mutex<Vec<Vec<u8>>>>);

impl DatagramTap {
    fn datagrams(&self) -> Vec<Vec<u8>> {
        self.0.lock().map_or_else(|_| Vec::new(), |datagrams| datagrams.clone())
    }
}

impl Intruder for DatagramTap {
    fn intercept(&mut self, player: PlayerId, _number: u32, datagram: &[u8]) -> Option<InjectedDatagram> {
        if let Ok(mut datagrams) = self.0.lock()
            && player == LISTENER
        {
            datagrams.push(datagram.to_vec());
        }
        None
    }
}

/// Sends the same session from a server whose bodies have no roles, so that the document's list is not used.
fn told_without_roles(seen: &SessionWatch, listening: &mut ClientDatagrams) {
    let mut sender = Sender::<RolelessBody>::new(LISTENER, seen.players);
    let mut receiver = Receiver::<RolelessBody>::default();
    for (number, tick) in (1..).zip(&seen.ticks) {
        let stripped = |(id, body): &(EntityId, ArenaBody)| {
            let mut body = *body;
            body.strip_client_only();
            (*id, RolelessBody(body))
        };
        let sent = snapshot(number, Tick(number), tick.bodies.iter().map(stripped).collect());
        let Ok(encoded) = sender.encode(&sent, usize::MAX, &mut SharedStates::default()) else { continue };
        listening.read(&encoded.datagram);
        // Only the ack is needed; the decoded contents do not matter here.
        let _ = receiver.decode(&encoded.datagram, CommandSeq(number));
        sender.handle_ack(&receiver.received());
    }
}

/// A body in which every field has the value role.
#[derive(Clone, Debug, PartialEq)]
struct RolelessBody(ArenaBody);

impl Body for RolelessBody {
    const CELLS: usize = ArenaBody::CELLS;

    fn fields() -> Vec<FieldSchema> {
        ArenaBody::fields()
    }

    fn write(&self, cells: &mut [u32]) {
        self.0.write(cells);
    }

    fn read(cells: &[u32]) -> Result<RolelessBody, BadCells> {
        ArenaBody::read(cells).map(RolelessBody)
    }

    fn role(_: &FieldSchema) -> CellRole {
        CellRole::Value
    }

    fn position(&self) -> DVec3 {
        self.0.position()
    }

    fn velocity(&self) -> Vec3 {
        self.0.velocity
    }

    fn viewangles(&self) -> Vec3 {
        self.0.viewangles
    }

    fn moved_to(&self, position: DVec3) -> RolelessBody {
        RolelessBody(self.0.moved_to(position))
    }

    fn teleports(&self) -> u32 {
        self.0.teleports
    }

    fn is_alive(&self) -> bool {
        self.0.alive
    }

    fn strip_client_only(&mut self) {
        self.0.strip_client_only();
    }

    fn adopt_client_only(&mut self, predicted: &RolelessBody) {
        self.0.adopt_client_only(&predicted.0);
    }
}

fn positions() -> CellPositions {
    let fields = ArenaBody::fields();
    let mut positions = CellPositions {
        is_float: fields.iter().map(|field| field.kind == CellKind::F32).collect(),
        ground: cells_named("on_ground").next().unwrap_or_default(),
        turn: Some(turn()),
        ..CellPositions::default()
    };
    for (bit, _, names) in DOCUMENT {
        let mut cells: Vec<usize> = names.iter().flat_map(|name| cells_named(name)).collect();
        cells.retain(|cell| fields[*cell].scope != Scope::ClientOnly);
        cells.sort_unstable();
        positions.groups[bit] = cells;
    }
    positions
}

fn turn() -> [usize; 3] {
    let first = cells_named("viewangles").next().unwrap_or_default();
    [first, first + 1, first + 2]
}

/// Returns the cells of a field.
fn cells_named(name: &str) -> impl Iterator<Item = usize> {
    let is_of = move |field: &FieldSchema| field.name.split('.').next() == Some(name);
    (0..).zip(ArenaBody::fields()).filter(move |(_, field)| is_of(field)).map(|(cell, _)| cell)
}

fn body(cells: &[u32]) -> Option<ArenaBody> {
    ArenaBody::read(cells).ok()
}

/// The document's positions of a body's cells.
#[derive(Clone, Debug, Default)]
pub(super) struct CellPositions {
    /// The cells of each bit of the update bitfield, in the order of the body.
    pub(super) groups: [Vec<usize>; 8],
    /// Whether each cell is a float.
    pub(super) is_float: Vec<bool>,
    /// The cell that says whether the body is on the ground.
    pub(super) ground: usize,
    /// Pitch, yaw and roll, which follow the groups of bits 1 and 0; `None` when they are ordinary cells.
    pub(super) turn: Option<[usize; 3]>,
}

/// One entity's update in a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Update {
    /// The low 16 bits of the tick.
    pub(super) tick: u16,
    pub(super) entity: u16,
    pub(super) bits: u8,
    pub(super) old: Vec<u32>,
    pub(super) new: Vec<u32>,
}

/// The state that one client has received so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientDatagrams {
    positions: CellPositions,
    parts: SortedMap<u64, SortedMap<u64, Vec<u8>>>,
    /// The states by entity and snapshot.
    states: SortedMap<(u16, u64), Vec<u32>>,
    pub(super) updates: Vec<Update>,
    /// The number of messages that do not follow the document.
    pub(super) unread: usize,
}

impl ClientDatagrams {
    pub(super) fn new(positions: CellPositions) -> ClientDatagrams {
        ClientDatagrams { positions, ..ClientDatagrams::default() }
    }

    /// Takes a sealed datagram.
    pub(super) fn hear(&mut self, datagram: &[u8]) {
        let Some((bytes, _seal)) = datagram.split_last_chunk::<SEAL>() else { return };
        let mut from = DocumentBits { bytes, at: 32 };
        match from.get(8) {
            Some(LIVE_FROM_SERVER) => self.read(bytes),
            Some(FRAGMENT_FROM_SERVER) => {
                let (Some(number), Some(place), Some(count)) = (from.get(32), from.get(8), from.get(8)) else { return };
                let parts = self.parts.entry(number).or_default();
                parts.insert(place, bytes[BEGINNING + 6..].to_vec());
                if parts.len() as u64 == count {
                    let whole: Vec<u8> = parts.values().flatten().copied().collect();
                    self.read(&whole);
                }
            }
            _ => {}
        }
    }

    /// Takes a complete message without its seal.
    pub(super) fn read(&mut self, message: &[u8]) {
        let mut updates = Vec::new();
        let read = self.read_message(&mut DocumentBits { bytes: message, at: 8 * BEGINNING }, &mut updates);
        self.unread += usize::from(read.is_none());
        self.updates.extend(updates);
    }

    fn read_message(&mut self, from: &mut DocumentBits<'_>, updates: &mut Vec<Update>) -> Option<()> {
        let tick = from.get(16)? as u16;
        let (_ack, _helper) = (from.get(16)?, from.get(16)?);
        let (mut number, mut usual, mut defined) = (0, None, None);
        for _ in 0..from.get(8)? {
            let kind = from.get(4)?;
            match kind {
                0 => (number, usual) = from.frame()?,
                1 => from.skip(&[16, 16])?,
                2 => {
                    defined = Some(from.varint(5)? as u16);
                    from.skip(&[16])?;
                }
                3 => {
                    let entity = from.varint(5)? as u16;
                    let old = match defined.take() {
                        Some(id) => (id == entity).then(|| vec![0; self.positions.is_float.len()])?,
                        None => {
                            let distance = if from.get(1)? == 1 { usual? } else { from.varint(4)? };
                            self.states.get(&(entity, number.checked_sub(distance)?))?.clone()
                        }
                    };
                    let update = self.positions.update(from, tick, entity, old)?;
                    self.states.insert((entity, number), update.new.clone());
                    updates.push(update);
                }
                4 => drop(from.varint(5)?),
                5 => from.text_after(&[16, 16])?,
                6 => from.text_after(&[16, 16, 8])?,
                7 => {
                    from.skip(&[16])?;
                    from.varint(5)?;
                    from.text_after(&[8, 8])?;
                }
                8 => from.effect()?,
                9 => from.skip(&[16, 16, 16])?,
                _ => return None,
            }
        }
        // Only padding of the last byte may be left.
        (from.bytes.len() * 8 - from.at < 8).then_some(())
    }
}

impl CellPositions {
    fn update(&self, from: &mut DocumentBits<'_>, tick: u16, entity: u16, old: Vec<u32>) -> Option<Update> {
        let bits = from.get(8)? as u8;
        let mut update = Update { tick, entity, bits, new: old.clone(), old };
        for bit in (0..8).rev().filter(|bit| bits >> bit & 1 == 1) {
            let group = &self.groups[bit];
            for (cell, _) in group.iter().zip(from.mask(group.len())?).filter(|(_, changed)| *changed) {
                self.change(from, *cell, &mut update)?;
            }
            let Some([pitch, yaw, roll]) = self.turn else { continue };
            let is_on_ground = update.new[self.ground] != 0;
            match bit {
                1 if is_on_ground => {
                    let is_upright = from.get(1)? == 1;
                    self.maybe(from, yaw, &mut update)?;
                    if is_upright {
                        (update.new[pitch], update.new[roll]) = (0, 0);
                    } else {
                        self.maybe(from, roll, &mut update)?;
                    }
                }
                1 => [pitch, yaw, roll].into_iter().try_for_each(|cell| self.maybe(from, cell, &mut update))?,
                0 if is_on_ground => self.maybe(from, pitch, &mut update)?,
                _ => {}
            }
        }
        Some(update)
    }

    fn maybe(&self, from: &mut DocumentBits<'_>, cell: usize, update: &mut Update) -> Option<()> {
        if from.get(1)? == 1 { self.change(from, cell, update) } else { Some(()) }
    }

    fn change(&self, from: &mut DocumentBits<'_>, cell: usize, update: &mut Update) -> Option<()> {
        let old = update.old[cell];
        update.new[cell] = if self.is_float[cell] { from.float_change(old)? } else { from.integer_change(old)? };
        Some(())
    }
}

/// A bit reader: lowest bit first in bytes and numbers.
struct DocumentBits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl DocumentBits<'_> {
    fn get(&mut self, count: u32) -> Option<u64> {
        let mut number = 0;
        for place in 0..count {
            let byte = *self.bytes.get(self.at / 8)?;
            number |= u64::from(byte >> (self.at % 8) & 1) << place;
            self.at += 1;
        }
        Some(number)
    }

    fn skip(&mut self, counts: &[u32]) -> Option<()> {
        counts.iter().try_for_each(|count| self.get(*count).map(drop))
    }

    fn varint(&mut self, chunk: u32) -> Option<u64> {
        let mut number = 0;
        for place in 0..64 / chunk {
            number |= self.get(chunk)? << (place * chunk);
            if self.get(1)? == 0 {
                return Some(number);
            }
        }
        None
    }

    fn mask(&mut self, count: usize) -> Option<Vec<bool>> {
        let nibbles = match count {
            0..=4 => vec![true; count.div_ceil(4)],
            _ => (0..count.div_ceil(4)).map(|_| Some(self.get(1)? == 1)).collect::<Option<Vec<bool>>>()?,
        };
        (0..count).map(|cell| if nibbles[cell / 4] { Some(self.get(1)? == 1) } else { Some(false) }).collect()
    }

    fn integer_change(&mut self, old: u32) -> Option<u32> {
        let width = WIDTHS[self.get(3)? as usize];
        let zigzag = (self.get(width)? as u32).wrapping_add(1);
        Some(old.wrapping_add(unzigzag(zigzag)))
    }

    fn float_change(&mut self, old: u32) -> Option<u32> {
        match self.get(2)? {
            0 => Some(0),
            1 => {
                let length = self.get(5)? as u32;
                let number = if length == 0 { 0 } else { self.get(length - 1)? as u32 | 1 << (length - 1) };
                Some(old.wrapping_add(unzigzag(number.wrapping_add(1))))
            }
            2 => {
                let length = self.get(5)? as u32;
                let highest = (self.get(length.checked_sub(1)?)? as u32) << 1 | 1;
                Some(highest << (32 - length))
            }
            _ => Some(self.get(32)? as u32),
        }
    }

    /// Returns the snapshot's number, and the distance to the base that most entities use.
    fn frame(&mut self) -> Option<(u64, Option<u64>)> {
        let frame = if self.get(1)? == 1 {
            let (number, distance) = (self.get(16)?, self.get(6)?);
            let length = self.get(6)? as u32;
            self.skip(&[if length == 63 { 64 } else { length }])?;
            (number, Some(distance))
        } else {
            let number = self.get(32)?;
            self.skip(&[32, 32, 64])?;
            (number, None)
        };
        if self.get(1)? == 1 {
            self.skip(&[8])?;
        }
        Some(frame)
    }

    fn effect(&mut self) -> Option<()> {
        self.skip(&[8])?;
        self.varint(5)?;
        self.skip(&[1, 1])?;
        for _ in 0..3 {
            if self.get(1)? == 1 {
                self.float_change(0)?;
            }
        }
        Some(())
    }

    fn text_after(&mut self, counts: &[u32]) -> Option<()> {
        self.skip(counts)?;
        let bytes = self.get(7)? as u32;
        (0..bytes).try_for_each(|_| self.skip(&[8]))
    }
}

fn unzigzag(number: u32) -> u32 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

//! The NeREIDS update bitfield in the datagrams of a session, decoded by the positions in the document.

use std::sync::{Arc, Mutex};

use glam::{DVec3, Vec3};

use super::datagram::{CellPositions, ClientDatagrams, Update};
use super::experiment::Experiment;
use super::protocol::snapshot;
use super::watch::{ObservedTick, SessionWatch, body_of};
use super::{Claim, ClaimError, NamedFigures, count, greatest, median};
use hitreg_arena::ArenaBody;
use hitreg_log::sorted::SortedSet;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg_netcode::game::{BadCells, Body, CellKind, CellRole, FieldSchema, Scope};
use hitreg_netcode::session::Intruder;
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

fn update_bitfield(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let overheard = DatagramTap::default();
    let seen = experiment.play_overheard(Box::new(overheard.clone()))?;
    let mut listening = ClientDatagrams::new(positions());
    if experiment.is_off() {
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
        Some(cells_of(&body))
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
    fn sees(&mut self, player: PlayerId, _number: u32, datagram: &[u8]) -> Option<(Micros, u32, Vec<u8>)> {
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

    fn place(&self) -> DVec3 {
        self.0.place()
    }

    fn velocity(&self) -> Vec3 {
        self.0.velocity
    }

    fn viewangles(&self) -> Vec3 {
        self.0.viewangles
    }

    fn moved_to(&self, place: DVec3) -> RolelessBody {
        RolelessBody(self.0.moved_to(place))
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

fn cells_of(body: &ArenaBody) -> Vec<u32> {
    let mut cells = vec![0; ArenaBody::CELLS];
    body.write(&mut cells);
    cells
}

fn body(cells: &[u32]) -> Option<ArenaBody> {
    ArenaBody::read(cells).ok()
}

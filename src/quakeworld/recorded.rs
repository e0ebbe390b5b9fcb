//! The way back: the demo that a session was imported from, as far as predictions and their causes need it. Exact but for
//! times, which are whole microseconds in a log.

use std::ops::Range;

use super::body::{BodyRow, FIRST_MODEL, command_of};
use super::demo::{Demo, Mover, OtherPlayer, SentCommand, ServerPacket, Span};
use super::extra::{Extra, Told};
use super::rules::Rules;
use crate::game::{BadCells, Body};
use crate::record::{PlayerRecords, Session, SnapshotRecord};
use crate::replay::ReplayError;
use crate::units::{EntityId, PlayerId, Tick};

/// The demo that `player` recorded.
///
/// # Errors
/// When the session is not one that [`import`](super::import()) can have made.
pub fn recorded_demo(session: &Session, rules: &Rules, player: PlayerId) -> Result<Demo, ReplayError> {
    let nobody = PlayerRecords::default();
    let records = session.players.get(usize::from(player.0)).unwrap_or(&nobody);
    let sent = |frame: &crate::record::FrameRecord| SentCommand {
        seq: rules.demo_seq(frame.command.seq),
        time_s: rules.time_s(frame.at),
        cmd: command_of(&frame.command.input),
    };
    let demo = Demo {
        server: rules.server.clone(),
        levels: rules.levels.clone(),
        commands: records.frames.iter().map(sent).collect(),
        packets: Vec::with_capacity(records.snapshots.len()),
        others: Vec::new(),
        movers: Vec::new(),
        events: Vec::new(),
        move_vars: rules.move_vars.clone(),
        end: rules.end,
    };
    let mut rebuild = Rebuild { session, rules, player, demo, level: 0, move_vars: 0 };
    for snapshot in &records.snapshots {
        rebuild.add(snapshot)?;
    }
    Ok(rebuild.demo)
}

struct Rebuild<'a> {
    session: &'a Session,
    rules: &'a Rules,
    player: PlayerId,
    demo: Demo,
    level: u16,
    move_vars: u16,
}

impl Rebuild<'_> {
    fn add(&mut self, snapshot: &SnapshotRecord) -> Result<(), ReplayError> {
        let tick = snapshot.tick;
        let extra = Extra::of_bytes(&snapshot.extra)
            .map_err(|_| bad(tick, "the first byte of what else its packet told", first_byte(&snapshot.extra)))?;
        self.level = extra.level.unwrap_or(self.level);
        self.move_vars = extra.move_vars.unwrap_or(self.move_vars);
        if usize::from(self.move_vars) >= self.demo.move_vars.len() {
            return Err(bad(tick, "the number of its movement rules", u32::from(self.move_vars)));
        }
        let told = Told { choked: snapshot.choked, effects: snapshot.effects.clone(), rest: extra.events };
        let events = told.events().map_err(|kind| bad(tick, "the kind of an effect", u32::from(kind)))?;
        let starts = [self.demo.others.len(), self.demo.movers.len(), self.demo.events.len()];
        self.demo.events.extend(events);
        let mut own = None;
        for entity in &snapshot.entities {
            let row = self.row(tick, *entity)?;
            if *entity == self.player.entity() {
                own = Some(row.own());
            } else if let Some(model) = entity.0.checked_sub(FIRST_MODEL.0) {
                self.demo.movers.push(Mover { model, origin: row.origin.to_array() });
            } else {
                self.demo.others.push(self.other(*entity, &row));
            }
        }
        self.demo.packets.push(ServerPacket {
            time_s: self.rules.time_s(snapshot.at),
            sequence: snapshot.seq.0,
            level: self.level,
            ack: self.rules.demo_seq(snapshot.ack),
            own,
            others: span(starts[0]..self.demo.others.len()),
            movers: span(starts[1]..self.demo.movers.len()),
            events: span(starts[2]..self.demo.events.len()),
            move_vars: self.move_vars,
        });
        Ok(())
    }

    fn row(&self, tick: Tick, entity: EntityId) -> Result<BodyRow, ReplayError> {
        let row = self.session.states.row(tick, self.player, entity);
        let (_, cells) = row.ok_or_else(|| bad(tick, "an entity without a state", u32::from(entity.0)))?;
        let row = BodyRow::read(cells).map_err(|source| ReplayError::BadState { tick, source })?;
        if row.is_finite() { Ok(row) } else { Err(bad(tick, "an entity at no place", u32::from(entity.0))) }
    }

    fn other(&self, entity: EntityId, row: &BodyRow) -> OtherPlayer {
        row.other(self.rules.swap_slot(self.level, entity.0 as u8))
    }
}

fn span(range: Range<usize>) -> Span {
    Span { start: range.start as u32, end: range.end as u32 }
}

fn first_byte(bytes: &[u8]) -> u32 {
    bytes.first().copied().map_or(0, u32::from)
}

fn bad(tick: Tick, what: &str, found: u32) -> ReplayError {
    ReplayError::BadState { tick, source: BadCells { what: what.to_owned(), found } }
}

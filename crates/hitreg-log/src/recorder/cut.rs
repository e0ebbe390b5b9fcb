//! Where a recording may be cut in two, and what the second part needs of the first to be played by itself: who is there,
//! where everything was after the last tick, and which usercmds are on their way.

use std::collections::{BTreeMap, VecDeque};

use super::FinishError;
use super::output::Told;
use crate::log::WriteError;
use crate::record::{Header, Presence, PresenceRecord, Record, StateRecord, Stretch, TickRecord, Value, When};
use crate::units::{CommandSeq, PlayerId, Tick};

/// The setting that says which part of a session a log is.
const PART: &str = "recorder.part";
/// The setting that says after which tick it begins.
const AFTER_TICK: &str = "recorder.begins_after_tick";

/// More usercmds of a player than this are not waited for.
const MOST_WAITING: usize = 512;

/// Follows a recording.
#[derive(Debug, Default)]
pub(super) struct Cut {
    last: TickRecord,
    present: BTreeMap<PlayerId, PresenceRecord>,
    bodies: Vec<StateRecord>,
    players: BTreeMap<PlayerId, Usercmds>,
    /// The kind that holds what usercmds carry besides.
    bytes: Option<usize>,
}

/// A player's usercmds that have not run.
#[derive(Debug, Default)]
struct Usercmds {
    /// Whether it is recorded at all what becomes of them.
    ran: bool,
    waiting: VecDeque<(CommandSeq, Told)>,
}

/// What a part begins with.
#[derive(Clone, Debug, Default)]
pub(super) struct Beginning {
    pub(super) after: TickRecord,
    pub(super) told: Vec<Told>,
}

impl Cut {
    pub(super) fn new(bytes: Option<usize>) -> Cut {
        Cut { bytes, ..Cut::default() }
    }

    /// Whether all of the last tick was told before this, so that a part may begin with it.
    pub(super) fn may_stand_before(&self, told: &Told) -> bool {
        match told.when() {
            When::At(at) => at > self.last.at,
            When::In(tick) => tick > self.last.tick,
        }
    }

    /// Takes note of what was told.
    pub(super) fn saw(&mut self, told: &Told) {
        match told {
            Told::Record(Record::Tick(tick)) => {
                self.last = *tick;
                self.bodies.clear();
            }
            Told::Record(Record::State(state)) if state.viewer.is_none() && state.tick == self.last.tick => {
                self.bodies.push(state.clone());
            }
            Told::Record(Record::Presence(player, presence)) => {
                match presence.change {
                    Presence::Joined => self.present.insert(*player, *presence),
                    Presence::Left => self.present.remove(player),
                };
            }
            Told::Record(Record::Executed(player, done)) => {
                let of = self.players.entry(*player).or_default();
                of.ran = true;
                of.waiting.retain(|(seq, _)| *seq > done.command);
            }
            Told::Record(Record::Frame(player, frame)) | Told::Row(_, _, Some(Record::Frame(player, frame))) => {
                self.waits(*player, frame.command.seq, told);
            }
            Told::Row(_, row, None) if Some(row.kind) == self.bytes => {
                if let (Ok(player), Some(Value::Number(seq))) = (u16::try_from(row.series), row.values.get(1)) {
                    self.waits(PlayerId(player), CommandSeq(*seq as u32), told);
                }
            }
            Told::Record(_) | Told::Row(..) => {}
        }
    }

    fn waits(&mut self, player: PlayerId, seq: CommandSeq, told: &Told) {
        let of = self.players.entry(player).or_default();
        of.waiting.push_back((seq, told.clone()));
        if of.waiting.len() > MOST_WAITING {
            of.waiting.pop_front();
        }
    }

    /// What a part begins with that begins now.
    pub(super) fn beginning(&self) -> Beginning {
        let present = self.present.iter().map(|(player, presence)| Record::Presence(*player, *presence));
        let bodies = self.bodies.iter().map(|body| Record::State(StateRecord { tick: Tick(0), ..body.clone() }));
        let waiting = self.players.values().filter(|of| of.ran).flat_map(|of| &of.waiting);
        let told = present.chain(bodies).map(Told::Record).chain(waiting.map(|(_, told)| told.clone())).collect();
        Beginning { after: self.last, told }
    }
}

impl Beginning {
    /// The header of the part that begins so.
    pub(super) fn header(&self, header: &Header, part: u32) -> Header {
        let mut header = header.clone();
        header.settings.push((PART.to_owned(), part.to_string()));
        if self.after.tick > Tick(0) {
            header.settings.push((AFTER_TICK.to_owned(), self.after.tick.to_string()));
        }
        header
    }

    /// As a stretch of a session.
    pub(super) fn stretch(&self, header: &Header) -> Result<Stretch, FinishError> {
        let mut stretch = Stretch::of(header);
        self.told.iter().try_for_each(|told| add(&mut stretch, told, header))?;
        Ok(stretch)
    }
}

/// Adds what was told to a stretch.
pub(super) fn add(stretch: &mut Stretch, told: &Told, header: &Header) -> Result<(), FinishError> {
    let (record, row) = match told {
        Told::Record(record) => (Some(record), None),
        Told::Row(_, row, of) => (of.as_ref(), Some(row)),
    };
    record.map_or(Ok(()), |record| stretch.push(record, header)).map_err(WriteError::from)?;
    if let Some(row) = row {
        stretch.push_row(row, header);
    }
    Ok(())
}

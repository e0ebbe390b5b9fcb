//! Splitting a recording into parts that replay independently. Each part starts with the state it needs from the
//! previous one: the present players, the bodies after the last tick, and the usercmds that have not run.

use std::collections::VecDeque;

use super::FinishError;
use crate::log::WriteError;
use crate::record::{
    BEGINS_AFTER_TICK, EventTime, OwnValue, Presence, PresenceRecord, Record, SessionHeader, SessionStretch,
    StateRecord, TickRecord,
};
use crate::sorted::SortedMap;
use crate::units::{CommandSeq, PlayerId, Tick};

/// The setting that holds the number of this part.
const PART: &str = "recorder.part";

/// The most waiting usercmds per player; the oldest are dropped beyond it.
const MOST_WAITING: usize = 512;

/// Tracks the state that the next part of a recording would begin with.
#[derive(Debug, Default)]
pub(super) struct FlightCut {
    last: TickRecord,
    /// Whether the part has records of the tick after `last`.
    is_in_tick: bool,
    present: SortedMap<PlayerId, PresenceRecord>,
    bodies: Vec<StateRecord>,
    players: SortedMap<PlayerId, Usercmds>,
    /// Index of the kind that holds the extra bytes of usercmds.
    bytes: Option<usize>,
}

/// One player's usercmds that have not run.
#[derive(Debug, Default)]
struct Usercmds {
    /// Whether the recording contains executed usercmds of this player. Without them, none can be known to wait.
    ran: bool,
    /// The last usercmds that ran, each with the tick in which it ran first.
    recent: VecDeque<(CommandSeq, Tick)>,
    /// The most ticks after which a usercmd ran again.
    again_after: u32,
    waiting: VecDeque<WaitingRecord>,
}

/// A record of a usercmd that a later part may need.
#[derive(Debug)]
struct WaitingRecord {
    command: CommandSeq,
    /// The tick in which the usercmd, or a later one, ran first.
    ran_in: Option<Tick>,
    record: Record,
}

/// The state that a part begins with.
#[derive(Clone, Debug, Default)]
pub(super) struct PartStart {
    pub(super) after: TickRecord,
    pub(super) records: Vec<Record>,
}

impl FlightCut {
    pub(super) fn new(bytes: Option<usize>) -> FlightCut {
        FlightCut { bytes, ..FlightCut::default() }
    }

    /// Returns whether a new part may begin with this record: it is the first record after the last tick. A recording
    /// without ticks may be split anywhere.
    pub(super) fn may_split_before(&self, record: &Record) -> bool {
        !self.is_in_tick && self.is_later(record)
    }

    fn is_later(&self, record: &Record) -> bool {
        match record.when() {
            EventTime::At(at) => at > self.last.at,
            EventTime::In(tick) => tick > self.last.tick,
        }
    }

    /// Updates the state with a record.
    pub(super) fn update(&mut self, record: &Record) {
        self.is_in_tick |= self.last.tick > Tick(0) && self.is_later(record);
        match record {
            Record::Tick(tick) => {
                (self.last, self.is_in_tick) = (*tick, false);
                self.bodies.clear();
            }
            Record::State(state) if state.viewer.is_none() && state.tick == self.last.tick => {
                self.bodies.push(state.clone());
            }
            Record::Presence(player, presence) => {
                match presence.change {
                    Presence::Joined => self.present.insert(*player, *presence),
                    Presence::Left => self.present.remove(player),
                };
            }
            Record::Executed(player, done) => {
                let of = self.players.entry(*player).or_default();
                of.ran = true;
                let mut recent = of.recent.iter().rev().take_while(|(command, _)| *command >= done.command);
                if let Some((_, first)) = recent.find(|(command, _)| *command == done.command) {
                    of.again_after = of.again_after.max(done.tick.0.saturating_sub(first.0));
                } else {
                    of.recent.push_back((done.command, done.tick));
                    if of.recent.len() > MOST_WAITING {
                        of.recent.pop_front();
                    }
                }
                for waiting in of.waiting.iter_mut().filter(|waiting| waiting.command <= done.command) {
                    waiting.ran_in.get_or_insert(done.tick);
                }
                // A usercmd may run again, as late as others of this player did.
                let (now, again_after) = (done.tick.0, of.again_after);
                of.waiting.retain(|waiting| waiting.ran_in.is_none_or(|tick| now.saturating_sub(tick.0) < again_after));
            }
            Record::Frame(player, frame) => {
                self.add_waiting(*player, frame.command.seq, record);
            }
            Record::Row(_, row) if Some(row.kind) == self.bytes => {
                if let (Ok(player), Some(OwnValue::Number(seq))) = (u16::try_from(row.series), row.values.get(1)) {
                    self.add_waiting(PlayerId(player), CommandSeq(*seq as u32), record);
                }
            }
            _ => {}
        }
    }

    fn add_waiting(&mut self, player: PlayerId, seq: CommandSeq, record: &Record) {
        let of = self.players.entry(player).or_default();
        of.waiting.push_back(WaitingRecord { command: seq, ran_in: None, record: record.clone() });
        if of.waiting.len() > MOST_WAITING {
            of.waiting.pop_front();
        }
    }

    /// Returns the state for a part that begins now.
    pub(super) fn beginning(&self) -> PartStart {
        let present = self.present.iter().map(|(player, presence)| Record::Presence(*player, *presence));
        let bodies = self.bodies.iter().map(|body| Record::State(StateRecord { tick: Tick(0), ..body.clone() }));
        // Without any execution, no usercmd can be known to wait.
        let has_executions = self.players.values().any(|of| of.ran);
        let waiting = self.players.values().filter(|_| has_executions).flat_map(|of| &of.waiting);
        let waiting = waiting.map(|waiting| waiting.record.clone());
        PartStart { after: self.last, records: present.chain(bodies).chain(waiting).collect() }
    }
}

impl PartStart {
    /// Returns the header of the part that begins with this state.
    pub(super) fn header(&self, header: &SessionHeader, part: u32) -> SessionHeader {
        let mut header = header.clone();
        header.settings.push((PART.to_owned(), part.to_string()));
        if self.after.tick > Tick(0) {
            header.settings.push((BEGINS_AFTER_TICK.to_owned(), self.after.tick.to_string()));
        }
        header
    }

    /// Returns the state as a stretch of a session.
    pub(super) fn stretch(&self, header: &SessionHeader) -> Result<SessionStretch, FinishError> {
        let mut stretch = SessionStretch::of(header);
        self.records.iter().try_for_each(|record| stretch.push(record, header)).map_err(WriteError::from)?;
        Ok(stretch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ExecutionRecord, FrameRecord};
    use crate::units::Micros;
    use crate::usercmd::Usercmd;

    #[test]
    fn a_part_keeps_usercmds_that_may_run_again() {
        let player = PlayerId(0);
        let frame = |number: u32| {
            let command = Usercmd { seq: CommandSeq(number), ..Usercmd::default() };
            Record::Frame(player, FrameRecord { at: Micros::ZERO, command })
        };
        let ran = |command: u32, tick: u32| {
            let done = ExecutionRecord { command: CommandSeq(command), tick: Tick(tick), ..ExecutionRecord::default() };
            Record::Executed(player, done)
        };
        let kept = |cut: &FlightCut| -> Vec<u32> {
            let numbers = cut.beginning().records.into_iter().filter_map(|record| match record {
                Record::Frame(_, frame) => Some(frame.command.seq.0),
                _ => None,
            });
            numbers.collect()
        };
        let mut cut = FlightCut::new(None);
        (1..=5).for_each(|number| cut.update(&frame(number)));
        cut.update(&ran(1, 1));
        assert_eq!(kept(&cut), [2, 3, 4, 5], "no usercmd has run twice");
        cut.update(&ran(1, 3));
        cut.update(&ran(2, 3));
        assert_eq!(kept(&cut), [2, 3, 4, 5], "usercmd 2 may run again until tick 5");
        cut.update(&ran(3, 5));
        assert_eq!(kept(&cut), [3, 4, 5]);
    }

    #[test]
    fn a_part_begins_with_all_records_of_its_first_tick() {
        let tick = |number: u32| {
            let at = Micros(i64::from(number) * 10_000);
            Record::Tick(TickRecord { tick: Tick(number), at, hash: None })
        };
        let ran = |number| {
            let done = ExecutionRecord { tick: Tick(number), ..ExecutionRecord::default() };
            Record::Executed(PlayerId(0), done)
        };
        let state = |number| Record::State(StateRecord { tick: Tick(number), ..StateRecord::default() });
        let mut cut = FlightCut::new(None);
        assert!(cut.may_split_before(&ran(1)), "there is no tick yet");
        cut.update(&tick(1));
        assert!(!cut.may_split_before(&state(1)) && cut.may_split_before(&ran(2)));
        cut.update(&ran(2));
        assert!(!cut.may_split_before(&tick(2)), "a usercmd of tick 2 is in the part");
        cut.update(&tick(2));
        assert!(cut.may_split_before(&ran(3)));
    }
}

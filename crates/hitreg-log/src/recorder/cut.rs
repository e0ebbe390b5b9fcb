//! Splitting a recording into parts that replay independently. Each part starts with the state it needs from the
//! previous one: the present players, the bodies after the last tick, and the usercmds that have not run.

use std::collections::VecDeque;

use super::FinishError;
use crate::log::WriteError;
use crate::record::{
    BEGINS_AFTER_TICK, EventTime, FrameRecord, Presence, PresenceRecord, Record, SessionChunk, SessionHeader,
    StateRecord, TickRecord,
};
use crate::sorted::SortedMap;
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// The setting that holds the number of this part.
const PART: &str = "recorder.part";

/// The most waiting usercmds per player; the oldest are dropped beyond it. Only recordings without ticks and
/// queues of many seconds reach it.
const WAITING_USERCMDS_MAX: usize = 8192;

/// The ticks and the time after which a server that ran no usercmd of a player does not run the waiting ones either. Both
/// must pass: one tick may take long, and at 1,000 Hz a short queue lasts for many ticks.
const IDLE: Elapsed = Elapsed { ticks: 64, time: Micros::from_s(5) };

/// Tracks the state that the next part of a recording would begin with.
#[derive(Debug, Default)]
pub(super) struct FlightCut {
    last: TickRecord,
    elapsed: Elapsed,
    /// Whether the part has records of the tick after `last`.
    is_in_tick: bool,
    present: SortedMap<PlayerId, PresenceRecord>,
    bodies: Vec<StateRecord>,
    players: SortedMap<PlayerId, Usercmds>,
}

/// Ticks since the first one, and the time between them.
#[derive(Clone, Copy, Debug, Default)]
struct Elapsed {
    ticks: u32,
    time: Micros,
}

/// One player's usercmds that have not run.
#[derive(Debug, Default)]
struct Usercmds {
    /// When the server last ran a usercmd of this player. If it ran none of any player, none can be known to wait.
    last_run: Option<Elapsed>,
    /// The last usercmds that ran, each with the tick in which it ran first.
    recent: VecDeque<(CommandSeq, Tick)>,
    /// The most ticks after which a usercmd ran again.
    again_after: u32,
    waiting: VecDeque<WaitingUsercmd>,
}

/// A usercmd that a later part may need.
#[derive(Debug)]
struct WaitingUsercmd {
    /// When the usercmd was recorded, or when its player left.
    since: Elapsed,
    /// Whether the player has left since.
    has_left: bool,
    /// The tick in which the usercmd, or a later one, ran first.
    ran_in: Option<Tick>,
    frame: FrameRecord,
}

/// The state that a part begins with.
#[derive(Clone, Debug, Default)]
pub(super) struct PartStart {
    pub(super) after: TickRecord,
    pub(super) records: Vec<Record>,
}

impl FlightCut {
    /// Returns whether a new part may begin with this record: it is the first record after the last tick. A recording
    /// without ticks may be split anywhere.
    pub(super) fn may_split_before(&self, record: &Record) -> bool {
        !self.is_in_tick && self.is_later(record)
    }

    /// Whether the record is later than the last tick. Before the first tick, times may be negative.
    fn is_later(&self, record: &Record) -> bool {
        match record.when() {
            _ if self.last.tick == Tick(0) => true,
            EventTime::At(at) => at > self.last.at,
            EventTime::In(tick) => tick > self.last.tick,
        }
    }

    /// Updates the state with a record.
    pub(super) fn update(&mut self, record: &Record) {
        self.is_in_tick |= self.last.tick > Tick(0) && self.is_later(record);
        match record {
            Record::Tick(tick) => {
                if self.last.tick > Tick(0) {
                    self.elapsed.ticks += 1;
                    self.elapsed.time += tick.at - self.last.at;
                }
                (self.last, self.is_in_tick) = (*tick, false);
                self.bodies.clear();
                self.players.values_mut().for_each(|of| of.drop_unneeded(tick.tick, self.elapsed));
            }
            Record::State(state) if state.viewer.is_none() && state.tick == self.last.tick => {
                self.bodies.push(state.clone());
            }
            Record::Presence(player, presence) => {
                match presence.change {
                    Presence::Joined => self.present.insert(*player, *presence),
                    Presence::Left => self.present.remove(player),
                };
                let of = self.players.entry(*player).or_default();
                // The usercmds of a player who rejoins may begin with number 1 again.
                of.recent.clear();
                if presence.change == Presence::Left {
                    for waiting in &mut of.waiting {
                        (waiting.since, waiting.has_left) = (self.elapsed, true);
                    }
                }
            }
            Record::Executed(player, done) => {
                let of = self.players.entry(*player).or_default();
                of.last_run = Some(self.elapsed);
                let mut recent = of.recent.iter().rev().take_while(|(command, _)| *command >= done.command);
                if let Some((_, first)) = recent.find(|(command, _)| *command == done.command) {
                    of.again_after = of.again_after.max(done.tick.0.saturating_sub(first.0));
                } else {
                    of.recent.push_back((done.command, done.tick));
                    if of.recent.len() > WAITING_USERCMDS_MAX {
                        of.recent.pop_front();
                    }
                }
                for waiting in of.waiting.iter_mut().filter(|waiting| waiting.frame.command.seq <= done.command) {
                    waiting.ran_in.get_or_insert(done.tick);
                }
                of.drop_unneeded(done.tick, self.elapsed);
            }
            Record::Frame(player, frame) => self.add_waiting(*player, frame),
            _ => {}
        }
    }

    fn add_waiting(&mut self, player: PlayerId, frame: &FrameRecord) {
        let of = self.players.entry(player).or_default();
        let (since, frame) = (self.elapsed, frame.clone());
        of.waiting.push_back(WaitingUsercmd { since, has_left: false, ran_in: None, frame });
        if of.waiting.len() > WAITING_USERCMDS_MAX {
            of.waiting.pop_front();
        }
    }

    /// Returns the state for a part that begins now.
    pub(super) fn beginning(&self) -> PartStart {
        let present = self.present.iter().map(|(player, presence)| Record::Presence(*player, *presence));
        let bodies = self.bodies.iter().map(|body| Record::State(StateRecord { tick: Tick(0), ..body.clone() }));
        // Without any execution, no usercmd can be known to wait.
        let has_executions = self.players.values().any(|of| of.last_run.is_some());
        let waiting =
            self.players.iter().filter(|_| has_executions).flat_map(|(player, of)| {
                of.waiting.iter().map(|waiting| Record::Frame(*player, waiting.frame.clone()))
            });
        PartStart { after: self.last, records: present.chain(bodies).chain(waiting).collect() }
    }
}

impl Usercmds {
    /// Drops the usercmds that the server does not run after a tick.
    fn drop_unneeded(&mut self, tick: Tick, now: Elapsed) {
        let is_recent = |then: Elapsed| now.ticks - then.ticks < IDLE.ticks || now.time - then.time < IDLE.time;
        let is_active = self.last_run.is_some_and(is_recent);
        // A usercmd may run again, as late as others of this player did.
        let again_after = self.again_after;
        self.waiting.retain(|waiting| match waiting.ran_in {
            Some(ran_in) => ran_in > tick || tick.0 - ran_in.0 < again_after,
            None => is_active && !waiting.has_left || is_recent(waiting.since),
        });
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

    /// Returns the state as a chunk of a session.
    pub(super) fn chunk(&self, header: &SessionHeader) -> Result<SessionChunk, FinishError> {
        let mut chunk = SessionChunk::of(header);
        self.records.iter().try_for_each(|record| chunk.push(record.clone(), header)).map_err(WriteError::from)?;
        Ok(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ExecutionRecord;
    use crate::units::Micros;
    use crate::usercmd::Usercmd;

    const PLAYER: PlayerId = PlayerId(0);

    fn frame(number: u32) -> Record {
        let command = Usercmd { seq: CommandSeq(number), ..Usercmd::default() };
        Record::Frame(PLAYER, FrameRecord { at: Micros::ZERO, command, ..FrameRecord::default() })
    }

    fn ran_of(player: PlayerId, command: u32, tick: u32) -> Record {
        let done = ExecutionRecord { command: CommandSeq(command), tick: Tick(tick), ..ExecutionRecord::default() };
        Record::Executed(player, done)
    }

    fn ran(command: u32, tick: u32) -> Record {
        ran_of(PLAYER, command, tick)
    }

    fn tick_at(number: u32, ms: i64) -> Record {
        Record::Tick(TickRecord { tick: Tick(number), at: Micros::from_ms(ms), hash: None })
    }

    fn presence(change: Presence, tick: u32) -> Record {
        Record::Presence(PLAYER, PresenceRecord { tick: Tick(tick), at: Micros::ZERO, change })
    }

    /// Returns the numbers of the usercmds that a part would begin with.
    fn kept(cut: &FlightCut) -> Vec<u32> {
        let numbers = cut.beginning().records.into_iter().filter_map(|record| match record {
            Record::Frame(_, frame) => Some(frame.command.seq.0),
            _ => None,
        });
        numbers.collect()
    }

    #[test]
    fn a_part_keeps_usercmds_that_may_run_again() {
        let mut cut = FlightCut::default();
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
    fn usercmds_of_a_player_who_left_wait_for_5_s_and_64_ticks() {
        let mut cut = FlightCut::default();
        let tick = |cut: &mut FlightCut, number: u32| cut.update(&tick_at(number, 20 * i64::from(number)));
        cut.update(&presence(Presence::Joined, 1));
        (1..=4).for_each(|number| cut.update(&frame(number)));
        for number in 1..=2 {
            cut.update(&ran(number, number));
            tick(&mut cut, number);
        }
        cut.update(&presence(Presence::Left, 3));
        (3..=251).for_each(|number| tick(&mut cut, number));
        assert_eq!(kept(&cut), [3, 4], "a server may run what it received before");
        // The usercmds of the player's next visit begin with number 1 again.
        cut.update(&presence(Presence::Joined, 252));
        (1..=2).for_each(|number| cut.update(&frame(number)));
        cut.update(&ran(1, 252));
        tick(&mut cut, 252);
        assert_eq!(kept(&cut), [2]);
        cut.update(&ran(2, 253));
        tick(&mut cut, 253);
        assert_eq!(kept(&cut), [0; 0], "usercmds of both visits have the numbers 1 and 2, and none ran twice");
    }

    /// Each tick of `ms` records a usercmd of a player whose usercmds the server does not run, and runs one of another
    /// player.
    fn cut_of_spectator(ticks: u32, ms: i64) -> FlightCut {
        let mut cut = FlightCut::default();
        for number in 1..=ticks {
            cut.update(&frame(number));
            cut.update(&ran_of(PlayerId(1), number, number));
            cut.update(&tick_at(number, 1_000_000 + ms * i64::from(number)));
        }
        cut
    }

    #[test]
    fn usercmds_that_the_server_does_not_run_wait_for_5_s_and_64_ticks() {
        // The last tick before usercmd 751 is tick 750, 5 s before tick 1000.
        assert_eq!(kept(&cut_of_spectator(1000, 20)), (752..=1000).collect::<Vec<_>>());
        assert_eq!(kept(&cut_of_spectator(100, 1000)), (38..=100).collect::<Vec<_>>());
        assert_eq!(kept(&cut_of_spectator(4000, 1)).len(), 4000, "a queue of 4 s at 1,000 Hz");
    }

    #[test]
    fn usercmds_of_a_long_queue_wait_while_the_server_runs_others_before_them() {
        let mut cut = FlightCut::default();
        (1..=1000).for_each(|number| cut.update(&frame(number)));
        for number in 1..=900 {
            cut.update(&ran(number, number));
            cut.update(&tick_at(number, 20 * i64::from(number)));
        }
        assert_eq!(kept(&cut), (901..=1000).collect::<Vec<_>>());
        // The server stalls for a minute, and goes on.
        cut.update(&tick_at(901, 80_000));
        assert_eq!(kept(&cut).len(), 100);
        cut.update(&ran(901, 902));
        cut.update(&tick_at(902, 80_020));
        assert_eq!(kept(&cut).len(), 99);
        // The server stops running usercmds of this player.
        let stop = |cut: &mut FlightCut, ticks: std::ops::RangeInclusive<u32>| {
            ticks.for_each(|number| cut.update(&tick_at(number, 80_020 + 20 * i64::from(number - 902))));
        };
        stop(&mut cut, 903..=1150);
        assert_eq!(kept(&cut).len(), 99);
        stop(&mut cut, 1151..=1160);
        assert_eq!(kept(&cut).len(), 0);
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
        let mut cut = FlightCut::default();
        assert!(cut.may_split_before(&ran(1)), "there is no tick yet");
        let joined = PresenceRecord { at: Micros(-9_000), ..PresenceRecord::default() };
        assert!(cut.may_split_before(&Record::Presence(PLAYER, joined)), "times may be negative");
        cut.update(&tick(1));
        assert!(!cut.may_split_before(&state(1)) && cut.may_split_before(&ran(2)));
        cut.update(&ran(2));
        assert!(!cut.may_split_before(&tick(2)), "a usercmd of tick 2 is in the part");
        cut.update(&tick(2));
        assert!(cut.may_split_before(&ran(3)));
    }
}

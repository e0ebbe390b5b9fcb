//! Parts of a session: a range of its ticks, or fewer of its players. A part keeps every kind of record.

use super::{
    EventTime, PlayerRecords, Presence, RecordType, Session, SessionHeader, StateKey, States, USERCMD_BYTES,
    UnknownRecords,
};
use crate::sorted::SortedSet;
use crate::units::{CommandSeq, Micros, Tick};

/// The setting that holds the tick after which a part of a session begins.
pub(crate) const BEGINS_AFTER_TICK: &str = "recorder.begins_after_tick";

impl SessionHeader {
    /// Whether the log begins inside a session. Its first usercmds may be older than its first tick.
    pub fn begins_inside(&self) -> bool {
        self.settings.iter().any(|(key, _)| key == BEGINS_AFTER_TICK)
    }
}

impl Session {
    /// Returns the part after one tick, up to and including another. `after` is 0 for the beginning of the session.
    ///
    /// The part begins as a log of the flight recorder does: with the bodies after that tick as states of tick 0, the
    /// present players, and the earlier usercmds that run in the part. Times, ticks and usercmds keep their numbers.
    pub fn part(&self, after: Tick, last: Tick) -> Session {
        let time_of = |tick: Tick| self.ticks.iter().rev().find(|known| known.tick <= tick).map(|known| known.at);
        let mut part = self.clone();
        if let Some(at) = time_of(last) {
            part.end_at(last, at);
        }
        if let Some(at) = time_of(after).filter(|_| after > Tick(0)) {
            part.begin_after(after, at);
        }
        part
    }

    fn begin_after(&mut self, after: Tick, at: Micros) {
        let setting = (BEGINS_AFTER_TICK.to_owned(), after.to_string());
        self.header.settings.retain(|(key, _)| *key != setting.0);
        self.header.settings.push(setting);
        let is_later = |when: EventTime| match when {
            EventTime::At(then) => then > at,
            EventTime::In(tick) => tick > after,
        };
        let to_run: Vec<SortedSet<CommandSeq>> =
            self.players.iter_mut().map(|player| player.begin_after(after, &is_later)).collect();
        self.streams_mut().into_iter().for_each(|stream| stream.retain(&is_later));
        let states = std::mem::take(&mut self.states);
        self.states = began(&states, after);
        for records in &mut self.unknown {
            let Some(times) = records.times() else { continue };
            let runs_later = |row: usize| {
                let command = records.columns.get(1).and_then(|column| column.values.get(row));
                let of_player = to_run.get(records.series[row] as usize);
                records.kind == USERCMD_BYTES
                    && command.zip(of_player).is_some_and(|(seq, of)| of.contains(&CommandSeq(*seq as u32)))
            };
            let kept: Vec<usize> = (0..records.len()).filter(|&row| times[row] > at.0 || runs_later(row)).collect();
            *records = records.rows(&kept);
        }
    }

    /// Removes a player's records, states and rows. The player's number remains, without usercmds.
    ///
    /// Rows of a custom kind belong to players if the kind has several series, all of them numbers of players.
    pub fn empty_player(&mut self, player: usize) {
        let players = self.players.len();
        let (Some(records), Some(info)) = (self.players.get_mut(player), self.header.players.get_mut(player)) else {
            return;
        };
        (*records, info.recorded) = (PlayerRecords::default(), false);
        self.states.retain(|key| {
            usize::from(key.entity.0) != player && key.viewer.is_none_or(|viewer| usize::from(viewer.0) != player)
        });
        self.damage.retain(|damage| usize::from(damage.victim.0) != player);
        for records in &mut self.unknown {
            if is_by_player(records, players) {
                let kept: Vec<usize> =
                    (0..records.len()).filter(|&row| records.series[row] as usize != player).collect();
                *records = records.rows(&kept);
            }
        }
    }
}

impl PlayerRecords {
    /// Removes what happened up to a tick, except the usercmds that run later. Returns their numbers.
    fn begin_after(&mut self, after: Tick, is_later: &dyn Fn(EventTime) -> bool) -> SortedSet<CommandSeq> {
        let to_run: SortedSet<CommandSeq> =
            self.executed.iter().filter(|done| done.tick > after).map(|done| done.command).collect();
        let frames = std::mem::take(&mut self.frames);
        let present = self.presence.iter().rev().find(|change| !is_later(EventTime::At(change.at))).copied();
        self.streams_mut().into_iter().for_each(|stream| stream.retain(is_later));
        let kept = frames.into_iter().filter(|frame| is_later(frame.when()) || to_run.contains(&frame.command.seq));
        self.frames = kept.collect();
        let present = present.filter(|change| change.change == Presence::Joined);
        self.presence.splice(0..0, present);
        to_run
    }
}

/// The states of a part: those after the tick before it as states of tick 0, and all later ones.
fn began(states: &States, after: Tick) -> States {
    let mut part = States::default();
    for (key, cells) in states.of_tick(after).filter(|(key, _)| key.viewer.is_none()) {
        part.push(StateKey { tick: Tick(0), ..key }, cells);
    }
    for (key, cells) in states.iter().filter(|(key, _)| key.tick > after) {
        part.push(key, cells);
    }
    part
}

fn is_by_player(records: &UnknownRecords, players: usize) -> bool {
    let first = records.series.first();
    records.series.iter().any(|series| Some(series) != first)
        && records.series.iter().all(|series| (*series as usize) < players)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ExecutionRecord, FrameRecord, PresenceRecord, TickRecord};
    use crate::recorder::Description;
    use crate::units::{EntityId, PlayerId};
    use crate::usercmd::Usercmd;

    /// Ten ticks of 10 ms. Player 0 makes a usercmd in each, which runs two ticks later; player 1 joins in tick 4.
    fn session() -> Session {
        let described = Description::new("mygame").player("p0").player("p1");
        let mut session = Session::new(described.into_header().unwrap().0);
        for number in 1..=10 {
            let (tick, at) = (Tick(number), Micros(i64::from(number) * 10_000));
            session.ticks.push(TickRecord { tick, at, hash: None });
            let command = Usercmd { seq: CommandSeq(number), ..Usercmd::default() };
            session.players[0].frames.push(FrameRecord { at, command });
            if number > 2 {
                let command = CommandSeq(number - 2);
                session.players[0].executed.push(ExecutionRecord { command, tick, ..ExecutionRecord::default() });
            }
            for entity in 0..3 {
                let key = StateKey { tick, entity: EntityId(entity), ..StateKey::default() };
                session.states.push(key, &[number]);
            }
        }
        for (player, tick) in [(0, 1), (1, 4)] {
            let at = Micros(i64::from(tick) * 10_000);
            session.players[player].presence.push(PresenceRecord { tick: Tick(tick), at, change: Presence::Joined });
        }
        session
    }

    #[test]
    fn a_part_begins_with_bodies_players_and_usercmds_that_have_not_run() {
        let part = session().part(Tick(5), Tick(8));
        assert_eq!(part.ticks.iter().map(|tick| tick.tick.0).collect::<Vec<_>>(), [6, 7, 8]);
        let commands: Vec<u32> = part.players[0].frames.iter().map(|frame| frame.command.seq.0).collect();
        assert_eq!(commands, [4, 5, 6, 7, 8], "usercmd 3 ran in tick 5");
        let ran: Vec<u32> = part.players[0].executed.iter().map(|done| done.command.0).collect();
        assert_eq!(ran, [4, 5, 6]);
        let begin: Vec<u32> = part.states.of_tick(Tick(0)).map(|(_, cells)| cells[0]).collect();
        assert_eq!((begin, part.states.len()), (vec![5, 5, 5], 3 + 9));
        assert_eq!(part.players.iter().map(|player| player.presence.len()).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(part.header.settings, [(BEGINS_AFTER_TICK.to_owned(), "5".to_owned())]);
        assert_eq!(session().part(Tick(0), Tick(10)), session());
        assert_eq!(part.part(Tick(5), Tick(8)).header.settings.len(), 1);
    }

    #[test]
    fn a_usercmd_that_acts_again_stays() {
        let mut session = session();
        let again = ExecutionRecord { command: CommandSeq(3), tick: Tick(6), ..ExecutionRecord::default() };
        session.players[0].executed.insert(4, again);
        let part = session.part(Tick(5), Tick(8));
        assert_eq!(part.players[0].frames[0].command.seq, CommandSeq(3));
    }

    #[test]
    fn a_usercmd_that_never_runs_is_in_no_later_part() {
        let mut session = session();
        session.players[0].executed.retain(|done| done.command != CommandSeq(8) && done.command != CommandSeq(7));
        let spectator = session.players[0].frames.clone();
        session.players[1].frames = spectator;
        let late = ExecutionRecord { command: CommandSeq(10), tick: Tick(10), ..ExecutionRecord::default() };
        session.players[1].executed.push(late);
        let part = session.part(Tick(9), Tick(10));
        let numbers = |player: usize| part.players[player].frames.iter().map(|f| f.command.seq.0).collect::<Vec<_>>();
        assert_eq!((numbers(0), numbers(1)), (vec![10], vec![10]));
    }

    #[test]
    fn an_emptied_player_keeps_its_number() {
        let mut session = session();
        let rows = |kind: &str, series: &[u32]| UnknownRecords {
            kind: kind.to_owned(),
            series: series.to_vec(),
            keys: vec![0; series.len()],
            ..UnknownRecords::default()
        };
        session.unknown = vec![rows("corrections", &[0, 1, 1]), rows("tunings", &[0, 0]), rows("teams", &[0, 7])];
        session.empty_player(0);
        assert!(session.players[0].frames.is_empty() && !session.header.players[0].recorded);
        assert_eq!((session.players.len(), session.states.len()), (2, 20));
        assert_eq!(session.unknown.iter().map(UnknownRecords::len).collect::<Vec<_>>(), [2, 2, 2]);
        session.empty_player(7);
        assert_eq!(session.players[1].presence[0].tick, Tick(4));
        assert_eq!(session.of(PlayerId(1)).unwrap().presence.len(), 1);
    }
}

//! A session in memory, or a chunk of it.

use super::{
    Class, ClockOwner, CustomRow, DamageRecord, EventTime, GapRecord, PlayerRecords, Presence, Record, RecordStream,
    RecordType, SessionHeader, StateKey, States, Texts, TickRecord, UnknownColumn, UnknownKind, UnknownRecords,
    lowest_and_highest, widest,
};
use crate::sorted::SortedSet;
use crate::units::{CommandSeq, Micros, PlayerId, Tick};
use crate::usercmd::Usercmd;

/// A session in memory. Without a header (`Session<()>`) it is a [`SessionChunk`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session<H = SessionHeader> {
    /// The data known before the first record.
    pub header: H,
    /// The records of each player, in the order of [`SessionHeader::players`].
    pub players: Vec<PlayerRecords>,
    /// Entity states in the order of their keys.
    pub states: States,
    /// The server's ticks in order.
    pub ticks: Vec<TickRecord>,
    /// Damage to entities.
    pub damage: Vec<DamageRecord>,
    /// Spans with missing records.
    pub gaps: Vec<GapRecord>,
    /// Records of custom and unknown kinds; [`SessionHeader::unknown`] declares them.
    pub unknown: Vec<UnknownRecords>,
    /// The texts of the records.
    pub texts: Texts,
}

/// Consecutive records of a session without its header, such as those of one chunk of a log.
pub type SessionChunk = Session<()>;

impl Session {
    /// Returns a session without records.
    pub fn new(header: SessionHeader) -> Session {
        SessionChunk::of(&header).with_header(header)
    }

    /// Adds a record if it fits the header: its player and its class must exist, and a state needs one cell for each
    /// field.
    ///
    /// # Errors
    /// When the record does not fit the header. The session is then unchanged.
    pub fn push(&mut self, record: Record) -> Result<(), MisplacedRecord> {
        record.check(&self.header)?;
        let kinds = std::mem::take(&mut self.header.unknown);
        self.put(record, &kinds);
        self.header.unknown = kinds;
        Ok(())
    }

    /// Returns the session as one chunk.
    pub fn without_header(self) -> SessionChunk {
        self.with_header(())
    }

    /// Returns the time between the first and the last client frame, snapshot arrival or tick. A part of a session begins
    /// with its first tick, because its first usercmds may be older.
    pub fn duration(&self) -> Micros {
        let first_tick = self.ticks.first().filter(|_| self.header.begins_inside());
        self.played().map_or(Micros::ZERO, |(first, last)| last - first_tick.map_or(first, |tick| tick.at))
    }

    /// Returns the missing parts of the session, see [`GapRecord::all_after`].
    pub fn gaps_after_start(&self) -> Vec<GapRecord> {
        GapRecord::all_after(&self.gaps, self.ticks.first().map(|tick| tick.at)).copied().collect()
    }

    /// Returns the first missing part of the session, see [`GapRecord::first_after`].
    pub fn first_gap(&self) -> Option<&GapRecord> {
        GapRecord::first_after(&self.gaps, self.ticks.first().map(|tick| tick.at))
    }

    /// Sorts the states by key. In a client's log it also sorts the snapshots by number, because the client records
    /// them in the order of arrival. Readers of logs call this.
    pub fn put_in_order(&mut self) {
        if self.header.side.is_some_and(|side| side.player.is_some()) {
            for player in &mut self.players {
                player.snapshots.sort_by_key(|snapshot| snapshot.seq);
            }
        }
        self.put_lists_in_order();
    }

    /// Sorts each kind of records by time. Records that name a tick, and records of equal times, keep their order.
    pub(crate) fn sort_by_time(&mut self) {
        self.lists_mut().for_each(RecordStream::sort_by_time);
    }
}

impl<H> Session<H> {
    /// Returns the same records with another header.
    pub(crate) fn with_header<G>(self, header: G) -> Session<G> {
        let Session { header: _, players, states, ticks, damage, gaps, unknown, texts } = self;
        Session { header, players, states, ticks, damage, gaps, unknown, texts }
    }

    /// Returns all lists of records: those of each player, then those of the session by kind, the states, and each
    /// entry of `unknown`.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &dyn RecordStream> {
        let unknown = self.unknown.iter().map(|records| records as &dyn RecordStream);
        let players = self.players.iter().flat_map(PlayerRecords::streams);
        players.chain(self.streams()).chain([&self.states as &dyn RecordStream]).chain(unknown)
    }

    /// Returns all lists of records for changes, in the order of [`Session::lists`].
    pub(crate) fn lists_mut(&mut self) -> impl Iterator<Item = &mut dyn RecordStream> {
        let Session { header: _, players, states, ticks, damage, gaps, unknown, texts: _ } = self;
        let unknown = unknown.iter_mut().map(|records| records as &mut dyn RecordStream);
        let own: [&mut dyn RecordStream; 4] = [ticks, damage, gaps, states];
        players.iter_mut().flat_map(PlayerRecords::streams_mut).chain(own).chain(unknown)
    }

    pub(super) fn put_row(&mut self, row: &CustomRow, kind: &UnknownKind) {
        let known = self.unknown.iter().position(|known| known.kind == kind.name);
        let place = known.unwrap_or_else(|| {
            let columns = row.values.iter().map(|_| UnknownColumn::default()).collect();
            let (kind, time_column) = (kind.name.clone(), kind.time_column());
            self.unknown.push(UnknownRecords { kind, columns, time_column, ..UnknownRecords::default() });
            self.unknown.len() - 1
        });
        let records = &mut self.unknown[place];
        records.series.push(row.series);
        records.keys.push(0);
        for (column, value) in records.columns.iter_mut().zip(&row.values) {
            column.see(value.form());
            column.values.push(value.number());
        }
    }

    /// Sorts the lists to which the logs of several sides contribute: the states by key, and the gaps and the records of
    /// unknown kinds by time.
    pub(crate) fn put_lists_in_order(&mut self) {
        self.states.put_in_order();
        self.gaps.sort_by_key(|gap| (gap.to, gap.from, gap.player, gap.why));
        self.unknown.iter_mut().for_each(RecordStream::sort_by_time);
    }

    /// Removes everything after a tick and its time, also a gap that ends later.
    pub fn end_at(&mut self, tick: Tick, at: Micros) {
        let keep = |when: EventTime| match when {
            EventTime::At(then) => then <= at,
            EventTime::In(then) => then <= tick,
        };
        self.lists_mut().for_each(|list| list.retain(&keep));
        self.players.iter_mut().for_each(|player| player.snapshots.retain(|snapshot| snapshot.tick <= tick));
        self.ticks.retain(|kept| kept.tick <= tick);
    }

    /// Appends later records.
    pub fn append(&mut self, mut later: SessionChunk) {
        self.append_own(&mut later);
        for (player, later) in self.players.iter_mut().zip(later.players) {
            player.append(later);
        }
        self.states.append(&later.states);
        self.texts.append(&later.texts);
        later.unknown.into_iter().for_each(|records| self.append_unknown(records));
    }

    /// Appends records of an unknown kind.
    pub(crate) fn append_unknown(&mut self, records: UnknownRecords) {
        match self.unknown.iter_mut().find(|known| known.kind == records.kind) {
            Some(known) => known.append(records),
            None => self.unknown.push(records),
        }
    }

    /// Returns the times of the first and the last client frame, snapshot arrival or tick.
    pub fn played(&self) -> Option<(Micros, Micros)> {
        let frames = self.players.iter().flat_map(|p| [p.frames.first(), p.frames.last()]).flatten().map(|f| f.at);
        let arrivals =
            self.players.iter().flat_map(|p| [p.received.first(), p.received.last()]).flatten().map(|a| a.at);
        let ticks = [self.ticks.first(), self.ticks.last()].into_iter().flatten().map(|t| t.at);
        lowest_and_highest(frames.chain(arrivals).chain(ticks))
    }

    /// Returns the earliest and the latest time of all records of known kinds that have one of their own.
    pub fn time_span(&self) -> Option<(Micros, Micros)> {
        let lists = self.players.iter().flat_map(PlayerRecords::streams).chain(self.streams());
        widest(lists.filter_map(|list| list.span(0..list.len())))
    }

    /// Returns the earliest and the latest time of all records, including those of unknown kinds.
    pub(crate) fn full_time_span(&self) -> Option<(Micros, Micros)> {
        widest(self.lists().filter_map(|list| list.span(0..list.len())))
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.lists().all(RecordStream::is_empty)
    }

    /// Returns the size of the records in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.lists().map(|list| list.bytes(0..list.len())).sum::<usize>() + self.texts.bytes()
    }

    /// Removes all records and keeps the allocated memory and the texts, which later records may have again.
    pub(crate) fn clear(&mut self) {
        self.lists_mut().for_each(|list| list.drop_first(list.len()));
        self.unknown.clear();
    }
}

impl SessionChunk {
    /// Returns an empty chunk of a session with this header.
    pub(crate) fn of(header: &SessionHeader) -> SessionChunk {
        SessionChunk {
            players: header.players.iter().map(|_| PlayerRecords::default()).collect(),
            ..SessionChunk::default()
        }
    }

    /// Adds a record of a session with this header.
    ///
    /// # Errors
    /// When the record does not fit the header. The chunk is then unchanged.
    pub(crate) fn push(&mut self, record: Record, header: &SessionHeader) -> Result<(), MisplacedRecord> {
        record.check(header)?;
        self.put(record, &header.unknown);
        Ok(())
    }
}

impl Record {
    /// Checks that the record fits a session.
    pub(crate) fn check(&self, header: &SessionHeader) -> Result<(), MisplacedRecord> {
        let players = header.players.len();
        if let Some(id) = self.player().filter(|id| usize::from(id.0) >= players) {
            return Err(MisplacedRecord::Player { id, players });
        }
        match self {
            Record::State(state) => state.key().check(state.cells.len(), header),
            Record::Damage(DamageRecord { attacker: Some(id), .. }) if usize::from(id.0) >= players => {
                Err(MisplacedRecord::Player { id: *id, players })
            }
            Record::Heard(_, heard) if !heard.is_sound() => Err(MisplacedRecord::Heard { number: heard.number }),
            Record::Frame(_, frame) if !frame.bytes.is_empty() && !header.usercmd_bytes => Err(MisplacedRecord::Bytes),
            Record::Frame(_, frame) => check_own_cells(&frame.command, header),
            Record::Heard(_, heard) => heard.commands.iter().try_for_each(|command| check_own_cells(command, header)),
            _ => Ok(()),
        }
    }
}

fn check_own_cells(command: &Usercmd, header: &SessionHeader) -> Result<(), MisplacedRecord> {
    let found = command.input.own.stored().len();
    if found == 0 {
        return Ok(());
    }
    let cells = header.own_usercmd_fields().iter().map(|field| field.kind.cells()).sum();
    if found > cells { Err(MisplacedRecord::OwnCells { found, cells }) } else { Ok(()) }
}

impl StateKey {
    /// Checks that a state with this many cells fits a session.
    pub(crate) fn check(&self, found: usize, header: &SessionHeader) -> Result<(), MisplacedRecord> {
        let (players, classes, class) = (header.players.len(), header.classes.len(), self.class.0);
        if let Some(id) = self.viewer.filter(|id| usize::from(id.0) >= players) {
            return Err(MisplacedRecord::Player { id, players });
        }
        match header.classes.get(usize::from(class)).map(Class::cells) {
            None => Err(MisplacedRecord::Class { class, classes }),
            Some(cells) if cells != found => Err(MisplacedRecord::Cells { found, class, cells }),
            Some(_) => Ok(()),
        }
    }
}

impl PlayerRecords {
    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.streams().into_iter().all(|stream| stream.is_empty())
    }

    /// Shifts the times of the records that one side made.
    pub fn move_by(&mut self, side: ClockOwner, by: Micros) {
        for (stream, (_, of)) in self.streams_mut().into_iter().zip(super::OF_PLAYERS) {
            if of == side {
                stream.move_by(by);
            }
        }
    }
}

/// Why a record does not fit the session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MisplacedRecord {
    /// No player has this number.
    #[error("a record of player {id}, but the session has {players} players")]
    Player {
        /// The player's number.
        id: PlayerId,
        /// Number of players in the session.
        players: usize,
    },
    /// A packet has too many usercmds or usercmd numbers that are not consecutive.
    #[error(
        "packet {number} was heard with more than {max} usercmds, or with some between them left out",
        max = super::HEARD_COMMANDS_MAX
    )]
    Heard {
        /// The packet's number.
        number: u32,
    },
    /// A usercmd has cells of fields that the header does not declare.
    #[error("a usercmd has {found} cells of its game's own, but the session declares {cells}")]
    OwnCells {
        /// Number of cells found.
        found: usize,
        /// Number of cells that the header declares.
        cells: usize,
    },
    /// A usercmd has bytes of its own, and the header does not declare them.
    #[error("a usercmd has bytes of its own, but the description does not declare them")]
    Bytes,
    /// The class does not exist.
    #[error("a state of class {class}, but the number of classes is {classes}")]
    Class {
        /// The class's number.
        class: u16,
        /// Number of classes in the session.
        classes: usize,
    },
    /// The number of cells differs from that of the fields.
    #[error("a state of {found} cells, but the fields of class {class} have {cells}")]
    Cells {
        /// Number of cells of the state.
        found: usize,
        /// The class's number.
        class: u16,
        /// Number of cells of the class's fields.
        cells: usize,
    },
}

// Parts of a session: a range of its ticks, or fewer of its players. A part keeps every kind of record.

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
        self.players.iter_mut().for_each(|player| player.begin_after(after, &is_later));
        self.streams_mut().into_iter().for_each(|stream| stream.retain(&is_later));
        let states = std::mem::take(&mut self.states);
        self.states = began(&states, after);
        self.unknown.iter_mut().for_each(|records| records.retain(&is_later));
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
    /// Removes what happened up to a tick, except the usercmds that run later.
    fn begin_after(&mut self, after: Tick, is_later: &dyn Fn(EventTime) -> bool) {
        let to_run: SortedSet<CommandSeq> =
            self.executed.iter().filter(|done| done.tick > after).map(|done| done.command).collect();
        let frames = std::mem::take(&mut self.frames);
        let present = self.presence.iter().rev().find(|change| !is_later(EventTime::At(change.at))).copied();
        self.streams_mut().into_iter().for_each(|stream| stream.retain(is_later));
        let kept = frames.into_iter().filter(|frame| is_later(frame.when()) || to_run.contains(&frame.command.seq));
        self.frames = kept.collect();
        let present = present.filter(|change| change.change == Presence::Joined);
        self.presence.splice(0..0, present);
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
    use crate::units::EntityId;
    use crate::usercmd::Usercmd;

    /// Ten ticks of 10 ms. Player 0 makes a usercmd in each, which runs two ticks later; player 1 joins in tick 4.
    fn session() -> Session {
        let described = Description::new("mygame").player("p0").player("p1");
        let mut session = Session::new(described.into_header().unwrap().0);
        for number in 1..=10 {
            let (tick, at) = (Tick(number), Micros(i64::from(number) * 10_000));
            session.ticks.push(TickRecord { tick, at, hash: None });
            let command = Usercmd { seq: CommandSeq(number), ..Usercmd::default() };
            session.players[0].frames.push(FrameRecord { at, command, ..FrameRecord::default() });
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
        assert_eq!(session.players[1].presence.len(), 1);
    }
}

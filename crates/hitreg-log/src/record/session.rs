//! A session in memory, or a stretch of it.

use super::{
    Class, ClockOwner, CustomRow, DamageRecord, EventTime, GapRecord, PlayerRecords, Record, RecordStream,
    SessionHeader, StateKey, States, Texts, TickRecord, UnknownColumn, UnknownKind, UnknownRecords, lowest_and_highest,
    widest,
};
use crate::units::{Micros, PlayerId, Tick};
use crate::usercmd::Usercmd;

/// A session in memory. Without a header (`Session<()>`) it is a [`SessionStretch`], such as the content of one chunk of a
/// log.
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

/// Consecutive records of a session, without a header.
pub type SessionStretch = Session<()>;

impl Session {
    /// Returns a session without records.
    pub fn new(header: SessionHeader) -> Session {
        SessionStretch::of(&header).with_header(header)
    }

    /// Adds a record if it fits the header: its player and its class must exist, and a state needs one cell for each
    /// field.
    ///
    /// # Errors
    /// When the record does not fit the header. The session is then unchanged.
    pub fn push(&mut self, record: Record) -> Result<(), MisplacedRecord> {
        record.check(&self.header)?;
        let kinds = std::mem::take(&mut self.header.unknown);
        self.put(&record, &kinds);
        self.header.unknown = kinds;
        Ok(())
    }

    /// Returns one player's records.
    pub fn of(&mut self, player: PlayerId) -> Option<&mut PlayerRecords> {
        self.players.get_mut(usize::from(player.0))
    }

    /// Returns the session as one stretch.
    pub fn without_header(self) -> SessionStretch {
        let Session { header: _, players, states, ticks, damage, gaps, unknown, texts } = self;
        SessionStretch { header: (), players, states, ticks, damage, gaps, unknown, texts }
    }

    /// Returns the time between the first and the last client frame, snapshot arrival or tick. A part of a session begins
    /// with its first tick, because its first usercmds may be older.
    pub fn duration(&self) -> Micros {
        let first_tick = self.ticks.first().filter(|_| self.header.begins_inside());
        self.played().map_or(Micros::ZERO, |(first, last)| last - first_tick.map_or(first, |tick| tick.at))
    }

    /// Returns the first missing part of the session, see [`GapRecord::first_after`].
    pub fn first_hole(&self) -> Option<&GapRecord> {
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

    /// Sorts the states by key, and the records of unknown kinds by time.
    pub(crate) fn put_lists_in_order(&mut self) {
        self.states.put_in_order();
        self.unknown.iter_mut().for_each(RecordStream::sort_by_time);
    }

    /// Removes everything after a tick and its time.
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
    pub fn append(&mut self, mut later: SessionStretch) {
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

impl SessionStretch {
    /// Returns an empty stretch of a session with this header.
    pub(crate) fn of(header: &SessionHeader) -> SessionStretch {
        SessionStretch {
            players: header.players.iter().map(|_| PlayerRecords::default()).collect(),
            ..SessionStretch::default()
        }
    }

    /// Returns the session that consists of this stretch.
    pub(crate) fn with_header(self, header: SessionHeader) -> Session {
        let SessionStretch { header: (), players, states, ticks, damage, gaps, unknown, texts } = self;
        Session { header, players, states, ticks, damage, gaps, unknown, texts }
    }

    /// Adds a record of a session with this header.
    ///
    /// # Errors
    /// When the record does not fit the header. The stretch is then unchanged.
    pub(crate) fn push(&mut self, record: &Record, header: &SessionHeader) -> Result<(), MisplacedRecord> {
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
            Record::Heard(_, heard) if !heard.is_sound() => Err(MisplacedRecord::Heard { number: heard.number }),
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
    /// The class does not exist.
    #[error("a state of class {class}, but the session has {classes} classes")]
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

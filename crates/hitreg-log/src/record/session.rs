//! A session in memory, whole or a stretch of it.

use super::{
    Allowance, By, DamageRecord, GapRecord, Header, OwnRow, PlayerRecords, Record, StateKey, States, Stream,
    TickRecord, UnknownColumn, UnknownKind, UnknownRecords, Value, When,
};
use crate::units::{Micros, PlayerId, Tick};

/// A whole session in memory. Without its header (`Session<()>`) it is a [`Stretch`]: what one chunk of a log holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session<H = Header> {
    /// What is known before the first record.
    pub header: H,
    /// Each player's part, in the order of [`Header::players`].
    pub players: Vec<PlayerRecords>,
    /// Entity states in the order of their keys.
    pub states: States,
    /// The server's ticks in order.
    pub ticks: Vec<TickRecord>,
    /// Who was hurt by whom.
    pub damage: Vec<DamageRecord>,
    /// Spans of which records are missing.
    pub gaps: Vec<GapRecord>,
    /// What a later version recorded, as its [`Header::unknown`] says.
    pub unknown: Vec<UnknownRecords>,
    /// How much may be made out of it.
    pub allowance: Allowance,
}

/// Some consecutive records of a session.
pub type Stretch = Session<()>;

impl Session {
    /// A session in which nothing has happened yet.
    pub fn new(header: Header) -> Session {
        let players = header.players.iter().map(|_| PlayerRecords::default()).collect();
        let Stretch { states, ticks, damage, gaps, unknown, allowance, .. } = Stretch::default();
        Session { header, players, states, ticks, damage, gaps, unknown, allowance }
    }

    /// Adds one record. A record of a player that the header does not have, or a state that is not as its class says, is
    /// not added.
    ///
    /// # Errors
    /// Says what does not fit the header.
    pub fn push(&mut self, record: Record) -> Result<(), Misfit> {
        record.check(&self.header)?;
        self.put(&record);
        Ok(())
    }

    /// One player's part.
    pub fn of(&mut self, player: PlayerId) -> Option<&mut PlayerRecords> {
        self.players.get_mut(usize::from(player.0))
    }

    /// From the first record to the last, whichever they are.
    pub fn duration(&self) -> Micros {
        self.played().map_or(Micros::ZERO, |(first, last)| last - first)
    }

    /// When the first of them was, and the last.
    pub fn played(&self) -> Option<(Micros, Micros)> {
        let frames = self.players.iter().flat_map(|p| [p.frames.first(), p.frames.last()]).flatten().map(|f| f.at);
        let arrivals =
            self.players.iter().flat_map(|p| [p.received.first(), p.received.last()]).flatten().map(|a| a.at);
        let ticks = [self.ticks.first(), self.ticks.last()].into_iter().flatten().map(|t| t.at);
        let (mut first, mut last) = (Micros(i64::MAX), Micros(i64::MIN));
        for at in frames.chain(arrivals).chain(ticks) {
            first = first.min(at);
            last = last.max(at);
        }
        (first <= last).then_some((first, last))
    }

    /// The first part that is missing between the first tick and the last: what comes after is not what it was when it is replayed.
    /// What ran before the first tick is no part of the session.
    pub fn first_hole(&self) -> Option<&GapRecord> {
        let first = self.ticks.first().map_or(Micros(i64::MIN), |tick| tick.at);
        self.gaps.iter().filter(|gap| gap.to > first).min_by_key(|gap| gap.from)
    }

    /// Puts the states into the order of their keys, and the snapshots of a client's side into that of their numbers: the
    /// client writes them down as they arrive. Readers of logs call this.
    pub fn put_in_order(&mut self) {
        if self.header.side.is_some_and(|side| side.player.is_some()) {
            for player in &mut self.players {
                player.snapshots.sort_by_key(|snapshot| snapshot.seq);
            }
        }
        let kinds = std::mem::take(&mut self.header.unknown);
        self.put_in_order_of(&kinds);
        self.header.unknown = kinds;
    }

    /// Leaves out all that is after a tick and its time.
    pub fn end_at(&mut self, tick: Tick, at: Micros) {
        let kinds = std::mem::take(&mut self.header.unknown);
        self.end_at_of(&kinds, tick, at);
        self.header.unknown = kinds;
    }
}

impl<H> Session<H> {
    /// Puts the states into the order of their keys, and what a later version recorded into that of its times.
    pub(crate) fn put_in_order_of(&mut self, kinds: &[UnknownKind]) {
        self.states.put_in_order();
        for records in &mut self.unknown {
            if let Some(kind) = kinds.iter().find(|kind| kind.name == records.kind) {
                records.put_in_order(kind);
            }
        }
    }

    /// Leaves out all that is after a tick and its time.
    pub(crate) fn end_at_of(&mut self, kinds: &[UnknownKind], tick: Tick, at: Micros) {
        let keep = |when: When| match when {
            When::At(then) => then <= at,
            When::In(then) => then <= tick,
        };
        for player in &mut self.players {
            player.streams_mut().into_iter().for_each(|stream| stream.retain(&keep));
            player.snapshots.retain(|snapshot| snapshot.tick <= tick);
        }
        self.streams_mut().into_iter().for_each(|stream| stream.retain(&keep));
        self.ticks.retain(|kept| kept.tick <= tick);
        self.states.retain(|key| key.tick <= tick);
        for records in &mut self.unknown {
            if let Some(kind) = kinds.iter().find(|kind| kind.name == records.kind) {
                records.end_at(kind, at);
            }
        }
    }

    /// Appends what comes later.
    pub fn append(&mut self, mut later: Stretch) {
        self.append_own(&mut later);
        for (player, later) in self.players.iter_mut().zip(later.players) {
            player.append(later);
        }
        self.states.append(&later.states);
        later.unknown.into_iter().for_each(|records| self.append_unknown(records));
    }

    /// Appends what a later version recorded.
    pub(crate) fn append_unknown(&mut self, records: UnknownRecords) {
        match self.unknown.iter_mut().find(|known| known.kind == records.kind) {
            Some(known) => known.append(records),
            None => self.unknown.push(records),
        }
    }

    /// The times of all records that have one of their own.
    pub fn times(&self) -> impl Iterator<Item = Micros> + '_ {
        let streams = self.players.iter().flat_map(PlayerRecords::streams).chain(self.streams());
        let whens = streams.flat_map(|stream| (0..stream.len()).filter_map(|index| stream.when(index)));
        whens.filter_map(|when| if let When::At(at) = when { Some(at) } else { None })
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        let is_empty = |stream: &dyn Stream| stream.len() == 0;
        self.players.iter().all(|player| player.streams().into_iter().all(is_empty))
            && self.streams().into_iter().all(is_empty)
            && self.states.is_empty()
            && self.unknown.iter().all(UnknownRecords::is_empty)
    }

    /// What its records take in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of = |stream: &dyn Stream| stream.bytes(0..stream.len());
        let players = self.players.iter().flat_map(PlayerRecords::streams).map(of).sum::<usize>();
        let unknown = self.unknown.iter().map(UnknownRecords::bytes).sum::<usize>();
        players + self.streams().into_iter().map(of).sum::<usize>() + self.states.bytes() + unknown
    }

    /// Forgets the records, and keeps the room.
    pub(crate) fn clear(&mut self) {
        for player in &mut self.players {
            player.streams_mut().into_iter().for_each(|stream| stream.clear());
        }
        self.streams_mut().into_iter().for_each(|stream| stream.clear());
        self.states.clear();
        self.unknown.clear();
    }
}

impl Stretch {
    /// An empty stretch of a session with this header.
    pub(crate) fn of(header: &Header) -> Stretch {
        Stretch { players: header.players.iter().map(|_| PlayerRecords::default()).collect(), ..Stretch::default() }
    }

    /// Adds a row of a kind that only the header knows.
    pub(crate) fn push_row(&mut self, row: &OwnRow, header: &Header) {
        let Some(kind) = header.unknown.get(row.kind) else { return };
        let records = match self.unknown.iter_mut().position(|known| known.kind == kind.name) {
            Some(place) => &mut self.unknown[place],
            None => {
                let columns = row.values.iter().map(|_| UnknownColumn::default()).collect();
                self.unknown.push(UnknownRecords { kind: kind.name.clone(), columns, ..UnknownRecords::default() });
                let last = self.unknown.len() - 1;
                &mut self.unknown[last]
            }
        };
        records.series.push(row.series);
        records.keys.push(row.key);
        for (column, value) in records.columns.iter_mut().zip(&row.values) {
            column.is_float |= matches!(value, Value::Float(_));
            column.values.push(value.cell());
        }
    }

    /// Adds one record of a session with this header.
    ///
    /// # Errors
    /// Says what does not fit the header; then it is not added.
    pub(crate) fn push(&mut self, record: &Record, header: &Header) -> Result<(), Misfit> {
        record.check(header)?;
        self.put(record);
        Ok(())
    }
}

impl Record {
    /// Whether it fits a session.
    pub(crate) fn check(&self, header: &Header) -> Result<(), Misfit> {
        let players = header.players.len();
        if let Some(id) = self.player().filter(|id| usize::from(id.0) >= players) {
            return Err(Misfit::Player { id, players });
        }
        match self {
            Record::State(state) => state.key().check(state.cells.len(), header),
            Record::Heard(_, heard) if !heard.is_sound() => Err(Misfit::Heard { number: heard.number }),
            _ => Ok(()),
        }
    }
}

impl StateKey {
    /// Whether a state of so many cells fits a session.
    pub(crate) fn check(&self, found: usize, header: &Header) -> Result<(), Misfit> {
        let (players, classes, class) = (header.players.len(), header.classes.len(), self.class.0);
        if let Some(id) = self.viewer.filter(|id| usize::from(id.0) >= players) {
            return Err(Misfit::Player { id, players });
        }
        match header.classes.get(usize::from(class)).map(|class| class.fields.len()) {
            None => Err(Misfit::Class { class, classes }),
            Some(fields) if fields != found => Err(Misfit::Cells { found, class, fields }),
            Some(_) => Ok(()),
        }
    }
}

impl PlayerRecords {
    /// Moves the times of what one side recorded.
    pub fn move_by(&mut self, side: By, by: Micros) {
        for (stream, (_, of)) in self.streams_mut().into_iter().zip(super::OF_PLAYERS) {
            if of == side {
                stream.move_by(by);
            }
        }
    }
}

/// A record that does not belong to the session that it was added to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Nobody has that number.
    #[error("a record of player {id}, but the session has {players} players")]
    Player {
        /// The number.
        id: PlayerId,
        /// How many there are.
        players: usize,
    },
    /// No packet is like that.
    #[error(
        "packet {number} was heard with more than {max} usercmds, or with some between them left out",
        max = super::HEARD_COMMANDS_MAX
    )]
    Heard {
        /// The packet's number.
        number: u32,
    },
    /// There is no such class.
    #[error("a state of class {class}, but the session has {classes} classes")]
    Class {
        /// The class's number.
        class: u16,
        /// How many there are.
        classes: usize,
    },
    /// The row has another width.
    #[error("a state of {found} cells, but class {class} has {fields} fields")]
    Cells {
        /// The row's.
        found: usize,
        /// The class.
        class: u16,
        /// The class's.
        fields: usize,
    },
}

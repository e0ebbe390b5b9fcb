//! The kinds of records. [`each_stream!`] is the only list of them: storage, reading, cutting and counting derive from
//! it. A new kind is one line here, plus the columns of its record in the log.

use std::ops::Range;

use super::{
    ArrivalRecord, CustomRow, DamageRecord, Execution, ExecutionRecord, FrameRecord, GapRecord, HeardRecord,
    PacketRecord, PresenceRecord, Session, ShotRecord, SnapshotRecord, StateRecord, TickRecord, UnknownKind,
    lowest_and_highest,
};
use crate::units::{Micros, PlayerId, Tick};
use crate::usercmd::Usercmd;

/// When an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTime {
    /// At a time of the session.
    At(Micros),
    /// In a tick.
    In(Tick),
}

/// The operations that every kind of record supports.
pub trait RecordType: Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// Returns when it happened.
    fn when(&self) -> EventTime;
    /// Shifts its times, if it has times of its own.
    fn move_by(&mut self, _by: Micros) {}
    /// Returns its heap memory, in bytes.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// Implements [`RecordType`] for records whose only time is `at`, each with its heap memory if it has any.
macro_rules! timed_records {
    ($($record:ident $(=> |$self:ident| $heap_bytes:expr)?;)*) => {
        $(
            impl RecordType for $record {
                fn when(&self) -> EventTime {
                    EventTime::At(self.at)
                }

                fn move_by(&mut self, by: Micros) {
                    self.at += by;
                }

                $(
                    fn heap_bytes(&self) -> usize {
                        let $self = self;
                        $heap_bytes
                    }
                )?
            }
        )*
    };
}

timed_records! {
    FrameRecord => |record| record.command.heap_bytes() + record.bytes.len();
    PacketRecord;
    ArrivalRecord;
    HeardRecord => |record| {
        size_of_val(&record.commands[..]) + record.commands.iter().map(Usercmd::heap_bytes).sum::<usize>()
    };
    SnapshotRecord => |record| {
        let timing = record.timing.as_ref().map_or(0, |t| size_of_val(&**t) + size_of_val(&t.warnings[..]));
        size_of_val(&record.entities[..]) + size_of_val(&record.effects[..]) + timing + record.extra.len()
    };
    PresenceRecord;
    ShotRecord;
    DamageRecord;
    TickRecord;
}

/// The clock of a kind's times. Until a merge, the log of that side holds the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockOwner {
    /// The client's clock.
    Client,
    /// The server's clock.
    Server,
}

/// A list of records, independent of their type.
pub trait RecordStream {
    /// Returns the number of records.
    fn len(&self) -> usize;
    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns when the record at `index` happened; `None` for a record without a time, and after the last record.
    fn when(&self, index: usize) -> Option<EventTime>;
    /// Returns the earliest and the latest time in a range of records, without those that name a tick.
    fn span(&self, range: Range<usize>) -> Option<(Micros, Micros)>;
    /// Returns the size of a range of records in memory, in bytes.
    fn bytes(&self, range: Range<usize>) -> usize;
    /// Removes the first `count` records and keeps the allocated memory.
    #[doc(hidden)]
    fn drop_first(&mut self, count: usize);
    /// Keeps only the records whose time satisfies `keep`, and those without a time.
    fn retain(&mut self, keep: &dyn Fn(EventTime) -> bool);
    /// Shifts the times of all records that have one of their own.
    fn move_by(&mut self, by: Micros);
    /// Sorts the records by time. Records of equal times, and those that name a tick, keep their order.
    fn sort_by_time(&mut self);
}

impl<T: RecordType> RecordStream for Vec<T> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn when(&self, index: usize) -> Option<EventTime> {
        self.get(index).map(RecordType::when)
    }

    fn span(&self, range: Range<usize>) -> Option<(Micros, Micros)> {
        let times = self.get(range).unwrap_or_default().iter().filter_map(|record| match record.when() {
            EventTime::At(at) => Some(at),
            EventTime::In(_) => None,
        });
        lowest_and_highest(times)
    }

    fn bytes(&self, range: Range<usize>) -> usize {
        let records = self.get(range).unwrap_or_default();
        size_of_val(records) + records.iter().map(RecordType::heap_bytes).sum::<usize>()
    }

    fn drop_first(&mut self, count: usize) {
        self.drain(..count.min(Vec::len(self)));
    }

    fn retain(&mut self, keep: &dyn Fn(EventTime) -> bool) {
        Vec::retain(self, |record| keep(record.when()));
    }

    fn move_by(&mut self, by: Micros) {
        self.iter_mut().for_each(|record| record.move_by(by));
    }

    fn sort_by_time(&mut self) {
        self.sort_by_key(|record| match record.when() {
            EventTime::At(at) => Some(at),
            EventTime::In(_) => None,
        });
    }
}

/// Passes the list of kinds to a macro: the kinds of each player, then those of the session. Records with equal times
/// are written in this order.
#[macro_export]
macro_rules! each_stream {
    ($then:ident) => {
        $then! {
            players {
                /// Client frames, each with its usercmd.
                Client Frame frames FrameRecord;
                /// Shots as the client predicted them.
                Client Predicted predicted ShotRecord;
                /// Packets that the client sent.
                Client Sent sent PacketRecord;
                /// Arrivals of those packets at the server, in the order of arrival.
                Server Reached reached ArrivalRecord;
                /// Content of those packets as the server received it, in logs of the server's side.
                Server Heard heard HeardRecord;
                /// How the server handled each usercmd, in the order of handling.
                Server Executed executed ExecutionRecord;
                /// Shots as the server judged them.
                Server Judged judged ShotRecord;
                /// When the player joined and left.
                Server Presence presence PresenceRecord;
                /// Snapshots sent to the client.
                Server Snapshot snapshots SnapshotRecord;
                /// Arrivals of those snapshots at the client, in the order of arrival.
                Client Received received ArrivalRecord;
            }
            session {
                /// The server's ticks.
                Tick ticks TickRecord;
                /// Damage to entities.
                Damage damage DamageRecord;
                /// Spans with missing records.
                Gap gaps GapRecord;
            }
        }
    };
}
pub use crate::each_stream;

macro_rules! declare {
    (
        players { $( $(#[$doc:meta])* $by:ident $variant:ident $field:ident $type:ident; )* }
        session { $( $(#[$own_doc:meta])* $own:ident $own_field:ident $own_type:ident; )* }
    ) => {
        /// One record of a session. The records of one player, and those of the server, come in the order of their
        /// times.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Record {
            $( $(#[$doc])* $variant(PlayerId, $type), )*
            $( $(#[$own_doc])* $own($own_type), )*
            /// An entity's state after a tick.
            State(StateRecord),
            /// A row of a kind that only the header declares, at a time.
            Row(Micros, CustomRow),
        }

        /// The records of one player.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct PlayerRecords {
            $( $(#[$doc])* pub $field: Vec<$type>, )*
        }

        /// Kinds of records that each player has: name and clock.
        pub const OF_PLAYERS: [(&str, ClockOwner); OF_PLAYERS_COUNT] = [$( (stringify!($field), ClockOwner::$by) ),*];
        const OF_PLAYERS_COUNT: usize = [$( stringify!($field) ),*].len();
        /// Names of the kinds of records of the whole session, except entity states.
        pub(crate) const OF_SESSION: [&str; OF_SESSION_COUNT] = [$( stringify!($own_field) ),*];
        const OF_SESSION_COUNT: usize = [$( stringify!($own_field) ),*].len();

        impl PlayerRecords {
            /// Returns the records by kind, in the order of [`OF_PLAYERS`].
            pub fn streams(&self) -> [&dyn RecordStream; OF_PLAYERS_COUNT] {
                [$( &self.$field ),*]
            }

            /// Returns whether the player's input is known only from packets that the server received.
            pub fn is_heard_only(&self) -> bool {
                self.frames.is_empty() && !self.heard.is_empty()
            }

            /// Returns whether the log holds a usercmd of the player.
            pub fn has_usercmds(&self) -> bool {
                !(self.frames.is_empty() && self.heard.is_empty())
            }

            /// Returns the first tick in which the server ran a usercmd of the player, if the log holds none of them.
            pub fn lacks_usercmds_from(&self) -> Option<Tick> {
                let ran = self.executed.iter().filter(|done| done.how == Execution::Run);
                ran.map(|done| done.tick).min().filter(|_| !self.has_usercmds())
            }

            /// Returns the records by kind for changes, in the order of [`OF_PLAYERS`].
            pub fn streams_mut(&mut self) -> [&mut dyn RecordStream; OF_PLAYERS_COUNT] {
                [$( &mut self.$field ),*]
            }

            /// Appends later records.
            pub(crate) fn append(&mut self, mut later: PlayerRecords) {
                $( self.$field.append(&mut later.$field); )*
            }

            /// Replaces the kinds that are on clock `by` with those of `from`.
            pub fn take(&mut self, by: ClockOwner, from: PlayerRecords) {
                $( if by == ClockOwner::$by { self.$field = from.$field; } )*
            }
        }

        impl<H> Session<H> {
            /// Returns the session's own records by kind, in the order of `OF_SESSION`.
            pub fn streams(&self) -> [&dyn RecordStream; OF_SESSION_COUNT] {
                [$( &self.$own_field ),*]
            }

            /// Returns the session's own records by kind for changes, in the order of `OF_SESSION`.
            pub fn streams_mut(&mut self) -> [&mut dyn RecordStream; OF_SESSION_COUNT] {
                [$( &mut self.$own_field ),*]
            }

            pub(super) fn append_own(&mut self, later: &mut Session<()>) {
                $( self.$own_field.append(&mut later.$own_field); )*
            }

            /// Adds a checked record; `None` if the player or the kind does not exist. `kinds` are those that only the
            /// header declares.
            pub(super) fn put(&mut self, record: Record, kinds: &[UnknownKind]) -> Option<()> {
                match record {
                    $( Record::$variant(id, record) => {
                        self.players.get_mut(usize::from(id.0))?.$field.push(record);
                    } )*
                    $( Record::$own(record) => self.$own_field.push(record), )*
                    Record::State(record) => self.states.push(record.key(), &record.cells),
                    Record::Row(_, row) => self.put_row(&row, kinds.get(row.kind)?),
                }
                Some(())
            }
        }

        impl Record {
            /// Returns when it happened; a state's time is its tick.
            pub fn when(&self) -> EventTime {
                match self {
                    $( Record::$variant(_, record) => record.when(), )*
                    $( Record::$own(record) => record.when(), )*
                    Record::State(record) => EventTime::In(record.tick),
                    Record::Row(at, _) => EventTime::At(*at),
                }
            }

            /// Returns its size in memory, in bytes.
            pub(crate) fn bytes(&self) -> usize {
                match self {
                    $( Record::$variant(_, record) => size_of::<$type>() + record.heap_bytes(), )*
                    $( Record::$own(record) => size_of::<$own_type>() + record.heap_bytes(), )*
                    Record::State(record) => state_bytes(record.cells.len()),
                    Record::Row(_, row) => size_of_val(&row.values[..]),
                }
            }

            /// Returns its player; `None` for records of the whole session.
            pub fn player(&self) -> Option<PlayerId> {
                match self {
                    $( Record::$variant(id, _) => Some(*id), )*
                    $( Record::$own(_) => None, )*
                    Record::State(_) | Record::Row(..) => None,
                }
            }
        }
    };
}
each_stream!(declare);

/// Returns the size in memory of a state with this many cells, in bytes.
fn state_bytes(cells: usize) -> usize {
    16 + 4 * cells
}

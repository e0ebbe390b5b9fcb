//! The kinds of records. There is one list of them, [`each_stream!`]: what a session holds, how it is written, read, cut and
//! counted all follow from it, so that a new kind is a line here and the columns of its record in the log.

use super::{
    ArrivalRecord, DamageRecord, ExecutionRecord, FrameRecord, GapRecord, HeardRecord, PacketRecord, PresenceRecord,
    Session, ShotRecord, SnapshotRecord, StateRecord, TickRecord,
};
use crate::units::{Micros, PlayerId, Tick};

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At a time of the session.
    At(Micros),
    /// In a tick.
    In(Tick),
}

/// What every kind of record has.
pub trait Recorded: Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// When it happened.
    fn when(&self) -> When;
    /// Moves its times, if it has any of its own.
    fn move_by(&mut self, _by: Micros) {}
    /// What it takes in memory besides its own size, in bytes.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// Whose clock the times of a kind are on, and so in whose log it is while each side records its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The client's.
    Client,
    /// The server's.
    Server,
}

/// The records of one kind, whichever.
pub trait Stream {
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// When one happened.
    fn when(&self, index: usize) -> Option<When>;
    /// What some take in memory, in bytes.
    fn bytes(&self, range: std::ops::Range<usize>) -> usize;
    /// Forgets all, and keeps the room.
    fn clear(&mut self);
    /// Forgets the first of them.
    fn drop_first(&mut self, count: usize);
    /// Keeps those of which it is true.
    fn retain(&mut self, keep: &dyn Fn(When) -> bool);
    /// Moves all times.
    fn move_by(&mut self, by: Micros);
}

impl<T: Recorded> Stream for Vec<T> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn when(&self, index: usize) -> Option<When> {
        self.get(index).map(Recorded::when)
    }

    fn bytes(&self, range: std::ops::Range<usize>) -> usize {
        let records = self.get(range).unwrap_or_default();
        size_of_val(records) + records.iter().map(Recorded::heap_bytes).sum::<usize>()
    }

    fn clear(&mut self) {
        Vec::clear(self);
    }

    fn drop_first(&mut self, count: usize) {
        self.drain(..count.min(Vec::len(self)));
    }

    fn retain(&mut self, keep: &dyn Fn(When) -> bool) {
        Vec::retain(self, |record| keep(record.when()));
    }

    fn move_by(&mut self, by: Micros) {
        self.iter_mut().for_each(|record| record.move_by(by));
    }
}

/// Hands the list of kinds to a macro: those that each player has, then those of the whole session. Records of one moment
/// are written in this order.
#[macro_export]
macro_rules! each_stream {
    ($then:ident) => {
        $then! {
            players {
                /// Client frames: each made a usercmd.
                Client Frame frames FrameRecord;
                /// Shots as the client predicted them.
                Client Predicted predicted ShotRecord;
                /// Packets that the client sent.
                Client Sent sent PacketRecord;
                /// Their arrivals at the server, in the order of arrival.
                Server Reached reached ArrivalRecord;
                /// What the server was told in them, where nobody else keeps it.
                Server Heard heard HeardRecord;
                /// What the server did about each usercmd, in the order of doing.
                Server Executed executed ExecutionRecord;
                /// Shots as the server judged them.
                Server Judged judged ShotRecord;
                /// When the player joined and left.
                Server Presence presence PresenceRecord;
                /// Snapshots sent to the client.
                Server Snapshot snapshots SnapshotRecord;
                /// Their arrivals at the client, in the order of arrival.
                Client Received received ArrivalRecord;
            }
            session {
                /// The server's ticks.
                Tick ticks TickRecord;
                /// Who was hurt by whom.
                Damage damage DamageRecord;
                /// Spans of which records are missing.
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
        /// One thing that happened. Within one player (and within the server) records come in the order of their times.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Record {
            $( $(#[$doc])* $variant(PlayerId, $type), )*
            $( $(#[$own_doc])* $own($own_type), )*
            /// An entity's state after a tick.
            State(StateRecord),
        }

        /// One player's part of a session.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct PlayerRecords {
            $( $(#[$doc])* pub $field: Vec<$type>, )*
        }

        /// The kinds of records that each player has, by name, and on whose clock.
        pub const OF_PLAYERS: [(&str, By); OF_PLAYERS_COUNT] = [$( (stringify!($field), By::$by) ),*];
        const OF_PLAYERS_COUNT: usize = [$( stringify!($field) ),*].len();
        /// The kinds of records of the whole session, by name; entities' states are besides.
        pub(crate) const OF_SESSION: [&str; OF_SESSION_COUNT] = [$( stringify!($own_field) ),*];
        const OF_SESSION_COUNT: usize = [$( stringify!($own_field) ),*].len();

        impl PlayerRecords {
            /// The records by kind, in the order of [`OF_PLAYERS`].
            pub fn streams(&self) -> [&dyn Stream; OF_PLAYERS_COUNT] {
                [$( &self.$field ),*]
            }

            /// Whether nothing is known of its input but what the server heard.
            pub fn is_heard_only(&self) -> bool {
                self.frames.is_empty() && !self.heard.is_empty()
            }

            /// The same, to be changed.
            pub fn streams_mut(&mut self) -> [&mut dyn Stream; OF_PLAYERS_COUNT] {
                [$( &mut self.$field ),*]
            }

            /// Appends what comes later.
            pub(crate) fn append(&mut self, mut later: PlayerRecords) {
                $( self.$field.append(&mut later.$field); )*
            }

            /// Takes the records over that are on one clock.
            pub fn take(&mut self, by: By, from: PlayerRecords) {
                $( if by == By::$by { self.$field = from.$field; } )*
            }
        }

        impl<H> Session<H> {
            /// The records of the whole session by kind, in the order of `OF_SESSION`.
            pub fn streams(&self) -> [&dyn Stream; OF_SESSION_COUNT] {
                [$( &self.$own_field ),*]
            }

            /// The same, to be changed.
            pub fn streams_mut(&mut self) -> [&mut dyn Stream; OF_SESSION_COUNT] {
                [$( &mut self.$own_field ),*]
            }

            pub(super) fn append_own(&mut self, later: &mut Session<()>) {
                $( self.$own_field.append(&mut later.$own_field); )*
            }

            /// Adds a record that is known to fit; `None` where there is no such player.
            pub(super) fn put(&mut self, record: &Record) -> Option<()> {
                match record {
                    $( Record::$variant(id, record) => {
                        self.players.get_mut(usize::from(id.0))?.$field.push(record.clone());
                    } )*
                    $( Record::$own(record) => self.$own_field.push(record.clone()), )*
                    Record::State(record) => self.states.push(record.key(), &record.cells),
                }
                Some(())
            }
        }

        impl Record {
            /// When it happened. A state is of its tick.
            pub fn when(&self) -> When {
                match self {
                    $( Record::$variant(_, record) => record.when(), )*
                    $( Record::$own(record) => record.when(), )*
                    Record::State(record) => When::In(record.tick),
                }
            }

            /// What it takes in memory, in bytes.
            pub(crate) fn bytes(&self) -> usize {
                match self {
                    $( Record::$variant(_, record) => size_of::<$type>() + record.heap_bytes(), )*
                    $( Record::$own(record) => size_of::<$own_type>() + record.heap_bytes(), )*
                    Record::State(record) => state_bytes(record.cells.len()),
                }
            }

            /// Whose it is; `None` of what is of the whole session.
            pub fn player(&self) -> Option<PlayerId> {
                match self {
                    $( Record::$variant(id, _) => Some(*id), )*
                    $( Record::$own(_) => None, )*
                    Record::State(_) => None,
                }
            }
        }
    };
}
each_stream!(declare);

/// What a state of so many cells takes in memory, in bytes.
pub fn state_bytes(cells: usize) -> usize {
    16 + 4 * cells
}

//! The server's records: ticks, executed usercmds and snapshots.

use super::RecordType;
use super::event::Effect;
use super::stream::EventTime;
use crate::units::{CommandSeq, EntityId, Micros, SnapshotSeq, Tick, named};

/// How the server handled one usercmd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionRecord {
    /// The usercmd.
    pub command: CommandSeq,
    /// The tick in which the usercmd was due.
    pub tick: Tick,
    /// The result.
    pub how: Execution,
}

named! {
    /// How the server handled a usercmd.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Execution {
        /// The server ran it.
        #[default]
        Run = "run",
        /// It never arrived; the server ran the previous usercmd again in its place.
        StoodIn = "stood_in",
        /// It never arrived, and the server ran nothing in its place.
        Missing = "missing",
        /// It arrived after a later usercmd had run, and the server dropped it.
        Late = "late",
        /// The player had used up the simulation time that the server allows.
        OverBudget = "over_budget",
    }
}

/// A snapshot that the server sent to a client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotRecord {
    /// Snapshot number, counted per client from 1.
    pub seq: SnapshotSeq,
    /// The tick whose state it carries.
    pub tick: Tick,
    /// Send time at the server. An imported recording does not know it and has the arrival time instead.
    pub at: Micros,
    /// The server time in the snapshot.
    pub server_time: Micros,
    /// The newest usercmd that had run, was refused or was given up.
    pub ack: CommandSeq,
    /// Total bytes of its datagrams, with seals, without UDP/IP headers. Nominal if `wire.sizes` says so or is missing.
    pub bytes: u16,
    /// Number of updates that the client's rate limit held back before this one.
    pub choked: u8,
    /// The entities in it, ascending. Their states are the [`StateRecord`](super::StateRecord)s of the tick: those for
    /// this client if there are any, otherwise the shared ones.
    pub entities: Vec<EntityId>,
    /// Sounds and visual effects in the snapshot.
    pub effects: Vec<Effect>,
    /// Other data of the game (messages, changed movement constants), opaque.
    pub extra: Vec<u8>,
    /// Feedback on the client's timing, where usercmds run on their tick. Boxed, because most sessions have none and
    /// records are moved often.
    pub timing: Option<Box<Timing>>,
}

/// A snapshot's feedback on when the client's input arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// How many milliseconds before its tick the client's input arrives; `None` while the server does not know.
    pub helper_ms: Option<i16>,
    /// Usercmds that arrived too late or too early to run on their tick.
    pub warnings: Vec<OutOfSequence>,
}

impl Timing {
    /// Returns `None` when there is no feedback.
    pub fn new(helper_ms: Option<i16>, warnings: Vec<OutOfSequence>) -> Option<Box<Timing>> {
        let says = helper_ms.is_some() || !warnings.is_empty();
        says.then(|| Box::new(Timing { helper_ms, warnings }))
    }
}

/// NeREIDS's `OUT_OF_SEQ_WARNING`: a usercmd arrived after its tick or too far ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSequence {
    /// The newest usercmd of the packet.
    pub command: CommandSeq,
    /// Number of ticks it was ahead of the server's next tick. Below 0 is too late; more than 1.024 s is too early.
    pub difference: i16,
}

/// The end of a server tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickRecord {
    /// The tick.
    pub tick: Tick,
    /// Server time of the tick.
    pub at: Micros,
    /// Hash of the state after the tick; `None` in recordings of games that do not hash their state.
    pub hash: Option<u64>,
}

impl RecordType for ExecutionRecord {
    fn when(&self) -> EventTime {
        EventTime::In(self.tick)
    }
}

//! What the server does: with usercmds, in its ticks, and what it tells its clients.

use super::Recorded;
use super::event::Effect;
use super::stream::When;
use crate::units::{CommandSeq, EntityId, Micros, SnapshotSeq, Tick, named};

/// What the server did about one usercmd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionRecord {
    /// The usercmd.
    pub command: CommandSeq,
    /// The tick in which it was due.
    pub tick: Tick,
    /// What was done.
    pub how: Execution,
}

/// How the server dealt with a usercmd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Execution {
    /// It ran.
    #[default]
    Run,
    /// It never came; the last one ran again in its place.
    StoodIn,
    /// It never came, and nothing ran in its place.
    Missing,
    /// It came after something later had run, and was dropped.
    Late,
    /// The player had used up the time that may be simulated.
    OverBudget,
}

named!(Execution {
    Run = "run",
    StoodIn = "stood_in",
    Missing = "missing",
    Late = "late",
    OverBudget = "over_budget",
});

/// One snapshot that a server sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotRecord {
    /// Its number, counted per client from 1.
    pub seq: SnapshotSeq,
    /// The tick whose state it carries.
    pub tick: Tick,
    /// When it left the server. In an imported recording the server's clock is unknown: this is its arrival.
    pub at: Micros,
    /// The server time that it tells its client.
    pub server_time: Micros,
    /// The newest usercmd that had run.
    pub ack: CommandSeq,
    /// The bytes of its datagrams, seals included, UDP/IP headers not; nominal where `wire.sizes` says so or is missing.
    pub bytes: u16,
    /// How many updates were held back before it because the client's rate was used up.
    pub choked: u8,
    /// The entities in it, ascending; their states are the tick's [`StateRecord`](super::StateRecord)s: those for this
    /// client alone where there are any, else those for everyone.
    pub entities: Vec<EntityId>,
    /// Sounds and sights that it tells.
    pub effects: Vec<Effect>,
    /// What else the game put into it (messages, changed movement constants), opaque.
    pub extra: Vec<u8>,
    /// What it says of the client's timing, where usercmds run on their tick. In a box, because most sessions have none and
    /// every record is moved more than once.
    pub timing: Option<Box<Timing>>,
}

/// What a snapshot tells its client of when its input comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// How many ms before its tick the client's input arrives; `None` while the server cannot tell.
    pub helper_ms: Option<i16>,
    /// Usercmds that came at a time when they could not be used.
    pub warnings: Vec<OutOfSequence>,
}

impl Timing {
    /// `None` where there is nothing to say.
    pub fn new(helper_ms: Option<i16>, warnings: Vec<OutOfSequence>) -> Option<Box<Timing>> {
        let says = helper_ms.is_some() || !warnings.is_empty();
        says.then(|| Box::new(Timing { helper_ms, warnings }))
    }
}

/// NeREIDS's `OUT_OF_SEQ_WARNING`: a usercmd whose tick was over, or too far ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSequence {
    /// The newest usercmd of the packet.
    pub command: CommandSeq,
    /// How many ticks it was ahead of the server's next tick: below 0 too late, above 32 too early.
    pub difference: i16,
}

/// The end of a server tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickRecord {
    /// Which.
    pub tick: Tick,
    /// Its time on the server.
    pub at: Micros,
    /// The hash of the world after it; `None` where a real game's recording has no world to hash.
    pub hash: Option<u64>,
}

impl Recorded for ExecutionRecord {
    fn when(&self) -> When {
        When::In(self.tick)
    }
}

impl Recorded for SnapshotRecord {
    fn when(&self) -> When {
        When::At(self.at)
    }

    fn move_by(&mut self, by: Micros) {
        self.at += by;
    }

    fn heap_bytes(&self) -> usize {
        size_of_val(&self.entities[..])
            + size_of_val(&self.effects[..])
            + self.timing.as_ref().map_or(0, |t| size_of_val(&**t) + size_of_val(&t.warnings[..]))
            + self.extra.len()
    }
}

impl Recorded for TickRecord {
    fn when(&self) -> When {
        When::At(self.at)
    }

    fn move_by(&mut self, by: Micros) {
        self.at += by;
    }
}

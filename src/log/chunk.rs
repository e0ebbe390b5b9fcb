//! One chunk of a log: a stretch of a session, laid out by column, that decodes without any other chunk.

mod bucket;
mod map;
mod players;
mod snapshots;
mod states;
mod table;

pub(crate) use bucket::Bucket;
pub(crate) use map::{Place, decode, encode, encode_end, to_messagepack};

use crate::game::Field;
use crate::record::{
    ArrivalRecord, ExecutionRecord, FrameRecord, Header, Misfit, PacketRecord, PlayerRecords, Session, SnapshotRecord,
    States, TickRecord,
};
use crate::units::{EntityId, PlayerId, Tick};

/// A stretch of a session: what one chunk holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// Each player's part, in the order of the header's players.
    pub players: Vec<PlayerRecords>,
    /// The server's ticks in order.
    pub ticks: Vec<TickRecord>,
    /// Entity states in the order in which they were recorded.
    pub states: States,
}

impl Chunk {
    pub(crate) fn new(header: &Header) -> Chunk {
        let players = header.players.iter().map(|_| PlayerRecords::default()).collect();
        let states = States { width: header.fields.len(), ..States::default() };
        Chunk { players, ticks: Vec::new(), states }
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        let nobody_did_anything = self.players.iter().all(|player| {
            player.frames.is_empty()
                && player.sent.is_empty()
                && player.reached.is_empty()
                && player.executed.is_empty()
                && player.snapshots.is_empty()
                && player.received.is_empty()
        });
        nobody_did_anything && self.ticks.is_empty() && self.states.keys.is_empty()
    }

    /// What its records take in memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let of_player = |player: &PlayerRecords| {
            let snapshots: usize = player.snapshots.iter().map(snapshot_bytes).sum();
            size_of_val(&player.frames[..])
                + size_of_val(&player.sent[..])
                + size_of_val(&player.reached[..])
                + size_of_val(&player.executed[..])
                + size_of_val(&player.received[..])
                + snapshots
        };
        let states = size_of_val(&self.states.keys[..]) + size_of_val(&self.states.cells[..]);
        self.players.iter().map(of_player).sum::<usize>() + size_of_val(&self.ticks[..]) + states
    }

    fn of(&mut self, id: PlayerId) -> Result<&mut PlayerRecords, Misfit> {
        let players = self.players.len();
        self.players.get_mut(usize::from(id.0)).ok_or(Misfit::Player { id, players })
    }

    /// Appends this stretch to the session that it continues.
    pub(crate) fn append_to(self, session: &mut Session) {
        for (to, from) in session.players.iter_mut().zip(self.players) {
            to.frames.extend(from.frames);
            to.sent.extend(from.sent);
            to.reached.extend(from.reached);
            to.executed.extend(from.executed);
            to.snapshots.extend(from.snapshots);
            to.received.extend(from.received);
        }
        session.ticks.extend(self.ticks);
        session.states.keys.extend(self.states.keys);
        session.states.cells.extend(self.states.cells);
    }

    /// All of it; `fields` are the header's.
    pub(crate) fn as_stretch<'a>(&'a self, fields: &'a [Field]) -> Stretch<'a> {
        let players = self.players.iter().map(PlayerStretch::whole).collect();
        let States { keys, cells, .. } = &self.states;
        Stretch { players, ticks: &self.ticks, keys, cells, fields }
    }
}

/// What a snapshot takes in memory, in bytes.
pub(crate) fn snapshot_bytes(r: &SnapshotRecord) -> usize {
    size_of::<SnapshotRecord>()
        + size_of_val(&r.entities[..])
        + size_of_val(&r.effects[..])
        + r.timing.as_ref().map_or(0, |t| size_of_val(&**t) + size_of_val(&t.warnings[..]))
        + r.extra.len()
}

/// A stretch of a session that lies elsewhere: in a [`Chunk`], or in a whole [`Session`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch<'a> {
    pub(crate) players: Vec<PlayerStretch<'a>>,
    pub(crate) ticks: &'a [TickRecord],
    pub(crate) keys: &'a [(Tick, EntityId)],
    pub(crate) cells: &'a [u32],
    pub(crate) fields: &'a [Field],
}

/// One player's part of a [`Stretch`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlayerStretch<'a> {
    pub(crate) frames: &'a [FrameRecord],
    pub(crate) sent: &'a [PacketRecord],
    pub(crate) reached: &'a [ArrivalRecord],
    pub(crate) executed: &'a [ExecutionRecord],
    pub(crate) snapshots: &'a [SnapshotRecord],
    pub(crate) received: &'a [ArrivalRecord],
}

impl<'a> PlayerStretch<'a> {
    fn whole(records: &'a PlayerRecords) -> PlayerStretch<'a> {
        PlayerStretch {
            frames: &records.frames,
            sent: &records.sent,
            reached: &records.reached,
            executed: &records.executed,
            snapshots: &records.snapshots,
            received: &records.received,
        }
    }
}

//! Packets as the server received them. They let a server's log replay without the clients' logs.

use crate::units::{CommandSeq, Micros, SnapshotSeq};
use crate::usercmd::Usercmd;

/// The most usercmds in a recorded packet. The wire format has room for half as many.
pub const HEARD_COMMANDS_MAX: usize = 32;

/// One packet from a client as the server received it, with its claims unchecked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeardRecord {
    /// Packet number, as in its [`ArrivalRecord`](super::ArrivalRecord).
    pub number: u32,
    /// Arrival time.
    pub at: Micros,
    /// The newest snapshot that the client acks.
    pub ack: SnapshotSeq,
    /// Acks of the 32 snapshots before that, one bit each; the lowest bit is the snapshot just before.
    pub received_before: u32,
    /// Its usercmds, oldest first, with consecutive numbers.
    pub commands: Vec<Usercmd>,
}

impl HeardRecord {
    /// Returns whether a log can hold the packet: at most [`HEARD_COMMANDS_MAX`] usercmds with consecutive numbers.
    pub(crate) fn is_sound(&self) -> bool {
        let follows = |pair: &[Usercmd]| pair[0].seq.0.checked_add(1) == Some(pair[1].seq.0);
        self.commands.len() <= HEARD_COMMANDS_MAX && self.commands.windows(2).all(follows)
    }

    /// Returns the number of its newest usercmd; 0 without usercmds.
    pub(crate) fn newest(&self) -> CommandSeq {
        self.commands.last().map(|command| command.seq).unwrap_or_default()
    }
}

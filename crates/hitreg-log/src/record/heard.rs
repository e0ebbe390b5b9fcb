//! Packets as the server heard them. A server's log holds them, so that it can be replayed without any client's.

use std::collections::BTreeSet;

use super::stream::When;
use super::{PlayerRecords, Recorded};
use crate::units::{CommandSeq, Micros, SnapshotSeq};
use crate::usercmd::Usercmd;

/// A packet of more usercmds cannot be recorded as it was heard; the wire has room for half as many.
pub const HEARD_COMMANDS_MAX: usize = 32;

/// One packet from a client as it reached the server, whatever it says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeardRecord {
    /// Its number, as its [`ArrivalRecord`](super::ArrivalRecord) has it.
    pub number: u32,
    /// When it arrived.
    pub at: Micros,
    /// The newest snapshot that the client said it had.
    pub ack: SnapshotSeq,
    /// Which of the 32 before that it said it had, the lowest bit for the one just before.
    pub received_before: u32,
    /// Its usercmds, oldest first; their numbers are consecutive.
    pub commands: Vec<Usercmd>,
}

impl HeardRecord {
    /// Whether a log can hold it: few usercmds, each the next of the one before.
    pub(crate) fn is_sound(&self) -> bool {
        let follows = |pair: &[Usercmd]| pair[0].seq.0.checked_add(1) == Some(pair[1].seq.0);
        self.commands.len() <= HEARD_COMMANDS_MAX && self.commands.windows(2).all(follows)
    }

    /// The newest of its usercmds.
    pub(crate) fn newest(&self) -> CommandSeq {
        self.commands.last().map(|command| command.seq).unwrap_or_default()
    }
}

impl PlayerRecords {
    /// Its usercmds: those of its frames; of a player who was heard only, those that the server heard, each number once.
    pub fn usercmds(&self) -> impl Iterator<Item = Usercmd> + '_ {
        let heard = self.heard.iter().filter(|_| self.is_heard_only()).flat_map(|heard| &heard.commands);
        let mut known = BTreeSet::new();
        let first_heard = heard.filter(move |command| known.insert(command.seq)).copied();
        self.frames.iter().map(|frame| frame.command).chain(first_heard)
    }
}

impl Recorded for HeardRecord {
    fn when(&self) -> When {
        When::At(self.at)
    }

    fn move_by(&mut self, by: Micros) {
        self.at += by;
    }

    fn heap_bytes(&self) -> usize {
        size_of_val(&self.commands[..])
    }
}

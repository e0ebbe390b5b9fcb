//! Acked predictions: how well they agree with the server, and why they go wrong.

use crate::game::{Body, Effect, Scene, Touch};
use hitreg_log::units::{EntityId, named};
use hitreg_log::usercmd::Usercmd;

/// How well a prediction agrees with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// As exactly as the recorded state can tell.
    Exact,
    /// Within 0.2 units and 1.5 units/s.
    Near,
    /// Neither.
    Miss,
}

named!(Grade {
    Exact = "exact",
    Near = "near",
    Miss = "miss",
});

impl Grade {
    /// [`Grade::Exact`] for bodies that are in the same place at the same speed to the bit, else by distance.
    pub fn of_distance<B: Body>(predicted: &B, authoritative: &B) -> Grade {
        let origin = predicted.origin() - authoritative.origin();
        let velocity = predicted.velocity() - authoritative.velocity();
        if origin == glam::Vec3::ZERO && velocity == glam::Vec3::ZERO {
            Grade::Exact
        } else if origin.length() <= 0.2 && velocity.length() <= 1.5 {
            Grade::Near
        } else {
            Grade::Miss
        }
    }
}

/// What shows that a cause is the right one, as tables name it: `told` (the snapshot itself says so), `touched` (the body
/// met it while it was predicted), `reproduced` (running it so gives the server's state to the bit), `none`, or a game's own.
pub type Evidence = &'static str;

/// What a snapshot tells beside bodies.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotExtras<'a> {
    /// Sounds and sights since the last snapshot.
    pub effects: &'a [Effect],
    /// How many updates were held back before this one because the rate was used up.
    pub choked: u8,
    /// What else, in the game's own encoding.
    pub extra: &'a [u8],
}

/// How a server makes good what was lost of a player's input, by the settings `client.redundancy` and `server.on_lost_command`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostInput {
    /// How many usercmds before its newest a packet repeats; the server runs them if their own packets never came.
    pub backups: usize,
    /// Whether the last usercmd that came runs again for each one that no backup makes good.
    pub repeats: bool,
}

/// A prediction whose usercmds were acked, with the server's word and all that may show why the two differ.
#[derive(Debug)]
pub struct Acked<'a, B> {
    /// What the usercmds ran among, as the snapshot that brought the ack has it.
    pub scene: Scene<'a, B>,
    /// The bodies of the snapshot before, from whose ack the prediction starts; none for the first.
    pub before: &'a [(EntityId, B)],
    /// What the snapshot that brought the ack tells beside bodies.
    pub extras: SnapshotExtras<'a>,
    /// What the server does about usercmds that were lost.
    pub lost_input: LostInput,
    /// The body that the prediction starts from; none for the first state that a client has.
    pub from: Option<&'a B>,
    /// The last usercmd that had run by then.
    pub last_command: Option<Usercmd>,
    /// The usercmds that were acked since.
    pub commands: &'a [Usercmd],
    /// The body predicted for the last of them.
    pub predicted: &'a B,
    /// The server's.
    pub authoritative: &'a B,
    /// What the body met while it was predicted.
    pub touches: &'a [Touch],
}

impl<B: Clone> Acked<'_, B> {
    /// The bodies that the server ran the usercmds among: those of the snapshot that acks them, and where it does not show
    /// one, of the snapshot before.
    pub fn surroundings(&self) -> Vec<(EntityId, B)> {
        shown_by_either(self.before, self.scene.entities)
    }
}

/// The bodies of two snapshots, both in ascending order of id: those of the later, and those that only the earlier has.
pub fn shown_by_either<B: Clone>(earlier: &[(EntityId, B)], later: &[(EntityId, B)]) -> Vec<(EntityId, B)> {
    let mut gone = earlier.iter().peekable();
    let mut all = Vec::with_capacity(later.len());
    for body in later {
        while let Some(before) = gone.next_if(|before| before.0 <= body.0) {
            if before.0 != body.0 {
                all.push(before.clone());
            }
        }
        all.push(body.clone());
    }
    all.extend(gone.cloned());
    all
}

//! What happens in a session besides input and snapshots: who comes and goes, shots, damage, sounds and sights, and what the
//! recording itself lacks.

use glam::Vec3;

use super::Recorded;
use super::stream::When;
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Tick, named};

/// A player who joined the session or left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceRecord {
    /// The first tick with it, or the first without.
    pub tick: Tick,
    /// When.
    pub at: Micros,
    /// Which of both.
    pub change: Presence,
}

/// Whether a player came or went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// Came.
    #[default]
    Joined,
    /// Went.
    Left,
}

named!(Presence {
    Joined = "joined",
    Left = "left",
});

/// A shot, as its shooter's client predicted it or as the server judged it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShotRecord {
    /// The usercmd that fired it.
    pub command: CommandSeq,
    /// When: the client frame, or the server's tick.
    pub at: Micros,
    /// Which of the shots of that usercmd, from 0.
    pub index: u8,
    /// How it ended.
    pub reason: Reason,
    /// Who was hit, or most of all; `None` for a miss.
    pub target: Option<EntityId>,
    /// Where, in the game's numbering.
    pub hitgroup: u8,
    /// Health points that the hit is worth.
    pub damage: i32,
    /// How far back the targets stood that it was judged against; zero for a prediction.
    pub rewound: Micros,
}

/// Why a shot ended as it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It hit somebody.
    Hit,
    /// A part of the map was in the way of a target that the line would have met.
    HitWorld,
    /// The line meets nobody.
    #[default]
    Missed,
    /// It met somebody who is already dead at present: no damage.
    AlreadyDead,
    /// A projectile left the muzzle; its impact is a row of its own.
    Launched,
}

named!(Reason {
    Hit = "hit",
    HitWorld = "hit the world",
    Missed = "missed",
    AlreadyDead = "already dead",
    Launched = "launched",
});

impl Reason {
    /// The name that traces and reports use.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Somebody lost health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageRecord {
    /// The tick.
    pub tick: Tick,
    /// Its time.
    pub at: Micros,
    /// Who.
    pub victim: EntityId,
    /// Whose doing it was; `None` for nobody's, such as a fall.
    pub attacker: Option<PlayerId>,
    /// Health points that were lost.
    pub amount: i32,
}

/// A span of which records are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapRecord {
    /// The last record before it.
    pub from: Micros,
    /// The first record after it.
    pub to: Micros,
    /// Whose records are missing; `None` where anybody's may be.
    pub player: Option<PlayerId>,
    /// Why.
    pub why: GapCause,
}

/// Why records are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapCause {
    /// A part of the file was damaged.
    #[default]
    Damaged,
    /// The recorder could not keep up.
    Overrun,
    /// Nothing was recorded for a while, by intent.
    Paused,
    /// The recorder had no connection.
    Disconnected,
}

named!(GapCause {
    Damaged = "damaged",
    Overrun = "overrun",
    Paused = "paused",
    Disconnected = "disconnected",
});

/// A sound or sight that is heard or seen once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Which one; the game's own numbering, named by `Simulate::effect_name`.
    pub kind: u8,
    /// The entity that it comes from. A client that predicts its own effects is not sent those of its own entity
    /// which [`Effect::predictable`] marks.
    pub entity: EntityId,
    /// Where, in units.
    pub at: Vec3,
    /// Whether shared code causes it, so that its player's client plays it without being told.
    pub predictable: bool,
}

impl Recorded for PresenceRecord {
    fn when(&self) -> When {
        When::At(self.at)
    }

    fn move_by(&mut self, by: Micros) {
        self.at += by;
    }
}

impl Recorded for ShotRecord {
    fn when(&self) -> When {
        When::At(self.at)
    }

    fn move_by(&mut self, by: Micros) {
        self.at += by;
    }
}

impl Recorded for DamageRecord {
    fn when(&self) -> When {
        When::At(self.at)
    }

    fn move_by(&mut self, by: Micros) {
        self.at += by;
    }
}

impl Recorded for GapRecord {
    fn when(&self) -> When {
        When::At(self.to)
    }

    fn move_by(&mut self, by: Micros) {
        self.from += by;
        self.to += by;
    }
}

//! Events of a session besides input and snapshots: players who join and leave, shots, damage, effects, and gaps in the
//! recording.

use glam::Vec3;

use super::stream::EventTime;
use super::{RecordType, TextCode};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Tick, named};

/// A player joined or left the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceRecord {
    /// The first tick with the player, or the first without.
    pub tick: Tick,
    /// Time of the change.
    pub at: Micros,
    /// Whether the player joined or left.
    pub change: Presence,
}

named! {
    /// Whether a player joined or left.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Presence {
        /// The player joined.
        #[default]
        Joined = "joined",
        /// The player left.
        Left = "left",
    }
}

/// A shot, as the shooter's client predicted it or as the server judged it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShotRecord {
    /// The usercmd that fired it.
    pub command: CommandSeq,
    /// Time of the client frame, or of the server's tick.
    pub at: Micros,
    /// Index among the shots of that usercmd, from 0; impacts have indices of their own. Shots of one usercmd with one
    /// index get the next free ones in tables.
    pub index: u8,
    /// The result.
    pub reason: Reason,
    /// The entity that was hit, or that took the most damage; `None` for a miss.
    pub target: Option<EntityId>,
    /// The part of the body that was hit, in the game's numbering.
    pub hitgroup: u8,
    /// Damage of the hit, in health points.
    pub damage: i32,
    /// How far the server rewound the targets for this shot; zero for a prediction.
    pub rewound: Micros,
    /// The name of the weapon, from [`Stream::text`](crate::recorder::Stream::text); the empty text if unknown.
    pub weapon: TextCode,
    /// Whether this is the impact of a projectile, which a shot of the same usercmd launched.
    pub impact: bool,
    /// Number of pellets that hit, in one record for all pellets of a shot; `None` if the game does not count them.
    pub pellets: Option<u8>,
}

named! {
    /// The result of a shot.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Reason {
        /// It hit a target.
        Hit = "hit",
        /// The map blocked a shot that would have hit a target.
        HitWorld = "hit the world",
        /// Its line meets no target.
        #[default]
        Missed = "missed",
        /// It hit a target that is already dead at present; no damage.
        AlreadyDead = "already dead",
        /// It launched a projectile; the impact has its own record.
        Launched = "launched",
    }
}

/// An entity lost health.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DamageRecord {
    /// The tick of the damage.
    pub tick: Tick,
    /// Time of that tick.
    pub at: Micros,
    /// The entity that lost health.
    pub victim: EntityId,
    /// The player who caused it; `None` for other causes, such as a fall.
    pub attacker: Option<PlayerId>,
    /// Lost health points.
    pub amount: i32,
    /// The name of the weapon, from [`Stream::text`](crate::recorder::Stream::text); the empty text if unknown.
    pub weapon: TextCode,
    /// Armour points lost besides the health; `None` if the game has no armour.
    pub armour: Option<u16>,
    /// The push of the damage, as the change of the victim's velocity in units/s; `None` if unknown.
    pub force: Option<Vec3>,
}

/// A span with missing records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapRecord {
    /// Time of the last record before the gap.
    pub from: Micros,
    /// Time of the first record after the gap.
    pub to: Micros,
    /// The player whose records are missing; `None` when any player's may be.
    pub player: Option<PlayerId>,
    /// The cause of the gap.
    pub why: GapCause,
}

impl GapRecord {
    /// Returns whether records of this player may be missing.
    pub fn concerns(&self, player: PlayerId) -> bool {
        self.player.is_none_or(|of| of == player)
    }

    /// Returns the first gap that ends after the first tick. A replay is unreliable from there on. Gaps before the first
    /// tick are outside the session.
    pub fn first_after(gaps: &[GapRecord], first_tick: Option<Micros>) -> Option<&GapRecord> {
        let first = first_tick.unwrap_or(Micros(i64::MIN));
        gaps.iter().filter(|gap| gap.to > first).min_by_key(|gap| gap.from)
    }
}

named! {
    /// The cause of missing records.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum GapCause {
        /// Part of the file was damaged.
        #[default]
        Damaged = "damaged",
        /// The recorder was too slow.
        Overrun = "overrun",
        /// Recording was paused on purpose.
        Paused = "paused",
        /// The recorder was disconnected.
        Disconnected = "disconnected",
    }
}

/// A one-shot sound or visual effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Number of the effect in the game's numbering; `Simulate::effect_name`
    /// names it.
    pub kind: u8,
    /// The entity that causes it. The server does not send a client that predicts effects the
    /// [predictable](Effect::predictable) ones of its own entity.
    pub entity: EntityId,
    /// Position, in units.
    pub at: Vec3,
    /// Whether shared code causes the effect, so that its player's client can predict it.
    pub predictable: bool,
}

impl RecordType for GapRecord {
    fn when(&self) -> EventTime {
        EventTime::At(self.to)
    }

    fn move_by(&mut self, by: Micros) {
        self.from += by;
        self.to += by;
    }
}

//! How a game judges shots, and what they do to the world.

use glam::Vec3;

use super::{BadCells, Reason, ShotVerdict, Simulate, WorldSink};
use hitreg_log::record::Session;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg_log::usercmd::Usercmd;

/// Judges shots and applies their effects. A game without shots uses the defaults.
pub trait Judge: Simulate {
    /// Judges a shot against `targets`: the other entities as the shooter saw them, or at their present places.
    fn judge(_rules: &Self::Rules, _fire: &Self::Fire, _targets: &[(EntityId, Self::Body)]) -> ShotVerdict {
        ShotVerdict::miss(Reason::Missed)
    }

    /// Whether any part of a body is visible from a place; the walls of the map may hide it. `None` if the game does
    /// not implement it.
    fn sees(_rules: &Self::Rules, _from: Vec3, _body: &Self::Body) -> Option<bool> {
        None
    }

    /// The line along which a shot is aimed: its start, and its direction as a unit vector.
    fn aim(_fire: &Self::Fire) -> (Vec3, Vec3) {
        (Vec3::ZERO, Vec3::X)
    }

    /// Whether the shot is a projectile that flies through the present world (Bernier's footnote 9). A projectile is
    /// launched, never judged against a past.
    fn is_projectile(_fire: &Self::Fire) -> bool {
        false
    }

    /// Applies a judged shot to the present world: damage, knockback, or the launch of a projectile.
    fn apply(
        _rules: &Self::Rules,
        _world: &mut Self::World,
        _shooter: PlayerId,
        _command: &Usercmd<Self::Input>,
        _fire: &Self::Fire,
        _verdict: &ShotVerdict,
        _out: &mut impl WorldSink,
    ) {
    }

    /// Judges the shots of a recording again; `None` if the game does not implement it.
    const REJUDGE: Option<Rejudge<Self>> = None;

    /// The name of a [`DamageShare::hitgroup`](super::DamageShare::hitgroup).
    fn hitgroup_name(_hitgroup: u8) -> &'static str {
        "body"
    }

    /// The name of the weapon that a shot came from.
    fn weapon_name(_fire: &Self::Fire) -> &'static str {
        "weapon"
    }
}

/// Judges the shots of a recording again, by the rules of the server that made the recording. The last argument limits
/// the rewind; `None` means no rewind. The result includes recorded hits for which no shot is known. It is an error if a
/// recorded state is not valid in the game.
pub type Rejudge<G> = fn(&<G as Simulate>::Rules, &Session, Option<Micros>) -> Result<Vec<RecordedShot>, BadCells>;

/// A shot of another server's recording, judged again.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedShot {
    /// The player who shot.
    pub shooter: PlayerId,
    /// The usercmd that fired. For a hit without a known shot: the newest usercmd that fired at all.
    pub command: CommandSeq,
    /// The shot's index within that usercmd.
    pub index: u8,
    /// Whether this is the impact of a projectile.
    pub is_impact: bool,
    /// When the shooter received the result.
    pub at: Micros,
    /// The tick of the shot.
    pub tick: Tick,
    /// The name of the weapon.
    pub weapon: &'static str,
    /// The result: from judging it here, or, if no shot is known, as the server reported it.
    pub verdict: ShotVerdict,
    /// The hit that the server reported.
    pub given: Option<RecordedHit>,
    /// How the shot was judged here; `None` if no shot is known.
    pub judged: Option<RejudgedVerdict>,
}

/// A hit as the server reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedHit {
    /// The target, if it was recorded.
    pub target: Option<EntityId>,
    /// Damage to the target's health in points, if it was recorded.
    pub damage: i32,
}

/// How a shot was judged here, compared with the places of the other entities.
#[derive(Clone, Debug, PartialEq)]
pub struct RejudgedVerdict {
    /// Start and direction of the shot.
    pub aim: (Vec3, Vec3),
    /// How far the other entities were rewound.
    pub rewind: Micros,
    /// Whether the settings allow lag compensation.
    pub is_compensated: bool,
    /// Whether the rewind was cut at its limit.
    pub is_cut: bool,
    /// The rewound place of each target, ascending by entity.
    pub targets: Vec<(EntityId, Vec3)>,
    /// The entity that the shot would have hit without a rewind.
    pub at_present: Option<EntityId>,
    /// How far the shot passes beside the server's target, in units; 0 if it hits. The first number is for the shot's
    /// nearest line, the second for the outermost line that the weapon's spread allows. `None` if the server reported
    /// no hit or the target's place is unknown.
    pub off_units: Option<(f32, f32)>,
}

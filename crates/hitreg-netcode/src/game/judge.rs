//! How a game judges shots, and what they do to the world, in its own sessions and in recordings of other servers.

use glam::Vec3;

use super::{BadCells, Body as _, HitResult, Simulate, SnapshotExtras, WorldSink};
use hitreg_log::record::Session;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg_log::usercmd::Usercmd;

/// Judges shots and applies their effects. A game without shots uses the defaults.
pub trait Judge: Simulate {
    /// Judges a shot against `targets`: the other entities as the shooter saw them, or at their present places. It is
    /// not called for projectiles.
    fn judge(_rules: &Self::Rules, _fire: &Self::Fire, _targets: &[(EntityId, Self::Body)]) -> ShotVerdict {
        ShotVerdict::miss(HitResult::Missed)
    }

    /// Whether a shot can hit a body.
    fn is_target(body: &Self::Body) -> bool {
        body.is_alive()
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

    /// Whether the shot is a projectile that flies through the present world (Bernier's footnote 9). Its verdict is
    /// always [`HitResult::Launched`]. [`WorldSink::impact`] reports what it hits later.
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

    /// The name of a [`DamageShare::hitgroup`].
    fn hitgroup_name(_hitgroup: u8) -> &'static str {
        "body"
    }

    /// The name of the weapon that a shot came from.
    fn weapon_name(_fire: &Self::Fire) -> &'static str {
        "weapon"
    }
}

/// The result of one shot.
#[derive(Clone, Debug, PartialEq)]
pub struct ShotVerdict {
    /// Why the shot did or did not hurt any target.
    pub reason: HitResult,
    /// The wounds in ascending order of target; empty for a miss.
    pub wounds: Vec<DamageShare>,
}

/// The part of a shot's damage that one target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamageShare {
    /// The entity that was hit.
    pub target: EntityId,
    /// The body part, in the game's numbering; [`Judge::hitgroup_name`] names it.
    pub hitgroup: u8,
    /// Damage of the hit in health points, before armour and before the target's remaining health limits it.
    pub damage: i32,
    /// How many of the shot's pellets hit; 1 for a single bullet.
    pub pellets: u8,
}

impl ShotVerdict {
    /// The verdict on a shot: a projectile is launched, and [`Judge::judge`] judges every other shot.
    pub fn of<G: Judge>(rules: &G::Rules, fire: &G::Fire, targets: &[(EntityId, G::Body)]) -> ShotVerdict {
        if G::is_projectile(fire) { ShotVerdict::miss(HitResult::Launched) } else { G::judge(rules, fire, targets) }
    }

    /// The verdict for a shot without wounds.
    pub fn miss(reason: HitResult) -> ShotVerdict {
        ShotVerdict { reason, wounds: Vec::new() }
    }

    /// The wound that counts as the shot's result: the one with the most damage. Among equals, the lowest target wins.
    pub fn main_wound(&self) -> Option<&DamageShare> {
        self.wounds.iter().max_by(|a, b| a.damage.cmp(&b.damage).then(b.target.cmp(&a.target)))
    }
}

/// How an importer's game replays sessions that another server recorded: [`Simulate::IMPORTED`].
#[derive(Debug)]
pub struct ImportedSessions<G: Simulate> {
    /// Judges the recorded shots again; `None` if recordings do not have them.
    pub rejudge: Option<Rejudge<G>>,
    /// Checks recorded snapshots.
    pub check_snapshot: SnapshotCheck<G>,
    /// Whether recorded states are rounded. If so, only a [`PredictionGrade::Miss`](super::PredictionGrade::Miss) is
    /// wrong. If not, any difference in a predicted cell is wrong.
    pub is_rounded: bool,
    /// Whether a recorded usercmd's server time is the time at which its player's client drew the other entities. If
    /// so, a replay's client draws at that time and needs no clock of its own.
    pub draws_at_command_time: bool,
    /// The weapons without a line of fire, by their names in the table `shots`. Their hits are not judged again.
    pub melee: &'static [&'static str],
}

/// Checks a recorded snapshot beyond the checks of [`Body::read`](super::Body::read). The error says why the snapshot is
/// not valid in the game.
pub type SnapshotCheck<G> = fn(&[(EntityId, <G as Simulate>::Body)], &SnapshotExtras<'_>) -> Result<(), BadCells>;

/// Judges the shots of a recording again, by the rules of the server that made the recording. The result includes recorded hits for which no shot is known. It is an error if a
/// recorded state is not valid in the game.
pub type Rejudge<G> = fn(&<G as Simulate>::Rules, &Session, &RejudgeRules) -> Result<Vec<RecordedShot>, BadCells>;

/// The settings under which the shots of a recording are judged again.
#[derive(Clone, Debug)]
pub struct RejudgeRules {
    /// The largest rewind; `None` without lag compensation.
    pub furthest: Option<Micros>,
    /// How much further in the past than recorded each player draws the others, by player. Their usercmds then carry a
    /// time that is earlier by as much.
    pub drawn_later: Vec<Micros>,
}

/// A shot of another server's recording, judged again.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedShot {
    /// The player who shot.
    pub shooter: PlayerId,
    /// The usercmd that fired. For a hit without a known shot: the newest usercmd that held the attack button.
    pub command: CommandSeq,
    /// The shot's index within that usercmd.
    pub index: u8,
    /// Whether this is the impact of a projectile.
    pub is_impact: bool,
    /// The server's time when it judged the shot. For a projectile's impact, the time of the snapshot with the result.
    pub at: Micros,
    /// The tick of the shot.
    pub tick: Tick,
    /// The name of the weapon.
    pub weapon: &'static str,
    /// The result: from judging it here, or, if no line of fire is known, as the server reported it.
    pub verdict: ShotVerdict,
    /// The hit that the server reported.
    pub reported: Option<RecordedHit>,
    /// How the shot was judged here; `None` if no line of fire is known.
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

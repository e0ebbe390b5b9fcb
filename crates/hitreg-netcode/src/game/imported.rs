//! What a game adds to replay sessions that another server recorded, and the shots of such sessions.

use glam::Vec3;

use super::{BadCells, ShotVerdict, Simulate, SnapshotExtras};
use hitreg_log::record::Session;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

/// How an importer's game replays sessions that another server recorded: [`Simulate::IMPORTED`].
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
    pub reported: Option<RecordedHit>,
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

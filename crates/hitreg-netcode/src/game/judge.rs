//! What a game says about shots: where they go, and what they do.

use glam::Vec3;

use super::{BadCells, Reason, Simulate, Verdict, WorldSink};
use hitreg_log::record::Session;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg_log::usercmd::Usercmd;

/// Judging shots, and letting them act. A game without shots leaves all of it out.
pub trait Judge: Simulate {
    /// Where a shot goes among `targets`, which are the others as the shooter saw them, or as they are now.
    fn judge(_rules: &Self::Rules, _fire: &Self::Fire, _targets: &[(EntityId, Self::Body)]) -> Verdict {
        Verdict::miss(Reason::Missed)
    }

    /// Whether any part of a body can be seen from a place, with the map in the way. `None` where the game does not say.
    fn sees(_rules: &Self::Rules, _from: Vec3, _body: &Self::Body) -> Option<bool> {
        None
    }

    /// The line along which a shot is aimed: from where, in which direction (a unit vector).
    fn aim(_fire: &Self::Fire) -> (Vec3, Vec3) {
        (Vec3::ZERO, Vec3::X)
    }

    /// True for what flies on its own through the present (Bernier's footnote 9): such a shot is launched, never judged
    /// against a past.
    fn is_projectile(_fire: &Self::Fire) -> bool {
        false
    }

    /// Lets a judged shot act on the present world: damage, knockback, or a projectile leaving its muzzle.
    fn apply(
        _rules: &Self::Rules,
        _world: &mut Self::World,
        _shooter: PlayerId,
        _command: &Usercmd,
        _fire: &Self::Fire,
        _verdict: &Verdict,
        _out: &mut impl WorldSink,
    ) {
    }

    /// Whether it knows how the server of its recordings judges.
    const JUDGES_AGAIN: bool = false;

    /// The shots of a recording of another server, judged again as that server judges, the others taken back by so much at
    /// most, or not at all; and the hits that it gave besides. None where the game does not know how.
    ///
    /// # Errors
    /// When a recorded state is none of this game's.
    fn shots_again(
        _rules: &Self::Rules,
        _session: &Session,
        _furthest: Option<Micros>,
    ) -> Result<Vec<ShotAgain>, BadCells> {
        Ok(Vec::new())
    }

    /// The name of a [`Wound::hitgroup`](super::Wound::hitgroup).
    fn hitgroup_name(_hitgroup: u8) -> &'static str {
        "body"
    }

    /// The name of the weapon that a shot came from.
    fn weapon_name(_fire: &Self::Fire) -> &'static str {
        "weapon"
    }
}

/// A shot that another server judged, judged again.
#[derive(Clone, Debug, PartialEq)]
pub struct ShotAgain {
    /// Who shot.
    pub shooter: PlayerId,
    /// The usercmd that fired. Of a hit of which no shot is known, the newest that fired at all.
    pub command: CommandSeq,
    /// Which shot of that usercmd.
    pub index: u8,
    /// Whether something flew, and this is where it came down.
    pub is_impact: bool,
    /// When the shooter was told what came of it.
    pub at: Micros,
    /// In which tick.
    pub tick: Tick,
    /// With what.
    pub weapon: &'static str,
    /// What became of it: by this judging, or, where no shot is known, by the word of the server.
    pub verdict: Verdict,
    /// What the server said that it hit.
    pub given: Option<Given>,
    /// How it was judged here; `None` where no shot is known.
    pub judged: Option<JudgedAgain>,
}

/// A hit by the word of the server that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Whom, where that was recorded.
    pub target: Option<EntityId>,
    /// What it took of the target's health, where that was recorded.
    pub damage: i32,
}

/// A shot, held against where the others were.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedAgain {
    /// From where, and in which direction.
    pub aim: (Vec3, Vec3),
    /// How far the others went back.
    pub rewind: Micros,
    /// Whether the others go back at all, by the settings.
    pub is_compensated: bool,
    /// They would have had to go back further than they may.
    pub is_cut: bool,
    /// Where each was there, ascending by entity.
    pub targets: Vec<(EntityId, Vec3)>,
    /// Whom it would have hit without going back.
    pub at_present: Option<EntityId>,
    /// How far beside the server's target its nearest line passes, and how far beside it the outermost that the weapon's spread
    /// allows: nothing where they go through it. `None` where the server gave no hit, or nobody knows where that one was.
    pub off_units: Option<(f32, f32)>,
}

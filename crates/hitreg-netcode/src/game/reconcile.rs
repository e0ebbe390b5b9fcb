//! What a game adds to prediction beyond running usercmds: how to compare, what to keep, and why a prediction was
//! wrong.

use super::{Body, Cause, Effect, Scene, Simulate, Touch};
use crate::history::body_of;
use hitreg_log::units::{EntityId, named};
use hitreg_log::usercmd::Usercmd;

/// How a client reconciles the prediction of its own body. Every item has a default. By default, prediction resumes
/// from the server's body, and every cell that differs counts as an error.
pub trait Reconcile: Simulate {
    /// Whether the body is on the ground. Predictions are counted separately for ground and air.
    fn on_ground(_body: &Self::Body) -> bool {
        true
    }

    /// How well a prediction agrees with the server's result of the same usercmds. `None` if the two cannot be
    /// compared, for example if one of them is on a level that the rules do not hold. An exact prediction with a
    /// corrected field counts as near.
    fn grade(predicted: &Self::Body, authoritative: &Self::Body) -> Option<PredictionGrade> {
        Some(PredictionGrade::of_distance(predicted, authoritative))
    }

    /// What [`Reconcile::grade`] calls exact and near, as text for people. A game with its own measure describes it
    /// here.
    const GRADES: &str = "exact: to the bit; near: within 0.2 units and 1.5 units/s";

    /// Returns the body to predict from after an ack: the server's body with the fields that only the client knows. A
    /// game whose recorded states are rounded keeps the predicted values that the rounding hides. For the first state
    /// that a client has, `predicted` is that state.
    fn resume(_rules: &Self::Rules, acked: &AckedPrediction<'_, Self::Body>) -> Self::Body {
        let mut body = acked.authoritative.clone();
        body.adopt_client_only(acked.predicted);
        body
    }

    /// Applies the movement of carrying entities since `before` to a player's body, before its next usercmd runs. `scene`
    /// has the entities at their present places. Called only under `prediction.among=acking-packet`, for usercmds that run
    /// again as a server ran them. The default moves the body with its [`Simulate::carrier`].
    fn carry(
        _rules: &Self::Rules,
        scene: &Scene<'_, Self::Body>,
        before: &[(EntityId, Self::Body)],
        body: &Self::Body,
    ) -> Self::Body {
        moved_by_carrier::<Self>(before, scene.entities, body)
    }

    /// Whether a shot hurt the body between two of its states. This is evidence that a push came from a shot.
    fn was_hurt(_before: &Self::Body, _after: &Self::Body) -> bool {
        false
    }

    /// Explains a wrong prediction, if the game knows more than the pipeline can find out.
    fn explain(_rules: &Self::Rules, _miss: &AckedPrediction<'_, Self::Body>) -> Option<Explanation> {
        None
    }
}

/// Returns a body moved as far as its [`Simulate::carrier`] moved between two snapshots.
pub(crate) fn moved_by_carrier<G: Simulate>(
    before: &[(EntityId, G::Body)],
    now: &[(EntityId, G::Body)],
    body: &G::Body,
) -> G::Body {
    let places =
        G::carrier(body, now).and_then(|on| Some((body_of(before, on)?.position(), body_of(now, on)?.position())));
    places.map_or(body.clone(), |(from, to)| body.moved_to(body.position() + (to - from)))
}

named! {
    /// How well a prediction agrees with the server.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum PredictionGrade {
        /// Every predicted field is equal to the bit, or as close as the recorded state can show.
        Exact = "exact",
        /// Within 0.2 units and 1.5 units/s, or with the same place and speed and another wrong field.
        Near = "near",
        /// Further apart than [`PredictionGrade::Near`] allows.
        Miss = "miss",
    }
}

impl PredictionGrade {
    /// Grades two bodies by place and speed. A client takes [`PredictionGrade::Near`] for
    /// [`PredictionGrade::Exact`] if a predicted field differs in any bit.
    pub fn of_distance<B: Body>(predicted: &B, authoritative: &B) -> PredictionGrade {
        let origin = predicted.offset_from(authoritative);
        let velocity = predicted.velocity() - authoritative.velocity();
        if origin == glam::Vec3::ZERO && velocity == glam::Vec3::ZERO {
            PredictionGrade::Exact
        } else if origin.length() <= 0.2 && velocity.length() <= 1.5 {
            PredictionGrade::Near
        } else {
            PredictionGrade::Miss
        }
    }
}

/// The cause of a wrong prediction, with the evidence for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The cause.
    pub cause: Cause,
    /// The evidence for it.
    pub evidence: Evidence,
}

impl Explanation {
    /// No cause was found.
    pub const UNKNOWN: Explanation = Explanation::new(Cause::Unknown, evidence::NONE);

    /// Joins a cause and the evidence for it.
    pub const fn new(cause: Cause, evidence: Evidence) -> Explanation {
        Explanation { cause, evidence }
    }
}

/// The evidence for a [`Cause`], as tables name it: a constant of [`evidence`], or a text of the game's own.
pub type Evidence = &'static str;

/// The evidence that hitreg itself gives.
pub mod evidence {
    use super::Evidence;

    /// The snapshot says so.
    pub const SNAPSHOT: Evidence = "snapshot";
    /// The body met it during the prediction, or met another player among the places that the two snapshots give, at
    /// either end or in between.
    pub const TOUCHED: Evidence = "touched";
    /// Running the usercmds under this cause gives the server's state to the bit.
    pub const REPRODUCED: Evidence = "reproduced";
    /// The server did not run a usercmd as it was made, and no other cause gives the server's state.
    pub const EXECUTED: Evidence = "executed";
    /// There is no evidence.
    pub const NONE: Evidence = "none";
    /// The client does not look for causes: nobody uses them, or most of its searches found none.
    pub const NOT_EXAMINED: Evidence = "not looked into";
}

/// What a snapshot carries beside bodies.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotExtras<'a> {
    /// Sounds and visual effects since the last snapshot.
    pub effects: &'a [Effect],
    /// How many updates the server held back before this one because the connection's rate was used up.
    pub choked: u8,
    /// Further data in the game's own encoding.
    pub extra: &'a [u8],
}

/// How a server replaces lost usercmds; from the settings `client.redundancy` and `server.on_lost_command`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostInput {
    /// How many older usercmds a packet repeats. The server runs them if their own packets never arrived.
    pub backups: usize,
    /// Whether the server runs the last received usercmd again for each lost usercmd that no backup replaces.
    pub repeats: bool,
}

/// A prediction whose usercmds were acked, with the server's result and everything that may explain the difference.
#[derive(Debug)]
pub struct AckedPrediction<'a, B> {
    /// The scene in which the usercmds ran, from the snapshot that brought the ack.
    pub scene: Scene<'a, B>,
    /// The bodies of the snapshot before; the prediction starts from its ack. Empty for the first snapshot.
    pub before: &'a [(EntityId, B)],
    /// What the snapshot that brought the ack carries beside bodies.
    pub extras: SnapshotExtras<'a>,
    /// How the server replaces lost usercmds.
    pub lost_input: LostInput,
    /// The body that the prediction starts from; `None` for the first state that a client has.
    pub from: Option<&'a B>,
    /// The last usercmd that had run at the start of the prediction. Usercmds are as packets hold them;
    /// [`GameInput::read`](super::GameInput::read) gives the game's own input.
    pub last_command: Option<Usercmd>,
    /// The usercmds acked since `last_command`.
    pub commands: &'a [Usercmd],
    /// The body predicted after the last of `commands`.
    pub predicted: &'a B,
    /// The server's body after the same usercmds.
    pub authoritative: &'a B,
    /// What the body met during the prediction.
    pub touches: &'a [Touch],
}

impl<B: Clone> AckedPrediction<'_, B> {
    /// The bodies that were around when the server ran the usercmds. They come from the snapshot that acks the
    /// usercmds; a body missing there comes from the snapshot before.
    pub fn surroundings(&self) -> Vec<(EntityId, B)> {
        shown_by_either(self.before, self.scene.entities)
    }
}

/// Merges the bodies of two snapshots, both in ascending order of id. A body in both is taken from the later one.
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

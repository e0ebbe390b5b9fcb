//! The output of a client.

use glam::Vec3;

use crate::game::{Cause, Effect, Evidence, Game, PlacedBody, PredictionGrade, ShotVerdict};
use crate::packet::ClientPacket;
use hitreg_log::units::{CommandSeq, Micros};
use hitreg_log::usercmd::Usercmd;

/// The output of one client frame.
#[derive(Debug)]
pub struct ClientFrameOutput<G: Game> {
    /// The usercmd that was made.
    pub command: Usercmd,
    /// The packet with this usercmd and repeats of earlier ones.
    pub packet: ClientPacket,
    /// The player's predicted own body; `None` before the first snapshot.
    pub predicted: Option<G::Body>,
    /// The own body as drawn, when drawing by category.
    pub own: Option<PlacedBody<G::Body>>,
    /// The origin at which the own body is drawn, in units: the predicted origin, or on the way to it after a
    /// correction.
    pub drawn_origin: Option<Vec3>,
    /// The number of usercmds run in this frame: one, unless some had to wait or run again.
    pub ran: u32,
    /// Effects of usercmds that ran for the first time.
    pub effects: Vec<Effect>,
    /// Shots of usercmds that ran for the first time, with the client's verdicts.
    pub shots: Vec<(CommandSeq, u8, G::Fire, ShotVerdict)>,
}

/// The result of one snapshot.
#[derive(Debug)]
pub struct ReconcileOutcome {
    /// The comparison of the prediction for the acked usercmd with the server's state. `None` when nothing was
    /// predicted or nothing new was acked.
    pub comparison: Option<Comparison>,
    /// Set when the snapshot corrected a predicted field.
    pub correction: Option<Correction>,
    /// The time from making the acked usercmd to its ack.
    pub round_trip: Option<Micros>,
}

/// One correction of the predicted state.
#[derive(Clone, Debug)]
pub struct Correction {
    /// The acked usercmd.
    pub command: CommandSeq,
    /// All predicted fields that differ.
    pub errors: Vec<FieldMisprediction>,
    /// The number of usercmds that run again because of it.
    pub reran: u32,
    /// The cause.
    pub cause: Cause,
    /// The evidence for the cause.
    pub evidence: Evidence,
    /// Effects that the client played but that did not happen on the server. The driver should stop them.
    pub cut: Vec<(CommandSeq, Effect)>,
}

/// One field that was predicted wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldMisprediction {
    /// The field's index in [`Body::fields`](crate::game::Body::fields); `None` if one of the bodies is
    /// [absent](crate::game::Body::is_absent), with 1 as the value of the absent body.
    pub field: Option<usize>,
    /// The predicted value, as a [number](crate::game::CellKind::number).
    pub predicted: i64,
    /// The server's value, as a number.
    pub authoritative: i64,
}

/// The comparison of the prediction for an acked usercmd with the server's result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The acked usercmd.
    pub command: CommandSeq,
    /// The number of usercmds acked at once.
    pub commands: u32,
    /// The quality of the prediction.
    pub grade: PredictionGrade,
    /// Set when `grade` is that of running the usercmds again as the server ran them. It is then the grade of the
    /// prediction in play, among the bodies that the client knew at that time.
    pub as_played: Option<PredictionGrade>,
    /// The distance between the predicted and the authoritative origin, in units, including a recording's rounding.
    pub error_units: f32,
    /// The length of the velocity difference, in units/s, including a recording's rounding.
    pub velocity_error: f32,
    /// Whether the player stood on ground or on an object before.
    pub on_ground: bool,
}

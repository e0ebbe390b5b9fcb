//! What a client puts out.

use glam::Vec3;

use crate::game::{Cause, Effect, Evidence, Game, Grade, Placed, Verdict};
use crate::packet::ClientPacket;
use hitreg_log::units::{CommandSeq, Micros};
use hitreg_log::usercmd::Usercmd;

/// What one client frame put out.
#[derive(Debug)]
pub struct Commanded<G: Game> {
    /// The usercmd that was made.
    pub command: Usercmd,
    /// The packet that carries it, with repeats of those before.
    pub packet: ClientPacket,
    /// The player's own body as far as it is predicted; `None` before the first snapshot.
    pub predicted: Option<G::Body>,
    /// The own body as it is drawn, where drawing goes by category.
    pub own: Option<Placed<G::Body>>,
    /// Where the own body is drawn: the predicted origin, or on the way to it after a correction. In units.
    pub drawn_origin: Option<Vec3>,
    /// How many usercmds were run for this frame: one, unless some had to wait or run again.
    pub ran: u32,
    /// Sounds and sights of commands that ran for the first time.
    pub effects: Vec<Effect>,
    /// Shots of commands that ran for the first time, and what they seem to hit.
    pub shots: Vec<(CommandSeq, u8, G::Fire, Verdict)>,
}

/// What one snapshot led to.
#[derive(Debug)]
pub struct Reconciled {
    /// What was predicted for the acked usercmd, held against the server's word. `None` when nothing was predicted or
    /// nothing new was acked.
    pub comparison: Option<Comparison>,
    /// Set when a predicted field had to be corrected.
    pub correction: Option<Correction>,
    /// How long the acked usercmd took to be acked.
    pub round_trip: Option<Micros>,
}

/// A prediction that turned out wrong.
#[derive(Clone, Debug)]
pub struct Correction {
    /// The acked usercmd.
    pub command: CommandSeq,
    /// Every predicted field that differs.
    pub errors: Vec<FieldError>,
    /// How many usercmds are run again because of it.
    pub reran: u32,
    /// Why.
    pub cause: Cause,
    /// What shows that it is so.
    pub evidence: Evidence,
    /// What was heard and seen of usercmds and, as the server has it, never happened: whoever plays it cuts it.
    pub cut: Vec<(CommandSeq, Effect)>,
}

/// One cell that was predicted wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The cell's place in [`Body::fields`](crate::game::Body::fields).
    pub field: usize,
    /// The predicted cell.
    pub predicted: u32,
    /// The server's.
    pub authoritative: u32,
}

/// What was predicted for an acked usercmd, held against what the server made of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The acked usercmd.
    pub command: CommandSeq,
    /// How many usercmds were acked at once.
    pub commands: u32,
    /// How well it agrees.
    pub grade: Grade,
    /// Where `grade` is of running the usercmds again as the server ran them: how well what was predicted in play agrees,
    /// among the bodies that the client knew then.
    pub as_played: Option<Grade>,
    /// Distance between the origins, in units.
    pub error_units: f32,
    /// Length of the difference of the velocities, in units/s; nothing for what a record's rounding explains.
    pub velocity_error: f32,
    /// Whether the player stood on something before.
    pub on_ground: bool,
}

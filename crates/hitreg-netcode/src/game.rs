//! What a game implements to be recorded and replayed: a handful of pure functions, after id's `pmove`.
//!
//! The pipelines never look inside a world. They run commands through it, ask for its entities, and judge shots
//! against pasts that they hand in; all of it from arguments alone, so that the same arguments give the same result
//! on the server, in a client's prediction, and in a replay years later.

mod acked;
mod body;
mod bots;
mod category;
mod cells;
mod judge;
mod moment;
mod placed;
mod reconcile;
mod role;
mod roster;
mod shot;
mod simulate;
mod states;

pub use acked::shown_by_either;
pub use acked::{Acked, Evidence, Grade, LostInput, SnapshotExtras};
pub use body::{BadCells, Body, body};
pub use bots::Bots;
pub use category::{Categorize, Category, FIRST_LOCAL_ENTITY, Rendering};
pub use cells::{Cells, Said, Spatial, cell, cells};
pub use judge::{Given, Judge, JudgedAgain, ShotAgain};
pub use moment::Moment;
pub use placed::{How, Placed};
pub use reconcile::Reconcile;
pub use role::Role;
pub use roster::{EntityWorld, Names, Roster};
pub use shot::{Verdict, Wound};
pub use simulate::{Scene, Simulate, Sink, Touch, WorldSink};
pub use states::unknown_states;
pub use states::{OtherFields, StateRows};

pub use hitreg_log::record::{Cause, CellKind, Class, ClassId, Effect, Field, Meaning, Reason, Scope, Wall};

/// A game, as the pipelines see it: a [`Simulate`], and how its shots are judged ([`Judge`]), drawn ([`Categorize`]) and
/// predicted ([`Reconcile`]). Whoever implements the four has a game; of the last two a game implements what it needs.
pub trait Game: Simulate + Judge + Categorize + Reconcile {}

impl<G: Simulate + Judge + Categorize + Reconcile> Game for G {}

//! The traits that a game implements to be recorded and replayed: a handful of pure functions, after id's `pmove`.
//!
//! The pipelines never read a game's world directly. They run usercmds through these functions, ask for the world's
//! entities, and pass in the past against which a shot is judged. Every function depends on its arguments alone, so
//! equal arguments give equal results on the server, in a client's prediction, and in a later replay.

mod acked;
mod body;
mod bots;
mod category;
mod cells;
mod imported;
mod input;
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
pub use acked::{AckedPrediction, Evidence, LostInput, PredictionGrade, SnapshotExtras};
pub(crate) use body::fields_by_cell;
pub use body::{BadCells, Body, body};
pub use bots::Bots;
pub use category::{Categorize, Category, FIRST_LOCAL_ENTITY, Rendering};
pub use cells::{CellMeaning, Cells, SpatialKind, cells, field, put_next, take_next};
pub use imported::{ImportedSessions, RecordedHit, RecordedShot, Rejudge, RejudgedVerdict, SnapshotCheck};
pub(crate) use input::check_own_fields;
pub use input::{GameInput, input};
pub use judge::Judge;
pub use moment::Moment;
pub use placed::{PlacedBody, PlacementKind};
pub use reconcile::Reconcile;
pub use role::CellRole;
pub use roster::{EntityNumbers, EntityWorld, Roster};
pub use shot::{DamageShare, ShotVerdict};
pub use simulate::{DiscardingSink, PlayerCommand, Scene, Simulate, Sink, Touch, WorldSink};
pub use states::unknown_fields;
pub use states::{OtherFields, StateRows};

pub use hitreg_log::record::{Cause, CellKind, Class, ClassId, Effect, FieldSchema, Meaning, Reason, Scope, Wall};

/// A complete game as the pipelines use it. [`Simulate`] runs the world, [`Judge`] judges shots, [`Categorize`] says
/// how entities are drawn, and [`Reconcile`] says how predictions are compared and corrected. Every type that
/// implements the four traits is a `Game`; [`Categorize`] and [`Reconcile`] have defaults for all their items.
pub trait Game: Simulate + Judge + Categorize + Reconcile {}

impl<G: Simulate + Judge + Categorize + Reconcile> Game for G {}

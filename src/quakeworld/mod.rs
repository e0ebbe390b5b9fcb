//! QuakeWorld: reads the demos that its clients record and the maps that they were played on, and runs its player
//! movement, so that a real game's predictions can be replayed and explained.
//!
//! - [`Demo::parse`] and [`Map::parse`] read files into types; both bound and check everything first.
//! - [`step`] is the movement of one step, a pure function; [`Runner`] runs whole usercmds as a server does, with lifts
//!   before and triggers after.
//! - [`Prediction`] runs usercmds from a known state, holds the result against the recorded one, explains a miss, and
//!   says where to go on from; [`open_loop()`] does so for a whole demo.
//!
//! The formats and the rules of movement are those of the public id, MVDSV, ezQuake and KTX sources.

mod accelerate;
mod body;
mod bsp;
mod bytes;
mod carry;
mod cause;
mod checked;
mod demo;
mod entities;
mod error;
mod explain;
#[cfg(test)]
mod explain_tests;
mod extra;
mod game;
mod hypotheses;
mod import;
mod import_error;
#[cfg(test)]
mod import_tests;
mod jump;
mod jumps;
mod map;
mod map_check;
mod map_entities;
mod movevars;
mod open_loop;
mod packed;
mod players;
mod pmove;
mod prediction;
mod protocol;
mod qwd;
mod recorded;
mod rules;
mod run;
mod serverinfo;
mod sessions;
mod slide;
mod state;
mod statistics;
mod surroundings;
mod svc;
mod svc_kind;
mod svc_skip;
#[cfg(test)]
mod testing;
mod trace;
mod usercmd;
mod verdict;
mod wire;
mod world;

pub use body::{BodyRow, FIRST_MODEL, flag};
pub use bsp::BspError;
pub use cause::{Burst, Cause, Evidence, Hypothesis};
pub use demo::{
    Demo, DemoEnd, EffectKind, Event, Level, Mover, OtherPlayer, OwnState, SentCommand, Server, ServerPacket, Span,
};
pub use error::QwdError;
pub use game::{Moment, QuakeWorld, Shot};
pub use import::{ImportOptions, import};
pub use import_error::ImportError;
pub use map::{EMPTY, Map, MovingKind, MovingModel, SLIME, SOLID, Trigger, TriggerEffect, WATER};
pub use movevars::{Dialect, MoveVars};
pub use open_loop::{Check, open_loop};
pub use packed::{LARGEST_UNPACKED, UnpackError, unpacked};
pub use pmove::step;
pub use prediction::{Given, Prediction};
pub use protocol::{Extensions, ServerExtensions};
pub use recorded::recorded_demo;
pub use rules::Rules;
pub use run::{Run, Runner};
pub use state::{PlayerState, Touched};
pub use statistics::{Percentiles, Statistics};
pub use surroundings::{Bodies, Surroundings};
pub use usercmd::{BUTTON_ATTACK, BUTTON_JUMP, UserCmd, wire_angle_degrees};
pub use verdict::{
    Difference, ORIGIN_STEP, OriginWire, Verdict, difference, judge, reconcile, resume, start, wire_velocity,
};
pub use world::{MOST_SOLIDS, PLAYER_MAXS, PLAYER_MINS, Solid, World};

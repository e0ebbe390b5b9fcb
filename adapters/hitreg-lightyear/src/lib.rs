//! Records sessions of [lightyear] as hitreg logs, and replays the logs without a network.
//!
//! A [`RecordedGame`] describes the game: its input, its classes of entities and their components. Each recorded entity has
//! a [`RecordedEntity`]. [`HitregRecorderPlugin`] records the app of a server. [`HitregReplay`] is a whole build: it runs
//! the simulation of the same app on a log. [`HitregClientRecorderPlugin`] records the app of a client, with its rollbacks.
//!
//! | lightyear | log |
//! | --- | --- |
//! | [`LocalTimeline`](lightyear::prelude::LocalTimeline) of the server | tick |
//! | [`ActionState`](lightyear::prelude::input::native::ActionState) of a tick | usercmd with the number of the tick, run in that tick |
//! | [`InterpolationDelay`](lightyear::prelude::InterpolationDelay) of an input | the usercmd field [`DRAWN_DELAY`] |
//! | a tick without an input in the buffer | `stood_in` |
//! | a late input that acts in a later tick | usercmd with the number of its own tick, run in the later one |
//! | components of entities with [`RecordedEntity`] | bodies |
//! | a player's entity appears or disappears | presence |
//!
//! Systems of the fixed schedules push records of their own, such as shots, through [`HitregRecorder`]: in the server and in
//! replays.
//!
//! The time of a tick is its number divided by the tick rate.

mod client;
mod game;
mod recorder;
mod replay;

pub use client::{DRAWN, HitregClientRecorderPlugin, PREDICTION_ERRORS, ROLLBACKS};
pub use game::{Components, DRAWN_DELAY, DrawnDelay, RecordedEntity, RecordedGame, RecordedInput};
pub use recorder::{HitregRecorder, HitregRecorderPlugin, RecordError};
pub use replay::HitregReplay;

pub use hitreg_log;
pub use hitreg_log::fields;
pub use hitreg_log::fields::{FieldValue, Fields};
pub use lightyear;

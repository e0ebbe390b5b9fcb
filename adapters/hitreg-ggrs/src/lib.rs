//! Records [GGRS](ggrs) sessions as hitreg logs, and replays the logs as a hitreg build.
//!
//! A game implements [`RecordedGame`]. [`GgrsRecorder::handle`] then fulfils the requests of its session, and records
//! each frame once it is final: no rollback simulates it again. [`replay`] is a whole build.
//!
//! | GGRS | log |
//! | --- | --- |
//! | frame `n`, from 0 | tick `n + 1`; usercmd `n + 1` of each player, run in that tick |
//! | input | usercmd fields, declared by [`Fields`] |
//! | [`InputStatus::Disconnected`](ggrs::InputStatus) | the usercmd field [`DISCONNECTED`]; the player's presence |
//! | checksum | hash of the tick |
//! | rollback | a row of the custom kind [`ROLLBACKS`] |
//!
//! The time of a tick is its number divided by the frame rate, so all peers record the same times.

mod game;
mod recorder;
mod replay;
mod session;

pub use game::{DISCONNECTED, ROLLBACKS, RecordedGame, describe};
pub use recorder::{GgrsRecorder, RecordError};
pub use replay::replay;
pub use session::RecordedSession;

pub use ggrs;
pub use hitreg_log;
pub use hitreg_log::fields;
pub use hitreg_log::fields::{EntityFields, FieldValue, Fields};

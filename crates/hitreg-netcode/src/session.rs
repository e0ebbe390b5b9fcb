//! Sessions. `sequence` defines the steps of a tick and of a client frame for all drivers of server and clients.
//! [`Machine`] runs a whole session in virtual time. The same machine records a synthetic session and replays any
//! recorded one.

mod batches;
mod bots;
mod late_frames;
mod machine;
mod network;
mod observe;
mod queue;
mod recorder;
pub mod scenario;
pub mod sequence;
mod synth;
mod unencoded;

pub use batches::{BatchReceiver, RecordBatcher};
pub use bots::BotInput;
pub use bots::{BotPlayer, frame_phase};
pub use late_frames::LateFrames;
pub(crate) use machine::AfterTick;
pub use machine::{InputSource, Machine};
pub use network::Links;
pub(crate) use network::TransportKind;
pub use network::{ClientAsk, Intruder};
pub use observe::{Observer, ScreenView, SessionEvent, SnapshotSize};
pub use recorder::{RecordSink, SessionRecorder};
pub use sequence::PlayerScreen;
pub use synth::{SynthError, record_synthetic, record_synthetic_while};

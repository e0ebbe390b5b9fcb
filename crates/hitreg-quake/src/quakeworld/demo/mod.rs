//! Demos: reading `.qwd` and `.mvd` files, the protocol in them, and the content of a recording.

mod bots;
mod entities;
mod error;
mod gather;
mod mvd;
mod origin_wire;
mod players;
mod protocol;
mod qwd;
mod recording;
mod served;
mod serverinfo;
mod svc;
mod svc_kind;
mod svc_skip;
mod wire;

pub use error::QwdError;
pub use origin_wire::OriginWire;
pub(crate) use origin_wire::{ORIGIN_STEP, cut_cell};
pub use protocol::{Extensions, ServerExtensions};
pub use recording::{
    DemoCut, DemoEnd, DemoEvent, DemoHit, DemoLevel, EffectKind, Mover, OtherLevels, OtherPlayer, OwnState,
    QuakeWorldDemo, RecordedBy, SentCommand, ServerDescription, ServerPacket,
};

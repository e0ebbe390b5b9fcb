//! The record types of a session, independent of any game's types and of the storage format.
//!
//! A game's own data is opaque here: its rules are bytes, and its entity states are rows of 32-bit cells whose names
//! are in the header. All times are session times unless a field says otherwise.

mod cause;
mod client;
mod event;
mod fate;
mod header;
mod heard;
mod keyframe;
mod outline;
mod own_setting;
mod part;
mod recent_states;
mod rules;
mod schema;
mod server;
mod session;
mod side;
mod state;
mod stream;
mod texts;
mod unknown;
mod wall;
mod what_if;

pub use cause::Cause;
pub use client::{ArrivalRecord, FrameRecord, PacketRecord};
pub use event::{DamageRecord, Effect, GapCause, GapRecord, Presence, PresenceRecord, Reason, ShotRecord};
pub use fate::ArrivalTable;
pub use header::{Origin, PlayerInfo, SessionHeader};
pub use heard::{HEARD_COMMANDS_MAX, HeardRecord};
pub use keyframe::Keyframe;
pub(crate) use outline::consecutive_runs;
pub use outline::{Outline, PlayerOutline, leave_times, lowest_and_highest, widest};
pub use own_setting::{player_of, split_of_player};
pub(crate) use part::BEGINS_AFTER_TICK;
pub use recent_states::{RecentChunkStates, StateSource};
pub use rules::StoredRules;
pub use schema::{
    CellKind, Class, ClassId, FieldSchema, Meaning, Scope, TakenName, cells_of, floats_of, is_frames_column,
    usercmd_fields,
};
pub use server::{Execution, ExecutionRecord, OutOfSequence, SnapshotRecord, TickRecord, Timing};
pub use session::{MisplacedRecord, Session, SessionStretch};
pub use side::{LogContents, RecordedSide, SessionId};
pub use state::viewer_specific_fields;
pub use state::{StateKey, StateRecord, States};
pub(crate) use stream::OF_SESSION;
pub use stream::{ClockOwner, EventTime, OF_PLAYERS, PlayerRecords, Record, RecordStream, RecordType};
pub use stream::{each_stream, state_bytes};
pub use texts::{MAX_TEXT_BYTES, TextCode, TextError, Texts};
pub use unknown::{CustomRow, NumberForm, OwnValue, USERCMD_BYTES, UnknownColumn, UnknownKind, UnknownRecords};
pub use wall::Wall;
pub use what_if::{REJUDGED, WhatIf};

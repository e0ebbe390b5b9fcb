//! The C ABI: a recorder, a reader of logs and a writer of traces for engines in other languages. The one crate with `unsafe`.
//!
//! `include/hitreg.h` is made from this crate by cbindgen (`HITREG_WRITE_HEADER=1 cargo test -p hitreg-capi --test capi`), and a
//! test holds it up to date.
//!
//! What every function keeps to:
//! - It gives back a [`hitreg_code`]; [`hitreg_last_error`] has a sentence about the last one of this thread that was not
//!   `HITREG_OK`.
//! - Null handles and pointers, wrong sizes, text that is no UTF-8, and calls after the end are codes. A panic does not cross the
//!   border: it is `HITREG_PANIC`.
//! - What only its caller can promise is written at the function: that a pointer which is not null points to what its type
//!   says, and that a handle was not freed.
#![allow(unsafe_code, reason = "this is the border to C")]
#![allow(non_camel_case_types, reason = "these are C's names")]

mod about;
mod guard;
mod log;
mod log_more;
mod push;
mod recorder;
mod trace;
mod types;

pub use about::*;
pub use guard::{hitreg_code, hitreg_last_error};
pub use log::*;
pub use log_more::*;
pub use push::*;
pub use recorder::{
    hitreg_recorder, hitreg_recorder_create, hitreg_recorder_finish, hitreg_recorder_free, hitreg_recorder_keep_last,
    hitreg_recorder_save, hitreg_recorder_trace, hitreg_recorder_written, hitreg_stream, hitreg_stream_free,
    hitreg_stream_new, hitreg_stream_release,
};
pub use trace::*;
pub use types::*;

//! The C ABI: a recorder, a log reader and a trace writer for engines in other languages. Only this module contains
//! `unsafe` code.
//!
//! `include/hitreg.h` is generated: `hitreg.h.in` has its order, its headings and its inline functions, and cbindgen
//! the declarations of this crate. `HITREG_WRITE_HEADER=1 cargo test -p hitreg-capi --test capi` writes it, and a test
//! checks that it is current. Typed functions such as `hitreg_push_usercmd` are inline functions of the header, which
//! call [`hitreg_push_row`] and [`hitreg_log_row`].
//!
//! Conventions of all functions:
//! - Fallible functions return a [`hitreg_code`]. After a code other than `HITREG_OK`, [`hitreg_last_error`] returns
//!   the error message of this thread.
//! - Null handles and pointers, wrong sizes, text that is not UTF-8, and calls after the end return error codes. Panics
//!   do not unwind into C; they return `HITREG_PANIC`.
//! - The `# Safety` sections state what the library cannot check: that a non-null pointer points to the given type, and
//!   that a handle was not freed.
#![allow(unsafe_code, reason = "this is the boundary to C")]
#![allow(non_camel_case_types, reason = "these are C's names")]

mod about;
mod guard;
mod log;
mod members;
mod recorder;
mod replay;
mod signals;
mod types;

pub use about::*;
pub use guard::{hitreg_code, hitreg_last_error, hitreg_version};
pub use log::*;
pub use members::*;
pub use recorder::{
    hitreg_push_row, hitreg_put_text, hitreg_recorder, hitreg_recorder_create, hitreg_recorder_finish,
    hitreg_recorder_free, hitreg_recorder_keep_last, hitreg_recorder_save, hitreg_recorder_trace,
    hitreg_recorder_written, hitreg_stream, hitreg_stream_free, hitreg_stream_new, hitreg_stream_release,
};
pub use replay::*;
pub use types::*;

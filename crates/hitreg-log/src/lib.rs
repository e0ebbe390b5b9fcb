//! hitreg's files: logs, traces, the recorder that an engine calls, and the vocabulary of both.
//!
//! Start with [`recorder`] to record a session, with [`log`] and [`trace`] to read and write files, and with [`record`]
//! for the record types of a log. Only [`store`] and the threads of the recorder access the disk.
//!
//! The text of each error includes the texts of its causes, so print the error alone. `source` is for code that looks for
//! a type.

pub mod fields;
pub mod hash;
pub mod log;
pub mod memory;
pub mod merge;
mod partial_debug;
pub mod record;
pub mod recorded;
pub mod recorder;
pub mod rng;
pub mod round_trips;
pub mod serial;
pub mod sorted;
pub mod stats;
pub mod store;
pub mod trace;
pub mod traffic;
pub mod units;
pub mod usercmd;
pub mod varint;

/// The program in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! What a file of hitreg is: logs, traces, the recorder that an engine calls, and the vocabulary of both.
//!
//! Start with [`recorder`] to record, with [`log`] and [`trace`] to read and write files, with [`record`] for what a log holds.
//! Only [`store`] and the threads of the recorder touch the disk.

pub mod hash;
pub mod log;
pub mod memory;
pub mod merge;
pub mod record;
pub mod recorded;
pub mod recorder;
pub mod rng;
pub mod serial;
pub mod stats;
pub mod store;
pub mod trace;
pub mod traffic;
pub mod units;
pub mod usercmd;
pub mod varint;

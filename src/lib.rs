//! `hitreg` records the netcode of action games, replays it bit for bit, and shows what changed: reconciliation,
//! interpolation, and hit results.
//!
//! | you have | you need | smallest crate |
//! | --- | --- | --- |
//! | an engine whose sessions you want to record | [`recorder`], [`mod@fields`], [`record`], [`usercmd`], [`units`] | `hitreg-log` |
//! | logs and traces to read, write, or mend | [`log`], [`trace`], [`merge`] | `hitreg-log` |
//! | an engine in C or C++ | the crate `hitreg-capi` and its `hitreg.h` | `hitreg-capi` |
//! | two traces to compare, a shot to explain, pages | [`mod@diff`], [`bisect`], [`why`], [`summary`], [`fairness`], [`report`] | `hitreg-analysis` |
//! | shots to judge against the past | [`history`], [`game`] | `hitreg-netcode` |
//! | a game that hitreg should replay | [`game`], [`pipeline`], [`server`], [`client`], [`session`], [`replay`] | `hitreg-netcode` |
//! | your own tools for builds and logs | [`engine`], [`engine::bisect`], [`verify`], [`shrink`], [`mod@sweep`], [`corpus`] | `hitreg-engine` |
//! | the built-in games and importers | [`arena`], [`quakeworld`], [`quake3`] | `hitreg-arena`, `hitreg-quake` |
//! | a game that needs all commands | [`cli`], [`registry`] | `hitreg` |
//!
//! The feature `parquet` adds tables as Parquet files. The text of each error includes the texts of its causes, so print
//! the error alone. This is how an engine records a session and how the log is read
//! back:
//!
//! ```
//! use hitreg::record::{CellKind, Class, ClassId, FieldSchema, Meaning, Scope};
//! use hitreg::recorder::{Description, Recorder, RecorderOptions};
//! use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
//! use hitreg::usercmd::Usercmd;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("session.hitlog");
//! let x = FieldSchema::new("origin.x", CellKind::F32, Scope::Movement).meaning(Meaning::Position);
//! let about = Description::new("mygame").class(Class::new("player", vec![x])).player("p0");
//! let recorder = Recorder::create(&path, about, RecorderOptions::default())?;
//! let mut server = recorder.stream();
//! server.usercmd(PlayerId(0), Micros::ZERO, Usercmd { seq: CommandSeq(1), ..Usercmd::default() })?;
//! server.tick(Tick(1), Micros::from_ms(16), Some(0x1234))?;
//! server.body(Tick(1), EntityId(0), ClassId(0), &[0.5_f32.to_bits()])?;
//! recorder.finish()?;
//!
//! let session = hitreg::log::read_session(&std::fs::read(&path)?[..])?;
//! assert_eq!((session.header.game.as_str(), session.ticks.len(), session.states.len()), ("mygame", 1, 1));
//! # Ok(())
//! # }
//! ```
//!
//! This compares two traces, from any source, and finds the first divergence:
//!
//! ```
//! use hitreg::diff::{DiffOptions, TraceVerdict, diff};
//! use hitreg::trace::{Trace, schema::ticks};
//!
//! let of = |hashes: [u64; 3]| {
//!     let mut table = ticks::Writer::default();
//!     for (tick, hash) in (1..).zip(hashes) {
//!         table.push(ticks::Row { tick, at_us: i64::from(tick) * 16_667, hash });
//!     }
//!     Trace { tables: vec![table.finish(vec![])], ..Trace::default() }
//! };
//! let found = diff(&of([7, 8, 9]), &of([7, 8, 10]), &DiffOptions::default()).expect("no tolerances");
//! assert_eq!(found.verdict, TraceVerdict::Differs);
//! assert_eq!(found.first.expect("a place").place.tick, Some(3));
//! ```

pub mod cli;
#[cfg(feature = "parquet")]
pub mod parquet_file;

/// The games that `hitreg` has built in.
pub mod registry {
    use crate::engine::Games;

    /// Returns Arena, QuakeWorld and Quake III, each from its own crate.
    pub fn built_in() -> Games {
        Games::default()
            .with(hitreg_arena::playable())
            .with(hitreg_quake::quakeworld::playable())
            .with(hitreg_quake::quake3::playable())
    }
}

/// A corpus of logs: its inputs, its results, and their summary.
pub mod corpus {
    pub use hitreg_analysis::corpus::*;
    pub use hitreg_engine::corpus::*;
}

pub use hitreg_analysis::{
    bisect, diff, drawing, fairness, golden, page, perfetto, report, summary, swept, text_diff, why,
};
pub use hitreg_arena as arena;
pub use hitreg_engine::{self as engine, build, shrink, sweep, verify};
pub use hitreg_live as live;
pub use hitreg_log::{
    fields, hash, log, memory, merge, record, recorded, recorder, rng, serial, sorted, stats, store, trace, traffic,
    units, usercmd,
};
pub use hitreg_netcode::{
    client, game, history, info, link, pacing, packet, pipeline, protocol, replay, score, server, session, settings,
    state, wire,
};
pub use hitreg_quake::{import, protocols, quake3, quakeworld};

/// Vectors and quaternions, used in bodies.
pub use glam;

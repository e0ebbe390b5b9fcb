//! Games through the pipelines in virtual time: recorded, replayed, compared, searched. All tests that run a test game
//! are modules of this crate, so that each game is compiled once.

mod arena;
mod arena_sessions;
mod asked;
mod bugged;
mod carriage;
mod categories;
mod claims;
mod client;
mod commands;
mod culled;
mod disc;
mod drift;
mod entities;
#[path = "../cli/folder.rs"]
#[expect(dead_code, reason = "it is made for the tests of the command line, which are another crate")]
mod folder;
mod goldens;
mod helm;
mod history;
mod keyed;
mod merge;
mod merge_streamed;
mod movement_vectors;
mod network;
#[path = "../skipped/note.rs"]
mod note;
mod open_streams;
mod parts;
mod patched;
mod pipelines;
mod quake3_log;
mod quake3_room;
mod quakeworld;
mod quakeworld_log;
mod replayed;
mod restored;
mod schedule;
mod searches;
mod server;
#[path = "../cli/signals.rs"]
mod signals;
mod soak;
mod statements;
mod streams;
mod trace_schema;
mod traces;
mod yard;

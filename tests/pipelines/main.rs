//! Games through the pipelines in virtual time: recorded, replayed, compared, searched. All tests that run a test game
//! are modules of this crate, so that each game is compiled once.

mod arena;
mod arena_sessions;
mod bugged;
mod built_in;
mod categories;
mod claims;
mod client;
mod client_restore;
mod commands;
mod culled;
mod disc;
mod drift;
mod entities;
#[path = "../cli/folder.rs"]
#[expect(dead_code, reason = "tests of the command line, which are another crate, use it")]
mod folder;
mod goldens;
mod helm;
mod history;
mod keyframed_logs;
mod lift;
mod merge;
mod merge_streamed;
mod movement_vectors;
mod network;
#[path = "../skipped/note.rs"]
mod note;
mod on_request;
mod open_streams;
mod packet_encoding;
mod parts;
mod patched;
mod pipelines;
mod quake3_log;
mod quake3_room;
mod quakeworld;
mod quakeworld_log;
mod replayed;
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

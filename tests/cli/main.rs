//! The command line as a process: output, exit codes, and builds, servers and clients as processes.

mod action;
mod bisect_builds;
mod bisect_history;
mod browser;
mod builds;
mod compared;
#[expect(dead_code, reason = "this crate needs a part of it")]
#[path = "../hostile/container.rs"]
mod container;
mod corpus;
mod corpus_faults;
mod ended_recordings;
mod exports;
mod field_types;
mod flood;
mod folder;
mod gaps;
mod git_bisect_run;
mod grid;
mod habits;
mod interrupt;
mod join;
mod keyframes;
mod later_version;
mod limits;
mod links;
mod matrix;
mod memory;
mod merged;
mod netcode;
#[path = "../skipped/note.rs"]
mod note;
mod openarena;
mod outputs;
mod pages;
mod paths;
mod printed;
mod prose;
mod proxy;
mod pucks;
mod ray;
mod report;
mod repository;
mod results;
mod search_text;
mod sessions;
mod shrink_and_sweep;
#[path = "../../examples/sides/write.rs"]
mod sides;
mod signals;
mod tanks;
mod terminal;
mod totals;
mod trouble;
mod unknown_game;
mod unsteady_builds;
mod verify;
mod why;
mod why_recorded;
mod workflow;

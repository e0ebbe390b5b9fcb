//! The command line from outside: what it prints, where, and how it ends; builds, servers and clients as processes.

mod bisect_builds;
mod builds;
#[expect(dead_code, reason = "this crate needs a part of it")]
#[path = "../hostile/container.rs"]
mod container;
mod exports;
mod flood;
mod folder;
mod foreign;
mod future;
mod git_bisect_run;
mod grid;
mod habits;
mod holes;
mod interrupt;
mod join;
mod keyframes;
mod kinds;
mod memory;
mod merged;
mod netcode;
#[path = "../skipped/note.rs"]
mod note;
mod openarena;
mod outputs;
mod paths;
mod printed;
mod prose;
mod proxy;
mod pucks;
mod report;
mod repository;
mod results;
mod search_text;
mod sessions;
#[path = "../../examples/sides/write.rs"]
mod sides;
mod signals;
mod smaller;
mod sums;
mod terminal;
mod trouble;
mod unfinished;
mod verify;
mod why;

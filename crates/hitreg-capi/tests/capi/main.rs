//! The C ABI: its header is current, rows are recorded and read unchanged, and no sequence of calls makes it panic.

#![expect(unsafe_code, reason = "this is the border to C")]

extern crate hitreg_log as hitreg;

mod calls;
#[path = "../../../../tests/hostile/fuzz.rs"]
#[expect(dead_code, reason = "other targets use the rest")]
mod fuzz;
mod header;
mod members;
#[path = "../../../../tests/skipped/note.rs"]
mod note;
mod rows;
#[cfg(target_os = "linux")]
mod signals;

use cap::Cap;

#[global_allocator]
static MEMORY: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

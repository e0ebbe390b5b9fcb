//! The C ABI: its header is up to date, rows are recorded and read as what they are, and no program in C makes it fail.

#![expect(unsafe_code, reason = "this is the border to C")]

extern crate hitreg_log as hitreg;

mod calls;
#[path = "../../../../tests/hostile/fuzz.rs"]
#[expect(dead_code, reason = "some of it is for targets of their own")]
mod fuzz;
mod header;
#[path = "../../../../tests/skipped/note.rs"]
mod note;
mod rows;

use cap::Cap;

#[global_allocator]
static MEMORY: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

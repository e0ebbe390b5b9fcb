//! The global allocator of tests and benchmarks that count allocations. A crate of its own is optimized, unlike tests.

use std::alloc::System;

use cap::Cap;

/// Counts the allocations of the whole program.
#[global_allocator]
pub static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

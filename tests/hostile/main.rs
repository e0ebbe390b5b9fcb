//! Files that mean harm: small ones that want gigabytes or hours, whose checksums are all right. Whatever is done with them
//! stays within its bounds and ends with a sentence.

mod child;
mod container;
mod crafted;
mod mutants;

use cap::Cap;

#[global_allocator]
static MEMORY: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

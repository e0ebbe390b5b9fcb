//! Hostile files: small files with valid checksums that try to cost gigabytes or hours. Every command stays within its
//! limits and ends with a message.

mod child;
mod container;
mod crafted;
mod foreign;
mod fuzz;
mod lengths;
mod mutants;
mod mutate;
mod recorded;
mod replayed;
#[path = "../../examples/sides/write.rs"]
mod sides;
mod targets;

/// The small maps and demos that unit tests of `hitreg-quake` make.
#[path = "../../crates/hitreg-quake/src/bsp/tests.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod maps;
#[path = "../../crates/hitreg-quake/src/quakeworld/tests.rs"]
mod small;

/// The module path that the included file uses.
mod quakeworld {
    pub(crate) mod movement {
        pub(crate) use hitreg::quakeworld::QuakeWorldUsercmd;
    }
}

use counted_heap::MEMORY;

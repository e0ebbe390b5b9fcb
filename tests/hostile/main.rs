//! Files that mean harm: small ones that want gigabytes or hours, whose checksums are all right. Whatever is done with them
//! stays within its bounds and ends with a sentence.

mod child;
mod container;
mod crafted;
mod foreign;
mod fuzz;
mod lengths;
mod mutants;
mod recorded;
mod replayed;
#[path = "../../examples/sides/write.rs"]
mod sides;
mod targets;
mod worse;

/// The small maps and demos that hitreg's own tests make on the spot.
#[path = "../../crates/hitreg-quake/src/bsp/testing.rs"]
#[expect(dead_code, reason = "some of it is for other tests")]
mod maps;
#[path = "../../crates/hitreg-quake/src/quakeworld/testing.rs"]
mod small;

/// As that file names it.
mod quakeworld {
    pub(crate) mod movement {
        pub(crate) use hitreg::quakeworld::QuakeWorldUsercmd;
    }
}

use cap::Cap;

#[global_allocator]
static MEMORY: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

//! Another build of the same game, in which a sign is lost: shots also hit what stands behind the shooter.
//!
//! `PUCKS_VERSION=N` makes it the N-th of a line of builds; those before the 37th do not have the bug yet. A script of one line around
//! it is a build of its own:
//!
//!     #!/bin/sh
//!     PUCKS_VERSION=12 exec target/debug/examples/pucks_bug "$@"

#[path = "../pucks/bots.rs"]
mod bots;
#[path = "../pucks/game.rs"]
mod game;

use std::process::ExitCode;
use std::sync::LazyLock;

/// The version that brought the bug.
const BUG_CAME_WITH: u32 = 37;

#[expect(clippy::disallowed_methods, reason = "which version this is comes from outside, as it would from a compiler")]
static VERSION: LazyLock<u32> =
    LazyLock::new(|| std::env::var("PUCKS_VERSION").ok().and_then(|text| text.parse().ok()).unwrap_or(u32::MAX));

/// The game in the version that was asked for.
#[derive(Debug)]
enum Numbered {}

impl game::PucksVersion for Numbered {
    fn shoots_backwards() -> bool {
        *VERSION >= BUG_CAME_WITH
    }
}

impl hitreg::pipeline::Netcode for game::Pucks<Numbered> {
    type Server = hitreg::server::Server<Self>;
    type Client = hitreg::client::Client<Self>;
}

fn main() -> ExitCode {
    hitreg::cli::main::<game::Pucks<Numbered>>()
}

//! Another build of pucks with a missing sign: shots also hit pucks behind the shooter.
//!
//! `PUCKS_VERSION=N` selects the N-th version; version 37 is the first with the bug. A script of one line makes a version
//! a build:
//!
//!     #!/bin/sh
//!     PUCKS_VERSION=12 exec target/debug/examples/pucks_bug "$@"

#[path = "../pucks/bots.rs"]
mod bots;
#[path = "../pucks/game.rs"]
mod game;

use std::process::ExitCode;
use std::sync::LazyLock;

/// The first version with the bug.
const FIRST_BAD: u32 = 37;

#[expect(clippy::disallowed_methods, reason = "the environment selects the version, as a compiler would")]
static VERSION: LazyLock<u32> =
    LazyLock::new(|| std::env::var("PUCKS_VERSION").ok().and_then(|text| text.parse().ok()).unwrap_or(u32::MAX));

/// The version that `PUCKS_VERSION` selects.
#[derive(Debug)]
enum Numbered {}

impl game::PucksVersion for Numbered {
    fn shoots_backwards() -> bool {
        *VERSION >= FIRST_BAD
    }
}

impl hitreg::pipeline::Netcode for game::Pucks<Numbered> {
    type Server = hitreg::server::Server<Self>;
    type Client = hitreg::client::Client<Self>;
}

fn main() -> ExitCode {
    hitreg::cli::main::<game::Pucks<Numbered>>()
}

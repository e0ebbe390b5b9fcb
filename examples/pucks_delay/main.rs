//! Pucks with their own netcode, in `netcode.rs`: recorded, replayed, compared and bisected like any other game.
//!
//!     cargo run --example pucks_delay -- record synth -o game.hitlog --players 6
//!     cargo run --example pucks_delay -- verify game.hitlog
//!     cargo run --example pucks_delay -- diff game.hitlog --b target/debug/examples/pucks

#[path = "../pucks/bots.rs"]
mod bots;
#[path = "../pucks/game.rs"]
mod game;
mod netcode;

use std::process::ExitCode;

/// The game without a bug.
#[derive(Debug)]
enum Correct {}

impl game::PucksVersion for Correct {
    fn shoots_backwards() -> bool {
        false
    }
}

impl hitreg::pipeline::Netcode for game::Pucks<Correct> {
    type Server = netcode::DelayServer<Self>;
    type Client = netcode::DelayClient<Self>;
}

fn main() -> ExitCode {
    hitreg::cli::main::<game::Pucks<Correct>>()
}

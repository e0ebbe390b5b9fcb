//! Pucks with netcode of their own, in `netcode.rs`: it is recorded, replayed, compared and bisected like any other.
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

/// The game as it should be.
#[derive(Debug)]
enum Even {}

impl game::PucksVersion for Even {
    fn shoots_backwards() -> bool {
        false
    }
}

impl hitreg::pipeline::Netcode for game::Pucks<Even> {
    type Server = netcode::DelayServer<Self>;
    type Client = netcode::DelayClient<Self>;
}

fn main() -> ExitCode {
    hitreg::cli::main::<game::Pucks<Even>>()
}

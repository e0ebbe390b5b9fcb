//! A build of a game outside hitreg: all commands of hitreg, for pucks.
//!
//!     cargo run --example pucks -- record synth -o game.hitlog --players 6
//!     cargo run --example pucks -- replay game.hitlog

mod bots;
mod game;

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
    type Server = hitreg::server::Server<Self>;
    type Client = hitreg::client::Client<Self>;
}

fn main() -> ExitCode {
    hitreg::cli::main::<game::Pucks<Correct>>()
}

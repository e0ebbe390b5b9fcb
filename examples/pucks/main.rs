//! A build of a game that is not hitreg's own: all of hitreg's commands, for pucks.
//!
//!     cargo run --example pucks -- record synth -o game.hitlog --players 6
//!     cargo run --example pucks -- replay game.hitlog

mod bots;
mod game;

use std::process::ExitCode;

/// The game as it should be.
#[derive(Debug)]
enum Sound {}

impl game::PucksVersion for Sound {
    fn shoots_backwards() -> bool {
        false
    }
}

impl hitreg::pipeline::Netcode for game::Pucks<Sound> {
    type Server = hitreg::server::Server<Self>;
    type Client = hitreg::client::Client<Self>;
}

fn main() -> ExitCode {
    hitreg::cli::main::<game::Pucks<Sound>>()
}

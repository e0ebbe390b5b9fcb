//! A game that hitreg does not know: its own server, recorded through calls and replayed as a build.
//!
//!     cargo run --example tanks -- record tanks.hitlog
//!     cargo run --example tanks -- replay tanks.hitlog -o tanks.hittrace
//!     cargo run -- diff tanks.hitlog --a target/debug/examples/tanks --b target/debug/examples/tanks_bug

#[path = "engine.rs"]
mod engine;

fn main() -> std::process::ExitCode {
    engine::main(false)
}

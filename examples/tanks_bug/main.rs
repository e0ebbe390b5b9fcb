//! Another build of tanks: a mine also hits tanks that are farther away.

#[path = "../tanks/engine.rs"]
mod engine;

fn main() -> std::process::ExitCode {
    engine::main(true)
}

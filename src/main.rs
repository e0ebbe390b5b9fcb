//! The `hitreg` command with its built-in games.

use std::process::ExitCode;

fn main() -> ExitCode {
    hitreg::cli::built_in()
}

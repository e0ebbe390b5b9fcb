//! The `hitreg` command with its built-in games.
fn main() {}

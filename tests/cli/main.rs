//! The command line from outside: what it prints, where, and how it ends.

#[path = "../disc/mod.rs"]
mod disc;
mod folder;
mod printed;
mod results;
mod trouble;

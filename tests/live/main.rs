//! Live sessions over real sockets, in real time.

mod claims;
#[path = "../skipped/note.rs"]
mod note;
mod proxy;
mod sessions;
mod stage;

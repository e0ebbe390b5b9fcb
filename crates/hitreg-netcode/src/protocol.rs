//! What a proxy needs of a game's network protocol: somebody who hears the datagrams of a session as they pass between its
//! clients and its server, and makes records of them.

use hitreg_log::record::{Header, Record};
use hitreg_log::units::Micros;

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to the server.
    Up,
    /// From the server to a client.
    Down,
}

/// A datagram that passes.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    /// When it came, on the session's clock.
    pub at: Micros,
    /// Which client's it is. Each connection has a number of its own.
    pub client: u16,
    /// Which way it goes.
    pub direction: Direction,
    /// What it holds.
    pub bytes: &'a [u8],
    /// When it goes on to where it is to go; `None` if it is lost on purpose.
    pub released: Option<Micros>,
}

/// What was heard so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Heard {
    /// Datagrams.
    pub datagrams: u64,
    /// Those that could not be read; they pass all the same.
    pub undecoded: u64,
    /// Players whose usercmds were heard.
    pub players: u64,
    /// Usercmds, each once.
    pub usercmds: u64,
    /// Snapshots of players in the game.
    pub snapshots: u64,
}

/// Hears a session of one protocol.
///
/// Whatever the bytes are, it does not panic, and its memory and its work per datagram are bounded: it stands in the open.
pub trait Listen {
    /// Hears a datagram. Times never go backwards from one call to the next. `out` takes the records that follow from it; a
    /// record of when it was released may lie ahead of the time.
    fn hear(&mut self, passing: &Passing<'_>, out: &mut dyn FnMut(Record));

    /// The header of the log, as soon as enough was heard to know what is played. No record is made before. An error is in
    /// what was asked for, a map that is not the session's for one.
    fn header(&mut self) -> Option<Result<Header, String>>;

    /// What was heard so far.
    fn heard(&self) -> Heard;

    /// Tells what it still knows at the end.
    fn finish(&mut self, out: &mut dyn FnMut(Record));
}

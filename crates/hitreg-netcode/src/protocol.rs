//! The interface between the proxy and a game's network protocol: a listener that decodes the datagrams of a session
//! into records.

use hitreg_log::record::{Record, SessionHeader};
use hitreg_log::units::Micros;

/// The direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to the server.
    Up,
    /// From the server to a client.
    Down,
}

/// A datagram that passes through the proxy.
#[derive(Clone, Debug)]
pub struct PassingDatagram {
    /// The arrival time on the session's clock.
    pub at: Micros,
    /// The client's number, unique per connection.
    pub client: u16,
    /// Which way it goes.
    pub direction: Direction,
    /// The contents.
    pub bytes: Vec<u8>,
    /// The time at which the proxy forwards it; `None` if the modelled link drops it.
    pub released: Option<Micros>,
}

/// The counters of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct HeardCounts {
    /// The number of datagrams.
    pub datagrams: u64,
    /// The number of datagrams that could not be decoded. They are forwarded all the same.
    pub undecoded: u64,
    /// The number of players whose usercmds were decoded.
    pub players: u64,
    /// The number of distinct usercmds.
    pub usercmds: u64,
    /// The number of snapshots of players in the game.
    pub snapshots: u64,
    /// The number of datagrams of clients that had left the recorded level. They are not recorded.
    pub after_level: u64,
}

/// Decodes the sessions of one protocol.
///
/// A listener is exposed to the open network. It must not panic on any input, and its memory and its work per datagram
/// must be bounded.
pub trait SessionListener {
    /// Takes a datagram. Times never decrease between calls. `out` receives the resulting records; the record of a
    /// forwarding time may lie in the future.
    fn hear(&mut self, passing: &PassingDatagram, out: &mut dyn FnMut(Record));

    /// Returns the log's header once the session is identified. No record is made before that. An error means that the
    /// request does not fit the session, for example because of another map.
    fn header(&mut self) -> Option<Result<SessionHeader, String>>;

    /// Returns the counters so far.
    fn heard(&self) -> HeardCounts;

    /// Describes the first datagrams that could not be decoded, with the reasons.
    fn undecoded(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what the log lacks, and why, if it lacks something that was requested.
    fn warning(&self) -> Option<String> {
        None
    }

    /// Writes the remaining records at the end.
    fn finish(&mut self, out: &mut dyn FnMut(Record));
}

//! Logs that hold one side of a session: the server's or one client's, each with its own clock. `merge` makes one log of
//! all of them.

use serde::{Deserialize, Serialize};

use super::{Header, Origin};
use crate::units::PlayerId;

/// A number that the logs of one session share, and those of no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub u64);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Which side of which session a log holds. Its times are on the clock of that side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// The session.
    pub session: SessionId,
    /// The client's player; `None` is the server.
    pub player: Option<PlayerId>,
}

/// What a log holds of a session, and so how it can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The server and all clients.
    Whole,
    /// What one client, or several, got and did: each can be replayed on the snapshots that it received.
    Clients,
    /// What the server got and did.
    Server,
}

impl Header {
    /// What the log holds of its session.
    pub fn holds(&self) -> Holds {
        match (&self.origin, self.side) {
            (_, Some(Side { player: None, .. })) => Holds::Server,
            (_, Some(Side { player: Some(_), .. })) | (Origin::Imported { .. }, None) => Holds::Clients,
            (Origin::Synthetic | Origin::Live, None) => Holds::Whole,
        }
    }
}

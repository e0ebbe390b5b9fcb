//! Logs that hold one side of a session: the server's or one client's, each with its own clock. `merge` combines all
//! sides into one log.

use serde::{Deserialize, Serialize};

use super::{Origin, SessionHeader};
use crate::units::PlayerId;

/// The id that all logs of one session share, different for each session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub u64);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The side and the session of a log. Its times are on the clock of that side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSide {
    /// The session.
    pub session: SessionId,
    /// The client's player; `None` for the server.
    pub player: Option<PlayerId>,
}

/// The part of a session that a log holds, which determines how it can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogContents {
    /// The server and all clients.
    Whole,
    /// One client or several. Each can be replayed open loop on the snapshots that it received.
    Clients,
    /// The server only.
    Server,
}

impl SessionHeader {
    /// Returns the part of its session that the log holds.
    pub fn holds(&self) -> LogContents {
        match (&self.origin, self.side) {
            (_, Some(RecordedSide { player: None, .. })) => LogContents::Server,
            (_, Some(RecordedSide { player: Some(_), .. })) | (Origin::Imported { .. }, None) => LogContents::Clients,
            (Origin::Synthetic | Origin::Live, None) => LogContents::Whole,
        }
    }
}

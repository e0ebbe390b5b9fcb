//! Logs that hold one side of a session: the server's or one client's, each with its own clock. `merge` makes one log of
//! all of them.

use serde::{Deserialize, Serialize};

use super::{Header, Origin, Session};
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

impl Session {
    /// Puts the snapshots of a client's side into the order of their numbers, and the states into that of their ticks. The
    /// client writes them down as they arrive; readers of logs call this. Other logs are in order, and left as they are.
    pub fn put_in_order(&mut self) {
        if self.header.side.is_none_or(|side| side.player.is_none()) {
            return;
        }
        for player in &mut self.players {
            player.snapshots.sort_by_key(|snapshot| snapshot.seq);
        }
        if self.states.keys.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.states.keys.len()).collect();
        order.sort_by_key(|&row| self.states.keys[row]);
        let (keys, cells, width) = (&self.states.keys, &self.states.cells, self.states.width);
        let sorted_cells = order.iter().flat_map(|&row| &cells[row * width..(row + 1) * width]).copied().collect();
        self.states.keys = order.iter().map(|&row| keys[row]).collect();
        self.states.cells = sorted_cells;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::States;
    use crate::units::{EntityId, Seed, Tick};

    #[test]
    fn states_are_sorted_with_their_cells() {
        let header = Header {
            game: String::new(),
            rules: Vec::new(),
            map: String::new(),
            seed: Seed(0),
            settings: Vec::new(),
            preset: None,
            players: Vec::new(),
            origin: Origin::Live,
            side: Some(Side { session: SessionId(1), player: Some(PlayerId(0)) }),
            fields: Vec::new(),
        };
        assert_eq!(header.holds(), Holds::Clients);
        let mut session = Session::new(header);
        let key = |tick, entity| (Tick(tick), EntityId(entity));
        let keys = vec![key(2, 0), key(2, 1), key(1, 0)];
        session.states = States { keys, cells: vec![20, 21, 22, 23, 10, 11], width: 2 };
        session.put_in_order();
        assert_eq!(session.states.keys, [key(1, 0), key(2, 0), key(2, 1)]);
        assert_eq!(session.states.cells, [10, 11, 20, 21, 22, 23]);
    }
}

//! What a recorder needs to know of a session.

use ggrs::{Config, Frame, P2PSession, SpectatorSession, SyncTestSession};

/// A session of GGRS. It knows which frames it may still simulate again.
pub trait RecordedSession {
    /// Returns the frame that the session simulates next.
    fn next_frame(&self) -> Frame;

    /// Returns the length of the longest rollback, in frames. No earlier state can be loaded.
    fn longest_rollback(&self) -> usize;

    /// Returns the newest frame for which the session has the inputs of all players; -1 if there is none.
    fn newest_confirmed(&self) -> Frame;
}

impl<C: Config> RecordedSession for P2PSession<C> {
    fn next_frame(&self) -> Frame {
        self.current_frame()
    }

    // A frame can be simulated again although it is confirmed: with sparse saving, and if another peer lost a player
    // earlier than this one.
    fn longest_rollback(&self) -> usize {
        self.max_prediction()
    }

    fn newest_confirmed(&self) -> Frame {
        self.confirmed_frame()
    }
}

impl<C: Config> RecordedSession for SyncTestSession<C> {
    fn next_frame(&self) -> Frame {
        self.current_frame()
    }

    fn longest_rollback(&self) -> usize {
        self.check_distance()
    }

    fn newest_confirmed(&self) -> Frame {
        self.current_frame() - 1
    }
}

impl<C: Config> RecordedSession for SpectatorSession<C> {
    fn next_frame(&self) -> Frame {
        self.current_frame() + 1
    }

    fn longest_rollback(&self) -> usize {
        0
    }

    fn newest_confirmed(&self) -> Frame {
        self.current_frame()
    }
}

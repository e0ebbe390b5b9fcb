//! What the server knows of a client's knowledge of one entity: the last state that the client has for certain, and
//! those on their way, each of which it may have.
//!
//! Nothing is taken for lost. An entity is left out of a packet only if every state that the client can have of it
//! is the true one, so that with room enough a client's frame is the server's to the bit, whatever was lost.

use std::collections::VecDeque;
use std::sync::Arc;

use super::WINDOW;
use hitreg_log::units::SnapshotSeq;

/// A state that a snapshot carried; `None` when it said that there is no such entity.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) seq: SnapshotSeq,
    pub(crate) cells: Option<Arc<[u32]>>,
}

/// One entity in one client's eyes.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    /// What the client has for certain. `None` when too much was sent without an answer to know.
    acked: Option<Held>,
    /// What was sent since, oldest first.
    sent: VecDeque<Held>,
    /// For how many packets in a row it was left out though it was needed.
    pub(crate) waited: u32,
}

/// Which snapshots a client has received: the newest, and for each of the 32 before it a bit, the lowest for the one
/// just before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSet {
    /// The newest snapshot that was received; 0 when none was.
    pub newest: SnapshotSeq,
    /// The 32 before it.
    pub before: u32,
}

impl ReceivedSet {
    /// Whether a snapshot is known to have been received.
    pub fn contains(&self, seq: SnapshotSeq) -> bool {
        match self.newest.0.checked_sub(seq.0) {
            _ if seq.0 == 0 => false,
            Some(0) => true,
            Some(distance @ 1..=32) => self.before & (1 << (distance - 1)) != 0,
            _ => false,
        }
    }
}

impl Track {
    /// An entity that the client has never heard of.
    pub(crate) fn new() -> Track {
        let unheard = Held { seq: SnapshotSeq(0), cells: None };
        Track { acked: Some(unheard), sent: VecDeque::new(), waited: 0 }
    }

    /// Whether the client may have something else than the truth.
    pub(crate) fn needs(&self, truth: Option<&[u32]>) -> bool {
        let differs = |held: &Held| held.cells.as_deref() != truth;
        self.acked.as_ref().is_none_or(differs) || self.sent.iter().any(differs)
    }

    /// Whether the truth is on its way already.
    pub(crate) fn is_echo(&self, truth: Option<&[u32]>) -> bool {
        self.sent.back().is_some_and(|held| held.cells.as_deref() == truth)
    }

    /// The state that snapshot `now` may start from: one that the client has, and has not forgotten by then. A client
    /// forgets a state once it has a newer one that is itself out of the window.
    pub(crate) fn base(&self, now: SnapshotSeq) -> Option<(SnapshotSeq, &Arc<[u32]>)> {
        let acked = self.acked.as_ref()?;
        let forgotten = self.sent.front().is_some_and(|next| now.0 - next.seq.0 > WINDOW);
        let cells = acked.cells.as_ref()?;
        (!forgotten).then_some((acked.seq, cells))
    }

    pub(crate) fn remember_sent(&mut self, seq: SnapshotSeq, cells: Option<Arc<[u32]>>) {
        self.waited = 0;
        self.sent.push_back(Held { seq, cells });
        if self.sent.len() > WINDOW as usize {
            self.sent.pop_front();
            self.acked = None;
        }
    }

    pub(crate) fn handle_ack(&mut self, received: &ReceivedSet) {
        if let Some(index) = self.sent.iter().rposition(|held| received.contains(held.seq)) {
            self.acked = self.sent.drain(..=index).next_back();
        }
    }

    /// True when both sides agree that there is no such entity.
    pub(crate) fn is_over(&self) -> bool {
        self.sent.is_empty() && self.acked.as_ref().is_some_and(|held| held.cells.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(word: u32) -> Option<Arc<[u32]>> {
        Some(Arc::from([word]))
    }

    fn ack(newest: u32, before: u32) -> ReceivedSet {
        ReceivedSet { newest: SnapshotSeq(newest), before }
    }

    #[test]
    fn sets_hold_the_newest_and_32_before() {
        let set = ack(40, 0x8000_0001);
        let held: Vec<u32> = (0..50).filter(|seq| set.contains(SnapshotSeq(*seq))).collect();
        assert_eq!(held, [8, 39, 40]);
        assert!(!ack(1, u32::MAX).contains(SnapshotSeq(0)));
    }

    #[test]
    fn a_change_is_needed_until_nothing_else_can_be_known() {
        let mut track = Track::new();
        assert!(!track.needs(None));
        assert!(track.needs(Some(&[1])));
        track.remember_sent(SnapshotSeq(1), cells(1));
        assert!(track.needs(Some(&[1])) && track.is_echo(Some(&[1])));
        track.handle_ack(&ack(1, 0));
        assert!(!track.needs(Some(&[1])));
        // A and B on their way, and back to A: the client may be left with B.
        track.remember_sent(SnapshotSeq(2), cells(2));
        assert!(track.needs(Some(&[1])));
        track.remember_sent(SnapshotSeq(3), cells(1));
        track.handle_ack(&ack(3, 0));
        assert!(!track.needs(Some(&[1])));
    }

    #[test]
    fn bases_are_what_the_client_has() {
        let mut track = Track::new();
        assert!(track.base(SnapshotSeq(1)).is_none());
        track.remember_sent(SnapshotSeq(1), cells(1));
        assert!(track.base(SnapshotSeq(2)).is_none());
        track.handle_ack(&ack(2, 1));
        assert_eq!(track.base(SnapshotSeq(5_000)).map(|(seq, _)| seq), Some(SnapshotSeq(1)));
        track.remember_sent(SnapshotSeq(5_000), cells(2));
        assert!(track.base(SnapshotSeq(5_000 + WINDOW)).is_some());
        assert!(track.base(SnapshotSeq(5_001 + WINDOW)).is_none());
    }

    #[test]
    fn silence_is_remembered_as_ignorance() {
        let mut track = Track::new();
        for seq in 1..=WINDOW + 1 {
            track.remember_sent(SnapshotSeq(seq), cells(7));
        }
        assert!(track.needs(Some(&[7])) && track.base(SnapshotSeq(100)).is_none());
        track.handle_ack(&ack(WINDOW + 1, 0));
        assert!(!track.needs(Some(&[7])));
    }

    #[test]
    fn what_is_gone_on_both_sides_is_over() {
        let mut track = Track::new();
        track.remember_sent(SnapshotSeq(1), cells(1));
        track.remember_sent(SnapshotSeq(2), None);
        assert!(!track.is_over());
        track.handle_ack(&ack(2, 0));
        assert!(track.is_over());
    }
}

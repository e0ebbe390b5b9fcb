//! The size of a session, to decide which of two is smaller.

use super::edit::things;
use super::{CostKind, Session};

/// The number of things of each kind. Compared kind by kind, in the order of [`CostKind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostCounts([usize; CostKind::ALL.len()]);

impl CostCounts {
    /// Counts the things in a session.
    pub fn of(session: &Session) -> CostCounts {
        CostCounts(CostKind::ALL.map(|kind| things(session, kind).len()))
    }

    /// The count of one kind.
    pub fn of_kind(&self, kind: CostKind) -> usize {
        self.0[kind as usize]
    }
}

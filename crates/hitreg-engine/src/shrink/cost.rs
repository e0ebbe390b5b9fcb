//! The size of a session, to decide which of two is smaller.

use super::edit::things;
use super::{Kind, Session};

/// The number of things of each kind. Compared kind by kind, in the order of [`Kind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counts([usize; Kind::ALL.len()]);

impl Counts {
    /// Counts the things in a session.
    pub fn of(session: &Session) -> Counts {
        Counts(Kind::ALL.map(|kind| things(session, kind).len()))
    }

    /// The count of one kind.
    pub fn of_kind(&self, kind: Kind) -> usize {
        self.0[kind as usize]
    }
}

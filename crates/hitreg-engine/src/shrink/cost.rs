//! How large a session is, for deciding which of two is the smaller.

use super::edit::things;
use super::{Kind, Session};

/// How many things of each kind there are. Compared kind by kind in the order of [`Kind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counts([usize; Kind::ALL.len()]);

impl Counts {
    /// Counts a session's things.
    pub fn of(session: &Session) -> Counts {
        Counts(Kind::ALL.map(|kind| things(session, kind).len()))
    }

    /// How many there are of one kind.
    pub fn of_kind(&self, kind: Kind) -> usize {
        self.0[kind as usize]
    }
}

//! What happens to packets between a client and the server: modelled from a seed, or looked up in a recording.

mod holed;
mod model;
mod recorded;

pub use holed::Holed;
pub use model::{Jitter, LinkModel, Loss, ModelError, ModelledLink};
pub use recorded::RecordedLink;

use hitreg_log::units::Micros;

/// One direction of a connection.
pub trait Link {
    /// Decides about a packet of `bytes` that leaves at `at`: when it arrives. No arrival is a loss, two are a duplicate.
    /// Packets are given in the order of their sending.
    fn send(&mut self, at: Micros, bytes: u16) -> Fate;
}

/// When a packet arrives: never, once or twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// The first arrival.
    pub first: Option<Micros>,
    /// The second, of a duplicated packet.
    pub second: Option<Micros>,
}

impl Fate {
    /// A packet that never arrives.
    pub const LOST: Fate = Fate { first: None, second: None };

    /// What becomes of a packet that leaves at `at`, when this became of the one that was sent at or just before that time.
    pub(crate) fn of_other(self, sent: Micros, at: Micros) -> Fate {
        if sent == at {
            return self;
        }
        // Another packet than the recorded one has its delay; that it was duplicated says nothing about this one.
        Fate { first: self.first.map(|arrival| at + (arrival - sent)), second: None }
    }

    /// The arrivals in order.
    pub fn arrivals(self) -> impl Iterator<Item = Micros> {
        [self.first, self.second].into_iter().flatten()
    }
}

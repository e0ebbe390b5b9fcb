//! The links between clients and the server. A link delays, drops or duplicates packets, either modelled from a seed or
//! looked up in a recording.

mod holed;
mod model;

pub use holed::LinkWithOutages;
pub use model::{Jitter, LinkModel, Loss, ModelError, ModelledLink};

use hitreg_log::units::Micros;

/// One direction of a connection.
pub trait Link {
    /// Decides when a packet of `bytes` bytes, sent at `at`, arrives. No arrival is a loss, two are a duplicate. The
    /// caller must pass packets in the order of sending.
    fn send(&mut self, at: Micros, bytes: u16) -> Fate;
}

/// The arrival times of a packet: none, one or two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// The first arrival.
    pub first: Option<Micros>,
    /// The second arrival, when the packet was duplicated.
    pub second: Option<Micros>,
}

impl Fate {
    /// A lost packet.
    pub const LOST: Fate = Fate { first: None, second: None };

    /// Returns the fate of a packet sent at `at`, derived from that of the packet sent at or just before that time.
    pub(crate) fn of_other(self, sent: Micros, at: Micros) -> Fate {
        if sent == at {
            return self;
        }
        // A different packet gets the recorded delay. The duplicate belongs to the recorded packet only.
        Fate { first: self.first.map(|arrival| at + (arrival - sent)), second: None }
    }

    /// Returns the arrivals in order.
    pub fn arrivals(self) -> impl Iterator<Item = Micros> {
        [self.first, self.second].into_iter().flatten()
    }
}

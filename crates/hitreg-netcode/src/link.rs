//! The links between clients and the server. A link delays, drops or duplicates packets, either modelled from a seed or
//! looked up in a recording.

mod model;

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

/// A modelled link that also loses all packets sent at certain times.
#[derive(Clone, Debug)]
pub struct LinkWithOutages {
    model: ModelledLink,
    /// The outages: packets sent from the first time until before the second are lost.
    holes: Vec<(Micros, Micros)>,
}

impl LinkWithOutages {
    /// Creates the link with outages from and to the given times in ms.
    pub fn new(model: ModelledLink, holes_ms: &[[f64; 2]]) -> LinkWithOutages {
        let hole = |[from, to]: &[f64; 2]| (Micros::from_ms_f64(*from), Micros::from_ms_f64(*to));
        LinkWithOutages { model, holes: holes_ms.iter().map(hole).collect() }
    }
}

impl Link for LinkWithOutages {
    fn send(&mut self, at: Micros, bytes: u16) -> Fate {
        let fate = self.model.send(at, bytes);
        if self.holes.iter().any(|(from, to)| (*from..*to).contains(&at)) { Fate::LOST } else { fate }
    }
}

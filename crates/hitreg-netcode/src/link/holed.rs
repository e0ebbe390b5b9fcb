//! A modelled link that also loses all packets sent at certain times.

use super::{Fate, Link, ModelledLink};
use hitreg_log::units::Micros;

/// A link with outages.
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

//! A modelled link that besides loses what leaves at certain times.

use super::{Fate, Link, ModelledLink};
use hitreg_log::units::Micros;

/// A link with holes.
#[derive(Clone, Debug)]
pub struct Holed {
    model: ModelledLink,
    /// What leaves from the first to before the second is lost.
    holes: Vec<(Micros, Micros)>,
}

impl Holed {
    /// Holes from and to, in ms.
    pub fn new(model: ModelledLink, holes_ms: &[[f64; 2]]) -> Holed {
        let hole = |[from, to]: &[f64; 2]| (Micros::from_ms_f64(*from), Micros::from_ms_f64(*to));
        Holed { model, holes: holes_ms.iter().map(hole).collect() }
    }
}

impl Link for Holed {
    fn send(&mut self, at: Micros, bytes: u16) -> Fate {
        let fate = self.model.send(at, bytes);
        if self.holes.iter().any(|(from, to)| (*from..*to).contains(&at)) { Fate::LOST } else { fate }
    }
}

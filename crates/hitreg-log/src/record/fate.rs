//! What became of each packet, put together from its sending and its arrivals.

use super::ArrivalRecord;
use crate::units::Micros;

/// The arrivals of every packet of one direction, by packet number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// (number, arrival) in ascending order.
    arrivals: Vec<(u32, Micros)>,
}

impl Fates {
    /// From arrivals in the order in which they happened.
    pub fn new(arrivals: &[ArrivalRecord]) -> Fates {
        let mut arrivals: Vec<(u32, Micros)> = arrivals.iter().map(|a| (a.number, a.at)).collect();
        arrivals.sort_unstable();
        Fates { arrivals }
    }

    /// When the packet arrived: never if it was lost, more than once if it was duplicated.
    pub fn of(&self, number: u32) -> impl Iterator<Item = Micros> + '_ {
        let start = self.arrivals.partition_point(|&(n, _)| n < number);
        self.arrivals[start..].iter().take_while(move |&&(n, _)| n == number).map(|&(_, at)| at)
    }
}

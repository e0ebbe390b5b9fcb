//! Arrivals of packets by packet number.

use super::ArrivalRecord;
use crate::units::Micros;

/// The arrivals of all packets in one direction, by packet number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrivalTable {
    /// (number, arrival) in ascending order.
    arrivals: Vec<(u32, Micros)>,
}

impl ArrivalTable {
    /// Builds the index from arrivals in the order of time.
    pub fn new(arrivals: &[ArrivalRecord]) -> ArrivalTable {
        let mut arrivals: Vec<(u32, Micros)> = arrivals.iter().map(|a| (a.number, a.at)).collect();
        arrivals.sort_unstable();
        ArrivalTable { arrivals }
    }

    /// Returns the arrivals of a packet: none if it was lost, several if it was duplicated.
    pub fn of(&self, number: u32) -> impl Iterator<Item = Micros> + '_ {
        let start = self.arrivals.partition_point(|&(n, _)| n < number);
        self.arrivals[start..].iter().take_while(move |&&(n, _)| n == number).map(|&(_, at)| at)
    }
}

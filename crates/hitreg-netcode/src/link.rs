//! The links between clients and the server. A link delays, drops or duplicates packets, either modelled from a seed or
//! looked up in a recording. A model has delay, jitter, bursts of loss, reordering, duplication and bandwidth.

use serde::{Deserialize, Serialize};

use hitreg_log::rng::Rng;
use hitreg_log::units::{Micros, Seed};

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

    /// Returns the fate of a packet with these arrivals, in order.
    pub fn of(mut arrivals: impl Iterator<Item = Micros>) -> Fate {
        Fate { first: arrivals.next(), second: arrivals.next() }
    }

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
    outages: Vec<(Micros, Micros)>,
}

impl LinkWithOutages {
    /// Creates the link with outages from and to the given times in ms.
    pub fn new(model: ModelledLink, outages_ms: &[[f64; 2]]) -> LinkWithOutages {
        let outage = |[from, to]: &[f64; 2]| (Micros::from_ms_f64(*from), Micros::from_ms_f64(*to));
        LinkWithOutages { model, outages: outages_ms.iter().map(outage).collect() }
    }
}

impl Link for LinkWithOutages {
    fn send(&mut self, at: Micros, bytes: u16) -> Fate {
        let fate = self.model.send(at, bytes);
        if self.outages.iter().any(|(from, to)| (*from..*to).contains(&at)) { Fate::LOST } else { fate }
    }
}

/// The behaviour of one direction of a connection, as written in scenario files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkModel {
    /// The constant delay of every packet, from 0 to 10,000 ms.
    pub delay_ms: f64,
    /// The random delay in addition to `delay_ms`.
    pub jitter: Jitter,
    /// The model of packet loss.
    pub loss: Loss,
    /// The share of packets that arrive twice, from 0 to 1.
    pub duplicate: f64,
    /// The share of packets that are delayed so that later ones overtake them, from 0 to 1.
    pub reorder: f64,
    /// The extra delay of a reordered packet, from 0 to 10,000 ms; 20 by default.
    pub reorder_ms: f64,
    /// The bandwidth, for which packets queue, from 1 to 10^12 bytes/s; `None` is unlimited.
    pub rate_bytes_per_s: Option<f64>,
}

/// The distribution of the random delay; its parameter is from 0 to 10,000 ms. Jitter alone never reorders packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Jitter {
    /// No jitter.
    #[default]
    None,
    /// Uniform from 0 to this many ms.
    Uniform(f64),
    /// The absolute value of a normal distribution with this standard deviation in ms.
    Normal(f64),
    /// Exponential with this mean in ms, as the waiting time of a queue.
    Exponential(f64),
}

/// The model of packet loss. Probabilities are from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Independent loss with this probability.
    Random(f64),
    /// Bursts of loss (Gilbert 1960): a good and a bad state; all packets in the bad state are lost.
    Burst {
        /// The probability that a burst begins at a packet.
        enter: f64,
        /// The probability that a burst ends at a packet.
        leave: f64,
    },
}

/// A number of a link model is out of bounds.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("link: {what} cannot be {value}: it takes {takes}")]
pub struct ModelError {
    what: &'static str,
    value: f64,
    takes: &'static str,
}

impl Default for LinkModel {
    fn default() -> LinkModel {
        LinkModel {
            delay_ms: 0.0,
            jitter: Jitter::None,
            loss: Loss::None,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_ms: 20.0,
            rate_bytes_per_s: None,
        }
    }
}

impl LinkModel {
    /// Checks every number.
    ///
    /// # Errors
    /// Names the first number that is out of bounds.
    pub fn check(&self) -> Result<(), ModelError> {
        let jitter = match self.jitter {
            Jitter::None => 0.0,
            Jitter::Uniform(ms) | Jitter::Normal(ms) | Jitter::Exponential(ms) => ms,
        };
        let (enter, leave) = match self.loss {
            Loss::None => (0.0, 1.0),
            Loss::Random(p) => (p, 1.0),
            Loss::Burst { enter, leave } => (enter, leave),
        };
        let rate = self.rate_bytes_per_s.unwrap_or(1.0);
        for (what, value, greatest, takes) in [
            ("delay_ms", self.delay_ms, 10_000.0, "0 to 10000 ms"),
            ("jitter", jitter, 10_000.0, "0 to 10000 ms"),
            ("reorder_ms", self.reorder_ms, 10_000.0, "0 to 10000 ms"),
            ("loss", enter, 1.0, "a probability from 0 to 1"),
            ("loss.burst.leave", leave, 1.0, "a probability from 0 to 1"),
            ("duplicate", self.duplicate, 1.0, "a probability from 0 to 1"),
            ("reorder", self.reorder, 1.0, "a probability from 0 to 1"),
            ("rate_bytes_per_s", rate, 1e12, "at least 1 byte/s"),
        ] {
            if !(0.0..=greatest).contains(&value) || (what == "rate_bytes_per_s" && value < 1.0) {
                return Err(ModelError { what, value, takes });
            }
        }
        Ok(())
    }
}

/// A running [`LinkModel`].
#[derive(Clone, Debug)]
pub struct ModelledLink {
    model: LinkModel,
    rng: Rng,
    in_burst: bool,
    /// The time at which the line is free again.
    free_at: Micros,
    /// The latest arrival of all packets sent so far that were not reordered.
    last_arrival: Micros,
}

impl ModelledLink {
    /// Creates a link that draws its random numbers from `seed` and `stream`. Each direction of each connection has its
    /// own stream.
    pub fn new(model: LinkModel, seed: Seed, stream: u64) -> ModelledLink {
        let rng = Rng::new(seed, stream);
        ModelledLink { model, rng, in_burst: false, free_at: Micros(i64::MIN / 2), last_arrival: Micros(i64::MIN / 2) }
    }

    fn is_lost(&mut self) -> bool {
        match self.model.loss {
            Loss::None => false,
            Loss::Random(p) => self.rng.chance(p),
            Loss::Burst { enter, leave } => {
                let draw = self.rng.unit_f64();
                self.in_burst = if self.in_burst { draw >= leave } else { draw < enter };
                self.in_burst
            }
        }
    }

    fn jitter_ms(&mut self) -> f64 {
        match self.model.jitter {
            Jitter::None => 0.0,
            Jitter::Uniform(ms) => self.rng.unit_f64() * ms,
            Jitter::Normal(ms) => libm::fabs(self.rng.normal_f64()) * ms,
            Jitter::Exponential(ms) => -libm::log(1.0 - self.rng.unit_f64()) * ms,
        }
    }
}

impl Link for ModelledLink {
    fn send(&mut self, at: Micros, bytes: u16) -> Fate {
        // Every packet draws the same count of random numbers in the same order, so one packet's fate never shifts the
        // numbers of another.
        let lost = self.is_lost();
        let jitter_ms = self.jitter_ms();
        let duplicated = self.rng.chance(self.model.duplicate);
        let held_back = self.rng.chance(self.model.reorder);
        let starts = at.max(self.free_at);
        if let Some(rate) = self.model.rate_bytes_per_s {
            self.free_at = starts + Micros((f64::from(bytes) * 1_000_000.0 / rate) as i64);
        }
        if lost {
            return Fate::LOST;
        }
        let through = if self.model.rate_bytes_per_s.is_some() { self.free_at } else { at };
        let in_line = (through + Micros::from_ms_f64(self.model.delay_ms + jitter_ms)).max(self.last_arrival);
        let first = if held_back {
            in_line + Micros::from_ms_f64(self.model.reorder_ms)
        } else {
            self.last_arrival = in_line;
            in_line
        };
        Fate { first: Some(first), second: duplicated.then(|| first + Micros(500)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(model: LinkModel, packets: i64) -> Vec<(Micros, Fate)> {
        let mut link = ModelledLink::new(model, Seed(5), 0);
        (0..packets).map(|i| Micros::from_ms(10 * i)).map(|at| (at, link.send(at, 100))).collect()
    }

    fn losses(fates: &[(Micros, Fate)]) -> usize {
        fates.iter().filter(|(_, f)| f.first.is_none()).count()
    }

    #[test]
    fn a_constant_link_is_constant() {
        for (at, fate) in run(LinkModel { delay_ms: 40.0, ..LinkModel::default() }, 100) {
            assert_eq!(fate, Fate { first: Some(at + Micros::from_ms(40)), second: None });
        }
    }

    #[test]
    fn jitter_keeps_packets_in_line_and_reordering_does_not() {
        let order = |model| {
            let arrivals: Vec<Micros> = run(model, 2000).iter().filter_map(|(_, f)| f.first).collect();
            arrivals.windows(2).filter(|w| w[1] < w[0]).count()
        };
        let jitter = LinkModel { jitter: Jitter::Exponential(30.0), ..LinkModel::default() };
        assert_eq!(order(jitter.clone()), 0);
        assert!(order(LinkModel { reorder: 0.05, ..jitter }) > 50, "by the default delay");
    }

    #[test]
    fn burst_loss_has_the_given_rate_in_runs() {
        let burst = run(LinkModel { loss: Loss::Burst { enter: 0.02, leave: 0.25 }, ..LinkModel::default() }, 20_000);
        let random = run(LinkModel { loss: Loss::Random(0.074), ..LinkModel::default() }, 20_000);
        for fates in [&burst, &random] {
            assert!((1100..1900).contains(&losses(fates)), "{}", losses(fates));
        }
        let runs = |fates: &[(Micros, Fate)]| {
            fates.windows(2).filter(|w| w[0].1.first.is_some() && w[1].1.first.is_none()).count()
        };
        assert!(runs(&burst) * 2 < runs(&random), "{} {}", runs(&burst), runs(&random));
    }

    #[test]
    fn packets_queue_for_bandwidth() {
        let fates = run(LinkModel { rate_bytes_per_s: Some(5_000.0), ..LinkModel::default() }, 3);
        let arrivals: Vec<i64> = fates.iter().filter_map(|(_, f)| f.first).map(|a| a.0 / 1000).collect();
        assert_eq!(arrivals, [20, 40, 60]);
    }

    #[test]
    fn values_out_of_bounds_are_refused() {
        assert!(LinkModel { duplicate: 1.5, ..LinkModel::default() }.check().is_err());
        assert!(LinkModel { delay_ms: f64::NAN, ..LinkModel::default() }.check().is_err());
        assert!(LinkModel { rate_bytes_per_s: Some(0.0), ..LinkModel::default() }.check().is_err());
        assert!(LinkModel::default().check().is_ok());
    }
}

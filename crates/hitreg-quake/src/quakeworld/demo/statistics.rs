//! Statistics of a demo: counts, losses and round trips.

use serde::{Deserialize, Serialize};

use super::recording::{DemoEvent, QuakeWorldDemo, ServerPacket};
use crate::quakeworld::movement::BUTTON_ATTACK;

/// Counts over all levels of a demo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Sent usercmds.
    pub usercmds: usize,
    /// Usercmds with the fire button held.
    pub firing: usize,
    /// Packets with the recording player's state.
    pub packets: usize,
    /// States of other players.
    pub other_states: usize,
    /// Server packets that never arrived: gaps in their sequence, including choked ones.
    pub lost: usize,
    /// Lost packets that the server skipped because of the rate limit.
    pub choked: usize,
    /// Milliseconds from sending a usercmd to the arrival of its ack.
    pub rtt_ms: DemoPercentiles,
}

/// Nearest-rank percentiles; 0 without measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DemoPercentiles {
    /// The 5th percentile.
    pub p5: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl DemoPercentiles {
    /// Returns the nearest-rank percentiles of `values`.
    pub fn of(mut values: Vec<f64>) -> DemoPercentiles {
        values.sort_by(f64::total_cmp);
        let rank = |percent: usize| {
            let index = (values.len() * percent / 100).min(values.len().saturating_sub(1));
            values.get(index).copied().unwrap_or(0.0)
        };
        DemoPercentiles { p5: rank(5), p50: rank(50), p95: rank(95), p99: rank(99) }
    }
}

impl QuakeWorldDemo {
    /// Returns the statistics of the demo.
    pub fn statistics(&self) -> Statistics {
        let firing = self.commands.iter().filter(|sent| sent.cmd.buttons & BUTTON_ATTACK != 0).count();
        let states: Vec<_> = self.packets.iter().filter(|packet| packet.own.is_some()).collect();
        let gaps = states.windows(2).map(|pair| {
            let lost = pair[1].sequence.saturating_sub(pair[0].sequence).saturating_sub(1) as usize;
            (lost, lost.min(self.choked_in(pair[1])))
        });
        let (lost, choked) = gaps.fold((0, 0), |sum, gap| (sum.0 + gap.0, sum.1 + gap.1));
        Statistics {
            usercmds: self.commands.len(),
            firing,
            packets: states.len(),
            other_states: self.others.len(),
            lost,
            choked,
            rtt_ms: DemoPercentiles::of(self.round_trips_ms()),
        }
    }

    fn choked_in(&self, packet: &ServerPacket) -> usize {
        let choked = packet.events.of(&self.events).iter().map(|event| match event {
            DemoEvent::Choked(packets) => usize::from(*packets),
            _ => 0,
        });
        choked.sum()
    }

    fn round_trips_ms(&self) -> Vec<f64> {
        let spawned = self.packets.iter().filter(|packet| packet.own.is_some());
        let acked = spawned.filter_map(|packet| {
            let index = self.commands.binary_search_by_key(&packet.ack, |sent| sent.seq).ok()?;
            Some((f64::from(packet.time_s) - f64::from(self.commands[index].time_s)) * 1_000.0)
        });
        acked.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        let p = DemoPercentiles::of((1..=100).rev().map(f64::from).collect());
        assert_eq!((p.p5, p.p50, p.p95, p.p99), (6.0, 51.0, 96.0, 100.0));
        assert_eq!(DemoPercentiles::of(vec![]), DemoPercentiles::default());
    }
}

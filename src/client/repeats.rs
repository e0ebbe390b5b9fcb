//! How many usercmds a packet holds: a fixed number, or as many as the line calls for (NeREIDS's plan of 4:1 to 1:1).

use crate::pacing::{Redundancy, RedundancyOptions};
use crate::packet::ClientPacket;
use crate::settings::Settings;
use crate::units::Micros;

pub(super) struct Repeats {
    most: usize,
    adaptive: Option<RedundancyOptions>,
    /// From the first packet on.
    redundancy: Option<Redundancy>,
}

impl Repeats {
    pub(super) fn new(settings: &Settings) -> Repeats {
        let options = RedundancyOptions { interval: settings.client.cmd_hz.interval() };
        Repeats {
            most: settings.client.redundancy as usize,
            adaptive: settings.client.adaptive_redundancy.then_some(options),
            redundancy: None,
        }
    }

    /// How many usercmds the packet at `now` holds.
    pub(super) fn level(&mut self, now: Micros) -> usize {
        let Some(options) = self.adaptive else { return self.most };
        let redundancy = self.redundancy.get_or_insert_with(|| Redundancy::new(options, now));
        usize::from(redundancy.level(now)).min(self.most)
    }

    pub(super) fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16) {
        if let Some(redundancy) = &mut self.redundancy {
            redundancy.handle_sent(bytes.into(), packet.commands.len());
        }
    }

    /// Takes note of a snapshot that came, and how many before it did not.
    pub(super) fn handle_arrival(&mut self, lost: u32) {
        if let Some(redundancy) = &mut self.redundancy {
            redundancy.handle_arrivals(1, lost);
        }
    }

    pub(super) fn handle_round_trip(&mut self, now: Micros, round_trip: Micros) {
        if let Some(redundancy) = &mut self.redundancy {
            redundancy.handle_round_trip(now, round_trip);
        }
    }
}

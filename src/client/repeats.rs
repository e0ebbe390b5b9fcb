//! How many usercmds a packet holds: a fixed number, or as many as the line calls for (NeREIDS's plan of 4:1 to 1:1). What the
//! line is like the server's echoes of packets say: acks would count the time for which usercmds wait for their tick as time on
//! the way.

use std::collections::VecDeque;

use crate::pacing::{Redundancy, RedundancyOptions};
use crate::packet::{ClientPacket, Echo};
use crate::settings::Settings;
use crate::units::Micros;

/// Of so many packets it is remembered when they left; an echo of an older one is of no use.
const REMEMBERED: usize = 256;

pub(super) struct Repeats {
    most: usize,
    adaptive: Option<RedundancyOptions>,
    /// From the first packet on.
    redundancy: Option<Redundancy>,
    /// When the last packets left, by number.
    sent: VecDeque<(u32, Micros)>,
    /// The newest packet that an echo was of, and how many were lost by then.
    echoed: Option<(u32, u16)>,
}

impl Repeats {
    pub(super) fn new(settings: &Settings) -> Repeats {
        let options = RedundancyOptions { interval: settings.client.cmd_hz.interval() };
        Repeats {
            most: settings.client.redundancy as usize,
            adaptive: settings.client.adaptive_redundancy.then_some(options),
            redundancy: None,
            sent: VecDeque::new(),
            echoed: None,
        }
    }

    /// How many usercmds the packet of this number holds, which leaves at `now`.
    pub(super) fn of_packet(&mut self, now: Micros, number: u32) -> usize {
        let Some(options) = self.adaptive else { return self.most };
        self.sent.push_back((number, now));
        if self.sent.len() > REMEMBERED {
            self.sent.pop_front();
        }
        let redundancy = self.redundancy.get_or_insert_with(|| Redundancy::new(options, now));
        usize::from(redundancy.level(now)).min(self.most)
    }

    pub(super) fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16) {
        if let Some(redundancy) = &mut self.redundancy {
            redundancy.handle_sent(bytes.into(), packet.commands.len());
        }
    }

    /// Takes what the server says of the newest packet that it has; once for each packet.
    pub(super) fn handle_echo(&mut self, now: Micros, echo: Echo) {
        let Some(redundancy) = &mut self.redundancy else { return };
        let sent = self.sent.iter().rev().find(|(number, _)| *number as u16 == echo.packet);
        let Some((number, sent)) =
            sent.copied().filter(|(number, _)| self.echoed.is_none_or(|(last, _)| *number > last))
        else {
            return;
        };
        if let Some((last, lost_by_then)) = self.echoed {
            let lost = u32::from(echo.lost.wrapping_sub(lost_by_then)).min(number - last - 1);
            redundancy.handle_arrivals(number - last - lost, lost);
        }
        self.echoed = Some((number, echo.lost));
        redundancy.handle_round_trip(now, now - sent - Micros::from_ms(echo.held_ms.into()));
    }
}

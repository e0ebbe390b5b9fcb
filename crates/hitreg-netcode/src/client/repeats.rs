//! The number of usercmds in a packet: a fixed number, or one that adapts to the line (NeREIDS's plan of 4:1 to 1:1).
//! The line is measured by the server's packet echoes. Acks would include the time for which usercmds wait for their
//! tick.

use std::collections::VecDeque;

use crate::pacing::Redundancy;
use crate::packet::{ClientPacket, Echo};
use crate::push_bounded;
use crate::settings::Settings;
use crate::state::state;
use hitreg_log::units::Micros;

/// The number of packets whose send time is kept. Echoes of older packets are ignored.
const REMEMBERED: usize = 256;

pub(super) struct RepeatCheck {
    most: usize,
    /// The time between packets, if their number of usercmds adapts to the line.
    adaptive: Option<Micros>,
    /// `None` before the first packet.
    redundancy: Option<Redundancy>,
    /// The send times of the last packets, by number.
    sent: VecDeque<(u32, Micros)>,
    /// The newest packet echoed, and the number of packets lost up to it.
    echoed: Option<(u32, u16)>,
}

state!(RepeatCheck { redundancy, sent, echoed } but { most, adaptive } if is_valid);

impl RepeatCheck {
    pub(super) fn new(settings: &Settings) -> RepeatCheck {
        RepeatCheck {
            most: settings.client.redundancy as usize,
            adaptive: settings.client.adaptive_redundancy.then(|| settings.client.cmd_hz.interval()),
            redundancy: None,
            sent: VecDeque::new(),
            echoed: None,
        }
    }

    fn is_valid(&self) -> bool {
        let in_order = self.sent.iter().zip(self.sent.iter().skip(1)).all(|(a, b)| a.0 < b.0);
        let is_fixed = self.adaptive.is_none() && (self.redundancy.is_some() || !self.sent.is_empty());
        in_order && !is_fixed && self.sent.len() <= REMEMBERED
    }

    /// Returns the number of usercmds in packet `number`, which is sent at `now`.
    pub(super) fn of_packet(&mut self, now: Micros, number: u32) -> usize {
        let Some(interval) = self.adaptive else { return self.most };
        push_bounded(&mut self.sent, (number, now), REMEMBERED);
        let redundancy = self.redundancy.get_or_insert_with(|| Redundancy::new(interval, now));
        usize::from(redundancy.level(now)).min(self.most)
    }

    pub(super) fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16) {
        if let Some(redundancy) = &mut self.redundancy {
            redundancy.handle_sent(bytes.into(), packet.commands.len());
        }
    }

    /// Takes the server's echo of the newest packet that it received. Counts each packet once.
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

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::units::SnapshotSeq;
    use hitreg_log::usercmd::Usercmd;

    fn adaptive() -> RepeatCheck {
        let mut settings = Settings::preset("nereids").expect("a preset");
        settings.set("client.adaptive_redundancy", "true").expect("a setting");
        RepeatCheck::new(&settings)
    }

    /// Returns the state after this many packets, one every 10 ms, and then `told`.
    fn after(packets: u32, then: impl FnOnce(&mut RepeatCheck)) -> String {
        let mut repeats = adaptive();
        for number in 1..=packets {
            repeats.of_packet(Micros::from_ms(10 * i64::from(number)), number);
        }
        then(&mut repeats);
        format!("{:?}", repeats.redundancy)
    }

    fn expected(packets: u32, then: impl FnOnce(&mut Redundancy)) -> String {
        after(packets, |repeats| then(repeats.redundancy.as_mut().expect("a packet left")))
    }

    #[test]
    fn echoes_give_arrivals_losses_and_delays() {
        let echo = |packet, lost| Echo { packet, held_ms: 3, lost };
        let heard = |echoes: &'static [(u16, u16)]| {
            after(20, move |repeats| {
                echoes
                    .iter()
                    .for_each(|(packet, lost)| repeats.handle_echo(Micros::from_ms(500), echo(*packet, *lost)));
            })
        };
        let round_trip = |packet: i64| Micros::from_ms(500 - 10 * packet - 3);
        let known = |arrivals: &'static [(i64, Option<(u32, u32)>)]| {
            expected(20, move |redundancy| {
                for (packet, arrived) in arrivals {
                    arrived.iter().for_each(|(came, lost)| redundancy.handle_arrivals(*came, *lost));
                    redundancy.handle_round_trip(Micros::from_ms(500), round_trip(*packet));
                }
            })
        };
        assert_eq!(heard(&[(2, 0), (12, 3)]), known(&[(2, None), (12, Some((7, 3)))]));
        // At most as many packets were lost as there are between the two. An echo of an older packet is ignored.
        assert_eq!(heard(&[(2, 0), (5, 60), (4, 90)]), known(&[(2, None), (5, Some((1, 2)))]));
        // The count of lost packets wraps.
        assert_eq!(heard(&[(2, u16::MAX), (12, 1)]), known(&[(2, None), (12, Some((8, 2)))]));
    }

    #[test]
    fn the_given_number_of_packets_is_remembered() {
        let echo = |packet| Echo { packet, held_ms: 0, lost: 0 };
        let heard = |packet| after(300, move |repeats| repeats.handle_echo(Micros::from_s(9), echo(packet)));
        let nothing = after(300, |_| ());
        assert_eq!(heard(300 - REMEMBERED as u16), nothing);
        assert_ne!(heard(301 - REMEMBERED as u16), nothing);
    }

    #[test]
    fn packet_sizes_are_those_of_the_datagrams() {
        let packet = ClientPacket { number: 1, ack: SnapshotSeq(0), commands: vec![Usercmd::default(); 2] };
        let sent = after(1, |repeats| repeats.handle_sent(&packet, 90));
        assert_eq!(sent, expected(1, |redundancy| redundancy.handle_sent(90, 2)));
        assert_ne!(sent, after(1, |_| ()));
    }
}

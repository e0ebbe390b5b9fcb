//! What a client adapts to its connection: its clock, the server times of its usercmds, and how many usercmds a packet
//! repeats.

use std::collections::VecDeque;

use crate::pacing::{Redundancy, Steering, SteeringOptions};
use crate::packet::{ClientPacket, Echo, Snapshot};
use crate::push_bounded;
use crate::settings::{ClockMode, Schedule, Settings};
use crate::state::{State, StateError, StateReader, StateValue, StateWriter, check, state};
use hitreg_log::units::{CommandSeq, Micros};

// The thresholds and steps of Quake III's `CL_AdjustTimeDelta`.
const RESET_ABOVE: Micros = Micros::from_ms(500);
const HALVE_ABOVE: Micros = Micros::from_ms(100);
const STEP_UP: Micros = Micros::from_ms(1);
const STEP_DOWN: Micros = Micros::from_ms(-2);

/// The client's clock. In adopt mode, "the client adopts that value as its clock" (Bernier 2001, footnote 6), where the
/// value is the server's clock in each update. The clock is therefore behind the server's by the latency. In drift
/// mode, it moves towards that value by the step sizes of Quake III.
pub(super) struct ServerClock {
    mode: ClockMode,
    /// Server time minus local time.
    offset: Option<Micros>,
    round_trip: Option<Micros>,
}

state!(ServerClock { offset, round_trip } but { mode });

impl ServerClock {
    pub(super) fn new(mode: ClockMode) -> ServerClock {
        ServerClock { mode, offset: None, round_trip: None }
    }

    pub(super) fn handle_update(&mut self, now: Micros, server_time: Micros) {
        let newest = server_time - now;
        self.offset = Some(match (self.mode, self.offset) {
            (ClockMode::Adopt, _) | (ClockMode::Drift, None) => newest,
            (ClockMode::Drift, Some(offset)) => adjust_offset(offset, newest),
        });
    }

    /// Sets the clock to `server_time` at `now`, if an update has arrived.
    pub(super) fn set(&mut self, now: Micros, server_time: Micros) {
        self.offset = self.offset.map(|_| server_time - now);
    }

    pub(super) fn handle_round_trip(&mut self, round_trip: Micros) {
        self.round_trip = Some(round_trip);
    }

    /// Returns the server time on the clock; `None` before the first update.
    pub(super) fn read(&self, now: Micros) -> Option<Micros> {
        self.offset.map(|offset| now + offset)
    }

    /// Returns an estimate of how far the clock is behind the server's: half the round trip.
    pub(super) fn latency(&self) -> Micros {
        Micros(self.round_trip().0 / 2)
    }

    /// Returns the time between making and acking the last acked usercmd; zero before the first ack.
    pub(super) fn round_trip(&self) -> Micros {
        self.round_trip.unwrap_or(Micros::ZERO)
    }
}

fn adjust_offset(offset: Micros, newest: Micros) -> Micros {
    let error = newest - offset;
    let distance = Micros(error.0.abs());
    if distance > RESET_ABOVE {
        newest
    } else if distance > HALVE_ABOVE {
        offset + Micros(error.0 / 2)
    } else if error.0 > 0 {
        offset + STEP_UP.min(error)
    } else {
        offset + STEP_DOWN.max(error)
    }
}

/// The server times that usercmds are stamped with. When usercmds run on arrival, it is the client's clock, as in Quake
/// III. When they wait for their tick, it is the tick's time. That time comes from a clock ahead of the server's, which
/// the server's calibration helper steers (NeREIDS).
pub(super) struct InputTime {
    options: Option<SteeringOptions>,
    /// `None` before the first update.
    steering: Option<Steering>,
    /// A slowly decaying maximum of recent round trips.
    round_trip: Micros,
    last: Micros,
}

impl State for InputTime {
    fn save(&self, to: &mut StateWriter) {
        let InputTime { options: _, steering, round_trip, last } = self;
        steering.is_some().put(to);
        steering.iter().for_each(|steering| steering.save(to));
        (*round_trip, *last).put(to);
    }

    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError> {
        let is_steered = bool::get(from)?;
        check(!is_steered || self.options.is_some(), "InputTime")?;
        let steering = |options| Steering::new(options, Micros::ZERO, Micros::ZERO);
        self.steering = self.options.filter(|_| is_steered).map(steering);
        self.steering.iter_mut().try_for_each(|steering| steering.restore(from))?;
        (self.round_trip, self.last) = StateValue::get(from)?;
        Ok(())
    }
}

impl InputTime {
    pub(super) fn new(settings: &Settings) -> InputTime {
        let options = SteeringOptions {
            tick: settings.server.tick_hz.interval(),
            frame: settings.client.cmd_hz.interval(),
            lead: Micros::from_ms(settings.client.lead_ms),
        };
        InputTime {
            options: (settings.server.schedule == Schedule::Tick).then_some(options),
            steering: None,
            round_trip: Micros::ZERO,
            last: Micros::ZERO,
        }
    }

    /// Takes the timing feedback of a new snapshot. `made` returns when a usercmd was made, and its server time.
    pub(super) fn handle_update<B>(
        &mut self,
        now: Micros,
        snapshot: &Snapshot<B>,
        made: impl Fn(CommandSeq) -> Option<(Micros, Micros)>,
    ) {
        let Some(options) = self.options else { return };
        let offset = snapshot.frame.server_time - now;
        let steering = self.steering.get_or_insert_with(|| Steering::new(options, offset + options.lead, now));
        if let Some(helper_ms) = snapshot.helper_ms {
            steering.handle_helper(now, helper_ms, self.round_trip);
        }
        for warning in &snapshot.warnings {
            if let Some((made_at, server_time)) = made(warning.command) {
                // The clock may have begun or moved since the usercmd was made.
                let moved = steering.read(made_at) - server_time;
                steering.handle_warning(now, warning.difference, moved, self.round_trip);
            }
        }
    }

    /// Takes the time from making a usercmd to its ack. This includes the wait for its tick. The clock may therefore
    /// wait too long before it assumes that a correction has taken effect, but never too short.
    pub(super) fn handle_round_trip(&mut self, round_trip: Micros) {
        // A longer round trip counts immediately; a shorter one counts by an eighth.
        let shorter = Micros((self.round_trip.0 * 7 + round_trip.0) / 8);
        self.round_trip = round_trip.max(shorter);
    }

    /// Returns the tick time for a usercmd made at `now`; `None` when usercmds run on arrival.
    pub(super) fn tick_time(&self, now: Micros) -> Option<Micros> {
        self.steering.as_ref().map(|steering| self.last.max(steering.read(now)))
    }

    /// Returns the server time for a usercmd made at `now`, when the client's clock shows `clock`. It never decreases.
    pub(super) fn stamp_usercmd(&mut self, now: Micros, clock: Micros) -> Micros {
        let Some(at) = self.tick_time(now) else { return clock };
        self.last = at;
        at
    }
}

/// The number of packets whose send time is kept. Echoes of older packets are ignored.
const SEND_TIMES_KEPT: usize = 256;

/// The number of usercmds in a packet: a fixed number, or one that adapts to the line (NeREIDS's plan of 4:1 to 1:1).
/// The line is measured by the server's packet echoes. Acks would include the time for which usercmds wait for their
/// tick.
pub(super) struct PacketRedundancy {
    usercmds_max: usize,
    /// The time between packets, if their number of usercmds adapts to the line.
    adaptive_interval: Option<Micros>,
    /// `None` before the first packet.
    redundancy: Option<Redundancy>,
    /// The send times of the last packets, by number.
    sent: VecDeque<(u32, Micros)>,
    /// The newest packet echoed, and the number of packets lost up to it.
    echoed: Option<(u32, u16)>,
}

state!(PacketRedundancy { redundancy, sent, echoed } but { usercmds_max, adaptive_interval } if is_valid);

impl PacketRedundancy {
    pub(super) fn new(settings: &Settings) -> PacketRedundancy {
        PacketRedundancy {
            usercmds_max: settings.client.redundancy as usize,
            adaptive_interval: settings.client.adaptive_redundancy.then(|| settings.client.cmd_hz.interval()),
            redundancy: None,
            sent: VecDeque::new(),
            echoed: None,
        }
    }

    fn is_valid(&self) -> bool {
        let in_order = self.sent.iter().zip(self.sent.iter().skip(1)).all(|(a, b)| a.0 < b.0);
        let is_fixed = self.adaptive_interval.is_none() && (self.redundancy.is_some() || !self.sent.is_empty());
        in_order && !is_fixed && self.sent.len() <= SEND_TIMES_KEPT
    }

    /// Returns the number of usercmds in packet `number`, which is sent at `now`.
    pub(super) fn usercmds_in_packet(&mut self, now: Micros, number: u32) -> usize {
        let Some(interval) = self.adaptive_interval else { return self.usercmds_max };
        push_bounded(&mut self.sent, (number, now), SEND_TIMES_KEPT);
        let redundancy = self.redundancy.get_or_insert_with(|| Redundancy::new(interval, now));
        usize::from(redundancy.level(now)).min(self.usercmds_max)
    }

    pub(super) fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16) {
        if let Some(redundancy) = &mut self.redundancy {
            redundancy.handle_sent(bytes.into(), packet.commands.len());
        }
    }

    /// Takes the server's echo of the newest packet that it received. Counts each packet once.
    pub(super) fn handle_echo(&mut self, now: Micros, echo: Echo) {
        let Some(redundancy) = &mut self.redundancy else { return };
        let is_newer = |number: u32| self.echoed.is_none_or(|(last, _)| number > last);
        let sent = self.sent.iter().rev().find(|(number, _)| *number as u16 == echo.packet);
        let Some((number, sent)) = sent.copied().filter(|(number, _)| is_newer(*number)) else { return };
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
    use std::sync::Arc;

    use crate::history::Frame;
    use hitreg_log::record::OutOfSequence;
    use hitreg_log::units::{SnapshotSeq, Tick};
    use hitreg_log::usercmd::Usercmd;

    #[test]
    fn adopting_follows_every_update() {
        let mut clock = ServerClock::new(ClockMode::Adopt);
        assert_eq!(clock.read(Micros(5)), None);
        clock.handle_update(Micros(1_000), Micros(900));
        assert_eq!(clock.read(Micros(1_500)), Some(Micros(1_400)));
        clock.handle_update(Micros(2_000), Micros(1_700));
        assert_eq!(clock.read(Micros(2_000)), Some(Micros(1_700)));
    }

    #[test]
    fn drifting_moves_in_small_steps_unless_the_error_is_large() {
        let mut clock = ServerClock::new(ClockMode::Drift);
        let shown_after = |clock: &mut ServerClock, update_ms| {
            clock.handle_update(Micros::ZERO, Micros::from_ms(update_ms));
            clock.read(Micros::ZERO).expect("an update came").0 / 1000
        };
        assert_eq!(shown_after(&mut clock, 0), 0);
        assert_eq!(shown_after(&mut clock, 30), 1);
        assert_eq!(shown_after(&mut clock, -30), -1);
        assert_eq!(shown_after(&mut clock, 199), 99);
        assert_eq!(shown_after(&mut clock, 2_000), 2_000);
        // The clock can only have moved by the small steps and the halvings.
        assert_eq!(shown_after(&mut clock, 2_100), 2_001);
        assert_eq!(shown_after(&mut clock, 2_501), 2_251);
    }

    #[test]
    fn a_longer_round_trip_counts_at_once_and_a_shorter_one_by_an_eighth() {
        let mut time = InputTime::new(&Settings::default());
        let mut after = |ms| {
            time.handle_round_trip(Micros::from_ms(ms));
            time.round_trip.0 / 1000
        };
        assert_eq!([after(80), after(0), after(14), after(200)], [80, 70, 63, 200]);
    }

    /// The server knows the helper from many packets, and warns of one that was 8 ticks late.
    #[test]
    fn a_warning_moves_the_clock_only_before_the_first_helper() {
        let lead_ms = i16::try_from(Settings::default().client.lead_ms).unwrap();
        let moved_by_warning = |helpers: [Option<i16>; 2]| {
            let mut settings = Settings::default();
            settings.server.schedule = Schedule::Tick;
            let mut time = InputTime::new(&settings);
            let frame = Frame::<()> { tick: Tick(1), server_time: Micros::ZERO, entities: Vec::new() };
            let mut snapshot = Snapshot::new(SnapshotSeq(1), CommandSeq(0), Arc::new(frame));
            snapshot.helper_ms = helpers[0];
            let made = |_| Some((Micros::ZERO, Micros::from_ms(lead_ms.into())));
            time.handle_update(Micros::ZERO, &snapshot, made);
            let before = time.tick_time(Micros::ZERO);
            snapshot.helper_ms = helpers[1];
            snapshot.warnings = vec![OutOfSequence { command: CommandSeq(1), difference: -8 }];
            time.handle_update(Micros::ZERO, &snapshot, made);
            time.tick_time(Micros::ZERO) != before
        };
        let known = Some(lead_ms);
        assert!(moved_by_warning([None, None]));
        assert_eq!([[None, known], [known, known], [known, None]].map(moved_by_warning), [false; 3]);
    }

    fn adaptive() -> PacketRedundancy {
        let mut settings = Settings::preset("nereids").expect("a preset");
        settings.set("client.adaptive_redundancy", "true").expect("a setting");
        PacketRedundancy::new(&settings)
    }

    /// Returns the state after this many packets, one every 10 ms, and then `told`.
    fn after(packets: u32, then: impl FnOnce(&mut PacketRedundancy)) -> String {
        let mut repeats = adaptive();
        for number in 1..=packets {
            repeats.usercmds_in_packet(Micros::from_ms(10 * i64::from(number)), number);
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
        assert_eq!(heard(300 - SEND_TIMES_KEPT as u16), nothing);
        assert_ne!(heard(301 - SEND_TIMES_KEPT as u16), nothing);
    }

    #[test]
    fn packet_sizes_are_those_of_the_datagrams() {
        let packet = ClientPacket { number: 1, ack: SnapshotSeq(0), commands: vec![Usercmd::default(); 2] };
        let sent = after(1, |repeats| repeats.handle_sent(&packet, 90));
        assert_eq!(sent, expected(1, |redundancy| redundancy.handle_sent(90, 2)));
        assert_ne!(sent, after(1, |_| ()));
    }
}

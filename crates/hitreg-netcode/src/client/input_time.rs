//! The server times that usercmds are stamped with. When usercmds run on arrival, it is the client's clock, as in Quake
//! III. When they wait for their tick, it is the tick's time. That time comes from a clock ahead of the server's, which
//! the server's calibration helper steers (NeREIDS).

use crate::pacing::{Steering, SteeringOptions};
use crate::packet::Snapshot;
use crate::settings::Settings;
use crate::state::{State, StateError, StateReader, StateValue, StateWriter, check};
use hitreg_log::units::{CommandSeq, Micros};

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
            options: settings.stamps_ticks().then_some(options),
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
    pub(super) fn of_tick(&self, now: Micros) -> Option<Micros> {
        self.steering.as_ref().map(|steering| self.last.max(steering.read(now)))
    }

    /// Returns the server time for a usercmd made at `now`, when the client's clock shows `clock`. It never decreases.
    pub(super) fn of_command(&mut self, now: Micros, clock: Micros) -> Micros {
        let Some(at) = self.of_tick(now) else { return clock };
        self.last = at;
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Frame;
    use crate::settings::ClockMode;
    use hitreg_log::record::OutOfSequence;
    use hitreg_log::units::{CommandSeq, SnapshotSeq, Tick};
    use std::sync::Arc;

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
            settings.client.clock = ClockMode::Calibrated;
            let mut time = InputTime::new(&settings);
            let frame = Frame::<()> { tick: Tick(1), server_time: Micros::ZERO, entities: Vec::new() };
            let mut snapshot = Snapshot::new(SnapshotSeq(1), CommandSeq(0), Arc::new(frame));
            snapshot.helper_ms = helpers[0];
            let made = |_| Some((Micros::ZERO, Micros::from_ms(lead_ms.into())));
            time.handle_update(Micros::ZERO, &snapshot, made);
            let before = time.of_tick(Micros::ZERO);
            snapshot.helper_ms = helpers[1];
            snapshot.warnings = vec![OutOfSequence { command: CommandSeq(1), difference: -8 }];
            time.handle_update(Micros::ZERO, &snapshot, made);
            time.of_tick(Micros::ZERO) != before
        };
        let known = Some(lead_ms);
        assert!(moved_by_warning([None, None]));
        assert_eq!([[None, known], [known, known], [known, None]].map(moved_by_warning), [false; 3]);
    }
}

//! The client's clock. In adopt mode, "the client adopts that value as its clock" (Bernier 2001, footnote 6), where the
//! value is the server's clock in each update. The clock is therefore behind the server's by the latency. In drift
//! mode, it moves towards that value by the step sizes of Quake III.

use crate::settings::ClockMode;
use crate::state::state;
use hitreg_log::units::Micros;

const RESET_ABOVE: Micros = Micros::from_ms(500);
const HALVE_ABOVE: Micros = Micros::from_ms(100);
const STEP_UP: Micros = Micros::from_ms(1);
const STEP_DOWN: Micros = Micros::from_ms(-2);

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
            (ClockMode::Adopt | ClockMode::Calibrated, _) | (ClockMode::Drift, None) => newest,
            (ClockMode::Drift, Some(offset)) => drift(offset, newest),
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

fn drift(offset: Micros, newest: Micros) -> Micros {
    let off = newest - offset;
    let distance = Micros(off.0.abs());
    if distance > RESET_ABOVE {
        newest
    } else if distance > HALVE_ABOVE {
        offset + Micros(off.0 / 2)
    } else if off.0 > 0 {
        offset + STEP_UP.min(off)
    } else {
        offset + STEP_DOWN.max(off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

//! The order in which a live server takes datagrams and computes ticks.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::LiveError;
use super::socket::{LOOK_UP_EVERY, ReceivedDatagram, WAITING_DATAGRAMS, receive};
use hitreg_log::units::Micros;

/// A tick that is late by this much follows a stall of the whole process.
const STALL: Micros = Micros::from_ms(50);
/// After a stall, the server waits this long for the thread that reads the socket.
const READER_WAKES: Micros = Micros::from_ms(10);

/// What the server does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ServerTurn {
    /// It computes the tick that is due.
    Tick,
    /// It handles a datagram.
    Datagram(ReceivedDatagram),
    /// It checks whether the session is over.
    Idle,
}

/// Chooses the server's turns. A tick that is late by an interval or by [`STALL`] waits for the datagrams that arrived before
/// it: their usercmds may use the time that the tick covers. Their number is limited, so a flood cannot stop the ticks.
pub(super) struct TurnOrder {
    /// The tick interval.
    interval: Micros,
    /// The time at which the late tick was noticed.
    late_since: Option<Micros>,
    /// The number of datagrams that went before the late tick.
    taken: usize,
}

impl TurnOrder {
    pub(super) fn new(interval: Micros) -> TurnOrder {
        TurnOrder { interval, late_since: None, taken: 0 }
    }

    /// Returns the turn at `now`, when the next tick is due at `due`. Waits for a datagram until then.
    ///
    /// # Errors
    /// When the reader thread has ended.
    pub(super) fn next(
        &mut self,
        inbox: &Receiver<ReceivedDatagram>,
        now: Micros,
        due: Micros,
    ) -> Result<ServerTurn, LiveError> {
        let late = now - due;
        if late < Micros::ZERO {
            let received = receive(inbox, duration(due - now).min(LOOK_UP_EVERY))?;
            return Ok(received.map_or(ServerTurn::Idle, ServerTurn::Datagram));
        }
        if late >= self.interval.min(STALL) && self.taken < WAITING_DATAGRAMS {
            let since = *self.late_since.get_or_insert(now);
            let wait = if since - due >= STALL { since + READER_WAKES - now } else { Micros::ZERO };
            if let Some(datagram) = receive(inbox, duration(wait))? {
                self.taken += 1;
                return Ok(ServerTurn::Datagram(datagram));
            }
        }
        (self.late_since, self.taken) = (None, 0);
        Ok(ServerTurn::Tick)
    }
}

/// Returns a duration; zero for a negative one.
fn duration(of: Micros) -> Duration {
    Duration::from_micros(of.0.max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::mpsc::sync_channel;

    const INTERVAL: Micros = Micros::from_ms(16);

    /// Returns the number of datagrams that the server takes before a tick that is late, of so many that wait.
    fn taken_before_tick(waiting: usize, late_ms: i64) -> usize {
        let (sender, inbox) = sync_channel(waiting.max(1));
        let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        (0..waiting).for_each(|_| sender.send((from, vec![7])).expect("there is room"));
        let mut order = TurnOrder::new(INTERVAL);
        // A second late tick has the same limit.
        let mut taken = [0; 2];
        for taken in &mut taken {
            let due = Micros::from_s(5);
            while let ServerTurn::Datagram(_) =
                order.next(&inbox, due + Micros::from_ms(late_ms), due).expect("a sender")
            {
                *taken += 1;
            }
        }
        assert_eq!(taken[1], (waiting - taken[0]).min(taken[0]), "{waiting} waiting, {late_ms} ms late");
        taken[0]
    }

    #[test]
    fn a_late_tick_runs_what_arrived_before_it() {
        assert_eq!([16, 49, 50, 1_500].map(|late_ms| taken_before_tick(100, late_ms)), [100; 4]);
        assert_eq!(taken_before_tick(0, 1_500), 0);
    }

    #[test]
    fn a_flood_delays_no_tick_for_long() {
        assert_eq!(taken_before_tick(2 * WAITING_DATAGRAMS, 1_500), WAITING_DATAGRAMS);
        assert_eq!([0, 15].map(|late_ms| taken_before_tick(100, late_ms)), [0; 2]);
    }

    #[test]
    fn datagrams_are_taken_until_the_tick_is_due() {
        let (sender, inbox) = sync_channel(1);
        let datagram = (SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), vec![7]);
        sender.send(datagram.clone()).expect("there is room");
        let mut order = TurnOrder::new(INTERVAL);
        let mut next = |now_us| order.next(&inbox, Micros(now_us), Micros(1_000)).expect("a sender");
        assert_eq!(next(999), ServerTurn::Datagram(datagram));
        assert_eq!([next(999), next(1_000)], [ServerTurn::Idle, ServerTurn::Tick]);
    }
}

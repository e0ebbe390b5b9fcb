//! Snapshots: which clients get one, when, and what their rate allows (Bernier 2001, footnote 7).

use std::sync::Arc;

use super::Server;
use super::connection::PlayerConnection;
use crate::bounded::push_bounded;
use crate::game::{Body, Effect, Game};
use crate::history::{FRAMES_MAX, Frame};
use crate::packet::Snapshot;
use hitreg_log::units::{Micros, PlayerId, Tick};

impl<G: Game> Server<G> {
    pub(super) fn send_updates(&mut self) {
        let mut frame: Option<Arc<Frame<G::Body>>> = None;
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            // A snapshot that the rate holds back is sent as soon as the line is free, without waiting for the next
            // regular time.
            if self.now < connection.due_at || self.now < connection.rate_free_at {
                continue;
            }
            let all = Arc::clone(frame.get_or_insert_with(|| frame_of::<G>(&self.world, self.tick, self.now)));
            let connection = &mut self.connections[index];
            let own = PlayerId(index as u16).entity();
            let known = connection.zone.within::<G>(&self.setup.rules, &self.setup.settings.server, own, all);
            let snapshot = connection.next_snapshot(known, self.now);
            self.snapshots.push_back((PlayerId(index as u16), snapshot));
        }
    }

    /// Keeps an effect for the next snapshot of every client that has not predicted it.
    pub(super) fn tell(&mut self, effect: Effect) {
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let predicted = effect.predictable && connection.settings.predicts_weapons();
            if !(predicted && index == usize::from(effect.entity.0)) {
                connection.effects.push(effect);
            }
        }
    }
}

impl<G: Game> PlayerConnection<G> {
    fn next_snapshot(&mut self, frame: Arc<Frame<G::Body>>, now: Micros) -> Snapshot<G::Body> {
        let settings = Arc::clone(&self.settings);
        let interval = settings.server.update_hz.interval();
        if self.sent.is_empty() {
            self.due_at = now;
        }
        self.snapshot = self.snapshot.next();
        // The tick of the last update cannot hold the next one back.
        let due_since = self.sent.back().map_or(self.due_at, |(_, sent)| self.due_at.max(*sent + Micros(1)));
        let periods = [interval, settings.server.tick_hz.interval()];
        let held_back = held_back(now, due_since, self.rate_free_at, periods);
        let snapshot = Snapshot {
            effects: std::mem::take(&mut self.effects),
            choked: held_back,
            helper_ms: self.calibration.helper_ms(),
            warnings: std::mem::take(&mut self.warnings),
            echo: if settings.client.adaptive_redundancy { self.echo(now) } else { None },
            ..Snapshot::new(self.snapshot, self.last_command, Arc::clone(&frame))
        };
        self.history.push(frame);
        push_bounded(&mut self.sent, (snapshot.seq, now), FRAMES_MAX);
        // The average update rate matches the client's request; missed turns are not made up.
        self.due_at = (self.due_at + interval).max(now + interval - settings.server.tick_hz.interval());
        snapshot
    }
}

/// Returns how many updates the rate limit held back before the one that is sent at `now`. An update that waits for a tick
/// is not counted.
fn held_back(now: Micros, due_at: Micros, rate_free_at: Micros, [update, tick]: [Micros; 2]) -> u8 {
    let first_tick = Micros(now.0 - (now - due_at).0.max(0) / tick.0 * tick.0);
    if rate_free_at <= first_tick {
        return 0;
    }
    (1 + (now - first_tick).0 / update.0).clamp(0, 255) as u8
}

/// Converts the world to a frame, without client-only fields.
///
/// # Panics
/// When the game gives its entities out of order, or one of them twice.
fn frame_of<G: Game>(world: &G::World, tick: Tick, now: Micros) -> Arc<Frame<G::Body>> {
    let mut entities = G::entities(world).to_vec();
    let in_order = entities.is_sorted_by(|(a, _), (b, _)| a < b);
    assert!(in_order, "`Simulate::entities` of `{}` must give each id once, in ascending order", G::NAME);
    for (_, body) in &mut entities {
        body.strip_client_only();
    }
    Arc::new(Frame { tick, server_time: now, entities })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Simulate;
    use crate::rink::Rink;
    use hitreg_log::units::Seed;

    #[test]
    #[should_panic(expected = "must give each id once, in ascending order")]
    fn entities_out_of_order_are_named() {
        let mut world = Rink::spawn(&(), Seed(1), 2);
        world.reverse();
        frame_of::<Rink>(&world, Tick(1), Micros::ZERO);
    }

    #[test]
    fn only_the_rate_delays_updates() {
        let ms = Micros::from_ms;
        let held = |now, due, free, periods: [i64; 2]| held_back(ms(now), ms(due), ms(free), periods.map(ms));
        // 10 ticks and 20 updates a second: the update is due between two ticks, and the rate is free at the second.
        assert_eq!(held(200, 150, 110, [50, 100]), 0);
        assert_eq!(held(200, 100, 160, [50, 100]), 3, "at 100 ms the rate was not free");
        let after_last = held_back(ms(200), ms(100) + Micros(1), ms(110), [ms(50), ms(100)]);
        assert_eq!(after_last, 0, "the update before went out at 100 ms");
        assert_eq!(held(200, 150, 190, [50, 100]), 0, "no tick came before the rate was free");
        // 100 ticks and 20 updates a second.
        assert_eq!(held(100, 50, 95, [50, 10]), 2);
        assert_eq!(held(60, 50, 51, [50, 10]), 1);
        assert_eq!(held(50, 50, 50, [50, 10]), 0);
    }
}

//! Snapshots: which clients get one, when, and what their rate allows (Bernier 2001, footnote 7).

use std::sync::Arc;

use super::Server;
use super::connection::PlayerConnection;
use crate::game::{Body, Effect, Game};
use crate::history::{FRAMES_MAX, Frame};
use crate::packet::Snapshot;
use crate::push_bounded;
use hitreg_log::units::{Micros, PlayerId, SnapshotSeq, Tick};

impl<G: Game> Server<G> {
    pub(super) fn send_updates(&mut self) {
        let mut frame: Option<Arc<Frame<G::Body>>> = None;
        for index in 0..self.connections.len() {
            if !self.connections[index].take_turn(self.now) {
                continue;
            }
            let all = Arc::clone(frame.get_or_insert_with(|| frame_of::<G>(&self.world, self.tick, self.now)));
            let connection = &mut self.connections[index];
            let own = PlayerId(index as u16).entity();
            let known =
                connection.zone.within::<G>(&self.setup.rules, &self.setup.settings.server, own, Arc::clone(&all));
            if known.entities.len() < all.entities.len() {
                let is_hidden = |entity| all.get(entity).is_some() && known.get(entity).is_none();
                connection.effects.retain(|effect| !is_hidden(effect.entity));
            }
            let snapshot = connection.next_snapshot(known, self.now);
            self.snapshots.push_back((PlayerId(index as u16), snapshot));
        }
    }

    /// Keeps an effect for the next snapshot of every client that has not predicted it.
    pub(super) fn tell(&mut self, effect: Effect) {
        for (index, connection) in self.connections.iter_mut().enumerate() {
            if connection.has_left {
                continue;
            }
            let predicted = effect.predictable && connection.settings.predicts_weapons();
            if !(predicted && index == usize::from(effect.entity.0)) {
                connection.effects.push(effect);
            }
        }
    }
}

impl<G: Game> PlayerConnection<G> {
    /// Returns whether the tick at `now` sends a snapshot. A snapshot that the rate holds back is sent as soon as the line
    /// is free, without waiting for the next regular time. It counts as held back only if another one is due by then.
    fn take_turn(&mut self, now: Micros) -> bool {
        if self.has_left {
            return false;
        }
        let is_due = now >= self.due_at;
        let is_free = now >= self.rate_free_at;
        if is_due {
            let [interval, tick] =
                [self.settings.server.update_hz, self.settings.server.tick_hz].map(|hz| hz.interval());
            if self.snapshot == SnapshotSeq(0) {
                self.due_at = now;
            }
            // The average update rate matches the client's request; missed turns are not made up.
            self.due_at = (self.due_at + interval).max(now + interval - tick);
            if !is_free {
                self.held_back = self.held_back.saturating_add(1);
            }
            is_free
        } else {
            let is_late = is_free && self.held_back > 0;
            self.held_back -= u8::from(is_late);
            is_late
        }
    }

    fn next_snapshot(&mut self, frame: Arc<Frame<G::Body>>, now: Micros) -> Snapshot<G::Body> {
        self.snapshot = self.snapshot.next();
        let snapshot = Snapshot {
            effects: std::mem::take(&mut self.effects),
            choked: std::mem::take(&mut self.held_back),
            helper_ms: self.calibration.helper_ms(),
            warnings: std::mem::take(&mut self.warnings),
            echo: if self.settings.client.adaptive_redundancy { self.echo(now) } else { None },
            ..Snapshot::new(self.snapshot, self.last_command, frame)
        };
        push_bounded(&mut self.sent, (snapshot.seq, now), FRAMES_MAX);
        snapshot
    }
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
    use crate::settings::Settings;
    use hitreg_log::units::Seed;

    #[test]
    #[should_panic(expected = "must give each id once, in ascending order")]
    fn entities_out_of_order_are_named() {
        let mut world = Rink::spawn(&(), Seed(1), 2);
        world.reverse();
        frame_of::<Rink>(&world, Tick(1), Micros::ZERO);
    }

    /// Runs ticks of 1000 / `tick_hz` ms for a second, with snapshots that take `busy_ms` of the line each. Returns the
    /// number of ticks, and of updates that were sent, held back before a later one, and held back at the end.
    fn second_of_updates(tick_hz: i64, update_hz: i64, busy_ms: f64) -> [i64; 4] {
        let mut settings = Settings::default();
        settings.set("server.tick_hz", &tick_hz.to_string()).unwrap();
        settings.set("server.update_hz", &update_hz.to_string()).unwrap();
        let mut connection = PlayerConnection::<Rink>::new(Arc::new(settings));
        let frame = Arc::new(Frame { tick: Tick(1), server_time: Micros::ZERO, entities: Vec::new() });
        let [mut sent, mut choked] = [0, 0];
        for tick in 0..tick_hz {
            let now = Micros(7_000_000 + tick * 1_000_000 / tick_hz);
            if connection.take_turn(now) {
                sent += 1;
                choked += i64::from(connection.next_snapshot(Arc::clone(&frame), now).choked);
                connection.rate_free_at = now + Micros::from_ms_f64(busy_ms);
            }
        }
        [tick_hz, sent, choked, connection.held_back.into()]
    }

    #[test]
    fn each_update_is_either_sent_or_held_back() {
        // An update at every tick, and a line that is free at every second one.
        assert_eq!(second_of_updates(50, 50, 21.0), [50, 25, 24, 1]);
        // An update at every second tick, and a line that is free at every second one: each is late, and none is lost.
        assert_eq!(second_of_updates(50, 25, 39.0), [50, 25, 0, 0]);
        // No client gets more than one update a tick.
        assert_eq!(second_of_updates(50, 1_000, 21.0), [50, 25, 24, 1]);
        assert_eq!(second_of_updates(50, 1_000, 19.0), [50, 50, 0, 0]);
        // An update every 50 ms, and a line that takes 60 ms, or 90 ms with the wait for a tick.
        for (tick_hz, busy_ms) in [(100, 60.0), (1_000, 61.0), (64, 60.0), (33, 90.0), (100, 180.0), (100, 1.0)] {
            let [_, sent, choked, waiting] = second_of_updates(tick_hz, 20, busy_ms);
            assert_eq!(sent + choked + waiting, 20, "{tick_hz} Hz, {busy_ms} ms: {sent} sent, {choked} held back");
        }
    }
}

//! Snapshots: to whom, when, and what the client's rate allows (Bernier 2001, footnote 7).

use std::sync::Arc;

use super::Server;
use super::connection::Connection;
use crate::game::{Body, Effect, Game};
use crate::history::Frame;
use crate::packet::Snapshot;
use hitreg_log::units::{Micros, PlayerId, Tick};

impl<G: Game> Server<G> {
    pub(super) fn send_updates(&mut self) {
        let mut frame: Option<Arc<Frame<G::Body>>> = None;
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            // A packet that the rate holds back goes out as soon as the line is free, not at the next regular time.
            if self.now < connection.due_at || self.now < connection.rate_free_at {
                continue;
            }
            let all = Arc::clone(frame.get_or_insert_with(|| self.frame()));
            let connection = &mut self.connections[index];
            let own = PlayerId(index as u16).entity();
            let known = connection.zone.within::<G>(&self.rules, &self.settings.server, own, all);
            let snapshot = connection.next_snapshot(known, self.now);
            self.snapshots.push_back((PlayerId(index as u16), snapshot));
        }
    }
}

impl<G: Game> Connection<G> {
    fn next_snapshot(&mut self, frame: Arc<Frame<G::Body>>, now: Micros) -> Snapshot<G::Body> {
        let settings = Arc::clone(&self.settings);
        let interval = settings.server.update_hz.interval();
        if self.sent.is_empty() {
            self.due_at = now;
        }
        self.snapshot = self.snapshot.next();
        let late_by = now - self.due_at;
        let held_back = if self.rate_free_at > self.due_at { 1 + late_by.0 / interval.0 } else { 0 };
        let snapshot = Snapshot {
            seq: self.snapshot,
            ack: self.last_command,
            frame: Arc::clone(&frame),
            effects: std::mem::take(&mut self.effects),
            choked: held_back.clamp(0, 255) as u8,
            helper_ms: self.calibration.helper_ms(),
            warnings: std::mem::take(&mut self.warnings),
            echo: if settings.client.adaptive_redundancy { self.echo(now) } else { None },
            extra: Vec::new(),
        };
        self.history.push(frame);
        self.remember_sent(snapshot.seq, now);
        // On the average the client gets as many updates as it asked for; a missed turn is not made up for.
        self.due_at = (self.due_at + interval).max(now + interval - settings.server.tick_hz.interval());
        snapshot
    }
}

/// The world as a frame: what only clients know is left out.
pub(super) fn frame_of<G: Game>(world: &G::World, tick: Tick, now: Micros) -> Arc<Frame<G::Body>> {
    let mut entities = G::entities(world).to_vec();
    for (_, body) in &mut entities {
        body.strip_client_only();
    }
    Arc::new(Frame { tick, server_time: now, entities })
}

/// Keeps an effect for the next snapshot of everybody but a client that has predicted it already.
pub(super) fn tell<G: Game>(connections: &mut [Connection<G>], effect: Effect) {
    for (index, connection) in connections.iter_mut().enumerate() {
        let predicted = effect.predictable && connection.settings.predicts_weapons();
        if !(predicted && index == usize::from(effect.entity.0)) {
            connection.effects.push(effect);
        }
    }
}

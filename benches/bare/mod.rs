//! Bare movement, the reference for the cost of a replay: by time in one bench and by instructions in another.

use std::hint::black_box;

use hitreg::arena::{Arena, ArenaRules};
use hitreg::game::{Effect, Scene, Simulate, Sink, Touch};
use hitreg::record::Session;
use hitreg::units::{PlayerId, Seed};

/// Runs every usercmd once, with each player alone in the world: the least work of any replay.
pub(crate) fn movement(session: &Session, rules: &ArenaRules) {
    let world = Arena::spawn(rules, session.header.seed, session.players.len() as u16);
    for (player, records) in session.players.iter().enumerate() {
        let id = PlayerId(player as u16);
        let mut body = Arena::entities(&world)[player].1;
        let scene = Scene { seed: Seed(1), player: id, entities: &[], weapons: false };
        for frame in &records.frames {
            body = Arena::step_body(rules, &scene, &body, &frame.command, &mut BareSink);
        }
        black_box(body);
    }
}

struct BareSink;

impl<F> Sink<F> for BareSink {
    fn effect(&mut self, _: Effect) {}
    fn fire(&mut self, _: F) {}
    fn touch(&mut self, _: Touch) {}
}

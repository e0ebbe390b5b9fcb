//! Bots for pucks: they glide around and shoot at the nearest puck, sometimes badly.

use hitreg::game::{Bots, PlacedBody};
use hitreg::rng::Rng;
use hitreg::units::{EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, buttons};

use crate::game::{Puck, Pucks, PucksRules, PucksVersion};

/// One bot.
pub(crate) struct Glider {
    rng: Rng,
    turn_at: Micros,
    input: Input,
}

impl<V: PucksVersion> Bots for Pucks<V> {
    type Bot = Glider;

    fn bot(_: &PucksRules, seed: Seed, player: PlayerId) -> Glider {
        Glider { rng: Rng::new(seed, u64::from(player.0)), turn_at: Micros::ZERO, input: Input::default() }
    }

    fn think(
        bot: &mut Glider,
        _: &PucksRules,
        own: Option<&Puck>,
        others: &[(EntityId, PlacedBody<Puck>)],
        now: Micros,
        msec: u8,
    ) -> Input {
        bot.input.msec = msec;
        if now >= bot.turn_at {
            bot.turn_at = now + Micros::from_ms(200 + bot.rng.below(500) as i64);
            bot.input.forwardmove = bot.rng.signed_f32() * 400.0;
            bot.input.sidemove = bot.rng.signed_f32() * 400.0;
        }
        let Some(own) = own else { return bot.input.clone() };
        let ways = others.iter().map(|(_, placed)| placed.body.origin - own.origin);
        if let Some(way) = ways.min_by(|a, b| a.length().total_cmp(&b.length())) {
            bot.input.viewangles.y = libm::atan2f(way.y, way.x).to_degrees() + bot.rng.signed_f32() * 4.0;
            bot.input.buttons = if bot.rng.chance(0.2) { buttons::ATTACK } else { 0 };
        }
        bot.input.clone()
    }
}

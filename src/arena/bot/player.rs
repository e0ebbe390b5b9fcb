//! The arena's bots as players of synthetic sessions.

use super::Bot;
use crate::arena::map::BUILT_IN as BUILT_IN_MAPS;
use crate::arena::{Arena, ArenaBody, ArenaRules};
use crate::game::{Bots, Placed};
use crate::units::{EntityId, Micros, PlayerId, Seed};
use crate::usercmd::Input;

impl Bots for Arena {
    type Bot = Bot;

    const MAPS: &'static [(&'static str, &'static str)] = BUILT_IN_MAPS;

    fn bot(rules: &ArenaRules, seed: Seed, player: PlayerId) -> Bot {
        Bot::new(seed, player, rules)
    }

    fn bots(rules: &ArenaRules, seed: Seed, players: u16) -> Vec<Bot> {
        Bot::crew(seed, players, rules)
    }

    fn think(
        bot: &mut Bot,
        rules: &ArenaRules,
        own: Option<&ArenaBody>,
        others: &[(EntityId, Placed<ArenaBody>)],
        now: Micros,
        msec: u8,
    ) -> Input {
        let Some(own) = own else { return Input { msec, ..Input::default() } };
        let drawn: Vec<(EntityId, ArenaBody)> = others.iter().map(|(id, placed)| (*id, placed.body)).collect();
        bot.think(rules, own, own.eye(), &drawn, now, msec)
    }
}

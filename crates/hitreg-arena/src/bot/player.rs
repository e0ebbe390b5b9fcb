//! The arena's bots as players of synthetic sessions.

use super::super::map::BUILT_IN as BUILT_IN_MAPS;
use super::super::{Arena, ArenaBody, ArenaRules};
use super::ArenaBot;
use hitreg_log::units::{EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::Input;
use hitreg_netcode::game::{Bots, PlacedBody};

impl Bots for Arena {
    type Bot = ArenaBot;

    const MAPS: &'static [(&'static str, &'static str)] = BUILT_IN_MAPS;

    fn bot(rules: &ArenaRules, seed: Seed, player: PlayerId) -> ArenaBot {
        ArenaBot::new(seed, player, rules)
    }

    fn bots(rules: &ArenaRules, seed: Seed, players: u16) -> Vec<ArenaBot> {
        ArenaBot::crew(seed, players, rules)
    }

    fn think(
        bot: &mut ArenaBot,
        rules: &ArenaRules,
        own: Option<&ArenaBody>,
        others: &[(EntityId, PlacedBody<ArenaBody>)],
        now: Micros,
        msec: u8,
    ) -> Input {
        let Some(own) = own else { return Input { msec, ..Input::default() } };
        let drawn: Vec<(EntityId, ArenaBody)> = others.iter().map(|(id, placed)| (*id, placed.body)).collect();
        bot.think(rules, own, own.eye(), &drawn, now, msec)
    }
}

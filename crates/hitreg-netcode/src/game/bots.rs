//! Games that can play themselves.

use super::{Game, Placed};
use hitreg_log::units::{EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::Input;

/// A game that can play itself, for synthetic sessions.
pub trait Bots: Game {
    /// One bot's mind.
    type Bot: Send;

    /// The maps that the game has built in, each with its name and the bytes of its file. The first is the default.
    const MAPS: &'static [(&'static str, &'static str)] = &[];

    /// The bot of one player. The same seed and player give the same bot.
    fn bot(rules: &Self::Rules, seed: Seed, player: PlayerId) -> Self::Bot;

    /// The bots of the first so many players, the same as [`Bots::bot`] gives one by one. A game whose bots share what
    /// takes long to work out does it once here.
    fn bots(rules: &Self::Rules, seed: Seed, players: u16) -> Vec<Self::Bot> {
        (0..players).map(|player| Self::bot(rules, seed, PlayerId(player))).collect()
    }

    /// What the bot does in a client frame of `msec` milliseconds, from what its screen shows: its own predicted body
    /// (`None` before the first snapshot) and the others as drawn.
    fn think(
        bot: &mut Self::Bot,
        rules: &Self::Rules,
        own: Option<&Self::Body>,
        others: &[(EntityId, Placed<Self::Body>)],
        now: Micros,
        msec: u8,
    ) -> Input;
}

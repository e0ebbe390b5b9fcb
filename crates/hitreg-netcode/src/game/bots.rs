//! Games with bots.

use super::{Game, PlacedBody};
use hitreg_log::units::{EntityId, Micros, PlayerId, Seed};

/// A game whose bots can play it, for synthetic sessions.
pub trait Bots: Game {
    /// The state of one bot.
    type Bot: Send;

    /// The built-in maps: name and file contents of each. The function that makes the game's rules gets the map that the
    /// user names, or none.
    const MAPS: &'static [(&'static str, &'static str)] = &[];

    /// Creates the bot of one player. The same seed and player give the same bot.
    fn bot(rules: &Self::Rules, seed: Seed, player: PlayerId) -> Self::Bot;

    /// Creates the bots of the first `players` players, equal to those from [`Bots::bot`]. A game whose bots share an
    /// expensive computation does it once here.
    fn bots(rules: &Self::Rules, seed: Seed, players: u16) -> Vec<Self::Bot> {
        (0..players).map(|player| Self::bot(rules, seed, PlayerId(player))).collect()
    }

    /// Returns the bot's input for a client frame of `msec` milliseconds. The bot sees only what its screen shows: its
    /// own predicted body (`None` before the first snapshot) and the other entities as drawn.
    fn think(
        bot: &mut Self::Bot,
        rules: &Self::Rules,
        own: Option<&Self::Body>,
        others: &[(EntityId, PlacedBody<Self::Body>)],
        now: Micros,
        msec: u8,
    ) -> Self::Input;
}

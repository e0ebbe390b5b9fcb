//! The names of settings of a single player, such as `p2.client.cmd_hz`.

use crate::units::PlayerId;

/// Splits a name such as `p2.client.cmd_hz` into player and key; `None` if no player is named.
pub fn split_of_player(key: &str) -> Option<(PlayerId, &str)> {
    let (player, key) = key.strip_prefix('p')?.split_once('.')?;
    let is_number = player.bytes().all(|digit| digit.is_ascii_digit());
    Some((PlayerId(player.parse().ok().filter(|_| is_number)?), key))
}

/// Returns the player whose own setting it is; `None` for a setting of all players.
pub fn player_of(key: &str) -> Option<PlayerId> {
    split_of_player(key).map(|(player, _)| player)
}

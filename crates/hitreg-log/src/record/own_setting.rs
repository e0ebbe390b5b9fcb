//! The names of settings that are one player's own: `p2.client.cmd_hz`.

use crate::units::PlayerId;

/// The player and the key of `p2.client.cmd_hz`.
pub fn split_of_player(key: &str) -> Option<(PlayerId, &str)> {
    let (player, key) = key.strip_prefix('p')?.split_once('.')?;
    let is_number = player.bytes().all(|digit| digit.is_ascii_digit());
    Some((PlayerId(player.parse().ok().filter(|_| is_number)?), key))
}

/// Whose own a setting is; `None` of what all have.
pub fn player_of(key: &str) -> Option<PlayerId> {
    split_of_player(key).map(|(player, _)| player)
}

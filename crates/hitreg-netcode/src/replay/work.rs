//! Limits on the work of a replay. They are absolute and far above honest sessions.

use super::ReplayError;

/// The most usercmds of one player in one second. Games make up to 1,000.
pub(super) const MAX_FRAMES_PER_SECOND: u32 = 20_000;
/// The most unacked usercmds that a replay keeps, beyond the first 1,024 of each player.
pub(super) const MAX_UNACKED: usize = 1 << 18;

/// The most ticks of a streamed replay, times the players: 36 hours of 64 players at 128 ticks a second.
pub(super) const MAX_PLAYER_TICKS: u64 = 1 << 30;
/// The most usercmds of a streamed replay, times the players, all of whom each usercmd draws: nine hours of 64 players at 128
/// usercmds a second.
pub(super) const MAX_VIEWS: u64 = 1 << 34;

/// Checks the work of a replay that streams, which has no memory limit, by its counts.
///
/// # Errors
/// When a limit is exceeded.
pub(super) fn check_work(players: usize, frames: u64, ticks: u64) -> Result<(), ReplayError> {
    let players = players as u64;
    if ticks.saturating_mul(players) > MAX_PLAYER_TICKS {
        return Err(ReplayError::TooManyTicks { ticks, players });
    }
    if frames.saturating_mul(players) > MAX_VIEWS {
        return Err(ReplayError::TooManyUsercmds { usercmds: frames, players });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_ticks_and_usercmds_of_all_players_over_the_limit() {
        let (second, hours) = (128_u64, 3600_u64);
        assert!(check_work(64, 64 * second * 9 * hours, second * 24 * hours).is_ok(), "hours of 64 players");
        assert!(check_work(64, 64 * 1_000 * 600, 1_000 * 600).is_ok(), "ten minutes at 1,000 Hz");
        assert!(check_work(256, MAX_VIEWS / 256, MAX_PLAYER_TICKS / 256).is_ok());
        let ticks = check_work(256, 0, MAX_PLAYER_TICKS / 256 + 1);
        assert!(matches!(ticks, Err(ReplayError::TooManyTicks { players: 256, .. })), "{ticks:?}");
        let usercmds = check_work(256, MAX_VIEWS / 256 + 1, 0);
        assert!(matches!(usercmds, Err(ReplayError::TooManyUsercmds { players: 256, .. })), "{usercmds:?}");
    }
}

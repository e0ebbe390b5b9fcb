//! Limits on the work of a replay. They are absolute and far above honest sessions.

use super::ReplayError;

/// The most usercmds of one player in one second. Games make up to 1,000.
pub(super) const MAX_FRAMES_PER_SECOND: u32 = 20_000;
/// The most unacked usercmds that a replay keeps, beyond the first [`UNACKED_FEW`] of each player.
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

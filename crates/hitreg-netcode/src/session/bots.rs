//! Bots as players. Their frames are regular or late, and each bot has its own phase, so that no two clients run in
//! step.

use std::sync::Arc;

use super::late_frames::LateFrames;
use super::{InputSource, PlayerScreen};
use crate::game::{Bots, GameInput};
use crate::settings::Settings;
use hitreg_log::rng::Rng;
use hitreg_log::units::{Hz, Micros, PlayerId, Seed};
use hitreg_log::usercmd::Input;

/// The bots of a synthetic session.
pub struct BotInput<G: Bots> {
    rules: Arc<G::Rules>,
    players: Vec<BotSchedule<G>>,
}

struct BotSchedule<G: Bots> {
    bot: BotPlayer<G>,
    cmd_hz: Hz,
    /// The time at which the first frame would have been if all frames since were on time.
    phase: Micros,
    frames: i64,
    late: LateFrames,
}

/// A bot that provides one player's input.
pub struct BotPlayer<G: Bots> {
    bot: G::Bot,
    /// The end of the last frame in whole milliseconds. Usercmds cover whole milliseconds, and the rounding does not
    /// accumulate.
    last_ms: i64,
}

/// Returns the random delay of a player's first frame, less than one frame interval.
pub fn frame_phase(seed: Seed, player: PlayerId, cmd_hz: Hz) -> Micros {
    let interval = cmd_hz.interval().0.unsigned_abs();
    Micros(Rng::new(seed, 0x7068_6173_0000_0000 | u64::from(player.0)).below(interval) as i64)
}

impl<G: Bots> BotInput<G> {
    /// Takes existing bots, one for each player.
    pub fn of(bots: Vec<G::Bot>, seed: Seed, rules: Arc<G::Rules>, settings: &Arc<Settings>) -> BotInput<G> {
        let players = (0u16..)
            .zip(bots)
            .map(|(p, bot)| {
                let own = settings.of_player(PlayerId(p));
                let cmd_hz = own.client.cmd_hz;
                let phase = frame_phase(seed, PlayerId(p), cmd_hz);
                let late = LateFrames::new(own.client.frames, seed, PlayerId(p));
                BotSchedule { bot: BotPlayer::new(bot, phase), cmd_hz, phase, frames: 0, late }
            })
            .collect();
        BotInput { rules, players }
    }
}

impl<G: Bots> InputSource<G> for BotInput<G> {
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        let player = &mut self.players[usize::from(player.0)];
        player.frames += 1;
        player.phase += player.late.next_delay();
        Some(player.phase + player.cmd_hz.turn(player.frames))
    }

    fn input(&mut self, at: Micros, screen: &PlayerScreen<'_, G>) -> Input {
        self.players[usize::from(screen.player.0)].bot.input(&self.rules, at, screen)
    }
}

impl<G: Bots> BotPlayer<G> {
    /// Creates a bot player whose first frame covers the time from `begins` on.
    pub fn new(bot: G::Bot, begins: Micros) -> BotPlayer<G> {
        BotPlayer { bot, last_ms: begins.0 / 1000 }
    }

    /// Restarts the bot player's time at `at`.
    pub fn begin(&mut self, at: Micros) {
        self.last_ms = at.0 / 1000;
    }

    /// Returns the input for a frame.
    pub fn input(&mut self, rules: &G::Rules, at: Micros, screen: &PlayerScreen<'_, G>) -> Input {
        let now_ms = at.0 / 1000;
        let msec = (now_ms - self.last_ms).clamp(0, 255) as u8;
        self.last_ms = now_ms;
        G::think(&mut self.bot, rules, screen.own, screen.others, at, msec).write()
    }
}

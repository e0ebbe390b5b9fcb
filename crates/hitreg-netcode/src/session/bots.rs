//! Bots as players: at regular frames, or late ones, each with its own phase, so that no two clients run in step.

use std::sync::Arc;

use super::late_frames::LateFrames;
use super::{InputSource, Screen};
use crate::game::Bots;
use crate::settings::Settings;
use hitreg_log::rng::Rng;
use hitreg_log::units::{Hz, Micros, PlayerId, Seed};
use hitreg_log::usercmd::Input;

/// The bots of a synthetic session.
pub struct BotInput<G: Bots> {
    rules: Arc<G::Rules>,
    players: Vec<Player<G>>,
}

struct Player<G: Bots> {
    bot: BotPlayer<G>,
    cmd_hz: Hz,
    /// When its first frame would have been, were all frames since on time.
    phase: Micros,
    frames: i64,
    late: LateFrames,
}

/// One bot at the keys.
pub struct BotPlayer<G: Bots> {
    bot: G::Bot,
    /// The end of the last frame, in whole milliseconds: usercmds cover whole ones, and over time none is lost.
    last_ms: i64,
}

/// How long after the first time at which it could a player's first frame is, less than the interval of frames.
pub fn frame_phase(seed: Seed, player: PlayerId, cmd_hz: Hz) -> Micros {
    let interval = cmd_hz.interval().0.unsigned_abs();
    Micros(Rng::new(seed, 0x7068_6173_0000_0000 | u64::from(player.0)).below(interval) as i64)
}

impl<G: Bots> BotInput<G> {
    pub(crate) fn new(seed: Seed, players: u16, rules: Arc<G::Rules>, settings: &Arc<Settings>) -> BotInput<G> {
        let bots = G::bots(&rules, seed, players);
        BotInput::of(bots, seed, rules, settings)
    }

    /// Of bots that are there already, one for each player.
    pub fn of(bots: Vec<G::Bot>, seed: Seed, rules: Arc<G::Rules>, settings: &Arc<Settings>) -> BotInput<G> {
        let players = (0u16..)
            .zip(bots)
            .map(|(p, bot)| {
                let own = settings.of_player(PlayerId(p));
                let cmd_hz = own.client.cmd_hz;
                let phase = frame_phase(seed, PlayerId(p), cmd_hz);
                let late = LateFrames::new(own.client.frames, seed, PlayerId(p));
                Player { bot: BotPlayer::new(bot, phase), cmd_hz, phase, frames: 0, late }
            })
            .collect();
        BotInput { rules, players }
    }
}

impl<G: Bots> InputSource<G> for BotInput<G> {
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        let player = &mut self.players[usize::from(player.0)];
        player.frames += 1;
        player.phase += player.late.next();
        Some(player.phase + player.cmd_hz.turn(player.frames))
    }

    fn input(&mut self, at: Micros, screen: &Screen<'_, G>) -> Input {
        self.players[usize::from(screen.player.0)].bot.input(&self.rules, at, screen)
    }
}

impl<G: Bots> BotPlayer<G> {
    /// A bot that begins at a time.
    pub fn new(bot: G::Bot, begins: Micros) -> BotPlayer<G> {
        BotPlayer { bot, last_ms: begins.0 / 1000 }
    }

    /// Begins anew at a time.
    pub fn begin(&mut self, at: Micros) {
        self.last_ms = at.0 / 1000;
    }

    /// What it does in a frame.
    pub fn input(&mut self, rules: &G::Rules, at: Micros, screen: &Screen<'_, G>) -> Input {
        let now_ms = at.0 / 1000;
        let msec = (now_ms - self.last_ms).clamp(0, 255) as u8;
        self.last_ms = now_ms;
        G::think(&mut self.bot, rules, screen.own, screen.others, at, msec)
    }
}

//! Bots as players. Their frames are regular or late, and each bot has its own phase, so that no two clients run in
//! step.

use std::sync::Arc;

use super::{InputSource, PlayerScreen};
use crate::game::{Bots, GameInput};
use crate::settings::{Frames, Settings};
use hitreg_log::rng::{Rng, stream};
use hitreg_log::units::{Hz, Micros, PlayerId, Seed};
use hitreg_log::usercmd::Input;

/// The bots of a synthetic session.
pub struct BotInput<G: Bots> {
    rules: Arc<G::Rules>,
    players: Vec<BotSchedule<G>>,
}

hitreg_log::partial_debug!([G: Bots] BotInput<G> {});

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

hitreg_log::partial_debug!([G: Bots] BotPlayer<G> {});

/// Returns the random delay of a player's first frame, less than one frame interval.
pub fn frame_phase(seed: Seed, player: PlayerId, cmd_hz: Hz) -> Micros {
    let interval = cmd_hz.interval().0.unsigned_abs();
    Micros(Rng::new(seed, stream(*b"phas", player.0.into())).below(interval) as i64)
}

impl<G: Bots> BotInput<G> {
    /// Takes existing bots, one for each player.
    pub fn of(bots: Vec<G::Bot>, seed: Seed, rules: Arc<G::Rules>, settings: &Arc<Settings>) -> BotInput<G> {
        let players = (0u16..)
            .zip(bots)
            .map(|(p, bot)| {
                let player_settings = settings.of_player(PlayerId(p));
                let cmd_hz = player_settings.client.cmd_hz;
                let phase = frame_phase(seed, PlayerId(p), cmd_hz);
                let late = LateFrames::new(player_settings.client.frames, seed, PlayerId(p));
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
        Some(player.phase + player.cmd_hz.period_start(player.frames))
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

/// A random number of milliseconds: `middle + spread * x + skew * x²` with a standard normal x, but at least
/// `least_ms`.
#[derive(Clone, Copy, Debug)]
struct SkewedMs {
    least_ms: f64,
    middle_ms: f64,
    spread_ms: f64,
    skew_ms: f64,
}

/// The frame times of one kind of computer.
#[derive(Clone, Copy, Debug)]
struct LateFrameModel {
    /// The lateness of each frame.
    late: SkewedMs,
    /// The share of the variance of a frame's lateness that comes from the load. The load lasts over several frames.
    share: f64,
    /// The factor by which the load decays per frame.
    decay: f64,
    /// The probability that a frame is a hitch, which adds to its lateness.
    hitches: f64,
    hitch: SkewedMs,
}

const NONE: SkewedMs = SkewedMs { least_ms: 0.0, middle_ms: 0.0, spread_ms: 0.0, skew_ms: 0.0 };

/// Frames close to the client's frame rate cap, fitted to `demo38`.
const CAPPED: LateFrameModel = LateFrameModel {
    late: SkewedMs { least_ms: 0.0, middle_ms: -10.35, spread_ms: 7.6, skew_ms: -0.44 },
    share: 0.0,
    decay: 0.0,
    hitches: 0.000_12,
    hitch: SkewedMs { least_ms: 15.0, middle_ms: 27.0, spread_ms: 46.0, skew_ms: 25.0 },
};
/// Frames with occasional hitches, fitted to `demo03`.
const HITCHES: LateFrameModel = LateFrameModel {
    late: SkewedMs { least_ms: 0.0, middle_ms: -2.97, spread_ms: 1.79, skew_ms: 0.0 },
    share: 0.0,
    decay: 0.0,
    hitches: 0.001_2,
    hitch: SkewedMs { least_ms: 15.0, middle_ms: 36.0, spread_ms: 2.8, skew_ms: 0.0 },
};
/// Frames of a loaded computer, fitted to `demo31`.
const LOADED: LateFrameModel = LateFrameModel {
    late: SkewedMs { least_ms: 0.0, middle_ms: 6.3, spread_ms: 9.2, skew_ms: 1.85 },
    share: 0.88,
    decay: 0.97,
    hitches: 0.0,
    hitch: NONE,
};

/// The lateness of one player's successive frames, by the setting `client.frames`: a model of the frame times in demos of
/// real players (docs/frames.md).
///
/// A client with a fixed frame interval never makes a frame too early, and counts each interval from its previous
/// frame. Each frame is therefore late by zero or more, and delays all later frames by the same amount.
#[derive(Clone, Debug)]
pub struct LateFrames {
    model: Option<LateFrameModel>,
    rng: Rng,
    /// The load that carries over to later frames.
    load: f64,
}

impl LateFrames {
    /// Returns the model of a player's frame times, drawn from `seed`.
    pub fn new(frames: Frames, seed: Seed, player: PlayerId) -> LateFrames {
        let model = match frames {
            Frames::Regular => None,
            Frames::Capped => Some(CAPPED),
            Frames::Hitches => Some(HITCHES),
            Frames::Loaded => Some(LOADED),
        };
        let mut rng = Rng::new(seed, stream(*b"late", player.0.into()));
        let load = rng.normal_f64();
        LateFrames { model, rng, load }
    }

    /// Returns how much later the next frame is than one interval after the last.
    pub fn next_delay(&mut self) -> Micros {
        let Some(model) = self.model else { return Micros::ZERO };
        let LateFrameModel { late, share, decay, hitches, hitch } = model;
        let noise = libm::sqrt(1.0 - decay * decay) * self.rng.normal_f64();
        self.load = decay * self.load + noise;
        let x = libm::sqrt(share) * self.load + libm::sqrt(1.0 - share) * self.rng.normal_f64();
        let hitch_ms = if self.rng.chance(hitches) { hitch.at(self.rng.normal_f64()) } else { 0.0 };
        Micros::from_ms_f64(late.at(x) + hitch_ms)
    }
}

impl SkewedMs {
    fn at(&self, x: f64) -> f64 {
        let SkewedMs { least_ms, middle_ms, spread_ms, skew_ms } = *self;
        (middle_ms + spread_ms * x + skew_ms * x * x).max(least_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERCENTS: [f64; 9] = [1.0, 5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

    /// Returns the frame times in whole ms of a client with this many frames per second.
    fn frame_times(frames: Frames, hz: &str, count: i64) -> Vec<f64> {
        let hz = hz.parse::<Hz>().expect("a rate");
        let mut late = LateFrames::new(frames, Seed(4), PlayerId(1));
        let mut behind = Micros::ZERO;
        let ends = (1..=count).map(|turn| {
            behind += late.next_delay();
            (hz.period_start(turn) + behind).0 / 1000
        });
        let ends: Vec<i64> = ends.collect();
        ends.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect()
    }

    fn percentiles(values: &[f64]) -> [f64; 9] {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        PERCENTS.map(|percent| sorted[(percent / 100.0 * (sorted.len() - 1) as f64) as usize])
    }

    /// Returns the autocorrelation of values at a lag.
    fn correlation(values: &[f64], places: usize) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let product = |(a, b): (&f64, &f64)| (a - mean) * (b - mean);
        let apart: f64 = values.iter().zip(&values[places..]).map(product).sum();
        apart / values.iter().zip(values).map(product).sum::<f64>()
    }

    fn share(values: &[f64], is: impl Fn(f64) -> bool) -> f64 {
        values.iter().filter(|value| is(**value)).count() as f64 / values.len() as f64
    }

    /// The measurements of the demos are in docs/frames.md.
    #[test]
    fn frame_times_are_distributed_as_in_the_demos() {
        let demos = [
            (Frames::Capped, "73", [13.0, 13.0, 13.0, 14.0, 14.0, 14.0, 15.0, 19.0, 23.0], 1.0),
            (Frames::Hitches, "76.7", [13.0, 13.0, 13.0, 13.0, 13.0, 13.0, 13.0, 14.0, 46.0], 1.0),
            (Frames::Loaded, "30", [33.0, 33.0, 34.0, 40.0, 47.0, 54.0, 60.0, 72.0, 88.0], 4.0),
        ];
        for (frames, hz, demo, off_most) in demos {
            let times = frame_times(frames, hz, 200_000);
            let model = percentiles(&times);
            eprintln!("{frames:?}: demo {demo:?}");
            eprintln!("{frames:?}: model {model:?}, {:?}", [1, 2, 5, 10, 30].map(|n| correlation(&times, n)));
            for (place, (demo, model)) in demo.iter().zip(model).enumerate() {
                assert!(
                    (demo - model).abs() <= off_most,
                    "{frames:?}: {model} and not {demo} at {} %",
                    PERCENTS[place]
                );
            }
        }
        let hitches = |frames, hz| share(&frame_times(frames, hz, 400_000), |ms| ms > 27.0);
        let [few, many] = [hitches(Frames::Capped, "73"), hitches(Frames::Hitches, "76.7")];
        assert!((0.000_08..0.000_2).contains(&few) && (0.001..0.001_4).contains(&many), "{few} {many}");
    }

    #[test]
    fn load_lasts_on_a_loaded_computer_only() {
        let of = |frames, hz| [1, 2, 5, 10, 30].map(|places| correlation(&frame_times(frames, hz, 200_000), places));
        let demo = [0.853, 0.806, 0.694, 0.563, 0.343];
        let off =
            of(Frames::Loaded, "30").iter().zip(demo).map(|(model, demo)| (model - demo).abs()).fold(0.0, f64::max);
        assert!(off < 0.06, "{off}");
        assert!(of(Frames::Capped, "73").iter().all(|alike| alike.abs() < 0.15));
    }

    #[test]
    fn frames_are_reproducible_for_each_player_and_never_early() {
        let late = |player| {
            let mut late = LateFrames::new(Frames::Loaded, Seed(9), PlayerId(player));
            (0..500).map(|_| late.next_delay()).collect::<Vec<_>>()
        };
        assert_eq!(late(0), late(0));
        assert_ne!(late(0), late(1));
        assert!(late(0).iter().all(|late| *late >= Micros::ZERO));
        let mut regular = LateFrames::new(Frames::Regular, Seed(9), PlayerId(0));
        assert!((0..500).all(|_| regular.next_delay() == Micros::ZERO));
    }
}

//! Time keeping between server and client, independent of the wire. [`Calibration`] measures on the server how early
//! input arrives. [`Steering`] is the client clock that follows from it. [`Redundancy`] chooses how often each usercmd
//! is sent.

mod redundancy;

pub use redundancy::Redundancy;

use std::collections::VecDeque;

use crate::push_bounded;
use crate::state::{state, value};
use hitreg_log::units::{Micros, Tick};

/// The number of frames in the filter: about a second at 32 ms.
pub const CALIBRATION_FRAMES: usize = 32;
/// The least number of frames for a result.
const FRAMES_MIN: usize = 8;
/// A frame that deviates by more than this is off. [`SET_FRAMES`] of them in a row, on the same side, show that the
/// client stepped its clock.
const SET_ABOVE: Micros = Micros::from_ms(75);
/// Enough for a result, so that the helper stays known.
const SET_FRAMES: usize = FRAMES_MIN;

/// The calibration helper of one client.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// How early each of the last frames was, oldest first.
    leads: VecDeque<Micros>,
    /// The current run of consecutive frames that are off, on one side.
    off: Vec<Micros>,
    /// The arrival time and the lead of the last frame.
    last: Option<(Micros, Micros)>,
}

value!(Calibration { leads, off, last });

impl Calibration {
    /// Adds a frame whose input arrived at `arrived` for a tick at `computed`. Call it once per packet with the newest
    /// frame, even when that is too late or too early to be used.
    pub fn handle_frame(&mut self, arrived: Micros, computed: Micros) {
        // Clamps false times so that the mean cannot overflow. No honest client is off by an hour.
        let lead = (computed - arrived).clamp(Micros::from_s(-3600), Micros::from_s(3600));
        let last = self.last.replace((arrived, lead));
        let middle = self.middle().unwrap_or(lead);
        if (lead - middle).0.abs() <= SET_ABOVE.0 {
            self.end_run();
            push_bounded(&mut self.leads, lead, CALIBRATION_FRAMES);
            return;
        }
        // A frame waited if it followed the last one within half of the time between their ticks.
        let waited = last.is_some_and(|(last_arrived, last_lead)| arrived - last_arrived < lead - last_lead);
        if lead < middle && waited {
            return;
        }
        if self.off.last().is_some_and(|off| (*off < middle) != (lead < middle)) {
            self.end_run();
        }
        self.off.push(lead);
        if self.off.len() >= SET_FRAMES {
            self.leads = std::mem::take(&mut self.off).into();
        }
    }

    /// Ends a run of frames that are off. Jitter made it, so its frames count as all others.
    fn end_run(&mut self) {
        for lead in self.off.drain(..) {
            push_bounded(&mut self.leads, lead, CALIBRATION_FRAMES);
        }
    }

    /// Returns the helper in ms, positive when input is early; `None` before enough frames arrived.
    pub fn helper_ms(&self) -> Option<i16> {
        let middle = self.middle().filter(|_| self.leads.len() >= FRAMES_MIN)?;
        let ms = (middle.0 + 500).div_euclid(1000);
        Some(ms.clamp(-i64::from(i16::MAX), i64::from(i16::MAX)) as i16)
    }

    /// Returns the mean of the middle half.
    fn middle(&self) -> Option<Micros> {
        let mut sorted: Vec<i64> = self.leads.iter().map(|lead| lead.0).collect();
        sorted.sort_unstable();
        let quarter = sorted.len() / 4;
        let half = sorted.get(quarter..sorted.len() - quarter).filter(|half| !half.is_empty())?;
        Some(Micros(half.iter().sum::<i64>() / half.len() as i64))
    }
}

/// The parameters of steering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringOptions {
    /// The tick interval of the server.
    pub tick: Micros,
    /// The time between usercmds.
    pub frame: Micros,
    /// How early usercmds should arrive: a margin for jitter, and for packets that redundancy makes up for.
    pub lead: Micros,
}

/// The largest error that is not corrected. It exceeds the jitter left in the helper.
const TOLERANCE: Micros = Micros::from_ms(10);
/// Errors above this are corrected in one step, others by slewing.
const JUMP_ABOVE: Micros = Micros::from_ms(100);
/// The slew rate, in µs per second.
const SLEW_US_PER_S: i64 = 50_000;

impl SteeringOptions {
    /// Returns the values for NeREIDS's ticks of 32 ms. Input may arrive three packets late and still be used, and 50
    /// ms of jitter are harmless.
    pub fn nereids() -> SteeringOptions {
        let tick = Micros::from_ms(32);
        SteeringOptions { tick, frame: tick, lead: Micros::from_ms(96 + 50) }
    }
}

/// A clock that shows the server time at which a usercmd made now will run.
#[derive(Clone, Debug)]
pub struct Steering {
    options: SteeringOptions,
    /// The clock minus local time, at `since`.
    offset: Micros,
    /// The correction that is still to be slewed.
    remaining: Micros,
    since: Micros,
    /// Until this time, helpers refer to frames made before the last correction.
    deaf_until: Micros,
    /// Whether the server has sent a helper.
    is_calibrated: bool,
    /// The sum and number of the errors reported since.
    heard: (Micros, u32),
    corrections: u32,
}

state!(Steering { offset, remaining, since, deaf_until, is_calibrated, heard, corrections } but { options });

impl Steering {
    /// Creates a clock that starts `offset` ahead of local time, the client's best estimate.
    pub fn new(options: SteeringOptions, offset: Micros, now: Micros) -> Steering {
        Steering {
            options,
            offset,
            remaining: Micros::ZERO,
            since: now,
            deaf_until: now,
            is_calibrated: false,
            heard: (Micros::ZERO, 0),
            corrections: 0,
        }
    }

    /// Returns the time on the clock at `now`.
    pub fn read(&self, now: Micros) -> Micros {
        now + self.offset + self.slewed(now)
    }

    /// Returns the tick of a usercmd made at `now`: the last tick that has begun by the clock, at least the first.
    pub fn frame(&self, now: Micros) -> Tick {
        Tick(self.read(now).0.div_euclid(self.options.tick.0.max(1)).clamp(0, i64::from(u32::MAX)) as u32)
    }

    /// Returns the number of corrections made.
    pub fn corrections(&self) -> u32 {
        self.corrections
    }

    /// Takes a helper that arrived at `now`. `round_trip` is the maximum of recent round trips.
    pub fn handle_helper(&mut self, now: Micros, helper_ms: i16, round_trip: Micros) {
        let error = self.options.lead - Micros::from_ms(i64::from(helper_ms));
        self.is_calibrated = true;
        if now < self.deaf_until {
            return;
        }
        self.heard = (self.heard.0 + error, self.heard.1.saturating_add(1));
        let mean = Micros(self.heard.0.0 / i64::from(self.heard.1));
        if error.0.abs() > JUMP_ABOVE.0 {
            self.correct(now, error, round_trip);
        } else if now >= self.deaf_until + self.filter() + self.filter() {
            // A single helper still contains jitter. The mean does not, so the clock does not follow it.
            if mean.0.abs() > TOLERANCE.0 {
                self.correct(now, mean, round_trip);
            } else {
                self.listen_from(now);
            }
        }
    }

    /// Takes a warning that a usercmd was `difference` ticks ahead of the server. `moved` is what the clock shows for the
    /// time at which the usercmd was made, minus the usercmd's own time. A warning is a coarse helper for the time before
    /// the first one. Later warnings change nothing: each tells of a single packet, with all of its jitter.
    pub fn handle_warning(&mut self, now: Micros, difference: i16, moved: Micros, round_trip: Micros) {
        let error = self.options.lead - Micros(i64::from(difference) * self.options.tick.0) - moved;
        if !self.is_calibrated && now >= self.deaf_until && error.0.abs() > JUMP_ABOVE.0 {
            self.correct(now, error, round_trip);
        }
    }

    fn correct(&mut self, now: Micros, error: Micros, round_trip: Micros) {
        self.offset += self.slewed(now);
        self.since = now;
        self.corrections = self.corrections.saturating_add(1);
        let mut takes = Micros::ZERO;
        if error.0.abs() > JUMP_ABOVE.0 {
            self.offset += error;
            self.remaining = Micros::ZERO;
        } else {
            self.remaining = error;
            takes = Micros(error.0.abs() * 1_000_000 / SLEW_US_PER_S);
        }
        // More frames: a quarter, to allow for losses, or those of a jump backward. Times of usercmds never decrease, so
        // they stand still until a clock that jumped back has caught up.
        let more = (self.filter().0 / 4).max(-error.0);
        self.listen_from(now + takes + round_trip + self.filter() + Micros(more));
    }

    fn listen_from(&mut self, at: Micros) {
        self.deaf_until = at;
        self.heard = (Micros::ZERO, 0);
    }

    /// Returns the time in which usercmds replace all frames in the server's filter. It takes them in once a tick.
    fn filter(&self) -> Micros {
        Micros(self.options.frame.max(self.options.tick).0 * CALIBRATION_FRAMES as i64)
    }

    /// Returns how much of the remaining correction has been slewed by `now`.
    fn slewed(&self, now: Micros) -> Micros {
        let most = ((now - self.since).0.max(0)).saturating_mul(SLEW_US_PER_S) / 1_000_000;
        Micros(self.remaining.0.clamp(-most, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::rng::Rng;
    use hitreg_log::units::Seed;

    /// Takes frames with their arrival times and tick times. Returns the helper after each.
    fn helpers(frames: impl IntoIterator<Item = (Micros, Micros)>) -> Vec<Option<i16>> {
        let mut calibration = Calibration::default();
        let frames = frames.into_iter().map(|(arrived, computed)| {
            calibration.handle_frame(arrived, computed);
            calibration.helper_ms()
        });
        frames.collect()
    }

    /// Takes a frame each 32 ms, so many ms before its tick. Returns the last helper.
    fn helper(leads_ms: impl IntoIterator<Item = i64>) -> Option<i16> {
        let frames = leads_ms.into_iter().zip(0..);
        let frames = frames.map(|(ms, i)| (Micros::from_ms(32 * i), Micros::from_ms(32 * i + ms)));
        helpers(frames).last().copied().flatten()
    }

    #[test]
    fn calibration_measures_how_early_frames_are() {
        assert_eq!(helper([]), None);
        assert_eq!(helper([40; 7]), None);
        assert_eq!(helper([40; 8]), Some(40));
        assert_eq!(helper([-1_500; 8]), Some(-1_500));
        assert_eq!(helper([-100_000; 8]), Some(-i16::MAX));
    }

    #[test]
    fn late_outliers_do_not_count() {
        let leads = (0..200).map(|i| if i % 9 == 0 { -300 } else { 40 });
        assert_eq!(helper(leads), Some(40));
    }

    #[test]
    fn a_clock_that_was_set_is_followed_at_once() {
        for set_ms in [-160, -40, 120, 240] {
            let leads = || [40; 100].into_iter().chain([set_ms; 8]);
            assert_eq!(helper(leads().take(107)), Some(40));
            assert_eq!(helper(leads()), i16::try_from(set_ms).ok());
        }
    }

    #[test]
    fn a_clock_that_was_set_under_jitter_is_followed_within_a_filter() {
        let jitter = |i: i64| i * 37 % 90;
        for set_ms in [-200, 300] {
            let leads = (0..100).map(|i| 40 - jitter(i)).chain((0..40).map(|i| 40 + set_ms - jitter(i)));
            let helper = helper(leads).map(i64::from);
            assert!(helper.is_some_and(|helper| (helper - (set_ms - 4)).abs() < 20), "{set_ms} ms: {helper:?}");
        }
    }

    #[test]
    fn a_delay_spike_is_one_event() {
        for spike_ms in [80, 200, 300, 1_000] {
            // A packet of each 50 is late, and delays those behind it.
            let mut last = Micros::ZERO;
            let frames = (0..200).map(|i| {
                let delay_ms = if i % 50 == 49 { spike_ms } else { 0 };
                last = last.max(Micros::from_ms(32 * i + delay_ms));
                (last, Micros::from_ms(32 * i + 40))
            });
            let helpers = helpers(frames);
            let is_steady = helpers.iter().skip(7).all(|helper| helper.is_some_and(|ms| (ms - 40).abs() <= 10));
            assert!(is_steady, "{spike_ms} ms: {helpers:?}");
        }
    }

    #[test]
    fn jitter_on_both_sides_is_no_step() {
        let leads = (0..200).map(|i| {
            if i < 100 {
                40
            } else if i % 2 == 0 {
                240
            } else {
                -160
            }
        });
        assert_eq!(helper(leads.take(108)), Some(40));
    }

    #[test]
    fn jitter_is_removed() {
        let mut rng = Rng::new(Seed(11), 0);
        let mut calibration = Calibration::default();
        let mut raw = Vec::new();
        let mut filtered = Vec::new();
        for tick in 0..2_000 {
            let lead = Micros(60_000 - rng.below(50_000) as i64);
            let computed = Micros::from_ms(32 * tick);
            calibration.handle_frame(computed - lead, computed);
            raw.push(lead.as_ms_f64());
            filtered.extend(calibration.helper_ms().map(f64::from));
        }
        let spread = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            libm::sqrt(values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64)
        };
        assert!(spread(&raw) > 13.0, "{}", spread(&raw));
        assert!(spread(&filtered) < 4.5, "{}", spread(&filtered));
    }

    const SECONDS: i64 = 60;
    const SETTLED_AFTER: Micros = Micros::from_s(5);

    /// The result of a simulation.
    struct SteeringRun {
        /// The time after which the lead stayed within 15 ms of its target, without jitter.
        settled_at: Micros,
        corrections: u32,
        /// Corrections after the time by which the clock should have settled.
        late_corrections: u32,
        /// The total clock movement after that time.
        late_movement: Micros,
    }

    /// Simulates a client and a server with `delay`, up to `jitter` and `loss` in each direction. The client's clock
    /// starts with an error of `offset` and runs `drift_ppm` fast.
    fn run(seed: u64, offset: Micros, delay: Micros, jitter: Micros, loss: f64, drift_ppm: i64) -> SteeringRun {
        let options = SteeringOptions::nereids();
        let mut rng = Rng::new(Seed(seed), 7);
        let mut steering = Steering::new(options, offset, Micros::ZERO);
        let mut calibration = Calibration::default();
        let mut to_server: Vec<(Micros, Tick)> = Vec::new();
        let mut to_client: Vec<(Micros, i16)> = Vec::new();
        let mut last = Tick(u32::MAX);
        let mut result =
            SteeringRun { settled_at: Micros::ZERO, corrections: 0, late_corrections: 0, late_movement: Micros::ZERO };
        let mut before = offset;
        for ms in 0..SECONDS * 1000 {
            let now = Micros::from_ms(ms);
            let local = now + Micros(now.0 * drift_ppm / 1_000_000);
            let way = |rng: &mut Rng| now + delay + Micros(rng.below(jitter.0 as u64 + 1) as i64);
            let frame = steering.frame(local);
            if frame != last {
                last = frame;
                let arrives = way(&mut rng);
                if !rng.chance(loss) {
                    to_server.push((arrives, frame));
                }
            }
            to_server.retain(|(at, frame)| {
                if *at <= now {
                    calibration.handle_frame(*at, Micros(i64::from(frame.0) * options.tick.0));
                }
                *at > now
            });
            if ms % 32 == 0 {
                let arrives = way(&mut rng);
                if let (Some(helper), false) = (calibration.helper_ms(), rng.chance(loss)) {
                    to_client.push((arrives, helper));
                }
            }
            to_client.retain(|(at, helper)| {
                if *at <= now {
                    steering.handle_helper(local, *helper, delay + delay + jitter + jitter);
                }
                *at > now
            });
            let offset = steering.read(local) - now;
            // A usercmd is made at the start of its tick. It arrives after the delay and, on average, half the jitter.
            let lead = offset - delay - Micros(jitter.0 / 2);
            if (lead - options.lead).0.abs() > 15_000 {
                result.settled_at = now;
            }
            if now > SETTLED_AFTER {
                result.late_movement += Micros((offset - before).0.abs());
            } else {
                result.late_corrections = steering.corrections();
            }
            before = offset;
        }
        result.corrections = steering.corrections();
        result.late_corrections = result.corrections - result.late_corrections;
        result
    }

    #[test]
    fn a_clock_settles_from_any_offset_and_stays() {
        let mut rng = Rng::new(Seed(3), 0);
        let mut slowest = Micros::ZERO;
        for seed in 0..60 {
            let ends = [-2_000, 2_000, 0];
            let offset_ms = ends.get(seed as usize).copied().unwrap_or_else(|| rng.below(4_001) as i64 - 2_000);
            let delay = Micros::from_ms(rng.below(150) as i64);
            let jitter = Micros::from_ms(if seed < 10 { 50 } else { rng.below(51) as i64 });
            let loss = [0.0, 0.05][seed as usize % 2];
            let run = run(seed, Micros::from_ms(offset_ms), delay, jitter, loss, 0);
            let what = format!("seed {seed}, offset {offset_ms} ms, delay {delay}, jitter {jitter}, loss {loss}");
            assert!(run.settled_at <= SETTLED_AFTER, "{what}: settled after {}", run.settled_at);
            assert!(run.corrections <= 8, "{what}: {} corrections", run.corrections);
            assert!(run.late_corrections <= 3, "{what}: {} late corrections", run.late_corrections);
            assert!(run.late_movement <= Micros::from_ms(40), "{what}: moved by {}", run.late_movement);
            slowest = slowest.max(run.settled_at);
        }
        eprintln!("slowest of 60 to settle: {slowest}");
    }

    #[test]
    fn a_fast_clock_is_held() {
        let run = run(1, Micros::from_ms(500), Micros::from_ms(40), Micros::from_ms(20), 0.01, 300);
        assert!(run.settled_at <= SETTLED_AFTER, "settled after {}", run.settled_at);
        assert!((1..=6).contains(&run.late_corrections), "{} late corrections", run.late_corrections);
    }

    /// Simulates a minute with a delay of 60 ms and exponential jitter with this mean, in which packets keep their order.
    /// After half of it the client's clock is set by `step`. Returns the clock's range from 10 s to then, and how long
    /// it takes after that until the clock stays within 100 ms of its lead.
    fn run_in_order(seed: u64, jitter_ms: f64, step: Micros) -> (Micros, Micros) {
        let options = SteeringOptions::nereids();
        let mut rng = Rng::new(Seed(seed), 3);
        let mut delay = move || Micros::from_ms_f64(60.0 - libm::log(1.0 - rng.unit_f64()) * jitter_ms);
        let mut steering = Steering::new(options, Micros::ZERO, Micros::ZERO);
        let mut calibration = Calibration::default();
        let (mut up, mut down) = (Vec::<(Micros, Micros)>::new(), Vec::<(Micros, i16)>::new());
        let (mut least, mut most, mut settled_at) = (Micros::from_s(9), Micros::ZERO, Micros::ZERO);
        let set_at = Micros::from_s(30);
        for now in (0..1_875).map(|tick| Micros::from_ms(32 * tick)) {
            let local = if now < set_at { now } else { now + step };
            for (at, computed) in up.extract_if(.., |(at, _)| *at <= now) {
                calibration.handle_frame(at, computed);
            }
            for (_, helper) in down.extract_if(.., |(at, _)| *at <= now) {
                steering.handle_helper(local, helper, Micros::from_ms(400));
            }
            let arrives = |last: Option<Micros>, delay: Micros| (now + delay).max(last.unwrap_or(now));
            up.push((arrives(up.last().map(|(at, _)| *at), delay()), steering.read(local)));
            if let Some(helper) = calibration.helper_ms() {
                down.push((arrives(down.last().map(|(at, _)| *at), delay()), helper));
            }
            let ahead = steering.read(local) - now;
            if (Micros::from_s(10)..set_at).contains(&now) {
                (least, most) = (least.min(ahead), most.max(ahead));
            }
            // The clock is ahead by the lead, the delay, and the typical jitter.
            let target = options.lead + Micros::from_ms_f64(60.0 + jitter_ms);
            if now >= set_at && (ahead - target).0.abs() > JUMP_ABOVE.0 {
                settled_at = now;
            }
        }
        (most - least, settled_at - set_at)
    }

    #[test]
    fn spikes_do_not_move_a_settled_clock_and_setting_it_does() {
        for seed in 0..20 {
            for (jitter_ms, step_ms) in [(10.0, 300), (20.0, -300), (30.0, 1_000), (50.0, -1_000)] {
                let (range, settled) = run_in_order(seed, jitter_ms, Micros::from_ms(step_ms));
                let what = format!("seed {seed}, jitter {jitter_ms} ms, step {step_ms} ms");
                assert!(range <= Micros::from_ms(75), "{what}: the clock moved by {range}");
                // Eight frames, the way there and back, and at most a correction that has to take effect first.
                assert!(settled <= Micros::from_ms(4_500), "{what}: followed after {settled}");
            }
        }
    }

    #[test]
    fn warnings_correct_a_clock_whose_frames_are_all_late() {
        let options = SteeringOptions::nereids();
        let mut steering = Steering::new(options, Micros::ZERO, Micros::ZERO);
        let mut warn = |at_ms, moved_ms, difference| {
            let at = Micros::from_ms(at_ms);
            steering.handle_warning(at, difference, Micros::from_ms(moved_ms), Micros::from_ms(100));
            steering.read(at) - at
        };
        let set = Micros::from_ms(50 * 32 + 146);
        assert_eq!(warn(10, 0, -50), set);
        // The next warnings concern usercmds made before the correction.
        assert_eq!([warn(42, 0, -50), warn(3_000, set.0 / 1000, -50)], [set; 2]);
    }

    #[test]
    fn a_warning_counts_the_clocks_movement_since_the_usercmd() {
        let mut steering = Steering::new(SteeringOptions::nereids(), Micros::from_ms(-54), Micros::ZERO);
        // The usercmd was made at 8 ms with time 0, before the clock began, and was 9 ticks late.
        let moved = steering.read(Micros::from_ms(8));
        steering.handle_warning(Micros::from_ms(400), -9, moved, Micros::from_ms(400));
        assert_eq!(steering.read(Micros::from_ms(8)), Micros::from_ms(9 * 32 + 146));
    }

    /// Shows that the tests above can fail: the clock oscillates if it does not wait for its corrections to take
    /// effect.
    #[test]
    fn a_clock_that_does_not_wait_oscillates() {
        let options = SteeringOptions::nereids();
        let mut steering = Steering::new(options, Micros::from_ms(2_000), Micros::ZERO);
        for ms in [100, 132, 164] {
            steering.deaf_until = Micros::ZERO;
            steering.handle_helper(Micros::from_ms(ms), 1_900, Micros::from_ms(200));
        }
        assert!(steering.read(Micros::ZERO) < Micros::from_s(-3));
    }
}

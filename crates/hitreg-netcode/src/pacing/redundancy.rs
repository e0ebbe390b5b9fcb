//! How often each usercmd is sent: 4:1, 3:1, 2:1 or 1:1, chosen by bandwidth, loss and jitter as in NeREIDS's plan.
//!
//! Bandwidth is estimated from the round trip. When even the fastest recent packets are slower than usual, the client's
//! own packets have filled a queue. Jitter alone would leave some packets fast. The estimate drops by a factor when
//! there is a queue, and grows slowly when there is none.
//!
//! A line with spare bandwidth gets 4:1, or 3:1 while no packets are lost or late. A tight line gets as much as it
//! carries, but never 1:1 with jitter or loss. A reordered packet counts as lost, and at 1:1 each lost packet is lost
//! input.

use std::collections::VecDeque;

use crate::state::value;
use hitreg_log::units::Micros;

const LEVEL_MAX: u8 = 4;
/// The UDP/IP headers, and the bytes of a client's datagram other than usercmds.
const FIXED_BYTES: f64 = 28.0 + 17.0;
/// The assumed size of a usercmd until it is measured: the average of Half-Life and QuakeWorld clients.
const COMMAND_BYTES: f64 = 16.0;
/// The span of round trips that define the delay without a queue. If even the lowest redundancy overfills the line for
/// longer, the queue counts as delay. If the path becomes longer, the difference counts as a queue for this long.
const FASTEST_OF: Micros = Micros::from_s(60);
/// The span of round trips that define the present delay.
const QUEUE_OF: Micros = Micros::from_ms(500);
/// The least delay that counts as a queue.
const QUEUE_ABOVE: Micros = Micros::from_ms(30);
/// The least time between steps down, in which the queue can drain.
const STEP_DOWN_AFTER: Micros = Micros::from_ms(1000);
/// A higher level is tried after it has been wanted and affordable for this long.
const STEP_UP_AFTER: Micros = Micros::from_s(2);
/// A step up fails if it fills the queue within this time. The next attempt waits twice as long, up to a maximum.
const FAILED_WITHIN: Micros = Micros::from_s(8);
const STEP_UP_AFTER_MAX: Micros = Micros::from_s(64);
/// The growth of the estimate per second, as a fraction.
const GROWTH_PER_S: f64 = 0.1;
/// The factor of the sending rate to which the estimate drops when there is a queue.
const FALL_TO: f64 = 0.85;

/// Chooses the redundancy of one client. It is a state machine: times come in as arguments.
#[derive(Clone, Debug)]
pub struct Redundancy {
    interval: Micros,
    level: u8,
    changed_at: Micros,
    /// Since when a higher level has been wanted and affordable.
    more_since: Option<Micros>,
    step_up_after: Micros,
    stepped_up_at: Option<Micros>,
    /// The estimated bandwidth in bytes/s; `None` while the line was never full.
    bandwidth: Option<f64>,
    estimated_at: Micros,
    /// The longest queue since the last estimate.
    queue_peak: Micros,
    command_bytes: f64,
    /// The running minima of the round trips within [`FASTEST_OF`], oldest and lowest first.
    fastest: VecDeque<(Micros, Micros)>,
    recent: VecDeque<(Micros, Micros)>,
    jitter_us: f64,
    last_round_trip: Option<Micros>,
    /// The share of lost packets. The initial value does not trust the line.
    loss: f64,
    /// Whether packets are lost or late. The level is then 4:1 if the line can carry it.
    is_careful: bool,
    /// Whether loss or jitter rules out 1:1.
    is_rough: bool,
}

impl Redundancy {
    /// Creates the state at 4:1. `interval` is the time between packets.
    pub fn new(interval: Micros, now: Micros) -> Redundancy {
        Redundancy {
            interval: interval.max(Micros(1)),
            level: LEVEL_MAX,
            changed_at: now,
            more_since: None,
            step_up_after: STEP_UP_AFTER,
            stepped_up_at: None,
            bandwidth: None,
            estimated_at: now,
            queue_peak: Micros::ZERO,
            command_bytes: COMMAND_BYTES,
            fastest: VecDeque::new(),
            recent: VecDeque::new(),
            jitter_us: 0.0,
            last_round_trip: None,
            loss: 0.02,
            is_careful: true,
            is_rough: false,
        }
    }

    /// Records a sent datagram: its size in bytes without UDP/IP headers, and its number of usercmds.
    pub fn handle_sent(&mut self, bytes: usize, commands: usize) {
        if commands > 0 {
            let each = ((bytes as f64 + 28.0 - FIXED_BYTES) / commands as f64).clamp(4.0, 64.0);
            self.command_bytes += (each - self.command_bytes) / 32.0;
        }
    }

    /// Records a round trip measured at `now`.
    pub fn handle_round_trip(&mut self, now: Micros, round_trip: Micros) {
        if let Some(last) = self.last_round_trip.replace(round_trip) {
            let change = (round_trip - last).0.abs() as f64;
            // Interarrival jitter as in RFC 3550.
            self.jitter_us += (change - self.jitter_us) / 16.0;
        }
        keep_fastest(&mut self.fastest, now, round_trip, FASTEST_OF);
        keep_fastest(&mut self.recent, now, round_trip, QUEUE_OF);
    }

    /// Records how many packets arrived or were lost since the last call, as the server reports.
    pub fn handle_arrivals(&mut self, received: u32, lost: u32) {
        for is_lost in
            std::iter::repeat_n(1.0, lost as usize).chain(std::iter::repeat_n(0.0, received as usize)).take(256)
        {
            self.loss += (is_lost - self.loss) / 128.0;
        }
    }

    /// Returns the number of usercmds in the next packet, from 1 to 4.
    pub fn level(&mut self, now: Micros) -> u8 {
        let is_congested = self.queue() > QUEUE_ABOVE;
        let is_overfull = self.estimate(now, is_congested);
        self.is_careful = self.is_unsafe(if self.is_careful { 0.5 } else { 1.0 });
        let wish = if self.is_careful { LEVEL_MAX } else { LEVEL_MAX - 1 };
        self.is_rough = self.is_unsafe(if self.is_rough { 1.0 } else { 2.0 });
        let least = if self.is_rough { 2 } else { 1 };
        let target = wish.min(self.affordable()).max(least);
        if target < self.level {
            self.more_since = None;
            // The queue of a higher level says nothing about this one: levels may be closer together than the estimate is
            // exact.
            let is_known = is_overfull || wish < self.level;
            if is_known && now - self.changed_at >= STEP_DOWN_AFTER {
                self.step_down(now, is_congested);
            }
        } else if target > self.level {
            let since = *self.more_since.get_or_insert(now);
            if now - since >= self.step_up_after {
                self.level += 1;
                self.changed_at = now;
                self.more_since = None;
                self.stepped_up_at = Some(now);
            }
        } else {
            self.more_since = None;
        }
        self.level
    }

    fn step_down(&mut self, now: Micros, is_congested: bool) {
        self.level -= 1;
        self.changed_at = now;
        if let (Some(up), true) = (self.stepped_up_at.take(), is_congested) {
            let failed = now - up <= FAILED_WITHIN;
            self.step_up_after = if failed { Micros(self.step_up_after.0 * 2) } else { STEP_UP_AFTER };
            self.step_up_after = self.step_up_after.min(STEP_UP_AFTER_MAX);
        }
    }

    /// Returns the current queueing delay.
    fn queue(&self) -> Micros {
        match (self.fastest.front(), self.recent.front()) {
            (Some((_, ever)), Some((_, now))) => *now - *ever,
            _ => Micros::ZERO,
        }
    }

    /// Updates the estimate. Returns whether the queue grows at this level.
    fn estimate(&mut self, now: Micros, is_congested: bool) -> bool {
        let passed = now - self.estimated_at;
        if is_congested {
            let queue = self.queue();
            self.queue_peak = self.queue_peak.max(queue);
            if now - self.changed_at >= STEP_DOWN_AFTER && passed >= STEP_DOWN_AFTER {
                // A queue below its peak shrinks: earlier packets caused it. Its peak comes after a step down, when the
                // packets sent until then have arrived.
                let grows = queue >= self.queue_peak;
                if grows {
                    self.bandwidth = Some(self.rate_at(self.level) * FALL_TO);
                }
                self.queue_peak = queue;
                self.estimated_at = now;
                return grows;
            }
            return false;
        }
        self.queue_peak = Micros::ZERO;
        if let Some(bandwidth) = self.bandwidth {
            let grown = bandwidth * (1.0 + GROWTH_PER_S * passed.as_s_f64().clamp(0.0, 1.0));
            let is_plenty = grown > 2.0 * self.rate_at(LEVEL_MAX);
            self.bandwidth = (!is_plenty).then_some(grown);
            self.estimated_at = now;
        }
        false
    }

    /// Returns the rate of a redundancy level in bytes/s.
    fn rate_at(&self, level: u8) -> f64 {
        (FIXED_BYTES + f64::from(level) * self.command_bytes) / self.interval.as_s_f64()
    }

    fn affordable(&self) -> u8 {
        let Some(bandwidth) = self.bandwidth else { return LEVEL_MAX };
        (1..=LEVEL_MAX).rev().find(|level| self.rate_at(*level) <= bandwidth).unwrap_or(1)
    }

    fn is_valid(&self) -> bool {
        (1..=LEVEL_MAX).contains(&self.level) && (STEP_UP_AFTER..=STEP_UP_AFTER_MAX).contains(&self.step_up_after)
    }

    /// Returns whether loss or jitter exceeds `bar` times its harmless value.
    fn is_unsafe(&self, bar: f64) -> bool {
        self.loss > 0.01 * bar || self.jitter_us > self.interval.0 as f64 * 0.5 * bar
    }
}

value!(Redundancy {
    interval,
    level,
    changed_at,
    more_since,
    step_up_after,
    stepped_up_at,
    bandwidth,
    estimated_at,
    queue_peak,
    command_bytes,
    fastest,
    recent,
    jitter_us,
    last_round_trip,
    loss,
    is_careful,
    is_rough,
} if is_valid);

/// Adds a round trip to the running minima of the last `span`. It removes each entry that is not below a later one, so
/// the front is the overall minimum.
fn keep_fastest(fastest: &mut VecDeque<(Micros, Micros)>, now: Micros, round_trip: Micros, span: Micros) {
    while fastest.back().is_some_and(|(_, other)| *other >= round_trip) {
        fastest.pop_back();
    }
    fastest.push_back((now, round_trip));
    while fastest.front().is_some_and(|(at, _)| now - *at > span) {
        fastest.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::rng::Rng;
    use hitreg_log::units::Seed;

    /// A line, and the redundancy levels on it.
    #[derive(Clone, Copy, Debug)]
    struct TestLink {
        jitter_ms: u64,
        loss: f64,
        bytes_per_s: f64,
    }

    const RATE: f64 = 1e9;
    const CLEAN: TestLink = TestLink { jitter_ms: 2, loss: 0.0, bytes_per_s: RATE };

    /// Returns the levels, one for each packet of 32 ms. Each line lasts for its number of seconds.
    fn levels(seed: u64, lines: &[(TestLink, i64)]) -> Vec<u8> {
        levels_of(seed, lines, |level| 17.0 + 16.0 * level)
    }

    /// The same, with packets of this size at each level.
    fn levels_of(seed: u64, lines: &[(TestLink, i64)], bytes_at: impl Fn(f64) -> f64) -> Vec<u8> {
        let interval = Micros::from_ms(32);
        let mut redundancy = Redundancy::new(interval, Micros::ZERO);
        let mut rng = Rng::new(Seed(seed), 0);
        let mut queued = 0.0;
        let mut now = Micros::ZERO;
        let mut levels = Vec::new();
        for (line, seconds) in lines {
            let end = now + Micros::from_s(*seconds);
            while now < end {
                let level = redundancy.level(now);
                levels.push(level);
                let bytes = bytes_at(level.into()) as usize;
                redundancy.handle_sent(bytes, level.into());
                queued = f64::min(queued + bytes as f64 + 28.0, line.bytes_per_s);
                queued = f64::max(queued - line.bytes_per_s * interval.as_s_f64(), 0.0);
                let waits = Micros::from_ms_f64(queued / line.bytes_per_s * 1000.0);
                let jitter = Micros(rng.below(line.jitter_ms * 1000 + 1) as i64);
                let is_lost = rng.chance(line.loss);
                redundancy.handle_arrivals(u32::from(!is_lost), u32::from(is_lost));
                if !is_lost {
                    redundancy.handle_round_trip(now, Micros::from_ms(60) + waits + jitter);
                }
                now += interval;
            }
        }
        levels
    }

    fn changes(levels: &[u8]) -> usize {
        levels.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    /// Returns the share of time at each level from 1 to 4.
    fn shares(levels: &[u8]) -> [f64; 4] {
        [1, 2, 3, 4].map(|level| levels.iter().filter(|l| **l == level).count() as f64 / levels.len() as f64)
    }

    fn rate_of(level: f64) -> f64 {
        (45.0 + 16.0 * level) / 0.032
    }

    fn rate_of_close_levels(level: f64) -> f64 {
        (66.0 + 7.7 * level) / 0.032
    }

    #[test]
    fn a_clean_line_needs_no_more_than_three() {
        let levels = levels(1, &[(CLEAN, 60)]);
        assert_eq!((levels[0], levels.last(), changes(&levels)), (4, Some(&3), 1));
    }

    #[test]
    fn loss_and_jitter_need_four() {
        for seed in 0..10 {
            let lossy = levels(seed, &[(TestLink { loss: 0.05, ..CLEAN }, 60)]);
            assert!(shares(&lossy)[3] > 0.95, "{:?}", shares(&lossy));
            let jittery = levels(seed, &[(TestLink { jitter_ms: 70, ..CLEAN }, 60)]);
            assert!(shares(&jittery)[3] > 0.95 && changes(&jittery) <= 2, "{:?}", shares(&jittery));
        }
    }

    #[test]
    fn a_slow_line_gets_a_fitting_level_with_rare_trials() {
        for seed in 0..10 {
            let tight = levels(seed, &[(TestLink { bytes_per_s: rate_of(2.4), ..CLEAN }, 120)]);
            assert!(shares(&tight)[1] > 0.75, "{:?}", shares(&tight));
            assert!(changes(&tight) <= 14, "{}", changes(&tight));
            let tighter = levels(seed, &[(TestLink { bytes_per_s: rate_of(1.4), ..CLEAN }, 120)]);
            assert!(shares(&tighter)[0] > 0.75, "{:?}", shares(&tighter));
            assert!(changes(&tighter) <= 16, "{}", changes(&tighter));
        }
    }

    /// The packets of 3:1 are so little longer than those of 2:1 that the estimate after 3:1 is too low for 2:1.
    #[test]
    fn the_queue_of_a_higher_level_does_not_lower_the_next_one() {
        for fits in [2.2, 2.4, 2.6] {
            let tight = TestLink { bytes_per_s: rate_of_close_levels(fits), ..CLEAN };
            let levels = levels_of(1, &[(tight, 120)], |level| 38.0 + 7.7 * level);
            let shares = shares(&levels[900..]);
            assert!(shares[1] > 0.85, "fits {fits}:1: {shares:?}");
        }
    }

    #[test]
    fn never_one_to_one_with_jitter_or_loss() {
        for seed in 0..10 {
            for (fits, share_of_two) in [(2.4, 0.7), (1.4, 0.0)] {
                let tight = TestLink { bytes_per_s: rate_of(fits), ..CLEAN };
                for line in [TestLink { jitter_ms: 150, ..tight }, TestLink { loss: 0.06, ..tight }] {
                    let levels = levels(seed, &[(line, 120)]);
                    let shares = shares(&levels[300..]);
                    assert!(shares[0] < 0.02 && shares[1] > share_of_two, "fits {fits}:1, {line:?}: {shares:?}");
                }
            }
        }
    }

    #[test]
    fn the_level_recovers_with_the_line() {
        for seed in 0..10 {
            let tight = TestLink { bytes_per_s: rate_of(1.4), ..CLEAN };
            let levels = levels(seed, &[(CLEAN, 20), (tight, 30), (CLEAN, 120)]);
            assert_eq!(levels.last(), Some(&3));
            assert!(shares(&levels[levels.len() - 1000..])[2] > 0.99);
        }
    }
}

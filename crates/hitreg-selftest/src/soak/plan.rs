//! What one seed picks: preset, settings, map, players, their connections, and everything that goes wrong.

use std::collections::BTreeSet;

use serde::Serialize;

use super::lie::Lie;
use hitreg_log::rng::Rng;
use hitreg_log::units::{Micros, Seed, named};
use hitreg_netcode::link::{Jitter, LinkModel, Loss};
use hitreg_netcode::settings::{PRESETS, Settings};

/// A session and its faults, all from one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The settings' preset.
    pub preset: &'static str,
    /// Settings that differ from the preset.
    pub settings: Vec<(&'static str, &'static str)>,
    /// Whether it is played in the orchard, and not in the courtyard.
    pub in_orchard: bool,
    /// How long it is, in ms of the session.
    pub length_ms: u32,
    /// Who plays; the first is player 0.
    pub players: Vec<PlayerPlan>,
    /// Server ticks come late by up to so many µs.
    pub late_ticks_us: u32,
    /// The chance of a tick that is left out.
    pub left_out_ticks: f64,
    /// The chance that somebody else meddles with a datagram.
    pub intrusions: f64,
    /// What player 0's client says that is not so.
    pub lie: Option<Lie>,
    /// What went wrong at all.
    pub faults: BTreeSet<Fault>,
}

/// One player of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlayerPlan {
    /// To the server.
    pub up: LinkModel,
    /// From the server.
    pub down: LinkModel,
    /// Spans from and to, in ms, in which all that leaves in either direction is lost.
    pub outages_ms: Vec<[f64; 2]>,
    /// By how much faster its frames come than its settings say, in parts of a million.
    pub drift_ppm: i32,
    /// A span from and to, in ms, in which it makes no frame.
    pub stall_ms: Option<[u32; 2]>,
    /// When it makes no frame any more, in ms.
    pub leaves_ms: Option<u32>,
}

/// What can go wrong. Each can be left out of a plan, and the rest stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Other settings than the preset's.
    Settings,
    /// Lost packets, alone or in bursts.
    Loss,
    /// Jitter, packets out of order and twice.
    Jitter,
    /// A narrow line.
    Narrow,
    /// Spans without any packet.
    Outages,
    /// Clients whose clocks run fast or slow.
    Drift,
    /// Clients that make no frame for a while.
    Stalls,
    /// Clients that leave.
    Leaving,
    /// Server ticks that come late or never.
    Ticks,
    /// Datagrams that somebody else has made, changed or kept.
    Intruder,
    /// A client that lies.
    Lies,
}

named!(Fault {
    Settings = "settings",
    Loss = "loss",
    Jitter = "jitter",
    Narrow = "narrow",
    Outages = "outages",
    Drift = "drift",
    Stalls = "stalls",
    Leaving = "leaving",
    Ticks = "ticks",
    Intruder = "intruder",
    Lies = "lies",
});

/// What is left of a seed's plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// No more players than so many.
    pub players: Option<usize>,
    /// No longer than so many ms.
    pub length_ms: Option<u32>,
    /// Without these.
    pub without: BTreeSet<Fault>,
}

/// The chance of each fault but lies.
const OFTEN: f64 = 0.35;
/// A session with a client that lies is held against its lies alone, because its own replay would not lie.
const SELDOM: f64 = 0.2;

/// Settings and values that they are tried with.
const SETTINGS: &[(&str, &[&str])] = &[
    ("prediction.mode", &["off", "movement", "weapons"]),
    ("prediction.push_latency_ms", &["0", "-50", "-10000"]),
    ("prediction.among", &["known", "acking-packet"]),
    ("interpolation.mode", &["off", "extrapolate", "two-point", "history", "category"]),
    ("interpolation.lerp_ms", &["0", "17", "100", "400"]),
    ("interpolation.on_missing", &["extrapolate", "hold"]),
    ("extrapolation.max_ms", &["0", "1000"]),
    ("teleport.distance_units", &["8", "65536"]),
    ("lag_compensation.enabled", &["false", "true"]),
    ("lag_compensation.max_unlag_ms", &["0", "60", "1500"]),
    ("lag_compensation.max_claim_error_ms", &["0", "50", "1500"]),
    ("server.tick_hz", &["11", "31.25", "128"]),
    ("server.update_hz", &["3", "10", "64"]),
    ("server.rate_bytes_per_s", &["1000", "4000"]),
    ("server.command_credit_ms", &["0", "60", "5000"]),
    ("server.on_lost_command", &["repeat", "skip"]),
    ("server.schedule", &["arrival", "tick"]),
    ("client.cmd_hz", &["20", "31.25", "125"]),
    ("client.redundancy", &["1", "2", "16"]),
    ("client.clock", &["adopt", "drift", "calibrated"]),
    ("client.lead_ms", &["0", "60"]),
    ("client.adaptive_redundancy", &["true"]),
    ("wire.sizes", &["nominal", "datagrams"]),
    ("wire.message_max_bytes", &["400", "900"]),
];

/// Values of `client.frames`. It is picked by numbers of its own, so that seeds from before it was are what they were.
const FRAMES: &[&str] = &["regular", "capped", "hitches", "loaded"];

impl Plan {
    /// The plan of a seed, as far as the limits leave it.
    pub fn of(seed: u64, limits: &Limits) -> Plan {
        let mut plan = Plan::whole(seed);
        plan.players.truncate(limits.players.unwrap_or(usize::MAX).max(1));
        plan.length_ms = plan.length_ms.min(limits.length_ms.unwrap_or(u32::MAX));
        for fault in &limits.without {
            plan.leave_out(*fault);
        }
        plan
    }

    /// All that a seed picks. Each fault has numbers of its own, so that leaving one out changes no other.
    fn whole(seed: u64) -> Plan {
        let chances = |about: u64| Rng::new(Seed(seed), 0x736f_616b_0000_0000 | about);
        let mut rng = chances(0);
        let preset = if rng.chance(0.5) { "half-life" } else { PRESETS[rng.below(PRESETS.len() as u64) as usize].name };
        let mut players = 1 + rng.below(4) as usize;
        let mut length_ms = 1_000 + rng.below(3_000) as u32;
        let in_orchard = rng.chance(0.25);
        let mut faults = BTreeSet::new();
        for (fault, chance) in Fault::ALL.map(|fault| (fault, if fault == Fault::Lies { SELDOM } else { OFTEN })) {
            if rng.chance(chance) {
                faults.insert(fault);
            }
        }
        if faults.contains(&Fault::Lies) {
            // A lie shows where somebody is shot at, which takes time; nothing of such a session is replayed.
            (length_ms, players) = (2 * length_ms + 2_000, players + 1);
            if rng.chance(0.6) {
                // What it gains is known to the ms only where nothing else is wrong.
                faults.retain(|fault| [Fault::Lies, Fault::Settings].contains(fault));
            }
        }
        let mut rng = chances(1);
        let mut settings = Vec::new();
        for _ in 0..1 + rng.below(4) {
            let (key, values) = SETTINGS[rng.below(SETTINGS.len() as u64) as usize];
            settings.push((key, values[rng.below(values.len() as u64) as usize]));
        }
        let mut rng = chances(5);
        if rng.chance(0.2) {
            settings.push(("client.frames", FRAMES[rng.below(FRAMES.len() as u64) as usize]));
        }
        let mut rng = chances(2);
        let (late_ticks_us, left_out_ticks) = (rng.below(20_000) as u32, if rng.chance(0.5) { 0.1 } else { 0.0 });
        let intrusions = 0.02 + 0.2 * chances(3).unit_f64();
        let lie = Some(Lie::of(&mut chances(4)));
        let player = |index: usize| PlayerPlan::whole(&mut chances(0x100 + index as u64), length_ms);
        let players = (0..players).map(player).collect();
        let mut plan = Plan {
            seed,
            preset,
            settings,
            in_orchard,
            length_ms,
            players,
            late_ticks_us,
            left_out_ticks,
            intrusions,
            lie,
            faults: Fault::ALL.into(),
        };
        for fault in Fault::ALL.into_iter().filter(|fault| !faults.contains(fault)) {
            plan.leave_out(fault);
        }
        plan
    }

    fn leave_out(&mut self, fault: Fault) {
        self.faults.remove(&fault);
        match fault {
            Fault::Settings => self.settings.clear(),
            Fault::Ticks => (self.late_ticks_us, self.left_out_ticks) = (0, 0.0),
            Fault::Intruder => self.intrusions = 0.0,
            Fault::Lies => self.lie = None,
            Fault::Loss
            | Fault::Jitter
            | Fault::Narrow
            | Fault::Outages
            | Fault::Drift
            | Fault::Stalls
            | Fault::Leaving => self.players.iter_mut().for_each(|player| player.leave_out(fault)),
        }
    }

    /// Its settings.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::preset(self.preset).unwrap_or_default();
        for (key, value) in self.settings.iter().copied() {
            let set = settings.set(key, value);
            debug_assert_eq!(set, Ok(()), "the settings that are tried are settings");
        }
        settings
    }

    /// How long it is.
    pub fn length(&self) -> Micros {
        Micros::from_ms(self.length_ms.into())
    }

    /// Whether all that a player was sent came, once and in its order.
    pub fn comes_whole(&self, down: &LinkModel) -> bool {
        let plain = down.loss == Loss::None && down.reorder == 0.0 && down.rate_bytes_per_s.is_none();
        plain && !self.faults.contains(&Fault::Outages) && !self.faults.contains(&Fault::Intruder)
    }
}

impl PlayerPlan {
    fn whole(rng: &mut Rng, length_ms: u32) -> PlayerPlan {
        let mut link = || LinkModel {
            // Nothing takes no time at all.
            delay_ms: 1.0 + (rng.unit_f64() * 120.0).floor(),
            jitter: match rng.below(3) {
                0 => Jitter::Uniform(rng.unit_f64() * 30.0),
                1 => Jitter::Normal(rng.unit_f64() * 15.0),
                _ => Jitter::Exponential(rng.unit_f64() * 15.0),
            },
            loss: match rng.below(2) {
                0 => Loss::Random(rng.unit_f64() * 0.2),
                _ => Loss::Burst { enter: rng.unit_f64() * 0.05, leave: 0.1 + rng.unit_f64() * 0.5 },
            },
            duplicate: rng.unit_f64() * 0.1,
            reorder: rng.unit_f64() * 0.1,
            reorder_ms: rng.unit_f64() * 60.0,
            rate_bytes_per_s: Some(1_500.0 + rng.unit_f64() * 20_000.0),
        };
        let (up, down) = (link(), link());
        let mut span = |longest: u64| {
            let from = rng.below(length_ms.into()) as u32;
            [from, from + rng.below(longest) as u32]
        };
        let outages_ms = [span(300), span(1_200)].map(|ends| ends.map(f64::from)).to_vec();
        let stall = span(800);
        let leaves_ms = (length_ms / 4) + rng.below(u64::from(length_ms)) as u32;
        let drift_ppm = rng.below(400_000) as i32 - 200_000;
        // Not everybody is as badly off.
        let some = |rng: &mut Rng| rng.chance(0.5);
        PlayerPlan {
            up,
            down,
            outages_ms: if some(rng) { outages_ms } else { Vec::new() },
            drift_ppm: if some(rng) { drift_ppm } else { 0 },
            stall_ms: some(rng).then_some(stall),
            leaves_ms: some(rng).then_some(leaves_ms),
        }
    }

    fn leave_out(&mut self, fault: Fault) {
        match fault {
            Fault::Outages => self.outages_ms.clear(),
            Fault::Drift => self.drift_ppm = 0,
            Fault::Stalls => self.stall_ms = None,
            Fault::Leaving => self.leaves_ms = None,
            _ => {}
        }
        for link in [&mut self.up, &mut self.down] {
            match fault {
                Fault::Loss => link.loss = Loss::None,
                Fault::Narrow => link.rate_bytes_per_s = None,
                Fault::Jitter => {
                    link.jitter = Jitter::None;
                    (link.duplicate, link.reorder, link.reorder_ms) = (0.0, 0.0, 0.0);
                }
                _ => {}
            }
        }
    }
}

impl Fault {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_a_fault_out_changes_nothing_else() {
        for seed in 0..200 {
            let whole = Plan::of(seed, &Limits::default());
            for fault in Fault::ALL {
                let less = Plan::of(seed, &Limits { without: [fault].into(), ..Limits::default() });
                let mut same = whole.clone();
                same.leave_out(fault);
                assert_eq!(less, same);
                assert!(!less.faults.contains(&fault));
            }
        }
    }

    #[test]
    fn settings_that_are_tried_are_settings() {
        for (key, values) in SETTINGS.iter().chain([&("client.frames", FRAMES)]) {
            for value in *values {
                assert_eq!(Settings::default().set(key, value), Ok(()), "{key}={value}");
            }
        }
    }

    #[test]
    fn every_value_of_every_setting_is_tried() {
        let tried: BTreeSet<_> = (0..4_000).flat_map(|seed| Plan::of(seed, &Limits::default()).settings).collect();
        for (key, values) in SETTINGS.iter().chain([&("client.frames", FRAMES)]) {
            for value in *values {
                assert!(tried.contains(&(*key, *value)), "{key}={value}");
            }
        }
    }
}

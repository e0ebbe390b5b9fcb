//! The plan of a seed: preset, settings, map, players, their connections, the lies of a client, and all faults.

use serde::Serialize;

use hitreg_log::rng::{Rng, stream};
use hitreg_log::sorted::SortedSet;
use hitreg_log::units::{CommandSeq, Micros, Seed, SnapshotSeq, named};
use hitreg_netcode::link::{Jitter, LinkModel, Loss};
use hitreg_netcode::packet::ClientPacket;
use hitreg_netcode::settings::{PRESETS, Settings};

/// A session and its faults, all drawn from one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SoakPlan {
    /// The seed.
    pub seed: u64,
    /// The settings preset.
    pub preset: &'static str,
    /// Settings that differ from the preset.
    pub settings: Vec<(&'static str, &'static str)>,
    /// Whether the map is the orchard; otherwise it is the courtyard.
    pub in_orchard: bool,
    /// The length of the session in ms.
    pub length_ms: u32,
    /// The players; the first is player 0.
    pub players: Vec<PlayerPlan>,
    /// The most lateness of a server tick, in µs.
    pub late_ticks_us: u32,
    /// The probability that a tick is left out.
    pub left_out_ticks: f64,
    /// The probability that the attacker interferes with a datagram.
    pub intrusions: f64,
    /// The false claims of player 0's client.
    pub lie: Option<FalseClaims>,
    /// The kinds of fault in the plan.
    pub faults: SortedSet<PlannedFault>,
}

/// One player of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlayerPlan {
    /// The link to the server.
    pub up: LinkModel,
    /// The link from the server.
    pub down: LinkModel,
    /// Outages, from and to in ms, in which all packets in both directions are lost.
    pub outages_ms: Vec<[f64; 2]>,
    /// How much faster its frames come than the settings say, in parts per million.
    pub drift_ppm: i32,
    /// A span, from and to in ms, without frames.
    pub stall_ms: Option<[u32; 2]>,
    /// The time of its last frame, in ms.
    pub leaves_ms: Option<u32>,
}

named! {
    /// The kinds of fault. Each can be removed from a plan without changing the others.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PlannedFault {
        /// Settings that differ from the preset.
        Settings = "settings",
        /// Lost packets, alone or in bursts.
        Loss = "loss",
        /// Jitter, reordering and duplication.
        Jitter = "jitter",
        /// A line with low bandwidth.
        Narrow = "narrow",
        /// Outages.
        Outages = "outages",
        /// Clients whose clocks run fast or slow.
        Drift = "drift",
        /// Clients that make no frame for a while.
        Stalls = "stalls",
        /// Clients that leave.
        Leaving = "leaving",
        /// Server ticks that are late or left out.
        Ticks = "ticks",
        /// Datagrams that an attacker forged, modified or delayed.
        Intruder = "intruder",
        /// A client that lies.
        Lies = "lies",
    }
}

/// The restrictions that reduce a seed's plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanLimits {
    /// The most players.
    pub players: Option<usize>,
    /// The greatest length in ms.
    pub length_ms: Option<u32>,
    /// The faults to remove.
    pub without: SortedSet<PlannedFault>,
}

/// The probability of each fault except lies.
const FAULT_PROBABILITY: f64 = 0.35;
/// The probability of lies. A session with a lying client is checked for its lies only, because its replay would not
/// lie.
const LIE_PROBABILITY: f64 = 0.2;

/// Settings, with the values to try.
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
    ("client.clock", &["adopt", "drift"]),
    ("client.lead_ms", &["0", "60"]),
    ("client.adaptive_redundancy", &["true"]),
    ("wire.sizes", &["nominal", "datagrams"]),
    ("wire.message_max_bytes", &["400", "900"]),
];

/// Values of `client.frames`. They are drawn from a separate random stream, so that existing seeds keep their plans.
const FRAMES: &[&str] = &["regular", "capped", "hitches", "loaded"];

impl SoakPlan {
    /// Returns the plan of a seed, reduced by the limits.
    pub fn of(seed: u64, limits: &PlanLimits) -> SoakPlan {
        let mut plan = SoakPlan::whole(seed);
        plan.players.truncate(limits.players.unwrap_or(usize::MAX).max(1));
        plan.length_ms = plan.length_ms.min(limits.length_ms.unwrap_or(u32::MAX));
        for fault in &limits.without {
            plan.leave_out(*fault);
        }
        plan
    }

    /// Returns the full plan of a seed. Each fault has its own random stream, so that removing one does not change the
    /// others.
    fn whole(seed: u64) -> SoakPlan {
        let chances = |about: u32| Rng::new(Seed(seed), stream(*b"soak", about));
        let mut rng = chances(0);
        let preset = if rng.chance(0.5) { "half-life" } else { PRESETS[rng.below(PRESETS.len() as u64) as usize].name };
        let mut players = 1 + rng.below(4) as usize;
        let mut length_ms = 1_000 + rng.below(3_000) as u32;
        let in_orchard = rng.chance(0.25);
        let mut faults = SortedSet::new();
        for (fault, chance) in PlannedFault::ALL
            .map(|fault| (fault, if fault == PlannedFault::Lies { LIE_PROBABILITY } else { FAULT_PROBABILITY }))
        {
            if rng.chance(chance) {
                faults.insert(fault);
            }
        }
        if faults.contains(&PlannedFault::Lies) {
            // Lies show only when players shoot at each other, which takes time. Nothing of such a session is replayed.
            (length_ms, players) = (2 * length_ms + 2_000, players + 1);
            if rng.chance(0.6) {
                // The gain of a lie is known to the ms only without other faults.
                faults.retain(|fault| [PlannedFault::Lies, PlannedFault::Settings].contains(fault));
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
        let lie = Some(FalseClaims::of(&mut chances(4)));
        let player = |index: usize| PlayerPlan::whole(&mut chances(0x100 + index as u32), length_ms);
        let players = (0..players).map(player).collect();
        let mut plan = SoakPlan {
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
            faults: PlannedFault::ALL.into(),
        };
        for fault in PlannedFault::ALL.into_iter().filter(|fault| !faults.contains(fault)) {
            plan.leave_out(fault);
        }
        plan
    }

    fn leave_out(&mut self, fault: PlannedFault) {
        self.faults.remove(&fault);
        match fault {
            PlannedFault::Settings => self.settings.clear(),
            PlannedFault::Ticks => (self.late_ticks_us, self.left_out_ticks) = (0, 0.0),
            PlannedFault::Intruder => self.intrusions = 0.0,
            PlannedFault::Lies => self.lie = None,
            PlannedFault::Loss
            | PlannedFault::Jitter
            | PlannedFault::Narrow
            | PlannedFault::Outages
            | PlannedFault::Drift
            | PlannedFault::Stalls
            | PlannedFault::Leaving => self.players.iter_mut().for_each(|player| player.leave_out(fault)),
        }
    }

    /// Returns the settings.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::preset(self.preset).unwrap_or_default();
        for (key, value) in self.settings.iter().copied() {
            let set = settings.set(key, value);
            debug_assert_eq!(set, Ok(()), "the settings that are tried are settings");
        }
        settings
    }

    /// Returns the length.
    pub fn length(&self) -> Micros {
        Micros::from_ms(self.length_ms.into())
    }

    /// Returns whether everything sent to a player arrives once and in order.
    pub(super) fn comes_whole(&self, down: &LinkModel) -> bool {
        let plain = down.loss == Loss::None && down.reorder == 0.0 && down.rate_bytes_per_s.is_none();
        plain && !self.faults.contains(&PlannedFault::Outages) && !self.faults.contains(&PlannedFault::Intruder)
    }
}

impl PlayerPlan {
    fn whole(rng: &mut Rng, length_ms: u32) -> PlayerPlan {
        let mut link = || LinkModel {
            // A link always has some delay.
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
        // Some players get no fault of a kind.
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

    fn leave_out(&mut self, fault: PlannedFault) {
        match fault {
            PlannedFault::Outages => self.outages_ms.clear(),
            PlannedFault::Drift => self.drift_ppm = 0,
            PlannedFault::Stalls => self.stall_ms = None,
            PlannedFault::Leaving => self.leaves_ms = None,
            _ => {}
        }
        for link in [&mut self.up, &mut self.down] {
            match fault {
                PlannedFault::Loss => link.loss = Loss::None,
                PlannedFault::Narrow => link.rate_bytes_per_s = None,
                PlannedFault::Jitter => {
                    link.jitter = Jitter::None;
                    (link.duplicate, link.reorder, link.reorder_ms) = (0.0, 0.0, 0.0);
                }
                _ => {}
            }
        }
    }
}

/// The false claims of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FalseClaims {
    /// The offset of the claimed clock in ms.
    pub clock_ms: i32,
    /// The claimed drawing delay behind the clock, in ms.
    pub lerp_ms: Option<u16>,
    /// The claimed duration of each usercmd, in ms.
    pub msec: Option<u8>,
    /// The number of usercmd numbers skipped before each usercmd.
    pub gap: u32,
    /// How many snapshots the ack is older than the newest received. Negative values ack snapshots that the client
    /// cannot have.
    pub ack_back: i32,
}

impl FalseClaims {
    pub(super) fn of(rng: &mut Rng) -> FalseClaims {
        let clock_ms = match rng.below(8) {
            0 => 0,
            1 => i32::MAX - rng.below(2) as i32,
            2 => i32::MIN,
            _ => rng.below(1_000) as i32 - 500,
        };
        let lerp_ms = rng.chance(0.3).then(|| rng.below(1 << 16) as u16);
        let msec = rng.chance(0.4).then(|| rng.below(256) as u8);
        let gap = if rng.chance(0.4) { rng.below(40) as u32 } else { 0 };
        let ack_back = if rng.chance(0.3) { rng.below(80) as i32 - 10 } else { 0 };
        FalseClaims { clock_ms, lerp_ms, msec, gap, ack_back }
    }

    /// Makes a packet claim this instead of the truth. `newest` is the newest snapshot received.
    pub(crate) fn put_in(self, packet: &mut ClientPacket, newest: SnapshotSeq) {
        if self.gap > 0 {
            // Numbers within a packet must be consecutive.
            packet.commands.drain(..packet.commands.len().saturating_sub(1));
        }
        for command in &mut packet.commands {
            command.seq = CommandSeq(command.seq.0.saturating_mul(1 + self.gap));
            command.server_time += Micros::from_ms(self.clock_ms.into());
            command.lerp_msec = self.lerp_ms.unwrap_or(command.lerp_msec);
            command.input.msec = self.msec.unwrap_or(command.input.msec);
        }
        packet.ack = SnapshotSeq(newest.0.saturating_add_signed(self.ack_back.saturating_neg()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excluding_a_fault_changes_nothing_else() {
        for seed in 0..200 {
            let whole = SoakPlan::of(seed, &PlanLimits::default());
            for fault in PlannedFault::ALL {
                let less = SoakPlan::of(seed, &PlanLimits { without: [fault].into(), ..PlanLimits::default() });
                let mut same = whole.clone();
                same.leave_out(fault);
                assert_eq!(less, same);
                assert!(!less.faults.contains(&fault));
            }
        }
    }

    #[test]
    fn tried_settings_exist() {
        for (key, values) in SETTINGS.iter().chain([&("client.frames", FRAMES)]) {
            for value in *values {
                assert_eq!(Settings::default().set(key, value), Ok(()), "{key}={value}");
            }
        }
    }

    #[test]
    fn every_value_of_every_setting_is_tried() {
        let tried: SortedSet<_> =
            (0..4_000).flat_map(|seed| SoakPlan::of(seed, &PlanLimits::default()).settings).collect();
        for (key, values) in SETTINGS.iter().chain([&("client.frames", FRAMES)]) {
            for value in *values {
                assert!(tried.contains(&(*key, *value)), "{key}={value}");
            }
        }
    }
}

//! The headline figures of a trace, computed from its tables alone, so that any build's trace can be summed up.

use std::collections::BTreeMap;

use serde::Serialize;

use hitreg_log::stats::{Counted, Delivery, Spread};
use hitreg_log::trace::schema::{
    Kind as _, OptionalBits, corrections, executed, frames, packets, shots, snapshots, ticks,
};
use hitreg_log::trace::{Table, Trace};

/// The headline figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How the predictions did.
    pub prediction: Prediction,
    /// How the shots did.
    pub shots: Shots,
    /// What the replay went through.
    pub exercised: Exercised,
    /// What went over the network; `None` where the trace does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// What went over the network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Network {
    /// Packets from the clients to the server.
    pub up: Direction,
    /// Usercmds in each of them, repeats included, on average.
    pub usercmds_per_packet: f64,
    /// Snapshots from the server to the clients.
    pub down: Direction,
    /// Updates that the client's rate held back.
    pub choked: u64,
    /// Usercmds that the server warned of, because they came out of sequence.
    pub warnings: u64,
    /// What the bytes of snapshots are for, where datagrams were asked for: values of variables by category, which entities
    /// and variables they are of (`naming`), effects, warnings and notices (`events`), `headers`. Bits are eighths.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bytes_for: BTreeMap<&'static str, f64>,
}

/// One direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// How many were sent.
    pub sent: u64,
    /// Packets that never arrived though a later one of the same connection did; `None` where not one is known to have
    /// arrived, as in the log of one side.
    pub lost: Option<u64>,
    /// Packets after the last that arrived. They are neither lost nor received.
    pub in_flight: u64,
    /// How long they were on their way, in ms.
    pub took_ms: Option<Spread>,
    /// Their bytes, where datagrams were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// How the predictions did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// Predictions that were held against the server's word.
    pub checked: u64,
    /// Usercmds that those acks covered.
    pub usercmds: u64,
    /// Predictions that agreed as exactly as the record can tell.
    pub exact: u64,
    /// Predictions within 0.2 units and 1.5 units/s.
    pub near: u64,
    /// The others, by cause: their sum is `checked - exact - near`. Corrections of near predictions are not among them.
    pub misses_by_cause: BTreeMap<String, u64>,
    /// Predictions across a spawn, a death or a teleport that had to be corrected.
    pub relocations: u64,
    /// Distance between predicted and authoritative origin, without those of `relocations`.
    pub error_units: Option<Spread>,
    /// Of those that began on the ground.
    pub ground: Share,
    /// Of those that began in the air.
    pub air: Share,
    /// Where the above are of usercmds run again as the server ran them (`prediction.among=acking-packet`): the same
    /// acks by what the client had predicted in play, as a client in play could know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_played: Option<AsPlayed>,
}

/// Predictions as they were made in play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AsPlayed {
    /// Of those that began on the ground.
    pub ground: Share,
    /// Of those that began in the air.
    pub air: Share,
}

/// Predictions of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// How many were checked.
    pub checked: u64,
    /// How many were exact.
    pub exact: u64,
    /// How many were near.
    pub near: u64,
}

/// How the shots did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shots {
    /// Shots that the server judged, projectiles included; those of which only the impact is known, too.
    pub fired: u64,
    /// Of `fired`, projectiles that were launched.
    pub launched: u64,
    /// Impacts of projectiles; not among `fired` where the launch is.
    pub impacts: u64,
    /// Shots that a client predicted and the server never ran; not among `fired`.
    pub not_run: u64,
    /// Shots and projectiles that hurt somebody.
    pub hit: u64,
    /// Shots of which the replay has what the shooter's screen said.
    pub predicted: u64,
    /// Shots that hit on the shooter's screen.
    pub predicted_hit: u64,
    /// Shots on which the shooter's screen and the server agree about whom they hit, if anyone.
    pub agreed: u64,
    /// Shots for which the others were rewound.
    pub rewound: u64,
    /// Distance between where the target was drawn and where the server judged it to be, for hitscan shots.
    pub view_error_units: Option<Spread>,
}

/// What a replay went through. A check of a log that exercised nothing says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exercised {
    /// Server ticks.
    pub ticks: u64,
    /// Client frames; where no client's are in the replay, usercmds that were due on the server.
    pub usercmds: u64,
    /// Client frames with a key down, a button pressed, an impulse, or input of the game's own.
    pub active_usercmds: u64,
    /// Predictions that had to be corrected.
    pub corrections: u64,
    /// Shots.
    pub shots: u64,
    /// Hits.
    pub hits: u64,
}

/// The headline figures as the rows of a trace come.
#[derive(Clone, Debug, Default)]
pub struct Summing {
    summary: Summary,
    executed: u64,
    error_units: Counted,
    view_error_units: Counted,
    up: Way,
    down: Way,
    usercmds_sent: u64,
    /// What the bits of snapshots are for.
    bits_for: BTreeMap<&'static str, u64>,
    /// Whether there is a table of packets at all.
    network: bool,
}

/// One direction as its rows come.
#[derive(Clone, Debug, Default)]
struct Way {
    /// By player.
    deliveries: BTreeMap<u32, Delivery>,
    took_ms: Counted,
    bytes: Option<u64>,
    choked: u64,
    warnings: u64,
}

impl Exercised {
    /// Adds what another part of the same session went through.
    pub fn add(&mut self, other: &Exercised) {
        let Exercised { ticks, usercmds, active_usercmds, corrections, shots, hits } = self;
        *ticks += other.ticks;
        *usercmds += other.usercmds;
        *active_usercmds += other.active_usercmds;
        *corrections += other.corrections;
        *shots += other.shots;
        *hits += other.hits;
    }
}

impl Summary {
    /// Sums up a trace. Tables or columns that a build did not write count nothing.
    pub fn of(trace: &Trace) -> Summary {
        let mut summing = Summing::default();
        trace.tables.iter().for_each(|table| summing.add(table));
        summing.summary()
    }
}

impl Summing {
    /// Takes rows of a table in.
    pub fn add(&mut self, rows: &Table) {
        match rows.name.as_str() {
            ticks::NAME => self.summary.exercised.ticks += rows.rows() as u64,
            executed::NAME => self.executed += rows.rows() as u64,
            frames::NAME => {
                let frames = frames::Columns::read(rows);
                self.summary.exercised.usercmds += frames.rows as u64;
                self.summary.exercised.active_usercmds += active(&frames);
            }
            corrections::NAME => {
                let acks = corrections::Columns::read(rows);
                for (error, cause) in acks.error_units.iter().zip(acks.cause.iter()) {
                    if !is_relocation(cause) {
                        self.error_units.add(*error);
                    }
                }
                self.summary.exercised.corrections += self.summary.prediction.add(&acks);
            }
            shots::NAME => {
                let shots = shots::Columns::read(rows);
                shots.view_error_units.iter().for_each(|error| self.view_error_units.add(*error));
                self.summary.shots.add(&shots);
            }
            packets::NAME => {
                let packets = packets::Columns::read(rows);
                self.network = true;
                self.usercmds_sent += sum(packets.usercmds);
                self.up.add(packets.player, packets.arrived, packets.took_ms, packets.bytes);
            }
            snapshots::NAME => {
                let told = snapshots::Columns::read(rows);
                self.down.add(told.player, told.arrived, told.took_ms, told.bytes);
                self.down.choked += sum(told.choked);
                self.down.warnings += sum(told.warnings);
                for (part, bits) in OptionalBits::PARTS.iter().zip(told.bits).filter(|(_, bits)| !bits.is_empty()) {
                    *self.bits_for.entry(part.trim_start_matches('.')).or_default() += sum(bits);
                }
            }
            _ => {}
        }
    }

    /// The figures of what came.
    pub fn summary(&self) -> Summary {
        let mut summary = self.summary.clone();
        let Summary { prediction, shots, exercised, network } = &mut summary;
        prediction.error_units = self.error_units.spread();
        prediction.exact = prediction.ground.exact + prediction.air.exact;
        prediction.near = prediction.ground.near + prediction.air.near;
        shots.view_error_units = self.view_error_units.spread();
        shots.fired += shots.impacts.saturating_sub(shots.launched);
        if exercised.usercmds == 0 {
            exercised.usercmds = self.executed;
        }
        exercised.shots = shots.fired;
        exercised.hits = shots.hit;
        *network = self.network.then(|| Network {
            up: self.up.direction(),
            usercmds_per_packet: self.usercmds_sent as f64 / self.up.sent().max(1) as f64,
            down: self.down.direction(),
            choked: self.down.choked,
            warnings: self.down.warnings,
            bytes_for: self.bits_for.iter().map(|(part, bits)| (*part, *bits as f64 / 8.0)).collect(),
        });
        summary
    }
}

fn sum(column: &[u32]) -> u64 {
    column.iter().map(|n| u64::from(*n)).sum()
}

impl Way {
    fn add(&mut self, players: &[u32], arrived: &[u32], took_ms: &[f32], bytes: &[u32]) {
        for (row, times) in arrived.iter().enumerate() {
            let player = players.get(row).copied().unwrap_or_default();
            self.deliveries.entry(player).or_default().add(*times > 0);
        }
        took_ms.iter().for_each(|ms| self.took_ms.add(*ms));
        if !bytes.is_empty() {
            *self.bytes.get_or_insert(0) += sum(bytes);
        }
    }

    fn sent(&self) -> u64 {
        self.deliveries.values().map(|delivery| delivery.sent).sum()
    }

    fn direction(&self) -> Direction {
        let sum = |of: fn(&Delivery) -> u64| self.deliveries.values().map(of).sum::<u64>();
        let (sent, received) = (self.sent(), sum(|d| d.received));
        let is_known = received > 0 || sent == 0;
        let lost = is_known.then(|| sum(Delivery::lost));
        let in_flight = if is_known { sum(Delivery::in_flight) } else { 0 };
        Direction { sent, lost, in_flight, took_ms: self.took_ms.spread(), bytes: self.bytes }
    }
}

impl Prediction {
    /// Adds rows, and counts the corrections among them.
    fn add(&mut self, table: &corrections::Columns<'_>) -> u64 {
        self.usercmds += sum(table.commands);
        let on_ground: Vec<bool> = table.on_ground.iter().map(|flag| *flag == 1).collect();
        let result: Vec<&str> = table.result.iter().collect();
        self.checked += result.len() as u64;
        add_shares([&mut self.ground, &mut self.air], &result, &on_ground);
        let as_played: Vec<&str> = table.as_played.iter().collect();
        if !as_played.is_empty() {
            let AsPlayed { ground, air } = self.as_played.get_or_insert_default();
            add_shares([ground, air], &as_played, &on_ground);
        }
        let mut corrections = 0;
        for (result, cause) in result.iter().zip(table.cause.iter()) {
            corrections += u64::from(cause != "none");
            self.relocations += u64::from(is_relocation(cause));
            if !matches!(*result, "exact" | "near" | "none") {
                let cause = if cause == "none" { "unknown" } else { cause };
                *self.misses_by_cause.entry(cause.to_owned()).or_default() += 1;
            }
        }
        corrections
    }
}

/// Whether a correction has this cause because the body was put elsewhere: its distance is no error of movement.
pub fn is_relocation(cause: &str) -> bool {
    matches!(cause, "spawn_or_death" | "teleport")
}

/// How predictions did that began on the ground, and those that began in the air; what is `none` was not judged.
fn add_shares(mut shares: [&mut Share; 2], results: &[&str], on_ground: &[bool]) {
    for (row, result) in results.iter().enumerate().filter(|(_, result)| **result != "none") {
        let on_ground = on_ground.get(row).copied().unwrap_or(false);
        let share = &mut shares[usize::from(!on_ground)];
        share.checked += 1;
        share.exact += u64::from(*result == "exact");
        share.near += u64::from(*result == "near");
    }
}

impl Shots {
    fn add(&mut self, table: &shots::Columns<'_>) {
        let predicted: Vec<(&str, &str)> = table.predicted_reason.iter().zip(table.predicted_target.iter()).collect();
        let judged: Vec<(&str, &str)> = table.reason.iter().zip(table.target.iter()).collect();
        for (row, (reason, target)) in judged.iter().enumerate() {
            self.hit += u64::from(*reason == "hit");
            if table.impact.get(row) == Some(&1) {
                self.impacts += 1;
                continue;
            }
            if *reason == "not run" {
                self.not_run += 1;
                continue;
            }
            self.fired += 1;
            self.launched += u64::from(*reason == "launched");
            self.rewound += u64::from(table.rewind_us.get(row).is_some_and(|rewind_us| *rewind_us != 0));
            if let Some((seen, seen_target)) = predicted.get(row) {
                self.predicted += u64::from(*seen != "not predicted");
                self.predicted_hit += u64::from(*seen == "hit");
                self.agreed += u64::from(*seen != "not predicted" && seen_target == target);
            }
        }
    }
}

fn active(frames: &frames::Columns<'_>) -> u64 {
    let moves = [frames.forwardmove, frames.sidemove, frames.upmove];
    let keys = [frames.buttons, frames.impulse, frames.extra];
    let moved = |row: usize| moves.iter().any(|column| column.get(row).is_some_and(|v| *v != 0.0));
    let pressed = |row: usize| keys.iter().any(|column| column.get(row).is_some_and(|v| *v != 0));
    (0..frames.rows).filter(|&row| moved(row) || pressed(row)).count() as u64
}

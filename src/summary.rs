//! The headline figures of a trace, computed from its tables alone, so that any build's trace can be summed up.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::stats::Spread;
use crate::trace::Trace;
use crate::trace::schema::{corrections, frames, packets, shots, snapshots, ticks};

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
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Network {
    /// Packets from the clients to the server.
    pub up: Direction,
    /// Usercmds in each of them, repeats included, on average.
    pub usercmds_per_packet: f64,
    /// Snapshots from the server to the clients.
    pub down: Direction,
    /// How many updates the rate held back.
    pub choked: u64,
    /// Usercmds that the server warned of, because they came out of sequence.
    pub warnings: u64,
}

/// One direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// How many were sent.
    pub sent: u64,
    /// How many of them never arrived.
    pub lost: u64,
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
    /// The others, by cause.
    pub misses_by_cause: BTreeMap<String, u64>,
    /// Distance between predicted and authoritative origin.
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
    /// Shots that the server judged, projectiles included.
    pub fired: u64,
    /// Shots and projectiles that hurt somebody.
    pub hit: u64,
    /// Shots that hit on the shooter's screen.
    pub predicted_hit: u64,
    /// Shots on which the shooter's screen and the server agree about whom they hit, if anyone.
    pub agreed: u64,
    /// Distance between where the target was drawn and where the server judged it to be, for shots that were rewound.
    pub view_error_units: Option<Spread>,
}

/// What a replay went through. A check of a log that exercised nothing says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exercised {
    /// Server ticks.
    pub ticks: u64,
    /// Client frames.
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

impl Summary {
    /// Sums up a trace. Tables or columns that a build did not write count nothing.
    pub fn of(trace: &Trace) -> Summary {
        let prediction = Prediction::of(&corrections::Columns::of(trace));
        let shots = Shots::of(&shots::Columns::of(trace));
        let frames = frames::Columns::of(trace);
        let exercised = Exercised {
            ticks: ticks::Columns::of(trace).rows as u64,
            usercmds: frames.rows as u64,
            active_usercmds: active(&frames),
            corrections: prediction.misses_by_cause.values().sum(),
            shots: shots.fired,
            hits: shots.hit,
        };
        Summary { prediction, shots, exercised, network: Network::of(trace) }
    }
}

impl Network {
    fn of(trace: &Trace) -> Option<Network> {
        trace.table(packets::NAME)?;
        let (up, down) = (packets::Columns::of(trace), snapshots::Columns::of(trace));
        let sum = |column: &[u32]| column.iter().map(|n| u64::from(*n)).sum::<u64>();
        Some(Network {
            up: Direction::of(up.arrived, up.took_ms, up.bytes),
            usercmds_per_packet: sum(up.usercmds) as f64 / up.rows.max(1) as f64,
            down: Direction::of(down.arrived, down.took_ms, down.bytes),
            choked: sum(down.choked),
            warnings: sum(down.warnings),
        })
    }
}

impl Direction {
    fn of(arrived: &[u32], took_ms: &[f32], bytes: &[u32]) -> Direction {
        Direction {
            sent: arrived.len() as u64,
            lost: arrived.iter().filter(|times| **times == 0).count() as u64,
            took_ms: Spread::of(took_ms.iter().copied()),
            bytes: (!bytes.is_empty()).then(|| bytes.iter().map(|n| u64::from(*n)).sum()),
        }
    }
}

impl Prediction {
    fn of(table: &corrections::Columns<'_>) -> Prediction {
        let mut prediction = Prediction {
            error_units: Spread::of(table.error_units.iter().copied()),
            usercmds: table.commands.iter().map(|n| u64::from(*n)).sum(),
            ..Prediction::default()
        };
        let on_ground: Vec<bool> = table.on_ground.iter().map(|flag| *flag == 1).collect();
        let result: Vec<&str> = table.result.iter().collect();
        prediction.checked = result.len() as u64;
        [prediction.ground, prediction.air] = shares(&result, &on_ground);
        prediction.exact = prediction.ground.exact + prediction.air.exact;
        prediction.near = prediction.ground.near + prediction.air.near;
        let as_played: Vec<&str> = table.as_played.iter().collect();
        if !as_played.is_empty() {
            let [ground, air] = shares(&as_played, &on_ground);
            prediction.as_played = Some(AsPlayed { ground, air });
        }
        for cause in table.cause.iter().filter(|cause| *cause != "none") {
            *prediction.misses_by_cause.entry(cause.to_owned()).or_default() += 1;
        }
        prediction
    }
}

/// How predictions did that began on the ground, and those that began in the air; what is `none` was not judged.
fn shares(results: &[&str], on_ground: &[bool]) -> [Share; 2] {
    let mut shares = [Share::default(); 2];
    for (row, result) in results.iter().enumerate().filter(|(_, result)| **result != "none") {
        let on_ground = on_ground.get(row).copied().unwrap_or(false);
        let share = &mut shares[usize::from(!on_ground)];
        share.checked += 1;
        share.exact += u64::from(*result == "exact");
        share.near += u64::from(*result == "near");
    }
    shares
}

impl Shots {
    fn of(table: &shots::Columns<'_>) -> Shots {
        let predicted: Vec<(&str, &str)> = table.predicted_reason.iter().zip(table.predicted_target.iter()).collect();
        let judged: Vec<(&str, &str)> = table.reason.iter().zip(table.target.iter()).collect();
        let mut shots =
            Shots { view_error_units: Spread::of(table.view_error_units.iter().copied()), ..Shots::default() };
        for (row, (reason, target)) in judged.iter().enumerate() {
            shots.hit += u64::from(*reason == "hit");
            if table.impact.get(row) == Some(&1) || *reason == "not run" {
                continue;
            }
            shots.fired += 1;
            if let Some((seen, seen_target)) = predicted.get(row) {
                shots.predicted_hit += u64::from(*seen == "hit");
                shots.agreed += u64::from(*seen != "not predicted" && seen_target == target);
            }
        }
        shots
    }
}

fn active(frames: &frames::Columns<'_>) -> u64 {
    let moves = [frames.forwardmove, frames.sidemove, frames.upmove];
    let keys = [frames.buttons, frames.impulse, frames.extra];
    let moved = |row: usize| moves.iter().any(|column| column.get(row).is_some_and(|v| *v != 0.0));
    let pressed = |row: usize| keys.iter().any(|column| column.get(row).is_some_and(|v| *v != 0));
    (0..frames.rows).filter(|&row| moved(row) || pressed(row)).count() as u64
}

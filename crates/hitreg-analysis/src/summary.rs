//! The headline figures of a trace. They use only its tables, so they work for traces of any build.

mod network;

use serde::Serialize;

use network::NetworkSums;
pub use network::{DirectionSummary, NetworkSummary};

use crate::shot_counter::ShotCounter;
use crate::why::{is_corrected, known_cause};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::stats::{CountedValues, Spread};
use hitreg_log::trace::schema::{
    NOT_RUN, corrections, executed, frames, is_judged, own_input, packets, shots, snapshots, ticks,
};
use hitreg_log::trace::{ColumnData, Table, Trace};

/// The headline figures of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The accuracy of predictions.
    pub prediction: PredictionSummary,
    /// The results of shots.
    pub shots: ShotSummary,
    /// How much the replay exercised.
    pub exercised: Coverage,
    /// The network traffic; `None` if the trace has no packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkSummary>,
}

/// The accuracy of predictions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PredictionSummary {
    /// Predictions that were compared with an ack.
    pub checked: u64,
    /// Usercmds that these acks covered.
    pub usercmds: u64,
    /// Predictions that are exact, within the precision of the recorded values.
    pub exact: u64,
    /// Predictions within 0.2 units and 1.5 units/s.
    pub near: u64,
    /// The number of worse predictions by cause. Their sum is `checked - exact - near`. Corrections of near predictions
    /// are not included.
    pub misses_by_cause: SortedMap<String, u64>,
    /// Corrected predictions across a spawn, a death or a teleport.
    pub relocations: u64,
    /// Distance between the predicted and the authoritative origin, without `relocations`.
    pub error_units: Option<Spread>,
    /// Predictions from a start on the ground.
    pub ground: PredictionShare,
    /// Predictions from a start in the air.
    pub air: PredictionShare,
    /// The same acks compared with the predictions that the client made in play. Set only if the other figures use
    /// usercmds that were run again as the server ran them (`prediction.among=acking-packet`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_played: Option<PlayedPredictions>,
}

/// The accuracy of the predictions that the client made in play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlayedPredictions {
    /// Predictions from a start on the ground.
    pub ground: PredictionShare,
    /// Predictions from a start in the air.
    pub air: PredictionShare,
}

/// The accuracy of one group of predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PredictionShare {
    /// The number of predictions that were compared with an ack.
    pub checked: u64,
    /// The number of exact predictions.
    pub exact: u64,
    /// The number of near predictions.
    pub near: u64,
}

/// The results of shots.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShotSummary {
    /// Shots that the server judged, including projectiles, and including shots for which only the impact is known.
    pub fired: u64,
    /// Hits that the recorded server of an import reported, and whose shots are not known. They are not in `fired` and
    /// `hit`.
    pub reported: u64,
    /// The projectiles among `fired`.
    pub launched: u64,
    /// Impacts of projectiles. They count in `fired` only if their launch is missing. One projectile may have several.
    pub impacts: u64,
    /// Shots that a client predicted but the server never ran. They are not in `fired`. In open loop, the replay has no
    /// server, and these shots may have run.
    pub not_run: u64,
    /// Shots among `not_run` that hit on the shooter's screen.
    #[serde(skip)]
    pub not_run_hit: u64,
    /// Shots and projectiles that hit a player. A projectile that hits several players counts once.
    pub hit: u64,
    /// Shots for which the replay has the result on the shooter's screen.
    pub predicted: u64,
    /// Shots that hit on the shooter's screen.
    pub predicted_hit: u64,
    /// Shots for which the shooter's screen and the server agree on the player hit, or on a miss.
    pub agreed: u64,
    /// Shots for which the server rewound other players.
    pub rewound: u64,
    /// Distance between where the client drew the target and where the server judged it, for hitscan shots.
    pub view_error_units: Option<Spread>,
}

/// How much of the game a replay exercised. A check that exercised nothing proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Server ticks.
    pub ticks: u64,
    /// Client frames. For a player without client frames, the usercmds that were due on the server.
    pub usercmds: u64,
    /// Client frames with movement, a pressed button, an impulse, or other input of the game.
    pub active_usercmds: u64,
    /// Corrections; `None` if the replay has no table of them.
    pub corrections: Option<u64>,
    /// Shots; `None` if the replay has no table of them.
    pub shots: Option<u64>,
    /// Hits; `None` if the replay has no table of shots.
    pub hits: Option<u64>,
}

/// Accumulates the headline figures from the rows of a trace.
#[derive(Clone, Debug, Default)]
pub struct SummaryBuilder {
    summary: Summary,
    shots: ShotCounter,
    /// Whether there is a table of shots.
    has_shots: bool,
    /// The players with client frames.
    framed: SortedSet<u32>,
    /// The usercmds of each player that were due on the server.
    due: SortedMap<u32, u64>,
    error_units: CountedValues,
    view_error_units: CountedValues,
    network: NetworkSums,
}

impl Coverage {
    /// Adds another part of the same session, or another session.
    pub fn add(&mut self, other: &Coverage) {
        let Coverage { ticks, usercmds, active_usercmds, corrections, shots, hits } = self;
        *ticks += other.ticks;
        *usercmds += other.usercmds;
        *active_usercmds += other.active_usercmds;
        for (sum, more) in [(corrections, other.corrections), (shots, other.shots), (hits, other.hits)] {
            if let Some(more) = more {
                *sum.get_or_insert(0) += more;
            }
        }
    }
}

impl Summary {
    /// The headline figures of a trace. Missing tables and columns count as zero.
    pub fn of(trace: &Trace) -> Summary {
        let mut summing = SummaryBuilder::default();
        trace.tables.iter().for_each(|table| summing.add(table));
        summing.summary()
    }
}

impl SummaryBuilder {
    /// Adds rows of a table.
    pub fn add(&mut self, rows: &Table) {
        match rows.name.as_str() {
            ticks::NAME => self.summary.exercised.ticks += rows.rows() as u64,
            executed::NAME => {
                for player in executed::Columns::read(rows).player {
                    *self.due.entry(*player).or_default() += 1;
                }
            }
            frames::NAME => {
                let frames = frames::Columns::read(rows);
                self.framed.extend(frames.player);
                self.summary.exercised.usercmds += frames.rows as u64;
                self.summary.exercised.active_usercmds += active(rows, &frames);
            }
            corrections::NAME => {
                let acks = corrections::Columns::read(rows);
                for (error, cause) in acks.error_units.iter().zip(acks.cause.iter()) {
                    if !is_relocation(cause) {
                        self.error_units.add(*error);
                    }
                }
                let corrected = self.summary.prediction.add(&acks);
                *self.summary.exercised.corrections.get_or_insert(0) += corrected;
            }
            shots::NAME => {
                let shots = shots::Columns::read(rows);
                shots.view_error_units.iter().for_each(|error| self.view_error_units.add(*error));
                self.summary.shots.add(&shots, &mut self.shots);
                self.has_shots = true;
            }
            packets::NAME => self.network.add_packets(&packets::Columns::read(rows)),
            snapshots::NAME => self.network.add_snapshots(&snapshots::Columns::read(rows)),
            _ => {}
        }
    }

    /// The shots so far.
    pub fn shots(&self) -> &ShotCounter {
        &self.shots
    }

    /// The prediction errors of all acks so far, in units, without relocations.
    pub fn prediction_errors(&self) -> &CountedValues {
        &self.error_units
    }

    /// The view errors of all shots so far, in units.
    pub fn view_errors(&self) -> &CountedValues {
        &self.view_error_units
    }

    /// The headline figures of all rows so far.
    pub fn summary(&self) -> Summary {
        let mut summary = self.summary.clone();
        let Summary { prediction, shots, exercised, network } = &mut summary;
        prediction.error_units = self.error_units.spread();
        prediction.exact = prediction.ground.exact + prediction.air.exact;
        prediction.near = prediction.ground.near + prediction.air.near;
        shots.view_error_units = self.view_error_units.spread();
        (shots.fired, shots.hit, shots.reported) = (self.shots.fired(), self.shots.hit(), self.shots.reported());
        (shots.launched, shots.impacts) = (self.shots.launched(), self.shots.impacts());
        let due = self.due.iter().filter(|(player, _)| !self.framed.contains(player));
        exercised.usercmds += due.map(|(_, due)| due).sum::<u64>();
        exercised.shots = self.has_shots.then_some(shots.fired);
        exercised.hits = self.has_shots.then_some(shots.hit);
        *network = self.network.summary();
        summary
    }
}

fn sum(column: &[u32]) -> u64 {
    column.iter().map(|n| u64::from(*n)).sum()
}

impl PredictionSummary {
    /// Adds rows, and returns the number of corrections among them.
    fn add(&mut self, table: &corrections::Columns<'_>) -> u64 {
        self.usercmds += sum(table.commands);
        let on_ground: Vec<bool> = table.on_ground.iter().map(|flag| *flag == 1).collect();
        let result: Vec<&str> = table.result.iter().collect();
        self.checked += result.len() as u64;
        add_shares([&mut self.ground, &mut self.air], &result, &on_ground);
        let as_played: Vec<&str> = table.as_played.iter().collect();
        if !as_played.is_empty() {
            let PlayedPredictions { ground, air } = self.as_played.get_or_insert_default();
            add_shares([ground, air], &as_played, &on_ground);
        }
        let mut corrections = 0;
        for row in 0..table.rows {
            let (is_corrected, cause) = (is_corrected(table, row), table.cause.get(row));
            corrections += u64::from(is_corrected);
            self.relocations += u64::from(is_corrected && is_relocation(cause));
            if !matches!(table.result.get(row), "exact" | "near" | "none" | "") {
                *self.misses_by_cause.entry(known_cause(table, row).to_owned()).or_default() += 1;
            }
        }
        corrections
    }
}

/// Whether a correction has this cause because the body was moved by a spawn, a death or a teleport. Its distance is
/// not a movement error.
pub fn is_relocation(cause: &str) -> bool {
    matches!(cause, "spawn_or_death" | "teleport")
}

/// Counts predictions by a start on the ground and in the air. Rows with the result `none` are ignored.
fn add_shares(mut shares: [&mut PredictionShare; 2], results: &[&str], on_ground: &[bool]) {
    for (row, result) in results.iter().enumerate().filter(|(_, result)| **result != "none") {
        let on_ground = on_ground.get(row).copied().unwrap_or(false);
        let share = &mut shares[usize::from(!on_ground)];
        share.checked += 1;
        share.exact += u64::from(*result == "exact");
        share.near += u64::from(*result == "near");
    }
}

impl ShotSummary {
    /// Whether the shots of a replay were judged. A replay in open loop has no server, but its game may judge the recorded
    /// shots again.
    pub fn are_judged(&self, is_open: bool) -> bool {
        !is_open || self.fired > 0
    }

    /// The counts of shots that differ from a judged hitscan shot, each with its name: projectiles that were launched,
    /// their impacts, shots that the server never ran, and hits whose shot is not known.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = [
            ("launched", self.launched),
            ("impacts", self.impacts),
            (NOT_RUN, self.not_run),
            ("reported", self.reported),
        ];
        kinds.into_iter()
    }

    /// Adds rows; `counter` counts the shots that the server judged.
    fn add(&mut self, table: &shots::Columns<'_>, counter: &mut ShotCounter) {
        let predicted: Vec<(&str, &str)> = table.predicted_reason.iter().zip(table.predicted_target.iter()).collect();
        let judged: Vec<(&str, &str)> = table.reason.iter().zip(table.target.iter()).collect();
        for (row, (reason, target)) in judged.iter().enumerate() {
            counter.add_row(table, row, reason);
            if table.impact.get(row) == Some(&1) {
                continue;
            }
            if !is_judged(reason) {
                self.not_run += 1;
                self.not_run_hit += u64::from(table.predicted_reason.get(row) == "hit");
                continue;
            }
            self.rewound += u64::from(table.rewind_us.get(row).is_some_and(|rewind_us| *rewind_us != 0));
            if let Some((seen, seen_target)) = predicted.get(row) {
                self.predicted += u64::from(*seen != "not predicted");
                self.predicted_hit += u64::from(*seen == "hit");
                self.agreed += u64::from(*seen != "not predicted" && seen_target == target);
            }
        }
    }
}

/// Returns the number of usercmds that move, press a button, make a request, or have own input of the game.
fn active(rows: &Table, frames: &frames::Columns<'_>) -> u64 {
    let moves = [frames.forwardmove, frames.sidemove, frames.upmove];
    let keys = [frames.buttons, frames.impulse];
    let own: Vec<&ColumnData> = own_input(rows).map(|column| &column.data).collect();
    let moved = |row: usize| moves.iter().any(|column| column.get(row).is_some_and(|v| *v != 0.0));
    let pressed = |row: usize| keys.iter().any(|column| column.get(row).is_some_and(|v| *v != 0));
    let has_own = |row: usize| own.iter().any(|data| !data.is_zero(row));
    (0..frames.rows).filter(|&row| moved(row) || pressed(row) || has_own(row)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::trace::Column;

    /// A client's log may be missing in a merged log. The replay then has no client frames of its player.
    #[test]
    fn usercmds_of_players_without_client_frames_count_as_due() {
        let table = |name: &str, players: &[u32]| {
            let columns = [("player", players.to_vec()), ("command", (1..=players.len() as u32).collect())];
            let columns = columns.map(|(name, values)| Column::new(name, ColumnData::U32(values)));
            Table { name: name.to_owned(), key: Vec::new(), columns: columns.into() }
        };
        let mut summing = SummaryBuilder::default();
        summing.add(&table(frames::NAME, &[0, 0, 0]));
        summing.add(&table(executed::NAME, &[0, 1, 0, 1]));
        assert_eq!(summing.summary().exercised.usercmds, 3 + 2);
        summing.add(&table(frames::NAME, &[1]));
        assert_eq!(summing.summary().exercised.usercmds, 4);
    }

    /// A game's own table of corrections may lack columns, and may name a cause where nothing was corrected.
    #[test]
    fn corrections_are_counted_as_why_counts_them() {
        let names = |name: &str, names: [&str; 3]| {
            Column::new(name, ColumnData::Name { names: names.map(str::to_owned).into(), codes: vec![0, 1, 2] })
        };
        let all = [
            Column::new("fields", ColumnData::U32(vec![2, 0, 1])),
            names("result", ["miss", "exact", "near"]),
            names("cause", ["push", "push", "none"]),
        ];
        let counted = |columns: &[usize]| {
            let table = columns.iter().map(|column| all[*column].clone()).collect();
            let trace = Trace { tables: vec![Table::new(corrections::NAME, table)], ..Trace::default() };
            let rows = corrections::Columns::of(&trace);
            let corrections = (0..rows.rows).filter(|row| is_corrected(&rows, *row)).count() as u64;
            let summary = Summary::of(&trace);
            assert_eq!(summary.exercised.corrections, Some(corrections), "{columns:?}");
            (corrections, summary.prediction.misses_by_cause.get("push").copied())
        };
        assert_eq!(counted(&[0, 1, 2]), (2, Some(1)));
        assert_eq!(counted(&[1, 2]), (2, Some(1)));
        assert_eq!(counted(&[0]), (2, None));
        assert_eq!(counted(&[2]), (2, None));
        assert_eq!(counted(&[1]), (2, None));
    }
}

//! The headline figures of a trace: predictions, shots, network traffic, and how much it exercised. They use only its
//! tables, so they work for traces of any build.

use serde::Serialize;

use crate::why::{is_corrected, known_cause};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::stats::{CountedValues, Delivery, Spread};
use hitreg_log::trace::schema::{
    CellType as _, NOT_PREDICTED, NOT_RUN, OptionalBits, corrections, executed, frames, is_judged, own_input, packets,
    shots, snapshots, ticks,
};
use hitreg_log::trace::{ColumnData, Table, Trace, TraceHeader};

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

/// The results of shots. Counts of what the server did are `None` if no shot was judged because the replay has no server.
/// Counts of what screens showed are `None` if no client ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShotSummary {
    /// Shots that the server judged, including projectiles, and including shots for which only the impact is known.
    pub fired: Option<u64>,
    /// Hits that the recorded server of an import reported, and whose shots are not known. They are not in `fired` and
    /// `hit`.
    pub reported: u64,
    /// The projectiles among `fired`.
    pub launched: Option<u64>,
    /// Impacts of projectiles. They count in `fired` only if their launch is missing. One projectile may have several.
    pub impacts: Option<u64>,
    /// Shots that a client predicted but the server never ran. They are not in `fired`. `None` in open loop, which does not
    /// run the server.
    pub not_run: Option<u64>,
    /// Shots and projectiles that hit a player. A projectile that hits several players counts once.
    pub hit: Option<u64>,
    /// The shots among `fired` for which the replay has the result on the shooter's screen. If no shot was judged, all
    /// shots on screens.
    pub predicted: Option<u64>,
    /// The shots among `predicted` that hit on the shooter's screen.
    pub predicted_hit: Option<u64>,
    /// Shots for which the shooter's screen and the server agree on the target hit, or on a miss.
    /// The hitgroup and the damage may differ.
    pub agreed: Option<u64>,
    /// Shots for which the server rewound other players.
    pub rewound: Option<u64>,
    /// Distance between where the client drew the target and where the server judged it, for hitscan shots.
    pub view_error_units: Option<Spread>,
}

/// Counts of the rows of shots that are no impacts.
#[derive(Clone, Debug, Default)]
struct ScreenCounts {
    /// Shots that the server judged.
    judged: PredictedShots,
    /// Shots that no server ran.
    not_run: PredictedShots,
    agreed: u64,
    rewound: u64,
}

/// Shots with the results on the shooters' screens.
#[derive(Clone, Debug, Default)]
struct PredictedShots {
    /// Shots with a result.
    predicted: u64,
    /// Those that hit.
    hit: u64,
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
    /// Corrections; `None` if the replay has no table of them, or compared no ack because a side did not run.
    pub corrections: Option<u64>,
    /// Shots; `None` if the replay has no table of them, or judged none because it has no server.
    pub shots: Option<u64>,
    /// Hits; `None` if `shots` is.
    pub hits: Option<u64>,
}

/// Accumulates the headline figures from the rows of a trace.
#[derive(Clone, Debug, Default)]
pub struct SummaryBuilder {
    summary: Summary,
    /// Whether the trace has no server.
    is_open: bool,
    /// The shots so far.
    pub shots: ShotCounter,
    screens: ScreenCounts,
    /// Whether there is a table of shots.
    has_shots: bool,
    /// The rows of the table of corrections; `None` without a table.
    acks: Option<u64>,
    /// The players with client frames: their clients ran.
    pub clients: SortedSet<u32>,
    /// The usercmds of each player that were due on the server.
    due: SortedMap<u32, u64>,
    /// The prediction errors of all acks so far, in units, without relocations.
    pub error_units: CountedValues,
    /// The view errors of all shots so far, in units.
    pub view_error_units: CountedValues,
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
    /// The headline figures of a trace. Missing columns count as zero.
    pub fn of(trace: &Trace) -> Summary {
        let mut summing = SummaryBuilder::of(&trace.header);
        trace.tables.iter().for_each(|table| summing.add(table));
        summing.summary()
    }
}

impl SummaryBuilder {
    /// The figures of a trace before its first rows.
    pub fn of(trace: &TraceHeader) -> SummaryBuilder {
        SummaryBuilder { is_open: trace.is_open(), ..SummaryBuilder::default() }
    }

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
                self.clients.extend(frames.player);
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
                *self.acks.get_or_insert(0) += acks.rows as u64;
            }
            shots::NAME => {
                let shots = shots::Columns::read(rows);
                shots.view_error_units.iter().for_each(|error| self.view_error_units.add(*error));
                self.screens.add(&shots, &mut self.shots);
                self.has_shots = true;
            }
            packets::NAME => self.network.add_packets(&packets::Columns::read(rows)),
            snapshots::NAME => self.network.add_snapshots(&snapshots::Columns::read(rows)),
            _ => {}
        }
    }

    /// The headline figures of all rows so far.
    pub fn summary(&self) -> Summary {
        let mut summary = self.summary.clone();
        let Summary { prediction, exercised, .. } = &mut summary;
        prediction.error_units = self.error_units.spread();
        prediction.exact = prediction.ground.exact + prediction.air.exact;
        prediction.near = prediction.ground.near + prediction.air.near;
        let due = self.due.iter().filter(|(player, _)| !self.clients.contains(player));
        exercised.usercmds += due.map(|(_, due)| due).sum::<u64>();
        let has_sides = !self.clients.is_empty() && !self.is_open;
        exercised.corrections = exercised.corrections.filter(|_| knows_corrections(self.acks, has_sides));
        let shots = self.shot_summary();
        (exercised.shots, exercised.hits) = (shots.fired, shots.hit);
        Summary { shots, network: self.network.summary(), ..summary }
    }

    fn shot_summary(&self) -> ShotSummary {
        let ScreenCounts { judged, not_run, agreed, rewound } = &self.screens;
        // In open loop, the game may judge recorded shots again.
        let has_judged = self.has_shots && (!self.is_open || self.shots.fired() > 0);
        let has_screens = !self.clients.is_empty() || judged.predicted + not_run.predicted > 0;
        let on_server = |count: u64| has_judged.then_some(count);
        let on_screens = if has_judged { judged } else { not_run };
        ShotSummary {
            fired: on_server(self.shots.fired()),
            reported: self.shots.reported(),
            launched: on_server(self.shots.launched()),
            impacts: on_server(self.shots.impacts()),
            not_run: on_server(not_run.predicted).filter(|_| has_screens && !self.is_open),
            hit: on_server(self.shots.hit()),
            predicted: has_screens.then_some(on_screens.predicted),
            predicted_hit: has_screens.then_some(on_screens.hit),
            agreed: on_server(*agreed).filter(|_| has_screens),
            rewound: on_server(*rewound),
            view_error_units: self.view_error_units.spread(),
        }
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

/// Whether the number of corrections is known, by the number of compared acks. Without any, it is 0 only if the clients and
/// the server ran.
pub(crate) fn knows_corrections(acks: Option<u64>, has_sides: bool) -> bool {
    acks.is_some_and(|acks| acks > 0 || has_sides)
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
    /// The known counts of shots that differ from a judged hitscan shot, each with its name: projectiles that were launched,
    /// their impacts, shots that the server never ran, and hits whose shot is not known.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = [
            ("launched", self.launched),
            ("impacts", self.impacts),
            (NOT_RUN, self.not_run),
            ("reported", Some(self.reported)),
        ];
        kinds.into_iter().filter_map(|(kind, count)| Some((kind, count?)))
    }
}

impl ScreenCounts {
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
                self.not_run.predicted += 1;
                self.not_run.hit += u64::from(table.predicted_reason.get(row) == "hit");
                continue;
            }
            self.rewound += u64::from(table.rewind_us.get(row).is_some_and(|rewind_us| *rewind_us != 0));
            if let Some((seen, seen_target)) = predicted.get(row) {
                let agreement = agreement([seen, reason], [seen_target, target]);
                self.judged.predicted += u64::from(agreement.is_some());
                self.judged.hit += u64::from(*seen == "hit");
                self.agreed += u64::from(agreement == Some(true));
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

/// The network traffic of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkSummary {
    /// Packets from the clients to the server.
    pub up: DirectionSummary,
    /// The mean number of usercmds per packet, repeats included; `None` without packets.
    pub usercmds_per_packet: Option<f64>,
    /// Snapshots from the server to the clients.
    pub down: DirectionSummary,
    /// Snapshots that the server held back because of the client's rate limit.
    pub choked: u64,
    /// Usercmds that arrived out of sequence, for which the server sent warnings.
    pub warnings: u64,
    /// The bytes of snapshots by use, if datagrams were encoded. The keys are variable categories for values, `naming`
    /// for the ids of entities and variables, `events` for effects and warnings, and `headers`. Single bits
    /// count as eighths.
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    pub bytes_for: SortedMap<&'static str, f64>,
}

/// The packets in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DirectionSummary {
    /// The number of packets sent, without those of `players_unknown`. If no arrival is known, all packets count. `None` if
    /// no client's log is there, which has the packets to the server.
    pub sent: Option<u64>,
    /// Players whose packets or their arrivals are not known, because the log of the client is missing.
    pub players_unknown: u64,
    /// Packets that never arrived although a later packet of the same connection did. `None` if no arrival is known, as
    /// in the log of one side.
    pub lost: Option<u64>,
    /// Packets sent after the last packet that arrived. They count as neither lost nor received. `None` if `lost` is.
    pub in_flight: Option<u64>,
    /// The time in flight, in ms.
    pub took_ms: Option<Spread>,
    /// The bytes of the packets, if datagrams were encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl DirectionSummary {
    /// Sets the number of lost packets of a part of a session. Later packets, which the part does not have, decide it.
    pub fn decide(&mut self, lost: u64) {
        if let (Some(known), Some(in_flight)) = (self.lost, self.in_flight) {
            let undelivered = known + in_flight;
            let lost = lost.clamp(known, undelivered);
            (self.lost, self.in_flight) = (Some(lost), Some(undelivered - lost));
        }
    }
}

/// Accumulates packets and snapshots.
#[derive(Clone, Debug, Default)]
struct NetworkSums {
    up: DirectionSums,
    down: DirectionSums,
    usercmds_sent: u64,
    choked: u64,
    warnings: u64,
    /// The bits of snapshots, by use.
    bits_for: SortedMap<&'static str, u64>,
    /// Whether the trace has a table of packets.
    has_packets: bool,
}

/// Accumulates the packets of one direction.
#[derive(Clone, Debug, Default)]
struct DirectionSums {
    /// By player.
    deliveries: SortedMap<u32, Delivery>,
    took_ms: CountedValues,
    bytes: Option<u64>,
}

impl NetworkSums {
    fn add_packets(&mut self, rows: &packets::Columns<'_>) {
        self.has_packets = true;
        self.usercmds_sent += sum(rows.usercmds);
        self.up.add(rows.player, rows.arrived, rows.took_ms, rows.bytes);
    }

    fn add_snapshots(&mut self, rows: &snapshots::Columns<'_>) {
        self.down.add(rows.player, rows.arrived, rows.took_ms, rows.bytes);
        self.choked += sum(rows.choked);
        self.warnings += sum(rows.warnings);
        for (part, bits) in OptionalBits::PARTS.iter().zip(rows.bits).filter(|(_, bits)| !bits.is_empty()) {
            *self.bits_for.entry(part.trim_start_matches('.')).or_default() += sum(bits);
        }
    }

    /// The traffic so far; `None` without a table of packets.
    pub(super) fn summary(&self) -> Option<NetworkSummary> {
        // A client that recorded what it received also recorded what it sent.
        let has_log = |player: &u32| self.up.deliveries.contains_key(player);
        let lacks_log = |(player, down): &(&u32, &Delivery)| !has_log(player) && down.received == 0;
        let without_log = self.down.deliveries.iter().filter(lacks_log).count() as u64;
        let sent = self.up.sent();
        self.has_packets.then(|| NetworkSummary {
            up: self.up.direction(without_log, |_| true),
            usercmds_per_packet: (sent > 0).then(|| self.usercmds_sent as f64 / sent as f64),
            down: self.down.direction(0, has_log),
            choked: self.choked,
            warnings: self.warnings,
            bytes_for: self.bits_for.iter().map(|(part, bits)| (*part, *bits as f64 / 8.0)).collect(),
        })
    }
}

impl DirectionSums {
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

    /// The figures of the direction. The packets that `without_sender` players sent are not known. `has_receiver` says
    /// whether the trace has the records of a player's receiver, which it has if a packet arrived.
    fn direction(&self, without_sender: u64, has_receiver: impl Fn(&u32) -> bool) -> DirectionSummary {
        let is_known_as_empty = self.deliveries.is_empty() && without_sender == 0;
        let has_arrivals = is_known_as_empty || self.deliveries.values().any(|delivery| delivery.received > 0);
        let is_known =
            |player: &u32, delivery: &Delivery| has_arrivals && (delivery.received > 0 || has_receiver(player));
        let all = || self.deliveries.iter();
        let known: Vec<&Delivery> = all().filter(|(player, of)| is_known(player, of)).map(|(_, of)| of).collect();
        let sum = |of: fn(&Delivery) -> u64| known.iter().map(|delivery| of(delivery)).sum::<u64>();
        let sent = if has_arrivals { sum(|delivery| delivery.sent) } else { self.sent() };
        DirectionSummary {
            sent: (is_known_as_empty || !self.deliveries.is_empty()).then_some(sent),
            players_unknown: without_sender + (self.deliveries.len() - known.len()) as u64,
            lost: has_arrivals.then(|| sum(Delivery::lost)),
            in_flight: has_arrivals.then(|| sum(Delivery::in_flight)),
            took_ms: self.took_ms.spread(),
            bytes: self.bytes,
        }
    }
}

/// The number of shots, and how many of them hit a player. A projectile is one shot, however many players and surfaces it
/// hits: its impacts count only if the row of its launch is missing. A hit that the recorded server reported, and whose shot
/// is not known, counts apart, because the shots that missed are not known either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShotCounter {
    hitscan_fired: u64,
    hitscan_hit: u64,
    reported: u64,
    /// The projectiles of each usercmd, by shooter and usercmd.
    projectiles: SortedMap<(u32, u32), ProjectileRows>,
}

/// The rows about the projectiles of one usercmd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProjectileRows {
    launches: u64,
    impacts: u64,
    /// The impacts that hit a player.
    hits: u64,
    /// The hits among them that the recorded server reported.
    reported: u64,
}

impl ShotCounter {
    /// Adds a row. Shots that the server never ran do not count.
    pub(crate) fn add_row(&mut self, shots: &shots::Columns<'_>, row: usize, reason: &str) {
        let is_impact = shots.impact.get(row) == Some(&1);
        if is_impact || reason == "launched" {
            let [shooter, command] =
                [shots.shooter, shots.command].map(|ids| ids.get(row).copied().unwrap_or_default());
            let rows = self.projectiles.entry((shooter, command)).or_default();
            rows.launches += u64::from(!is_impact);
            rows.impacts += u64::from(is_impact);
            let is_hit = is_impact && reason == "hit";
            rows.hits += u64::from(is_hit);
            rows.reported += u64::from(is_hit && shots.is_reported(row));
        } else if shots.is_reported(row) {
            self.reported += 1;
        } else if is_judged(reason) {
            self.hitscan_fired += 1;
            self.hitscan_hit += u64::from(reason == "hit");
        }
    }

    /// Adds the shots of another part of the same session.
    pub fn add(&mut self, other: &ShotCounter) {
        self.hitscan_fired += other.hitscan_fired;
        self.hitscan_hit += other.hitscan_hit;
        self.reported += other.reported;
        for (usercmd, more) in &other.projectiles {
            let rows = self.projectiles.entry(*usercmd).or_default();
            rows.launches += more.launches;
            rows.impacts += more.impacts;
            rows.hits += more.hits;
            rows.reported += more.reported;
        }
    }

    /// The number of shots.
    pub fn fired(&self) -> u64 {
        self.hitscan_fired + self.projectiles.values().map(ProjectileRows::fired).sum::<u64>()
    }

    /// The number of shots that hit a player.
    pub fn hit(&self) -> u64 {
        self.hitscan_hit + self.projectiles.values().map(ProjectileRows::hit).sum::<u64>()
    }

    /// The number of hits that the recorded server reported and whose shot is not known.
    pub(crate) fn reported(&self) -> u64 {
        self.reported + self.projectiles.values().map(ProjectileRows::without_launch).sum::<u64>()
    }

    /// The number of projectiles launched.
    pub(crate) fn launched(&self) -> u64 {
        self.projectiles.values().map(|rows| rows.launches).sum()
    }

    /// The number of impacts.
    pub(crate) fn impacts(&self) -> u64 {
        self.projectiles.values().map(|rows| rows.impacts).sum()
    }
}

/// Whether the shooter's screen and the server agree on a shot: on the target hit, on a miss, or on a launch. The hitgroup
/// and the damage may differ. `None` if the screen's result is not known.
pub(crate) fn agreement(reasons: [&str; 2], targets: [&str; 2]) -> Option<bool> {
    let [seen, hit] = targets.map(|target| Some(target).filter(|target| is_named(target)));
    let [has_seen_launch, has_launched] = reasons.map(|reason| reason == "launched");
    (!matches!(reasons[0], "" | NOT_PREDICTED)).then(|| seen == hit && has_seen_launch == has_launched)
}

pub(crate) fn is_named(target: &str) -> bool {
    !matches!(target, "" | "none")
}

impl ProjectileRows {
    /// Without the rows of launches, each impact counts as a projectile. But projectiles that hit nobody are not reported.
    fn fired(&self) -> u64 {
        if self.launches > 0 { self.launches } else { self.impacts - self.reported }
    }

    fn hit(&self) -> u64 {
        (self.hits - self.without_launch()).min(self.fired())
    }

    /// The reported hits of projectiles whose launches are not known.
    fn without_launch(&self) -> u64 {
        if self.launches > 0 { 0 } else { self.reported }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::trace::{Column, NameColumn, Table};

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

    /// A lost usercmd can change the weapon with which the server fires.
    #[test]
    fn a_launch_and_a_miss_do_not_agree() {
        let agreement = |seen, judged| agreement([seen, judged], ["none", "none"]);
        assert_eq!([agreement("launched", "missed"), agreement("missed", "launched")], [Some(false); 2]);
        assert_eq!([agreement("launched", "launched"), agreement("missed", "hit the world")], [Some(true); 2]);
        assert_eq!(agreement(NOT_PREDICTED, "launched"), None);
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

    /// Counts rows of a usercmd: whether each is an impact, and its reason.
    fn counted(rows: &[(u32, bool, &str)]) -> ShotCounter {
        counted_as(rows, false)
    }

    /// The same, as hits that the recorded server reported.
    fn counted_as(rows: &[(u32, bool, &str)], are_reported: bool) -> ShotCounter {
        let impact: Vec<u32> = rows.iter().map(|(_, is_impact, _)| u32::from(*is_impact)).collect();
        let command: Vec<u32> = rows.iter().map(|(command, ..)| *command).collect();
        let shooter = vec![0; rows.len()];
        let nothing = Table::default();
        let names = ["none", "p1"].map(str::to_owned);
        let given_target = NameColumn { names: &names, codes: &vec![u32::from(are_reported); rows.len()] };
        let read = shots::Columns::read(&nothing);
        let columns = shots::Columns { shooter: &shooter, command: &command, impact: &impact, given_target, ..read };
        let mut counter = ShotCounter::default();
        rows.iter().enumerate().for_each(|(row, (.., reason))| counter.add_row(&columns, row, reason));
        counter
    }

    fn numbers(counter: &ShotCounter) -> [u64; 4] {
        [counter.fired(), counter.hit(), counter.launched(), counter.impacts()]
    }

    #[test]
    fn a_projectile_that_hits_several_players_is_one_shot() {
        let rows =
            [(1, false, "launched"), (1, true, "hit"), (1, true, "hit"), (1, true, "hit the world"), (2, false, "hit")];
        assert_eq!(numbers(&counted(&rows)), [2, 2, 1, 3]);
    }

    /// Only hits are reported, so hits of unknown shots give no hit rate.
    #[test]
    fn reported_hits_count_only_with_a_known_shot() {
        let unknown = counted_as(&[(1, true, "hit"), (2, false, "hit"), (2, false, "hit")], true);
        assert_eq!((numbers(&unknown), unknown.reported()), ([0, 0, 0, 1], 3));
        let launched = counted_as(&[(1, false, "launched"), (1, true, "hit")], true);
        assert_eq!((numbers(&launched), launched.reported()), ([1, 1, 1, 1], 0));
    }

    #[test]
    fn an_impact_counts_as_a_shot_only_without_its_own_launch() {
        let rows = [(1, false, "launched"), (2, true, "hit"), (3, false, "not run"), (4, false, "missed")];
        assert_eq!(numbers(&counted(&rows)), [3, 1, 1, 1]);
    }

    #[test]
    fn a_projectile_that_flies_into_the_next_part_is_one_shot() {
        let mut parts = counted(&[(1, false, "launched"), (2, false, "hit")]);
        let later = counted(&[(1, true, "hit"), (5, true, "missed")]);
        assert_eq!((parts.fired(), later.fired()), (2, 2));
        parts.add(&later);
        assert_eq!(numbers(&parts), [3, 2, 1, 2]);
    }
}

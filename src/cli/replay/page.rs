//! The page of a replay.

use hitreg_log::sorted::SortedMap;
use serde::Serialize;

use super::{HashReport, ReplayReport, SessionPart};
use crate::cli::figures::{count, counted, duration, measure, ms, replay_mode, share, speed};
use crate::cli::page::{Bad, Good, Page, TextStyle, Unsure};
use crate::drawing::{DrawingScore, TELEPORTED};
use crate::fairness::{CoverHits, Fairness};
use crate::replay::PlayerJumps;
use crate::score::ModeScore;
use crate::stats::{CountedValues, Spread, Tail};
use crate::summary::{
    Coverage, DirectionSummary, NetworkSummary, PlayedPredictions, PredictionShare, PredictionSummary, ShotSummary,
};
use crate::trace::Trace;
use crate::trace::schema::shots;
use crate::units::ClockTime;

pub(super) fn print(page: &mut Page, report: &ReplayReport, program: &str) {
    page.heading(&format!("{}: {}, {}", report.path, report.game, replay_mode(&report.mode)));
    let length = duration(report.session_us);
    page.pair("speed", &format!("{length} at {}", speed(report.real_time_factor)));
    page.pair("replayed", &exercised(&report.exercised));
    if !report.settings_changed.is_empty() {
        page.pair("settings", &report.settings_changed.join(" "));
        page.pair("what-if", &format!("{}. {}.", report.what_if, report.what_if_means));
        report.unanswered.iter().for_each(|why| page.pair("unanswered", why));
    }
    if !report.passed_over.is_empty() {
        page.pair("skipped", &report.passed_over.join(", "));
    }
    if let Some(SessionPart { from_us, to_us }) = report.part {
        let [from, to] = [from_us, to_us].map(ClockTime);
        page.pair("part", &format!("{from} to {to}"));
    }
    if let Some(digest) = &report.digest {
        page.pair("digest", digest);
    }
    print_hashes(page, report, program);
    if report.prediction.checked > 0 {
        print_prediction(page, &report.prediction, report.grades);
    }
    JumpReport::print(page, &report.jumps);
    print_drawn(page, &report.drawn);
    print_interpolation(page, &report.interpolation);
    print_shots(page, &report.shots, report.fairness.as_ref());
    RejudgedHit::print(page, &report.hits_again, report.prediction.checked > 0);
    if let Some(network) = &report.network {
        print_network(page, network, report.is_open_ended);
    }
    if let Some(trace) = &report.trace {
        page.blank();
        page.line(&format!("Trace written to {trace}"));
    }
}

/// Describes what a replay exercised.
pub(in crate::cli) fn exercised(exercised: &Coverage) -> String {
    let mut parts = parts_run(exercised).to_vec();
    match (exercised.shots, exercised.hits) {
        (Some(shots), Some(hits)) => parts.extend([counted(shots, "shot"), counted(hits, "hit")]),
        _ => parts.push("shots not known".to_owned()),
    }
    parts.join(", ")
}

/// The counts of what a replay ran, without shots.
fn parts_run(exercised: &Coverage) -> [String; 3] {
    let Coverage { ticks, usercmds, corrections, .. } = exercised;
    let corrections = corrections.map_or("corrections not known".to_owned(), |number| counted(number, "correction"));
    [counted(*ticks, "tick"), counted(*usercmds, "usercmd"), corrections]
}

fn print_prediction(page: &mut Page, prediction: &PredictionSummary, grades: &str) {
    let ran = if prediction.as_played.is_some() { ", with the server's usercmd times" } else { "" };
    page.heading(&format!("Prediction, compared with the server's state after the same usercmds{ran}"));
    let row = |name: &str, PredictionShare { checked, exact, near }: PredictionShare| {
        let [exactly, nearly] = [exact, exact + near].map(|acks| share(acks, checked));
        [name.to_owned(), count(checked), exactly, nearly, count(checked - exact - near)]
    };
    let all = PredictionShare { checked: prediction.checked, exact: prediction.exact, near: prediction.near };
    let mut rows = vec![row("on the ground", prediction.ground), row("in the air", prediction.air), row("all", all)];
    if let Some(PlayedPredictions { ground, air }) = prediction.as_played {
        rows.extend([row("on the ground, as played", ground), row("in the air, as played", air)]);
    }
    page.table(&["", ">acks", ">exact", ">exact or near", ">misses"], rows);
    page.paragraph(2, &format!("{grades}; miss: neither"));
    if let Some(error) = &prediction.error_units {
        let [p50, p95, max] = [error.p50, error.p95, error.max].map(measure);
        let apart = match prediction.relocations {
            0 => String::new(),
            some => format!(" ({} by spawns, deaths and teleports excluded)", counted(some, "correction")),
        };
        page.paragraph(2, &format!("position error: median {p50}, p95 {p95}, max {max} units{apart}"));
    }
    if !prediction.misses_by_cause.is_empty() {
        let mut causes: Vec<(&String, &u64)> = prediction.misses_by_cause.iter().collect();
        causes.sort_by_key(|(_, misses)| std::cmp::Reverse(**misses));
        let text = |(cause, misses): (&String, &u64)| {
            format!("{} {} ({})", cause.replace('_', " "), count(*misses), share(*misses, prediction.checked))
        };
        page.pair("misses", &causes.into_iter().map(text).collect::<Vec<_>>().join(", "));
    }
}

fn print_drawn(page: &mut Page, drawn: &[DrawingScore]) {
    if drawn.is_empty() {
        return;
    }
    page.heading("Interpolation: distance of drawn entities from their true position at that time");
    let row = |drawn: &DrawingScore| {
        let [p50, p95, p99] = percentiles(drawn.error_units);
        [drawn.by.clone(), count(drawn.views), p50, p95, p99]
    };
    let is_teleport = |drawn: &&DrawingScore| drawn.by == TELEPORTED;
    let rows = drawn.iter().filter(|drawn| !is_teleport(drawn)).map(row);
    page.table(&["units", ">views", ">p50", ">p95", ">p99"], rows);
    let teleports: u64 = drawn.iter().filter(is_teleport).map(|drawn| drawn.views).sum();
    if teleports > 0 {
        page.faint(2, &format!("excluded: {} across a spawn or teleport", counted(teleports, "view")));
    }
}

fn print_interpolation(page: &mut Page, scores: &[ModeScore]) {
    if scores.iter().all(|score| score.samples == 0) {
        return;
    }
    page.heading("Interpolation, estimated: each recorded state drawn from its neighbours, in units");
    let row = |score: &ModeScore| {
        let [p50, p95, p99] = percentiles(score.error_units);
        [score.mode.to_owned(), count(score.samples), p50, p95, p99]
    };
    page.table(&["interpolation.mode", ">samples", ">p50", ">p95", ">p99"], scores.iter().map(row));
}

fn percentiles(errors: Option<Tail>) -> [String; 3] {
    errors.map_or(["-"; 3].map(str::to_owned), |tail| [tail.p50, tail.p95, tail.p99].map(measure))
}

fn print_shots(page: &mut Page, shots: &ShotSummary, fairness: Option<&Fairness>) {
    match (shots.fired, shots.hit) {
        (Some(fired @ 1..), Some(hit)) => print_judged_shots(page, shots, [fired, hit], fairness.map(|of| &of.all)),
        (None, _) if shots.predicted.unwrap_or_default() + shots.reported > 0 => print_predicted_shots(page, shots),
        _ => {}
    }
}

/// Prints the shots of a replay without a server that judged them.
fn print_predicted_shots(page: &mut Page, shots: &ShotSummary) {
    page.heading("Shots");
    let server = match shots.reported {
        0 => "not known: the replay has no server".to_owned(),
        hits => format!("{} reported by the recorded server; misses are not known", counted(hits, "hit")),
    };
    page.pair("server", &server);
    let screen = match (shots.predicted, shots.predicted_hit) {
        (Some(predicted @ 1..), Some(hit)) => {
            format!("{}, {} hit on the shooter's screen", counted(predicted, "predicted shot"), count(hit))
        }
        _ => NO_SCREEN.to_owned(),
    };
    page.pair("screen", &screen);
}

/// Prints the shots that a server judged: `fired` and the `hit` among them.
fn print_judged_shots(page: &mut Page, shots: &ShotSummary, [fired, hit]: [u64; 2], exposure: Option<&CoverHits>) {
    page.heading("Shots");
    page.pair("server", &format!("{} of {} hit ({})", count(hit), count(fired), share(hit, fired)));
    if shots.reported > 0 {
        let hits = counted(shots.reported, "hit");
        page.pair("reported", &format!("{hits} by the recorded server, of shots that are not known: not counted"));
    }
    if let (Some(launched), Some(impacts)) = (shots.launched, shots.impacts)
        && launched + impacts > 0
    {
        page.pair("projectiles", &format!("{} launched, {}", count(launched), counted(impacts, "impact")));
    }
    if let Some(not_run @ 1..) = shots.not_run {
        let why = "predicted, but never run by the server: not counted";
        page.pair("not run", &format!("{} {why}", counted(not_run, "shot")));
    }
    let screen = match (shots.predicted, shots.predicted_hit, shots.agreed) {
        (Some(predicted @ 1..), Some(hit), Some(agreed)) => {
            let (noun, rest) = match fired.saturating_sub(predicted) {
                0 => ("shot", String::new()),
                others => ("predicted shot", format!("; {} without a prediction", counted(others, "shot"))),
            };
            let (hit, of, share) = (count(hit), counted(predicted, noun), share(agreed, predicted));
            let agreed = format!("client and server agree on {} of {of} ({share}){rest}", count(agreed));
            format!("{hit} hit on the shooter's screen; {agreed}")
        }
        _ => NO_SCREEN.to_owned(),
    };
    page.pair("screen", &screen);
    page.pair("view error", &view_error(shots));
    if let Some(exposure) = exposure.filter(|exposure| exposure.known > 0) {
        let hidden_for = exposure.in_cover_ms.map(|ms| match exposure.in_cover {
            1 => format!("; the target had been out of sight for {} ms on its own screen", measure(ms.p50)),
            _ => format!(
                "; targets had been out of sight on their own screens for {} ms (median; max {})",
                measure(ms.p50),
                measure(ms.max)
            ),
        });
        let hits = counted(exposure.known, "hitscan hit");
        let text = format!("{} of {hits}{}", count(exposure.in_cover), hidden_for.unwrap_or_default());
        page.pair("in cover", &text);
    }
}

/// The results on screens in a trace that has none.
const NO_SCREEN: &str = "not known: no prediction of a shot is in this log";

/// How far targets were judged from where the shooters saw them.
pub(in crate::cli) fn view_error(shots: &ShotSummary) -> String {
    match (shots.view_error_units, shots.rewound) {
        (Some(Spread { max: 0.0, .. }), _) => {
            "0 units: the server judged every target exactly where the shooter saw it".to_owned()
        }
        (Some(Spread { p50, p95, max }), _) => {
            let [p50, p95, max] = [p50, p95, max].map(measure);
            format!("median {p50}, p95 {p95}, max {max} units between target drawn and target judged")
        }
        (None, None | Some(0)) => "no shot was rewound".to_owned(),
        (None, Some(rewound)) => format!("not known for the {} with a rewind", counted(rewound, "shot")),
    }
}

fn print_hashes(page: &mut Page, report: &ReplayReport, program: &str) {
    let HashReport { compared, first_difference_tick, missing } = report.hashes;
    if compared > 0 {
        let (style, text) = compared_in_words(report, compared, first_difference_tick, program);
        page.styled(style, &text);
    }
    if let Some(SessionPart { from_us, to_us }) = missing {
        let [from, to] = [from_us, to_us].map(ClockTime);
        let text = format!("A part is missing, from {from} to {to}: results after it do not match the played session.");
        page.marked(2, Bad, &text);
    }
}

/// Describes whether a replay matches the recorded session.
fn compared_in_words(
    report: &ReplayReport,
    compared: u64,
    first_difference_tick: Option<u32>,
    program: &str,
) -> (TextStyle, String) {
    let matching = match compared {
        1 => "its tick hash matches".to_owned(),
        compared => format!("all {} tick hashes match", count(compared)),
    };
    match first_difference_tick {
        None if report.hashes.missing.is_some() => {
            (Unsure, format!("  as recorded up to the missing part: {matching}"))
        }
        None if report.part.is_some() => (Good, format!("  as recorded up to the end of the part: {matching}")),
        None => (Good, format!("  as recorded: {matching} the recording")),
        Some(tick) if report.settings_changed.is_empty() => {
            let log = &report.path;
            (Bad, format!("  NOT as recorded from tick {tick} on. Run: {program} bisect ticks {log}"))
        }
        Some(tick) => (Unsure, format!("  differs from the recording from tick {tick} on, because of other settings")),
    }
}

/// Prints the traffic of a session or a part. Later packets may decide which packets of a part are lost: `is_open_ended`.
fn print_network(page: &mut Page, network: &NetworkSummary, is_open_ended: bool) {
    page.heading("Network");
    let one_way = |what: &str, (sent, not_known): (u64, &str), way: &DirectionSummary| {
        let took = way.took_ms.map_or(String::new(), |ms| format!(", median {} ms", measure(ms.p50)));
        let bytes = way.bytes.map_or(String::new(), |bytes| format!(", {} bytes", count(bytes)));
        let lost = match (way.lost, way.in_flight) {
            // The session goes on after a part. Later packets show which of the last ones are lost.
            (Some(lost), Some(in_flight @ 1..)) if is_open_ended => {
                let most = share(lost + in_flight, sent);
                format!("{} to {most} lost, {} not decided in this part", share(lost, sent), count(in_flight))
            }
            // Some packets of every session are in flight at its end. More than 5 % show a link that had stopped.
            (Some(lost), Some(in_flight)) if in_flight * 20 > sent => {
                format!("{} lost, {} in flight at the end", share(lost, sent), count(in_flight))
            }
            (Some(lost), _) => format!("{} lost", share(lost, sent)),
            (None, _) => "arrivals not known".to_owned(),
        };
        let unknown = match (way.lost, way.players_unknown) {
            (None, _) | (_, 0) => String::new(),
            (_, players) => format!("; {not_known} of {} not known", counted(players, "other player")),
        };
        format!("{what}, {lost}{took}{bytes}{unknown}")
    };
    let up = match (network.up.sent, network.usercmds_per_packet) {
        (Some(sent), Some(usercmds)) => {
            let packets = format!("{} of {usercmds:.2} usercmds", counted(sent, "packet"));
            one_way(&packets, (sent, "packets"), &network.up)
        }
        _ => "the log has no packets of clients".to_owned(),
    };
    page.pair("up", &up);
    let counts = [(network.choked, "choked update"), (network.warnings, "warning")];
    let counts = counts.into_iter().filter(|(number, _)| *number > 0).map(|(number, what)| counted(number, what));
    let sent = network.down.sent.unwrap_or_default();
    let snapshots = one_way(&counted(sent, "snapshot"), (sent, "arrivals"), &network.down);
    page.pair("down", &std::iter::once(snapshots).chain(counts).collect::<Vec<_>>().join("; "));
    let all: f64 = network.bytes_for.values().sum();
    let mut parts: Vec<_> = network.bytes_for.iter().filter(|(_, bytes)| **bytes > 0.0).collect();
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let part = |(part, bytes): (&&str, &f64)| format!("{part} {:.1} %", 100.0 * bytes / all);
    if !parts.is_empty() {
        page.pair("down, bytes", &parts.into_iter().map(part).collect::<Vec<_>>().join(", "));
    }
}

/// The visible corrections of a player's own position.
#[derive(Serialize)]
pub(super) struct JumpReport {
    player: u16,
    /// The number of visible corrections.
    count: usize,
    units: Spread,
}

/// The maximum number of players in the text output. The JSON has all players.
const LISTED_PLAYERS_MAX: usize = 8;

impl JumpReport {
    /// Smaller corrections are invisible. Quake III's clients do not count them either (`cg_showmiss`).
    const VISIBLE_UNITS_MIN: f32 = 0.1;

    pub(super) fn of(jumped: &[PlayerJumps]) -> Vec<JumpReport> {
        let of_player = |PlayerJumps { player, units }: &PlayerJumps| {
            let mut seen = CountedValues::default();
            let mut count = 0;
            for (units, times) in units.iter().filter(|(units, _)| *units > Self::VISIBLE_UNITS_MIN) {
                count += times as usize;
                (0..times).for_each(|_| seen.add(units));
            }
            Some(JumpReport { player: player.0, count, units: seen.spread()? })
        };
        jumped.iter().filter_map(of_player).collect()
    }

    fn print(page: &mut Page, jumps: &[JumpReport]) {
        if jumps.is_empty() {
            return;
        }
        page.heading(&format!(
            "Visible corrections: snapshots that moved a player on its own screen by over {} units",
            Self::VISIBLE_UNITS_MIN
        ));
        let row = |jumps: &JumpReport| {
            let [p50, p95, max] = [jumps.units.p50, jumps.units.p95, jumps.units.max].map(measure);
            [format!("p{}", jumps.player), count(jumps.count as u64), p50, p95, max]
        };
        page.table(&["", ">times", ">p50", ">p95", ">max"], jumps.iter().take(LISTED_PLAYERS_MAX).map(row));
    }
}

/// A hit that another server reported.
#[derive(Serialize)]
pub(super) struct RejudgedHit {
    shooter: u32,
    command: u32,
    /// The index of the hit within its usercmd.
    index: u32,
    at_us: i64,
    weapon: String,
    /// The player that the server reported as hit; `?` if unknown.
    target: String,
    /// The player that is hit here; `null` if the shot is unknown.
    judged: Option<String>,
    /// Why the hit is not judged; `null` if it is.
    not_judged: Option<UnjudgedReason>,
    /// The player that would have been hit without a rewind.
    at_present: Option<String>,
    /// `null` if the shot is unknown.
    rewind_us: Option<i64>,
    /// How far the shot misses the target here, in units, and beyond its spread. `null` if the shot is unknown.
    off_units: Option<f32>,
    beyond_spread_units: Option<f32>,
    /// Distance between where the shooter's screen showed the target and where the server judged it.
    view_error_units: Option<f32>,
}

/// Why a hit is not judged again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum UnjudgedReason {
    /// The weapon has no line of fire.
    Melee,
    /// No shot is known at that time.
    NoShot,
}

impl RejudgedHit {
    /// A shot that misses by no more than this counts as a hit. Coordinates are single-precision, and maps are large.
    const THROUGH_UNITS: f32 = 0.01;

    /// The reported hits, without those of projectiles. `melee` are the game's weapons without a line of fire.
    pub(super) fn of(trace: &Trace, melee: &[&str]) -> Vec<RejudgedHit> {
        let shots = shots::Columns::of(trace);
        let measure = |column: &[f32], row: usize| column.get(row).copied().filter(|value| !value.is_nan());
        let given = (0..shots.rows).zip(shots.given_target.iter()).filter(|(_, target)| *target != "none");
        let at_once = given.filter(|(row, _)| shots.impact.get(*row) != Some(&1));
        let hit = |(row, target): (usize, &str)| {
            let at_present = shots.present_target.get(row);
            let off_units = measure(shots.off_units, row);
            let why =
                if melee.contains(&shots.weapon.get(row)) { UnjudgedReason::Melee } else { UnjudgedReason::NoShot };
            Some(RejudgedHit {
                shooter: *shots.shooter.get(row)?,
                command: *shots.command.get(row)?,
                index: *shots.index.get(row)?,
                at_us: *shots.at_us.get(row)?,
                weapon: shots.weapon.get(row).to_owned(),
                target: target.to_owned(),
                judged: off_units.map(|_| shots.target.get(row).to_owned()),
                not_judged: off_units.is_none().then_some(why),
                at_present: (!matches!(at_present, "" | "none")).then(|| at_present.to_owned()),
                rewind_us: shots.known_rewind_us(row),
                off_units,
                beyond_spread_units: measure(shots.beyond_spread_units, row),
                view_error_units: measure(shots.view_error_units, row),
            })
        };
        at_once.filter_map(hit).collect()
    }

    fn is_explained(&self) -> bool {
        self.judged.as_ref().is_some_and(|judged| *judged == self.target || (self.target == "?" && judged != "none"))
    }

    /// Whether the shots of all hits are unknown. Then nothing is known about missed shots either.
    fn are_of_no_shot(hits: &[&RejudgedHit]) -> bool {
        !hits.is_empty() && hits.iter().all(|hit| hit.rewind_us.is_none())
    }

    fn hits_at_present(&self) -> bool {
        self.at_present.as_ref().is_some_and(|target| *target == self.target || self.target == "?")
    }

    /// Prints the hits. `has_map` is whether the log has usercmds and the map.
    fn print(page: &mut Page, hits: &[RejudgedHit], has_map: bool) {
        if hits.is_empty() {
            return;
        }
        page.heading("Hits that the recorded server reported, judged again here");
        let is_melee = |hit: &&RejudgedHit| hit.not_judged == Some(UnjudgedReason::Melee);
        let (melee, hits): (Vec<&RejudgedHit>, Vec<&RejudgedHit>) = hits.iter().partition(is_melee);
        if !melee.is_empty() {
            let of = counted(melee.len() as u64, "hit");
            page.note(2, &format!("{of} with the {} not judged: a melee weapon has no line of fire", melee[0].weapon));
        }
        if hits.is_empty() {
            return;
        }
        if RejudgedHit::are_of_no_shot(&hits) && !has_map {
            let text = "none of the {} without projectiles can be judged: this needs a capture of the datagrams, and the map that was played: \
                        `hitreg import quake3-udp CAPTURE --map FILE -o LOG`";
            page.note(2, &text.replace("{}", &count(hits.len() as u64)));
            return;
        }
        let head = ["", ">hits", ">same target", ">within spread", ">without rewind", ">view error p50", ">p95"];
        let mut by_weapon: SortedMap<&str, Vec<&RejudgedHit>> = SortedMap::new();
        for hit in &hits {
            by_weapon.entry(&hit.weapon).or_default().push(hit);
        }
        let row = |name: &str, hits: &[&RejudgedHit]| {
            let of = |is_one: fn(&RejudgedHit) -> bool| {
                share(hits.iter().filter(|hit| is_one(hit)).count() as u64, hits.len() as u64)
            };
            let error = Spread::of(hits.iter().filter_map(|hit| hit.view_error_units));
            let error = error.map_or(["-"; 2].map(str::to_owned), |error| [error.p50, error.p95].map(measure));
            let within =
                |hit: &RejudgedHit| hit.beyond_spread_units.is_some_and(|off| off <= RejudgedHit::THROUGH_UNITS);
            let shares = [of(|hit| hit.is_explained()), of(within), of(|hit| hit.hits_at_present())];
            [name.to_owned(), count(hits.len() as u64)].into_iter().chain(shares).chain(error)
        };
        let all = row("all", &hits);
        page.table(&head, by_weapon.iter().map(|(weapon, hits)| row(weapon, hits)).chain([all]));
        let mut others = hits.iter().filter(|hit| !hit.is_explained());
        for hit in others.by_ref().take(UNEXPLAINED_MAX) {
            let target = if hit.target == "?" { "an unknown player" } else { &hit.target };
            let what = match (hit.off_units, hit.rewind_us) {
                (Some(off), Some(rewind_us)) => format!(
                    "judged here with a rewind of {}, the shot misses it by {} units and hits {}",
                    ms(rewind_us),
                    measure(off),
                    hit.judged.as_deref().filter(|whom| *whom != "none").unwrap_or("no player")
                ),
                _ => "no shot is known at that time".to_owned(),
            };
            page.note(
                2,
                &format!(
                    "not explained: p{} #{} hit {target} with the {} at {:.3} s: {what}",
                    hit.shooter,
                    hit.command,
                    hit.weapon,
                    hit.at_us as f64 / 1e6
                ),
            );
        }
        let more = others.count();
        if more > 0 {
            page.faint(2, &format!("and {} more not explained (listed with --format json)", count(more as u64)));
        }
    }
}

/// The maximum number of unexplained hits that are listed.
const UNEXPLAINED_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(weapon: &str, off_units: Option<f32>) -> RejudgedHit {
        let why = if weapon == "gauntlet" { UnjudgedReason::Melee } else { UnjudgedReason::NoShot };
        RejudgedHit {
            shooter: 0,
            command: 1,
            index: 0,
            at_us: 0,
            weapon: weapon.to_owned(),
            target: "p1".to_owned(),
            judged: off_units.map(|_| "p1".to_owned()),
            not_judged: off_units.is_none().then_some(why),
            at_present: None,
            rewind_us: off_units.map(|_| 0),
            off_units,
            beyond_spread_units: off_units,
            view_error_units: None,
        }
    }

    fn printed(hits: &[RejudgedHit], has_map: bool) -> String {
        let mut page = Page::default();
        RejudgedHit::print(&mut page, hits, has_map);
        format!("{page:?}").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn hits_of_a_melee_weapon_are_not_wrong_targets() {
        let gauntlet = [hit("gauntlet", None), hit("gauntlet", None)];
        let text = printed(&gauntlet, true);
        assert!(text.contains("2 hits with the gauntlet not judged: a melee weapon has no line of fire"), "{text}");
        assert!(!text.contains("capture") && !text.contains("not explained"), "{text}");
        let both = printed(&[hit("gauntlet", None), hit("railgun", Some(0.0))], true);
        assert!(
            both.contains(&share(1, 1)) && !both.contains(&share(1, 2)) && !both.contains("not explained"),
            "{both}"
        );
    }

    #[test]
    fn the_advice_about_capture_and_map_needs_their_absence() {
        let unknown = [hit("railgun", None)];
        assert!(printed(&unknown, false).contains("import quake3-udp CAPTURE --map FILE"));
        let text = printed(&unknown, true);
        assert!(text.contains("no shot is known at that time") && !text.contains("CAPTURE"), "{text}");
    }
}

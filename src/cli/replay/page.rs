//! The page of a replay.

use super::recorded::{JumpReport, RejudgedHit};
use super::{HashReport, ReplayReport, ReplayShots, SessionPart};
use crate::cli::figures::{count, counted, duration, measure, replay_mode, share, speed};
use crate::cli::page::{BAD, GOOD, Page, TextStyle, UNSURE};
use crate::drawing::DrawingScore;
use crate::fairness::CoverHits;
use crate::score::ModeScore;
use crate::stats::{Spread, Tail};
use crate::summary::{
    Coverage, DirectionSummary, NetworkSummary, PlayedPredictions, PredictionShare, PredictionSummary, ShotSummary,
};
use crate::units::ClockTime;

pub(super) fn print(page: &mut Page, report: &ReplayReport) {
    page.heading(&format!("{}: {}, {}", report.path, report.game, replay_mode(&report.mode)));
    let length = duration(report.session_us);
    page.pair("speed", &format!("{length} at {}", speed(report.real_time_factor)));
    let replayed = match &report.shots {
        ReplayShots::Judged(_) => exercised(&report.exercised),
        ReplayShots::Predicted(_) => parts_run(&report.exercised).join(", "),
    };
    page.pair("replayed", &replayed);
    if !report.settings_changed.is_empty() {
        page.pair("settings", &report.settings_changed.join(" "));
        page.pair("what-if", &format!("{}. {}.", report.what_if, report.what_if_means));
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
    print_hashes(page, report);
    if report.prediction.checked > 0 {
        print_prediction(page, &report.prediction, report.grades);
    }
    JumpReport::print(page, &report.jumps);
    print_drawn(page, &report.drawn);
    print_interpolation(page, &report.interpolation);
    match &report.shots {
        ReplayShots::Judged(shots) if shots.fired > 0 => {
            print_shots(page, shots, &report.fairness.all);
        }
        ReplayShots::Predicted(shots) if shots.predicted + shots.reported > 0 => {
            page.heading("Shots");
            let server = match shots.reported {
                0 => "not known: the replay has no server".to_owned(),
                hits => format!("{} reported by the recorded server; misses are not known", counted(hits, "hit")),
            };
            page.pair("server", &server);
            let screen = match shots.predicted {
                0 => "no shot was predicted in this log".to_owned(),
                shot => format!(
                    "{}, {} hit on the shooter's screen",
                    counted(shot, "predicted shot"),
                    count(shots.predicted_hit)
                ),
            };
            page.pair("screen", &screen);
        }
        _ => {}
    }
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
    // The distance between two ends of a teleport is no error of interpolation.
    let is_teleport = |drawn: &&DrawingScore| drawn.by == "teleported";
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

fn print_shots(page: &mut Page, shots: &ShotSummary, exposure: &CoverHits) {
    page.heading("Shots");
    let hit = format!("{} of {} hit ({})", count(shots.hit), count(shots.fired), share(shots.hit, shots.fired));
    page.pair("server", &hit);
    if shots.reported > 0 {
        let hits = counted(shots.reported, "hit");
        page.pair("reported", &format!("{hits} by the recorded server, of shots that are not known: not counted"));
    }
    if shots.launched + shots.impacts > 0 {
        page.pair("projectiles", &format!("{} launched, {}", count(shots.launched), counted(shots.impacts, "impact")));
    }
    if shots.not_run > 0 {
        let why = "predicted, but never run by the server: not counted";
        page.pair("not run", &format!("{} {why}", counted(shots.not_run, "shot")));
    }
    let on_screen = format!("{} hit on the shooter's screen", count(shots.predicted_hit));
    let (predicted, rest) = match shots.fired.saturating_sub(shots.predicted) {
        0 => ("shot", String::new()),
        1 => ("predicted shot", "; 1 shot was not predicted".to_owned()),
        others => ("predicted shot", format!("; {} shots were not predicted", count(others))),
    };
    let agreed = format!(
        "client and server agree on {} of {} ({}){rest}",
        count(shots.agreed),
        counted(shots.predicted, predicted),
        share(shots.agreed, shots.predicted)
    );
    let screen = match shots.predicted {
        0 => "no shot was predicted in this log".to_owned(),
        _ => format!("{on_screen}; {agreed}"),
    };
    page.pair("screen", &screen);
    page.pair("view error", &view_error(shots));
    if exposure.known > 0 {
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
        (None, 0) => "no shot was rewound".to_owned(),
        (None, rewound) => format!("not known for the {} with a rewind", counted(rewound, "shot")),
    }
}

fn print_hashes(page: &mut Page, report: &ReplayReport) {
    let HashReport { compared, first_difference_tick, missing } = report.hashes;
    if compared > 0 {
        let (style, text) = compared_in_words(report, compared, first_difference_tick);
        page.styled(style, &text);
    }
    if let Some(SessionPart { from_us, to_us }) = missing {
        let [from, to] = [from_us, to_us].map(ClockTime);
        let text = format!("A part is missing, from {from} to {to}: results after it do not match the played session.");
        page.marked(2, BAD, &text);
    }
}

/// Describes whether a replay matches the recorded session.
fn compared_in_words(report: &ReplayReport, compared: u64, first_difference_tick: Option<u32>) -> (TextStyle, String) {
    let matching = match compared {
        1 => "its tick hash matches".to_owned(),
        compared => format!("all {} tick hashes match", count(compared)),
    };
    match first_difference_tick {
        None if report.hashes.missing.is_some() => {
            (UNSURE, format!("  as recorded up to the missing part: {matching}"))
        }
        None if report.part.is_some() => (GOOD, format!("  as recorded up to the end of the part: {matching}")),
        None => (GOOD, format!("  as recorded: {matching} the recording")),
        Some(tick) if report.settings_changed.is_empty() => {
            let log = &report.path;
            (BAD, format!("  NOT as recorded from tick {tick} on. Run: hitreg bisect ticks {log}"))
        }
        Some(tick) => (UNSURE, format!("  differs from the recording from tick {tick} on, because of other settings")),
    }
}

/// Prints the traffic of a session or a part. Later packets may decide which packets of a part are lost: `is_open_ended`.
fn print_network(page: &mut Page, network: &NetworkSummary, is_open_ended: bool) {
    page.heading("Network");
    let one_way = |what: &str, way: &DirectionSummary| {
        let took = way.took_ms.map_or(String::new(), |ms| format!(", median {} ms", measure(ms.p50)));
        let bytes = way.bytes.map_or(String::new(), |bytes| format!(", {} bytes", count(bytes)));
        let lost = match way.lost {
            // The session goes on after a part. Later packets show which of the last ones are lost.
            Some(lost) if is_open_ended && way.in_flight > 0 => {
                let most = share(lost + way.in_flight, way.sent);
                format!("{} to {most} lost, {} not decided in this part", share(lost, way.sent), count(way.in_flight))
            }
            // Some packets of every session are in flight at its end. More than 5 % show a link that had stopped.
            Some(lost) if way.in_flight * 20 > way.sent => {
                format!("{} lost, {} in flight at the end", share(lost, way.sent), count(way.in_flight))
            }
            Some(lost) => format!("{} lost", share(lost, way.sent)),
            None => "arrivals not known".to_owned(),
        };
        let unknown = match (way.lost, way.players_unknown) {
            (None, _) | (_, 0) => String::new(),
            (_, players) => format!("; arrivals of {} not known", counted(players, "other player")),
        };
        format!("{what}, {lost}{took}{bytes}{unknown}")
    };
    let up = match network.up.sent {
        0 => "the log has no packets of clients".to_owned(),
        sent => {
            let packets = format!("{} of {:.2} usercmds", counted(sent, "packet"), network.usercmds_per_packet);
            one_way(&packets, &network.up)
        }
    };
    page.pair("up", &up);
    let counts = [(network.choked, "choked update"), (network.warnings, "warning")];
    let counts = counts.into_iter().filter(|(number, _)| *number > 0).map(|(number, what)| counted(number, what));
    let snapshots = one_way(&counted(network.down.sent, "snapshot"), &network.down);
    page.pair("down", &std::iter::once(snapshots).chain(counts).collect::<Vec<_>>().join("; "));
    let all: f64 = network.bytes_for.values().sum();
    let mut parts: Vec<_> = network.bytes_for.iter().filter(|(_, bytes)| **bytes > 0.0).collect();
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let part = |(part, bytes): (&&str, &f64)| format!("{part} {:.1} %", 100.0 * bytes / all);
    if !parts.is_empty() {
        page.pair("down, bytes", &parts.into_iter().map(part).collect::<Vec<_>>().join(", "));
    }
}

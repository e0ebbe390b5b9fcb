//! `hitreg info`: shows the contents of a log or a trace.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::figures::{bytes, count, counted, duration, replay_mode, share};
use super::page::{Page, Unsure};
use super::trouble::note_passed_over;
use super::{CommandError, CommandResult, Output};
use crate::engine::{Engine, EngineError, Games, retry_with_encoding};
use crate::golden::ReplaySummary;
use crate::info::{GapFigures, InfoBuilder, PacketCounts, Percentiles, PlayerFigures, SessionInfo, is_foreign};
use crate::log::FileKind;
use crate::record::{LogContents, SessionHeader, UnknownKind};
use crate::recorder::last_usercmd_as_received;
use crate::replay::{ReplayAttempt, ReplayMode, ReplayOptions};
use crate::report::round_trips;
use crate::settings::Settings;
use crate::store::{self, StoreError, TraceFile};
use crate::summary::SummaryBuilder;
use crate::trace::schema::{TableSet, shots};
use crate::trace::{Table, TraceHeader, TraceSource};
use crate::traffic::SnapshotNumbers;
use crate::units::{ClockTime, Micros};

/// The most gaps that are listed one by one.
const GAPS_LISTED: usize = 3;

/// Show the contents of a log or trace: players, duration, usercmds, round trips, loss, size
///
/// A round trip is the time from making a usercmd to receiving its ack. Shots and hits are counted by a
/// replay, with --replay. A truncated log is shown up to the cut.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg info match.hitlog
  hitreg info match.hitlog --replay    also counts shots and hits
  hitreg info match.hitlog --format json | jq .rtt_ms
  hitreg info match.hittrace           tables and row counts")]
pub(super) struct Args {
    /// A log or a trace
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Replay the log to count shots and hits
    #[arg(long)]
    replay: bool,
}

#[derive(Serialize)]
struct LogInfo {
    path: String,
    kind: &'static str,
    format_version: String,
    #[serde(flatten)]
    info: SessionInfo,
    shots: Option<u64>,
    hits: Option<u64>,
    /// The reason why shots are not counted, for example because no replay was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    shots_unknown: Option<String>,
    size_bytes: u64,
    bytes_per_usercmd: Option<f64>,
    /// The number of keyframes; `None` if the log is cut off.
    keyframes: Option<usize>,
    /// Settings that differ from the preset.
    settings_changed: Vec<(String, String)>,
    /// Data of a later format version that this build skips.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    passed_over: Vec<String>,
    /// A warning if the log is cut off and only its beginning is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let path = &args.file;
    match store::kind_of(path)? {
        FileKind::Trace if output.is_typed("replay") => Err(EngineError::already_replayed(path).into()),
        FileKind::Trace => show_trace(path, output),
        FileKind::Log | FileKind::Other => show_log(games, args, output),
    }
}

fn show_log(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let path = &args.file;
    let reader = store::open_log(path)?;
    let (header, version) = (&reader.header().clone(), reader.format());
    let mut figures = InfoBuilder::new(header);
    // A log that is cut off is shown up to that place.
    let torn = reader.outlines(&mut |outline| figures.add(outline)).map_err(|error| CommandError::file(path, error))?;
    note_passed_over(path, header);
    let size_bytes = store::size_bytes(path)?;
    let keyframes = match torn {
        Some(_) => None,
        None => Some(store::open_indexed_log(path)?.keyframe_times().len()),
    };
    let warning = torn.map(|torn| {
        let path = path.display();
        format!("{torn}. Run: hitreg recover {path} -o recovered.hitlog")
    });
    let info = figures.info(header);
    let (shots, shots_unknown) = match count_shots(games, path, header, &info, args.replay) {
        Ok(shots) => (Some(shots), None),
        Err(why) => (None, Some(why)),
    };
    let shown = LogInfo {
        path: path.display().to_string(),
        kind: "log",
        format_version: version.to_string(),
        shots: shots.map(|(fired, _)| fired),
        hits: shots.map(|(_, hit)| hit),
        shots_unknown,
        size_bytes,
        bytes_per_usercmd: (info.usercmds > 0).then(|| size_bytes as f64 / info.usercmds as f64),
        keyframes,
        settings_changed: settings_changed(header),
        passed_over: games.passed_over(header),
        info,
        warning,
    };
    let on_terminal = std::io::stdout().is_terminal();
    output.show(&shown, |page| {
        print_log(page, &shown, header);
        if on_terminal {
            page.append(round_trips(figures.round_trips_ms()));
        }
    })
}

/// Shots and hits, from a replay that is the recorded session, or that judges an imported recording's shots again.
fn count_shots(
    games: &Games,
    path: &Path,
    header: &SessionHeader,
    info: &SessionInfo,
    replays: bool,
) -> Result<(u64, u64), String> {
    let hears = info.records.get("heard").is_some_and(|heard| *heard > 0);
    let judged = info.records.get("judged").copied().unwrap_or_default();
    let mode = match (header.holds(), header.side) {
        (LogContents::Whole, _) => ReplayMode::Closed,
        // The server runs again on what it heard.
        (LogContents::Server, _) if hears => ReplayMode::Closed,
        (LogContents::Clients, None) if judged == 0 => return Err("the recording has no results of shots".to_owned()),
        (LogContents::Clients, None) if !replays => {
            let results = counted(judged as u64, "shot result");
            return Err(format!("{results} of the recorded server; run with --replay to count the shots"));
        }
        (LogContents::Clients, None) => ReplayMode::Open,
        (LogContents::Clients | LogContents::Server, _) => return Err("this is one side of a session".to_owned()),
    };
    let game = games.of_header(header).map_err(|_| match judged {
        0 => format!("a replay counts them, and this build does not play `{}`", header.game),
        _ => format!("{} recorded; this build does not play `{}`", counted(judged as u64, "shot result"), header.game),
    })?;
    if !replays {
        return Err("run with --replay to count".to_owned());
    }
    let tables = TableSet::named([shots::SCHEMA.name]);
    let options = ReplayOptions { mode, tables, ..ReplayOptions::default() };
    let quiet = Engine::new(games);
    let surveyed = quiet.survey(path).map_err(|error| error.to_string())?;
    if surveyed.survey.first_gap().is_some() {
        return Err("a part of the log is missing, so a replay does not match the session".to_owned());
    }
    let (summary, first_difference) = retry_with_encoding(&AtomicBool::new(false), |encodes| {
        let mut summing = None;
        let attempt = ReplayAttempt { options: &options, encodes };
        let mut add = |header: &TraceHeader, rows: Table| {
            summing.get_or_insert_with(|| SummaryBuilder::of(header)).add(&rows);
        };
        let ran = surveyed.replay_rows(game, attempt, &mut add);
        Ok(ran?.map(|ran| (summing.unwrap_or_default().summary(), ran.first_difference)))
    })
    .map_err(|error: EngineError| error.what(path))?;
    match first_difference {
        Some(difference) => Err(format!("this build replays it differently from tick {} on", difference.tick)),
        None => summary.shots.fired.zip(summary.shots.hit).ok_or_else(|| {
            let hits = counted(summary.shots.reported, "hit");
            format!("{hits} that the recorded server reported; misses are not known")
        }),
    }
}

/// The players whose usercmds have the times of their arrivals at the server, not of client frames.
enum ReceivedUsercmds {
    None,
    /// All that have usercmds.
    All,
    /// Some, in words. Round trips are those of the others: a player without a log has none.
    Some(String),
}

impl ReceivedUsercmds {
    fn of(header: &SessionHeader, info: &SessionInfo) -> ReceivedUsercmds {
        let last = |player: u32| Some((player, last_usercmd_as_received(&header.settings, player)?.0));
        let received: Vec<(u32, u32)> = (0..header.players.len() as u32).filter_map(last).collect();
        let has_all = received.iter().all(|(_, last)| *last == u32::MAX);
        let with_usercmds = info.by_player.iter().filter(|player| player.usercmds > 0).count();
        match received.len() {
            0 => ReceivedUsercmds::None,
            all if all >= with_usercmds && has_all => ReceivedUsercmds::All,
            1..=3 => {
                let name = |(player, last): &(u32, u32)| match *last {
                    u32::MAX => format!("p{player}"),
                    last => format!("p{player} up to #{last}"),
                };
                let names: Vec<String> = received.iter().map(name).collect();
                ReceivedUsercmds::Some(format!("those of {}", names.join(", ")))
            }
            some if has_all => ReceivedUsercmds::Some(format!("those of {some} players")),
            some => ReceivedUsercmds::Some(format!("some of those of {some} players")),
        }
    }
}

fn settings_changed(header: &SessionHeader) -> Vec<(String, String)> {
    let preset = header.preset.as_deref().and_then(|name| Settings::preset(name).ok());
    let usual = preset.unwrap_or_default().to_pairs();
    header.settings.iter().filter(|pair| !usual.contains(pair)).cloned().collect()
}

fn print_log(page: &mut Page, shown: &LogInfo, header: &SessionHeader) {
    let info = &shown.info;
    let is_foreign = is_foreign(header);
    let as_received = ReceivedUsercmds::of(header, info);
    page.heading(&shown.path);
    if let Some(warning) = &shown.warning {
        page.marked(2, Unsure, warning);
    }
    let map = if info.map.is_empty() { String::new() } else { format!(" on {}", info.map) };
    page.pair("session", &format!("{}{map}, {}", info.game, info.origin));
    if let (Some(side), Some(session)) = (&info.side, &info.session) {
        page.pair("side", &format!("{side}, of session {session}; `hitreg merge` merges the logs of all sides"));
    }
    let changed: Vec<String> = shown.settings_changed.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let preset = info.preset.as_deref().unwrap_or("none");
    let preset = if is_foreign { String::new() } else { format!("preset {preset} ") };
    let settings = format!("{preset}{}", changed.join(" "));
    page.pair("settings", if settings.is_empty() { "none" } else { &settings });
    if let Err(error) = Settings::from_pairs(&header.settings) {
        page.marked(2, Unsure, &format!("not valid: {error}"));
    }
    let recorded = info.by_player.len();
    let players = match recorded == info.players {
        true => count(info.players as u64),
        false => format!("{}, {recorded} of them recorded", count(info.players as u64)),
    };
    page.pair("players", &players);
    let ticks = if info.ticks == 0 { "no server ticks".to_owned() } else { counted(info.ticks as u64, "tick") };
    page.pair("duration", &format!("{}, {ticks}", duration(Micros(info.duration_us))));
    // Only the game knows which button fires.
    let firing = format!(", {} with the fire button held", count(info.usercmds_firing as u64));
    let firing = if is_foreign || info.usercmds_firing == 0 { "" } else { &firing };
    let together = bytes(info.usercmd_bytes as u64);
    let with_bytes = match info.usercmds_with_bytes {
        0 => String::new(),
        some => format!(", {} with {together} of the game's own", count(some as u64)),
    };
    let arrivals = match &as_received {
        ReceivedUsercmds::None => String::new(),
        ReceivedUsercmds::All => ", with the times of their arrivals".to_owned(),
        ReceivedUsercmds::Some(usercmds) => format!(", {usercmds} with the times of their arrivals"),
    };
    page.pair("usercmds", &format!("{}{firing}{with_bytes}{arrivals}", count(info.usercmds as u64)));
    match (shown.shots, shown.hits) {
        (Some(shots), Some(hits)) => {
            page.pair("shots", &format!("{}, {} hits ({})", count(shots), count(hits), share(hits, shots)));
        }
        _ => page.pair("shots", shown.shots_unknown.as_deref().unwrap_or_default()),
    }
    let per_usercmd = shown.bytes_per_usercmd.map_or(String::new(), |b| format!(", {b:.1} bytes per usercmd"));
    let keyframes = match shown.keyframes {
        None | Some(0) => String::new(),
        Some(some) => format!(", {}", counted(some as u64, "keyframe")),
    };
    let version = &shown.format_version;
    page.pair("size", &format!("{}{per_usercmd}{keyframes}, format {version}", bytes(shown.size_bytes)));
    print_gaps(page, &info.gaps);
    let others = describe_other_records(info, header);
    if !others.is_empty() {
        page.pair("also", &others.join(", "));
    }
    if !shown.passed_over.is_empty() {
        page.pair("skipped", &shown.passed_over.join(", "));
    }
    page.heading("Connections");
    print_connections(page, info, SnapshotNumbers::of(header), &as_received);
}

pub(super) fn print_gaps(page: &mut Page, gaps: &[GapFigures]) {
    for gap in gaps.iter().take(GAPS_LISTED) {
        let whose = gap.player.map_or(String::new(), |player| format!(" of p{player}"));
        let [from, to] = [gap.from_us, gap.to_us].map(|at| ClockTime(Micros(at)));
        let why = gap.why.replace('_', " ");
        page.styled(Unsure, &format!("  records{whose} are missing from {from} to {to}: {why}"));
    }
    if let Some(rest) = gaps.get(GAPS_LISTED..).filter(|rest| !rest.is_empty()) {
        let all = covered(rest.iter().map(|gap| (gap.from_us, gap.to_us)).collect());
        let gaps = counted(rest.len() as u64, "more gap");
        page.styled(Unsure, &format!("  and {gaps}, {} together (--format json lists all)", duration(Micros(all))));
    }
}

/// The counts of records of kinds that few logs have.
fn describe_other_records(info: &SessionInfo, header: &SessionHeader) -> Vec<String> {
    let known = [
        ("presence", "join and leave record"),
        ("predicted", "predicted shot"),
        // An impact has a result of its own, besides that of its launch.
        ("judged", "shot result"),
        ("damage", "damage record"),
    ];
    let number = |kind: &str| info.records.get(kind).map(|number| *number as u64);
    let known = known.into_iter().filter_map(|(kind, one)| Some(counted(number(kind)?, one)));
    // The game names its own kinds, in the singular or plural.
    let is_of_game = |kind: &&UnknownKind| kind.is_custom() || is_foreign(header) && !kind.is_known_kind();
    let of_game = header.unknown.iter().filter(is_of_game);
    let of_game = of_game.filter_map(|kind| Some(format!("{} {}", count(number(&kind.name)?), kind.name)));
    known.chain(of_game).collect()
}

/// Returns the time that spans cover together. They may overlap.
fn covered(mut spans: Vec<(i64, i64)>) -> i64 {
    spans.sort_unstable();
    let mut end = i64::MIN;
    let uncovered = spans.into_iter().map(|(from, to)| {
        let from = from.max(end);
        end = end.max(to);
        to.saturating_sub(from).max(0)
    });
    uncovered.fold(0, i64::saturating_add)
}

fn print_connections(page: &mut Page, info: &SessionInfo, numbers: SnapshotNumbers, as_received: &ReceivedUsercmds) {
    const ROWS_MAX: usize = 8;
    let missing = format!(">server\n{}", numbers.missing());
    let (down, up) = ([">from\nsent", &missing, ">\nchoked"], [">to\nsent", ">server\nlost"]);
    let rtt = [">round\np5", ">trip,\np50", ">ms\np95", ">\np99"];
    let head = [&["", ">\nusercmds"][..], &down, &up, &rtt].concat();
    let row = |name: &str, usercmds: usize, down: &PacketCounts, up: &PacketCounts, rtt: &Percentiles| {
        let ms = |p: Option<f64>| p.map_or("-".to_owned(), |ms| format!("{ms:.0}"));
        let known = |value: Option<u64>| value.map_or("-".to_owned(), count);
        let packets = [down.sent, down.lost, down.choked, up.sent, up.lost].map(known);
        let rtt = [rtt.p5, rtt.p50, rtt.p95, rtt.p99].map(ms);
        [name.to_owned(), count(usercmds as u64)].into_iter().chain(packets).chain(rtt)
    };
    let named = |(player, figures): (usize, &PlayerFigures)| match figures.name.as_str() {
        "" => format!("p{player}"),
        name => name.to_owned(),
    };
    let of_player = |(player, p): (usize, &PlayerFigures)| {
        row(&named((player, p)), p.usercmds, &p.packets, &p.packets_up, &p.rtt_ms)
    };
    let counts = [&info.packets, &info.packets_up].map(|packets| [packets.sent, packets.lost, packets.choked]);
    if info.rtt_ms.p50.is_none() && counts.as_flattened().iter().all(Option::is_none) {
        let usercmds = match info.usercmds {
            0 => "",
            _ => "; `hitreg info FILE --format json` lists usercmds by player",
        };
        return page.faint(2, &format!("the log records no packets{usercmds}"));
    }
    let all = || row("all", info.usercmds, &info.packets, &info.packets_up, &info.rtt_ms);
    let all = (info.by_player.len() > 1).then(all);
    page.table(&head, info.by_player.iter().enumerate().take(ROWS_MAX).map(of_player).chain(all));
    let first = match as_received {
        ReceivedUsercmds::All => "the arrival of a usercmd",
        ReceivedUsercmds::None | ReceivedUsercmds::Some(_) => "making a usercmd",
    };
    page.faint(2, &format!("packets; round trip: from {first} to receiving its ack"));
    for (number, player) in info.by_player.iter().enumerate().take(ROWS_MAX) {
        for (way, packets) in [("from", &player.packets), ("to", &player.packets_up)] {
            if let Some(stopped) = stopped_link(packets) {
                let sent = packets.sent.map_or(String::new(), |sent| format!(" of {}", count(sent)));
                let what = format!(
                    "{}: {}{sent} packets {way} the server were sent after the last arrival",
                    named((number, player)),
                    count(stopped)
                );
                page.paragraph(2, &format!("{what}, and are not counted as lost"));
            }
        }
    }
    if numbers == SnapshotNumbers::Replies {
        page.faint(2, "no reply: client packets without one, lost in either direction or answered");
        page.faint(2, "together with the next; a reply's number is that of the client packet");
    }
    if info.by_player.len() > ROWS_MAX {
        page.faint(2, "(--format json lists the other players)");
    }
}

/// The packets that were sent after the last arrival, if they are so many that the link had stopped: more than 5 %.
fn stopped_link(packets: &PacketCounts) -> Option<u64> {
    let (sent, received, lost) = (packets.sent?, packets.received?, packets.lost?);
    let waiting = sent.saturating_sub(received + lost + packets.choked.unwrap_or_default());
    (waiting * 20 > sent).then_some(waiting)
}

#[derive(Serialize)]
struct TraceInfo<'a> {
    path: String,
    kind: &'static str,
    format_version: String,
    game: &'a str,
    mode: &'a str,
    log_digest: &'a str,
    /// The session times that the trace covers; `None` for the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    part_us: Option<[Micros; 2]>,
    digest: String,
    size_bytes: u64,
    tables: Vec<TableInfo<'a>>,
}

#[derive(Serialize)]
struct TableInfo<'a> {
    name: &'a str,
    rows: u64,
    columns: Vec<ColumnInfo<'a>>,
}

#[derive(Serialize)]
struct ColumnInfo<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    data: &'static str,
}

fn show_trace(path: &Path, output: &mut Output) -> CommandResult {
    let fail = |source| StoreError::trace_content(path, source);
    let mut reader = store::open_trace(path)?;
    let (header, version) = (reader.header().clone(), reader.format());
    let mut summary = ReplaySummary::new(header.clone());
    while let Some(rows) = reader.next_rows().map_err(fail)? {
        summary.add(&rows);
    }
    let trace = TraceFile::open(path)?;
    let shown = TraceInfo {
        path: path.display().to_string(),
        kind: "trace",
        format_version: version.to_string(),
        game: &header.game,
        mode: &header.mode,
        log_digest: &header.log_digest,
        part_us: header.part,
        digest: summary.digest().to_string(),
        size_bytes: store::size_bytes(path)?,
        tables: trace.tables().into_iter().map(|(table, rows)| TableInfo::of(table, rows)).collect(),
    };
    output.show(&shown, |page| {
        page.heading(&shown.path);
        page.pair("trace", &format!("{}, {}", shown.game, replay_mode(shown.mode)));
        page.pair("digest", &shown.digest);
        if !shown.log_digest.is_empty() {
            page.pair("of the log", shown.log_digest);
        }
        if let Some(part) = header.part_shown() {
            page.pair("part", &format!("{part} alone"));
        }
        page.pair("size", &bytes(shown.size_bytes));
        page.blank();
        let row = |t: &TableInfo<'_>| [t.name.to_owned(), count(t.rows), t.columns.len().to_string()];
        page.table(&["table", ">rows", ">columns"], shown.tables.iter().map(row));
    })
}

impl TableInfo<'_> {
    fn of(table: &Table, rows: u64) -> TableInfo<'_> {
        let column = |c: &'_ crate::trace::Column| c.data.type_name();
        TableInfo {
            name: &table.name,
            rows,
            columns: table.columns.iter().map(|c| ColumnInfo { name: &c.name, data: column(c) }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_cover_their_union() {
        assert_eq!(covered(vec![(5, 9), (0, 4), (3, 6), (7, 8), (20, 20), (30, 31)]), 10);
        assert_eq!(covered(vec![(i64::MIN, i64::MAX)]), i64::MAX);
        assert_eq!(covered(vec![(i64::MIN, -1), (-1, i64::MAX)]), i64::MAX);
        assert_eq!(covered(vec![(i64::MIN, i64::MIN), (5, 9)]), 4);
        assert_eq!(covered(Vec::new()), 0);
    }
}

//! `hitreg import`: turns recordings of real games into logs.

use std::path::{Path, PathBuf};

use hitreg_log::sorted::SortedMap;
use rayon::prelude::*;
use serde::Serialize;

use super::figures::{bytes, count, counted, duration, share};
use super::output::{FileSize, create_folder};
use super::page::{Page, Unsure};
use super::{CommandError, CommandOutcome, CommandResult, Output, OutputPath};
use crate::import::{Maps, Quake3Recording, demos_below, import_quake3, import_qwd};
use crate::info::SessionInfo;
use crate::log::WriterOptions;
use crate::quake3::{ListenerCounts, Overview, RecordingKind};
use crate::quakeworld::{DemoCut, ImportResult, OtherLevels, RecordedBy, TraitFinding, demo_stem};
use crate::store::{self, FileType, Target};
use crate::units::Micros;

/// Convert a recording of a real game to a log
#[derive(clap::Subcommand)]
pub(super) enum ImportFormat {
    Qwd(QwdArgs),
    Quake3Udp(UdpArgs),
    Quake3Demo(DemoArgs),
}

pub(super) fn run(command: &ImportFormat, output: &mut Output) -> CommandResult {
    match command {
        ImportFormat::Qwd(args) => run_qwd(args, output),
        ImportFormat::Quake3Udp(args) => run_udp(args, output),
        ImportFormat::Quake3Demo(args) => run_demo(args, output),
    }
}

/// The warning about bytes after the end of a recording.
fn rest_of_file(offset: u64) -> String {
    format!("the demo ends at byte {offset}: what follows, such as a second demo, was not imported")
}

/// The warning about replaced times.
fn replaced_times(times: u64) -> Option<String> {
    let what = "ran backward or jumped. The time before replaces it, so delays near it are not exact";
    (times > 0).then(|| format!("{} {what}", counted(times, "timestamp")))
}

/// The largest difference between the times of a capture and the server's clock without a warning. It is above delays of
/// the network and pauses of a server.
const CLOCK_ERROR_MAX: Micros = Micros::from_s(2);

const NO_USERCMDS: &str = "the capture has no usercmds of clients in the game, so the log cannot be replayed: capture both \
                           directions";

/// Import captured datagrams of a Quake III engine's clients and server (protocol 71: OpenArena, ioquake3)
///
/// The log holds every client's usercmds, packets and snapshots as captured between client and server. It has all
/// fields of the playerStates and entityStates, and the hits that the server reported to shooters. With --server-log,
/// it also holds the shooter and target of each hit; the server must run with `g_debugDamage 1`. Names and chat are
/// left out.
///
/// Start the capture before its clients connect, because each datagram is encoded as a difference from an earlier one.
/// docs/openarena.md describes the capture format.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg import quake3-udp duel.trace.zst -o duel.hitlog
  hitreg import quake3-udp duel.trace.zst --map pak1-maps.pk3 -o duel.hitlog && hitreg replay duel.hitlog
  hitreg import quake3-udp duel.trace.zst --server-log server.log -o duel.hitlog")]
pub(super) struct UdpArgs {
    /// The capture, plain or compressed with zstd
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// The map that was played: a .bsp, or a .pk3 that contains it. Without a map, predictions cannot be checked
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Use a map whose name differs from the played map
    #[arg(long, requires = "map")]
    force_map: bool,
    /// The server's console log, which names the target of each hit
    #[arg(long, value_name = "FILE")]
    server_log: Option<PathBuf>,
    /// The log to write
    #[arg(short, long, value_name = "LOG")]
    output: OutputPath,
}

/// Import a demo of a Quake III engine's client (.dm_68 or .dm_71: OpenArena, ioquake3, Quake III 1.32)
///
/// The log holds the client's snapshots with all fields of the playerStates and entityStates, and the hits that the
/// server reported to the player. A demo has no usercmds and no arrival times, so there is no prediction. A replay
/// scores how other players were drawn. Names and chat are left out.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg import quake3-demo match.dm_71 -o match.hitlog && hitreg replay match.hitlog")]
pub(super) struct DemoArgs {
    /// The demo
    #[arg(value_name = "DEMO")]
    demo: PathBuf,
    /// The log to write
    #[arg(short, long, value_name = "LOG")]
    output: OutputPath,
}

#[derive(Serialize)]
struct Quake3ImportReport {
    path: String,
    #[serde(skip)]
    from: RecordingKind,
    game: String,
    map: String,
    players: Vec<u16>,
    #[serde(flatten)]
    counts: ListenerCounts,
    /// The first datagrams that could not be decoded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undecoded_first: Vec<String>,
    size_bytes: FileSize,
    /// What the recording lacks, and what of it is not imported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

fn run_udp(args: &UdpArgs, output: &mut Output) -> CommandResult {
    let (map, server_log) = (args.map.as_deref(), args.server_log.as_deref());
    let (recording, force_map) = (args.capture.as_path(), args.force_map);
    let from = Quake3Recording { source: RecordingKind::Capture, recording, map, force_map, server_log };
    import_recording(from, &args.output, output)
}

fn run_demo(args: &DemoArgs, output: &mut Output) -> CommandResult {
    let from = Quake3Recording {
        source: RecordingKind::Demo,
        recording: &args.demo,
        map: None,
        force_map: false,
        server_log: None,
    };
    import_recording(from, &args.output, output)
}

fn import_recording(from: Quake3Recording<'_>, to: &OutputPath, output: &mut Output) -> CommandResult {
    let target = output.files.target(to, FileType::Log)?;
    let overview = import_quake3(&from, &target)?;
    let report = Quake3ImportReport::new(to, from.source, overview);
    output.show(&report, |page| report.print(page))
}

/// A capture in which more than one in so many datagrams cannot be decoded has gaps.
const DATAGRAMS_PER_UNDECODED: u64 = 20;

impl Quake3ImportReport {
    fn new(
        path: &Path,
        from: RecordingKind,
        Overview { rules, players, counts, repaired_times, clock_error, undecoded, cut, after_end }: Overview,
    ) -> Quake3ImportReport {
        let undecoded = undecoded.iter().map(|undecoded| match from {
            RecordingKind::Capture => undecoded.to_string(),
            // A demo has one client and one direction.
            RecordingKind::Demo => undecoded.why.to_string(),
        });
        let off = (clock_error > CLOCK_ERROR_MAX).then(|| {
            format!(
                "the times of the capture are off by up to {} from the server's clock, so delays and durations are wrong: \
                 it needs nanoseconds of a monotonic clock (docs/openarena.md)",
                duration(clock_error)
            )
        });
        let lacks_datagrams = counts.undecoded * DATAGRAMS_PER_UNDECODED > counts.datagrams;
        let gaps = (from == RecordingKind::Capture && lacks_datagrams).then(|| {
            "over 5 % of the datagrams cannot be decoded, mostly because the capture lacks the snapshots that they refer to: the log \
             lacks states and hits"
                .to_owned()
        });
        let no_usercmds = (from == RecordingKind::Capture && counts.usercmds == 0).then(|| NO_USERCMDS.to_owned());
        Quake3ImportReport {
            path: path.display().to_string(),
            from,
            game: rules.game,
            map: rules.map_name,
            players,
            counts,
            undecoded_first: undecoded.collect(),
            size_bytes: FileSize::of(path),
            warnings: [
                cut.map(|offset| format!("truncated: the part after byte {offset} was not imported")),
                after_end.map(rest_of_file),
                replaced_times(repaired_times),
                off,
                gaps,
                no_usercmds,
            ]
            .into_iter()
            .flatten()
            .collect(),
        }
    }

    fn print(&self, page: &mut Page) {
        let counts = &self.counts;
        page.heading(&self.path);
        let names: Vec<String> = self.players.iter().map(|player| format!("p{player}")).collect();
        page.pair("session", &format!("{} on {}, of {}", self.game, self.map, names.join(", ")));
        for warning in &self.warnings {
            page.marked(2, Unsure, warning);
        }
        let undecoded = match counts.undecoded {
            0 => "all decoded".to_owned(),
            some => format!("{} could not be decoded ({})", count(some), share(some, counts.datagrams)),
        };
        let messages = if self.from == RecordingKind::Demo { "messages" } else { "datagrams" };
        page.pair(messages, &format!("{}, {undecoded}", count(counts.datagrams)));
        for why in &self.undecoded_first {
            page.styled(Unsure, &format!("  {why}"));
        }
        if counts.after_level > 0 {
            let what = "of clients that had left the level are not imported";
            page.styled(Unsure, &format!("  {} {what}", count(counts.after_level)));
        }
        if self.from == RecordingKind::Demo {
            page.pair("snapshots", &count(counts.snapshots));
        } else {
            page.pair("usercmds", &count(counts.usercmds));
            let known = share(counts.acked_by_time, counts.snapshots);
            page.pair("snapshots", &format!("{}, {known} of them ack a usercmd by its time", count(counts.snapshots)));
        }
        let victims = format!("{} with their victim", count(counts.hits_with_victim));
        page.pair("shot results", &format!("{} reported to shooters, {victims}", count(counts.hits)));
        let has_lines = counts.logged + counts.logged_outside > 0;
        if has_lines {
            let reported = format!("{} of them reported to a shooter", count(counts.logged_with_shooter));
            page.pair("server log", &format!("{}, {reported}", counted(counts.logged, "damage line")));
        }
        if counts.logged_outside > 0 {
            let lines = counted(counts.logged_outside, "damage line");
            page.styled(
                Unsure,
                &format!("  not imported: {lines} that no decoded snapshot follows within the recording"),
            );
        }
        if has_lines && counts.logged_with_shooter * 2 < counts.hits {
            let what = "the server log has fewer than half of the reported hits: it may be of another session";
            page.marked(2, Unsure, what);
        }
        page.pair("size", &self.size_bytes.to_string());
    }
}

/// Import a QuakeWorld demo (.qwd or .mvd, protocol 28)
///
/// The log holds the player's usercmds, every server packet with its sequence and ack, the states of the player and of
/// visible players, and the map's movement data. A demo has no server to run, so the log replays open loop: each
/// prediction is compared with the server's snapshot. Names and chat are left out.
///
/// Demos of spectators and servers (.mvd) have no predictions to check. They hold the states of visible players, so
/// interpolation is scored. Demos that MVDSV wrote also hold hits.
///
/// A truncated or damaged demo is imported up to the fault, with a warning. Demo and map may be compressed with gzip or
/// xz. The map must be the one that was played. With --maps, it is found by the name in the demo. Several demos, or a
/// folder of them, become one log each in the folder given with -o. Demos that cannot be imported are listed, and the
/// others are still imported.
///
/// The importer detects the server's movement settings from the demo, and walls that the given map lacks
/// (docs/quakeworld.md).
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg import qwd duel.qwd --map dm4.bsp -o duel.hitlog
  hitreg import qwd match.qwd.xz --map dm3.bsp.gz -o match.hitlog
  hitreg import qwd demos --maps id1/maps -o logs
  hitreg info match.hitlog && hitreg replay match.hitlog")]
pub(super) struct QwdArgs {
    /// Demos, or folders to search for .qwd and .mvd files (also .xz and .gz)
    #[arg(value_name = "DEMO", required = true)]
    demos: Vec<PathBuf>,
    /// The map that was played (BSP version 29)
    #[arg(long, value_name = "FILE", group = "map_source")]
    map: Option<PathBuf>,
    /// A folder of maps; each map is found by the name in the demo
    #[arg(long, value_name = "DIR", conflicts_with = "map", group = "map_source")]
    maps: Option<PathBuf>,
    /// Use the map even if its name or its walls do not match the demo
    #[arg(long, requires = "map_source")]
    force_map: bool,
    /// The log to write; for several demos, a folder
    #[arg(short, long, value_name = "LOG|DIR")]
    output: OutputPath,
}

#[derive(Serialize)]
struct QwdImportReport {
    path: String,
    #[serde(flatten)]
    info: SessionInfo,
    demo_bytes: usize,
    size_bytes: FileSize,
    recorded_by: &'static str,
    /// Features of the server that not every server has.
    server: Vec<TraitFinding>,
    /// The number of walls on the played map that the given map lacks, as far as the demo shows them.
    walls_missing: usize,
    /// What the demo holds of levels on other maps. It is not imported.
    other_levels: OtherLevels,
    /// What the demo lacks, and what of it is not imported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// The result of importing several demos.
#[derive(Serialize)]
struct ImportBatch {
    logs: Vec<QwdImportReport>,
    refused: Vec<RefusedDemo>,
}

/// A demo that could not be imported, or a folder that could not be listed.
#[derive(Serialize)]
struct RefusedDemo {
    path: String,
    why: String,
}

fn run_qwd(args: &QwdArgs, output: &mut Output) -> CommandResult {
    let maps = match (&args.map, &args.maps) {
        (Some(map), _) => Maps::File(map.clone()),
        (None, Some(file)) if file.is_file() => {
            return Err(CommandError::file(file, "this is a file: give a folder to --maps, or this map to --map"));
        }
        (None, Some(folder)) => Maps::Folder(folder.clone()),
        // The demo is read first, so that the error can name its map, or say that it is not a demo.
        (None, None) => Maps::NotGiven,
    };
    if let [demo] = &args.demos[..]
        && !demo.is_dir()
    {
        let target = output.files.target(&args.output, FileType::Log)?;
        let report = import_demo(demo, &maps, args.force_map, &target)?;
        output.show(&report, |page| report.print(page))?;
        return Ok(CommandOutcome::Done);
    }
    let (mut demos, mut unread) = (Vec::new(), Vec::new());
    for demo in &args.demos {
        match demo.is_dir() {
            true => match demos_below(demo, &mut unread) {
                Ok(below) => demos.extend(below),
                Err(error) => unread.push(error),
            },
            false => demos.push(demo.clone()),
        }
    }
    if demos.is_empty() && unread.is_empty() {
        let what = "there are no demos (*.qwd or *.mvd, also .xz and .gz) in this folder or below it: name another";
        return Err(CommandError::file(&args.demos[0], what));
    }
    create_folder(&args.output, "demos")?;
    let targets = log_targets(&demos, args, output);
    let jobs = demos.par_iter().zip(targets);
    let imported: Vec<Result<QwdImportReport, CommandError>> =
        jobs.map(|(demo, target)| import_demo(demo, &maps, args.force_map, &target?)).collect();
    let refused = |path: &Path, why: String| RefusedDemo { path: path.display().to_string(), why };
    let unread = unread.iter().map(|error| refused(&error.path, error.to_string())).collect();
    let mut several = ImportBatch { logs: Vec::new(), refused: unread };
    for (demo, imported) in demos.into_iter().zip(imported) {
        match imported {
            Ok(report) => several.logs.push(report),
            Err(trouble) => several.refused.push(refused(&demo, trouble.to_string())),
        }
    }
    output.show(&several, |page| {
        several.logs.iter().for_each(|report| report.print(page));
        for refused in &several.refused {
            let why = refused.why.strip_prefix(&format!("{}: ", refused.path)).unwrap_or(&refused.why);
            page.styled(Unsure, &format!("not imported: {}: {why}", refused.path));
        }
    })?;
    Ok(if several.refused.is_empty() { CommandOutcome::Done } else { CommandOutcome::Trouble })
}

/// The target of each demo's log in the requested folder, or the reason why it has none.
fn log_targets(demos: &[PathBuf], args: &QwdArgs, output: &Output) -> Vec<Result<Target, CommandError>> {
    let log = |demo: &PathBuf| {
        let name = demo.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("{}.hitlog", demo_stem(&name))
    };
    let mut named: SortedMap<String, &PathBuf> = SortedMap::new();
    let target = |demo| {
        let log = log(demo);
        if let Some(first) = named.get(&log) {
            let what = format!("{log} is already the log of {}: import this demo with another -o", first.display());
            return Err(CommandError::file(demo, what));
        }
        let target = output.files.target_at(&args.output.join(&log), FileType::Log)?;
        named.insert(log, demo);
        Ok(target)
    };
    demos.iter().map(target).collect()
}

fn import_demo(demo: &Path, maps: &Maps, force_map: bool, target: &Target) -> Result<QwdImportReport, CommandError> {
    let (imported, demo_bytes) = import_qwd(demo, maps, force_map)?;
    let ImportResult { demo, session, findings, walls } = imported;
    let cut = demo.cut.map(|DemoCut { offset, bytes }| match (&demo.damage, bytes) {
        (Some(damage), bytes) => {
            format!(
                "the demo is damaged: it was imported up to byte {offset}, without the last {bytes} bytes; {damage}"
            )
        }
        (None, 0) => format!("the demo is truncated: it was imported up to byte {offset}"),
        (None, bytes) => format!(
            "the demo is truncated: it was imported up to byte {offset}, without {bytes} bytes of an incomplete frame"
        ),
    });
    let gap = (demo.acks_ahead > 0).then(|| {
        let packets = counted(demo.acks_ahead, "packet");
        format!(
            "{packets} acked usercmds that the demo does not have yet: frames are missing, and later usercmds have wrong numbers"
        )
    });
    let after_end = demo.after_end.map(|offset| rest_of_file(offset as u64));
    store::save_log(target, &session, WriterOptions::whole())?;
    Ok(QwdImportReport {
        path: target.path().display().to_string(),
        info: SessionInfo::of(&session),
        demo_bytes,
        size_bytes: FileSize::of(target.path()),
        recorded_by: match demo.recorded_by {
            RecordedBy::Player => "player",
            RecordedBy::Spectator => "spectator",
            RecordedBy::Server => "server",
        },
        server: findings,
        walls_missing: walls,
        other_levels: demo.other_levels,
        warnings: [cut, gap, after_end, replaced_times(demo.repaired_times)].into_iter().flatten().collect(),
    })
}

/// Describes a finding and its certainty.
fn found(finding: &TraitFinding) -> String {
    let TraitFinding { what, has, agree, disagree, .. } = *finding;
    let answer = if has { "yes" } else { "no" };
    match agree + disagree {
        0 => format!("{}: {answer}, by the server's info", what.label()),
        votes => format!("{}: {answer}, by {agree} of {votes} places in the demo", what.label()),
    }
}

impl QwdImportReport {
    fn print(&self, page: &mut Page) {
        let info = &self.info;
        page.heading(&self.path);
        page.pair("session", &format!("{} on {}, imported from {}", info.game, info.map, info.origin));
        for warning in &self.warnings {
            page.marked(2, Unsure, warning);
        }
        let OtherLevels { levels, packets, usercmds } = self.other_levels;
        if levels > 0 {
            let [packets, usercmds] = [packets, usercmds].map(count);
            let what = format!("{packets} packets and {usercmds} usercmds of another level are not imported");
            page.styled(Unsure, &format!("  {what}"));
        }
        for (index, finding) in self.server.iter().enumerate() {
            page.pair(if index == 0 { "server" } else { "" }, &found(finding));
        }
        if self.walls_missing > 0 {
            let walls = counted(self.walls_missing as u64, "wall");
            page.pair("map", &format!("differs from the played map: it lacks {walls}"));
        }
        page.pair("duration", &duration(Micros(info.duration_us)));
        if self.recorded_by != "player" {
            page.pair("recorded by", &format!("a {}: there is no prediction to check", self.recorded_by));
            let of = |kind: &str| count(info.records.get(kind).copied().unwrap_or(0) as u64);
            page.pair(
                "holds",
                &format!("{} snapshots, {} states, {} hits", of("snapshots"), of("states"), of("damage")),
            );
            let demo = bytes(self.demo_bytes as u64);
            page.pair("size", &format!("{}; the demo has {demo}", self.size_bytes));
            return;
        }
        page.pair(
            "usercmds",
            &format!(
                "{}, {} with the fire button held",
                count(info.usercmds as u64),
                count(info.usercmds_firing as u64)
            ),
        );
        let packets = info.packets;
        let [sent, received, lost, choked] =
            [packets.sent, packets.received, packets.lost, packets.choked].map(Option::unwrap_or_default);
        let lost = format!("{} without a reply ({})", count(lost), share(lost, sent));
        page.pair("packets", &format!("{} received, {lost}, {} choked", count(received), count(choked)));
        let demo = bytes(self.demo_bytes as u64);
        let size = self.size_bytes.per_usercmd(info.usercmds as u64);
        page.pair("size", &format!("{size}; the demo has {demo}"));
    }
}

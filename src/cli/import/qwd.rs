//! `hitreg import qwd`: turns QuakeWorld demos into logs.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::rest_of_file;
use crate::cli::figures::{bytes, count, counted, duration, share};
use crate::cli::files::FileSize;
use crate::cli::output::Output;
use crate::cli::outputs::{OutputPath, create_folder};
use crate::cli::page::{Page, UNSURE};
use crate::cli::trouble::CommandError;
use crate::cli::{CommandOutcome, CommandResult};
use crate::import::{Maps, demos_below, import_qwd};
use crate::info::SessionInfo;
use crate::log::WriterOptions;
use crate::quakeworld::{DemoCut, ImportResult, OtherLevels, RecordedBy, TraitFinding};
use crate::store::{self, FileType, Target};
use crate::units::Micros;
use hitreg_log::sorted::SortedMap;

/// Import a QuakeWorld demo (.qwd or .mvd, protocol 28)
///
/// The log holds the player's usercmds, every server packet with its sequence and ack, the states of the player and of
/// visible players, and the map's movement data. A demo has no server to run, so the log replays open loop: each
/// prediction is compared with the server's snapshot. Names and chat are left out.
///
/// Demos of spectators and servers (.mvd) have no predictions to check. They hold the states of visible players, so
/// interpolation is scored. Demos that MVDSV wrote also hold hits.
///
/// A truncated demo is imported up to the cut, with a warning. Demo and map may be compressed with gzip or xz. The map
/// must be the one that was played. With --maps, it is found by the name in the demo. Several demos, or a folder of
/// them, become one log each in the folder given with -o. Demos that cannot be imported are listed, and the others are
/// still imported.
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
pub(super) struct Args {
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

/// A demo that could not be imported.
#[derive(Serialize)]
struct RefusedDemo {
    path: String,
    why: String,
}

pub(super) fn run(args: &Args, output: &mut Output) -> CommandResult {
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
        let report = import(demo, &maps, args.force_map, &target)?;
        output.show(&report, |page| report.print(page))?;
        return Ok(CommandOutcome::Done);
    }
    let mut demos = Vec::new();
    for demo in &args.demos {
        if demo.is_dir() { demos.extend(demos_below(demo)?) } else { demos.push(demo.clone()) }
    }
    if demos.is_empty() {
        let what = "there are no demos (*.qwd or *.mvd, also .xz and .gz) in this folder or below it: name another";
        return Err(CommandError::file(&args.demos[0], what));
    }
    create_folder(&args.output, "demos")?;
    let targets = targets(&demos, args, output);
    let jobs = demos.par_iter().zip(targets);
    let imported: Vec<Result<QwdImportReport, CommandError>> =
        jobs.map(|(demo, target)| import(demo, &maps, args.force_map, &target?)).collect();
    let mut several = ImportBatch { logs: Vec::new(), refused: Vec::new() };
    for (demo, imported) in demos.into_iter().zip(imported) {
        match imported {
            Ok(report) => several.logs.push(report),
            Err(trouble) => {
                several.refused.push(RefusedDemo { path: demo.display().to_string(), why: trouble.to_string() })
            }
        }
    }
    output.show(&several, |page| {
        several.logs.iter().for_each(|report| report.print(page));
        for refused in &several.refused {
            page.styled(UNSURE, &format!("not imported: {}", refused.why));
        }
    })?;
    Ok(if several.refused.is_empty() { CommandOutcome::Done } else { CommandOutcome::Trouble })
}

/// The target of each demo's log in the requested folder, or the reason why it has none.
fn targets(demos: &[PathBuf], args: &Args, output: &Output) -> Vec<Result<Target, CommandError>> {
    let log = |demo: &PathBuf| {
        let name = demo.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".xz").or(name.strip_suffix(".gz")).unwrap_or(&name);
        format!("{}.hitlog", stem.strip_suffix(".qwd").or(stem.strip_suffix(".mvd")).unwrap_or(stem))
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

fn import(demo: &Path, maps: &Maps, force_map: bool, target: &Target) -> Result<QwdImportReport, CommandError> {
    let (ImportResult { by, session, other_levels, cut, after_end, acks_ahead, findings, walls }, demo_bytes) =
        import_qwd(demo, maps, force_map)?;
    let cut = cut.map(|DemoCut { offset, bytes }| {
        let rest = match bytes {
            0 => String::new(),
            bytes => format!(", without {bytes} bytes of an incomplete frame"),
        };
        format!("the demo is truncated: it was imported up to byte {offset}{rest}")
    });
    let gap = (acks_ahead > 0).then(|| {
        let packets = counted(acks_ahead, "packet");
        format!(
            "{packets} acked usercmds that the demo does not have yet: frames are missing, and later usercmds have wrong numbers"
        )
    });
    store::save_log(target, &session, WriterOptions::whole())?;
    Ok(QwdImportReport {
        path: target.path().display().to_string(),
        info: SessionInfo::of(&session),
        demo_bytes,
        size_bytes: FileSize::of(target.path()),
        recorded_by: match by {
            RecordedBy::Player => "player",
            RecordedBy::Spectator => "spectator",
            RecordedBy::Server => "server",
        },
        server: findings,
        walls_missing: walls,
        other_levels,
        warnings: [cut, gap, after_end.map(|offset| rest_of_file(offset as u64))].into_iter().flatten().collect(),
    })
}

/// Describes a finding and its certainty.
fn found(finding: &TraitFinding) -> String {
    let TraitFinding { what, has, agree, disagree, .. } = *finding;
    let answer = if has { "yes" } else { "no" };
    match agree + disagree {
        0 => format!("{}: {answer}, by the server's info", what.words()),
        votes => format!("{}: {answer}, by {agree} of {votes} places in the demo", what.words()),
    }
}

impl QwdImportReport {
    fn print(&self, page: &mut Page) {
        let info = &self.info;
        page.heading(&self.path);
        page.pair("session", &format!("{} on {}, imported from {}", info.game, info.map, info.origin));
        for warning in &self.warnings {
            page.marked(2, UNSURE, warning);
        }
        let OtherLevels { levels, packets, usercmds } = self.other_levels;
        if levels > 0 {
            let [packets, usercmds] = [packets, usercmds].map(count);
            let what = format!("{packets} packets and {usercmds} usercmds of another level are not imported");
            page.styled(UNSURE, &format!("  {what}"));
        }
        for (index, finding) in self.server.iter().enumerate() {
            page.pair(if index == 0 { "server" } else { "" }, &found(finding));
        }
        if self.walls_missing > 0 {
            let walls = count(self.walls_missing as u64);
            page.pair("map", &format!("differs from the played map: it lacks {walls} walls"));
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

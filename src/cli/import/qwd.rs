//! `hitreg import qwd`: a QuakeWorld client demo becomes a log.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::figures::{bytes, count, duration, share};
use crate::cli::output::Output;
use crate::cli::outputs::OutPath;
use crate::cli::page::{Page, UNSURE};
use crate::cli::trouble::Trouble;
use crate::cli::{Outcome, files};
use crate::engine::{EngineError, import_qwd};
use crate::info::Info;
use crate::log::Options;
use crate::quakeworld::{Cut, ImportError, Imported};
use crate::store::{self, Kind};
use crate::units::Micros;

/// Import a QuakeWorld client demo (.qwd, protocol 28)
///
/// The log holds the player's usercmds, every server packet with its sequence and ack, the player's own states and those of
/// the others in sight, and the map's movement data. It has no server to run, so it replays open loop: every
/// prediction is held against what the server said. Names and chat stay out of it.
///
/// A demo that is cut off is imported up to there, with a warning. Demo and map may be packed with gzip or xz. The map must be
/// the one that the demo was played on.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg import qwd duel.qwd --map dm4.bsp -o duel.hitlog
  hitreg import qwd match.qwd.xz --map dm3.bsp.gz -o match.hitlog
  hitreg info match.hitlog && hitreg replay match.hitlog")]
pub(super) struct Args {
    /// The demo
    #[arg(value_name = "DEMO")]
    demo: PathBuf,
    /// The map that it was played on (BSP version 29)
    #[arg(long, value_name = "FILE")]
    map: PathBuf,
    /// Take the map although its name or its walls speak against it
    #[arg(long)]
    force_map: bool,
    /// Where the log goes
    #[arg(short, long, value_name = "LOG")]
    output: OutPath,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(serialize_with = "crate::store::shown::path")]
    path: &'a Path,
    #[serde(flatten)]
    info: Info,
    demo_bytes: usize,
    size_bytes: u64,
    /// What the demo lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    let target = output.files.target(&args.output, Kind::Log)?;
    let (Imported { session, cut }, demo_bytes) = import_qwd(&args.demo, &args.map, args.force_map).map_err(blame)?;
    store::save_log(&target, &session, Options::whole())?;
    let report = Report {
        path: &args.output,
        info: Info::of(&session),
        demo_bytes,
        size_bytes: files::size_bytes(&args.output),
        warning: cut.map(|Cut { offset, bytes }| {
            format!(
                "the demo is cut off: all up to byte {offset} was imported, {bytes} bytes of a frame after it were not"
            )
        }),
    };
    output.show(&report, |page| report.print(page))?;
    Ok(Outcome::Done)
}

/// Says what to do in terms of the options.
fn blame(error: EngineError) -> Trouble {
    let EngineError::Import { path, source } = error else { return error.into() };
    let what = match source {
        ImportError::Map(source) => format!("this is no map of QuakeWorld's: {source}"),
        ImportError::Unpack { source, .. } => source.to_string(),
        ImportError::Demo(source) => source.to_string(),
        ImportError::OtherMap { demo, .. } => {
            format!("the demo was played on `{demo}`; if this is the same map under another name, give --force-map")
        }
        ImportError::InWalls { in_walls, places } => format!(
            "this is not the map of the demo: {in_walls} of the player's {places} recorded places lie in its walls; \
             --force-map takes it all the same"
        ),
        ImportError::NoSuchModel { .. } => source.to_string().replace("force it", "give --force-map"),
        other => other.to_string(),
    };
    Trouble::file(&path, what)
}

impl Report<'_> {
    fn print(&self, page: &mut Page) {
        let info = &self.info;
        page.heading(&self.path.display().to_string());
        page.pair("session", &format!("{} on {}, imported from {}", info.game, info.map, info.origin));
        if let Some(warning) = &self.warning {
            page.styled(UNSURE, &format!("  {warning}"));
        }
        page.pair("duration", &duration(Micros(info.duration_us)));
        page.pair(
            "usercmds",
            &format!("{}, {} of them firing", count(info.usercmds as u64), count(info.usercmds_firing as u64)),
        );
        let packets = info.packets;
        let lost = format!("{} lost ({})", count(packets.lost), share(packets.lost, packets.sent));
        page.pair(
            "packets",
            &format!("{} received, {lost}, {} choked", count(packets.received), count(packets.choked)),
        );
        let per_usercmd = self.size_bytes as f64 / info.usercmds.max(1) as f64;
        let demo = bytes(self.demo_bytes as u64);
        page.pair(
            "size",
            &format!("{} ({per_usercmd:.1} bytes per usercmd); the demo has {demo}", bytes(self.size_bytes)),
        );
    }
}

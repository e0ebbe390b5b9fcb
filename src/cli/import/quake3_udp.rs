//! `hitreg import quake3-udp`: captured datagrams of Quake III's engine become a log.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::figures::{bytes, count, share};
use crate::cli::output::Output;
use crate::cli::outputs::OutPath;
use crate::cli::page::{Page, UNSURE};
use crate::cli::trouble::Trouble;
use crate::cli::{Outcome, files};
use crate::engine::{EngineError, Quake3Capture, import_quake3_udp};
use crate::protocol::Direction;
use crate::quake3::{Counts, Overview};
use crate::store::Kind;

/// Import captured datagrams of a Quake III engine's clients and server (protocol 71: OpenArena, ioquake3)
///
/// The log holds every client's usercmds, packets and snapshots as somebody between client and server saw them pass, with
/// all fields of the playerStates and entityStates; and the hits that shooters were told of. With what the server logged
/// under `g_debugDamage 1`, it holds who was hit by whom, too. Names and chat stay out of it.
///
/// A capture must begin before its clients connect, since datagrams are told as differences from earlier ones. docs/openarena.md says
/// what it consists of.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg import quake3-udp duel.trace.zst -o duel.hitlog
  hitreg import quake3-udp duel.trace.zst --map pak1-maps.pk3 -o duel.hitlog && hitreg replay duel.hitlog
  hitreg import quake3-udp duel.trace.zst --server-log server.log -o duel.hitlog")]
pub(super) struct Args {
    /// The capture, plain or packed with zstd
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// The map that it was played on: a .bsp, or a .pk3 that holds it. Without it predictions cannot be checked
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// The server's console log, for who was hit
    #[arg(long, value_name = "FILE")]
    server_log: Option<PathBuf>,
    /// Where the log goes
    #[arg(short, long, value_name = "LOG")]
    output: OutPath,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(serialize_with = "crate::store::shown::path")]
    path: &'a Path,
    game: String,
    map: String,
    players: Vec<u16>,
    #[serde(flatten)]
    counts: Counts,
    /// The first datagrams that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undecoded_first: Vec<String>,
    size_bytes: u64,
    /// What the capture lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    let target = output.files.target(&args.output, Kind::Log)?;
    let from =
        Quake3Capture { capture: &args.capture, map: args.map.as_deref(), server_log: args.server_log.as_deref() };
    let overview = import_quake3_udp(&from, &target).map_err(blame)?;
    let report = Report::new(&args.output, overview);
    output.show(&report, |page| report.print(page))?;
    Ok(Outcome::Done)
}

fn blame(error: EngineError) -> Trouble {
    let EngineError::Quake3 { path, source } = error else { return error.into() };
    Trouble::file(&path, source.to_string())
}

impl Report<'_> {
    fn new(path: &Path, Overview { rules, players, counts, undecoded, cut }: Overview) -> Report<'_> {
        let way = |direction| match direction {
            Direction::Up => "from",
            Direction::Down => "to",
        };
        let undecoded = undecoded.iter().map(|(client, to, why)| format!("{} client {client}: {why}", way(*to)));
        Report {
            path,
            game: rules.game,
            map: rules.map_name,
            players,
            counts,
            undecoded_first: undecoded.collect(),
            size_bytes: files::size_bytes(path),
            warning: cut.map(|offset| format!("the capture is cut off: what follows byte {offset} was not imported")),
        }
    }

    fn print(&self, page: &mut Page) {
        let counts = &self.counts;
        page.heading(&self.path.display().to_string());
        let names: Vec<String> = self.players.iter().map(|player| format!("p{player}")).collect();
        page.pair("session", &format!("{} on {}, of {}", self.game, self.map, names.join(", ")));
        if let Some(warning) = &self.warning {
            page.styled(UNSURE, &format!("  {warning}"));
        }
        let undecoded = match counts.undecoded {
            0 => "every one decoded".to_owned(),
            some => format!("{} could not be decoded ({})", count(some), share(some, counts.datagrams)),
        };
        page.pair("datagrams", &format!("{}, {undecoded}", count(counts.datagrams)));
        for why in &self.undecoded_first {
            page.styled(UNSURE, &format!("  {why}"));
        }
        if counts.after_level > 0 {
            page.styled(UNSURE, &format!("  {} of another level are left out", count(counts.after_level)));
        }
        page.pair("usercmds", &count(counts.usercmds));
        let known = share(counts.acked_by_time, counts.snapshots);
        page.pair("snapshots", &format!("{}, {known} of them ack a usercmd by its time", count(counts.snapshots)));
        let victims = format!("{} with their victim", count(counts.hits_with_victim));
        page.pair("hits told", &format!("{}, {victims}", count(counts.hits)));
        page.pair("size", &bytes(self.size_bytes));
    }
}

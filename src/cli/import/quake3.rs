//! `hitreg import quake3-udp` and `quake3-demo`: turn captured datagrams and demos of Quake III's engine into logs.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::rest_of_file;
use crate::cli::CommandResult;
use crate::cli::figures::{count, share};
use crate::cli::files::FileSize;
use crate::cli::output::Output;
use crate::cli::outputs::OutputPath;
use crate::cli::page::{Page, UNSURE};
use crate::import::{Quake3Recording, import_quake3};
use crate::protocol::Direction;
use crate::quake3::{ListenerCounts, Overview, RecordingKind};
use crate::store::FileType;

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

pub(super) fn run_udp(args: &UdpArgs, output: &mut Output) -> CommandResult {
    let (map, server_log) = (args.map.as_deref(), args.server_log.as_deref());
    let (recording, force_map) = (args.capture.as_path(), args.force_map);
    let from = Quake3Recording { source: RecordingKind::Capture, recording, map, force_map, server_log };
    run(from, &args.output, output)
}

pub(super) fn run_demo(args: &DemoArgs, output: &mut Output) -> CommandResult {
    let from = Quake3Recording {
        source: RecordingKind::Demo,
        recording: &args.demo,
        map: None,
        force_map: false,
        server_log: None,
    };
    run(from, &args.output, output)
}

fn run(from: Quake3Recording<'_>, to: &OutputPath, output: &mut Output) -> CommandResult {
    let target = output.files.target(to, FileType::Log)?;
    let overview = import_quake3(&from, &target)?;
    let report = Quake3ImportReport::new(to, from.source, overview);
    output.show(&report, |page| report.print(page))
}

impl Quake3ImportReport {
    fn new(
        path: &Path,
        from: RecordingKind,
        Overview { rules, players, counts, undecoded, cut, after_end }: Overview,
    ) -> Quake3ImportReport {
        let way = |direction| match direction {
            Direction::Up => "from",
            Direction::Down => "to",
        };
        let undecoded = undecoded.iter().map(|(client, to, why)| format!("{} client {client}: {why}", way(*to)));
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
            page.marked(2, UNSURE, warning);
        }
        let undecoded = match counts.undecoded {
            0 => "all decoded".to_owned(),
            some => format!("{} could not be decoded ({})", count(some), share(some, counts.datagrams)),
        };
        let messages = if self.from == RecordingKind::Demo { "messages" } else { "datagrams" };
        page.pair(messages, &format!("{}, {undecoded}", count(counts.datagrams)));
        for why in &self.undecoded_first {
            page.styled(UNSURE, &format!("  {why}"));
        }
        if counts.after_level > 0 {
            let what = "of clients that had left the level are not imported";
            page.styled(UNSURE, &format!("  {} {what}", count(counts.after_level)));
        }
        if self.from == RecordingKind::Demo {
            page.pair("snapshots", &count(counts.snapshots));
        } else {
            page.pair("usercmds", &count(counts.usercmds));
            let known = share(counts.acked_by_time, counts.snapshots);
            page.pair("snapshots", &format!("{}, {known} of them ack a usercmd by its time", count(counts.snapshots)));
        }
        let victims = format!("{} with their victim", count(counts.hits_with_victim));
        page.pair("hits", &format!("{} reported to shooters, {victims}", count(counts.hits)));
        let has_lines = counts.logged + counts.logged_outside > 0;
        if has_lines {
            let reported = format!("{} of them reported to a shooter", count(counts.logged_with_shooter));
            page.pair("server log", &format!("{} damage lines, {reported}", count(counts.logged)));
        }
        if counts.logged_outside > 0 {
            let what = "from before or after the recording are not imported";
            page.styled(UNSURE, &format!("  {} damage lines {what}", count(counts.logged_outside)));
        }
        if has_lines && counts.logged_with_shooter * 2 < counts.hits {
            let what = "the server log has fewer than half of the reported hits: it may be of another session";
            page.marked(2, UNSURE, what);
        }
        page.pair("size", &self.size_bytes.to_string());
    }
}

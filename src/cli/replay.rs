//! `hitreg replay`: replays a log through this build's pipelines, prints a summary, and writes a trace on request.

mod corpus;
mod page;
mod played;
mod recorded;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::corpus::{CorpusArgs, WorkerArgs};
use super::output::Output;
use super::outputs::OutputPath;
use super::page::Page;
use super::part::PartArgs;
use super::trouble::CommandError;
use super::what_if::WhatIfArgs;
use super::{CommandResult, each_log, offered};
use crate::drawing::DrawingScore;
use crate::engine::Games;
use crate::fairness::Fairness;
use crate::log::FileKind;
use crate::record::LogContents;
use crate::score::ModeScore;
use crate::stats::Spread;
use crate::store::{self, FileType};
use crate::summary::{Coverage, NetworkSummary, PredictionSummary, ShotSummary};
use crate::trace::schema::TABLES;
use crate::units::Micros;
use hitreg_log::sorted::SortedMap;
pub(super) use page::{exercised, view_error};
use recorded::{JumpReport, RejudgedHit};

/// Replay a log, and measure prediction, interpolation and hits
///
/// Closed loop runs the server and all clients again, on the recorded usercmds and links. Under the log's own settings,
/// it must match the recording, and the page says whether it does. Open loop runs only the clients, on the recorded
/// snapshots, and compares each prediction with the recorded state. It needs no server, so it works on recordings of
/// real games.
///
/// --from and --to limit the output to a part. The session before the part also runs, and the session after it is not
/// read.
///
/// --set and --preset run the same input under other settings. With --what-if rejudge, the session runs as recorded,
/// and only the hit test of each shot uses the other settings.
///
/// Several logs are replayed in parallel, with a row for each. Then -o and --record name folders, where each output has
/// the name of its log. A log that fails does not stop the others.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg replay match.hitlog
  hitreg replay match.hitlog -o match.hittrace
  hitreg replay logs -o traces/                    every *.hitlog below logs
  hitreg replay match.hitlog -o shots.hittrace --tables shots,corrections
  hitreg replay match.hitlog --from 40:00 --to 40:30 -o fight.hittrace
  hitreg replay match.hitlog --record again.hitlog
  hitreg replay match.hitlog --set lag_compensation.enabled=false \\
      --what-if rejudge
  hitreg replay match.hitlog --preset quakeworld --format json")]
pub(super) struct Args {
    /// Logs, directories to search for *.hitlog, quoted patterns, or @FILE with a path on each line
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// The trace to write, with all output of the pipelines; for several logs, the folder of their traces
    #[arg(short, long, value_name = "TRACE")]
    output: Option<OutputPath>,
    /// Write only these tables, such as `shots,corrections`
    #[arg(
        long,
        value_name = "NAMES",
        requires = "output",
        value_delimiter = ',',
        value_parser = offered::tables(),
        hide_possible_values = true
    )]
    tables: Vec<String>,
    /// A new log to write: the same input, with the states of this build's server; for several logs, a folder
    #[arg(long, value_name = "LOG", conflicts_with_all = ["from", "to"])]
    record: Option<OutputPath>,
    /// Encode every datagram, to report bytes; several times slower
    #[arg(long)]
    sizes: bool,
    #[command(flatten)]
    part: PartArgs,
    #[command(flatten)]
    what_if: WhatIfArgs,
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

#[derive(Serialize)]
struct ReplayReport {
    path: String,
    game: String,
    mode: String,
    /// The replayed part of the session; `None` for the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<SessionPart>,
    /// Whether packets after the part, which the replay does not have, decide which packets of the part are lost.
    #[serde(skip)]
    is_open_ended: bool,
    /// The digest of the trace; `None` for a part of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Settings that differ from the log's own.
    settings_changed: Vec<String>,
    /// How the counts of hits under changed settings were made.
    what_if: &'static str,
    #[serde(skip)]
    what_if_means: &'static str,
    /// Data of a later format version that this build skips.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    passed_over: Vec<String>,
    hashes: HashReport,
    prediction: PredictionSummary,
    #[serde(skip)]
    grades: &'static str,
    /// The accuracy of interpolation, if the trace has the true positions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drawn: Vec<DrawingScore>,
    /// An estimate by `interpolation.mode`, if the trace lacks the true positions.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "by_mode")]
    interpolation: Vec<ModeScore>,
    /// How often snapshots visibly moved players on their own screens. Only in open loop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jumps: Vec<JumpReport>,
    /// The hits that another server reported, judged again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hits_again: Vec<RejudgedHit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<NetworkSummary>,
    shots: ReplayShots,
    fairness: Fairness,
    exercised: Coverage,
    session_us: Micros,
    real_time_factor: f64,
    trace: Option<String>,
    /// Round trips and prediction errors, for a terminal.
    #[serde(skip)]
    spreads: Page,
}

fn by_mode<S: Serializer>(scores: &[ModeScore], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(scores.iter().map(|score| (score.mode, score)).collect::<SortedMap<_, _>>())
}

/// A part of a session.
#[derive(Clone, Copy, Serialize)]
struct SessionPart {
    from_us: Micros,
    to_us: Micros,
}

/// The shots of a replay.
#[derive(Serialize)]
#[serde(untagged)]
enum ReplayShots {
    Judged(ShotSummary),
    Predicted(PredictedShots),
}

/// The shots of a replay without a server that judged them. Only what the clients predicted is known.
#[derive(Default, Serialize)]
struct PredictedShots {
    fired: Option<u64>,
    reported: u64,
    launched: Option<u64>,
    impacts: Option<u64>,
    not_run: Option<u64>,
    hit: Option<u64>,
    predicted: u64,
    predicted_hit: u64,
    agreed: Option<u64>,
    rewound: Option<u64>,
    view_error_units: Option<Spread>,
}

impl ReplayShots {
    fn of(shots: ShotSummary, is_open: bool) -> ReplayShots {
        match shots.are_judged(is_open) {
            true => ReplayShots::Judged(shots),
            false => ReplayShots::Predicted(PredictedShots {
                reported: shots.reported,
                predicted: shots.not_run,
                predicted_hit: shots.not_run_hit,
                ..PredictedShots::default()
            }),
        }
    }
}

/// Whether the replay matches the recorded session.
#[derive(Serialize)]
struct HashReport {
    compared: u64,
    first_difference_tick: Option<u32>,
    /// The first missing part of the session. After it, the replay does not match the played session.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<SessionPart>,
}

impl Args {
    /// Whether the trace should contain a table.
    fn keeps(&self, table: &str) -> bool {
        self.tables.is_empty() || self.tables.iter().any(|name| name == table)
    }

    /// The typed option that needs the server.
    fn server_option(&self, output: &Output) -> Option<&'static str> {
        let given = [("sizes", self.sizes), ("record", self.record.is_some())];
        given.into_iter().find(|(name, is_given)| output.is_typed(name, *is_given)).map(|(name, _)| name)
    }

    /// Refuses an option that needs the server where only clients run: `--mode open`, or a log without a server.
    fn check_open_loop(&self, log: &Path, needs_server: Option<&str>) -> Result<(), CommandError> {
        let Some(name) = needs_server else { return Ok(()) };
        let what = format!("--{name} needs the server");
        if self.what_if.is_open() {
            let what = format!("{what}, and --mode open runs only the clients: leave one out");
            return Err(CommandError::request(what));
        }
        // Whoever replays the log says what is wrong with it.
        let is_log = store::kind_of(log)? == FileKind::Log;
        let opened = if is_log { store::open_log(log).ok() } else { None };
        match opened.is_some_and(|log| log.header().holds() == LogContents::Clients) {
            true => Err(CommandError::file(log, format!("{what}, and this log has none: leave it out"))),
            false => Ok(()),
        }
    }

    /// Rejects names of tables that a replay does not have.
    fn check_tables(&self) -> Result<(), CommandError> {
        let Some(strange) = self.tables.iter().find(|name| TABLES.iter().all(|table| table.name != **name)) else {
            return Ok(());
        };
        let known = TABLES.iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
        Err(CommandError::request(format!("--tables: a replay has no table `{strange}`; it has {known}")))
    }
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    args.check_tables()?;
    args.what_if.check()?;
    let log = match &args.logs[..] {
        [log] if !each_log::are_several(&args.logs) && !args.corpus.is_given() => log,
        _ => return corpus::run(games, args, output),
    };
    args.check_open_loop(log, args.server_option(output))?;
    let trace_to = output.files.target_if(&args.output, FileType::Trace)?;
    let record_to = output.files.target_if(&args.record, FileType::Log)?;
    let report = played::play(games, args, (log, true), trace_to.as_ref(), record_to.as_ref())?;
    let on_terminal = std::io::stdout().is_terminal();
    output.show(&report, |page| {
        page::print(page, &report);
        if on_terminal {
            page.append(report.spreads.clone());
        }
    })
}

//! `hitreg record live`: records a server and bots over real UDP, in real time, to a log.

use std::sync::atomic::Ordering;

use serde::Serialize;

use super::CommandResult;
use super::figures::{count, share};
use super::finished_log::{FinishedLog, HostedReport, avatars};
use super::interrupt::stop_on_signal;
use super::into_log::LogSink;
use super::output::Output;
use super::page::Page;
use super::record::RecordingArgs;
use super::session_args::parse_share;
use super::trouble::CommandError;
use crate::engine::Games;
use crate::link::LinkModel;
use crate::live::{LiveReport, SnapshotCounts, TrafficCounts};
use crate::session::scenario::Scenario;
use crate::store::FileType;

/// Record bots over real UDP on this machine, in real time
///
/// The server and each bot's client have their own sockets, threads and clocks. Between the sockets, datagrams are
/// delayed, lost, reordered and duplicated as requested. The log still replays bit for bit; check it with
/// `hitreg verify LOG`.
///
/// Ctrl-C, SIGTERM and SIGHUP end the session early, with a complete log. A killed recording leaves all but its last
/// second in LOG.part; `hitreg recover LOG.part` turns it into LOG.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg record live -o duel.hitlog --players 2 --seconds 60
  hitreg record live -o far.hitlog --players 8 --seconds 30 --delay-ms 80 \\
      --jitter-ms 15 --loss 3% --reorder 2%
  hitreg verify far.hitlog")]
pub(super) struct LiveArgs {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Share of packets delayed by 20 ms, so that later ones overtake them [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    reorder: Option<f64>,
    /// Share of packets that arrive twice [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    duplicate: Option<f64>,
    /// The server's UDP port on 127.0.0.1; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

/// The result of a recording.
#[derive(Serialize)]
struct LiveRecordReport {
    #[serde(flatten)]
    hosted: HostedReport,
    /// The number of keyframes in the log.
    keyframes: usize,
}

pub(super) fn run(games: &Games, args: &LiveArgs, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.recording.output, FileType::Log)?;
    let scenario = args.scenario()?;
    args.recording.keyframes.check(&target, scenario.length(), output)?;
    let ready = args.recording.session.set_up(games, &scenario)?;
    let header = ready.live_header()?;
    let stop = stop_on_signal()?;
    let path = &args.recording.output;
    let again = target.clone();
    let mut sink = LogSink::new(target, "recording live", scenario.length())?;
    let ran = ready.run_live(args.port, &stop, &mut sink);
    let span = sink.finish(ran.is_ok())?;
    let mut keyframes = 0;
    if let (true, Some((first, last))) = (ran.is_ok(), span) {
        match args.recording.keyframes.add(games, &again, last - first, output) {
            // A session that was ended early may be too short for those that were asked for.
            Err(_) if stop.load(Ordering::Relaxed) => {}
            added => keyframes = added?,
        }
    }
    let hosted = HostedReport::new(path, header, FinishedLog::new(path, span, &stop, ran?));
    let report = LiveRecordReport { hosted, keyframes };
    output.show(&report, |page| print(page, &report))
}

impl LiveArgs {
    fn scenario(&self) -> Result<Scenario, CommandError> {
        let mut scenario = self.recording.scenario()?;
        scenario.change_links(|link| LinkModel {
            reorder: self.reorder.unwrap_or(link.reorder),
            duplicate: self.duplicate.unwrap_or(link.duplicate),
            ..link
        });
        scenario.check()?;
        Ok(scenario)
    }
}

fn print(page: &mut Page, LiveRecordReport { hosted, keyframes }: &LiveRecordReport) {
    hosted.print(page);
    if let LiveReport { server: Some(server), clients: Some(clients) } = &hosted.kept.figures {
        let traffic = |sent: &TrafficCounts, received: u64| {
            format!("{}, {} used", hosted.kept.sent(sent), share(received, sent.datagrams))
        };
        page.pair("clients sent", &traffic(&clients.sent, server.received));
        page.pair("server sent", &traffic(&server.sent, clients.received));
        page.pair("snapshots", &snapshots(&server.snapshots, clients.snapshots));
        page.pair("avatars", &avatars(&server.perceived));
        let refused = server.refused + clients.refused;
        if clients.undecodable + refused > 0 {
            let late = count(clients.undecodable);
            page.pair("dropped", &format!("{late} late snapshots, {} other datagrams", count(refused)));
        }
    }
    page.pair("holds", &hosted.kept.holds());
    if *keyframes > 0 {
        page.pair("keyframes", &count(*keyframes as u64));
    }
}

/// Describes how snapshots were sent and used.
fn snapshots(snapshots: &SnapshotCounts, used: u64) -> String {
    let SnapshotCounts { sent, whole, in_fragments } = *snapshots;
    let whole = if whole < sent { format!("{} complete; ", share(whole, sent)) } else { String::new() };
    let fragments =
        if in_fragments > 0 { format!("{} in fragments; ", share(in_fragments, sent)) } else { String::new() };
    format!("{} sent; {whole}{fragments}used {}", count(sent), share(used, sent))
}

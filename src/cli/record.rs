//! `hitreg record`: records sessions that hitreg runs itself, and those of real games as a proxy.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::figures::{bytes, count, counted, share, speed};
use super::live_log::{FinishedLog, HostedReport, LogSink, avatars};
use super::output::FileSize;
use super::page::{Page, Unsure};
use super::process::stop_on_signal;
use super::progress::{Progress, Stopwatch};
use super::session_args::{LinkArgs, PacketFaultArgs, SessionArgs, parse_number_of_seconds, parse_share};
use super::{CommandError, CommandResult, Output, OutputPath, keyframes};
use crate::engine::{EngineError, Games, ReadySession};
use crate::link::{Jitter, LinkModel, Loss};
use crate::live::{
    ForwardedTraffic, LiveReport, ProxyOptions, ProxyReport, SnapshotCounts, TrafficCounts, proxy, resolve,
};
use crate::log::{LogWriter, WriterOptions};
use crate::protocols::{listener, protocols};
use crate::record::Record;
use crate::session::scenario::Scenario;
use crate::session::{RecordBatcher, RecordSink};
use crate::store::{self, FileType, Recording, Target};
use crate::units::{Micros, Seed};

/// Record a session into a log
#[derive(clap::Subcommand)]
pub(super) enum RecordCommand {
    Synth(SynthArgs),
    Live(LiveArgs),
    Proxy(ProxyArgs),
}

/// Record bots on simulated links in virtual time; the same scenario gives the same log
///
/// Options describe the scenario, or change one from a TOML file. Delay, jitter and loss apply to each direction of
/// every connection. A TOML file can give each player a different connection, with burst loss, reordering, duplicates
/// and limited bandwidth.
///
/// Sessions of a minute or more get keyframes at the end, as with `hitreg keyframes`. A killed recording leaves
/// LOG.part; `hitreg recover LOG.part` turns it into LOG.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg record synth -o duel.hitlog --players 2 --seconds 60
  hitreg record synth -o far.hitlog --delay-ms 80 --jitter-ms 10 --loss 2%
  hitreg record synth -o quake.hitlog --preset quake3 --set server.update_hz=30
  hitreg record synth -o mixed.hitlog --scenario mixed.toml --seed 7

A scenario file:
  preset = \"half-life\"
  players = 3
  seconds = 30.0
  [settings]
  \"interpolation.lerp_ms\" = \"50\"
  [[links]]                      # p0
  delay_ms = 15.0
  [[links]]                      # p1 and all others
  delay_ms = 90.0
  jitter = { exponential = 8.0 } # or uniform, normal; in ms
  loss = { burst = { enter = 0.01, leave = 0.3 } } # or { random = 0.02 }")]
pub(super) struct SynthArgs {
    #[command(flatten)]
    recording: RecordingArgs,
}

#[derive(clap::Args)]
struct RecordingArgs {
    /// The log to write
    #[arg(short, long, value_name = "LOG", default_value = "session.hitlog")]
    pub(super) output: OutputPath,
    #[command(flatten)]
    pub(super) session: SessionArgs,
    /// Delay of every packet, each way [default: 40]
    #[arg(long, value_name = "MS")]
    delay_ms: Option<f64>,
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    pub(super) keyframes: keyframes::KeyframeArgs,
}

/// The log of a synthetic session.
pub(super) type SynthReport = HostedReport<SynthFigures>;

/// Figures of a synthetic session.
#[derive(Serialize)]
pub(super) struct SynthFigures {
    ticks: u64,
    pub(super) usercmds: u64,
    real_time_factor: f64,
}

pub(super) fn run(games: &Games, command: &RecordCommand, output: &mut Output) -> CommandResult {
    match command {
        RecordCommand::Synth(args) => run_synth(games, &args.recording, output),
        RecordCommand::Live(args) => run_live(games, args, output),
        RecordCommand::Proxy(args) => run_proxy(args, output),
    }
}

fn run_synth(games: &Games, args: &RecordingArgs, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Log)?;
    let scenario = args.scenario()?;
    args.keyframes.check(&target, scenario.length(), output)?;
    let mut recorded = record(&*args.session.set_up(games, &scenario)?, scenario.length(), &target)?;
    if !recorded.kept.interrupted {
        let keyframes = args.keyframes.add(games, &target, Micros(recorded.kept.duration_us), output)?;
        recorded.keyframes = Some(keyframes);
        recorded.kept.size_bytes = FileSize::of(target.path());
    }
    output.show(&recorded, |page| print_synth(page, &recorded))
}

/// Records a synthetic session to a log.
pub(super) fn record(ready: &dyn ReadySession, length: Micros, target: &Target) -> Result<SynthReport, CommandError> {
    let header = ready.header();
    let watch = Stopwatch::start();
    let stop = stop_on_signal()?;
    let may_continue = || !stop.load(Ordering::Relaxed);
    let RecordedCounts { ticks, usercmds, reached } = if target.is_stream() {
        record_to_stream(ready, length, target, &may_continue)?
    } else {
        let mut recording = Recording::begin(target, header)?;
        match run_session(ready, length, &may_continue, |record| recording.push(record)) {
            Ok(counts) => {
                recording.finish_or_discard()?;
                counts
            }
            Err(RunError::Sink(error)) => return Err(recording.discard(error).into()),
            Err(RunError::Session(error)) => {
                recording.abandon()?;
                return Err(error);
            }
        }
    };
    let real_time_factor = reached.as_s_f64() / watch.elapsed_s().max(1e-9);
    let figures = SynthFigures { ticks, usercmds, real_time_factor };
    let kept = FinishedLog::new(target.path(), Some((Micros::ZERO, reached)), &stop, figures);
    let mut recorded = HostedReport::new(target.path(), header, kept);
    recorded.keyframes = Some(0);
    Ok(recorded)
}

/// Records to a stream while the session runs. A stream needs no temporary name.
fn record_to_stream(
    ready: &dyn ReadySession,
    length: Micros,
    target: &Target,
    may_continue: &dyn Fn() -> bool,
) -> Result<RecordedCounts, CommandError> {
    let mut recorded = Ok(RecordedCounts::default());
    store::save(target, |out| {
        let mut writer = LogWriter::new(out, ready.header(), WriterOptions::live())?;
        recorded = match run_session(ready, length, may_continue, |record| writer.push(record)) {
            Ok(counts) => Ok(counts),
            Err(RunError::Sink(error)) => return Err(error),
            Err(RunError::Session(error)) => Err(error),
        };
        writer.finish().map(drop)
    })?;
    recorded
}

/// Why a session was not recorded.
enum RunError<E> {
    /// The session failed.
    Session(CommandError),
    /// A record was not written.
    Sink(E),
}

/// Runs a session to its end, or until `push` fails. `push` gets each record on another thread.
fn run_session<E: Send>(
    ready: &dyn ReadySession,
    length: Micros,
    may_continue: &dyn Fn() -> bool,
    push: impl FnMut(Record) -> Result<(), E> + Send,
) -> Result<RecordedCounts, RunError<E>> {
    let progress = Progress::of_session("recording", length);
    let (sender, receiver) = RecordBatcher::new();
    std::thread::scope(|scope| {
        let writer = std::thread::Builder::new().spawn_scoped(scope, move || receiver.each(push));
        let writer = writer.map_err(|error| RunError::Session(EngineError::no_thread(error).into()))?;
        let mut recorder = CountingRecorder { sender, counts: RecordedCounts::default(), progress };
        let ended = ready.run(&mut recorder, may_continue);
        let counts = recorder.counts;
        // Dropping the sender ends the writing thread.
        drop(recorder);
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map_err(|error| RunError::Session(error.into()))?;
        written.map(|()| counts).map_err(RunError::Sink)
    })
}

/// Counts of the recorded session.
#[derive(Clone, Copy, Debug, Default)]
struct RecordedCounts {
    ticks: u64,
    usercmds: u64,
    reached: Micros,
}

/// Counts records and passes them on.
struct CountingRecorder {
    sender: RecordBatcher,
    counts: RecordedCounts,
    progress: Progress,
}

impl RecordSink for CountingRecorder {
    fn record(&mut self, record: Record) {
        match &record {
            Record::Tick(tick) => {
                self.counts.ticks += 1;
                self.counts.reached = tick.at;
                self.progress.reached(tick.at);
            }
            Record::Frame(..) => self.counts.usercmds += 1,
            _ => {}
        }
        self.sender.record(record);
    }
}

impl RecordingArgs {
    /// The scenario that the options describe.
    pub(super) fn scenario(&self) -> Result<Scenario, CommandError> {
        let mut scenario = self.session.scenario()?;
        scenario.change_links(|link| {
            let delay_ms = self.delay_ms.unwrap_or(link.delay_ms);
            self.link.impaired(LinkModel { delay_ms, ..link })
        });
        scenario.check()?;
        Ok(scenario)
    }
}

fn print_synth(page: &mut Page, recorded: &SynthReport) {
    let SynthFigures { ticks, usercmds, real_time_factor } = recorded.kept.figures;
    recorded.print_session(page, &format!(", recorded at {}", speed(real_time_factor)));
    let size = recorded.kept.size_bytes.per_usercmd(usercmds);
    page.pair("holds", &format!("{} ticks, {} usercmds in {size}", count(ticks), count(usercmds)));
    recorded.print_keyframes(page);
}

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
    #[command(flatten)]
    faults: PacketFaultArgs,
    /// The server's UDP port on 127.0.0.1; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

fn run_live(games: &Games, args: &LiveArgs, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.recording.output, FileType::Log)?;
    let scenario = args.scenario()?;
    args.recording.keyframes.check(&target, scenario.length(), output)?;
    let ready = args.recording.session.set_up(games, &scenario)?;
    let header = ready.live_header()?;
    let stop = stop_on_signal()?;
    let path = &args.recording.output;
    let log_target = target.clone();
    let mut sink = LogSink::new(target, "recording live", scenario.length())?;
    let ran = ready.run_live(args.port, &stop, &mut sink);
    let span = sink.finish(ran.is_ok())?;
    let mut keyframes = 0;
    if let (true, Some((first, last))) = (ran.is_ok(), span) {
        match args.recording.keyframes.add(games, &log_target, last - first, output) {
            // A session that was ended early may be too short for the requested keyframes.
            Err(_) if stop.load(Ordering::Relaxed) => {}
            added => keyframes = added?,
        }
    }
    let mut hosted = HostedReport::new(path, &header, FinishedLog::new(path, span, &stop, ran?));
    hosted.keyframes = Some(keyframes);
    output.show(&hosted, |page| print_live(page, &hosted))
}

impl LiveArgs {
    fn scenario(&self) -> Result<Scenario, CommandError> {
        let mut scenario = self.recording.scenario()?;
        scenario.change_links(|link| self.faults.impaired(link));
        scenario.check()?;
        Ok(scenario)
    }
}

fn print_live(page: &mut Page, hosted: &HostedReport) {
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
    hosted.print_keyframes(page);
}

/// Describes how snapshots were sent and used.
fn snapshots(snapshots: &SnapshotCounts, used: u64) -> String {
    let SnapshotCounts { sent, whole, in_fragments } = *snapshots;
    let whole = if whole < sent { format!("{} complete; ", share(whole, sent)) } else { String::new() };
    let fragments =
        if in_fragments > 0 { format!("{} in fragments; ", share(in_fragments, sent)) } else { String::new() };
    format!("{} sent; {whole}{fragments}used {}", count(sent), share(used, sent))
}

/// Record a real server and its clients, as a proxy between them
///
/// Clients connect to the proxy instead of the server. The proxy forwards each datagram unchanged: at once, or delayed
/// and lost as requested. It records usercmds, packets, snapshots, states and hits, with the time when each datagram
/// arrived and left. Datagrams that it cannot decode are forwarded and counted. Names and chat are left out of the log.
///
/// The log begins when the first client enters a level, so start the proxy before clients connect. Ctrl-C, SIGTERM and
/// SIGHUP end the recording with a complete log.
#[derive(clap::Args)]
#[command(
    override_usage = "hitreg record proxy [OPTIONS] --protocol <NAME> --listen <ADDR:PORT>\n       --upstream <HOST:PORT> --output <LOG>",
    after_long_help = "\
Examples:
  hitreg record proxy --protocol quake3 --listen 127.0.0.1:27970 \\
      --upstream 127.0.0.1:27960 -o duel.hitlog
  hitreg record proxy --protocol quake3 --listen 0.0.0.0:27970 \\
      --upstream game.example:27960 --map pak1-maps.pk3 \\
      --delay-ms 50 --loss 2% -o far.hitlog"
)]
pub(super) struct ProxyArgs {
    /// The network protocol of the game
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(protocols()))]
    protocol: String,
    /// The address that clients connect to
    #[arg(long, value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// The server's address
    #[arg(long, value_name = "HOST:PORT")]
    upstream: String,
    /// The map that will be played: a .bsp, or a .pk3 that contains it. Without a map, predictions cannot be checked
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Stop so many seconds after the first client enters a level
    #[arg(long, value_name = "S", value_parser = parse_number_of_seconds)]
    seconds: Option<f64>,
    /// Random seed of jitter, loss and reordering [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Added delay per datagram, each way
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    delay_ms: f64,
    /// Average additional delay of a packet (exponential); those behind it wait
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    jitter_ms: f64,
    /// Share of datagrams lost, as 2% or 0.02
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "0")]
    loss: f64,
    /// Share of datagrams delayed by 20 ms, so that later ones overtake them
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "0")]
    reorder: f64,
    /// The log to write
    #[arg(short, long, value_name = "LOG")]
    output: OutputPath,
}

#[derive(Serialize)]
struct ProxySummary {
    path: String,
    #[serde(flatten)]
    kept: FinishedLog<ProxyReport>,
}

fn run_proxy(args: &ProxyArgs, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Log)?;
    let options = args.options(output)?;
    let unknown = || CommandError::request(format!("no protocol is called `{}`", args.protocol));
    let mut listener = listener(&args.protocol, args.map.as_deref()).ok_or_else(unknown)??;
    let stop = stop_on_signal()?;
    let mut sink = LogSink::new(target, "recording", options.length.unwrap_or(Micros::ZERO))?;
    let ran = proxy(&options, &mut *listener, &stop, &mut sink);
    let has_players = ran.as_ref().is_ok_and(|passed| passed.heard.players > 0);
    let span = sink.finish(has_players)?;
    let passed = ran?;
    if !has_players {
        return Err(CommandError::Request(describe_missing_players(&passed)));
    }
    let proxied = ProxySummary {
        path: args.output.display().to_string(),
        kept: FinishedLog::new(&args.output, span, &stop, passed),
    };
    output.show(&proxied, |page| proxied.print(page))
}

/// Describes why no player was recorded.
fn describe_missing_players(passed: &ProxyReport) -> String {
    match passed.up.datagrams {
        0 => "no client connected: connect clients to the address of --listen, not to the server".to_owned(),
        up if passed.down.datagrams == 0 => {
            format!("the server answered none of {} from clients: check --upstream", counted(up, "datagram"))
        }
        up => {
            let first =
                passed.undecoded_first.first().map(|first| format!("; the first that could not be decoded: {first}"));
            format!(
                "no client entered a level in {}, so there is no log: start the proxy before clients connect{}",
                counted(up + passed.down.datagrams, "datagram"),
                first.unwrap_or_default()
            )
        }
    }
}

impl ProxyArgs {
    fn options(&self, output: &Output) -> Result<ProxyOptions, CommandError> {
        let is_random = [self.jitter_ms, self.loss, self.reorder].into_iter().any(|amount| amount != 0.0);
        if output.is_typed("seed") && !is_random {
            let what = "--seed has no effect without --jitter-ms, --loss or --reorder: add one, or leave it out";
            return Err(CommandError::request(what));
        }
        let length = match self.seconds {
            Some(seconds) if seconds > 0.0 && seconds <= 1e7 => Some(Micros((seconds * 1e6) as i64)),
            Some(seconds) => {
                return Err(CommandError::request(format!(
                    "--seconds {seconds}: write a number above 0, up to 10000000"
                )));
            }
            None => None,
        };
        let upstream = resolve(&self.upstream)?;
        if upstream == self.listen {
            return Err(CommandError::request("--upstream is the address of --listen: give the server's address"));
        }
        Ok(ProxyOptions {
            listen: self.listen,
            upstream,
            link: LinkModel {
                delay_ms: self.delay_ms,
                jitter: if self.jitter_ms == 0.0 { Jitter::None } else { Jitter::Exponential(self.jitter_ms) },
                loss: if self.loss == 0.0 { Loss::None } else { Loss::Random(self.loss) },
                reorder: self.reorder,
                ..LinkModel::default()
            },
            seed: Seed(self.seed.unwrap_or(1)),
            length,
        })
    }
}

impl ProxySummary {
    fn print(&self, page: &mut Page) {
        let ProxyReport {
            heard,
            undecoded_first,
            clients,
            up,
            down,
            lost_on_purpose,
            unrecorded,
            refused,
            at_once,
            added,
            warning,
        } = &self.kept.figures;
        page.heading(&self.path);
        if let Some(warning) = warning {
            page.marked(2, Unsure, warning);
        }
        let players = counted(heard.players, "player");
        let duration = self.kept.duration("ended");
        page.pair("duration", &format!("{duration}, {players} of {}", counted(*clients, "connection")));
        let passed = |traffic: &ForwardedTraffic| {
            format!(
                "{} datagrams, {}; {} forwarded",
                count(traffic.datagrams),
                bytes(traffic.bytes),
                share(traffic.forwarded, traffic.datagrams)
            )
        };
        page.pair("clients sent", &passed(up));
        page.pair("server sent", &passed(down));
        if *lost_on_purpose > 0 {
            page.pair("lost", &format!("{}, as requested with --loss", count(*lost_on_purpose)));
        }
        if let Some(added) = added {
            let ms = |us: u32| f64::from(us) / 1e3;
            page.pair(
                "late",
                &format!(
                    "p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms beyond the requested delay{}",
                    ms(added.p50_us),
                    ms(added.p99_us),
                    ms(added.max_us),
                    if *at_once { "" } else { "; this user may not run threads with real-time priority" }
                ),
            );
        }
        if heard.undecoded > 0 {
            let undecoded =
                format!("{} ({}), forwarded anyway", count(heard.undecoded), share(heard.undecoded, heard.datagrams));
            page.styled(Unsure, &format!("  not decoded: {undecoded}"));
            undecoded_first.iter().for_each(|why| page.styled(Unsure, &format!("  {why}")));
        }
        if heard.after_level > 0 {
            let what = "of clients that had left the level are not recorded";
            page.styled(Unsure, &format!("  {} {what}", count(heard.after_level)));
        }
        if unrecorded + refused > 0 {
            page.styled(
                Unsure,
                &format!("  {} not recorded, {} not forwarded: too many at once", count(*unrecorded), count(*refused)),
            );
        }
        let holds = format!(
            "{} usercmds, {} snapshots in {}",
            count(heard.usercmds),
            count(heard.snapshots),
            self.kept.size_bytes
        );
        page.pair("holds", &holds);
    }
}

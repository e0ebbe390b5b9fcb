//! `hitreg record`: records sessions that hitreg runs itself.

use std::sync::atomic::Ordering;

use serde::Serialize;

use super::CommandResult;
use super::figures::{count, counted, duration, speed};
use super::files::FileSize;
use super::interrupt::stop_on_signal;
use super::keyframes;
use super::live;
use super::output::Output;
use super::outputs::OutputPath;
use super::page::Page;
use super::progress::{Progress, Stopwatch};
use super::proxy;
use super::session_args::{LinkArgs, SessionArgs};
use super::trouble::CommandError;
use crate::engine::{EngineError, Games, ReadySession};
use crate::log::{LogWriter, WriterOptions};
use crate::record::Record;
use crate::session::scenario::Scenario;
use crate::session::{RecordBatcher, RecordSink};
use crate::store::{self, FileType, Recording, Target};
use crate::units::Micros;

/// Record a session into a log
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    source: RecordCommand,
}

#[derive(clap::Subcommand)]
enum RecordCommand {
    Synth(SynthArgs),
    Live(live::LiveArgs),
    Proxy(proxy::Args),
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
pub(super) struct RecordingArgs {
    /// The log to write
    #[arg(short, long, value_name = "LOG", default_value = "session.hitlog")]
    pub(super) output: OutputPath,
    #[command(flatten)]
    pub(super) session: SessionArgs,
    #[command(flatten)]
    pub(super) link: LinkArgs,
    #[command(flatten)]
    pub(super) keyframes: keyframes::KeyframeArgs,
}

/// The result of a recording.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RecordReport {
    path: String,
    game: String,
    map: String,
    players: usize,
    duration_us: i64,
    /// Whether Ctrl-C or a signal ended it.
    pub(super) interrupted: bool,
    ticks: u64,
    pub(super) usercmds: u64,
    /// The number of keyframes in the log.
    keyframes: usize,
    size_bytes: FileSize,
    real_time_factor: f64,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let args = match &args.source {
        RecordCommand::Synth(args) => &args.recording,
        RecordCommand::Live(args) => return live::run(games, args, output),
        RecordCommand::Proxy(args) => return proxy::run(args, output),
    };
    let target = output.files.target(&args.output, FileType::Log)?;
    let scenario = args.scenario()?;
    args.keyframes.check(&target, scenario.length(), output)?;
    let mut recorded = record(&*args.session.set_up(games, &scenario)?, scenario.length(), &target)?;
    if !recorded.interrupted {
        recorded.keyframes = args.keyframes.add(games, &target, Micros(recorded.duration_us), output)?;
        recorded.size_bytes = FileSize::of(target.path());
    }
    output.show(&recorded, |page| recorded.print(page))
}

/// Records a synthetic session to a log.
pub(super) fn record(ready: &dyn ReadySession, length: Micros, target: &Target) -> Result<RecordReport, CommandError> {
    let header = ready.header();
    let watch = Stopwatch::start();
    let stop = stop_on_signal()?;
    let may_continue = || !stop.load(Ordering::Relaxed);
    let tally = if target.is_stream() {
        into_stream(ready, length, target, &may_continue)?
    } else {
        let mut recording = Recording::begin(target, header)?;
        let ran = run_into(ready, length, &may_continue, |record| recording.push(record));
        let ran = match ran {
            Ok(Err(error)) => Err(recording.discard(error).into()),
            Ok(Ok(tally)) => recording.finish_or_discard().map(|()| tally).map_err(CommandError::from),
            Err(error) => recording.abandon().map_err(CommandError::from).and(Err(error)),
        };
        ran?
    };
    Ok(RecordReport {
        path: target.path().display().to_string(),
        game: header.game.clone(),
        map: header.map.clone(),
        players: header.players.len(),
        duration_us: tally.reached.0,
        interrupted: !may_continue(),
        ticks: tally.ticks,
        usercmds: tally.usercmds,
        keyframes: 0,
        size_bytes: FileSize::of(target.path()),
        real_time_factor: tally.reached.as_s_f64() / watch.elapsed_s().max(1e-9),
    })
}

/// Records to a stream while the session runs. A stream needs no temporary name.
fn into_stream(
    ready: &dyn ReadySession,
    length: Micros,
    target: &Target,
    may_continue: &dyn Fn() -> bool,
) -> Result<RecordProgress, CommandError> {
    let mut ran = Ok(RecordProgress::default());
    store::save(target, |out| {
        let mut writer = LogWriter::new(out, ready.header(), WriterOptions::live())?;
        ran = match run_into(ready, length, may_continue, |record| writer.push(record)) {
            Ok(pushed) => Ok(pushed?),
            Err(error) => Err(error),
        };
        writer.finish().map(drop)
    })?;
    ran
}

/// Runs a session to its end, or until `push` fails. `push` gets each record on another thread.
fn run_into<E: Send>(
    ready: &dyn ReadySession,
    length: Micros,
    may_continue: &dyn Fn() -> bool,
    push: impl FnMut(&Record) -> Result<(), E> + Send,
) -> Result<Result<RecordProgress, E>, CommandError> {
    let progress = Progress::of_session("recording", length);
    let (batches, handed_over) = RecordBatcher::new();
    std::thread::scope(|scope| {
        let writing = std::thread::Builder::new().spawn_scoped(scope, move || handed_over.each(push));
        let writing = writing.map_err(EngineError::no_thread)?;
        let mut counting = CountingRecorder { batches, tally: RecordProgress::default(), progress };
        let ran = ready.run(&mut counting, may_continue);
        let tally = counting.tally;
        // Dropping the sender ends the writing thread.
        drop(counting);
        let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ran?;
        Ok(written.map(|()| tally))
    })
}

/// Counts of the recorded session.
#[derive(Clone, Copy, Debug, Default)]
struct RecordProgress {
    ticks: u64,
    usercmds: u64,
    reached: Micros,
}

/// Counts records and passes them on.
struct CountingRecorder {
    batches: RecordBatcher,
    tally: RecordProgress,
    progress: Progress,
}

impl RecordSink for CountingRecorder {
    fn record(&mut self, record: Record) {
        match &record {
            Record::Tick(tick) => {
                self.tally.ticks += 1;
                self.tally.reached = tick.at;
                self.progress.reached(tick.at);
            }
            Record::Frame(..) => self.tally.usercmds += 1,
            _ => {}
        }
        self.batches.record(record);
    }
}

impl RecordingArgs {
    /// The scenario that the options describe.
    pub(super) fn scenario(&self) -> Result<Scenario, CommandError> {
        let mut scenario = self.session.scenario()?;
        scenario.change_links(|link| self.link.impaired(link));
        scenario.check()?;
        Ok(scenario)
    }
}

impl RecordReport {
    fn print(&self, page: &mut Page) {
        page.heading(&self.path);
        page.pair("session", &format!("{} on {}, {}", self.game, self.map, counted(self.players as u64, "player")));
        page.pair(
            "duration",
            &format!(
                "{}{}, recorded at {}",
                duration(Micros(self.duration_us)),
                if self.interrupted { ", ended by Ctrl-C or a signal" } else { "" },
                speed(self.real_time_factor)
            ),
        );
        let usercmds = count(self.usercmds);
        page.pair("holds", &format!("{} ticks, {usercmds} usercmds in {}", count(self.ticks), self.size()));
        if self.keyframes > 0 {
            page.pair("keyframes", &count(self.keyframes as u64));
        }
    }

    /// The size as text, such as `58.3 kB (11.4 bytes per usercmd)`.
    pub(super) fn size(&self) -> String {
        self.size_bytes.per_usercmd(self.usercmds)
    }
}

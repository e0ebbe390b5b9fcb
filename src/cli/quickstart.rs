//! `hitreg quickstart`: demonstrates hitreg's main functions in a few seconds, on a session that it records itself.

use std::ffi::OsString;
use std::path::Path;

use serde::Serialize;

use super::figures::{count, counted, duration, share, speed};
use super::page::{Bad, Faint, Good, Page, TextSpan};
use super::progress::{Progress, Stopwatch};
use super::record::{SynthReport, record};
use super::replay::view_error;
use super::trouble::engine_with_notes;
use super::{CommandError, CommandOutcome, CommandResult, Output, OutputPath};
use crate::diff::{ChangedShot, DiffOptions, DiffScope, ShotChange, ShotOutcome, diff};
use crate::engine::{EngineError, Games, Playable, SelfPlaying};
use crate::info::{PacketCounts, SessionInfo};
use crate::link::{Jitter, LinkModel, Loss};
use crate::record::Session;
use crate::replay::{ReplayOptions, ReplayOutput, WhatIf};
use crate::report::layout::WIDTH;
use crate::report::{on_screen, verdict, what_if_line};
use crate::session::scenario::Scenario;
use crate::settings::Settings;
use crate::store::{self, FileType};
use crate::summary::Summary;
use crate::units::Micros;

/// Record a session, check that it replays identically, and show what lag compensation does
///
/// Four bots fight for 20 seconds, with 50 ms delay each way, jitter and 1 % loss. The session is recorded and replayed
/// twice. Every tick must have the recorded state hash, and both traces must be identical. Then each shot is judged
/// again without lag compensation, to show which results change.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg quickstart
  hitreg quickstart --seed 7 -o /tmp/seven.hitlog")]
pub(super) struct Args {
    /// The log to write [default: quickstart.hitlog; replaces the log of an earlier quickstart]
    #[arg(short, long, value_name = "LOG")]
    output: Option<OutputPath>,
    /// Random seed; another seed gives another session
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct QuickstartReport<'a> {
    recorded: SynthReport,
    info: SessionInfo,
    hashes_compared: u64,
    first_difference_tick: Option<u32>,
    digests: [String; 2],
    summary: Summary,
    without_lag_compensation: WithoutCompensation,
    #[serde(skip)]
    log: String,
    #[serde(skip)]
    program: &'a str,
    #[serde(skip)]
    speed: f64,
}

#[derive(Serialize)]
struct WithoutCompensation {
    fired: Option<u64>,
    hit: Option<u64>,
    what_if: &'static str,
    /// Shots whose outcome changed, as in `hitreg diff`.
    changed: Vec<ChangedShot>,
}

pub(super) fn run(games: &Games, args: &Args, program: &str, output: &mut Output) -> CommandResult {
    let scenario = scenario(args.seed);
    let bots = games.recordable(None).map_err(CommandError::request)?;
    let ready = bots.set_up(&scenario, None).map_err(CommandError::request)?;
    let usual = OutputPath::from(OsString::from(USUAL_NAME));
    let path = args.output.as_ref().unwrap_or(&usual);
    // The log is read again after it was written.
    if store::check_regular(path).is_err() {
        return Err(CommandError::file(path, "quickstart reads the log that it writes: use the path of a file"));
    }
    let target = match args.output.is_none() && is_of_quickstart(path, bots)? {
        true => output.files.target_made_again(path, FileType::Log)?,
        false => output.files.target(path, FileType::Log)?,
    };
    let recorded = record(&*ready, scenario.length(), &target)?;
    if recorded.kept.interrupted {
        return Err(CommandError::Interrupted { resumes: false });
    }
    // The rest uses only the file.
    let session = engine_with_notes(games).read_log(path)?.session;
    let game = games.of(&session).map_err(|error| CommandError::file(path, error))?;
    let replay = |options: &ReplayOptions| timed_replay(game, path, &session, options);
    let options = ReplayOptions { memory: games.memory(), ..ReplayOptions::default() };
    let (first, seconds) = replay(&options)?;
    let (second, _) = replay(&options)?;
    let (without, _) = replay(&options.under(Some(without_lag_compensation(&session)?), WhatIf::Rejudge))?;
    let off = Summary::of(&without.trace).shots;
    let on_hits = DiffOptions { on: DiffScope::Hits, ..DiffOptions::default() };
    let hits = diff(&first.trace, &without.trace, &on_hits).map_err(EngineError::from)?.hits;
    let changed = hits.changed.first().filter(|shot| shot.change != ShotChange::OtherReason).collect();
    let report = QuickstartReport {
        recorded,
        info: SessionInfo::of(&session),
        hashes_compared: first.findings.hashes_compared,
        first_difference_tick: first.findings.first_difference.map(|difference| difference.tick.0),
        digests: [&first, &second].map(|replayed| replayed.trace.digest().to_string()),
        summary: Summary::of(&first.trace),
        without_lag_compensation: WithoutCompensation {
            fired: off.fired,
            hit: off.hit,
            what_if: WhatIf::Rejudge.name(),
            changed,
        },
        log: path.display().to_string(),
        program,
        speed: session.duration().as_s_f64() / seconds.max(1e-9),
    };
    output.show(&report, |page| report.print(page))?;
    Ok(if report.is_same(&first) { CommandOutcome::Done } else { CommandOutcome::Differs })
}

/// Replays with a progress bar, and returns the duration in seconds.
fn timed_replay(
    game: &dyn Playable,
    path: &Path,
    session: &Session,
    options: &ReplayOptions,
) -> Result<(ReplayOutput, f64), CommandError> {
    let progress = Progress::of_session("replaying", session.duration());
    let watch = Stopwatch::start();
    let replayed = game.replay(session, options, &mut |at| progress.reached(at));
    let seconds = watch.elapsed_s();
    Ok((replayed.map_err(|error| CommandError::file(path, error))?, seconds))
}

/// The default path of the log.
const USUAL_NAME: &str = "quickstart.hitlog";

/// Whether the existing file is the log that a quickstart with its seed records. Replacing such a log loses nothing.
fn is_of_quickstart(path: &Path, bots: &dyn SelfPlaying) -> Result<bool, CommandError> {
    let Ok(there) = store::read_log(path) else { return Ok(false) };
    let ready = bots.set_up(&scenario(there.header.seed.0), None).map_err(CommandError::request)?;
    if *ready.header() != there.header {
        return Ok(false);
    }
    let mut recorded = Session::new(there.header.clone());
    ready.run(&mut recorded, &|| true)?;
    Ok(recorded == there)
}

/// Typical broadband: some delay, some jitter, and an occasional lost packet.
fn scenario(seed: u64) -> Scenario {
    let link = LinkModel {
        delay_ms: 50.0,
        jitter: Jitter::Exponential(4.0),
        loss: Loss::Random(0.01),
        ..LinkModel::default()
    };
    Scenario { seconds: 20.0, seed, link, ..Scenario::default() }
}

fn without_lag_compensation(session: &Session) -> Result<Settings, CommandError> {
    let mut settings = Settings::from_pairs(&session.header.settings)?;
    settings.lag_compensation.enabled = false;
    Ok(settings)
}

impl QuickstartReport<'_> {
    /// Whether both replays match the recorded session.
    fn is_same(&self, first: &ReplayOutput) -> bool {
        first.findings.first_difference.is_none()
            && first.findings.hashes_compared > 0
            && self.digests[0] == self.digests[1]
    }

    fn print(&self, page: &mut Page) {
        let info = &self.info;
        page.heading("1. Recorded: four bots fight, 50 ms each way, with jitter and 1 % loss");
        let length = duration(Micros(info.duration_us));
        let recorded = &self.recorded.kept;
        let usercmds = recorded.figures.usercmds;
        let made = format!("{length} of {} on {}, {} usercmds", info.game, info.map, count(usercmds));
        page.pair("session", &made);
        let rtt = |p: Option<f64>| p.map_or("-".to_owned(), |ms| format!("{ms:.0}"));
        let (p50, p99) = (rtt(info.rtt_ms.p50), rtt(info.rtt_ms.p99));
        page.pair("round trip", &format!("median {p50} ms, p99 {p99} ms (2 × 50 ms + jitter + tick wait)"));
        let lost = |packets: PacketCounts| share(packets.lost.unwrap_or(0), packets.sent.unwrap_or(0));
        let (up, down) = (lost(info.packets_up), lost(info.packets));
        page.pair("loss", &format!("up {up}, down {down} (configured: 1 %)"));
        page.pair("file", &format!("{}, {}", self.log, recorded.size_bytes.per_usercmd(usercmds)));

        page.heading("2. Replayed: server and four clients again, from the file alone");
        self.print_proof(page);
        self.print_summary(page);

        page.heading("3. The same shots without lag compensation");
        self.print_without(page);

        page.heading("Try next");
        let (program, log) = (self.program, &self.log);
        let commands = [
            (format!("{program} verify {log}"), "check it again"),
            (format!("{program} replay {log} --preset quake3"), "same input under the quake3 preset"),
            (format!("{program} why {log} --at 1.55s"), "one shot, explained"),
            (format!("{program} report {log} -o page.html"), "the session in a browser"),
            (format!("{program} export {log} --table shots"), "every shot"),
        ];
        let longest = commands.iter().map(|(typed, _)| typed.len()).max().unwrap_or(0);
        let fits = commands.iter().all(|(_, why)| 2 + longest + 2 + why.len() <= WIDTH);
        for (typed, why) in &commands {
            if fits {
                page.parts(vec![format!("  {typed:<longest$}  ").into(), TextSpan::styled(Faint, *why)]);
            } else {
                page.parts(vec!["  ".into(), TextSpan::styled(Faint, format!("# {why}"))]);
                page.line(&format!("  {typed}"));
            }
        }
    }

    fn print_proof(&self, page: &mut Page) {
        match self.first_difference_tick {
            None => page.styled(
                Good,
                &format!("  bit for bit: all {} ticks have the recorded state hash", count(self.hashes_compared)),
            ),
            Some(tick) => {
                page.styled(Bad, &format!("  NOT the same: the state hash of tick {tick} differs from the recording"));
            }
        }
        let [first, second] = &self.digests;
        let (style, what) =
            if first == second { (Good, "identical output") } else { (Bad, "DIFFERENT output from one log") };
        page.styled(style, &format!("  replayed twice: {what} (digest {})", &first[..16]));
    }

    fn print_summary(&self, page: &mut Page) {
        let (prediction, shots) = (&self.summary.prediction, &self.summary.shots);
        page.pair("speed", &speed(self.speed));
        let exact = share(prediction.exact, prediction.checked);
        let corrections = self.summary.exercised.corrections.unwrap_or_default();
        let apart = match prediction.relocations {
            0 => String::new(),
            some => format!(" ({} by spawns, deaths and teleports)", count(some)),
        };
        let acks = format!("{} of {} exact ({exact})", count(prediction.exact), counted(prediction.checked, "ack"));
        page.pair("prediction", &format!("{acks}, {}{apart}", counted(corrections, "correction")));
        let (fired, hit) = (shots.fired.unwrap_or_default(), shots.hit.unwrap_or_default());
        page.pair("shots", &format!("{}, {} hit ({})", counted(fired, "shot"), count(hit), share(hit, fired)));
        page.pair("view error", &view_error(shots));
    }

    fn print_without(&self, page: &mut Page) {
        const ROWS_MAX: usize = 6;
        let (on, off) = (&self.summary.shots, &self.without_lag_compensation);
        for (what, hit, fired) in [("with it", on.hit, on.fired), ("without it", off.hit, off.fired)] {
            let (hit, fired) = (hit.unwrap_or_default(), fired.unwrap_or_default());
            page.pair(what, &format!("{hit} of {fired} hit ({})", share(hit, fired)));
        }
        let all = &off.changed;
        if all.is_empty() {
            page.paragraph(2, "No shot changed.");
            return;
        }
        let first = ROWS_MAX.min(all.len());
        page.paragraph(2, &format!("{} changed, the first {first}:", counted(all.len() as u64, "shot")));
        let head = [">at", "shooter", ">rewind", "shooter saw", "with (damage)", "without (damage)"];
        let of = |side: &Option<ShotOutcome>, words: fn(&ShotOutcome) -> String| {
            side.as_ref().map_or_else(|| "not fired".to_owned(), words)
        };
        let row = |shot: &ChangedShot| {
            let at = format!("{:.2} s", Micros(shot.at_us.unwrap_or_default()).as_s_f64());
            let rewind = shot.a.as_ref().and_then(|with| with.rewind_us);
            let rewind = rewind.map_or(String::new(), |by| format!("{:.0} ms", Micros(by).as_ms_f64()));
            let (saw, with, without) = (of(&shot.a, on_screen), of(&shot.a, verdict), of(&shot.b, verdict));
            [at, format!("p{}", shot.shooter), rewind, saw, with, without]
        };
        page.table(&head, all.iter().take(ROWS_MAX).map(row));
        page.faint(2, &what_if_line(WhatIf::Rejudge));
    }
}

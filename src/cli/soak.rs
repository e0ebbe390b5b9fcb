//! `hitreg soak`: runs sessions from random seeds with many kinds of faults, and checks properties that always hold.

use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use rayon::prelude::*;
use serde::Serialize;

use super::figures::{count, counted};
use super::interrupt;
use super::output::Output;
use super::page::{BAD, GOOD, Page, UNSURE};
use super::progress::{Progress, Stopwatch};
use super::session_args::parse_number_of_seconds;
use super::{CommandOutcome, CommandResult};
use crate::soak::{self, BrokenProperty, PlanLimits, PlannedFault, SoakCoverage, SoakMaps, SoakPlan, SoakProperty};

/// Test hitreg itself with random sessions and injected faults
///
/// A seed picks preset, settings, map, players, connections and faults. Faults are lost or modified datagrams, fast
/// clocks, clients that stall, leave or cheat, a full disk, and a killed recorder. Each session is played in virtual
/// time, recorded, replayed, truncated, merged and compared. Properties that hold for every session are checked. The
/// same seed gives the same session on every machine.
///
/// A failure is reduced to a smaller session, and the command that reproduces it is printed.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg soak --seconds 60                          seeds from 1, for a minute
  hitreg soak --seed 77                             one seed
  hitreg soak --seed 77 --players 1 --without loss  a reduced session
  hitreg soak --seed 1 --seeds 1000 --format json

Exit code 0: no failure. 1: a failure. 125: nothing was checked.")]
pub(super) struct Args {
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Number of seeds [default: 1, or as many as fit into --seconds]
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Start new seeds for this many seconds
    #[arg(long, value_name = "S", value_parser = parse_number_of_seconds)]
    seconds: Option<f64>,
    /// Maximum number of players
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    players: Option<u16>,
    /// Maximum length of each session
    #[arg(long, value_name = "MS")]
    length_ms: Option<u32>,
    /// Faults to leave out, separated by commas
    #[arg(long, value_name = "FAULT,FAULT", value_delimiter = ',', value_parser = a_fault())]
    without: Vec<PlannedFault>,
}

#[derive(Serialize)]
struct SoakReport {
    seeds: u64,
    /// Whether Ctrl-C or a signal ended it.
    interrupted: bool,
    exercised: SoakCoverage,
    found: Option<FailingSeed>,
}

/// A property that a seed violated.
#[derive(Serialize)]
struct FailingSeed {
    seed: u64,
    property: SoakProperty,
    detail: String,
    command: String,
    smaller: SmallerFailure,
}

/// The same violation in a smaller session.
#[derive(Serialize)]
struct SmallerFailure {
    detail: String,
    command: String,
    plan: SoakPlan,
}

fn a_fault() -> impl TypedValueParser<Value = PlannedFault> {
    PossibleValuesParser::new(PlannedFault::NAMES).try_map(|name| name.parse::<PlannedFault>())
}

pub(super) fn run(args: &Args, output: &mut Output) -> CommandResult {
    let limits = PlanLimits {
        players: args.players.map(usize::from),
        length_ms: args.length_ms,
        without: args.without.iter().copied().collect(),
    };
    let stage = SoakMaps::default();
    let stop = interrupt::stop_on_signal()?;
    let (exercised, seeds, found) = search(&stage, args, &limits, &stop);
    let interrupted = stop.load(Ordering::Relaxed);
    drop(stop);
    let found = found.map(|(seed, broken)| {
        let (less, smallest) = soak::smaller(&|plan| soak::run(&stage, plan).err(), seed, &limits, broken.clone());
        FailingSeed {
            seed,
            property: broken.property,
            detail: broken.detail,
            command: command(seed, &limits),
            smaller: SmallerFailure {
                detail: smallest.detail,
                command: command(seed, &less),
                plan: SoakPlan::of(seed, &less),
            },
        }
    });
    let report = SoakReport { seeds, interrupted, exercised, found };
    output.show(&report, |page| print(page, &report))?;
    Ok(match &report.found {
        Some(_) => CommandOutcome::Differs,
        None if report.interrupted => CommandOutcome::Interrupted,
        None if report.exercised.held.is_empty() => CommandOutcome::Untestable,
        None => CommandOutcome::Done,
    })
}

/// Tries seeds until one violates a property, the requested number or time is reached, or it is stopped. Among the
/// seeds of one parallel batch, the lowest violation is reported.
fn search(
    stage: &SoakMaps,
    args: &Args,
    limits: &PlanLimits,
    stop: &AtomicBool,
) -> (SoakCoverage, u64, Option<(u64, BrokenProperty)>) {
    let wanted = args.seeds.unwrap_or(if args.seconds.is_some() { u64::MAX } else { 1 });
    let watch = Stopwatch::start();
    let progress = Progress::of_things("soaking", wanted);
    let at_once = 4 * rayon::current_num_threads() as u64;
    let (mut all, mut seeds) = (SoakCoverage::default(), 0);
    let goes_on = || !stop.load(Ordering::Relaxed) && args.seconds.is_none_or(|seconds| watch.elapsed_s() < seconds);
    while seeds < wanted && goes_on() {
        let first = args.seed.saturating_add(seeds);
        let batch = first..first.saturating_add(at_once.min(wanted - seeds));
        if batch.is_empty() {
            break;
        }
        let tried = batch.into_par_iter().map(|seed| (seed, soak::run(stage, &SoakPlan::of(seed, limits))));
        for (seed, result) in tried.collect::<Vec<_>>() {
            seeds += 1;
            progress.one_done();
            match result {
                Ok(exercised) => all.add(&exercised),
                Err(broken) => return (all, seeds, Some((seed, broken))),
            }
        }
    }
    (all, seeds, None)
}

/// The command that reproduces the violation.
fn command(seed: u64, limits: &PlanLimits) -> String {
    let players = limits.players.map(|players| format!(" --players {players}"));
    let length = limits.length_ms.map(|ms| format!(" --length-ms {ms}"));
    let without: Vec<&str> = limits.without.iter().map(|fault| fault.name()).collect();
    let without = (!without.is_empty()).then(|| format!(" --without {}", without.join(",")));
    let all = [players, length, without].into_iter().flatten().collect::<String>();
    format!("hitreg soak --seed {seed}{all}")
}

fn print(page: &mut Page, report: &SoakReport) {
    let exercised = &report.exercised;
    let row = |property: &SoakProperty| {
        let sessions = exercised.held.get(property).copied().unwrap_or_default();
        [String::new(), property.name().to_owned(), count(sessions)]
    };
    page.table(&["", "held", ">sessions"], SoakProperty::ALL.iter().map(row));
    page.blank();
    let lost = exercised.lost_us_most as f64 / 1e3;
    let [ticks, usercmds] =
        [(exercised.ticks, "tick"), (exercised.usercmds, "usercmd")].map(|(n, one)| counted(n, one));
    page.pair("exercised", &format!("{ticks}, {usercmds}, {}", counted(exercised.shots, "shot")));
    let views = counted(exercised.view_errors, "view error");
    page.pair("exact", &format!("{views} and {}", counted(exercised.predictions, "prediction")));
    page.pair("lost", &format!("{lost:.0} ms at most to a recorder that was killed"));
    page.blank();
    let Some(found) = &report.found else {
        let ended = if report.interrupted { ", ended by Ctrl-C or a signal" } else { "" };
        let style = if report.interrupted { UNSURE } else { GOOD };
        return page.styled(style, &format!("Nothing found in {}{ended}.", counted(report.seeds, "seed")));
    };
    page.styled(BAD, &format!("Seed {} breaks `{}`.", found.seed, found.property.name()));
    page.paragraph(2, &found.detail);
    page.line(&format!("  {}", found.command));
    if found.smaller.command != found.command {
        page.blank();
        page.line("The smallest of it that breaks the same:");
        page.paragraph(2, &found.smaller.detail);
        page.line(&format!("  {}", found.smaller.command));
    }
}

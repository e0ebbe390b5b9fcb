//! `hitreg claims` and `hitreg soak`: test hitreg itself.

use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use rayon::prelude::*;
use serde::Serialize;

use super::figures::{count, counted};
use super::page::{Bad, Good, Page, Strong, TextSpan, Unsure};
use super::progress::{Progress, Stopwatch};
use super::session_args::parse_number_of_seconds;
use super::{CommandError, CommandOutcome, CommandResult, Output, process};
use crate::units::Micros;
use hitreg_selftest::claims::{self, Claim, ClaimResult, Figure, MechanismState};
use hitreg_selftest::soak::{
    self, BrokenProperty, PlanLimits, PlannedFault, SoakCoverage, SoakMaps, SoakPlan, SoakProperty,
};

/// Measure the claims of the literature on netcode, and compare them with the expected values
///
/// For each claim, the server and clients play a scene in virtual time. The measured number comes from their output,
/// never from settings. With --off, each claim's mechanism is switched off, and the claim must fail.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg claims                        all claims, by theme
  hitreg claims --list                 names and statements
  hitreg claims dumb-client            one claim, with its measurement
  hitreg claims lead --off             claims named lead-..., switched off
  hitreg claims --format json

Exit code 0: all claims hold. 1: a claim fails.")]
pub(super) struct ClaimsArgs {
    /// Only these claims: full names, or beginnings of names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List names, statements and sources; measure nothing
    #[arg(long, conflicts_with = "off")]
    list: bool,
    /// Switch off each claim's mechanism, so that the claim must fail
    #[arg(long)]
    off: bool,
}

#[derive(Serialize)]
struct ClaimListing {
    name: &'static str,
    theme: claims::Theme,
    claim: String,
    source: String,
}

#[derive(Serialize)]
struct ClaimOutcomes {
    holds: bool,
    claims: Vec<ClaimResult>,
}

pub(super) fn run_claims(args: &ClaimsArgs, output: &mut Output) -> CommandResult {
    let chosen = chosen(&args.names)?;
    if args.list {
        return list_claims(&chosen, output);
    }
    let mechanism = if args.off { MechanismState::Off } else { MechanismState::On };
    let progress = Progress::of_things("measuring", chosen.len() as u64);
    let check = |claim: &&Claim| {
        let checked = claim.check(mechanism).map_err(|error| broken(claim, &error));
        progress.one_done();
        checked
    };
    let claims: Vec<ClaimResult> = chosen.par_iter().map(check).collect::<Result<_, _>>()?;
    drop(progress);
    let result = ClaimOutcomes { holds: claims.iter().all(|claim| claim.holds), claims };
    let in_detail = !args.names.is_empty();
    output.show(&result, |page| print_claims(page, &result.claims, in_detail))?;
    Ok(if result.holds { CommandOutcome::Done } else { CommandOutcome::Differs })
}

/// The claims with these names; all claims if there are no names.
fn chosen(names: &[String]) -> Result<Vec<&'static Claim>, CommandError> {
    let is_meant = |claim: &&Claim, name: &String| claim.name == name || claim.name.starts_with(&format!("{name}-"));
    for name in names {
        if !claims::all().any(|claim| is_meant(&claim, name)) {
            let likeness = |claim: &Claim| strsim::jaro_winkler(name, claim.name);
            let near = claims::all().filter(|claim| likeness(claim) > 0.8);
            let nearest = near.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
            let hint = nearest.map_or(String::new(), |claim| format!(" (did you mean `{}`?)", claim.name));
            let what = format!("no claim is called `{name}`{hint}; `hitreg claims --list` lists them");
            return Err(CommandError::request(what));
        }
    }
    let is_chosen = |claim: &&Claim| names.is_empty() || names.iter().any(|name| is_meant(claim, name));
    Ok(claims::all().filter(is_chosen).collect())
}

fn broken(claim: &Claim, error: &claims::ClaimError) -> CommandError {
    CommandError::Request(format!("the claim `{}` cannot be measured: {error}", claim.name))
}

fn list_claims(chosen: &[&'static Claim], output: &mut Output) -> CommandResult {
    let listed = |claim: &&'static Claim| {
        let (text, source) = claim.statement().map_err(|error| broken(claim, &error))?;
        Ok(ClaimListing { name: claim.name, theme: claim.theme, claim: text, source })
    };
    let listed: Vec<ClaimListing> = chosen.iter().map(listed).collect::<Result<_, CommandError>>()?;
    output.show(&listed, |page| {
        let mut theme = None;
        for claim in &listed {
            if theme.replace(claim.theme) != Some(claim.theme) {
                page.heading(claim.theme.title());
            }
            page.styled(Strong, &format!("  {}", claim.name));
            page.paragraph(6, &claim.claim);
            page.faint(6, &claim.source);
        }
    })
}

fn print_claims(page: &mut Page, claims: &[ClaimResult], in_detail: bool) {
    let mut theme = None;
    for claim in claims {
        if theme.replace(claim.theme) != Some(claim.theme) {
            page.heading(claim.theme.title());
        } else {
            page.blank();
        }
        let (style, word) = if claim.holds { (Good, "holds") } else { (Bad, "FAILS") };
        page.parts(vec![
            TextSpan::styled(style, format!("  {word}")),
            TextSpan::styled(Strong, format!("  {}", claim.name)),
        ]);
        page.paragraph(4, &claim.claim);
        page.faint(4, &claim.source);
        if in_detail {
            for (label, text) in [("method:", &claim.how), ("mechanism:", &claim.mechanism), ("off:", &claim.off)] {
                page.labelled(DETAIL, label, text);
            }
        }
        figures(page, &claim.figures, in_detail);
    }
    let held = claims.iter().filter(|claim| claim.holds).count();
    page.blank();
    let failed: Vec<&str> = claims.iter().filter(|claim| !claim.holds).map(|claim| claim.name).collect();
    let of = counted(claims.len() as u64, "claim");
    if failed.is_empty() {
        page.styled(Good, &if held == 1 { "The claim holds.".to_owned() } else { format!("All {of} hold.") });
    } else {
        page.styled(Bad, &format!("{held} of {of} hold."));
        page.paragraph(2, &format!("Failed: {}.", failed.join(", ")));
    }
    if !in_detail {
        page.line("`hitreg claims NAME` shows how a claim is measured, and its tolerance.");
    }
}

/// The columns of labels and details.
const DETAIL: [usize; 2] = [4, 15];

/// Prints the expected and the measured values, one row each. Values outside the expected range are marked.
fn figures(page: &mut Page, figures: &[Figure], in_detail: bool) {
    let row = |figure: &Figure| {
        let with_unit = |text: &str| format!("{text} {}", figure.unit).trim_end().to_owned();
        let measured = figure.measured.map_or("never".to_owned(), |value| with_unit(&number(value)));
        let style = if figure.holds { Good } else { Bad };
        let cells = ["", &figure.figure, &with_unit(&figure.expected)].map(TextSpan::from);
        cells.into_iter().chain([TextSpan::styled(style, measured)])
    };
    page.table(&["", "", ">expected", ">measured"], figures.iter().map(row));
    if in_detail {
        for figure in figures {
            page.labelled(DETAIL, "", &format!("{}: {}", figure.figure, figure.because));
        }
    }
}

/// Formats whole numbers in full, and other numbers with their significant digits.
fn number(value: f64) -> String {
    let rounded = libm::round(value);
    match value.abs() {
        _ if (value - rounded).abs() < 1e-9 && value.abs() < 1e9 => format!("{rounded}"),
        size if size < 0.01 => format!("{value:.1e}"),
        size if size < 10.0 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}

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
pub(super) struct SoakArgs {
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
    /// Maximum length of each session, from 100
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(i64::from(soak::SESSION_MS_MIN)..))]
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

pub(super) fn run_soak(args: &SoakArgs, output: &mut Output) -> CommandResult {
    let limits = PlanLimits {
        players: args.players.map(usize::from),
        length_ms: args.length_ms,
        without: args.without.iter().copied().collect(),
    };
    let stage = SoakMaps::default();
    let stop = process::stop_on_signal()?;
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
    output.show(&report, |page| print_soak(page, &report))?;
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
    args: &SoakArgs,
    limits: &PlanLimits,
    stop: &AtomicBool,
) -> (SoakCoverage, u64, Option<(u64, BrokenProperty)>) {
    let wanted = args.seeds.unwrap_or(if args.seconds.is_some() { u64::MAX } else { 1 });
    let watch = Stopwatch::start();
    let length = args.seconds.filter(|_| args.seeds.is_none()).map(|seconds| Micros((seconds * 1e6) as i64));
    let progress = match length {
        Some(length) => Progress::of_session("soaking", length),
        None => Progress::of_things("soaking", wanted),
    };
    let at_once = 4 * rayon::current_num_threads() as u64;
    let (mut all, mut seeds) = (SoakCoverage::default(), 0);
    let goes_on = || !stop.load(Ordering::Relaxed) && args.seconds.is_none_or(|seconds| watch.elapsed_s() < seconds);
    while seeds < wanted && goes_on() {
        let next = seeds..seeds + at_once.min(wanted - seeds);
        let batch: Vec<u64> = next.filter_map(|count| args.seed.checked_add(count)).collect();
        if batch.is_empty() {
            break;
        }
        let tried = batch.into_par_iter().map(|seed| (seed, soak::run(stage, &SoakPlan::of(seed, limits))));
        for (seed, result) in tried.collect::<Vec<_>>() {
            seeds += 1;
            match length {
                Some(_) => {
                    let message = counted(seeds, "seed");
                    progress.reached_with(Micros((watch.elapsed_s() * 1e6) as i64), message);
                }
                None => progress.one_done(),
            }
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

fn print_soak(page: &mut Page, report: &SoakReport) {
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
        let style = if report.interrupted { Unsure } else { Good };
        return page.styled(style, &format!("Nothing found in {}{ended}.", counted(report.seeds, "seed")));
    };
    page.styled(Bad, &format!("Seed {} breaks `{}`.", found.seed, found.property.name()));
    page.paragraph(2, &found.detail);
    page.line(&format!("  {}", found.command));
    if found.smaller.command != found.command {
        page.blank();
        page.line("The smallest of it that breaks the same:");
        page.paragraph(2, &found.smaller.detail);
        page.line(&format!("  {}", found.smaller.command));
    }
}

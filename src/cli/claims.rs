//! `hitreg claims`: measures the statements of the founding documents.

use rayon::prelude::*;
use serde::Serialize;

use super::figures::counted;
use super::output::Output;
use super::page::{BAD, BOLD, GOOD, Page, TextSpan};
use super::progress::Progress;
use super::trouble::CommandError;
use super::{CommandOutcome, CommandResult};
use crate::claims::{self, Claim, ClaimResult, Figure, MechanismState};

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
pub(super) struct Args {
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

pub(super) fn run(args: &Args, output: &mut Output) -> CommandResult {
    let chosen = chosen(&args.names)?;
    if args.list {
        return list(&chosen, output);
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
    output.show(&result, |page| print(page, &result.claims, in_detail))?;
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

fn list(chosen: &[&'static Claim], output: &mut Output) -> CommandResult {
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
            page.styled(BOLD, &format!("  {}", claim.name));
            page.paragraph(6, &claim.claim);
            page.faint(6, &claim.source);
        }
    })
}

fn print(page: &mut Page, claims: &[ClaimResult], in_detail: bool) {
    let mut theme = None;
    for claim in claims {
        if theme.replace(claim.theme) != Some(claim.theme) {
            page.heading(claim.theme.title());
        } else {
            page.blank();
        }
        let (style, word) = if claim.holds { (GOOD, "holds") } else { (BAD, "FAILS") };
        page.parts(vec![
            TextSpan::styled(style, format!("  {word}")),
            TextSpan::styled(BOLD, format!("  {}", claim.name)),
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
        page.styled(GOOD, &if held == 1 { "The claim holds.".to_owned() } else { format!("All {of} hold.") });
    } else {
        page.styled(BAD, &format!("{held} of {of} hold."));
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
        let style = if figure.holds { GOOD } else { BAD };
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

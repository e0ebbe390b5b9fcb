//! `hitreg review`: shows proposed goldens one by one, to accept or reject them.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::figures::{count, counted};
use super::output::{Output, OutputFormat};
use super::page::{BOLD, FAINT, Page, TextSpan};
use super::trouble::CommandError;
use super::verify::MOST_LINES;
use super::{CommandOutcome, CommandResult};
use crate::golden::GoldenChange;
use crate::verify::{Proposal, proposals_below};

/// Accept or reject the goldens that `verify --propose` wrote
///
/// With --rerecord, the proposed log is accepted or rejected with its golden. Without a terminal, and without --accept
/// or --reject, the proposals are listed. Exit code 1 means that proposals remain.
///
/// A table has the number of proposals by kind of difference: `digests`, `counts`, `shots`, `hits` or `new`. Each
/// proposal is of the last of these kinds that applies. With --kind, --accept and --reject take only proposals of these
/// kinds.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg verify fixtures --propose --rerecord; hitreg review fixtures
  hitreg review fixtures --accept             accept all
  hitreg review corpus --accept --kind digests,counts")]
pub(super) struct Args {
    /// Logs, or directories of logs
    #[arg(value_name = "LOG", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Accept all
    #[arg(long)]
    accept: bool,
    /// Reject all, and keep the existing goldens
    #[arg(long, conflicts_with = "accept")]
    reject: bool,
    /// Only proposals with these kinds of difference
    #[arg(
        long,
        value_name = "KINDS",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(&GoldenChange::NAMES[1..]),
        hide_possible_values = true
    )]
    kind: Vec<String>,
}

/// The decision on a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ReviewOutcome {
    Accepted,
    Rejected,
    Left,
}

#[derive(Serialize)]
struct ReviewedProposal {
    #[serde(flatten)]
    proposal: Proposal,
    done: ReviewOutcome,
}

pub(super) fn run(args: &Args, output: &mut Output) -> CommandResult {
    let asks = !args.accept && !args.reject && output.format() == OutputFormat::Text && std::io::stdin().is_terminal();
    let mut reviewed = Vec::new();
    let mut leaves_the_rest = false;
    let is_chosen =
        |proposal: &Proposal| args.kind.is_empty() || args.kind.iter().any(|kind| kind == proposal.kind.name());
    let (chosen, others): (Vec<Proposal>, Vec<Proposal>) =
        proposals_below(&args.paths)?.into_iter().partition(is_chosen);
    let chosen_count = chosen.len();
    for proposal in chosen {
        let done = match (args.accept, args.reject) {
            (true, _) => ReviewOutcome::Accepted,
            (_, true) => ReviewOutcome::Rejected,
            _ if asks && !leaves_the_rest => {
                output.show(&proposal, |page| print(page, &proposal))?;
                match ask()? {
                    Some(done) => done,
                    None => {
                        leaves_the_rest = true;
                        ReviewOutcome::Left
                    }
                }
            }
            _ => ReviewOutcome::Left,
        };
        match done {
            ReviewOutcome::Accepted => proposal.accept()?,
            ReviewOutcome::Rejected => proposal.reject()?,
            ReviewOutcome::Left => {}
        }
        reviewed.push(ReviewedProposal { proposal, done });
    }
    reviewed.extend(others.into_iter().map(|proposal| ReviewedProposal { proposal, done: ReviewOutcome::Left }));
    output.show(&reviewed, |page| print_all(page, &reviewed, chosen_count, asks))?;
    let is_left = reviewed.iter().any(|reviewed| reviewed.done == ReviewOutcome::Left);
    Ok(if is_left { CommandOutcome::Differs } else { CommandOutcome::Done })
}

/// Asks for a decision on the proposal shown; `None` to stop and leave the others.
fn ask() -> Result<Option<ReviewOutcome>, CommandError> {
    loop {
        let mut to = anstream::stderr();
        write!(to, "accept, reject, skip or quit? [a/r/s/q] ")?;
        to.flush()?;
        let mut line = String::new();
        // End of input means quit.
        if std::io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim() {
            "a" | "accept" => return Ok(Some(ReviewOutcome::Accepted)),
            "r" | "reject" => return Ok(Some(ReviewOutcome::Rejected)),
            "s" | "skip" => return Ok(Some(ReviewOutcome::Left)),
            "q" | "quit" => return Ok(None),
            _ => {}
        }
    }
}

fn print(page: &mut Page, proposal: &Proposal) {
    page.styled(BOLD, &proposal.golden.display().to_string());
    if let Some(log) = &proposal.log {
        page.paragraph(2, &format!("with {}, recorded again", log.display()));
    }
    match &proposal.difference {
        Some(difference) => page.text_diff(difference, MOST_LINES, "in --format json"),
        None if proposal.kind == GoldenChange::New => page.paragraph(2, "the log has no golden"),
        None => page.paragraph(2, "the outcome is the same"),
    }
}

/// The most proposals in the text. JSON has all.
const LISTED_PROPOSALS: usize = 20;

/// Prints the number of proposals of each kind, and then the first `chosen` proposals.
fn print_all(page: &mut Page, reviewed: &[ReviewedProposal], chosen: usize, were_shown: bool) {
    if reviewed.is_empty() {
        page.line("No golden waits to be reviewed");
        page.faint(0, "`hitreg verify LOG --propose` proposes changed goldens.");
        return;
    }
    for ReviewedProposal { proposal, done } in &reviewed[..chosen.min(LISTED_PROPOSALS)] {
        let word = match done {
            ReviewOutcome::Accepted => "accepted   ",
            ReviewOutcome::Rejected => "rejected   ",
            ReviewOutcome::Left => "waits      ",
        };
        if *done == ReviewOutcome::Left && !were_shown {
            print(page, proposal);
        }
        page.parts(vec![TextSpan::styled(FAINT, word), proposal.golden.display().to_string().into()]);
    }
    if let Some(more @ 1..) = chosen.checked_sub(LISTED_PROPOSALS) {
        page.faint(0, &format!("and {} not listed (--format json has all)", counted(more as u64, "golden")));
    }
    let row = |kind: GoldenChange| {
        let of_kind = || reviewed.iter().filter(|reviewed| reviewed.proposal.kind == kind);
        let count_of = |done| count(of_kind().filter(|reviewed| reviewed.done == done).count() as u64);
        let counts = [ReviewOutcome::Left, ReviewOutcome::Accepted, ReviewOutcome::Rejected].map(count_of);
        let cells = [kind.name().to_owned()].into_iter().chain(counts).chain([kind.meaning().to_owned()]);
        of_kind().next().map(|_| cells.collect::<Vec<_>>())
    };
    page.section("kind", &[">wait", ">accepted", ">rejected", ""], GoldenChange::ALL.into_iter().filter_map(row));
    if reviewed.iter().any(|reviewed| reviewed.done == ReviewOutcome::Left) {
        page.blank();
        page.faint(0, "--accept and --reject take all goldens; --kind KINDS limits them to kinds.");
    }
}

//! `hitreg bisect ticks`: the first tick, entity and field in which two runs part, and why.

use serde::Serialize;

use crate::bisect::{TickBisection, bisect_ticks};
use crate::cli::Outcome;
use crate::cli::diff::looking::Looking;
use crate::cli::diff::running::Running;
use crate::cli::diff::sides::{Sides, Traces};
use crate::cli::diff::{outcome, print_missing};
use crate::cli::games::Games;
use crate::cli::output::Output;
use crate::cli::trouble::Trouble;
use crate::diff::DiffOptions;
use crate::report::bisect_text;

/// Find the first tick, entity and field in which two runs part, and why
///
/// A log alone is held against what it says happened. The two sides are chosen as in `hitreg diff`. Everything is looked
/// at in one pass: a divergence may heal, so a later tick that agrees says nothing about the ticks before it.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg bisect ticks match.hitlog
  hitreg bisect ticks old.hittrace new.hittrace
  hitreg bisect ticks match.hitlog --a ./old-build --b ./new-build --on state

As the command of git bisect:
  git bisect run sh -c 'make || exit 125
      hitreg bisect ticks match.hitlog --b ./game'")]
pub(super) struct Args {
    #[command(flatten)]
    sides: Sides,
    #[command(flatten)]
    looking: Looking,
    #[command(flatten)]
    running: Running,
}

#[derive(Serialize)]
struct Bisected<'a> {
    a: &'a str,
    b: &'a str,
    #[serde(flatten)]
    found: &'a TickBisection,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    let Traces { names, made, overlap_only } = args.sides.traces(games, &args.running)?;
    let [a, b] = match made {
        Ok(traces) => traces,
        Err(missing) => {
            output.show(&missing, |page| print_missing(page, &missing))?;
            return Ok(Outcome::Untestable);
        }
    };
    let asked = args.looking.options();
    let options = DiffOptions { overlap_only: overlap_only || asked.overlap_only, ..asked };
    let found = bisect_ticks(&a, &b, &options, None).map_err(|error| Trouble::Request(error.to_string()))?;
    let bisected = Bisected { a: &names[0], b: &names[1], found: &found };
    output.show(&bisected, |page| {
        page.pair("A", &names[0]);
        page.pair("B", &names[1]);
        page.blank();
        page.line(bisect_text(&found).trim_end());
    })?;
    Ok(outcome(found.verdict))
}

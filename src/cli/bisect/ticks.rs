//! `hitreg bisect ticks`: finds the first tick, entity and field where two runs differ, and the cause.

use crate::cli::CommandOutcome;
use crate::cli::diff::looking::CompareArgs;
use crate::cli::diff::running::BuildArgs;
use crate::cli::diff::sides::SideArgs;
use crate::cli::diff::{outcome, print_missing};
use crate::cli::files;
use crate::cli::output::Output;
use crate::cli::trouble::CommandError;
use crate::engine::Games;
use crate::engine::bisect::bisect_ticks;
use crate::report::bisect_page;

/// Find the first tick, entity and field in which two runs part, and why
///
/// A log alone is held against what it says happened. The two sides are chosen as in `hitreg diff`. Everything is looked
/// at in one pass: a divergence may heal, so a later tick that agrees says nothing about the ticks before it. Where both
/// sides replay one log, the usercmds of that tick are run again in both builds from the last common state.
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
    sides: SideArgs,
    #[command(flatten)]
    looking: CompareArgs,
    #[command(flatten)]
    running: BuildArgs,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> Result<CommandOutcome, CommandError> {
    let sides = args.sides.sides(output.files.force())?;
    let runner = args.running.runner(sides.run_builds(), output)?;
    match bisect_ticks(&files::engine(games), &sides, &runner, &args.looking.options())? {
        Err(missing) => {
            output.show(&missing, |page| print_missing(page, &missing))?;
            Ok(CommandOutcome::Untestable)
        }
        Ok(bisected) => {
            output.show(&bisected, |page| {
                page.pair("A", &bisected.a);
                page.pair("B", &bisected.b);
                page.blank();
                page.append(bisect_page(&bisected.found));
            })?;
            Ok(outcome(bisected.found.verdict))
        }
    }
}

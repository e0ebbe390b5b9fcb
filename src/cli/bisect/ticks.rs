//! `hitreg bisect ticks`: finds the first tick, entity and field where two runs differ, and the cause.

use crate::cli::CommandResult;
use crate::cli::diff::looking::CompareArgs;
use crate::cli::diff::outcome;
use crate::cli::diff::running::BuildArgs;
use crate::cli::diff::sides::SideArgs;
use crate::cli::files;
use crate::cli::output::Output;
use crate::engine::bisect::bisect_ticks;
use crate::engine::{Engine, Games};
use crate::report::bisect_page;

/// Find the first tick, entity and field where two runs differ, and the cause
///
/// The sides are chosen as in `hitreg diff`. For a single log, this build's replay is compared with the recorded
/// session. One pass reads every tick, because a divergence can disappear again. If both sides replay one log, both
/// builds run that tick's usercmds again from the last common state.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg bisect ticks match.hitlog
  hitreg bisect ticks old.hittrace new.hittrace
  hitreg bisect ticks match.hitlog --a ./old-build --b ./new-build --on state

With git bisect:
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

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let sides = args.sides.sides(output.files.force)?;
    let runner = args.running.runner(games, sides.run_builds(), output)?;
    let bisected = bisect_ticks(&Engine { runner, ..files::engine(games) }, &sides, &args.looking.options())?;
    files::note_gaps(&bisected.gaps);
    output.show(&bisected, |page| {
        page.pair("A", &bisected.a);
        page.pair("B", &bisected.b);
        page.pair_if("players", bisected.players.as_deref());
        page.blank();
        page.append(bisect_page(&bisected.found));
    })?;
    Ok(outcome(bisected.found.verdict))
}

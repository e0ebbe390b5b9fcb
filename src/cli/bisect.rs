//! `hitreg bisect`: finds where two runs diverge, and the build or commit that introduced it.

mod builds;
mod found;
mod git;
mod sought;
pub(super) mod step;
mod ticks;

use super::CommandResult;
use super::output::Output;
use crate::engine::Games;

/// Find where two runs diverge: the tick and field, the build, or the commit
///
/// Each subcommand exits with 0 if it finds nothing, 1 if it finds the divergence, 125 if it cannot judge, and 128 on
/// trouble. So each can be the command of `git bisect run`.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: BisectCommand,
}

#[derive(clap::Subcommand)]
enum BisectCommand {
    Ticks(Box<ticks::Args>),
    Builds(builds::Args),
    Git(git::Args),
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    match &args.what {
        BisectCommand::Ticks(args) => ticks::run(games, args, output),
        BisectCommand::Builds(args) => builds::run(games, args, output),
        BisectCommand::Git(args) => git::run(games, args, output),
    }
}

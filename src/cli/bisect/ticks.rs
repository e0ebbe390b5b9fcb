//! `hitreg bisect ticks`: the first tick, entity and field in which two runs part, and why.

use std::path::Path;

use serde::Serialize;

use super::step::{answer, arguments, cells, named};
use crate::bisect::{Rerun, Step, TickBisection, bisect_ticks};
use crate::build::{Build, Request, Runner};
use crate::cli::Outcome;
use crate::cli::diff::looking::Looking;
use crate::cli::diff::running::Running;
use crate::cli::diff::sides::{Sides, Traces};
use crate::cli::diff::{outcome, print_missing};
use crate::cli::files::{self, Log};
use crate::cli::games::{Cells, Games};
use crate::cli::interrupt;
use crate::cli::output::Output;
use crate::cli::trouble::Trouble;
use crate::diff::{DiffOptions, Named, Side};
use crate::report::bisect_page;
use crate::units::{CommandSeq, EntityId, PlayerId};

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
    let again = match args.sides.one_log() {
        Some((path, builds)) => {
            Some(Again { games, runner: args.running.runner()?, path, log: files::read_log(path)?, builds })
        }
        None => None,
    };
    let mut rerun = again.as_ref().map(|again| |side: Side, step: &Step<'_>| again.step(side, step));
    let rerun = rerun.as_mut().map(|rerun| rerun as &mut Rerun<'_>);
    let found = bisect_ticks(&a, &b, &options, rerun).map_err(|error| Trouble::Request(error.to_string()))?;
    if let Some(again) = &again {
        interrupt::check(&again.runner.stop)?;
    }
    let bisected = Bisected { a: &names[0], b: &names[1], found: &found };
    output.show(&bisected, |page| {
        page.pair("A", &names[0]);
        page.pair("B", &names[1]);
        page.blank();
        page.append(bisect_page(&found));
    })?;
    Ok(outcome(found.verdict))
}

/// Runs single usercmds of a log again, in the builds of both sides.
struct Again<'a> {
    games: &'a Games,
    runner: Runner,
    path: &'a Path,
    log: Log,
    builds: [Option<&'a Path>; 2],
}

impl Again<'_> {
    fn step(&self, side: Side, step: &Step<'_>) -> Result<Vec<Named>, String> {
        let fields = &self.log.session.header.body_fields();
        let entity = |entity: &u32| u16::try_from(*entity).map(EntityId).map_err(|error| error.to_string());
        let all = step.others.iter().map(|(id, body)| Ok((entity(id)?, cells(fields, body)?)));
        let entities = all.collect::<Result<Cells, String>>()?;
        let (player, command) = (step.command.player, step.command.command);
        let build = match side {
            Side::A => self.builds[0],
            Side::B => self.builds[1],
        };
        let after = match build {
            None => {
                let player = PlayerId(u16::try_from(player).map_err(|error| error.to_string())?);
                let game = self.games.of(&self.log.session).map_err(|error| error.to_string())?;
                game.step(&self.log.session, player, CommandSeq(command), &entities)?
            }
            Some(path) => {
                let options = arguments(player, command, &entities);
                let request = Request { log: self.path, log_digest: self.log.digest, options: &options };
                let build = Build::at(path).map_err(|error| error.to_string())?;
                let bytes = self.runner.answer(&build, "step", &request).map_err(|untestable| untestable.reason)?;
                answer(&bytes)?
            }
        };
        named(fields, &after)
    }
}

//! `BUILD step`: runs one usercmd of a log on one body. `bisect ticks` calls it in two builds to compare their results.
//! It is not meant for users, so help does not list it.

use std::path::PathBuf;

use crate::cli::output::Output;
use crate::cli::outputs::OutputPath;
use crate::cli::trouble::CommandError;
use crate::cli::{CommandOutcome, CommandResult, files};
use crate::engine::Games;
use crate::engine::bisect::{body_argument, step};
use crate::store::{self, FileType};
use crate::units::{CommandSeq, EntityId, PlayerId};

/// Run one usercmd of a log on one body
#[derive(clap::Args)]
#[command(hide = true)]
pub(in crate::cli) struct Args {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Whose usercmd
    #[arg(long)]
    player: u16,
    /// Its number
    #[arg(long)]
    command: u32,
    /// An entity's body as cells: numbers of 32 bits, in the order of the log's fields. The player's own body is
    /// required
    #[arg(long, value_name = "ENTITY=CELL,CELL", value_parser = body_argument)]
    body: Vec<(EntityId, Vec<u32>)>,
    /// Output file for the resulting body, as JSON
    #[arg(short, long, value_name = "FILE")]
    output: OutputPath,
}

pub(in crate::cli) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Answer)?;
    let log = files::engine(games).read_log(&args.log)?;
    let game = games.of(&log.session).map_err(|error| CommandError::file(&args.log, error))?;
    let which = (PlayerId(args.player), CommandSeq(args.command));
    let entities = args.body.iter().cloned().collect();
    let after = step(game, &log.session, which, &entities).map_err(|error| CommandError::file(&args.log, error))?;
    store::save_bytes(&target, after.as_bytes())?;
    Ok(CommandOutcome::Done)
}

//! `hitreg man`: writes manual pages.

use super::output::Output;
use super::outputs::{OutputPath, Outputs};
use super::trouble::CommandError;
use super::{CommandOutcome, CommandResult, Program};
use crate::store::{self, FileType, Target};

/// Print the manual page, or write a page for each command
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg man | man -l -
  hitreg man -o ~/.local/share/man/man1     one page for each command")]
pub(super) struct Args {
    /// Directory for the pages of all commands
    #[arg(short, long, value_name = "DIR")]
    output: Option<OutputPath>,
}

pub(super) fn run(program: Program, args: &Args, output: &mut Output) -> CommandResult {
    output.check_no_result("manual pages: leave it out")?;
    let command = program.command();
    let Some(directory) = &args.output else {
        output.raw().write_all(&page(command)?)?;
        return Ok(CommandOutcome::Done);
    };
    let mut command = command.disable_help_subcommand(true);
    // Building gives each subcommand its full name, `hitreg-record`.
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, directory, &output.files, &mut pages)?;
    for (target, page) in pages {
        store::save_bytes(&target, &page)?;
    }
    Ok(CommandOutcome::Done)
}

/// Adds the pages of a command and its subcommands. All targets are checked before the first page is written.
fn add_pages(
    command: &clap::Command,
    directory: &OutputPath,
    files: &Outputs,
    pages: &mut Vec<(Target, Vec<u8>)>,
) -> Result<(), CommandError> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let target = files.target_at(&directory.join(format!("{name}.1")), FileType::Manual)?;
    pages.push((target, page(command.clone())?));
    command.get_subcommands().try_for_each(|sub| add_pages(sub, directory, files, pages))
}

fn page(command: clap::Command) -> Result<Vec<u8>, CommandError> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(command).render(&mut roff)?;
    Ok(roff)
}

//! `hitreg man`: manual pages.

use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::Outcome;
use super::output::Output;
use super::trouble::Trouble;
use crate::store;

/// Print the manual page, or write the pages of all commands
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg man | man -l -
  hitreg man -o ~/.local/share/man/man1     one page for each command")]
pub(super) struct Args {
    /// Write every command's page into this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    let command = super::Cli::command();
    let Some(directory) = &args.output else {
        output.raw().write_all(&page(command)?)?;
        return Ok(Outcome::Done);
    };
    let mut command = command.disable_help_subcommand(true);
    // Building gives each subcommand its full name, `hitreg-record`.
    command.build();
    write_pages(&command, directory)?;
    Ok(Outcome::Done)
}

fn write_pages(command: &clap::Command, directory: &Path) -> Result<(), Trouble> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    store::save_bytes(&directory.join(format!("{name}.1")), &page(command.clone())?)?;
    command.get_subcommands().try_for_each(|sub| write_pages(sub, directory))
}

fn page(command: clap::Command) -> Result<Vec<u8>, Trouble> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(command).render(&mut roff)?;
    Ok(roff)
}

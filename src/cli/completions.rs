//! `hitreg completions`: prints a completion script for a shell.

use clap_complete::Shell;

use super::output::Output;
use super::{CommandOutcome, CommandResult, Program};

/// Print a shell's completion script
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg completions bash > ~/.local/share/bash-completion/completions/hitreg
  hitreg completions zsh > ~/.zfunc/_hitreg
  hitreg completions fish > ~/.config/fish/completions/hitreg.fish

The folders must exist. zsh needs ~/.zfunc in its fpath.")]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(program: Program, args: &Args, output: &mut Output) -> CommandResult {
    output.check_no_result("a script: leave it out")?;
    // The generator panics on a closed pipe, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program.command(), program.name, &mut script);
    if args.shell == Shell::Zsh {
        // After an argument that `*::` describes, zsh takes all words as arguments and completes no options.
        let text = String::from_utf8_lossy(&script);
        script = text.replace("\n'*::", "\n'*:").into_bytes();
    }
    output.raw().write_all(&script)?;
    Ok(CommandOutcome::Done)
}

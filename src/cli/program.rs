//! The name, version and command line of a build with hitreg's commands, and what is generated from it: completions and
//! manual pages.

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;

use super::output::Output;
use super::outputs::{OutputPath, Outputs};
use super::trouble::CommandError;
use super::{CommandOutcome, CommandResult};
use crate::store::{self, FileType, Target};

const HITREG: &str = concat!("hitreg ", env!("CARGO_PKG_VERSION"));

/// The commands that print no page and write no log or trace. Global options do not apply to them.
const PLAIN: [&str; 2] = ["completions", "man"];

/// The commands that use `--force`: to overwrite a log or trace, or to compare files of different sessions.
const FORCED: [&str; 17] = [
    "quickstart",
    "synth",
    "live",
    "proxy",
    "serve",
    "join",
    "merge",
    "qwd",
    "quake3-udp",
    "quake3-demo",
    "replay",
    "diff",
    "ticks",
    "shrink",
    "report",
    "recover",
    "keyframes",
];

/// Adds the global options to every command, as clap does itself, and hides them in the help of commands that do not
/// use them. Hidden options are still accepted, for aliases and scripts that always give them.
fn with_global_options(command: Command) -> Command {
    let global: Vec<Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    command.mut_subcommands(|inner| with_options(inner, &global))
}

fn with_options(command: Command, global: &[Arg]) -> Command {
    let name = command.get_name().to_owned();
    let is_group = command.has_subcommands();
    let shows = |option: &Arg| {
        let is_used = option.get_id() != "force" || FORCED.contains(&&*name);
        is_used && !is_group && !PLAIN.contains(&&*name)
    };
    let options = global.iter().map(|option| option.clone().hide(!shows(option)));
    command.args(options.collect::<Vec<_>>()).mut_subcommands(|inner| with_options(inner, global))
}

/// A program's name and version, as shown in its help and completions.
///
/// ```no_run
/// # use hitreg::cli::{Games, Program};
/// # let games = Games::default();
/// Program::new("mygame-replay", env!("CARGO_PKG_VERSION")).run(&games);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub(super) name: &'static str,
    version: Option<&'static str>,
}

impl Program {
    /// A build with this name and version.
    pub const fn new(name: &'static str, version: &'static str) -> Program {
        Program { name, version: Some(version) }
    }

    /// A build without a version.
    pub(super) const fn named(name: &'static str) -> Program {
        Program { name, version: None }
    }

    /// The `hitreg` program.
    pub(super) const fn hitreg() -> Program {
        Program::new("hitreg", env!("CARGO_PKG_VERSION"))
    }

    /// Its command line.
    pub(super) fn command(self) -> Command {
        let command = with_global_options(super::Cli::command());
        if self.name == "hitreg" {
            return command;
        }
        let version = match self.version {
            Some(version) => format!("{version} ({HITREG})"),
            None => format!("({HITREG})"),
        };
        let commands: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        self.speaking(command.name(self.name).bin_name(self.name).version(version), &commands)
    }

    /// Replaces `hitreg` by the program's own name in the help of its commands.
    fn speaking(self, mut command: Command, commands: &[String]) -> Command {
        let spoken = |text: Option<&StyledStr>| {
            let text = text?.ansi().to_string();
            Some(
                commands
                    .iter()
                    .fold(text, |text, name| text.replace(&format!("hitreg {name}"), &format!("{} {name}", self.name))),
            )
        };
        if let Some(text) = spoken(command.get_long_about()) {
            command = command.long_about(text);
        }
        if let Some(text) = spoken(command.get_after_long_help()) {
            command = command.after_long_help(text);
        }
        // Only the `arena` game has the built-in maps that this help lists.
        let is_map = |arg: &clap::Arg| {
            arg.get_id() == "map" && arg.get_value_names().is_some_and(|names| names == ["FILE|NAME"])
        };
        if command.get_arguments().any(is_map) {
            command = command.mut_arg("map", |arg| arg.help("A map, where the game reads any").long_help(None));
        }
        command.mut_subcommands(|inner| self.speaking(inner, commands))
    }
}

/// Print a shell's completion script
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg completions bash > ~/.local/share/bash-completion/completions/hitreg
  hitreg completions zsh > ~/.zfunc/_hitreg
  hitreg completions fish > ~/.config/fish/completions/hitreg.fish

The folders must exist. zsh needs ~/.zfunc in its fpath.")]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run_completions(program: Program, args: &CompletionsArgs, output: &mut Output) -> CommandResult {
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

/// Print the manual page, or write a page for each command
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg man | man -l -
  hitreg man -o ~/.local/share/man/man1     one page for each command")]
pub(super) struct ManArgs {
    /// Directory for the pages of all commands
    #[arg(short, long, value_name = "DIR")]
    output: Option<OutputPath>,
}

pub(super) fn run_man(program: Program, args: &ManArgs, output: &mut Output) -> CommandResult {
    output.check_no_result("manual pages: leave it out")?;
    let command = program.command();
    let Some(directory) = &args.output else {
        output.raw().write_all(&manual_page(command)?)?;
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
    pages.push((target, manual_page(command.clone())?));
    command.get_subcommands().try_for_each(|sub| add_pages(sub, directory, files, pages))
}

fn manual_page(command: clap::Command) -> Result<Vec<u8>, CommandError> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(command).render(&mut roff)?;
    Ok(roff)
}

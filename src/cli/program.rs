//! The name, version and command line of a build with hitreg's commands, and what is generated from it: completions and
//! manual pages.

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;

use super::{CommandError, CommandOutcome, CommandResult, Output, OutputPath, Outputs};
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

/// Adds the pages of a command and its shown subcommands. All targets are checked before the first page is written.
fn add_pages(
    command: &clap::Command,
    directory: &OutputPath,
    files: &Outputs,
    pages: &mut Vec<(Target, Vec<u8>)>,
) -> Result<(), CommandError> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let target = files.target_at(&directory.join(format!("{name}.1")), FileType::Manual)?;
    pages.push((target, manual_page(command.clone())?));
    let mut shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.try_for_each(|sub| add_pages(sub, directory, files, pages))
}

fn manual_page(command: clap::Command) -> Result<Vec<u8>, CommandError> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(command).render(&mut roff)?;
    Ok(roff)
}

/// Every pair of options of every command, against clap's definitions.
#[cfg(test)]
mod tests {
    use clap::ArgAction;
    use clap::error::{ContextKind, ContextValue, ErrorKind};

    use super::*;

    /// Values. Each option accepts at least one of them.
    const VALUES: &[&str] = &[
        "1",
        "0",
        "1000",
        "p0",
        "a=1",
        "x=0..1:1",
        "slice:1/2",
        "hits",
        "hits-changed=0",
        "corrections=0%",
        "127.0.0.1",
        "127.0.0.1:0",
        "0=1",
    ];

    /// Parses a command line whose first words are the names of the program and of the command.
    fn kind_of(command: &Command, words: &[String]) -> Result<(), clap::Error> {
        command.clone().try_get_matches_from(words).map(drop)
    }

    /// An option with a value that it accepts.
    fn typed(command: &Command, before: &[String], option: &Arg) -> Vec<String> {
        let name = format!("--{}", option.get_long().expect("a name"));
        if !option.get_action().takes_values() {
            return vec![name];
        }
        let known = option.get_possible_values().into_iter().map(|value| value.get_name().to_owned());
        let all: Vec<String> = VALUES.iter().map(|value| (*value).to_owned()).chain(known).collect();
        let accepted = all.into_iter().map(|value| vec![format!("{name}={value}")]).find(|words| {
            let refused = kind_of(command, &[before, words].concat()).err().map(|error| error.kind());
            !matches!(refused, Some(ErrorKind::InvalidValue | ErrorKind::ValueValidation))
        });
        accepted.unwrap_or_else(|| panic!("{before:?}: no value for {name}"))
    }

    /// The missing options that an error names.
    fn missing(error: &clap::Error) -> Vec<String> {
        match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(names)) => names.clone(),
            Some(ContextValue::String(name)) => vec![name.clone()],
            _ => Vec::new(),
        }
    }

    fn check(root: &Command, command: &Command, names: &[String], pairs: &mut u32) {
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            check(root, inner, &[names, &[inner.get_name().to_owned()]].concat(), pairs);
        }
        if command.get_subcommands().next().is_some() {
            return;
        }
        let is_needed = |arg: &&Arg| arg.is_positional() && arg.is_required_set();
        let shell = |arg: &Arg| arg.get_possible_values().first().map(|value| value.get_name().to_owned());
        let needed = command.get_arguments().filter(is_needed).map(|arg| shell(arg).unwrap_or("a".to_owned()));
        let mut before: Vec<String> = names.iter().cloned().chain(needed).collect();
        let of_several = |arg: &Arg| arg.get_num_args().is_some_and(|number| number.min_values() > 1);
        if command.get_arguments().any(|arg| arg.is_positional() && of_several(arg)) {
            before.push("b".to_owned());
        }
        let is_asking = |arg: &&Arg| {
            let is_flag = matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpLong | ArgAction::Version);
            arg.get_long().is_none() || is_flag
        };
        let options: Vec<&Arg> = command.get_arguments().filter(|arg| !is_asking(arg)).collect();
        for option in options.iter().filter(|option| option.is_required_set()) {
            let words = typed(root, &before, option);
            before.extend(words);
        }
        let options: Vec<(&Arg, Vec<String>)> = options
            .into_iter()
            .filter(|option| !option.is_required_set())
            .map(|option| (option, typed(root, &before, option)))
            .collect();
        for (option, words) in &options {
            let alone = [&before[..], words].concat();
            let Err(error) = kind_of(root, &alone) else { continue };
            assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument, "{alone:?}: {error}");
            // clap waives a requirement if the required option conflicts with a given one.
            for (other, more) in options.iter().filter(|(other, _)| other.get_id() != option.get_id()) {
                *pairs += 1;
                let name = format!("--{}", other.get_long().expect("a name"));
                let is_it = missing(&error).iter().any(|missing| missing.contains(&name));
                let both = [&alone[..], more].concat();
                assert!(is_it || kind_of(root, &both).is_err(), "{both:?}: an option without effect is accepted");
            }
        }
    }

    #[test]
    fn no_option_waives_the_requirement_of_another() {
        let mut root = Program::hitreg().command();
        root.build();
        let mut pairs = 0;
        check(&root, &root, &["hitreg".to_owned()], &mut pairs);
        assert!(pairs > 50, "only {pairs} pairs were checked");
    }
}

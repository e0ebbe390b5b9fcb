//! The command line: parses arguments, runs one subcommand per file, and returns exit codes.

mod bisect;
mod builds;
mod config;
mod corpus;
mod diff;
mod export;
mod import;
mod info;
mod keyframes;
mod live_log;
mod merge;
mod output;
mod process;
mod program;
mod progress;
mod quickstart;
mod record;
mod recover;
mod replay;
mod replay_args;
mod report;
mod selftest;
mod session_args;
mod settings;
mod shrink;
mod summary;
mod sweep;
mod trouble;
mod udp_session;
mod usage;
mod verify;
mod why;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};

pub use crate::engine::{Games, MapFile, RulesError};
pub use program::Program;

use crate::engine::EngineError;
use crate::game::Bots;
use crate::pipeline::Netcode;
use crate::report::{figures, page};
use crate::store;
use output::{Output, OutputFormat, OutputPath, Outputs};
use trouble::CommandError;

/// The outcome of a command, with its exit code. `git bisect run` skips 125 and stops at 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandOutcome {
    /// The command succeeded, or the compared runs are the same.
    Done = 0,
    /// The compared runs differ.
    Differs = 1,
    /// The input cannot be judged.
    Untestable = 125,
    /// The arguments are invalid, or an input cannot be read.
    Trouble = 128,
    /// The command was interrupted: 128 plus the number of SIGINT, as in shells.
    Interrupted = 130,
}

impl CommandOutcome {
    /// The outcome of a command with several parts.
    fn worst(of: &[CommandOutcome]) -> CommandOutcome {
        let rank = [CommandOutcome::Trouble, CommandOutcome::Differs, CommandOutcome::Untestable];
        rank.into_iter().find(|outcome| of.contains(outcome)).unwrap_or(CommandOutcome::Done)
    }
}

type CommandResult = Result<CommandOutcome, CommandError>;

/// Runs the command line of a build that plays one game: `fn main() -> ExitCode { hitreg::cli::main::<MyGame>() }`. The
/// program has the game's name; [`Program`] sets another name and a version.
pub fn main<G>() -> ExitCode
where
    G: Bots + Netcode,
    G::Rules: Default,
{
    Program::named(G::NAME).run(&Games::default().recording::<G>(|map| match map {
        None => Ok(G::Rules::default()),
        Some(map) => Err(format!("`{}` reads no map file: leave out --map {}", G::NAME, map.path).into()),
    }))
}

/// Runs the command line of `hitreg`, with its built-in games.
pub fn built_in() -> ExitCode {
    Program::hitreg().run(&crate::registry::built_in())
}

impl Program {
    /// Runs the command line of a build that plays these games, with the arguments of the process.
    pub fn run(self, games: &Games) -> ExitCode {
        ExitCode::from(self.run_args(games, std::env::args_os()))
    }

    /// Runs one command line, whose first argument is the program's name. Returns the exit code: 0 done or the same, 1
    /// differs, 125 cannot be judged, 128 trouble, 130 interrupted.
    pub fn run_args(self, games: &Games, args: impl IntoIterator<Item = OsString>) -> u8 {
        outcome_of(self, games, args.into_iter().collect()) as u8
    }
}

#[derive(Parser)]
#[command(
    name = "hitreg",
    version,
    about = "Records, replays, compares and explains the netcode of action games",
    long_about = LONG_ABOUT,
    after_help = EXIT_CODES,
    max_term_width = 80,
    arg_required_else_help = true
)]
struct Cli {
    /// Output format; with `json`, stdout has only JSON
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "text",
        value_name = "text|json",
        hide_possible_values = true,
        help_heading = GLOBAL
    )]
    format: OutputFormat,
    /// When to colour output; `auto` colours on terminals, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "auto|always|never",
        hide_possible_values = true,
        help_heading = GLOBAL
    )]
    color: Color,
    /// File with default options; `none` reads no file [default: hitreg.toml in this folder, or in the nearest above
    /// it]
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    config: Option<PathBuf>,
    /// Overwrite existing files; `diff`, `bisect` and `report`: also compare files of different sessions
    #[arg(long, global = true, help_heading = GLOBAL)]
    force: bool,
    #[command(subcommand)]
    command: CliCommand,
}

/// The heading of the options that most commands share.
const GLOBAL: &str = "Global options";

const LONG_ABOUT: &str = "\
Records sessions of action games: usercmds, snapshots and latencies. Replays them bit for bit through the server and \
client pipelines. Shows prediction errors, interpolation errors and hits, and what changed between two builds.

New here? `hitreg quickstart` records a fight between four bots and replays it. It checks that the replay is identical, \
and shows which hits depend on lag compensation.";

const EXIT_CODES: &str = "\
Exit codes: 0 done, or same; 1 something differs; 125 cannot be judged;
128 trouble (bad usage, unreadable input); 130 interrupted.
`git bisect run` skips 125 and stops at 128.";

#[derive(Subcommand)]
enum CliCommand {
    Quickstart(quickstart::Args),
    #[command(subcommand)]
    Record(record::RecordCommand),
    Serve(udp_session::ServeArgs),
    Join(udp_session::JoinArgs),
    Merge(merge::Args),
    #[command(subcommand)]
    Import(import::ImportFormat),
    Info(info::Args),
    Replay(replay::Args),
    Verify(verify::Args),
    Review(verify::ReviewArgs),
    Summary(summary::Args),
    Diff(Box<diff::Args>),
    #[command(subcommand)]
    Bisect(bisect::BisectCommand),
    Shrink(Box<shrink::Args>),
    Check(builds::Args),
    Sweep(sweep::Args),
    Why(why::Args),
    Report(Box<report::Args>),
    Soak(selftest::SoakArgs),
    Claims(selftest::ClaimsArgs),
    Step(bisect::StepArgs),
    Export(export::Args),
    Recover(recover::Args),
    Keyframes(keyframes::Args),
    Settings(settings::Args),
    Completions(program::CompletionsArgs),
    Man(program::ManArgs),
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Color {
    /// On terminals, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Sets the color choice for all later output.
    fn take_effect(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// Runs one command line, and reports an error.
fn outcome_of(build: Program, games: &Games, args: Vec<OsString>) -> CommandOutcome {
    run_line(build, games, args).unwrap_or_else(|trouble| {
        trouble.print();
        trouble.outcome()
    })
}

fn run_line(build: Program, games: &Games, args: Vec<OsString>) -> CommandResult {
    let program = args.first().map(|arg| usage::as_typed(arg)).unwrap_or_default();
    let mut command = build.command();
    let typed_args = args.clone();
    let args = usage::with_chosen_subcommand(args)?;
    let defaults = config::defaults(&command, &args)?;
    let args_with_defaults = config::with_words(&args, defaults.as_ref().map_or(&[], |defaults| &defaults.options));
    let parsed = command.try_get_matches_from_mut(args_with_defaults);
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        // Requested help is a success; help because of missing arguments is an error.
        Err(usage) => {
            let usage = usage::with_tips(usage, &command, &typed_args);
            usage.print()?;
            if !usage.use_stderr() {
                return Ok(CommandOutcome::Done);
            }
            if let Some(defaults) = &defaults {
                defaults.print_note();
            }
            return Ok(CommandOutcome::Trouble);
        }
    };
    cli.color.take_effect();
    let options = defaults.iter().flat_map(|defaults| &defaults.options).filter(|option| !option.is_typed);
    let options = options.map(|option| option.name.clone()).collect();
    let mut output = Output::stdout(cli.format, Outputs::of(&command, &matches, cli.force, options));
    process::leave_nothing()?;
    process::start_threads()?;
    let games = games.clone().within(store::memory_limit()?);
    let outcome = match run_command(build, &games, cli.command, &program, &mut output) {
        Err(CommandError::Engine(EngineError::Missing(missing))) => diff::show_missing(&missing, &mut output),
        outcome => outcome,
    };
    // A log that changes during the command can fail in any way. The change is the reason.
    if outcome.as_ref().is_err_and(|error| error.outcome() == CommandOutcome::Trouble) {
        output.files.check_inputs()?;
    }
    match (outcome, &defaults) {
        (Err(trouble), Some(defaults)) => {
            trouble.print();
            defaults.print_note_on(&trouble);
            Ok(trouble.outcome())
        }
        (outcome, _) => {
            let outcome = outcome?;
            output.finish()?;
            Ok(outcome)
        }
    }
}

fn run_command(
    build: Program,
    games: &Games,
    command: CliCommand,
    program: &str,
    output: &mut Output,
) -> CommandResult {
    match command {
        CliCommand::Quickstart(args) => quickstart::run(games, &args, program, output),
        CliCommand::Record(args) => record::run(games, &args, output),
        CliCommand::Serve(args) => udp_session::run_serve(games, &args, output),
        CliCommand::Join(args) => udp_session::run_join(games, &args, output),
        CliCommand::Merge(args) => merge::run(games, &args, output),
        CliCommand::Import(args) => import::run(&args, output),
        CliCommand::Info(args) => info::run(games, &args, output),
        CliCommand::Replay(args) => replay::run(games, &args, program, output),
        CliCommand::Verify(args) => verify::run(games, &args, program, output),
        CliCommand::Review(args) => verify::run_review(&args, output),
        CliCommand::Summary(args) => summary::run(&args, output),
        CliCommand::Diff(args) => diff::run(games, &args, program, output),
        CliCommand::Check(args) => builds::run(games, &args, output),
        CliCommand::Bisect(args) => bisect::run(games, &args, output),
        CliCommand::Shrink(args) => shrink::run(games, &args, output),
        CliCommand::Sweep(args) => sweep::run(games, &args, output),
        CliCommand::Why(args) => why::run(games, &args, program, output),
        CliCommand::Report(args) => report::run(games, &args, output),
        CliCommand::Soak(args) => selftest::run_soak(&args, output),
        CliCommand::Claims(args) => selftest::run_claims(&args, output),
        CliCommand::Step(args) => bisect::run_step(games, &args, output),
        CliCommand::Export(args) => export::run(games, &args, output),
        CliCommand::Recover(args) => recover::run(&args, output),
        CliCommand::Keyframes(args) => keyframes::run(games, &args, output),
        CliCommand::Settings(args) => settings::run(&args, output),
        CliCommand::Completions(args) => program::run_completions(build, &args, output),
        CliCommand::Man(args) => program::run_man(build, &args, output),
    }
}

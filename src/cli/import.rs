//! `hitreg import`: turns recordings of real games into logs. Each format is an entry of a table and a file beside this
//! one.

mod quake3;
mod qwd;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, Error, FromArgMatches};

use super::CommandOutcome;
use super::output::Output;
use super::trouble::CommandError;

/// A format of recordings.
struct ImportFormat {
    name: &'static str,
    /// Adds the format's arguments and help.
    arguments: fn(Command) -> Command,
    run: fn(&ArgMatches, &mut Output) -> Result<CommandOutcome, CommandError>,
}

/// The supported formats. Each has its arguments and its code in its own file.
const FORMATS: &[ImportFormat] = &[
    ImportFormat {
        name: "qwd",
        arguments: <qwd::Args as clap::Args>::augment_args,
        run: |matches, output| qwd::run(&given(matches)?, output),
    },
    ImportFormat {
        name: "quake3-udp",
        arguments: <quake3::UdpArgs as clap::Args>::augment_args,
        run: |matches, output| quake3::run_udp(&given(matches)?, output),
    },
    ImportFormat {
        name: "quake3-demo",
        arguments: <quake3::DemoArgs as clap::Args>::augment_args,
        run: |matches, output| quake3::run_demo(&given(matches)?, output),
    },
];

/// The requested format with its arguments.
pub(super) struct Args {
    format: &'static ImportFormat,
    matches: ArgMatches,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Result<CommandOutcome, CommandError> {
    (args.format.run)(&args.matches, output)
}

fn given<A: FromArgMatches>(matches: &ArgMatches) -> Result<A, CommandError> {
    A::from_arg_matches(matches).map_err(|error| CommandError::Request(error.to_string()))
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Args, Error> {
        let chosen = matches.subcommand().and_then(|(name, matches)| {
            let format = FORMATS.iter().find(|format| format.name == name)?;
            Some(Args { format, matches: matches.clone() })
        });
        chosen.ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Args::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        let formats = FORMATS.iter().map(|format| (format.arguments)(Command::new(format.name)));
        let about = "Convert a recording of a real game to a log";
        command.about(about).subcommand_required(true).arg_required_else_help(true).subcommands(formats)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Args::augment_args(command)
    }
}

//! `hitreg import`: recordings of real games become logs.

#[cfg(feature = "quake3")]
mod quake3_udp;
#[cfg(feature = "quakeworld")]
mod qwd;

use super::Outcome;
use super::output::Output;
use super::trouble::Trouble;

/// Turn a real game's recording into a log
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    format: Format,
}

#[derive(clap::Subcommand)]
enum Format {
    #[cfg(feature = "quakeworld")]
    Qwd(qwd::Args),
    #[cfg(feature = "quake3")]
    Quake3Udp(quake3_udp::Args),
}

pub(super) fn run(args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    match &args.format {
        #[cfg(feature = "quakeworld")]
        Format::Qwd(args) => qwd::run(args, output),
        #[cfg(feature = "quake3")]
        Format::Quake3Udp(args) => quake3_udp::run(args, output),
    }
}

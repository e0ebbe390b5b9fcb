//! `hitreg import`: turns recordings of real games into logs. Each format has a file beside this one.

mod quake3;
mod qwd;

use super::CommandResult;
use super::output::Output;

/// Convert a recording of a real game to a log
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    format: ImportFormat,
}

#[derive(clap::Subcommand)]
enum ImportFormat {
    Qwd(qwd::Args),
    Quake3Udp(quake3::UdpArgs),
    Quake3Demo(quake3::DemoArgs),
}

pub(super) fn run(args: &Args, output: &mut Output) -> CommandResult {
    match &args.format {
        ImportFormat::Qwd(args) => qwd::run(args, output),
        ImportFormat::Quake3Udp(args) => quake3::run_udp(args, output),
        ImportFormat::Quake3Demo(args) => quake3::run_demo(args, output),
    }
}

/// The warning about bytes after the end of a recording.
fn rest_of_file(offset: u64) -> String {
    format!("the demo ends at byte {offset}: what follows, such as a second demo, was not imported")
}

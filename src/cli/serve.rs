//! `hitreg serve`: runs a server over UDP, and records the server's side of the session to a log.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::CommandResult;
use super::builds::parse_seconds;
use super::figures::{bytes, count};
use super::finished_log::{FinishedLog, HostedReport, avatars};
use super::interrupt::stop_on_signal;
use super::into_log::LogSink;
use super::output::Output;
use super::outputs::OutputPath;
use super::page::Page;
use super::session_args::SessionArgs;
use crate::engine::Games;
use crate::live::{GrantLimits, ServeOptions};
use crate::settings::Settings;
use crate::store::FileType;
use crate::units::{Hz, Micros};

/// The default port. QuakeWorld servers use 27500, too.
pub(super) const PORT: u16 = 27_500;

/// Run a server over UDP for clients that `join`, and record its side
///
/// The server waits until all players have joined, and then plays for the given time, or until all players have left.
/// --wait limits the wait. It records the received packets
/// and the resulting states, by its own clock. Each client records its own side. `hitreg merge` merges the logs into
/// one, which replays bit for bit. The links of a scenario are ignored here; `join` can impair its own connection.
///
/// Ctrl-C, SIGTERM and SIGHUP end the session early, with a complete log. A killed server leaves all but its last
/// second in LOG.part; `hitreg recover LOG.part` turns it into LOG.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg serve -o server.hitlog --players 2 --seconds 60
  hitreg join localhost -o one.hitlog         in a second terminal, or elsewhere
  hitreg join localhost -o two.hitlog         in a third
  hitreg merge server.hitlog one.hitlog two.hitlog -o duel.hitlog
  hitreg verify duel.hitlog")]
pub(super) struct Args {
    /// The server's log to write
    #[arg(short, long, value_name = "LOG")]
    output: OutputPath,
    /// The UDP port; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// The address to listen on; 127.0.0.1 accepts only this machine
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    bind: IpAddr,
    /// Give up if not all players are ready after this time [default: wait without limit]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    wait: Option<Duration>,
    /// Upper limit of snapshots per second to each client [default: one per tick]
    #[arg(long, value_name = "HZ", value_parser = parse_hz)]
    max_update_hz: Option<Hz>,
    /// Upper limit of bytes per second to each client [default: the client's request]
    #[arg(long, value_name = "BYTES", value_parser = parse_rate)]
    max_rate: Option<i64>,
    #[command(flatten)]
    session: SessionArgs,
}

/// Parses a limit on `server.update_hz`, which has the bounds of that setting.
fn parse_hz(text: &str) -> Result<Hz, String> {
    parse_limit("server.update_hz", text).map(|settings| settings.server.update_hz)
}

/// Parses a limit on `server.rate_bytes_per_s`, which has the bounds of that setting.
fn parse_rate(text: &str) -> Result<i64, String> {
    parse_limit("server.rate_bytes_per_s", text).map(|settings| settings.server.rate_bytes_per_s)
}

fn parse_limit(key: &str, text: &str) -> Result<Settings, String> {
    let mut settings = Settings::default();
    settings.set(key, text).map_err(|error| error.to_string())?;
    Ok(settings)
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Log)?;
    let scenario = args.session.scenario()?;
    let ready = args.session.set_up(games, &scenario)?;
    let header = ready.live_header()?;
    let stop = stop_on_signal()?;
    let mut sink = LogSink::new(target, "serving", scenario.length())?;
    let limits = GrantLimits { update_hz: args.max_update_hz, rate_bytes_per_s: args.max_rate };
    let wait = args.wait.map(|wait| Micros(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)));
    let options = ServeOptions { address: SocketAddr::new(args.bind, args.port), limits, wait };
    let ran = ready.serve(options, &stop, &mut sink);
    let span = sink.finish(ran.is_ok())?;
    let served = HostedReport::new(&args.output, header, FinishedLog::new(&args.output, span, &stop, ran?));
    output.show(&served, |page| print(page, &served))
}

fn print(page: &mut Page, served: &HostedReport) {
    served.print(page);
    if let Some(server) = &served.kept.figures.server {
        page.pair("received", &format!("{} packets; {} refused", count(server.received), count(server.refused)));
        page.pair("avatars", &avatars(&server.perceived));
        page.pair("sent", &served.kept.sent(&server.sent));
    }
    page.pair("size", &bytes(served.kept.size_bytes));
}

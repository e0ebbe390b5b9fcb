//! `hitreg record proxy`: relays the traffic between real clients and a real server, and records it to a log.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::CommandResult;
use super::figures::{bytes, count, counted, share};
use super::finished_log::FinishedLog;
use super::interrupt::stop_on_signal;
use super::into_log::LogSink;
use super::output::Output;
use super::outputs::OutputPath;
use super::page::{Page, UNSURE};
use super::session_args::{parse_number_of_seconds, parse_share};
use super::trouble::CommandError;
use crate::link::{Jitter, LinkModel, Loss};
use crate::live::{ForwardedTraffic, ProxyOptions, ProxyReport, proxy, resolve};
use crate::protocols::{listener, protocols};
use crate::store::FileType;
use crate::units::{Micros, Seed};

/// Record a real server and its clients, as a proxy between them
///
/// Clients connect to the proxy instead of the server. The proxy forwards each datagram unchanged: at once, or delayed
/// and lost as requested. It records usercmds, packets, snapshots, states and hits, with the time when each datagram
/// arrived and left. Datagrams that it cannot decode are forwarded and counted. Names and chat are left out of the log.
///
/// The log begins when the first client enters a level, so start the proxy before clients connect. Ctrl-C, SIGTERM and
/// SIGHUP end the recording with a complete log.
#[derive(clap::Args)]
#[command(
    override_usage = "hitreg record proxy [OPTIONS] --protocol <NAME> --listen <ADDR:PORT>\n       --upstream <HOST:PORT> --output <LOG>",
    after_long_help = "\
Examples:
  hitreg record proxy --protocol quake3 --listen 127.0.0.1:27970 \\
      --upstream 127.0.0.1:27960 -o duel.hitlog
  hitreg record proxy --protocol quake3 --listen 0.0.0.0:27970 \\
      --upstream game.example:27960 --map pak1-maps.pk3 \\
      --delay-ms 50 --loss 2% -o far.hitlog"
)]
pub(super) struct Args {
    /// The network protocol of the game
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(protocols()))]
    protocol: String,
    /// The address that clients connect to
    #[arg(long, value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// The server's address
    #[arg(long, value_name = "HOST:PORT")]
    upstream: String,
    /// The map that will be played: a .bsp, or a .pk3 that contains it. Without a map, predictions cannot be checked
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Stop so many seconds after the first client enters a level
    #[arg(long, value_name = "S", value_parser = parse_number_of_seconds)]
    seconds: Option<f64>,
    /// Random seed of jitter, loss and reordering [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Added delay per datagram, each way
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    delay_ms: f64,
    /// Average additional delay of a packet (exponential); those behind it wait
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    jitter_ms: f64,
    /// Share of datagrams lost, as 2% or 0.02
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "0")]
    loss: f64,
    /// Share of datagrams delayed by 20 ms, so that later ones overtake them
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "0")]
    reorder: f64,
    /// The log to write
    #[arg(short, long, value_name = "LOG")]
    output: OutputPath,
}

#[derive(Serialize)]
struct ProxySummary {
    path: String,
    #[serde(flatten)]
    kept: FinishedLog<ProxyReport>,
}

pub(super) fn run(args: &Args, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Log)?;
    let options = args.options(output)?;
    let unknown = || CommandError::request(format!("no protocol is called `{}`", args.protocol));
    let mut listener = listener(&args.protocol, args.map.as_deref()).ok_or_else(unknown)??;
    let stop = stop_on_signal()?;
    let mut sink = LogSink::new(target, "recording", options.length.unwrap_or(Micros::ZERO))?;
    let ran = proxy(&options, &mut *listener, &stop, &mut sink);
    let span = sink.finish(ran.is_ok())?;
    let passed = ran?;
    if passed.heard.players == 0 {
        return Err(CommandError::Request(nobody(&passed)));
    }
    let proxied = ProxySummary {
        path: args.output.display().to_string(),
        kept: FinishedLog::new(&args.output, span, &stop, passed),
    };
    output.show(&proxied, |page| proxied.print(page))
}

fn nobody(passed: &ProxyReport) -> String {
    match passed.up.datagrams {
        0 => "no client connected: connect clients to the address of --listen, not to the server".to_owned(),
        up if passed.down.datagrams == 0 => {
            format!("the server answered none of {} from clients: check --upstream", counted(up, "datagram"))
        }
        up => format!(
            "no client entered a level in {}: start the proxy before clients connect",
            counted(up + passed.down.datagrams, "datagram")
        ),
    }
}

impl Args {
    fn options(&self, output: &Output) -> Result<ProxyOptions, CommandError> {
        let is_random = [self.jitter_ms, self.loss, self.reorder].into_iter().any(|amount| amount != 0.0);
        if output.is_typed("seed", self.seed.is_some()) && !is_random {
            let what = "--seed has no effect without --jitter-ms, --loss or --reorder: add one, or leave it out";
            return Err(CommandError::request(what));
        }
        let length = match self.seconds {
            Some(seconds) if seconds > 0.0 && seconds <= 1e7 => Some(Micros((seconds * 1e6) as i64)),
            Some(seconds) => {
                return Err(CommandError::request(format!(
                    "--seconds {seconds}: write a number above 0, up to 10000000"
                )));
            }
            None => None,
        };
        let upstream = resolve(&self.upstream)?;
        if upstream == self.listen {
            return Err(CommandError::request("--upstream is the address of --listen: give the server's address"));
        }
        Ok(ProxyOptions {
            listen: self.listen,
            upstream,
            link: LinkModel {
                delay_ms: self.delay_ms,
                jitter: if self.jitter_ms == 0.0 { Jitter::None } else { Jitter::Exponential(self.jitter_ms) },
                loss: if self.loss == 0.0 { Loss::None } else { Loss::Random(self.loss) },
                reorder: self.reorder,
                ..LinkModel::default()
            },
            seed: Seed(self.seed.unwrap_or(1)),
            length,
        })
    }
}

impl ProxySummary {
    fn print(&self, page: &mut Page) {
        let ProxyReport { heard, clients, up, down, lost_on_purpose, unrecorded, refused, at_once, added, warning } =
            &self.kept.figures;
        page.heading(&self.path);
        if let Some(warning) = warning {
            page.marked(2, UNSURE, warning);
        }
        let players = counted(heard.players, "player");
        let duration = self.kept.duration("ended");
        page.pair("duration", &format!("{duration}, {players} of {}", counted(*clients, "connection")));
        let passed = |traffic: &ForwardedTraffic| {
            format!(
                "{} datagrams, {}; {} forwarded",
                count(traffic.datagrams),
                bytes(traffic.bytes),
                share(traffic.forwarded, traffic.datagrams)
            )
        };
        page.pair("clients sent", &passed(up));
        page.pair("server sent", &passed(down));
        if *lost_on_purpose > 0 {
            page.pair("lost", &format!("{}, as requested with --loss", count(*lost_on_purpose)));
        }
        if let Some(added) = added {
            let ms = |us: u32| f64::from(us) / 1e3;
            page.pair(
                "late",
                &format!(
                    "p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms beyond the requested delay{}",
                    ms(added.p50_us),
                    ms(added.p99_us),
                    ms(added.max_us),
                    if *at_once { "" } else { "; this user may not run threads with real-time priority" }
                ),
            );
        }
        if heard.undecoded > 0 {
            let undecoded =
                format!("{} ({}), forwarded anyway", count(heard.undecoded), share(heard.undecoded, heard.datagrams));
            page.styled(UNSURE, &format!("  not decoded: {undecoded}"));
        }
        if heard.after_level > 0 {
            let what = "of clients that had left the level are not recorded";
            page.styled(UNSURE, &format!("  {} {what}", count(heard.after_level)));
        }
        if unrecorded + refused > 0 {
            page.styled(
                UNSURE,
                &format!("  {} not recorded, {} not forwarded: too many at once", count(*unrecorded), count(*refused)),
            );
        }
        let holds = format!(
            "{} usercmds, {} snapshots in {}",
            count(heard.usercmds),
            count(heard.snapshots),
            bytes(self.kept.size_bytes)
        );
        page.pair("holds", &holds);
    }
}

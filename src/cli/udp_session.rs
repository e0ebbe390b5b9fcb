//! `hitreg serve` and `hitreg join`: play a session over UDP, and record one side of it to a log.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::Serialize;

use super::builds::parse_seconds;
use super::figures::count;
use super::live_log::{FinishedLog, HostedReport, LogSink, avatars};
use super::page::Page;
use super::process::stop_on_signal;
use super::replay_args::offered_settings;
use super::session_args::{GameArgs, LinkArgs, PacketFaultArgs, SessionArgs};
use super::{CommandError, CommandResult, Output, OutputPath};
use crate::engine::Games;
use crate::link::LinkModel;
use crate::live::{self, GrantLimits, JoinOptions, Notice, OwnSettings, RequestKind, ServeOptions};
use crate::settings::{SettingError, Settings};
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
pub(super) struct ServeArgs {
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

pub(super) fn run_serve(games: &Games, args: &ServeArgs, output: &mut Output) -> CommandResult {
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
    let served = HostedReport::new(&args.output, &header, FinishedLog::new(&args.output, span, &stop, ran?));
    output.show(&served, |page| print_served(page, &served))
}

fn print_served(page: &mut Page, served: &HostedReport) {
    served.print(page);
    if let Some(server) = &served.kept.figures.server {
        page.pair("received", &format!("{} packets; {} refused", count(server.received), count(server.refused)));
        page.pair("avatars", &avatars(&server.perceived));
        page.pair("sent", &served.kept.sent(&server.sent));
    }
    page.pair("size", &served.kept.size_bytes.to_string());
}

/// Join a server over UDP with a bot, and record its side
///
/// The server sends the settings, seed, length and map name; both sides need the map. The client records its usercmds
/// and the packets that it received, by its own clock. `hitreg merge` merges the logs of all sides. A client's log also
/// replays alone, open loop: its own prediction and interpolation on the received snapshots.
///
/// Options such as --delay-ms and --loss impair the connection in both directions, so a server on the same machine
/// behaves like a distant one.
///
/// Ctrl-C, SIGTERM and SIGHUP leave the session. The log is complete then, and also if the server stops answering.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg join localhost -o one.hitlog
  hitreg join 192.0.2.7:27500 -o two.hitlog
  hitreg join localhost -o slow.hitlog --update-hz 20 --rate 5000
  hitreg join localhost -o far.hitlog --delay-ms 80 --jitter-ms 15 \\
      --loss 3% --reorder 2%
  hitreg replay far.hitlog                    this client alone, open loop")]
pub(super) struct JoinArgs {
    /// The server's name or address [default port: 27500]
    #[arg(value_name = "HOST[:PORT]")]
    server: String,
    /// The client's log to write
    #[arg(short, long, value_name = "LOG")]
    output: OutputPath,
    #[command(flatten)]
    game: GameArgs,
    /// Added delay per packet, each way [default: 0]
    #[arg(long, value_name = "MS")]
    delay_ms: Option<f64>,
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    faults: PacketFaultArgs,
    #[command(flatten)]
    wants: RequestedSettingsArgs,
    /// Send this chat message to all players when the session begins; repeatable
    #[arg(long, value_name = "TEXT")]
    say: Vec<String>,
    /// Let the avatar say this, in character; repeatable
    #[arg(long, value_name = "TEXT")]
    speak: Vec<String>,
}

/// What the client asks to have for itself. The server grants it within its own limits.
#[derive(clap::Args)]
struct RequestedSettingsArgs {
    /// Request this many snapshots per second [default: the server's rate]
    #[arg(long, value_name = "HZ")]
    update_hz: Option<String>,
    /// Request at most this many bytes per second
    #[arg(long, value_name = "BYTES")]
    rate: Option<String>,
    /// Draw other players this far behind the client's clock
    #[arg(long, value_name = "MS")]
    lerp_ms: Option<String>,
    /// Request another setting for this client, such as client.cmd_hz=30; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = offered_settings(), hide_possible_values = true)]
    set: Vec<String>,
}

/// The result of the recording.
#[derive(Serialize)]
struct JoinReport {
    path: String,
    /// The server's address.
    address: String,
    player: Option<u16>,
    /// The client's own settings, as requested and as granted.
    granted: Vec<GrantedSetting>,
    #[serde(flatten)]
    kept: FinishedLog,
    /// The number of client requests that the server answered.
    answered: usize,
    /// Messages in the session. They are not in the log.
    heard: Vec<ChatLine>,
}

/// A setting that the client requested for itself.
#[derive(Serialize)]
struct GrantedSetting {
    key: String,
    asked: String,
    /// The granted value; `None` if the common setting applies.
    granted: Option<String>,
}

/// A message in the session.
#[derive(Serialize)]
struct ChatLine {
    /// The sender; `None` for the server.
    player: Option<u16>,
    in_character: bool,
    text: String,
}

pub(super) fn run_join(games: &Games, args: &JoinArgs, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Log)?;
    let server = live::resolve(&with_port(&args.server))?;
    let is_impaired = args.delay_ms.is_some() || args.link.are_given() || args.faults.are_given();
    let link = is_impaired.then(|| {
        let delayed = LinkModel { delay_ms: args.delay_ms.unwrap_or_default(), ..LinkModel::default() };
        args.faults.impaired(args.link.impaired(delayed))
    });
    if let Some(link) = &link {
        link.check().map_err(CommandError::request)?;
    }
    let own = args.wants.pairs(output)?;
    let stop = stop_on_signal()?;
    let mut sink = LogSink::new(target, "playing", Micros::ZERO)?;
    let requests = args.requests();
    let joining = JoinOptions { server, link: link.as_ref(), own: &own, requests: &requests, stop: &stop };
    let ran = args.game.with_map(games, |game, map| game.join(map, &joining, &mut sink));
    let span = sink.finish(ran.is_ok())?;
    let joined = ran?;
    let granted = |(key, asked): (String, String)| {
        let granted = joined.granted.iter().find(|(granted, _)| *granted == key).map(|(_, value)| value.clone());
        GrantedSetting { key, asked, granted }
    };
    let recorded = JoinReport {
        path: args.output.display().to_string(),
        address: server.to_string(),
        player: joined.player.map(|player| player.0),
        granted: own.into_iter().map(granted).collect(),
        kept: FinishedLog::new(&args.output, span, &stop, joined.report),
        answered: joined.heard.iter().filter(|notice| matches!(notice, Notice::RequestAck { .. })).count(),
        heard: joined.heard.into_iter().filter_map(ChatLine::of).collect(),
    };
    output.show(&recorded, |page| recorded.print(page))
}

/// Adds the default port to a name without one. An IPv6 address with a port is in brackets.
fn with_port(server: &str) -> String {
    let is_bare_ipv6 = server.parse::<std::net::Ipv6Addr>().is_ok();
    match (is_bare_ipv6, server.rsplit_once(':')) {
        (true, _) => format!("[{server}]:{PORT}"),
        (false, Some((_, port))) if !port.ends_with(']') => server.to_owned(),
        (false, _) => format!("{server}:{PORT}"),
    }
}

impl JoinArgs {
    fn requests(&self) -> Vec<RequestKind> {
        let say = |text: &String| RequestKind::ChatOoc { channel: 0, text: text.clone() };
        let speak = |text: &String| RequestKind::ChatIc { style: 0, language: 0, text: text.clone() };
        self.say.iter().map(say).chain(self.speak.iter().map(speak)).collect()
    }
}

impl ChatLine {
    fn of(notice: Notice) -> Option<ChatLine> {
        match notice {
            Notice::RequestAck { .. } => None,
            Notice::ChatOoc { sender, text, .. } => {
                Some(ChatLine { player: sender.checked_sub(1), in_character: false, text })
            }
            Notice::ChatIc { entity, text, .. } => Some(ChatLine { player: Some(entity.0), in_character: true, text }),
        }
    }
}

impl RequestedSettingsArgs {
    /// The requested settings. An option and `--set` may not request the same one, unless the config file gave either.
    fn pairs(&self, output: &Output) -> Result<OwnSettings, CommandError> {
        let of_pair = |text: &String| {
            Settings::default().set_pair(text)?;
            Settings::pair(text).map(|(key, value)| (key.to_owned(), value.to_owned()))
        };
        let mut set = self.set.iter().map(of_pair).collect::<Result<OwnSettings, SettingError>>()?;
        let mut own = OwnSettings::new();
        for (option, key, value) in [
            ("update-hz", "server.update_hz", &self.update_hz),
            ("rate", "server.rate_bytes_per_s", &self.rate),
            ("lerp-ms", "interpolation.lerp_ms", &self.lerp_ms),
        ] {
            let Some(value) = value else { continue };
            if set.iter().any(|(other, _)| other == key) {
                match (output.files.is_by_default(option), output.files.is_by_default("set")) {
                    (true, false) => continue,
                    (false, true) => set.retain(|(other, _)| other != key),
                    _ => {
                        let what = format!("--{option} and --set {key} request the same setting: leave one out");
                        return Err(CommandError::request(what));
                    }
                }
            }
            own.push((key.to_owned(), value.clone()));
        }
        own.append(&mut set);
        Ok(own)
    }
}

impl JoinReport {
    fn print(&self, page: &mut Page) {
        page.heading(&self.path);
        let player = self.player.map_or("no player".to_owned(), |player| format!("player {player}"));
        page.pair("session", &format!("{player} on the server at {}", self.address));
        for GrantedSetting { key, asked, granted } in &self.granted {
            let text = match granted {
                Some(granted) if granted == asked => format!("{key} {granted}"),
                Some(granted) => format!("{key} {granted} (requested {asked})"),
                None => format!("{key} {asked} refused: the common value applies"),
            };
            page.pair("granted", &text);
        }
        page.pair("duration", &self.kept.duration("left"));
        if let Some(client) = &self.kept.figures.clients {
            page.pair("sent", &self.kept.sent(&client.sent));
            let [snapshots, repeated] = [client.snapshots, client.repeated].map(count);
            page.pair("received", &format!("{snapshots} snapshots, {repeated} duplicates"));
            if client.undecodable + client.refused > 0 {
                let [late, refused] = [client.undecodable, client.refused].map(count);
                page.pair("dropped", &format!("{late} late snapshots, {refused} other datagrams"));
            }
        }
        page.pair("holds", &self.kept.holds());
        for line in &self.heard {
            let who = line.player.map_or("the server".to_owned(), |player| format!("player {player}"));
            let how = if line.in_character { "as its avatar: " } else { "" };
            page.pair("heard", &format!("{who}, {how}{}", line.text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_port_has_the_usual_one() {
        let cases = [
            ("localhost", "localhost:27500"),
            ("localhost:9", "localhost:9"),
            ("192.0.2.7", "192.0.2.7:27500"),
            ("::1", "[::1]:27500"),
            ("[::1]", "[::1]:27500"),
            ("[::1]:9", "[::1]:9"),
        ];
        for (given, meant) in cases {
            assert_eq!(with_port(given), meant);
        }
    }
}

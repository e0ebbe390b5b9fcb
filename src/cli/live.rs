//! `hitreg record live`: a server and bots over real UDP, in real time, become a log.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use serde::Serialize;

use super::figures::{bytes, count, counted, duration, share};
use super::games::Games;
use super::into_log::{IntoLog, stop_at_ctrl_c};
use super::output::Output;
use super::page::Page;
use super::record::SynthArgs;
use super::session_args::parse_share;
use super::trouble::Trouble;
use super::{Outcome, files};
use crate::link::LinkModel;
use crate::live::{Lateness, LiveReport, Perception, Snapshots, Traffic};
use crate::session::scenario::Scenario;
use crate::units::Micros;

pub(super) const ABOUT: &str = "Record bots over real UDP on this machine, in real time";

pub(super) const LONG_ABOUT: &str = "\
Record bots over real UDP on this machine, in real time

A server and a client for each bot run with sockets, threads and clocks of their own; between the sockets datagrams are \
delayed, lost, overtaken and doubled as asked. The log replays bit for bit all the same: `hitreg verify LOG` proves it.

Ctrl-C ends the session early, with a whole log. A recording that is killed leaves all but its last second in LOG.part, \
which `hitreg recover` makes a log of.";

pub(super) const EXAMPLES: &str = "\
Examples:
  hitreg record live -o duel.hitlog --players 2 --seconds 60
  hitreg record live -o far.hitlog --players 8 --seconds 30 --delay-ms 80 \\
      --jitter-ms 15 --loss 3% --reorder 2%
  hitreg verify far.hitlog";

/// How long an overtaken datagram is held back when no scenario says it, in ms.
pub(super) const REORDER_MS: f64 = 20.0;

#[derive(clap::Args)]
pub(super) struct LiveArgs {
    #[command(flatten)]
    session: SynthArgs,
    /// The share of packets that later ones overtake, by 20 ms [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    reorder: Option<f64>,
    /// The share of packets that arrive twice [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    duplicate: Option<f64>,
    /// The server's UDP port on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

/// What was recorded.
#[derive(Serialize)]
struct Recorded {
    path: PathBuf,
    game: String,
    map: String,
    players: usize,
    duration_us: i64,
    interrupted: bool,
    size_bytes: u64,
    #[serde(flatten)]
    live: LiveReport,
}

pub(super) fn run(games: &Games, args: &LiveArgs, output: &mut Output) -> Result<Outcome, Trouble> {
    let scenario = args.scenario()?;
    let staged = args.session.session.stage(games, &scenario)?;
    let header = staged.live_header()?;
    let stop = stop_at_ctrl_c()?;
    let path = &args.session.output;
    let mut keeper = IntoLog::new(path, "recording live", Micros((scenario.seconds * 1e6) as i64));
    let ran = staged.run_live(args.port, &stop, &mut keeper);
    let span = keeper.finish(ran.is_ok())?;
    let recorded = Recorded {
        path: path.clone(),
        game: header.game,
        map: header.map,
        players: header.players.len(),
        duration_us: span.map_or(0, |(first, last)| (last - first).0),
        interrupted: stop.load(Ordering::Relaxed),
        size_bytes: files::size_bytes(path),
        live: ran?,
    };
    output.show(&recorded, |page| recorded.print(page))?;
    Ok(Outcome::Done)
}

impl LiveArgs {
    fn scenario(&self) -> Result<Scenario, Trouble> {
        let mut scenario = self.session.scenario()?;
        scenario.change_links(|link| self.impaired(link));
        scenario.check()?;
        Ok(scenario)
    }

    fn impaired(&self, link: LinkModel) -> LinkModel {
        LinkModel {
            reorder: self.reorder.unwrap_or(link.reorder),
            reorder_ms: if link.reorder_ms > 0.0 { link.reorder_ms } else { REORDER_MS },
            duplicate: self.duplicate.unwrap_or(link.duplicate),
            ..link
        }
    }
}

impl Recorded {
    fn print(&self, page: &mut Page) {
        page.heading(&self.path.display().to_string());
        page.pair("session", &format!("{} on {}, {}", self.game, self.map, counted(self.players as u64, "player")));
        let ended = if self.interrupted { ", ended by Ctrl-C" } else { "" };
        page.pair("duration", &format!("{}{ended}", duration(Micros(self.duration_us))));
        let live = &self.live;
        let left_out = match live.ticks_left_out {
            0 => String::new(),
            ticks => format!("; {} left out, because this machine was too busy", count(ticks)),
        };
        page.pair("ticks", &format!("{}{left_out}", count(live.ticks)));
        if let Some(late) = &live.lateness {
            page.pair("lateness", &lateness(late));
        }
        page.pair("clients sent", &self.traffic(&live.up));
        page.pair("server sent", &self.traffic(&live.down));
        page.pair("snapshots", &snapshots(&live.snapshots));
        page.pair("avatars", &avatars(&live.perceived));
        if live.down_undecodable + live.refused > 0 {
            let late = count(live.down_undecodable);
            page.pair(
                "dropped",
                &format!("{late} snapshots that came too late, {} other datagrams", count(live.refused)),
            );
        }
        page.pair("holds", &format!("{} usercmds in {}", count(live.usercmds), bytes(self.size_bytes)));
    }

    fn traffic(&self, traffic: &Traffic) -> String {
        let used = share(traffic.arrived, traffic.datagrams);
        format!("{}, {used} used", sent(traffic, Micros(self.duration_us)))
    }
}

/// `98.2 % of 594 where their clients saw them`.
pub(super) fn avatars(perceived: &Perception) -> String {
    let right = share(perceived.right, perceived.compared);
    format!("{right} of {} were where their players saw them", count(perceived.compared))
}

/// `15,360 datagrams, 1.20 MB (40.1 kB/s, 78 B each)`.
pub(super) fn sent(traffic: &Traffic, length: Micros) -> String {
    let seconds = length.as_s_f64().max(0.001);
    let per_s = bytes((traffic.bytes as f64 / seconds) as u64);
    let each = traffic.bytes / traffic.datagrams.max(1);
    format!("{} datagrams, {} ({per_s}/s, {each} B each)", count(traffic.datagrams), bytes(traffic.bytes))
}

/// How late ticks were, in words.
pub(super) fn lateness(late: &Lateness) -> String {
    let ms = |us: u32| f64::from(us) / 1e3;
    let [p50, p95, p99, max] = [late.p50_us, late.p95_us, late.p99_us, late.max_us].map(ms);
    format!("median {p50:.2} ms, 95 % {p95:.2} ms, 99 % {p99:.2} ms, most {max:.2} ms")
}

/// What became of snapshots, in words.
fn snapshots(snapshots: &Snapshots) -> String {
    let Snapshots { sent, whole, in_fragments, used } = *snapshots;
    let whole = if whole < sent { format!("{} of them whole; ", share(whole, sent)) } else { String::new() };
    let fragments =
        if in_fragments > 0 { format!("{} in fragments; ", share(in_fragments, sent)) } else { String::new() };
    format!("{} sent; {whole}{fragments}used {}", count(sent), share(used, sent))
}

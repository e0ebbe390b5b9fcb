//! `hitreg record live`: a server and bots over real UDP, in real time, become a log.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::figures::{bytes, count, counted, duration, share};
use super::games::Games;
use super::output::Output;
use super::page::Page;
use super::progress::Progress;
use super::record::{SynthArgs, parse_share};
use super::trouble::Trouble;
use super::{Outcome, files};
use crate::link::LinkModel;
use crate::live::{Keeper, LiveReport, Rates, Traffic};
use crate::record::{Header, Record};
use crate::session::scenario::Scenario;
use crate::store::{Recording, StoreError};
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
const REORDER_MS: f64 = 20.0;

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
    let staged = args.session.stage(games, &scenario)?;
    let header = staged.live_header()?;
    let stop = stop_at_ctrl_c()?;
    let path = &args.session.output;
    let mut keeper = IntoLog::begin(path, &header, Micros((scenario.seconds * 1e6) as i64))?;
    let ran = staged.run_live(args.port, &stop, &mut keeper);
    let ticks = keeper.finish(path, ran.is_ok())?;
    let recorded = Recorded {
        path: path.clone(),
        game: header.game,
        map: header.map,
        players: header.players.len(),
        duration_us: ticks.map_or(0, |(first, last)| (last - first).0),
        interrupted: stop.load(Ordering::Relaxed),
        size_bytes: files::size_bytes(path),
        live: ran?,
    };
    output.show(&recorded, |page| recorded.print(page))?;
    Ok(Outcome::Done)
}

/// Set by the first Ctrl-C. The second one ends the program on the spot.
fn stop_at_ctrl_c() -> Result<Arc<AtomicBool>, Trouble> {
    const INTERRUPTED: i32 = 130;
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    let handler = move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Trouble::Request(format!("Ctrl-C cannot be listened to: {error}")))?;
    Ok(stop)
}

/// Writes records as they come; the first error is kept for the end.
struct IntoLog {
    recording: Recording,
    error: Option<StoreError>,
    /// The first tick and the last.
    ticks: Option<(Micros, Micros)>,
    progress: Progress,
}

impl IntoLog {
    fn begin(path: &Path, header: &Header, length: Micros) -> Result<IntoLog, Trouble> {
        let recording = Recording::begin(path, header)?;
        let progress = Progress::of_session("recording live", length);
        Ok(IntoLog { recording, error: None, ticks: None, progress })
    }

    fn note(&mut self, done: Result<(), StoreError>) -> ControlFlow<()> {
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Ends the log. Nothing is left of a session that never had a tick and ended in trouble.
    fn finish(self, path: &Path, went_well: bool) -> Result<Option<(Micros, Micros)>, Trouble> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        if self.ticks.is_none() && !went_well {
            self.recording.abandon()?;
        } else {
            self.recording.finish()?;
        }
        if !went_well && self.ticks.is_some() {
            use std::io::Write;
            // The error itself follows; this only says that not all is lost.
            let _ = writeln!(anstream::stderr(), "note: what was recorded until then is in {}", path.display());
        }
        Ok(self.ticks)
    }
}

impl Keeper for IntoLog {
    fn record(&mut self, record: &Record) -> ControlFlow<()> {
        if let Record::Tick(tick) = record {
            let first = self.ticks.map_or(tick.at, |(first, _)| first);
            self.ticks = Some((first, tick.at));
        }
        let pushed = self.recording.push(record);
        self.note(pushed)
    }

    fn every_second(&mut self) -> ControlFlow<()> {
        let flushed = self.recording.flush();
        self.note(flushed)
    }

    fn show(&mut self, rates: &Rates) {
        let rate = bytes(rates.bytes_per_s as u64);
        let message = format!("{:.0} ticks/s, {:.0} datagrams/s, {rate}/s", rates.ticks_per_s, rates.datagrams_per_s);
        self.progress.reached_with(rates.at, message);
    }
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
        if let Some(late) = live.lateness {
            let ms = |us: u32| f64::from(us) / 1e3;
            page.pair(
                "lateness",
                &format!(
                    "median {:.2} ms, 95 % {:.2} ms, 99 % {:.2} ms, most {:.2} ms",
                    ms(late.p50_us),
                    ms(late.p95_us),
                    ms(late.p99_us),
                    ms(late.max_us)
                ),
            );
        }
        page.pair("clients sent", &self.traffic(&live.up));
        page.pair("server sent", &self.traffic(&live.down));
        if live.down_partial > 0 {
            let partial = count(live.down_partial);
            page.pair("partial", &format!("{partial} snapshots had no room for all that was new, and were not used"));
        }
        if live.down_undecodable + live.refused > 0 {
            let late = count(live.down_undecodable);
            page.pair(
                "dropped",
                &format!("{late} snapshots that came too late, {} other datagrams", count(live.refused)),
            );
        }
        page.pair("holds", &format!("{} usercmds in {}", count(live.usercmds), bytes(self.size_bytes)));
    }

    /// `15,360 datagrams, 1.20 MB (40.1 kB/s, 78 bytes each), 97.0 % arrived`.
    fn traffic(&self, traffic: &Traffic) -> String {
        let seconds = Micros(self.duration_us).as_s_f64().max(0.001);
        let per_s = bytes((traffic.bytes as f64 / seconds) as u64);
        let each = traffic.bytes / traffic.datagrams.max(1);
        let arrived = share(traffic.arrived, traffic.datagrams);
        let datagrams = count(traffic.datagrams);
        format!("{datagrams} datagrams, {} ({per_s}/s, {each} bytes each); used {arrived}", bytes(traffic.bytes))
    }
}

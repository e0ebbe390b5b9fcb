//! The report on a session that was recorded from the network, for all commands that record one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::figures::{bytes, count, counted, duration, share};
use super::files::FileSize;
use super::page::Page;
use crate::live::{LatenessSummary, LiveReport, Perception, TrafficCounts};
use crate::record::SessionHeader;
use crate::units::Micros;

/// A completed log, and figures of the session.
#[derive(Serialize)]
pub(super) struct FinishedLog<R = LiveReport> {
    duration_us: i64,
    interrupted: bool,
    pub(super) size_bytes: u64,
    #[serde(flatten)]
    pub(super) figures: R,
}

/// A completed log of a session whose server ran here.
#[derive(Serialize)]
pub(super) struct HostedReport {
    path: String,
    game: String,
    map: String,
    players: usize,
    #[serde(flatten)]
    pub(super) kept: FinishedLog,
}

impl<R> FinishedLog<R> {
    /// Describes the log at `path`, whose records span the times of `span`.
    pub(super) fn new(path: &Path, span: Option<(Micros, Micros)>, stop: &AtomicBool, figures: R) -> FinishedLog<R> {
        FinishedLog {
            duration_us: span.map_or(0, |(first, last)| (last - first).0),
            interrupted: stop.load(Ordering::Relaxed),
            size_bytes: FileSize::of(path).known().unwrap_or_default(),
            figures,
        }
    }

    /// The duration as text. `how` is the effect of a signal on the session, such as `ended` or `left`.
    pub(super) fn duration(&self, how: &str) -> String {
        let ended = if self.interrupted { format!(", {how} by Ctrl-C or a signal") } else { String::new() };
        format!("{}{ended}", duration(Micros(self.duration_us)))
    }
}

impl FinishedLog {
    /// The traffic as text, such as `15,360 datagrams, 1.20 MB (40.1 kB/s, 78 B each)`.
    pub(super) fn sent(&self, traffic: &TrafficCounts) -> String {
        let seconds = Micros(self.duration_us).as_s_f64().max(0.001);
        let per_s = bytes((traffic.bytes as f64 / seconds) as u64);
        let each = traffic.bytes / traffic.datagrams.max(1);
        format!("{} datagrams, {} ({per_s}/s, {each} B each)", count(traffic.datagrams), bytes(traffic.bytes))
    }

    /// The contents as text, such as `40,000 usercmds in 1.20 MB`.
    pub(super) fn holds(&self) -> String {
        let usercmds = self.figures.clients.as_ref().map_or(0, |clients| clients.usercmds);
        format!("{} usercmds in {}", count(usercmds), bytes(self.size_bytes))
    }
}

impl HostedReport {
    pub(super) fn new(path: &Path, header: SessionHeader, kept: FinishedLog) -> HostedReport {
        HostedReport {
            path: path.display().to_string(),
            game: header.game,
            map: header.map,
            players: header.players.len(),
            kept,
        }
    }

    /// Prints the session, its duration, and the punctuality of its ticks.
    pub(super) fn print(&self, page: &mut Page) {
        page.heading(&self.path);
        page.pair("session", &format!("{} on {}, {}", self.game, self.map, counted(self.players as u64, "player")));
        page.pair("duration", &self.kept.duration("ended"));
        let Some(live) = &self.kept.figures.server else { return };
        let left_out = match live.ticks_left_out {
            0 => String::new(),
            ticks => format!("; {} skipped, because the machine was too busy", count(ticks)),
        };
        page.pair("ticks", &format!("{}{left_out}", count(live.ticks)));
        if let Some(late) = &live.lateness {
            page.pair("lateness", &lateness(late));
        }
    }
}

/// The share of correctly perceived avatars, such as `98.2 % of 594 were where their players saw them`.
pub(super) fn avatars(perceived: &Perception) -> String {
    let right = share(perceived.right, perceived.compared);
    format!("{right} of {} were where their players saw them", count(perceived.compared))
}

/// The lateness of ticks as text.
fn lateness(late: &LatenessSummary) -> String {
    let ms = |us: u32| f64::from(us) / 1e3;
    let [p50, p95, p99, max] = [late.p50_us, late.p95_us, late.p99_us, late.max_us].map(ms);
    format!("median {p50:.2} ms, 95 % {p95:.2} ms, 99 % {p99:.2} ms, max {max:.2} ms")
}

//! `hitreg merge`: merges the logs of a server and its clients into one session.

use std::path::PathBuf;

use serde::Serialize;

use super::figures::{count, counted, duration};
use super::info::print_gaps;
use super::output::FileSize;
use super::page::{Page, Unsure};
use super::trouble::engine_with_notes;
use super::{CommandError, CommandResult, Output, OutputPath};
use crate::engine::{EngineError, Games, MergedLog};
use crate::info::GapFigures;
use crate::merge::{AlignedClient, SessionCut};
use crate::record::GapCause;
use crate::store::FileType;
use crate::units::{ClockTime, Micros, PlayerId};

/// Merge the logs of a server and its clients into one log of the session
///
/// Each side has its own clock. The fastest packets in both directions bound the offset between a client's clock and
/// the server's. Every offset within them gives the same session, bit for bit. The printed error holds at all times of
/// the session, also if the clocks drift.
///
/// A client without a log is reconstructed from the packets in the server's log. Its predictions and drawn positions
/// are unknown.
///
/// A truncated log is used up to the cut, and the session ends with the shortest log. The page says how much a merge
/// without that log keeps.
///
/// The page counts the usercmds of a client's log that differ from those that the server received. If most differ, the
/// log may be of another run.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg merge server.hitlog one.hitlog two.hitlog -o duel.hitlog
  hitreg merge *.hitlog -o /tmp/match.hitlog && hitreg verify /tmp/match.hitlog
  hitreg merge server.hitlog.part one.hitlog -o rest.hitlog     after a kill")]
pub(super) struct Args {
    /// The server's log and each client's, in any order
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// The merged log to write
    #[arg(short, long, value_name = "LOG")]
    output: OutputPath,
}

#[derive(Serialize)]
struct MergeReport {
    path: String,
    session: Option<String>,
    game: String,
    map: String,
    clients: Vec<ClientClock>,
    /// The logs that are cut off.
    cut_off: Vec<String>,
    /// The last tick, if records of a log are left out because another log ends much earlier.
    ends_early: Option<SessionCut>,
    /// The gaps of the session: those of the logs.
    gaps: Vec<GapFigures>,
    ticks: usize,
    usercmds: usize,
    duration_us: i64,
    size_bytes: FileSize,
}

/// The clock of one client.
#[derive(Serialize)]
struct ClientClock {
    player: u16,
    /// `null` if no log of this client was given. The session then has its usercmds as the server received them.
    path: Option<String>,
    /// The offset added to its times; `null` for a client from which the server received nothing.
    offset_us: Option<i64>,
    /// The maximum error of the offset; `null` without an offset, or if its log has no packets.
    error_us: Option<i64>,
    /// Whether its log has no packets, so that ticks with equal numbers give the offset.
    by_ticks: bool,
    /// Whether the server received packets that are older than its log. The earlier usercmds are the server's.
    begins_late: bool,
    /// Whether its log has states of the game's own client, which the session does not have.
    leaves_out_states: bool,
    /// The most by which its clock was set back; `null` if its times never run backward.
    set_back_us: Option<i64>,
    /// How many of its usercmds differ from those that the server received; `null` if the logs have none in common.
    differing_usercmds: Option<usize>,
    /// How many usercmds are in its log and in the server's.
    compared_usercmds: usize,
    /// How many usercmds are in its log; `null` without a log.
    usercmds: Option<usize>,
    /// The time of the last tick of a merge without its log; `null` if the server's log lacks its usercmds.
    without_us: Option<i64>,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Log)?;
    let merged = engine_with_notes(games).merge(&args.logs, &target).map_err(|error| match error {
        EngineError::Merge(error) => match error.log.and_then(|log| args.logs.get(log)) {
            Some(path) => CommandError::file(path, error),
            None => CommandError::request(error),
        },
        error => error.into(),
    })?;
    let report = MergeReport::new(args, merged);
    output.show(&report, |page| report.print(page))
}

impl ClientClock {
    /// Returns whether most usercmds differ from those that the server received.
    fn is_contradicted(&self) -> bool {
        self.differing_usercmds.is_some_and(|differing| differing * 2 > self.compared_usercmds)
    }
}

impl MergeReport {
    fn new(args: &Args, merged: MergedLog) -> MergeReport {
        let MergedLog { session, info, clients, usercmds, cut, cut_off, is_foreign } = merged;
        let client = |(aligned, usercmds): (&AlignedClient, usize)| ClientClock {
            player: aligned.player.0,
            path: aligned.log.map(|log| args.logs[log].display().to_string()),
            offset_us: aligned.offset.map(|found| found.offset.0),
            error_us: aligned.offset.and_then(|found| found.error).map(|error| error.0),
            by_ticks: aligned.is_by_ticks,
            begins_late: aligned.begins_late,
            // hitreg's own clients receive the states that the server records.
            leaves_out_states: aligned.has_states && is_foreign,
            set_back_us: Some(aligned.set_back.0).filter(|us| *us > 0),
            differing_usercmds: Some(aligned.differing_usercmds).filter(|_| aligned.compared_usercmds > 0),
            compared_usercmds: aligned.compared_usercmds,
            usercmds: aligned.log.map(|_| usercmds),
            without_us: aligned.without.map(|without| without.0),
        };
        MergeReport {
            path: args.output.display().to_string(),
            session: session.map(|id| id.to_string()),
            game: info.game,
            map: info.map,
            clients: clients.iter().zip(usercmds).map(client).collect(),
            cut_off: cut_off.into_iter().map(|log| args.logs[log].display().to_string()).collect(),
            ends_early: cut,
            gaps: info.gaps,
            ticks: info.ticks,
            usercmds: info.usercmds,
            duration_us: info.duration_us,
            size_bytes: FileSize::of(&args.output),
        }
    }

    /// Prints the gaps of the session, and what a merge without a log with gaps keeps.
    fn print_gaps(&self, page: &mut Page) {
        // The server's log has the usercmds from before a log that begins late.
        let gaps: Vec<GapFigures> =
            self.gaps.iter().filter(|gap| gap.why != GapCause::BeganLate.name()).cloned().collect();
        let Some(first) = gaps.iter().map(|gap| gap.from_us).min() else { return };
        print_gaps(page, &gaps);
        page.paragraph(2, &format!("verify judges the session up to {}", ClockTime(Micros(first))));
        let has_gap = |client: &&ClientClock| gaps.iter().any(|gap| gap.player == Some(client.player));
        for client in self.clients.iter().filter(has_gap) {
            // A log that ends the session early is named there.
            let is_end = self.ends_early.is_some_and(|end| end.player == Some(PlayerId(client.player)));
            if let Some(path) = client.path.as_ref().filter(|_| client.without_us.is_some() && !is_end) {
                let kept = duration(Micros(self.duration_us));
                let what = format!("a merge without {path} keeps {kept} and has no gap of p{}", client.player);
                page.paragraph(2, &what);
            }
        }
    }

    fn print(&self, page: &mut Page) {
        page.heading(&self.path);
        for path in &self.cut_off {
            page.styled(Unsure, &format!("  {path} is cut off, and used as far as it goes"));
        }
        for client in &self.clients {
            if let Some((path, differing)) = client.path.as_ref().zip(client.differing_usercmds).filter(|(_, n)| *n > 0)
            {
                let usercmds = counted(client.compared_usercmds as u64, "usercmd");
                let found =
                    format!("{} of {usercmds} that the server received differ in {path}", count(differing as u64));
                page.marked(2, Unsure, &found);
            }
            if client.is_contradicted() {
                let why = "this log may be of another run, its client may lie, or the server rounds usercmds";
                page.paragraph(2, why);
            }
        }
        let players = counted(self.clients.len() as u64, "player");
        page.pair("session", &format!("{} on {}, {players}", self.game, self.map));
        let length = duration(Micros(self.duration_us));
        page.pair("duration", &format!("{length}, {} ticks", count(self.ticks as u64)));
        if let Some(end) = &self.ends_early {
            let why = match end.player {
                Some(player) => format!("player {}'s log lacks packets after it", player.0),
                None => "the server's log ends there".to_owned(),
            };
            page.pair("ends early", &format!("after tick {}, because {why}", end.tick.0));
            let left_out = end.player.and_then(|player| self.clients[usize::from(player.0)].path.as_ref());
            if let Some((path, without)) = left_out.zip(end.without).filter(|(_, without)| *without > end.at) {
                let kept = duration(Micros(self.duration_us) + (without - end.at));
                page.paragraph(2, &format!("without {path}, the merge keeps {kept}: leave this log out"));
            }
        }
        self.print_gaps(page);
        page.pair("holds", &format!("{} usercmds in {}", count(self.usercmds as u64), self.size_bytes));
        page.heading("Clocks: the offset added to each client's");
        let row = |client: &ClientClock| {
            let offset = client.offset_us.map_or("-".to_owned(), |us| format!("{:+.3} ms", us as f64 / 1e3));
            let error = match client.error_us {
                Some(us) => format!("± {:.3} ms", us as f64 / 1e3),
                None => if client.by_ticks { "unknown" } else { "-" }.to_owned(),
            };
            let usercmds = client.usercmds.map_or("-".to_owned(), |usercmds| count(usercmds as u64));
            let path = client.path.clone().unwrap_or("none: from the server's packets".to_owned());
            [client.player.to_string(), offset, error, usercmds, path]
        };
        page.table(&[">player", ">offset", ">error", ">usercmds", "log"], self.clients.iter().map(row));
        let mut note = |is_meant: fn(&ClientClock) -> bool, [one, more]: [&str; 2], text: &str| {
            let meant = self.clients.iter().filter(|client| is_meant(client));
            let names: Vec<String> = meant.map(|client| format!("p{}", client.player)).collect();
            if !names.is_empty() {
                let whose = if names.len() == 1 { one } else { more };
                page.paragraph(2, &format!("{}: {whose} {text}", names.join(", ")));
            }
        };
        let text = "no packets, so ticks with equal numbers give the offset; transit times and losses are not known";
        note(|client| client.by_ticks, ["the log has", "their logs have"], text);
        let text = "late, and the server's log provides the earlier usercmds";
        note(|client| client.begins_late, ["the client's log begins", "the clients' logs begin"], text);
        let text = "times that run backward: its clock was set back, and one offset does not fit all its times";
        note(|client| client.set_back_us.is_some(), ["the client's log has", "each client's log has"], text);
        let text = "states, which are left out: the session has the server's";
        note(|client| client.leaves_out_states, ["the client's log has", "the clients' logs have"], text);
    }
}

//! Writes a trace in Chrome's trace format, which Perfetto opens: the server's ticks, and each player's frames, acks,
//! shots and packets. Arrows lead from the frame that made a usercmd, over the tick that ran it, to its ack.
//!
//! The format is JSON: `{"traceEvents": [...]}`. Times are microseconds. The phases are:
//! - `X`: a slice with a duration. Events of one time have slices that follow each other.
//! - `b` and `e`: begin and end of a span that may overlap others.
//! - `s`, `t` and `f`: the points of an arrow, each attached to the slice that is open at its time.
//! - `C`: a counter value.
//! - `M`: names.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use crate::summary::is_named;
use crate::why::{hitgroup_in_words, is_corrected};
use hitreg_log::record::value_of_setting;
use hitreg_log::sorted::SortedSet;
use hitreg_log::trace::schema::{corrections, executed, frames, shots, ticks};
use hitreg_log::trace::{Series, Table, Trace, TraceReadError, TraceSource, each_part, select_rows};
use hitreg_log::traffic::Packet;

/// The process id of the server; player `n` is process `n + 2`.
const SERVER: u32 = 1;

/// The track of a player's frames.
const FRAMES: u32 = 1;
/// The track of a player's acks.
const ACKS: u32 = 2;

/// The shown duration of an instant, in microseconds. An arrow needs a slice to attach to.
const MOMENT_US: i64 = 100;

/// The duration of a last step whose end is unknown, in microseconds.
const STEP_US: i64 = 10_000;

/// One event.
#[derive(Serialize)]
struct TraceEvent<'a> {
    ph: &'static str,
    name: &'a str,
    cat: &'static str,
    pid: u32,
    tid: u32,
    ts: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Makes an arrow end in the slice that is open at its time, not in the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

/// The error for a trace that was not written.
#[derive(Debug, thiserror::Error)]
pub enum PerfettoError {
    /// The trace cannot be read.
    #[error(transparent)]
    Unread(#[from] TraceReadError),
    /// The output cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The tables that the output uses, besides the tables with packets.
pub const TABLES: [&str; 5] = [ticks::NAME, frames::NAME, corrections::NAME, executed::NAME, shots::NAME];

/// Writes a trace, with the packets of its log or its own packets. If the trace is in a file, only the ticks, the
/// shots, and the rows of a few players are in memory at once. `missing` is the word for packets that did not arrive from
/// the server.
///
/// # Errors
/// When the trace cannot be read or the output cannot be written.
pub fn write(
    trace: &dyn TraceSource,
    packets: impl Iterator<Item = Result<Packet, TraceReadError>>,
    missing: &'static str,
    out: &mut dyn Write,
) -> Result<(), PerfettoError> {
    let mut events = EventWriter { out, is_first: true };
    events.out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let players = players(trace)?;
    events.names(&players)?;
    let ticks = some(trace, &[(ticks::NAME, &["tick", "at_us"], &Table::clone)])?;
    events.ticks(&ticks)?;
    // Each group of players needs a pass through the file, so a group is as large as memory allows.
    let groups: Vec<&[u32]> = players.chunks(at_once(trace, frames::NAME, players.len())).collect();
    for group in &groups {
        let of_group = |rows: &Table| rows.select_where(rows.u32s("player").iter(), |player| group.contains(player));
        events.frames(&some(trace, &[(frames::NAME, &FRAME, &of_group)])?)?;
    }
    for group in &groups {
        let of_group = |rows: &Table| rows.select_where(rows.u32s("player").iter(), |player| group.contains(player));
        let mut acked = some(
            trace,
            &[
                (corrections::NAME, &[], &of_group),
                (frames::NAME, &MADE, &of_group),
                (executed::NAME, &["player", "command", "tick", "how"], &of_group),
            ],
        )?;
        acked.tables.extend(ticks.tables.iter().cloned());
        events.acks(&acked)?;
    }
    let mut shot = some(trace, &[(shots::NAME, &[], &Table::clone)])?;
    let fired = {
        let shots = shots::Columns::of(&shot);
        shots.shooter.iter().copied().zip(shots.command.iter().copied()).collect::<SortedSet<(u32, u32)>>()
    };
    let of_shots = |rows: &Table| {
        let usercmds = rows.u32s("player").iter().zip(rows.u32s("command"));
        rows.select_where(usercmds, |(player, command)| fired.contains(&(*player, *command)))
    };
    shot.tables.extend(some(trace, &[(frames::NAME, &MADE, &of_shots)])?.tables);
    events.shots(&shot)?;
    let has_nominal_sizes = value_of_setting(&trace.header().settings, "wire.sizes") == Some("nominal");
    let size = if has_nominal_sizes { "nominal bytes" } else { "bytes" };
    events.packets(packets, (missing, size))?;
    Ok(events.out.write_all(b"\n]}\n")?)
}

/// For how many players a table's rows are in memory at once. Small tables give all players.
fn at_once(trace: &dyn TraceSource, table: &str, players: usize) -> usize {
    const ROWS_AT_ONCE: u64 = 1 << 20;
    let rows = trace.tables().iter().find(|(known, _)| known.name == table).map_or(0, |(_, rows)| *rows);
    usize::try_from(ROWS_AT_ONCE * players as u64 / rows.max(1)).unwrap_or(usize::MAX).max(1)
}

/// The shown columns of frames, and the columns that say when a frame made a usercmd.
const FRAME: [&str; 5] = ["player", "at_us", "command", "ran", "buttons"];
const MADE: [&str; 3] = ["player", "at_us", "command"];

/// A table, its columns (all if there are none), and the choice of its rows.
type TableQuery<'w> = (&'w str, &'w [&'w str], &'w dyn Fn(&Table) -> Table);

fn some(trace: &dyn TraceSource, wanted: &[TableQuery<'_>]) -> Result<Trace, PerfettoError> {
    let tables = wanted.iter().map(|(table, columns, select)| select_rows(trace, table, (columns, None), select));
    let tables = tables.collect::<Result<Vec<Table>, TraceReadError>>()?;
    Ok(Trace { header: trace.header().clone(), tables })
}

/// All players with a frame, a shot or an ack.
fn players(trace: &dyn TraceSource) -> Result<Vec<u32>, TraceReadError> {
    let mut players = SortedSet::new();
    for (table, whose) in [(frames::NAME, "player"), (shots::NAME, "shooter"), (corrections::NAME, "player")] {
        each_part(trace, table, (&[whose], None), &mut |rows| {
            players.extend(rows.u32s(whose));
            Ok(())
        })?;
    }
    Ok(players.into_iter().collect())
}

struct EventWriter<'o> {
    out: &'o mut dyn Write,
    is_first: bool,
}

fn process(player: u32) -> u32 {
    player.saturating_add(SERVER + 1)
}

impl EventWriter<'_> {
    fn put(&mut self, event: &TraceEvent<'_>) -> io::Result<()> {
        self.out.write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        Ok(serde_json::to_writer(&mut *self.out, event)?)
    }

    fn names(&mut self, players: &[u32]) -> io::Result<()> {
        let named = |name, pid, tid, called: String| TraceEvent {
            pid,
            tid,
            args: json!({ "name": called }),
            ..plain("M", name)
        };
        self.put(&named("process_name", SERVER, 0, "server".to_owned()))?;
        self.put(&named("thread_name", SERVER, FRAMES, "ticks".to_owned()))?;
        for player in players {
            self.put(&named("process_name", process(*player), 0, format!("p{player}")))?;
            self.put(&named("thread_name", process(*player), FRAMES, "frames".to_owned()))?;
            self.put(&named("thread_name", process(*player), ACKS, "acks".to_owned()))?;
        }
        Ok(())
    }

    fn ticks(&mut self, trace: &Trace) -> io::Result<()> {
        let ticks = ticks::Columns::of(trace);
        for (row, at) in ticks.at_us.iter().enumerate() {
            let dur = ticks.at_us.get(row + 1).map_or(STEP_US, |next| next.saturating_sub(*at));
            let name = format!("tick {}", ticks.tick.get(row).copied().unwrap_or_default());
            self.put(&TraceEvent { pid: SERVER, tid: FRAMES, ts: *at, dur: Some(dur.max(0)), ..plain("X", &name) })?;
        }
        Ok(())
    }

    fn frames(&mut self, trace: &Trace) -> io::Result<()> {
        let frames = frames::Columns::of(trace);
        let series = Series::of_one(frames.player, frames.command);
        let slices = slices_of_frames(&frames, &series);
        for ([player, _], rows) in series.iter().filter(|_| !slices.is_empty()) {
            for row in rows.iter().map(|row| *row as usize) {
                let name = format!("#{}", frames.command[row]);
                let args = json!({ "ran": frames.ran.get(row), "buttons": frames.buttons.get(row) });
                let (pid, Slice { ts, dur }) = (process(player), slices[row]);
                self.put(&TraceEvent { pid, tid: FRAMES, ts, dur: Some(dur), args, ..plain("X", &name) })?;
            }
        }
        Ok(())
    }

    /// Writes the acks, and the arrows that end in them.
    fn acks(&mut self, trace: &Trace) -> io::Result<()> {
        let acks = corrections::Columns::of(trace);
        let (frames, ticks) = (frames::Columns::of(trace), ticks::Columns::of(trace));
        let executed = executed::Columns::of(trace);
        let made = Series::of_one(frames.player, frames.command);
        let ran = Series::of_one(executed.player, executed.command);
        let whole = vec![0; ticks.tick.len()];
        let tick = Series::of_one(&whole, ticks.tick);
        let of_frames = slices_of_frames(&frames, &made);
        let mut rows: Vec<usize> = (0..acks.at_us.len()).collect();
        rows.sort_unstable_by_key(|row| (acks.player[*row], acks.at_us[*row], *row));
        let by_player = rows.chunk_by(|one, other| acks.player[*one] == acks.player[*other]);
        let of_acks = by_player.flat_map(|rows| {
            let times: Vec<i64> = rows.iter().map(|row| acks.at_us[*row]).collect();
            slices(&times, MOMENT_US)
        });
        for (row, Slice { ts, dur }) in rows.iter().copied().zip(of_acks) {
            let (player, command, at) = (acks.player[row], acks.command[row], acks.at_us[row]);
            let is_corrected = is_corrected(&acks, row);
            let cause = acks.cause.get(row).replace('_', " ");
            let name = if is_corrected { format!("correction: {cause}") } else { "ack".to_owned() };
            let error = acks.error_units.get(row).copied().filter(|error| error.is_finite());
            let args = json!({ "command": command, "error_units": error, "fields": acks.fields.get(row), "reran": acks.reran.get(row) });
            let (pid, tid) = (process(player), ACKS);
            self.put(&TraceEvent { pid, tid, ts, dur: Some(dur), args, ..plain("X", &name) })?;
            if let Some(error) = error {
                let args = json!({ "units": error });
                self.put(&TraceEvent { pid, tid: 0, ts: at, args, ..plain("C", "prediction error") })?;
            }
            let frame = made.at([player, 0], command).next().and_then(|row| of_frames.get(row));
            // A frame among several of one time may begin after the ack of its usercmd.
            let Some(frame_us) = frame.map(|frame| frame.ts).filter(|from| *from <= ts) else { continue };
            let id = Some(format!("p{player}#{command}"));
            let arrow = |ph, pid, tid, ts| TraceEvent { pid, tid, ts, id: id.clone(), ..plain(ph, "usercmd") };
            self.put(&arrow("s", pid, FRAMES, frame_us))?;
            // A server did not run a usercmd that it refused, or that came late.
            let is_run = |row: &usize| matches!(executed.how.get(*row), "run" | "");
            let ran_in = ran.at([player, 0], command).find(is_run).map(|row| executed.tick[row]);
            let ran_us = ran_in.and_then(|number| ticks.at_us.get(tick.at([0, 0], number).next()?));
            if let Some(ran_us) = ran_us.filter(|ran_us| (frame_us..=ts).contains(*ran_us)) {
                self.put(&arrow("t", SERVER, FRAMES, *ran_us))?;
            }
            self.put(&TraceEvent { bp: Some("e"), ..arrow("f", pid, tid, ts) })?;
        }
        Ok(())
    }

    /// Writes each shot, from the frame that made the usercmd to the server's judgement.
    fn shots(&mut self, trace: &Trace) -> io::Result<()> {
        let (shots, frames) = (shots::Columns::of(trace), frames::Columns::of(trace));
        let made = Series::of_one(frames.player, frames.command);
        for (row, at) in shots.at_us.iter().enumerate() {
            let (shooter, command) = (shots.shooter[row], shots.command[row]);
            let frame_us = made.at([shooter, 0], command).next().and_then(|row| frames.at_us.get(row).copied());
            let outcome = |[reason, target, hitgroup]: [&str; 3]| {
                let known = [reason, target].into_iter().filter(|part| is_named(part)).map(str::to_owned);
                known.chain(hitgroup_in_words(hitgroup)).collect::<Vec<_>>().join(" ")
            };
            let server = outcome([shots.reason.get(row), shots.target.get(row), shots.hitgroup.get(row)]);
            let screen = [shots.predicted_reason, shots.predicted_target, shots.predicted_hitgroup];
            let name = format!("{}: {server}", shots.weapon.get(row));
            let args = json!({
                "command": command,
                "on_screen": outcome(screen.map(|names| names.get(row))),
                "rewind_us": shots.known_rewind_us(row),
                "view_error_units": shots.view_error_units.get(row).filter(|error| error.is_finite()),
            });
            let id = format!("shot {shooter} {command} {}", shots.index.get(row).copied().unwrap_or_default());
            self.span((process(shooter), "shots", &name), id, [frame_us.unwrap_or(*at).min(*at), *at], args)?;
        }
        Ok(())
    }

    fn packets(
        &mut self,
        packets: impl Iterator<Item = Result<Packet, TraceReadError>>,
        (missing, size): (&'static str, &'static str),
    ) -> Result<(), PerfettoError> {
        for (number, packet) in packets.enumerate() {
            let packet = packet?;
            let until = packet.sent_us.saturating_add(packet.took_us.unwrap_or(MOMENT_US).max(0));
            let (category, way, missing) =
                if packet.is_up { ("packets up", "up", "lost") } else { ("packets down", "down", missing) };
            let name = match packet.took_us {
                Some(_) => way,
                None if packet.is_missing => missing,
                None => "arrival not known",
            };
            let args = packet.bytes.map_or(Value::Null, |bytes| json!({ (size): bytes }));
            let track = (process(packet.player), category, name);
            self.span(track, format!("packet {number}"), [packet.sent_us, until], args)?;
        }
        Ok(())
    }

    fn span(
        &mut self,
        (pid, cat, name): (u32, &'static str, &str),
        id: String,
        [from, to]: [i64; 2],
        args: Value,
    ) -> io::Result<()> {
        self.put(&TraceEvent { pid, cat, ts: from, id: Some(id.clone()), args, ..plain("b", name) })?;
        self.put(&TraceEvent { pid, cat, ts: to, id: Some(id), ..plain("e", name) })
    }
}

/// The shown time of an event on a track.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    ts: i64,
    dur: i64,
}

/// Returns the slices of a track whose events have these sorted times. A slice lasts until the next one, at most `most`.
/// An arrow needs a slice of its own, so several events at one time follow each other at once.
fn slices(times: &[i64], most: i64) -> Vec<Slice> {
    let mut slices = Vec::with_capacity(times.len());
    for at_once in times.chunk_by(|one, other| one == other) {
        let (at, number) = (at_once[0], at_once.len() as i64);
        let next = times.get(slices.len() + at_once.len());
        let room = next.map_or(most.min(STEP_US), |next| next.saturating_sub(at).clamp(0, most));
        let short = (room / number).min(MOMENT_US);
        slices.extend((1..number).map(|place| Slice { ts: at.saturating_add((place - 1) * short), dur: short }));
        let before = (number - 1) * short;
        slices.push(Slice { ts: at.saturating_add(before), dur: room - before });
    }
    slices
}

/// The slice of each row of `frames`; empty if the rows have no times. `series` has the rows of each player.
fn slices_of_frames(frames: &frames::Columns<'_>, series: &Series<'_>) -> Vec<Slice> {
    let mut of_rows = vec![Slice { ts: 0, dur: 0 }; frames.at_us.len()];
    for (_, rows) in series.iter().filter(|_| !frames.at_us.is_empty()) {
        let times: Vec<i64> = rows.iter().map(|row| frames.at_us[*row as usize]).collect();
        for (row, slice) in rows.iter().zip(slices(&times, i64::MAX)) {
            of_rows[*row as usize] = slice;
        }
    }
    of_rows
}

fn plain<'a>(ph: &'static str, name: &'a str) -> TraceEvent<'a> {
    TraceEvent { ph, name, cat: "hitreg", pid: 0, tid: 0, ts: 0, dur: None, id: None, bp: None, args: Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_time_have_slices_of_their_own() {
        let of = |times: &[i64], most| -> Vec<(i64, i64)> {
            slices(times, most).iter().map(|slice| (slice.ts, slice.dur)).collect()
        };
        assert_eq!(of(&[0, 0, 0, 90, 500], 100), [(0, 30), (30, 30), (60, 30), (90, 100), (500, 100)]);
        assert_eq!(of(&[0, 0, 16_000, 16_000], i64::MAX), [(0, 100), (100, 15_900), (16_000, 100), (16_100, 9_900)]);
        assert_eq!(of(&[i64::MAX], 100), [(i64::MAX, 100)]);
        assert_eq!(of(&[], 100), []);
        // Frames need not be in order.
        assert_eq!(of(&[50, 20], i64::MAX), [(50, 0), (20, 10_000)]);
    }
}

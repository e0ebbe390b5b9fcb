//! One trace in the page's format.

use serde::Serialize;

use super::clock::{Clock, PackedClock};
use super::packed::{Column, Columns, whole};
use super::tracks::{Exactness, Sample, Track, knots};
use super::{Shown, notes};
use crate::report::why_answer;
use crate::why::{Correction, Otherwise, Reader, Shot, Why};
use hitreg_log::trace::schema::{bodies, corrections, executed, frames, shots, views};
use hitreg_log::trace::{Series, Table, Trace};
use hitreg_log::traffic::{self, Packet};

/// One trace.
#[derive(Debug, Serialize)]
pub(super) struct Side {
    name: String,
    game: String,
    map: String,
    mode: String,
    settings: Vec<(String, String)>,
    tables: Vec<(String, usize)>,
    /// What the trace does not say.
    notes: Vec<String>,
    exactness: [Exactness; 2],
    players: Vec<u32>,
    clocks: Vec<PackedClock>,
    bodies: Vec<Track>,
    own: Vec<Track>,
    views: Vec<Track>,
    /// The names of the ways of drawing, indexed by the marks of `views`.
    how: Vec<String>,
    shots: Vec<Explained<Shot>>,
    corrections: Vec<Explained<Correction>>,
    acks: Vec<Acks>,
    /// How many usercmds ran in each frame.
    ran: Vec<OfPlayer>,
    unrun: Option<Unrun>,
    packets: Vec<Packets>,
}

/// A shot or a correction with the answer of `why`.
#[derive(Debug, Serialize)]
struct Explained<T> {
    answer: String,
    /// The shot's results under other rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejudged: Vec<Otherwise>,
    #[serde(flatten)]
    it: T,
}

/// A player's acks.
#[derive(Debug, Serialize)]
struct Acks {
    player: u32,
    at_us: Column,
    /// Time from making the usercmd to its ack; negative if it is unknown.
    round_trip_us: Column,
    error_units: Column,
}

/// A player's column, with a value for each step of its clock.
#[derive(Debug, Serialize)]
struct OfPlayer {
    player: u32,
    values: Column,
}

/// Usercmds whose outcome on the server is not `run`.
#[derive(Debug, Serialize)]
struct Unrun {
    player: Column,
    /// The step of the server's clock.
    step: Column,
    how: Column,
    names: Vec<String>,
}

/// A player's packets in one direction.
#[derive(Debug, Serialize)]
struct Packets {
    player: u32,
    way: &'static str,
    sent_us: Column,
    /// Negative if the packet never arrived.
    transit_us: Column,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<Column>,
    choked: Column,
}

/// The rounding of the times of packets and acks, in microseconds.
const TIME_UNIT_US: i64 = 50;

impl Side {
    pub(super) fn of(shown: &Shown<'_>, most_views: usize, columns: &mut Columns) -> Side {
        let trace = shown.trace;
        let reader = Reader::new(trace);
        // A log has the sizes of its datagrams.
        let packets = shown.session.map_or_else(|| traffic::of_trace(trace), traffic::of_session);
        let players = players(trace, &reader);
        let (server, is_timed) = Clock::of_server(trace);
        let clocks: Vec<(u32, Clock)> =
            players.iter().map(|player| (*player, Clock::of_player(trace, &reader, *player))).collect();
        let exactness = Exactness::of_world(reach(trace));
        let packed = [(None, &server)].into_iter().chain(clocks.iter().map(|(player, clock)| (Some(*player), clock)));
        let packed = packed.filter(|(_, clock)| !clock.is_empty());
        let packed = packed.map(|(player, clock)| clock.pack(player, columns)).collect();
        let (views, drawn) = views_of(&reader, &clocks, exactness, most_views, columns);
        let table = views::Columns::of(trace);
        Side {
            name: shown.name.to_owned(),
            game: trace.header.game.clone(),
            map: shown.map.to_owned(),
            mode: trace.header.mode.clone(),
            settings: trace.header.settings.clone(),
            tables: trace.tables.iter().map(|table| (table.name.clone(), table.rows())).collect(),
            notes: notes::notes(shown, is_timed, !packets.is_empty()),
            exactness: [exactness, drawn],
            clocks: packed,
            bodies: bodies_of(&reader, &server, exactness, columns),
            own: own_of(&reader, &clocks, exactness, columns),
            views,
            how: table.how.names.to_vec(),
            shots: shots_of(&reader, shown),
            corrections: corrections_of(&reader),
            acks: acks_of(&reader, exactness, columns),
            ran: ran_of(&reader, columns),
            unrun: unrun_of(trace, &server, columns),
            packets: packets_of(&packets, columns),
            players,
        }
    }
}

/// Every player who made a usercmd, shot, or drew an entity.
fn players(trace: &Trace, reader: &Reader<'_>) -> Vec<u32> {
    let mut players: Vec<u32> = [executed::Columns::of(trace).player, shots::Columns::of(trace).shooter].concat();
    players.extend_from_slice(corrections::Columns::of(trace).player);
    let screens = reader.frames().iter().chain(reader.views().iter());
    players.extend(screens.map(|([player, _], _)| player));
    players.sort_unstable();
    players.dedup();
    players
}

/// A size that most coordinates of the world are below, in units.
fn reach(trace: &Trace) -> f32 {
    let columns = [(bodies::NAME, "origin."), (frames::NAME, "own.origin."), (views::NAME, "origin.")];
    let tables = columns.iter().filter_map(|(table, prefix)| Some((trace.table(table)?, prefix)));
    let of_table = |(table, prefix): (&Table, &&str)| {
        let names = ["x", "y", "z"].map(|axis| format!("{prefix}{axis}"));
        let values = names.map(|name| table.f32s(&name).iter().step_by(7).map(|at| at.abs()).collect::<Vec<f32>>());
        values.concat()
    };
    let mut all: Vec<f32> = tables.flat_map(of_table).filter(|at| at.is_finite()).collect();
    all.sort_by(f32::total_cmp);
    hitreg_log::stats::percentile(&all, 98.0).unwrap_or(1.0).max(1e-3)
}

/// Reads positions from the columns with a prefix. The result is empty for a table without x and y.
fn samples<'t>(
    table: &'t Table,
    prefix: &str,
    yaw: &str,
    step: impl Fn(usize) -> Option<u32> + 't,
) -> impl Fn(&[u32]) -> Vec<Sample> + 't {
    let [x, y, z] = ["x", "y", "z"].map(|axis| table.f32s(&format!("{prefix}origin.{axis}")));
    let yaw = [format!("{prefix}viewangles.y"), yaw.to_owned()].map(|name| table.f32s(&name));
    let yaw = yaw.into_iter().find(|column| !column.is_empty()).unwrap_or_default();
    move |rows| {
        let sample = |row: &u32| {
            let row = *row as usize;
            let place = [*x.get(row)?, *y.get(row)?, z.get(row).copied().unwrap_or(0.0)];
            let yaw = yaw.get(row).copied().filter(|yaw| yaw.is_finite());
            let is_somewhere = place.iter().all(|at| at.is_finite());
            is_somewhere.then_some(Sample { step: step(row)?, place, yaw, mark: 0 })
        };
        rows.iter().filter_map(sample).collect()
    }
}

fn bodies_of(reader: &Reader<'_>, server: &Clock, exactness: Exactness, columns: &mut Columns) -> Vec<Track> {
    let Some(table) = reader.trace().table(bodies::NAME) else { return Vec::new() };
    let ticks = bodies::Columns::read(table).tick;
    let read = samples(table, "", "", |row| server.step_of(*ticks.get(row)?));
    let track = |([entity, _], rows): ([u32; 2], &[u32])| packed((entity, None), &read(rows), exactness, columns);
    reader.bodies().iter().map(track).filter(|track| !track.is_empty()).collect()
}

fn own_of(reader: &Reader<'_>, clocks: &[(u32, Clock)], exactness: Exactness, columns: &mut Columns) -> Vec<Track> {
    let Some(table) = reader.trace().table(frames::NAME) else { return Vec::new() };
    let read = frames::Columns::read(table);
    let own = clocks.iter().map(|(player, clock)| {
        let has_body = |row: usize| read.has_body.get(row).is_none_or(|has_body| *has_body == 1);
        let step = |row: usize| clock.step_of(*read.command.get(row)?).filter(|_| has_body(row));
        let samples = samples(table, "own.", "yaw", step)(reader.frames().rows([*player, 0]));
        packed((*player, Some(*player)), &samples, exactness, columns)
    });
    own.filter(|track| !track.is_empty()).collect()
}

fn packed(whose: (u32, Option<u32>), samples: &[Sample], exactness: Exactness, columns: &mut Columns) -> Track {
    Track::pack(whose, samples, &knots(samples, exactness.tolerance), exactness.unit, columns)
}

/// What each player drew of each other entity, as exactly as the limit allows.
fn views_of(
    reader: &Reader<'_>,
    clocks: &[(u32, Clock)],
    exactness: Exactness,
    most: usize,
    columns: &mut Columns,
) -> (Vec<Track>, Exactness) {
    let Some(table) = reader.trace().table(views::NAME) else { return (Vec::new(), exactness) };
    let read = views::Columns::read(table);
    let way = |([player, entity], rows): ([u32; 2], &[u32])| {
        let (_, clock) = clocks.iter().find(|(known, _)| *known == player)?;
        let mut way = samples(table, "", "", |row| clock.step_of(*read.command.get(row)?))(rows);
        // If a row has no position, the marks are left out.
        if way.len() == rows.len() {
            for (sample, row) in way.iter_mut().zip(rows) {
                sample.mark = read.how.codes.get(*row as usize).map_or(0, |how| *how as u8);
            }
        }
        Some(((entity, Some(player)), way))
    };
    let ways: Vec<_> = reader.views().iter().filter_map(way).collect();
    let kept_at = |exactness: Exactness| {
        use rayon::prelude::*;
        ways.par_iter().map(|(_, way)| knots(way, exactness.tolerance)).collect::<Vec<_>>()
    };
    let mut drawn = exactness;
    let mut kept = kept_at(drawn);
    while kept.iter().map(Vec::len).sum::<usize>() > most && drawn.tolerance < 1e3 * exactness.tolerance {
        drawn = drawn.coarser();
        kept = kept_at(drawn);
    }
    let tracks = ways.iter().zip(&kept);
    let tracks = tracks.map(|((whose, way), kept)| Track::pack(*whose, way, kept, drawn.unit, columns));
    (tracks.filter(|track| !track.is_empty()).collect(), drawn)
}

fn shots_of(reader: &Reader<'_>, shown: &Shown<'_>) -> Vec<Explained<Shot>> {
    let settings = &reader.trace().header.settings;
    let explained = |row| {
        let mut shot = reader.shot(row);
        shown.session.into_iter().for_each(|session| shot.know_log(session));
        let rejudged = shot.otherwise(shown.rejudged);
        let why = Why::Shot(Box::new(shot));
        let answer = why_answer(&why, settings);
        let Why::Shot(it) = why else { return None };
        Some(Explained { answer, rejudged, it: *it })
    };
    (0..shots::Columns::of(reader.trace()).rows).filter_map(explained).collect()
}

fn corrections_of(reader: &Reader<'_>) -> Vec<Explained<Correction>> {
    let settings = &reader.trace().header.settings;
    let explained = |it: Correction| {
        let answer = why_answer(&Why::Correction(Box::new(it.clone())), settings);
        Explained { answer, rejudged: Vec::new(), it }
    };
    reader.corrections().into_iter().map(explained).collect()
}

fn acks_of(reader: &Reader<'_>, exactness: Exactness, columns: &mut Columns) -> Vec<Acks> {
    let trace = reader.trace();
    let (table, frames) = (corrections::Columns::of(trace), frames::Columns::of(trace));
    let by_player = Series::of_one(table.player, table.command);
    let unit = TIME_UNIT_US as f64;
    let of_player = |([player, _], rows): ([u32; 2], &[u32])| {
        let rows = || rows.iter().map(|row| *row as usize).filter(|row| *row < table.at_us.len());
        let made = |row: usize| frames.at_us.get(reader.frames().at([player, 0], table.command[row]).next()?);
        let round_trip =
            |row: usize| made(row).map_or(-1, |made| table.at_us[row].saturating_sub(*made) / TIME_UNIT_US);
        let error = |row: usize| whole(table.error_units.get(row).copied().unwrap_or_default(), exactness.unit / 4.0);
        Acks {
            player,
            at_us: columns.push_steady(rows().map(|row| table.at_us[row] / TIME_UNIT_US), unit),
            round_trip_us: columns.push(rows().map(round_trip), unit),
            error_units: columns.push(rows().map(error), exactness.unit / 4.0),
        }
    };
    by_player.iter().map(of_player).collect()
}

fn ran_of(reader: &Reader<'_>, columns: &mut Columns) -> Vec<OfPlayer> {
    let ran = frames::Columns::of(reader.trace()).ran;
    let of_player = |([player, _], rows): ([u32; 2], &[u32])| {
        let values = rows.iter().filter_map(|row| ran.get(*row as usize)).map(|ran| i64::from(*ran));
        OfPlayer { player, values: columns.push(values, 1.0) }
    };
    reader.frames().iter().filter(|_| !ran.is_empty()).map(of_player).collect()
}

fn unrun_of(trace: &Trace, server: &Clock, columns: &mut Columns) -> Option<Unrun> {
    let table = executed::Columns::of(trace);
    let unrun = |row: &usize| !matches!(table.how.get(*row), "run" | "");
    let rows: Vec<(usize, u32)> =
        (0..table.rows).filter(unrun).filter_map(|row| Some((row, server.step_of(*table.tick.get(row)?)?))).collect();
    let how = |row: usize| i64::from(table.how.codes.get(row).copied().unwrap_or_default());
    (table.rows > 0).then(|| Unrun {
        player: columns.push(rows.iter().map(|(row, _)| i64::from(table.player[*row])), 1.0),
        step: columns.push(rows.iter().map(|(_, step)| i64::from(*step)), 1.0),
        how: columns.push(rows.iter().map(|(row, _)| how(*row)), 1.0),
        names: table.how.names.to_vec(),
    })
}

fn packets_of(packets: &[Packet], columns: &mut Columns) -> Vec<Packets> {
    let of_both = packets.chunk_by(|a, b| (a.player, a.is_up) == (b.player, b.is_up));
    let packed = of_both.map(|packets| {
        let took = |packet: &Packet| packet.took_us.map_or(-1, |took| took.max(0) / TIME_UNIT_US);
        let bytes: Option<Vec<i64>> = packets.iter().map(|packet| packet.bytes.map(i64::from)).collect();
        Packets {
            player: packets[0].player,
            way: if packets[0].is_up { "up" } else { "down" },
            sent_us: columns
                .push_steady(packets.iter().map(|packet| packet.sent_us / TIME_UNIT_US), TIME_UNIT_US as f64),
            transit_us: columns.push(packets.iter().map(took), TIME_UNIT_US as f64),
            bytes: bytes.map(|bytes| columns.push(bytes, 1.0)),
            choked: columns.push(packets.iter().map(|packet| i64::from(packet.choked)), 1.0),
        }
    });
    packed.collect()
}

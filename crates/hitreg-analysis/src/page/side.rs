//! One trace in the page's format.

use serde::Serialize;

use super::clock::{PackedClock, StepTimes};
use super::packed::{ColumnSpan, PageColumns, whole};
use super::tracks::{PageTrack, TrackPoint, TrackPrecision, knots};
use super::{PageInput, notes};
use crate::report::why_answer;
use crate::why::{CorrectionExplanation, RejudgedShot, ShotExplanation, TraceRows, Why};
use hitreg_log::trace::schema::{BODIES_OF_CLASS, bodies, corrections, executed, frames, shots, views};
use hitreg_log::trace::{Series, Table, Trace};
use hitreg_log::traffic::{self, Packet};

/// One trace.
#[derive(Debug, Serialize)]
pub(super) struct PageSide {
    name: String,
    game: String,
    map: String,
    mode: String,
    settings: Vec<(String, String)>,
    tables: Vec<(String, usize)>,
    /// What the trace does not say.
    notes: Vec<String>,
    exactness: [TrackPrecision; 2],
    players: Vec<u32>,
    clocks: Vec<PackedClock>,
    bodies: Vec<PageTrack>,
    own: Vec<PageTrack>,
    views: Vec<PageTrack>,
    /// The names of the ways of drawing, indexed by the marks of `views`.
    how: Vec<String>,
    shots: Vec<PageExplanation<ShotExplanation>>,
    corrections: Vec<PageExplanation<CorrectionExplanation>>,
    acks: Vec<AckColumns>,
    /// How many usercmds ran in each frame.
    ran: Vec<PlayerColumn>,
    unrun: Option<UnrunUsercmds>,
    packets: Vec<PagePackets>,
}

/// A shot or a correction with the answer of `why`.
#[derive(Debug, Serialize)]
struct PageExplanation<T> {
    answer: String,
    /// The shot's results under other rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejudged: Vec<RejudgedShot>,
    #[serde(flatten)]
    it: T,
}

/// A player's acks.
#[derive(Debug, Serialize)]
struct AckColumns {
    player: u32,
    at_us: ColumnSpan,
    /// Time from making the usercmd to its ack; negative if it is unknown.
    round_trip_us: ColumnSpan,
    error_units: ColumnSpan,
}

/// A player's column, with a value for each step of its clock.
#[derive(Debug, Serialize)]
struct PlayerColumn {
    player: u32,
    values: ColumnSpan,
}

/// Usercmds whose outcome on the server is not `run`.
#[derive(Debug, Serialize)]
struct UnrunUsercmds {
    player: ColumnSpan,
    /// The step of the server's clock.
    step: ColumnSpan,
    how: ColumnSpan,
    names: Vec<String>,
}

/// A player's packets in one direction.
#[derive(Debug, Serialize)]
struct PagePackets {
    player: u32,
    way: &'static str,
    sent_us: ColumnSpan,
    /// Negative if the packet never arrived.
    transit_us: ColumnSpan,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<ColumnSpan>,
    choked: ColumnSpan,
}

/// The rounding of the times of packets and acks, in microseconds.
const TIME_UNIT_US: i64 = 50;

impl PageSide {
    pub(super) fn of(shown: &PageInput<'_>, most_views: usize, columns: &mut PageColumns) -> PageSide {
        let trace = shown.trace;
        let reader = TraceRows::new(trace);
        // A log has the sizes of its datagrams.
        let packets = shown.session.map_or_else(|| traffic::of_trace(trace), traffic::of_session);
        let players = players(trace, &reader);
        let (server, is_timed) = StepTimes::of_server(trace);
        let clocks: Vec<(u32, StepTimes)> =
            players.iter().map(|player| (*player, StepTimes::of_player(trace, &reader, *player))).collect();
        let exactness = TrackPrecision::of_world(reach(trace));
        let packed = [(None, &server)].into_iter().chain(clocks.iter().map(|(player, clock)| (Some(*player), clock)));
        let packed = packed.filter(|(_, clock)| !clock.is_empty());
        let packed = packed.map(|(player, clock)| clock.pack(player, columns)).collect();
        let (views, drawn) = views_of(&reader, &clocks, exactness, most_views, columns);
        let table = views::Columns::of(trace);
        PageSide {
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
fn players(trace: &Trace, reader: &TraceRows<'_>) -> Vec<u32> {
    let mut players: Vec<u32> = [executed::Columns::of(trace).player, shots::Columns::of(trace).shooter].concat();
    players.extend_from_slice(corrections::Columns::of(trace).player);
    let screens = reader.frames.iter().chain(reader.views.iter());
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
        let values = names.map(|name| table.floats(&name).iter().step_by(7).map(|at| at.abs()).collect::<Vec<f32>>());
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
) -> impl Fn(&[u32]) -> Vec<TrackPoint> + 't {
    let [x, y, z] = ["x", "y", "z"].map(|axis| table.floats(&format!("{prefix}origin.{axis}")));
    let yaw = [format!("{prefix}viewangles.y"), yaw.to_owned()].map(|name| table.floats(&name));
    let yaw = yaw.into_iter().find(|column| !column.is_empty()).unwrap_or_default();
    move |rows| {
        let sample = |row: &u32| {
            let row = *row as usize;
            let place = [*x.get(row)?, *y.get(row)?, z.get(row).copied().unwrap_or(0.0)];
            let yaw = yaw.get(row).copied().filter(|yaw| yaw.is_finite());
            let is_somewhere = place.iter().all(|at| at.is_finite());
            is_somewhere.then_some(TrackPoint { step: step(row)?, place, yaw, mark: 0 })
        };
        rows.iter().filter_map(sample).collect()
    }
}

fn bodies_of(
    reader: &TraceRows<'_>,
    server: &StepTimes,
    exactness: TrackPrecision,
    columns: &mut PageColumns,
) -> Vec<PageTrack> {
    let tables = reader.trace.tables.iter();
    let tables = tables.filter(|table| table.name == bodies::NAME || table.name.starts_with(BODIES_OF_CLASS));
    let mut tracks = Vec::new();
    for table in tables {
        let read = bodies::Columns::read(table);
        let points = samples(table, "", "", |row| server.step_of(*read.tick.get(row)?));
        for ([entity, _], rows) in Series::of_one(read.entity, read.tick).iter() {
            tracks.push(packed((entity, None), &points(rows), exactness, columns));
        }
    }
    tracks.retain(|track| !track.is_empty());
    tracks
}

fn own_of(
    reader: &TraceRows<'_>,
    clocks: &[(u32, StepTimes)],
    exactness: TrackPrecision,
    columns: &mut PageColumns,
) -> Vec<PageTrack> {
    let Some(table) = reader.trace.table(frames::NAME) else { return Vec::new() };
    let read = frames::Columns::read(table);
    let own = clocks.iter().map(|(player, clock)| {
        let has_body = |row: usize| read.has_body.get(row).is_none_or(|has_body| *has_body == 1);
        let step = |row: usize| clock.step_of(*read.command.get(row)?).filter(|_| has_body(row));
        let samples = samples(table, "own.", "yaw", step)(reader.frames.rows([*player, 0]));
        packed((*player, Some(*player)), &samples, exactness, columns)
    });
    own.filter(|track| !track.is_empty()).collect()
}

fn packed(
    whose: (u32, Option<u32>),
    samples: &[TrackPoint],
    exactness: TrackPrecision,
    columns: &mut PageColumns,
) -> PageTrack {
    PageTrack::pack(whose, samples, &knots(samples, exactness.tolerance), exactness.unit, columns)
}

/// What each player drew of each other entity, as exactly as the limit allows.
fn views_of(
    reader: &TraceRows<'_>,
    clocks: &[(u32, StepTimes)],
    exactness: TrackPrecision,
    most: usize,
    columns: &mut PageColumns,
) -> (Vec<PageTrack>, TrackPrecision) {
    let Some(table) = reader.trace.table(views::NAME) else { return (Vec::new(), exactness) };
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
    let ways: Vec<_> = reader.views.iter().filter_map(way).collect();
    let kept_at = |exactness: TrackPrecision| {
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
    let tracks = tracks.map(|((whose, way), kept)| PageTrack::pack(*whose, way, kept, drawn.unit, columns));
    (tracks.filter(|track| !track.is_empty()).collect(), drawn)
}

fn shots_of(reader: &TraceRows<'_>, shown: &PageInput<'_>) -> Vec<PageExplanation<ShotExplanation>> {
    let settings = &reader.trace.header.settings;
    let explained = |row| {
        let mut shot = reader.shot(row);
        shown.session.into_iter().for_each(|session| shot.know_log(session));
        let rejudged = shot.otherwise(shown.rejudged);
        let why = Why::Shot(Box::new(shot));
        let answer = why_answer(&why, settings);
        let Why::Shot(it) = why else { return None };
        Some(PageExplanation { answer, rejudged, it: *it })
    };
    (0..shots::Columns::of(reader.trace).rows).filter_map(explained).collect()
}

fn corrections_of(reader: &TraceRows<'_>) -> Vec<PageExplanation<CorrectionExplanation>> {
    let settings = &reader.trace.header.settings;
    let explained = |it: CorrectionExplanation| {
        let answer = why_answer(&Why::Correction(Box::new(it.clone())), settings);
        PageExplanation { answer, rejudged: Vec::new(), it }
    };
    reader.corrections().into_iter().map(explained).collect()
}

fn acks_of(reader: &TraceRows<'_>, exactness: TrackPrecision, columns: &mut PageColumns) -> Vec<AckColumns> {
    let trace = reader.trace;
    let (table, frames) = (corrections::Columns::of(trace), frames::Columns::of(trace));
    let by_player = Series::of_one(table.player, table.command);
    let unit = TIME_UNIT_US as f64;
    let of_player = |([player, _], rows): ([u32; 2], &[u32])| {
        let rows = || rows.iter().map(|row| *row as usize).filter(|row| *row < table.at_us.len());
        let made = |row: usize| frames.at_us.get(reader.frames.at([player, 0], table.command[row]).next()?);
        let round_trip =
            |row: usize| made(row).map_or(-1, |made| table.at_us[row].saturating_sub(*made) / TIME_UNIT_US);
        let error = |row: usize| whole(table.error_units.get(row).copied().unwrap_or_default(), exactness.unit / 4.0);
        AckColumns {
            player,
            at_us: columns.push_steady(rows().map(|row| table.at_us[row] / TIME_UNIT_US), unit),
            round_trip_us: columns.push(rows().map(round_trip), unit),
            error_units: columns.push(rows().map(error), exactness.unit / 4.0),
        }
    };
    by_player.iter().map(of_player).collect()
}

fn ran_of(reader: &TraceRows<'_>, columns: &mut PageColumns) -> Vec<PlayerColumn> {
    let ran = frames::Columns::of(reader.trace).ran;
    let of_player = |([player, _], rows): ([u32; 2], &[u32])| {
        let values = rows.iter().filter_map(|row| ran.get(*row as usize)).map(|ran| i64::from(*ran));
        PlayerColumn { player, values: columns.push(values, 1.0) }
    };
    reader.frames.iter().filter(|_| !ran.is_empty()).map(of_player).collect()
}

fn unrun_of(trace: &Trace, server: &StepTimes, columns: &mut PageColumns) -> Option<UnrunUsercmds> {
    let table = executed::Columns::of(trace);
    let unrun = |row: &usize| !matches!(table.how.get(*row), "run" | "");
    let rows: Vec<(usize, u32)> =
        (0..table.rows).filter(unrun).filter_map(|row| Some((row, server.step_of(*table.tick.get(row)?)?))).collect();
    let how = |row: usize| i64::from(table.how.codes.get(row).copied().unwrap_or_default());
    (table.rows > 0).then(|| UnrunUsercmds {
        player: columns.push(rows.iter().map(|(row, _)| i64::from(table.player[*row])), 1.0),
        step: columns.push(rows.iter().map(|(_, step)| i64::from(*step)), 1.0),
        how: columns.push(rows.iter().map(|(row, _)| how(*row)), 1.0),
        names: table.how.names.to_vec(),
    })
}

fn packets_of(packets: &[Packet], columns: &mut PageColumns) -> Vec<PagePackets> {
    let of_both = packets.chunk_by(|a, b| (a.player, a.is_up) == (b.player, b.is_up));
    let packed = of_both.map(|packets| {
        let took = |packet: &Packet| packet.took_us.map_or(-1, |took| took.max(0) / TIME_UNIT_US);
        let bytes: Option<Vec<i64>> = packets.iter().map(|packet| packet.bytes.map(i64::from)).collect();
        PagePackets {
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

//! One trace in the page's format. Each table is read once or twice, part by part, so that a trace of any length can be
//! shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::clock::{PackedClock, StepTimes};
use super::evidence::Evidence;
use super::packed::{ColumnSpan, PageColumns, whole};
use super::records::{PackedRecords, RecordPacker};
use super::series::{Ack, Packets, PagePackets, RoundTrips, Sample, Series, TIME_UNIT_US};
use super::tracks::{PageTrack, TrackPoint, TrackPrecision, TrackSet};
use super::{PageInput, notes};
use crate::report::why_answer;
use crate::why::{DrawnSnapshots, RejudgedShot, TraceRows, UsercmdPath, Why};
use hitreg_log::trace::schema::{BODIES_OF_CLASS, bodies, corrections, executed, frames, shots, views};
use hitreg_log::trace::{Table, TraceSource, each_part};
use hitreg_log::traffic::PacketReader;
use hitreg_log::units::Micros;

/// The most samples of paths in a page, for all sides together: of bodies on the server, of predicted bodies, and of
/// what screens showed. With more samples, lines become coarser.
const MOST_BODIES: usize = 400_000;
const MOST_OWN: usize = 400_000;
const MOST_VIEWS: usize = 1_000_000;
/// The most values over time in a page, for all sides together. More values are merged with their neighbours.
const MOST_ACKS: usize = 200_000;
const MOST_RAN: usize = 640_000;
/// The most packets that arrived in a page, for all sides together, the most of those that were lost or held back, and
/// the most usercmds that did not run. Of more, every n-th is drawn.
const MOST_PACKETS: usize = 400_000;
const MOST_UNRUN: usize = 200_000;

/// One trace.
#[derive(Debug, Serialize)]
pub(super) struct PageSide {
    name: String,
    game: String,
    map: String,
    mode: String,
    settings: Vec<(String, String)>,
    tables: Vec<(String, u64)>,
    /// What the trace does not say.
    notes: Vec<String>,
    /// What the page leaves out of a long session.
    thinned: Vec<String>,
    exactness: [TrackPrecision; 2],
    players: Vec<u32>,
    clocks: Vec<PackedClock>,
    bodies: Vec<PageTrack>,
    own: Vec<PageTrack>,
    views: Vec<PageTrack>,
    /// The names of the ways of drawing, indexed by the marks of `views`.
    how: Vec<String>,
    shots: PackedRecords,
    corrections: PackedRecords,
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
    /// What all acks amount to, if several are merged into one.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<AllAcks>,
}

/// The figures of all acks of a player.
#[derive(Debug, Serialize)]
struct AllAcks {
    p50_us: Option<i64>,
    p95_us: Option<i64>,
    /// The largest jitter of the merged acks.
    jitter_us: ColumnSpan,
}

/// A player's column, with a value for each step of its clock, or for so many steps.
#[derive(Debug, Serialize)]
struct PlayerColumn {
    player: u32,
    values: ColumnSpan,
    steps: usize,
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

impl PageSide {
    /// Reads one side of a page of so many sides.
    pub(super) fn of(shown: &PageInput<'_>, sides: usize, columns: &mut PageColumns) -> Result<PageSide, String> {
        let trace = shown.trace;
        let (server, is_timed) = StepTimes::of_server(trace)?;
        let clocks = StepTimes::of_players(trace)?;
        let exactness = TrackPrecision::of_world(reach(trace)?);
        let evidence = Evidence::read(trace)?;
        let mut players: BTreeSet<u32> = clocks.keys().copied().collect();
        players.extend(shots::Columns::of(&evidence.trace).shooter);
        let most = |of_page: usize| of_page / sides.max(1);

        // Each kind of path is packed before the next one is read.
        let bodies = bodies_of(trace, &server, TrackSet::new(exactness, most(MOST_BODIES)))?;
        let mut precision = bodies.precision;
        let bodies = bodies.pack(false, columns);
        let (own, ran) = frames_of(trace, &clocks, TrackSet::new(exactness, most(MOST_OWN)), most(MOST_RAN))?;
        precision = if own.precision.unit > precision.unit { own.precision } else { precision };
        let own = own.pack(true, columns);
        let set = TrackSet::new(exactness, most(MOST_VIEWS));
        let ScreenRows { tracks: views, how, evidence } = ScreenRows::of(trace, &clocks, set, evidence, &mut players)?;
        let (acks, trips) = acks_of(trace, &clocks, exactness, most(MOST_ACKS), &mut players)?;
        let unrun = UnrunRows::of(trace, &server, most(MOST_UNRUN), &mut players)?;
        let packets = packets_of(shown, most(MOST_PACKETS))?;
        let rows: Vec<(String, u64)> = trace.tables().iter().map(|(table, rows)| (table.name.clone(), *rows)).collect();

        let thinned = notes::thinned(&notes::Thinning {
            places: precision != exactness,
            views: views.precision != exactness,
            acks: acks.merged,
            ran: ran.merged,
            packets: packets.every(),
            unrun: unrun.rows.every(),
        });
        let clock_columns =
            [(None, &server)].into_iter().chain(clocks.iter().map(|(player, clock)| (Some(*player), clock)));
        let clock_columns = clock_columns.filter(|(_, clock)| !clock.is_empty());
        Ok(PageSide {
            name: shown.name.to_owned(),
            game: trace.header().game.clone(),
            map: shown.map.to_owned(),
            mode: trace.header().mode.clone(),
            settings: trace.header().settings.clone(),
            tables: rows,
            notes: notes::notes(shown, is_timed, !packets.is_empty()),
            thinned,
            exactness: [precision, views.precision],
            clocks: clock_columns.map(|(player, clock)| clock.pack(player, columns)).collect(),
            bodies,
            own,
            views: views.pack(true, columns),
            how,
            shots: shots_of(&evidence, shown, columns)?,
            corrections: corrections_of(&evidence, columns)?,
            acks: pack_acks(&acks, &trips, exactness, columns),
            ran: pack_ran(&ran, columns),
            unrun: unrun.pack(columns),
            packets: packets.pack(columns),
            players: players.into_iter().collect(),
        })
    }
}

/// A size that most coordinates of the world are below, in units.
fn reach(trace: &dyn TraceSource) -> Result<f32, String> {
    // The powers of two that are just not below the coordinates: the exactness depends on no more.
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    let places = ["origin.x", "origin.y", "origin.z"];
    let own = ["own.origin.x", "own.origin.y", "own.origin.z"];
    for (table, columns) in [(bodies::NAME, places), (frames::NAME, own), (views::NAME, places)] {
        // Screens show the same world.
        if table == views::NAME && !counts.is_empty() {
            break;
        }
        each_part(trace, table, (&columns, None), &mut |rows| {
            for values in columns.iter().map(|name| rows.floats(name)) {
                let sizes = values.iter().step_by(7).map(|at| at.abs()).filter(|at| at.is_finite());
                sizes.for_each(|at| *counts.entry(libm::ceilf(libm::log2f(at.max(1e-3))) as i32).or_default() += 1);
            }
            Ok(())
        })?;
    }
    let all: u64 = counts.values().sum();
    let rank = libm::ceil(0.98 * all as f64) as u64;
    let mut below = 0;
    let found = counts.iter().find(|(_, count)| {
        below += **count;
        below >= rank.max(1)
    });
    Ok(found.map_or(1.0, |(power, _)| libm::exp2f(*power as f32)))
}

/// The columns of a table that hold positions.
struct Places<'t> {
    places: [std::borrow::Cow<'t, [f32]>; 3],
    yaw: std::borrow::Cow<'t, [f32]>,
}

impl<'t> Places<'t> {
    /// Reads the columns with a prefix.
    fn of(table: &'t Table, prefix: &str, yaw: &str) -> Places<'t> {
        let yaw = [format!("{prefix}viewangles.y"), yaw.to_owned()].map(|name| table.floats(&name));
        Places {
            places: ["x", "y", "z"].map(|axis| table.floats(&format!("{prefix}origin.{axis}"))),
            yaw: yaw.into_iter().find(|column| !column.is_empty()).unwrap_or_default(),
        }
    }

    /// The position in a row; `None` without x and y, or at infinity.
    fn at(&self, row: usize, step: u32, mark: u8) -> Option<TrackPoint> {
        let [x, y, z] = &self.places;
        let place = [*x.get(row)?, *y.get(row)?, z.get(row).copied().unwrap_or(0.0)];
        let yaw = self.yaw.get(row).copied().filter(|yaw| yaw.is_finite());
        place.iter().all(|at| at.is_finite()).then_some(TrackPoint { step, place, yaw, mark })
    }
}

fn bodies_of(trace: &dyn TraceSource, server: &StepTimes, mut set: TrackSet) -> Result<TrackSet, String> {
    let columns = ["tick", "entity", "origin.x", "origin.y", "origin.z", "viewangles.y"];
    let tables = trace.tables();
    let names = tables.iter().map(|(table, _)| &*table.name);
    let names = names.filter(|name| *name == bodies::NAME || name.starts_with(BODIES_OF_CLASS));
    for (table, name) in (0..).zip(names) {
        each_part(trace, name, (&columns, None), &mut |rows| {
            let (read, places) = (bodies::Columns::read(rows), Places::of(rows, "", ""));
            for (row, (tick, entity)) in read.tick.iter().zip(read.entity).enumerate() {
                let Some(point) = server.step_of(*tick).and_then(|step| places.at(row, step, 0)) else { continue };
                let place = set.place([table, 0, *entity]);
                set.push(place, point);
            }
            Ok(())
        })?;
    }
    Ok(set)
}

/// The predicted bodies, and how many usercmds ran in each frame.
fn frames_of(
    trace: &dyn TraceSource,
    clocks: &BTreeMap<u32, StepTimes>,
    mut set: TrackSet,
    most_ran: usize,
) -> Result<(TrackSet, Series<u32>), String> {
    let own = ["x", "y", "z"].map(|axis| format!("own.origin.{axis}"));
    let columns = ["player", "command", "ran", "has_body", "yaw", "own.viewangles.y"];
    let columns: Vec<&str> = columns.into_iter().chain(own.iter().map(|name| &**name)).collect();
    let mut ran = Series::new(most_ran, |most: &mut u32, more: &u32| *most = (*most).max(*more));
    each_part(trace, frames::NAME, (&columns, None), &mut |rows| {
        let (read, places) = (frames::Columns::read(rows), Places::of(rows, "own.", "yaw"));
        for (row, (player, command)) in read.player.iter().zip(read.command).enumerate() {
            read.ran.get(row).into_iter().for_each(|count| ran.push(*player, *count));
            if read.has_body.get(row).is_some_and(|has_body| *has_body != 1) {
                continue;
            }
            let step = clocks.get(player).and_then(|clock| clock.step_of(*command));
            let Some(point) = step.and_then(|step| places.at(row, step, 0)) else { continue };
            let place = set.place([0, *player, *player]);
            set.push(place, point);
        }
        Ok(())
    })?;
    Ok((set, ran))
}

/// What each player drew of each other entity, as exactly as the limit allows.
struct ScreenRows {
    tracks: TrackSet,
    /// The names of the ways of drawing.
    how: Vec<String>,
    evidence: Evidence,
}

impl ScreenRows {
    fn of(
        trace: &dyn TraceSource,
        clocks: &BTreeMap<u32, StepTimes>,
        mut tracks: TrackSet,
        mut evidence: Evidence,
        players: &mut BTreeSet<u32>,
    ) -> Result<ScreenRows, String> {
        let columns =
            ["player", "command", "drawn_at_us", "entity", "origin.x", "origin.y", "origin.z", "how", "category"];
        let mut how = Vec::new();
        each_part(trace, views::NAME, (&columns, None), &mut |rows| {
            let (read, places) = (views::Columns::read(rows), Places::of(rows, "", ""));
            if how.len() < read.how.names.len() {
                how = read.how.names.to_vec();
            }
            // All rows of a screen follow each other.
            let mut screen: Option<((u32, u32), Option<u32>)> = None;
            for (row, ((player, command), entity)) in read.player.iter().zip(read.command).zip(read.entity).enumerate()
            {
                let step = match screen.filter(|(of, _)| *of == (*player, *command)) {
                    Some((_, step)) => step,
                    None => {
                        players.insert(*player);
                        let step = clocks.get(player).and_then(|clock| clock.step_of(*command));
                        screen = Some(((*player, *command), step));
                        step
                    }
                };
                let mark = read.how.codes.get(row).map_or(0, |how| *how as u8);
                let Some(point) = step.and_then(|step| places.at(row, step, mark)) else { continue };
                let place = tracks.place([0, *player, *entity]);
                tracks.push(place, point);
            }
            evidence.add_views(rows)
        })?;
        Ok(ScreenRows { tracks, how, evidence })
    }
}

/// Packs all shots, with the answers of `why`.
fn shots_of(evidence: &Evidence, shown: &PageInput<'_>, columns: &mut PageColumns) -> Result<PackedRecords, String> {
    let (trace, reader) = (&evidence.trace, TraceRows::new(&evidence.trace));
    let known = match shown.log {
        Some(_) => known_by_log(&reader, shown)?,
        None => Vec::new(),
    };
    let mut packer = RecordPacker::default();
    for row in 0..shots::Columns::of(trace).rows {
        let mut shot = reader.shot(row);
        if let Some((carried, drawn_from)) = known.get(row) {
            (shot.carried, shot.drawn_from) = (*carried, *drawn_from);
        }
        let rejudged = shot.otherwise(shown.rejudged);
        let why = Why::Shot(Box::new(shot));
        let answer = why_answer(&why, &trace.header.settings);
        if let Why::Shot(it) = why {
            packer.push(&PageExplanation { answer, rejudged, it: *it })?;
        }
    }
    Ok(packer.finish(columns))
}

/// What the log knows of a shot.
type KnownByLog = (Option<UsercmdPath>, Option<DrawnSnapshots>);

/// The shots of so much time are looked up in the log together.
const TOGETHER: Micros = Micros::from_s(8);
/// How much of the log is read before and after them. It includes datagrams in flight.
const AROUND: Micros = Micros::from_s(4);

/// What the log knows of each shot. The log is read once, a few seconds at a time.
fn known_by_log(reader: &TraceRows<'_>, shown: &PageInput<'_>) -> Result<Vec<KnownByLog>, String> {
    let table = shots::Columns::of(reader.trace);
    let mut known = vec![(None, None); table.rows];
    let Some(log) = shown.log else { return Ok(known) };
    let mut order: Vec<usize> = (0..table.rows.min(table.at_us.len())).collect();
    order.sort_by_key(|row| table.at_us[*row]);
    let mut left = &order[..];
    while let Some(first) = left.first() {
        let from = table.at_us[*first];
        let end = from.saturating_add(TOGETHER.0);
        let (together, later) = left.split_at(left.partition_point(|row| table.at_us[*row] < end));
        let [from, to] = [from.saturating_sub(AROUND.0), end.saturating_add(AROUND.0)].map(Micros);
        let session = log.between(from, to)?;
        for row in together {
            let mut shot = reader.shot(*row);
            shot.know_log(&session);
            known[*row] = (shot.carried, shot.drawn_from);
        }
        left = later;
    }
    Ok(known)
}

/// Packs all corrections, with the answers of `why`.
fn corrections_of(evidence: &Evidence, columns: &mut PageColumns) -> Result<PackedRecords, String> {
    let settings = &evidence.trace.header.settings;
    let mut packer = RecordPacker::default();
    for it in TraceRows::new(&evidence.trace).corrections() {
        let why = Why::Correction(Box::new(it));
        let answer = why_answer(&why, settings);
        if let Why::Correction(it) = why {
            packer.push(&PageExplanation { answer, rejudged: Vec::new(), it: *it })?;
        }
    }
    Ok(packer.finish(columns))
}

fn acks_of(
    trace: &dyn TraceSource,
    clocks: &BTreeMap<u32, StepTimes>,
    exactness: TrackPrecision,
    most: usize,
    players: &mut BTreeSet<u32>,
) -> Result<(Series<Ack>, BTreeMap<u32, RoundTrips>), String> {
    let (mut acks, mut trips) = (Series::new(most, Ack::merge), BTreeMap::<u32, RoundTrips>::new());
    let columns = ["player", "command", "at_us", "error_units"];
    each_part(trace, corrections::NAME, (&columns, None), &mut |rows| {
        let table = corrections::Columns::read(rows);
        players.extend(table.player);
        for (row, ((player, command), at_us)) in table.player.iter().zip(table.command).zip(table.at_us).enumerate() {
            let made = clocks.get(player).and_then(|clock| clock.time_of(*command));
            let round_trip_us = made.map_or(-1, |made| at_us.saturating_sub(made));
            let error = whole(table.error_units.get(row).copied().unwrap_or_default(), exactness.unit / 4.0);
            let jitter_us = trips.entry(*player).or_default().add(round_trip_us);
            acks.push(*player, Ack { at_us: *at_us, round_trip_us, error, jitter_us });
        }
        Ok(())
    })?;
    Ok((acks, trips))
}

fn pack_acks(
    acks: &Series<Ack>,
    trips: &BTreeMap<u32, RoundTrips>,
    exactness: TrackPrecision,
    columns: &mut PageColumns,
) -> Vec<AckColumns> {
    let unit = TIME_UNIT_US as f64;
    let trip = |ack: &Ack| if ack.round_trip_us < 0 { -1 } else { ack.round_trip_us / TIME_UNIT_US };
    let of_player = |(player, acked): (u32, &[Ack])| AckColumns {
        player,
        at_us: columns.push_steady(acked.iter().map(|ack| ack.at_us / TIME_UNIT_US), unit),
        round_trip_us: columns.push(acked.iter().map(trip), unit),
        error_units: columns.push(acked.iter().map(|ack| ack.error), exactness.unit / 4.0),
        all: (acks.merged > 1).then(|| AllAcks {
            p50_us: trips.get(&player).and_then(|trips| trips.percentile_us(0.5)),
            p95_us: trips.get(&player).and_then(|trips| trips.percentile_us(0.95)),
            jitter_us: columns.push(acked.iter().map(|ack| ack.jitter_us), 1.0),
        }),
    };
    acks.iter().map(of_player).collect()
}

fn pack_ran(ran: &Series<u32>, columns: &mut PageColumns) -> Vec<PlayerColumn> {
    let of_player = |(player, values): (u32, &[u32])| {
        let values = columns.push(values.iter().map(|ran| i64::from(*ran)), 1.0);
        PlayerColumn { player, values, steps: ran.merged }
    };
    ran.iter().map(of_player).collect()
}

/// The usercmds that did not run: the player, the step of the server's clock, and the code of the outcome.
struct UnrunRows {
    rows: Sample<[u32; 3]>,
    /// The names of outcomes; `None` if the trace has no outcomes.
    names: Option<Vec<String>>,
}

impl UnrunRows {
    fn of(
        trace: &dyn TraceSource,
        server: &StepTimes,
        most: usize,
        players: &mut BTreeSet<u32>,
    ) -> Result<UnrunRows, String> {
        let mut unrun = UnrunRows { rows: Sample::default(), names: None };
        each_part(trace, executed::NAME, (&["player", "tick", "how"], None), &mut |rows| {
            let table = executed::Columns::read(rows);
            if table.rows > 0 && unrun.names.as_ref().is_none_or(|names| names.len() < table.how.names.len()) {
                unrun.names = Some(table.how.names.to_vec());
            }
            players.extend(table.player);
            let is_unrun: Vec<bool> = table.how.names.iter().map(|how| !matches!(&**how, "run" | "")).collect();
            for (row, code) in table.how.codes.iter().enumerate() {
                if is_unrun.get(*code as usize).is_some_and(|is_unrun| *is_unrun)
                    && let Some(step) = table.tick.get(row).and_then(|tick| server.step_of(*tick))
                {
                    unrun.rows.push([table.player[row], step, *code]);
                    unrun.rows.thin_over(most);
                }
            }
            Ok(())
        })?;
        Ok(unrun)
    }

    fn pack(self, columns: &mut PageColumns) -> Option<UnrunUsercmds> {
        let names = self.names?;
        let mut column = |place: usize| columns.push(self.rows.iter().map(|row| i64::from(row[place])), 1.0);
        let [player, step, how] = [0, 1, 2].map(&mut column);
        Some(UnrunUsercmds { player, step, how, names })
    }
}

/// The packets of the log, which has the sizes of its datagrams, or those of the trace.
fn packets_of(shown: &PageInput<'_>, most: usize) -> Result<Packets, String> {
    let mut packets = Packets::new(most);
    match shown.log {
        Some(log) => {
            let mut reader = PacketReader::new(log.header());
            log.each(&mut |stretch| reader.add(stretch, &mut |packet| packets.push(packet)))?;
            reader.end(&mut |packet| packets.push(packet));
        }
        None => packets.add_rows(shown.trace)?,
    }
    Ok(packets)
}

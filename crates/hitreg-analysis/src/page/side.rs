//! One trace in the page's format. Each table is read once or twice, part by part, so that a trace of any length can be
//! shown.

use serde::Serialize;

use super::PageInput;
use super::clock::{ClockStep, PackedClock, StepTimes};
use super::evidence::{ExplainedRows, corrections_of, shots_of};
use super::network::{NetworkRows, PacketKind, PagePackets, RoundTripColumns, pack_round_trips};
use super::packed::{PackedRecords, PageColumns};
use super::series::{AckColumns, KindSamples, PlayerColumn, PlayerSeries, UnrunRows, UnrunUsercmds};
use super::series::{acks_of, pack_acks, pack_ran};
use super::tracks::{PageTrack, TrackPoint, TrackPrecision, TrackSet, TrackWorld};
use crate::report::figures::{count, replay_mode};
use crate::summary::{ShotCounter, knows_corrections};
use hitreg_log::record::{GapRecord, Origin};
use hitreg_log::recorder::last_usercmd_as_received;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{bodies, corrections, frames, is_bodies, shots, views};
use hitreg_log::trace::{ColumnData, Table, TraceReadError, TraceSource, body_tables, each_part};
use hitreg_log::traffic::SnapshotNumbers;

/// The most samples of paths in a page, for all sides together: of bodies on the server, of predicted bodies, and of
/// what screens showed. With more samples, lines become coarser.
const BODIES_MAX: usize = 400_000;
const OWN_BODIES_MAX: usize = 400_000;
const VIEWS_MAX: usize = 1_000_000;
/// The most values over time in a page, for all sides together. More values are merged with their neighbours.
const ACKS_MAX: usize = 200_000;
const EXECUTED_MAX: usize = 640_000;
/// The most packets that arrived in a page, for all sides together, the most of those that were lost or held back, and
/// the most usercmds that did not run. Of more, every n-th of the most frequent kind is drawn.
const PACKETS_MAX: usize = 400_000;
const UNEXECUTED_MAX: usize = 200_000;

/// One trace.
#[derive(Debug, Serialize)]
pub(super) struct PageSide {
    name: String,
    game: String,
    map: String,
    mode: String,
    /// Whether the trace is without a server.
    is_open: bool,
    /// Whether the trace is of a part of a session.
    is_part: bool,
    /// Whether the number of corrections is known.
    knows_corrections: bool,
    settings: Vec<(String, String)>,
    /// The players whose usercmds have the times of their arrivals, each with the last such usercmd.
    usercmds_as_received: Vec<(u32, u32)>,
    tables: Vec<(String, u64)>,
    /// The missing parts of the log.
    gaps: Vec<PageGap>,
    /// What the trace does not say.
    pub(super) notes: Vec<String>,
    /// What the page leaves out of a long session.
    thinned: Vec<String>,
    pub(super) exactness: [TrackPrecision; 2],
    /// Those whom the log or the trace lists, and those of its rows.
    players: Vec<u32>,
    /// The name of each player by number; empty if players have only numbers.
    names: Vec<String>,
    clocks: Vec<PackedClock>,
    pub(super) bodies: Vec<PageTrack>,
    own: Vec<PageTrack>,
    views: Vec<PageTrack>,
    /// The names of the ways of drawing, indexed by the marks of `views`.
    how: Vec<String>,
    shots: PackedRecords,
    /// The numbers of shots and hits of each shooter, as `replay` counts them.
    shot_counts: Vec<PlayerShots>,
    corrections: PackedRecords,
    acks: Vec<AckColumns>,
    round_trips: Vec<RoundTripColumns>,
    /// How many usercmds ran in each frame.
    ran: Vec<PlayerColumn>,
    /// `None` if the trace has no outcomes of usercmds.
    unrun: Option<Vec<UnrunUsercmds>>,
    packets: Vec<PagePackets>,
    /// The word for packets that did not arrive from the server.
    missing_down: &'static str,
}

/// A span of the session with missing records.
#[derive(Debug, Serialize)]
struct PageGap {
    from_us: i64,
    to_us: i64,
    /// The player whose records are missing; `None` if those of any may be.
    player: Option<u32>,
}

/// The numbers of shots and hits of a player.
#[derive(Debug, Serialize)]
struct PlayerShots {
    player: u32,
    fired: u64,
    hit: u64,
    reported: u64,
}

impl PageSide {
    /// Reads one side of a page of so many sides.
    pub(super) fn of(
        shown: &PageInput<'_>,
        sides: usize,
        columns: &mut PageColumns,
    ) -> Result<PageSide, TraceReadError> {
        let trace = shown.trace;
        let (server, is_timed) = StepTimes::of_server(trace)?;
        let clocks = StepTimes::of_players(trace)?;
        let world = TrackWorld::of(trace)?;
        let exactness = world.precision;
        let mut evidence = ExplainedRows::read(trace)?;
        let mut players: SortedSet<u32> = clocks.keys().copied().collect();
        players.extend(shots::Columns::of(&evidence.trace).shooter);
        let names = trace.header().session.as_ref().map(|session| session.players.clone()).unwrap_or_default();
        // Bots and spectators have no usercmds.
        players.extend((0..).zip(&names).map(|(player, _)| player));
        let listed = shown.log.map_or(&[][..], |log| &log.header().players);
        players.extend((0..).zip(listed).map(|(player, _)| player));
        let most = |of_page: usize| of_page / sides.max(1);

        // Each kind of path is packed before the next one is read.
        let bodies = bodies_of(trace, &server, TrackSet::new(world, most(BODIES_MAX)))?;
        let mut precision = bodies.precision;
        let bodies = bodies.pack(false, columns);
        let (own, ran) = frames_of(trace, &clocks, TrackSet::new(world, most(OWN_BODIES_MAX)), most(EXECUTED_MAX))?;
        precision = if own.precision.unit > precision.unit { own.precision } else { precision };
        let own = own.pack(true, columns);
        let set = TrackSet::new(world, most(VIEWS_MAX));
        let (views, how) = screens_of(trace, &clocks, set, &mut evidence, &mut players)?;
        let NetworkRows { packets, trips, gaps } = NetworkRows::of(shown, most(PACKETS_MAX), most(ACKS_MAX))?;
        let (kinds_of_packets, has_arrivals): (Vec<_>, _) = (packets.kinds().collect(), packets.have_arrivals());
        let packets = packets.pack(columns);
        let (acks, of_acks) = acks_of(trace, exactness, most(ACKS_MAX), &mut players)?;
        let trips = trips.or(of_acks);
        let merged_acks = acks.merged.max(trips.over_time.merged);
        let (acks, round_trips) = (pack_acks(&acks, exactness, columns), pack_round_trips(&trips, columns));
        drop(trips);
        let unrun = UnrunRows::of(trace, &server, most(UNEXECUTED_MAX), &mut players)?;
        // Gaps before the first tick are outside the session.
        let is_inside = |gap: &GapRecord| server.first_us().is_none_or(|first| gap.to.0 > first);
        let gap_of = |GapRecord { from, to, player, why: _ }: GapRecord| {
            let player = player.map(|player| u32::from(player.0));
            PageGap { from_us: from.0, to_us: to.0, player }
        };
        let gaps = gaps.into_iter().filter(is_inside).map(gap_of).collect();
        let rows: Vec<(String, u64)> = trace.tables().iter().map(|(table, rows)| (table.name.clone(), *rows)).collect();

        let numbers = shown.log.map_or(SnapshotNumbers::Sent, |log| SnapshotNumbers::of(log.header()));
        let thinned = thinning_notes(&Thinning {
            places: precision != exactness,
            views: views.precision != exactness,
            acks: merged_acks,
            ran: ran.merged,
            packets: &kinds_of_packets,
            missing_down: numbers.missing(),
            unrun: &unrun.steps,
        });
        let clock_columns =
            [(None, &server)].into_iter().chain(clocks.iter().map(|(player, clock)| (Some(*player), clock)));
        let clock_columns = clock_columns.filter(|(_, clock)| !clock.is_empty());
        let as_received = |player: &u32| {
            let last = last_usercmd_as_received(&trace.header().settings, *player)?;
            Some((*player, last.0))
        };
        Ok(PageSide {
            name: shown.name.to_owned(),
            game: trace.header().game.clone(),
            map: shown.map.to_owned(),
            mode: replay_mode(&trace.header().mode),
            is_open: trace.header().is_open(),
            is_part: trace.header().part_shown().is_some(),
            knows_corrections: trace_knows_corrections(trace),
            settings: trace.header().settings.clone(),
            usercmds_as_received: players.iter().filter_map(as_received).collect(),
            tables: rows,
            gaps,
            notes: notes(shown, is_timed, !bodies.is_empty(), has_arrivals),
            thinned,
            exactness: [precision, views.precision],
            clocks: clock_columns.map(|(player, clock)| clock.pack(player, columns)).collect(),
            bodies,
            own,
            views: views.pack(true, columns),
            how,
            shots: shots_of(&evidence, shown, columns)?,
            shot_counts: shot_counts_of(&shots::Columns::of(&evidence.trace)),
            corrections: corrections_of(&evidence, columns)?,
            acks,
            round_trips,
            ran: pack_ran(&ran, columns),
            unrun: unrun.pack(columns),
            packets,
            missing_down: numbers.missing(),
            players: players.into_iter().collect(),
            names,
        })
    }
}

fn trace_knows_corrections(trace: &dyn TraceSource) -> bool {
    let rows = |name: &str| trace.tables().iter().find(|(table, _)| table.name == name).map(|(_, rows)| *rows);
    let has_sides = rows(frames::NAME) > Some(0) && !trace.header().is_open();
    knows_corrections(rows(corrections::NAME), has_sides)
}

/// The shots and hits of each shooter.
fn shot_counts_of(shots: &shots::Columns<'_>) -> Vec<PlayerShots> {
    let mut counters: SortedMap<u32, ShotCounter> = SortedMap::new();
    for (row, (shooter, reason)) in shots.shooter.iter().zip(shots.reason.iter()).enumerate() {
        counters.entry(*shooter).or_default().add_row(shots, row, reason);
    }
    let counts = |(player, counter): (u32, ShotCounter)| PlayerShots {
        player,
        fired: counter.fired(),
        hit: counter.hit(),
        reported: counter.reported(),
    };
    counters.into_iter().map(counts).collect()
}

/// The columns of a table that hold positions.
struct Places<'t> {
    /// In single or double precision.
    places: [Option<&'t ColumnData>; 3],
    yaw: std::borrow::Cow<'t, [f32]>,
}

impl<'t> Places<'t> {
    /// Reads the columns with a prefix.
    fn of(table: &'t Table, prefix: &str, yaw: &str) -> Places<'t> {
        // A game in a plane may have one view angle.
        let names = [format!("{prefix}viewangles.y"), format!("{prefix}viewangles"), yaw.to_owned()];
        let yaw = names.map(|name| table.floats(&name));
        Places {
            places: ["x", "y", "z"].map(|axis| Some(&table.column(&format!("{prefix}origin.{axis}"))?.data)),
            yaw: yaw.into_iter().find(|column| !column.is_empty()).unwrap_or_default(),
        }
    }

    /// The position in a row; `None` without x and y, or at infinity.
    fn at(&self, row: usize, step: ClockStep, mark: u8, world: &TrackWorld) -> Option<TrackPoint> {
        let [x, y, z] = self.places.map(|column| column?.real(row));
        let place = world.place([x?, y?, z.unwrap_or(0.0)])?;
        let yaw = self.yaw.get(row).copied().filter(|yaw| yaw.is_finite()).unwrap_or(f32::NAN);
        Some(TrackPoint { at_us: step.at_us, index: step.index, place, yaw, mark, came: step.is_after_gap })
    }
}

fn bodies_of(trace: &dyn TraceSource, server: &StepTimes, mut set: TrackSet) -> Result<TrackSet, TraceReadError> {
    let columns = ["tick", "entity", "origin.x", "origin.y", "origin.z", "viewangles.y", "viewangles"];
    for (table, name) in (0..).zip(body_tables(trace)) {
        each_part(trace, &name, (&columns, None), &mut |rows| {
            let (read, places) = (bodies::Columns::read(rows), Places::of(rows, "", ""));
            for (row, (tick, entity)) in read.tick.iter().zip(read.entity).enumerate() {
                let Some(point) = server.step_of(*tick).and_then(|step| places.at(row, step, 0, &set.world)) else {
                    continue;
                };
                set.push([table, 0, *entity], point);
            }
            Ok(())
        })?;
    }
    Ok(set)
}

/// The predicted bodies, and how many usercmds ran in each frame.
fn frames_of(
    trace: &dyn TraceSource,
    clocks: &SortedMap<u32, StepTimes>,
    mut set: TrackSet,
    most_ran: usize,
) -> Result<(TrackSet, PlayerSeries<u32>), TraceReadError> {
    let own = ["x", "y", "z"].map(|axis| format!("own.origin.{axis}"));
    let columns = ["player", "command", "ran", "has_body", "yaw", "own.viewangles.y", "own.viewangles"];
    let columns: Vec<&str> = columns.into_iter().chain(own.iter().map(|name| &**name)).collect();
    let mut ran = PlayerSeries::new(most_ran, |most: &mut u32, more: &u32| *most = (*most).max(*more));
    each_part(trace, frames::NAME, (&columns, None), &mut |rows| {
        let (read, places) = (frames::Columns::read(rows), Places::of(rows, "own.", "yaw"));
        for (row, (player, command)) in read.player.iter().zip(read.command).enumerate() {
            read.ran.get(row).into_iter().for_each(|count| ran.push(*player, *count));
            if read.has_body.get(row).is_some_and(|has_body| *has_body != 1) {
                continue;
            }
            let step = clocks.get(player).and_then(|clock| clock.step_of(*command));
            let Some(point) = step.and_then(|step| places.at(row, step, 0, &set.world)) else { continue };
            set.push([0, *player, *player], point);
        }
        Ok(())
    })?;
    Ok((set, ran))
}

/// What each player drew of each other entity, and the names of the ways of drawing. Adds the needed views to `evidence`.
fn screens_of(
    trace: &dyn TraceSource,
    clocks: &SortedMap<u32, StepTimes>,
    mut tracks: TrackSet,
    evidence: &mut ExplainedRows,
    players: &mut SortedSet<u32>,
) -> Result<(TrackSet, Vec<String>), TraceReadError> {
    let columns = ["player", "command", "drawn_at_us", "entity", "origin.x", "origin.y", "origin.z", "how", "category"];
    let mut how = Vec::new();
    each_part(trace, views::NAME, (&columns, None), &mut |rows| {
        let (read, places) = (views::Columns::read(rows), Places::of(rows, "", ""));
        if how.len() < read.how.names.len() {
            how = read.how.names.to_vec();
        }
        // All rows of a screen follow each other.
        let mut screen: Option<((u32, u32), Option<ClockStep>)> = None;
        for (row, ((player, command), entity)) in read.player.iter().zip(read.command).zip(read.entity).enumerate() {
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
            let Some(point) = step.and_then(|step| places.at(row, step, mark, &tracks.world)) else { continue };
            tracks.push([0, *player, *entity], point);
        }
        evidence.add_views(rows)
    })?;
    Ok((tracks, how))
}

/// Notes on what a page cannot show because its trace lacks the data, as sentences. The flags say whether `ticks` has
/// times, whether a body has a position, and whether a packet's arrival is known.
fn notes(shown: &PageInput<'_>, has_tick_times: bool, has_places: bool, has_arrivals: bool) -> Vec<String> {
    let tables = shown.trace.tables();
    let of = |name: &str| tables.iter().find(|(table, _)| table.name == name);
    let rows = |name: &str| of(name).map_or(0, |(_, rows)| *rows);
    let mut notes: Vec<String> = shown.notes.to_vec();
    let mut note = |is_so: bool, text: &str| notes.extend(is_so.then(|| text.to_owned()));
    let has_column = |name: &str, column: &str| of(name).is_some_and(|(table, _)| table.column(column).is_some());
    let states = || tables.iter().filter(|(table, rows)| is_bodies(&table.name) && *rows > 0);
    let no_bodies = states().count() == 0;
    let is_missing = |axis: &str| !states().any(|(table, _)| table.column(axis).is_some());
    note(no_bodies, "positions on the server: `bodies` has no rows");
    let missing = ["origin.x", "origin.y"].into_iter().find(|axis| !no_bodies && is_missing(axis));
    let no_column = missing.map(|axis| format!("positions on the server: `bodies` has no column {axis}"));
    note(missing.is_some(), &no_column.unwrap_or_default());
    note(
        !no_bodies && missing.is_none() && !has_places,
        "positions on the server: none in `bodies` has a finite position at a known time",
    );
    note(
        !no_bodies && !has_tick_times,
        "times of ticks: `ticks` has no column at_us, so the tick rate in the settings is used",
    );
    let no_frames = rows(frames::NAME) == 0;
    note(no_frames, "usercmds: `frames` has no rows");
    note(
        !no_frames && !has_column(frames::NAME, "own.origin.x"),
        "predicted positions: `frames` has no column own.origin.x",
    );
    note(rows(views::NAME) == 0, "players' screens: `views` has no rows");
    let header = shown.trace.header();
    let (is_of_client, is_open) = (header.is_of_one_client(), header.is_open());
    let (client, open) = (
        "hits: the log is one client's side, without the server. Merge it with the server's log (`hitreg merge`)",
        "hits: an open-loop replay has no server that judges shots",
    );
    note(is_of_client, client);
    note(rows(shots::NAME) == 0 && is_open && !is_of_client, open);
    note(rows(shots::NAME) == 0 && !is_open, "hits: `shots` has no rows");
    let has_acks = of(corrections::NAME).is_some();
    note(!has_acks, "corrections: there is no table `corrections`");
    note(has_acks && !trace_knows_corrections(shown.trace), "corrections: no ack was compared with a prediction");
    note(
        has_acks && !has_column(corrections::NAME, "error_units"),
        "prediction errors: `corrections` has no column error_units",
    );
    let no_arrivals = match shown.log {
        Some(_) => "packets and loss: the log has no packet with its arrival",
        None => "packets and loss: `packets` and `snapshots` have no arrivals, and there is no log with packets",
    };
    note(!has_arrivals, no_arrivals);
    let is_imported = shown.log.is_some_and(|log| matches!(log.header().origin, Origin::Imported { .. }));
    note(is_imported, "settings of the recorded game: those below are the replay's, mostly hitreg's defaults");
    notes
}

/// What a page of a long session leaves out.
struct Thinning<'a> {
    /// Whether the paths of bodies are coarser than those of a short session.
    places: bool,
    /// Whether what screens showed is coarser.
    views: bool,
    /// How many acks are merged into one.
    acks: usize,
    /// How many frames are merged into one.
    ran: usize,
    /// The kinds of packets, each with n if every n-th is drawn.
    packets: &'a [(PacketKind, usize)],
    /// The word for packets that did not arrive from the server.
    missing_down: &'static str,
    /// The usercmds that did not run, by outcome.
    unrun: &'a KindSamples<String, u32>,
}

/// The notes, as sentences. Empty for a short session.
fn thinning_notes(of: &Thinning<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |is_so: bool, text: String| notes.extend(is_so.then_some(text));
    note(of.places, "paths of bodies are coarser than in a short session".to_owned());
    note(of.views, "what screens showed is coarser than in a short session".to_owned());
    note(of.acks > 1, format!("charts of acks show the largest of {} acks", count(of.acks)));
    note(of.ran > 1, format!("the chart of usercmds run shows the largest of {} frames", count(of.ran)));
    for (kind, every) in of.packets {
        let what = packets_in_words(*kind, of.missing_down);
        note(*every > 1, format!("{what}: 1 of {} packets is drawn", count(*every)));
    }
    for (how, every) in of.unrun.kinds() {
        note(every > 1, format!("{}: 1 of {} usercmds is drawn", how.replace('_', " "), count(every)));
    }
    notes
}

/// A kind of packets, in the words of the charts: `lost and choked down`.
fn packets_in_words(kind: PacketKind, missing_down: &str) -> String {
    let missing = if kind.is_down { missing_down } else { "lost" };
    let words = [kind.is_missing.then_some(missing), kind.is_choked.then_some("choked")];
    let words: Vec<&str> = words.into_iter().flatten().collect();
    let way = if kind.is_down { "down" } else { "up" };
    match &words[..] {
        [] => format!("arrived {way}"),
        // Packets without a reply have no direction.
        [missing] if kind.is_missing && *missing != "lost" => (*missing).to_owned(),
        words => format!("{} {way}", words.join(" and ")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::page::PageLog;
    use hitreg_log::record::{PlayerInfo, Session, SessionChunk, SessionHeader};
    use hitreg_log::trace::{Column, SessionSource, Trace};
    use hitreg_log::units::{Micros, Seed};

    /// A session of players with these names.
    pub(in crate::page) fn log_of(players: &[&str]) -> Session {
        let of = |name: &&str| PlayerInfo { name: (*name).into(), recorded: true };
        Session::new(SessionHeader {
            game: "disc".into(),
            rules: Vec::new().into(),
            map: String::new(),
            seed: Seed(0),
            settings: Vec::new(),
            preset: None,
            players: players.iter().map(of).collect(),
            origin: Origin::Live,
            side: None,
            classes: Vec::new(),
            usercmd: Vec::new(),
            usercmd_bytes: false,
            unknown: Vec::new(),
        })
    }

    /// A log in memory.
    impl PageLog for Session {
        fn header(&self) -> &SessionHeader {
            &self.header
        }

        fn each(&self, to: &mut dyn FnMut(&SessionChunk) -> bool) -> Result<(), TraceReadError> {
            to(&self.clone().without_header());
            Ok(())
        }

        fn shows(&self, _: Micros) -> bool {
            true
        }

        fn between(&self, _: Micros, _: Micros) -> Result<Session, TraceReadError> {
            Ok(self.clone())
        }
    }

    #[test]
    fn a_page_names_the_missing_axis_of_positions() {
        let notes_of = |axes: &[&str]| {
            let column = |name: &&str| Column::new(*name, ColumnData::F32(vec![1.0]));
            let mut table = Table::new(bodies::NAME, axes.iter().map(column).collect());
            table.columns.push(Column::new("tick", ColumnData::U32(vec![1])));
            let trace = Trace { tables: vec![table], ..Trace::default() };
            let shown = PageInput { name: "", map: "", trace: &trace, log: None, rejudged: &[], notes: &[] };
            notes(&shown, true, false, true).remove(0)
        };
        let words = "positions on the server: `bodies` has no column ";
        assert_eq!(notes_of(&[]), format!("{words}origin.x"));
        assert_eq!(notes_of(&["origin.x"]), format!("{words}origin.y"));
        assert!(notes_of(&["origin.x", "origin.y"]).ends_with("a finite position at a known time"));
    }

    #[test]
    fn a_page_says_how_much_it_draws_of_each_kind() {
        let kind = |is_down, is_missing, is_choked| PacketKind { is_down, is_missing, is_choked };
        let packets = [
            (kind(false, false, false), 4),
            (kind(true, false, false), 1),
            (kind(false, true, false), 2),
            (kind(true, true, false), 8),
            (kind(true, true, true), 16),
        ];
        let mut unrun = KindSamples::new(2);
        for how in ["stood_in", "missing", "stood_in"] {
            unrun.push(how.to_owned(), 0, 0);
        }
        let of = |missing_down| {
            let thinning = Thinning {
                places: false,
                views: false,
                acks: 1,
                ran: 1,
                packets: &packets,
                missing_down,
                unrun: &unrun,
            };
            thinning_notes(&thinning)
        };
        let expected = [
            "arrived up: 1 of 4 packets is drawn",
            "lost up: 1 of 2 packets is drawn",
            "lost down: 1 of 8 packets is drawn",
            "lost and choked down: 1 of 16 packets is drawn",
            "stood in: 1 of 2 usercmds is drawn",
        ];
        assert_eq!(of("lost"), expected);
        assert_eq!(
            of("no reply")[2..4],
            ["no reply: 1 of 8 packets is drawn", "no reply and choked down: 1 of 16 packets is drawn"]
        );
    }

    /// Bots and spectators have no usercmds.
    #[test]
    fn a_page_lists_players_without_rows() {
        let shown_players = |log: Option<&Session>, trace: &Trace| {
            let log = log.map(|log| log as &dyn PageLog);
            let shown = PageInput { name: "", map: "", trace, log, rejudged: &[], notes: &[] };
            PageSide::of(&shown, 1, &mut PageColumns::default()).expect("a page").players
        };
        let log = log_of(&["p0", "p1", "p2"]);
        assert_eq!(shown_players(Some(&log), &Trace::default()), [0, 1, 2]);
        let mut named = Trace::default();
        named.header.session = Some(SessionSource::of(&log_of(&["Ann", "Bob"]).header));
        assert_eq!(shown_players(None, &named), [0, 1]);
        assert!(shown_players(None, &Trace::default()).is_empty());
    }
}

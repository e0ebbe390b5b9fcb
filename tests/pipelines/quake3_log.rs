//! Real OpenArena sessions from ../shared/data as logs: the import reads every datagram, and the log has the contents.

use std::path::{Path, PathBuf};

use crate::built_in::replay;
use hitreg::log::{WriterOptions, read_session, write_session};
use hitreg::quake3::{Overview, RecordingKind, ServerLog, header, import, map_from, survey};
use hitreg::record::Session;
use hitreg::replay;
use hitreg::summary::Summary;
use hitreg::trace::Series;
use hitreg::trace::schema::{shots, views};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId};

fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/openarena");
    if !data.is_dir() {
        crate::note::skipped("../shared/data is not here");
        return None;
    }
    Some(data)
}

fn imported_session(data: &Path, name: &str, map: Option<&[u8]>) -> (Overview, Session) {
    let read = |ending: &str| std::fs::read(data.join(format!("{name}.{ending}"))).expect("a file");
    let (capture, log) = (read("trace.zst"), ServerLog::parse(&read("server.log")));
    let mut overview =
        survey(RecordingKind::Capture, &capture[..], &log).unwrap_or_else(|error| panic!("{name}: {error}"));
    overview.rules.map = map.map(|map| map_from(map, &overview.rules.map_name).expect("a map"));
    let header = header(&overview.rules, &overview.players, RecordingKind::Capture.origin()).expect("a header");
    let mut session = Session::new(header);
    import(RecordingKind::Capture, &capture[..], &log, &mut |record| session.push(record).expect("it fits"))
        .expect("an import");
    session.put_in_order();
    (overview, session)
}

/// The captures with their usercmds, snapshots, and hits. The hits equal the clients' final scores.
const CAPTURES: [(&str, u64, u64, u64); 2] = [("A1_0ms", 24_078, 7_737, 29), ("D1_aim_50ms_2pct", 23_996, 7_726, 231)];

#[test]
fn every_datagram_of_real_sessions_is_read() {
    let Some(data) = data() else { return };
    for (name, usercmds, snapshots, hits) in CAPTURES {
        let (overview, session) = imported_session(&data, name, None);
        let counts = overview.counts;
        assert_eq!((counts.undecoded, counts.stale, counts.after_level), (0, 0, 0), "{name}: {:?}", overview.undecoded);
        assert_eq!((counts.usercmds, counts.snapshots, counts.hits), (usercmds, snapshots, hits), "{name}");
        assert!(counts.acked_by_time * 100 > counts.snapshots * 99, "{name}: {counts:?}");
        assert!(counts.hits_with_victim * 20 > counts.hits * 17, "{name}: {counts:?}");
        assert_eq!(overview.players, [3, 4]);
        for player in [3, 4] {
            let records = &session.players[player];
            let seqs = records.frames.iter().map(|frame| frame.command.seq);
            assert!(seqs.eq((1..=records.frames.len() as u32).map(CommandSeq)), "{name}");
            // A wrong key would give random usercmds instead of regular times.
            let steps = records.frames.windows(2).map(|pair| pair[1].command.server_time - pair[0].command.server_time);
            assert!(steps.clone().all(|step| step > Micros::ZERO), "{name}");
            let long = steps.filter(|step| *step > Micros::from_ms(200)).count();
            assert!(long <= 3, "{name}: {long} pauses, but for the one while the level loads");
            assert!(
                records.snapshots.is_sorted_by_key(|snapshot| (snapshot.seq, snapshot.tick, snapshot.ack)),
                "{name}"
            );
            let lost = 1.0 - records.received.len() as f64 / records.snapshots.len() as f64;
            let expected = if name.ends_with("2pct") { 0.015..0.03 } else { 0.0..0.001 };
            assert!(expected.contains(&lost), "{name}: {lost}");
        }
        let bytes = write_session(Vec::new(), &session, WriterOptions::whole()).expect("a log");
        assert!(bytes.len() < 800_000, "{name}: {} bytes", bytes.len());
        assert!(read_session(&bytes[..]).expect("a session") == session, "{name} comes back from its log");
    }
}

#[test]
fn victims_from_events_equal_those_of_the_servers_log() {
    let Some(data) = data() else { return };
    for (name, ..) in CAPTURES {
        let (_, logged) = imported_session(&data, name, None);
        let capture = std::fs::read(data.join(format!("{name}.trace.zst"))).expect("a capture");
        let overview = survey(RecordingKind::Capture, &capture[..], &ServerLog::default()).expect("a capture");
        let mut without_log = Session::new(
            header(&overview.rules, &overview.players, RecordingKind::Capture.origin()).expect("a header"),
        );
        import(RecordingKind::Capture, &capture[..], &ServerLog::default(), &mut |record| {
            without_log.push(record).expect("it fits")
        })
        .expect("an import");
        let victims = |session: &Session, player: usize| -> Vec<Option<EntityId>> {
            session.players[player].judged.iter().map(|hit| hit.target).collect()
        };
        let pairs: Vec<_> =
            [3, 4].iter().flat_map(|p| victims(&logged, *p).into_iter().zip(victims(&without_log, *p))).collect();
        let known: Vec<_> = pairs.iter().filter_map(|(log, without_log)| Some(((*log)?, (*without_log)?))).collect();
        let same = known.iter().filter(|(log, without_log)| log == without_log).count();
        let without_log = pairs.iter().filter(|(_, without_log)| without_log.is_some()).count();
        println!(
            "{name}: of {} hits {without_log} have a victim without a log; {same} of {} are the log's",
            pairs.len(),
            known.len()
        );
        assert!(without_log * 10 >= pairs.len() * 6 && same * 100 >= known.len() * 97, "{name}");
    }
}

/// The path of OpenArena's maps in Debian's packages.
const MAPS: &str = "/usr/share/games/openarena/baseoa/pak1-maps.pk3";

fn data_and_map() -> Option<(PathBuf, Vec<u8>)> {
    let data = data()?;
    let map = std::fs::read(MAPS);
    if map.is_err() {
        crate::note::skipped(&format!("{MAPS} is not here"));
    }
    Some((data, map.ok()?))
}

/// The least share of exact or near predictions, and the greatest share of corrections without a cause, in percent of
/// the checked predictions: docs/accuracy.md.
const PREDICTIONS: [(&str, f64, f64); 2] = [("A1_0ms", 98.5, 0.5), ("D1_aim_50ms_2pct", 97.5, 0.5)];

#[test]
fn real_sessions_are_predicted_from_one_state_to_the_next() {
    let Some((data, map)) = data_and_map() else { return };
    for (name, least, most_unknown) in PREDICTIONS {
        let (_, session) = imported_session(&data, name, Some(&map));
        let replayed = replay(&session, &replay::ReplayOptions::default()).expect("a replay");
        let summary = Summary::of(&replayed.trace);
        let prediction = &summary.prediction;
        let percent = |part: u64| part as f64 * 100.0 / prediction.checked as f64;
        println!("{name}: {prediction:?}");
        assert!(prediction.checked > 7_000, "{name}: {prediction:?}");
        assert!(percent(prediction.exact + prediction.near) >= least, "{name}: {prediction:?}");
        let unknown = prediction.misses_by_cause.get("unknown").copied().unwrap_or(0);
        assert!(percent(unknown) <= most_unknown, "{name}: {prediction:?}");
    }
}

/// The mispredictions that a client's game logged, in order.
pub(crate) fn logged_mispredictions(data: &Path, name: &str, client: u8) -> Vec<f32> {
    let path = data.join(format!("{name}.c{client}.prediction-misses.log"));
    let text = std::fs::read_to_string(path).expect("a log");
    text.lines().filter_map(|line| line.strip_prefix("Prediction miss: ")?.parse().ok()).collect()
}

/// The number of distances that both lists have in the same order.
pub(crate) fn count_common(a: &[f32], b: &[f32]) -> usize {
    let is_same = |a: f32, b: f32| (a - b).abs() <= 0.05 + 0.05 * a.max(b);
    let mut row = vec![0; b.len() + 1];
    for a in a {
        let mut diagonal = 0;
        for (at, b) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if is_same(*a, *b) { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

#[test]
fn corrections_equal_those_logged_by_the_game() {
    let Some((data, map)) = data_and_map() else { return };
    for (name, ..) in CAPTURES {
        let (_, session) = imported_session(&data, name, Some(&map));
        let replayed = replay(&session, &replay::ReplayOptions::default()).expect("a replay");
        for (client, player) in [(1, PlayerId(3)), (2, PlayerId(4))] {
            let of_player = replayed.jumps.iter().filter(|jump| jump.player == player);
            let seen: Vec<f32> = of_player.map(|jump| jump.units).filter(|units| *units > 0.1).collect();
            let output = logged_mispredictions(&data, name, client);
            let alike = count_common(&output, &seen);
            println!("{name} p{}: {} said, {} seen, {alike} alike", player.0, output.len(), seen.len());
            let apart = output.len().abs_diff(seen.len());
            assert!(apart * 20 <= output.len(), "{name} p{}: {output:?}\n{seen:?}", player.0);
            assert!(alike * 2 > output.len(), "{name} p{}: {output:?}\n{seen:?}", player.0);
        }
    }
}

#[test]
fn hits_of_a_real_server_need_lag_compensation() {
    let Some((data, map)) = data_and_map() else { return };
    for (name, least_shots) in [("A1_0ms", 20), ("D1_aim_50ms_2pct", 185)] {
        let (_, session) = imported_session(&data, name, Some(&map));
        let replayed = replay(&session, &replay::ReplayOptions::default()).expect("a replay");
        let shots = shots::Columns::of(&replayed.trace);
        let judged = (0..shots.rows).filter(|row| shots.impact[*row] == 0 && !shots.aim_off_degrees[*row].is_nan());
        let (given, others): (Vec<usize>, Vec<usize>) = judged.partition(|row| shots.given_target.get(*row) != "none");
        let same = |row: &&usize, of: &str| of == shots.given_target.get(**row);
        let explained = given.iter().filter(|row| same(row, shots.target.get(**row))).count();
        let present = given.iter().filter(|row| same(row, shots.present_target.get(**row))).count();
        let beyond = others.iter().filter(|row| shots.reason.get(**row) == "hit").count();
        println!(
            "{name}: {} shots, of {} hits {explained} explained, {present} without going back, {beyond} hit here alone",
            given.len() + others.len(),
            given.len()
        );
        assert!(given.len() >= least_shots && given.len() + others.len() > 1_200, "{name}");
        assert!(explained * 100 >= given.len() * 95, "{name}");
        assert!(beyond * 100 <= given.len() + others.len(), "{name}: who is not hit there is not hit here");
        if name.ends_with("2pct") {
            assert!(present * 100 <= given.len() * 80, "{name}: {present} without going back");
        }
        // Without lag compensation, fewer shots hit.
        let mut off = replay::log_settings(&session.header).expect("settings");
        off.set("lag_compensation.enabled", "false").expect("a setting");
        let options = replay::ReplayOptions { settings: Some(off), ..replay::ReplayOptions::default() };
        let off = replay(&session, &options).expect("a replay").trace;
        let off = shots::Columns::of(&off);
        let hits = given.iter().filter(|row| same(row, off.target.get(**row))).count();
        assert_eq!((hits, off.rewind_us.iter().all(|back| *back == 0)), (present, true), "{name}");
    }
}

/// Reasons why a target is not judged exactly where it was drawn.
const REASONS: [&str; 6] = [
    "as drawn",
    "drawn across a lost snapshot",
    "drawn where it was last",
    "put elsewhere",
    "lightning gun",
    "unexplained",
];

#[test]
fn real_targets_are_judged_where_drawn_or_for_a_known_reason() {
    let Some((data, map)) = data_and_map() else { return };
    for (name, ..) in CAPTURES {
        let (_, session) = imported_session(&data, name, Some(&map));
        let replayed = replay(&session, &replay::ReplayOptions::default()).expect("a replay");
        let mut parts: [Vec<f32>; 6] = Default::default();
        let mut to_a_frame = Vec::new();
        let shots = shots::Columns::of(&replayed.trace);
        let views = views::Columns::of(&replayed.trace);
        let drawn = Series::of_two([views.player, views.entity], views.command);
        for row in (0..shots.rows).filter(|row| !shots.view_error_units[*row].is_nan()) {
            let (shooter, command) = (shots.shooter[row], shots.command[row]);
            let target = shots.aimed_at.get(row)[1..].parse::<u32>().expect("an entity");
            let view = drawn.at([shooter, target], command).next().expect("it was drawn");
            let (at, how) = (Micros(views.drawn_at_us[view]), views.how.get(view));
            let records = &session.players[shooter as usize];
            let frame = &records.frames[records.frames.partition_point(|frame| frame.command.seq.0 < command)];
            assert_eq!(at, frame.command.server_time, "{name}: the recorded screen is drawn");
            let arrived = |seq: u32| records.received.iter().any(|a| a.number == seq && a.at <= frame.at);
            let around = records.snapshots.partition_point(|snapshot| snapshot.server_time <= at);
            let both = records.snapshots[around.saturating_sub(1)..].iter().take(2).all(|s| arrived(s.seq.0));
            let units = shots.view_error_units[row];
            parts[match how {
                _ if units < 0.01 => 0,
                _ if shots.weapon.get(row) == "lightning gun" => 4,
                "teleported" => 3,
                "held" => 2,
                "interpolated" if !both => 1,
                _ => 5,
            }]
            .push(units);
            // The position if the server rewound to one of its frames instead of a time between two.
            let before = &records.snapshots[around - 1];
            let mut sent = session.states.sent(before.tick, PlayerId(shooter as u16), EntityId(target as u16));
            if let Some((_, cells)) = sent.next() {
                let place = |axis: usize| f32::from_bits(cells[axis]) - views.origin[axis][view];
                to_a_frame.push((0..3).map(|axis| place(axis).powi(2)).sum::<f32>().sqrt());
            }
        }
        let count: usize = parts.iter().map(Vec::len).sum();
        let all: f32 = parts.iter().flatten().sum();
        for (part, units) in REASONS.iter().zip(&mut parts) {
            units.sort_by(f32::total_cmp);
            let (sum, p50) = (units.iter().sum::<f32>(), units.get(units.len() / 2).copied().unwrap_or(0.0));
            let most = units.last().copied().unwrap_or(0.0);
            println!(
                "{name}: {part}: {} of {count}, {:.1} % of all units, median {p50:.2}, most {most:.2}",
                units.len(),
                sum * 100.0 / all
            );
        }
        to_a_frame.sort_by(f32::total_cmp);
        let of_frames = |percent: usize| to_a_frame[to_a_frame.len() * percent / 100];
        println!("{name}: to a frame: median {:.2}, p95 {:.2}", of_frames(50), of_frames(95));
        assert!(parts[0].len() * 100 >= count * 85, "{name}: most are exact");
        assert!(parts[5].len() * 200 <= count, "{name}: {:?}", parts[5]);
        assert!(of_frames(50) > 1.0, "{name}: between two frames is not at one of them");
    }
}

//! Real OpenArena sessions from ../shared/data as logs: every datagram is read, and the log holds what was said.

use std::path::{Path, PathBuf};

use hitreg::game::{Judge, JudgedAgain};
use hitreg::log::{Options, read_session, write_session};
use hitreg::quake3::{Overview, Quake3, ServerLog, header, import, imported, map_from, survey};
use hitreg::record::Session;
use hitreg::replay::{self, replay};
use hitreg::summary::Summary;
use hitreg::units::{CommandSeq, Micros, PlayerId};

fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/openarena");
    if !data.is_dir() {
        eprintln!("skipped: {} is not there", data.display());
        return None;
    }
    Some(data)
}

fn imported_session(data: &Path, name: &str, map: Option<&[u8]>) -> (Overview, Session) {
    let read = |ending: &str| std::fs::read(data.join(format!("{name}.{ending}"))).expect("a file");
    let (capture, log) = (read("trace.zst"), ServerLog::parse(&read("server.log")));
    let mut overview = survey(&capture, &log).unwrap_or_else(|error| panic!("{name}: {error}"));
    overview.rules.map = map.map(|map| map_from(map, &overview.rules.map_name).expect("a map"));
    let header = header(&overview.rules, &overview.players, imported()).expect("a header");
    let mut session = Session::new(header);
    import(&capture, &log, &mut |record| session.push(record).expect("it fits")).expect("an import");
    session.put_in_order();
    (overview, session)
}

/// The captures with their usercmds, snapshots, and hits, as many as the clients' scores say at the end.
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
            // Usercmds are made as time passes: a key that is wrong makes anything of them.
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
        let bytes = write_session(Vec::new(), &session, Options::whole()).expect("a log");
        assert!(bytes.len() < 800_000, "{name}: {} bytes", bytes.len());
        assert!(read_session(&bytes[..]).expect("a session") == session, "{name} comes back from its log");
    }
}

/// Where Debian's packages have OpenArena's maps.
const MAPS: &str = "/usr/share/games/openarena/baseoa/pak1-maps.pk3";

/// Least of predictions that are exact or near, in percent, and most misses of unknown cause, of all that are checked: docs/figures.md.
const PREDICTIONS: [(&str, f64, f64); 2] = [("A1_0ms", 98.5, 0.5), ("D1_aim_50ms_2pct", 97.5, 0.5)];

#[test]
fn real_sessions_are_predicted_from_one_state_to_the_next() {
    let Some(data) = data() else { return };
    let Ok(map) = std::fs::read(MAPS) else {
        eprintln!("skipped: {MAPS} is not there");
        return;
    };
    for (name, least, most_unknown) in PREDICTIONS {
        let (_, session) = imported_session(&data, name, Some(&map));
        let replayed = replay::<Quake3>(&session, &replay::Options::default(), &mut |_| {}).expect("a replay");
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

/// What a client's game said of its own mispredictions, in their order.
fn said_misses(data: &Path, name: &str, client: u8) -> Vec<f32> {
    let path = data.join(format!("{name}.c{client}.prediction-misses.log"));
    let text = std::fs::read_to_string(path).expect("a log");
    text.lines().filter_map(|line| line.strip_prefix("Prediction miss: ")?.parse().ok()).collect()
}

/// How many of both stand in the same order and are as far.
fn alike(a: &[f32], b: &[f32]) -> usize {
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
fn players_are_moved_as_often_as_their_own_games_said() {
    let Some(data) = data() else { return };
    let Ok(map) = std::fs::read(MAPS) else {
        eprintln!("skipped: {MAPS} is not there");
        return;
    };
    for (name, ..) in CAPTURES {
        let (_, session) = imported_session(&data, name, Some(&map));
        let replayed = replay::<Quake3>(&session, &replay::Options::default(), &mut |_| {}).expect("a replay");
        for (client, player) in [(1, PlayerId(3)), (2, PlayerId(4))] {
            let of_player = replayed.jumps.iter().filter(|jump| jump.player == player);
            let seen: Vec<f32> = of_player.map(|jump| jump.units).filter(|units| *units > 0.1).collect();
            let said = said_misses(&data, name, client);
            let alike = alike(&said, &seen);
            println!("{name} p{}: {} said, {} seen, {alike} alike", player.0, said.len(), seen.len());
            // In the clean session the first client's count is 3 of 29 apart, which nothing explains yet.
            let most = if name.ends_with("2pct") { 5 } else { 11 };
            let apart = said.len().abs_diff(seen.len());
            assert!(apart * 100 <= said.len() * most, "{name} p{}: {said:?}\n{seen:?}", player.0);
            assert!(alike * 2 > said.len(), "{name} p{}: {said:?}\n{seen:?}", player.0);
        }
    }
}

#[test]
fn hits_of_a_real_server_are_explained_by_going_back_and_not_without() {
    let Some(data) = data() else { return };
    let Ok(map) = std::fs::read(MAPS) else {
        eprintln!("skipped: {MAPS} is not there");
        return;
    };
    for (name, least_hits) in [("A1_0ms", 15), ("D1_aim_50ms_2pct", 220)] {
        let (overview, session) = imported_session(&data, name, Some(&map));
        let hits = Quake3::hits_again(&overview.rules, &session).expect("sound states");
        let through = |off: fn(&JudgedAgain) -> Option<f32>| {
            hits.iter().filter(|hit| hit.judged.as_ref().and_then(off).is_some_and(|off| off <= 0.01)).count()
        };
        let rewound = through(|judged| Some(judged.off_units));
        let within = through(|judged| Some(judged.beyond_spread_units));
        let present = through(|judged| judged.off_present_units);
        println!(
            "{name}: {} hits, {rewound} rewound, {within} within the spread, {present} without going back",
            hits.len()
        );
        assert!(hits.len() >= least_hits, "{name}: {}", hits.len());
        assert!(rewound * 100 >= hits.len() * 95, "{name}: {hits:#?}");
        assert!(within >= rewound, "{name}");
        if name.ends_with("2pct") {
            assert!(present * 100 <= hits.len() * 80, "{name}: {present} of {} without going back", hits.len());
        }
    }
}

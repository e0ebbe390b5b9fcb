//! A recorded game that every clone has: 20 seconds of two OpenArena clients on a map of this repository. The capture
//! is from between the clients and their server, with 50 ms each way and 2 % loss (see docs/openarena.md).

use std::path::Path;

use crate::built_in::replay;
use hitreg::quake3::{
    CaptureReader, CapturedDatagram, Quake3, RecordingKind, ServerLog, header, import, map_from, survey,
};
use hitreg::record::Session;
use hitreg::replay;
use hitreg::score::score;
use hitreg::summary::Summary;
use hitreg::trace::schema::shots;
use hitreg::units::PlayerId;

use super::quake3_log::{count_common, logged_mispredictions};

fn file(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).expect("a fixture")
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/openarena")
}

fn session(source: RecordingKind, name: &str) -> Session {
    session_of(source, &file(name))
}

fn session_of(source: RecordingKind, bytes: &[u8]) -> Session {
    let log = ServerLog::parse(&file("duel.server.log"));
    let mut overview = survey(source, bytes, &log).expect("a recording");
    assert_eq!((overview.counts.undecoded, overview.cut), (0, None), "{:?}", overview.undecoded);
    overview.rules.map = Some(map_from(&file("hitreg_room.bsp"), &overview.rules.map_name).expect("a map"));
    let mut session = Session::new(header(&overview.rules, &overview.players, source.origin()).expect("a header"));
    import(source, bytes, &log, &mut |record| session.push(record).expect("it fits")).expect("an import");
    session.put_in_order();
    session
}

#[test]
fn a_real_game_is_predicted_and_its_hits_are_explained() {
    let session = session(RecordingKind::Capture, "duel.trace.zst");
    let counts = session.players[..2].iter().map(|p| (p.frames.len(), p.snapshots.len(), p.judged.len()));
    assert_eq!(counts.collect::<Vec<_>>(), [(1_184, 593, 21), (1_115, 565, 0)]);
    let replayed = replay(&session, &replay::ReplayOptions::default()).expect("a replay");
    let summary = Summary::of(&replayed.trace);
    let prediction = &summary.prediction;
    println!("{prediction:?}");
    // The two players collide often. The states, or the other's body, explain all corrections.
    assert_eq!((prediction.checked, prediction.misses_by_cause.get("unknown")), (1_128, None));
    assert!((prediction.exact + prediction.near) * 100 >= prediction.checked * 95, "{prediction:?}");
    let hit = summary.shots.hit.expect("the game judges hits again");
    let shots = shots::Columns::of(&replayed.trace);
    let given: Vec<usize> = (0..shots.rows).filter(|row| shots.given_target.get(*row) != "none").collect();
    let explained = given.iter().filter(|row| shots.given_target.get(**row) == shots.target.get(**row)).count();
    println!("{} shots, {} given, {explained} explained, {hit} hit here", shots.rows, given.len());
    assert_eq!((given.len(), explained), (21, 21));
    assert!(hit <= 22, "{hit}");
    let errors = shots.view_error_units.iter().filter(|error| !error.is_nan());
    let (exact, others): (Vec<f32>, Vec<f32>) = errors.partition(|error| **error < 0.01);
    println!("{} drawn exactly where they were judged, {others:?}", exact.len());
    assert!(exact.len() > 200 && others.len() * 10 < exact.len());
    for (client, player) in [(1, PlayerId(0)), (2, PlayerId(1))] {
        let output = logged_mispredictions(&folder(), "duel", client);
        let of_player = replayed.jumps.iter().filter(|jump| jump.player == player);
        let seen: Vec<f32> = of_player.map(|jump| jump.units).filter(|units| *units > 0.1).collect();
        println!("p{}: {} said, {} seen, {} alike", player.0, output.len(), seen.len(), count_common(&output, &seen));
        assert!(output.len().abs_diff(seen.len()) * 10 <= output.len(), "{output:?}\n{seen:?}");
        assert!(count_common(&output, &seen) * 2 > output.len(), "{output:?}\n{seen:?}");
    }
}

/// Datagrams may share a time, as after a stall of the capture. Each hit is still one shot's.
#[test]
fn snapshots_that_share_a_time_do_not_share_hits() {
    let packed = file("duel.trace.zst");
    let mut capture = CaptureReader::new(&packed[..]).expect("a capture");
    let mut stalled = b"UDPTRC1\n".to_vec();
    let mut first = None;
    while let Some(CapturedDatagram { at_ns, direction, client, bytes }) = capture.read().expect("a datagram") {
        let begin = *first.get_or_insert(at_ns);
        let [from, to] = [13_350_000_000, 14_350_000_000].map(|ns: u64| begin + ns);
        let at_ns = if (from..to).contains(&at_ns) { to } else { at_ns };
        stalled.extend(at_ns.to_le_bytes());
        stalled.push(direction as u8);
        stalled.extend(client.to_le_bytes());
        stalled.extend((bytes.len() as u16).to_le_bytes());
        stalled.extend(bytes);
    }
    let session = session_of(RecordingKind::Capture, &stalled);
    let replayed = replay(&session, &replay::ReplayOptions::default()).expect("a replay");
    let shots = shots::Columns::of(&replayed.trace);
    let given = (0..shots.rows).filter(|row| shots.given_target.get(*row) != "none").collect::<Vec<_>>();
    let explained = given.iter().filter(|row| shots.given_target.get(**row) == shots.target.get(**row)).count();
    assert_eq!((session.players[0].judged.len(), given.len(), explained), (21, 21, 21));
}

#[test]
fn a_real_clients_demo_equals_its_received_snapshots() {
    let (capture, demo) =
        (session(RecordingKind::Capture, "duel.trace.zst"), session(RecordingKind::Demo, "duel.dm_71"));
    let (passed, had) = (&capture.players[0], &demo.players[0]);
    assert!(had.snapshots.len() > 500 && had.frames.is_empty());
    for snapshot in &had.snapshots {
        let same = passed.snapshots.iter().find(|other| other.seq == snapshot.seq).expect("it passed");
        assert_eq!(snapshot.entities, same.entities);
        let states = |session: &Session, tick| -> Vec<Vec<u32>> {
            let of = |entity| session.states.sent(tick, PlayerId(0), entity).next().expect("a state").1.to_vec();
            snapshot.entities.iter().map(|entity| of(*entity)).collect()
        };
        assert_eq!(states(&demo, snapshot.tick), states(&capture, same.tick), "{:?}", snapshot.seq);
    }
    // The demo lacks the snapshots that were lost on the way to the client.
    let arrived = |seq: u32| passed.received.iter().any(|arrival| arrival.number == seq);
    let span = had.snapshots[0].seq..=had.snapshots[had.snapshots.len() - 1].seq;
    let missing = passed.snapshots.iter().filter(|s| had.snapshots.iter().all(|h| h.seq != s.seq));
    let missing: Vec<u32> = missing.filter(|s| span.contains(&s.seq)).map(|s| s.seq.0).collect();
    assert!(missing.len() > 3 && !missing.iter().any(|seq| arrived(*seq)), "{missing:?}");
    let settings = replay::log_settings(&demo.header).expect("settings");
    let rules = survey(RecordingKind::Demo, &file("duel.dm_71")[..], &ServerLog::default()).expect("a demo").rules;
    let scores = score::<Quake3>(
        &demo.header,
        replay::ReorderWindow::default(),
        &mut |take| take(demo.clone().without_header()),
        &rules,
        &settings,
        replay::Part::WHOLE,
    )
    .expect("sound states");
    assert!(scores.iter().all(|score| score.samples > 400), "drawing the other is scored");
    let replayed = replay(&demo, &replay::ReplayOptions::default()).expect("it replays");
    let shots = shots::Columns::of(&replayed.trace);
    let given = shots.given_target.iter().filter(|target| *target == "p1").count();
    assert_eq!(
        (given, shots.rows, Summary::of(&replayed.trace).prediction.checked),
        (21, 21, 0),
        "by the server's word"
    );
}

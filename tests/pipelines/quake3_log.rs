//! Real OpenArena sessions from ../shared/data as logs: every datagram is read, and the log holds what was said.

use std::path::{Path, PathBuf};

use hitreg::log::{Options, read_session, write_session};
use hitreg::quake3::{Overview, ServerLog, header, import, imported, survey};
use hitreg::record::Session;
use hitreg::units::{CommandSeq, Micros};

fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/openarena");
    if !data.is_dir() {
        eprintln!("skipped: {} is not there", data.display());
        return None;
    }
    Some(data)
}

fn imported_session(data: &Path, name: &str) -> (Overview, Session) {
    let read = |ending: &str| std::fs::read(data.join(format!("{name}.{ending}"))).expect("a file");
    let (capture, log) = (read("trace.zst"), ServerLog::parse(&read("server.log")));
    let overview = survey(&capture, &log).unwrap_or_else(|error| panic!("{name}: {error}"));
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
        let (overview, session) = imported_session(&data, name);
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

//! Costs of logs: size, and time for writers and readers.
//! `cargo test --release --test formats log_speed -- --ignored --nocapture`

#![expect(clippy::disallowed_methods, reason = "it measures time and prints the result")]

use std::time::Instant;

use hitreg::log::{BackgroundLogWriter, LogWriter, WriterOptions, read_session, write_session};
use hitreg::record::{Record, Session, StateRecord};
use hitreg::units::PlayerId;

#[test]
#[ignore = "a measurement, not a test"]
fn sixteen_players_for_a_minute() {
    let session = crate::log_sessions::session(16, 64 * 60);
    let usercmds = session.players.iter().map(|p| p.frames.len()).sum::<usize>() as f64;
    let records = in_live_order(&session);
    println!("{usercmds} usercmds, {} records, {} MB in memory", records.len(), memory(&session) / 1e6);
    for (name, options) in [("live", WriterOptions::live()), ("whole", WriterOptions::whole())] {
        let start = Instant::now();
        let bytes = write_session(Vec::new(), &session, options).unwrap();
        let encoded = start.elapsed().as_secs_f64();
        let start = Instant::now();
        assert!(read_session(&bytes[..]).unwrap() == session);
        let decoded = start.elapsed().as_secs_f64();
        println!(
            "{name}: {} bytes, {:.2} a usercmd; encodes {:.0} MB/s ({:.0} ns a usercmd), decodes {:.0} MB/s ({:.0} ns)",
            bytes.len(),
            bytes.len() as f64 / usercmds,
            memory(&session) / encoded / 1e6,
            encoded / usercmds * 1e9,
            memory(&session) / decoded / 1e6,
            decoded / usercmds * 1e9,
        );
    }
    for round in 0..3 {
        let mut writer = LogWriter::new(Vec::new(), &session.header, WriterOptions::live()).unwrap();
        let start = Instant::now();
        records.iter().for_each(|record| writer.push(record.clone()).unwrap());
        let pushed = start.elapsed().as_secs_f64();
        let mut background = BackgroundLogWriter::new(Vec::new(), &session.header, WriterOptions::live()).unwrap();
        let mut spent = 0.0;
        // As in a live session, the thread has time to write one chunk before the next is full.
        for second in records.chunks(records.len() / 60) {
            // The records of a tick are new, so they are in the cache.
            for tick in second.chunks(7 * 16).map(<[Record]>::to_vec) {
                let start = Instant::now();
                tick.into_iter().for_each(|record| background.push(record).unwrap());
                spent += start.elapsed().as_secs_f64();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(background.finish().unwrap().len(), writer.finish().unwrap().len());
        println!(
            "round {round}: push with all that follows from it {:.0} ns a usercmd; with a writer thread {:.0} ns",
            pushed / usercmds * 1e9,
            spent / usercmds * 1e9
        );
    }
}

/// All records, tick by tick.
fn in_live_order(session: &Session) -> Vec<Record> {
    let mut timed = Vec::new();
    for (id, player) in session.players.iter().enumerate() {
        let id = PlayerId(id as u16);
        timed.extend(player.frames.iter().map(|r| (r.at.0, Record::Frame(id, r.clone()))));
        timed.extend(player.sent.iter().map(|r| (r.at.0, Record::Sent(id, *r))));
        timed.extend(player.reached.iter().map(|r| (r.at.0, Record::Reached(id, *r))));
        timed.extend(player.executed.iter().map(|r| (i64::from(r.tick.0) * 15_625, Record::Executed(id, *r))));
        timed.extend(player.snapshots.iter().map(|r| (r.at.0, Record::Snapshot(id, r.clone()))));
        timed.extend(player.received.iter().map(|r| (r.at.0, Record::Received(id, *r))));
    }
    timed.extend(session.ticks.iter().map(|r| (r.at.0, Record::Tick(*r))));
    timed.extend(session.states.iter().map(|(key, cells)| {
        (i64::from(key.tick.0) * 15_625, Record::State(StateRecord::shared(key.tick, key.entity, cells.to_vec())))
    }));
    timed.sort_by_key(|(at, _)| *at);
    timed.into_iter().map(|(_, record)| record).collect()
}

/// The bytes of a session in memory, including list heads.
fn memory(session: &Session) -> f64 {
    let of_player = |p: &hitreg::record::PlayerRecords| {
        size_of_val(&p.frames[..])
            + size_of_val(&p.sent[..])
            + size_of_val(&p.reached[..])
            + size_of_val(&p.executed[..])
            + size_of_val(&p.snapshots[..])
            + size_of_val(&p.received[..])
            + p.snapshots.iter().map(|s| 2 * s.entities.len()).sum::<usize>()
    };
    let states = 8 * session.states.len() + 4 * session.states.cells().len();
    (session.players.iter().map(of_player).sum::<usize>() + states) as f64
}

//! Streamed replays of logs equal replays in memory, for any chunks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::built_in::{self, replay};
use hitreg::arena::{Arena, ArenaRules, playable, record_synthetic};
use hitreg::drawing::ViewErrorCollector;
use hitreg::fairness::{Fairness, FairnessBuilder};
use hitreg::golden::ReplaySummary;
use hitreg::info::{InfoBuilder, SessionInfo};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::log::{
    IndexedTrace, LogError, LogReader, TraceLayout, WriterOptions as LogOptions, read_trace, write_session,
    write_trace_meanwhile,
};
use hitreg::record::{GapRecord, Outline, Session, SessionChunk};
use hitreg::replay::{LogSurvey, ReplayAttempt, ReplayFindings, ReplayOptions, ReplaySource, WhatIf};
use hitreg::session::SessionRecorder;
use hitreg::session::scenario::Scenario;
use hitreg::settings::Settings;
use hitreg::summary::Summary;
use hitreg::trace::{Table, Trace, TraceHeader};
use hitreg::units::{Micros, PlayerId};

pub(crate) fn record(scenario: &Scenario) -> Session {
    built_in::record(scenario, ArenaRules::default())
}

/// A log in chunks of this length.
pub(crate) fn file(session: &Session, span: Micros) -> Vec<u8> {
    write_session(Vec::new(), session, LogOptions { span, ..LogOptions::live() }).expect("memory takes all")
}

pub(crate) fn survey(file: &[u8]) -> LogSurvey {
    let mut reader = LogReader::new(file).expect("a log");
    let header = reader.header().clone();
    let mut survey = LogSurvey::new(&header);
    while let Some(mut chunk) = reader.next_chunk().expect("a sound log") {
        survey.add(&header, &mut chunk);
    }
    survey.end();
    survey
}

/// Streams a replay of a file. Reports the greatest number of chunks read ahead.
fn replay_stream(file: &[u8], options: &ReplayOptions, to: &mut dyn FnMut(&TraceHeader, Table)) -> ReplayFindings {
    let survey = survey(file);
    let mut reader = LogReader::new(file).expect("a log");
    let header = reader.header().clone();
    let source = ReplaySource { header: &header, survey: &survey, start: None, keyframes: None };
    assert!(source.streams(options), "a session of one's own");
    let mut chunks = std::iter::from_fn(|| reader.next_chunk().expect("a sound log"));
    let ran = playable().stream(&source, &mut chunks, ReplayAttempt { options, encodes: false }, to, &mut |_| {});
    ran.expect("a log of this build").expect("nothing depended on bytes")
}

/// The rows of a streamed replay as one trace.
pub(crate) fn joined_rows(file: &[u8], options: &ReplayOptions) -> (Trace, ReplayFindings, BTreeMap<String, usize>) {
    let mut trace = Trace::default();
    let mut parts = BTreeMap::new();
    let ran = replay_stream(file, options, &mut |header, rows| {
        trace.header = header.clone();
        // Views wait for the bodies that they are packed against. All other tables are written when full.
        let bytes = rows.rows() * rows.columns.len() * 4;
        assert!(rows.name == "views" || bytes < PART_BYTES_MAX, "{} bytes of `{}` at once", bytes, rows.name);
        *parts.entry(rows.name.clone()).or_default() += 1;
        trace.append(rows).expect("the same columns");
    });
    (trace, ran, parts)
}

/// The byte limit of rows in memory for each table except views.
const PART_BYTES_MAX: usize = (2 << 20) + (1 << 17);

pub(crate) fn bad_link() -> LinkModel {
    LinkModel {
        delay_ms: 45.0,
        jitter: Jitter::Exponential(15.0),
        loss: Loss::Random(0.05),
        duplicate: 0.05,
        reorder: 0.05,
        reorder_ms: 60.0,
        ..LinkModel::default()
    }
}

/// Every table has the rows of a replay in memory, in order, with values that depend on later rows: arrivals of
/// packets, shots around corners. The trace and its summary are the same.
#[test]
fn streamed_replays_have_the_same_rows() {
    for (preset, players, link) in
        [("half-life", 14, bad_link()), ("nereids", 3, bad_link()), ("quake3", 4, LinkModel::default())]
    {
        let session =
            record(&Scenario { players, seconds: 40.0, preset: preset.to_owned(), link, ..Scenario::default() });
        let options = ReplayOptions { network: true, rollback_every: Some(64), ..ReplayOptions::default() };
        let whole = replay(&session, &options).expect("a log of this build");
        assert!(
            whole.findings.first_difference.is_none()
                && whole.findings.hashes_compared > 500
                && whole.findings.rollbacks > 5
        );
        for span in [Micros::from_ms(150), Micros::from_s(1), Micros::from_s(60)] {
            let file = file(&session, span);
            let (trace, ran, parts) = joined_rows(&file, &options);
            for was in &whole.trace.tables {
                // `variables` appears after its first row.
                let is = trace.table(&was.name).expect("the same tables");
                assert!(was.digest() == is.digest(), "{preset}, chunks of {span:?}: `{}` is another", was.name);
            }
            assert_eq!(trace.tables.len(), whole.trace.tables.len());
            assert_eq!((&trace.header, trace.digest()), (&whole.trace.header, whole.trace.digest()));
            assert!(parts["views"] > 2 && parts["frames"] > 2 && parts["packets"] > 2, "{parts:?}");
            assert_eq!(
                (ran.hashes_compared, ran.rollbacks),
                (whole.findings.hashes_compared, whole.findings.rollbacks)
            );
            assert!(ran.first_difference.is_none() && ran.rollback_error.is_none());
            let mut summary = ReplaySummary::for_golden(trace.header.clone());
            let (mut drawing, mut weighing) = (ViewErrorCollector::default(), FairnessBuilder::default());
            replay_stream(&file, &options, &mut |_, rows| {
                summary.add(&rows);
                drawing.add(&rows);
                weighing.add(&rows);
            });
            assert_eq!(
                (summary.digest(), summary.golden()),
                (trace.digest(), ReplaySummary::of(&whole.trace).golden())
            );
            let mut of_whole = ViewErrorCollector::default();
            whole.trace.tables.iter().for_each(|table| of_whole.add(table));
            assert_eq!((summary.summary(), drawing.drawn()), (Summary::of(&whole.trace), of_whole.drawn()));
            assert_eq!(weighing.fairness(), Fairness::of(&whole.trace));
        }
    }
}

/// Removes the records of some players between two times, and says so in a gap.
fn lose(session: &mut Session, players: std::ops::Range<usize>, [from, to]: [Micros; 2]) {
    let stays = |at: Micros| !(from..to).contains(&at);
    for player in players.clone() {
        let records = &mut session.players[player];
        records.frames.retain(|frame| stays(frame.at));
        records.sent.retain(|packet| stays(packet.at));
        records.reached.retain(|arrival| stays(arrival.at));
        records.received.retain(|arrival| stays(arrival.at));
        records.snapshots.retain(|snapshot| stays(snapshot.at));
        let player = Some(PlayerId(player as u16)).filter(|_| players.len() < session.players.len());
        session.gaps.push(GapRecord { from, to, player, ..GapRecord::default() });
    }
    if players.len() == session.players.len() {
        session.ticks.retain(|tick| stays(tick.at));
    }
}

/// A damaged log, one whose recorder lost many single records of one player, and one without sent packets.
#[test]
fn logs_with_missing_records_have_the_same_rows() {
    let recorded = record(&Scenario { players: 4, seconds: 40.0, link: bad_link(), seed: 5, ..Scenario::default() });
    let (mut damaged, mut lost, mut unsent) = (recorded.clone(), recorded.clone(), recorded);
    lose(&mut damaged, 0..4, [12_300, 15_100].map(Micros::from_ms));
    lose(&mut damaged, 0..4, [38_000, 38_010].map(Micros::from_ms));
    (0..60).for_each(|n| lose(&mut lost, 1..2, [5_000 + n * 470, 5_020 + n * (470 + n % 5)].map(Micros::from_ms)));
    unsent.players.iter_mut().for_each(|player| player.sent.clear());
    let options = ReplayOptions { network: true, ..ReplayOptions::default() };
    for (what, session) in [("damaged", damaged), ("lost", lost), ("unsent", unsent)] {
        let whole = replay(&session, &options).expect("a log of this build");
        for span in [150, 1_000, 60_000].map(Micros::from_ms) {
            let (trace, ran, _) = joined_rows(&file(&session, span), &options);
            for was in &whole.trace.tables {
                let is = trace.table(&was.name).expect("the same tables");
                assert!(was.digest() == is.digest(), "{what}, chunks of {span:?}: `{}` is another", was.name);
            }
            assert_eq!(ran.first_difference, whole.findings.first_difference, "{what}");
        }
    }
}

/// Players whose packets the server recorded, with or without a log of their own.
#[test]
fn received_packets_are_read_when_needed() {
    let scenario = Scenario { players: 3, seconds: 12.0, link: bad_link(), ..Scenario::default() };
    let rules = Arc::new(ArenaRules::default());
    let mut session = Session::new(scenario.header::<Arena>(&rules).expect("a good scenario"));
    let mut recorder = SessionRecorder::new(&mut session).with_heard((0..3).map(PlayerId));
    record_synthetic(&scenario, &rules, &mut recorder).expect("a good scenario");
    let options = ReplayOptions::default();
    let digests = |session: &Session| {
        let whole = replay(session, &options).expect("a log of this build");
        let (trace, ran, _) = joined_rows(&file(session, Micros::from_ms(300)), &options);
        assert_eq!((whole.findings.first_difference, ran.first_difference), (None, None));
        assert_eq!(trace.digest(), whole.trace.digest());
        trace.digest()
    };
    let all = digests(&session);
    let client = &mut session.players[1];
    (client.frames, client.sent, client.reached, client.received) = Default::default();
    session.players[0].heard.clear();
    assert!(session.players[1].is_heard_only());
    assert_ne!(digests(&session), all, "what its client drew is not known");
}

/// Under other settings clients send other packets, and the replay finds each in the log.
#[test]
fn other_settings_find_the_recorded_links_in_the_log() {
    let session = record(&Scenario { players: 3, seconds: 20.0, link: bad_link(), ..Scenario::default() });
    let mut settings = Settings::from_pairs(&session.header.settings).expect("recorded settings");
    settings.set("client.cmd_hz", "50").expect("a setting");
    settings.set("server.update_hz", "33").expect("a setting");
    let options = ReplayOptions { network: true, ..ReplayOptions::default() }.under(Some(settings), WhatIf::Replay);
    let whole = replay(&session, &options).expect("a log of this build");
    let (trace, ran, _) = joined_rows(&file(&session, Micros::from_ms(500)), &options);
    assert!(whole.findings.first_difference.is_some() && ran.first_difference == whole.findings.first_difference);
    assert_eq!(trace.digest(), whole.trace.digest());
    let packets = |trace: &Trace| trace.table("packets").expect("it was asked for").digest();
    assert_eq!(packets(&trace), packets(&whole.trace));
}

/// The replay does not read ahead for players who pause, join late or leave early.
#[test]
fn silent_players_cause_no_reading_ahead() {
    let mut session = record(&Scenario { players: 3, seconds: 30.0, ..Scenario::default() });
    let between = |from, to| move |at: Micros| at >= Micros::from_s(from) && at < Micros::from_s(to);
    for (player, silent) in [(0, between(5, 20)), (1, between(0, 12)), (2, between(15, 60))] {
        session.players[player].frames.retain(|frame| !silent(frame.at));
        session.players[player].sent.retain(|packet| !silent(packet.at));
        let sent: Vec<u32> = session.players[player].sent.iter().map(|packet| packet.number).collect();
        session.players[player].reached.retain(|arrival| sent.contains(&arrival.number));
    }
    let options = ReplayOptions::default();
    let whole = replay(&session, &options).expect("a log of this build");
    let file = file(&session, Micros::from_ms(500));
    let survey = survey(&file);
    let mut reader = LogReader::new(&file[..]).expect("a log");
    let header = reader.header().clone();
    let source = ReplaySource { header: &header, survey: &survey, start: None, keyframes: None };
    let (read, most) = (RefCell::new(Micros::ZERO), RefCell::new(Micros::ZERO));
    let mut chunks = std::iter::from_fn(|| {
        let chunk: Option<SessionChunk> = reader.next_chunk().expect("a sound log");
        let newest = chunk.as_ref().and_then(|chunk| chunk.time_span()).map(|(_, newest)| newest);
        *read.borrow_mut() = newest.unwrap_or(Micros::ZERO);
        chunk
    });
    let mut summary = ReplaySummary::new(TraceHeader::default());
    let mut progress = |at: Micros| {
        let ahead = *read.borrow() - at;
        let most_so_far = *most.borrow();
        *most.borrow_mut() = most_so_far.max(ahead);
    };
    // The server records too little, so the bytes of datagrams matter.
    let ran = playable().stream(
        &source,
        &mut chunks,
        ReplayAttempt { options: &options, encodes: true },
        &mut |_, rows| summary.add(&rows),
        &mut progress,
    );
    assert!(ran.expect("a log of this build").is_some());
    assert_eq!(summary.digest(), whole.trace.digest());
    assert!(*most.borrow() < Micros::from_s(4), "it read {} ahead", *most.borrow());
}

/// A trace written during the replay equals one written at the end, although its tables are in parts.
#[test]
fn a_trace_written_during_a_replay_is_complete() {
    let session = record(&Scenario { players: 4, seconds: 40.0, link: bad_link(), ..Scenario::default() });
    let options = ReplayOptions { network: true, ..ReplayOptions::default() };
    let whole = replay(&session, &options).expect("a log of this build").trace;
    let log = file(&session, Micros::from_s(1));
    let mut trace = Vec::new();
    let ran = write_trace_meanwhile(TraceLayout::Packed, &mut trace, |to| replay_stream(&log, &options, to))
        .expect("memory takes all");
    assert_eq!(ran.hashes_compared, session.ticks.len() as u64);
    let read = read_trace(&trace[..]).expect("a trace");
    let digests = |trace: &Trace| trace.tables.iter().map(Table::digest).collect::<Vec<_>>();
    assert_eq!((&read.header, digests(&read)), (&whole.header, digests(&whole)));
    let trace = IndexedTrace::open(std::io::Cursor::new(&trace)).expect("a sound trace");
    let rows: Vec<(&str, u64)> = trace.tables().map(|(table, rows)| (&*table.name, rows)).collect();
    let expected: Vec<(&str, u64)> = whole.tables.iter().map(|table| (&*table.name, table.rows() as u64)).collect();
    assert_eq!(rows, expected);
    let columns = |table: &Table| table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    assert!(trace.tables().zip(&whole.tables).all(|((shape, _), table)| columns(shape) == columns(table)));
}

/// Figures gathered chunk by chunk from few columns equal those of the session in memory.
#[test]
fn figures_of_a_log_do_not_depend_on_its_chunks() {
    let mut session = record(&Scenario { players: 5, seconds: 40.0, link: bad_link(), ..Scenario::default() });
    // One player is silent for longer than any wait, while snapshots ack the last usercmd.
    let silent = |at: Micros| at > Micros::from_s(4) && at < Micros::from_s(38);
    session.players[2].frames.retain(|frame| !silent(frame.at));
    let last =
        session.players[2].frames.iter().rfind(|frame| frame.at < Micros::from_s(5)).map(|frame| frame.command.seq);
    let acked = last.expect("he played for four seconds");
    session.players[2].snapshots.iter_mut().filter(|s| silent(s.at)).for_each(|snapshot| snapshot.ack = acked);
    let whole = SessionInfo::of(&session);
    assert!(whole.packets.lost > Some(50) && whole.packets_up.lost > Some(50), "{whole:?}");
    for span in [Micros::from_ms(150), Micros::from_s(1), Micros::from_s(60)] {
        let file = file(&session, span);
        let mut figures = InfoBuilder::new(&session.header);
        let mut chunks = LogReader::new(&file[..]).expect("a log");
        let reader = LogReader::new(&file[..]).expect("a log");
        let torn = reader.outlines(&mut |outline| {
            let chunk = chunks.next_chunk().expect("a sound log").expect("as many");
            assert_eq!(outline, Outline::of(&chunk));
            figures.add(outline);
        });
        assert_eq!((torn.expect("a sound log"), figures.info(&session.header)), (None, whole.clone()));
        let cut = LogReader::new(&file[..file.len() - file.len() / 3]).expect("a log");
        let mut figures = InfoBuilder::new(&session.header);
        let torn = cut.outlines(&mut |outline| figures.add(outline));
        assert!(torn.expect("up to the cut it is sound").is_some() && figures.info(&session.header) != whole);
    }
}

/// Chunks decoded in parallel come in order, and so do their errors.
#[test]
fn parallel_decoding_gives_the_same_chunks() {
    let session = record(&Scenario { players: 3, seconds: 10.0, ..Scenario::default() });
    let mut file = file(&session, Micros::from_ms(300));
    let [mut few, mut one] = [(); 2].map(|()| LogReader::new(&file[..]).expect("a log"));
    let mut chunks = 0;
    loop {
        let at_once = few.next_chunks(&mut |_| {}).expect("a sound log");
        if at_once.is_empty() {
            break;
        }
        for chunk in at_once {
            assert_eq!(Some(chunk), one.next_chunk().expect("a sound log"));
            chunks += 1;
        }
    }
    assert!(chunks > 30 && one.next_chunk().expect("a sound log").is_none());
    file.truncate(file.len() * 2 / 3);
    let mut few = LogReader::new(&file[..]).expect("a log");
    let torn = (0..chunks).find_map(|_| few.next_chunks(&mut |_| {}).err());
    assert!(matches!(torn, Some(LogError::Torn(_))), "{torn:?}");
}

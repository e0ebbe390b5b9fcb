//! Open-loop replays that stream a log equal those of the log in memory, for any chunks.

use crate::built_in::replay;
use hitreg::arena::playable;
use hitreg::link::LinkModel;
use hitreg::log::{LogReader, WriterOptions as LogOptions, write_session};
use hitreg::record::{GapRecord, RecordedSide, Session, SessionChunk, SessionHeader, SessionId};
use hitreg::replay::{
    LogPass, LogSurvey, Part, PlayerJumps, ReorderWindow, ReplayError, ReplayFindings, ReplayMode, ReplayOptions,
    ReplaySource,
};
use hitreg::score::DrawingScoreError;
use hitreg::session::scenario::Scenario;
use hitreg::settings::Settings;
use hitreg::trace::Trace;
use hitreg::units::{Micros, PlayerId};

use crate::streams::{self, file, record, survey};

fn bad_link() -> LinkModel {
    LinkModel { reorder_ms: 120.0, ..streams::bad_link() }
}

fn session() -> Session {
    record(&Scenario { players: 4, seconds: 20.0, link: bad_link(), ..Scenario::default() })
}

fn open() -> ReplayOptions {
    ReplayOptions { mode: ReplayMode::Open, ..ReplayOptions::default() }
}

fn source<'a>(header: &'a SessionHeader, survey: &'a LogSurvey) -> ReplaySource<'a> {
    ReplaySource { header, survey, start: None, keyframes: None }
}

/// Reads a file chunk by chunk.
fn each_chunk<E>(file: &[u8], take: &mut dyn FnMut(SessionChunk) -> Result<(), E>) -> Result<(), E> {
    let mut reader = LogReader::new(file).expect("a log");
    let mut is_first = true;
    loop {
        // Reading all columns gives the same as reading only those of clients.
        let next = if is_first { reader.next_chunk() } else { reader.next_chunk_of_clients() };
        is_first = false;
        match next.expect("a sound log") {
            Some(chunk) => take(chunk)?,
            None => return Ok(()),
        }
    }
}

fn streamed(file: &[u8], options: &ReplayOptions) -> Result<(Trace, ReplayFindings), ReplayError> {
    let survey = survey(file);
    let header = LogReader::new(file).expect("a log").header().clone();
    let source = source(&header, &survey);
    assert!(source.streams_clients(options), "related records are near");
    let mut trace = Trace::default();
    let mut put = |header: &_, rows: hitreg::trace::Table| {
        trace.header = Clone::clone(header);
        trace.append(rows).expect("the same columns");
    };
    let ran = playable().stream_clients(&source, &mut |take| each_chunk(file, take), options, &mut put, &mut |_| {})?;
    Ok((trace, ran))
}

fn counts(jumps: &[PlayerJumps]) -> Vec<(PlayerId, Vec<(f32, u64)>)> {
    jumps.iter().map(|jumped| (jumped.player, jumped.units.iter().collect())).collect()
}

/// Checks that the rows, jumps and scores equal those in memory, for several chunk lengths.
fn assert_same(session: &Session) {
    let options = open();
    let whole = replay(session, &options).expect("a log of this build");
    assert!(whole.trace.table("corrections").is_some_and(|table| table.rows() > 500), "it was shown little");
    assert!(whole.jumps.len() > 20, "{} jumps", whole.jumps.len());
    let settings = Settings::from_pairs(&session.header.settings).expect("recorded settings");
    let score = |near, pass: LogPass<'_, DrawingScoreError>| {
        playable().score(&session.header, near, pass, &settings, Part::WHOLE).expect("bodies")
    };
    let scores = score(ReorderWindow::default(), &mut |take| take(session.clone().without_header()));
    assert!(scores.iter().all(|score| score.samples > 500), "{scores:?}");
    for span in [Micros::from_ms(90), Micros::from_s(1), Micros::from_s(60)] {
        let file = file(session, span);
        let (trace, ran) = streamed(&file, &options).expect("a log of this build");
        for was in &whole.trace.tables {
            let is = trace.table(&was.name).expect("the same tables");
            assert!(was.digest() == is.digest(), "chunks of {span:?}: `{}` is another", was.name);
        }
        assert_eq!((&trace.header, trace.digest()), (&whole.trace.header, whole.trace.digest()));
        assert_eq!(counts(&ran.jumps), counts(&PlayerJumps::of(&whole.jumps)));
        let near = survey(&file).reorder_window().expect("related records are near");
        assert_eq!(score(near, &mut |take| each_chunk(&file, take)), scores, "chunks of {span:?}");
    }
}

#[test]
fn streamed_open_loop_replays_have_the_same_rows() {
    assert_same(&session());
}

/// The last rows of a table are passed on, however few they are.
#[test]
fn a_player_who_saw_others_in_few_frames_keeps_these_views() {
    let mut session = record(&Scenario { players: 2, seconds: 2.0, ..Scenario::default() });
    let whole = replay(&session, &open()).expect("a log of this build").trace;
    let views = whole.table("views").expect("its name");
    let of_last = views.u32s("player").iter().zip(views.u32s("command")).find(|(player, _)| **player == 1);
    let (_, first) = of_last.expect("it saw the other");
    session.players[1].frames.retain(|frame| frame.command.seq.0 <= *first);
    let whole = replay(&session, &open()).expect("a log of this build").trace;
    let (trace, _) = streamed(&file(&session, Micros::from_s(1)), &open()).expect("a log of this build");
    let seen = |trace: &Trace| trace.table("views").map(|views| views.u32s("player").to_vec());
    assert!(seen(&whole).is_some_and(|players| players.iter().filter(|player| **player == 1).count() == 1));
    assert_eq!(seen(&trace), seen(&whole));
}

/// Recordings of other games have times of two clocks: an arrival may precede its sending, with acks of later usercmds.
#[test]
fn arrivals_before_their_sending_wait() {
    let mut session = session();
    for player in &mut session.players {
        player.received.iter_mut().for_each(|arrival| arrival.at = arrival.at - Micros::from_ms(350));
    }
    assert_same(&session);
    for player in &mut session.players {
        player.snapshots.iter_mut().for_each(|snapshot| snapshot.at = snapshot.at - Micros::from_ms(900));
    }
    assert_same(&session);
}

/// A client records snapshots when they arrive.
#[test]
fn a_clients_own_log_is_read_by_number() {
    let mut session = session();
    session.header.side = Some(RecordedSide { session: SessionId(9), player: Some(PlayerId(1)) });
    for (index, player) in session.players.iter_mut().enumerate() {
        let arrived =
            |number| player.received.iter().find(|arrival| arrival.number == number).map(|arrival| arrival.at);
        let came = |record: &hitreg::record::SnapshotRecord| Some((arrived(record.seq.0)?, record.clone()));
        let mut came: Vec<_> = player.snapshots.iter().filter_map(came).filter(|_| index == 1).collect();
        came.sort_by_key(|(at, _)| *at);
        player.snapshots =
            came.into_iter().map(|(at, record)| hitreg::record::SnapshotRecord { at, ..record }).collect();
        if index != 1 {
            *player = Default::default();
        }
    }
    assert!(!session.players[1].snapshots.is_sorted_by_key(|snapshot| snapshot.seq));
    let cut: Vec<_> = [90, 1_000, 60_000].map(|ms| file(&session, Micros::from_ms(ms))).into();
    session.put_in_order();
    let whole = replay(&session, &open()).expect("a log of this build");
    assert!(whole.jumps.len() > 5 && whole.trace.table("views").is_some_and(|views| views.rows() > 1_000));
    for file in cut {
        let (trace, ran) = streamed(&file, &ReplayOptions::default()).expect("a log of this build");
        assert_eq!(trace.digest(), whole.trace.digest());
        assert_eq!(counts(&ran.jumps), counts(&PlayerJumps::of(&whole.jumps)));
    }
}

/// A chunk may be longer than any delay, with more ticks than the history keeps.
#[test]
fn logs_with_long_chunks_are_streamed() {
    let session = record(&Scenario { players: 1, seconds: 80.0, ..Scenario::default() });
    let options = LogOptions { span: Micros::from_s(100), bytes: 64 << 20, ..LogOptions::whole() };
    let file = write_session(Vec::new(), &session, options).expect("memory takes all");
    let survey = survey(&file);
    let source = source(&session.header, &survey);
    assert!(session.ticks.len() > 5_000);
    assert!(source.streams_clients(&open()) && source.streams(&ReplayOptions::default()));
}

/// Logs whose order cannot be restored from nearby records are replayed in memory.
#[test]
fn logs_too_far_out_of_order_are_not_streamed() {
    let streams = |session: &Session, options: &ReplayOptions| {
        let survey = survey(&file(session, Micros::from_s(1)));
        source(&session.header, &survey).streams_clients(options)
    };
    let good = session();
    assert!(streams(&good, &open()));
    assert!(!streams(&good, &ReplayOptions::default()), "it has a server");
    assert!(!streams(&good, &ReplayOptions { mode: ReplayMode::Closed, ..ReplayOptions::default() }));
    let mut gap = good.clone();
    let [from, to] = [5, 6].map(Micros::from_s);
    gap.gaps.push(GapRecord { from, to, ..GapRecord::default() });
    assert!(!streams(&gap, &open()), "a part is missing");
    let mut twice = good.clone();
    twice.players[2].snapshots[40].seq = twice.players[2].snapshots[39].seq;
    assert!(!streams(&twice, &open()), "two of one number");
    let long = record(&Scenario { players: 1, seconds: 50.0, ..Scenario::default() });
    assert!(streams(&long, &open()));
    let mut late = long.clone();
    let first = late.players[0].received[3];
    late.players[0].received.push(hitreg::record::ArrivalRecord { at: Micros::from_s(49), ..first });
    late.players[0].received.sort_by_key(|arrival| arrival.at);
    assert!(!streams(&late, &open()), "it arrives again when it has been forgotten");
}

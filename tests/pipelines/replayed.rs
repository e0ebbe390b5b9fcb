//! Replays of unusual logs: under another tick rate, with missing parts, or compared with the trace of another build.

use std::cell::RefCell;

use crate::built_in::{self, replay};
use hitreg::arena::ArenaRules;
use hitreg::golden::ReplaySummary;
use hitreg::link::LinkModel;
use hitreg::record::{
    ClassId, GapCause, GapRecord, Origin, PlayerRecords, Presence, PresenceRecord, RecordedSide, Session, SessionChunk,
    SessionHeader, SessionId, StateKey, TickRecord,
};
use hitreg::replay::{
    LogSurvey, ReplayError, ReplayMode, ReplayOptions, ReplayOutput, ReplaySource, WhatIf, compare_hashes, log_settings,
};
use hitreg::session::scenario::Scenario;
use hitreg::settings::Among;
use hitreg::trace::ColumnData;
use hitreg::trace::schema::{NO_HASH, snapshots, ticks};
use hitreg::units::{EntityId, Micros, Tick};
use hitreg::verify::{LogFacts, LogVerdict, VerdictReason, VerifiedReplay, VerifyReference, judge};

fn record(scenario: &Scenario) -> Session {
    built_in::record(scenario, ArenaRules::default())
}

fn short() -> Session {
    record(&Scenario { players: 2, seconds: 6.0, ..Scenario::default() })
}

fn ticking(session: &Session, hz: &str) -> ReplayOptions {
    let mut settings = log_settings(&session.header).expect("recorded settings");
    settings.set("server.tick_hz", hz).expect("a rate");
    ReplayOptions::default().under(Some(settings), WhatIf::Replay)
}

fn tick_times(replayed: &ReplayOutput) -> Vec<i64> {
    ticks::Columns::of(&replayed.trace).at_us.to_vec()
}

/// The session with all times later by `by`.
fn moved(mut session: Session, by: Micros) -> Session {
    for player in &mut session.players {
        player.streams_mut().into_iter().for_each(|stream| stream.move_by(by));
        // 0 is the time of a client that does not know the server's clock yet.
        let timed = player.frames.iter_mut().filter(|frame| frame.command.server_time != Micros::ZERO);
        timed.for_each(|frame| frame.command.server_time += by);
        player.snapshots.iter_mut().for_each(|snapshot| snapshot.server_time += by);
    }
    session.streams_mut().into_iter().for_each(|stream| stream.move_by(by));
    session
}

/// A game may count its time from any moment, such as the end of the warm-up. Steered clocks count ticks from time 0.
#[test]
fn a_session_may_begin_at_any_time() {
    for preset in ["half-life", "nereids", "quake3"] {
        let link = LinkModel { delay_ms: 40.0, ..LinkModel::default() };
        let session =
            record(&Scenario { players: 3, seconds: 8.0, preset: preset.into(), link, ..Scenario::default() });
        let whole = replay(&session, &ReplayOptions::default()).expect("its own build");
        let before_0 = Some(Micros::from_ms(-5_003)).filter(|_| preset != "nereids");
        for by in before_0.into_iter().chain([Micros::from_s(320)]) {
            let again = replay(&moved(session.clone(), by), &ReplayOptions::default()).expect("its own build");
            let ticks = session.ticks.len() as u64;
            assert_eq!((again.findings.first_difference, again.findings.hashes_compared), (None, ticks), "{preset}");
            for (table, column) in [("corrections", "error_units"), ("views", "origin.x"), ("shots", "rewind_us")] {
                let [was, is] = [&whole, &again].map(|of| of.trace.table(table).expect("it").column(column));
                assert!(was.is_some() && format!("{was:?}") == format!("{is:?}"), "{preset}: {table} {column}");
            }
        }
    }
}

#[test]
fn another_tick_rate_covers_the_same_time() {
    let mut session = short();
    session.ticks.truncate(361);
    let recorded: Vec<i64> = session.ticks.iter().map(|tick| tick.at.0).collect();
    let same = replay(&session, &ticking(&session, "64")).expect("its own rate");
    assert_eq!(tick_times(&same), recorded);
    let half = replay(&session, &ticking(&session, "32")).expect("a lower rate");
    // Every second tick, up to and including the last.
    let every_second: Vec<i64> = recorded.iter().step_by(2).copied().collect();
    // Ticks at another rate have no recorded hash, so the replay compares none.
    assert!(recorded.len() % 2 == 1 && (half.findings.hashes_compared, half.findings.first_difference) == (0, None));
    assert_eq!(tick_times(&half), every_second);
    let double = replay(&session, &ticking(&session, "128")).expect("a higher rate");
    let times = tick_times(&double);
    assert_eq!(times.len(), 2 * recorded.len() - 1);
    assert_eq!((times[0], times.last()), (recorded[0], recorded.last()));
}

#[test]
fn a_player_who_has_left_gets_no_snapshots() {
    let mut session = short();
    let TickRecord { tick, at, .. } = session.ticks[200];
    let player = &mut session.players[1];
    player.frames.retain(|frame| frame.at < at);
    player.presence.push(PresenceRecord { tick, at, change: Presence::Left });
    let replayed = replay(&session, &ReplayOptions { network: true, ..ReplayOptions::default() }).expect("a replay");
    let sent = snapshots::Columns::of(&replayed.trace);
    let last = |player| sent.player.iter().zip(sent.at_us).filter(|(of, _)| **of == player).map(|(_, at)| *at).max();
    assert!(last(0) > Some(at.0 + 2_000_000) && last(1) < Some(at.0), "{:?}", [last(0), last(1)]);
    assert!(last(1) > Some(at.0 - 200_000), "{:?}", last(1));
}

/// A session with `count` ticks spread over `span`.
fn with_ticks(session: &Session, count: usize, span: Micros) -> Session {
    let mut session = session.clone();
    let first = session.ticks[0];
    session.ticks.truncate(count);
    for (index, tick) in session.ticks.iter_mut().enumerate() {
        tick.at = first.at + Micros(index as i64);
    }
    session.ticks.last_mut().expect("a tick").at = first.at + span;
    session
}

#[test]
fn added_ticks_between_distant_ticks_are_limited() {
    let whole = short();
    let run = |count, ms| {
        let session = with_ticks(&whole, count, Micros::from_ms(ms));
        replay(&session, &ticking(&session, "1000")).map(|replayed| tick_times(&replayed).len())
    };
    // 20 ticks at 64 Hz take as long as 312 ticks at 1,000 Hz. A replay may add 16 times as many between them.
    assert_eq!(run(20, 4_992).expect("just so many"), 4_993);
    let refused = run(20, 4_993).expect_err("one more");
    assert!(matches!(refused, ReplayError::FarApart { ticks: 20, wanted: 4_993 }), "{refused}");
    assert_eq!(run(40, 5_500).expect("many enough were recorded"), 5_501);
    // A small number is always allowed.
    assert_eq!(run(3, 4_096).expect("few"), 4_097);
    assert!(matches!(run(3, 4_097), Err(ReplayError::FarApart { .. })));
}

#[test]
fn a_log_without_input_is_refused() {
    let refused = |change: fn(&mut Session)| {
        let mut session = short();
        for player in &mut session.players {
            player.frames.clear();
            player.sent.clear();
            player.reached.clear();
        }
        change(&mut session);
        matches!(replay(&session, &ReplayOptions::default()), Err(ReplayError::NoInput))
    };
    let imported = |session: &mut Session| session.header.origin = Origin::Imported { format: "qwd".to_owned() };
    assert!(refused(|_| {}), "what clients of one's own were shown is no input");
    assert!(!refused(imported), "somebody watched");
    assert!(refused(|session| {
        session.header.origin = Origin::Imported { format: "qwd".to_owned() };
        session.players.iter_mut().for_each(|player| *player = PlayerRecords::default());
    }));
}

#[test]
fn imports_without_the_setting_are_judged_as_before() {
    let header = |origin: &Origin, says: bool| {
        let mut header = short().header;
        header.origin = origin.clone();
        header.settings.retain(|(key, _)| says || key != "prediction.among");
        log_settings(&header).expect("settings").prediction.among
    };
    let imported = Origin::Imported { format: "qwd".to_owned() };
    assert_eq!(header(&imported, false), Among::AckingPacket);
    assert_eq!(header(&imported, true), Among::Known);
    assert_eq!(header(&Origin::Live, false), Among::Known);
}

#[test]
fn a_clients_log_alone_has_no_shots_to_judge_again() {
    let session = short();
    let rejudged = |mode| {
        let settings = log_settings(&session.header).expect("recorded settings");
        let options = ReplayOptions { mode, ..ReplayOptions::default().under(Some(settings), WhatIf::Rejudge) };
        replay(&session, &options)
    };
    assert!(matches!(rejudged(ReplayMode::Open), Err(ReplayError::NoJudge)));
    assert_eq!(rejudged(ReplayMode::Closed).expect("it has a server").findings.first_difference, None);
}

#[test]
fn a_trace_of_another_build_is_compared_with_recorded_hashes() {
    let mut session = short();
    let trace = replay(&session, &ReplayOptions::default()).expect("a log of this build").trace;
    let same = compare_hashes(&session, &trace);
    assert_eq!((same.first_difference, same.hashes_compared), (None, session.ticks.len() as u64));
    for index in [90, 50] {
        session.ticks[index].hash = session.ticks[index].hash.map(|hash| hash ^ 1);
    }
    session.ticks[10].hash = None;
    let mut trace = trace;
    let ticks = trace.tables.iter_mut().find(|table| table.name == "ticks").expect("ticks");
    let hashes = ticks.columns.iter_mut().find(|column| column.name == "hash").expect("hashes");
    if let ColumnData::U64(hashes) = &mut hashes.data {
        hashes[20] = NO_HASH;
    }
    let other = compare_hashes(&session, &trace);
    let first = other.first_difference.expect("two ticks differ");
    assert_eq!((first.tick, Some(first.recorded)), (session.ticks[50].tick, session.ticks[50].hash));
    assert_eq!(first.replayed, session.ticks[50].hash.map(|hash| hash ^ 1));
    assert_eq!(other.hashes_compared, session.ticks.len() as u64 - 2, "a tick without a hash on a side");
}

fn survey(header: &SessionHeader, change: impl Fn(&mut SessionChunk)) -> LogSurvey {
    let mut session = short();
    session.header = header.clone();
    let mut survey = LogSurvey::new(header);
    let bytes = hitreg::log::write_session(Vec::new(), &session, hitreg::log::WriterOptions::live()).expect("memory");
    let mut reader = hitreg::log::LogReader::new(&bytes[..]).expect("a log");
    while let Some(mut chunk) = reader.next_chunk().expect("a sound log") {
        change(&mut chunk);
        survey.add(header, &mut chunk);
    }
    survey.end();
    survey
}

#[test]
fn a_survey_equals_the_facts_of_the_session() {
    let session = short();
    let found = survey(&session.header, |_| {});
    let usercmds = || session.players.iter().flat_map(|player| player.frames.iter());
    let active = usercmds().filter(|frame| frame.command.input.is_active()).count() as u64;
    assert_eq!((found.usercmds(), found.active_usercmds()), (usercmds().count() as u64, active));
    assert!(active > 100 && active < found.usercmds());
    assert!(session.ticks[0].at > Micros::ZERO);
    assert_eq!(found.duration(), session.duration());
    let ticks = found.ticks;
    assert_eq!((ticks.count, ticks.with_hash, ticks.out_of_order), (session.ticks.len() as u64, ticks.count, None));
    assert!(!found.is_all_nan());
}

/// The states are NaN in every chunk, or in all but one row of the log; or there are none.
#[test]
fn a_log_with_only_nan_states_is_never_the_same() {
    let session = short();
    let header = &session.header;
    let nan = |chunk: &mut SessionChunk| chunk.states.cells_mut().fill(f32::NAN.to_bits());
    let but_one = |chunk: &mut SessionChunk| {
        let begins = chunk.ticks.first().is_some_and(|tick| tick.tick == session.ticks[0].tick);
        let cells = if begins { chunk.states.cells_of(0).len() } else { 0 };
        nan(chunk);
        chunk.states.cells_mut()[..cells].fill(0);
    };
    let replayed = replay(&session, &ReplayOptions::default()).expect("a log of this build");
    let played = || VerifiedReplay { summary: ReplaySummary::of(&replayed.trace), ran: replayed.findings.clone() };
    let judged = |found: &LogSurvey| {
        let verified =
            judge(&LogFacts::of_log(header, found, 0), Ok(&[played(), played()]), VerifyReference::default());
        (found.is_all_nan(), verified.verdict, verified.why, verified.detail)
    };
    let broken =
        (true, LogVerdict::Broken, Some(VerdictReason::Contradiction), Some("every recorded state is NaN".to_owned()));
    assert_eq!(judged(&survey(header, nan)), broken);
    let same = (false, LogVerdict::Same, None, None);
    assert_eq!(judged(&survey(header, |_| {})), same);
    assert_eq!(judged(&survey(header, but_one)), same, "one state is of numbers");
    assert_eq!(
        judged(&survey(header, |chunk| chunk.states = Default::default())),
        same,
        "without states there is nothing to be NaN"
    );
}

#[test]
fn logs_with_late_records_or_of_one_side_are_not_streamed() {
    let header = short().header;
    let streams = |header: &SessionHeader, survey: &LogSurvey, options: &ReplayOptions| {
        ReplaySource { header, survey, start: None, keyframes: None }.streams(options)
    };
    let whole = survey(&header, |_| {});
    assert!(streams(&header, &whole, &ReplayOptions::default()));
    assert!(!streams(&header, &whole, &ReplayOptions { mode: ReplayMode::Open, ..ReplayOptions::default() }));
    let session = Session::new(header.clone());
    assert!(streams(&header, &whole, &ticking(&session, "64")), "its own rate");
    assert!(streams(&header, &whole, &ticking(&session, "32")), "another rate, over the log's span");
    let server = SessionHeader { side: Some(RecordedSide { session: SessionId(7), player: None }), ..header.clone() };
    assert!(!streams(&server, &survey(&server, |_| {}), &ReplayOptions::default()), "one side");
    let gap = |chunk: &mut SessionChunk| {
        let (from, to) = (Micros::from_ms(10), Micros::from_ms(20));
        let gap = GapRecord { from, to, player: None, why: GapCause::Damaged };
        if chunk.ticks.first().is_some_and(|tick| tick.tick == Tick(1)) {
            chunk.gaps.push(gap);
        }
    };
    assert!(streams(&header, &survey(&header, gap), &ReplayOptions::default()), "a gap, and whole chunks after it");
    let begins = |chunk: &mut SessionChunk, in_first: bool| {
        if chunk.ticks.first().is_some_and(|tick| (tick.tick == Tick(1)) == in_first) {
            let key = StateKey { tick: Tick(0), viewer: None, entity: EntityId(0), class: ClassId(0) };
            chunk.states.push(key, &vec![0; header.classes[0].fields.len()]);
        }
    };
    assert!(
        streams(&header, &survey(&header, |chunk| begins(chunk, true)), &ReplayOptions::default()),
        "at its beginning"
    );
    assert!(
        !streams(&header, &survey(&header, |chunk| begins(chunk, false)), &ReplayOptions::default()),
        "a late beginning"
    );
    let unsent = |chunk: &mut SessionChunk| chunk.players.iter_mut().for_each(|player| player.sent.clear());
    assert!(streams(&header, &survey(&header, unsent), &ReplayOptions::default()), "no record of sending comes later");
    let late = RefCell::new(vec![Vec::new(); header.players.len()]);
    let sent_late = |chunk: &mut SessionChunk| {
        for (player, late) in chunk.players.iter_mut().zip(late.borrow_mut().iter_mut()) {
            std::mem::swap(&mut player.sent, late);
        }
    };
    assert!(!streams(&header, &survey(&header, sent_late), &ReplayOptions::default()), "sent a chunk after arriving");
}

/// A snapshot that acks a usercmd is handled after it, whatever their recorded times.
#[test]
fn an_ack_is_never_handled_before_its_usercmd() {
    let link = LinkModel { delay_ms: 20.0, ..LinkModel::default() };
    let mut session = record(&Scenario { players: 2, seconds: 6.0, link, ..Scenario::default() });
    let open = ReplayOptions { mode: ReplayMode::Open, ..ReplayOptions::default() };
    let acks = |session: &Session| {
        let trace = replay(session, &open).expect("a log of this build").trace;
        trace.table("corrections").expect("acks").rows()
    };
    let before = acks(&session);
    // One snapshot in the middle, and the one that acks the last usercmd.
    for player in &mut session.players {
        let last = player.frames.last().expect("a frame").command.seq;
        for acked in [player.frames[150].command.seq, last] {
            let Some(place) = player.snapshots.iter().position(|snapshot| snapshot.ack >= acked) else { continue };
            player.snapshots[place].ack = acked;
            let number = player.snapshots[place].seq.0;
            let made = player.frames.iter().find(|frame| frame.command.seq == acked).expect("it was made").at;
            let arrival = player.received.iter_mut().find(|arrival| arrival.number == number).expect("it came");
            arrival.at = made - Micros::from_ms(1);
        }
    }
    assert!(before > 100);
    assert_eq!(acks(&session), before);
}

/// Records before the first tick must not cause a panic.
#[test]
fn a_log_of_one_tick_ticks_once_under_any_rate() {
    let mut session = short();
    let only = TickRecord { ..session.ticks[30] };
    session.ticks = vec![only];
    for hz in ["1", "64", "1000"] {
        let replayed = replay(&session, &ticking(&session, hz)).expect("a log of this build");
        assert_eq!(tick_times(&replayed), [only.at.0]);
    }
}

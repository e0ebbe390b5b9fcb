//! A replay of a part has exactly the rows of a full replay within the part.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::built_in::{self, replay};
use hitreg::arena::{ArenaMap, ArenaRules, playable};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::log::LogReader;
use hitreg::record::{Keyframe, Session, SessionChunk, SessionHeader};
use hitreg::replay::{
    KeyframeSchedule, LogSurvey, Part, ReplayAttempt, ReplayError, ReplayFindings, ReplayMode, ReplayOptions,
    ReplaySource, ReplayStart,
};
use hitreg::rng::Rng;
use hitreg::session::scenario::Scenario;
use hitreg::sorted::SortedMap;
use hitreg::trace::{Column, ColumnData, Table, Trace, TraceHeader};
use hitreg::units::{Micros, Seed};
use xxhash_rust::xxh3::xxh3_64;

use crate::streams::{file, joined_rows, record, survey};

/// The bits of the rows, sorted, because a shot without a verdict has its row at the end. A row has the hash of a name, not
/// its code: codes depend on the order of rows.
fn rows(table: &Table) -> Vec<Vec<u64>> {
    let bits = |column: &Column| -> Vec<u64> {
        match &column.data {
            ColumnData::U32(values) => values.iter().copied().map(u64::from).collect(),
            ColumnData::U64(values) => values.clone(),
            ColumnData::I64(values) => values.iter().map(|value| value.cast_unsigned()).collect(),
            ColumnData::F32(values) => values.iter().map(|value| value.to_bits().into()).collect(),
            ColumnData::F64(values) => values.iter().map(|value| value.to_bits()).collect(),
            ColumnData::Bool(values) => values.iter().copied().map(u64::from).collect(),
            ColumnData::Name { names, codes } => {
                let names: Vec<u64> = names.iter().map(|name| xxh3_64(name.as_bytes())).collect();
                codes.iter().map(|code| names[*code as usize]).collect()
            }
        }
    };
    let columns: Vec<Vec<u64>> = table.columns.iter().map(bits).collect();
    let row = |row: usize| columns.iter().map(|column| column[row]).collect();
    let mut rows: Vec<Vec<u64>> = (0..table.rows()).map(row).collect();
    rows.sort_unstable();
    rows
}

/// The rows of each table that has some, by the names of the table and its columns.
fn all_rows(trace: &Trace) -> BTreeMap<String, Vec<Vec<u64>>> {
    let names = |table: &Table| {
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        format!("{}: {}", table.name, columns.join(" "))
    };
    trace.tables.iter().filter(|table| table.rows() > 0).map(|table| (names(table), rows(table))).collect()
}

fn scenarios() -> [Scenario; 3] {
    let link = LinkModel {
        delay_ms: 45.0,
        jitter: Jitter::Exponential(15.0),
        loss: Loss::Random(0.1),
        duplicate: 0.05,
        reorder: 0.05,
        reorder_ms: 60.0,
        ..LinkModel::default()
    };
    let of = |preset: &str, players, link| Scenario {
        players,
        seconds: 20.0,
        preset: preset.to_owned(),
        link,
        ..Scenario::default()
    };
    [of("half-life", 6, link.clone()), of("nereids", 3, link), of("quake3", 4, LinkModel::default())]
}

/// Consecutive parts together have the rows of the whole, each row in the part of its time, for all ways of replaying a
/// log.
#[test]
fn a_part_has_its_rows_of_the_full_replay() {
    for scenario in scenarios() {
        let session = record(&scenario);
        let file = file(&session, Micros::from_s(1));
        let whole = replay(&session, &ReplayOptions { network: true, ..ReplayOptions::default() });
        let whole = whole.expect("a log of this build").trace;
        let tick = whole.table("ticks").expect("it has ticks").i64s("at_us")[333];
        let bounds = [i64::MIN, 3_000_000, 3_001_000, tick, 12_345_678, i64::MAX].map(Micros);
        let mut together_again: BTreeMap<String, Vec<Vec<u64>>> = BTreeMap::new();
        for bounds in bounds.windows(2) {
            let part = Part { from: bounds[0], to: bounds[1] };
            let options = ReplayOptions { network: true, part: Some(part), ..ReplayOptions::default() };
            let cut = replay(&session, &options).expect("a log of this build").trace;
            let (streamed, ran, _) = joined_rows(&file, &options);
            let (is, was) = (all_rows(&streamed), all_rows(&cut));
            assert_eq!(is.keys().collect::<Vec<_>>(), was.keys().collect::<Vec<_>>(), "{part:?}");
            for (table, was) in was {
                assert!(is[&table] == was, "{}, {part:?}: `{table}` is another", scenario.preset);
                together_again.entry(table).or_default().extend(was);
            }
            assert!(ran.first_difference.is_none());
            for table in &streamed.tables {
                assert!(table.i64s("at_us").iter().all(|at| part.has(Micros(*at))), "{}", table.name);
            }
        }
        together_again.values_mut().for_each(|rows| rows.sort_unstable());
        let whole = all_rows(&whole);
        assert!(whole.len() >= 10, "{:?}", whole.keys());
        for (table, rows) in whole {
            assert!(together_again[&table] == rows, "{}: `{table}` in parts is another", scenario.preset);
        }
    }
}

/// A replay does not read records after its part.
#[test]
fn a_replay_ends_with_its_part() {
    let session = record(&scenarios()[2]);
    let options = |to| ReplayOptions {
        part: Some(Part { from: Micros::from_s(2), to: Micros::from_s(to) }),
        ..ReplayOptions::default()
    };
    let file = file(&session, Micros::from_ms(500));
    let compared = |to| joined_rows(&file, &options(to)).1.hashes_compared;
    assert!(compared(4) < compared(8) && compared(8) < compared(16));
}

/// Open-loop replays of parts have the same property.
#[test]
fn an_open_loop_part_has_its_rows_of_the_full_replay() {
    let session = record(&scenarios()[0]);
    let part = Part { from: Micros::from_s(5), to: Micros::from_s(6) };
    let options = ReplayOptions { mode: ReplayMode::Open, part: Some(part), ..ReplayOptions::default() };
    let cut = replay(&session, &options).expect("a log of this build").trace;
    let frames = cut.table("frames").expect("a replay has frames");
    assert!(frames.rows() > 100 && frames.i64s("at_us").iter().all(|at| part.has(Micros(*at))));
    let views = cut.table("views").expect("a replay has views");
    let commands = |table: &Table| -> Vec<(u32, u32)> {
        let mut all: Vec<_> = table.u32s("player").iter().copied().zip(table.u32s("command").iter().copied()).collect();
        all.dedup();
        all
    };
    assert!(commands(views).iter().all(|key| commands(frames).contains(key)));
}

#[test]
fn an_invalid_part_is_refused() {
    let session = record(&Scenario { players: 2, seconds: 3.0, ..Scenario::default() });
    let refused = |from, to| {
        let part = Part { from: Micros::from_s(from), to: Micros::from_s(to) };
        replay(&session, &ReplayOptions { part: Some(part), ..ReplayOptions::default() }).expect_err("no part of it")
    };
    assert!(matches!(refused(2, 1), ReplayError::EmptyPart { .. }));
    assert!(matches!(refused(1, 1), ReplayError::EmptyPart { .. }));
    let error = refused(1, 9);
    assert!(error.to_string().starts_with("0:09 is not in the session, which is from 0:0"), "{error}");
    assert!(matches!(refused(4, 5), ReplayError::NotInSession { .. }));
}

#[test]
fn the_last_tick_is_a_part() {
    let session = record(&Scenario { players: 2, seconds: 3.0, ..Scenario::default() });
    let last = *session.ticks.last().expect("ticks");
    let part = |from: Micros| {
        let part = Part { from, to: Part::WHOLE.to };
        replay(&session, &ReplayOptions { part: Some(part), ..ReplayOptions::default() })
    };
    let trace = part(last.at).expect("a part").trace;
    assert_eq!(trace.table("ticks").expect("ticks").u32s("tick"), [last.tick.0]);
    assert!(matches!(part(last.at + Micros(1)), Err(ReplayError::NotInSession { .. })));
}

/// A merged log may have records after the server's last tick, which no replay runs.
#[test]
fn a_part_after_the_last_tick_has_no_rows() {
    let mut session = record(&Scenario { players: 2, seconds: 8.0, ..Scenario::default() });
    session.ticks.truncate(session.ticks.len() * 3 / 4);
    let part = Part { from: Micros::from_s(7), to: Micros::from_ms(7_500) };
    let options = ReplayOptions { network: true, part: Some(part), ..ReplayOptions::default() };
    let whole = replay(&session, &options).expect("a log of this build").trace;
    let (streamed, ran, _) = joined_rows(&file(&session, Micros::from_s(1)), &options);
    assert_eq!([all_rows(&whole), all_rows(&streamed)], [BTreeMap::new(), BTreeMap::new()]);
    assert!(ran.first_difference.is_none() && ran.hashes_compared > 300);
}

/// A log in chunks, and its survey.
struct ChunkedLog {
    header: SessionHeader,
    survey: LogSurvey,
    chunks: Vec<SessionChunk>,
    /// Whether its replays encode datagrams, because their bytes matter.
    encoded: bool,
}

impl ChunkedLog {
    fn of(session: &Session, span: Micros) -> ChunkedLog {
        let file = file(session, span);
        let mut reader = LogReader::new(&file[..]).expect("a log");
        let header = reader.header().clone();
        let chunks = std::iter::from_fn(|| reader.next_chunk().expect("a sound log")).collect();
        let mut log = ChunkedLog { header, survey: survey(&file), chunks, encoded: false };
        log.encoded = log.attempt(None, None, None).expect("a log of this build").is_none();
        log
    }

    /// Streams a replay of a part, from a keyframe or the beginning of the log.
    fn play(
        &self,
        from: Option<&Keyframe>,
        part: Option<Part>,
        keyframes: Option<(&KeyframeSchedule, &dyn Fn(Keyframe))>,
    ) -> Result<(Trace, ReplayFindings), ReplayError> {
        Ok(self.attempt(from, part, keyframes)?.expect("nothing more depended on bytes"))
    }

    fn attempt(
        &self,
        from: Option<&Keyframe>,
        part: Option<Part>,
        keyframes: Option<(&KeyframeSchedule, &dyn Fn(Keyframe))>,
    ) -> Result<Option<(Trace, ReplayFindings)>, ReplayError> {
        let start = from.map(|keyframe| ReplayStart::read(keyframe, &self.header)).transpose()?;
        let survey = start.as_ref().map_or(&self.survey, |start| &start.survey);
        let source = ReplaySource { header: &self.header, survey, start: start.as_ref(), keyframes };
        let mut chunks = self.chunks.iter().skip(from.map_or(0, |keyframe| keyframe.next_chunk)).cloned();
        let options = ReplayOptions { network: true, part, ..ReplayOptions::default() };
        let mut trace = Trace::default();
        let mut put = |_: &TraceHeader, rows: Table| trace.append(rows).expect("the same columns");
        // A keyframe determines whether its replay encodes datagrams.
        let encodes = self.encoded && from.is_none();
        let ran = playable().stream(
            &source,
            &mut chunks,
            ReplayAttempt { options: &options, encodes },
            &mut put,
            &mut |_| {},
        )?;
        Ok(ran.map(|ran| (trace, ran)))
    }

    fn keyframes(&self, every: Micros) -> Vec<Keyframe> {
        let keyframes = RefCell::new(Vec::new());
        let take = |keyframe| keyframes.borrow_mut().push(keyframe);
        self.play(None, None, Some((&KeyframeSchedule::Every(every), &take))).expect("a log of this build");
        keyframes.into_inner()
    }
}

/// A replay from a keyframe equals the full replay after it, tick by tick and row by row.
#[test]
fn a_replay_continues_from_every_keyframe() {
    let [half_life, _, quake3] = scenarios();
    let of = |preset: &str| Scenario { preset: preset.to_owned(), ..half_life.clone() };
    let mut all = vec![half_life.clone(), quake3, of("quakeworld"), of("dumb-client")];
    all.push(Scenario { seed: 77, players: 12, ..of("half-life") });
    let zones = [("server.zone", "visible"), ("server.zone_units", "900")];
    let zones: SortedMap<String, String> = zones.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    all.push(Scenario { settings: zones.clone(), ..half_life.clone() });
    let mut all: Vec<_> = all.into_iter().map(|scenario| (scenario, ArenaRules::default())).collect();
    // Drawing by category, with and without steered clocks, while entities come and go.
    let orchard = || ArenaRules::new(ArenaMap::orchard());
    let by_category = [("interpolation.mode", "category"), ("interpolation.ease_ms", "150")];
    let by_category = by_category.map(|(key, value)| (key.to_owned(), value.to_owned()));
    all.push((of("nereids"), ArenaRules::default()));
    all.push((of("nereids"), orchard()));
    all.push((Scenario { settings: zones.into_iter().chain(by_category).collect(), ..of("quake3") }, orchard()));
    for (scenario, rules) in all {
        let log = ChunkedLog::of(&built_in::record(&scenario, rules), Micros::from_ms(700));
        assert!(!log.encoded, "{}", scenario.preset);
        assert!(replay_from_every_keyframe(&scenario, &log) >= 9);
    }
}

/// Sessions whose replays encode datagrams or use nominal sizes, with a name for each.
fn encoded_scenarios() -> Vec<(&'static str, Scenario)> {
    let [half_life, nereids, quake3] = scenarios().map(|scenario| Scenario { seconds: 10.0, ..scenario });
    let with = |scenario: &Scenario, settings: &[(&str, &str)]| {
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Scenario { settings, ..scenario.clone() }
    };
    // Without a rate limit of the server, snapshots queue on this link for seconds, and acks are late.
    let narrow = LinkModel { delay_ms: 30.0, rate_bytes_per_s: Some(1_500.0), ..LinkModel::default() };
    let narrow = Scenario { link: narrow, seconds: 25.0, ..quake3 };
    vec![
        ("queued", narrow.clone()),
        ("narrow", with(&narrow, &[("server.rate_bytes_per_s", "1200")])),
        ("too small", with(&half_life, &[("wire.message_max_bytes", "400")])),
        // The snapshots of many players are longer than a datagram.
        (
            "fragments",
            with(&Scenario { players: 24, seconds: 7.0, ..half_life.clone() }, &[("server.rate_bytes_per_s", "20000")]),
        ),
        ("rate", with(&half_life, &[("server.rate_bytes_per_s", "1500")])),
        ("adaptive", with(&nereids, &[("client.adaptive_redundancy", "true")])),
        ("nominal", with(&half_life, &[("wire.sizes", "nominal")])),
        ("nominal, adaptive", with(&nereids, &[("wire.sizes", "nominal"), ("client.adaptive_redundancy", "true")])),
    ]
}

/// Where the bytes of datagrams matter, keyframes contain both ends of each connection.
#[test]
fn an_encoded_replay_continues_from_every_keyframe() {
    for (what, scenario) in encoded_scenarios() {
        let log = ChunkedLog::of(&record(&scenario), Micros::from_ms(700));
        assert!(log.encoded, "{what}");
        let keyframes = replay_from_every_keyframe(&scenario, &log);
        assert!(keyframes >= 3, "{what}: {keyframes} keyframes");
    }
}

/// Replays a log from each of its keyframes. Returns their number.
fn replay_from_every_keyframe(scenario: &Scenario, log: &ChunkedLog) -> usize {
    let (whole, ran) = log.play(None, None, None).expect("a log of this build");
    let keyframes = log.keyframes(Micros::from_ms(1_900));
    let last = whole.table("ticks").expect("it has ticks").i64s("at_us").last().copied().expect("ticks");
    for keyframe in &keyframes {
        // The rows of this part depend on nothing before the keyframe.
        let before = keyframe.at - log.survey.needed_from(keyframe.at);
        let from = keyframe.at + before;
        let part = Part { from: from.min(Micros(last) - Micros::from_s(1)), to: Part::WHOLE.to };
        // A replay from a keyframe makes the same later keyframes as a full replay.
        let made = RefCell::new(Vec::new());
        let take = |keyframe| made.borrow_mut().push(keyframe);
        let later: Vec<_> = keyframes.iter().filter(|other| other.tick > keyframe.tick).cloned().collect();
        let due = KeyframeSchedule::After(later.iter().map(|keyframe| (keyframe.tick, keyframe.at)).collect());
        let (is, again) = log.play(Some(keyframe), Some(part), Some((&due, &take))).expect("a keyframe");
        assert_eq!(again.first_difference, None, "{}, {}", scenario.preset, keyframe.tick);
        assert_eq!(again.hashes_compared + u64::from(keyframe.tick.0), ran.hashes_compared);
        let state = |keyframe: Keyframe| (keyframe.tick, keyframe.at, keyframe.content);
        let (made, later): (Vec<_>, Vec<_>) =
            (made.into_inner().into_iter().map(state).collect(), later.into_iter().map(state).collect());
        assert!(made == later, "{}: keyframes after tick {} are others", scenario.preset, keyframe.tick);
        if part.from < from {
            continue;
        }
        let mut was = whole.clone();
        part.cut(&mut was);
        let (is, was) = (all_rows(&is), all_rows(&was));
        assert_eq!(is.keys().collect::<Vec<_>>(), was.keys().collect::<Vec<_>>());
        for (table, was) in was {
            let (preset, tick) = (&scenario.preset, keyframe.tick);
            assert!(is[&table] == was, "{preset}, after tick {tick}: `{table}` is another");
        }
    }
    keyframes.len()
}

/// A truncated or changed keyframe is refused, or gives a replay that ends normally; it never causes a panic.
#[test]
fn an_invalid_keyframe_is_refused() {
    for preset in ["half-life", "nereids"] {
        let scenario = Scenario { players: 2, seconds: 6.0, preset: preset.to_owned(), ..scenarios()[0].clone() };
        bad_keyframes_are_refused(&record(&scenario));
    }
}

/// A changed or missing byte of a keyframe with both ends of connections is detected.
#[test]
fn an_encoded_keyframe_with_any_other_byte_is_refused() {
    for (what, scenario) in encoded_scenarios() {
        if what == "fragments" {
            continue;
        }
        let log = ChunkedLog::of(&record(&Scenario { players: 2, seconds: 4.0, ..scenario }), Micros::from_ms(700));
        let good = log.keyframes(Micros::from_s(2)).swap_remove(0);
        let part = Part { from: Micros::from_ms(3_900), to: Part::WHOLE.to };
        let refused = |content: Vec<u8>| {
            let bad = Keyframe { content, ..good.clone() };
            match log.attempt(Some(&bad), Some(part), None) {
                Err(ReplayError::Keyframe { .. }) => true,
                // The replay does not verify the keyframe's facts about the rest of the log.
                Ok(_) | Err(ReplayError::NotInSession { .. }) => false,
                Err(other) => panic!("{what}: {other}"),
            }
        };
        let bytes = good.content.len();
        let some = |most: usize| (0..bytes).step_by(bytes.div_ceil(most));
        let flipped = some(150).filter(|place| {
            let mut content = good.content.clone();
            content[*place] ^= 1 << (place % 8);
            refused(content)
        });
        let (flipped, all) = (flipped.count(), some(150).count());
        // Facts about the rest of the log are not verified, as in `bad_keyframes_are_refused`.
        assert!(flipped * 8 > all * 7, "{what}: {flipped} of {all}");
        assert!(some(20).all(|end| refused(good.content[..end].to_vec())), "{what}");
    }
}

fn bad_keyframes_are_refused(session: &Session) {
    let log = ChunkedLog::of(session, Micros::from_ms(700));
    let keyframes = log.keyframes(Micros::from_s(3));
    let good = &keyframes[0];
    let mut refused = 0;
    let mut rng = Rng::new(Seed(5), 0);
    for round in 0..400 {
        let mut content = good.content.clone();
        let place = rng.below(content.len() as u64) as usize;
        match round % 4 {
            0 => content.truncate(place),
            1 => content[place] = rng.below(256) as u8,
            2 => content[place..].iter_mut().take(9).for_each(|byte| *byte = 0xFF),
            _ => content[place] ^= 1 << rng.below(8),
        }
        let bad = Keyframe { content, ..good.clone() };
        let part = Part { from: Micros::from_s(5), to: Part::WHOLE.to };
        match log.play(Some(&bad), Some(part), None) {
            Err(ReplayError::Keyframe { tick, .. }) => {
                assert_eq!(tick, good.tick);
                refused += 1;
            }
            // The replay does not verify the keyframe's facts about the rest of the log.
            Ok(_) | Err(ReplayError::NotInSession { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 350, "{refused}");
    let other = Keyframe { content: log.keyframes(Micros::from_s(2))[0].content.clone(), ..good.clone() };
    let other = log.play(Some(&other), None, None);
    assert!(other.is_err() || other.is_ok_and(|(_, ran)| ran.first_difference.is_some()));
}

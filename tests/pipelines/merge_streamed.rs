//! Merges of logs in chunks compared with merges in memory: for any logs, the merged log has the same bytes.

use std::collections::BTreeMap;

use hitreg::arena::{Arena, ArenaRules, record_synthetic};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::log::{MergeWriter, WriterOptions, write_session};
use hitreg::merge::{MergeError, MergeErrorKind, MergePlan, MergedSession, SideLogs, merge};
use hitreg::record::{
    ClockOwner, EventTime, ExecutionRecord, FrameRecord, GapRecord, NumberForm, Origin, PlayerRecords, RecordStream,
    RecordedSide, Session, SessionChunk, SessionHeader, SessionId, StateKey, States, TickRecord, UnknownColumn,
    UnknownKind, UnknownRecords,
};
use hitreg::rng::Rng;
use hitreg::session::SessionRecorder;
use hitreg::session::scenario::Scenario;
use hitreg::units::{Micros, PlayerId, Seed, Tick};
use proptest::prelude::*;

/// The random parts of a case that do not follow from its seed.
#[derive(Clone, Debug)]
struct MergeCase {
    seed: u64,
    players: u16,
    seconds: f64,
    /// Whether the server records received packets, so that clients' logs may be missing.
    hears: bool,
    chunk_ms: i64,
    /// How far chunks overlap.
    overlap_ms: i64,
    /// How often a state is in the chunk after its own, in thousandths.
    late_states: u64,
    fault: MergeFault,
    options: (i64, usize),
}

#[derive(Clone, Copy, Debug)]
enum MergeFault {
    None,
    /// A log ends early.
    CutOff,
    /// Some packets are missing in the log of their client.
    Holes,
    /// A clock is slow.
    Drift,
    /// The server never received a packet of a client.
    NeverHeard,
    /// A time outside the range of clocks.
    OutOfTime,
    /// The log of a client is missing.
    Missing,
}

fn case() -> impl Strategy<Value = MergeCase> {
    let fault = prop_oneof![
        4 => Just(MergeFault::None),
        6 => Just(MergeFault::CutOff),
        2 => Just(MergeFault::Holes),
        1 => Just(MergeFault::Drift),
        1 => Just(MergeFault::NeverHeard),
        1 => Just(MergeFault::OutOfTime),
        1 => Just(MergeFault::Missing),
    ];
    let chunks = (prop_oneof![Just(40i64), 100i64..1_500], 0i64..400, prop_oneof![Just(0u64), Just(50)]);
    let options = (prop_oneof![Just(60_000i64), 50i64..900], prop_oneof![Just(4usize << 20), 2_000usize..60_000]);
    (any::<u64>(), 1u16..5, 1.0f64..5.0, any::<bool>(), chunks, fault, options).prop_map(
        |(seed, players, seconds, hears, (chunk_ms, overlap_ms, late_states), fault, options)| MergeCase {
            seed,
            players,
            seconds,
            hears,
            chunk_ms,
            overlap_ms,
            late_states,
            fault,
            options,
        },
    )
}

fn kinds() -> Vec<UnknownKind> {
    let kind = |name: &str, columns: &[&str]| UnknownKind {
        name: name.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        fields: Vec::new(),
    };
    vec![kind("chat", &["at_us", "line"]), kind("weather", &["wind", "at_us"])]
}

/// A session over bad links, with records of a later version.
fn session(case: &MergeCase, rng: &mut Rng) -> Session {
    let link = LinkModel {
        delay_ms: 20.0 + 40.0 * rng.unit_f64(),
        jitter: Jitter::Exponential(8.0),
        loss: Loss::Random(0.1),
        duplicate: 0.05,
        reorder: 0.05,
        reorder_ms: 30.0,
        ..LinkModel::default()
    };
    let (players, seconds, seed) = (case.players, case.seconds, case.seed);
    let scenario = Scenario { players, seconds, seed, link, ..Scenario::default() };
    let rules = std::sync::Arc::new(ArenaRules::default());
    let header = scenario.header::<Arena>(&rules).expect("a good scenario");
    let mut session = Session::new(SessionHeader { origin: Origin::Live, unknown: kinds(), ..header });
    let mut recorder = SessionRecorder::new(&mut session);
    if case.hears {
        recorder = recorder.with_heard((0..players).map(PlayerId));
    }
    record_synthetic(&scenario, &rules, &mut recorder).expect("a good scenario");
    session
}

fn unknown(end: Micros, rng: &mut Rng) -> Vec<UnknownRecords> {
    let mut all = Vec::new();
    for kind in kinds() {
        let mut times: Vec<i64> =
            (0..rng.below(60)).map(|_| rng.below(end.0 as u64 + 200_000) as i64 / 1_000 * 1_000).collect();
        times.sort_unstable();
        let column = |name: &String| match name.as_str() {
            "at_us" => UnknownColumn { form: NumberForm::Integer, values: times.clone() },
            name => {
                let value = |row: usize| i64::from((row as f32 * 0.5).to_bits());
                UnknownColumn {
                    form: if name == "wind" { NumberForm::F32 } else { NumberForm::Integer },
                    values: (0..times.len()).map(value).collect(),
                }
            }
        };
        all.push(UnknownRecords {
            series: times.iter().map(|_| rng.below(3) as u32).collect(),
            keys: vec![0; times.len()],
            columns: kind.columns.iter().map(column).collect(),
            time_column: kind.time_column(),
            kind: kind.name,
        });
    }
    all
}

/// The logs of the sides, the server's first, each with its own clock.
fn sides(session: &Session, case: &MergeCase, rng: &mut Rng) -> Vec<Session> {
    let end = session.ticks.last().map_or(Micros::ZERO, |tick| tick.at);
    let mut side = |player| {
        let side = Some(RecordedSide { session: SessionId(7), player });
        let mut of = Session::new(SessionHeader { side, ..session.header.clone() });
        of.unknown = unknown(end, rng);
        of
    };
    let mut server = side(None);
    (server.ticks, server.states, server.damage) =
        (session.ticks.clone(), session.states.clone(), session.damage.clone());
    let mut all = Vec::new();
    for (index, records) in session.players.iter().enumerate() {
        let mut client = side(Some(PlayerId(index as u16)));
        let mine = &mut client.players[index];
        (mine.frames, mine.predicted) = (records.frames.clone(), records.predicted.clone());
        (mine.sent, mine.received) = (records.sent.clone(), records.received.clone());
        let of_server = PlayerRecords {
            frames: Vec::new(),
            predicted: Vec::new(),
            sent: Vec::new(),
            received: Vec::new(),
            ..records.clone()
        };
        server.players[index] = of_server;
        all.push(client);
    }
    for log in all.iter_mut().chain([&mut server]) {
        // Gaps can end at the same time.
        let mut gap = || {
            let (from, player) = (Micros(rng.below(5) as i64 * 500_000), rng.below(3) as u16);
            let player = Some(PlayerId(player)).filter(|_| player < case.players);
            GapRecord { from, to: from + Micros(500_000), player, ..GapRecord::default() }
        };
        log.gaps = (0..2).map(|_| gap()).collect();
        log.put_in_order();
    }
    for client in &mut all {
        let clock = Micros(rng.below(4_000_000_000_000) as i64 - 2_000_000_000_000);
        move_by(client, clock);
    }
    all.insert(0, server);
    break_something(&mut all, case, rng);
    all
}

fn move_by(client: &mut Session, by: Micros) {
    for player in &mut client.players {
        for (stream, (_, of)) in player.streams_mut().into_iter().zip(hitreg::record::OF_PLAYERS) {
            assert!(of == ClockOwner::Client || stream.is_empty());
            stream.move_by(by);
        }
    }
    client.gaps.move_by(by);
}

fn break_something(logs: &mut Vec<Session>, case: &MergeCase, rng: &mut Rng) {
    let log = 1 + rng.below(u64::from(case.players)) as usize;
    let player = log - 1;
    match case.fault {
        MergeFault::None | MergeFault::CutOff | MergeFault::Missing => {}
        MergeFault::Holes => logs[log].players[player].sent.retain(|_| !rng.chance(0.005)),
        MergeFault::Drift => {
            let mine = &mut logs[log].players[player];
            mine.sent.iter_mut().for_each(|packet| packet.at = Micros(packet.at.0 * 95 / 100));
            mine.received.iter_mut().for_each(|arrival| arrival.at = Micros(arrival.at.0 * 95 / 100));
        }
        MergeFault::NeverHeard => {
            logs[0].players[player].reached.clear();
            logs[log].players[player].received.clear();
        }
        MergeFault::OutOfTime => {
            if let Some(packet) = logs[log].players[player].sent.last_mut() {
                packet.at = Micros(i64::MAX);
            }
        }
    }
    if matches!(case.fault, MergeFault::Missing) || (case.hears && rng.chance(0.5)) {
        logs.remove(log);
    }
    let turn = rng.below(logs.len() as u64) as usize;
    logs.rotate_left(turn);
}

/// A log in chunks: lists end at different times, and some states are late.
fn chunks(session: &Session, case: &MergeCase, rng: &mut Rng) -> Vec<SessionChunk> {
    let is_shown = |at: &Micros| at.0.abs() < 1 << 60;
    let streams = session.players.iter().flat_map(PlayerRecords::streams).chain(session.streams());
    let whens = streams.flat_map(|stream| (0..stream.len()).filter_map(|index| stream.when(index)));
    let times = whens.filter_map(|when| if let EventTime::At(at) = when { Some(at) } else { None });
    let span = times.filter(is_shown).fold(None, |span: Option<(Micros, Micros)>, at| {
        let (first, last) = span.unwrap_or((at, at));
        Some((first.min(at), last.max(at)))
    });
    let (first, last) = span.unwrap_or_default();
    let every = case.chunk_ms * 1_000;
    let count = ((last - first).0 / every + 1) as usize;
    let ticks: BTreeMap<Tick, Micros> = session.ticks.iter().map(|tick| (tick.tick, tick.at)).collect();
    let in_tick = |tick: Tick| ticks.get(&tick).copied().unwrap_or(last);
    let mut out: Vec<SessionChunk> = (0..count)
        .map(|_| SessionChunk {
            players: vec![PlayerRecords::default(); session.players.len()],
            ..SessionChunk::default()
        })
        .collect();
    // The chunk of each record in a list, by its time.
    let mut dealt = |times: Vec<Micros>| -> Vec<usize> {
        let ends: Vec<i64> = (1..=count as i64)
            .map(|n| first.0 + n * every + rng.below(case.overlap_ms as u64 * 1_000 + 1) as i64)
            .collect();
        let mut place = 0;
        let mut of = |at: Micros| {
            while place + 1 < count && at.0 >= ends[place] {
                place += 1;
            }
            place
        };
        times.into_iter().map(&mut of).collect()
    };
    macro_rules! deal {
        ($($field:ident by $time:expr;)*) => {
            for (index, player) in session.players.iter().enumerate() {
                $(
                    let places = dealt(player.$field.iter().map($time).collect());
                    for (record, place) in player.$field.iter().zip(places) {
                        out[place].players[index].$field.push(record.clone());
                    }
                )*
            }
        };
    }
    deal! {
        frames by |r| r.at;
        predicted by |r| r.at;
        sent by |r| r.at;
        reached by |r| r.at;
        heard by |r| r.at;
        executed by |r| in_tick(r.tick);
        judged by |r| r.at;
        presence by |r| r.at;
        snapshots by |r| r.at;
        received by |r| r.at;
    }
    for (record, place) in session.ticks.iter().zip(dealt(session.ticks.iter().map(|r| r.at).collect())) {
        out[place].ticks.push(*record);
    }
    for (record, place) in session.damage.iter().zip(dealt(session.damage.iter().map(|r| r.at).collect())) {
        out[place].damage.push(*record);
    }
    for (record, place) in session.gaps.iter().zip(dealt(session.gaps.iter().map(|gap| gap.to).collect())) {
        out[place].gaps.push(*record);
    }
    let places = dealt(session.states.keys().iter().map(|key| in_tick(key.tick)).collect());
    for records in &session.unknown {
        let at = kinds()
            .iter()
            .find(|kind| kind.name == records.kind)
            .expect("a kind")
            .columns
            .iter()
            .position(|c| c == "at_us");
        let times = &records.columns[at.expect("a time")].values;
        let places = dealt(times.iter().map(|at| Micros(*at)).collect());
        for (number, chunk) in out.iter_mut().enumerate() {
            // A chunk has its records sorted by series.
            let mut rows: Vec<usize> = (0..records.len()).filter(|row| places[*row] == number).collect();
            rows.sort_by_key(|row| records.series[*row]);
            if !rows.is_empty() {
                let pick = |column: &UnknownColumn| UnknownColumn {
                    values: rows.iter().map(|row| column.values[*row]).collect(),
                    ..*column
                };
                chunk.unknown.push(UnknownRecords {
                    kind: records.kind.clone(),
                    series: rows.iter().map(|row| records.series[*row]).collect(),
                    keys: vec![0; rows.len()],
                    columns: records.columns.iter().map(pick).collect(),
                    time_column: records.time_column,
                });
            }
        }
    }
    for ((key, cells), place) in session.states.iter().zip(places) {
        let late = usize::from(rng.below(1_000) < case.late_states && place + 1 < count);
        out[place + late].states.push(key, cells);
    }
    out.iter_mut().for_each(|chunk| chunk.states.put_in_order());
    if let MergeFault::CutOff = case.fault
        && rng.chance(0.4)
    {
        out.truncate(1 + rng.below(count as u64) as usize);
    }
    out
}

/// A log as a reader in memory returns it.
fn join_chunks(header: &SessionHeader, chunks: &[SessionChunk]) -> Session {
    let mut session = Session::new(header.clone());
    for chunk in chunks {
        for (of, records) in session.players.iter_mut().zip(&chunk.players) {
            macro_rules! append {
                ($($field:ident)*) => { $( of.$field.extend(records.$field.iter().cloned()); )* };
            }
            append!(frames predicted sent reached heard executed judged presence snapshots received);
        }
        session.ticks.extend(&chunk.ticks);
        session.damage.extend(&chunk.damage);
        session.gaps.extend(&chunk.gaps);
        chunk.states.iter().for_each(|(key, cells)| session.states.push(key, cells));
        for records in &chunk.unknown {
            match session.unknown.iter_mut().find(|known| known.kind == records.kind) {
                Some(known) => {
                    known.series.extend(&records.series);
                    known.keys.extend(&records.keys);
                    for (column, more) in known.columns.iter_mut().zip(&records.columns) {
                        column.values.extend(&more.values);
                    }
                }
                None => session.unknown.push(records.clone()),
            }
        }
    }
    session.put_in_order();
    session
}

/// Logs in memory, read chunk by chunk.
struct LogsInMemory {
    chunks: Vec<Vec<SessionChunk>>,
    next: Vec<usize>,
    is_closed: Vec<bool>,
    /// The position in each log at each read.
    steps: Vec<Vec<usize>>,
}

impl LogsInMemory {
    fn new(chunks: Vec<Vec<SessionChunk>>) -> LogsInMemory {
        let logs = chunks.len();
        LogsInMemory { next: vec![0; logs], is_closed: vec![true; logs], chunks, steps: Vec::new() }
    }
}

impl SideLogs for LogsInMemory {
    type Error = MergeError;

    fn next(&mut self, log: usize) -> Result<Option<SessionChunk>, MergeError> {
        if std::mem::take(&mut self.is_closed[log]) {
            self.next[log] = 0;
        }
        let chunk = self.chunks[log].get(self.next[log]).cloned();
        self.next[log] += 1;
        self.steps.push(self.next.clone());
        Ok(chunk)
    }

    fn close(&mut self, log: usize) {
        self.is_closed[log] = true;
    }
}

/// The merged log, written while it is merged, and the greatest memory use, in bytes.
fn merge_streams(plan: &MergePlan, logs: &mut LogsInMemory, options: WriterOptions) -> (Vec<u8>, usize) {
    let mut writer = MergeWriter::new(Vec::new(), &plan.header, plan.unknown.clone(), options).expect("memory");
    let mut most = 0;
    let put = plan.put_together(logs, &mut |chunk, until| {
        writer.add(chunk).expect("it fits");
        writer.write_until(until).expect("memory takes everything");
        most = most.max(writer.held_bytes());
        Ok(())
    });
    put.expect("logs that are read again");
    (writer.finish().expect("memory takes everything"), most)
}

/// Checks that a merge of chunks gives the same log or the same error as a merge in memory. Returns whether the chunks
/// were merged as streams.
fn compare_merges(
    sides: &[Session],
    chunks: Vec<Vec<SessionChunk>>,
    (span_ms, bytes): (i64, usize),
) -> Result<bool, TestCaseError> {
    let sessions: Vec<Session> =
        sides.iter().zip(&chunks).map(|(side, chunks)| join_chunks(&side.header, chunks)).collect();
    let headers: Vec<&SessionHeader> = sides.iter().map(|side| &side.header).collect();
    let mut logs = LogsInMemory::new(chunks);
    match (merge(sessions), MergePlan::of(&headers, &mut logs)) {
        (Ok(MergedSession { session, clients, cut }), Ok(plan)) => {
            prop_assert_eq!(&session.header, &plan.header);
            prop_assert_eq!((&clients[..], cut), (&plan.clients[..], plan.cut));
            let options = WriterOptions { level: 1, header_level: 1, span: Micros::from_ms(span_ms), bytes };
            let whole = write_session(Vec::new(), &session, options).expect("memory takes everything");
            let (streamed, _) = merge_streams(&plan, &mut logs, options);
            if streamed != whole {
                let back = |bytes: &[u8]| hitreg::log::read_session(bytes).expect("a good log");
                prop_assert_eq!(back(&streamed), back(&whole));
                prop_assert!(false, "the same session in other chunks");
            }
            return Ok(!plan.in_memory);
        }
        (Err(mut error), Err(found)) => {
            if let (MergeErrorKind::Drift { rate_us_per_s, .. }, MergeErrorKind::Drift { rate_us_per_s: rate, .. }) =
                (&mut error.kind, &found.kind)
            {
                prop_assert!((*rate_us_per_s - rate).abs() < 0.01);
                *rate_us_per_s = *rate;
            }
            prop_assert_eq!(error, found);
        }
        (in_memory, streamed) => {
            let in_memory = in_memory.map(|merged| (merged.clients, merged.cut));
            prop_assert!(false, "in memory {:?}, streamed {:?}", in_memory, streamed.map(|_| ()));
        }
    }
    Ok(false)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn streamed_merges_equal_merges_in_memory(case in case()) {
        let mut rng = Rng::new(Seed(case.seed), 11);
        let whole = session(&case, &mut rng);
        let sides = sides(&whole, &case, &mut rng);
        let chunks = sides.iter().map(|side| chunks(side, &case, &mut rng)).collect();
        compare_merges(&sides, chunks, case.options)?;
    }
}

/// A session in chunks of 100 ms.
fn plain(seconds: f64) -> (MergeCase, Vec<Session>, Vec<Vec<SessionChunk>>) {
    let case = MergeCase {
        seed: 5,
        players: 3,
        seconds,
        hears: false,
        chunk_ms: 100,
        overlap_ms: 30,
        late_states: 0,
        fault: MergeFault::None,
        options: (300, 20_000),
    };
    let mut rng = Rng::new(Seed(case.seed), 12);
    let whole = session(&case, &mut rng);
    let sides = sides(&whole, &case, &mut rng);
    let chunks = sides.iter().map(|side| chunks(side, &case, &mut rng)).collect();
    (case, sides, chunks)
}

const SMALL: WriterOptions = WriterOptions { level: 1, header_level: 1, span: Micros::from_ms(300), bytes: 20_000 };

fn plan_merge(sides: &[Session], chunks: Vec<Vec<SessionChunk>>) -> (Result<MergePlan, MergeError>, LogsInMemory) {
    let headers: Vec<&SessionHeader> = sides.iter().map(|side| &side.header).collect();
    let mut logs = LogsInMemory::new(chunks);
    (MergePlan::of(&headers, &mut logs), logs)
}

/// The memory use does not grow with the session, and no log is read far ahead of another.
#[test]
fn memory_does_not_grow_with_the_session() {
    let held = |seconds: f64| {
        let (_, sides, chunks) = plain(seconds);
        let (plan, mut logs) = plan_merge(&sides, chunks);
        let apart = |steps: &[Vec<usize>]| -> usize {
            let apart = |next: &Vec<usize>| next.iter().max().unwrap_or(&0) - next.iter().min().unwrap_or(&0);
            steps.iter().map(apart).max().unwrap_or(0)
        };
        // The server's log begins and ends up to a round trip later, and each log is read to its end.
        assert!(apart(&logs.steps) <= 8, "{} chunks apart", apart(&logs.steps));
        logs.steps.clear();
        logs.next.fill(0);
        let (_, most) = merge_streams(&plan.expect("a plan"), &mut logs, SMALL);
        let second_pass = logs.steps.iter().position(|next| next.iter().all(|next| *next > 0)).expect("all are read");
        assert!(apart(&logs.steps[second_pass..]) <= 8, "{} chunks apart", apart(&logs.steps[second_pass..]));
        most
    };
    let (short, long) = (held(4.0), held(16.0));
    assert!(long < short * 5 / 4, "{short} and {long} bytes");
}

/// A recording may continue between the two passes.
#[test]
fn a_log_that_grew_since_the_plan_is_read_to_its_old_end() {
    let (_, sides, mut chunks) = plain(4.0);
    let client = sides.iter().position(|side| side.header.side.is_some_and(|side| side.player.is_some())).expect("one");
    let all = chunks[client].clone();
    chunks[client].truncate(20);
    let sessions: Vec<Session> =
        sides.iter().zip(&chunks).map(|(side, chunks)| join_chunks(&side.header, chunks)).collect();
    let (plan, mut logs) = plan_merge(&sides, chunks);
    logs.chunks[client] = all;
    let merged = merge(sessions).expect("sides of one session");
    assert!(merged.cut.is_some());
    let whole = write_session(Vec::new(), &merged.session, SMALL).expect("memory takes everything");
    assert!(merge_streams(&plan.expect("a plan"), &mut logs, SMALL).0 == whole);
}

#[test]
fn records_too_far_out_of_order_are_merged_in_memory() {
    let is_stream = |change: &dyn Fn(&mut Vec<Vec<SessionChunk>>, usize)| {
        let (case, sides, mut chunks) = plain(4.0);
        let server = sides.iter().position(|side| side.header.side.is_some_and(|side| side.player.is_none()));
        change(&mut chunks, server.expect("the server's log"));
        compare_merges(&sides, chunks, case.options).expect("the same log")
    };
    assert!(is_stream(&|_, _| {}));
    let refused = |change: &dyn Fn(&mut Vec<Vec<SessionChunk>>, usize)| assert!(!is_stream(change));
    // Without its tick, a record has no place.
    refused(&|chunks, server| chunks[server][20].ticks.truncate(1));
    // Numbers out of order.
    refused(&|chunks, server| {
        let client = (server + 1) % chunks.len();
        let player = chunks[client][20].players.iter_mut().find(|player| !player.sent.is_empty()).expect("the client");
        player.sent.reverse();
    });
    // A record that is half a minute late.
    refused(&|chunks, server| {
        let client = (server + 1) % chunks.len();
        let player =
            chunks[client][20].players.iter_mut().find(|player| !player.frames.is_empty()).expect("the client");
        player.frames[0].at = player.frames[0].at - Micros::from_s(31);
    });
    // A state of a tick before the first.
    refused(&|chunks, server| {
        let mut states = chunks[server][0].states.clone();
        let (key, cells) = states.iter().next().map(|(key, cells)| (key, cells.to_vec())).expect("a state");
        states.push(StateKey { tick: Tick(0), ..key }, &cells);
        states.put_in_order();
        chunks[server][0].states = states;
    });
    // A record without a time after the beginning.
    refused(&|chunks, server| {
        let untimed = UnknownRecords {
            kind: "reached".to_owned(),
            series: vec![0],
            keys: vec![1],
            columns: vec![UnknownColumn { form: NumberForm::Integer, values: vec![4] }],
            time_column: None,
        };
        chunks[server][20].unknown.push(untimed);
    });
}

/// Checks two chunks in which all records before `until` are in the first. The merged log has a chunk for each record,
/// so chunks show the order.
fn check_two_chunks(first: &SessionChunk, second: &SessionChunk, until: Micros) {
    let scenario = Scenario { players: 1, seconds: 1.0, ..Scenario::default() };
    let header = scenario.header::<Arena>(&ArenaRules::default()).expect("a good scenario");
    let options = WriterOptions { bytes: 1, ..SMALL };
    let session = join_chunks(&header, &[first.clone(), second.clone()]);
    let mut writer = MergeWriter::new(Vec::new(), &header, Vec::new(), options).expect("memory");
    for (chunk, until) in [(first, until), (second, Micros(i64::MAX))] {
        writer.add(chunk.clone()).expect("it fits");
        writer.write_until(until).expect("memory takes everything");
    }
    let streamed = writer.finish().expect("memory takes everything");
    assert!(streamed == write_session(Vec::new(), &session, options).expect("memory takes everything"));
}

#[test]
fn records_of_a_tick_wait_for_its_time() {
    let tick = |tick: u32| TickRecord { tick: Tick(tick), at: Micros::from_ms(10 * i64::from(tick)), hash: Some(7) };
    let frame = |ms| FrameRecord { at: Micros::from_ms(ms), ..FrameRecord::default() };
    let executed = |tick| ExecutionRecord { tick: Tick(tick), ..ExecutionRecord::default() };
    let chunk = |frames: Vec<FrameRecord>, executed: Vec<ExecutionRecord>, ticks: Vec<TickRecord>| SessionChunk {
        players: vec![PlayerRecords { frames, executed, ..PlayerRecords::default() }],
        ticks,
        ..SessionChunk::default()
    };
    // The tick of an executed usercmd is in the next chunk.
    let first = chunk(vec![frame(12)], vec![executed(2)], vec![tick(1)]);
    let second = chunk(vec![frame(25)], vec![], vec![tick(2)]);
    check_two_chunks(&first, &second, Micros::from_ms(11));
    // A state belongs before one in an earlier chunk.
    let of_tick = |tick| {
        let mut states = States::default();
        let fields = Scenario::default().header::<Arena>(&ArenaRules::default()).expect("a good scenario").classes;
        states.push(StateKey { tick: Tick(tick), ..StateKey::default() }, &vec![5; fields[0].fields.len()]);
        states
    };
    let first = SessionChunk { states: of_tick(2), ..chunk(vec![frame(15)], vec![], vec![tick(1), tick(2)]) };
    let second = SessionChunk { states: of_tick(1), ..chunk(vec![], vec![], vec![tick(3)]) };
    check_two_chunks(&first, &second, Micros::from_ms(10));
}

//! The time to compare two traces of 100,000 ticks that differ in the last tick:
//! `cargo bench -p hitreg-benches --bench compare`.
//!
//! `tickwise compare` does the same for its own recordings, which have one hash a tick. Both read their input from
//! memory, in turn, in this process. Runs are measured in real time, because comparisons use threads.

use std::hint::black_box;
use std::io::Cursor;
use std::time::{Duration, Instant};

use hitreg::bisect::bisect_ticks;
use hitreg::diff::{DiffOptions, TraceVerdict, diff};
use hitreg::log::{read_trace, write_trace};
use hitreg::trace::{Column, ColumnData, Table, Trace};
use tickwise::compare::first_divergence_from;
use tickwise::format::RecReader;
use tickwise::{DeterminismProbe, Recorder, RecorderConfig, StateDump};

const RUNS: usize = 15;
const TICKS: u32 = 100_000;
const ENTITIES: u32 = 4;
const FIELDS: usize = 24;

/// The greatest time to compare the hashes of this many ticks.
const BAR: Duration = Duration::from_millis(100);

fn main() {
    let hashes = [trace(false, false), trace(false, true)];
    let states = [trace(true, false), trace(true, true)];
    let files = hashes.each_ref().map(|trace| write_trace(Vec::new(), trace).expect("memory takes everything"));
    let theirs = [recording(None), recording(Some(u64::from(TICKS) - 1))];
    let mut times: [Vec<Duration>; 5] = Default::default();
    for _ in 0..RUNS {
        times[0].push(timed(|| last_tick(&hashes[0], &hashes[1])));
        times[1].push(timed(|| last_tick(&states[0], &states[1])));
        times[2].push(timed(|| {
            let [a, b] = files.each_ref().map(|file| read_trace(Cursor::new(file)).expect("a trace"));
            last_tick(&a, &b);
        }));
        times[3].push(timed(|| {
            let found = bisect_ticks(&states[0], &states[1], &DiffOptions::default(), None).expect("no tolerance");
            assert_eq!(found.first.and_then(|first| first.place.tick), Some(TICKS));
        }));
        times[4].push(timed(|| {
            let [mut a, mut b] =
                theirs.each_ref().map(|bytes| RecReader::open(Cursor::new(bytes)).expect("a recording"));
            black_box(first_divergence_from(&mut a, &mut b).expect("comparable recordings"));
        }));
    }
    let [hashes, states, read, bisected, tickwise] = times.map(median);
    println!("two traces of {TICKS} ticks that differ at the last; medians of {RUNS} runs\n");
    println!("diff, one hash a tick                              {hashes:>10.1?}");
    println!("diff, {ENTITIES} bodies of {FIELDS} fields a tick as well            {states:>10.1?}");
    println!("bisect ticks on these                              {bisected:>10.1?}");
    println!("reading both traces and diff, one hash a tick      {read:>10.1?}");
    println!("reading both recordings and tickwise compare       {tickwise:>10.1?}");
    println!(
        "\nreading and diff / reading and tickwise            {:>10.2}",
        read.as_secs_f64() / tickwise.as_secs_f64()
    );
    assert!(states < BAR, "comparing took {states:?}, and the bar is {BAR:?}");
    assert!(read < tickwise, "tickwise is faster: {tickwise:?} against {read:?}");
}

fn last_tick(a: &Trace, b: &Trace) {
    let found = diff(a, b, &DiffOptions::default()).expect("no tolerance");
    assert_eq!(found.verdict, TraceVerdict::Differs);
    assert_eq!(found.first.and_then(|first| first.place.tick), Some(TICKS));
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn timed(run: impl FnOnce()) -> Duration {
    let before = Instant::now();
    run();
    before.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Ticks with realistic hashes, and optional bodies with realistic motion.
fn trace(bodies: bool, diverges: bool) -> Trace {
    let ticks = || 1..=TICKS;
    let hash = |tick: u32| (u64::from(tick) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let last = |tick: u32| u64::from(diverges && tick == TICKS);
    let mut tables = vec![Table::new(
        "ticks",
        vec![
            column("tick", ColumnData::U32(ticks().collect())),
            column("at_us", ColumnData::I64(ticks().map(|tick| i64::from(tick) * 15_625).collect())),
            column("hash", ColumnData::U64(ticks().map(|tick| hash(tick) ^ last(tick)).collect())),
        ],
    )];
    if bodies {
        let rows = || ticks().flat_map(|tick| (0..ENTITIES).map(move |entity| (tick, entity)));
        let mut columns = vec![
            column("tick", ColumnData::U32(rows().map(|(tick, _)| tick).collect())),
            column("entity", ColumnData::U32(rows().map(|(_, entity)| entity).collect())),
        ];
        for field in 0..FIELDS {
            let value = |(tick, entity): (u32, u32)| {
                let moved = libm::sinf(tick as f32 * 0.001 + entity as f32) * 100.0 + field as f32;
                let differs = last(tick) == 1 && entity == 2 && field == 7;
                if differs { moved.next_up() } else { moved }
            };
            columns.push(column(&format!("field_{field}"), ColumnData::F32(rows().map(value).collect())));
        }
        tables.push(Table::new("bodies", columns));
    }
    Trace { tables, ..Trace::default() }
}

fn column(name: &str, data: ColumnData) -> Column {
    Column::new(name, data)
}

struct OneHash(u64);

impl DeterminismProbe for OneHash {
    fn light_hash(&self) -> u64 {
        self.0
    }
    fn full_hash(&self) -> u64 {
        self.0.wrapping_mul(31)
    }
    fn state_dump(&self) -> StateDump {
        StateDump::empty()
    }
}

/// A recording with the same number of ticks.
fn recording(diverges_at: Option<u64>) -> Vec<u8> {
    let mut recorder = Recorder::new(Vec::new(), RecorderConfig::default()).expect("memory takes everything");
    for tick in 0..u64::from(TICKS) {
        let hash = (tick + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(diverges_at.is_some_and(|at| tick >= at));
        recorder.record_tick(tick, &[(tick % 4) as u8, 0], &OneHash(hash)).expect("memory takes everything");
    }
    recorder.finish().expect("memory takes everything")
}

//! The speed of replays and the cost of recording: `cargo bench -p hitreg-benches --bench replay`.
//!
//! Machines are noisy, so each figure is the median of several runs, and compared runs alternate in this process.

mod bare;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hitreg::arena::{Arena, ArenaRules};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::log::{LogWriter, WriterOptions as LogOptions};
use hitreg::record::{Record, Session};
use hitreg::replay::{ReplayOptions, replay};
use hitreg::session::scenario::Scenario;
use hitreg::session::{RecordBatcher, RecordSink, SessionRecorder, record_synthetic};
use hitreg::trace::schema::TableSet;

const RUNS: usize = 9;
const PLAYERS: u16 = 16;
const SECONDS: f64 = 60.0;

/// The cost of a run for this thread: CPU time on Linux, which does not depend on other processes, else real time.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn timed<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let (wall, before) = (Instant::now(), thread_time());
    let result = run();
    let passed = wall.elapsed();
    let spent = thread_time().zip(before).map(|(after, before)| after - before);
    (spent.unwrap_or(passed), result)
}

fn thread_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let link =
        LinkModel { delay_ms: 40.0, jitter: Jitter::Uniform(5.0), loss: Loss::Random(0.01), ..LinkModel::default() };
    let scenario = Scenario { players: PLAYERS, seconds: SECONDS, link, ..Scenario::default() };
    let rules = Arc::new(ArenaRules::default());
    let mut session = Session::new(scenario.header::<Arena>(&rules).expect("a good scenario"));
    record_synthetic::<Arena>(&scenario, &rules, &mut SessionRecorder::new(&mut session)).expect("a good scenario");
    let usercmds: usize = session.players.iter().map(|p| p.frames.len()).sum();
    println!("{PLAYERS} players, {SECONDS} s, {usercmds} usercmds; medians of {RUNS} runs of one thread\n");
    replaying(&session, &rules, usercmds);
    recording(&scenario, &session, usercmds);
}

fn replaying(session: &Session, rules: &ArenaRules, usercmds: usize) {
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread can be had");
    let (mut alone, mut closed, mut encoded, mut bare) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        for (sizes, tables) in [(false, TableSet::NONE), (false, TableSet::ALL), (true, TableSet::ALL)] {
            let options = ReplayOptions { sizes, tables, ..ReplayOptions::default() };
            let once = || replay::<Arena>(session, &options, &mut |_| {}).expect("a log of this build");
            let (time, replayed) = one_thread.install(|| timed(once));
            assert_eq!(replayed.findings.first_difference, None);
            assert_eq!(
                replayed.findings.traffic.is_some(),
                sizes,
                "datagrams are made when sizes are asked for, and only then"
            );
            match (sizes, tables == TableSet::NONE) {
                (true, _) => &mut encoded,
                (false, true) => &mut alone,
                (false, false) => &mut closed,
            }
            .push(time);
        }
        bare.push(timed(|| bare::movement(session, rules)).0);
    }
    let (alone, closed, encoded, bare) = (median(alone), median(closed), median(encoded), median(bare));
    let ways = [
        ("no table asked for        ", alone),
        ("all tables                ", closed),
        ("with every datagram made  ", encoded),
    ];
    for (what, time) in ways {
        println!("closed loop, {what} {time:>10.1?}   {:.0} times real time", SECONDS / time.as_secs_f64());
    }
    println!(
        "bare movement, every usercmd once       {bare:>10.1?}   {:.0} ns a usercmd",
        bare.as_nanos() as f64 / usercmds as f64
    );
    for (what, time) in [("no table  ", alone), ("all tables", closed)] {
        println!("closed loop, {what} / bare movement {:>10.1}", time.as_secs_f64() / bare.as_secs_f64());
    }
}

/// The cost of recording for the thread that runs a session: the session with records handed to the recorder, and with
/// records dropped.
fn recording(scenario: &Scenario, session: &Session, usercmds: usize) {
    let mut kept = StoredRecords(Vec::new());
    let rules: ArenaRules = rmp_serde::from_slice(&session.header.rules).expect("rules that were just written");
    record_synthetic::<Arena>(scenario, &Arc::new(rules), &mut SessionRecorder::new(&mut kept))
        .expect("a good scenario");
    let (mut here, mut elsewhere, mut nowhere) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let mut writer = LogWriter::new(io::sink(), &session.header, LogOptions::live()).expect("a sink takes all");
        let records = kept.0.clone();
        here.push(timed(|| records.into_iter().for_each(|r| writer.push(r).expect("a record of this session"))).0);
        writer.finish().expect("a sink takes all");
        let records = kept.0.clone();
        nowhere.push(timed(|| records.into_iter().for_each(|record| drop(std::hint::black_box(record)))).0);
        let (records, header) = (kept.0.clone(), session.header.clone());
        let (mut batches, handed_over) = RecordBatcher::new();
        let writing = std::thread::spawn(move || {
            let mut writer = LogWriter::new(io::sink(), &header, LogOptions::live()).expect("a sink takes all");
            handed_over.each(|record| writer.push(record)).expect("records of this session");
            writer.finish().expect("a sink takes all");
        });
        elsewhere.push(timed(|| records.into_iter().for_each(|record| batches.record(record))).0);
        drop(batches);
        writing.join().expect("it does not panic");
    }
    let each = |times: Vec<Duration>| median(times).as_nanos() as f64 / usercmds as f64;
    println!("\n{} records, {:.1} for each usercmd", kept.0.len(), kept.0.len() as f64 / usercmds as f64);
    println!("recording, all of it in the same thread    {:>6.0} ns a usercmd", each(here));
    println!("recording, handed over to another thread   {:>6.0} ns a usercmd", each(elsewhere));
    println!("nothing, each record dropped               {:>6.0} ns a usercmd", each(nowhere));
}

/// Stores the records of the recorder.
struct StoredRecords(Vec<Record>);

impl RecordSink for StoredRecords {
    fn record(&mut self, record: Record) {
        self.0.push(record);
    }
}

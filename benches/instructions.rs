//! The costs of hitreg in instructions and memory, which do not depend on other work on the machine:
//! `cargo bench -p hitreg-benches --bench instructions`.
//!
//! Each job runs in its own processes: once alone, to measure memory, and twice under valgrind's callgrind. These two
//! runs, one with the job and one with only its preparation, give the instructions of each thread.
//! `benches/instructions.txt` has the last counts, and changes over 3 % are reported. `HITREG_INSTRUCTIONS=hold` makes
//! a change an error, `write` updates the file. Names of jobs as arguments select jobs.

mod bare;

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread::JoinHandle;

use counted_heap::MEMORY;
use hitreg::arena::{Arena, ArenaRules};
use hitreg::diff::{DiffOptions, TraceVerdict, diff};
use hitreg::drawing::ViewErrorCollector;
use hitreg::fairness::FairnessBuilder;
use hitreg::golden::ReplaySummary;
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::log::{
    LogReader, LogWriter, TraceLayout, WriterOptions as LogOptions, read_session, read_trace, write_session,
    write_trace_meanwhile,
};
use hitreg::record::{Record, Session, SessionHeader};
use hitreg::replay::{LogSurvey, ReplayAttempt, ReplayOptions, ReplaySource, replay, stream};
use hitreg::session::scenario::Scenario;
use hitreg::session::{RecordBatcher, RecordSink, SessionRecorder, record_synthetic};
use hitreg::trace::schema::TableSet;
use hitreg::trace::{Table, TraceHeader};

const PLAYERS: u16 = 16;
const SECONDS: f64 = 10.0;

/// Changes up to these sizes are not reported. Two preparations differ by some thousand instructions.
const REPORTED_PERCENT: f64 = 3.0;
const REPORTED_COUNT: u64 = 20_000;

/// The measured work, after its preparation.
type BenchJob = Box<dyn FnOnce()>;

/// Prepares a job from the folder with its input.
type PrepareJob = fn(&Path) -> BenchJob;

/// The jobs: name and preparation. The folder has a log and two traces.
const JOBS: &[(&str, PrepareJob)] = &[
    (BARE, bare_movement),
    ("closed loop, no table", closed_without_tables),
    ("closed loop, tables in memory", closed_with_tables),
    ("replay of a log, its rows", rows),
    ("replay of a log, its sums", replayed),
    ("replay of a log into a trace", traced),
    ("session of bots", played),
    ("record synth", recorded),
    ("handing records over to a log", pushed),
    ("reading a log", read),
    ("diff of two traces", compared),
];
const BARE: &str = "bare movement";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    match &arguments[..] {
        [part, job, folder] if ["ready", "run"].contains(&&**part) => {
            let (_, ready) = JOBS.iter().find(|(name, _)| name == job).expect("a job of this bench");
            let job = ready(Path::new(folder));
            let (held, made) = (MEMORY.allocated(), MEMORY.total_allocated());
            if part == "run" {
                job();
            }
            println!("{} {}", MEMORY.max_allocated() - held, MEMORY.total_allocated() - made);
            ExitCode::SUCCESS
        }
        // For a profiler: run `valgrind --tool=callgrind PROGRAM run JOB FOLDER` afterwards.
        [part, folder] if part == "prepare" => {
            prepare(Path::new(folder));
            ExitCode::SUCCESS
        }
        wanted => compare(wanted),
    }
}

/// The cost of a job.
#[derive(Clone, Copy, PartialEq)]
struct Cost {
    /// Instructions on the job's own thread, and on the threads that it started.
    here: u64,
    elsewhere: u64,
    /// The peak memory in bytes, and the sum of all allocations.
    peak: u64,
    asked: u64,
}

#[expect(clippy::disallowed_methods, reason = "an environment variable selects the use of the counts")]
fn compare(wanted: &[String]) -> ExitCode {
    let folder = &Path::new(env!("CARGO_TARGET_TMPDIR")).join("instructions");
    std::fs::create_dir_all(folder).expect("a folder for the log and the traces");
    let usercmds = prepare(folder);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.txt");
    let before = std::fs::read_to_string(&file).unwrap_or_default();
    let mut now = format!(
        "# {PLAYERS} players, {SECONDS} s, {usercmds} usercmds: `cargo bench -p hitreg-benches --bench instructions`\n\
         # instructions on its thread, on others; most bytes of memory at once, bytes asked for in all\n"
    );
    let mut changed = Vec::new();
    let mut bare = None;
    let is_wanted = |job: &str| job == BARE || wanted.is_empty() || wanted.iter().any(|part| job.contains(&**part));
    for (job, _) in JOBS.iter().filter(|(job, _)| is_wanted(job)) {
        let cost = cost(job, folder);
        let bare = *bare.get_or_insert(cost.here);
        let Cost { here, elsewhere, peak, asked } = cost;
        let each = |count: u64| count as f64 / usercmds as f64;
        println!(
            "{job:32} {:>7.0} + {:>6.0} a usercmd, {:>5.2} + {:>5.2} times bare movement; {:>7} kB, {:>6.0} B asked for a usercmd",
            each(here),
            each(elsewhere),
            here as f64 / bare as f64,
            elsewhere as f64 / bare as f64,
            peak / 1000,
            each(asked)
        );
        let _ = writeln!(now, "{job:32} {here} {elsewhere} {peak} {asked}");
        match last(&before, job) {
            Some(last) => changed.extend(differences(job, last, cost)),
            None => changed.push(format!("{job}: counted for the first time")),
        }
    }
    let asked = std::env::var("HITREG_INSTRUCTIONS").unwrap_or_default();
    for line in &changed {
        println!("changed: {line}");
    }
    match &*asked {
        "write" if wanted.is_empty() => std::fs::write(&file, now).expect("the file of figures can be written"),
        "hold" if !changed.is_empty() => return ExitCode::FAILURE,
        _ => {}
    }
    ExitCode::SUCCESS
}

fn last(before: &str, job: &str) -> Option<Cost> {
    let line = before.lines().find_map(|line| line.strip_prefix(job).filter(|rest| rest.starts_with(' ')))?;
    let [here, elsewhere, peak, asked] =
        line.split_whitespace().map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>()?.try_into().ok()?;
    Some(Cost { here, elsewhere, peak, asked })
}

fn differences(job: &str, before: Cost, now: Cost) -> Vec<String> {
    let what = [
        ("instructions", before.here, now.here),
        ("instructions on other threads", before.elsewhere, now.elsewhere),
        ("bytes at once", before.peak, now.peak),
        ("bytes asked for", before.asked, now.asked),
    ];
    let of =
        what.into_iter().map(|(what, before, now)| (what, before, now, 100.0 * (now as f64 / before as f64 - 1.0)));
    of.filter(|(_, before, now, percent)| percent.abs() > REPORTED_PERCENT && before.abs_diff(*now) > REPORTED_COUNT)
        .map(|(what, before, now, percent)| format!("{job}: {what} {before} -> {now} ({percent:+.1} %)"))
        .collect()
}

/// Writes the input of the jobs: a log, and two traces that differ. Returns the number of usercmds.
fn prepare(folder: &Path) -> usize {
    let (scenario, rules) = scenario();
    let mut session = Session::new(scenario.header::<Arena>(&rules).expect("a good scenario"));
    record_synthetic::<Arena>(&scenario, &rules, &mut SessionRecorder::new(&mut session)).expect("a good scenario");
    session.put_in_order();
    write_session(create(folder, "log"), &session, LogOptions::live()).expect("a folder that can be written");
    for (name, key) in [("a", "false"), ("b", "true")] {
        let mut settings = hitreg::replay::log_settings(&session.header).expect("settings of this build");
        settings.set("lag_compensation.enabled", key).expect("a setting of this build");
        let options = ReplayOptions { settings: Some(settings), ..ReplayOptions::default() };
        let replayed = replay::<Arena>(&session, &options, &mut |_| {}).expect("a log of this build");
        hitreg::log::write_trace(create(folder, name), &replayed.trace).expect("a folder that can be written");
    }
    session.players.iter().map(|player| player.frames.len()).sum()
}

#[expect(clippy::disallowed_types, reason = "a benchmark's own files")]
fn create(folder: &Path, name: &str) -> io::BufWriter<std::fs::File> {
    io::BufWriter::new(std::fs::File::create(folder.join(name)).expect("a folder that can be written"))
}

fn cost(job: &str, folder: &Path) -> Cost {
    let itself = std::env::current_exe().expect("a program knows itself");
    let alone = output(Command::new(&itself).args(["run", job]).arg(folder));
    let [peak, asked] = alone.split_whitespace().map(|n| n.parse().expect("a number")).collect::<Vec<u64>>()[..] else {
        panic!("{job} printed {alone:?}")
    };
    let counted = |part| {
        let out = folder.join(part);
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--separate-threads=yes", "--quiet"]);
        valgrind.arg(format!("--callgrind-out-file={}", out.display()));
        output(valgrind.arg(&itself).args([part, job]).arg(folder));
        instructions(folder, part)
    };
    let (ready, all) = std::thread::scope(|scope| {
        let ready = scope.spawn(|| counted("ready"));
        let all = counted("run");
        (ready.join().expect("a count"), all)
    });
    // The smallest job takes fewer instructions than two preparations differ by.
    Cost { here: all.0.saturating_sub(ready.0), elsewhere: all.1.saturating_sub(ready.1), peak, asked }
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("valgrind is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("numbers")
}

/// The instructions of the first thread and of all others, from callgrind's files.
fn instructions(folder: &Path, part: &str) -> (u64, u64) {
    let files = std::fs::read_dir(folder).expect("a folder that can be read").map(|file| file.expect("a file").path());
    let of: Vec<PathBuf> = files
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&format!("{part}-"))))
        .collect();
    of.iter().fold((0, 0), |(here, elsewhere), path| {
        let text = std::fs::read_to_string(path).expect("what callgrind wrote");
        let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("callgrind ends with totals");
        let total: u64 = total.trim().parse().expect("a number");
        std::fs::remove_file(path).expect("a file of one's own");
        if path.to_string_lossy().ends_with("-01") { (here + total, elsewhere) } else { (here, elsewhere + total) }
    })
}

fn scenario() -> (Scenario, Arc<ArenaRules>) {
    let link =
        LinkModel { delay_ms: 40.0, jitter: Jitter::Uniform(5.0), loss: Loss::Random(0.01), ..LinkModel::default() };
    (Scenario { players: PLAYERS, seconds: SECONDS, link, ..Scenario::default() }, Arc::new(ArenaRules::default()))
}

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).expect("a file that was just written")
}

fn session(folder: &Path) -> Session {
    read_session(Cursor::new(bytes(folder, "log"))).expect("a log of this build")
}

fn bare_movement(folder: &Path) -> BenchJob {
    let (session, rules) = (session(folder), ArenaRules::default());
    Box::new(move || bare::movement(&session, &rules))
}

/// Server and all clients; each tick is compared with the recorded one.
fn closed_without_tables(folder: &Path) -> BenchJob {
    with_tables(folder, TableSet::NONE)
}

/// The closed loop with all tables in memory.
fn closed_with_tables(folder: &Path) -> BenchJob {
    with_tables(folder, TableSet::ALL)
}

fn with_tables(folder: &Path, tables: TableSet) -> BenchJob {
    let session = session(folder);
    Box::new(move || {
        let options = ReplayOptions { tables, ..ReplayOptions::default() };
        let replayed = replay::<Arena>(&session, &options, &mut |_| {}).expect("a log of this build");
        assert_eq!(replayed.findings.first_difference, None);
        black_box(replayed);
    })
}

/// The rows, read one part at a time and dropped.
fn rows(folder: &Path) -> BenchJob {
    let log = bytes(folder, "log");
    Box::new(move || streamed(&log, &mut |_, rows| drop(black_box(rows))))
}

/// The work of `hitreg replay LOG`: digests and summaries.
fn replayed(folder: &Path) -> BenchJob {
    let log = bytes(folder, "log");
    Box::new(move || {
        let mut summary = ReplaySummary::new(TraceHeader::default());
        let (mut fairness, mut view_errors) = (FairnessBuilder::default(), ViewErrorCollector::default());
        streamed(&log, &mut |_, rows| {
            summary.add(&rows);
            fairness.add(&rows);
            view_errors.add(&rows);
        });
        black_box((summary.digest(), summary.summary(), fairness.fairness(), view_errors.drawn()));
    })
}

/// The work of `hitreg replay LOG -o TRACE`.
fn traced(folder: &Path) -> BenchJob {
    let log = bytes(folder, "log");
    Box::new(move || {
        write_trace_meanwhile(TraceLayout::Packed, io::sink(), |write| streamed(&log, write)).expect("a sink takes all")
    })
}

fn streamed(log: &[u8], to: &mut dyn FnMut(&TraceHeader, Table)) {
    let mut reader = LogReader::new(Cursor::new(log)).expect("a log of this build");
    let header = reader.header().clone();
    let mut survey = LogSurvey::new(&header);
    while let Some(mut chunk) = reader.next_chunk().expect("a whole log") {
        survey.add(&header, &mut chunk);
    }
    survey.end();
    let mut again = LogReader::new(Cursor::new(log)).expect("a log of this build");
    let mut chunks = std::iter::from_fn(|| again.next_chunk().expect("a whole log"));
    let source = ReplaySource { header: &header, survey: &survey, start: None, keyframes: None };
    let attempt = ReplayAttempt { options: &ReplayOptions::default(), encodes: false };
    let ran = stream::<Arena>(&source, &mut chunks, attempt, to, &mut |_| {});
    let ran = ran.expect("a log of this build").expect("no datagram matters here");
    assert_eq!(ran.first_difference, None);
}

/// The work of `hitreg record synth` without the recording.
fn played(_folder: &Path) -> BenchJob {
    Box::new(|| {
        let (scenario, rules) = scenario();
        record_synthetic::<Arena>(&scenario, &rules, &mut SessionRecorder::new(&mut NoRecord))
            .expect("a good scenario");
    })
}

/// The work of `hitreg record synth` with the log, which another thread writes.
fn recorded(_folder: &Path) -> BenchJob {
    Box::new(|| {
        let (scenario, rules) = scenario();
        let header = scenario.header::<Arena>(&rules).expect("a good scenario");
        let (mut batches, writing) = written(header);
        record_synthetic::<Arena>(&scenario, &rules, &mut SessionRecorder::new(&mut batches)).expect("a good scenario");
        drop(batches);
        writing.join().expect("it does not panic");
    })
}

/// The cost of recording for the thread that runs a session, with finished records.
fn pushed(_folder: &Path) -> BenchJob {
    let (scenario, rules) = scenario();
    let mut kept = StoredRecords(Vec::new());
    record_synthetic::<Arena>(&scenario, &rules, &mut SessionRecorder::new(&mut kept)).expect("a good scenario");
    let header = scenario.header::<Arena>(&rules).expect("a good scenario");
    Box::new(move || {
        let (mut batches, writing) = written(header);
        kept.0.into_iter().for_each(|record| batches.record(record));
        drop(batches);
        writing.join().expect("it does not panic");
    })
}

fn written(header: SessionHeader) -> (RecordBatcher, JoinHandle<()>) {
    let (batches, handed_over) = RecordBatcher::new();
    let writing = std::thread::spawn(move || {
        let mut writer = LogWriter::new(io::sink(), &header, LogOptions::live()).expect("a sink takes all");
        handed_over.each(|record| writer.push(record)).expect("records of this session");
        writer.finish().expect("a sink takes all");
    });
    (batches, writing)
}

fn read(folder: &Path) -> BenchJob {
    let log = bytes(folder, "log");
    Box::new(move || {
        black_box(read_session(Cursor::new(log)).expect("a log of this build"));
    })
}

fn compared(folder: &Path) -> BenchJob {
    let [a, b] = ["a", "b"].map(|name| bytes(folder, name));
    Box::new(move || {
        let [a, b] = [a, b].map(|trace| read_trace(Cursor::new(trace)).expect("a trace of this build"));
        let found = diff(&a, &b, &DiffOptions::default()).expect("no tolerance");
        assert_eq!(found.verdict, TraceVerdict::Differs);
    })
}

struct NoRecord;

impl RecordSink for NoRecord {
    fn record(&mut self, record: Record) {
        black_box(record);
    }
}

struct StoredRecords(Vec<Record>);

impl RecordSink for StoredRecords {
    fn record(&mut self, record: Record) {
        self.0.push(record);
    }
}

//! Commands whose memory does not grow with the length of a log.

use std::fs;

use hitreg::log::write_trace;
use hitreg::trace::{Column, ColumnData, Table, Trace, TraceHeader};
use tempfile::TempDir;

use super::child::run;
use super::sides;

/// The commands that stream a log. Verify runs once in parallel legs and once in one pass: the recording has keyframes.
/// The shorter session hardly runs two legs at a time, so the test does not compare the peaks of legs.
const STREAMING_LOGS: &[(&str, i32)] = &[
    ("info F", 0),
    ("verify F --threads 1", 0),
    ("verify F --threads 2 --whole", 0),
    ("replay F --mode open", 0),
    ("export F --table shots --to csv -o shots.csv", 0),
    ("diff F --b-set lag_compensation.enabled=false --on hits", 1),
];
/// The commands that make the traces. The shorter session does not fill all tables, so the test does not compare these
/// peaks (75 MB and 110 MB; an hour takes 137 MB).
const MAKE_TRACES: [&str; 2] = ["replay F -o a.hittrace", "replay F --set interpolation.lerp_ms=50 -o b.hittrace"];
/// The commands that stream traces.
const STREAMING_TRACES: &[(&str, i32)] = &[
    ("export a.hittrace --table frames -o frames.jsonl", 0),
    ("diff a.hittrace b.hittrace", 1),
    ("diff a.hittrace b.hittrace --why 1", 1),
];
/// The allowed growth for a log of four times the length. Peaks vary with the filling of buffers.
const GROWTH_BYTES_MAX: usize = 24 << 20;
/// The memory limit of two parallel legs, as of all commands that stream.
const PEAK_BYTES_MAX: usize = 200 << 20;
/// The shorter session is too long for the commands that read small files into memory.
const SECONDS: u32 = 65;

/// Runs `prepare`, then the commands that stream, on a session and on one of four times the length. Checks that the
/// peaks do not grow. Returns the folder with the longer session.
fn check_peaks(prepare: &[&str], streaming: &[(&str, i32)]) -> TempDir {
    let peaks = |seconds: u32| -> (TempDir, Vec<usize>) {
        let folder = TempDir::new().expect("a folder");
        let line = format!("record synth -o F --players 16 --seconds {seconds} --delay-ms 40 --jitter-ms 5 --loss 1%");
        for line in std::iter::once(&*line).chain(prepare.iter().copied()) {
            let ran = run(folder.path(), line);
            assert_eq!(ran.code, 0, "{line}: {}", ran.output);
        }
        assert!(folder.path().join("F").metadata().is_ok_and(|log| log.len() > 1 << 20), "it is too small");
        let peak = |(line, code): &(&str, i32)| {
            let ran = run(folder.path(), line);
            assert_eq!(ran.code, *code, "{line}: {}", ran.output);
            ran.peak
        };
        let peaks = streaming.iter().map(peak).collect();
        (folder, peaks)
    };
    let ((_, short), (folder, long)) = (peaks(SECONDS), peaks(4 * SECONDS));
    for ((line, _), (short, long)) in streaming.iter().zip(short.iter().zip(&long)) {
        eprintln!("{line}: {} MiB, {} MiB for four times the length", short >> 20, long >> 20);
    }
    for ((line, _), (short, long)) in streaming.iter().zip(short.iter().zip(&long)) {
        assert!(
            *long < (short + GROWTH_BYTES_MAX).min(PEAK_BYTES_MAX),
            "{line}: {} MiB, and {} MiB",
            short >> 20,
            long >> 20
        );
    }
    folder
}

#[test]
fn memory_of_logs_is_constant_for_four_times_the_length() {
    let folder = check_peaks(&[], STREAMING_LOGS);
    let two_legs = run(folder.path(), "verify F --threads 2");
    let is_bounded = two_legs.code == 0 && two_legs.peak < PEAK_BYTES_MAX;
    assert!(is_bounded, "two legs: {} MiB, {}", two_legs.peak >> 20, two_legs.output);
}

#[test]
fn memory_of_traces_is_constant_for_four_times_the_length() {
    check_peaks(&MAKE_TRACES, STREAMING_TRACES);
}

#[test]
fn memory_of_a_merge_is_constant_for_four_times_the_length() {
    let peak = |seconds: u32| {
        let folder = TempDir::new().expect("a folder");
        sides::write(f64::from(seconds), 16, folder.path()).expect("a session");
        let clients: String = (0..16).map(|player| format!(" client{player}.hitlog")).collect();
        let ran = run(folder.path(), &format!("merge server.hitlog{clients} -o F"));
        assert_eq!(ran.code, 0, "{}", ran.output);
        ran.peak
    };
    let (short, long) = (peak(SECONDS), peak(4 * SECONDS));
    eprintln!("merge: {} MiB, {} MiB for four times the length", short >> 20, long >> 20);
    assert!(long < (short + GROWTH_BYTES_MAX).min(PEAK_BYTES_MAX), "{} MiB, and {} MiB", short >> 20, long >> 20);
}

/// Shots of one player, each in its own tick. The first has no verdict, so it comes after the others.
fn shots(count: u32, misses: u32) -> Trace {
    const TICKS: u32 = 500_000;
    let order = || (2..=count).chain([1]);
    let names =
        |names: [&str; 2], codes: Vec<u32>| ColumnData::Name { names: names.map(str::to_owned).to_vec(), codes };
    let numbers = |of: fn(u32) -> u32| ColumnData::U32(order().map(of).collect());
    // Hashes that do not compress make a file of more than a megabyte, which commands stream.
    let hash = |tick: u32| {
        let mixed = u64::from(tick).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let ticks = vec![
        Column::new("tick", ColumnData::U32((1..=TICKS).collect())),
        Column::new("at_us", ColumnData::I64((1..=TICKS).map(|tick| i64::from(tick) * 15_625).collect())),
        Column::new("hash", ColumnData::U64((1..=TICKS).map(hash).collect())),
    ];
    let columns = vec![
        Column::new("shooter", numbers(|_| 0)),
        Column::new("command", numbers(|command| command)),
        Column::new("index", numbers(|_| 0)),
        Column::new("at_us", ColumnData::I64(order().map(|command| i64::from(command) * 15_625).collect())),
        Column::new("tick", numbers(|command| command)),
        Column::new("weapon", names(["pistol", "none"], vec![0; count as usize])),
        Column::new("reason", names(["hit", "missed"], vec![misses; count as usize])),
        Column::new("target", names(["p1", "none"], vec![misses; count as usize])),
        Column::new("damage", ColumnData::I64(vec![12; count as usize])),
    ];
    let header = TraceHeader { game: "discs".into(), mode: "closed".into(), ..TraceHeader::default() };
    Trace { header, tables: vec![Table::new("ticks", ticks), Table::new("shots", columns)] }
}

#[test]
fn memory_is_constant_for_four_times_the_changed_shots() {
    let peak = |count: u32| {
        let folder = TempDir::new().expect("a folder");
        for (name, misses) in [("a.hittrace", 0), ("b.hittrace", 1)] {
            let file = write_trace(Vec::new(), &shots(count, misses)).expect("memory takes all");
            assert!(file.len() > 1 << 20, "{} bytes", file.len());
            fs::write(folder.path().join(name), file).expect("a file");
        }
        let ran = run(folder.path(), "diff a.hittrace b.hittrace --on hits");
        assert_eq!(ran.code, 1, "{}", ran.output);
        ran.peak
    };
    let (few, many) = (peak(120_000), peak(480_000));
    eprintln!("diff: {} MiB, {} MiB for four times the shots", few >> 20, many >> 20);
    assert!(many < few + (12 << 20), "{} MiB, and {} MiB", few >> 20, many >> 20);
}

//! Commands that take no more memory for a longer log.

use std::path::Path;

use tempfile::TempDir;

use super::child::run;

/// The commands that read a log as they use it up; `F` stands for it.
const AS_READ: &[&str] = &[
    "info F",
    "info F --replay",
    "replay F",
    "replay F -o out.hittrace",
    "verify F",
    "export F",
    "export F --table views --to csv -o out.csv",
    "info out.hittrace",
    "export out.hittrace --table views -o out.jsonl",
];
/// So much more may be taken for a log that is four times as long: what differs is how full buffers happen to be.
const MORE: usize = 20 << 20;

fn log_of(folder: &Path, seconds: u32) -> String {
    let name = format!("{seconds}.hitlog");
    let line = format!("record synth -o {name} --players 8 --seconds {seconds} --delay-ms 40 --loss 1%");
    let ran = run(folder, &line);
    assert_eq!(ran.code, 0, "{}", ran.said);
    name
}

#[test]
fn four_times_the_length_takes_no_more_memory() {
    let peaks = |seconds: u32| {
        let folder = TempDir::new().expect("a folder");
        let log = log_of(folder.path(), seconds);
        let peak = |line: &&str| {
            let ran = run(folder.path(), &line.replace('F', &log));
            assert_eq!(ran.code, 0, "{line}: {}", ran.said);
            ran.peak
        };
        AS_READ.iter().map(peak).collect::<Vec<usize>>()
    };
    let (short, long) = (peaks(50), peaks(200));
    for (line, (short, long)) in AS_READ.iter().zip(short.iter().zip(&long)) {
        eprintln!("{line}: {} MiB, {} MiB for four times the length", short >> 20, long >> 20);
        assert!(*long < short + MORE, "{line}: {} MiB, and {} MiB", short >> 20, long >> 20);
    }
}

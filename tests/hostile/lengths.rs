//! Commands that take no more memory for a longer log.

use std::path::Path;

use tempfile::TempDir;

use super::child::run;

/// What makes the traces. After the shorter session not all tables have been full yet, so that its peak says little of the longer
/// one's (75 MB and 110 MB; an hour takes 137 MB), and it is not judged here.
const MAKE: [&str; 2] = ["replay F -o a.hittrace", "replay F --set interpolation.lerp_ms=50 -o b.hittrace"];
/// The commands that read a log, or traces, as they use them up.
const AS_READ: &[(&str, i32)] = &[
    ("info F", 0),
    // Leg by leg, and as a whole: the recording has keyframes. Of the shorter one hardly two legs are replayed at once, so that its
    // peak says little of theirs.
    ("verify F --threads 1", 0),
    ("verify F --threads 2 --whole", 0),
    ("export F --table shots --to csv -o shots.csv", 0),
    ("export a.hittrace --table frames -o frames.jsonl", 0),
    ("diff a.hittrace b.hittrace", 1),
    ("diff a.hittrace b.hittrace --why 1", 1),
    ("diff F --b-set lag_compensation.enabled=false --on hits", 1),
];
/// So much more may be taken for a log that is four times as long: what differs is how full buffers happen to be.
const MORE: usize = 24 << 20;
/// Two legs at once take no more, as nothing does that reads a log of any length.
const MOST: usize = 200 << 20;
/// The shorter one is none that is read as a whole because it is small.
const SECONDS: u32 = 65;

fn peaks(folder: &Path, seconds: u32) -> Vec<usize> {
    let line = format!("record synth -o F --players 16 --seconds {seconds} --delay-ms 40 --jitter-ms 5 --loss 1%");
    let ran = run(folder, &line);
    assert_eq!(ran.code, 0, "{}", ran.said);
    assert!(folder.join("F").metadata().is_ok_and(|log| log.len() > 1 << 20), "it is too small");
    for line in MAKE {
        assert_eq!(run(folder, line).code, 0, "{line}");
    }
    let peak = |(line, code): &(&str, i32)| {
        let ran = run(folder, line);
        assert_eq!(ran.code, *code, "{line}: {}", ran.said);
        ran.peak
    };
    AS_READ.iter().map(peak).collect()
}

#[test]
fn four_times_the_length_takes_no_more_memory() {
    let folders = [TempDir::new().expect("a folder"), TempDir::new().expect("a folder")];
    let (short, long) = (peaks(folders[0].path(), SECONDS), peaks(folders[1].path(), 4 * SECONDS));
    let two_legs = run(folders[1].path(), "verify F --threads 2");
    assert!(two_legs.code == 0 && two_legs.peak < MOST, "two legs: {} MiB, {}", two_legs.peak >> 20, two_legs.said);
    for ((line, _), (short, long)) in AS_READ.iter().zip(short.iter().zip(&long)) {
        eprintln!("{line}: {} MiB, {} MiB for four times the length", short >> 20, long >> 20);
    }
    for ((line, _), (short, long)) in AS_READ.iter().zip(short.iter().zip(&long)) {
        assert!(*long < (short + MORE).min(MOST), "{line}: {} MiB, and {} MiB", short >> 20, long >> 20);
    }
}

//! A kill of a recording process loses at most the last second of its session.
#![expect(clippy::disallowed_methods, reason = "a child process reads its environment, and records in real time")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hitreg::log::recover;
use hitreg::record::Session;
use hitreg::recorder::{Recorder, RecorderOptions};
use hitreg::units::{Micros, Tick};

use super::{about, usercmd};

const PATH: &str = "HITREG_TEST_RECORDS_AT";
/// The variable with the number of kills; `HITREG_TEST_KILLS=50` for more.
const KILLS: &str = "HITREG_TEST_KILLS";

/// The process to kill, not a test. It prints the session time of each pushed tick.
#[test]
#[ignore = "started by another test"]
fn records_until_it_is_killed() {
    let Ok(path) = std::env::var(PATH) else { return };
    let recorder = Recorder::create(Path::new(&path), about(4), RecorderOptions::default()).unwrap();
    let (mut stream, began) = (recorder.stream(), Instant::now());
    let mut out = std::io::stdout();
    for tick in 1.. {
        let at = Micros(began.elapsed().as_micros() as i64);
        for player in 0..4 {
            stream.usercmd(hitreg::units::PlayerId(player), at, usercmd(tick)).unwrap();
        }
        stream.tick(Tick(tick), at, Some(u64::from(tick))).unwrap();
        writeln!(out, "pushed {} {tick}", at.0).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_kill_loses_at_most_the_last_second() {
    let kills = std::env::var(KILLS).map_or(10, |text| text.parse().expect("a number"));
    let mut seed = std::process::id();
    let after = (0..kills).map(|_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Duration::from_millis(u64::from(seed >> 8) % 2500)
    });
    // The processes mostly sleep, so all record at the same time.
    let recorded: Vec<_> = after.map(|after| std::thread::spawn(move || lost_by_a_kill(after))).collect();
    let lost = recorded.into_iter().map(|process| process.join().expect("a recovered session"));
    let worst = lost.max().expect("at least one");
    eprintln!("killed {kills} times: at most {worst} were lost");
    assert!(worst < Micros::from_s(1), "{worst} of the session were lost");
}

/// The length of the lost part of a session.
fn lost_by_a_kill(after: Duration) -> Micros {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.hitlog");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::records_until_it_is_killed", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PATH, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let first = lines.find(|line| line.contains("pushed"));
    assert!(first.is_some(), "it does not record");
    let killed = std::thread::spawn(move || {
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    });
    // The last line may be incomplete.
    let output = |line: &String| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "pushed").skip(1);
        Some((words.next()?.parse::<i64>().ok()?, words.next()?.parse::<u32>().ok()?))
    };
    let pushed: Vec<(i64, u32)> = first.iter().cloned().chain(lines).filter_map(|line| output(&line)).collect();
    killed.join().unwrap();
    let (_, last) = pushed[pushed.len().saturating_sub(2)];
    let until = pushed[pushed.len().saturating_sub(2)].0;
    let session = recovered(&folder.path().join("killed.hitlog.part"));
    // The recovered part has no hole.
    let ticks: Vec<u32> = session.ticks.iter().map(|tick| tick.tick.0).collect();
    assert!(ticks.iter().copied().eq(1..=ticks.len() as u32) && ticks.len() as u32 <= last + 2);
    for player in &session.players {
        assert!(player.frames.len().abs_diff(ticks.len()) <= 1, "{} of {}", player.frames.len(), ticks.len());
    }
    Micros(until) - session.ticks.last().map_or(Micros::ZERO, |tick| tick.at)
}

fn recovered(path: &Path) -> Session {
    let (session, damage) = recover(&std::fs::read(path).unwrap()).expect("something to recover");
    assert!(damage.parts.is_empty(), "{damage:?}");
    session
}

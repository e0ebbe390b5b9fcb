//! `shrink` and `sweep` as processes.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests wait for processes, and print the duration")]

use std::process::Command;
use std::time::Instant;

use crate::pucks::{example, json, session};

use super::folder::{Folder, word};

#[test]
fn a_changed_hit_is_shrunk_to_its_players() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let small = folder.join("small.hitlog");
    let started = Instant::now();
    let mut shrink = Command::new(example("pucks"));
    shrink.arg("shrink").arg(&log).arg("-o").arg(&small).arg("--b").arg(example("pucks_bug")).args(["--on", "hits"]);
    let (report, code) = json(&mut shrink);
    eprintln!("shrunk in {:?}: {report}", started.elapsed());
    assert_eq!(code, 0);
    // The shooter, the target, and the player behind the shooter.
    assert!(report["players"].as_u64().unwrap() <= 3, "{report}");
    assert!(report["duration_us"].as_i64().unwrap() < 2_000_000, "{report}");
    // The result is a normal log that still shows the hit.
    let (verified, code) = json(Command::new(example("pucks")).arg("verify").arg(&small));
    assert_eq!((verified["verdict"].as_str(), code), (Some("same"), 0), "{verified}");
    let mut diff = Command::new(example("pucks"));
    diff.arg("diff").arg(&small).arg("--b").arg(example("pucks_bug")).args(["--on", "hits", "--no-cache"]);
    let (found, code) = json(&mut diff);
    assert_eq!((found["first"]["table"].as_str(), code), (Some("shots"), 1));
}

/// The options that define the problem show it in the small log too, with the same player numbers.
#[test]
fn the_player_of_a_setting_stays_in_the_shrunk_log() {
    let folder = Folder::empty();
    folder.done("record synth --players 4 --seconds 4 -o a.hitlog");
    let side = "--b-set p2.interpolation.lerp_ms=50";
    let report = folder.json(&format!("shrink a.hitlog -o small.hitlog {side}"));
    assert_eq!(report["players"], 3, "{report}");
    let first = &folder.differs(&format!("diff small.hitlog {side}"))["first"];
    assert_eq!((&first["table"], &first["place"]["player"]), (&"views".into(), &2.into()), "{first}");
}

#[test]
fn any_build_records_the_shrunk_log() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let small = folder.join("small.hitlog");
    // hitreg does not know this game.
    let shrink = |args: &[&str]| {
        let mut shrink = crate::pucks::hitreg();
        shrink
            .arg("shrink")
            .arg(&log)
            .arg("-o")
            .arg(&small)
            .args(["--force", "--while", "test -s {}; exit 1"])
            .args(args);
        shrink
    };
    // Without a build, the log is only cut, and states stay as they were recorded.
    let (cut, code) = json(&mut shrink(&[]));
    assert_eq!((cut["ticks"].as_u64(), code), (Some(1), 0), "{cut}");
    let (report, code) = json(&mut shrink(&["--build", example("pucks").to_str().unwrap()]));
    assert_eq!((report["players"].as_u64(), report["ticks"].as_u64(), code), (Some(1), Some(1), 0), "{report}");
    let (verified, code) = json(Command::new(example("pucks")).arg("info").arg(&small));
    assert_eq!((verified["ticks"].as_u64(), code), (Some(1), 0), "{verified}");
}

#[test]
fn a_command_decides_whether_a_log_shows_the_problem() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let small = folder.join("small.hitlog");
    let shrink = |condition: &str| {
        let mut shrink = Command::new(example("pucks"));
        shrink.arg("shrink").arg(&log).arg("-o").arg(&small).args(["--while", condition]);
        shrink
    };
    // A condition that no log meets, an unknown command, and no condition.
    let cases = [("exit 0", "does not show the problem"), ("no-such-command {}", "exit code 127")];
    for (condition, message) in cases {
        let output = shrink(condition).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(128), "{condition}: {stderr}");
        assert!(stderr.contains(message) && !small.exists(), "{condition}: {stderr}");
    }
    // Any log with a shot.
    let condition = format!("{} info {{}} --format json | grep -q '\"players\": 0' ; exit 1", word(example("pucks")));
    let (report, code) = json(&mut shrink(&condition));
    assert_eq!((report["players"].as_u64(), code), (Some(1), 0), "{report}");
}

#[test]
fn a_sweep_has_a_row_for_each_combination() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let csv = folder.join("sweep.csv");
    let sweep = |more: &[&str]| {
        let mut sweep = Command::new(example("pucks"));
        sweep.arg("sweep").arg(&log).args(["--set", "interpolation.lerp_ms=0..100:50"]).args(more);
        sweep
    };
    let (rows, code) = json(sweep(&["--presets", "half-life,quake3"]).arg("--csv").arg(&csv));
    let rows = rows.as_array().unwrap();
    assert_eq!((rows.len(), code), (6, 0));
    assert_eq!((rows[0]["preset"].as_str(), rows[0]["interpolation.lerp_ms"].as_str()), (Some("half-life"), Some("0")));
    assert!(rows.iter().all(|row| row["shots"].as_u64().unwrap() > 100), "{rows:?}");
    assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), 7);
    let text = sweep(&[]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let wrong = sweep(&["--set", "interpolation.lerp=1,2"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(128));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean"));
}

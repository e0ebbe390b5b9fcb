//! `keyframes`, and the commands that replay and verify logs with keyframes.

use std::fs;

use hitreg::log::{WriterOptions, keyframes_of, read_session, write_keyframes, write_session};
use serde_json::Value;

use super::folder::{Folder, code, text};

#[test]
fn a_shorter_interval_is_advised_only_where_one_is_possible() {
    let folder = Folder::empty();
    folder.done("record synth --seconds 1 -o a.hitlog");
    for every in [1, 10] {
        let refused = folder.refused(&format!("keyframes a.hitlog --every {every} -o k.hitlog"));
        assert!(refused.contains("too short for keyframes: the first is after at least 1 s"), "{refused}");
        assert!(!refused.contains("shorter interval"), "{refused}");
    }
}

#[test]
fn parts_replay_from_keyframes_and_verify_checks_keyframes() {
    let folder = Folder::empty();
    folder.done("record synth --players 3 --seconds 16 --delay-ms 40 --jitter-ms 5 --loss 2% -o a.hitlog");
    let made = folder.json("keyframes a.hitlog --every 3 -o k.hitlog");
    assert_eq!(made["keyframes"], 5);
    assert_eq!(["a", "k"].map(|name| folder.json(&format!("info {name}.hitlog"))["keyframes"].clone()), [0, 5]);
    assert!(folder.done("info k.hitlog").contains(", 5 keyframes, format"));
    // A replay from a keyframe does not read earlier chunks, so damage in them does not matter.
    let whole = folder.json("replay a.hitlog --from 11 --to 12.5");
    let mut bytes = fs::read(folder.path("k.hitlog")).unwrap();
    let early = bytes.len() / 10;
    bytes[early] ^= 0x55;
    fs::write(folder.path("damaged.hitlog"), &bytes).unwrap();
    for name in ["k.hitlog", "damaged.hitlog"] {
        let part = folder.json(&format!("replay {name} --from 11 --to 12.5"));
        for same in ["part", "exercised", "prediction", "drawn", "shots", "fairness", "network"] {
            assert_eq!(part[same], whole[same], "{name}: {same}");
        }
        assert!(part["hashes"]["compared"].as_u64() < whole["hashes"]["compared"].as_u64());
        assert!(part["hashes"]["first_difference_tick"].is_null());
    }
    let page = folder.done("replay k.hitlog --from 11 --to 12.5");
    assert!(page.contains("  as recorded up to the end of the part: all "), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    // A replay under other settings cannot use keyframes.
    let other = "--from 11 --to 12.5 --set lag_compensation.enabled=false";
    let [plain, keyed] = ["a", "k"].map(|name| folder.json(&format!("replay {name}.hitlog {other}")));
    assert_eq!(plain["shots"], keyed["shots"]);

    folder.done("verify k.hitlog");
    let read = fs::read(folder.path("k.hitlog")).unwrap();
    let mut all = Vec::new();
    keyframes_of(&read[..], &mut |keyframe| all.push(keyframe)).unwrap();
    let tick = all[2].tick;
    all[2].content = all[1].content.clone();
    let forged = write_keyframes(&read[..], Vec::new(), &all, WriterOptions::live()).unwrap();
    fs::write(folder.path("forged.hitlog"), forged).unwrap();
    let output = folder.run("verify forged.hitlog");
    assert_eq!(code(&output), 1);
    let said = text(&output.stdout);
    assert!(said.contains(&format!("the keyframe after tick {tick}")), "{said}");
    // The recorded states are as replayed, so only the keyframes must be written again.
    assert!(said.contains("keyframes forged.hitlog -o new.hitlog") && !said.contains("bisect"), "{said}");
    folder.done("keyframes forged.hitlog -o new.hitlog");
    folder.done("verify new.hitlog");

    // A game that does not save all of its state differs only in a part that begins at a keyframe.
    let mut session = read_session(&read[..]).unwrap();
    session.ticks.last_mut().unwrap().hash = Some(7);
    let plain = write_session(Vec::new(), &session, WriterOptions::live()).unwrap();
    fs::write(folder.path("plain.hitlog"), plain).unwrap();
    folder.done("keyframes plain.hitlog --every 2 -o other.hitlog");
    let said = text(&folder.run("verify other.hitlog").stdout);
    assert!(
        said.contains("bisect ticks other.hitlog\n") && said.contains("verify other.hitlog --rollback 1\n"),
        "{said}"
    );
    assert!(!text(&folder.run("verify other.hitlog --whole").stdout).contains("--rollback"));

    all[2].content.truncate(900);
    let cut = write_keyframes(&read[..], Vec::new(), &all, WriterOptions::live()).unwrap();
    fs::write(folder.path("cut.hitlog"), cut).unwrap();
    let output = folder.run("replay cut.hitlog --from 13.5");
    assert_eq!(code(&output), 128);
    let message = text(&output.stderr);
    assert!(message.contains(&format!("cut.hitlog: the keyframe after tick {tick}")), "{message}");
    assert!(message.contains("run: hitreg keyframes cut.hitlog -o new.hitlog"), "{message}");
}

/// `record` reports that it cannot write the requested keyframes, and keeps the recording.
#[test]
fn record_reports_keyframes_that_it_cannot_write() {
    let folder = Folder::empty();
    // Snapshots queue for more than 30 s.
    let slow = "players = 1\nseconds = 45.0\n[link]\nrate_bytes_per_s = 100.0\n";
    fs::write(folder.path("slow.toml"), slow).unwrap();
    let output = folder.run("record synth --scenario slow.toml -o n.hitlog --keyframes 10");
    let message = text(&output.stderr);
    assert_eq!(code(&output), 128, "{message}");
    assert!(message.contains("recorded, but without keyframes: this log cannot have keyframes"), "{message}");
    assert_eq!(code(&folder.run("verify n.hitlog")), 0);
    assert!(folder.refused("keyframes n.hitlog -o k.hitlog --every 10").contains("this log cannot have keyframes"));
    // Default keyframes apply only to recordings that can have them.
    let slow = slow.replace("45.0", "61.0");
    fs::write(folder.path("slow.toml"), slow).unwrap();
    folder.done("record synth --scenario slow.toml -o long.hitlog");
}

/// Sessions that depend on packet sizes: nominal sizes, a rate limit that delays snapshots, an adaptive redundancy.
const SIZES_MATTER: [(&str, &str); 3] = [
    ("nominal", "--players 2 --set wire.sizes=nominal"),
    ("rate", "--players 3 --set server.rate_bytes_per_s=1500"),
    ("adaptive", "--players 2 --preset nereids --set client.adaptive_redundancy=true"),
];

/// Recordings that depend on packet sizes also get keyframes. Parts replay from them, and `verify` compares them.
#[test]
fn sessions_that_depend_on_packet_sizes_have_keyframes() {
    let folder = Folder::empty();
    for (name, options) in SIZES_MATTER {
        let link = "--seconds 14 --delay-ms 40 --jitter-ms 5 --loss 2%";
        let made = folder.json(&format!("record synth {options} {link} -o {name}.hitlog --keyframes 2"));
        assert_eq!(made["keyframes"], 6, "{name}");
        folder.done(&format!("record synth {options} {link} -o plain.hitlog --no-keyframes --force"));
        folder.done("keyframes plain.hitlog --every 2 -o later.hitlog --force");
        let [keyed, later] = [name, "later"].map(|name| fs::read(folder.path(&format!("{name}.hitlog"))).unwrap());
        assert!(keyed == later, "{name}: other keyframes");

        let verified = folder.json(&format!("verify {name}.hitlog"))["logs"][0].clone();
        assert_eq!((&verified["verdict"], &verified["keyframes"]), (&"same".into(), &6.into()), "{name}");
        folder.done(&format!("verify {name}.hitlog --whole"));
        for sizes in ["", "--sizes"] {
            let part = |log: &str| folder.json(&format!("replay {log}.hitlog --from 11 --to 12.5 {sizes}"));
            let (is, was) = (part(name), part("plain"));
            for same in ["part", "exercised", "prediction", "drawn", "shots", "fairness", "network"] {
                assert_eq!(is[same], was[same], "{name} {sizes}: {same}");
            }
            assert!(is["hashes"]["compared"].as_u64() < was["hashes"]["compared"].as_u64(), "{name} {sizes}");
        }

        let mut all = Vec::new();
        keyframes_of(&keyed[..], &mut |keyframe| all.push(keyframe)).unwrap();
        let tick = all[2].tick;
        all[2].content = all[1].content.clone();
        let forged = write_keyframes(&keyed[..], Vec::new(), &all, WriterOptions::live()).unwrap();
        fs::write(folder.path("forged.hitlog"), forged).unwrap();
        let output = folder.run("verify forged.hitlog");
        assert_eq!(code(&output), 1, "{name}");
        assert!(text(&output.stdout).contains(&format!("the keyframe after tick {tick}")), "{name}");
    }
}

/// A one-minute recording has keyframes by default, a shorter one on request. The records are the same.
#[test]
fn a_long_recording_has_keyframes_by_default() {
    let folder = Folder::empty();
    let record = |name: &str, options: &str| {
        let made = folder.json(&format!("record synth --players 2 --delay-ms 40 --loss 2% -o {name}.hitlog {options}"));
        let read = fs::read(folder.path(&format!("{name}.hitlog"))).unwrap();
        assert_eq!(made["size_bytes"], read.len());
        let mut keyframes = 0;
        keyframes_of(&read[..], &mut |_| keyframes += 1).unwrap();
        assert_eq!(made["keyframes"], keyframes, "{name}");
        (keyframes, read)
    };
    let (long, keyed) = record("long", "--seconds 62");
    let (none, plain) = record("plain", "--seconds 62 --no-keyframes");
    assert_eq!((long, none), (6, 0));
    assert!(read_session(&keyed[..]).unwrap() == read_session(&plain[..]).unwrap(), "other records");
    // The result equals that of `keyframes` on the plain recording.
    folder.done("keyframes plain.hitlog -o later.hitlog");
    assert!(keyed == fs::read(folder.path("later.hitlog")).unwrap(), "other keyframes");
    assert_eq!(record("short", "--seconds 59").0, 0);
    assert_eq!(record("often", "--seconds 9 --keyframes 2").0, 4);
    assert_eq!(record("nereids", "--seconds 9 --keyframes 2 --preset nereids --map orchard").0, 4);

    let verified = |line: &str| folder.json(&format!("verify {line}"))["logs"][0].clone();
    let (legs, whole) = (verified("long.hitlog"), verified("long.hitlog --whole"));
    assert_eq!((&legs["verdict"], &legs["keyframes"], &legs["digest"]), (&"same".into(), &6.into(), &Value::Null));
    assert_eq!((&legs["exercised"], &legs["hashes_compared"]), (&whole["exercised"], &whole["hashes_compared"]));
    assert!(whole["legs"].is_null() && whole["digest"].is_string());
    // Legs measure the same view errors.
    for log in ["long.hitlog", "nereids.hitlog"] {
        let measured = |option: &str| {
            let line = format!("verify {log} {option} --max view-error-p95=10000");
            folder.json(&line)["summary"]["view_errors"]["b"].clone()
        };
        let legs = measured("");
        assert!(legs["max"].as_f64().is_some_and(|units| units > 0.0) && legs == measured("--whole"), "{log}: {legs}");
    }
    let message = folder.done("verify nereids.hitlog");
    assert!(message.contains("replayed once in 2 parts, 4 keyframes compared; "), "{message}");

    let output = folder.run("keyframes short.hitlog --every 3600 -o none.hitlog");
    assert_eq!(code(&output), 128);
    let message = text(&output.stderr);
    assert!(
        message.contains("short.hitlog: the session is ") && message.contains("the first keyframe is after 3600 s"),
        "{message}"
    );
}

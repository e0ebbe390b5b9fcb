//! Logs with a missing part, and piped logs: pages claim no more than the log shows.

use std::fs;
use std::ops::Range;

use hitreg::record::{GapCause, GapRecord};
use hitreg::store;
use hitreg::units::{Micros, PlayerId};
use serde_json::Value;

use super::folder::{Folder, code, text, word};
use super::habits::fed;
use super::report::page;

/// A recorder that loses records again and again leaves many gaps. The page lists the first three, and sums up the others.
#[test]
fn many_gaps_are_summed_up() {
    let folder = Folder::with_session();
    let mut session = store::read_log(&folder.path("a.hitlog")).unwrap();
    let gap = |number: i64| GapRecord {
        from: Micros::from_ms(500 * number),
        to: Micros::from_ms(500 * number + 20),
        player: (number == 2).then_some(PlayerId(1)),
        why: GapCause::Overrun,
    };
    session.gaps = (1..=5i64).map(gap).collect();
    folder.save_log("gaps.hitlog", &session);
    let page = folder.done("info gaps.hitlog");
    let lines: Vec<&str> = page.lines().filter(|line| line.contains("missing") || line.contains("more gap")).collect();
    let expected = [
        "  records are missing from 0:00.5 to 0:00.52: overrun",
        "  records of p1 are missing from 0:01 to 0:01.02: overrun",
        "  records are missing from 0:01.5 to 0:01.52: overrun",
        "  and 2 more gaps, 40 ms together (--format json lists all)",
    ];
    assert_eq!(lines, expected, "{page}");
}

const SWEEP: &str = "sweep LOG --set interpolation.lerp_ms=50,100";

#[test]
fn ticks_after_a_gap_are_not_reported_as_recorded() {
    let folder = Folder::empty();
    folder.done("record synth --players 3 --seconds 16 --delay-ms 40 --loss 1% --no-keyframes -o a.hitlog");
    let mut bytes = fs::read(folder.path("a.hitlog")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(folder.path("damaged.hitlog"), &bytes).unwrap();
    folder.done("recover damaged.hitlog -o gap.hitlog");
    let whole = folder.json("replay a.hitlog");
    let gap = folder.json("replay gap.hitlog");
    assert!(whole["hashes"]["missing"].is_null() && whole["hashes"]["compared"] == 1024);
    let [from, to] = ["from_us", "to_us"].map(|at| gap["hashes"]["missing"][at].as_i64().expect("a time"));
    assert!(from < to && (4_000_000..12_000_000).contains(&from), "{from} to {to}");
    assert!(gap["hashes"]["compared"].as_u64() < Some(800), "nothing after it was compared: {}", gap["hashes"]);
    for line in ["replay gap.hitlog", "replay gap.hitlog --from 13 --to 14"] {
        let said = folder.done(line);
        assert!(said.contains("A part is missing, from 0:0") && !said.contains("as recorded: all"), "{said}");
    }
    assert!(folder.done("replay a.hitlog").contains("as recorded: all 1,024 tick hashes match the recording"));
    // Other commands print the same note.
    for (line, exit) in [
        ("why gap.hitlog --at 1s", 0),
        ("export gap.hitlog --table shots", 0),
        (&SWEEP.replace("LOG", "gap.hitlog"), 0),
        ("diff gap.hitlog --b-set interpolation.lerp_ms=50", 1),
        ("bisect ticks gap.hitlog --b-set interpolation.lerp_ms=50", 1),
        ("report gap.hitlog --b-set interpolation.lerp_ms=50 -o gap.html --force", 0),
    ] {
        let output = folder.run(line);
        let said = text(&output.stderr);
        let notes = said.matches("note: gap.hitlog: a part is missing, from 0:").count();
        assert_eq!((code(&output), notes), (exit, 1), "{line}: {said}");
        let whole = folder.run(&line.replace("gap.hitlog", "a.hitlog"));
        assert_eq!((code(&whole), text(&whole.stderr)), (exit, String::new()), "{line}");
    }
    let info = folder.json("info gap.hitlog --replay");
    assert!(
        info["shots"].is_null() && info["shots_unknown"].as_str().unwrap().contains("a part of the log is missing"),
        "{info:#}"
    );
    let notes = |line| page(&folder, line).1["sides"][0]["notes"].to_string();
    assert!(notes("gap.hitlog").contains("a part is missing, from 0:0") && notes("a.hitlog") == "[]");
}

/// A replay and `verify` agree about the ticks before the gap of one player.
#[test]
fn hashes_are_compared_up_to_a_gap_of_one_player() {
    let folder = Folder::with_session();
    let mut session = store::read_log(&folder.path("a.hitlog")).unwrap();
    let [from, to] = [Micros::from_s(2), Micros::from_s(4)];
    session.gaps = vec![GapRecord { from, to, player: Some(PlayerId(1)), why: GapCause::Overrun }];
    session.players[1].frames.retain(|frame| !(from..to).contains(&frame.at));
    folder.save_log("gap.hitlog", &session);
    let before = session.ticks.iter().filter(|tick| tick.at <= from).count();
    let hashes = &folder.json("replay gap.hitlog")["hashes"];
    assert_eq!((hashes["compared"].as_u64(), &hashes["first_difference_tick"]), (Some(before as u64), &Value::Null));
    let verified = folder.run("verify gap.hitlog --format json");
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(verified["logs"][0]["hashes_compared"].as_u64(), Some(before as u64), "{verified:#}");
}

/// The byte range of each chunk of a log, and whether it is a keyframe.
fn chunks(log: &[u8]) -> Vec<(Range<usize>, bool)> {
    let (mut chunks, mut at) = (Vec::new(), 0);
    while log[at..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let end = at + zstd::zstd_safe::find_frame_compressed_size(&log[at..]).expect("a whole frame");
        let content = zstd::bulk::decompress(&log[at..end], 16 << 20).expect("a sound frame");
        let has = |name: &[u8]| content.windows(name.len()).any(|window| window == name);
        chunks.push((at..end, has(b"keyframe") && has(b"at_us")));
        at = end;
    }
    chunks
}

#[test]
fn a_damaged_keyframe_loses_no_records() {
    let folder = Folder::empty();
    folder.done("record synth --players 2 --seconds 12 --no-keyframes -o a.hitlog");
    folder.done("keyframes a.hitlog --every 3 -o k.hitlog");
    let log = fs::read(folder.path("k.hitlog")).unwrap();
    let all = chunks(&log);
    let flipped = |which: &[usize]| {
        let mut bytes = log.clone();
        which.iter().for_each(|which| bytes[(all[*which].0.start + all[*which].0.end) / 2] ^= 0x10);
        fs::write(folder.path("damaged.hitlog"), bytes).unwrap();
        let said = folder.json("recover damaged.hitlog -o saved.hitlog --force");
        (said, folder.json("replay saved.hitlog")["hashes"].clone())
    };
    let keyframes: Vec<usize> = (1..all.len()).filter(|chunk| all[*chunk].1).collect();
    assert_eq!(keyframes.len(), 3);
    for keyframe in keyframes {
        let (said, hashes) = flipped(&[keyframe]);
        let lost = &said["lost"][0];
        assert!(lost["chunks"] == 0 && lost["what"].as_str().unwrap().contains("no record is lost"), "{said:#}");
        assert!(said["ticks"] == 768 && hashes["compared"] == 768 && hashes["missing"].is_null(), "{hashes}");
        assert!(!folder.done("recover damaged.hitlog -o saved.hitlog --force").contains("A part is missing"));
        // Damaged chunks before and after the keyframe are missing in both cases. A session without its first chunks
        // begins later.
        for beside in [keyframe - 1, keyframe + 1].into_iter().filter(|beside| *beside > 2) {
            let (said, hashes) = flipped(&[beside]);
            assert!(said["lost"][0]["chunks"] == 1 && hashes["missing"].is_object(), "{said:#}");
            let (said, hashes) = flipped(&[keyframe, beside]);
            assert!(said["lost"][0]["chunks"] == 2 && hashes["missing"].is_object(), "{said:#}");
        }
    }
}

#[test]
fn recover_counts_the_keyframes_it_leaves_out() {
    let folder = Folder::empty();
    folder.done("record synth --players 2 --seconds 10 --no-keyframes -o a.hitlog");
    folder.done("keyframes a.hitlog --every 3 -o k.hitlog");
    let [plain, keyed] = ["a", "k"].map(|name| folder.json(&format!("recover {name}.hitlog -o {name}-saved.hitlog")));
    assert_eq!((&plain["keyframes_left_out"], &keyed["keyframes_left_out"]), (&0.into(), &3.into()));
    assert_eq!((&plain["chunks"], &plain["undamaged"]), (&keyed["chunks"], &Value::Bool(true)));
    let said = folder.done("recover k.hitlog -o again.hitlog");
    assert!(said.contains("3 keyframes; add them again with `hitreg keyframes`"), "{said}");
}

#[test]
fn commands_read_logs_and_traces_from_a_pipe() {
    let folder = Folder::with_session();
    for name in ["a.hitlog", "a.hittrace"] {
        let bytes = fs::read(folder.path(name)).unwrap();
        let same = fed(&folder, "diff - a.hittrace", &bytes);
        assert_eq!((code(&same), text(&same.stderr).as_str()), (0, ""), "{name}");
        let made = fed(&folder, "report - -o piped.html --force", &bytes);
        assert_eq!((code(&made), text(&made.stderr).as_str()), (0, ""), "{name}");
        let (_, of_file) = page(&folder, name);
        let mut piped = super::report::contents(&folder.path("piped.html"));
        piped["sides"][0]["name"] = of_file["sides"][0]["name"].clone();
        assert!(piped == of_file, "{name}");
    }
    let log = fs::read(folder.path("a.hitlog")).unwrap();
    let differs = fed(&folder, "diff - --b-set interpolation.lerp_ms=50", &log);
    assert_eq!(code(&differs), 1, "{}", text(&differs.stderr));
    let both = fed(&folder, "report - --b-set interpolation.lerp_ms=50 -o two.html", &log);
    assert_eq!(code(&both), 0, "{}", text(&both.stderr));
    // The build opens the log itself, so a pipe is refused.
    let refused = fed(&folder, &format!("diff - --b {}", word(env!("CARGO_BIN_EXE_hitreg"))), &log);
    assert!(
        code(&refused) == 128 && text(&refused.stderr).contains("copy it to a file first"),
        "{}",
        text(&refused.stderr)
    );
}

/// Packets whose records are damaged are not lost on the network.
#[test]
fn packets_in_a_gap_are_not_counted_as_lost() {
    let folder = Folder::empty();
    folder.done("record synth --players 2 --seconds 20 --delay-ms 40 --loss 2% --no-keyframes -o a.hitlog");
    let mut log = fs::read(folder.path("a.hitlog")).unwrap();
    let all = chunks(&log);
    let middle = &all[all.len() / 2].0;
    log[(middle.start + middle.end) / 2] ^= 0x10;
    fs::write(folder.path("damaged.hitlog"), log).unwrap();
    assert_eq!(folder.json("recover damaged.hitlog -o saved.hitlog")["lost"][0]["chunks"], 1);
    let [whole, saved] = ["a", "saved"].map(|name| folder.json(&format!("info {name}.hitlog")));
    for packets in ["packets", "packets_up"] {
        let numbers = |info: &Value, count: &str| info[packets][count].as_u64().unwrap();
        let [lost, lost_before] = [&saved, &whole].map(|info| numbers(info, "lost"));
        assert!(lost <= lost_before && lost * 4 > lost_before * 3, "{packets}: {lost} of {lost_before}");
        let [sent, sent_before] = [&saved, &whole].map(|info| numbers(info, "sent"));
        assert!(sent < sent_before && sent * 10 > sent_before * 9, "{packets}: {sent} of {sent_before}");
        for player in 0..2 {
            let lost = |info: &Value| info["by_player"][player][packets]["lost"].as_u64();
            assert!(lost(&saved) <= lost(&whole), "{packets} of p{player}");
        }
    }
}

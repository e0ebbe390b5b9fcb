//! `verify` and `review`: verdicts need a comparison, intended changes can be accepted, and failures come last.

use std::fs;
use std::process::{Command, Output};

use hitreg::record::{Execution, ExecutionRecord, Session};
use hitreg::store::{self, FileType, Targets};
use hitreg::trace::{ColumnData, Trace};
use hitreg::units::{CommandSeq, Tick};
use serde_json::Value;

use super::folder::{Folder, arguments, code, exit_of, text, word};
use super::pucks::{example, script, session};

fn log(folder: &Folder, name: &str) -> Session {
    store::read_log(&folder.path(name)).unwrap()
}

fn read(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path(name)).unwrap()
}

fn stdout_text(output: &Output) -> String {
    text(&output.stdout)
}

/// Writes a log and golden from before a change: the same input, recorded under the old setting.
fn save_old_log_and_golden(folder: &Folder, name: &str) {
    folder.done(&format!("replay a.hitlog --set lag_compensation.enabled=false --record {name}.hitlog"));
    folder.done(&format!("verify {name}.hitlog --accept"));
    let mut old = log(folder, &format!("{name}.hitlog"));
    old.header.settings = log(folder, "a.hitlog").header.settings;
    folder.save_log(&format!("{name}.hitlog"), &old);
}

#[test]
fn a_log_with_a_hole_is_judged_up_to_the_hole() {
    let folder = Folder::with_session();
    let whole = fs::read(folder.path("a.hitlog")).unwrap();
    let mut holes = 0;
    for place in [whole.len() * 2 / 5, whole.len() / 2, whole.len() * 3 / 5] {
        let mut bytes = whole.clone();
        bytes[place..place + 64].iter_mut().for_each(|byte| *byte ^= 0x55);
        fs::write(folder.path("damaged.hitlog"), bytes).unwrap();
        let recovered = folder.json("recover damaged.hitlog -o holed.hitlog --force");
        holes += recovered["lost"].as_array().unwrap().len();
        let output = folder.run("verify holed.hitlog");
        assert_eq!(code(&output), 125, "{}", stdout_text(&output));
        let paragraph = stdout_text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        let ticks = recovered["ticks"].as_u64().unwrap();
        assert!(paragraph.contains(&format!("of its {ticks} ticks could be compared")), "{paragraph}");
        for line in ["diff holed.hitlog", "bisect ticks holed.hitlog"] {
            let output = folder.run(line);
            let said = stdout_text(&output);
            assert!(code(&output) == 125 && said.contains("a part of the log is missing, from 0:"), "{line}: {said}");
        }
        // Ticks after the hole fail no build, and a golden does not replace the missing part.
        fs::remove_file(folder.path("holed.golden")).unwrap_or_default();
        let output = folder.run("verify holed.hitlog --accept");
        assert_eq!(code(&output), 125);
        let words = stdout_text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("no golden (none is written for an untestable log)"), "{words}");
        assert!(!folder.path("holed.golden").exists());
    }
    assert_eq!(holes, 3);
}

#[test]
fn a_check_without_comparisons_does_not_pass() {
    let folder = Folder::with_session();
    assert_eq!(exit_of(&folder, "verify a.hitlog --rollback 64"), 0);
    let output = folder.run("verify a.hitlog --rollback 100000");
    assert_eq!(code(&output), 125);
    assert!(stdout_text(&output).contains("no rollback was checked"), "{}", stdout_text(&output));

    let changed = |name: &str, change: &dyn Fn(&mut Session)| {
        let mut session = log(&folder, "a.hitlog");
        change(&mut session);
        folder.save_log(name, &session);
        let output = folder.run(&format!("verify {name}"));
        (code(&output), stdout_text(&output).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    type SessionChange<'a> = &'a dyn Fn(&mut Session);
    let cases: [(&str, i32, &str, SessionChange<'_>); 6] = [
        ("absent.hitlog", 125, "it has no state hashes and no golden", &|session| {
            session.ticks.iter_mut().for_each(|tick| tick.hash = None);
        }),
        ("zero.hitlog", 125, "it has no state hashes and no golden", &|session| {
            session.ticks.iter_mut().for_each(|tick| tick.hash = Some(0));
        }),
        ("reversed.hitlog", 128, "its ticks are out of order", &|session| {
            let numbers: Vec<_> = session.ticks.iter().rev().map(|tick| tick.tick).collect();
            session.ticks.iter_mut().zip(numbers).for_each(|(tick, number)| tick.tick = number);
        }),
        ("shifted.hitlog", 125, "only 99 of its 384 ticks could be compared", &|session| {
            session.ticks.iter_mut().skip(99).for_each(|tick| tick.tick.0 += 50);
        }),
        ("nan.hitlog", 128, "every recorded state is NaN", &|session| {
            let states: Vec<_> = session.states.iter().map(|(key, cells)| (key, vec![u32::MAX; cells.len()])).collect();
            session.states = Default::default();
            states.iter().for_each(|(key, cells)| session.states.push(*key, cells));
        }),
        ("missing.hitlog", 128, "the log contradicts itself", &|session| {
            let executed = session.players.iter_mut().flat_map(|player| &mut player.executed);
            executed.for_each(|record| record.how = Execution::Missing);
        }),
    ];
    for (name, expected, sentence, change) in cases {
        let (code, message) = changed(name, change);
        assert_eq!(code, expected, "{name}: {message}");
        assert!(message.contains(sentence), "{name}: {message}");
    }
    let (code, message) = changed("half.hitlog", &|session| {
        session.ticks.iter_mut().skip(100).for_each(|tick| tick.hash = None);
    });
    assert!(code == 0 && message.contains("100 of 100 tick hashes match the recording"), "{message}");
    // A hash of 0 is none, in the log and in the replay.
    let (code, message) = changed("zeros.hitlog", &|session| {
        session.ticks.iter_mut().take(10).for_each(|tick| tick.hash = Some(0));
    });
    assert!(code == 0 && message.contains("374 of 374 tick hashes match the recording"), "{message}");
    let absent = stdout_text(&folder.run("verify absent.hitlog"));
    assert!(absent.contains("identical; no tick hashes in the log; no golden"), "{absent}");
    let report: Value = serde_json::from_slice(&folder.run("verify shifted.hitlog --format json").stdout).unwrap();
    let counts = ["hashes_recorded", "hashes_compared"].map(|name| report["logs"][0][name].as_u64());
    assert_eq!((counts, &report["logs"][0]["why"]), ([Some(384), Some(99)], &Value::from("gap")));
}

#[test]
fn an_intended_change_is_shown_and_accepted() {
    let folder = Folder::with_session();
    folder.done("verify a.hitlog --accept");
    assert!(folder.done("verify a.hitlog --accept").starts_with("ok "), "nothing changed, and nothing is written");
    // Only the golden is old: `verify` shows the change before `--accept`.
    let golden = read(&folder, "a.golden");
    fs::write(folder.path("a.golden"), golden.replace("shots hit ", "shots met ")).unwrap();
    let printed = folder.done("verify a.hitlog --accept");
    assert!(
        printed.starts_with("accepted ") && printed.contains("-shots met") && printed.contains("+shots hit"),
        "{printed}"
    );
    assert_eq!(read(&folder, "a.golden"), golden);

    // The recorded states are old, too.
    save_old_log_and_golden(&folder, "old");
    let files = ["old.hitlog", "old.golden"].map(|name| fs::read(folder.path(name)).unwrap());
    let output = folder.run("verify old.hitlog --accept");
    let printed = stdout_text(&output);
    assert_eq!(code(&output), 1, "{printed}");
    assert!(
        printed.starts_with("differs ") && printed.contains("--rerecord") && printed.contains("@@ shots @@"),
        "{printed}"
    );
    assert_eq!(files, ["old.hitlog", "old.golden"].map(|name| fs::read(folder.path(name)).unwrap()));
    let printed = folder.done("verify old.hitlog --accept --rerecord");
    assert!(printed.starts_with("accepted ") && printed.contains("@@ shots @@"), "{printed}");
    let verified = folder.json("verify old.hitlog");
    assert_eq!((&verified["logs"][0]["verdict"], &verified["logs"][0]["golden"]), (&"same".into(), &"compared".into()));
    let input = |name: &str| log(&folder, name).players.iter().map(|player| player.frames.clone()).collect::<Vec<_>>();
    assert_eq!(input("old.hitlog"), input("a.hitlog"), "the input is unchanged");
    assert_eq!(exit_of(&folder, "verify old.hitlog --rerecord"), 128);
}

#[test]
fn proposals_are_reviewed() {
    let folder = Folder::with_session();
    folder.done("verify a.hitlog --accept");
    fs::copy(folder.path("a.hitlog"), folder.path("b.hitlog")).unwrap();
    let golden = read(&folder, "a.golden");
    let other = golden.replace("shots hit ", "shots met ");
    for name in ["a.golden", "b.golden"] {
        fs::write(folder.path(name), &other).unwrap();
    }
    save_old_log_and_golden(&folder, "old");
    let output = folder.run("verify . --propose --rerecord");
    assert_eq!(code(&output), 1);
    assert!(stdout_text(&output).contains("the proposed golden is ./a.golden.new"), "{}", stdout_text(&output));
    assert_eq!(read(&folder, "a.golden"), other, "a proposal changes nothing");
    let list = folder.run("review");
    let printed = stdout_text(&list);
    assert_eq!(code(&list), 1, "they wait");
    assert!(printed.contains("-shots met") && printed.contains("waits      ./b.golden"), "{printed}");
    assert!(printed.contains("./b.golden (counts, 2 of 3)\n"), "{printed}");
    fs::write(folder.path("a.txt"), "hello\n").unwrap();
    assert!(folder.refused("review a.txt").contains("a.txt: this is neither a log nor a golden"));
    folder.done("review a.golden.new --accept");
    folder.done("review b.golden --reject");
    assert_eq!((read(&folder, "a.golden"), read(&folder, "b.golden")), (golden, other));
    folder.done("review . --accept");
    folder.done("verify a.hitlog old.hitlog");
    assert!(folder.done("review").contains("No golden waits"));
    let left: Vec<_> = folder.names().into_iter().filter(|name| name.to_string_lossy().ends_with(".new")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A proposal replaces only the log and the golden that it was made for, and only by what `verify` wrote.
#[test]
fn a_proposal_of_changed_files_is_refused() {
    let folder = Folder::with_session();
    save_old_log_and_golden(&folder, "old");
    assert_eq!(exit_of(&folder, "verify old.hitlog --propose --rerecord"), 1);
    let names = ["old.hitlog", "old.golden", "old.hitlog.new", "old.golden.new"];
    let files = names.map(|name| fs::read(folder.path(name)).unwrap());
    let new_log = &files[2];
    let other_log = fs::read(folder.path("a.hitlog")).unwrap();
    for (name, contents) in [
        ("old.hitlog.new", &b""[..]),
        ("old.hitlog.new", b"hi\n"),
        ("old.hitlog.new", &new_log[..new_log.len() / 2]),
        ("old.hitlog", &other_log),
        ("old.golden", &[&files[1][..], b"tick 9 p0 #9 rifle: missed\n"].concat()),
    ] {
        fs::write(folder.path(name), contents).unwrap();
        let before = names.map(|name| fs::read(folder.path(name)).unwrap());
        let refused = folder.run("review . --accept");
        let message = text(&refused.stderr);
        assert_eq!(code(&refused), 128, "{name}");
        assert!(message.contains("old.golden.new: the log, its golden or the proposed log changed"), "{message}");
        assert_eq!(names.map(|name| fs::read(folder.path(name)).unwrap()), before, "{name}");
        names.iter().zip(&files).for_each(|(name, bytes)| fs::write(folder.path(name), bytes).unwrap());
    }
    // Neither of the proposed files is accepted alone.
    fs::remove_file(folder.path("old.golden.new")).unwrap();
    for line in ["review .", "review old.hitlog --accept", "review old.hitlog.new"] {
        let refused = folder.run(line);
        let message = text(&refused.stderr);
        assert_eq!(code(&refused), 128, "{line}");
        assert!(message.contains("old.golden.new is missing: propose again"), "{line}: {message}");
        assert!(message.contains("old.hitlog --propose --rerecord`"), "{line}: {message}");
    }
    folder.done("review . --reject");
    assert!(!folder.path("old.hitlog.new").exists(), "a broken proposal is rejected");
    fs::write(folder.path("old.golden.new"), &files[3]).unwrap();
    assert_eq!(exit_of(&folder, "review . --accept"), 128);
    fs::write(folder.path("old.hitlog.new"), new_log).unwrap();
    folder.done("review . --accept");
    folder.done("verify old.hitlog --require-golden");
}

#[test]
fn a_golden_of_another_version_or_game_or_with_conflicts_is_broken() {
    let folder = Folder::with_session();
    folder.done("verify a.hitlog --accept");
    let golden = read(&folder, "a.golden");
    for (from, to, sentence) in [
        ("hitreg golden 1", "hitreg golden 2", "a golden of version 2, and this hitreg compares version 1"),
        ("game arena,", "game foo,", "a golden of the game `foo`, and the log is of `arena`"),
        ("\nbodies ", "\n<<<<<<< HEAD\nbodies ", "line 6 is a merge conflict marker"),
    ] {
        let changed = golden.replacen(from, to, 1);
        fs::write(folder.path("a.golden"), &changed).unwrap();
        for line in ["verify a.hitlog", "verify a.hitlog --accept"] {
            let output = folder.run(line);
            let page = stdout_text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(code(&output) == 128 && page.contains(sentence), "{line}: {page}");
        }
        assert_eq!(read(&folder, "a.golden"), changed, "{sentence}");
    }
}

/// Every output of a failed run says why it failed.
#[test]
fn a_golden_without_a_log_is_in_every_summary() {
    let folder = Folder::with_session();
    folder.done("verify a.hitlog --accept");
    fs::copy(folder.path("a.golden"), folder.path("gone.golden")).unwrap();
    let mut command = folder.command("verify . --markdown md.md --reports pages");
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", folder.path("step.md"));
    let output = command.output().unwrap();
    assert_eq!(code(&output), 125);
    let notes = text(&output.stderr);
    assert!(notes.contains("::warning file=./gone.golden") && notes.contains("has no log beside it"), "{notes}");
    for name in ["md.md", "step.md", "pages/summary.html"] {
        let page = read(&folder, name);
        assert!(page.contains("2 logs: 1 ok, 1 untestable") && page.contains("gone.golden"), "{name}: {page}");
    }
}

#[test]
fn a_proposal_is_removed_when_the_log_is_the_same_again() {
    let folder = Folder::with_session();
    folder.done("verify a.hitlog --accept");
    let golden = read(&folder, "a.golden");
    fs::write(folder.path("a.golden"), golden.replace("shots hit ", "shots met ")).unwrap();
    folder.run("verify a.hitlog --propose");
    assert!(folder.path("a.golden.new").exists());
    fs::copy(folder.path("a.hitlog"), folder.path("a.hitlog.new")).unwrap();
    fs::write(folder.path("a.golden"), &golden).unwrap();
    folder.done("verify a.hitlog --propose");
    assert!(folder.done("review").contains("No golden waits"));
    assert!(!folder.path("a.hitlog.new").exists(), "the log of the proposal");
    // A log that cannot be read has no proposal either.
    fs::copy(folder.path("a.golden"), folder.path("a.golden.new")).unwrap();
    fs::write(folder.path("a.hitlog"), "no log").unwrap();
    assert_eq!(exit_of(&folder, "verify a.hitlog --propose"), 128);
    assert!(!folder.path("a.golden.new").exists());
}

#[test]
fn proposals_of_a_corpus_are_accepted_by_kind_of_difference() {
    let folder = Folder::with_session();
    folder.done("verify a.hitlog --accept");
    let golden = read(&folder, "a.golden");
    let shot = golden.lines().find(|line| line.contains("; rewound")).expect("a shot");
    let (outcome, rewind) = shot.split_once("; rewound").expect("a rewind");
    let trace = golden.lines().find(|line| line.starts_with("trace ")).expect("a digest");
    for (name, from, to) in [
        ("digests", trace, "trace 0"),
        ("digests2", trace, "trace 1"),
        ("counts", "shots hit ", "shots met "),
        ("shots", rewind, " 0.001 ms"),
        ("hits", outcome, "tick 1 p0 #1: missed"),
    ] {
        fs::copy(folder.path("a.hitlog"), folder.path(&format!("{name}.hitlog"))).unwrap();
        fs::write(folder.path(&format!("{name}.golden")), golden.replace(from, to)).unwrap();
    }
    fs::copy(folder.path("a.hitlog"), folder.path("new.hitlog")).unwrap();
    folder.run("verify . --propose");
    let waiting = || {
        let names = folder.names().into_iter().map(|name| name.into_string().unwrap());
        names.filter_map(|name| name.strip_suffix(".golden.new").map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(waiting(), ["counts", "digests", "digests2", "hits", "new", "shots"]);
    let page = stdout_text(&folder.run("review"));
    let row =
        |kind: &str| page.lines().find(|line| line.trim_start().starts_with(kind)).unwrap_or_else(|| panic!("{page}"));
    assert!(row("digests ").contains("2 ") && row("digests ").ends_with("only digests of tables differ"), "{page}");
    assert!(row("hits ").ends_with("outcomes of shots differ"), "{page}");
    let output = folder.run("review . --accept --kind digests,counts");
    assert_eq!(code(&output), 1, "the others wait");
    assert!(!stdout_text(&output).contains("hits.golden"), "{}", stdout_text(&output));
    assert_eq!(waiting(), ["hits", "new", "shots"]);
    assert_eq!([read(&folder, "digests2.golden"), read(&folder, "counts.golden")], [golden.clone(), golden.clone()]);
    folder.run("review . --reject --kind hits");
    assert_ne!(read(&folder, "hits.golden"), golden);
    assert_eq!(folder.json("review . --accept")[0]["kind"], "new");
    assert_eq!(waiting(), [] as [&str; 0]);
    assert_eq!([read(&folder, "new.golden"), read(&folder, "shots.golden")], [golden.clone(), golden]);
}

#[test]
fn missing_goldens_and_missing_logs_are_reported() {
    let folder = Folder::with_session();
    assert_eq!(exit_of(&folder, "verify a.hitlog"), 0);
    let report = folder.json("verify a.hitlog");
    for field in ["why", "detail", "tick", "difference", "legs", "keyframes"] {
        assert_eq!(report["logs"][0].get(field), Some(&Value::Null), "{field}");
    }
    let output = folder.run("verify a.hitlog --require-golden --junit untestable.xml");
    assert_eq!(code(&output), 125);
    assert!(stdout_text(&output).contains("there is no golden (a.golden)"), "{}", stdout_text(&output));
    assert!(read(&folder, "untestable.xml").contains("type=\"untestable\">"));
    // No report is without a failure when a threshold makes the command fail.
    assert_eq!(exit_of(&folder, "verify a.hitlog --max corrections=0% --junit max.xml"), 1);
    let report = read(&folder, "max.xml");
    let failure = "name=\"--max corrections\"";
    assert!(
        report.contains(failure) && report.contains("failures=\"1\"") && report.contains("at most 0.000 %"),
        "{report}"
    );
    assert_eq!(exit_of(&folder, "verify a.hitlog --max corrections=100% --junit fine.xml"), 0);
    assert!(read(&folder, "fine.xml").contains("failures=\"0\""));
    folder.done("verify a.hitlog --accept --require-golden");
    folder.done("verify . --require-golden");
    // Git may convert line ends.
    fs::write(folder.path("a.golden"), read(&folder, "a.golden").replace('\n', "\r\n")).unwrap();
    folder.done("verify a.hitlog --require-golden");
    fs::copy(folder.path("a.golden"), folder.path("gone.golden")).unwrap();
    // Another program's file is no golden.
    fs::write(folder.path("other.golden"), "some other tool\n").unwrap();
    let output = folder.run("verify . --junit report.xml");
    assert_eq!(code(&output), 125);
    assert!(stdout_text(&output).contains("orphan     ./gone.golden"), "{}", stdout_text(&output));
    assert!(stdout_text(&output).ends_with("2 logs: 1 ok, 1 untestable\n"), "{}", stdout_text(&output));
    let report = read(&folder, "report.xml");
    assert!(report.contains("name=\"./gone.golden\"") && report.contains("errors=\"1\""), "{report}");
    fs::write(folder.path("list"), "a.hitlog\nmissing.hitlog\n").unwrap();
    assert_eq!(exit_of(&folder, "verify @list --junit list.xml"), 128);
    let report = read(&folder, "list.xml");
    let has_case = report.contains("name=\"list: line 2: there is no such file: missing.hitlog\"");
    assert!(has_case && report.contains("errors=\"1\"") && report.contains("tests=\"2\""), "{report}");
    // An unreadable golden affects only the verdict of its own log.
    fs::copy(folder.path("a.hitlog"), folder.path("b.hitlog")).unwrap();
    fs::write(folder.path("b.golden"), [0xff, 0xfe]).unwrap();
    fs::remove_file(folder.path("gone.golden")).unwrap();
    let long = format!("{}.hitlog", "long".repeat(14));
    fs::copy(folder.path("a.hitlog"), folder.path(&long)).unwrap();
    let output = folder.run("verify . --junit report.xml");
    assert_eq!(code(&output), 128);
    let page = stdout_text(&output);
    assert!(page.ends_with("3 logs: 2 ok, 1 broken\n"), "{page}");
    assert!(page.contains(&long) && page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(!read(&folder, "report.xml").contains("0 ticks"), "an unreadable log has no counts");
}

#[test]
fn failures_come_last_and_name_the_next_command() {
    let folder = Folder::with_session();
    for name in ["b", "c", "d"] {
        fs::copy(folder.path("a.hitlog"), folder.path(&format!("{name}.hitlog"))).unwrap();
    }
    let mut other = log(&folder, "a.hitlog");
    other.ticks[100].hash = Some(7);
    folder.save_log("a.hitlog", &other);
    folder.done("verify b.hitlog --accept");
    fs::write(folder.path("b.golden"), read(&folder, "b.golden").replace("digest", "x").replace("hit ", "met "))
        .unwrap();
    let output = folder.run("verify . --junit report.xml");
    let lines: Vec<String> = stdout_text(&output).lines().map(str::to_owned).collect();
    let is_same = |line: &String| line.starts_with("ok ") && line.contains("384 ticks, ");
    assert!(lines[..2].iter().all(is_same), "{lines:#?}");
    assert!(lines[2].starts_with("differs "), "{lines:#?}");
    assert!(lines.iter().any(|line| line.ends_with("bisect ticks ./a.hitlog")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.ends_with("verify ./b.hitlog --accept")), "{lines:#?}");
    let (shots, digests) =
        ["@@ shots @@", "@@ digests @@"].map(|part| lines.iter().position(|line| line.contains(part))).into();
    assert!(shots.is_some() && (digests.is_none() || shots < digests), "outcomes first: {lines:#?}");
    let quiet = stdout_text(&folder.run("verify . -q"));
    assert!(quiet.starts_with("differs ") && !quiet.contains("ok         "), "{quiet}");
    assert!(stdout_text(&folder.run("verify . -v")).matches("replayed twice, identical").count() == 4);
    let report = read(&folder, "report.xml");
    assert!(report.contains("the golden differs") && report.contains("@@ shots @@"), "{report}");
    let times: Vec<f64> = report
        .split("<testcase ")
        .skip(1)
        .filter_map(|case| case.split("time=\"").nth(1)?.split('"').next()?.parse().ok())
        .collect();
    assert!(times.len() == 4 && times.iter().all(|time| *time > 0.0), "{report}");
}

#[test]
#[cfg(unix)]
fn any_build_is_verified() {
    let folder = Folder::empty();
    session(folder.dir.path());
    let build = |name: &str, number: usize| {
        let build = word(example("pucks_bug"));
        script(&folder.path(name), &format!("PUCKS_VERSION={number} exec {build} \"$@\""));
    };
    build("good", 1);
    build("bug", 99);
    script(&folder.path("crash"), "echo no such thing >&2; exit 3");
    let varies = "case $(echo run >>runs; wc -l <runs) in *1) exec ./bug \"$@\";; *) exec ./good \"$@\";; esac";
    script(&folder.path("varies"), varies);
    let output = folder.run("verify game.hitlog --build ./varies");
    let printed = stdout_text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&output), 1);
    assert!(printed.contains("replayed twice, with different results; 768 of 768 tick hashes compared;"), "{printed}");
    assert!(printed.contains("two replays by the same build differ"), "{printed}");
    assert_eq!(exit_of(&folder, "verify game.hitlog"), 125, "hitreg itself does not play it");
    folder.done("verify game.hitlog --build ./good --accept");
    let printed = folder.done("verify game.hitlog --build ./good --require-golden");
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("768 of 768 tick hashes match the recording; golden matches"), "{printed}");
    let output = folder.run("verify game.hitlog --build ./bug");
    assert_eq!(code(&output), 1);
    assert!(stdout_text(&output).contains("the log has state hash"), "{}", stdout_text(&output));
    // hitreg itself does not play it, and compares the build with the log's own records.
    assert!(stdout_text(&output).contains(" bisect ticks game.hitlog --b ./bug\n"), "{}", stdout_text(&output));
    assert_eq!(exit_of(&folder, "bisect ticks game.hitlog --b ./bug"), 1);
    let output = folder.run("verify game.hitlog --build ./crash");
    assert_eq!(code(&output), 125);
    assert!(stdout_text(&output).contains("no such thing"), "{}", stdout_text(&output));
    folder.done("verify game.hitlog --build ./bug --accept --rerecord");
    folder.done("verify game.hitlog --build ./bug --require-golden");
    assert_eq!(exit_of(&folder, "verify game.hitlog --build ./good"), 1);
}

/// A build may write a part of what hitreg compares. `verify` says what is missing.
#[test]
#[cfg(unix)]
fn a_build_that_writes_less_than_the_log_is_described() {
    let folder = Folder::with_session();
    let hitreg = word(env!("CARGO_BIN_EXE_hitreg"));
    script(&folder.path("short"), &format!("exec {hitreg} \"$@\" --to 2"));
    script(&folder.path("untimed"), &format!("exec {hitreg} \"$@\" --tables frames,shots"));
    let verified = |options: &str| {
        let output = folder.run(&format!("verify a.hitlog {options}"));
        (code(&output), stdout_text(&output).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (code, page) = verified("--build ./short");
    assert!(code == 1 && page.contains("the replay has none, because it ended before"), "{page}");
    let (code, page) = verified("--build ./untimed");
    assert!(code == 125 && page.contains("the replay wrote no state hashes and there is no golden"), "{page}");
    folder.done("verify a.hitlog --build ./untimed --accept");
    let (code, page) = verified("--build ./untimed");
    assert!(code == 0 && page.contains("golden matches"), "{page}");
    // A trace without any result equals its own golden, so none is accepted.
    script(&folder.path("idle"), &format!("exec {hitreg} \"$@\" --tables frames,executed"));
    let golden = fs::read(folder.path("a.golden")).unwrap();
    let is_untestable = |options: &&str| {
        let (code, page) = verified(options);
        assert!(code == 125 && page.contains("the replay simulated nothing: the log records bodies"), "{page}");
    };
    ["--build ./idle", "--build ./idle --accept", "--build ./idle --propose"].iter().for_each(is_untestable);
    assert_eq!(fs::read(folder.path("a.golden")).unwrap(), golden, "the golden of another build stays");
    assert!(!folder.path("a.golden.new").exists());
    fs::remove_file(folder.path("a.golden")).unwrap();
    ["--build ./idle", "--build ./idle --accept"].iter().for_each(is_untestable);
    assert!(!folder.path("a.golden").exists());
    let checked = stdout_text(&folder.run("check ./idle a.hitlog"));
    assert!(checked.contains("no other results and no two state hashes"), "{checked}");
    // Clients alone, whose predictions agree with the recorded acks, show nothing about the server.
    script(&folder.path("serverless"), &format!("exec {hitreg} \"$@\" --mode open"));
    let (code, page) = verified("--build ./serverless");
    assert!(code == 125 && page.contains("the replay wrote no state hashes and there is no golden"), "{page}");
    folder.done("replay a.hitlog -o other.hittrace");
    let mut other = store::read_trace(&folder.path("other.hittrace")).unwrap();
    // Without hashes, bodies are compared, and a golden can decide.
    let mut hashless = other.clone();
    let ticks = hashless.tables.iter_mut().find(|table| table.name == "ticks").unwrap();
    ticks.columns.retain(|column| column.name != "hash");
    let save = |name: &str, trace: &Trace| {
        let target = Targets::default().replacing_recordings().file(&folder.path(name), FileType::Trace).unwrap();
        store::save_trace(&target, trace).unwrap();
    };
    save("hashless.hittrace", &hashless);
    script(&folder.path("hashless"), "cp hashless.hittrace \"$4\"");
    let (code, page) = verified("--build ./hashless");
    assert!(code == 125 && page.contains("the replay wrote no state hashes and there is no golden"), "{page}");
    folder.done("verify a.hitlog --build ./hashless --accept");
    assert_eq!(verified("--build ./hashless").0, 0);
    let bodies = hashless.tables.iter_mut().find(|table| table.name == "bodies").unwrap();
    let ColumnData::F32(x) = &mut bodies.columns.iter_mut().find(|column| column.name == "origin.x").unwrap().data
    else {
        panic!("a coordinate")
    };
    x.iter_mut().for_each(|x| *x += 1.0);
    fs::remove_file(folder.path("a.golden")).unwrap();
    save("hashless.hittrace", &hashless);
    let (code, page) = verified("--build ./hashless");
    assert!(code == 1 && page.contains("hashless differs from the log in `bodies`"), "{page}");
    other.header.game = "other".to_owned();
    save("other.hittrace", &other);
    script(&folder.path("foreign"), "cp other.hittrace \"$4\"");
    let (code, page) = verified("--build ./foreign");
    assert!(code == 125 && page.contains("a trace of the game `other`, and the log is of `arena`"), "{page}");
    // A trace without usercmds does not make the golden one of another recording.
    folder.done("verify a.hitlog --accept");
    script(&folder.path("frameless"), &format!("exec {hitreg} \"$@\" --tables ticks,bodies,shots"));
    let (code, page) = verified("--build ./frameless");
    assert!(code == 1 && page.contains("the golden differs") && !page.contains("another recording"), "{page}");
    let usercmds = folder.json("info a.hitlog")["usercmds"].as_u64().unwrap();
    folder.done("record synth -o longer.hitlog --players 2 --seconds 7");
    folder.done("verify longer.hitlog --accept");
    fs::copy(folder.path("longer.golden"), folder.path("a.golden")).unwrap();
    let (code, page) = verified("--build ./frameless");
    assert!(code == 1 && page.contains(&format!("and this log {usercmds}: it may be of another recording")), "{page}");
}

#[test]
fn a_log_that_lacks_a_usercmd_that_ran_is_broken() {
    let folder = Folder::empty();
    session(folder.dir.path());
    let mut lacking = log(&folder, "game.hitlog");
    let done = ExecutionRecord { command: CommandSeq(9_999), tick: Tick(5), how: Execution::Run };
    lacking.players[0].executed.insert(0, done);
    folder.save_log("lacking.hitlog", &lacking);
    let output = folder.run(&format!("verify lacking.hitlog --build {}", word(example("pucks_bug"))));
    let printed = stdout_text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&output), 128);
    assert!(printed.contains("records p0 #9999 as run in tick 5, but does not hold this usercmd"), "{printed}");
}

/// At a terminal, `review` shows each proposal and asks for an answer. It repeats the question after an invalid answer.
#[test]
#[cfg(unix)]
fn review_asks_about_each_proposal_at_a_terminal() {
    use std::io::{Read, Write};
    use std::process::Stdio;

    let folder = Folder::with_session();
    for name in ["b", "c", "d"] {
        fs::copy(folder.path("a.hitlog"), folder.path(&format!("{name}.hitlog"))).unwrap();
    }
    folder.done("verify . --accept");
    let golden = read(&folder, "a.golden");
    let other = golden.replace("shots hit ", "shots met ");
    for name in ["a", "b", "c", "d"] {
        fs::write(folder.path(&format!("{name}.golden")), &other).unwrap();
    }
    assert_eq!(exit_of(&folder, "verify . --propose"), 1);
    let [mut master, terminal] = super::terminal::terminal();
    master.write_all(b"what?\na\nr\ns\nquit\n").unwrap();
    let mut command = folder.command("review --color never");
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    let mut printed = Vec::new();
    // The read fails after the program has closed the terminal.
    let _ = master.read_to_end(&mut printed);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 1, "some are left");
    assert_eq!(text(&output.stderr).matches("accept, reject, skip or quit?").count(), 5);
    let printed = text(&printed);
    assert!(printed.contains("./b.golden (counts, 2 of 4)"), "{printed}");
    assert!(printed.contains("-shots met") && printed.contains("accepted   ./a.golden"), "{printed}");
    assert!(printed.contains("rejected   ./b.golden") && printed.contains("waits      ./d.golden"), "{printed}");
    let goldens = ["a", "b", "c", "d"].map(|name| read(&folder, &format!("{name}.golden")));
    assert_eq!(goldens, [golden, other.clone(), other.clone(), other]);
    let waiting = ["a", "b", "c", "d"].map(|name| folder.path(&format!("{name}.golden.new")).exists());
    assert_eq!(waiting, [false, false, true, true]);
}

/// Opening a pipe can block for ever, and the remaining logs still need verdicts.
#[cfg(unix)]
#[test]
fn a_golden_that_is_a_pipe_does_not_block() {
    let folder = Folder::with_session();
    fs::copy(folder.path("a.hitlog"), folder.path("b.hitlog")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path("a.golden")).status().unwrap();
    assert!(made.success());
    let output = folder.run("verify a.hitlog b.hitlog");
    assert_eq!(code(&output), 128);
    assert!(
        stdout_text(&output).contains("1 ok, 1 broken") && stdout_text(&output).contains("not a regular file"),
        "{}",
        stdout_text(&output)
    );
}

/// A golden does not depend on the program or options of the replay.
#[test]
fn a_log_has_the_same_golden_by_every_route() {
    let folder = Folder::with_session();
    folder.done("record synth -o keyed.hitlog --seconds 6 --keyframes 2");
    let build = word(env!("CARGO_BIN_EXE_hitreg"));
    for log in ["a", "keyed"] {
        folder.done(&format!("verify {log}.hitlog --accept"));
        let accepted = read(&folder, &format!("{log}.golden"));
        let by_build = format!("--build {build}");
        for route in ["", "--whole", "--threads 1", "--threads 2", "--rollback 32", &by_build] {
            let output = folder.run(&format!("verify {log}.hitlog {route}"));
            assert_eq!(code(&output), 0, "{route}: {}", stdout_text(&output));
            fs::remove_file(folder.path(&format!("{log}.golden"))).unwrap();
            folder.done(&format!("verify {log}.hitlog {route} --accept"));
            assert_eq!(read(&folder, &format!("{log}.golden")), accepted, "{route}");
        }
        let piped = folder.path("piped.hitlog");
        let made = std::process::Command::new("mkfifo").arg(&piped).status().unwrap();
        assert!(made.success());
        let bytes = fs::read(folder.path(&format!("{log}.hitlog"))).unwrap();
        let writer = std::thread::spawn({
            let piped = piped.clone();
            move || fs::write(piped, bytes)
        });
        folder.done("verify piped.hitlog --accept");
        writer.join().unwrap().unwrap();
        assert_eq!(read(&folder, "piped.golden"), accepted, "from a pipe");
        fs::remove_file(piped).unwrap();
        fs::remove_file(folder.path("piped.golden")).unwrap();
    }
}

/// For a golden that differs, the next commands show the change before they accept it, and both run.
#[test]
fn next_commands_show_a_changed_golden_before_accepting_it() {
    let folder = Folder::with_session();
    folder.done("verify a.hitlog --accept");
    let accepted = read(&folder, "a.golden");
    let shot = accepted.lines().find(|line| line.starts_with("tick ")).unwrap();
    fs::write(folder.path("a.golden"), accepted.replace(shot, &format!("{shot} or so"))).unwrap();
    let output = folder.run("verify a.hitlog");
    assert_eq!(code(&output), 1);
    let page = stdout_text(&output);
    let commands =
        page.lines().filter_map(|line| line.trim().strip_prefix("why: ").or(line.trim().strip_prefix("if intended: ")));
    let commands: Vec<String> = commands.map(arguments).collect();
    assert_eq!(commands.len(), 2, "{page}");
    assert!(commands[0].starts_with("why a.hitlog 'p0#") && commands[1] == "verify a.hitlog --accept", "{commands:?}");
    commands.iter().for_each(|command| drop(folder.done(command)));
}

/// If only digests of a golden differ, the log and its replay are the same. `--propose` leads to a review.
#[test]
fn the_next_command_of_a_golden_with_other_digests_leads_to_a_review() {
    let folder = Folder::with_session();
    folder.done("verify a.hitlog --accept");
    let accepted = read(&folder, "a.golden");
    let digest = accepted.lines().find(|line| line.starts_with("trace ")).unwrap();
    fs::write(folder.path("a.golden"), accepted.replace(digest, "trace 0")).unwrap();
    let page = stdout_text(&folder.run("verify a.hitlog"));
    assert!(page.contains("hitreg verify a.hitlog --propose") && !page.contains("hitreg diff "), "{page}");
    assert_eq!(exit_of(&folder, "verify a.hitlog --propose"), 1);
    assert!(stdout_text(&folder.run("review a.hitlog")).contains("-trace 0"));
}

/// hitreg cannot be a side of a comparison for a game that it does not know.
#[test]
fn the_next_command_of_a_foreign_game_can_run() {
    let folder = Folder::empty();
    let log = session(folder.dir.path());
    let build = example("pucks");
    let line = format!("verify {} --build {}", word(&log), word(&build));
    folder.done(&format!("{line} --accept"));
    let golden = log.with_extension("golden");
    let accepted = fs::read_to_string(&golden).unwrap();
    fs::write(&golden, accepted.replace("usercmds ", "usercmds  ")).unwrap();
    let page = stdout_text(&folder.run(&line));
    assert!(page.contains("--accept") && !page.contains("diff ") && !page.contains("why "), "{page}");
}

#[test]
#[cfg(unix)]
fn a_log_from_standard_input_has_no_golden() {
    let folder = Folder::with_session();
    let verify = |option: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("\"$0\" verify - {option} < a.hitlog"), env!("CARGO_BIN_EXE_hitreg")]);
        shell.current_dir(folder.path(".")).output().expect("a shell")
    };
    let refused = verify("--accept");
    assert_eq!(refused.status.code(), Some(128));
    assert!(text(&refused.stderr).contains("a log from standard input has no place for a golden"));
    assert_eq!(verify("").status.code(), Some(0));
    assert!(!folder.path("-.golden").exists());
}

#[test]
fn a_file_that_is_no_golden_is_named() {
    let folder = Folder::with_session();
    std::fs::write(folder.path("a.golden"), "hello\n").expect("written");
    let output = folder.run("verify a.hitlog");
    assert_eq!(output.status.code(), Some(128));
    assert!(stdout_text(&output).contains("a.golden: this is no golden of hitreg"), "{}", stdout_text(&output));
}

#[test]
fn a_golden_of_another_recording_is_recognized() {
    let folder = Folder::empty();
    folder.done("record synth --players 2 --seconds 3 -o a.hitlog");
    folder.done("verify a.hitlog --accept");
    folder.done("record synth --players 2 --seconds 4 -o a.hitlog --force");
    let output = folder.run("verify a.hitlog");
    let page = stdout_text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&output), 1);
    assert!(page.contains("the golden differs. It has 382 usercmds, and this log 510: it may be of another"), "{page}");
}

/// A usercmd that the server replaced may arrive late, and then has two rows in `executed`, seconds apart.
#[test]
fn usercmds_that_arrive_after_their_replacement_do_not_contradict_the_log() {
    let folder = Folder::empty();
    let scenario = "players = 2\nseconds = 60.0\n[[links]]\ndelay_ms = 40.0\nreorder = 0.5\nreorder_ms = 500.0\n";
    fs::write(folder.path("reordered.toml"), scenario).unwrap();
    folder.done("record synth --scenario reordered.toml -o a.hitlog");
    folder.done("replay a.hitlog -o a.hittrace");
    let rows = folder.done("export a.hittrace --table executed --to csv");
    let mut keys: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').take(2).collect()).collect();
    keys.sort_unstable();
    assert!(keys.windows(2).filter(|two| two[0] == two[1]).count() > 10, "usercmds with two rows");
    for line in ["verify a.hitlog", "verify a.hitlog --whole", "verify a.hitlog --rollback 4"] {
        assert_eq!(folder.json(line)["logs"][0]["verdict"], "same", "{line}");
    }
}

//! Features for terminals: colours, bars, and word differences of texts.
#![cfg(unix)]
#![expect(clippy::disallowed_types, reason = "a terminal is a file")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use hitreg::log::read_trace;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::folder::{Folder, code, text};

/// A pseudo-terminal: the user's end and the programs' end.
pub(crate) fn terminal() -> [File; 2] {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).expect("granted");
    unlockpt(&master).expect("unlocked");
    let name = ptsname(&master, Vec::new()).expect("a name");
    let programs = File::options().read(true).write(true).open(name.to_str().expect("UTF-8")).expect("it opens");
    [master.into(), programs]
}

/// The output of a command at a terminal, without colours.
fn shown(folder: &Folder, line: &str) -> String {
    shown_by(folder, line, Command::stdout)
}

/// What a command shows on a terminal that `attach` gives it, without colours.
fn shown_by(folder: &Folder, line: &str, attach: fn(&mut Command, File) -> &mut Command) -> String {
    let [mut person, program] = terminal();
    let mut command = folder.command(line);
    command.arg("--color=never").env("TERM", "xterm").stdout(Stdio::null());
    let mut child = attach(&mut command, program).spawn().expect("hitreg starts");
    drop(command);
    let mut bytes = Vec::new();
    // A read fails after the last program has closed the terminal.
    let mut part = [0; 4096];
    while let Ok(read) = person.read(&mut part)
        && read > 0
    {
        bytes.extend_from_slice(&part[..read]);
    }
    assert!(child.wait().expect("it ends").success(), "{line}");
    text(&bytes).replace("\r\n", "\n")
}

/// The numbers beside the bars under a title.
fn bars(shown: &str, title: &str) -> Vec<u64> {
    let rows = shown.lines().skip_while(|line| !line.starts_with(title)).skip(1);
    let of_row = |line: &str| line.split_once(" up ").or(line.split_once("  0  ")).map(|(_, rest)| rest.to_owned());
    let rows = rows.map_while(|line| of_row(line)?.split_whitespace().next()?.replace(',', "").parse().ok());
    rows.collect()
}

#[test]
fn shrink_shows_what_it_tries() {
    let folder = Folder::with_session();
    let shown = shown_by(&folder, "shrink a.hitlog --b-set interpolation.lerp_ms=50 -o small.hitlog", Command::stderr);
    assert!(shown.contains("shrinking: ") && shown.contains(" to go, ") && shown.contains(" tried"), "{shown}");
}

#[test]
fn bars_are_for_terminals() {
    let folder = Folder::with_session();
    let prediction = folder.json("replay a.hitlog")["prediction"].clone();
    let [acked, relocations] = ["checked", "relocations"].map(|name| prediction[name].as_u64().expect("a number"));
    assert!(relocations > 0, "{prediction}");
    for line in ["info a.hitlog", "replay a.hitlog"] {
        let shown = shown(&folder, line);
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        let trips = bars(&shown, "round trip");
        assert!(trips.len() > 3 && trips.iter().sum::<u64>() >= acked, "{trips:?} of {acked} in\n{shown}");
        // A respawn is no prediction error.
        let errors = if line.starts_with("info") { 0 } else { acked - relocations };
        assert_eq!(bars(&shown, "prediction error").iter().sum::<u64>(), errors, "{shown}");
        for color in ["never", "always"] {
            assert!(!folder.done(&format!("{line} --color {color}")).contains("##"), "a pipe gets none");
        }
    }
}

/// A pager of the output reads the same terminal as a question would.
#[test]
fn review_asks_only_if_its_output_is_shown() {
    let folder = Folder::with_session();
    assert_eq!(code(&folder.run("verify a.hitlog --propose")), 1);
    let [mut person, program] = terminal();
    person.write_all(b"q\n").expect("typed");
    let output = folder.command("review a.hitlog").stdin(program).output().expect("it runs");
    assert_eq!(code(&output), 1);
    assert!(!text(&output.stderr).contains("accept, reject"), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    // The counts of a new golden come first, and the rest is in the files.
    let heads: Vec<&str> = page.lines().map(str::trim).filter(|line| line.starts_with("@@")).collect();
    assert!(page.starts_with("a.golden (new, 1 of 1)\n") && heads == ["@@ counts @@", "@@ shots @@"], "{page}");
    assert!(page.contains("in: diff -u /dev/null a.golden.new"), "{page}");
}

const REMOVED: &str = "\u{1b}[31m";
const ADDED: &str = "\u{1b}[32m";

/// The highlighted words in lines of one colour.
fn words(page: &str, colour: &str) -> Vec<String> {
    let start = format!("\u{1b}[1m\u{1b}[4m{colour}");
    page.split(&start).skip(1).filter_map(|rest| Some(rest.split_once('\u{1b}')?.0.to_owned())).collect()
}

#[test]
fn text_differences_highlight_changed_words() {
    let folder = Folder::with_session();
    let plain = |line: &str| text(&folder.run(line).stdout);
    let coloured = |line: &str| plain(&format!("{line} --color always"));

    let settings = "diff a.hitlog --b-set interpolation.lerp_ms=50";
    let expected = "\n  -interpolation.lerp_ms = 100\n  +interpolation.lerp_ms = 50\n";
    assert!(plain(settings).contains(expected), "{}", plain(settings));
    let page = coloured(settings);
    assert_eq!((words(&page, REMOVED), words(&page, ADDED)), (vec!["100".to_owned()], vec!["50".to_owned()]), "{page}");
    let notes = serde_json::from_str::<serde_json::Value>(&plain(&format!("{settings} --format json"))).expect("JSON");
    assert_eq!(notes["notes"][1], "interpolation.lerp_ms is 100 in A, 50 in B");

    folder.done("verify a.hitlog --accept");
    let golden = fs::read_to_string(folder.path("a.golden")).expect("UTF-8");
    fs::write(folder.path("a.golden"), golden.replace("shots fired", "shots spent")).expect("written");
    let output = folder.run("verify a.hitlog --color always");
    assert_eq!(code(&output), 1);
    assert!(words(&text(&output.stdout), REMOVED).contains(&"spent".to_owned()), "{}", text(&output.stdout));

    let trace = read_trace(&fs::read(folder.path("a.hittrace")).expect("a trace")[..]).expect("sound");
    let corrections = trace.table("corrections").expect("corrections");
    let corrected =
        corrections.u32s("player").iter().zip(corrections.u32s("fields")).filter(|(_, fields)| **fields > 0);
    let mut whole = 0;
    let mut numbers = std::collections::BTreeMap::<u32, u32>::new();
    for (player, changed) in corrected {
        let number = numbers.entry(*player).and_modify(|number| *number += 1).or_insert(1);
        let page = plain(&format!("why a.hittrace --correction {number} --player p{player}"));
        let Some((_, body)) = page.split_once("@@ body: predicted (-), actual (+), predicted only ( ) @@\n") else {
            continue;
        };
        whole += 1;
        let fields = |sign: &str| body.lines().filter(|line| line.starts_with(&format!("  {sign}"))).count() as u64;
        assert!(fields(" ") > 0, "fields around them: {page}");
        assert_eq!([fields("-"), fields("+")], [u64::from(*changed); 2], "{page}");
    }
    assert!(whole > 2, "{whole} with a body");
}

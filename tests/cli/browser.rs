//! Pages of `report` in a real browser. The tests need Chromium, node and puppeteer-core (`npm install puppeteer-core`
//! in a folder that HITREG_TEST_PUPPETEER names). They are skipped if one is missing. Screenshots go to
//! `target/screenshots`.

#![expect(clippy::disallowed_methods, reason = "the environment names the browser to use")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::note;
use hitreg::log::{WriterOptions, read_session, read_trace, write_trace};
use hitreg::store::{self, FileType, Targets};
use hitreg::trace::schema::{corrections, ticks};
use hitreg::trace::{Column, ColumnData, Trace};

/// A text that would break out of HTML, a script or JSON if unescaped.
const HOSTILE: &str =
    "</script><script>window.broken=1</script><img src=x onerror=\"window.broken=1\">\"\\u2028'`${1}\u{202e}";

#[test]
fn pages_work_in_a_browser() {
    let Some((chromium, puppeteer)) = browser() else {
        note::skipped(
            "no browser is here: it takes Chromium, node, and puppeteer-core in the folder HITREG_TEST_PUPPETEER",
        );
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    write_pages(folder.path());
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target").join("screenshots");
    let mut node = Command::new("node");
    node.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/browser.mjs")).arg(folder.path()).arg(screenshots);
    let output = node.env("HITREG_TEST_CHROMIUM", chromium).env("HITREG_TEST_PUPPETEER", puppeteer).output();
    let Output { status, stdout, stderr } = output.expect("node");
    let message = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(status.success(), "{message}");
    eprintln!("{message}");
}

fn browser() -> Option<(PathBuf, PathBuf)> {
    let puppeteer = PathBuf::from(std::env::var_os("HITREG_TEST_PUPPETEER")?);
    let path = std::env::var_os("PATH")?;
    let on_path = |name: &str| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(on_path)?;
    on_path("node").filter(|_| puppeteer.join("node_modules/puppeteer-core").is_dir())?;
    Some((chromium, puppeteer))
}

/// Runs `hitreg` and returns its output.
fn hitreg(folder: &Path, line: &str) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_hitreg"))
        .args(shlex::split(line).expect("words"))
        .current_dir(folder)
        .output();
    let output = output.expect("hitreg");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The counts of `exercised` in a replay's output.
fn exercised(folder: &Path, line: &str) -> serde_json::Value {
    let report: serde_json::Value = serde_json::from_slice(&hitreg(folder, line)).expect("JSON");
    report["exercised"].clone()
}

fn write_pages(folder: &Path) {
    hitreg(folder, "record synth --players 4 --seconds 12 --seed 3 --delay-ms 50 --jitter-ms 4 --loss 1% -o a.hitlog");
    hitreg(folder, "replay a.hitlog -o a.hittrace");
    hitreg(folder, "report a.hitlog -o one.html");
    hitreg(folder, "report a.hitlog --b-set lag_compensation.enabled=false -o two.html");
    hitreg(folder, "record synth --players 16 --seconds 30 --seed 5 --jitter-ms 5 --loss 1% -o crowd.hitlog");
    hitreg(folder, "report crowd.hitlog -o crowd.html");
    hitreg(folder, "report crowd.hitlog --b-preset quake3 -o crowds.html");
    let counts = ["", " --set lag_compensation.enabled=false"]
        .map(|set| exercised(folder, &format!("replay a.hitlog --format json{set}")));
    fs::write(folder.join("counts.json"), serde_json::to_string(&counts).expect("JSON")).expect("written");
    // The part begins between a launch and its impact, and ends while lost packets are in flight. Many acks come late.
    hitreg(folder, "record synth --players 16 --seconds 12 --seed 2 --jitter-ms 10 --loss 4% -o late.hitlog");
    hitreg(folder, "report late.hitlog -o late.html");
    hitreg(
        folder,
        "sweep late.hitlog --set interpolation.lerp_ms=50,100 --set lag_compensation.enabled=true,false --report sweep.html --csv sweep.csv",
    );
    hitreg(folder, "sweep late.hitlog --set interpolation.mode=two-point,category --report modes.html");
    hitreg(folder, "report late.hitlog --from 6 --to 9 -o part.html");
    hitreg(folder, "record synth --preset dumb-client --players 2 --seconds 3 -o dumb.hitlog");
    hitreg(folder, "report dumb.hitlog -o dumb.html");
    for (name, line) in [("part.json", "replay late.hitlog --from 6 --to 9"), ("info.json", "info late.hitlog")] {
        fs::write(folder.join(name), hitreg(folder, &format!("{line} --format json"))).expect("written");
    }
    hitreg(folder, "replay a.hitlog -o rows.hittrace --tables shots,corrections");
    hitreg(folder, "report rows.hittrace -o rows.html");
    let trace = read_trace(&fs::read(folder.join("a.hittrace")).expect("a trace")[..]).expect("sound");
    fs::write(folder.join("bodies.json"), bodies(&trace)).expect("written");

    let mut session = read_session(&fs::read(folder.join("a.hitlog")).expect("a log")[..]).expect("sound");
    session.header.game = "somebody else's".into();
    session.header.players[1].name = "Ann".into();
    let target =
        Targets::default().replacing_recordings().file(&folder.join("unknown.hitlog"), FileType::Log).expect("a place");
    store::save_log(&target, &session, WriterOptions::whole()).expect("written");
    hitreg(folder, "report unknown.hitlog -o unknown.html");

    let mut bare = trace.clone();
    bare.tables.retain(|table| ["ticks", "bodies"].contains(&table.name.as_str()));
    save(&bare, &folder.join("bare.hittrace"));
    hitreg(folder, "report bare.hittrace -o bare.html");
    hitreg(folder, "report bare.hittrace a.hittrace -o only_b.html");

    for column in bare.tables.iter_mut().flat_map(|table| &mut table.columns) {
        let moved = if column.name == "origin.x" { 1e6 } else { -3e6 };
        if let (true, ColumnData::F32(values)) = (column.name.starts_with("origin."), &mut column.data) {
            values.iter_mut().for_each(|at| *at += moved);
        }
    }
    save(&bare, &folder.join("far.hittrace"));
    fs::write(folder.join("far.json"), bodies(&bare)).expect("written");
    hitreg(folder, "report far.hittrace -o far.html");

    save(&with_reported_hits_only(trace.clone()), &folder.join("reported.hittrace"));
    hitreg(folder, "report reported.hittrace -o reported.html");

    write_unusual_pages(folder, &trace);
    save(&with_hostile_names(trace), &folder.join("hostile.hittrace"));
    hitreg(folder, "report hostile.hittrace -o hostile.html");
}

/// Pages with irregular times, unknown values, entities that are no players, and missing records.
fn write_unusual_pages(folder: &Path, trace: &Trace) {
    let mut uneven = trace.clone();
    uneven.tables.retain(|table| ["ticks", "bodies"].contains(&table.name.as_str()));
    if let ColumnData::I64(times) = column(&mut uneven, "ticks", "at_us") {
        // A tick is late, and some ticks are at one time.
        (0..).zip(times).for_each(|(tick, at)| *at += if tick < 300 { tick % 5 / 3 * 7_000 } else { 400_000 });
    }
    save(&uneven, &folder.join("uneven.hittrace"));
    fs::write(folder.join("uneven.json"), bodies(&uneven)).expect("written");
    hitreg(folder, "report uneven.hittrace -o uneven.html");

    let mut acks = trace.clone();
    if let ColumnData::I64(times) = column(&mut acks, "corrections", "at_us") {
        times.iter_mut().for_each(|at| *at -= *at % 100_000);
    }
    if let ColumnData::F32(errors) = column(&mut acks, "corrections", "error_units") {
        errors.iter_mut().step_by(10).for_each(|error| *error = f32::NAN);
    }
    fs::write(folder.join("acks.json"), largest_errors(&acks)).expect("written");
    save(&acks, &folder.join("acks.hittrace"));
    hitreg(folder, "report acks.hittrace -o acks.html");
    let corrections = acks.tables.iter_mut().find(|table| table.name == "corrections").expect("corrections");
    corrections.columns.retain(|column| column.name != "error_units");
    save(&acks, &folder.join("no-errors.hittrace"));
    hitreg(folder, "report no-errors.hittrace -o no-errors.html");

    save(&Trace { header: trace.header.clone(), ..Trace::default() }, &folder.join("empty.hittrace"));
    hitreg(folder, "report empty.hittrace -o empty.html");

    hitreg(folder, "record synth --map orchard --players 3 --seconds 6 --seed 2 --delay-ms 80 -o orchard.hitlog");
    hitreg(folder, "replay orchard.hitlog --mode open -o open.hittrace");
    hitreg(folder, "report open.hittrace -o open.html");

    hitreg(folder, "record synth --players 3 --seconds 16 --delay-ms 40 --loss 4% --no-keyframes -o damaged.hitlog");
    let mut bytes = fs::read(folder.join("damaged.hitlog")).expect("a log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(folder.join("damaged.hitlog"), &bytes).expect("written");
    hitreg(folder, "recover damaged.hitlog -o gap.hitlog");
    hitreg(folder, "report gap.hitlog -o gap.html");
    hitreg(folder, "replay gap.hitlog -o gap.hittrace");
    hitreg(folder, "report gap.hittrace -o gap-trace.html");
    for (name, line) in [("gap-info.json", "info"), ("gap-replay.json", "replay")] {
        fs::write(folder.join(name), hitreg(folder, &format!("{line} gap.hitlog --format json"))).expect("written");
    }
}

fn column<'t>(trace: &'t mut Trace, table: &str, column: &str) -> &'t mut ColumnData {
    let table = trace.tables.iter_mut().find(|of| of.name == table).expect("a table");
    &mut table.columns.iter_mut().find(|of| of.name == column).expect("a column").data
}

/// The largest known error of all acks, without and with relocations, and the number of known errors.
fn largest_errors(trace: &Trace) -> String {
    let acks = corrections::Columns::of(trace);
    let known = || acks.error_units.iter().zip(acks.cause.iter()).filter(|(error, _)| error.is_finite());
    let largest = |is_relocated: bool| {
        let of = known().filter(|(_, cause)| matches!(*cause, "spawn_or_death" | "teleport") == is_relocated);
        of.map(|(error, _)| *error).fold(0.0, f32::max)
    };
    serde_json::json!([largest(false), largest(true), known().count()]).to_string()
}

fn save(trace: &Trace, path: &Path) {
    fs::write(path, write_trace(Vec::new(), trace).expect("written")).expect("written");
}

/// The trace as an open-loop replay that knows only the reported hits, some with their victim, and no recording of p3.
fn with_reported_hits_only(mut trace: Trace) -> Trace {
    trace.header.mode = "open".into();
    trace.tables.retain(|table| ["frames", "views", "shots"].contains(&table.name.as_str()));
    for (name, player) in [("frames", "player"), ("shots", "shooter")] {
        let table = trace.tables.iter_mut().find(|table| table.name == name).expect("a table");
        *table = table.select_where(table.u32s(player).iter(), |player| *player != 3);
    }
    let shots = trace.tables.iter_mut().find(|table| table.name == "shots").expect("shots");
    for column in &mut shots.columns {
        match (column.name.as_str(), &mut column.data) {
            ("reason", ColumnData::Name { names, codes }) => {
                let hit = names.iter().position(|name| name == "hit").expect("a hit") as u32;
                codes.fill(hit);
            }
            ("target" | "aimed_at" | "hitgroup", ColumnData::Name { names, codes }) => {
                *names = vec!["none".into()];
                codes.fill(0);
            }
            ("impact", ColumnData::U32(values)) => values.fill(0),
            ("rewind_us", ColumnData::I64(values)) => values.fill(0),
            _ => {}
        }
    }
    let codes = (0..shots.rows() as u32).map(|row| u32::from(row % 5 == 0)).collect();
    let data = ColumnData::Name { names: vec!["?".into(), "p1".into()], codes };
    shots.columns.push(Column { name: "given_target".into(), unit: String::new(), data });
    let damage = ColumnData::F32(vec![25.0; shots.rows()]);
    shots.columns.push(Column { name: "given_damage".into(), unit: String::new(), data: damage });
    trace
}

/// The trace with hostile text in every name that a trace may choose.
fn with_hostile_names(mut trace: Trace) -> Trace {
    trace.header.game = HOSTILE.into();
    trace.header.mode = HOSTILE.into();
    trace.header.settings.push((HOSTILE.into(), HOSTILE.into()));
    trace.header.session.as_mut().expect("a session").players = vec![HOSTILE.into(); 2];
    for table in &mut trace.tables {
        for column in &mut table.columns {
            if let ColumnData::Name { names, .. } = &mut column.data {
                names.iter_mut().for_each(|name| name.push_str(HOSTILE));
            }
        }
    }
    trace
}

/// The positions of some bodies at some ticks.
fn bodies(trace: &Trace) -> String {
    let ticks = ticks::Columns::of(trace);
    let table = trace.table("bodies").expect("bodies");
    let (x, y) = (table.f32s("origin.x"), table.f32s("origin.y"));
    let row = |row: usize| {
        let tick = table.u32s("tick")[row];
        let at_us = ticks.at_us[ticks.tick.iter().position(|known| *known == tick).expect("a tick")];
        serde_json::json!({ "at_us": at_us, "entity": table.u32s("entity")[row], "x": x[row], "y": y[row] })
    };
    let rows: Vec<_> = (0..x.len()).step_by(17).map(row).collect();
    serde_json::to_string(&rows).expect("JSON")
}

//! `why` agrees with the tables for every shot and correction, fits 80 columns, and marks unknown values.

use std::fs;
use std::ops::Deref;

use glam::Vec3;
use hitreg::log::{read_session, read_trace};
use hitreg::record::ArrivalRecord;
use hitreg::report::{why_answer, why_page};
use hitreg::store::{self, TraceFile};
use hitreg::trace::schema::{bodies, corrections, errors, shots};
use hitreg::trace::{ColumnData, Table, Trace, schema};
use hitreg::units::{EntityId, Tick};
use hitreg::why::{JudgedOutcome, PositionKind, ShotExplanation, ShotName, ShotResult, TraceRows, Why, WhyQuery, near};

use super::folder::{Folder, text};

/// The session of `quickstart`, with its traces under the recorded rules and under rules without lag compensation.
fn sessions() -> (Folder, Vec<(&'static str, Trace)>) {
    let folder = Folder::empty();
    folder.done("quickstart");
    let under = ["", "--set lag_compensation.max_unlag_ms=150", "--set lag_compensation.enabled=false"];
    let trace = |set: &'static str| (set, trace_of(&folder, &format!("replay quickstart.hitlog {set}")));
    let traces = under.map(trace).into();
    (folder, traces)
}

fn trace_of(folder: &Folder, replay: &str) -> Trace {
    folder.done(&format!("{replay} --force -o of.hittrace"));
    read_trace(&fs::read(folder.path("of.hittrace")).unwrap()[..]).expect("a trace")
}

fn text_of(trace: &Trace, why: &Why) -> String {
    let text = why_page(why, &trace.header.settings, &[]).text();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "80 columns:\n{text}");
    text
}

fn shot(trace: &Trace, name: ShotName) -> (Box<ShotExplanation>, String) {
    let why = Why::of(trace, &WhyQuery::Shot(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = text_of(trace, &why);
    match why {
        Why::Shot(shot) => (shot, text),
        Why::Correction(_) => panic!("a shot was asked for"),
    }
}

fn words<'a>(came: &'a ShotResult) -> [&'a str; 3] {
    let or_none = |name: &'a Option<String>| name.as_ref().map_or("none", Deref::deref);
    [&came.reason, or_none(&came.target), or_none(&came.hitgroup)]
}

/// For a long trace, the rows near a shot give the same explanation as the whole trace.
#[test]
fn rows_near_a_shot_explain_it_as_the_whole_trace_does() {
    let folder = Folder::empty();
    folder.done(
        "record synth --preset nereids --players 3 --seconds 30 --delay-ms 60 --jitter-ms 20 --loss 3% -o n.hitlog",
    );
    folder.done("record synth --players 4 --seconds 30 --delay-ms 60 --jitter-ms 20 --loss 3% -o h.hitlog");
    for name in ["n", "h"] {
        let whole = trace_of(&folder, &format!("replay {name}.hitlog"));
        let file = TraceFile::open(&folder.path("of.hittrace")).expect("a trace");
        let table = shots::Columns::of(&whole);
        let mut placed = 0;
        for row in 0..table.rows {
            let name =
                ShotName { shooter: table.shooter[row], command: table.command[row], index: Some(table.index[row]) };
            let near = near(&file, &WhyQuery::Shot(name)).expect("it can be read").expect("it is there");
            assert!(near.tables.iter().map(Table::rows).sum::<usize>() < 10_000, "that is not near");
            let [of_near, of_whole] = [&near, &whole].map(|trace| Why::of(trace, &WhyQuery::Shot(name)));
            assert_eq!(of_near, of_whole, "{name}");
            let Ok(Why::Shot(shot)) = of_near else { panic!("{name}") };
            placed += usize::from(shot.place_of(PositionKind::Judged).is_some_and(|place| place.origin.is_some()));
        }
        assert!(placed > 10, "{placed} of {} have a place that they were judged at", table.rows);
    }
}

#[test]
fn shot_explanations_agree_with_the_tables() {
    let (_folder, traces) = sessions();
    let mut known = [0, 0];
    for (set, trace) in &traces {
        let table = shots::Columns::of(trace);
        assert!(table.rows > 40, "{set}: {} shots", table.rows);
        for row in 0..table.rows {
            let index = Some(table.index[row]);
            let (shot, text) =
                shot(trace, ShotName { shooter: table.shooter[row], command: table.command[row], index });
            let server = [table.reason, table.target, table.hitgroup].map(|names| names.get(row));
            let screen = [table.predicted_reason, table.predicted_target, table.predicted_hitgroup];
            assert_eq!(words(&shot.server), server, "{text}");
            assert_eq!(words(&shot.screen), screen.map(|names| names.get(row)), "{text}");
            assert!(text.contains(server[0]) && (server[1] == "none" || text.contains(server[1])), "{text}");
            let judged = shot.judged.as_ref().expect("all shots of this session are judged");
            let expected = (Some(table.at_us[row]), Some(table.tick[row]), Some(table.rewind_us[row]));
            assert_eq!((judged.at_us, judged.tick, judged.rewind_us), expected, "{text}");
            assert_eq!(judged.limit, table.limit.get(row), "{text}");
            let error = Some(table.view_error_units[row]).filter(|error| !error.is_nan());
            assert_eq!(shot.view_error_units, error, "{text}");
            let is_known = places_agree(trace, &shot, error, &text);
            known[0] += usize::from(error.is_some());
            known[1] += usize::from(is_known && error.is_some());
            aim_agrees(&shot, table.aim_off_degrees[row], &text);
        }
    }
    assert!(
        known[0] > 120 && known[1] * 10 > known[0] * 9,
        "the judged place is known of {} of {}",
        known[1],
        known[0]
    );
}

/// Checks that the three positions agree with the tables and each other. Returns whether the judged position is known.
fn places_agree(trace: &Trace, shot: &ShotExplanation, error: Option<f32>, text: &str) -> bool {
    let origin = |which| shot.place_of(which).and_then(|place| place.origin).map(|origin| origin.as_vec3());
    let (drawn, judged, present) =
        (origin(PositionKind::Drawn), origin(PositionKind::Judged), origin(PositionKind::Present));
    let is_in_present = shot.relocated.is_some_and(|relocated| relocated.is_judged_in_present);
    if let Some(judged) = judged.filter(|_| !is_in_present) {
        let (drawn, error) = (drawn.expect("drawn"), error.expect("nothing is known without a view error"));
        assert!((judged.distance(drawn) - error).abs() <= 0.5, "{text}");
    }
    if let (Some(present), Some(about)) = (present, &shot.about) {
        let table = trace.table(bodies::NAME).unwrap();
        let tick = shot.judged.as_ref().and_then(|judged| judged.tick).unwrap();
        let rows = table.u32s("tick").iter().zip(table.u32s("entity"));
        let row = rows.into_iter().position(|(t, entity)| *t == tick && format!("p{entity}") == *about).unwrap();
        let body = ["origin.x", "origin.y", "origin.z"].map(|name| table.f32s(name)[row]);
        assert_eq!(present.to_array(), body, "{text}");
    }
    judged.is_some()
}

/// The drawn line is the judged line. If the server had the shooter elsewhere, the page says so.
fn aim_agrees(shot: &ShotExplanation, aim_off_degrees: f32, text: &str) {
    let drawn = shot.place_of(PositionKind::Drawn).and_then(|place| place.off);
    let is_of_target = shot.aimed_at.as_ref().map(|(name, _)| name) == shot.about.as_ref();
    if let (Some(off), true) = (drawn, is_of_target) {
        let apart = (off.degrees() - aim_off_degrees).abs().to_radians() * off.ahead_units.hypot(off.distance_units);
        assert_eq!(apart > 0.02, text.contains("at another place than"), "{apart} units:\n{text}");
    }
}

#[test]
fn corrections_agree_with_the_tables() {
    let (_folder, traces) = sessions();
    let trace = &traces[0].1;
    let table = corrections::Columns::of(trace);
    let corrected = |row: &usize| table.fields[*row] > 0;
    let mut counts = [0u32; 4];
    for row in (0..table.rows).filter(corrected) {
        let player = table.player[row];
        counts[player as usize] += 1;
        let asked = WhyQuery::Correction { player, number: counts[player as usize] };
        let why = Why::of(trace, &asked).unwrap();
        let text = text_of(trace, &why);
        let Why::Correction(correction) = why else { panic!("a correction was asked for") };
        assert_eq!((correction.player, correction.command), (player, table.command[row]), "{text}");
        assert_eq!(correction.at_us, Some(table.at_us[row]));
        assert_eq!((correction.reran, &*correction.cause), (Some(table.reran[row]), table.cause.get(row)), "{text}");
        assert_eq!(correction.evidence, table.evidence.get(row));
        assert_eq!(correction.errors.len(), table.fields[row] as usize, "{text}");
        let known = errors::Columns::of(trace);
        let first = (0..known.rows).find(|e| known.player[*e] == player && known.command[*e] == table.command[row]);
        let first = known.field.get(first.unwrap());
        assert!(text.contains(&format!("{first} first")), "{text}");
    }
    assert!(counts.iter().sum::<u32>() > 20, "{counts:?}");
}

#[test]
fn values_missing_in_a_trace_are_shown_as_not_known() {
    let (_folder, mut traces) = sessions();
    let mut trace = traces.remove(0).1;
    let name = ShotName { shooter: 1, command: 95, index: None };
    assert!(!shot(&trace, name).1.contains("not known"));
    for (table, word) in [
        (schema::views::NAME, "drew p3       not known"),
        (schema::frames::NAME, "no picture"),
        (schema::bodies::NAME, "not known"),
    ] {
        trace.tables.retain(|known| known.name != table);
        let (without, text) = shot(&trace, name);
        assert!(text.contains(word), "without {table}:\n{text}");
        assert_eq!(words(&without.server), ["hit", "p3", "head"]);
    }
    trace.tables.retain(|known| known.name == shots::NAME);
    trace.tables[0].columns.retain(|column| ["shooter", "command", "reason"].contains(&&*column.name));
    let (_, text) = shot(&trace, name);
    assert!(text.contains("hit") && text.contains("executed      time not recorded"), "{text}");
    // A long name in a file does not widen the page.
    for column in &mut trace.tables[0].columns {
        if let ColumnData::Name { names, .. } = &mut column.data {
            names.iter_mut().for_each(|name| *name = format!("{}\u{1b}[31m", "wide".repeat(50)));
        }
    }
    assert!(!shot(&trace, name).1.contains('\u{1b}'));
    trace.tables.clear();
    let none = Why::of(&trace, &WhyQuery::Shot(name)).unwrap_err().to_string();
    assert_eq!(none, "there are no shots in it: the server judged none");
    trace.header.mode = "open".to_owned();
    let none = Why::of(&trace, &WhyQuery::Shot(name)).unwrap_err().to_string();
    assert_eq!(none, "there are no shots in it: in open loop, no server judges shots");
}

/// Every usercmd has a pitch and a yaw. A game with another kind of aim leaves them 0, which is no direction.
#[test]
fn a_game_without_view_angles_has_no_line_of_fire() {
    let (_folder, mut traces) = sessions();
    let mut trace = traces.remove(0).1;
    let name = ShotName { shooter: 1, command: 95, index: None };
    for table in &mut trace.tables {
        table.columns.retain(|column| !column.name.contains("viewangles"));
    }
    assert!(shot(&trace, name).0.line.is_some(), "usercmds have yaws");
    let mut set = |table: &str, value: fn(usize) -> f32| {
        let table = trace.tables.iter_mut().find(|known| known.name == table).expect("the table");
        for column in table.columns.iter_mut().filter(|column| ["pitch", "yaw"].contains(&&*column.name)) {
            let ColumnData::F32(values) = &mut column.data else { panic!("angles") };
            values.iter_mut().enumerate().for_each(|(row, angle)| *angle = value(row));
        }
        shot(&trace, name)
    };
    let (without, text) = set(schema::frames::NAME, |_| 0.0);
    assert!(without.line.is_none() && without.places.len() == 3, "{text}");
    assert!(without.places.iter().all(|place| place.off.is_none() && place.origin.is_some()), "{text}");
    let (who, _) = without.aimed_at.clone().expect("a target");
    assert!(text.contains(&format!(" degrees off {who}; the trace has no direction\n")), "{text}");
    let origin = without.places[0].origin.expect("a place");
    assert!(text.contains(&format!("{:.2}, {:.2}, {:.2}", origin.x, origin.y, origin.z)), "{text}");
    assert!(text.contains("no picture: all view angles are 0") && !text.contains("from line"), "{text}");
    let (with, text) = set(schema::frames::NAME, |row| if row == 0 { 1.0 } else { 0.0 });
    assert!(with.line.is_some() && text.contains("from line"), "another usercmd shows that there are angles: {text}");
}

/// If all pitches and yaws of usercmds are 0, the predicted bodies have the direction of a shot.
#[test]
fn a_game_with_an_aim_of_its_own_is_aimed_by_the_view_angles_of_its_bodies() {
    let (_folder, mut traces) = sessions();
    let mut trace = traces.remove(0).1;
    let name = ShotName { shooter: 1, command: 95, index: None };
    let line = shot(&trace, name).0.line.expect("usercmds have yaws");
    let frames = trace.tables.iter_mut().find(|known| known.name == schema::frames::NAME).expect("frames");
    for column in frames.columns.iter_mut().filter(|column| ["pitch", "yaw"].contains(&&*column.name)) {
        let ColumnData::F32(values) = &mut column.data else { panic!("angles") };
        values.fill(0.0);
    }
    let (of_body, text) = shot(&trace, name);
    let of_body = of_body.line.expect("bodies have view angles");
    let off = |here: f32, there: f32| (here - there).abs();
    assert!(off(of_body.yaw, line.yaw) < 0.01 && off(of_body.pitch, line.pitch) < 0.01, "{of_body:?}, not {line:?}");
    assert!(text.contains("from line"), "{text}");

    let frames = trace.tables.iter_mut().find(|known| known.name == schema::frames::NAME).expect("frames");
    frames.columns.retain(|column| column.name != "own.viewangles.x");
    let yaw = frames.columns.iter_mut().find(|column| column.name == "own.viewangles.y").expect("a yaw");
    yaw.name = "own.viewangles".to_owned();
    let flat = shot(&trace, name).0.line.expect("bodies have a yaw");
    assert!(flat.yaw.to_bits() == of_body.yaw.to_bits() && flat.pitch == 0.0, "{flat:?}");
}

#[test]
fn a_usercmd_that_ran_without_firing_did_run() {
    let (_folder, mut traces) = sessions();
    let mut trace = traces.remove(0).1;
    let name = ShotName { shooter: 1, command: 95, index: None };
    assert!(shot(&trace, name).0.executed.is_some_and(|(_, how)| how == "run"));
    let of_shots = trace.tables.iter_mut().find(|known| known.name == shots::NAME).expect("shots");
    let reason = of_shots.columns.iter_mut().find(|column| column.name == "reason").expect("reasons");
    let ColumnData::Name { names, codes } = &mut reason.data else { panic!("names") };
    names.push("not run".to_owned());
    codes.fill(names.len() as u32 - 1);
    let text = shot(&trace, name).1;
    assert!(text.contains("\n  The usercmd ran without firing. ") && !text.contains("Not run"), "{text}");
}

#[test]
fn a_shot_names_what_the_server_judged_instead_of_the_shooters_view() {
    let folder = Folder::empty();
    folder.done("record synth --players 8 --seconds 10 --seed 4 --loss 15% --set client.redundancy=1 -o lost.hitlog");
    let jitter = "--delay-ms 60 --jitter-ms 100 --loss 4% --set client.redundancy=1";
    let claim = "--set lag_compensation.max_claim_error_ms=20";
    folder.done(&format!("record synth --players 6 --seconds 15 {jitter} {claim} -o late.hitlog"));
    let traces = ["lost", "late"].map(|log| trace_of(&folder, &format!("replay {log}.hitlog")));
    let [mut repeated, mut asked, mut cut, mut old] = [0; 4];
    let shots_of = |trace| {
        let reader = TraceRows::new(trace);
        (0..shots::Columns::of(trace).rows).map(move |row| (trace, reader.shot(row)))
    };
    for (trace, shot) in traces.iter().flat_map(shots_of).filter(|(_, shot)| !shot.is_impact) {
        let Some(judged) = &shot.judged else { continue };
        let text = text_of(trace, &Why::Shot(Box::new(shot.clone())));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_stand_in = judged.ran.as_ref().is_some_and(|(_, how)| how == "stood_in");
        assert_eq!(text.contains("repeated the one before and judged its aim, with the view"), is_stand_in, "{text}");
        assert_eq!(text.contains("executed never: the usercmd had not arrived"), is_stand_in, "{text}");
        assert!(!is_stand_in || !text.contains("at another place"), "{text}");
        let is_at_limit = judged.rewind_us == Some(500_000);
        let is_refused = judged.limit == "claim";
        if let Some(drawn) = shot.drawn.as_ref().and_then(|drawn| drawn.at_us).filter(|_| is_refused) {
            let claimed = (judged.at_us.unwrap() - drawn) as f64 / 1e3;
            assert!(text.contains(&format!("the usercmd asked for {claimed:.0} ms; its time")), "{claimed}: {text}");
        }
        assert_eq!(
            text.contains("It ended at lag_compensation.max_unlag_ms (500 ms);"),
            is_refused && is_at_limit,
            "{text}"
        );
        let is_of_old_ack = judged.limit == "max_unlag" && !is_at_limit;
        assert_eq!(text.contains("newest acked snapshot was older than lag_compensation"), is_of_old_ack, "{text}");
        repeated += usize::from(is_stand_in);
        asked += usize::from(is_refused);
        cut += usize::from(is_refused && is_at_limit);
        old += usize::from(is_of_old_ack);
    }
    assert!(repeated > 0 && asked > 10 && cut > 0 && old > 0, "{repeated} {asked} {cut} {old}");
}

#[test]
fn a_missing_shot_is_answered_with_the_nearest_shots() {
    let folder = Folder::empty();
    folder.done("quickstart");
    for (asked, output) in [
        ("p1#94", "there is no shot p1#94; the nearest are p1#"),
        ("p9#95", "p9 did not shoot: choose one of p0, p1, p2, p3"),
        ("--at 1s --player p9", "p9 did not shoot"),
        ("--at 9999s", "no shot was judged within 10 s of 166:39; the nearest is p"),
        ("--at 1:00s", "is not a time: write 40:00"),
        ("--correction 999 --player p2", "p2 has "),
        ("--correction 0 --player p2", "corrections are numbered from 1; players with corrections: p"),
        ("95", "does not name a shot: write player and usercmd number"),
        ("--at soon", "`soon` is not a time: write 40:00"),
        ("--at -40", "no shot was judged within 10 s of -0:40; the nearest is p"),
        ("--at -0:40.5", "no shot was judged within 10 s of -0:40.5; the nearest is p"),
        ("--at 1764000000.2s", "no shot was judged within 10 s of 29400000:00.2; the nearest is p"),
        ("--at 9223372036855", "`9223372036855` is too far: write a time from -153722867280:54.775808 to "),
        ("p1#95 --at 1s", "leave out --at"),
        ("p1#95 --correction 2", "leave out --at"),
        ("--correction 1", "--correction needs a player"),
        ("p1", " why quickstart.hitlog p1#"),
        ("p1 --player p2 --correction 2", "cannot be used with"),
        ("--at 1s --correction 2 --player p1", "cannot be used with"),
        ("", "name a shot (p0#95), a player (p0)"),
    ] {
        let said_it = folder.refused(&format!("why quickstart.hitlog {asked}"));
        assert!(said_it.contains(output), "{asked}: {said_it}");
    }
    let output = folder.refused("why quickstart.hitlog p1#94");
    assert!(output.contains("p1#95"), "{output}");
}

#[test]
fn a_time_may_be_negative_and_finer_than_a_microsecond() {
    let folder = Folder::empty();
    folder.done("quickstart");
    let first = folder.done("why quickstart.hitlog --at 0.2");
    assert_eq!(folder.done("why quickstart.hitlog --at -1.5s"), first);
    assert_eq!(folder.done("why quickstart.hitlog --at 0.200000499"), first);
    let part = folder.done("replay quickstart.hitlog --from -1.5 --to 1.0000001");
    assert!(part.contains("-0:01.5 to 0:01"), "{part}");
    let length = |from: &str| folder.json(&format!("replay quickstart.hitlog {from} --to 1"))["session_us"].clone();
    assert_eq!(length("--from -1.5"), length(""), "only the time of the session counts");
}

#[test]
fn a_shot_and_a_correction_are_explained_and_drawn() {
    let folder = Folder::empty();
    folder.done("quickstart");
    let page = folder.done("why quickstart.hitlog --at 1.55s --player p1 --svg shot.svg");
    let settings = || {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../../snapshots");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings
    };
    settings().bind(|| insta::assert_snapshot!("why_shot", page));
    let page = folder.done("why quickstart.hitlog --correction 2 --player p3");
    settings().bind(|| insta::assert_snapshot!("why_correction", page));
    let svg = text(&fs::read(folder.path("shot.svg")).unwrap());
    assert_eq!((svg.matches("<circle").count(), svg.matches("</svg>").count()), (3, 1), "{svg}");
    // The page, the drawing and the JSON have one answer.
    let json = folder.json("why quickstart.hitlog p1#95 --svg shot.svg");
    let answer = json["answer"].as_str().unwrap();
    assert!(svg.contains(&format!("<desc>{answer}</desc>")), "{svg}");
    assert_eq!(
        (&json["shot"]["server"]["target"], &json["shot"]["places"][0]["which"]),
        (&"p3".into(), &"drawn".into())
    );
    // The result under other rules equals that of `diff` for all shots.
    assert_eq!(json["rejudged"][0]["server"]["reason"], "missed");
    let other =
        folder.json("replay quickstart.hitlog --set lag_compensation.enabled=false --what-if rejudge -o w.hittrace");
    assert_eq!(other["what_if"], "rejudge");
    let why = folder.json("why w.hittrace p1#95");
    assert_eq!((&why["shot"]["server"]["reason"], &why["shot"]["judged"]["limit"]), (&"missed".into(), &"off".into()));
}

/// A shot at the rewind limit is also judged with the longest limit there is, as a replay with that limit judges it.
#[test]
fn a_limited_shot_is_also_judged_with_the_longest_limit() {
    let folder = Folder::empty();
    let longest = "--set lag_compensation.max_unlag_ms=1500";
    folder.done("record synth --players 3 --seconds 20 --delay-ms 550 -o far.hitlog");
    let recorded = trace_of(&folder, "replay far.hitlog");
    let unlimited = trace_of(&folder, &format!("replay far.hitlog {longest} --what-if rejudge"));
    let rows = shots::Columns::of(&recorded).rows;
    let (recorded, unlimited) = (TraceRows::new(&recorded), TraceRows::new(&unlimited));
    let is_limited = |shot: &ShotExplanation| shot.judged.as_ref().is_some_and(|judged| judged.limit == "max_unlag");
    let limited: Vec<usize> = (0..rows)
        .filter(|row| recorded.shot(*row).screen.reason == "hit" && is_limited(&recorded.shot(*row)))
        .collect();
    let mut changed = 0;
    for row in limited.iter().copied().take(5) {
        let (shot, other) = (recorded.shot(row), unlimited.shot(row));
        let json = folder.json(&format!("why far.hitlog {}", shot.name()));
        let rejudged = &json["rejudged"][1];
        assert_eq!(rejudged["setting"], "lag_compensation.max_unlag_ms=1500", "{json}");
        assert_eq!(rejudged["server"]["reason"], other.server.reason, "{}", shot.name());
        changed += usize::from(shot.server.reason != other.server.reason);
        let json = folder.json(&format!("why far.hitlog {longest} {}", shot.name()));
        assert_eq!(json["rejudged"].as_array().unwrap().len(), 1, "its limit is already the longest");
    }
    assert!(changed > 0, "of {}", limited.len());
}

/// The drawn position lies between the two snapshots that the page names, at the fraction that it names.
#[test]
fn targets_are_drawn_from_the_named_snapshots() {
    let (folder, traces) = sessions();
    let session = read_session(&fs::read(folder.path("quickstart.hitlog")).unwrap()[..]).unwrap();
    let fields: Vec<String> = session.header.classes[0].fields.iter().map(|field| field.name.clone()).collect();
    let reader = TraceRows::new(&traces[0].1);
    let mut checked = 0;
    for row in 0..shots::Columns::of(&traces[0].1).rows {
        let mut shot = reader.shot(row);
        shot.know_log(&session);
        let carried = shot.carried.expect("every usercmd was sent");
        let (made, judged) = (shot.made.unwrap().at_us.unwrap(), shot.judged.as_ref().unwrap().at_us.unwrap());
        assert!(made <= carried.sent_us, "{}", shot.name());
        assert!(carried.arrived_us.is_some_and(|at| at > carried.sent_us && (at <= judged || shot.is_impact)));
        let (Some(from), Some(drawn)) =
            (shot.drawn_from, shot.place_of(PositionKind::Drawn).and_then(|place| place.origin))
        else {
            continue;
        };
        let (Some(after), Some(fraction)) = (from.after, from.fraction) else { continue };
        let entity = EntityId(shot.about.as_ref().unwrap()[1..].parse().unwrap());
        let place = |tick| {
            let (_, cells) = session.states.shared(Tick(tick), entity).next().expect("a state");
            let of = |name: &str| f32::from_bits(cells[fields.iter().position(|field| field == name).unwrap()]);
            Vec3::new(of("origin.x"), of("origin.y"), of("origin.z"))
        };
        let between = place(from.before.tick).lerp(place(after.tick), fraction);
        assert!(between.distance(drawn.as_vec3()) < 0.1, "{}: {between} is not {drawn:?}", shot.name());
        checked += 1;
    }
    assert!(checked > 40, "{checked} shots");
}

/// A client without a snapshot draws between others than the server, although no limit applies.
#[test]
fn a_view_error_without_a_limit_names_the_snapshots_that_the_client_lacked() {
    let folder = Folder::empty();
    folder.done("record synth -o lossy.hitlog --players 6 --seconds 60 --seed 3 --loss 10% --no-keyframes");
    let session = store::read_log(&folder.path("lossy.hitlog")).expect("a log");
    let trace = trace_of(&folder, "replay lossy.hitlog");
    let reader = TraceRows::new(&trace);
    let [mut explained, mut exact] = [0, 0];
    for row in 0..shots::Columns::of(&trace).rows {
        let mut shot = reader.shot(row);
        shot.know_log(&session);
        let is_judged = |judged: &JudgedOutcome| judged.limit == "none" && !judged.is_stand_in();
        let error = shot.view_error_units.filter(|_| shot.judged.as_ref().is_some_and(is_judged));
        let Some(error) = error else { continue };
        let Some(judged_from) = shot.judged_from else {
            assert!(error < 0.02, "{}: {error} units without a reason", shot.name());
            exact += 1;
            continue;
        };
        let drawn_from = shot.drawn_from.expect("the snapshots on the screen");
        let lacked = [Some(judged_from.before), judged_from.after].into_iter().flatten();
        let lacked = lacked.filter(|snapshot| ![Some(drawn_from.before), drawn_from.after].contains(&Some(*snapshot)));
        let received = &session.players[shot.shooter as usize].received;
        let made = shot.made.and_then(|made| made.at_us).expect("a client frame");
        for snapshot in lacked {
            let has = |arrival: &ArrivalRecord| arrival.number == snapshot.seq && arrival.at.0 <= made;
            assert!(!received.iter().any(has), "{}: #{}", shot.name(), snapshot.seq);
            if error > 1.0 {
                let answer = folder.done(&format!("why lossy.hitlog {}", shot.name())).replace("\n  ", " ");
                let reason = format!("because p{}'s client drew", shot.shooter);
                assert!(answer.contains(&reason) && answer.contains(&format!("#{}", snapshot.seq)), "{answer}");
            }
        }
        explained += 1;
    }
    assert!(explained > 20 && exact > 100, "{explained} explained, {exact} exact");
}

/// Lag compensation stops at a teleport or spawn: the server judges such a target in the present.
#[test]
fn a_target_that_teleported_or_spawned_since_is_judged_in_the_present() {
    let folder = Folder::empty();
    let late = "--players 8 --no-keyframes --set lag_compensation.max_unlag_ms=1500 --set interpolation.lerp_ms=1000";
    folder.done(&format!("record synth -o tele.hitlog --seed 93 --seconds 60 --delay-ms 60 {late}"));
    let trace = trace_of(&folder, "replay tele.hitlog");
    let reader = TraceRows::new(&trace);
    let bodies = trace.table(bodies::NAME).expect("bodies");
    let body = |tick: u32, entity: u32| {
        let rows = bodies.u32s("tick").iter().zip(bodies.u32s("entity"));
        let row = rows.into_iter().position(|row| row == (&tick, &entity)).expect("a body");
        (bodies.u32s("teleports")[row], bodies.column("alive").unwrap().data.is_zero(row))
    };
    let [mut teleported, mut spawned] = [0, 0];
    for shot in (0..shots::Columns::of(&trace).rows).map(|row| reader.shot(row)) {
        let Some(relocated) = shot.relocated else { continue };
        assert_eq!((shot.view_error_units, relocated.is_judged_in_present), (None, true), "{}", shot.name());
        let entity = shot.about.as_ref().unwrap()[1..].parse().unwrap();
        let [before, after] = [relocated.tick - 1, relocated.tick].map(|tick| body(tick, entity));
        assert_eq!(before.0 + 1, after.0, "{}", shot.name());
        assert_eq!(relocated.how, if before.1 { "spawned" } else { "teleported" }, "{}", shot.name());
        let judged = shot.judged.as_ref().and_then(|judged| judged.at_us.zip(judged.rewind_us)).unwrap();
        assert!((judged.0 - judged.1..=judged.0).contains(&relocated.at_us), "{}", shot.name());
        let [judged, present] =
            [PositionKind::Judged, PositionKind::Present].map(|which| shot.place_of(which).unwrap());
        assert_eq!((judged.origin, judged.at_us), (present.origin, present.at_us), "{}", shot.name());
        *(if relocated.how == "spawned" { &mut spawned } else { &mut teleported }) += 1;
    }
    assert!(teleported > 0 && spawned > 0, "{teleported} teleported, {spawned} spawned");
    let answer = folder.done("why tele.hitlog p5#610").split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "p7 teleported at 9.516 s, after p5's view of p7, so the server judged p7 in the present, ",
        "rewound 1123 ms, to 8.486 s, but p7 in the present",
        "view error not measured across a teleport or spawn: p7 teleported at 9.516 s (tick 609)",
    ] {
        assert!(answer.contains(words), "{words}: {answer}");
    }
}

/// The server rewinds in the position history, to a time in whole ms.
#[test]
fn a_view_error_of_a_drawing_mode_or_of_whole_milliseconds_has_its_reason() {
    let folder = Folder::empty();
    let answers = |set: &str| -> Vec<String> {
        folder.done(&format!("record synth -o of.hitlog --force --seed 11 --seconds 15 {set}"));
        let session = store::read_log(&folder.path("of.hitlog")).expect("a log");
        let trace = trace_of(&folder, "replay of.hitlog");
        let reader = TraceRows::new(&trace);
        let shots = (0..shots::Columns::of(&trace).rows).map(|row| {
            let mut shot = reader.shot(row);
            shot.know_log(&session);
            shot
        });
        let with_error = shots.filter(|shot| {
            let is_unlimited =
                shot.judged.as_ref().is_some_and(|judged| judged.limit == "none" && !judged.is_stand_in());
            is_unlimited && shot.view_error_units.is_some_and(|error| error >= 0.01)
        });
        with_error.map(|shot| why_answer(&Why::Shot(Box::new(shot)), &trace.header.settings)).collect()
    };
    for mode in ["two-point", "off", "extrapolate", "last-rendered", "category"] {
        let reason = format!("drew with interpolation.mode={mode}, and the server rewinds as for `history`");
        let answers = answers(&format!("--set interpolation.mode={mode}"));
        assert!(!answers.is_empty() && answers.iter().all(|answer| answer.contains(&reason)), "{mode}: {answers:?}");
    }
    let whole = answers("--set server.schedule=tick --delay-ms 73");
    let reason = "ms after the drawn one, because `lerp_msec` has whole ms";
    assert!(!whole.is_empty() && whole.iter().all(|answer| answer.contains(reason)), "{whole:?}");
    let lossy = answers("--set server.schedule=tick --delay-ms 73 --loss 10% --set client.redundancy=4");
    let [lacked, named] =
        ["client drew", "lerp_msec"].map(|word| lossy.iter().filter(|answer| answer.contains(word)).count());
    assert!(lacked > 0 && lacked + named == lossy.len(), "{lacked} and {named}: {lossy:?}");
}

/// A trace holds the names of players, so `why`, `bisect ticks` and pages give them without the log.
#[test]
fn players_have_the_names_of_the_recording() {
    let folder = Folder::with_session();
    let mut session = store::read_log(&folder.path("a.hitlog")).expect("a log");
    session.header.players[1].name = "Ann".to_owned();
    folder.save_log("named.hitlog", &session);
    for (log, trace) in [("a.hitlog", "a.hittrace"), ("named.hitlog", "named.hittrace")] {
        folder.done(&format!("replay {log} --force -o {trace}"));
        for source in [log, trace] {
            let answer = folder.done(&format!("why {source} --at 3 --player p1"));
            assert_eq!(answer.contains("p1 is Ann"), log == "named.hitlog", "{answer}");
        }
    }
    folder.done("replay named.hitlog --set prediction.mode=movement -o other.hittrace");
    let found = text(&folder.run("bisect ticks named.hittrace other.hittrace").stdout);
    assert!(found.contains("p1 is Ann") || !found.contains("p1"), "{found}");
}

/// A log with keyframes is replayed around the moment only, and gives the same answers.
#[test]
fn a_log_with_keyframes_gives_the_answers_of_the_whole_replay() {
    let folder = Folder::empty();
    let link = "--delay-ms 60 --jitter-ms 20 --loss 3% --no-keyframes";
    folder.done(&format!("record synth --players 4 --seconds 50 {link} -o whole.hitlog"));
    folder.done("keyframes whole.hitlog --every 5 -o keyed.hitlog");
    let trace = trace_of(&folder, "replay whole.hitlog");
    let table = shots::Columns::of(&trace);
    // Shots, launches and impacts, from the whole session.
    let mut asked: Vec<String> = (0..table.rows)
        .step_by(table.rows / 12)
        .map(|row| format!("p{}#{}", table.shooter[row], table.command[row]))
        .collect();
    let of_reason = |reason: &str| (0..table.rows).rev().find(|row| table.reason.get(*row) == reason).expect("a shot");
    for row in ["launched", "not run"].map(of_reason) {
        asked.push(format!("p{}#{}.{}", table.shooter[row], table.command[row], table.index[row]));
    }
    let moments =
        ["--at 41s", "--at 33.3s --player p2", "--at 0s", "--at 49.9s", "p1 --correction 3", "p3 --correction 9"];
    asked.extend(moments.map(str::to_owned));
    // All corrections of a player: the first, the last, and those around each keyframe.
    let corrected = corrections::Columns::of(&trace);
    let of_p2 = (0..corrected.rows).filter(|row| corrected.player[*row] == 2 && corrected.fields[*row] > 0).count();
    assert!(of_p2 > 15, "{of_p2}");
    asked.extend((1..=of_p2).map(|number| format!("p2 --correction {number}")));
    for asked in &asked {
        let of = |log: &str| {
            let mut answer = folder.json(&format!("why {log} {asked}"));
            assert!(answer["path"].take().is_string());
            answer
        };
        assert_eq!(of("keyed.hitlog"), of("whole.hitlog"), "{asked}");
    }
    for wrong in
        ["p1#1", "p9#95", "--at 9999s", "p2 --correction 0", "p2 --correction 99999", "p9 --correction 1", "p1"]
    {
        let said = |log: &str| folder.refused(&format!("why {log} {wrong}")).replace(log, "LOG");
        assert_eq!(said("keyed.hitlog"), said("whole.hitlog"), "{wrong}");
    }
}

#[test]
fn a_changed_shot_is_explained_on_both_sides() {
    let folder = Folder::empty();
    folder.done("quickstart");
    let line = "diff quickstart.hitlog --b-set lag_compensation.enabled=false --what-if rejudge";
    let found = folder.differs(&format!("{line} --why 2"));
    let changed = &found["hits"]["changed"][1];
    assert_eq!(found["why"]["shot"], format!("p{}#{}", changed["shooter"], changed["command"]));
    for side in ["a", "b"] {
        assert_eq!(found["why"][side]["shot"]["server"]["reason"], changed[side]["reason"]);
    }
    let page = text(&folder.run(&format!("{line} --why 2")).stdout);
    assert!(page.contains("result        ") && page.matches("On the server").count() == 2, "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(folder.refused(&format!("{line} --why 999")).contains("the list has only"));
}

#[test]
fn a_player_is_an_argument_or_an_option_and_diff_counts_changed_shots_first() {
    let folder = Folder::empty();
    folder.done("quickstart");
    let by_option = folder.done("why quickstart.hitlog --correction 2 --player p3");
    assert_eq!(folder.done("why quickstart.hitlog p3 --correction 2"), by_option);
    let line = "diff quickstart.hitlog --b-set lag_compensation.enabled=false --what-if rejudge";
    let page = text(&folder.run(line).stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let story = "the first at 1.406 s; lag_compensation.enabled is false in B. 2 more shots hit in neither, for \
         other reasons or on one side only differs at";
    assert!(page.contains(&format!("24 shots changed, {story}")), "{page}");
}

/// Rockets fly between players and may be drawn nearest to a shot's line, but no shot hits them.
#[test]
fn a_miss_aims_at_an_entity_that_shots_can_hit() {
    let folder = Folder::empty();
    folder.done("record synth --players 16 --seconds 8 --loss 2% --jitter-ms 8 --seed 7 -o a.hitlog");
    let trace = trace_of(&folder, "replay a.hitlog");
    let table = shots::Columns::of(&trace);
    let nearest = (0..table.rows).filter(|row| table.aimed_by.get(*row) == "nearest");
    let aimed: Vec<u32> = nearest.map(|row| table.aimed_at.get(row)[1..].parse().unwrap()).collect();
    assert!(aimed.len() > 40 && aimed.iter().all(|entity| *entity < 16), "{aimed:?}");
}

/// A shot without a prediction has nothing to agree with.
#[test]
fn agreement_is_a_share_of_the_predicted_shots() {
    let folder = Folder::empty();
    folder.done("record synth --players 4 --seconds 8 --set p1.prediction.mode=movement --seed 5 -o a.hitlog");
    let shots = &folder.json("replay a.hitlog")["shots"];
    let [fired, predicted, agreed] = ["fired", "predicted", "agreed"].map(|name| shots[name].as_u64().unwrap());
    assert!(predicted > 0 && predicted + 1 < fired, "{shots}");
    let page = folder.done("replay a.hitlog").split_whitespace().collect::<Vec<_>>().join(" ");
    let share = format!("agree on {agreed} of {predicted} predicted shots (");
    let rest = format!("; {} shots without a prediction", fired - predicted);
    assert!(page.contains(&share) && page.contains(&rest), "{page}");
}

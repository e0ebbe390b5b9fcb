//! Real QuakeWorld demos from ../shared/data as logs. The client pipeline predicts them with the figures in
//! docs/accuracy.md, and the logs keep everything that statistics need.

#![expect(clippy::disallowed_methods, reason = "the test reads files and measures time")]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use rayon::prelude::*;

use crate::built_in::replay;
use hitreg::diff::CellValue;
use hitreg::engine::LogRecords;
use hitreg::game::Simulate;
use hitreg::log::{WriterOptions, read_session, write_session};
use hitreg::page::{PageInput, PageSubject, html};
use hitreg::quakeworld::{
    DemoImportError, ImportOptions, OriginWire, QuakeWorld, QuakeWorldDemo, QuakeWorldRules, import, unpacked,
};
use hitreg::record::{ArrivalRecord, PlayerRecords, Session, SnapshotRecord};
use hitreg::replay;
use hitreg::report::why_page;
use hitreg::score::score;
use hitreg::settings::Settings;
use hitreg::summary::{PredictionShare, PredictionSummary, Summary};
use hitreg::trace::schema::{corrections, errors};
use hitreg::units::{EntityId, PlayerId};
use hitreg::why::{TraceRows, Why};

fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/quakeworld");
    if !data.is_dir() {
        crate::note::skipped("../shared/data is not here");
        return None;
    }
    Some(data)
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A demo, its log, and the duration of the import.
struct DemoCase {
    name: String,
    demo: QuakeWorldDemo,
    session: Session,
    rules: QuakeWorldRules,
    player: PlayerId,
}

impl DemoCase {
    fn new(data: &Path, path: &Path) -> DemoCase {
        let name = path.file_name().expect("name").to_string_lossy().into_owned();
        let packed = read(path);
        let demo = QuakeWorldDemo::parse(&unpacked(&packed).expect("unpacked"))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let map = demo.levels[0].map.trim_start_matches("maps/").to_owned() + ".gz";
        let options = ImportOptions { map_name: Some(map.clone()), force_map: false };
        let started = Instant::now();
        let imported = import(&packed, &read(&data.join("maps").join(map)), &options);
        let session = imported.unwrap_or_else(|error| panic!("{name}: {error}")).session;
        println!("{name}: imported in {:?}", started.elapsed());
        let rules: QuakeWorldRules = rmp_serde::from_slice(&session.header.rules).expect("rules");
        let player = rules.player;
        DemoCase { name, demo, session, rules, player }
    }

    fn records(&self) -> &PlayerRecords {
        &self.session.players[usize::from(self.player.0)]
    }
}

fn drills(data: &Path) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(data.join("drills")).expect("drills");
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.expect("entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= 12, "{} drills", paths.len());
    paths
}

fn matches(data: &Path) -> Vec<PathBuf> {
    [9, 16, 22, 31, 3, 6, 11, 25, 38].map(|number| data.join(format!("matches/demo{number:02}.qwd.xz"))).to_vec()
}

/// The matches in the order of [`matches`]. All tests share one import of each. Tests that wait for it would leave
/// processors idle, so all are imported at the same time.
fn cases(data: &Path) -> std::slice::Iter<'static, DemoCase> {
    static CASES: OnceLock<Vec<DemoCase>> = OnceLock::new();
    CASES.get_or_init(|| matches(data).par_iter().map(|path| DemoCase::new(data, path)).collect()).iter()
}

/// The limits from docs/accuracy.md. The first two are the least shares of exact or near predictions on the ground and
/// in the air, in percent. The next is the greatest number of corrections without a cause. The last is the share on the
/// ground with the values known in play.
const FIGURES: [(usize, usize, [f64; 2], u64, f64); 9] = [
    (9, 968, [99.81, 99.07], 0, 99.81),
    (16, 85_078, [99.69, 99.71], 4, 98.17),
    (22, 42_710, [99.49, 99.68], 3, 99.41),
    (31, 11_731, [98.32, 97.02], 20, 98.23),
    (3, 80_497, [99.75, 99.53], 86, 90.2),
    (6, 92_677, [99.66, 99.54], 49, 98.66),
    (11, 84_229, [99.63, 99.54], 55, 99.34),
    (25, 75_422, [99.44, 99.41], 50, 99.38),
    (38, 73_907, [99.63, 99.7], 10, 99.36),
];

fn replay_case(case: &DemoCase) -> (Summary, hitreg::trace::Trace) {
    let started = Instant::now();
    let replayed = replay(&case.session, &replay::ReplayOptions::default()).expect("replay");
    println!("{}: replayed in {:?}", case.name, started.elapsed());
    (Summary::of(&replayed.trace), replayed.trace)
}

fn right_percent(share: PredictionShare) -> f64 {
    100.0 * (share.exact + share.near) as f64 / share.checked as f64
}

#[test]
fn matches_replay_to_their_figures_and_misses_are_explained() {
    let Some(data) = data() else { return };
    for (case, (number, checked, right, unknown, as_played)) in cases(&data).zip(FIGURES) {
        let (summary, trace) = replay_case(case);
        let prediction = summary.prediction;
        let found = [prediction.ground, prediction.air].map(right_percent);
        println!("demo{number:02}: {found:?} {prediction:?}");
        println!("demo{number:02}: {}", evidence(trace.table("corrections").expect("table")));
        assert_eq!(prediction.checked as usize, checked, "demo{number:02}");
        assert!(found[0] >= right[0] && found[1] >= right[1], "demo{number:02}: {found:?}");
        assert!(prediction.misses_by_cause.get("unknown").copied().unwrap_or(0) <= unknown, "demo{number:02}");
        let played = prediction.as_played.expect("imports count both ways");
        println!("demo{number:02} as played: {:?}", [played.ground, played.air].map(right_percent));
        assert!(right_percent(played.ground) >= as_played, "demo{number:02}");
        assert_eq!(summary.exercised.usercmds, case.demo.commands.len() as u64, "demo{number:02}");
    }
}

#[test]
fn drills_are_predicted() {
    let Some(data) = data() else { return };
    let (mut all, mut floats) = ([PredictionShare::default(); 2], [PredictionShare::default(); 2]);
    let add = |to: &mut [PredictionShare; 2], from: [PredictionShare; 2]| {
        for (to, from) in to.iter_mut().zip(from) {
            to.checked += from.checked;
            to.exact += from.exact;
            to.near += from.near;
        }
    };
    for path in drills(&data) {
        let case = DemoCase::new(&data, &path);
        let prediction = replay_case(&case).0.prediction;
        add(&mut all, [prediction.ground, prediction.air]);
        if case.demo.server.origin_wire() == OriginWire::Float {
            add(&mut floats, [prediction.ground, prediction.air]);
        }
    }
    for (name, [ground, air]) in [("drills", all), ("float origins", floats)] {
        println!("{name}: {ground:?} {air:?}");
        assert!(ground.checked + air.checked > 1_000, "{name}");
        assert_eq!((right_percent(ground), right_percent(air)), (100.0, 100.0), "{name}");
    }
}

#[test]
fn predictions_with_values_known_in_play_miss_lifts() {
    let Some(data) = data() else { return };
    let case = cases(&data).nth(1).expect("demo16");
    let mut settings = Settings::from_pairs(&case.session.header.settings).expect("settings");
    settings.set("prediction.among", "known").expect("key");
    let options = replay::ReplayOptions { settings: Some(settings), ..replay::ReplayOptions::default() };
    let replayed = replay(&case.session, &options).expect("replay");
    let known = Summary::of(&replayed.trace).prediction;
    println!("demo16 among the bodies known in play: {known:?}");
    let as_the_server = self::replay_case(case).0.prediction;
    let movers = |prediction: &PredictionSummary| prediction.misses_by_cause.get("mover").copied().unwrap_or(0);
    assert!(known.as_played.is_none());
    assert!(movers(&known) > movers(&as_the_server) + 100, "{known:?}");
}

fn evidence(corrections: &hitreg::trace::Table) -> String {
    let Some(hitreg::trace::ColumnData::Name { names, codes }) = corrections.column("evidence").map(|c| &c.data) else {
        panic!("no evidence column");
    };
    let count = |code: usize| codes.iter().filter(|c| **c as usize == code).count();
    let counted = names.iter().enumerate().skip(1).map(|(code, name)| format!("{} {name}", count(code)));
    counted.collect::<Vec<_>>().join(", ")
}

/// Values of the data's README, which counts packets with the player's state: usercmds, packets, other states, lost,
/// choked, RTT in ms.
const EXPECTED: [(usize, [usize; 5], Option<[f64; 4]>); 4] = [
    (9, [1055, 969, 2399, 86, 86], None),
    (16, [86_582, 85_079, 133_207, 1_486, 0], Some([41.0, 42.0, 57.0, 70.0])),
    (22, [43_904, 42_713, 22_904, 1_191, 1_021], Some([42.0, 42.0, 42.0, 46.0])),
    (31, [41_072, 11_734, 3_658, 28_025, 26_276], Some([176.0, 212.0, 286.0, 511.0])),
];

#[test]
fn counts_equal_those_of_the_data() {
    let Some(data) = data() else { return };
    for (case, (number, counts, rtt)) in cases(&data).zip(EXPECTED) {
        let records = case.records();
        let states = case.session.states.keys().iter().map(|key| key.entity);
        let others = states.clone().filter(|entity| usize::from(entity.0) < case.session.players.len());
        let own = states.filter(|entity| *entity == case.player.entity()).count();
        let with_own = packets_with(records, case.player.entity());
        let lost: u32 = with_own.windows(2).map(|pair| pair[1].0.seq.0 - pair[0].0.seq.0 - 1).sum();
        let last = with_own.last().expect("packets").0.seq;
        let in_play = records.snapshots.iter().filter(|snapshot| snapshot.seq <= last);
        let choked: usize = in_play.map(|snapshot| usize::from(snapshot.choked)).sum();
        let found = [records.frames.len(), own, others.count() - own, lost as usize, choked];
        println!("demo{number:02}: {found:?}, {} snapshots, expected {counts:?}", records.snapshots.len());
        assert_eq!(found, counts, "demo{number:02}");
        let round_trips = round_trips_ms(records, &with_own);
        println!("demo{number:02}: round trips {round_trips:?}");
        for (found, expected) in round_trips.iter().zip(rtt.iter().flatten()) {
            assert!((found - expected).abs() <= 1.0, "demo{number:02}: {found} ms, not {expected}");
        }
    }
}

/// Returns the snapshots that show an entity, and their arrivals.
fn packets_with(records: &PlayerRecords, entity: EntityId) -> Vec<(&SnapshotRecord, &ArrivalRecord)> {
    let arrived = records.snapshots.iter().zip(&records.received);
    arrived.filter(|(snapshot, _)| snapshot.entities.contains(&entity)).collect()
}

/// Percentiles 5, 50, 95 and 99 of ack arrival minus send time of the acked usercmd.
fn round_trips_ms(records: &PlayerRecords, acked: &[(&SnapshotRecord, &ArrivalRecord)]) -> [f64; 4] {
    let sent = |seq| {
        let index = records.frames.binary_search_by_key(&seq, |frame| frame.command.seq).ok()?;
        Some(records.frames[index].at)
    };
    let mut round_trips: Vec<f64> =
        acked.iter().filter_map(|(snapshot, arrival)| Some((arrival.at - sent(snapshot.ack)?).as_ms_f64())).collect();
    round_trips.sort_by(f64::total_cmp);
    [5, 50, 95, 99].map(|percent| round_trips[round_trips.len() * percent / 100])
}

#[test]
fn others_are_drawn_better_from_the_history() {
    let Some(data) = data() else { return };
    for case in cases(&data) {
        let mut settings = Settings::from_pairs(&case.session.header.settings).expect("settings");
        settings.set("interpolation.lerp_ms", "100").expect("key");
        let scores = score::<QuakeWorld>(
            &case.session.header,
            replay::ReorderWindow::default(),
            &mut |take| take(case.session.clone().without_header()),
            &case.rules,
            &settings,
            replay::Part::WHOLE,
        )
        .expect("states");
        for mode in &scores {
            println!("{}: {mode:?}", case.name);
            assert!(mode.samples > 0, "{}: {}", case.name, mode.mode);
        }
        let p95 = |mode: &str| {
            scores.iter().find(|s| s.mode == mode).and_then(|s| s.error_units.as_ref()).expect("errors").p95
        };
        assert!(p95("history") < p95("off"), "{}", case.name);
    }
}

#[test]
fn a_log_is_small_and_reads_back() {
    let Some(data) = data() else { return };
    for (case, path) in cases(&data).zip(matches(&data)) {
        let started = Instant::now();
        let bytes = write_session(Vec::new(), &case.session, WriterOptions::whole()).expect("log");
        let packed = std::fs::metadata(&path).expect("demo").len() as usize;
        let per_command = bytes.len() as f64 / case.records().frames.len() as f64;
        println!(
            "{}: {} bytes ({per_command:.1} per usercmd) of {packed}, in {:?}",
            case.name,
            bytes.len(),
            started.elapsed()
        );
        println!("{}: {} bytes of rules", case.name, case.session.header.rules.len());
        if case.name == "demo16.qwd.xz" {
            assert!(bytes.len() < 1_255_000, "{}", case.name);
        }
        assert!(read_session(&bytes[..]).expect("session") == case.session, "{}", case.name);
    }
}

#[test]
fn another_map_than_the_demos_is_refused() {
    let Some(data) = data() else { return };
    let demo = read(&data.join("matches/demo22.qwd.xz"));
    let dm3 = read(&data.join("maps/dm3.bsp.gz"));
    let named = ImportOptions { map_name: Some("dm3.bsp.gz".to_owned()), force_map: false };
    let error = import(&demo, &dm3, &named).expect_err("another map");
    assert!(matches!(&error, DemoImportError::OtherMap { demo, map } if demo == "dm4" && map == "dm3"), "{error}");
    let error = import(&demo, &dm3, &ImportOptions::default()).expect_err("another map");
    assert!(matches!(error, DemoImportError::InWalls { .. }), "{error}");
    println!("{error}");
    let forced = import(&demo, &dm3, &ImportOptions { force_map: true, ..named }).expect("forced");
    assert_eq!(QuakeWorld::map_name(&rmp_serde::from_slice(&forced.session.header.rules).expect("rules")), "dm4");
}

#[test]
fn corrections_of_a_real_match_agree_with_the_tables() {
    let Some(data) = data() else { return };
    let case = cases(&data).nth(1).expect("demo16");
    let trace = replay(&case.session, &replay::ReplayOptions::default()).expect("replayed").trace;
    let (table, frames) = (corrections::Columns::of(&trace), trace.table("frames").expect("frames"));
    let errors = errors::Columns::of(&trace);
    let explained = TraceRows::new(&trace).corrections();
    let rows: Vec<usize> = (0..table.rows).filter(|row| table.fields[*row] > 0).collect();
    assert_eq!(explained.len(), rows.len());
    for (correction, row) in explained.iter().zip(rows).take(100) {
        let command = table.command[row];
        assert_eq!((correction.player, correction.command), (table.player[row], command));
        assert_eq!((correction.at_us, correction.reran), (Some(table.at_us[row]), Some(table.reran[row])));
        assert_eq!((&*correction.cause, &*correction.evidence), (table.cause.get(row), table.evidence.get(row)));
        assert_eq!(correction.error_units, Some(table.error_units[row]));
        let made = frames.u32s("command").iter().position(|made| *made == command).expect("a frame");
        assert_eq!(correction.made_us, Some(frames.i64s("at_us")[made]));
        let known: Vec<usize> = (0..errors.rows).filter(|row| errors.command[*row] == command).collect();
        assert_eq!(correction.errors.len(), known.len());
        for (error, row) in correction.errors.iter().zip(known) {
            assert_eq!(error.field, errors.field.get(row));
            let known = [errors.predicted[row], errors.authoritative[row]].map(CellValue::Float);
            assert_eq!([&error.predicted, &error.authoritative], known.each_ref());
        }
        let text = why_page(&Why::Correction(Box::new(correction.clone())), &[], &[]).text();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains(&table.cause.get(row).replace('_', " ")), "{text}");
    }
    assert!(explained.len() >= 100);

    // The report shows the match within the map's walls: the player is never far outside.
    let walls = QuakeWorld::outline(&case.rules);
    let ends = || walls.iter().filter(|wall| wall.of.is_none()).flat_map(|wall| [wall.from, wall.to]);
    let reach = |axis: usize| ends().fold((f32::MAX, f32::MIN), |(a, b), end| (a.min(end[axis]), b.max(end[axis])));
    for (axis, name) in ["own.origin.x", "own.origin.y"].into_iter().enumerate() {
        let (least, most) = reach(axis);
        let inside = |at: &&f32| (least..=most).contains(*at);
        let own = frames.f32s(name);
        assert!(own.iter().filter(inside).count() * 100 > own.len() * 98, "{name} within {least} to {most}");
    }
    assert!(walls.len() > 1_000 && walls.iter().any(|wall| wall.of.is_some()), "{} walls", walls.len());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("demo16.hitlog");
    let bytes = write_session(Vec::new(), &case.session, WriterOptions::whole()).expect("a log");
    std::fs::write(&path, bytes).expect("written");
    let log = LogRecords::open(&path, replay::Part::WHOLE).expect("a log");
    let side = PageInput { name: "demo16", map: "dm3", trace: &trace, log: Some(&log), rejudged: &[], notes: &[] };
    let page = html(&PageSubject { sides: &[side], walls: &walls, difference: None }).expect("a page");
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

//! Real QuakeWorld demos from ../shared/data as logs: nothing that predictions or statistics need is lost on the way, and
//! the log replays to the same figures as the demo.

#![expect(clippy::disallowed_methods, reason = "reads the data, and says how long things take")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hitreg::game::Game;
use hitreg::log::{Options, read_session, write_session};
use hitreg::quakeworld::{
    Bodies, Demo, ImportError, ImportOptions, QuakeWorld, Rules, ServerPacket, Span, Verdict, import, open_loop,
    recorded_demo, unpacked,
};
use hitreg::record::{PlayerRecords, Session};
use hitreg::replay::{self, replay};
use hitreg::score::score;
use hitreg::settings::Settings;
use hitreg::summary::Summary;
use hitreg::units::PlayerId;

fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/quakeworld");
    if !data.is_dir() {
        eprintln!("skipped: {} is not there", data.display());
        return None;
    }
    Some(data)
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A demo, its log, and how long it took to make it.
struct Case {
    name: String,
    demo: Demo,
    session: Session,
    rules: Rules,
    player: PlayerId,
}

impl Case {
    fn new(data: &Path, path: &Path) -> Case {
        let name = path.file_name().expect("name").to_string_lossy().into_owned();
        let packed = read(path);
        let demo = Demo::parse(&unpacked(&packed).expect("unpacked")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let map = demo.levels[0].map.trim_start_matches("maps/").to_owned() + ".gz";
        let options = ImportOptions { map_name: Some(map.clone()), force_map: false };
        let started = Instant::now();
        let session = import(&packed, &read(&data.join("maps").join(map)), &options)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}: imported in {:?}", started.elapsed());
        let rules: Rules = rmp_serde::from_slice(&session.header.rules).expect("rules");
        let player = rules.player;
        Case { name, demo, session, rules, player }
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
    [9, 16, 22, 31].map(|number| data.join(format!("matches/demo{number:02}.qwd.xz"))).to_vec()
}

/// What a log keeps of a demo: the packets with the player's state, with the events of those without since the last.
fn in_play(demo: &Demo) -> Demo {
    let mut kept =
        Demo { packets: Vec::new(), others: Vec::new(), movers: Vec::new(), events: Vec::new(), ..demo.clone() };
    let first = demo.packets.iter().position(|packet| packet.own.is_some()).expect("a state");
    let mut told = 0;
    for packet in &demo.packets[first..] {
        kept.events.extend_from_slice(packet.events.of(&demo.events));
        if packet.own.is_some() {
            let others = add(&mut kept.others, packet.others.of(&demo.others));
            let movers = add(&mut kept.movers, packet.movers.of(&demo.movers));
            let events = Span { start: told, end: kept.events.len() as u32 };
            told = events.end;
            kept.packets.push(ServerPacket { others, movers, events, ..*packet });
        }
    }
    kept.events.truncate(told as usize);
    kept
}

fn add<T: Copy>(to: &mut Vec<T>, items: &[T]) -> Span {
    let start = to.len() as u32;
    to.extend_from_slice(items);
    Span { start, end: to.len() as u32 }
}

#[test]
fn a_demo_comes_back_from_its_log_exactly() {
    let Some(data) = data() else { return };
    for path in drills(&data).into_iter().chain(matches(&data)) {
        let case = Case::new(&data, &path);
        let mut back = recorded_demo(&case.session, &case.rules, case.player).expect("a demo");
        let mut demo = in_play(&case.demo);
        let mut coarse = 0;
        for (time, was) in times(&mut back).zip(times(&mut demo)) {
            assert!((f64::from(*time) - f64::from(*was)).abs() <= 0.5e-6, "{}: {time} was {was}", case.name);
            coarse += usize::from(time != was);
            assert!(time == was || *was < 16.0, "{}: {time} was {was}", case.name);
            *time = *was;
        }
        println!("{}: {coarse} times are known to the microsecond only", case.name);
        assert!(back.server == demo.server && back.levels == demo.levels && back.end == demo.end, "{}", case.name);
        assert!(back.commands == demo.commands && back.move_vars == demo.move_vars, "{}", case.name);
        for (packet, was) in back.packets.iter().zip(&demo.packets) {
            assert_eq!(packet, was, "{}", case.name);
        }
        assert!(back == demo, "{}", case.name);
    }
}

fn times(demo: &mut Demo) -> impl Iterator<Item = &mut f32> {
    demo.commands.iter_mut().map(|sent| &mut sent.time_s).chain(demo.packets.iter_mut().map(|p| &mut p.time_s))
}

#[derive(Debug, Default, PartialEq)]
struct Figures {
    checked: u64,
    exact: u64,
    near: u64,
    ground: [u64; 3],
    air: [u64; 3],
    misses_by_cause: BTreeMap<String, u64>,
}

/// The figures of a demo without any log.
fn direct(case: &Case) -> Figures {
    let mut figures = Figures::default();
    open_loop(&case.demo, &case.rules.map, Bodies::Acking, |check| {
        let prediction = &check.prediction;
        let (exact, near) =
            (u64::from(prediction.verdict == Verdict::Exact), u64::from(prediction.verdict == Verdict::Near));
        let share = if prediction.given.from.on_ground { &mut figures.ground } else { &mut figures.air };
        for (sum, count) in share.iter_mut().zip([1, exact, near]) {
            *sum += count;
        }
        figures.checked += 1;
        figures.exact += exact;
        figures.near += near;
        if prediction.verdict == Verdict::Miss {
            let (cause, _) = prediction.explain();
            let name = match cause.name() {
                "input late or choked" => "input_late".to_owned(),
                "damage or knockback" => "knockback".to_owned(),
                name => name.replace(' ', "_"),
            };
            *figures.misses_by_cause.entry(name).or_default() += 1;
        }
    });
    figures
}

fn replayed(case: &Case) -> (Summary, hitreg::trace::Trace) {
    let started = Instant::now();
    let replayed = replay::<QuakeWorld>(&case.session, &replay::Options::default(), &mut |_| {}).expect("replay");
    println!("{}: replayed in {:?}", case.name, started.elapsed());
    (Summary::of(&replayed.trace), replayed.trace)
}

#[test]
fn a_log_replays_to_the_figures_of_its_demo() {
    let Some(data) = data() else { return };
    for path in drills(&data).into_iter().chain(matches(&data)) {
        let case = Case::new(&data, &path);
        let (summary, trace) = replayed(&case);
        let prediction = summary.prediction;
        let share = |s: hitreg::summary::Share| [s.checked, s.exact, s.near];
        let figures = Figures {
            checked: prediction.checked,
            exact: prediction.exact,
            near: prediction.near,
            ground: share(prediction.ground),
            air: share(prediction.air),
            misses_by_cause: prediction.misses_by_cause,
        };
        println!("{}: {figures:?}", case.name);
        assert_eq!(figures, direct(&case), "{}", case.name);
        assert!(figures.checked > 0, "{}", case.name);
        assert_eq!(summary.exercised.usercmds, case.demo.commands.len() as u64, "{}", case.name);
        let corrections = trace.table("corrections").expect("table");
        println!("{}: {}", case.name, evidence(corrections));
    }
}

fn evidence(corrections: &hitreg::trace::Table) -> String {
    let Some(hitreg::trace::Data::Name { names, codes }) = corrections.column("evidence").map(|c| &c.data) else {
        panic!("no evidence column");
    };
    let count = |code: usize| codes.iter().filter(|c| usize::from(**c) == code).count();
    let counted = names.iter().enumerate().skip(1).map(|(code, name)| format!("{} {name}", count(code)));
    counted.collect::<Vec<_>>().join(", ")
}

/// As the data's README says: usercmds, packets, other states, lost, choked, RTT in ms.
const EXPECTED: [(usize, [usize; 5], Option<[f64; 4]>); 4] = [
    (9, [1055, 969, 2399, 86, 86], None),
    (16, [86_582, 85_079, 133_207, 1_486, 0], Some([41.0, 42.0, 57.0, 70.0])),
    (22, [43_904, 42_713, 22_904, 1_191, 1_021], Some([42.0, 42.0, 42.0, 46.0])),
    (31, [41_072, 11_734, 3_658, 28_025, 26_276], Some([176.0, 212.0, 286.0, 511.0])),
];

#[test]
fn counts_are_those_of_the_data() {
    let Some(data) = data() else { return };
    for (path, (number, counts, rtt)) in matches(&data).iter().zip(EXPECTED) {
        let case = Case::new(&data, path);
        let records = case.records();
        let states = case.session.states.keys().iter().map(|key| key.entity);
        let others = states.clone().filter(|entity| usize::from(entity.0) < case.session.players.len());
        let own = states.filter(|entity| *entity == case.player.entity()).count();
        let lost: u32 = records.snapshots.windows(2).map(|pair| pair[1].seq.0 - pair[0].seq.0 - 1).sum();
        let choked: usize = records.snapshots.iter().map(|s| usize::from(s.choked)).sum();
        let found = [records.frames.len(), own, others.count() - own, lost as usize, choked];
        println!("demo{number:02}: {found:?}, {} snapshots, expected {counts:?}", records.snapshots.len());
        assert_eq!(found, counts, "demo{number:02}");
        let round_trips = round_trips_ms(records);
        println!("demo{number:02}: round trips {round_trips:?}");
        for (found, expected) in round_trips.iter().zip(rtt.iter().flatten()) {
            assert!((found - expected).abs() <= 1.0, "demo{number:02}: {found} ms, not {expected}");
        }
    }
}

/// Percentiles 5, 50, 95 and 99 of ack arrival minus send time of the acked usercmd.
fn round_trips_ms(records: &PlayerRecords) -> [f64; 4] {
    let sent = |seq| {
        let index = records.frames.binary_search_by_key(&seq, |frame| frame.command.seq).ok()?;
        Some(records.frames[index].at)
    };
    let acked = records.snapshots.iter().zip(&records.received);
    let mut round_trips: Vec<f64> =
        acked.filter_map(|(snapshot, arrival)| Some((arrival.at - sent(snapshot.ack)?).as_ms_f64())).collect();
    round_trips.sort_by(f64::total_cmp);
    [5, 50, 95, 99].map(|percent| round_trips[round_trips.len() * percent / 100])
}

#[test]
fn others_are_drawn_better_from_the_history() {
    let Some(data) = data() else { return };
    for path in matches(&data) {
        let case = Case::new(&data, &path);
        let mut settings = Settings::from_pairs(&case.session.header.settings).expect("settings");
        settings.set("interpolation.lerp_ms", "100").expect("key");
        let scores = score::<QuakeWorld>(&case.session, &case.rules, &settings).expect("states");
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
    for path in matches(&data) {
        let case = Case::new(&data, &path);
        let started = Instant::now();
        let bytes = write_session(Vec::new(), &case.session, Options::whole()).expect("log");
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
            assert!(bytes.len() < 3_250_000, "{}", case.name);
        }
        assert!(read_session(&bytes[..]).expect("session") == case.session, "{}", case.name);
    }
}

#[test]
fn a_map_that_is_not_the_demos_is_refused() {
    let Some(data) = data() else { return };
    let demo = read(&data.join("matches/demo22.qwd.xz"));
    let dm3 = read(&data.join("maps/dm3.bsp.gz"));
    let named = ImportOptions { map_name: Some("dm3.bsp.gz".to_owned()), force_map: false };
    let error = import(&demo, &dm3, &named).expect_err("another map");
    assert!(matches!(&error, ImportError::OtherMap { demo, map } if demo == "dm4" && map == "dm3"), "{error}");
    let error = import(&demo, &dm3, &ImportOptions::default()).expect_err("another map");
    assert!(matches!(error, ImportError::InWalls { .. }), "{error}");
    println!("{error}");
    let forced = import(&demo, &dm3, &ImportOptions { force_map: true, ..named }).expect("forced");
    assert_eq!(QuakeWorld::map_name(&rmp_serde::from_slice(&forced.header.rules).expect("rules")), "dm4");
}

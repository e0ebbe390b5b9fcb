//! Real QuakeWorld demos from ../shared/data: import, statistics, and predictions against the recorded truth.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use hitreg::quakeworld::{Bodies, Cause, Demo, Map, OriginWire, Statistics, Verdict, open_loop};

fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/quakeworld");
    if !data.is_dir() {
        eprintln!("skipped: {} is not there", data.display());
        return None;
    }
    Some(data)
}

fn read(path: &Path) -> Vec<u8> {
    let raw = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut out = Vec::new();
    match path.extension().and_then(|e| e.to_str()) {
        Some("xz") => lzma_rust2::XzReader::new(&raw[..], true).read_to_end(&mut out),
        Some("gz") => flate2::read::GzDecoder::new(&raw[..]).read_to_end(&mut out),
        _ => return raw,
    }
    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    out
}

fn import(path: &Path) -> Demo {
    Demo::parse(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn matched(data: &Path, number: u8) -> Demo {
    import(&data.join(format!("matches/demo{number:02}.qwd.xz")))
}

fn map_of(data: &Path, demo: &Demo) -> Map {
    let name = demo.levels[0].map.trim_start_matches("maps/");
    Map::parse(&read(&data.join("maps").join(format!("{name}.gz")))).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Checked, exact, exact or near: predictions, and the usercmds that they ran.
#[derive(Clone, Copy, Default)]
struct Score([usize; 3], [usize; 3]);

impl Score {
    fn add(&mut self, verdict: Verdict, usercmds: usize) {
        let passed = [true, verdict == Verdict::Exact, verdict != Verdict::Miss];
        for (n, passed) in passed.into_iter().enumerate() {
            self.0[n] += usize::from(passed);
            self.1[n] += if passed { usercmds } else { 0 };
        }
    }

    fn percent(&self) -> [f64; 2] {
        [1, 2].map(|n| 100.0 * self.0[n] as f64 / self.0[0].max(1) as f64)
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [exact, near] = self.percent();
        write!(f, "{:6} checked, exact {exact:6.2} %, exact or near {near:6.2} %", self.0[0])?;
        write!(f, " ({:.2} % of {} usercmds)", 100.0 * self.1[2] as f64 / self.1[0].max(1) as f64, self.1[0])
    }
}

#[derive(Default)]
struct Scores {
    ground: Score,
    air: Score,
    causes: BTreeMap<Cause, usize>,
}

impl Scores {
    fn run(&mut self, demo: &Demo, map: &Map, bodies: Bodies) {
        open_loop(demo, map, bodies, |check| {
            let prediction = &check.prediction;
            let score = if prediction.given.from.on_ground { &mut self.ground } else { &mut self.air };
            score.add(prediction.verdict, check.commands.len());
            if prediction.verdict == Verdict::Miss {
                let (cause, _) = prediction.explain();
                *self.causes.entry(cause).or_default() += 1;
            }
        });
    }

    fn checked(&self) -> usize {
        self.ground.0[0] + self.air.0[0]
    }

    fn causes(&self, which: impl Fn(Cause) -> bool) -> usize {
        self.causes.iter().filter(|(cause, _)| which(**cause)).map(|(_, count)| count).sum()
    }

    fn unknown_percent(&self) -> f64 {
        100.0 * self.causes(|cause| cause == Cause::Unknown) as f64 / self.checked() as f64
    }

    /// Exact or near among the predictions without a recorded outside cause.
    fn inside_percent(&self) -> f64 {
        let inside = self.checked() - self.causes(Cause::is_outside);
        100.0 - 100.0 * self.causes(|cause| !cause.is_outside()) as f64 / inside as f64
    }

    fn print(&self, name: &str) {
        println!("{name}: ground {}", self.ground);
        println!("{name}: air    {}", self.air);
        for (cause, count) in &self.causes {
            println!("{name}: {count:5} misses: {}", cause.name());
        }
        println!(
            "{name}: unknown {:.3} %, without outside cause {:.3} %",
            self.unknown_percent(),
            self.inside_percent()
        );
    }
}

#[test]
fn drills_are_predicted() {
    let Some(data) = data() else { return };
    let mut all = Scores::default();
    let mut floats = Scores::default();
    let folder = std::fs::read_dir(data.join("drills")).expect("drills");
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.expect("entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= 12, "{} drills", paths.len());
    for path in paths {
        let demo = import(&path);
        let map = map_of(&data, &demo);
        all.run(&demo, &map, Bodies::Acking);
        if demo.server.origin_wire() == OriginWire::Float {
            floats.run(&demo, &map, Bodies::Acking);
        }
    }
    for (name, scores) in [("drills", &all), ("float origins", &floats)] {
        scores.print(name);
        assert!(scores.checked() > 1_000, "{name}");
        assert!(scores.air.percent()[1] >= 99.0, "{name}");
        assert!(scores.ground.percent()[1] >= 99.8, "{name}");
    }
}

#[test]
fn matches_are_predicted_and_misses_explained() {
    let Some(data) = data() else { return };
    for number in [16, 22] {
        let demo = matched(&data, number);
        let map = map_of(&data, &demo);
        let name = format!("demo{number}");
        let mut scores = Scores::default();
        scores.run(&demo, &map, Bodies::Acking);
        scores.print(&name);
        assert!(scores.ground.percent()[1] >= 98.8, "{name}");
        assert!(scores.air.percent()[1] >= 98.0, "{name}");
        assert!(scores.inside_percent() >= 99.5, "{name}");
        assert!(scores.unknown_percent() < 0.5, "{name}");
        let mut blind = Scores::default();
        blind.run(&demo, &map, Bodies::Acked);
        blind.print(&format!("{name}, bodies as the client knew them"));
    }
}

#[test]
fn a_modem_player_is_predicted() {
    let Some(data) = data() else { return };
    let demo = matched(&data, 31);
    let mut scores = Scores::default();
    scores.run(&demo, &map_of(&data, &demo), Bodies::Acking);
    scores.print("demo31");
    assert!(scores.ground.percent()[1] > 78.8 && scores.air.percent()[1] > 72.5);
    assert!(scores.unknown_percent() < 3.0);
    assert!(scores.causes(|cause| cause == Cause::InputLost) > 0);
}

#[test]
fn statistics_are_those_of_the_data() {
    let Some(data) = data() else { return };
    // Usercmds, firing, packets, other players' states, lost; round trips, as the data's README gives them.
    let known = [
        (16, [86_582, 12_323, 85_079, 133_207, 1_486], [41.0, 42.0, 57.0, 70.0]),
        (22, [43_904, 5_456, 42_713, 22_904, 1_191], [42.0, 42.0, 42.0, 46.0]),
        (31, [41_072, 2_391, 11_734, 3_658, 28_025], [176.0, 212.0, 286.0, 511.0]),
    ];
    for (number, counts, rtt_ms) in known {
        let statistics = matched(&data, number).statistics();
        let Statistics { usercmds, firing, packets, other_states, lost, choked, rtt_ms: measured } = statistics;
        println!("demo{number}: {statistics:?}");
        assert_eq!([usercmds, firing, packets, other_states, lost], counts, "demo{number}");
        for (given, measured) in rtt_ms.into_iter().zip([measured.p5, measured.p50, measured.p95, measured.p99]) {
            assert!((given - measured).abs() < 1.0, "demo{number}: {given} ms, measured {measured}");
        }
        // The README counts one choked packet more in demo31, before the first state.
        assert!(number != 22 || choked == 1_021);
        assert!(number != 31 || choked.abs_diff(26_276) <= 1);
    }
    assert_eq!(matched(&data, 9).statistics().usercmds, 1_055);
}

#[test]
fn a_damaged_recording_is_refused_or_read() {
    let Some(data) = data() else { return };
    let whole = read(&data.join("drills/highbridge-to-rl.qwd"));
    for len in (0..whole.len()).step_by(97) {
        if let Err(error) = Demo::parse(&whole[..len]) {
            assert!(!error.to_string().is_empty());
        }
    }
    for at in (0..whole.len()).step_by(61) {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        if let Ok(demo) = Demo::parse(&bad) {
            assert!(demo.commands.len() * 41 <= bad.len());
        }
    }
    let map = read(&data.join("maps/dm4.bsp.gz"));
    for at in (0..map.len()).step_by(4_099) {
        let mut bad = map.clone();
        bad[at] ^= 1 << (at % 8);
        let _ = Map::parse(&bad);
        let _ = Map::parse(&bad[..at]);
    }
}

#[test]
#[ignore = "measures time; run alone, in release"]
#[expect(clippy::disallowed_methods, reason = "this test measures speed")]
fn a_usercmd_takes_under_two_microseconds() {
    let Some(data) = data() else { return };
    let demo = matched(&data, 16);
    let map = map_of(&data, &demo);
    let each_us = (0..7).map(|_| {
        let started = std::time::Instant::now();
        let mut usercmds = 0;
        open_loop(&demo, &map, Bodies::Acking, |check| usercmds += check.commands.len());
        assert!(usercmds > 80_000);
        started.elapsed().as_secs_f64() * 1e6 / usercmds as f64
    });
    let each_us = each_us.fold(f64::INFINITY, f64::min);
    println!("{each_us:.3} us a usercmd, with everything around it, best of seven");
    let size = rmp_serde::to_vec(&map).expect("plain data").len();
    println!("the map is {size} bytes in a log, before compression");
    assert!(each_us < 2.0, "{each_us}");
}

//! Real QuakeWorld demos from ../shared/data: import, statistics, and predictions against the recorded truth.

use std::io::Read;
use std::path::{Path, PathBuf};

use hitreg::quakeworld::{Demo, Map, Verdict, difference, open_loop};

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

fn demos(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).expect("folder").map(|e| e.expect("entry").path()).collect();
    found.sort();
    found
}

#[test]
fn every_demo_is_read() {
    let Some(data) = data() else { return };
    for path in demos(&data.join("drills")).into_iter().chain(demos(&data.join("matches"))) {
        let demo = Demo::parse(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        println!(
            "{}: {:?} {} cmds {} packets {} others {} movers {} events {} movevars {:?}",
            path.display(), demo.server, demo.commands.len(), demo.packets.len(), demo.others.len(), demo.movers.len(),
            demo.events.len(), demo.move_vars.len(), demo.end
        );
    }
}

fn map(data: &Path, demo: &Demo) -> Map {
    let name = demo.levels[0].map.trim_start_matches("maps/");
    Map::parse(&read(&data.join("maps").join(format!("{name}.gz")))).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[derive(Default, Clone, Copy)]
struct Score {
    checked: usize,
    exact: usize,
    near: usize,
}

#[test]
fn scores() {
    let Some(data) = data() else { return };
    let dump = std::env::var("QW_DUMP").ok();
    for path in demos(&data.join("drills")).into_iter().chain(demos(&data.join("matches"))) {
        let demo = Demo::parse(&read(&path)).unwrap();
        let map = map(&data, &demo);
        let mut scores = [Score::default(); 3];
        let mut shown = 0;
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        open_loop(&demo, &map, |check, _| {
            let class = if check.from.water_level >= 2 { 2 } else { usize::from(!check.from.on_ground) };
            let score = &mut scores[class];
            score.checked += 1;
            score.exact += usize::from(check.verdict == Verdict::Exact);
            score.near += usize::from(check.verdict == Verdict::Near);
            if check.verdict == Verdict::Miss && dump.as_ref().is_some_and(|d| name.contains(d)) && shown < 60 {
                shown += 1;
                let d = difference(&check.run.state, &check.recorded);
                println!("{} n{} g{} w{} d{:?} from {:?} v {:?} rec {:?} v{:?} t{:?} dead{}", demo.packets[check.packet].time_s, check.commands, check.from.on_ground, check.from.water_level, d,
                    check.from.origin, check.from.velocity, check.recorded.origin, check.recorded.velocity, check.run.touched, check.recorded.dead);
            }
        });
        print!("{name:40}");
        for s in scores {
            let pct = |n: usize| 100.0 * n as f64 / s.checked.max(1) as f64;
            print!(" {:6} {:5.1}/{:5.2}", s.checked, pct(s.exact), pct(s.exact + s.near));
        }
        println!();
    }
}

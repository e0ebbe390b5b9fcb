//! Real QuakeWorld demos from ../shared/data: import, statistics, and predictions against the recorded truth.

use std::io::Read;
use std::path::{Path, PathBuf};

use hitreg::quakeworld::{Demo, Event, Map, Verdict, difference, open_loop};

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

#[test]
fn triage() {
    let Some(data) = data() else { return };
    let dump = std::env::var("QW_DUMP").ok();
    let want = std::env::var("QW_CAT").ok();
    for path in demos(&data.join("matches")) {
        let demo = Demo::parse(&read(&path)).unwrap();
        let map = map(&data, &demo);
        let mut counts = std::collections::BTreeMap::<String, [usize; 2]>::new();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut shown = 0;
        let mut n = 0;
        open_loop(&demo, &map, |check, solids| {
            n += 1;
            if check.verdict != Verdict::Miss { return; }
            let class = usize::from(!check.from.on_ground);
            let d = difference(&check.run.state, &check.recorded);
            let mut cat = String::new();
            let dmg = (check.base + 1..=(check.packet + 1).min(demo.packets.len() - 1)).any(|i| demo.packets[i].events.of(&demo.events).iter().any(|e| matches!(e, Event::Damage { .. })));
            let expl = (check.base..=(check.packet + 1).min(demo.packets.len() - 1)).any(|i| demo.packets[i].events.of(&demo.events).iter().any(|e| matches!(e, Event::Effect { origin, .. } if (0..3).map(|a| (origin[a]-check.recorded.origin[a]).powi(2)).sum::<f32>() < 40000.0)));
            if dmg { cat += "dmg "; }
            if expl { cat += "expl "; }
            if check.recorded.dead { cat += "dead "; }
            if check.from.dead && !check.recorded.dead { cat += "spawn "; }
            if check.run.touched.trigger.is_some() { cat += "trig "; }
            if check.commands > 1 { cat += "multi "; }
            let near = |o: [f32;3], r: f32| (0..3).all(|a| (o[a] - check.recorded.origin[a]).abs() < r);
            let near_p = solids.iter().any(|s| matches!(s, hitreg::quakeworld::Solid::Player { origin, .. } if near(*origin, 80.0)));
            if near_p { cat += "player "; }
            let mv = demo.packets[check.packet].movers.of(&demo.movers).iter().any(|m| demo.packets[check.base].movers.of(&demo.movers).iter().any(|b| b.model == m.model && b.origin != m.origin));
            if mv { cat += "mover "; }
            if d.origin.iter().any(|o| o.abs() > 80.0) { cat += "far "; }
            if check.from.water_level > 0 || check.run.state.water_level > 0 { cat += "water "; }
            if d.origin.iter().all(|o| o.abs() <= 0.3) && d.velocity.iter().all(|o| o.abs() <= 3.0) { cat += "small "; }
            if check.run.touched.solids != 0 { cat += "touch "; }
            counts.entry(cat.clone()).or_default()[class] += 1;
            if dump.as_ref().is_some_and(|d| name.contains(d)) && shown < 40 && want.as_ref().is_none_or(|w| w.trim() == cat.trim()) {
                shown += 1;
                println!("{} n{} g{} w{} d{:.2?} from {:.3?} v {:.2?} rec {:?} v{:?} jump{} held{} wj{} t{:x} {} {} trig{:?} dead{} cmd {:?} [{}]", demo.packets[check.packet].time_s, check.commands, check.from.on_ground, check.from.water_level, (d.origin, d.velocity),
                    check.from.origin, check.from.velocity, check.recorded.origin, check.recorded.velocity, check.run.touched.jumped, check.from.jump_held, check.from.water_jump_s, check.run.touched.solids, check.run.touched.bumped, check.run.touched.nudged, check.run.touched.trigger, check.recorded.dead,
                    demo.commands[check.first_command + check.commands - 1].cmd, cat);
            }
        });
        println!("{name} {n}");
        let mut v: Vec<_> = counts.into_iter().collect();
        v.sort_by_key(|(_, c)| std::cmp::Reverse(c[0] + c[1]));
        for (cat, c) in v.iter().take(22) {
            println!("   {:5} {:5} {}", c[0], c[1], cat);
        }
    }
}

#[test]
fn causes() {
    let Some(data) = data() else { return };
    let dump = std::env::var("QW_DUMP").ok();
    for path in demos(&data.join("matches")) {
        let demo = Demo::parse(&read(&path)).unwrap();
        let map = map(&data, &demo);
        let mut counts = std::collections::BTreeMap::<hitreg::quakeworld::Cause, [usize; 2]>::new();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut n = [0; 2];
        let mut miss = [0; 2];
        open_loop(&demo, &map, |check, solids| {
            let class = usize::from(!check.from.on_ground);
            n[class] += 1;
            if check.verdict != Verdict::Miss { return; }
            miss[class] += 1;
            let d = difference(&check.run.state, &check.recorded);
            let (cause, evidence) = hitreg::quakeworld::explain(&demo, &map, check, solids);
            counts.entry(cause).or_default()[class] += 1;
            if dump.as_ref().is_some_and(|d| name.contains(d)) && (cause == hitreg::quakeworld::Cause::Unknown || cause == hitreg::quakeworld::Cause::WaterEdge || cause == hitreg::quakeworld::Cause::InputLost || cause == hitreg::quakeworld::Cause::Teleport || cause == hitreg::quakeworld::Cause::InputLate) {
                println!("{} n{} g{} w{} d{:.2?} from {:.3?} v {:.2?} rec {:?} v{:?} jump{} held{} wj{} t{:x} {} {} trig{:?} dead{} cmd {:?} {evidence:?}", demo.packets[check.packet].time_s, check.commands, check.from.on_ground, check.from.water_level, (d.origin, d.velocity),
                    check.from.origin, check.from.velocity, check.recorded.origin, check.recorded.velocity, check.run.touched.jumped, check.from.jump_held, check.from.water_jump_s, check.run.touched.solids, check.run.touched.bumped, check.run.touched.nudged, check.run.touched.trigger, check.recorded.dead,
                    demo.commands[check.first_command + check.commands - 1].cmd);
            }
        });
        println!("{name} {n:?} near {:.2} {:.2}", 100.0 - 100.0 * miss[0] as f64 / n[0] as f64, 100.0 - 100.0 * miss[1] as f64 / n[1] as f64);
        for (cause, c) in counts {
            println!("   {:5} {:5} {:.3} % {:?}", c[0], c[1], 100.0 * (c[0] + c[1]) as f64 / (n[0] + n[1]) as f64, cause);
        }
    }
}

#[test]
fn landings() {
    let Some(data) = data() else { return };
    for path in demos(&data.join("matches")) {
        let demo = Demo::parse(&read(&path)).unwrap();
        let map = map(&data, &demo);
        let mut hist = std::collections::BTreeMap::<i32, [usize; 2]>::new();
        open_loop(&demo, &map, |check, _| {
            if check.commands == 1 && !check.from.on_ground && check.run.state.on_ground && !check.run.touched.bumped && check.run.state.water_level == 0 {
                let fall = check.from.velocity[2];
                hist.entry((fall / 50.0).floor() as i32 * 50).or_default()[usize::from(check.recorded.velocity[2] == 0)] += 1;
            }
        });
        println!("{} {hist:?}", path.display());
    }
}

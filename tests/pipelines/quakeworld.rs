//! Real QuakeWorld demos from ../shared/data: their statistics, and the effects of damage.

use std::io::Read;
use std::path::{Path, PathBuf};

use hitreg::info::SessionInfo;
use hitreg::quakeworld::{ImportOptions, QuakeMap, QuakeWorldDemo, import};

fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/quakeworld");
    if !data.is_dir() {
        crate::note::skipped("../shared/data is not here");
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

/// A match, and the figures of its log.
fn matched(data: &Path, number: u8) -> (QuakeWorldDemo, SessionInfo) {
    let bytes = read(&data.join(format!("matches/demo{number:02}.qwd.xz")));
    let demo = QuakeWorldDemo::parse(&bytes).unwrap_or_else(|error| panic!("demo{number}: {error}"));
    let map = read(&data.join(format!("{}.gz", demo.levels[0].map)));
    let imported = import(&bytes, &map, &ImportOptions::default());
    let session = imported.unwrap_or_else(|error| panic!("demo{number}: {error}")).session;
    (demo, SessionInfo::of(&session))
}

#[test]
fn statistics_equal_those_of_the_data() {
    let Some(data) = data() else { return };
    // Usercmds, firing, packets, other players' states, missing numbers; round trips. The data's README counts only
    // packets with the player's state: 85_079, 42_713 and 11_734, with 1_486, 1_191 and 28_025 missing. Others arrive
    // during a change of level and after the intermission. Their counts and round trips are from another parser.
    let known = [
        (16, [86_582, 12_323, 85_080, 133_207, 1_487], [41.0, 42.0, 57.0, 70.0]),
        (22, [43_904, 5_456, 42_778, 22_904, 1_126], [42.0, 42.0, 42.0, 56.0]),
        (31, [41_072, 2_391, 12_411, 3_658, 28_659], [168.0, 210.0, 285.0, 499.0]),
    ];
    for (number, counts, rtt_ms) in known {
        let (demo, info) = matched(&data, number);
        println!("demo{number}: {info:?}");
        let [packets, lost, choked] =
            [info.packets.received, info.packets.lost, info.packets.choked].map(|count| count.expect("known") as usize);
        // The README counts choked packets as lost, too.
        let others = demo.packets.iter().map(|packet| packet.others.len()).sum();
        let found = [info.usercmds, info.usercmds_firing, packets, others, lost + choked];
        assert_eq!(found, counts, "demo{number}");
        let measured = [info.rtt_ms.p5, info.rtt_ms.p50, info.rtt_ms.p95, info.rtt_ms.p99];
        for (given, measured) in rtt_ms.into_iter().zip(measured.map(|ms| ms.expect("acks"))) {
            assert!((given - measured).abs() < 1.0, "demo{number}: {given} ms, measured {measured}");
        }
        assert!(number != 22 || choked == 1_021);
        assert!(number != 31 || choked == 26_558);
    }
    assert_eq!(matched(&data, 9).1.usercmds, 1_055);
}

#[test]
fn a_damaged_recording_is_refused_or_read() {
    let Some(data) = data() else { return };
    let whole = read(&data.join("drills/highbridge-to-rl.qwd"));
    for len in (0..whole.len()).step_by(97) {
        if let Err(error) = QuakeWorldDemo::parse(&whole[..len]) {
            assert!(!error.to_string().is_empty());
        }
    }
    for at in (0..whole.len()).step_by(61) {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        if let Ok(demo) = QuakeWorldDemo::parse(&bad) {
            assert!(demo.commands.len() * 41 <= bad.len());
        }
    }
    let map = read(&data.join("maps/dm4.bsp.gz"));
    for at in (0..map.len()).step_by(4_099) {
        let mut bad = map.clone();
        bad[at] ^= 1 << (at % 8);
        let _ = QuakeMap::parse(&bad);
        let _ = QuakeMap::parse(&bad[..at]);
    }
}

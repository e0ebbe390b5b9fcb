//! Files of other engines and their players: demos, maps, captures of datagrams. Each reader gets seeded mutants.

use std::io::{Cursor, Write as _};
use std::ops::Range;

use hitreg::arena::ArenaMap;
use hitreg::quake3::{RecordingKind, ServerLog, header as quake3_header, import as import_quake3, map_from, survey};
use hitreg::quakeworld::{ImportOptions, QuakeMap, QuakeWorldDemo, QuakeWorldUsercmd, import, unpacked};
use hitreg::rng::Rng;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::fuzz::{outcome, target};
use crate::maps::{quake_bytes, quake3_bytes};
use crate::mutate;
use crate::small::{DemoWriter, ServerDemoWriter, own_state};
use crate::targets::mutated_text;

/// A demo of a client that walks.
pub(crate) fn client_demo() -> Vec<u8> {
    let mut demo = DemoWriter::default();
    demo.signon();
    demo.sequences(1);
    for n in 1..60u8 {
        let cmd = QuakeWorldUsercmd { msec: 13, forward: 400, ..QuakeWorldUsercmd::default() };
        demo.command(f32::from(n) * 0.013, &cmd);
        let state = own_state([f32::from(n), 0.0, 24.0], [100.0, 0.0, 0.0]);
        demo.packet(f32::from(n) * 0.013, 1 + u32::from(n), u32::from(n), &state);
    }
    demo.bytes
}

#[test]
fn demos() {
    let mut served = ServerDemoWriter::default();
    served.signon();
    for n in 1..60u8 {
        served.moment(40);
        served.player(2, [f32::from(n), 0.0, 24.0], 90.0);
        served.lift(n % 30);
        served.hit(3, 1, 20);
        served.ran(2, &QuakeWorldUsercmd { msec: 13, forward: 400, ..QuakeWorldUsercmd::default() });
    }
    let map = quake_bytes();
    let options = ImportOptions { map_name: None, force_map: true };
    target("demos", vec![client_demo(), served.bytes], mutate::bytes, &mut |bytes| {
        outcome(QuakeWorldDemo::parse(bytes)) + &outcome(import(bytes, &map, &options))
    });
}

#[test]
fn maps() {
    target("bsp", vec![quake_bytes()], mutate::bytes, &mut |bytes| outcome(QuakeMap::parse(bytes)));
    let small = include_bytes!("../../crates/hitreg-selftest/claims/corner.map").to_vec();
    let large = include_bytes!("../../crates/hitreg-arena/maps/orchard.map").to_vec();
    target("map", vec![small, large], mutated_text, &mut |bytes| outcome(ArenaMap::parse("fuzz", bytes)));
}

#[test]
fn levels() {
    target("levels", vec![quake3_bytes(), in_archive(&quake3_bytes())], mutate::bytes, &mut |bytes| {
        outcome(map_from(bytes, "q3test"))
    });
}

/// A `.pk3` with the level, once compressed and once stored.
fn in_archive(level: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, method) in
        [("maps/other.bsp", CompressionMethod::Stored), ("maps/q3test.bsp", CompressionMethod::Deflated)]
    {
        archive.start_file(name, SimpleFileOptions::default().compression_method(method)).expect("an archive");
        archive.write_all(level).expect("an archive");
    }
    archive.finish().expect("an archive").into_inner()
}

/// The datagrams that a proxy heard, and the demo of a client. `fixtures/fuzz` has valid ones.
#[test]
fn quake3() {
    let read = |source, bytes: &[u8]| {
        let log = ServerLog::parse(bytes);
        let overview = survey(source, bytes, &log);
        let mut records = 0;
        let imported = import_quake3(source, bytes, &log, &mut |_| records += 1);
        assert!(overview.is_err() || imported.is_ok(), "what can be looked through can be read");
        outcome(overview.and_then(|overview| quake3_header(&overview.rules, &overview.players, source.origin())))
    };
    target("captures", Vec::new(), |bytes, rng| mutated_messages(&CAPTURE, bytes, rng), &mut |bytes| {
        read(RecordingKind::Capture, bytes)
    });
    target("client-demos", Vec::new(), |bytes, rng| mutated_messages(&CLIENT_DEMO, bytes, rng), &mut |bytes| {
        read(RecordingKind::Demo, bytes)
    });
}

/// The layout of a file of messages with length prefixes.
struct FramedLayout {
    /// The bytes before the first message.
    magic: usize,
    /// The bytes before each message, and where its length is among them.
    head: usize,
    length: Range<usize>,
}

const CAPTURE: FramedLayout = FramedLayout { magic: 8, head: 13, length: 11..13 };
const CLIENT_DEMO: FramedLayout = FramedLayout { magic: 0, head: 8, length: 4..8 };

/// A file with changed, lost, repeated and moved messages, each with its correct length. Sometimes any bytes change.
fn mutated_messages(framed: &FramedLayout, bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let (start, mut rest) = bytes.split_at(framed.magic.min(bytes.len()));
    let mut messages: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    while let Some((head, behind)) = rest.split_at_checked(framed.head) {
        let length = head[framed.length.clone()].iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let Some((message, behind)) = behind.split_at_checked(length) else { break };
        messages.push((head.to_vec(), message.to_vec()));
        rest = behind;
    }
    if messages.is_empty() || rng.chance(0.1) {
        return mutate::bytes(bytes, rng);
    }
    for _ in 0..=rng.below(3) {
        let at = rng.below(messages.len() as u64) as usize;
        match rng.below(10) {
            0 if messages.len() > 1 => drop(messages.remove(at)),
            1 => messages.insert(at, messages[at].clone()),
            2 => {
                let other = rng.below(messages.len() as u64) as usize;
                messages.swap(at, other);
            }
            3 => messages[at].0 = mutate::bytes(&messages[at].0, rng),
            _ => messages[at].1 = mutate::bytes(&messages[at].1, rng),
        }
    }
    let mut all = start.to_vec();
    for (mut head, mut message) in messages {
        head.resize(framed.head, 0);
        message.truncate((1 << (8 * framed.length.len().min(3))) - 1);
        for (byte, of) in head[framed.length.clone()].iter_mut().zip(message.len().to_le_bytes()) {
            *byte = of;
        }
        all.extend(head);
        all.extend(message);
    }
    all.extend(rest);
    all
}

#[test]
fn packed() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&quake_bytes()).expect("memory");
    let good = vec![gzip.finish().expect("memory")];
    target("packed", good, mutate::bytes, &mut |bytes| outcome(unpacked(bytes)));
}

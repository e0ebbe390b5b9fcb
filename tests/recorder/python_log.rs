//! A log that another program wrote without the library.
#![expect(clippy::disallowed_methods, reason = "the environment says which Python to use")]

use std::process::Command;

use hitreg::log::{read_session, recover};

/// `examples/write_log.py` writes a log that hitreg reads, and `unpack` of `examples/pucks.py` reads its columns.
#[test]
fn a_python_program_writes_a_log() {
    let named = std::env::var("HITREG_TEST_PYTHON").ok();
    let python = named.clone().unwrap_or_else(|| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import msgpack, zstandard"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        assert!(named.is_none(), "{python} has no msgpack and zstandard");
        crate::note::skipped("there is no Python with msgpack and zstandard (HITREG_TEST_PYTHON may name one)");
        return;
    }
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("by-hand.hitlog");
    let ran = Command::new(&python).arg(format!("{examples}/write_log.py")).arg(&path).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let bytes = std::fs::read(&path).unwrap();
    let session = read_session(&bytes[..]).unwrap();
    let frames = &session.players[0].frames;
    assert!(frames.iter().map(|frame| frame.command.seq.0).eq(1..=200));
    assert_eq!((frames[0].command.input.forwardmove, frames[1].command.input.forwardmove), (320.0, -200.5));
    assert!(session.ticks.iter().map(|tick| tick.hash).eq((1..=200).map(Some)));
    let fuel = (-200.0f64 / 3.0).to_bits();
    assert_eq!(session.states.cells_of(199), [50f32.to_bits(), fuel as u32, (fuel >> 32) as u32]);
    let unpacks = "from pucks import struct, unpack; from write_log import doubles
assert unpack(doubles([-1 / 3, 0.1]), [2]) == list(struct.unpack('<2Q', struct.pack('<2d', -1 / 3, 0.1)))";
    let ran = Command::new(&python).args(["-c", unpacks]).env("PYTHONPATH", examples).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    // Readers and `recover` find no damage.
    let (recovered, damage) = recover(&bytes).unwrap();
    assert!(damage.is_none() && recovered == session, "{damage:?}");
    // zstd's own checksum detects a flipped bit.
    for place in [bytes.len() / 3, bytes.len() / 2] {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1;
        assert!(read_session(&flipped[..]).is_err(), "{place}");
    }
}

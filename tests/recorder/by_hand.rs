//! A log that another program wrote, from the page about the format alone.
#![expect(clippy::disallowed_methods, reason = "the environment says which Python to use")]

use std::process::Command;

use hitreg::log::{read_session, recover};

/// The Python on the page, run as it stands there.
#[test]
fn the_page_about_the_format_writes_a_log() {
    let named = std::env::var("HITREG_TEST_PYTHON").ok();
    let python = named.clone().unwrap_or_else(|| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import msgpack, zstandard"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        assert!(named.is_none(), "{python} has no msgpack and zstandard");
        crate::note::skipped("there is no Python with msgpack and zstandard (HITREG_TEST_PYTHON may name one)");
        return;
    }
    let page = include_str!("../../docs/format.md");
    let (_, page) = page.split_once("### Writing a log").expect("the section");
    let (_, program) = page.split_once("```python\n").expect("a program");
    let (program, _) = program.split_once("```").expect("its end");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("by-hand.hitlog");
    let ran = Command::new(&python).args(["-c", program]).arg(&path).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let bytes = std::fs::read(&path).unwrap();
    let session = read_session(&bytes[..]).unwrap();
    let frames = &session.players[0].frames;
    assert!(frames.iter().map(|frame| frame.command.seq.0).eq(1..=200));
    assert_eq!((frames[0].command.input.forwardmove, frames[1].command.input.forwardmove), (320.0, -200.5));
    assert!(session.ticks.iter().map(|tick| tick.hash).eq((1..=200).map(Some)));
    assert_eq!(session.states.cells_of(199), [50f32.to_bits()]);
    // Readers and `recover` agree that nothing is wrong with it.
    let (recovered, damage) = recover(&bytes).unwrap();
    assert!(damage.is_none() && recovered == session, "{damage:?}");
    // A flipped bit is found all the same: by zstd's own checksum.
    for place in [bytes.len() / 3, bytes.len() / 2] {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1;
        assert!(read_session(&flipped[..]).is_err(), "{place}");
    }
}

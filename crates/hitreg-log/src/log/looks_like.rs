//! Recognizes files that are neither logs nor traces, so that an error can say what to do with them.

/// The number of bytes at a file's start that recognition needs.
pub(crate) const START_BYTES: usize = 64;

/// Describes what a file with these first bytes seems to be, and which command takes it; `None` if unrecognized.
pub(crate) fn looks_like(start: &[u8]) -> Option<&'static str> {
    let begins = |magic: &[u8]| start.starts_with(magic);
    Some(match () {
        () if begins(b"\xFD7zXZ\0") => {
            "it looks xz-compressed: `hitreg import qwd` reads compressed demos and maps, other files must be unpacked"
        }
        () if begins(b"\x1F\x8B") => {
            "it looks gzip-compressed: `hitreg import qwd` reads compressed demos and maps, other files must be unpacked"
        }
        () if begins(b"PK\x03\x04") => "it looks like a zip archive (a .pk3 is one): unpack it first",
        () if begins(b"HL2DEMO\0") => "it looks like a Source demo, which hitreg does not read",
        () if begins(b"HLDEMO\0") => "it looks like a GoldSrc demo, which hitreg does not read",
        () if begins(b"IBSP") => {
            "it looks like a Quake II or Quake III map: give it to `hitreg import quake3-udp` with --map"
        }
        () if begins(&[29, 0, 0, 0]) => "it looks like a Quake map: give it to `hitreg import qwd` with --map",
        () if begins(b"hitreg golden") => "it is a golden: run `hitreg verify` on the log beside it",
        () if begins(b"\x89PNG") => "it looks like a picture",
        () if begins(b"\xD4\xC3\xB2\xA1") || begins(b"\x0A\x0D\x0D\x0A") => {
            "it looks like captured network packets; docs/openarena.md describes the captures that hitreg imports"
        }
        () if begins(b"UDPTRC1\n") => {
            "it is a capture of datagrams. To import it, run: hitreg import quake3-udp FILE -o LOG"
        }
        () if is_quakeworld_demo(start) => {
            "it looks like a QuakeWorld demo. To import it, run: hitreg import qwd FILE --map MAP -o LOG"
        }
        () if is_text(start) && start.trim_ascii_start().starts_with(b"{") => {
            "it looks like JSON. `hitreg import` converts demos to logs"
        }
        () if is_text(start) => "it looks like text. `hitreg import` converts demos to logs",
        () => return None,
    })
}

/// Whether the bytes begin a QuakeWorld demo: a float of seconds, the kind of message, its length and the first
/// packet. That packet begins with `svc_serverdata` (11).
fn is_quakeworld_demo(start: &[u8]) -> bool {
    const READ: u8 = 1;
    const SERVER_DATA: u8 = 11;
    let length = start.get(5..9).and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
    start.get(4) == Some(&READ) && length.is_some_and(|bytes| bytes <= 8192) && start.get(17) == Some(&SERVER_DATA)
}

fn is_text(start: &[u8]) -> bool {
    let cut = start.len() == START_BYTES;
    let text = match std::str::from_utf8(start) {
        Ok(text) => Some(text),
        // The start may end inside a character.
        Err(error) if cut && error.error_len().is_none() => std::str::from_utf8(&start[..error.valid_up_to()]).ok(),
        Err(_) => None,
    };
    text.is_some_and(|text| !text.is_empty() && !text.chars().any(|c| c.is_control() && !c.is_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kinds_of_files_are_recognized() {
        let demo =
            [&0.5f32.to_le_bytes()[..], &[1], &300u32.to_le_bytes(), &[1, 0, 0, 0, 1, 0, 0, 0], &[11, 28]].concat();
        let known = [
            (&demo[..], "hitreg import qwd FILE"),
            (b"\xFD7zXZ\0\0", "xz"),
            (b"UDPTRC1\n\0", "quake3-udp"),
            (b"HL2DEMO\0\x04", "Source demo"),
            (b"IBSP\x2E", "Quake III map"),
            (&[29, 0, 0, 0, 124], "--map"),
            (b"hitreg golden 1\n", "golden"),
            (b"  {\"tick\": 1}", "JSON"),
            ("# Prüfung\n".as_bytes(), "text"),
        ];
        for (start, words) in known {
            assert!(looks_like(start).is_some_and(|text| text.contains(words)), "{start:?}");
        }
        let long = "é".repeat(40);
        assert_eq!(looks_like(&long.as_bytes()[1..][..1]), None, "half a character");
        let cut_in_one = looks_like(&format!("x{long}").as_bytes()[..START_BYTES]);
        assert!(cut_in_one.is_some_and(|text| text.starts_with("it looks like text")), "{cut_in_one:?}");
        assert_eq!(looks_like(&[0, 1, 2, 3]), None);
        assert_eq!(looks_like(&[]), None);
    }
}

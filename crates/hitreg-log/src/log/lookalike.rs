//! Recognizes files that are neither logs nor traces, so that an error can say what to do with them.

/// The number of bytes at a file's start that recognition needs.
pub(crate) const START_BYTES: usize = 64;

/// What a file that is neither a log nor a trace seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookalike {
    /// The kind of the file, such as `a GoldSrc demo`.
    pub kind: &'static str,
    /// What to do with it: the end of a sentence that begins with the kind.
    pub advice: &'static str,
}

impl Lookalike {
    /// A QuakeWorld demo.
    pub const QUAKEWORLD_DEMO: Lookalike =
        Lookalike { kind: "a QuakeWorld demo", advice: ". To import it, run: hitreg import qwd FILE --map MAP -o LOG" };
    /// A capture of a Quake III engine's datagrams.
    pub const CAPTURE: Lookalike = Lookalike {
        kind: "a capture of datagrams",
        advice: ". To import it, run: hitreg import quake3-udp FILE -o LOG",
    };
    /// A file packed with zstd.
    pub const ZSTD: Lookalike = Lookalike {
        kind: "a zstd-compressed file",
        advice: ": `hitreg import quake3-udp` reads compressed captures, other files must be unpacked",
    };
}

impl std::fmt::Display for Lookalike {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it looks like {}{}", self.kind, self.advice)
    }
}

/// Describes what a file with these first bytes seems to be; `None` if unrecognized.
pub fn looks_like(start: &[u8]) -> Option<Lookalike> {
    const PACKED: &str = ": `hitreg import qwd` reads compressed demos and maps, other files must be unpacked";
    const NOT_READ: &str = ", which hitreg does not read (docs/adapters.md shows how to record such a game)";
    const TEXT: &str = ". `hitreg import` converts demos to logs";
    let start = &start[..start.len().min(START_BYTES)];
    let begins = |magic: &[u8]| start.starts_with(magic);
    let (kind, advice) = match () {
        () if begins(b"\xFD7zXZ\0") => ("an xz-compressed file", PACKED),
        () if begins(b"\x1F\x8B") => ("a gzip-compressed file", PACKED),
        () if begins(b"\x28\xB5\x2F\xFD") => return Some(Lookalike::ZSTD),
        () if begins(b"PK\x03\x04") => ("a zip archive (a .pk3 is one)", ": unpack it first"),
        () if begins(b"HL2DEMO\0") => ("a Source demo", NOT_READ),
        () if begins(b"HLDEMO\0") => ("a GoldSrc demo", NOT_READ),
        () if begins(b"IBSP") => ("a Quake II or Quake III map", ": give it to `hitreg import quake3-udp` with --map"),
        () if begins(&[29, 0, 0, 0]) => ("a Quake map", ": give it to `hitreg import qwd` with --map"),
        () if begins(b"hitreg golden") => ("a golden", ": run `hitreg verify` on the log beside it"),
        () if begins(b"\x89PNG") => ("a picture", ": give a log or a trace"),
        () if begins(b"\xD4\xC3\xB2\xA1") || begins(b"\x0A\x0D\x0D\x0A") => {
            ("captured network packets", "; docs/openarena.md describes the captures that hitreg imports")
        }
        () if begins(b"UDPTRC1\n") => return Some(Lookalike::CAPTURE),
        () if is_quakeworld_demo(start) => return Some(Lookalike::QUAKEWORLD_DEMO),
        () if is_text(start) && start.trim_ascii_start().starts_with(b"{") => ("JSON", TEXT),
        () if is_text(start) => ("text", TEXT),
        () => return None,
    };
    Some(Lookalike { kind, advice })
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
            (b"HLDEMO\0\x05", "GoldSrc demo"),
            (b"\x28\xB5\x2F\xFD\x04", "zstd"),
            (b"UDPTRC1\n\0", "quake3-udp"),
            (b"HL2DEMO\0\x04", "Source demo"),
            (b"IBSP\x2E", "Quake III map"),
            (&[29, 0, 0, 0, 124], "--map"),
            (b"hitreg golden 1\n", "golden"),
            (b"  {\"tick\": 1}", "JSON"),
            ("# Prüfung\n".as_bytes(), "text"),
        ];
        for (start, words) in known {
            assert!(looks_like(start).is_some_and(|text| text.to_string().contains(words)), "{start:?}");
        }
        let long = "é".repeat(40);
        assert_eq!(looks_like(&long.as_bytes()[1..][..1]), None, "half a character");
        let cut_in_one = looks_like(&format!("x{long}").as_bytes()[..START_BYTES]);
        assert!(cut_in_one.is_some_and(|text| text.kind == "text"), "{cut_in_one:?}");
        assert_eq!(looks_like(&[0, 1, 2, 3]), None);
        assert_eq!(looks_like(&[]), None);
    }
}

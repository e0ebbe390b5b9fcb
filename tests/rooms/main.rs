//! Reads the source tree and holds it to the plan of the house: rooms import only the rooms below them, only a few of them
//! reach outside, nothing prints but the command line, and no file grows beyond what one reads at a sitting.

mod source;

use std::collections::BTreeMap;
use std::path::Path;

use source::{paths, tokens};

/// Each room with the rooms that it may import. A room stands after all that it imports, so imports run down only and
/// never in a circle; that server and client do not know each other follows from their lines.
const ROOMS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("varint", &[]),
    ("stats", &[]),
    ("geometry", &[]),
    ("hash", &[]),
    // Two texts, line by line.
    ("text_diff", &[]),
    // Reads MessagePack and TOML for whoever has types to be read.
    ("serial", &[]),
    ("settings", &["units"]),
    ("usercmd", &["units"]),
    ("rng", &["units"]),
    // A trace names its own columns: whoever reads one needs to know no game.
    ("trace", &["hash", "units", "usercmd"]),
    // The vocabulary of recordings. A game's payloads are opaque in it.
    ("record", &["serial", "units", "usercmd"]),
    // What a proxy needs of a game's network protocol.
    ("protocol", &["units", "record"]),
    // The pure functions that a game is. It sees times, usercmds and its own bodies, and no pipeline.
    ("game", &["units", "usercmd", "record"]),
    ("history", &["units", "settings", "game"]),
    ("packet", &["units", "usercmd", "game", "record", "history"]),
    // What pipelines hold between two ticks, as bytes and back.
    ("state", &["varint", "units", "usercmd", "game", "record", "history", "packet"]),
    // What keeps server and client in time with each other.
    ("pacing", &["units", "game", "state"]),
    // What a driver knows of a server and a client, so that a game may bring its own.
    ("pipeline", &["units", "usercmd", "settings", "game", "record", "packet", "state"]),
    // One connection: datagrams in, packets out, no socket.
    ("wire", &["units", "usercmd", "hash", "game", "record", "history", "packet"]),
    ("link", &["units", "rng", "record"]),
    // What server and client share is the game's own code and the packets between them; they never import each other.
    (
        "server",
        &["units", "usercmd", "hash", "settings", "game", "record", "history", "packet", "state", "pacing", "pipeline"],
    ),
    ("client", &["units", "usercmd", "settings", "game", "history", "packet", "state", "pacing", "pipeline"]),
    (
        "session",
        &[
            "serial", "units", "usercmd", "rng", "settings", "game", "record", "history", "packet", "state",
            "pipeline", "link", "wire",
        ],
    ),
    (
        "replay",
        &[
            "serial", "units", "usercmd", "stats", "geometry", "hash", "settings", "trace", "game", "record",
            "history", "packet", "state", "pipeline", "link", "session",
        ],
    ),
    // Sockets and clocks around the pipelines.
    (
        "live",
        &[
            "serial", "units", "usercmd", "stats", "hash", "rng", "settings", "game", "record", "packet", "pipeline",
            "link", "wire", "session", "protocol",
        ],
    ),
    // Bytes only: no file, no game, no pipeline.
    ("log", &["varint", "serial", "units", "usercmd", "trace", "game", "record"]),
    ("store", &["units", "trace", "record", "log"]),
    // What a session's own records say, as the tables of a trace.
    ("recorded", &["units", "trace", "record"]),
    // What an engine calls. It knows no game and no pipeline; its clock says only how often it writes.
    ("recorder", &["units", "usercmd", "settings", "trace", "record", "recorded", "log", "store"]),
    // One session from the logs of its sides.
    ("merge", &["units", "settings", "record"]),
    // What is computed from sessions and traces alone.
    ("info", &["varint", "units", "usercmd", "stats", "settings", "record"]),
    ("score", &["units", "stats", "settings", "game", "record", "history", "replay"]),
    ("summary", &["stats", "trace"]),
    ("golden", &["text_diff", "summary", "trace"]),
    ("verify", &["text_diff", "units", "trace", "record", "replay", "summary", "golden"]),
    // Comparing traces knows no game and no pipeline; what has to replay on the way is given a way to.
    ("diff", &["varint", "units", "stats", "trace", "summary"]),
    ("fairness", &["units", "stats", "trace", "summary"]),
    ("bisect", &["units", "trace", "game", "record", "diff"]),
    ("shrink", &["units", "usercmd", "stats", "settings", "trace", "game", "record", "pipeline", "link", "replay"]),
    ("sweep", &["stats", "settings", "trace", "record", "pipeline", "replay", "summary"]),
    // One shot or one correction, out of a trace's tables.
    ("why", &["units", "trace", "record"]),
    // Views against the truth, out of a trace's tables.
    ("drawing", &["units", "stats", "trace"]),
    // The border to C.
    ("capi", &["units", "usercmd", "trace", "record", "log", "store", "recorder"]),
    // Results as text, SVG and JUnit, for whoever shows them.
    ("report", &["text_diff", "units", "stats", "trace", "replay", "diff", "bisect", "sweep", "why"]),
    // A table as a Parquet file.
    ("parquet_file", &["trace"]),
    // What went over the network, by a log or a trace.
    ("traffic", &["units", "trace", "record"]),
    // A time line for Perfetto, from the same.
    ("perfetto", &["trace", "traffic"]),
    // A page of HTML, from the traces' tables.
    ("page", &["stats", "trace", "game", "record", "diff", "sweep", "why", "report", "traffic"]),
    // Maps of id's engines.
    ("bsp", &["serial", "units", "geometry", "game"]),
    // The built-in games. No pipeline knows them.
    ("arena", &["units", "usercmd", "rng", "geometry", "game", "pipeline", "server", "client"]),
    (
        "quakeworld",
        &["serial", "units", "usercmd", "bsp", "settings", "game", "record", "pipeline", "server", "client"],
    ),
    (
        "quake3",
        &[
            "serial", "units", "usercmd", "bsp", "settings", "protocol", "game", "record", "pipeline", "server",
            "client",
        ],
    ),
    // What the founding documents state, measured on the pipelines with the built-in game.
    (
        "claims",
        &[
            "serial", "units", "usercmd", "stats", "geometry", "hash", "rng", "settings", "trace", "game", "record",
            "history", "packet", "pacing", "wire", "link", "pipeline", "server", "client", "session", "replay",
            "summary", "fairness", "arena",
        ],
    ),
    // Sessions from seeds, held against what must be true of every one.
    (
        "soak",
        &[
            "units", "usercmd", "rng", "settings", "trace", "game", "record", "packet", "link", "pipeline", "client",
            "session", "replay", "log", "merge", "summary", "verify", "diff", "shrink", "arena",
        ],
    ),
    // Child processes: builds, and git.
    ("build", &["trace", "log", "store"]),
    // All that the commands do, as a library. It leaves driving server and client to `session` and `replay`, and what
    // reaches outside to `store`, `build` and `live`.
    (
        "engine",
        &[
            "text_diff",
            "serial",
            "units",
            "settings",
            "trace",
            "game",
            "record",
            "protocol",
            "pipeline",
            "link",
            "session",
            "live",
            "replay",
            "recorded",
            "log",
            "store",
            "merge",
            "info",
            "score",
            "summary",
            "golden",
            "verify",
            "diff",
            "why",
            "bisect",
            "shrink",
            "sweep",
            "build",
            "arena",
            "quakeworld",
            "quake3",
        ],
    ),
    // Arguments, pages and exit codes.
    (
        "cli",
        &[
            "engine",
            "golden",
            "units",
            "usercmd",
            "stats",
            "settings",
            "trace",
            "game",
            "record",
            "protocol",
            "pipeline",
            "link",
            "session",
            "live",
            "merge",
            "fairness",
            "recorded",
            "replay",
            "log",
            "store",
            "info",
            "score",
            "summary",
            "verify",
            "diff",
            "claims",
            "drawing",
            "soak",
            "shrink",
            "sweep",
            "why",
            "report",
            "page",
            "traffic",
            "perfetto",
            "parquet_file",
            "build",
            "quakeworld",
            "quake3",
        ],
    ),
    ("main", &["cli"]),
];

/// The rooms that reach outside: disk, clock, environment, processes, sockets.
const OUTSIDE: &[&str] = &["build", "cli", "live", "recorder", "store", "main"];

/// What reaching outside looks like.
const OUTSIDE_PATHS: &[&str] = &["std::fs", "std::net", "std::process", "std::env", "std::time", "tempfile"];

/// The one room with unsafe code.
const UNSAFE: &str = "capi";

/// Macros that write to a terminal. The command line writes to what it is given, so that a closed pipe is no panic.
const PRINTING: &[&str] = &["println", "print", "eprintln", "eprint", "dbg"];

/// What stands at the root of the crate: exported macros, and glam, which they name for whoever calls them.
const MACROS: &[&str] = &["glam", "hitreg_body", "hitreg_cells"];

/// A file beyond this is cut up.
const MOST_LINES: usize = 400;
/// A file beyond this is named, so that it is cut up while that is easy.
const MANY_LINES: usize = 250;
/// The command itself only starts the library's.
const MOST_LINES_OF_MAIN: usize = 20;

#[test]
fn the_house_is_as_planned() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = BTreeMap::new();
    read_tree(&root, &root, &mut files);
    assert!(files.len() > 50, "{} files are not all of the source", files.len());
    for (path, text) in &files {
        if text.lines().count() > MANY_LINES {
            eprintln!("src/{path} has {} lines", text.lines().count());
        }
    }
    let faults = faults(&files);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn the_plan_has_no_circles() {
    for (index, (room, below)) in ROOMS.iter().enumerate() {
        for name in *below {
            assert!(ROOMS[..index].iter().any(|(earlier, _)| earlier == name), "{room} stands before {name}");
        }
    }
}

#[test]
fn the_checker_sees_what_it_should() {
    let cases: &[(&str, &str, Option<&str>)] = &[
        ("server.rs", "use crate::client::Client;", Some("`server` imports `client`")),
        ("server/tick.rs", "use crate::{units::Tick, client};", Some("`server` imports `client`")),
        ("server.rs", "fn f() { crate::session::run() }", Some("`server` imports `session`")),
        ("server.rs", "pub(in crate::server) fn f() {}", None),
        ("server.rs", "// crate::client\nconst A: &str = \"crate::client\";", None),
        ("server.rs", "#[cfg(test)]\nmod tests {\n    use crate::client::Client;\n}", None),
        ("server/tests.rs", "use crate::client::Client;", None),
        ("server/tick_tests.rs", "use crate::client::Client;", None),
        ("game.rs", "use std::time::Instant;", Some("`game` reaches outside by `std::time::Instant`")),
        ("game.rs", "use std::{cmp::Ordering, fs};", Some("`game` reaches outside by `std::fs`")),
        ("game.rs", "use std::time::Duration;", None),
        ("store.rs", "use std::fs::File;", None),
        ("client.rs", "fn f() { println!(\"x\") }", Some("prints with `println!`")),
        ("cli/info.rs", "fn f() { eprintln!(\"x\") }", Some("prints with `eprintln!`")),
        ("log.rs", "fn f() { unsafe { g() } }", Some("unsafe code is for `capi` alone")),
        ("capi/log.rs", "fn f() { unsafe { g() } }", None),
        ("attic.rs", "", Some("`attic` is in no plan")),
        ("units.rs", "use crate::attic::Box;", Some("`units` imports `attic`")),
        ("main.rs", &"\n".repeat(21), Some("21 lines")),
        ("units.rs", &"\n".repeat(401), Some("401 lines")),
        ("log.rs", "macro_rules! m { () => { $crate::server::f() } }", Some("`log` imports `server`")),
        ("units.rs", "fn f<'a>(x: &'a str) -> char { '\"' } use crate::game;", Some("`units` imports `game`")),
        ("units.rs", "const R: &str = r#\"a \" b\"#; use crate::game;", Some("`units` imports `game`")),
    ];
    for (path, text, expected) in cases {
        let files = BTreeMap::from([((*path).to_owned(), (*text).to_owned())]);
        let found = faults(&files);
        match expected {
            None => assert!(found.is_empty(), "{path}: {text}\n{found:?}"),
            Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{path}: {text}\n{found:?}"),
        }
    }
}

fn read_tree(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the source") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_tree(root, &path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
            files.insert(name, std::fs::read_to_string(&path).expect("UTF-8"));
        }
    }
}

/// All that is not as planned, one line each.
fn faults(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in files {
        let lines = text.lines().count();
        let most = if path == "main.rs" { MOST_LINES_OF_MAIN } else { MOST_LINES };
        if lines > most {
            faults.push(format!("src/{path}: {lines} lines, at most {most}"));
        }
        let room = path.split(['/', '.']).next().unwrap_or_default();
        // The root only names the rooms, and test modules may use what they like.
        if path == "lib.rs" || path.ends_with("tests.rs") || path.contains("/tests/") {
            continue;
        }
        let Some((_, below)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            faults.push(format!("src/{path}: `{room}` is in no plan: put it into ROOMS, below all that import it"));
            continue;
        };
        let tokens = tokens(before_tests(text));
        for used in paths(&tokens) {
            let mut parts = used.split("::");
            if let (Some("crate"), Some(name)) = (parts.next(), parts.next())
                && name != room
                && !below.contains(&name)
                && !MACROS.contains(&name)
            {
                faults.push(format!("src/{path}: `{room}` imports `{name}`, which is not below it"));
            }
            let outside = OUTSIDE_PATHS.iter().any(|start| used == *start || used.starts_with(&format!("{start}::")));
            if outside && !used.ends_with("::Duration") && !OUTSIDE.contains(&room) {
                faults.push(format!("src/{path}: `{room}` reaches outside by `{used}`"));
            }
        }
        if room != UNSAFE && tokens.iter().any(|token| token == "unsafe" || token == "unsafe_code") {
            faults.push(format!("src/{path}: unsafe code is for `{UNSAFE}` alone"));
        }
        for pair in tokens.windows(2) {
            if PRINTING.contains(&pair[0].as_str()) && pair[1] == "!" {
                faults.push(format!("src/{path}: prints with `{}!`", pair[0]));
            }
        }
    }
    faults
}

/// A file without its test module, which stands last.
fn before_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod ").map_or(text, |start| &text[..start])
}

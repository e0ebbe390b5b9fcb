//! Builds as executables: their errors, and which tables commands compare.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests time processes, and ask the environment which Python to use")]

use hitreg::store::{FileType, Targets};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::pucks::{example, hitreg, json, lines, script, session};

use super::folder::word;

/// `hitreg diff` with its own cache.
fn diff(folder: &Path) -> Command {
    let mut command = hitreg();
    command.arg("diff").arg("--cache").arg(folder.join("cache"));
    command
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}

/// A build that ignores its arguments answers another question, so its trace gives no verdict.
#[test]
fn a_trace_with_other_settings_is_untestable() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let pucks = example("pucks");
    let deaf = path(folder, "deaf");
    script(&deaf, &format!("exec {} replay \"$2\" -o \"$4\"", word(&pucks)));
    let cases = [
        (["--open", "--open"], "the build ignores --mode open: its trace has mode closed"),
        (["--b-set", "interpolation.lerp_ms=33"], "the build ignores interpolation.lerp_ms=33: its trace has"),
        (["--b-preset", "quake3"], "the build ignores"),
    ];
    for (asked, reason) in cases {
        let mut asked = asked.to_vec();
        asked.dedup();
        let mut command = diff(folder);
        command.arg(&log).arg("--a").arg(&pucks).arg("--b").arg(&deaf).args(&asked);
        let (found, code) = json(&mut command);
        assert_eq!((found["verdict"].as_str(), found["side"].as_str(), code), (Some("untestable"), Some("b"), 125));
        assert!(found["untestable"].as_str().unwrap().contains(reason), "{found}");
        let mut command = diff(folder);
        command.arg(&log).arg("--a").arg(&pucks).arg("--b").arg(&pucks).args(&asked);
        assert!(matches!(json(&mut command).1, 0 | 1), "pucks itself takes {asked:?}");
    }
}

#[test]
fn errors_of_a_build_are_never_a_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let trace = path(folder, "good.hittrace");
    let pucks = example("pucks");
    assert!(Command::new(&pucks).arg("replay").arg(&log).arg("-o").arg(&trace).output().unwrap().status.success());
    // The trace, truncated; then the trace with a later format version.
    let whole = std::fs::read(&trace).unwrap();
    std::fs::write(path(folder, "cut"), &whole[..whole.len() / 2]).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    std::fs::write(path(folder, "flipped"), &flipped).unwrap();
    let header = zstd::decode_all(&whole[..]).unwrap_or_default();
    let ours = [b"\xA6format\x92", &[hitreg::log::FORMAT.0 as u8, hitreg::log::FORMAT.1 as u8][..]].concat();
    let newer = replace_bytes(&first_chunk(&whole, &header), &ours, b"\xA6format\x92\x09\x00");
    let mut packed = zstd::bulk::Compressor::new(3).unwrap();
    packed.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
    std::fs::write(path(folder, "newer"), packed.compress(&newer).unwrap()).unwrap();
    // The trace of another log.
    let mut other = hitreg::store::read_trace(&trace).unwrap();
    other.header.log_digest = "0".repeat(32);
    let target = Targets::default().file(&path(folder, "other"), FileType::Trace).unwrap();
    hitreg::store::save_trace(&target, &other).unwrap();
    let folder_name = word(folder);
    let cases = [
        ("echo out of cheese >&2; exit 3".to_owned(), "failed (exit code 3)", "out of cheese"),
        ("echo no such game >&2; exit 125".to_owned(), "cannot play this log (exit code 125)", "no such game"),
        ("echo no such map >&2; exit 128".to_owned(), "cannot play this log (exit code 128)", "no such map"),
        ("echo at the brink >&2; kill -SEGV $$".to_owned(), "crashed (signal 11, SIGSEGV)", "at the brink"),
        ("echo waiting >&2; sleep 60 & wait".to_owned(), "still running after 1 s", "waiting"),
        ("echo done >&2".to_owned(), "exited 0 but wrote no trace", "done"),
        ("echo rubbish > \"$4\"; echo done >&2".to_owned(), "wrote a file that is not a trace", "done"),
        (format!("cp {folder_name}/cut \"$4\"; echo done >&2"), "wrote a file that is not a trace", "done"),
        (format!("cp {folder_name}/flipped \"$4\"; echo done >&2"), "not a trace: corrupt at offset", "done"),
        (format!("cp {folder_name}/other \"$4\"; echo done >&2"), "wrote the trace of another log", "done"),
        ("mkfifo \"$4\"; echo done >&2".to_owned(), "not a regular file", "done"),
        (format!("cp {folder_name}/newer \"$4\"; echo done >&2"), "use a newer hitreg", "done"),
        (format!("cp {} \"$4\"; echo done >&2", word(&log)), "wrote a file that is not a trace", "done"),
    ];
    for (text, reason, last_words) in &cases {
        let build = path(folder, "build");
        script(&build, text);
        let started = Instant::now();
        let mut command = diff(folder);
        command.arg(&log).arg("--a").arg(&pucks).arg("--b").arg(&build).args(["--time-limit", "1"]);
        let (found, code) = json(command.arg("--junit").arg(path(folder, "junit.xml")));
        assert_eq!(
            (found["verdict"].as_str(), found["side"].as_str(), code),
            (Some("untestable"), Some("b"), 125),
            "{text}"
        );
        let said = found["untestable"].as_str().unwrap();
        assert!(said.contains(reason) && !said.contains("hitreg recover"), "{text}: {found}");
        assert_eq!(found["last_words"][0], *last_words, "{text}");
        assert!(started.elapsed().as_secs() < 20, "{text}");
        let junit = std::fs::read_to_string(path(folder, "junit.xml")).unwrap();
        assert!(junit.contains("<error") && junit.contains("untestable"), "{junit}");
    }
    // A missing build is a mistake of the user.
    let missing = diff(folder).arg(&log).arg("--a").arg(&pucks).args(["--b", "no/such/build"]).output().unwrap();
    let output = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(128));
    assert!(output.contains("no/such/build: there is no such build"), "{output}");
}

/// The content of a file's first chunk: the first bytes of the unpacked file.
fn first_chunk(file: &[u8], unpacked: &[u8]) -> Vec<u8> {
    let length = zstd::zstd_safe::get_frame_content_size(file).ok().flatten().expect("a size") as usize;
    unpacked.get(..length).map_or_else(|| zstd::bulk::decompress(file, length).expect("a chunk"), <[u8]>::to_vec)
}

fn replace_bytes(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from).expect("the format");
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

#[test]
fn two_runs_of_one_build_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    for name in ["pucks", "pucks_bug"] {
        let build = example(name);
        let mut command = hitreg();
        command.arg("diff").arg(&log).arg("--a").arg(&build).arg("--b").arg(&build).arg("--no-cache");
        let (found, code) = json(&mut command);
        assert_eq!((found["verdict"].as_str(), code), (Some("same"), 0), "{name}");
    }
}

#[test]
fn a_bug_shows_as_a_changed_hit_and_its_effects() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let mut command = diff(folder);
    command.arg(&log).arg("--a").arg(example("pucks")).arg("--b").arg(example("pucks_bug"));
    let (found, code) = json(&mut command);
    assert_eq!((found["verdict"].as_str(), code), (Some("differs"), 1));
    assert_eq!((found["first"]["table"].as_str(), found["first"]["field"].as_str()), (Some("bodies"), Some("score")));
    let mut summary = diff(folder);
    summary.arg(&log).arg("--a").arg(example("pucks")).arg("--b").arg(example("pucks_bug")).arg("--summary");
    let output = summary.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((text.lines().count(), output.status.code()), (1, Some(1)), "{text}");
    // The bug changes no drawn positions.
    let (views, code) = json(
        diff(folder)
            .arg(&log)
            .arg("--a")
            .arg(example("pucks"))
            .arg("--b")
            .arg(example("pucks_bug"))
            .args(["--on", "views"]),
    );
    assert_eq!((views["verdict"].as_str(), code), (Some("same"), 0));
    let text =
        diff(folder).arg(&log).arg("--a").arg(example("pucks")).arg("--b").arg(example("pucks_bug")).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    // The first two lines contain paths, which may exceed the line width.
    assert!(text.lines().skip(4).all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn presets_and_settings_are_compared_as_two_sides() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    // A replay in this process and one in a child process give the same result.
    let pucks = example("pucks");
    for side in [&["--b-preset", "quake3"][..], &["--b-set", "interpolation.lerp_ms=50"]] {
        let mut own = Command::new(&pucks);
        let (own, code) = json(own.arg("diff").arg(&log).args(side));
        assert_eq!((own["verdict"].as_str(), code), (Some("differs"), 1));
        let mut child = diff(folder);
        let (child, _) = json(child.arg(&log).arg("--a").arg(&pucks).arg("--b").arg(&pucks).args(side));
        for part in ["first", "hits", "tables", "notes"] {
            assert_eq!(own[part], child[part], "{part}");
        }
    }
    let wrong =
        diff(folder).arg(&log).arg("--b").arg(&pucks).args(["--b-set", "interpolation.lerp=5"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(128));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean"));
}

#[test]
fn a_client_meets_another_builds_server() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let (old, new) = (example("pucks"), example("pucks_bug"));
    let across = |server: &Path, client: &Path| {
        json(diff(folder).arg(&log).arg("--server-build").arg(server).arg("--client-build").arg(client))
    };
    let (same, code) = across(&old, &old);
    assert_eq!((same["verdict"].as_str(), code), (Some("same"), 0));
    let (found, code) = across(&old, &new);
    assert_eq!((found["verdict"].as_str(), code), (Some("differs"), 1));
    assert!(found["notes"].as_array().unwrap().is_empty(), "{}", found["notes"]);
    // Both sides use the old server, so only predictions of the new client differ.
    assert_eq!(found["first"]["table"], "shots");
    assert!(found["first"]["field"].as_str().unwrap().starts_with("predicted_"), "{}", found["first"]);
}

#[test]
fn bisect_compares_a_log_with_its_recorded_states() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let ticks = |build: &str| json(Command::new(example(build)).args(["bisect", "ticks"]).arg(&log));
    let (same, code) = ticks("pucks");
    assert_eq!((same["verdict"].as_str(), code), (Some("same"), 0));
    let (found, code) = ticks("pucks_bug");
    assert_eq!((found["verdict"].as_str(), code), (Some("differs"), 1));
    assert_eq!(
        (found["first"]["place"]["tick"].as_u64(), found["first"]["field"].as_str()),
        (Some(515), Some("hash")),
        "{found}"
    );
    // hitreg reruns the tick's usercmds in both builds. They give the same result, so they are not the cause.
    let mut command = hitreg();
    command.args(["bisect", "ticks"]).arg(&log).arg("--a").arg(example("pucks")).arg("--b").arg(example("pucks_bug"));
    let (found, _) = json(command.args(["--on", "state", "--no-cache"]));
    assert_eq!(
        (found["first"]["place"]["tick"].as_u64(), found["first"]["field"].as_str()),
        (Some(515), Some("score"))
    );
    assert_eq!(found["reran"]["result"], "same", "{}", found["reran"]);
}

#[test]
fn programs_are_cached_by_content_and_scripts_never() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let (build, count) = (path(folder, "build"), path(folder, "count"));
    let compare = |build: &Path| {
        let mut command = diff(folder);
        json(command.arg(&log).arg("--a").arg(example("pucks")).arg("--b").arg(build)).0["verdict"].clone()
    };
    crate::pucks::version(&build, 1, &count);
    assert_eq!([compare(&build), compare(&build)], ["same", "same"]);
    assert_eq!(lines(&count), 2, "a script was not run");
    let kept =
        || std::fs::read_dir(path(folder, "cache/traces")).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(kept().len(), 1, "{:?}", kept());
    // The cache key is the content: another program under the same name is another build.
    let copy = path(folder, "copy");
    std::fs::copy(example("pucks"), &copy).unwrap();
    assert_eq!(compare(&copy), "same");
    std::fs::copy(example("pucks_bug"), &copy).unwrap();
    assert_eq!(compare(&copy), "differs");
    // A damaged trace in the cache is replaced.
    for file in kept() {
        std::fs::write(file, "rubbish").unwrap();
    }
    assert_eq!(compare(&copy), "differs");
}

/// A user may have no folder for caches, as one without a home.
#[test]
fn builds_run_without_a_folder_for_caches() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let homeless = |more: &[&str]| {
        let mut command = hitreg();
        command.arg("diff").arg(&log).arg("--b").arg(example("pucks")).arg("--a").arg(example("pucks")).args(more);
        command.env("HOME", "/dev/null").env_remove("XDG_CACHE_HOME").output().unwrap()
    };
    assert_eq!(homeless(&[]).status.code(), Some(0));
    let named = homeless(&["--cache", "/dev/null/cache"]);
    let said = String::from_utf8_lossy(&named.stderr).into_owned();
    assert!(named.status.code() == Some(128) && said.contains("traces cannot be cached here"), "{said}");
}

/// A build for another machine, or without its interpreter, is at fault itself.
#[test]
fn a_file_that_the_system_does_not_start_is_an_untestable_build() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    for text in ["not a program", "#!/no/such/interpreter\n"] {
        let build = path(folder, "build");
        std::fs::write(&build, text).unwrap();
        std::fs::set_permissions(&build, std::fs::Permissions::from_mode(0o755)).unwrap();
        let run = |words: &[&dyn AsRef<OsStr>]| {
            let output = hitreg().args(words).env("XDG_CACHE_HOME", folder).output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).split_whitespace().collect::<Vec<_>>().join(" ");
            (output.status.code(), said.contains("it cannot be started: "))
        };
        assert_eq!(run(&[&"verify", &log, &"--build", &build]), (Some(125), true), "{text}");
        assert_eq!(run(&[&"diff", &log, &"--a", &example("pucks"), &"--b", &build]), (Some(125), true), "{text}");
        assert_eq!(run(&[&"bisect", &"builds", &log, &build, &example("pucks")]), (Some(125), true), "{text}");
        assert_eq!(run(&[&"check", &build, &log]), (Some(1), true), "{text}");
    }
}

/// A Python with the packages of the example: the one in `HITREG_TEST_PYTHON`, else the system's.
fn python() -> Option<String> {
    let named = std::env::var("HITREG_TEST_PYTHON").ok();
    let python = named.clone().unwrap_or_else(|| "python3".to_owned());
    let has =
        Command::new(&python).args(["-c", "import msgpack, zstandard"]).output().is_ok_and(|o| o.status.success());
    assert!(has || named.is_none(), "{python} has no msgpack and zstandard");
    has.then_some(python)
}

#[test]
fn a_build_in_python_plays_the_same_game() {
    let Some(python) = python() else {
        crate::note::skipped("there is no Python with msgpack and zstandard (HITREG_TEST_PYTHON may name one)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pucks.py");
    let build = path(folder, "pucks-in-python");
    script(&build, &format!("exec {} {} \"$@\"", word(&python), word(&source)));
    for (name, impairments) in [("clean", &[][..]), ("lossy", &["--loss", "5%", "--jitter-ms", "20"])] {
        let log = path(folder, &format!("{name}.hitlog"));
        let mut record = Command::new(example("pucks"));
        record.args(["record", "synth", "--players", "5", "--seconds", "8", "-o"]).arg(&log).args(impairments);
        assert!(record.output().unwrap().status.success());
        let compare = |build: &Path| {
            json(diff(folder).arg(&log).arg("--a").arg(example("pucks")).arg("--b").arg(build).arg("--overlap"))
        };
        let (found, code) = compare(&build);
        assert_eq!((found["verdict"].as_str(), code), (Some("same"), 0), "{name}: {}", found["first"]);
        let compared = |table: &str| {
            let tables = found["tables"].as_array().unwrap();
            tables.iter().find(|t| t["name"] == table).unwrap()["rows"]["compared"].as_u64().unwrap()
        };
        assert!(compared("bodies") > 2000 && compared("executed") > 2000, "{}", found["tables"]);
        // One constant changes: `diff` names its field as it does for a Rust build.
        let text = std::fs::read_to_string(&source).unwrap();
        std::fs::write(path(folder, "pucks.py"), text.replace("REFIRE_MS = 250", "REFIRE_MS = 300")).unwrap();
        let changed = path(folder, "changed");
        script(&changed, &format!("exec {} {} \"$@\"", word(&python), word(path(folder, "pucks.py"))));
        let (found, code) = compare(&changed);
        assert_eq!((found["first"]["table"].as_str(), code), (Some("bodies"), 1));
        assert_eq!(found["first"]["field"], "refire_ms");
    }
    // A log of another game is untestable, for this build and for hitreg.
    let arena = path(folder, "arena.hitlog");
    assert!(hitreg().args(["record", "synth", "--seconds", "1", "-o"]).arg(&arena).output().unwrap().status.success());
    let (found, code) = json(diff(folder).arg(&arena).arg("--b").arg(&build));
    assert_eq!((found["last_words"][0].as_str(), code), (Some("this build plays pucks, and the log is of arena"), 125));
    let (found, code) = json(hitreg().arg("diff").arg(path(folder, "clean.hitlog")));
    assert_eq!((found["side"].as_str(), code), (Some("b"), 125));
    assert!(found["untestable"].as_str().unwrap().contains("this build plays arena"), "{found}");
    // The build is compared with the log's own records.
    let (found, code) = json(diff(folder).arg(path(folder, "clean.hitlog")).arg("--b").arg(&build));
    assert_eq!((found["verdict"].as_str(), code), (Some("same"), 0));
    assert!(found["a"].as_str().unwrap().ends_with("clean.hitlog, as recorded"), "{found}");
}

/// A recording shows only its own settings, and nothing after a missing part.
#[test]
fn a_recording_is_the_same_only_under_its_own_settings_and_without_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (log, pucks) = (path(folder, "game.hitlog"), example("pucks"));
    let mut record = Command::new(&pucks);
    record.args(["record", "synth", "--players", "3", "--seconds", "16", "--no-keyframes", "-o"]).arg(&log);
    assert!(record.output().unwrap().status.success());
    let compare = |log: &Path, options: &[&str]| json(diff(folder).arg(log).arg("--b").arg(&pucks).args(options));
    let (found, code) = compare(&log, &[]);
    assert_eq!((found["verdict"].as_str(), code), (Some("same"), 0), "{found}");
    let setting = "lag_compensation.max_unlag_ms=0";
    for options in [&["--b-set", setting][..], &["--b-set", setting, "--what-if", "rejudge"]] {
        let (found, code) = compare(&log, options);
        assert_eq!((found["side"].as_str(), code), (Some("a"), 125), "{options:?}: {found}");
    }
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    let [damaged, gap] = ["damaged.hitlog", "gap.hitlog"].map(|name| path(folder, name));
    std::fs::write(&damaged, bytes).unwrap();
    assert!(hitreg().arg("recover").arg(&damaged).arg("-o").arg(&gap).output().unwrap().status.success());
    let (found, code) = compare(&gap, &[]);
    assert_eq!(code, 125, "{found}");
    assert!(found["untestable"].as_str().unwrap().contains("a part of the log is missing"), "{found}");
}

#[test]
fn settings_without_effect_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = session(folder);
    let diff = |more: &[&str]| {
        let mut pucks = Command::new(example("pucks"));
        json(pucks.arg("diff").arg(&log).args(more))
    };
    let (lerp, far) = ("interpolation.lerp_ms=50", "teleport.distance_units=9000");
    let (found, code) = diff(&["--b-set", lerp, "--b-set", far]);
    assert_eq!((found["verdict"].as_str(), code), (Some("differs"), 1));
    let expected = serde_json::json!([{ "key": "teleport.distance_units", "a": "128", "b": "9000" }]);
    assert_eq!(found["settings_without_effect"], expected);
    let notes = [
        "each usercmd carries the changed setting: lerp_msec is 100 in A, 50 in B",
        "interpolation.lerp_ms is 100 in A, 50 in B",
        "teleport.distance_units 128 → 9000 changed nothing in this log",
    ];
    assert_eq!(found["notes"], serde_json::json!(notes));
    let (found, code) = diff(&["--b-set", far]);
    assert_eq!((found["verdict"].as_str(), code), (Some("same"), 0));
    assert_eq!(found["settings_without_effect"], expected);
    // The text says how far the settings were tried.
    let mut pucks = Command::new(example("pucks"));
    let text = pucks.arg("diff").arg(&log).args(["--b-set", lerp, "--b-set", far]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("teleport.distance_units 128 → 9000 alone changed nothing in this log up to 0:02"), "{text}");
    // For a preset, hitreg tests the effect of each setting on both sides.
    let (found, code) = diff(&["--b-preset", "quake3", "--on", "hits"]);
    assert_eq!(code, 1);
    let without: Vec<&str> =
        found["settings_without_effect"].as_array().unwrap().iter().filter_map(|s| s["key"].as_str()).collect();
    eprintln!("{:?}", found["notes"]);
    assert!(!without.contains(&"lag_compensation.enabled"), "{without:?}");
}

/// A good log stays good when another build replays it differently.
#[test]
fn verify_says_that_a_build_differs_from_a_good_log() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (log, trace) = (session(folder), path(folder, "moved.hittrace"));
    let pucks = example("pucks");
    assert!(Command::new(&pucks).arg("replay").arg(&log).arg("-o").arg(&trace).output().unwrap().status.success());
    let mut moved = hitreg::store::read_trace(&trace).unwrap();
    for column in moved.tables.iter_mut().filter(|table| table.name == "ticks").flat_map(|table| &mut table.columns) {
        if let ("at_us", hitreg::trace::ColumnData::I64(times)) = (column.name.as_str(), &mut column.data) {
            times.iter_mut().for_each(|at| *at += 1);
        }
    }
    let target = Targets::default().replacing_recordings().file(&trace, FileType::Trace).unwrap();
    hitreg::store::save_trace(&target, &moved).unwrap();
    let build = path(folder, "build");
    script(&build, &format!("cp {} \"$4\"", word(&trace)));
    let (found, code) = json(hitreg().arg("verify").arg(&log).arg("--build").arg(&build));
    assert_eq!((code, found["logs"][0]["verdict"].as_str()), (1, Some("differs")), "{found:#}");
    let detail = found["logs"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("differs from the log in `ticks`, first in tick"), "{detail}");
}

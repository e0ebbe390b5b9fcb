//! Builds that disagree with themselves, crash, or cannot open their log: no search blames a build for that.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pucks::{example, hitreg, json, lines, script, session, version};
use crate::repository::{Commit, history};

use super::folder::word;

/// The text of a build of which only run number `odd` has the bug; `turns` counts the runs.
fn unsteady_text(turns: &Path, odd: usize) -> String {
    let (turns, build) = (word(turns), word(example("pucks_bug")));
    format!(
        "mkdir -p {turns}; n=1; while ! mkdir {turns}/$n 2> /dev/null; do n=$((n + 1)); done\n\
         v=1; [ $n = {odd} ] && v=99\nPUCKS_VERSION=$v exec {build} \"$@\""
    )
}

/// Writes such a build.
fn unsteady(folder: &Path, odd: usize) -> PathBuf {
    let build = folder.join(format!("unsteady-{odd}"));
    script(&build, &unsteady_text(&folder.join(format!("turns-{odd}")), odd));
    build
}

/// Writes a build that plays alike in all runs.
fn steady(folder: &Path) -> PathBuf {
    let build = folder.join("steady");
    version(&build, 1, &folder.join("count"));
    build
}

#[test]
fn bisect_builds_blames_no_build_that_disagrees_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    for (odd, builds, what) in [(1, 3, "the reference for all others"), (2, 2, "which decides the answer")] {
        let build = unsteady(folder, odd);
        let mut bisect = hitreg();
        bisect.args(["bisect", "builds", "--no-cache", "--jobs", "1"]).arg(&log).args(vec![&build; builds]);
        let (found, code) = json(&mut bisect);
        assert_eq!((found["verdict"].as_str(), code), (Some("untestable"), 125), "{found}");
        let reason = found["untestable"].as_str().unwrap();
        assert!(reason.contains(what) && reason.contains("two replays by this build differ, first in `"), "{reason}");
        assert!(reason.contains(", tick 515, ") && found["first_bad"].is_null(), "{found}");
    }
    // Where nothing differs, nothing is replayed again.
    let build = steady(folder);
    let mut bisect = hitreg();
    let (found, code) = json(bisect.args(["bisect", "builds", "--no-cache"]).arg(&log).args([&build, &build]));
    assert_eq!((found["verdict"].as_str(), code, lines(&folder.join("count"))), (Some("none_is_bad"), 0, 2));
}

/// It is the third of six, which the search tries first. The fifth is the first with the bug.
#[test]
fn bisect_builds_skips_a_build_that_disagrees_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    let number = |number: usize| {
        let build = folder.join(format!("build-{number}"));
        version(&build, number, &folder.join("count"));
        build
    };
    let unsteady = unsteady(folder, 1);
    let builds = [number(1), number(2), unsteady.clone(), number(36), number(37), number(38)];
    let mut bisect = hitreg();
    let (found, code) = json(bisect.args(["bisect", "builds", "--no-cache", "--jobs", "1"]).arg(&log).args(&builds));
    assert_eq!((found["verdict"].as_str(), code), (Some("found"), 1), "{found}");
    let [first_bad, last_good, skipped] =
        [&found["first_bad"], &found["last_good"], &found["skipped"][0]["name"]].map(|name| name.as_str());
    assert_eq!([first_bad, last_good, skipped], [&builds[4], &builds[3], &unsteady].map(|build| build.to_str()));
}

#[test]
fn bisect_git_blames_no_commit_whose_build_disagrees_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    let build = format!("#!/bin/sh\n{}\n", unsteady_text(&folder.join("turns"), 2));
    let repository = folder.join("repository");
    history(&repository, 2, |_| Commit::with("game.sh", &build));
    let mut bisect = hitreg();
    bisect.args(["bisect", "git"]).arg(&log).arg("main~1..main").arg("--repo").arg(&repository);
    bisect.args(["--build-cmd", "mkdir -p out && cp game.sh out/game", "--artifact", "out/game"]);
    let (found, code) = json(bisect.arg("--cache").arg(folder.join("cache")));
    assert_eq!((found["verdict"].as_str(), code), (Some("untestable"), 125), "{found}");
    assert!(found["untestable"].as_str().unwrap().contains("two replays by this build differ"), "{found}");
}

#[test]
fn no_cause_is_named_and_no_log_shrunk_for_a_build_that_disagrees_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    for command in [&["bisect", "ticks"][..], &["shrink", "-o", "small.hitlog"]] {
        let build = unsteady(folder, 1);
        let mut search = hitreg();
        search.current_dir(folder).args(command).arg(&log).arg("--a").arg(&build).arg("--b").arg(steady(folder));
        let (found, code) = json(&mut search);
        assert_eq!((found["side"].as_str(), code), (Some("a"), 125), "{found}");
        assert!(found["untestable"].as_str().unwrap().starts_with("two replays by this build differ"), "{found}");
        assert!(!folder.join("small.hitlog").exists());
        std::fs::remove_dir_all(folder.join("turns-1")).unwrap();
    }
    let build = unsteady(folder, 1);
    let (found, code) =
        json(hitreg().args(["diff", "--no-cache"]).arg(&log).arg("--a").arg(&build).arg("--b").arg(&build));
    assert_eq!(code, 1);
    let notes = found["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().ends_with("the build is not deterministic")), "{notes:?}");
}

/// One cached trace would equal itself, so a build that is compared with itself runs twice.
#[test]
fn a_build_is_not_compared_with_itself_through_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    let cached = |b: &str| {
        let cache = folder.join(b);
        let mut diff = hitreg();
        diff.arg("diff")
            .arg(&log)
            .arg("--a")
            .arg(example("pucks"))
            .arg("--b")
            .arg(example(b))
            .arg("--cache")
            .arg(&cache);
        let (found, _) = json(&mut diff);
        assert_eq!(found["verdict"], if b == "pucks" { "same" } else { "differs" }, "{found}");
        std::fs::read_dir(cache.join("traces")).map_or(0, Iterator::count)
    };
    assert_eq!(cached("pucks"), 0);
    assert!(cached("pucks_bug") > 0);
}

#[test]
fn shrink_names_a_side_that_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    let crash = folder.join("crash");
    script(&crash, "echo no such map >&2\nkill -SEGV $$");
    let mut shrink = hitreg();
    shrink.current_dir(folder).args(["shrink", "-o", "small.hitlog"]).arg(&log);
    let (found, code) = json(shrink.arg("--a").arg(steady(folder)).arg("--b").arg(&crash));
    assert_eq!((found["side"].as_str(), found["last_words"][0].as_str(), code), (Some("b"), Some("no such map"), 125));
    assert!(found["untestable"].as_str().unwrap().starts_with("crashed"), "{found}");
}

/// A build opens the log itself, so standard input is refused before the build runs.
#[test]
fn no_build_gets_standard_input_as_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    let build = steady(folder);
    let build = build.to_str().unwrap();
    for command in [
        &["verify", "-", "--build", build][..],
        &["check", build, "-"],
        &["bisect", "builds", "-", build, build],
        &["bisect", "builds", "-", build, build, "--while", "{build} verify {}"],
        &["bisect", "ticks", "-", "--b", build],
        &["diff", "-", "--b", build],
        &["sweep", "-", "--build", build, "--set", "interpolation.lerp_ms=0..50:50"],
        &["shrink", "-", "-o", "small.hitlog", "--b", build],
        &["shrink", "-", "-o", "small.hitlog", "--build", build, "--while", "exit 1"],
    ] {
        let mut run = Command::new("sh");
        run.args(["-c", "log=$1; shift; exec \"$@\" < \"$log\"", "sh"]).arg(&log).arg(hitreg().get_program());
        run.current_dir(folder).args(command);
        let output = run.output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(128), "{command:?}: {text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("not a regular file: copy it to a file first"), "{command:?}: {text}");
        assert_eq!(lines(&folder.join("count")), 0, "{command:?}");
    }
}

#[test]
fn a_commit_without_its_submodules_says_how_to_get_them() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    let repository = folder.join("repository");
    history(&repository, 2, |_| Commit::with("game.sh", "#!/bin/sh\n"));
    let reason = |build: &str| {
        let mut bisect = hitreg();
        bisect.args(["bisect", "git"]).arg(&log).arg("main~1..main").arg("--repo").arg(&repository);
        bisect.args(["--build-cmd", build, "--artifact", "game", "--cache"]).arg(folder.join("cache"));
        let (found, code) = json(&mut bisect);
        assert_eq!(code, 125, "{found}");
        found["untestable"].as_str().unwrap().to_owned()
    };
    assert!(!reason("exit 1").contains("submodules"));
    assert!(reason("touch .gitmodules; exit 1").contains("`git submodule update --init -q && `"));
    assert!(reason("touch .gitmodules").contains("`git submodule update --init -q && `"));
}

/// A build whose states are as recorded and whose shots are not differs from the log.
#[test]
fn verify_compares_the_recorded_shots_with_those_of_a_build() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    let (honest, trace) = (example("pucks"), folder.join("shots.hittrace"));
    let replay =
        || assert!(Command::new(&honest).arg("replay").arg(&log).arg("-o").arg(&trace).status().unwrap().success());
    replay();
    let targets = hitreg::store::Targets::default().replacing_recordings();
    // An engine records the shots that its server judged.
    let mut session = hitreg::store::read_log(&log).unwrap();
    let replayed = hitreg::store::read_trace(&trace).unwrap();
    let shots = hitreg::trace::schema::shots::Columns::of(&replayed);
    let judged = (0..shots.rows).filter(|row| ["hit", "missed"].contains(&shots.reason.get(*row)));
    for row in judged {
        let at = hitreg::units::Micros(shots.at_us[row]);
        session.players[shots.shooter[row] as usize].judged.push(hitreg::record::ShotRecord {
            command: hitreg::units::CommandSeq(shots.command[row]),
            at,
            index: shots.index[row] as u8,
            reason: shots.reason.get(row).parse().unwrap(),
            target: hitreg::units::EntityId::named(shots.target.get(row)),
            damage: shots.damage[row] as i32,
            ..Default::default()
        });
    }
    let target = targets.file(&log, hitreg::store::FileType::Log).unwrap();
    hitreg::store::save_log(&target, &session, hitreg::log::WriterOptions::whole()).unwrap();
    let (found, code) = json(hitreg().arg("verify").arg(&log).arg("--build").arg(&honest));
    assert_eq!((found["verdict"].as_str(), code), (Some("same"), 0), "{found:#}");

    std::fs::remove_file(&trace).unwrap();
    replay();
    let mut changed = hitreg::store::read_trace(&trace).unwrap();
    let shots = changed.tables.iter_mut().find(|table| table.name == "shots").unwrap();
    let reason = shots.columns.iter_mut().find(|column| column.name == "reason").unwrap();
    let hitreg::trace::ColumnData::Name { names, .. } = &mut reason.data else { panic!("names") };
    let hit = names.iter().position(|name| name == "hit").unwrap();
    let missed = names.iter().position(|name| name == "missed").unwrap();
    names.swap(hit, missed);
    let target = targets.file(&trace, hitreg::store::FileType::Trace).unwrap();
    hitreg::store::save_trace(&target, &changed).unwrap();
    let build = folder.join("build");
    script(&build, &format!("cp {} \"$4\"", word(&trace)));
    let (found, code) = json(hitreg().arg("verify").arg(&log).arg("--build").arg(&build));
    assert_eq!((found["verdict"].as_str(), code), (Some("differs"), 1), "{found:#}");
    let detail = found["logs"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("differs from the log in `shots`"), "{detail}");
    // A golden changes nothing, and the contradiction is not accepted in its place.
    let (found, code) = json(hitreg().arg("verify").arg(&log).arg("--build").arg(&honest).arg("--accept"));
    assert_eq!((found["verdict"].as_str(), code), (Some("accepted"), 0), "{found:#}");
    for accept in [&[][..], &["--accept"]] {
        let (found, code) = json(hitreg().arg("verify").arg(&log).arg("--build").arg(&build).args(accept));
        assert_eq!((found["verdict"].as_str(), code), (Some("differs"), 1), "{found:#}");
        let detail = found["logs"][0]["detail"].as_str().unwrap();
        assert!(detail.contains("differs from the log in `shots`"), "{detail}");
    }
    let (found, code) = json(hitreg().arg("verify").arg(&log).arg("--build").arg(&honest));
    assert_eq!((found["verdict"].as_str(), code), (Some("same"), 0), "{found:#}");
    let point = |build: &Path, name: &str| {
        let (found, _) = json(hitreg().arg("check").arg(build).arg(&log));
        let mut points = found["points"].as_array().unwrap().iter();
        points.find(|point| point["point"] == name).unwrap().clone()
    };
    let shots = |build: &Path| point(build, "shots as recorded")["result"].clone();
    assert_eq!((shots(&honest), shots(&build)), ("ok".into(), "wrong".into()));

    // A field that one client received with another value cannot be compared.
    let bodies = || point(&honest, "bodies as recorded");
    assert_eq!(bodies()["what"], "all recorded bodies");
    let (key, mut cells) = session.states.iter().next().map(|(key, cells)| (key, cells.to_vec())).unwrap();
    cells[0] ^= 1;
    session.states.push(hitreg::record::StateKey { viewer: Some(hitreg::units::PlayerId(0)), ..key }, &cells);
    session.put_in_order();
    let targets = hitreg::store::Targets::default().replacing_recordings();
    let target = targets.file(&log, hitreg::store::FileType::Log).unwrap();
    hitreg::store::save_log(&target, &session, hitreg::log::WriterOptions::whole()).unwrap();
    let what = bodies()["what"].as_str().unwrap().to_owned();
    assert!(what.contains("origin.x: not compared, because viewers received different values"), "{what}");
}

/// Zero shots are something else than a trace that does not tell.
#[test]
fn shots_of_a_build_without_their_table_are_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, log) = (folder.path(), session(folder.path()));
    let trace = folder.join("few.hittrace");
    let pucks = example("pucks");
    assert!(Command::new(&pucks).arg("replay").arg(&log).arg("-o").arg(&trace).output().unwrap().status.success());
    let mut few = hitreg::store::read_trace(&trace).unwrap();
    few.tables.retain(|table| table.name != "shots");
    let target =
        hitreg::store::Targets::default().replacing_recordings().file(&trace, hitreg::store::FileType::Trace).unwrap();
    hitreg::store::save_trace(&target, &few).unwrap();
    let build = folder.join("build");
    script(&build, &format!("cp {} \"$4\"", word(&trace)));
    let verify = |build: &Path| {
        let mut verify = hitreg();
        verify.arg("verify").arg(&log).arg("--build").arg(build);
        verify
    };
    let (found, code) = json(&mut verify(&build));
    let exercised = &found["logs"][0]["exercised"];
    assert!(code == 0 && exercised["shots"].is_null() && exercised["hits"].is_null(), "{found:#}");
    let text = String::from_utf8(verify(&build).output().unwrap().stdout).unwrap();
    assert!(text.contains("shots not known"), "{text}");
    assert!(json(&mut verify(&pucks)).0["logs"][0]["exercised"]["shots"].as_u64() > Some(0));
}

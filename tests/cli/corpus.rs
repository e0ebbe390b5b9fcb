//! Many logs: inputs, kept results, shards, thresholds, and the page over all of them.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::folder::{Folder, arguments, code, text, word};
use super::habits::fed;
#[cfg(unix)]
use super::pucks::script;

/// A folder with logs of several presets and numbers of players, in `logs`.
pub(crate) fn corpus(logs: u32) -> Folder {
    let folder = Folder::empty();
    fs::create_dir(folder.path("logs")).expect("a folder");
    for number in 0..logs {
        let preset = ["half-life", "half-life", "quakeworld"][number as usize % 3];
        let (players, seconds) = (3 + number % 2, 6 + number % 3);
        folder.done(&format!(
            "record synth -o logs/{number}.hitlog --preset {preset} --delay-ms 80 --players {players} --seconds {seconds} --seed {number}"
        ));
    }
    folder
}

/// The lines of a file, sorted.
pub(crate) fn sorted(folder: &Folder, name: &str) -> Vec<String> {
    let mut rows = timeless_rows(folder, name);
    rows.sort();
    rows
}

/// The rows of a file without the times of verdicts.
fn timeless_rows(folder: &Folder, name: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.path(name)).expect(name);
    let timeless = |row: &str| match row.split_once("\"judged_at_ms\":") {
        Some((before, after)) => {
            let digits = after.find(|c: char| !c.is_ascii_digit()).expect("more fields");
            assert!(digits == 13, "a time of this century: {row}");
            format!("{before}\"judged_at_ms\":0{}", &after[digits..])
        }
        None => row.to_owned(),
    };
    text.lines().map(timeless).collect()
}

/// The options of side B.
pub(crate) const CHANGE: &str = "--b-set lag_compensation.enabled=false";

/// A copy is no further evidence, whether or not results are kept.
#[test]
fn copies_of_a_log_are_counted_with_and_without_kept_results() {
    let folder = corpus(1);
    for copy in 1..10 {
        fs::copy(folder.path("logs/0.hitlog"), folder.path(&format!("logs/{copy}.hitlog"))).expect("a copy");
    }
    for kept in ["", " --results kept"] {
        let output = folder.run(&format!("diff logs {CHANGE} --format json{kept}"));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(summary["copies"], 9, "{kept}: {summary:#}");
    }
    let page = folder.run(&format!("diff logs {CHANGE}"));
    assert!(text(&page.stdout).contains("9 copied logs: in all figures"), "{}", text(&page.stdout));
    // `verify` has no test for chance.
    folder.done("verify logs --results verified");
    folder.done("summary verified --html verified.html");
    let html = fs::read_to_string(folder.path("verified.html")).expect("a page");
    assert!(!html.contains("test for chance"), "{html}");
}

#[test]
fn folders_patterns_and_manifests_are_one_corpus() {
    let folder = corpus(4);
    fs::write(folder.path("list"), "# all\nlogs/0.hitlog\nlogs/1.hitlog\nlogs/2.hitlog\nlogs/3.hitlog\n")
        .expect("written");
    let pages: BTreeSet<String> = ["logs", "'logs/*.hitlog'", "@list"]
        .map(|logs| {
            let output = folder.run(&format!("diff {logs} {CHANGE}"));
            assert_eq!(code(&output), 1, "{}", text(&output.stderr));
            text(&output.stdout)
        })
        .into();
    assert_eq!(pages.len(), 1, "{pages:?}");
    let swept = ["logs/*.hitlog", "@list"]
        .map(|logs| folder.done(&format!("sweep '{logs}' --set interpolation.lerp_ms=50,100")));
    assert_eq!(swept[0], swept[1]);
    for (line, sentence) in [
        ("diff 'logs/*.log' --b-preset quake3", "no file matches"),
        ("verify @absent", "absent: there is no such file"),
        ("diff logs --b-preset quake3 --why 1", "--why needs one log"),
        ("diff logs/0.hitlog logs/1.hitlog --results kept", "the options of a corpus"),
        ("verify logs --partition env", "the environment names no share"),
        ("verify logs --max hits=1", "write FIGURE=NUMBER"),
        ("verify logs --max hits-changed=0", "this command does not measure hits-changed"),
        ("sweep logs --presets quake3 --max hits-changed=0", "this command does not measure hits-changed"),
    ] {
        let message = folder.refused(line);
        assert!(message.contains(sentence), "{line}: {message}");
    }
}

/// More shares than logs are no failure of a machine that has nothing to do.
#[test]
fn a_share_without_logs_is_noted_and_does_not_fail() {
    let folder = corpus(2);
    let swept = "sweep logs --set interpolation.lerp_ms=50,100";
    for line in ["verify logs --junit out.xml", "diff logs --b-preset quake3", "replay logs", swept] {
        let output = folder.run(&format!("{line} --partition slice:3/3"));
        assert_eq!((code(&output), &*text(&output.stdout)), (0, ""), "{line}");
        assert_eq!(text(&output.stderr), "note: --partition slice:3/3 is empty: there are 2 logs\n", "{line}");
    }
    let report = fs::read_to_string(folder.path("out.xml")).expect("the report of a share without logs");
    assert!(report.contains("<testsuite name=\"hitreg verify\" tests=\"0\""), "{report}");
}

#[test]
fn a_bad_line_of_a_manifest_is_a_problem_and_the_rest_goes_on() {
    let folder = corpus(2);
    fs::write(folder.path("list"), "logs/0.hitlog\nlogs/absent.hitlog\nlogs/1.hitlog\n").expect("written");
    let output = folder.run("verify @list");
    let page = text(&output.stdout);
    assert_eq!(code(&output), 128, "{page}");
    assert!(page.contains("2 logs: 2 ok") && page.contains("list: line 2: there is no such file"), "{page}");
}

#[test]
fn each_log_of_a_corpus_is_replayed_and_exported_into_a_folder() {
    let folder = corpus(3);
    fs::write(folder.path("logs/broken.hitlog"), "-").expect("written");
    fs::write(folder.path("list"), "logs/0.hitlog\nlogs/absent.hitlog\nlogs/1.hitlog\n").expect("written");
    let output = folder.run("replay logs -o traces");
    let (page, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(code(&output), 128, "{errors}");
    assert!(page.starts_with("3 logs replayed, 1 problem") && page.contains("Traces written to traces"), "{page}");
    assert!(errors.starts_with("error: logs/broken.hitlog: ") && errors.lines().count() == 1, "{errors}");
    for number in 0..3 {
        folder.done(&format!("replay logs/{number}.hitlog -o alone-{number}.hittrace"));
        let traces = [format!("traces/{number}.hittrace"), format!("alone-{number}.hittrace")];
        let [of_corpus, alone] = traces.map(|name| fs::read(folder.path(&name)).expect("a trace"));
        assert!(of_corpus == alone, "{number}");
    }
    let output = folder.run("replay @list --format json");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((code(&output), report["logs"].as_array().map(Vec::len)), (128, Some(2)));
    assert!(
        report["problems"][0].as_str().is_some_and(|problem| problem.contains("list: line 2: there is no such file"))
    );
    let alone = folder.json("replay logs/0.hitlog");
    assert_eq!([&report["logs"][0]["digest"], &report["logs"][0]["shots"]], [&alone["digest"], &alone["shots"]]);
    // Nothing is replayed if an output exists.
    let refused = folder.refused("replay logs -o traces");
    assert!(refused.contains("traces/0.hittrace: this trace exists already"), "{refused}");
    assert_eq!(code(&folder.run("replay 'logs/[01].hitlog' -o traces --record again --force")), 0);
    folder.done("verify again");

    let output = folder.run("export logs --table shots -o tables");
    assert_eq!(code(&output), 128, "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), errors, "one sentence about the broken log");
    let alone = folder.done("export logs/2.hitlog --table shots");
    assert_eq!(fs::read_to_string(folder.path("tables/2/shots.jsonl")).expect("a table"), alone);
    folder.done("export 'logs/[01].hitlog' --all --to csv -o tables");
    let alone = folder.done("export logs/1.hitlog --table frames --to csv");
    assert_eq!(fs::read_to_string(folder.path("tables/1/frames.csv")).expect("a table"), alone);
    folder.done("export logs/0.hitlog traces/1.hittrace --perfetto -o timelines");
    folder.done("export traces/1.hittrace --perfetto -o alone.json");
    let timelines = ["timelines/1.json", "alone.json"].map(|name| fs::read(folder.path(name)).expect("a timeline"));
    assert!(timelines[0] == timelines[1] && folder.path("timelines/0.json").exists());
    folder.done("replay logs --sample 2 --seed 3 --partition slice:1/2");
}

#[test]
fn outputs_of_a_corpus_never_collide_and_never_replace_a_log() {
    let folder = corpus(2);
    fs::create_dir(folder.path("logs/night")).expect("a folder");
    fs::copy(folder.path("logs/0.hitlog"), folder.path("logs/night/0.hitlog")).expect("copied");
    for line in
        ["replay logs -o out", "replay logs --record out", "export logs --all -o out", "export logs --perfetto -o out"]
    {
        let message = folder.refused(line);
        let sentence = "logs/0.hitlog and logs/night/0.hitlog have one name, so out would have two outputs with it";
        assert!(message.contains(sentence), "{line}: {message}");
    }
    fs::remove_dir_all(folder.path("logs/night")).expect("removed");
    let before = fs::read(folder.path("logs/0.hitlog")).expect("a log");
    let message = folder.refused("replay logs --record logs --force");
    assert!(message.contains("logs/0.hitlog: this is an input of the command"), "{message}");
    assert_eq!(fs::read(folder.path("logs/0.hitlog")).expect("a log"), before);
    for (line, sentence) in [
        ("replay logs -o -", "several logs need a folder for their outputs"),
        ("replay logs -o logs/0.hitlog", "logs/0.hitlog: this is not a directory"),
        ("verify logs --results logs/0.hitlog", "logs/0.hitlog: this is not a directory"),
        ("replay logs -o logs/0.hitlog/out", "logs/0.hitlog: this is not a directory"),
        ("replay logs --set interpolation.lerp=1", "interpolation.lerp"),
        ("replay logs --what-if rejudge", "--what-if rejudge needs other settings"),
        ("export logs --table shots", "several logs need a folder for their outputs"),
        ("export logs", "the list of tables is that of one log"),
        ("export logs -o tables", "the list of tables is that of one log"),
    ] {
        let message = folder.refused(line);
        assert!(message.contains(sentence) && message.lines().count() <= 2, "{line}: {message}");
    }
}

#[test]
fn a_sweep_goes_on_without_bad_logs_and_has_thresholds() {
    let folder = corpus(3);
    let swept = "--set interpolation.lerp_ms=50,100";
    fs::write(folder.path("list"), "logs/0.hitlog\nlogs/absent.hitlog\nlogs/1.hitlog\n").expect("written");
    let alone = folder.done(&format!("sweep logs/0.hitlog logs/1.hitlog {swept}"));
    let output = folder.run(&format!("sweep @list {swept} --markdown page.md"));
    assert_eq!((code(&output), text(&output.stdout)), (128, alone.clone()));
    assert!(text(&output.stderr).contains("error: list: line 2: there is no such file"), "{}", text(&output.stderr));
    let page = fs::read_to_string(folder.path("page.md")).expect("a page");
    assert!(page.contains("list: line 2: there is no such file") && page.contains("| ---"), "{page}");
    fs::write(folder.path("logs/broken.hitlog"), "-").expect("written");
    let output = folder.run(&format!("sweep logs/0.hitlog logs/1.hitlog logs/broken.hitlog {swept}"));
    assert_eq!((code(&output), text(&output.stdout)), (128, alone));
    for (maximum, expected, word) in [
        ("corrections=90%", 0, "ok"),
        ("corrections=0%", 1, "exceeded"),
        ("view-error-p95=10000", 0, "ok"),
        ("view-error-p95=0.001", 1, "exceeded"),
    ] {
        let mut command =
            folder.command(&format!("sweep logs/0.hitlog --set lag_compensation.enabled=true,false --max {maximum}"));
        let output =
            command.env("GITHUB_STEP_SUMMARY", "step.md").env("GITHUB_ACTIONS", "true").output().expect("it runs");
        assert_eq!(code(&output), expected, "{maximum}: {}", text(&output.stdout));
        assert!(text(&output.stdout).starts_with(word), "{maximum}: {}", text(&output.stdout));
        assert_eq!(text(&output.stderr).contains("::error::hitreg: "), expected != 0, "{maximum}");
    }
    let step = fs::read_to_string(folder.path("step.md")).expect("a page");
    assert_eq!(step.matches("<!-- hitreg summary -->").count(), 4, "{step}");
}

#[cfg(unix)]
#[test]
fn a_log_that_a_build_cannot_play_does_not_stop_the_others() {
    let folder = corpus(3);
    let build = "case \"$2\" in *1.hitlog) echo no such map >&2; exit 3 ;; esac\nexec";
    script(&folder.path("game"), &format!("{build} {} \"$@\"", word(env!("CARGO_BIN_EXE_hitreg"))));
    let swept = "--build ./game --set interpolation.lerp_ms=50,100";
    let alone = folder.done(&format!("sweep logs/0.hitlog logs/2.hitlog {swept}"));
    let output = folder.run(&format!("sweep logs {swept} --csv sweep.csv"));
    let message = text(&output.stderr);
    assert_eq!((code(&output), text(&output.stdout)), (125, alone), "{message}");
    let reason = "./game: failed (exit code 3); last output: no such map";
    let next = "./game replay logs/1.hitlog --set interpolation.lerp_ms=50 -o test.hittrace";
    assert!(message.contains(&format!("logs/1.hitlog: untestable: {reason}. Run: {next}")), "{message}");
    assert_eq!(fs::read_to_string(folder.path("sweep.csv")).expect("a file").lines().count(), 3);
    let output = folder.run(&format!("sweep logs {swept} --max corrections=0%"));
    assert_eq!(code(&output), 1, "an exceeded threshold outranks an untestable log");
    let page = text(&folder.run("diff logs --b ./game").stdout);
    assert!(page.contains("    ./game replay logs/1.hitlog -o test.hittrace\n"), "{page}");
    assert!(page.split_whitespace().collect::<Vec<_>>().join(" ").contains("last output: no such map"), "{page}");
}

#[test]
fn a_corpus_of_one_broken_log_has_all_outputs() {
    let folder = corpus(1);
    fs::write(folder.path("logs/0.hitlog"), "-").expect("written");
    for name in ["logs", "logs/0.hitlog"] {
        let mut command =
            folder.command(&format!("diff {name} {CHANGE} --markdown page.md --reports pages --format json --force"));
        let output =
            command.env("GITHUB_STEP_SUMMARY", "step.md").env("GITHUB_ACTIONS", "true").output().expect("it runs");
        let page: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((code(&output), &page["logs"]["broken"]), (128, &Value::from(1)), "{name}: {page}");
        assert!(text(&output.stderr).starts_with("::error file=logs/0.hitlog"), "{}", text(&output.stderr));
        for file in ["page.md", "step.md", "pages/summary.html"] {
            assert!(fs::read_to_string(folder.path(file)).is_ok_and(|page| page.contains("1 log: 1 broken")), "{file}");
            fs::remove_file(folder.path(file)).expect("removed");
        }
    }
}

#[test]
fn a_recording_has_no_figures_of_shots_and_corrections() {
    let folder = corpus(2);
    let page = folder.json("diff logs");
    assert_eq!([&page["a"], &page["hits_changed"], &page["shots_judged"]], [&Value::Null; 3], "{page}");
    assert_eq!([&page["weapons"], &page["causes"]].map(|list| list.as_array().map(Vec::len)), [Some(0); 2], "{page}");
    for group in [&page["players"][0], &page["maps"][0]] {
        assert!(group["shots_b"].as_u64() > Some(0), "{group}");
        assert_eq!(["shots_a", "hits_a", "changed"].map(|name| &group[name]), [&Value::Null; 3], "{group}");
    }
    assert!(page["b"]["shots"].as_u64() > Some(0) && page["b"]["corrections"].as_u64() > Some(0), "{page}");
    let text = folder.done("diff logs");
    assert!(!text.contains("weapon") && !text.contains("knockback"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_linked_folder_belongs_to_the_corpus_once() {
    let folder = corpus(2);
    fs::create_dir_all(folder.path("all/own")).expect("a folder");
    fs::rename(folder.path("logs/1.hitlog"), folder.path("all/own/1.hitlog")).expect("renamed");
    for (target, link) in [("../logs", "all/night"), ("own", "all/alias"), ("..", "all/own/loop")] {
        std::os::unix::fs::symlink(target, folder.path(link)).expect("linked");
    }
    let page = folder.json("verify all");
    let logs = page["logs"].as_array().expect("a list").iter().map(|log| log["path"].as_str().expect("a path"));
    assert_eq!(logs.collect::<Vec<_>>(), ["all/night/0.hitlog", "all/own/1.hitlog"]);
}

/// A task of `examples/corpus/slurm.sh`, or the pod of `kubernetes.yaml`, that judges the second of two shares.
#[cfg(unix)]
fn task(folder: &Folder, file: &str, [logs, options]: [&str; 2]) -> Command {
    let path = format!("{}/examples/corpus/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut task = Command::new("bash");
    task.current_dir(&folder.dir);
    if file == "slurm.sh" {
        task.arg(&path).args([logs, "kept"]).args(options.split(' '));
        task.env("HITREG", env!("CARGO_BIN_EXE_hitreg")).env("SLURM_ARRAY_TASK_ID", "2");
        task.envs([("SLURM_ARRAY_TASK_MIN", "1"), ("SLURM_ARRAY_TASK_COUNT", "2")]);
        return task;
    }
    let manifest = fs::read_to_string(path).expect("a manifest");
    let (_, script) = manifest.split_once("            - |\n").expect("a script");
    let (script, _) = script.split_once("          env:").expect("its end");
    let script = script.replace("hitreg diff", &format!("{} diff", word(env!("CARGO_BIN_EXE_hitreg"))));
    let script = script.replace("--b-set interpolation.lerp_ms=50", options);
    task.args(["-c", &script.replace("/corpus/logs", logs).replace("/corpus/results", "kept")]);
    task.envs([("JOB_COMPLETION_INDEX", "1"), ("JOB_COMPLETIONS", "2"), ("THREADS", "2")]);
    task
}

#[cfg(unix)]
#[test]
fn a_task_of_a_cluster_fails_unless_it_has_all_verdicts() {
    let folder = corpus(2);
    fs::write(folder.path("list"), "logs/0.hitlog\nlogs/1.hitlog\nnone.hitlog\n").expect("written");
    fs::write(folder.path("short"), "logs/0.hitlog\nnone.hitlog\n").expect("written");
    let log = fs::read(folder.path("logs/1.hitlog")).expect("a log");
    for file in ["slurm.sh", "kubernetes.yaml"] {
        let run = |logs: &str, options: &str| {
            let output = task(&folder, file, [logs, options]).output().expect("bash");
            (code(&output), text(&output.stdout), text(&output.stderr))
        };
        let judged = (0, "1 log: 1 different\n".to_owned(), String::new());
        assert_eq!(run("logs", CHANGE), judged, "{file}");
        assert_eq!([run("none", CHANGE), run("logs", "--b-set no=1")].map(|ended| ended.0), [128; 2], "{file}");
        // The missing log is a problem of all shares, also of one without logs.
        for (list, number, line) in
            [("list", 3, "1 log: 1 different, 1 problem\n"), ("short", 2, "0 logs: 1 problem\n")]
        {
            let problem = format!("error: {list}: line {number}: there is no such file: none.hitlog\n");
            assert_eq!(run(&format!("@{list}"), CHANGE), (128, line.to_owned(), problem), "{file}");
        }
        fs::write(folder.path("logs/1.hitlog"), "-").expect("written");
        assert_eq!(run("logs", CHANGE).0, 0, "{file}: a broken log has a verdict");
        fs::write(folder.path("logs/1.hitlog"), &log).expect("written");
    }
}

#[test]
fn a_page_has_the_sums_of_all_comparisons() {
    let folder = corpus(5);
    let together: Value =
        serde_json::from_slice(&folder.run(&format!("diff logs {CHANGE} --format json")).stdout).expect("JSON");
    let mut sums = [0; 3];
    for number in 0..5 {
        let alone = folder.run(&format!("diff logs/{number}.hitlog {CHANGE} --format json"));
        let alone: Value = serde_json::from_slice(&alone.stdout).expect("JSON");
        let count = |name: &str| alone["hits"][name].as_u64().expect(name);
        sums[0] += ["only_a", "only_b", "other_target", "other_wound"].map(count).iter().sum::<u64>();
        sums[1] += ["both", "only_b", "other_target", "other_wound"].map(count).iter().sum::<u64>();
        sums[2] += u64::from(alone["verdict"] == "differs");
    }
    assert_eq!(together["schema"], "hitreg-corpus-1");
    assert_eq!(
        [&together["hits_changed"], &together["b"]["hits"], &together["logs"]["differs"]],
        sums.map(Value::from).each_ref()
    );
    let of_groups = |name: &str| -> u64 {
        together[name].as_array().expect(name).iter().map(|group| group["changed"].as_u64().expect("a count")).sum()
    };
    assert_eq!([of_groups("weapons"), of_groups("latencies"), of_groups("players")], [sums[0]; 3]);
    // The named commands explain the changes.
    for worst in together["worst"].as_array().expect("logs") {
        let next = worst["next"].as_str().expect("a command");
        let output = folder.run(&format!("{} --format json", arguments(next)));
        assert_eq!(code(&output), 1, "{next}");
        let explained: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let number: usize = next.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("--why N");
        let change = explained["hits"]["changed"][number - 1]["change"].as_str().expect("a changed shot");
        assert_ne!(change, "other_reason", "{next}");
    }
}

#[test]
fn equal_sides_name_no_weapon() {
    let folder = corpus(1);
    let page = folder.done("diff logs --b-set lag_compensation.enabled=true");
    assert!(page.starts_with("1 log: 1 ok"), "{page}");
    assert!(page.contains("No weapon was tested for a change of its hit rate."), "{page}");
    // The hit rate of one log shows no more than that log.
    let output = folder.run(&format!("diff logs {CHANGE}"));
    let page = text(&output.stdout);
    assert!(page.contains("No weapon was tested for a change of its hit rate."), "{page}");
    assert!(page.contains("hit rate changed in at least 10 logs are tested"), "{page}");
}

#[test]
fn kept_verdicts_are_judged_again_only_when_a_log_or_the_build_changes() {
    let folder = corpus(4);
    for line in [format!("diff logs {CHANGE} --results kept"), "verify logs --results kept".to_owned()] {
        let run = || {
            let output = folder.run(&line);
            (text(&output.stdout), fs::read_to_string(folder.path("kept/results.jsonl")).expect("results"))
        };
        let added = |before: &str, after: &str| -> Vec<String> {
            let rows = after.strip_prefix(before).expect("the rows before").lines();
            rows.filter(|row| row.starts_with("{\"v\":1,\"row\":\"log\"")).map(str::to_owned).collect()
        };
        let (first, rows) = run();
        let (second, same) = run();
        assert_eq!(second, first);
        // One reused verdict is kept again: it says when the last run was.
        assert_eq!(added(&rows, &same).len(), 1, "nothing is judged again");
        // The content decides, not the time of a file.
        fs::write(folder.path("logs/0.hitlog"), fs::read(folder.path("logs/0.hitlog")).expect("a log"))
            .expect("written");
        let (_, same_again) = run();
        assert_eq!(added(&same, &same_again).len(), 1);
        folder.done("record synth -o logs/1.hitlog --players 2 --seconds 3 --seed 77 --force");
        let (_, more) = run();
        let logs = added(&same_again, &more);
        assert!(logs.len() == 1 && logs[0].contains("logs/1.hitlog"), "{logs:?}");
        folder.done(
            "record synth -o logs/1.hitlog --players 4 --seconds 7 --preset half-life --delay-ms 80 --seed 1 --force",
        );
    }
    // A kept verdict has all figures of a new one.
    folder.done("verify logs/0.hitlog --accept");
    let [new, kept] = [(); 2].map(|()| folder.json("verify logs --results full"));
    assert_eq!(new, kept);
    assert!(kept["logs"][0]["digest"].is_string() && kept["logs"][0]["golden"] == "compared", "{kept}");
    fs::remove_file(folder.path("logs/0.golden")).expect("removed");
    // Another build of the same name has other verdicts.
    let copy = folder.path("game");
    fs::copy(env!("CARGO_BIN_EXE_hitreg"), &copy).expect("copied");
    let count = || sorted(&folder, "builds/results.jsonl").len();
    folder.done("verify logs --build ./game --results builds");
    assert_eq!(count(), 4);
    let mut bytes = fs::read(&copy).expect("the build");
    bytes.push(0);
    fs::write(&copy, bytes).expect("written");
    folder.done("verify logs --build ./game --results builds");
    assert_eq!(count(), 8);
    let builds = folder.done("summary builds --by build");
    assert!(builds.starts_with("2 builds over their logs"), "{builds}");
}

/// Any path leads to the same log, and the same path in two folders to two logs.
#[test]
fn a_summary_counts_each_log_once() {
    let folder = corpus(2);
    fs::create_dir(folder.path("other")).expect("a folder");
    fs::write(folder.path("other/0.hitlog"), "-").expect("written");
    let absolute = word(folder.path("logs"));
    for logs in ["logs", "./logs/", absolute.as_str()] {
        folder.done(&format!("verify {logs} --results kept"));
    }
    for (place, ends) in [("other", 128), ("logs", 0)] {
        let output = folder.command("verify . --results ../kept").current_dir(folder.path(place)).output();
        assert_eq!(code(&output.expect("it starts")), ends);
    }
    let output = folder.run("summary kept");
    let page = text(&output.stdout);
    assert!(code(&output) == 128 && page.starts_with("3 logs: 2 ok, 1 broken"), "{page}");

    // Another root, as another CI runner has.
    for [from, to] in [["logs", "first/logs"], ["first", "second"]] {
        fs::create_dir_all(folder.path(to).parent().expect("a folder")).expect("a folder");
        fs::rename(folder.path(from), folder.path(to)).expect("renamed");
        let root = folder.path(to.strip_suffix("/logs").unwrap_or(to));
        let output = folder.command("verify logs --results ../moved").current_dir(root).output();
        assert_eq!(code(&output.expect("it starts")), 0);
    }
    assert!(folder.done("summary moved").starts_with("2 logs: 2 ok"));
    // Another spelling of its path does not bring back a log that was moved.
    folder.done("verify second/logs --results moved");
    assert!(folder.done("summary moved").starts_with("2 logs: 2 ok"));
    // A copy is another log.
    fs::create_dir(folder.path("second/copy")).expect("a folder");
    fs::copy(folder.path("second/logs/0.hitlog"), folder.path("second/copy/0.hitlog")).expect("copied");
    folder.done("verify second --results moved");
    assert!(folder.done("summary moved").starts_with("3 logs: 3 ok"));
}

/// With a threshold, a difference between the sides of `diff` alone is no failure. One from a recording or a golden is.
#[test]
fn a_summary_ends_as_the_worst_verdict() {
    let folder = corpus(2);
    folder.done("verify logs --accept");
    let golden = fs::read_to_string(folder.path("logs/0.golden")).expect("a golden");
    fs::write(folder.path("logs/0.golden"), golden.replace("shots hit on screen", "shots hit on paper"))
        .expect("written");
    let max = "--max corrections=50%";
    let verify = folder.run(&format!("verify logs {max} --results verified"));
    let diff = folder.run(&format!("diff logs {CHANGE} {max} --results compared"));
    assert_eq!([code(&verify), code(&diff)], [1, 0]);
    let ends = |line: &str| code(&folder.run(line));
    assert_eq!([ends(&format!("summary verified {max}")), ends(&format!("summary compared {max}"))], [1, 0]);
    // A later build without differences does not hide the earlier one.
    folder.done("diff logs --results compared");
    assert_eq!([ends("summary compared"), ends("summary compared --by build")], [0, 1]);

    // A later `diff` without differences does not hide a golden that differs.
    folder.run("verify logs --results nightly");
    folder.done("diff logs --results nightly");
    let output = folder.run("summary nightly --rows rows.jsonl --markdown page.md");
    assert_eq!(code(&output), 1);
    for page in [text(&output.stdout), fs::read_to_string(folder.path("page.md")).expect("a page")] {
        assert!(page.contains("2 logs: 2 ok") && page.contains("1 different") && page.contains("0.hitlog"), "{page}");
    }
    let rows = fs::read_to_string(folder.path("rows.jsonl")).expect("rows");
    let of = |command: &str| rows.matches(&format!("\"command\":\"{command}\"")).count();
    assert_eq!([of("verify"), of("diff")], [2, 2]);
    // A difference between the sides of `diff` is no failure with a threshold, in whatever order the commands ran.
    folder.run(&format!("diff logs {CHANGE} --results mixed"));
    fs::write(folder.path("logs/0.golden"), golden).expect("written");
    folder.done("verify logs --results mixed");
    assert_eq!([ends("summary mixed"), ends(&format!("summary mixed {max}"))], [1, 0]);
}

#[test]
fn a_run_that_was_cut_at_any_byte_resumes_with_the_same_rows() {
    let folder = corpus(4);
    let line = |results: &str| format!("diff logs {CHANGE} --results {results}");
    let page = text(&folder.run(&line("whole")).stdout);
    let (rows, whole) =
        (sorted(&folder, "whole/results.jsonl"), fs::read(folder.path("whole/results.jsonl")).expect("rows"));
    fs::create_dir(folder.path("cut")).expect("a folder");
    for cut in (0..whole.len()).step_by(whole.len() / 7) {
        fs::write(folder.path("cut/results.jsonl"), &whole[..cut]).expect("written");
        assert_eq!(text(&folder.run(&line("cut")).stdout), page);
        assert_eq!(sorted(&folder, "cut/results.jsonl"), rows, "cut after {cut} bytes");
    }
}

#[test]
fn shards_summarised_together_are_the_single_run() {
    let folder = corpus(6);
    let page = text(&folder.run(&format!("diff logs {CHANGE} --results whole")).stdout);
    for (k, results) in [(1, "a"), (2, "shared"), (3, "shared"), (4, "b")] {
        folder.run(&format!("diff logs {CHANGE} --results {results} --partition slice:{k}/4"));
    }
    assert_eq!(text(&folder.run("summary a shared b --rows all.jsonl").stdout), page);
    assert_eq!(text(&folder.run("summary whole --rows whole.jsonl --html whole.html").stdout), page);
    assert_eq!(sorted(&folder, "all.jsonl"), sorted(&folder, "whole.jsonl"));
    assert_eq!(sorted(&folder, "whole.jsonl"), sorted(&folder, "whole/results.jsonl"));
    for rows in ["all.jsonl", "whole.jsonl"] {
        assert_eq!(text(&folder.run(&format!("summary {rows}")).stdout), page, "{rows} is results again");
    }
    let rows = fs::read(folder.path("whole.jsonl")).expect("rows");
    assert_eq!(text(&fed(&folder, "summary -", &rows).stdout), page);
    assert_eq!(timeless_rows(&folder, "all.jsonl"), timeless_rows(&folder, "whole.jsonl"));
    #[cfg(feature = "parquet")]
    {
        folder.run("summary whole --rows whole.parquet");
        assert_eq!(text(&folder.run("summary whole.parquet --rows again.jsonl").stdout), page);
        assert_eq!(sorted(&folder, "again.jsonl"), sorted(&folder, "whole.jsonl"));
    }
    #[cfg(not(feature = "parquet"))]
    {
        let refused = folder.refused("summary whole --rows whole.parquet");
        assert!(refused.contains("built without Parquet: build it with `--features parquet`"), "{refused}");
        fs::write(folder.path("rows.parquet"), "PAR1----PAR1").expect("written");
        let refused = folder.refused("summary rows.parquet");
        assert!(refused.contains("this is Parquet: name the JSONL file"), "{refused}");
        fs::remove_file(folder.path("rows.parquet")).expect("removed");
    }
    let html = fs::read_to_string(folder.path("whole.html")).expect("a page");
    assert!(html.contains("Shots by weapon") && !["http:", "https:"].iter().any(|link| html.contains(link)), "{html}");
    let refused = folder.refused("summary logs");
    assert!(refused.contains("there are no results here"), "{refused}");
    fs::write(folder.path("other.jsonl"), "{\"v\":2,\"row\":\"log\"}\n").expect("written");
    let refused = folder.refused("summary other.jsonl");
    assert!(refused.contains("other.jsonl: line 1: it is of version 2"), "{refused}");
}

#[test]
fn thresholds_decide_and_ci_gets_a_summary() {
    let folder = corpus(3);
    for (within, above) in [
        ("corrections=90%", "corrections=0%"),
        ("view-error-p95=10000", "view-error-p95=0.001"),
        ("hits-changed=100000", "hits-changed=0"),
    ] {
        assert_eq!(code(&folder.run(&format!("diff logs {CHANGE} --max {within}"))), 0, "{within}");
        let output = folder.run(&format!("diff logs {CHANGE} --max {above}"));
        assert_eq!(code(&output), 1, "{above}: {}", text(&output.stdout));
        assert!(text(&output.stdout).contains("exceeded"), "{}", text(&output.stdout));
    }
    assert_eq!(code(&folder.run("verify logs --max corrections=90%")), 0);
    let quiet = folder.run("verify logs --max corrections=0% -q");
    assert!(code(&quiet) == 1 && text(&quiet.stdout).contains("exceeded   corrections: "), "{}", text(&quiet.stdout));
    assert_eq!(folder.done("verify logs -q"), "");
    let mut command = folder.command(&format!("diff logs {CHANGE} --max hits-changed=0 --markdown page.md"));
    let output = command.env("GITHUB_STEP_SUMMARY", "step.md").env("GITHUB_ACTIONS", "true").output().expect("it runs");
    let [page, step] = ["page.md", "step.md"].map(|name| fs::read_to_string(folder.path(name)).expect(name));
    assert_eq!(page, step);
    assert!(page.contains("| weapon | shots A | shots B |") && page.contains("3 logs: "), "{page}");
    let notes = text(&output.stderr);
    assert!(notes.contains("::warning file=logs/") && notes.contains(" differs at tick "), "{notes}");
    assert!(notes.contains("::error::hitreg: hits-changed: "), "{notes}");
}

/// The queries of docs/corpus.md, in the order of the page.
fn queries() -> Vec<String> {
    let page = fs::read_to_string("docs/corpus.md").expect("the page");
    page.split("```sql\n").skip(1).map(|rest| rest.split("```").next().expect("an end").to_owned()).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the environment names a Python")]
fn documented_queries_answer_questions() {
    let python = std::env::var("HITREG_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_duckdb = Command::new(&python).args(["-c", "import duckdb"]).output();
    if !has_duckdb.is_ok_and(|output| output.status.success()) {
        crate::note::skipped("there is no Python with duckdb (HITREG_TEST_PYTHON may name one)");
        return;
    }
    let queries = queries();
    assert_eq!(queries.len(), 11, "a view for each kind of row, and ten questions");
    let script = "import duckdb, json\nfor query in json.load(open('queries.json')):\n    rows = duckdb.sql(query)\n    print(sorted(map(repr, rows.fetchall())) if rows is not None else 'done')\n";
    let answers = |folder: &Folder, queries: &[String]| {
        fs::write(folder.path("queries.json"), serde_json::to_string(queries).expect("JSON")).expect("written");
        let output =
            Command::new(&python).args(["-c", script]).current_dir(&folder.dir).output().expect("Python starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let folder = corpus(6);
    folder.run(&format!("diff logs {CHANGE} --results results"));
    folder.run("summary results --rows rows.jsonl");
    let of_json = answers(&folder, &queries);
    assert!(of_json.lines().skip(1).all(|rows| rows != "[]"), "a question without an answer: {of_json}");
    #[cfg(feature = "parquet")]
    {
        folder.run("summary results --rows rows.parquet");
        let mut queries = queries.clone();
        queries[0] = queries[0].replace("read_rows('rows.jsonl')", "read_parquet('rows.parquet')");
        assert_eq!(answers(&folder, &queries), of_json, "Parquet has the same answers");
    }
    // Without a changed shot and without prediction, no row is of a shot or a cause.
    let quiet = Folder::empty();
    quiet.done("record synth --preset dumb-client --players 2 --seconds 2 -o a.hitlog");
    quiet.done("diff a.hitlog --results results");
    quiet.done("summary results --rows rows.jsonl");
    assert!(answers(&quiet, &queries).contains("a.hitlog"));
}

#[test]
fn an_own_folder_name_with_spaces_is_quoted_in_commands() {
    let folder = corpus(1);
    fs::rename(folder.path("logs"), folder.path("a b")).expect("renamed");
    let output = folder.run(&format!("diff {} --b-set interpolation.lerp_ms=30", word("a b")));
    assert!(text(&output.stdout).contains("diff 'a b/0.hitlog' "), "{}", text(&output.stdout));
}

/// Options of the comparison are those of each page, too.
#[test]
fn report_pages_are_written_whatever_is_compared() {
    let folder = corpus(1);
    for options in ["--on hits", "--tolerance origin=0.001", "--overlap"] {
        let output = folder.run(&format!("diff logs {CHANGE} {options} --reports pages --force"));
        let said = text(&output.stdout);
        assert!(code(&output) == 1 && folder.path("pages/0.html").exists(), "{options}: {said}");
        fs::remove_dir_all(folder.path("pages")).expect("pages");
    }
    let refused = folder.refused("report logs/0.hitlog --on hits -o a.html");
    assert!(refused.contains("--on has no effect without a second side"), "{refused}");
}

/// What is wrong with a value, by the part of JSON Schema that the schemas in `docs/schemas` use.
fn mismatch(value: &Value, schema: &Value, root: &Value, place: &str) -> Option<String> {
    let wrong = |what: String| Some(format!("{place}: {what}"));
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("no {name}"));
        return mismatch(value, target, root, place);
    }
    for any in ["oneOf", "anyOf"] {
        if let Some(schemas) = schema[any].as_array() {
            let found: Vec<Option<String>> =
                schemas.iter().map(|schema| mismatch(value, schema, root, place)).collect();
            return if found.contains(&None) { None } else { found.into_iter().flatten().next() };
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return if values.contains(value) { None } else { wrong(format!("{value} is none of {values:?}")) };
    }
    if let Some(constant) = schema.get("const") {
        return if value == constant { None } else { wrong(format!("{value} is not {constant}")) };
    }
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    };
    let types = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        types => types.as_array().expect("types").iter().map(|name| name.as_str().expect("a name")).collect(),
    };
    if !types.into_iter().any(is) {
        return wrong(format!("{value} is no {}", schema["type"]));
    }
    if let (Some(object), Some(properties)) = (value.as_object(), schema["properties"].as_object()) {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(missing) = required.into_iter().find(|name| !object.contains_key(*name)) {
            return wrong(format!("{missing} is missing"));
        }
        return object.iter().find_map(|(name, value)| match properties.get(name) {
            Some(schema) => mismatch(value, schema, root, &format!("{place}.{name}")),
            None => wrong(format!("{name} is not in the schema")),
        });
    }
    value.as_array().into_iter().flatten().find_map(|item| mismatch(item, &schema["items"], root, place))
}

#[test]
fn json_follows_the_schemas() {
    let schema = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(format!("docs/schemas/{name}")).expect(name)).expect("JSON")
    };
    let folder = corpus(3);
    fs::write(folder.path("logs/broken.hitlog"), "-").expect("written");
    let (rows, page) = (schema("results-1.schema.json"), schema("corpus-1.schema.json"));
    for line in [format!("diff logs {CHANGE}"), "verify logs".to_owned()] {
        let line = format!("{line} --results kept --max corrections=1% --format json");
        let shown: Value = serde_json::from_slice(&folder.run(&line).stdout).expect("JSON");
        let summary = shown.get("summary").unwrap_or(&shown);
        assert_eq!(mismatch(summary, &page, &page, "page"), None, "{line}");
    }
    let lines = sorted(&folder, "kept/results.jsonl");
    for line in &lines {
        let row: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(mismatch(&row, &rows, &rows, "row"), None, "{line}");
    }
    for kind in ["log", "weapon", "cause", "shot", "miss"] {
        assert!(lines.iter().any(|line| line.contains(&format!("\"row\":\"{kind}\""))), "no row of kind {kind}");
    }
    // The rows of changed shots are as many as the logs count.
    let rows_of = |kind: &str| {
        let rows = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        rows.filter(|row| row["row"] == kind).collect::<Vec<_>>()
    };
    let changed: u64 = rows_of("log").iter().filter_map(|log| log["hits_changed"].as_u64()).sum();
    assert_eq!(rows_of("shot").len() as u64, changed);
    assert!(rows_of("miss").iter().all(|row| row["change"] == "other_reason"));
    assert!(mismatch(&serde_json::json!({ "v": 1, "row": "match" }), &rows, &rows, "row").is_some());
}

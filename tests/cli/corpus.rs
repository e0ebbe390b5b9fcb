//! Many logs: inputs, kept results, shards, thresholds, and the page over all of them.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::folder::{Folder, code, text, word};

/// A folder with logs of several presets and numbers of players, in `logs`.
fn corpus(logs: u32) -> Folder {
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
fn sorted(folder: &Folder, name: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.path(name)).expect(name);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

const CHANGE: &str = "--b-set lag_compensation.enabled=false";

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
        ("verify logs --partition slice:9/9", "--partition slice:9/9 is empty: there are 4 logs"),
        ("verify logs --partition env", "the environment names no share"),
        ("verify logs --max hits=1", "write FIGURE=NUMBER"),
    ] {
        let message = folder.refused(line);
        assert!(message.contains(sentence), "{line}: {message}");
    }
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
    let next = together["worst"][0]["next"].as_str().expect("a command");
    let line = next.split_once(' ').expect("a program").1;
    assert_eq!(code(&folder.run(line)), 1, "{next}");
}

#[test]
fn equal_sides_name_no_weapon() {
    let folder = corpus(3);
    let page = folder.done("diff logs --b-set lag_compensation.enabled=true --sample 1");
    assert!(page.starts_with("1 log: 1 ok"), "{page}");
    assert!(page.contains("No weapon's hit rate changed beyond chance."), "{page}");
}

#[test]
fn kept_verdicts_are_judged_again_only_when_a_log_or_the_build_changes() {
    let folder = corpus(4);
    for line in [format!("diff logs {CHANGE} --results kept"), "verify logs --results kept".to_owned()] {
        let run = || {
            let output = folder.run(&line);
            (text(&output.stdout), fs::read_to_string(folder.path("kept/results.jsonl")).expect("results"))
        };
        let (first, rows) = run();
        let (second, same) = run();
        assert_eq!((second, same), (first, rows.clone()), "nothing is judged again");
        // The content decides, not the time of a file.
        fs::write(folder.path("logs/0.hitlog"), fs::read(folder.path("logs/0.hitlog")).expect("a log"))
            .expect("written");
        assert_eq!(run().1, rows);
        folder.done("record synth -o logs/1.hitlog --players 2 --seconds 3 --seed 77 --force");
        let (_, more) = run();
        let added: Vec<&str> = more.strip_prefix(&rows).expect("the rows before").lines().collect();
        let logs: Vec<&&str> = added.iter().filter(|line| line.starts_with("{\"v\":1,\"row\":\"log\"")).collect();
        assert!(logs.len() == 1 && logs[0].contains("logs/1.hitlog"), "{added:?}");
        folder.done(
            "record synth -o logs/1.hitlog --players 4 --seconds 7 --preset half-life --delay-ms 80 --seed 1 --force",
        );
    }
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
    let html = fs::read_to_string(folder.path("whole.html")).expect("a page");
    assert!(html.contains("Shots by weapon") && !html.contains("http"), "{html}");
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
    assert_eq!(code(&folder.run("verify logs --max corrections=0%")), 1);
    assert_eq!(code(&folder.run("verify logs --max hits-changed=0")), 125, "verify does not measure changed hits");
    let mut command = folder.command(&format!("diff logs {CHANGE} --max hits-changed=0 --markdown page.md"));
    let output = command.env("GITHUB_STEP_SUMMARY", "step.md").env("GITHUB_ACTIONS", "true").output().expect("it runs");
    let [page, step] = ["page.md", "step.md"].map(|name| fs::read_to_string(folder.path(name)).expect(name));
    assert_eq!(page, step);
    assert!(page.contains("| weapon | shots |") && page.contains("3 logs: "), "{page}");
    let notes = text(&output.stderr);
    assert!(notes.contains("::warning file=logs/") && notes.contains(" differs at tick "), "{notes}");
    assert!(notes.contains("::error::hitreg: hits-changed is "), "{notes}");
}

#[test]
fn a_mixed_corpus_judges_each_log_as_alone() {
    let folder = corpus(2);
    fs::copy("fixtures/compat/log-v1.0.hitlog", folder.path("logs/foreign.hitlog")).expect("a fixture");
    let mut bytes = fs::read(folder.path("logs/0.hitlog")).expect("a log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(folder.path("logs/damaged.hitlog"), bytes).expect("written");
    for line in ["verify", "diff --b-set lag_compensation.max_unlag_ms=10"] {
        let (command, options) = line.split_once(' ').unwrap_or((line, ""));
        let output = folder.run(&format!("{command} logs {options} --results {command}-kept"));
        assert_eq!(code(&output), 128, "{}", text(&output.stderr));
        let rows = sorted(&folder, &format!("{command}-kept/results.jsonl"));
        let page: Value = serde_json::from_slice(
            &folder.run(&format!("{command} logs {options} --results {command}-kept --format json")).stdout,
        )
        .expect("JSON");
        let page = if command == "verify" { &page["summary"] } else { &page };
        assert_eq!([&page["logs"]["total"], &page["logs"]["broken"]], [4, 1].map(Value::from).each_ref(), "{page}");
        for name in ["0", "1", "foreign"] {
            let alone = folder.run(&format!("{command} logs/{name}.hitlog {options}"));
            let verdict = match code(&alone) {
                0 => "same",
                1 => "differs",
                125 => "untestable",
                other => panic!("{name}: {other}"),
            };
            let row = rows.iter().find(|row| {
                row.contains(&format!("\"log\":\"logs/{name}.hitlog\"")) && row.contains("\"row\":\"log\"")
            });
            let row = row.unwrap_or_else(|| panic!("{command}: no row for {name}: {rows:?}"));
            assert!(row.contains(&format!("\"verdict\":\"{verdict}\"")), "{command} {name}: {verdict}, {row}");
        }
    }
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
    let folder = corpus(6);
    folder.run(&format!("diff logs {CHANGE} --results results"));
    let queries = queries();
    assert_eq!(queries.len(), 11, "a view for each kind of row, and ten questions");
    fs::write(folder.path("queries.json"), serde_json::to_string(&queries).expect("JSON")).expect("written");
    let script = "import duckdb, json\nfor query in json.load(open('queries.json')):\n    rows = duckdb.sql(query)\n    print(len(rows.fetchall()) if rows is not None else 'done')\n";
    let output = Command::new(&python).args(["-c", script]).current_dir(&folder.dir).output().expect("Python starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answers = text(&output.stdout);
    assert!(answers.lines().skip(1).all(|rows| rows != "0"), "a question without an answer: {answers}");
}

#[test]
fn an_own_folder_name_with_spaces_is_quoted_in_commands() {
    let folder = corpus(1);
    fs::rename(folder.path("logs"), folder.path("a b")).expect("renamed");
    let output = folder.run(&format!("diff {} --b-set interpolation.lerp_ms=30", word("a b")));
    assert!(text(&output.stdout).contains("diff 'a b/0.hitlog' "), "{}", text(&output.stdout));
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
    for kind in ["log", "weapon", "cause", "shot"] {
        assert!(lines.iter().any(|line| line.contains(&format!("\"row\":\"{kind}\""))), "no row of kind {kind}");
    }
    assert!(mismatch(&serde_json::json!({ "v": 1, "row": "match" }), &rows, &rows, "row").is_some());
}

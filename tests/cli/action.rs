//! The steps of `action.yml`, as plain shell. Two steps need GitHub: the cache and the upload. Their inputs are checked.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "the steps find programs in PATH")]

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use super::corpus::{CHANGE, corpus};
use super::folder::{Folder, code, text, word};
use super::pucks::{example, script, session};
use super::report::contents;

/// A step of the action: its keys, and its script with `run`.
type Step = BTreeMap<String, String>;

/// The steps of the action. The file has two spaces for each level, and one block of text in each `run: |`.
fn steps() -> Vec<Step> {
    let action = fs::read_to_string("action.yml").expect("the action");
    let (_, steps) = action.split_once("  steps:\n").expect("steps");
    let mut found: Vec<Step> = Vec::new();
    let mut block: Option<String> = None;
    for line in steps.lines() {
        if let Some(name) = line.strip_prefix("    - name: ") {
            found.push(BTreeMap::from([("name".to_owned(), name.to_owned())]));
            block = None;
            continue;
        }
        let step = found.last_mut().expect("a step");
        if let (Some(key), Some(text)) = (&block, line.strip_prefix("        ")) {
            step.entry(key.clone()).or_default().extend([text, "\n"]);
        } else if let Some((key, value)) = line.trim().split_once(':') {
            let value = value.trim();
            block = (value == "|").then(|| key.to_owned());
            if block.is_none() {
                step.entry(key.to_owned()).or_insert(value.to_owned());
            }
        }
    }
    found
}

fn step(name: &str) -> Step {
    steps().into_iter().find(|step| step["name"] == name).unwrap_or_else(|| panic!("no step {name}"))
}

/// The default of an input.
fn input(name: &str) -> String {
    let action = fs::read_to_string("action.yml").expect("the action");
    let (_, rest) = action.split_once(&format!("\n  {name}:\n")).unwrap_or_else(|| panic!("no input {name}"));
    let default = rest.lines().find_map(|line| line.trim().strip_prefix("default: ")).expect("a default");
    default.trim_matches('"').to_owned()
}

/// Runs a step as GitHub does, with a command and the defaults of the other inputs.
fn run(folder: &Folder, name: &str, command: &str) -> Output {
    run_with(folder, name, &[("command", command)])
}

/// Runs a step as GitHub does, with these inputs and the defaults of the others.
fn run_with(folder: &Folder, name: &str, inputs: &[(&str, &str)]) -> Output {
    let step = step(name);
    let mut shell = Command::new("bash");
    shell.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step["run"]]).current_dir(&folder.dir);
    for (key, value) in step.iter().filter(|(key, _)| key.starts_with("HITREG")) {
        let of_input = value.strip_prefix("${{ inputs.").and_then(|rest| rest.strip_suffix(" }}")).expect("an input");
        let given = inputs.iter().find(|(name, _)| *name == of_input);
        shell.env(key, given.map_or_else(|| input(of_input), |(_, value)| (*value).to_owned()));
    }
    let path = std::env::join_paths(
        [folder.path("bin")].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").expect("a path"))),
    );
    shell.env("PATH", path.expect("a path")).env("GITHUB_STEP_SUMMARY", "step.md").env("GITHUB_ACTIONS", "true");
    shell.env("RUNNER_TEMP", folder.path("temp")).env("GITHUB_ACTION_PATH", env!("CARGO_MANIFEST_DIR"));
    shell.output().expect("bash starts")
}

#[test]
fn the_action_passes_and_fails_and_leaves_reports_to_upload() {
    let folder = corpus(3);
    for name in ["bin", "temp"] {
        fs::create_dir(folder.path(name)).expect("a folder");
    }
    // The program is there already, so `cargo install` only has to say where it would be.
    script(
        &folder.path("bin/cargo"),
        &format!(
            "[ \"$*\" = \"install --locked --path $GITHUB_ACTION_PATH --root $RUNNER_TEMP/hitreg\" ] || exit 9\n\
             mkdir -p \"$RUNNER_TEMP/hitreg/bin\"\nln -s {} \"$RUNNER_TEMP/hitreg/bin/hitreg\"",
            word(env!("CARGO_BIN_EXE_hitreg"))
        ),
    );
    let installed = run(&folder, "Install hitreg", "");
    assert!(installed.status.success(), "{}", text(&installed.stderr));

    let output = run(&folder, "Run hitreg", "verify logs");
    assert_eq!(code(&output), 0, "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(folder.path(".hitreg-results/results.jsonl").exists(), "results to cache");
    let files = || {
        let listed = fs::read_dir(folder.path("hitreg-reports")).expect("reports");
        let mut names: Vec<String> =
            listed.map(|file| file.expect("a file").file_name().into_string().expect("a name")).collect();
        names.sort();
        names
    };
    assert_eq!(files(), ["summary.html"]);
    assert!(fs::read_to_string(folder.path("step.md")).expect("a summary").contains("3 logs: 3 ok"));

    let output = run(&folder, "Run hitreg", &format!("diff logs {CHANGE} --max hits-changed=0"));
    let messages = text(&output.stderr);
    assert_eq!(code(&output), 1, "{messages}");
    assert!(messages.contains("::error::hitreg: hits-changed: "), "{messages}");
    assert!(files().len() > 1, "no page of what differs: {messages}");
    let summary = fs::read_to_string(folder.path("hitreg-reports/summary.html")).expect("a page");
    for page in files() {
        let html = fs::read_to_string(folder.path(&format!("hitreg-reports/{page}"))).expect("a page");
        assert!(html.starts_with("<!doctype html>"), "{page}");
        assert!(page == "summary.html" || summary.contains(&format!("<a href=\"./{page}\">")), "{page} has no link");
    }
    // A command may have several lines, and quotes.
    let output = run(&folder, "Run hitreg", &format!("diff 'logs/*.hitlog'\n  {CHANGE}\n  --max hits-changed=0\n"));
    assert_eq!(code(&output), 1, "{}", text(&output.stderr));
    let unclosed = run(&folder, "Run hitreg", "verify 'logs");
    assert_eq!(code(&unclosed), 128, "{}", text(&unclosed.stdout));
    assert!(text(&unclosed.stdout).contains("::error::hitreg: the command has an open quote"));
    for options in ["--format json", "--format=json --color never --force"] {
        fs::remove_dir_all(folder.path("hitreg-reports")).expect("reports of the command before");
        let output = run(&folder, "Run hitreg", &format!("{options} verify logs"));
        assert_eq!((code(&output), files()), (0, vec!["summary.html".to_owned()]), "{options}");
    }
    let output = run(&folder, "Run hitreg", "verify logs");
    assert_eq!(code(&output), 0, "the kept verdicts of the first command hold: {}", text(&output.stderr));
    let summary = fs::read_to_string(folder.path("hitreg-reports/summary.html")).expect("a page");
    assert!(summary.contains("3 logs: 3 ok"), "the page is that of the last command: {summary}");
    let sweep = "sweep logs/0.hitlog --set interpolation.lerp_ms=50,100 --max corrections=0%";
    assert_eq!(code(&run(&folder, "Run hitreg", sweep)), 1);
    assert_eq!(code(&run(&folder, "Run hitreg", "verify absent")), 128);
    // The other steps keep and upload these folders.
    for name in ["Restore results", "Save results"] {
        assert_eq!(step(name)["path"], "${{ inputs.results }}");
        assert!(step(name)["if"].ends_with("inputs.results != ''"), "nothing is kept without a folder");
    }
    assert_eq!(step("Restore results")["key"], step("Save results")["key"]);
    assert!(step("Save results")["if"].starts_with("always() && "), "a run with a difference keeps its results");
    assert_eq!(
        (step("Upload reports")["path"].as_str(), step("Upload reports")["if"].as_str()),
        ("${{ inputs.reports }}", "always() && inputs.reports != ''")
    );
}

#[test]
fn the_action_splits_a_command_as_a_shell_does() {
    let folder = Folder::empty();
    for name in ["bin", "temp"] {
        fs::create_dir(folder.path(name)).expect("a folder");
    }
    let program = folder.path("hitreg");
    script(&program, "printf '<%s>' \"$@\"");
    let program = program.to_str().expect("a path in UTF-8");
    let words = |command: &str, folders: [&str; 2]| {
        let [results, reports] = folders;
        let inputs = [("command", command), ("hitreg", program), ("results", results), ("reports", reports)];
        let output = run_with(&folder, "Run hitreg", &inputs);
        assert_eq!(code(&output), 0, "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let lines = "verify net \\\n  --build './my game' \\\n\n  '' \"a  b\" ''\n";
    assert_eq!(words(lines, ["", ""]), "<verify><net><--build><./my game><><a  b><>");
    assert_eq!(words("diff a b", ["r s", ""]), "<diff><a><b><--results><r s>");
    assert_eq!(words("--color never diff a", ["", "p"]), "<--color><never><diff><a><--reports><p>");
    assert_eq!(words("check game log", ["r", "p"]), "<check><game><log>");
}

/// hitreg does not play this game, so the page of its log shows the recording and the build's replay.
#[test]
fn the_action_reports_a_regression_of_another_game() {
    let folder = Folder::empty();
    for name in ["bin", "temp", "net"] {
        fs::create_dir(folder.path(name)).expect("a folder");
    }
    fs::rename(session(folder.dir.path()), folder.path("net/s.hitlog")).expect("a log");
    let verify = |build: &str| {
        let command = format!("verify net --build {}", word(example(build)));
        let inputs = [("command", command.as_str()), ("hitreg", env!("CARGO_BIN_EXE_hitreg"))];
        let output = run_with(&folder, "Run hitreg", &inputs);
        (code(&output), text(&output.stdout), text(&output.stderr))
    };
    folder.done(&format!("verify net --build {} --accept", word(example("pucks"))));
    assert_eq!(verify("pucks").0, 0);
    let (code, page, messages) = verify("pucks_bug");
    assert_eq!(code, 1, "{page}{messages}");
    assert!(!page.contains("problem") && messages.contains("::error file=net/s.hitlog,"), "{page}{messages}");
    let page = contents(&folder.path("hitreg-reports/s.html"));
    assert_eq!(page["sides"][0]["name"], "net/s.hitlog, as recorded");
    assert_eq!(page["sides"][1]["name"], format!("net/s.hitlog by {}", example("pucks_bug").display()));
}

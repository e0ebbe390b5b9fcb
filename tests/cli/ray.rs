//! The Ray job of `examples/corpus` on a cluster of several workers, with one worker killed and the logs in an S3 server.
#![expect(clippy::disallowed_methods, reason = "the environment enables the test and names a Python")]

use std::fs;
use std::process::Command;

use super::corpus::{CHANGE, corpus, sorted};
use super::folder::{code, text, words};

/// A Python with Ray; `None` if Ray is not tested.
fn python() -> Option<Command> {
    if std::env::var_os("HITREG_TEST_RAY").is_none_or(|value| value != "1") {
        crate::note::skipped("a Ray cluster is not tested (HITREG_TEST_RAY=1 starts one)");
        return None;
    }
    Some(Command::new(std::env::var("HITREG_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned())))
}

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/corpus");

#[test]
fn a_ray_job_takes_a_relative_manifest_and_names_missing_logs() {
    let Some(mut python) = python() else { return };
    let folder = corpus(2);
    fs::write(folder.path("list"), "logs/0.hitlog\n  logs/1.hitlog\nnone.hitlog\n").expect("written");
    let job = python.arg(format!("{EXAMPLES}/ray_job.py")).args(["list", "--hitreg", env!("CARGO_BIN_EXE_hitreg")]);
    let output = job.args(words(&format!("--out out -- diff {CHANGE}"))).current_dir(&folder.dir).output();
    let output = output.expect("Python starts");
    let messages = text(&output.stderr);
    assert_eq!(code(&output), 128, "{messages}");
    let missing = folder.path("none.hitlog");
    let problem = format!("line 3: there is no such file: {}\nnot judged: {0}\n", missing.display());
    assert!(messages.contains(&problem), "{messages}");
    assert!(text(&folder.run("summary out/results.jsonl").stdout).starts_with("2 logs: 2 different"));
}

#[test]
fn a_ray_job_that_lost_a_worker_has_the_rows_of_one_run() {
    let Some(mut python) = python() else { return };
    let folder = corpus(6);
    for copy in 6..48 {
        fs::copy(folder.path(&format!("logs/{}.hitlog", copy % 6)), folder.path(&format!("logs/{copy}.hitlog")))
            .expect("copied");
    }
    // In a folder without libraries, the program has the same digest as in a worker's folder.
    fs::copy(env!("CARGO_BIN_EXE_hitreg"), folder.path("hitreg")).expect("copied");
    let single = Command::new(folder.path("hitreg"))
        .args(words(&format!("diff logs {CHANGE} --results single")))
        .current_dir(&folder.dir)
        .output()
        .expect("hitreg starts");
    assert_eq!(code(&single), 1, "{}", text(&single.stderr));
    let output = python
        .arg(format!("{EXAMPLES}/test_ray.py"))
        .args(["logs", "./hitreg", "out"])
        .args(words(&format!("-- diff {CHANGE}")))
        .current_dir(&folder.dir)
        .output()
        .expect("Python starts");
    let messages = text(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert!(messages.contains("killed a worker after "), "{messages}");
    // A URL is the absolute path of its log.
    let root = format!("{}/", fs::canonicalize(&folder.dir).expect("a folder").display());
    let local = |name: &str| {
        let lines = sorted(&folder, name).into_iter();
        let lines = lines.map(|line| line.replace("s3://corpus/", "logs/").replace(&root, ""));
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        lines
    };
    assert_eq!(local("out/results.jsonl"), local("single/results.jsonl"));
    // The confidence interval draws logs in the order of their paths, so the page needs the same paths.
    let rows = fs::read_to_string(folder.path("out/results.jsonl")).expect("rows").replace("s3://corpus/", "logs/");
    fs::write(folder.path("local.jsonl"), rows).expect("written");
    assert_eq!(text(&folder.run("summary local.jsonl").stdout), text(&single.stdout));
    #[cfg(feature = "parquet")]
    {
        folder.run("summary out/results.parquet --rows again.jsonl");
        assert_eq!(local("again.jsonl"), local("single/results.jsonl"));
    }
}

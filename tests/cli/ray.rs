//! The Ray job of `examples/corpus` on a cluster of several workers, with one worker killed and the logs in an S3 server.
#![expect(clippy::disallowed_methods, reason = "the environment enables the test and names a Python")]

use std::fs;
use std::process::Command;

use super::corpus::{CHANGE, corpus, sorted};
use super::folder::{code, text, words};

#[test]
fn a_ray_job_that_lost_a_worker_has_the_rows_of_one_run() {
    if std::env::var_os("HITREG_TEST_RAY").is_none_or(|value| value != "1") {
        crate::note::skipped("a Ray cluster is not tested (HITREG_TEST_RAY=1 starts one)");
        return;
    }
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
    let python = std::env::var("HITREG_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/corpus");
    let output = Command::new(python)
        .arg(format!("{examples}/test_ray.py"))
        .args(["logs", "./hitreg", "out"])
        .args(words(&format!("-- diff {CHANGE}")))
        .current_dir(&folder.dir)
        .output()
        .expect("Python starts");
    let messages = text(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert!(messages.contains("killed a worker after "), "{messages}");
    let local = |name: &str| {
        let lines = sorted(&folder, name).into_iter().map(|line| line.replace("s3://corpus/", "logs/"));
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

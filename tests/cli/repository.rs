//! Git repositories for tests: histories of small commits with reproducible hashes.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The tree of one commit: a single program.
pub(crate) struct Commit {
    name: String,
    text: String,
}

impl Commit {
    /// A commit with a program of this text.
    pub(crate) fn with(name: &str, text: &str) -> Commit {
        Commit { name: name.to_owned(), text: text.to_owned() }
    }
}

/// The output of git, which must succeed.
pub(crate) fn git(repository: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(repository).args(args).output().expect("git");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Makes a repository with commits on `main`, numbered from 1, and checks the last one out. Commit hashes depend only
/// on contents, fixed authors and fixed times.
pub(crate) fn history(repository: &Path, commits: usize, commit: impl Fn(usize) -> Commit) {
    std::fs::create_dir_all(repository).expect("a folder");
    git(repository, &["init", "--quiet", "--initial-branch=main", "--object-format=sha1"]);
    let mut stream = String::new();
    for number in 1..=commits {
        let Commit { name, text } = commit(number);
        let message = format!("Change number {number}");
        let who = format!("Somebody <somebody@example.org> {} +0000", 1_700_000_000 + number * 60);
        writeln!(stream, "commit refs/heads/main\nmark :{number}\nauthor {who}\ncommitter {who}").expect("memory");
        writeln!(stream, "data {}\n{message}", message.len()).expect("memory");
        if number > 1 {
            writeln!(stream, "from :{}", number - 1).expect("memory");
        }
        // The number makes trees with equal texts different.
        let text = format!("{text}# revision {number}\n");
        writeln!(stream, "deleteall\nM 100755 inline {name}\ndata {}\n{text}", text.len()).expect("memory");
    }
    let mut import = Command::new("git");
    import.arg("-C").arg(repository).args(["fast-import", "--quiet"]).stdin(Stdio::piped());
    let mut import = import.spawn().expect("git");
    std::io::Write::write_all(&mut import.stdin.take().expect("a pipe"), stream.as_bytes()).expect("git reads");
    assert!(import.wait().expect("git").success());
    git(repository, &["reset", "--quiet", "--hard"]);
}

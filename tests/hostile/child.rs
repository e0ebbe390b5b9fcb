//! Commands in child processes with counted memory.
#![expect(clippy::disallowed_methods, reason = "a child process reads its environment, writes to a file, and may hang")]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hitreg::cli::Program;

/// The variable that makes a test process run a command and count its memory.
const LINE: &str = "HITREG_HOSTILE_LINE";
/// The memory limit of commands that hold a session or trace, in MiB: low, so that tests are fast.
pub(crate) const LIMIT_MIB: &str = "192";
/// Ends a command that hangs. Commands here take less than a tenth of it.
const HANGS: Duration = Duration::from_secs(120);

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) code: i32,
    /// The peak of allocated bytes.
    pub(crate) peak: usize,
    /// The sum of all allocations, a measure of work.
    pub(crate) total: usize,
    pub(crate) output: String,
}

/// Runs `hitreg LINE` in a folder, under the low memory limit. Words are separated as in a shell.
pub(crate) fn run(folder: &Path, line: &str) -> CommandResult {
    run_within(Some(LIMIT_MIB), folder, line)
}

/// Runs a command under a memory limit in MiB; `None` for the default limit of the machine.
pub(crate) fn run_within(limit_mib: Option<&str>, folder: &Path, line: &str) -> CommandResult {
    let program = std::env::current_exe().expect("this program");
    // The output goes to a file outside the folder, because a command may read all files in its folder.
    let mut output = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(program);
    command.env_remove("HITREG_MEMORY_MIB").envs(limit_mib.map(|mib| ("HITREG_MEMORY_MIB", mib)));
    let mut child = command
        .args(["--exact", "child::counts", "--ignored", "--nocapture", "--test-threads=1"])
        .env(LINE, line)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output.reopen().expect("a file"))
        .spawn()
        .expect("this program starts again");
    let started = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if started.elapsed() > HANGS {
            child.kill().expect("it ends");
            panic!("`hitreg {line}` hangs");
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    let mut text = String::new();
    output.read_to_string(&mut text).expect("UTF-8");
    let (output, figures) = text.rsplit_once("\u{1}").unwrap_or_else(|| panic!("`hitreg {line}` ended early: {text}"));
    let figures: Vec<usize> = figures.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    assert!(figures[2] > 0, "allocations are not counted");
    CommandResult { code: figures[0] as i32, peak: figures[1], total: figures[2], output: output.to_owned() }
}

#[test]
#[ignore = "what `run` starts"]
fn counts() {
    let Ok(line) = std::env::var(LINE) else { return };
    let words = shlex::split(&line).expect("no open quotation");
    let args = std::iter::once("hitreg".to_owned()).chain(words).map(Into::into);
    let code = Program::new("hitreg", "0").run_args(&hitreg::registry::built_in(), args);
    eprintln!("\u{1}{code} {} {}", peak(), crate::MEMORY.total_allocated());
}

#[test]
fn a_quoted_path_with_spaces_is_one_word() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("a log.hitlog");
    let word = shlex::try_quote(log.to_str().expect("UTF-8")).expect("no zero byte");
    let ran = run(folder.path(), &format!("record synth -o {word} --seconds 1"));
    assert_eq!((ran.code, log.exists()), (0, true), "{}", ran.output);
}

/// The peak memory of this process, from the system where it is available.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kib.map_or_else(|| crate::MEMORY.max_allocated(), |kib| kib << 10)
}

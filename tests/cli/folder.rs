//! A temporary folder in which tests run `hitreg`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hitreg::log::WriterOptions;
use hitreg::record::Session;
use hitreg::store::{self, FileType, Targets};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a recorded session, `a.hitlog`, and its trace, `a.hittrace`.
pub(crate) struct Folder {
    pub(crate) dir: TempDir,
    /// The cache of the commands. In the user's cache, a trace of an earlier test run would cause a note.
    pub(crate) cache: TempDir,
}

impl Folder {
    pub(crate) fn empty() -> Folder {
        let [dir, cache] = [(); 2].map(|()| TempDir::new().expect("a temporary folder"));
        Folder { dir, cache }
    }

    pub(crate) fn with_session() -> Folder {
        let folder = Folder::empty();
        folder.done("record synth -o a.hitlog --seconds 6 --delay-ms 50 --jitter-ms 4 --loss 1%");
        folder.done("replay a.hitlog -o a.hittrace");
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        #[cfg(unix)]
        crate::signals::hangups_end_programs();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitreg"));
        command.args(words(line)).current_dir(&self.dir).stdin(Stdio::null());
        command.env("XDG_CACHE_HOME", self.cache.path());
        command
    }

    pub(crate) fn run(&self, line: &str) -> Output {
        self.command(line).output().expect("hitreg starts")
    }

    /// Writes a log, and replaces an existing one.
    pub(crate) fn save_log(&self, name: &str, session: &Session) {
        let target = Targets::default().replacing_recordings().file(&self.path(name), FileType::Log).expect("a place");
        store::save_log(&target, session, WriterOptions::whole()).expect("written");
    }

    /// Runs a command that must succeed with nothing on stderr. Returns its stdout.
    pub(crate) fn done(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(code(&output), 0, "{line}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "", "{line}");
        text(&output.stdout)
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.done(&format!("{line} --format json"))).expect("JSON alone on stdout")
    }

    /// Runs a command that must find a difference. Returns its JSON.
    pub(crate) fn differs(&self, line: &str) -> Value {
        let output = self.run(&format!("{line} --format json"));
        assert_eq!(code(&output), 1, "{line}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON alone on stdout")
    }

    /// Runs a command that must fail with a message and leave the folder unchanged. Returns the message.
    pub(crate) fn refused(&self, line: &str) -> String {
        let before = self.names();
        let output = self.run(line);
        let message = text(&output.stderr);
        assert_eq!(code(&output), 128, "{line}: {message}");
        assert!(!message.contains("panicked"), "{line}: {message}");
        assert_eq!(text(&output.stdout), "", "{line}");
        assert_eq!(self.names(), before, "{line} left something behind");
        message
    }

    pub(crate) fn names(&self) -> Vec<OsString> {
        let mut names: Vec<OsString> =
            fs::read_dir(&self.dir).expect("listable").map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    }
}

/// Splits a command line into words, with the quotes of a shell.
pub(crate) fn words(line: &str) -> Vec<String> {
    shlex::split(line).unwrap_or_else(|| panic!("a quotation is open: {line}"))
}

/// The arguments of a printed command, without its program.
pub(crate) fn arguments(command: &str) -> String {
    let words = words(command);
    shlex::try_join(words.iter().skip(1).map(String::as_str)).expect("no zero byte")
}

/// Quotes a path as one word of a command line or script.
pub(crate) fn word(path: impl AsRef<Path>) -> String {
    let path = path.as_ref().to_str().expect("a path in UTF-8");
    shlex::try_quote(path).expect("no zero byte").into_owned()
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("it exits without a signal")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn a_path_with_spaces_and_quotes_is_one_word() {
    for path in ["/a folder/with 'quotes'/hitreg", "C:\\a folder\\hitreg.exe", "plain"] {
        assert_eq!(words(&format!("diff a.hitlog --b {} --on hits", word(path)))[3], path);
    }
    assert_eq!(arguments("'/a folder/hitreg' diff 'a b.hitlog' --why 2"), "diff 'a b.hitlog' --why 2");
    let folder = Folder::empty();
    fs::create_dir(folder.path("a folder")).expect("a folder");
    folder.done("record synth -o 'a folder/a.hitlog' --seconds 1");
    folder.done(&format!("info {}", word(folder.path("a folder/a.hitlog"))));
}

pub(crate) fn exit_of(folder: &Folder, line: &str) -> i32 {
    code(&folder.run(line))
}

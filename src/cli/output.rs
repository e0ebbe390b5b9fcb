//! The output of a command: stdout, as text or JSON, and the files that it writes. Output paths have their own type, so
//! every other path argument is known to be an input.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use hitreg_log::sorted::SortedMap;
use serde::Serialize;

use super::figures::bytes;
use super::page::Page;
use super::session_args::MapPath;
use super::{CommandError, CommandOutcome, CommandResult};
use crate::store::{self, FileType, Target, Targets, WatchedInputs, is_standard_stream};

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum OutputFormat {
    /// For people, within 80 columns.
    Text,
    /// For programs.
    Json,
}

/// Standard output in one of the formats. Text is colored only on a terminal, and if NO_COLOR allows it.
pub(super) struct Output {
    pub(super) format: OutputFormat,
    out: Box<dyn Write + Send>,
    /// The files that the command may write.
    pub(super) files: Outputs,
}

impl Output {
    pub(super) fn stdout(format: OutputFormat, files: Outputs) -> Output {
        let out = std::io::BufWriter::with_capacity(1 << 16, anstream::stdout());
        Output { format, out: Box::new(out), files }
    }

    /// Refuses an option that changes only the text, where the output is JSON. The config file may give either.
    pub(super) fn check_text_option(&self, name: &str) -> Result<(), CommandError> {
        match self.is_typed(name) && self.is_json_typed() {
            true => Err(CommandError::request(format!(
                "--{name} has no effect with --format json, which prints everything: leave one out"
            ))),
            false => Ok(()),
        }
    }

    /// Refuses `--format json` of a command that prints no result, but `what`. The config file may give it.
    pub(super) fn check_no_result(&self, what: &str) -> Result<(), CommandError> {
        match self.is_json_typed() {
            true => Err(CommandError::request(format!("--format json has no effect on {what}"))),
            false => Ok(()),
        }
    }

    fn is_json_typed(&self) -> bool {
        self.format == OutputFormat::Json && !self.files.is_by_default("format")
    }

    /// Whether an option was typed. An option from the config file applies where it can, and is ignored elsewhere.
    pub(super) fn is_typed(&self, name: &str) -> bool {
        self.files.given.iter().any(|given| given == name) && !self.files.is_by_default(name)
    }

    /// Prints one result, and returns `Done`: `value` as JSON, or the page that `text` fills. Prints to stderr if a requested file goes to
    /// stdout.
    pub(super) fn show<T: Serialize>(&mut self, value: &T, text: impl FnOnce(&mut Page)) -> CommandResult {
        self.files.check_inputs()?;
        if self.files.take_stdout.load(Ordering::Relaxed) {
            self.out = Box::new(anstream::stderr());
        }
        match self.format {
            OutputFormat::Json => {
                serde_json::to_writer_pretty(&mut self.out, value).map_err(std::io::Error::from)?;
                self.out.write_all(b"\n")?;
            }
            OutputFormat::Text => {
                let mut page = Page::default();
                text(&mut page);
                self.out.write_all(page.styled_text().as_bytes())?;
            }
        }
        // The output is flushed so that it is visible before the next step starts.
        self.out.flush()?;
        Ok(CommandOutcome::Done)
    }

    /// Stdout for other output: exported rows, completions, manual pages.
    pub(super) fn raw(&mut self) -> &mut (dyn Write + Send) {
        &mut self.out
    }

    /// Writes buffered output.
    pub(super) fn finish(&mut self) -> Result<(), CommandError> {
        self.out.flush()?;
        self.files.check_inputs()
    }
}

/// A path that a command writes to. Only [`Outputs`] turns it into a target.
#[derive(Clone, Debug)]
pub(super) struct OutputPath(PathBuf);

impl From<OsString> for OutputPath {
    fn from(path: OsString) -> OutputPath {
        OutputPath(path.into())
    }
}

impl Deref for OutputPath {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

/// The outputs of a command, checked against its input files.
pub(super) struct Outputs {
    targets: Targets,
    watched: WatchedInputs,
    /// Whether `--force` was given, which also lets files of different sessions be compared.
    pub(super) force: bool,
    /// The names of the options that were typed, or added by the config file.
    given: Vec<String>,
    /// The names of the options that the config file added.
    defaults: Vec<String>,
    /// Whether an output goes to stdout, so that nothing else may be printed there.
    take_stdout: AtomicBool,
}

impl Outputs {
    /// The outputs of the called command. Every path argument that is not an [`OutputPath`] is an input.
    pub(super) fn of(command: &Command, matches: &ArgMatches, force: bool, defaults: Vec<String>) -> Outputs {
        let (mut inputs, mut given) = (Vec::new(), Vec::new());
        add_arguments(command, matches, &mut inputs, &mut given);
        // `verify` judges each log by itself, and `review` replaces logs.
        let watched = match matches.subcommand_name() {
            Some("verify" | "review") => WatchedInputs::default(),
            _ => WatchedInputs::of(&inputs),
        };
        let targets = Targets::new(inputs).watching(watched.clone());
        let targets = if force { targets.replacing_recordings() } else { targets };
        Outputs { targets, watched, force, given, defaults, take_stdout: AtomicBool::new(false) }
    }

    /// Refuses to go on after a log or a trace that the command reads has changed.
    pub(super) fn check_inputs(&self) -> Result<(), CommandError> {
        Ok(self.watched.check()?)
    }

    /// Whether an option comes from the config file. It applies where it can, and is ignored elsewhere.
    pub(super) fn is_by_default(&self, name: &str) -> bool {
        self.defaults.iter().any(|default| default == name)
    }

    /// Returns the target for a file of this kind, or the reason for a refusal. Call it before the work begins.
    pub(super) fn target(&self, path: &OutputPath, kind: FileType) -> Result<Target, CommandError> {
        if is_standard_stream(&path.0) {
            self.take_stdout.store(true, Ordering::Relaxed);
        }
        Ok(self.targets.file(&path.0, kind)?)
    }

    /// Returns the target for a file that was requested; `None` without a request.
    pub(super) fn target_if(&self, path: &Option<OutputPath>, kind: FileType) -> Result<Option<Target>, CommandError> {
        path.as_ref().map(|path| self.target(path, kind)).transpose()
    }

    /// Returns the target for a recording that can be made again, and so may replace an earlier one.
    pub(super) fn target_made_again(&self, path: &OutputPath, kind: FileType) -> Result<Target, CommandError> {
        Ok(self.targets.replaceable_file(&path.0, kind)?)
    }

    /// Returns a target for each log in a folder, named after the log. The folder is created.
    pub(super) fn target_of_each(
        &mut self,
        folder: &OutputPath,
        logs: &[PathBuf],
        ending: &str,
        kind: &FileType,
    ) -> Result<Vec<Target>, CommandError> {
        let names = self.names_in(folder, logs)?;
        let target = |name: &PathBuf| self.target_at(&name.with_added_extension(ending), kind.clone());
        names.iter().map(target).collect()
    }

    /// Returns a path for each log in a folder: the log's name without its extension. The folder is created.
    ///
    /// # Errors
    /// When two logs have one name, or the folder cannot be created.
    pub(super) fn names_in(&mut self, folder: &OutputPath, logs: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
        let mut names: SortedMap<&OsStr, &Path> = SortedMap::new();
        for log in logs {
            let name = log.file_stem().unwrap_or_default();
            if let Some(other) = names.insert(name, log) {
                return Err(CommandError::request(format!(
                    "{} and {} have one name, so {} would have two outputs with it: rename one, or use a folder for each",
                    other.display(),
                    log.display(),
                    folder.display()
                )));
            }
        }
        self.targets.add_inputs(logs);
        create_folder(folder, "logs")?;
        Ok(logs.iter().map(|log| folder.join(log.file_stem().unwrap_or_default())).collect())
    }

    /// Returns the target for a file in a requested folder.
    pub(super) fn target_at(&self, path: &Path, kind: FileType) -> Result<Target, CommandError> {
        Ok(self.targets.file(path, kind)?)
    }
}

/// Creates the folder for the outputs of several inputs.
pub(super) fn create_folder(folder: &OutputPath, inputs: &str) -> Result<(), CommandError> {
    if is_standard_stream(folder) {
        return Err(CommandError::request(format!(
            "several {inputs} need a folder for their outputs: write -o FOLDER"
        )));
    }
    Ok(store::create_folder(folder)?)
}

/// Adds the paths of inputs, and the names of given options.
fn add_arguments(command: &Command, matches: &ArgMatches, inputs: &mut Vec<PathBuf>, given: &mut Vec<String>) {
    for argument in command.get_arguments() {
        if let (Some(name), true) = (argument.get_long(), is_given(argument, matches)) {
            given.push(name.to_owned());
        }
        let kind = argument.get_value_parser().type_id();
        if (kind == TypeId::of::<PathBuf>() || kind == TypeId::of::<MapPath>())
            && let Ok(Some(values)) = matches.try_get_raw(argument.get_id().as_str())
        {
            inputs.extend(values.map(PathBuf::from));
        }
    }
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        add_arguments(command, matches, inputs, given);
    }
}

/// Whether an argument is on the command line, to which the config file has added its options.
pub(super) fn is_given(argument: &Arg, matches: &ArgMatches) -> bool {
    let id = argument.get_id().as_str();
    matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// The size of a written file; unknown for a pipe or a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct FileSize(pub(super) Option<u64>);

impl FileSize {
    /// The size of the file at this path.
    pub(super) fn of(path: &Path) -> FileSize {
        FileSize(std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len()))
    }

    /// The size as text, such as `58.3 kB (11.4 bytes per usercmd)`.
    pub(super) fn per_usercmd(self, usercmds: u64) -> String {
        let each = self.0.map(|bytes| format!(" ({:.1} bytes per usercmd)", bytes as f64 / usercmds.max(1) as f64));
        format!("{self}{}", each.unwrap_or_default())
    }
}

impl std::fmt::Display for FileSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(size) => f.write_str(&bytes(size)),
            None => f.write_str("a stream of bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::CommandFactory;

    fn add_paths(command: &Command, name: &str, outputs: &mut Vec<String>, inputs: &mut Vec<String>) {
        for argument in command.get_arguments() {
            let of_type = argument.get_value_parser().type_id();
            let argument = format!("{name} {}", argument.get_id());
            if of_type == TypeId::of::<OutputPath>() {
                outputs.push(argument);
            } else if of_type == TypeId::of::<PathBuf>() {
                inputs.push(argument);
            }
        }
        for command in command.get_subcommands() {
            add_paths(command, &format!("{name} {}", command.get_name()), outputs, inputs);
        }
    }

    /// `tests/cli/outputs.rs` tests each of these outputs; a new output must be added there, too.
    #[test]
    fn every_output_is_known() {
        let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
        add_paths(&crate::cli::Cli::command(), "hitreg", &mut outputs, &mut inputs);
        let known = [
            "quickstart output",
            "record synth output",
            "record live output",
            "record proxy output",
            "serve output",
            "join output",
            "merge output",
            "import qwd output",
            "import quake3-udp output",
            "import quake3-demo output",
            "replay output",
            "replay record",
            "verify junit",
            "verify reports",
            "verify markdown",
            "summary html",
            "summary rows",
            "summary markdown",
            "diff junit",
            "diff reports",
            "diff markdown",
            "shrink output",
            "sweep csv",
            "sweep report",
            "sweep markdown",
            "why svg",
            "report output",
            "step output",
            "export output",
            "recover output",
            "keyframes output",
            "man output",
        ];
        assert_eq!(outputs, known.map(|known| format!("hitreg {known}")));
        let mistaken: Vec<_> =
            ["output", "record", "junit", "csv", "svg", "report", "save", "html", "rows", "markdown", "reports"]
                .iter()
                .flat_map(|name| inputs.iter().filter(move |input| input.ends_with(&format!(" {name}"))))
                .collect();
        assert!(mistaken.is_empty(), "these are written to, so they are to be `OutPath`: {mistaken:?}");
    }
}

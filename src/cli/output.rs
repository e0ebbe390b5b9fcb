//! The output of a command: stdout, as text or JSON, and the requested files.

use std::io::Write;

use serde::Serialize;

use super::outputs::Outputs;
use super::page::Page;
use super::trouble::CommandError;
use super::{CommandOutcome, CommandResult};

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
    format: OutputFormat,
    out: Box<dyn Write + Send>,
    /// The files that the command may write.
    pub(super) files: Outputs,
}

impl Output {
    pub(super) fn stdout(format: OutputFormat, files: Outputs) -> Output {
        let out = std::io::BufWriter::with_capacity(1 << 16, anstream::stdout());
        Output { format, out: Box::new(out), files }
    }

    pub(super) fn format(&self) -> OutputFormat {
        self.format
    }

    /// Refuses an option that changes only the text, where the output is JSON. The config file may give either.
    pub(super) fn check_text_option(&self, name: &str, is_given: bool) -> Result<(), CommandError> {
        let by_default = |name| self.files.is_by_default(name);
        if !is_given || self.format == OutputFormat::Text || by_default(name) || by_default("format") {
            return Ok(());
        }
        Err(CommandError::request(format!(
            "--{name} has no effect with --format json, which prints everything: leave one out"
        )))
    }

    /// Refuses `--format json` of a command that prints no result, but `what`. The config file may give it.
    pub(super) fn check_no_result(&self, what: &str) -> Result<(), CommandError> {
        match self.format == OutputFormat::Json && !self.files.is_by_default("format") {
            true => Err(CommandError::request(format!("--format json has no effect on {what}"))),
            false => Ok(()),
        }
    }

    /// Whether an option was typed. An option from the config file applies where it can, and is ignored elsewhere.
    pub(super) fn is_typed(&self, name: &str, is_given: bool) -> bool {
        is_given && !self.files.is_by_default(name)
    }

    /// Prints one result, and returns `Done`: `value` as JSON, or the page that `text` fills. Prints to stderr if a requested file goes to
    /// stdout.
    pub(super) fn show<T: Serialize>(&mut self, value: &T, text: impl FnOnce(&mut Page)) -> CommandResult {
        self.files.check_inputs()?;
        if self.files.take_stdout() {
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

//! The golden beside a log: read, compared, accepted, or proposed for review.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::verdict::{LogReport, LogVerdict, VerdictReason};
use crate::EngineError;
use hitreg_analysis::golden::{self, GoldenChange};
use hitreg_analysis::text_diff::TextDiff;
use hitreg_log::store::{self, FileType, StoreError, Target, Targets, TemporaryFolder};

/// What to do if the outcome differs from the golden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GoldenUpdate {
    /// Only report it.
    #[default]
    Nothing,
    /// Replace the golden. With `rerecord`, also replace a log whose recorded states come from an older behaviour.
    Accept {
        /// Whether logs may be recorded again.
        rerecord: bool,
    },
    /// Write a proposal beside the golden, for review.
    Propose {
        /// Whether logs may be recorded again.
        rerecord: bool,
    },
}

/// What was done with the golden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Golden {
    /// The log has no golden.
    #[default]
    None,
    /// The replay was compared with it.
    Compared,
    /// The golden was written.
    Accepted,
    /// The golden and the log were written.
    Rerecorded,
    /// A proposal was written beside it, for review.
    Proposed,
}

/// The golden of a log, and where new files may go.
pub(crate) struct Goldens {
    /// `None` for a log from standard input.
    path: Option<PathBuf>,
    keep: GoldenUpdate,
    golden: Option<Target>,
    log: Option<Target>,
}

/// A log that was recorded again, and the result of verifying it.
pub(crate) struct RerecordedLog {
    /// The new log and the temporary folder that holds it; `None` if it could not be recorded.
    pub(crate) log: Option<(TemporaryFolder, PathBuf)>,
    pub(crate) verified: LogReport,
}

/// A proposed golden that waits for review.
#[derive(Clone, Debug, Serialize)]
pub struct Proposal {
    /// The golden to replace.
    #[serde(serialize_with = "hitreg_log::store::shown::path")]
    pub golden: PathBuf,
    /// The log to replace together with the golden; `None` if the log stays.
    #[serde(serialize_with = "hitreg_log::store::shown::path_if")]
    pub log: Option<PathBuf>,
    /// The kind of difference from the golden.
    pub kind: GoldenChange,
    /// The differences from the golden; `None` if there is no golden or nothing differs.
    pub difference: Option<TextDiff>,
}

impl GoldenUpdate {
    pub(crate) fn writes(self) -> bool {
        self != GoldenUpdate::Nothing
    }

    pub(crate) fn rerecords(self) -> bool {
        matches!(self, GoldenUpdate::Accept { rerecord: true } | GoldenUpdate::Propose { rerecord: true })
    }
}

impl Goldens {
    /// Determines the files to write, and checks that they may be written.
    pub(crate) fn of(log: &Path, keep: GoldenUpdate, targets: &Targets) -> Result<Goldens, EngineError> {
        if store::is_standard_stream(log) {
            let what = "a log from standard input has no place for a golden: save it as a file, and verify that";
            let nowhere = Goldens { path: None, keep, golden: None, log: None };
            return if keep.writes() { Err(EngineError::Request(what.to_owned())) } else { Ok(nowhere) };
        }
        let path = log.with_extension("golden");
        let (golden, recorded) = match keep {
            GoldenUpdate::Nothing => (None, None),
            GoldenUpdate::Accept { rerecord } => (
                Some(targets.file(&path, FileType::Golden)?),
                rerecord.then(|| targets.file_over_input(log, FileType::Log)).transpose()?,
            ),
            GoldenUpdate::Propose { rerecord } => (
                Some(targets.file(&new(&path), FileType::Golden)?),
                rerecord.then(|| targets.replaceable_file(&new(log), FileType::Log)).transpose()?,
            ),
        };
        Ok(Goldens { path: Some(path), keep, golden, log: recorded })
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The text of the golden, if there is one.
    pub(crate) fn accepted(&self) -> Result<Option<String>, EngineError> {
        self.path().map_or(Ok(None), read)
    }

    /// Removes an earlier proposal, if this run proposes. What it proposed may no longer hold.
    pub(crate) fn withdraw(&self) -> Result<(), EngineError> {
        match (self.keep, &self.path) {
            (GoldenUpdate::Propose { .. }, Some(golden)) => discard(golden),
            _ => Ok(()),
        }
    }

    /// Writes the golden, proposal or log as `keep` asks, and reports what was done.
    pub(crate) fn settle(
        &self,
        verified: LogReport,
        rerecorded: Option<RerecordedLog>,
    ) -> Result<LogReport, EngineError> {
        let Some(target) = &self.golden else { return Ok(verified) };
        match (&verified.golden_text, verified.why) {
            // A replay that contradicts its own log or exercised nothing must not become a golden.
            (Some(text), None | Some(VerdictReason::Golden | VerdictReason::NeedsGolden))
                if verified.why.is_some() || verified.golden == Golden::None =>
            {
                store::save_bytes(target, text.as_bytes())?;
                Ok(self.report_written(target, verified, Golden::Accepted))
            }
            (_, Some(VerdictReason::RecordedState | VerdictReason::Keyframe)) => {
                self.accept_rerecorded(target, verified, rerecorded)
            }
            (_, Some(_)) => Ok(report_unwritten(verified, "")),
            (_, None) => Ok(verified),
        }
    }

    fn accept_rerecorded(
        &self,
        target: &Target,
        verified: LogReport,
        rerecorded: Option<RerecordedLog>,
    ) -> Result<LogReport, EngineError> {
        let before = verified.detail.clone().unwrap_or_default();
        let Some(rerecorded) = rerecorded else {
            if !verified.can_rerecord {
                return Ok(report_unwritten(
                    verified,
                    ": the log has other states, and this build cannot record it again",
                ));
            }
            let detail = format!(
                "{before}. If the game changed on purpose, add --rerecord: it records the log again from its input and \
                 links, and writes log and golden together"
            );
            return Ok(verified.with_reason(VerdictReason::RecordedState, detail));
        };
        let (
            Some((_, recorded)),
            Some(text),
            Some(log),
            None | Some(VerdictReason::Golden | VerdictReason::NeedsGolden),
        ) = (&rerecorded.log, &rerecorded.verified.golden_text, &self.log, rerecorded.verified.why)
        else {
            let why = rerecorded.verified.detail.unwrap_or_default();
            let detail = format!("{before}. Recorded again, the log cannot be accepted: {why}");
            return Ok(verified.with_reason(VerdictReason::RecordedState, detail));
        };
        // Both files are complete before either is renamed. After a crash between the renames, running the command
        // again completes it.
        let mut recorded = store::open(recorded)?;
        let log = store::prepare(log, |out| Ok(std::io::copy(&mut recorded, out).map(drop)?))?;
        let golden = store::prepare(target, |out| Ok(out.write_all(text.as_bytes())?))?;
        log.put()?;
        golden.put()?;
        let report = self.report_written(target, rerecorded.verified, Golden::Rerecorded);
        Ok(LogReport { detail: Some(format!("before: {before}")), ..report })
    }

    fn report_written(&self, target: &Target, verified: LogReport, golden: Golden) -> LogReport {
        match self.keep {
            GoldenUpdate::Propose { .. } => {
                let detail = format!("the proposed golden is {}", target.path().display());
                LogReport { golden: Golden::Proposed, ..verified.with_reason(VerdictReason::Golden, detail) }
            }
            GoldenUpdate::Accept { .. } | GoldenUpdate::Nothing => {
                // Only the missing golden was wrong.
                let held = verified.why == Some(VerdictReason::NeedsGolden);
                let (why, detail) = if held { (None, None) } else { (verified.why, verified.detail) };
                LogReport { verdict: LogVerdict::Accepted, why, detail, golden, ..verified }
            }
        }
    }
}

/// The result for a log whose golden is neither replaced nor proposed. `why` begins with a colon, unless the verdict says
/// it.
fn report_unwritten(verified: LogReport, why: &str) -> LogReport {
    let detail = verified.detail.as_deref().unwrap_or_default();
    LogReport { detail: Some(format!("{detail}. No golden is written{why}")), ..verified }
}

/// The proposed goldens in folders or beside logs. A golden, a proposed golden or a proposed log names its log. `unread`
/// receives the errors of folders below the given ones, and of goldens, that cannot be read.
///
/// # Errors
/// Fails if a given folder cannot be read, or a file is neither a log nor a golden.
pub fn proposals_below(paths: &[PathBuf], unread: &mut Vec<EngineError>) -> Result<Vec<Proposal>, EngineError> {
    let (mut waiting, mut unread_folders) = (Vec::new(), Vec::new());
    for path in paths {
        match path.is_dir() {
            true => waiting.extend(store::listed_files_below(path, &["golden.new"], &mut unread_folders)?),
            false => {
                let is_proposal = path.extension().is_some_and(|extension| extension == "new");
                let log = if is_proposal { path.with_extension("") } else { path.clone() };
                let proposal = new(&log.with_extension("golden"));
                match path.exists() {
                    true if store::is_of(path, &FileType::Log)? || store::is_of(path, &FileType::Golden)? => {}
                    true => {
                        let what = "this is neither a log nor a golden: name a log, a golden or a directory";
                        return Err(EngineError::unsuitable(path, what));
                    }
                    false if proposal.exists() => {}
                    false => return Err(StoreError::not_found(path).into()),
                }
                waiting.extend(proposal.exists().then_some(proposal));
            }
        }
    }
    unread.extend(unread_folders.into_iter().map(EngineError::from));
    let read = |path: &PathBuf| Proposal::read(path).map_err(|error| unread.push(error)).ok();
    Ok(waiting.iter().filter_map(read).collect())
}

impl Proposal {
    fn read(proposed: &Path) -> Result<Proposal, EngineError> {
        let golden = proposed.with_extension("");
        let log = golden.with_extension("hitlog");
        let text = read(proposed)?.unwrap_or_default();
        let accepted = read(&golden)?;
        let kind = GoldenChange::of(accepted.as_deref(), &text);
        let difference = accepted.and_then(|accepted| golden::difference(&accepted, &text));
        Ok(Proposal { log: new(&log).exists().then_some(log), golden, kind, difference })
    }

    /// Replaces the golden, and the log if a new one was proposed.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn accept(&self) -> Result<(), EngineError> {
        let targets = Targets::default();
        if let Some(log) = &self.log {
            store::move_to(&new(log), &targets.replaceable_file(log, FileType::Log)?)?;
        }
        Ok(store::move_to(&new(&self.golden), &targets.file(&self.golden, FileType::Golden)?)?)
    }

    /// Deletes the proposal. The golden stays unchanged.
    ///
    /// # Errors
    /// Fails if a file cannot be removed.
    pub fn reject(&self) -> Result<(), EngineError> {
        discard(&self.golden)
    }
}

/// Removes the proposal for a golden, and the log that was proposed with it.
fn discard(golden: &Path) -> Result<(), EngineError> {
    let targets = Targets::default();
    for (path, kind) in [(golden.with_extension("hitlog"), FileType::Log), (golden.to_owned(), FileType::Golden)] {
        let path = new(&path);
        if path.exists() {
            store::remove(&targets.replaceable_file(&path, kind)?)?;
        }
    }
    Ok(())
}

/// The path of the proposal for a golden: `duel.golden.new` for `duel.golden`.
fn new(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// The text of a golden. Line ends that git converted are accepted, and a last line without an end.
fn read(path: &Path) -> Result<Option<String>, EngineError> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = Some(store::read_regular(path)?).filter(|bytes| FileType::Golden.is_of(bytes));
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| {
        let what = "this is no golden of hitreg: move it away, and write one with `verify LOG --accept`";
        EngineError::unsuitable(path, what)
    })?;
    let text = text.replace("\r\n", "\n");
    Ok(Some(if text.ends_with('\n') { text } else { text + "\n" }))
}

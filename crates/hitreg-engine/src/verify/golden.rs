//! The golden beside a log: read, compared, accepted, or proposed for review.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::verdict::{LogReport, LogVerdict, VerdictReason};
use crate::{EngineError, file_digest};
use hitreg_analysis::golden::{self, GoldenChange, GoldenError};
use hitreg_analysis::text_diff::TextDiff;
use hitreg_log::sorted::SortedSet;
use hitreg_log::store::shown::shell_path;
use hitreg_log::store::{self, FileType, StoreError, Target, Targets, TemporaryFolder};
use hitreg_log::trace::Digest;

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
    /// The differences from the golden, or the whole proposal if there is no golden; `None` if nothing differs.
    pub difference: Option<TextDiff>,
    /// The proposed text.
    #[serde(skip)]
    text: String,
    /// The files that it is for, as they were when it was written.
    #[serde(skip)]
    made_for: String,
}

/// A proposed golden that cannot be read, or a proposed log without one.
#[derive(Debug)]
pub struct BrokenProposal {
    golden: PathBuf,
    /// What is wrong.
    pub error: EngineError,
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
                Some(targets.file(&proposal_path(&path), FileType::Golden)?),
                rerecord.then(|| targets.replaceable_file(&proposal_path(log), FileType::Log)).transpose()?,
            ),
        };
        Ok(Goldens { path: Some(path), keep, golden, log: recorded })
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The text of the golden, if there is one, which must be of this game.
    pub(crate) fn accepted(&self, game: &str) -> Result<Option<String>, EngineError> {
        let Some(path) = self.path() else { return Ok(None) };
        let text = read(path)?.map(|(text, _)| text);
        if let Some(text) = &text {
            golden::check_game(text, game).map_err(|why| EngineError::unsuitable(path, why.to_string()))?;
        }
        Ok(text)
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
                let text = self.content(text, None)?;
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
        let text = self.content(text, Some(recorded))?;
        let mut recorded = store::open(recorded)?;
        let log = store::prepare(log, |out| Ok(std::io::copy(&mut recorded, out).map(drop)?))?;
        let golden = store::prepare(target, |out| Ok(out.write_all(text.as_bytes())?))?;
        log.put()?;
        golden.put()?;
        let report = self.report_written(target, rerecorded.verified, Golden::Rerecorded);
        Ok(LogReport { detail: Some(format!("before: {before}")), ..report })
    }

    /// The contents of the file to write: the golden, and the files that a proposal is of.
    fn content(&self, text: &str, new_log: Option<&Path>) -> Result<String, EngineError> {
        match (self.keep, &self.path) {
            (GoldenUpdate::Propose { .. }, Some(golden)) => Ok(text.to_owned() + &made_for(golden, new_log)?),
            _ => Ok(text.to_owned()),
        }
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
/// receives the errors of folders below the given ones.
///
/// # Errors
/// Fails if a given folder cannot be read, or a file is neither a log nor a golden.
pub fn proposals_below(
    paths: &[PathBuf],
    unread: &mut Vec<EngineError>,
) -> Result<(Vec<Proposal>, Vec<BrokenProposal>), EngineError> {
    let (mut waiting, mut unread_folders) = (Vec::new(), Vec::new());
    for path in paths {
        match path.is_dir() {
            true => {
                let below = store::listed_files_below(path, &["golden.new", "hitlog.new"], &mut unread_folders)?;
                let is_log = |path: &Path| path.with_extension("").extension().is_some_and(|ending| ending == "hitlog");
                let golden = |path: PathBuf| if is_log(&path) { proposal_of(&path) } else { path };
                waiting.extend(below.into_iter().map(golden).collect::<SortedSet<_>>());
            }
            false => {
                let is_proposal = path.extension().is_some_and(|extension| extension == "new");
                let log = if is_proposal { path.with_extension("") } else { path.clone() };
                let proposal = proposal_of(&proposal_path(&log));
                match path.exists() {
                    true if store::is_of(path, &FileType::Log)? || store::is_of(path, &FileType::Golden)? => {}
                    true => {
                        let what = "this is neither a log nor a golden: name a log, a golden or a directory";
                        return Err(EngineError::unsuitable(path, what));
                    }
                    false if proposal.exists() => {}
                    false => return Err(StoreError::not_found(path).into()),
                }
                let waits = proposal.exists() || proposal_path(&log.with_extension("hitlog")).exists();
                waiting.extend(waits.then_some(proposal));
            }
        }
    }
    unread.extend(unread_folders.into_iter().map(EngineError::from));
    let (mut proposals, mut broken) = (Vec::new(), Vec::new());
    for path in waiting {
        match Proposal::read(&path) {
            Ok(proposal) => proposals.push(proposal),
            Err(error) => broken.push(BrokenProposal { golden: path.with_extension(""), error }),
        }
    }
    Ok((proposals, broken))
}

impl BrokenProposal {
    /// Deletes the proposed files.
    ///
    /// # Errors
    /// Fails if a file cannot be removed, or is neither a log nor a golden.
    pub fn reject(&self) -> Result<(), EngineError> {
        discard(&self.golden)
    }
}

impl Proposal {
    fn read(proposed: &Path) -> Result<Proposal, EngineError> {
        let golden = proposed.with_extension("");
        let log = golden.with_extension("hitlog");
        let (text, made_for) = match read(proposed)? {
            Some((text, Some(made_for))) => (text, made_for),
            Some((_, None)) => {
                let what = format!("this is no proposal{}", propose_again(&log));
                return Err(EngineError::unsuitable(proposed, what));
            }
            None => {
                let what = format!("{} is missing{}", proposed.display(), propose_again(&log));
                return Err(EngineError::unsuitable(&proposal_path(&log), what));
            }
        };
        let accepted = read(&golden)?.map(|(accepted, _)| accepted);
        let kind = GoldenChange::of(accepted.as_deref(), &text);
        let difference = golden::difference(&accepted.unwrap_or_default(), &text);
        Ok(Proposal { log: proposal_path(&log).exists().then_some(log), golden, kind, difference, text, made_for })
    }

    /// Replaces the golden, and the log if a new one was proposed.
    ///
    /// # Errors
    /// Fails if a file changed since the proposal was written, or cannot be written.
    pub fn accept(&self) -> Result<(), EngineError> {
        let new_log = self.log.as_deref().map(proposal_path);
        if made_for(&self.golden, new_log.as_deref())? != self.made_for {
            let again = propose_again(&self.golden.with_extension("hitlog"));
            let what = format!("the log, its golden or the proposed log changed after this proposal{again}");
            return Err(EngineError::unsuitable(&proposal_path(&self.golden), what));
        }
        let targets = Targets::default();
        let golden = targets.file(&self.golden, FileType::Golden)?;
        // The golden is complete before the log is replaced.
        let prepared = store::prepare(&golden, |out| Ok(out.write_all(self.text.as_bytes())?))?;
        if let (Some(log), Some(new_log)) = (&self.log, &new_log) {
            store::move_to(new_log, &targets.replaceable_file(log, FileType::Log)?)?;
        }
        prepared.put()?;
        Ok(store::remove(&targets.file(&proposal_path(&self.golden), FileType::Golden)?)?)
    }

    /// Deletes the proposal. The golden stays unchanged.
    ///
    /// # Errors
    /// Fails if a file cannot be removed.
    pub fn reject(&self) -> Result<(), EngineError> {
        discard(&self.golden)
    }
}

/// What to do about a proposal that does not hold.
fn propose_again(log: &Path) -> String {
    let rerecord = if proposal_path(log).exists() { " --rerecord" } else { "" };
    let log = shell_path(log);
    format!(": propose again with `hitreg verify {log} --propose{rerecord}`, or run `hitreg review {log} --reject`")
}

/// What begins the last line of a proposal, after an empty line.
const MADE_FOR: &str = "\nproposed for ";

/// The last line of a proposal: the digests of the files that it is for, as they are now. A proposal holds only as long as
/// they are the same. Line ends of the golden do not count.
fn made_for(golden: &Path, new_log: Option<&Path>) -> Result<String, EngineError> {
    let text = |digest: Option<Digest>| digest.map_or("none".to_owned(), |digest| digest.to_string());
    let of_file = |path: &Path| path.exists().then(|| file_digest(path)).transpose();
    let accepted = read(golden)?.map(|(text, _)| Digest::of_bytes(text.as_bytes()));
    let log = of_file(&golden.with_extension("hitlog"))?;
    let new_log = new_log.map_or(Ok(None), of_file)?;
    let [log, golden, new_log] = [log, accepted, new_log].map(text);
    Ok(format!("{MADE_FOR}log {log}, golden {golden}, new log {new_log}\n"))
}

/// The proposed golden beside a proposed log.
fn proposal_of(new_log: &Path) -> PathBuf {
    proposal_path(&new_log.with_extension("").with_extension("golden"))
}

/// Removes the proposal for a golden, and the log that was proposed with it.
fn discard(golden: &Path) -> Result<(), EngineError> {
    let targets = Targets::default();
    for (path, kind) in [(golden.with_extension("hitlog"), FileType::Log), (golden.to_owned(), FileType::Golden)] {
        let path = proposal_path(&path);
        if path.exists() {
            store::remove(&targets.replaceable_file(&path, kind)?)?;
        }
    }
    Ok(())
}

/// The path of the proposal for a golden: `duel.golden.new` for `duel.golden`.
fn proposal_path(path: &Path) -> PathBuf {
    path.with_added_extension("new")
}

/// The text of a golden, and the last line of a proposal. Line ends that git converted are accepted, and a last line
/// without an end.
fn read(path: &Path) -> Result<Option<(String, Option<String>)>, EngineError> {
    if !path.exists() {
        return Ok(None);
    }
    let text = String::from_utf8(store::read_regular(path)?).map_err(|_| GoldenError::Foreign);
    let text = text.and_then(|text| golden::check(&text).map(|()| text));
    let text = text.map_err(|why| EngineError::unsuitable(path, why.to_string()))?.replace("\r\n", "\n");
    let text = if text.ends_with('\n') { text } else { text + "\n" };
    Ok(Some(match text.rfind(MADE_FOR) {
        Some(end) => (text[..end].to_owned(), Some(text[end..].to_owned())),
        None => (text, None),
    }))
}

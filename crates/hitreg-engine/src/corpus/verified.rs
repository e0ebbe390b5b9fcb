//! Verifies every log of a corpus.

use std::path::{Path, PathBuf};

use super::run::{CorpusJudge, JudgedLog};
use crate::engine::{Engine, EngineError, ReplaySpecs};
use crate::verify::{Goldens, LogReport, LogVerdict, VerdictReason, VerifyOptions};
use hitreg_analysis::corpus::{LogRow, ResultRow, name_of};
use hitreg_analysis::diff::{DiffOptions, Divergence, diff};
use hitreg_analysis::summary::Coverage;
use hitreg_log::sorted::SortedMap;
use hitreg_log::store::{self, StoreError, Targets};
use hitreg_log::trace::Digest;
use hitreg_log::units::Tick;

/// A verification of any log of a corpus.
pub struct VerifiedCorpus<'a> {
    options: &'a VerifyOptions<'a>,
    engine: &'a Engine<'a>,
    goldens: SortedMap<PathBuf, Goldens>,
    /// The command, the build and the options.
    about: LogRow,
    /// Whether files determine the build, so that a later run may reuse a verdict.
    may_reuse: bool,
    /// The command that explains a difference.
    next: &'a (dyn Fn(&LogReport) -> String + Sync),
}

impl<'a> VerifiedCorpus<'a> {
    /// Prepares the verification of these logs, and checks that all requested files may be written.
    ///
    /// # Errors
    /// Fails if a requested file cannot be written.
    pub fn new(
        options: &'a VerifyOptions<'a>,
        engine: &'a Engine<'a>,
        logs: &[PathBuf],
        (about, may_reuse): (LogRow, bool),
        next: &'a (dyn Fn(&LogReport) -> String + Sync),
    ) -> Result<VerifiedCorpus<'a>, EngineError> {
        let targets = Targets::new(logs.to_vec(), false);
        let goldens = logs.iter().map(|path| Ok((path.clone(), Goldens::of(path, options.keep, &targets)?)));
        let goldens = goldens.collect::<Result<_, EngineError>>()?;
        // A run that writes goldens judges every log, so that it writes every golden.
        let may_reuse = may_reuse && !options.keep.writes();
        Ok(VerifiedCorpus { options, engine, goldens, about, may_reuse, next })
    }

    /// Where the states of a replay first differ from the recorded ones; `None` if the log has too few records.
    fn first_difference(&self, log: &Path, report: &LogReport) -> Option<Divergence> {
        if report.why != Some(VerdictReason::RecordedState) || !report.plays_here {
            return None;
        }
        let mut replays = ReplaySpecs::default();
        replays.b.build = self.options.build.map(|build| build.path().to_owned());
        let traces = replays.of_log(log).traces_in_files(self.engine).ok()?;
        let [a, b] = traces.made;
        let options = DiffOptions { overlap_only: true, ..DiffOptions::default() };
        diff(a.source(), b.source(), &options).ok()?.first
    }
}

impl CorpusJudge for VerifiedCorpus<'_> {
    type Report = LogReport;

    fn about(&self) -> LogRow {
        self.about.clone()
    }

    fn depends_on(&self, log: &Path) -> Option<String> {
        let digest = match self.goldens.get(log)?.path().filter(|golden| golden.exists()) {
            Some(golden) => Digest::of_bytes(&store::read_regular(golden).ok()?).to_string(),
            None => String::new(),
        };
        self.may_reuse.then_some(digest)
    }

    fn may_reuse(&self, row: &LogRow) -> bool {
        self.options.build.is_none() || row.why != name_of(VerdictReason::NotReplayed)
    }

    fn writes_logs(&self) -> bool {
        self.options.keep.rerecords()
    }

    fn judge(&self, log: &Path, about: LogRow) -> Result<(Vec<ResultRow>, LogReport), EngineError> {
        let Some(goldens) = self.goldens.get(log) else {
            return Err(StoreError::NotFound { path: log.to_owned() }.into());
        };
        let started = (self.options.clock)();
        // With threads to spare, the replays of one log run in parallel.
        let at_once = rayon::current_num_threads() > 1;
        let mut report = self.options.log(self.engine, log, goldens, at_once)?;
        report.seconds = (self.options.clock)() - started;
        let first = self.first_difference(log, &report);
        let row = LogRow {
            verdict: name_of(report.verdict),
            why: report.why.map(name_of).unwrap_or_default(),
            detail: report.detail.clone().unwrap_or_default(),
            tick: report.tick.map(|tick| i64::from(tick.0)),
            table: first.as_ref().map(|first| first.table.clone()).unwrap_or_default(),
            field: first.and_then(|first| first.field).unwrap_or_default(),
            next: (self.next)(&report),
            ticks: report.exercised.ticks,
            usercmds: report.exercised.usercmds,
            shots_b: report.exercised.shots,
            hits_b: report.exercised.hits,
            corrections_b: report.exercised.corrections,
            trace_digest: report.digest.clone(),
            active_usercmds: report.exercised.active_usercmds,
            hashes_recorded: report.hashes_recorded,
            hashes_compared: report.hashes_compared,
            rollbacks: report.rollbacks,
            legs: report.legs.map(|legs| legs as u64),
            keyframes: report.keyframes.map(|keyframes| keyframes as u64),
            golden: name_of(report.golden),
            ..about
        };
        let row = match &report.view_errors {
            Some(errors) => row.with_view_errors(errors),
            None => row,
        };
        Ok((vec![ResultRow::Log(Box::new(row))], report))
    }
}

impl JudgedLog<LogReport> {
    /// The report on the log; that of an earlier verdict has what its row has.
    pub fn verified(self) -> LogReport {
        let of_row = |row: &ResultRow| match row {
            ResultRow::Log(row) => Some(LogReport::of_row(row)),
            _ => None,
        };
        let report = self.report.or_else(|| self.rows.last().and_then(of_row));
        report.unwrap_or_else(|| LogReport::new(LogVerdict::Broken))
    }
}

impl LogReport {
    fn of_row(row: &LogRow) -> LogReport {
        let parsed = |name: &str| serde_json::Value::from(name);
        let verdict = serde_json::from_value(parsed(&row.verdict)).unwrap_or(LogVerdict::Broken);
        let why = serde_json::from_value(parsed(&row.why)).ok();
        let mut report = LogReport::new(verdict);
        report.path = PathBuf::from(&row.log);
        report.why = why.or((verdict == LogVerdict::Broken).then_some(VerdictReason::Unreadable));
        report.detail = Some(row.detail.clone()).filter(|detail| !detail.is_empty());
        report.tick = row.tick.and_then(|tick| u32::try_from(tick).ok()).map(Tick);
        report.exercised = Coverage {
            ticks: row.ticks,
            usercmds: row.usercmds,
            active_usercmds: row.active_usercmds,
            corrections: row.corrections_b,
            shots: row.shots_b,
            hits: row.hits_b,
        };
        report.digest.clone_from(&row.trace_digest);
        report.hashes_recorded = row.hashes_recorded;
        report.hashes_compared = row.hashes_compared;
        report.rollbacks = row.rollbacks;
        let count = |number: Option<u64>| number.and_then(|number| usize::try_from(number).ok());
        (report.legs, report.keyframes) = (count(row.legs), count(row.keyframes));
        report.golden = serde_json::from_value(parsed(&row.golden)).unwrap_or(report.golden);
        report
    }
}

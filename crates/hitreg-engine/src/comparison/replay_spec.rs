//! One side of a comparison: its input file, how it replays a log, and its trace in memory or in a file.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{TRACE_OUTPUT, build_name};
use crate::build::{Build, BuildRequest, UntestableBuild};
use crate::surveyed_log::collect_replayed;
use crate::{
    BuildOutcome, Engine, EngineError, MissingSide, ReplaySpecs, ShownReplay, SurveyedLog, check, write_replayed,
};
use hitreg_analysis::diff::TraceSide;
use hitreg_log::log::{FileKind, TraceLayout};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{GapRecord, Session, SessionHeader, value_of_setting};
use hitreg_log::store::{self, Target, TemporaryFolder, TraceFile};
use hitreg_log::trace::schema::{TableSet, packets, snapshots};
use hitreg_log::trace::{SessionSource, Table, Trace, TraceHeader, TraceSource};
use hitreg_netcode::replay::{
    Part, ReplayAttempt, ReplayMode, ReplayOptions, WhatIf, foreign_trace_memory, log_settings,
};
use hitreg_netcode::settings::Settings;

/// How one side replays its log.
#[derive(Clone, Debug, Default)]
pub struct ReplaySpec {
    /// The build that replays the log; `None` for this build.
    pub build: Option<PathBuf>,
    /// A preset that replaces the log's settings.
    pub preset: Option<String>,
    /// Settings to change, each as `key=value`.
    pub set: Vec<String>,
    /// Replays open loop: only the clients, on the recorded snapshots.
    pub open: bool,
    /// How preset and settings apply: by replay or by rejudging.
    pub what_if: WhatIf,
    /// Also judges the shots under other rules, for a page. Only a replay by this program does.
    pub with_rejudged: bool,
    /// The tables that a replay by this program produces. Other builds always write all their tables.
    pub tables: TableSet,
    /// The part of the log for which this program writes rows: the part that the other side's trace covers.
    pub part: Option<Part>,
}

impl ReplaySpec {
    pub(super) fn is_plain(&self) -> bool {
        self.build.is_none() && !self.has_settings() && !self.open
    }

    /// Whether the settings are not simply those of the log.
    pub(super) fn has_settings(&self) -> bool {
        self.preset.is_some() || !self.set.is_empty()
    }

    /// Rejects impossible requests before anything runs.
    pub(crate) fn check(&self, engine: &Engine<'_>, source: &ComparisonSource<'_>) -> Result<(), EngineError> {
        match source.log() {
            None if !self.is_plain() => Err(EngineError::already_replayed(source.path)),
            None => Ok(()),
            Some(SurveyedLog { header, .. }) => {
                self.settings(engine, header)?;
                if let Some(build) = &self.build {
                    // The build opens the log itself.
                    store::check_regular(source.path)?;
                    Build::at(build)?;
                }
                Ok(())
            }
        }
    }

    pub(crate) fn name(&self, source: &ComparisonSource<'_>) -> String {
        let path = source.path.display();
        if source.log().is_none() {
            return path.to_string();
        }
        let preset = self.preset.as_ref().map(|name| format!(" --preset {name}")).unwrap_or_default();
        let set: String = self.set.iter().map(|pair| format!(" --set {pair}")).collect();
        format!("{path} by {}{preset}{set}", build_name(self.build.as_deref()))
    }

    /// Makes the trace of one log.
    ///
    /// # Errors
    /// Fails as [`ComparisonSpec::make_traces`](super::ComparisonSpec::make_traces) does.
    pub fn trace_of(&self, engine: &Engine<'_>, path: &Path) -> Result<SideTrace, EngineError> {
        let source = ComparisonSource::of(engine, path)?;
        self.check(engine, &source)?;
        let made = self.make_trace(engine, &source, TraceSide::A);
        check(&engine.runner.stop)?;
        Ok(made?.trace)
    }

    /// Makes the trace of a side.
    pub(crate) fn make_trace(
        &self,
        engine: &Engine<'_>,
        source: &ComparisonSource<'_>,
        side: TraceSide,
    ) -> Result<ShownReplay, EngineError> {
        let log = match &source.holds {
            ComparisonInput::Trace(trace) => return Ok(SideTrace::File(TraceFile::clone(trace), None).into()),
            ComparisonInput::Log(log) => log,
        };
        let made = match &self.build {
            None => self.replay(engine, log)?,
            Some(build) => {
                let options = self.options();
                let request = BuildRequest { options: &options, ..log.request()? };
                match engine.runner.trace_file(&Build::at(build)?, &request) {
                    Ok((trace, folder)) => {
                        let made = self.check_applied_options(engine, &log.header, SideTrace::File(trace, folder))?;
                        made.map(ShownReplay::from)
                    }
                    Err(untestable) => Err(untestable),
                }
            }
        };
        let made = EngineError::check_machine(source.path, made)?;
        Ok(made.map_err(|untestable| MissingSide::new(side, self, TRACE_OUTPUT, untestable))?)
    }

    pub(crate) fn rerecord(&self, engine: &Engine<'_>, log: &SurveyedLog, to: &Target) -> BuildOutcome<()> {
        let Some(build) = &self.build else {
            return log.rerecord(engine, self.settings(engine, &log.header)?.as_ref(), to);
        };
        let options = self.options();
        let request = BuildRequest { options: &options, ..log.request()? };
        Ok(engine.runner.rerecord(&Build::at(build)?, &request, to.path()))
    }

    /// The options of this program's replay of a log on this side.
    fn replay_options(&self, engine: &Engine<'_>, log: &SessionHeader) -> Result<ReplayOptions, EngineError> {
        let mode = if self.open { ReplayMode::Open } else { ReplayMode::Auto };
        let settings = self.settings(engine, log)?;
        let tables = self.tables;
        let network = [&packets::SCHEMA, &snapshots::SCHEMA].into_iter().any(|table| tables.has(table));
        Ok(ReplayOptions {
            mode,
            network,
            tables,
            part: self.part,
            memory: engine.games.memory(),
            ..ReplayOptions::default()
        }
        .under(settings, self.what_if))
    }

    /// The settings of this side, without settings that only its build knows. `None` if the log's own settings apply.
    pub(crate) fn settings(&self, engine: &Engine<'_>, log: &SessionHeader) -> Result<Option<Settings>, EngineError> {
        if !self.has_settings() {
            return Ok(None);
        }
        let known = self.set.iter().filter(|pair| self.build_setting(engine, log, pair).is_none());
        Ok(Some(log_settings(log)?.with_changes(self.preset.as_deref(), known)?))
    }

    /// The options to pass to a build. Empty unless this side changes something.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(name) = &self.preset {
            options.extend(["--preset".to_owned(), name.clone()]);
        }
        options.extend(self.set.iter().flat_map(|pair| ["--set".to_owned(), pair.clone()]));
        if self.open {
            options.extend(["--mode".to_owned(), "open".to_owned()]);
        }
        if self.what_if == WhatIf::Rejudge && self.has_settings() {
            options.extend(["--what-if".to_owned(), WhatIf::Rejudge.name().to_owned()]);
        }
        options
    }

    /// Accepts the trace of a build if it applied the requested options. A build that ignores an option is untestable.
    fn check_applied_options(
        &self,
        engine: &Engine<'_>,
        log: &SessionHeader,
        trace: SideTrace,
    ) -> BuildOutcome<SideTrace> {
        let header = trace.source().header();
        let because = |option: String, found: &str| {
            let reason = format!("the build ignores {option}: its trace has {found}");
            Ok(Err(UntestableBuild::because(reason)))
        };
        if self.open && header.mode != "open" {
            return because("--mode open".into(), &format!("mode {}", header.mode));
        }
        if self.what_if == WhatIf::Rejudge {
            return Ok(Ok(trace));
        }
        for (key, value) in self.changed_settings(engine, log)? {
            match value_of_setting(&header.settings, &key) {
                Some(found) if found == value => {}
                Some(found) => return because(format!("{key}={value}"), found),
                None => return because(format!("{key}={value}"), "no such setting"),
            }
        }
        Ok(Ok(trace))
    }

    /// The settings that this side changes, as a trace lists them.
    fn changed_settings(&self, engine: &Engine<'_>, log: &SessionHeader) -> Result<Vec<(String, String)>, EngineError> {
        let Some(settings) = self.settings(engine, log)? else { return Ok(Vec::new()) };
        let recorded = log_settings(log)?.to_pairs();
        let mut changed: Vec<_> = settings.to_pairs().into_iter().filter(|pair| !recorded.contains(pair)).collect();
        let of_build = self.set.iter().filter_map(|pair| self.build_setting(engine, log, pair));
        changed.extend(of_build.map(|(key, value)| (key.to_owned(), value.to_owned())));
        Ok(changed)
    }

    /// The key and value of a `key=value` that only the build can know. That holds if the log has the key, or if this
    /// program does not know the game. A name that resembles one of hitreg's own settings counts as a typing error.
    fn build_setting<'p>(&self, engine: &Engine<'_>, log: &SessionHeader, pair: &'p str) -> Option<(&'p str, &'p str)> {
        let (key, value) = pair.split_once('=').map(|(key, value)| (key.trim(), value.trim()))?;
        let is_of_build = self.build.is_some()
            && !Settings::is_known(key)
            && (log.settings.iter().any(|(known, _)| known == key)
                || (engine.games.of_header(log).is_err() && !Settings::is_named_like_one(key)));
        is_of_build.then_some((key, value))
    }

    fn trace_bytes_of(&self, engine: &Engine<'_>, session: &Session) -> Result<usize, EngineError> {
        if self.build.is_some() {
            return Ok(foreign_trace_memory(session));
        }
        let options = self.replay_options(engine, &session.header)?;
        // The replay itself reports what is wrong with the log.
        let game = engine.games.of(session).ok();
        Ok(game.and_then(|game| game.trace_memory(session, &options).ok()).unwrap_or_default())
    }

    /// Replays a log. The trace of a short one stays in memory, that of a long one goes into a temporary file.
    fn replay(&self, engine: &Engine<'_>, log: &SurveyedLog) -> BuildOutcome<ShownReplay> {
        let options = self.replay_options(engine, &log.header)?;
        let game = match engine.games.of_header(&log.header) {
            Ok(game) => game,
            Err(unknown) => return Ok(Err(UntestableBuild::because_of(unknown))),
        };
        let replayed = match self.with_rejudged {
            true => log.replay_and_rejudge(game, &options, |rows| rows, &mut |_| {}),
            false => log
                .replay_into_trace(options.part, |encodes, put| {
                    log.replay_rows(game, ReplayAttempt { options: &options, encodes }, put)
                })
                .map(ShownReplay::from),
        };
        match replayed {
            Ok(replayed) => Ok(Ok(replayed)),
            Err(EngineError::Replay { source, .. }) => Ok(Err(UntestableBuild::not_replayed(&source))),
            Err(error) => Err(error),
        }
    }
}

/// The input file of one side.
pub(crate) struct ComparisonSource<'a> {
    pub(crate) path: &'a Path,
    holds: ComparisonInput,
}

/// What an input file is.
enum ComparisonInput {
    Trace(Box<TraceFile>),
    Log(Box<SurveyedLog>),
}

impl<'a> ComparisonSource<'a> {
    /// Surveys a log, or indexes a trace.
    pub(crate) fn of(engine: &Engine<'_>, path: &'a Path) -> Result<ComparisonSource<'a>, EngineError> {
        let holds = match store::kind_of(path)? {
            FileKind::Trace => ComparisonInput::Trace(Box::new(TraceFile::open(path)?)),
            // The log reader gives the best error message for a file of neither kind.
            FileKind::Log | FileKind::Other => ComparisonInput::Log(Box::new(engine.survey(path)?)),
        };
        Ok(ComparisonSource { path, holds })
    }

    /// The part of the session that a trace covers; `None` for a log or the trace of a whole session.
    pub(crate) fn part(&self) -> Option<Part> {
        let ComparisonInput::Trace(trace) = &self.holds else { return None };
        trace.header().part.map(|[from, to]| Part { from, to })
    }

    /// The header of the trace. For a log, what the header of a trace of it says about the session.
    pub(super) fn header(&self) -> TraceHeader {
        match &self.holds {
            ComparisonInput::Trace(trace) => trace.header().clone(),
            ComparisonInput::Log(log) => TraceHeader {
                game: log.header.game.clone(),
                log_digest: log.digest.map_or(String::new(), |digest| digest.to_string()),
                session: Some(SessionSource::of(&log.header)),
                ..TraceHeader::default()
            },
        }
    }

    /// The first missing part of a log, with its path.
    pub(crate) fn gap(&self) -> Option<(PathBuf, GapRecord)> {
        let gap = self.log()?.survey.first_gap()?;
        Some((self.path.to_owned(), *gap))
    }

    /// The log; `None` for a trace.
    pub(crate) fn log(&self) -> Option<&SurveyedLog> {
        match &self.holds {
            ComparisonInput::Trace(_) => None,
            ComparisonInput::Log(log) => Some(log),
        }
    }
}

/// The memory that comparing two traces takes, as a multiple of their size.
const COMPARE_MEMORY_FACTOR: usize = 2;

/// The trace of one side.
#[derive(Debug)]
pub enum SideTrace {
    /// A trace in memory.
    Memory(Box<Trace>),
    /// A trace in a file. Dropping the folder deletes the file.
    File(TraceFile, Option<TemporaryFolder>),
}

impl SideTrace {
    /// The rows of the trace.
    pub fn source(&self) -> &dyn TraceSource {
        match self {
            SideTrace::Memory(trace) => &**trace,
            SideTrace::File(trace, _) => trace,
        }
    }

    /// Loads the whole trace into memory.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn trace(&self, memory: MemoryLimit) -> Result<Cow<'_, Trace>, EngineError> {
        Ok(match self {
            SideTrace::Memory(trace) => Cow::Borrowed(trace),
            SideTrace::File(trace, _) => Cow::Owned(store::read_trace_within(memory, trace.path())?),
        })
    }
}

impl SurveyedLog {
    /// Keeps the rows of a replay of the log, or of a part, that `attempt` makes, as [`collect_replayed`] runs it: of a
    /// short log or part in memory, of a long one in a temporary file.
    ///
    /// # Errors
    /// Fails if the trace cannot be written, and as `attempt` does.
    pub(crate) fn replay_into_trace<T>(
        &self,
        part: Option<Part>,
        attempt: impl FnMut(bool, &mut dyn FnMut(&TraceHeader, Table)) -> Result<Option<T>, EngineError>,
    ) -> Result<SideTrace, EngineError> {
        if self.is_short(part) {
            return Ok(SideTrace::Memory(Box::new(collect_replayed(attempt)?)));
        }
        let folder = store::temporary_folder()?;
        let target = folder.file("replayed.hittrace");
        write_replayed(&target, TraceLayout::Raw, attempt)?;
        Ok(SideTrace::File(TraceFile::open(target.path())?, Some(folder)))
    }
}

impl ReplaySpecs {
    /// An estimate by counts of the memory of both sides' traces while they are compared, in bytes.
    pub(crate) fn compared_bytes(&self, engine: &Engine<'_>, session: &Session) -> Result<usize, EngineError> {
        let [a, b] = [&self.a, &self.b].map(|spec| spec.trace_bytes_of(engine, session));
        Ok(a?.saturating_add(b?).saturating_mul(COMPARE_MEMORY_FACTOR))
    }
}

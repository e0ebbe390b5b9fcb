//! The two sides of a comparison: how the traces of both are made, and whether a comparison of them has a meaning.

mod replay_spec;
mod session_identity;

pub(crate) use replay_spec::ComparisonSource;
pub use replay_spec::{ReplaySpec, SideTrace};
use session_identity::{header_difference, is_one_session, usercmd_difference};

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::build::{Build, UntestableBuild, with_last_output};
use crate::verify::{before_gap, server_records};
use crate::{Engine, EngineError, SideRejudgement, check};
use hitreg_analysis::bisect::{PredictionTraces, split_predictions};
use hitreg_analysis::corpus::THIS_BUILD;
use hitreg_analysis::diff::{DiffOptions, Divergence, TraceSide, TraceVerdict, diff};
use hitreg_log::record::{GapRecord, LogContents};
use hitreg_log::recorded::{judged_shots, recorded};
use hitreg_log::store;
use hitreg_log::store::shown::{shell_path, shell_word};
use hitreg_log::trace::TraceSource;
use hitreg_log::trace::schema::{TableSet, frames};
use hitreg_log::units::ClockTime;
use hitreg_netcode::replay::WhatIf;

/// The inputs of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonSpec {
    /// The trace or log of side A. A log is replayed.
    pub first: PathBuf,
    /// The trace or log of side B; `None` if both sides use the same log.
    pub second: Option<PathBuf>,
    /// How each side replays its log.
    pub replays: ReplaySpecs,
    /// Runs both clients on the server of another build; `None` if each side replays its own log.
    pub across: Option<CrossBuild>,
    /// Whether to compare two files of different sessions, which are untestable otherwise.
    pub compare_unrelated: bool,
}

/// A client that runs against the server of another build, as when a patched client meets an old server.
#[derive(Clone, Debug)]
pub struct CrossBuild {
    /// The build that runs the server; `None` for this build.
    pub server: Option<PathBuf>,
    /// The client build of side B; `None` for this build. Side A uses its own build, or the server's build if it has
    /// none.
    pub client: Option<PathBuf>,
}

/// How both sides replay one log.
#[derive(Clone, Debug, Default)]
pub struct ReplaySpecs {
    /// Side A.
    pub a: ReplaySpec,
    /// Side B.
    pub b: ReplaySpec,
}

/// The traces of both sides.
#[derive(Debug)]
pub struct Traces {
    /// A readable name for each side.
    pub names: [String; 2],
    /// The traces of sides A and B.
    pub sides: [SideTrace; 2],
    /// The shots of each side under other rules, if [`ReplaySpec::with_rejudged`] asks for them; none of a side that is a
    /// trace or uses another build.
    pub rejudged: [SideRejudgement; 2],
    /// Whether one side holds only what the log recorded, which is less than a replay produces.
    pub overlap_only: bool,
    /// The replayed logs that lack a part of their session, each with the first missing part.
    pub gaps: Vec<(PathBuf, GapRecord)>,
}

impl Traces {
    /// The traces of a recording and its replay.
    fn of_recorded(names: [String; 2], sides: [SideTrace; 2], gap: Option<(PathBuf, GapRecord)>) -> Traces {
        let gaps = gap.into_iter().collect();
        Traces { names, sides, rejudged: [Ok(Vec::new()), Ok(Vec::new())], overlap_only: true, gaps }
    }
}

impl ComparisonSpec {
    /// Makes the traces of both sides, in parallel, and keeps long traces in files instead of memory.
    ///
    /// # Errors
    /// Fails if a file, a setting or a build is not available, if a build cannot play its log
    /// ([`EngineError::Missing`]), or if the job was stopped.
    pub fn make_traces(&self, engine: &Engine<'_>) -> Result<Traces, EngineError> {
        // A build that is compared with itself runs twice: one cached trace would equal itself.
        let uncached = engine.uncached();
        let engine = if self.are_one_build() { &uncached } else { engine };
        self.make_traces_with(engine).map_err(|error| match error {
            EngineError::Missing(missing) => missing.of(self).into(),
            error => error,
        })
    }

    fn make_traces_with(&self, engine: &Engine<'_>) -> Result<Traces, EngineError> {
        if let Some(across) = &self.across {
            return self.make_cross_build_traces(across, engine);
        }
        let ReplaySpecs { a: spec_a, b: spec_b } = &self.replays;
        let a = ComparisonSource::of(engine, &self.first)?;
        let b = self.second.as_deref().map(|path| ComparisonSource::of(engine, path)).transpose()?;
        spec_a.check(engine, &a)?;
        spec_b.check(engine, b.as_ref().unwrap_or(&a))?;
        let Some(b) = b else {
            let is_played = || a.log().is_none_or(|log| engine.games.of_header(&log.header).is_ok());
            // A recording under other settings than its own does not exist.
            let has_own_rules = spec_a.is_plain() && !spec_b.has_settings() && !spec_b.open;
            return match has_own_rules && (spec_b.build.is_none() || !is_played()) {
                true => compare_with_recording(engine, &a, spec_b),
                false => self.replays.replay_both(engine, [&a, &a]),
            };
        };
        let mut replays = self.replays.clone();
        (replays.a.part, replays.b.part) = (b.part(), a.part());
        if self.compare_unrelated {
            return replays.replay_both(engine, [&a, &b]);
        }
        let headers = [&a, &b].map(ComparisonSource::header);
        if let Some(difference) = header_difference(&headers) {
            return Err(MissingSide::unrelated(difference).into());
        }
        if is_one_session(&headers) {
            return replays.replay_both(engine, [&a, &b]);
        }
        for spec in [&mut replays.a, &mut replays.b] {
            spec.tables = spec.tables.with(&frames::SCHEMA);
        }
        let traces = replays.replay_both(engine, [&a, &b])?;
        match usercmd_difference(traces.sides.each_ref().map(SideTrace::source))? {
            Some(difference) => Err(MissingSide::unrelated(difference).into()),
            None => Ok(traces),
        }
    }

    /// A client on another build's server: the server build's run is recorded, and its snapshots replayed by each client.
    fn make_cross_build_traces(&self, across: &CrossBuild, engine: &Engine<'_>) -> Result<Traces, EngineError> {
        if self.second.is_some() {
            let what = "--server-build and --client-build need one log, not two files";
            return Err(EngineError::Request(what.to_owned()));
        }
        let source = ComparisonSource::of(engine, &self.first)?;
        let Some(log) = source.log() else {
            let what = "this is a trace: give a log to --server-build and --client-build";
            return Err(EngineError::unsuitable(&self.first, what));
        };
        let server = ReplaySpec { build: across.server.clone(), open: false, ..self.replays.a.clone() };
        for build in [&server.build, &across.client].into_iter().flatten() {
            Build::at(build)?;
        }
        let folder = store::temporary_folder()?;
        let between = folder.file("server.hitlog");
        let rerecorded = server.rerecord(engine, log, &between)?;
        engine.check_outcome(&self.first, rerecorded)?.map_err(|untestable| {
            let reason = format!("as the server, {}", untestable.reason);
            let untestable = UntestableBuild { reason, ..untestable };
            MissingSide::new(TraceSide::A, &server, "--record test.hitlog", untestable)
        })?;
        let sent = ComparisonSource::of(engine, between.path())?;
        let a = ReplaySpec {
            build: self.replays.a.build.clone().or(server.build.clone()),
            open: true,
            with_rejudged: false,
            ..self.replays.a.clone()
        };
        let b = ReplaySpec { build: across.client.clone(), open: true, with_rejudged: false, ..self.replays.b.clone() };
        let name = |spec: &ReplaySpec| {
            let (client, server) = (build_name(spec.build.as_deref()), build_name(server.build.as_deref()));
            format!("the client of {client} on the server of {server}, {}", self.first.display())
        };
        let names = [name(&a), name(&b)];
        Ok(Traces { names, ..ReplaySpecs { a, b }.replay_both(engine, [&sent, &sent])? })
    }

    /// Replays both sides again, never from the cache, and compares each side with its first trace. Without builds,
    /// nothing is replayed: `verify` tests the games of this program.
    ///
    /// # Errors
    /// Fails as [`ComparisonSpec::make_traces`] does, if the traces cannot be compared with these options, and with
    /// [`EngineError::Missing`] if the traces of a side differ: it proves nothing about a difference of the sides.
    pub(crate) fn repeat(
        &self,
        engine: &Engine<'_>,
        first: [&dyn TraceSource; 2],
        options: &DiffOptions,
    ) -> Result<(), EngineError> {
        let sides = [TraceSide::A, TraceSide::B];
        if sides.iter().all(|side| self.build(*side).is_none()) {
            return Ok(());
        }
        let again = match self.make_traces(&engine.quiet().uncached()) {
            Err(EngineError::Missing(missing)) => return Err(missing.only_once().into()),
            again => again?.sides,
        };
        for (side, again) in sides.into_iter().zip(&again) {
            // A file that the user named was not replayed.
            if matches!(again, SideTrace::File(_, None)) {
                continue;
            }
            if let Some(untestable) = disagreement(first[side as usize], again.source(), options)? {
                let spec =
                    ReplaySpec { build: self.build(side).map(Path::to_owned), ..self.replays.side(side).clone() };
                return Err(MissingSide::new(side, &spec, TRACE_OUTPUT, untestable).of(self).into());
            }
        }
        Ok(())
    }

    /// The build that gives the trace of a side; `None` for this build.
    fn build(&self, side: TraceSide) -> Option<&Path> {
        let build = match (side, &self.across) {
            (TraceSide::A, across) => {
                self.replays.a.build.as_ref().or(across.as_ref().and_then(|across| across.server.as_ref()))
            }
            (TraceSide::B, Some(across)) => across.client.as_ref(),
            (TraceSide::B, None) => self.replays.b.build.as_ref(),
        };
        build.map(PathBuf::as_path)
    }

    /// Whether both sides are two replays of one log by one build under the same options.
    pub(crate) fn are_one_build(&self) -> bool {
        let ReplaySpecs { a, b } = &self.replays;
        let options = |spec: &ReplaySpec| (spec.build.clone(), spec.options());
        self.one_log().is_some() && options(a) == options(b)
    }

    /// Whether there is only one input file and nothing to compare it with.
    pub fn is_single(&self) -> bool {
        self.across.is_none() && self.second.is_none() && self.replays.are_plain()
    }

    /// Whether a build runs on one of the sides.
    pub fn run_builds(&self) -> bool {
        self.across.is_some() || self.replays.run_builds()
    }

    /// How changed settings are applied: by replay or by rejudging. `None` if no side changes a setting.
    pub fn what_if(&self) -> Option<WhatIf> {
        let sides = [&self.replays.a, &self.replays.b];
        let rejudged = sides.iter().any(|spec| spec.what_if == WhatIf::Rejudge);
        let has_settings = sides.iter().any(|spec| spec.has_settings());
        has_settings.then_some(if rejudged { WhatIf::Rejudge } else { WhatIf::Replay })
    }

    /// The log that both sides replay, and the build of each side. `None` if they do not replay one common log.
    pub(crate) fn one_log(&self) -> Option<(&Path, [Option<&Path>; 2])> {
        let replays = !(self.across.is_some() || self.second.is_some() || self.replays.are_plain());
        replays.then_some((self.first.as_path(), [self.replays.a.build.as_deref(), self.replays.b.build.as_deref()]))
    }
}

impl ReplaySpecs {
    fn side(&self, side: TraceSide) -> &ReplaySpec {
        match side {
            TraceSide::A => &self.a,
            TraceSide::B => &self.b,
        }
    }

    /// Limits the replays of this program to these tables, on both sides.
    pub fn limit_tables(&mut self, tables: TableSet) {
        (self.a.tables, self.b.tables) = (tables, tables);
    }

    /// Whether both sides use this build and the log's own settings.
    pub fn are_plain(&self) -> bool {
        self.a.is_plain() && self.b.is_plain()
    }

    /// Whether a build runs on one of the sides.
    pub fn run_builds(&self) -> bool {
        self.a.build.is_some() || self.b.build.is_some()
    }

    /// The comparison of both sides over one log.
    pub fn of_log(&self, log: &Path) -> ComparisonSpec {
        ComparisonSpec {
            first: log.to_owned(),
            second: None,
            replays: self.clone(),
            across: None,
            compare_unrelated: false,
        }
    }

    fn replay_both(&self, engine: &Engine<'_>, sources: [&ComparisonSource<'_>; 2]) -> Result<Traces, EngineError> {
        let (a, b) = rayon::join(
            || self.a.make_trace(engine, sources[0], TraceSide::A),
            || self.b.make_trace(engine, sources[1], TraceSide::B),
        );
        check(&engine.runner.stop)?;
        let [a, b] = match (a, b) {
            // An error outranks a side without a trace.
            (Err(EngineError::Missing(_)), Err(error)) if !matches!(error, EngineError::Missing(_)) => {
                return Err(error);
            }
            (a, b) => [a?, b?],
        };
        let names = [self.a.name(sources[0]), self.b.name(sources[1])];
        let mut gaps: Vec<_> = sources.iter().filter_map(|source| source.gap()).collect();
        gaps.dedup_by(|b, a| a.0 == b.0);
        let (sides, rejudged) = ([a.trace, b.trace], [a.rejudged, b.rejudged]);
        Ok(Traces { names, sides, rejudged, overlap_only: false, gaps })
    }
}

/// Compares a log with its replay on side B. A log with the server's states is compared by its records up to its first
/// missing part, where the replay of a build must differ; a client's log by the server's acks.
fn compare_with_recording(
    engine: &Engine<'_>,
    source: &ComparisonSource<'_>,
    spec: &ReplaySpec,
) -> Result<Traces, EngineError> {
    let Some(log) = source.log() else {
        let what = "a single trace has nothing to compare with: name a second trace";
        return Err(EngineError::Request(what.to_owned()));
    };
    let (path, of_replay) = (source.path, spec.name(source));
    if let Some(gap) = log.survey.first_gap().filter(|_| spec.build.is_none()) {
        return Err(MissingSide::incomplete(path, gap).into());
    }
    // The recorded rows take about as much memory as the log.
    let replay_bytes = log.survey.trace_bytes(spec.tables);
    let needed = log.session_bytes.saturating_mul(2).saturating_add(replay_bytes);
    engine.games.memory().check(needed).map_err(|source| EngineError::needs_memory(path, source))?;
    let replay = || Ok::<_, EngineError>(spec.make_trace(engine, source, TraceSide::B)?.trace);
    if log.header.holds() == LogContents::Clients {
        let traces = split_predictions(&*replay()?.trace(engine.games.memory())?);
        let of_replay = format!("{of_replay}: {}", describe_acks(&traces));
        let names = [format!("{}, the server's states", path.display()), of_replay];
        let sides = [traces.authoritative, traces.predicted].map(|trace| SideTrace::Memory(Box::new(trace)));
        return Ok(Traces::of_recorded(names, sides, source.gap()));
    }
    let session = log.session()?;
    let session = before_gap(&session);
    let recorded = if spec.build.is_some() { server_records(&session) } else { recorded(&session) };
    let mut recorded = recorded.map_err(|source| EngineError::unsuitable(path, source))?;
    recorded.tables.extend(judged_shots(&session));
    let sides = [SideTrace::Memory(Box::new(recorded)), replay()?];
    if let Some(gap) = log.survey.first_gap() {
        let options = DiffOptions { overlap_only: true, ..DiffOptions::default() };
        if diff(sides[0].source(), sides[1].source(), &options)?.verdict == TraceVerdict::Same {
            return Err(MissingSide::incomplete(path, gap).into());
        }
    }
    let names = [format!("{}, as recorded", path.display()), of_replay];
    Ok(Traces::of_recorded(names, sides, source.gap()))
}

fn describe_acks(traces: &PredictionTraces) -> String {
    let PredictionTraces { checked, misses, explained, .. } = traces;
    match misses - explained {
        _ if *misses == 0 => format!("{checked} acks, no corrections"),
        0 => format!("{checked} acks, {misses} corrections, each with a cause"),
        without => format!("{checked} acks, {misses} corrections, {without} without a cause"),
    }
}

/// The reason why a build cannot be judged, if the second replay of its log differs from the first. `None` if both
/// agree within the options. A build that disagrees with itself proves nothing about a difference.
///
/// # Errors
/// Fails if the traces cannot be compared with these options.
pub(crate) fn disagreement(
    first: &dyn TraceSource,
    again: &dyn TraceSource,
    options: &DiffOptions,
) -> Result<Option<UntestableBuild>, EngineError> {
    let found = diff(first, again, &DiffOptions { brief: true, ..options.clone() })?;
    let reason = match (found.verdict, found.untestable) {
        (TraceVerdict::Same, _) => return Ok(None),
        (TraceVerdict::Untestable, Some(reason)) => format!("its two replays cannot be compared: {reason}"),
        (TraceVerdict::Untestable | TraceVerdict::Differs, _) => {
            format!("two replays by this build differ, first in {}", first_place(found.first.as_ref()))
        }
    };
    Ok(Some(UntestableBuild::because(reason)))
}

/// Says that a build gave a trace in its first replay of a log, and not in its second.
pub(crate) fn only_once(reason: &str) -> String {
    format!("replays this log only the first time: {reason}")
}

/// The table, the tick and the column of a divergence, as text. Traces with different tables have no divergence.
pub(crate) fn first_place(first: Option<&Divergence>) -> String {
    first.map_or("their columns".to_owned(), |first| {
        let tick = first.place.tick.map_or(String::new(), |tick| format!(", tick {tick}"));
        format!("`{}`{tick}, {}", first.table, first.field.as_deref().unwrap_or("a row that one lacks"))
    })
}

/// A side without a trace, or two sides of different sessions.
#[derive(Debug, Serialize)]
pub struct MissingSide {
    verdict: &'static str,
    /// `a` or `b`; `None` if both traces exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<TraceSide>,
    /// The build of that side; `None` if the log is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<String>,
    #[serde(rename = "untestable")]
    reason: String,
    last_words: Vec<String>,
    /// The options of the build's replay, with its output.
    #[serde(skip)]
    options: Vec<String>,
    #[serde(skip)]
    command: Option<String>,
}

/// The output of the command that shows how a build replays a log.
pub(crate) const TRACE_OUTPUT: &str = "-o test.hittrace";

impl MissingSide {
    /// The side with this replay, whose `output` failed, such as [`TRACE_OUTPUT`].
    pub(crate) fn new(side: TraceSide, spec: &ReplaySpec, output: &str, untestable: UntestableBuild) -> MissingSide {
        let UntestableBuild { reason, last_words, one_sided, .. } = untestable;
        // The log is the reason, so no build is named.
        let build = Some(build_name(spec.build.as_deref())).filter(|_| one_sided.is_none());
        let options = spec.options().iter().map(|word| shell_word(word)).chain([output.to_owned()]).collect();
        MissingSide { side: Some(side), build, last_words, options, ..MissingSide::because(reason) }
    }

    /// The same side, if it had a trace in an earlier replay.
    pub(crate) fn only_once(self) -> MissingSide {
        MissingSide { reason: only_once(&self.reason), ..self }
    }

    fn unrelated(difference: String) -> MissingSide {
        let reason = format!("these files are of different sessions, so nothing can be concluded: {difference}");
        MissingSide::because(reason)
    }

    fn because(reason: String) -> MissingSide {
        MissingSide {
            verdict: "untestable",
            side: None,
            build: None,
            reason,
            last_words: Vec::new(),
            options: Vec::new(),
            command: None,
        }
    }

    /// The recorded side of a log with a missing part. No replay equals the recording after it.
    pub(crate) fn incomplete(path: &Path, gap: &GapRecord) -> MissingSide {
        let (from, to) = (ClockTime(gap.from), ClockTime(gap.to));
        let reason = format!(
            "a part of the log is missing, from {from} to {to}, so a replay cannot equal the rest: `verify {}` judges the part before it",
            shell_path(path)
        );
        MissingSide { side: Some(TraceSide::A), ..MissingSide::because(reason) }
    }

    /// Whether the two sides are of different sessions. [`ComparisonSpec::compare_unrelated`] compares them.
    pub fn is_unrelated(&self) -> bool {
        self.side.is_none()
    }

    /// The verdict and its reason in one line.
    pub fn line(&self) -> String {
        format!("untestable: {}", self.untestable_text())
    }

    /// The build, if one has no trace, and the reason.
    pub fn untestable_text(&self) -> String {
        match &self.build {
            Some(build) => format!("{build}: {}", self.reason),
            None => self.reason.clone(),
        }
    }

    /// The same side, as a side of this comparison.
    pub(crate) fn of(self, compared: &ComparisonSpec) -> MissingSide {
        let log = compared.second.as_ref().filter(|_| self.side == Some(TraceSide::B)).unwrap_or(&compared.first);
        self.of_log(log)
    }

    /// The same side, as a replay of this log.
    pub(crate) fn of_log(self, log: &Path) -> MissingSide {
        let build = self.build.as_deref().filter(|build| *build != THIS_BUILD);
        let options = self.options.join(" ");
        let command = build.map(|build| format!("{} replay {} {options}", shell_word(build), shell_path(log)));
        MissingSide { command, ..self }
    }

    /// The reason in one line, with the last line that the build wrote to stderr.
    pub fn detail(&self) -> String {
        with_last_output(&self.untestable_text(), &self.last_words)
    }

    /// The command that shows how the build plays the log of its side of a comparison; `None` if the side has no build
    /// of its own.
    pub fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// The last lines that the build wrote to stderr.
    pub fn last_words(&self) -> &[String] {
        &self.last_words
    }
}

pub(crate) fn build_name(build: Option<&Path>) -> String {
    build.map_or(THIS_BUILD.to_owned(), |path| path.display().to_string())
}

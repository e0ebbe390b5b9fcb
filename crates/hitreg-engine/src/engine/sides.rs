//! The two sides of a comparison, and how each side's trace is made.

mod build_options;
mod same_session;
mod side;
mod swept;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Serialize;

use super::{BuildOutcome, Engine, EngineError, SideRejudgement, SurveyedLog, check};
use crate::build::{Build, BuildRequest, BuildRunner, UntestableBuild};
use hitreg_analysis::diff::TraceSide;
use hitreg_log::record::{GapRecord, LogContents, SessionHeader};
use hitreg_log::store::{self, Target, TraceFile};
use hitreg_log::trace::schema::{TableSet, frames, packets, snapshots};
use hitreg_log::units::ClockTime;
use hitreg_netcode::replay::{Mode, Part, ReplayError, ReplayOptions, WhatIf, own_settings};
use hitreg_netcode::settings::Settings;
use side::ComparisonInput;
pub(super) use side::ComparisonSource;
pub use side::SideTrace;

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
    /// Preset and settings only rejudge the recorded shots, as in [`WhatIf::Rejudge`].
    pub rejudge: bool,
    /// The tables that a replay by this program produces. Other builds always write all their tables.
    pub tables: TableSet,
    /// The part of the log for which this program writes rows: the part that the other side's trace covers.
    pub part: Option<Part>,
}

/// The traces of both sides, or the side that has none.
#[derive(Debug)]
pub struct Traces {
    /// A readable name for each side.
    pub names: [String; 2],
    /// The traces of sides A and B.
    pub made: Result<[SideTrace; 2], MissingSide>,
    /// Whether one side holds only what the log recorded, which is less than a replay produces.
    pub overlap_only: bool,
    /// The replayed logs that lack a part of their session, each with the first missing part.
    pub gaps: Vec<(PathBuf, GapRecord)>,
}

impl Traces {
    /// The result without a trace of one side.
    fn without(names: [String; 2], missing: MissingSide) -> Traces {
        Traces { names, made: Err(missing), overlap_only: false, gaps: Vec::new() }
    }
}

/// A side without a trace, or two sides of different sessions.
#[derive(Debug, Serialize)]
pub struct MissingSide {
    verdict: &'static str,
    /// `a` or `b`; `None` if both traces exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<TraceSide>,
    /// The build of that side.
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<String>,
    #[serde(rename = "untestable")]
    reason: String,
    last_words: Vec<String>,
}

impl ComparisonSpec {
    /// Makes the traces of both sides, in parallel, and keeps long traces in files instead of memory.
    ///
    /// # Errors
    /// Fails if a file, a setting or a build is not available, or if the job was stopped. A log that a build cannot
    /// play is not an error; the result is then [`MissingSide`].
    pub fn traces_in_files(&self, engine: &Engine<'_>, runner: &BuildRunner) -> Result<Traces, EngineError> {
        self.made(engine, runner, None)
    }

    /// Makes the traces of both sides in files, and judges the shots of each side under other rules. The latter are empty
    /// for a side that is a trace or uses another build.
    ///
    /// # Errors
    /// Fails as [`ComparisonSpec::traces_in_files`] does.
    pub fn traces_for_page(
        &self,
        engine: &Engine<'_>,
        runner: &BuildRunner,
    ) -> Result<(Traces, [SideRejudgement; 2]), EngineError> {
        let rejudged = [const { OnceLock::new() }; 2];
        let traces = self.made(engine, runner, self.across.is_none().then_some(&rejudged))?;
        Ok((traces, rejudged.map(|of_side| of_side.into_inner().unwrap_or(Ok(Vec::new())))))
    }

    /// Makes the traces of both sides. `rejudged` gets the shots of each side under other rules.
    fn made(
        &self,
        engine: &Engine<'_>,
        runner: &BuildRunner,
        rejudged: Option<&[OnceLock<SideRejudgement>; 2]>,
    ) -> Result<Traces, EngineError> {
        if let Some(across) = &self.across {
            return self.across(across, engine, runner);
        }
        let ReplaySpecs { a: spec_a, b: spec_b } = &self.replays;
        let a = ComparisonSource::of(engine, &self.first)?;
        if self.is_single() {
            spec_a.check(engine, &a)?;
            return side::against_itself(engine, runner, &a);
        }
        let b = self.second.as_deref().map(|path| ComparisonSource::of(engine, path)).transpose()?;
        spec_a.check(engine, &a)?;
        spec_b.check(engine, b.as_ref().unwrap_or(&a))?;
        let mut replays = self.replays.clone();
        if let Some(b) = &b {
            replays.a.part = b.part();
            replays.b.part = a.part();
        }
        let Some(b) = b else { return replays.both(engine, runner, [&a, &a], rejudged) };
        if self.compare_unrelated {
            return replays.both(engine, runner, [&a, &b], rejudged);
        }
        let names = || [replays.a.name(&a), replays.b.name(&b)];
        let sources = [&a, &b].map(ComparisonSource::recorded);
        if let Some(difference) = same_session::by_source(&sources) {
            return Ok(Traces::without(names(), MissingSide::unrelated(difference)));
        }
        if same_session::is_one_session(&sources) {
            return replays.both(engine, runner, [&a, &b], rejudged);
        }
        for spec in [&mut replays.a, &mut replays.b] {
            spec.tables = spec.tables.with(&frames::SCHEMA);
        }
        let traces = replays.both(engine, runner, [&a, &b], rejudged)?;
        if let Ok([a, b]) = &traces.made
            && let Some(difference) = same_session::by_usercmds([a.source(), b.source()])?
        {
            return Ok(Traces { made: Err(MissingSide::unrelated(difference)), ..traces });
        }
        Ok(traces)
    }

    /// A client on another build's server: the server build's run is recorded, and its snapshots replayed by each client.
    fn across(&self, across: &CrossBuild, engine: &Engine<'_>, runner: &BuildRunner) -> Result<Traces, EngineError> {
        if self.second.is_some() {
            return Err(EngineError::TwoFiles);
        }
        let source = ComparisonSource::of(engine, &self.first)?;
        let Some(log) = source.log() else {
            return Err(EngineError::NoServer { path: self.first.clone() });
        };
        let server = ReplaySpec { build: across.server.clone(), open: false, ..self.replays.a.clone() };
        for build in [&server.build, &across.client].into_iter().flatten() {
            Build::at(build)?;
        }
        let folder = store::temporary_folder()?;
        let between = folder.file("server.hitlog");
        let rerecorded = server.rerecord(engine, runner, log, &between)?;
        check(&runner.stop)?;
        if let Err(untestable) = EngineError::check_memory(&self.first, rerecorded)? {
            let reason = format!("as the server, {}", untestable.reason);
            let missing = MissingSide::new(
                TraceSide::A,
                build_name(server.build.as_deref()),
                UntestableBuild { reason, ..untestable },
            );
            let names = [across.server.as_deref(), across.client.as_deref()].map(build_name);
            return Ok(Traces::without(names, missing));
        }
        let sent = ComparisonSource::of(engine, between.path())?;
        let a = ReplaySpec {
            build: self.replays.a.build.clone().or(server.build.clone()),
            open: true,
            ..self.replays.a.clone()
        };
        let b = ReplaySpec { build: across.client.clone(), open: true, ..self.replays.b.clone() };
        let name = |spec: &ReplaySpec| {
            let (client, server) = (build_name(spec.build.as_deref()), build_name(server.build.as_deref()));
            format!("the client of {client} on the server of {server}, {}", self.first.display())
        };
        let names = [name(&a), name(&b)];
        Ok(Traces { names, ..ReplaySpecs { a, b }.both(engine, runner, [&sent, &sent], None)? })
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
        let rejudged = sides.iter().any(|spec| spec.rejudge);
        let has_settings = sides.iter().any(|spec| spec.preset.is_some() || !spec.set.is_empty());
        has_settings.then_some(if rejudged { WhatIf::Rejudge } else { WhatIf::Replay })
    }

    /// The log that both sides replay, and the build of each side. `None` if they do not replay one common log.
    pub(crate) fn one_log(&self) -> Option<(&Path, [Option<&Path>; 2])> {
        let replays = !(self.across.is_some() || self.second.is_some() || self.replays.are_plain());
        replays.then_some((self.first.as_path(), [self.replays.a.build.as_deref(), self.replays.b.build.as_deref()]))
    }
}

impl ReplaySpecs {
    /// Limits the replays of this program to these tables, on both sides.
    pub fn ask_for(&mut self, tables: TableSet) {
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

    fn both(
        &self,
        engine: &Engine<'_>,
        runner: &BuildRunner,
        of: [&ComparisonSource<'_>; 2],
        rejudged: Option<&[OnceLock<SideRejudgement>; 2]>,
    ) -> Result<Traces, EngineError> {
        let [judged_a, judged_b] = [0, 1].map(|side| rejudged.map(|of_side| &of_side[side]));
        let (a, b) = rayon::join(
            || self.a.trace(engine, runner, of[0], (TraceSide::A, judged_a)),
            || self.b.trace(engine, runner, of[1], (TraceSide::B, judged_b)),
        );
        check(&runner.stop)?;
        let (a, b) = (a?, b?);
        let names = [self.a.name(of[0]), self.b.name(of[1])];
        let mut gaps: Vec<_> = of.iter().filter_map(|source| source.gap()).collect();
        gaps.dedup_by(|b, a| a.0 == b.0);
        Ok(Traces { names, made: a.and_then(|a| Ok([a, b?])), overlap_only: false, gaps })
    }
}

impl ReplaySpec {
    fn is_plain(&self) -> bool {
        self.build.is_none() && self.preset.is_none() && self.set.is_empty() && !self.open
    }

    /// Rejects impossible requests before anything runs.
    fn check(&self, engine: &Engine<'_>, source: &ComparisonSource<'_>) -> Result<(), EngineError> {
        match source.log() {
            None if !self.is_plain() => Err(EngineError::Replayed { path: source.path.to_owned() }),
            None => Ok(()),
            Some(SurveyedLog { header, .. }) => {
                self.settings(engine, header)?;
                match &self.build {
                    // The build opens the log itself.
                    Some(_) if store::is_standard_stream(source.path) => {
                        return Err(store::StoreError::NotRegular { path: source.path.to_owned() }.into());
                    }
                    Some(build) => {
                        store::check_regular(source.path)?;
                        Build::at(build)?;
                    }
                    None => self.check_judge(engine, source.path, header)?,
                }
                Ok(())
            }
        }
    }

    /// Refuses to judge shots again without a server, in a game that cannot do that.
    fn check_judge(&self, engine: &Engine<'_>, path: &Path, log: &SessionHeader) -> Result<(), EngineError> {
        let is_asked = self.rejudge && !(self.preset.is_none() && self.set.is_empty());
        let is_open = self.open || log.holds() == LogContents::Clients;
        let judges = engine.games.of_header(log).map_or(true, |game| game.judges_again());
        match is_asked && is_open && !judges {
            true => Err(EngineError::unsuitable(path, ReplayError::NoJudge)),
            false => Ok(()),
        }
    }

    fn name(&self, source: &ComparisonSource<'_>) -> String {
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
    /// Fails as [`ComparisonSpec::traces_in_files`] does.
    pub fn trace_of(
        &self,
        engine: &Engine<'_>,
        runner: &BuildRunner,
        path: &Path,
    ) -> Result<Result<SideTrace, MissingSide>, EngineError> {
        let source = ComparisonSource::of(engine, path)?;
        self.check(engine, &source)?;
        let made = self.trace(engine, runner, &source, (TraceSide::A, None));
        check(&runner.stop)?;
        made
    }

    pub(super) fn trace(
        &self,
        engine: &Engine<'_>,
        runner: &BuildRunner,
        source: &ComparisonSource<'_>,
        (side, rejudged): (TraceSide, Option<&OnceLock<SideRejudgement>>),
    ) -> Result<Result<SideTrace, MissingSide>, EngineError> {
        let log = match &source.holds {
            ComparisonInput::Trace(trace) => return Ok(Ok(SideTrace::File(TraceFile::clone(trace), None))),
            ComparisonInput::Log(log) => log,
        };
        let made = match &self.build {
            None => self.replayed(engine, log, rejudged)?,
            Some(build) => {
                let options = self.options();
                let request = BuildRequest { options: &options, ..log.request()? };
                match runner.trace_file(&Build::at(build)?, &request) {
                    Ok((trace, folder)) => {
                        self.check_applied_options(engine, &log.header, SideTrace::File(trace, folder))?
                    }
                    Err(untestable) => Err(untestable),
                }
            }
        };
        let made = EngineError::check_memory(source.path, made)?;
        Ok(made.map_err(|untestable| MissingSide::new(side, build_name(self.build.as_deref()), untestable)))
    }

    fn rerecord(&self, engine: &Engine<'_>, runner: &BuildRunner, log: &SurveyedLog, to: &Target) -> BuildOutcome<()> {
        let Some(build) = &self.build else {
            return log.rerecord(engine, self.settings(engine, &log.header)?.as_ref(), to);
        };
        let options = self.options();
        let request = BuildRequest { options: &options, ..log.request()? };
        Ok(runner.rerecord(&Build::at(build)?, &request, to.path()))
    }

    /// The options of this program's replay of a log on this side.
    pub(super) fn replay_options(
        &self,
        engine: &Engine<'_>,
        log: &SessionHeader,
    ) -> Result<ReplayOptions, EngineError> {
        let mode = if self.open { Mode::Open } else { Mode::Auto };
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
        .under(settings, self.rejudge))
    }

    /// The settings of this side, without settings that only its build knows. `None` if the log's own settings apply.
    fn settings(&self, engine: &Engine<'_>, log: &SessionHeader) -> Result<Option<Settings>, EngineError> {
        if self.preset.is_none() && self.set.is_empty() {
            return Ok(None);
        }
        let recorded = own_settings(log)?;
        let mut settings = match &self.preset {
            Some(name) => recorded.under_preset(name)?,
            None => recorded,
        };
        for pair in &self.set {
            match pair.split_once('=') {
                Some((key, _)) if self.is_builds_own(engine, log, key.trim()) => {}
                _ => settings.set_pair(pair)?,
            }
        }
        Ok(Some(settings))
    }
}

impl MissingSide {
    fn new(side: TraceSide, build: String, untestable: UntestableBuild) -> MissingSide {
        let UntestableBuild { reason, last_words, .. } = untestable;
        MissingSide { verdict: "untestable", side: Some(side), build: Some(build), reason, last_words }
    }

    fn unrelated(difference: String) -> MissingSide {
        let reason = format!("these files are of different sessions, so nothing can be concluded: {difference}");
        MissingSide { verdict: "untestable", side: None, build: None, reason, last_words: Vec::new() }
    }

    /// The recorded side of a log with a missing part. No replay equals the recording after it.
    fn incomplete(path: &Path, hole: &GapRecord) -> MissingSide {
        let (from, to) = (ClockTime(hole.from), ClockTime(hole.to));
        let reason = format!(
            "a part of the log is missing, from {from} to {to}, so a replay cannot equal the rest: `hitreg verify {}` judges the part before it",
            path.display()
        );
        MissingSide { verdict: "untestable", side: Some(TraceSide::A), build: None, reason, last_words: Vec::new() }
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

    /// The command that shows how the build plays the log of its side; `None` if the side has no build of its own.
    pub fn command(&self, compared: &ComparisonSpec) -> Option<String> {
        let build = self.build.as_deref().filter(|build| *build != THIS_BUILD)?;
        let log = compared.second.as_ref().filter(|_| self.side == Some(TraceSide::B)).unwrap_or(&compared.first);
        Some(format!("{build} replay {} -o test.hittrace", log.display()))
    }

    /// The last lines that the build wrote to stderr.
    pub fn last_words(&self) -> &[String] {
        &self.last_words
    }
}

/// The name of a side that this program plays.
const THIS_BUILD: &str = "this build";

fn build_name(build: Option<&Path>) -> String {
    build.map_or(THIS_BUILD.to_owned(), |path| path.display().to_string())
}

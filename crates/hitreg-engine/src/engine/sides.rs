//! The two sides of a comparison, and how each side's trace is made.

mod build_options;
mod missing;
mod replay_spec;
mod same_session;
mod side;
mod swept;

use std::path::{Path, PathBuf};

use super::repeated::disagreement;
use super::{Engine, EngineError, SideRejudgement, check};
use crate::build::{Build, UntestableBuild};
use hitreg_analysis::diff::{DiffOptions, TraceSide};
use hitreg_log::record::GapRecord;
use hitreg_log::store;
use hitreg_log::trace::TraceSource;
use hitreg_log::trace::schema::{TableSet, frames};
use hitreg_netcode::replay::WhatIf;
pub use missing::MissingSide;
use missing::build_name;
pub use replay_spec::ReplaySpec;
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

/// The traces of both sides.
#[derive(Debug)]
pub struct Traces {
    /// A readable name for each side.
    pub names: [String; 2],
    /// The traces of sides A and B.
    pub made: [SideTrace; 2],
    /// The shots of each side under other rules, for a page; none of a side that is a trace or uses another build.
    pub rejudged: [SideRejudgement; 2],
    /// Whether one side holds only what the log recorded, which is less than a replay produces.
    pub overlap_only: bool,
    /// The replayed logs that lack a part of their session, each with the first missing part.
    pub gaps: Vec<(PathBuf, GapRecord)>,
}

impl Traces {
    /// The traces of a recording and its replay.
    fn of_recorded(names: [String; 2], made: [SideTrace; 2]) -> Traces {
        Traces { names, made, rejudged: [Ok(Vec::new()), Ok(Vec::new())], overlap_only: true, gaps: Vec::new() }
    }
}

impl ComparisonSpec {
    /// Makes the traces of both sides, in parallel, and keeps long traces in files instead of memory.
    ///
    /// # Errors
    /// Fails if a file, a setting or a build is not available, if a build cannot play its log
    /// ([`EngineError::Missing`]), or if the job was stopped.
    pub fn traces_in_files(&self, engine: &Engine<'_>) -> Result<Traces, EngineError> {
        self.made(engine, false)
    }

    /// Makes the traces of both sides in files, and judges the shots of each side under other rules.
    ///
    /// # Errors
    /// Fails as [`ComparisonSpec::traces_in_files`] does.
    pub fn traces_for_page(&self, engine: &Engine<'_>) -> Result<Traces, EngineError> {
        self.made(engine, true)
    }

    fn made(&self, engine: &Engine<'_>, for_page: bool) -> Result<Traces, EngineError> {
        // A build that is compared with itself runs twice: one cached trace would equal itself.
        let uncached = engine.uncached();
        let engine = if self.are_one_build() { &uncached } else { engine };
        self.traces(engine, for_page).map_err(|error| match error {
            EngineError::Missing(missing) => missing.of(self).into(),
            error => error,
        })
    }

    fn traces(&self, engine: &Engine<'_>, for_page: bool) -> Result<Traces, EngineError> {
        if let Some(across) = &self.across {
            return self.across(across, engine);
        }
        let ReplaySpecs { a: spec_a, b: spec_b } = &self.replays;
        let a = ComparisonSource::of(engine, &self.first)?;
        if self.is_single() {
            spec_a.check(engine, &a)?;
            return side::against_itself(engine, &a);
        }
        let b = self.second.as_deref().map(|path| ComparisonSource::of(engine, path)).transpose()?;
        spec_a.check(engine, &a)?;
        spec_b.check(engine, b.as_ref().unwrap_or(&a))?;
        let mut replays = self.replays.clone();
        if let Some(b) = &b {
            replays.a.part = b.part();
            replays.b.part = a.part();
        }
        let Some(b) = b else { return replays.both(engine, [&a, &a], for_page) };
        if self.compare_unrelated {
            return replays.both(engine, [&a, &b], for_page);
        }
        let sources = [&a, &b].map(ComparisonSource::recorded);
        if let Some(difference) = same_session::by_source(&sources) {
            return Err(MissingSide::unrelated(difference).into());
        }
        if same_session::is_one_session(&sources) {
            return replays.both(engine, [&a, &b], for_page);
        }
        for spec in [&mut replays.a, &mut replays.b] {
            spec.tables = spec.tables.with(&frames::SCHEMA);
        }
        let traces = replays.both(engine, [&a, &b], for_page)?;
        match same_session::by_usercmds(traces.made.each_ref().map(SideTrace::source))? {
            Some(difference) => Err(MissingSide::unrelated(difference).into()),
            None => Ok(traces),
        }
    }

    /// A client on another build's server: the server build's run is recorded, and its snapshots replayed by each client.
    fn across(&self, across: &CrossBuild, engine: &Engine<'_>) -> Result<Traces, EngineError> {
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
        check(&engine.runner.stop)?;
        EngineError::check_machine(&self.first, rerecorded)?.map_err(|untestable| {
            let reason = format!("as the server, {}", untestable.reason);
            let untestable = UntestableBuild { reason, ..untestable };
            MissingSide::new(TraceSide::A, build_name(server.build.as_deref()), untestable)
        })?;
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
        Ok(Traces { names, ..ReplaySpecs { a, b }.both(engine, [&sent, &sent], false)? })
    }

    /// Replays both sides again, never from the cache, and compares each side with its first trace. Without builds,
    /// nothing is replayed: `verify` tests the games of this program.
    ///
    /// # Errors
    /// Fails as [`ComparisonSpec::traces_in_files`] does, if the traces cannot be compared with these options, and with
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
        let again = match self.traces_in_files(&engine.quiet().uncached()) {
            Err(EngineError::Missing(missing)) => return Err(missing.only_once().into()),
            again => again?.made,
        };
        for (side, again) in sides.into_iter().zip(&again) {
            // A file that the user named was not replayed.
            if matches!(again, SideTrace::File(_, None)) {
                continue;
            }
            if let Some(untestable) = disagreement(first[side as usize], again.source(), options)? {
                return Err(MissingSide::new(side, build_name(self.build(side)), untestable).of(self).into());
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

    fn both(&self, engine: &Engine<'_>, of: [&ComparisonSource<'_>; 2], for_page: bool) -> Result<Traces, EngineError> {
        let (a, b) = rayon::join(
            || self.a.trace(engine, of[0], (TraceSide::A, for_page)),
            || self.b.trace(engine, of[1], (TraceSide::B, for_page)),
        );
        check(&engine.runner.stop)?;
        let [a, b] = match (a, b) {
            // An error outranks a side without a trace.
            (Err(EngineError::Missing(_)), Err(error)) if !matches!(error, EngineError::Missing(_)) => {
                return Err(error);
            }
            (a, b) => [a?, b?],
        };
        let names = [self.a.name(of[0]), self.b.name(of[1])];
        let mut gaps: Vec<_> = of.iter().filter_map(|source| source.gap()).collect();
        gaps.dedup_by(|b, a| a.0 == b.0);
        let (made, rejudged) = ([a.trace, b.trace], [a.rejudged, b.rejudged]);
        Ok(Traces { names, made, rejudged, overlap_only: false, gaps })
    }
}

//! How one side replays its log, and the trace of that replay.

use std::path::{Path, PathBuf};

use super::missing::build_name;
use super::side::ComparisonInput;
use super::{ComparisonSource, MissingSide, SideTrace};
use crate::build::{Build, BuildRequest};
use crate::engine::{BuildOutcome, Engine, EngineError, ShownReplay, SurveyedLog, check};
use hitreg_analysis::diff::TraceSide;
use hitreg_log::record::{LogContents, SessionHeader};
use hitreg_log::store::{self, Target, TraceFile};
use hitreg_log::trace::schema::{TableSet, packets, snapshots};
use hitreg_netcode::replay::{Mode, Part, ReplayError, ReplayOptions, own_settings};
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
    /// Preset and settings only rejudge the recorded shots, as in [`WhatIf::Rejudge`](hitreg_netcode::replay::WhatIf::Rejudge).
    pub rejudge: bool,
    /// The tables that a replay by this program produces. Other builds always write all their tables.
    pub tables: TableSet,
    /// The part of the log for which this program writes rows: the part that the other side's trace covers.
    pub part: Option<Part>,
}

impl ReplaySpec {
    pub(super) fn is_plain(&self) -> bool {
        self.build.is_none() && self.preset.is_none() && self.set.is_empty() && !self.open
    }

    /// Rejects impossible requests before anything runs.
    pub(super) fn check(&self, engine: &Engine<'_>, source: &ComparisonSource<'_>) -> Result<(), EngineError> {
        match source.log() {
            None if !self.is_plain() => Err(EngineError::replayed(source.path)),
            None => Ok(()),
            Some(SurveyedLog { header, .. }) => {
                self.settings(engine, header)?;
                match &self.build {
                    // The build opens the log itself.
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

    pub(super) fn name(&self, source: &ComparisonSource<'_>) -> String {
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
    /// Fails as [`ComparisonSpec::traces_in_files`](super::ComparisonSpec::traces_in_files) does.
    pub fn trace_of(&self, engine: &Engine<'_>, path: &Path) -> Result<SideTrace, EngineError> {
        let source = ComparisonSource::of(engine, path)?;
        self.check(engine, &source)?;
        let made = self.trace(engine, &source, (TraceSide::A, false));
        check(&engine.runner.stop)?;
        Ok(made?.trace)
    }

    /// Makes the trace of a side. `for_page` also judges the shots under other rules, if this program replays the log.
    pub(in crate::engine) fn trace(
        &self,
        engine: &Engine<'_>,
        source: &ComparisonSource<'_>,
        (side, for_page): (TraceSide, bool),
    ) -> Result<ShownReplay, EngineError> {
        let log = match &source.holds {
            ComparisonInput::Trace(trace) => return Ok(SideTrace::File(TraceFile::clone(trace), None).into()),
            ComparisonInput::Log(log) => log,
        };
        let made = match &self.build {
            None => self.replayed(engine, log, for_page)?,
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
        Ok(made.map_err(|untestable| MissingSide::new(side, build_name(self.build.as_deref()), untestable))?)
    }

    pub(super) fn rerecord(&self, engine: &Engine<'_>, log: &SurveyedLog, to: &Target) -> BuildOutcome<()> {
        let Some(build) = &self.build else {
            return log.rerecord(engine, self.settings(engine, &log.header)?.as_ref(), to);
        };
        let options = self.options();
        let request = BuildRequest { options: &options, ..log.request()? };
        Ok(engine.runner.rerecord(&Build::at(build)?, &request, to.path()))
    }

    /// The options of this program's replay of a log on this side.
    pub(in crate::engine) fn replay_options(
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
    pub(super) fn settings(&self, engine: &Engine<'_>, log: &SessionHeader) -> Result<Option<Settings>, EngineError> {
        if self.preset.is_none() && self.set.is_empty() {
            return Ok(None);
        }
        let is_builds_own =
            |pair: &str| pair.split_once('=').is_some_and(|(key, _)| self.is_builds_own(engine, log, key.trim()));
        let known = self.set.iter().filter(|pair| !is_builds_own(pair));
        Ok(Some(own_settings(log)?.with_changes(self.preset.as_deref(), known)?))
    }
}

//! Finds the first tick, entity and field where two runs differ, and the cause.

use std::cell::OnceCell;
use std::path::Path;

use serde::Serialize;

use super::step::{answer, arguments, cells, named};
use crate::build::{Build, BuildRequest, BuildRunner};
use crate::engine::{Bodies, ComparisonSpec, Engine, EngineError, LogFile, MissingSide, Traces, check};
use hitreg_analysis::bisect::{self, RerunFn, RerunStep, TickBisection};
use hitreg_analysis::diff::{DiffOptions, NamedValue, TraceSide};
use hitreg_log::trace::STEP;
use hitreg_log::units::{CommandSeq, EntityId, PlayerId};

/// The result of a tick bisection, with the names of both sides.
#[derive(Debug, Serialize)]
pub struct TickBisectionResult {
    /// A readable name for side A.
    pub a: String,
    /// A readable name for side B.
    pub b: String,
    /// The divergence and its cause.
    #[serde(flatten)]
    pub found: TickBisection,
}

/// Bisects the ticks of both sides' traces. Returns [`MissingSide`] if a side has no trace.
///
/// If both sides replay one log, both builds run the usercmds of the first differing tick again. They start from the
/// last common state.
///
/// # Errors
/// Fails as [`ComparisonSpec::traces`] does, and if the traces cannot be compared with these options.
pub fn bisect_ticks(
    engine: &Engine<'_>,
    sides: &ComparisonSpec,
    runner: &BuildRunner,
    options: &DiffOptions,
) -> Result<Result<TickBisectionResult, MissingSide>, EngineError> {
    let Traces { names: [name_a, name_b], made, overlap_only } = sides.traces_in_files(engine, runner)?;
    let [a, b] = match made {
        Ok(traces) => traces,
        Err(missing) => return Ok(Err(missing)),
    };
    let options = DiffOptions { overlap_only: overlap_only || options.overlap_only, ..options.clone() };
    let traces = [a.source(), b.source()];
    let again = sides.one_log().map(|(path, builds)| {
        let can_step = traces.map(|trace| trace.header().can(STEP));
        BuildRerun { engine, runner, path, log: OnceCell::new(), builds, can_step }
    });
    let mut rerun = again.as_ref().map(|again| |side: TraceSide, step: &RerunStep<'_>| again.step(side, step));
    let rerun = rerun.as_mut().map(|rerun| rerun as &mut RerunFn<'_>);
    let found = bisect::bisect_ticks(traces[0], traces[1], &options, rerun)?;
    check(&runner.stop)?;
    Ok(Ok(TickBisectionResult { a: name_a, b: name_b, found }))
}

/// Runs single usercmds of a log again in the builds of both sides.
struct BuildRerun<'a> {
    engine: &'a Engine<'a>,
    runner: &'a BuildRunner,
    path: &'a Path,
    /// The log, once a step needs it.
    log: OnceCell<LogFile>,
    builds: [Option<&'a Path>; 2],
    /// Whether the build of each side declares the command `step`.
    can_step: [bool; 2],
}

impl BuildRerun<'_> {
    fn step(&self, side: TraceSide, step: &RerunStep<'_>) -> Result<Vec<NamedValue>, String> {
        let side = match side {
            TraceSide::A => 0,
            TraceSide::B => 1,
        };
        if self.builds[side].is_some() && !self.can_step[side] {
            return Err("it does not declare the command `step`".to_owned());
        }
        let log = match self.log.get() {
            Some(log) => log,
            None => {
                let read = Engine::new(self.engine.games).read_log(self.path).map_err(|error| error.to_string())?;
                self.log.get_or_init(|| read)
            }
        };
        let fields = &log.session.header.body_fields();
        let entity = |entity: &u32| u16::try_from(*entity).map(EntityId).map_err(|error| error.to_string());
        let all = step.others.iter().map(|(id, body)| Ok((entity(id)?, cells(fields, body)?)));
        let entities = all.collect::<Result<Bodies, String>>()?;
        let (player, command) = (step.command.player, step.command.command);
        let after = match self.builds[side] {
            None => {
                let player = PlayerId(u16::try_from(player).map_err(|error| error.to_string())?);
                let game = self.engine.games.of(&log.session).map_err(|error| error.to_string())?;
                game.step(&log.session, player, CommandSeq(command), &entities).map_err(|error| error.to_string())?
            }
            Some(path) => {
                let options = arguments(player, command, &entities);
                let request = BuildRequest { log: self.path, log_digest: log.digest, options: &options };
                let build = Build::at(path).map_err(|error| error.to_string())?;
                let bytes = self.runner.answer(&build, "step", &request).map_err(|untestable| untestable.reason)?;
                answer(&bytes)?
            }
        };
        named(fields, &after, &log.session.texts)
    }
}

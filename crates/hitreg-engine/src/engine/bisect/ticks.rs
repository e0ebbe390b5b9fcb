//! Finds the first tick, entity and field where two runs differ, and the cause.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::step::{OwnedCells, answer, arguments, cells, named};
use crate::build::{Build, BuildRequest, OneSidedLog};
use crate::engine::effects::behind;
use crate::engine::{Bodies, ComparisonSpec, Engine, EngineError, LogFile, Traces, check};
use hitreg_analysis::bisect::{self, CauseFinding, DivergenceCause, RerunFn, RerunStep, TickBisection};
use hitreg_analysis::diff::{DiffOptions, NamedValue, TraceSide};
use hitreg_log::record::{FieldSchema, GapRecord, SessionHeader};
use hitreg_log::sorted::SortedSet;
use hitreg_log::trace::STEP;
use hitreg_log::units::{CommandSeq, EntityId, PlayerId};

/// The result of a tick bisection, with the names of both sides.
#[derive(Debug, Serialize)]
pub struct TickBisectionResult {
    /// A readable name for side A.
    pub a: String,
    /// A readable name for side B.
    pub b: String,
    /// The names of the players that the divergence is about, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub players: Option<String>,
    /// The replayed logs that lack a part of their session, each with the first missing part.
    #[serde(skip)]
    pub gaps: Vec<(PathBuf, GapRecord)>,
    /// The divergence and its cause.
    #[serde(flatten)]
    pub found: TickBisection,
}

/// Bisects the ticks of both sides' traces.
///
/// Traces that differ decide nothing if a side's second replay differs from its first: that side has no result then.
///
/// If both sides replay one log, both builds run the usercmds of the first differing tick again. They start from the
/// last common state.
///
/// # Errors
/// Fails as [`ComparisonSpec::traces_in_files`] does, and if the traces cannot be compared with these options.
pub fn bisect_ticks(
    engine: &Engine<'_>,
    sides: &ComparisonSpec,
    options: &DiffOptions,
) -> Result<TickBisectionResult, EngineError> {
    let Traces { names: [name_a, name_b], made: [a, b], overlap_only, gaps, .. } = sides.traces_in_files(engine)?;
    let options = DiffOptions { overlap_only: overlap_only || options.overlap_only, ..options.clone() };
    let traces = [a.source(), b.source()];
    let again = sides.one_log().map(|(path, builds)| {
        let can_step = traces.map(|trace| trace.header().can(STEP));
        BuildRerun { engine, path, log: OnceCell::new(), builds, can_step }
    });
    let mut rerun = again.as_ref().map(|again| |side: TraceSide, step: &RerunStep<'_>| again.step(side, step));
    let rerun = rerun.as_mut().map(|rerun| rerun as &mut RerunFn<'_>);
    let mut found = bisect::bisect_ticks(traces[0], traces[1], &options, rerun)?;
    check(&engine.runner.stop)?;
    if found.first.is_some() {
        sides.repeat(engine, traces, &options)?;
    }
    let is_setting = |cause: &&mut CauseFinding| cause.cause == DivergenceCause::Settings;
    if let (Some(first), Some(cause)) = (&found.first, found.cause.as_mut().filter(is_setting)) {
        cause.name(&behind(engine, sides, traces, &options, first)?);
    }
    let named = traces.iter().find_map(|trace| trace.header().session.as_ref().filter(|of| !of.players.is_empty()));
    let players = found.first.as_ref().zip(named).and_then(|(first, session)| {
        let usercmds = first.usercmds_a.iter().chain(&first.usercmds_b).map(|usercmd| usercmd.player);
        let all: SortedSet<u32> = first.place.entity.into_iter().chain(first.place.player).chain(usercmds).collect();
        session.names_of(all)
    });
    Ok(TickBisectionResult { a: name_a, b: name_b, players, gaps, found })
}

/// Runs single usercmds of a log again in the builds of both sides.
struct BuildRerun<'a> {
    engine: &'a Engine<'a>,
    path: &'a Path,
    /// The log, once a step needs it.
    log: OnceCell<LogFile>,
    builds: [Option<&'a Path>; 2],
    /// Whether the build of each side declares the command `step`.
    can_step: [bool; 2],
}

impl BuildRerun<'_> {
    fn step(&self, side: TraceSide, step: &RerunStep<'_>) -> Result<Vec<NamedValue>, String> {
        let side = side as usize;
        if self.builds[side].is_some() && !self.can_step[side] {
            return Err("it does not declare the command `step`".to_owned());
        }
        let log = self.log()?;
        let header = &log.session.header;
        let fields = fields_of(header, None, step.body)?;
        let all = step.others.iter().map(|(owner, body)| {
            let fields = fields_of(header, owner.class.as_deref(), body)?;
            Ok((owner.clone(), cells(&fields, body)?))
        });
        let entities = all.collect::<Result<OwnedCells, String>>()?;
        let (player, command) = (step.command.player, step.command.command);
        let after = match self.builds[side] {
            None => {
                let player = PlayerId(u16::try_from(player).map_err(|error| error.to_string())?);
                let game = self.engine.games.of(&log.session).map_err(|error| error.to_string())?;
                let entity = |entity: u32| u16::try_from(entity).map(EntityId).map_err(|error| error.to_string());
                let bodies = entities.into_iter().map(|(owner, cells)| Ok((entity(owner.entity)?, cells)));
                game.step(&log.session, player, CommandSeq(command), &bodies.collect::<Result<Bodies, String>>()?)
                    .map_err(|error| error.to_string())?
            }
            Some(path) => {
                let options = arguments(player, command, &entities);
                let side = OneSidedLog::of(&log.session);
                let request = BuildRequest { log: self.path, log_digest: log.digest, options: &options, side };
                let build = Build::at(path).map_err(|error| error.to_string())?;
                let bytes =
                    self.engine.runner.answer(&build, "step", &request).map_err(|untestable| untestable.reason)?;
                answer(&bytes)?
            }
        };
        named(&fields, &after, &log.session.texts)
    }

    fn log(&self) -> Result<&LogFile, String> {
        if let Some(log) = self.log.get() {
            return Ok(log);
        }
        let read = self.engine.quiet().read_log(self.path).map_err(|error| error.to_string())?;
        Ok(self.log.get_or_init(|| read))
    }
}

/// The fields of a state. A table of states has the fields of one class, or those of all classes.
fn fields_of(header: &SessionHeader, class: Option<&str>, body: &[NamedValue]) -> Result<Vec<FieldSchema>, String> {
    let has = |field: &FieldSchema| body.iter().any(|named| named.name == field.name);
    let of_all = header.body_fields();
    match class {
        Some(name) => {
            let class = header.classes.iter().find(|class| class.name == name);
            class.map(|class| class.fields.clone()).ok_or_else(|| format!("the log has no class `{name}`"))
        }
        None if of_all.iter().all(has) => Ok(of_all),
        None => Ok(header.classes.first().map_or(of_all, |class| class.fields.clone())),
    }
}

//! Finds the first tick, entity and field where two runs differ, and the cause.
//!
//! For the cause, one usercmd runs again on one body in the builds of both sides, and the resulting bodies are compared.
//! Another build is called as `BUILD step LOG OPTIONS -o FILE`.

use std::cell::OnceCell;
use std::error::Error;
use std::num::TryFromIntError;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::build::{Build, BuildRequest};
use crate::effects::find_origin;
use crate::{Bodies, ComparisonSpec, Engine, EngineError, GameError, LogFile, Playable, Traces, check};
use hitreg_analysis::bisect::{self, CauseFinding, DivergenceCause, RerunFn, RerunStep, StateOwner, TickBisection};
use hitreg_analysis::diff::{CellValue, DiffOptions, NamedValue, TraceSide};
use hitreg_log::record::{FieldSchema, GapRecord, Session, SessionHeader, TextCode, Texts, cells_of};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::STEP;
use hitreg_log::units::{CommandSeq, EntityId, PlayerId};
use hitreg_netcode::game::CellKind;

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
/// Fails as [`ComparisonSpec::make_traces`] does, and if the traces cannot be compared with these options.
pub fn bisect_ticks(
    engine: &Engine<'_>,
    sides: &ComparisonSpec,
    options: &DiffOptions,
) -> Result<TickBisectionResult, EngineError> {
    let Traces { names: [name_a, name_b], sides: [a, b], overlap_only, gaps, .. } = sides.make_traces(engine)?;
    let traces = [a.source(), b.source()];
    // No build runs again on a side that only the log recorded.
    let replayed = sides.one_log().filter(|_| !overlap_only);
    let rerun = replayed.map(|(path, builds)| {
        let can_step = traces.map(|trace| trace.header().can(STEP));
        BuildRerun { engine, path, log: OnceCell::new(), builds, can_step }
    });
    let mut rerun_step = rerun
        .as_ref()
        .map(|rerun| |side: TraceSide, step: &RerunStep<'_>| rerun.step(side, step).map_err(|error| error.to_string()));
    let rerun_step = rerun_step.as_mut().map(|step| step as &mut RerunFn<'_>);
    let options = DiffOptions { overlap_only: overlap_only || options.overlap_only, ..options.clone() };
    let mut found = bisect::bisect_ticks(traces[0], traces[1], &options, rerun_step)?;
    check(&engine.runner.stop)?;
    if found.first.is_some() {
        sides.repeat(engine, traces, &options)?;
    }
    let is_setting = |cause: &&mut CauseFinding| cause.cause == DivergenceCause::Settings;
    if let (Some(first), Some(cause)) = (&found.first, found.cause.as_mut().filter(is_setting)) {
        cause.explain_by(&find_origin(engine, sides, traces, &options, first)?);
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
    fn step(&self, side: TraceSide, step: &RerunStep<'_>) -> Result<Vec<NamedValue>, Box<dyn Error>> {
        let side = side as usize;
        if self.builds[side].is_some() && !self.can_step[side] {
            return Err("it does not declare the command `step`".into());
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
                let player = PlayerId(u16::try_from(player)?);
                let game = self.engine.games.of(&log.session)?;
                let bodies = entities.into_iter().map(|(owner, cells)| Ok((EntityId(owner.entity.try_into()?), cells)));
                let bodies = bodies.collect::<Result<Bodies, TryFromIntError>>()?;
                game.step(&log.session, player, CommandSeq(command), &bodies)?
            }
            Some(path) => {
                let options = arguments(player, command, &entities);
                let request = BuildRequest::of(self.path, log.digest, &log.session);
                let request = BuildRequest { options: &options, ..request };
                answer(&self.engine.runner.answer(&Build::at(path)?, "step", &request)?)?
            }
        };
        Ok(named(&fields, &after, &log.session.texts)?)
    }

    fn log(&self) -> Result<&LogFile, EngineError> {
        if let Some(log) = self.log.get() {
            return Ok(log);
        }
        let read = self.engine.quiet().read_log(self.path)?;
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

/// The body after the usercmd.
#[derive(Serialize, Deserialize)]
struct BodyAfter {
    cells: Vec<u32>,
}

/// Runs one usercmd of a log on its player's body among `entities`. Returns the answer of a build: the resulting body
/// as JSON.
///
/// # Errors
/// Fails as [`Playable::step`] does.
pub fn step(
    game: &dyn Playable,
    session: &Session,
    player: PlayerId,
    command: CommandSeq,
    entities: &Bodies,
) -> Result<String, GameError> {
    let cells = game.step(session, player, command, entities)?;
    Ok(serde_json::json!(BodyAfter { cells }).to_string())
}

/// The cells of entities by their owners.
type OwnedCells = SortedMap<StateOwner, Vec<u32>>;

/// The arguments of `BUILD step` for one usercmd. States of a class with a table of its own name the class.
pub(crate) fn arguments(player: u32, command: u32, entities: &OwnedCells) -> Vec<String> {
    let body = |(owner, cells): (&StateOwner, &Vec<u32>)| {
        let cells: Vec<String> = cells.iter().map(u32::to_string).collect();
        let class = owner.class.as_ref().map(|class| format!("/{class}")).unwrap_or_default();
        format!("--body={}{class}={}", owner.entity, cells.join(","))
    };
    let which = [format!("--player={player}"), format!("--command={command}")];
    which.into_iter().chain(entities.iter().map(body)).collect()
}

/// Parses `ENTITY=CELL,CELL`, the body of an entity in the arguments of [`step`].
///
/// # Errors
/// Returns a message that shows the expected form.
pub fn body_argument(text: &str) -> Result<(EntityId, Vec<u32>), String> {
    let (entity, cells) = text.split_once('=').ok_or("write ENTITY=CELL,CELL and so on")?;
    let cells: Result<Vec<u32>, _> = cells.split(',').map(str::parse).collect();
    match (entity.parse(), cells) {
        (Ok(entity), Ok(cells)) => Ok((EntityId(entity), cells)),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    }
}

/// Parses the answer of a build.
pub(crate) fn answer(bytes: &[u8]) -> Result<Vec<u32>, String> {
    let after: Result<BodyAfter, _> = serde_json::from_slice(bytes);
    after.map(|after| after.cells).map_err(|error| format!("its answer has no body: {error}"))
}

/// Converts named values to the cells of a body, in the order of the log's fields.
pub(crate) fn cells(fields: &[FieldSchema], body: &[NamedValue]) -> Result<Vec<u32>, String> {
    let mut cells = Vec::with_capacity(fields.len());
    for field in fields {
        let named = body.iter().find(|named| named.name == field.name);
        let number = match named.map(|named| &named.value) {
            Some(CellValue::Float(v)) => i64::from(v.to_bits()),
            Some(CellValue::Double(v)) => v.to_bits() as i64,
            Some(CellValue::Integer(v)) => *v,
            Some(CellValue::Unsigned(v) | CellValue::Hash(v)) => *v as i64,
            Some(CellValue::Flag(v)) => i64::from(*v),
            Some(CellValue::Name(text)) => TextCode::of(text).0 as i64,
            None => return Err(format!("the state before it lacks `{}`", field.name)),
        };
        if !field.kind.put(number, &mut cells) {
            return Err(format!("`{}` has type {}, which has no {number}", field.name, field.kind.name()));
        }
    }
    Ok(cells)
}

/// Converts the cells of a body to named values, in the order of the log's fields.
pub(crate) fn named(fields: &[FieldSchema], cells: &[u32], texts: &Texts) -> Result<Vec<NamedValue>, String> {
    let wanted: usize = fields.iter().map(|field| field.kind.cells()).sum();
    if cells.len() != wanted {
        return Err(format!("it gave {} cells, and the log's fields have {wanted}", cells.len()));
    }
    let value = |kind: CellKind, number: i64| match kind {
        CellKind::F32 => CellValue::Float(f32::from_bits(number as u32)),
        CellKind::F64 => CellValue::Double(f64::from_bits(number as u64)),
        CellKind::I32 | CellKind::U32 | CellKind::I64 => CellValue::Integer(number),
        CellKind::U64 => CellValue::Unsigned(number as u64),
        CellKind::Bool => CellValue::Flag(number != 0),
        CellKind::Text => CellValue::Name(texts.get(TextCode(number as u64)).to_owned()),
    };
    let named = |(field, place): (&FieldSchema, std::ops::Range<usize>)| NamedValue {
        name: field.name.clone(),
        value: value(field.kind, field.kind.number(&cells[place])),
    };
    Ok(cells_of(fields).map(named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_netcode::game::Scope;

    #[test]
    fn cells_and_named_values_are_the_same_body() {
        let field = |name: &str, kind| FieldSchema::new(name, kind, Scope::Movement);
        let fields = [field("x", CellKind::F32), field("y", CellKind::I32), field("z", CellKind::U32)];
        let body = [(-0.0f32).to_bits(), -7i32 as u32, u32::MAX];
        let values = named(&fields, &body, &Texts::default()).unwrap();
        assert_eq!(cells(&fields, &values), Ok(body.to_vec()));
        let owner = |entity, class: Option<&str>| StateOwner { entity, class: class.map(str::to_owned) };
        let entities = OwnedCells::from([
            (owner(3, None), body.to_vec()),
            (owner(7, None), vec![0]),
            (owner(9, Some("shell")), vec![1, 2]),
        ]);
        let asked = arguments(7, 12, &entities);
        assert_eq!(asked[..2], ["--player=7", "--command=12"]);
        assert_eq!(asked[4], "--body=9/shell=1,2");
        let bodies = asked[2..4].iter().map(|arg| body_argument(arg.strip_prefix("--body=").unwrap()).unwrap());
        assert_eq!(bodies.collect::<Bodies>(), Bodies::from([(EntityId(3), body.to_vec()), (EntityId(7), vec![0])]));
        assert!(body_argument("3").is_err() && body_argument("3=x").is_err());
        assert!(named(&fields, &body[1..], &Texts::default()).is_err());
        assert!(cells(&fields, &values[1..]).unwrap_err().contains("`x`"));
    }
}

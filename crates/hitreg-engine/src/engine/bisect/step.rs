//! Runs one usercmd of a log on one body, in this or another build. A tick bisection runs it in two builds and compares
//! the resulting bodies. Another build is called as `BUILD step LOG OPTIONS -o FILE`.

use serde::{Deserialize, Serialize};

use crate::engine::{Bodies, Playable, StepError};
use hitreg_analysis::diff::{CellValue, NamedValue};
use hitreg_log::record::Session;
use hitreg_log::units::{CommandSeq, EntityId, PlayerId};
use hitreg_netcode::game::{CellKind, FieldSchema};

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
    (player, command): (PlayerId, CommandSeq),
    entities: &Bodies,
) -> Result<String, StepError> {
    let cells = game.step(session, player, command, entities)?;
    Ok(serde_json::json!(BodyAfter { cells }).to_string())
}

/// The arguments of `BUILD step` for one usercmd.
pub(super) fn arguments(player: u32, command: u32, entities: &Bodies) -> Vec<String> {
    let body = |(entity, cells): (&EntityId, &Vec<u32>)| {
        let cells: Vec<String> = cells.iter().map(u32::to_string).collect();
        format!("--body={}={}", entity.0, cells.join(","))
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
pub(super) fn answer(bytes: &[u8]) -> Result<Vec<u32>, String> {
    let after: Result<BodyAfter, _> = serde_json::from_slice(bytes);
    after.map(|after| after.cells).map_err(|error| format!("its answer has no body: {error}"))
}

/// Converts named values to the cells of a body, in the order of the log's fields.
pub(super) fn cells(fields: &[FieldSchema], body: &[NamedValue]) -> Result<Vec<u32>, String> {
    let cell = |field: &FieldSchema| {
        let named = body.iter().find(|named| named.name == field.name);
        match named.map(|named| &named.value) {
            Some(CellValue::Float(v)) => Ok(v.to_bits()),
            Some(CellValue::Integer(v)) => match field.kind {
                CellKind::I32 => i32::try_from(*v).map(|v| v as u32).map_err(|error| error.to_string()),
                CellKind::U32 | CellKind::F32 => u32::try_from(*v).map_err(|error| error.to_string()),
            },
            Some(CellValue::Hash(_) | CellValue::Name(_)) => Err(format!("`{}` is not a field of a body", field.name)),
            None => Err(format!("the state before it lacks `{}`", field.name)),
        }
    };
    fields.iter().map(cell).collect()
}

/// Converts the cells of a body to named values, in the order of the log's fields.
pub(super) fn named(fields: &[FieldSchema], cells: &[u32]) -> Result<Vec<NamedValue>, String> {
    if cells.len() != fields.len() {
        return Err(format!("it gave {} cells for the log's {} fields", cells.len(), fields.len()));
    }
    let value = |field: &FieldSchema, cell: u32| match field.kind {
        CellKind::F32 => CellValue::Float(f32::from_bits(cell)),
        CellKind::I32 => CellValue::Integer(i64::from(cell as i32)),
        CellKind::U32 => CellValue::Integer(i64::from(cell)),
    };
    let named =
        |(field, cell): (&FieldSchema, &u32)| NamedValue { name: field.name.clone(), value: value(field, *cell) };
    Ok(fields.iter().zip(cells).map(named).collect())
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
        let values = named(&fields, &body).unwrap();
        assert_eq!(cells(&fields, &values), Ok(body.to_vec()));
        let entities = Bodies::from([(EntityId(3), body.to_vec()), (EntityId(7), vec![0])]);
        let asked = arguments(7, 12, &entities);
        assert_eq!(asked[..2], ["--player=7", "--command=12"]);
        let bodies = asked[2..].iter().map(|arg| body_argument(arg.strip_prefix("--body=").unwrap()).unwrap());
        assert_eq!(bodies.collect::<Bodies>(), entities);
        assert!(body_argument("3").is_err() && body_argument("3=x").is_err());
        assert!(named(&fields, &body[1..]).is_err());
        assert!(cells(&fields, &values[1..]).unwrap_err().contains("`x`"));
    }
}

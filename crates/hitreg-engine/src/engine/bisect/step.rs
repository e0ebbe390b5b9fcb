//! Runs one usercmd of a log on one body, in this or another build. A tick bisection runs it in two builds and compares
//! the resulting bodies. Another build is called as `BUILD step LOG OPTIONS -o FILE`.

use serde::{Deserialize, Serialize};

use crate::engine::{Bodies, GameError, Playable};
use hitreg_analysis::bisect::StateOwner;
use hitreg_analysis::diff::{CellValue, NamedValue};
use hitreg_log::record::{Session, TextCode, Texts, cells_of};
use hitreg_log::sorted::SortedMap;
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
) -> Result<String, GameError> {
    let cells = game.step(session, player, command, entities)?;
    Ok(serde_json::json!(BodyAfter { cells }).to_string())
}

/// The cells of entities by their owners.
pub(super) type OwnedCells = SortedMap<StateOwner, Vec<u32>>;

/// The arguments of `BUILD step` for one usercmd. States of a class with a table of its own name the class.
pub(super) fn arguments(player: u32, command: u32, entities: &OwnedCells) -> Vec<String> {
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
pub(super) fn answer(bytes: &[u8]) -> Result<Vec<u32>, String> {
    let after: Result<BodyAfter, _> = serde_json::from_slice(bytes);
    after.map(|after| after.cells).map_err(|error| format!("its answer has no body: {error}"))
}

/// Converts named values to the cells of a body, in the order of the log's fields.
pub(super) fn cells(fields: &[FieldSchema], body: &[NamedValue]) -> Result<Vec<u32>, String> {
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
pub(super) fn named(fields: &[FieldSchema], cells: &[u32], texts: &Texts) -> Result<Vec<NamedValue>, String> {
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

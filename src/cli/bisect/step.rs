//! `BUILD step`: one usercmd of a log on one body. It is how `bisect ticks` asks two builds what they make of the same
//! input and state; people have no use for it, so help does not list it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::cli::games::{Cells, Games};
use crate::cli::trouble::Trouble;
use crate::cli::{Outcome, files};
use crate::diff::{Named, Value};
use crate::game::{CellKind, Field};
use crate::store;
use crate::units::{CommandSeq, EntityId, PlayerId};

/// Run one usercmd of a log on one body
#[derive(clap::Args)]
#[command(hide = true)]
pub(in crate::cli) struct Args {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Whose usercmd
    #[arg(long)]
    player: u16,
    /// Its number
    #[arg(long)]
    command: u32,
    /// An entity's body in cells, numbers of 32 bits in the order of the log's fields; the player's own among them
    #[arg(long, value_name = "ENTITY=CELL,CELL", value_parser = parse_body)]
    body: Vec<(EntityId, Vec<u32>)>,
    /// Where the body after it goes, as JSON
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// The body after a usercmd.
#[derive(Serialize, Deserialize)]
struct After {
    cells: Vec<u32>,
}

pub(in crate::cli) fn run(games: &Games, args: &Args) -> Result<Outcome, Trouble> {
    let log = files::read_log(&args.log)?;
    let game = games.of(&log.session).map_err(|error| Trouble::file(&args.log, error))?;
    let (player, command) = (PlayerId(args.player), CommandSeq(args.command));
    let entities = args.body.iter().cloned().collect();
    let cells = game.step(&log.session, player, command, &entities).map_err(Trouble::Request)?;
    let text = serde_json::to_vec(&After { cells }).map_err(std::io::Error::from)?;
    store::save_bytes(&args.output, &text)?;
    Ok(Outcome::Done)
}

/// The arguments that ask a build for one usercmd.
pub(super) fn arguments(player: u32, command: u32, entities: &Cells) -> Vec<String> {
    let body = |(entity, cells): (&EntityId, &Vec<u32>)| {
        let cells: Vec<String> = cells.iter().map(u32::to_string).collect();
        format!("--body={}={}", entity.0, cells.join(","))
    };
    let which = [format!("--player={player}"), format!("--command={command}")];
    which.into_iter().chain(entities.iter().map(body)).collect()
}

fn parse_body(text: &str) -> Result<(EntityId, Vec<u32>), String> {
    let (entity, cells) = text.split_once('=').ok_or("write ENTITY=CELL,CELL and so on")?;
    let cells: Result<Vec<u32>, _> = cells.split(',').map(str::parse).collect();
    match (entity.parse(), cells) {
        (Ok(entity), Ok(cells)) => Ok((EntityId(entity), cells)),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    }
}

/// What a build answered.
pub(super) fn answer(bytes: &[u8]) -> Result<Vec<u32>, String> {
    let after: Result<After, _> = serde_json::from_slice(bytes);
    after.map(|after| after.cells).map_err(|error| format!("it did not say how the body is then: {error}"))
}

/// A body's cells in the order of the log's fields.
pub(super) fn cells(fields: &[Field], body: &[Named]) -> Result<Vec<u32>, String> {
    let cell = |field: &Field| {
        let named = body.iter().find(|named| named.name == field.name);
        match named.map(|named| &named.value) {
            Some(Value::Float(v)) => Ok(v.to_bits()),
            Some(Value::Integer(v)) => match field.kind {
                CellKind::I32 => i32::try_from(*v).map(|v| v as u32).map_err(|error| error.to_string()),
                CellKind::U32 | CellKind::F32 => u32::try_from(*v).map_err(|error| error.to_string()),
            },
            Some(Value::Hash(_) | Value::Name(_)) => Err(format!("`{}` is no field of a body", field.name)),
            None => Err(format!("the state before it lacks `{}`", field.name)),
        }
    };
    fields.iter().map(cell).collect()
}

/// Cells with the names of the log's fields.
pub(super) fn named(fields: &[Field], cells: &[u32]) -> Result<Vec<Named>, String> {
    if cells.len() != fields.len() {
        return Err(format!("it gave {} cells for the log's {} fields", cells.len(), fields.len()));
    }
    let value = |field: &Field, cell: u32| match field.kind {
        CellKind::F32 => Value::Float(f32::from_bits(cell)),
        CellKind::I32 => Value::Integer(i64::from(cell as i32)),
        CellKind::U32 => Value::Integer(i64::from(cell)),
    };
    let named = |(field, cell): (&Field, &u32)| Named { name: field.name.clone(), value: value(field, *cell) };
    Ok(fields.iter().zip(cells).map(named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Scope;

    #[test]
    fn cells_and_named_values_are_the_same_body() {
        let field = |name: &str, kind| Field::new(name, kind, Scope::Movement);
        let fields = [field("x", CellKind::F32), field("y", CellKind::I32), field("z", CellKind::U32)];
        let body = [(-0.0f32).to_bits(), -7i32 as u32, u32::MAX];
        let values = named(&fields, &body).unwrap();
        assert_eq!(cells(&fields, &values), Ok(body.to_vec()));
        let entities = Cells::from([(EntityId(3), body.to_vec()), (EntityId(7), vec![0])]);
        let asked = arguments(7, 12, &entities);
        assert_eq!(asked[..2], ["--player=7", "--command=12"]);
        let bodies = asked[2..].iter().map(|arg| parse_body(arg.strip_prefix("--body=").unwrap()).unwrap());
        assert_eq!(bodies.collect::<Cells>(), entities);
        assert!(parse_body("3").is_err() && parse_body("3=x").is_err());
        assert!(named(&fields, &body[1..]).is_err());
        assert!(cells(&fields, &values[1..]).unwrap_err().contains("`x`"));
    }
}

//! Converts custom data: record kinds become tables, usercmd fields become columns of `frames`.

use std::ops::Range;

use crate::record::{CellKind, FieldSchema, NumberForm, Session, UnknownColumn, UnknownKind, UnknownRecords, cells_of};
use crate::sorted::SortedMap;
use crate::trace::schema::{frames, is_reserved};
use crate::trace::{Column, ColumnData, Table};

/// The beginning of the name of a game's table that has the name of another table.
const OWN: &str = "own.";

/// Adds the session's custom tables, and the unknown columns of usercmds.
pub(super) fn add(session: &Session, tables: &mut Vec<Table>) {
    for records in &session.unknown {
        let header = &session.header;
        let Some(kind) = header.unknown.iter().find(|kind| kind.name == records.kind) else { continue };
        if kind.name != frames::NAME {
            let mut table = table(session, kind, records);
            // Older recorders took these names.
            while is_reserved(&table.name) || tables.iter().any(|known| known.name == table.name) {
                table.name.insert_str(0, OWN);
            }
            tables.push(table);
        } else if let Some(known) = tables.iter_mut().find(|table| table.name == frames::NAME) {
            known.columns.extend(unknown_of_usercmds(session, kind, records));
        }
    }
}

/// Returns the table of a custom kind. Its rows are keyed by series and time.
fn table(session: &Session, kind: &UnknownKind, records: &UnknownRecords) -> Table {
    let series = Column::new("series", ColumnData::U32(records.series.clone()));
    let own = kind.columns.iter().zip(&records.columns).map(|(name, column)| {
        let field = kind.field(name);
        let data = data(session, field, column, column.values.clone());
        let unit = field.map_or("", |field| field.unit());
        Column::new(name.as_str(), data).in_unit(if name == "at_us" { "µs" } else { unit })
    });
    Table::new(kind.name.as_str(), std::iter::once(series).chain(own).collect()).keyed_by(["series", "at_us"])
}

/// Returns the columns of the usercmd fields that the game declares, in the order of the `frames` rows.
pub(super) fn of_usercmds(session: &Session) -> Vec<Column> {
    let fields = session.header.own_usercmd_fields();
    let frames = || session.players.iter().flat_map(|player| &player.frames);
    let column = |(field, place): (&FieldSchema, Range<usize>)| {
        let values = frames().map(|frame| frame.command.input.own.number(field.kind, place.clone()));
        let data = ColumnData::of_numbers(field.kind, values.collect(), &session.texts);
        Column::new(field.name.as_str(), data).in_unit(field.unit())
    };
    cells_of(&fields).map(column).collect()
}

/// Returns the unknown columns of usercmds in the order of the `frames` rows; 0 where a usercmd has none.
fn unknown_of_usercmds(session: &Session, kind: &UnknownKind, records: &UnknownRecords) -> Vec<Column> {
    let rows: SortedMap<(u32, i64), usize> = records
        .series
        .iter()
        .zip(&records.keys)
        .enumerate()
        .map(|(row, (series, key))| ((*series, *key), row))
        .collect();
    let usercmds = (0..)
        .zip(&session.players)
        .flat_map(|(player, records)| records.frames.iter().map(move |frame| (player, i64::from(frame.command.seq.0))));
    let places: Vec<Option<usize>> = usercmds.map(|usercmd| rows.get(&usercmd).copied()).collect();
    let column = |(name, column): (&String, &UnknownColumn)| {
        let values = places.iter().map(|row| row.and_then(|row| column.values.get(row)).copied().unwrap_or(0));
        let field = kind.field(name);
        Column::new(name.as_str(), data(session, field, column, values.collect()))
            .in_unit(field.map_or("", |field| field.unit()))
    };
    kind.columns.iter().zip(&records.columns).map(column).collect()
}

/// Converts numbers to values of the declared type, or of the type that their form shows.
fn data(session: &Session, field: Option<&FieldSchema>, column: &UnknownColumn, values: Vec<i64>) -> ColumnData {
    let shown = match column.form {
        NumberForm::Integer => CellKind::I64,
        NumberForm::F32 => CellKind::F32,
        NumberForm::F64 => CellKind::F64,
    };
    // A log may declare a type that its numbers do not have.
    let declared = field.map(|field| field.kind).filter(|kind| kind.form() == column.form);
    ColumnData::of_numbers(declared.unwrap_or(shown), values, &session.texts)
}

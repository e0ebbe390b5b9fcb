//! Every entity's cells after each tick, in one table for each class, because classes have different columns.

use serde_bytes::{ByteBuf, Bytes};

use super::map::{ChunkTables, DecodedTables};
use super::table::{ColumnWriter, PackedTable};
use super::texts::{ChunkTexts, TextPlaces};
use super::{ColumnReader, SessionSlice};
use crate::log::column;
use crate::log::index::{ChunkRows, PartRows};
use crate::log::limits::Budget;
use crate::record::{CellKind, Class, ClassId, SessionHeader, SessionStretch, StateKey, cells_of};
use crate::sorted::SortedMap;
use crate::units::{EntityId, PlayerId, Tick};

/// Returns the name of the table with a class's states.
pub(super) fn table_name(class: usize) -> String {
    if class == 0 { "states".to_owned() } else { format!("states.{class}") }
}

/// Returns the class of a table of states by its name.
pub(super) fn class_of_table(name: &str) -> Option<usize> {
    if name == "states" {
        return Some(0);
    }
    let class = name.strip_prefix("states.")?.parse().ok()?;
    (table_name(class) == name).then_some(class)
}

/// Returns the series of an entity's states, for all viewers or for one.
fn series_id(key: &StateKey) -> u32 {
    u32::from(key.entity.0) | key.viewer.map_or(0, |viewer| (u32::from(viewer.0) + 1) << 16)
}

/// Returns the number of states of each class in a part of a session. They have no times of their own.
pub(super) fn rows_by_table(part: &SessionSlice<'_>, header: &SessionHeader) -> ChunkRows {
    let mut counts = vec![0; header.classes.len()];
    for key in part.state_keys() {
        if let Some(count) = counts.get_mut(usize::from(key.class.0)) {
            *count += 1;
        }
    }
    let of = |(class, rows): (usize, usize)| PartRows::of_log(table_name(class), rows, None);
    counts.into_iter().enumerate().filter(|(_, rows)| *rows > 0).map(of).collect()
}

/// Encodes states by entity, so that each entity's cells are predicted from its own.
pub(super) fn encode(
    part: &SessionSlice<'_>,
    header: &SessionHeader,
    texts: &ChunkTexts<'_>,
    tables: &mut ChunkTables,
) {
    let mut by_class: SortedMap<ClassId, SortedMap<u32, Vec<usize>>> = SortedMap::new();
    for (row, key) in part.states().zip(part.state_keys()) {
        by_class.entry(key.class).or_default().entry(series_id(key)).or_default().push(row);
    }
    for (class, by_series) in by_class {
        let place = usize::from(class.0);
        if let Some(of) = header.classes.get(place) {
            tables.add(table_name(place), Some(encode_class(part, of, texts, &by_series)));
        }
    }
}

fn encode_class(
    part: &SessionSlice<'_>,
    class: &Class,
    texts: &ChunkTexts<'_>,
    by_series: &SortedMap<u32, Vec<usize>>,
) -> PackedTable<ByteBuf> {
    let states = &part.session.states;
    let order: Vec<usize> = by_series.values().flatten().copied().collect();
    let rows: Vec<&[u32]> = order.iter().map(|&row| states.cells_of(row)).collect();
    let ticks: Vec<i64> = order.iter().map(|&row| i64::from(states.keys()[row].tick.0)).collect();
    let mut columns = ColumnWriter::of_series(by_series);
    columns.numbers(&ticks);
    for (field, place) in cells_of(&class.fields) {
        let numbers = rows.iter().map(|row| field.kind.number(&row[place.clone()])).collect();
        columns.numbers_as(field.kind.form(), numbers, (field.kind == CellKind::Text).then_some(texts));
    }
    columns.finish()
}

pub(super) fn decode(
    tables: &DecodedTables<'_>,
    header: &SessionHeader,
    texts: &TextPlaces,
    stretch: &mut SessionStretch,
    budget: &mut Budget,
) -> Result<(), String> {
    for (place, class) in header.classes.iter().enumerate() {
        if let Some(table) = tables.of(&table_name(place)) {
            decode_class(table, ClassId(place as u16), class, texts, stretch, budget)?;
        }
    }
    stretch.states.put_in_order();
    Ok(())
}

fn decode_class(
    table: &PackedTable<&Bytes>,
    class: ClassId,
    Class { fields, .. }: &Class,
    texts: &TextPlaces,
    stretch: &mut SessionStretch,
    budget: &mut Budget,
) -> Result<(), String> {
    let columns = ColumnReader::new("states", &[], table);
    // Budget for the rows in columns, then one after the other, then in order.
    let width: usize = fields.iter().map(|field| field.kind.cells()).sum();
    budget.take(columns.rows, 8 * width + 64)?;
    let ticks = column::decode(columns.at(0), &columns.series, None).map_err(|what| columns.bad("tick", what))?;
    let tick = |tick: i64| u32::try_from(tick).map_err(|_| columns.bad("tick", format_args!("{tick} is out of range")));
    let ticks: Vec<u32> = ticks.into_iter().map(tick).collect::<Result<_, _>>()?;
    let mut cells: Vec<Vec<u32>> = Vec::with_capacity(width);
    for (place, field) in fields.iter().enumerate() {
        let packed = columns.at(1 + place);
        let bad = |what: String| columns.bad(&field.name, what);
        if field.kind.cells() == 1 {
            cells.push(column::decode_cells(packed, &columns.series).map_err(bad)?);
            continue;
        }
        let mut numbers = column::decode_as(field.kind.form(), packed, &columns.series).map_err(bad)?;
        if field.kind == CellKind::Text {
            texts.codes(&mut numbers).map_err(bad)?;
        }
        cells.push(numbers.iter().map(|number| *number as u32).collect());
        cells.push(numbers.iter().map(|number| (*number >> 32) as u32).collect());
    }
    let players = stretch.players.len();
    let mut rows = ticks.into_iter().enumerate();
    let mut words = vec![0; width];
    for (id, count) in columns.row_counts() {
        let viewer = (id >> 16).checked_sub(1).map(|viewer| PlayerId(viewer as u16));
        if let Some(viewer) = viewer.filter(|viewer| usize::from(viewer.0) >= players) {
            return Err(format!("table states: a state for player {viewer}, but the session has {players} players"));
        }
        let entity = EntityId(id as u16);
        for (row, tick) in rows.by_ref().take(count) {
            words.iter_mut().zip(&cells).for_each(|(word, column)| *word = column[row]);
            stretch.states.push(StateKey { tick: Tick(tick), viewer, entity, class }, &words);
        }
    }
    Ok(())
}

//! What the server had after each tick: its time and hash, and every entity's cells.

use std::collections::BTreeMap;

use serde_bytes::{ByteBuf, Bytes};

use super::Stretch;
use super::table::{Columns, Rows, Table};
use crate::game::{CellKind, Field};
use crate::log::column;
use crate::log::limits::Budget;
use crate::record::{States, TickRecord};
use crate::units::{EntityId, Micros, Tick};

pub(super) fn encode_ticks(ticks: &[TickRecord]) -> Option<Table<ByteBuf>> {
    let mut rows = Rows::new([(0, ticks)].into_iter());
    rows.whole(|r| r.tick.0.into());
    rows.whole(|r| r.at.0);
    rows.whole(|r| r.hash.is_some().into());
    rows.raw(ticks.iter().filter_map(|r| r.hash).flat_map(u64::to_le_bytes).collect());
    rows.finish()
}

pub(super) fn decode_ticks(table: &Table<&Bytes>, budget: &mut Budget) -> Result<Vec<TickRecord>, String> {
    let mut columns = Columns::new("ticks", table, 3 * size_of::<TickRecord>(), budget)?;
    let tick: Vec<u32> = columns.narrow("tick")?;
    let at = columns.whole("at_us")?;
    let hashed: Vec<u8> = columns.narrow("hashed")?;
    let mut hashes = columns.raw("hash")?.chunks_exact(8);
    let mut hash = |hashed: u8| match hashed {
        0 => Ok(None),
        1 => match hashes.next().map(<[u8; 8]>::try_from) {
            Some(Ok(bytes)) => Ok(Some(u64::from_le_bytes(bytes))),
            _ => Err("table ticks, column hash: it ends too early".to_owned()),
        },
        other => Err(format!("table ticks, column hashed: {other} is out of range")),
    };
    (0..columns.rows)
        .map(|row| Ok(TickRecord { tick: Tick(tick[row]), at: Micros(at[row]), hash: hash(hashed[row])? }))
        .collect()
}

/// Rows entity by entity, so that each entity's cells are predicted from its own.
pub(super) fn encode(stretch: &Stretch<'_>) -> Option<Table<ByteBuf>> {
    let mut by_entity: BTreeMap<EntityId, Vec<usize>> = BTreeMap::new();
    for (row, (_, entity)) in stretch.keys.iter().enumerate() {
        by_entity.entry(*entity).or_default().push(row);
    }
    let order: Vec<usize> = by_entity.values().flatten().copied().collect();
    let series: Vec<usize> = by_entity.values().map(Vec::len).collect();
    let whole = |value: &dyn Fn(usize) -> i64| -> ByteBuf {
        let values: Vec<i64> = order.iter().map(|&row| value(row)).collect();
        ByteBuf::from(column::encode(&values, &series))
    };
    let mut columns = vec![whole(&|row| stretch.keys[row].0.0.into())];
    columns.push(if is_ascending(stretch.keys) { ByteBuf::new() } else { whole(&|row| row as i64 + 1) });
    for (cell, field) in stretch.fields.iter().enumerate() {
        let word = |row: usize| stretch.cells[row * stretch.fields.len() + cell];
        columns.push(encode_cell(field, &order, &series, word, &whole));
    }
    let ids = by_entity.keys().map(|entity| entity.0.into()).collect();
    (!order.is_empty()).then(|| Table(ids, series.iter().map(|&rows| rows as u32).collect(), columns))
}

fn encode_cell(
    field: &Field,
    order: &[usize],
    series: &[usize],
    word: impl Fn(usize) -> u32,
    whole: &impl Fn(&dyn Fn(usize) -> i64) -> ByteBuf,
) -> ByteBuf {
    match field.kind {
        CellKind::U32 => whole(&|row| word(row).into()),
        CellKind::I32 => whole(&|row| (word(row) as i32).into()),
        CellKind::F32 => {
            let bits: Vec<u32> = order.iter().map(|&row| word(row)).collect();
            ByteBuf::from(column::encode_f32(&bits, series))
        }
    }
}

/// Whether the rows are in the order of (tick, entity), each once: then their order need not be stored.
pub(super) fn is_ascending(keys: &[(Tick, EntityId)]) -> bool {
    keys.is_sorted_by(|a, b| a < b)
}

pub(super) fn decode(table: &Table<&Bytes>, width: usize, budget: &mut Budget) -> Result<States, String> {
    let mut columns = Columns::new("states", table, 4 * width + 64, budget)?;
    let ticks: Vec<u32> = columns.narrow("tick")?;
    let places: Vec<usize> = columns.narrow("order")?;
    let mut entities = Vec::with_capacity(columns.rows);
    for (&id, &rows) in columns.ids.iter().zip(&columns.series) {
        let id = u16::try_from(id).map_err(|_| format!("table states: there is no entity {id}"))?;
        entities.extend(std::iter::repeat_n(EntityId(id), rows));
    }
    let stored: Vec<(Tick, EntityId)> = ticks.into_iter().map(Tick).zip(entities).collect();
    let place = if places.iter().all(|&place| place == 0) { sorted_places(&stored) } else { given_places(places)? };
    let mut states = States { keys: vec![(Tick(0), EntityId(0)); columns.rows], cells: Vec::new(), width };
    for (&place, &key) in place.iter().zip(&stored) {
        states.keys[place] = key;
    }
    states.cells = vec![0; columns.rows * width];
    for cell in 0..width {
        for (&place, word) in place.iter().zip(columns.cells("cell")?) {
            states.cells[place * width + cell] = word;
        }
    }
    Ok(states)
}

/// Where each stored row goes when the rows are in the order of their keys.
fn sorted_places(stored: &[(Tick, EntityId)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..stored.len()).collect();
    order.sort_by_key(|&row| stored[row]);
    let mut places = vec![0; stored.len()];
    for (place, row) in order.into_iter().enumerate() {
        places[row] = place;
    }
    places
}

/// Where each stored row goes when the file says it; the places count from 1, and each occurs once.
fn given_places(places: Vec<usize>) -> Result<Vec<usize>, String> {
    let mut taken = vec![false; places.len()];
    for &place in &places {
        let free = place.checked_sub(1).and_then(|place| taken.get_mut(place)).filter(|taken| !**taken);
        *free.ok_or("table states, column order: it is not an order of its rows")? = true;
    }
    Ok(places.into_iter().map(|place| place - 1).collect())
}

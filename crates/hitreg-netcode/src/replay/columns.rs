//! Collects the cells of bodies row by row, and returns them as columns.

use std::ops::Range;

use rayon::prelude::*;

use crate::game::{CellKind, FieldSchema};
use hitreg_log::record::{Texts, cells_of};
use hitreg_log::trace::{Column, ColumnData};

/// Rows of cells, to become columns.
#[derive(Clone, Debug)]
pub(super) struct CellRows {
    /// The fields, each with the place of its cells in a row.
    fields: Vec<(FieldSchema, Range<usize>)>,
    /// The number of cells of a row.
    width: usize,
    cells: Vec<u32>,
    /// The greatest number of cells that were taken at once, as an estimate for the next time.
    taken: usize,
}

impl CellRows {
    pub(super) fn new(fields: Vec<FieldSchema>) -> CellRows {
        let fields: Vec<_> = cells_of(&fields).map(|(field, place)| (field.clone(), place)).collect();
        let width = fields.last().map_or(0, |(_, place)| place.end);
        CellRows { fields, width, cells: Vec::new(), taken: 0 }
    }

    /// Adds a row with these cells. All further cells of the row are 0.
    pub(super) fn push(&mut self, row: &[u32]) {
        if self.cells.is_empty() {
            self.cells.reserve(self.taken + self.taken / 8);
        }
        let end = self.cells.len() + self.width;
        self.cells.extend_from_slice(&row[..row.len().min(self.width)]);
        self.cells.resize(end, 0);
    }

    /// Takes the rows so far as columns.
    pub(super) fn take(&mut self, prefix: &str) -> Vec<Column> {
        let rows = std::mem::take(&mut self.cells);
        self.taken = self.taken.max(rows.len());
        let width = self.width;
        let columns = |fields: &[(FieldSchema, Range<usize>)]| {
            let capacity = |place: &Range<usize>| rows.len() / width * place.len();
            // `vec![…; n]` would clone the first one, without its capacity.
            let mut all: Vec<Vec<u32>> = fields.iter().map(|(_, place)| Vec::with_capacity(capacity(place))).collect();
            for block in rows.chunks(width * AT_ONCE_ROWS) {
                for ((_, place), cells) in fields.iter().zip(&mut all) {
                    let rows = block.chunks_exact(width);
                    match place.len() {
                        1 => cells.extend(rows.map(|row| row[place.start])),
                        _ => rows.for_each(|row| cells.extend_from_slice(&row[place.clone()])),
                    }
                }
            }
            let column = |((field, _), cells): (&(FieldSchema, Range<usize>), Vec<u32>)| {
                let data = match field.kind {
                    CellKind::F32 => ColumnData::F32(bytemuck::cast_vec(cells)),
                    CellKind::U32 => ColumnData::U32(cells),
                    kind => {
                        let numbers = cells.chunks_exact(kind.cells()).map(|cells| kind.number(cells)).collect();
                        ColumnData::of_numbers(kind, numbers, &Texts::default())
                    }
                };
                Column::new(format!("{prefix}{}", field.name), data).in_unit(field.unit())
            };
            fields.iter().zip(all).map(column).collect::<Vec<_>>()
        };
        self.fields.par_chunks(AT_ONCE_FIELDS).flat_map_iter(columns).collect()
    }
}

/// Block sizes, in rows and fields, that keep reads and writes close together in memory.
const AT_ONCE_ROWS: usize = 64;
const AT_ONCE_FIELDS: usize = 16;

/// Returns the value of a field's [number](CellKind::number), for tables with the values of several fields in one column.
pub(super) fn value(kind: CellKind, number: i64) -> f32 {
    match kind {
        CellKind::F32 => f32::from_bits(number as u32),
        CellKind::F64 => f64::from_bits(number as u64) as f32,
        CellKind::U64 => number as u64 as f32,
        _ => number as f32,
    }
}

//! Collects the cells of bodies row by row, and returns them as columns.

use rayon::prelude::*;

use crate::game::{CellKind, FieldSchema};
use hitreg_log::record::Texts;
use hitreg_log::trace::{Column, ColumnData};

/// Rows of cells, to become columns.
#[derive(Clone, Debug)]
pub(super) struct CellRows {
    fields: Vec<FieldSchema>,
    cells: Vec<u32>,
    /// The number of cells taken last time, as an estimate for the next.
    taken: usize,
}

impl CellRows {
    pub(super) fn new(fields: Vec<FieldSchema>) -> CellRows {
        CellRows { fields, cells: Vec::new(), taken: 0 }
    }

    /// Adds a row of zeros for the caller to write.
    pub(super) fn next_row(&mut self) -> &mut [u32] {
        if self.cells.is_empty() {
            let cells = std::mem::take(&mut self.taken);
            self.cells.reserve(cells + cells / 8);
        }
        let start = self.cells.len();
        self.cells.resize(start + self.fields.len(), 0);
        &mut self.cells[start..]
    }

    /// Takes the rows so far as columns.
    pub(super) fn take(&mut self, prefix: &str) -> Vec<Column> {
        let rows = std::mem::take(&mut self.cells);
        self.taken = rows.len();
        let width = self.fields.len();
        let columns = |(group, fields): (usize, &[FieldSchema])| {
            // `vec![…; n]` would clone the first one, without its capacity.
            let mut all: Vec<Vec<u32>> = fields.iter().map(|_| Vec::with_capacity(rows.len() / width)).collect();
            for block in rows.chunks(width * AT_ONCE_ROWS) {
                for (index, cells) in (group * AT_ONCE_FIELDS..).zip(&mut all) {
                    cells.extend(block.chunks_exact(width).map(|row| row[index]));
                }
            }
            let column = |(field, cells): (&FieldSchema, Vec<u32>)| {
                let data = match field.kind {
                    CellKind::F32 => ColumnData::F32(bytemuck::cast_vec(cells)),
                    CellKind::U32 => ColumnData::U32(cells),
                    kind => {
                        let numbers = cells.into_iter().map(|cell| kind.number(&[cell])).collect();
                        ColumnData::of_numbers(kind, numbers, &Texts::default())
                    }
                };
                Column::new(format!("{prefix}{}", field.name), data).in_unit(field.unit())
            };
            fields.iter().zip(all).map(column).collect::<Vec<_>>()
        };
        self.fields.par_chunks(AT_ONCE_FIELDS).enumerate().flat_map_iter(columns).collect()
    }
}

/// Block sizes, in rows and fields, that keep reads and writes close together in memory.
const AT_ONCE_ROWS: usize = 64;
const AT_ONCE_FIELDS: usize = 16;

/// Converts a cell to a number, for tables with the values of several fields in one column.
pub(super) fn value(kind: CellKind, cell: u32) -> f32 {
    match kind {
        CellKind::F32 => f32::from_bits(cell),
        kind => kind.number(&[cell]) as f32,
    }
}

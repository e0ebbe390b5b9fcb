//! Building columns row by row.

use rayon::prelude::*;

use crate::game::{CellKind, Field};
use crate::trace::{Column, Data, Table};

/// A column of names: a code for each row, in the order in which names came up.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    names: Vec<String>,
    codes: Vec<u8>,
}

impl Names {
    /// Names that are known beforehand keep their places, whether they come up or not.
    pub(super) fn known(names: &[&str]) -> Names {
        Names { names: names.iter().map(|n| (*n).to_owned()).collect(), codes: Vec::new() }
    }

    pub(super) fn push_code(&mut self, code: u8) {
        self.codes.push(code);
    }

    /// Adds a name. A session has at most 256 different ones in a column; more would share the last.
    pub(super) fn push(&mut self, name: &str) {
        let index = self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        self.codes.push(index.min(255) as u8);
    }

    pub(super) fn data(self) -> Data {
        Data::Name { names: self.names, codes: self.codes }
    }
}

/// Rows of cells, turned into columns at the end.
#[derive(Clone, Debug)]
pub(super) struct CellRows {
    fields: Vec<Field>,
    cells: Vec<u32>,
}

impl CellRows {
    pub(super) fn new(fields: Vec<Field>) -> CellRows {
        CellRows { fields, cells: Vec::new() }
    }

    /// The next row, to be written by the caller; zero until then.
    pub(super) fn next_row(&mut self) -> &mut [u32] {
        let start = self.cells.len();
        self.cells.resize(start + self.fields.len(), 0);
        &mut self.cells[start..]
    }

    /// One row's cells.
    pub(super) fn row(&self, index: usize) -> Option<&[u32]> {
        let width = self.fields.len();
        self.cells.get(index * width..(index + 1) * width)
    }

    pub(super) fn columns(self, prefix: &str) -> Vec<Column> {
        let width = self.fields.len();
        let column = |(index, field): (usize, &Field)| {
            let cells = self.cells.iter().skip(index).step_by(width);
            let data = match field.kind {
                CellKind::F32 => Data::F32(cells.map(|c| f32::from_bits(*c)).collect()),
                CellKind::I32 => Data::I64(cells.map(|c| i64::from(*c as i32)).collect()),
                CellKind::U32 => Data::U32(cells.copied().collect()),
            };
            Column { name: format!("{prefix}{}", field.name), data }
        };
        self.fields.par_iter().enumerate().map(column).collect()
    }
}

/// A table of these columns.
pub(super) fn table(name: &str, columns: Vec<(&str, Data)>, rest: Vec<Column>) -> Table {
    let named = columns.into_iter().map(|(name, data)| Column { name: name.to_owned(), data });
    Table { name: name.to_owned(), columns: named.chain(rest).collect() }
}

/// Adds one value to each of a few columns that belong together.
pub(super) fn push_all<T, const N: usize>(columns: &mut [Vec<T>; N], values: [T; N]) {
    for (column, value) in columns.iter_mut().zip(values) {
        column.push(value);
    }
}

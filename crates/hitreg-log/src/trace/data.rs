//! The values of a column.

use super::schema::NONE;
use crate::record::{CellKind, TextCode, Texts};
use crate::sorted::SortedMap;

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnData {
    /// Counts, numbers, flags.
    U32(Vec<u32>),
    /// Ids and hashes ([`Column::is_hash`](super::Column::is_hash)).
    U64(Vec<u64>),
    /// Times in microseconds, and signed numbers.
    I64(Vec<i64>),
    /// Measurements; NaN for none.
    F32(Vec<f32>),
    /// Measurements in double precision; NaN for none.
    F64(Vec<f64>),
    /// Flags.
    Bool(Vec<bool>),
    /// Names, stored as indices into a list.
    Name {
        /// The distinct names.
        names: Vec<String>,
        /// Index of each row's name.
        codes: Vec<u32>,
    },
}

impl ColumnData {
    /// Returns values of this type, given as [numbers](CellKind::number). `texts` are those of the session.
    pub fn of_numbers(kind: CellKind, numbers: Vec<i64>, texts: &Texts) -> ColumnData {
        fn all<V>(numbers: Vec<i64>, value: impl Fn(i64) -> V) -> Vec<V> {
            numbers.into_iter().map(value).collect()
        }
        match kind {
            CellKind::F32 => ColumnData::F32(all(numbers, |bits| f32::from_bits(bits as u32))),
            CellKind::F64 => ColumnData::F64(all(numbers, |bits| f64::from_bits(bits as u64))),
            CellKind::I32 | CellKind::I64 => ColumnData::I64(numbers),
            CellKind::U32 => ColumnData::U32(all(numbers, |number| number as u32)),
            CellKind::U64 => ColumnData::U64(all(numbers, |number| number as u64)),
            CellKind::Bool => ColumnData::Bool(all(numbers, |number| number != 0)),
            CellKind::Text => {
                let (mut places, mut names) = (SortedMap::new(), Vec::new());
                let mut code = |number: i64| {
                    *places.entry(number).or_insert_with(|| {
                        names.push(texts.get(TextCode(number as u64)).to_owned());
                        (names.len() - 1) as u32
                    })
                };
                let codes = numbers.into_iter().map(&mut code).collect();
                ColumnData::Name { names, codes }
            }
        }
    }

    /// Returns whether a row has no value, or one whose bits are all 0; for names, the empty one.
    pub fn is_zero(&self, row: usize) -> bool {
        match self {
            ColumnData::U32(v) => v.get(row).is_none_or(|v| *v == 0),
            ColumnData::U64(v) => v.get(row).is_none_or(|v| *v == 0),
            ColumnData::I64(v) => v.get(row).is_none_or(|v| *v == 0),
            ColumnData::F32(v) => v.get(row).is_none_or(|v| v.to_bits() == 0),
            ColumnData::F64(v) => v.get(row).is_none_or(|v| v.to_bits() == 0),
            ColumnData::Bool(v) => !v.get(row).is_some_and(|v| *v),
            ColumnData::Name { names, codes } => {
                codes.get(row).and_then(|code| names.get(*code as usize)).is_none_or(String::is_empty)
            }
        }
    }

    /// Returns the value of a row in a column of floats of either precision.
    pub fn real(&self, row: usize) -> Option<f64> {
        match self {
            ColumnData::F32(values) => values.get(row).copied().map(f64::from),
            ColumnData::F64(values) => values.get(row).copied(),
            _ => None,
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            ColumnData::U32(v) => v.len(),
            ColumnData::U64(v) => v.len(),
            ColumnData::I64(v) => v.len(),
            ColumnData::F32(v) => v.len(),
            ColumnData::F64(v) => v.len(),
            ColumnData::Bool(v) => v.len(),
            ColumnData::Name { codes, .. } => codes.len(),
        }
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends values of the same type. Returns `false` for another type, or when one list of names is not a prefix of
    /// the other.
    pub(super) fn append(&mut self, later: ColumnData) -> bool {
        match (self, later) {
            (ColumnData::U32(to), ColumnData::U32(from)) => to.extend(from),
            (ColumnData::U64(to), ColumnData::U64(from)) => to.extend(from),
            (ColumnData::I64(to), ColumnData::I64(from)) => to.extend(from),
            (ColumnData::F32(to), ColumnData::F32(from)) => to.extend(from),
            (ColumnData::F64(to), ColumnData::F64(from)) => to.extend(from),
            (ColumnData::Bool(to), ColumnData::Bool(from)) => to.extend(from),
            (ColumnData::Name { names, codes }, ColumnData::Name { names: others, codes: from }) => {
                let common = names.len().min(others.len());
                if names[..common] != others[..common] {
                    return false;
                }
                if others.len() > names.len() {
                    *names = others;
                }
                codes.extend(from);
            }
            _ => return false,
        }
        true
    }

    /// Frees the room for more values.
    pub(super) fn shrink_to_fit(&mut self) {
        match self {
            ColumnData::U32(v) | ColumnData::Name { codes: v, .. } => v.shrink_to_fit(),
            ColumnData::U64(v) => v.shrink_to_fit(),
            ColumnData::I64(v) => v.shrink_to_fit(),
            ColumnData::F32(v) => v.shrink_to_fit(),
            ColumnData::F64(v) => v.shrink_to_fit(),
            ColumnData::Bool(v) => v.shrink_to_fit(),
        }
    }

    /// Returns the size of one value, in bytes.
    pub(crate) fn width(&self) -> usize {
        match self {
            ColumnData::U32(_) | ColumnData::F32(_) | ColumnData::Name { .. } => 4,
            ColumnData::U64(_) | ColumnData::I64(_) | ColumnData::F64(_) => 8,
            ColumnData::Bool(_) => 1,
        }
    }

    /// Removes and returns the values from a row on.
    pub(super) fn split_off(&mut self, row: usize) -> ColumnData {
        match self {
            ColumnData::U32(v) => ColumnData::U32(v.split_off(row)),
            ColumnData::U64(v) => ColumnData::U64(v.split_off(row)),
            ColumnData::I64(v) => ColumnData::I64(v.split_off(row)),
            ColumnData::F32(v) => ColumnData::F32(v.split_off(row)),
            ColumnData::F64(v) => ColumnData::F64(v.split_off(row)),
            ColumnData::Bool(v) => ColumnData::Bool(v.split_off(row)),
            ColumnData::Name { names, codes } => ColumnData::Name { names: names.clone(), codes: codes.split_off(row) },
        }
    }

    /// Returns the values of some rows.
    pub(super) fn select(&self, rows: &[u32]) -> ColumnData {
        fn of<V: Copy>(values: &[V], rows: &[u32]) -> Vec<V> {
            rows.iter().map(|row| values[*row as usize]).collect()
        }
        match self {
            ColumnData::U32(v) => ColumnData::U32(of(v, rows)),
            ColumnData::U64(v) => ColumnData::U64(of(v, rows)),
            ColumnData::I64(v) => ColumnData::I64(of(v, rows)),
            ColumnData::F32(v) => ColumnData::F32(of(v, rows)),
            ColumnData::F64(v) => ColumnData::F64(of(v, rows)),
            ColumnData::Bool(v) => ColumnData::Bool(of(v, rows)),
            ColumnData::Name { names, codes } => ColumnData::Name { names: names.clone(), codes: of(codes, rows) },
        }
    }

    /// Returns the name of the type in files: `u32`, `u64`, `i64`, `f32`, `f64`, `bool`, `name`.
    pub fn type_name(&self) -> &'static str {
        match self {
            ColumnData::U32(_) => "u32",
            ColumnData::U64(_) => "u64",
            ColumnData::I64(_) => "i64",
            ColumnData::F32(_) => "f32",
            ColumnData::F64(_) => "f64",
            ColumnData::Bool(_) => "bool",
            ColumnData::Name { .. } => "name",
        }
    }
}

/// Returns rows with the value `none` for a column of names; an empty column for all other types.
pub(super) fn no_values(like: &ColumnData, rows: usize) -> ColumnData {
    let ColumnData::Name { names, .. } = like else { return ColumnData::U32(Vec::new()) };
    let mut names = names.clone();
    if names.last().is_none_or(|name| name != NONE) {
        names.push(NONE.to_owned());
    }
    let none = (names.len() - 1) as u32;
    ColumnData::Name { names, codes: vec![none; rows] }
}

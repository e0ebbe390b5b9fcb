//! The values of a column.

use super::schema::NONE;

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Counts, numbers, flags.
    U32(Vec<u32>),
    /// Hashes.
    U64(Vec<u64>),
    /// Times in microseconds, and signed numbers.
    I64(Vec<i64>),
    /// Measurements; NaN for none.
    F32(Vec<f32>),
    /// Names, stored as indices into a list.
    Name {
        /// The distinct names.
        names: Vec<String>,
        /// Index of each row's name.
        codes: Vec<u32>,
    },
}

impl Data {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            Data::U32(v) => v.len(),
            Data::U64(v) => v.len(),
            Data::I64(v) => v.len(),
            Data::F32(v) => v.len(),
            Data::Name { codes, .. } => codes.len(),
        }
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends values of the same type. Returns `false` for another type, or when one list of names is not a prefix of
    /// the other.
    pub(super) fn append(&mut self, later: Data) -> bool {
        match (self, later) {
            (Data::U32(to), Data::U32(from)) => to.extend(from),
            (Data::U64(to), Data::U64(from)) => to.extend(from),
            (Data::I64(to), Data::I64(from)) => to.extend(from),
            (Data::F32(to), Data::F32(from)) => to.extend(from),
            (Data::Name { names, codes }, Data::Name { names: others, codes: from }) => {
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

    /// Returns the size of one value, in bytes.
    pub(crate) fn width(&self) -> usize {
        match self {
            Data::U32(_) | Data::F32(_) | Data::Name { .. } => 4,
            Data::U64(_) | Data::I64(_) => 8,
        }
    }

    /// Returns the values of some rows.
    pub(super) fn select(&self, rows: &[u32]) -> Data {
        fn of<V: Copy>(values: &[V], rows: &[u32]) -> Vec<V> {
            rows.iter().map(|row| values[*row as usize]).collect()
        }
        match self {
            Data::U32(v) => Data::U32(of(v, rows)),
            Data::U64(v) => Data::U64(of(v, rows)),
            Data::I64(v) => Data::I64(of(v, rows)),
            Data::F32(v) => Data::F32(of(v, rows)),
            Data::Name { names, codes } => Data::Name { names: names.clone(), codes: of(codes, rows) },
        }
    }

    /// Returns the name of the type in files: `u32`, `u64`, `i64`, `f32`, `name`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Data::U32(_) => "u32",
            Data::U64(_) => "u64",
            Data::I64(_) => "i64",
            Data::F32(_) => "f32",
            Data::Name { .. } => "name",
        }
    }
}

/// Returns rows with the value `none` for a column of names; an empty column for all other types.
pub(super) fn no_values(like: &Data, rows: usize) -> Data {
    let Data::Name { names, .. } = like else { return Data::U32(Vec::new()) };
    let mut names = names.clone();
    if names.last().is_none_or(|name| name != NONE) {
        names.push(NONE.to_owned());
    }
    let none = (names.len() - 1) as u32;
    Data::Name { names, codes: vec![none; rows] }
}

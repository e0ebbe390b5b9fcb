//! Digests of tables and traces. They accept rows in parts, so that a table need not be in memory at once.

use bytemuck::cast_slice;
use xxhash_rust::xxh3::Xxh3Default;

use super::schema::{NONE, TableSchema};
use super::{ColumnData, Table, Trace};
use crate::hash::little_endian;

/// A 128-bit digest, shown in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub u128);

impl Digest {
    /// Returns the XXH3-128 digest of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Digest {
        Digest(xxhash_rust::xxh3::xxh3_128(bytes))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The digest of a table, computed as rows arrive. It does not depend on how the rows are split into parts.
///
/// A column's digest is XXH3-128 over its values, little endian; a `name` counts as its 32-bit code. A table's digest
/// is XXH3-128 over its name, its number of rows, its number of columns, and its columns. Each column contributes its
/// name, the name of its type and its digest. Before its digest, a `name` column has the number of names and the names.
/// A zero byte follows each name; numbers have 64 bits.
#[derive(Clone)]
pub struct TableDigest {
    name: String,
    rows: usize,
    columns: Vec<ColumnDigest>,
}

#[derive(Clone)]
struct ColumnDigest {
    name: String,
    kind: &'static str,
    names: Vec<String>,
    values: Xxh3Default,
}

impl TableDigest {
    /// Returns the digest of a table without rows.
    pub fn new(name: &str) -> TableDigest {
        TableDigest { name: name.to_owned(), rows: 0, columns: Vec::new() }
    }

    /// Adds rows. A column that one part lacks gets the value `none` in the rows of that part.
    pub fn add(&mut self, rows: &Table) {
        let count = rows.rows();
        match (self.rows, count) {
            (0, _) => self.columns.clear(),
            (_, 0) => return,
            _ => {}
        }
        for (place, column) in rows.columns.iter().enumerate() {
            let is_it = |known: &ColumnDigest| known.name == column.name;
            let known = match self.columns.get(place) {
                Some(there) if is_it(there) => Some(place),
                _ => self.columns.iter().position(is_it),
            };
            let known = known.unwrap_or_else(|| {
                let mut new = ColumnDigest::new(&column.name, &column.data);
                new.add_none(self.rows);
                let place = place.min(self.columns.len());
                self.columns.insert(place, new);
                place
            });
            self.columns[known].add(&column.data);
        }
        for lacking in &mut self.columns {
            if rows.column(&lacking.name).is_none() {
                lacking.add_none(count);
            }
        }
        self.rows += count;
    }

    /// Returns the name of the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the digest of the rows so far.
    pub fn digest(&self) -> Digest {
        let mut hasher = Xxh3Default::new();
        text(&mut hasher, &self.name);
        number(&mut hasher, self.rows);
        number(&mut hasher, self.columns.len());
        for column in &self.columns {
            text(&mut hasher, &column.name);
            text(&mut hasher, column.kind);
            if column.kind == "name" {
                number(&mut hasher, column.names.len());
                column.names.iter().for_each(|name| text(&mut hasher, name));
            }
            hasher.update(&column.values.digest128().to_le_bytes());
        }
        Digest(hasher.digest128())
    }
}

impl std::fmt::Debug for TableDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} rows {}", self.name, self.rows, self.digest())
    }
}

impl ColumnDigest {
    fn new(name: &str, data: &ColumnData) -> ColumnDigest {
        let names = if let ColumnData::Name { names, .. } = data { names.clone() } else { Vec::new() };
        ColumnDigest { name: name.to_owned(), kind: data.type_name(), names, values: Xxh3Default::new() }
    }

    fn add(&mut self, data: &ColumnData) {
        if let ColumnData::Name { names, .. } = data
            && names.len() > self.names.len()
        {
            self.names.clone_from(names);
        }
        values(&mut self.values, data);
    }

    /// Adds rows without a value, which only columns of names can have. The last name of the column is then `none`.
    fn add_none(&mut self, rows: usize) {
        if rows == 0 {
            return;
        }
        if self.names.last().is_none_or(|name| name != NONE) {
            self.names.push(NONE.to_owned());
        }
        let none = (self.names.len() - 1) as u32;
        self.values.update(&little_endian(&vec![none; rows], u32::to_le));
    }
}

impl Table {
    /// Returns the digest of the table, as defined by [`TableDigest`].
    pub fn digest(&self) -> Digest {
        let mut digest = TableDigest::new(&self.name);
        digest.add(self);
        digest.digest()
    }
}

/// Returns whether a table counts in the digest of its trace. Tables with sizes of datagrams do not: sizes are measured
/// only on request.
pub fn counts(table: &str) -> bool {
    TableSchema::of(table).is_none_or(|declared| declared.in_digest)
}

/// Returns the digest of a trace: XXH3-128 over the digests of the counting tables, in their order, 16 bytes each,
/// little endian.
pub fn of_tables(tables: impl IntoIterator<Item = Digest>) -> Digest {
    let mut hasher = Xxh3Default::new();
    tables.into_iter().for_each(|digest| hasher.update(&digest.0.to_le_bytes()));
    Digest(hasher.digest128())
}

impl Trace {
    /// Returns the digest of all tables that [count](counts), in their order. It does not depend on how the trace is
    /// stored.
    pub fn digest(&self) -> Digest {
        of_tables(self.tables.iter().filter(|table| counts(&table.name)).map(Table::digest).collect::<Vec<Digest>>())
    }
}

fn text(hasher: &mut Xxh3Default, text: &str) {
    hasher.update(text.as_bytes());
    hasher.update(&[0]);
}

fn number(hasher: &mut Xxh3Default, number: usize) {
    hasher.update(&(number as u64).to_le_bytes());
}

/// Hashes the values of a column; of names, the codes.
fn values(hasher: &mut Xxh3Default, data: &ColumnData) {
    match data {
        ColumnData::U32(v) => hasher.update(&little_endian(v, u32::to_le)),
        ColumnData::U64(v) => hasher.update(&little_endian(v, u64::to_le)),
        ColumnData::I64(v) => hasher.update(&little_endian(v, i64::to_le)),
        ColumnData::F32(v) => hasher.update(&little_endian(cast_slice::<f32, u32>(v), u32::to_le)),
        ColumnData::F64(v) => hasher.update(&little_endian(cast_slice::<f64, u64>(v), u64::to_le)),
        ColumnData::Bool(v) => hasher.update(&v.iter().map(|flag| u8::from(*flag)).collect::<Vec<_>>()),
        ColumnData::Name { codes, .. } => hasher.update(&little_endian(codes, u32::to_le)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Column;

    fn trace(data: ColumnData) -> Trace {
        let columns = vec![Column::new("c", data)];
        Trace { tables: vec![Table::new("t", columns)], ..Trace::default() }
    }

    #[test]
    fn the_digest_covers_values_types_and_signs_of_zero() {
        let digests = [
            trace(ColumnData::U32(vec![0])),
            trace(ColumnData::U32(vec![0, 0])),
            trace(ColumnData::F32(vec![0.0])),
            trace(ColumnData::F32(vec![-0.0])),
            trace(ColumnData::Name { names: vec!["a".into()], codes: vec![0] }),
            trace(ColumnData::Name { names: vec!["b".into()], codes: vec![0] }),
        ];
        let mut unique = digests.iter().map(Trace::digest).collect::<Vec<_>>();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), digests.len());
    }

    #[test]
    fn the_header_does_not_count() {
        let mut other = trace(ColumnData::U64(vec![7]));
        other.header.mode = "open".into();
        assert_eq!(other.digest(), trace(ColumnData::U64(vec![7])).digest());
    }

    #[test]
    fn the_digest_does_not_depend_on_parts() {
        let names =
            |names: &[&str], codes| ColumnData::Name { names: names.iter().map(|n| (*n).to_owned()).collect(), codes };
        let table = |n: Vec<u32>, optional: Option<ColumnData>, text: ColumnData| {
            let optional = optional.map(|data| Column::new("optional", data));
            let columns = std::iter::once(Column::new("n", ColumnData::U32(n))).chain(optional);
            Table::new("t", columns.chain([Column::new("text", text)]).collect())
        };
        let (none, some) = (|codes| Some(names(&["x", "none"], codes)), names(&["x"], vec![0]));
        let whole = table(vec![1, 2, 3], none(vec![1, 0, 1]), names(&["a", "b"], vec![0, 1, 1]));
        let parts = [
            table(vec![], None, names(&[], vec![])),
            table(vec![1], None, names(&["a"], vec![0])),
            table(vec![2], Some(some), names(&["a", "b"], vec![1])),
            table(vec![3], None, names(&["a", "b"], vec![1])),
        ];
        let mut cut = TableDigest::new("t");
        parts.iter().for_each(|part| cut.add(part));
        assert_eq!((cut.rows(), cut.digest()), (3, whole.digest()));
    }
}

//! Digests of tables and traces. They accept rows in parts, so that a table need not be in memory at once.

use xxhash_rust::xxh3::Xxh3Default;

use super::schema::{NO_SERVER, NONE, NOT_RUN, TableSchema};
use super::{Column, ColumnData, Table, Trace};
use crate::hash::little_endian;
use crate::sorted::SortedMap;

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
/// A column's digest is XXH3-128 over its values, little endian; all NaNs have the same bits, and a `name` counts as its 32-bit place in the list of
/// names. That list begins with the declared names of the column; the others follow in the order of their first rows. So
/// equal values have equal digests, whatever list a file has. A table's digest is XXH3-128 over its name, its number of
/// rows, its number of columns, and its columns. Each column contributes its name, the name of its type and its digest.
/// Before its digest, a `name` column has the number of names and the names. A zero byte follows each name; numbers have
/// 64 bits.
#[derive(Clone)]
pub struct TableDigest {
    name: String,
    is_open: bool,
    rows: usize,
    columns: Vec<ColumnDigest>,
}

#[derive(Clone)]
struct ColumnDigest {
    name: String,
    kind: &'static str,
    rows: usize,
    /// The list of names, and the place of each name in it.
    names: Vec<String>,
    places: SortedMap<String, u32>,
    values: Xxh3Default,
}

impl TableDigest {
    /// Returns the digest of a table without rows. In a trace without a server ([`TraceHeader::is_open`]), the declared
    /// name [`NOT_RUN`] is [`NO_SERVER`].
    ///
    /// [`TraceHeader::is_open`]: super::TraceHeader::is_open
    pub fn new(name: &str, is_open: bool) -> TableDigest {
        TableDigest { name: name.to_owned(), is_open, rows: 0, columns: Vec::new() }
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
                let mut new = ColumnDigest::new((&self.name, self.is_open), column);
                new.add_none_until(self.rows);
                let place = place.min(self.columns.len());
                self.columns.insert(place, new);
                place
            });
            self.columns[known].add(&column.data);
        }
        self.rows += count;
        self.columns.iter_mut().for_each(|column| column.add_none_until(self.rows));
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
    fn new((table, is_open): (&str, bool), column: &Column) -> ColumnDigest {
        let (name, kind) = (column.name.clone(), column.data.type_name());
        let (names, places) = (Vec::new(), SortedMap::new());
        let mut new = ColumnDigest { name, kind, rows: 0, names, places, values: Xxh3Default::new() };
        let declared = TableSchema::of(table).and_then(|table| table.column(&column.name));
        for name in declared.map_or(&[][..], |declared| declared.names) {
            new.place(if is_open && *name == NOT_RUN { NO_SERVER } else { name });
        }
        new
    }

    fn add(&mut self, data: &ColumnData) {
        self.rows += data.len();
        let ColumnData::Name { names, codes } = data else { return values(&mut self.values, data) };
        let mut places: Vec<Option<u32>> = vec![None; names.len()];
        let place = |code: &u32| match places.get_mut(*code as usize) {
            Some(Some(place)) => *place,
            Some(place) => *place.insert(self.place(&names[*code as usize])),
            // A code without a name is in no readable trace.
            None => *code,
        };
        let codes: Vec<u32> = codes.iter().map(place).collect();
        self.values.update(&little_endian(&codes, u32::to_le));
    }

    /// Adds rows without a value up to this number of rows. Only columns of names can have such rows.
    fn add_none_until(&mut self, end: usize) {
        let rows = end.saturating_sub(self.rows);
        if rows > 0 {
            self.rows = end;
            let none = self.place(NONE);
            self.values.update(&little_endian(&vec![none; rows], u32::to_le));
        }
    }

    /// Returns the place of a name in the list; a new name becomes the last.
    fn place(&mut self, name: &str) -> u32 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }
}

impl TableDigest {
    /// Returns the digest of a table that is in memory.
    pub(crate) fn of(table: &Table, is_open: bool) -> Digest {
        let mut digest = TableDigest::new(&table.name, is_open);
        digest.add(table);
        digest.digest()
    }
}

impl Table {
    /// Returns the digest of the table in a trace with a server, as defined by [`TableDigest`].
    pub fn digest(&self) -> Digest {
        TableDigest::of(self, false)
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
        let counting = self.tables.iter().filter(|table| counts(&table.name));
        of_tables(counting.map(|table| TableDigest::of(table, self.header.is_open())))
    }
}

fn text(hasher: &mut Xxh3Default, text: &str) {
    hasher.update(text.as_bytes());
    hasher.update(&[0]);
}

fn number(hasher: &mut Xxh3Default, number: usize) {
    hasher.update(&(number as u64).to_le_bytes());
}

/// The bits that every NaN has in a digest, because comparisons take all NaNs for equal. The bits of a NaN that a program
/// computes depend on the processor and the compiler.
const NAN_BITS: u32 = 0x7fc0_0000;
const NAN_BITS_64: u64 = 0x7ff8_0000_0000_0000;

/// Hashes the values of a column without names.
fn values(hasher: &mut Xxh3Default, data: &ColumnData) {
    match data {
        ColumnData::U32(v) => hasher.update(&little_endian(v, u32::to_le)),
        ColumnData::U64(v) => hasher.update(&little_endian(v, u64::to_le)),
        ColumnData::I64(v) => hasher.update(&little_endian(v, i64::to_le)),
        ColumnData::F32(v) => {
            let bits = |value: &f32| if value.is_nan() { NAN_BITS } else { value.to_bits() };
            hasher.update(&little_endian(&v.iter().map(bits).collect::<Vec<_>>(), u32::to_le));
        }
        ColumnData::F64(v) => {
            let bits = |value: &f64| if value.is_nan() { NAN_BITS_64 } else { value.to_bits() };
            hasher.update(&little_endian(&v.iter().map(bits).collect::<Vec<_>>(), u64::to_le));
        }
        ColumnData::Bool(v) => hasher.update(&v.iter().map(|flag| u8::from(*flag)).collect::<Vec<_>>()),
        ColumnData::Name { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::schema::{executed, name_missing_server, shots};

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

    /// A comparison of traces finds no difference between them either.
    #[test]
    fn nans_with_other_bits_have_the_same_digest() {
        let single = |bits| trace(ColumnData::F32(vec![1.0, f32::from_bits(bits)])).digest();
        let double = |bits| trace(ColumnData::F64(vec![1.0, f64::from_bits(bits)])).digest();
        assert_eq!([single(0xffc0_0000), single(0x7f80_0123)], [single(f32::NAN.to_bits()); 2]);
        assert_eq!([double(0xfff8_0000_0000_0123), double(0x7ff0_0000_0000_0001)], [double(f64::NAN.to_bits()); 2]);
        assert_ne!(single(f32::INFINITY.to_bits()), single(f32::NAN.to_bits()));
    }

    #[test]
    fn the_header_does_not_count() {
        let mut other = trace(ColumnData::U64(vec![7]));
        other.header.mode = "open".into();
        assert_eq!(other.digest(), trace(ColumnData::U64(vec![7])).digest());
    }

    fn names(names: &[&str], codes: Vec<u32>) -> ColumnData {
        ColumnData::Name { names: names.iter().map(|n| (*n).to_owned()).collect(), codes }
    }

    /// A build may list other names, or the same in another order.
    #[test]
    fn the_digest_covers_names_and_not_their_list() {
        let of = |table: &str, column: &str, data| Table::new(table, vec![Column::new(column, data)]).digest();
        assert_eq!(of("t", "c", names(&["a", "b"], vec![0, 1])), of("t", "c", names(&["b", "x", "a"], vec![2, 0])));
        assert_ne!(of("t", "c", names(&["a", "b"], vec![0, 1])), of("t", "c", names(&["a", "b"], vec![1, 0])));
        let mut executed = executed::Writer::default();
        executed.push(executed::Row { player: 0, command: 1, tick: 1, how: 2 });
        let mut written = executed.finish(Vec::new());
        let digest = written.digest();
        written.columns.retain(|column| column.name != "how");
        written.columns.push(Column::new("how", names(&["missing"], vec![0])));
        assert_eq!(written.digest(), digest);
        // In a trace without a server, another name has the place of `not run`.
        let fired = shots::Writer::default().finish(Vec::new());
        let mut unjudged = fired.clone();
        name_missing_server(&mut unjudged);
        assert_eq!(TableDigest::of(&fired, true), TableDigest::of(&unjudged, true));
    }

    #[test]
    fn the_digest_does_not_depend_on_parts() {
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
        let mut cut = TableDigest::new("t", false);
        parts.iter().for_each(|part| cut.add(part));
        assert_eq!((cut.rows(), cut.digest()), (3, whole.digest()));
    }
}

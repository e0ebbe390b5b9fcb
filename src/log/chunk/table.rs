//! A table of a chunk: which series it has, how many rows each, and its packed columns.

use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

use super::Chunk;
use crate::log::column;
use crate::log::limits::Budget;
use crate::record::PlayerRecords;

/// `[ids, rows, columns]`: the series' ids (players or entities), the rows of each, and the columns in the order that
/// the format page gives. A newer minor version may append columns.
#[derive(Serialize, Deserialize)]
pub(super) struct Table<C>(pub(super) Vec<u32>, pub(super) Vec<u32>, pub(super) Vec<C>);

/// A table being laid out from records that lie one series after the other.
pub(super) struct Rows<'a, T> {
    parts: Vec<(u32, &'a [T])>,
    series: Vec<usize>,
    columns: Vec<ByteBuf>,
}

impl<'a, T> Rows<'a, T> {
    /// Series without rows are left out.
    pub(super) fn new(parts: impl Iterator<Item = (u32, &'a [T])>) -> Rows<'a, T> {
        let parts: Vec<_> = parts.filter(|(_, rows)| !rows.is_empty()).collect();
        let series = parts.iter().map(|(_, rows)| rows.len()).collect();
        Rows { parts, series, columns: Vec::new() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a T> + '_ {
        self.parts.iter().flat_map(|(_, rows)| rows.iter())
    }

    /// The series' ids, each with its rows.
    pub(super) fn parts(&self) -> &[(u32, &'a [T])] {
        &self.parts
    }

    fn gather<V>(&self, value: impl Fn(&T) -> V) -> Vec<V> {
        self.iter().map(value).collect()
    }

    pub(super) fn whole(&mut self, value: impl Fn(&T) -> i64) -> Vec<i64> {
        let values = self.gather(value);
        self.raw(column::encode(&values, &self.series));
        values
    }

    pub(super) fn relative(&mut self, references: &[i64], value: impl Fn(&T) -> i64) {
        let values = self.gather(value);
        self.raw(column::encode_relative(&values, references, &self.series));
    }

    pub(super) fn float(&mut self, value: impl Fn(&T) -> f32) {
        let bits = self.gather(|row| value(row).to_bits());
        self.raw(column::encode_f32(&bits, &self.series));
    }

    /// A column that is not packed by rows.
    pub(super) fn raw(&mut self, bytes: Vec<u8>) {
        self.columns.push(ByteBuf::from(bytes));
    }

    pub(super) fn finish(self) -> Option<Table<ByteBuf>> {
        let ids = self.parts.iter().map(|(id, _)| *id).collect();
        let rows = self.series.iter().map(|&rows| rows as u32).collect();
        (!self.series.is_empty()).then_some(Table(ids, rows, self.columns))
    }
}

/// A table being read, column by column.
pub(super) struct Columns<'a> {
    name: &'static str,
    pub(super) ids: &'a [u32],
    pub(super) series: Vec<usize>,
    pub(super) rows: usize,
    columns: std::slice::Iter<'a, &'a Bytes>,
}

impl<'a> Columns<'a> {
    /// Checks the table's shape, and that there is memory for rows of so many bytes.
    pub(super) fn new(
        name: &'static str,
        Table(ids, rows, columns): &'a Table<&'a Bytes>,
        row_bytes: usize,
        budget: &mut Budget,
    ) -> Result<Columns<'a>, String> {
        if ids.len() != rows.len() {
            return Err(format!("table {name} has {} series but rows for {}", ids.len(), rows.len()));
        }
        let series: Vec<usize> = rows.iter().map(|&rows| rows as usize).collect();
        let rows = series.iter().fold(0usize, |sum, &rows| sum.saturating_add(rows));
        budget.take(rows, row_bytes)?;
        Ok(Columns { name, ids, series, rows, columns: columns.iter() })
    }

    fn column<V>(&mut self, name: &str, read: impl Fn(&[u8], &[usize]) -> Result<V, String>) -> Result<V, String> {
        let packed = self.raw(name)?;
        read(packed, &self.series).map_err(|what| format!("table {}, column {name}: {what}", self.name))
    }

    /// The next column's bytes.
    pub(super) fn raw(&mut self, name: &str) -> Result<&'a [u8], String> {
        self.columns.next().map(|b| -> &[u8] { b }).ok_or_else(|| format!("table {} has no column {name}", self.name))
    }

    /// Whether there are columns that were not read yet.
    pub(super) fn has_more(&self) -> bool {
        self.columns.len() > 0
    }

    pub(super) fn whole(&mut self, name: &str) -> Result<Vec<i64>, String> {
        self.column(name, |packed, series| column::decode(packed, series, None))
    }

    pub(super) fn relative(&mut self, name: &str, references: &[i64]) -> Result<Vec<i64>, String> {
        self.column(name, |packed, series| column::decode(packed, series, Some(references)))
    }

    pub(super) fn narrow<V: TryFrom<i64>>(&mut self, name: &str) -> Result<Vec<V>, String> {
        let values = self.whole(name)?;
        self.narrowed(name, values)
    }

    /// The same numbers in a narrower type.
    pub(super) fn narrowed<V: TryFrom<i64>>(&self, name: &str, values: Vec<i64>) -> Result<Vec<V>, String> {
        let narrow = |value: i64| {
            V::try_from(value).map_err(|_| format!("table {}, column {name}: {value} is out of range", self.name))
        };
        values.into_iter().map(narrow).collect()
    }

    pub(super) fn float(&mut self, name: &str) -> Result<Vec<f32>, String> {
        let bits = self.column(name, column::decode_f32)?;
        Ok(bits.into_iter().map(f32::from_bits).collect())
    }

    pub(super) fn cells(&mut self, name: &str) -> Result<Vec<u32>, String> {
        self.column(name, column::decode_cells)
    }

    /// Hands the rows, which lie one player after the other, to their players.
    pub(super) fn deal<T>(
        &self,
        records: impl IntoIterator<Item = T>,
        chunk: &mut Chunk,
        of: impl Fn(&mut PlayerRecords) -> &mut Vec<T>,
    ) -> Result<(), String> {
        let mut records = records.into_iter();
        for (&id, &rows) in self.ids.iter().zip(&self.series) {
            let players = chunk.players.len();
            let player = chunk.players.get_mut(id as usize);
            let player = player.ok_or_else(|| {
                format!("table {}: a record of player {id}, but the session has {players} players", self.name)
            })?;
            of(player).extend(records.by_ref().take(rows));
        }
        Ok(())
    }
}

/// Finds, for each row, the value that belongs to a key among earlier rows of another table of the same player. Where
/// there is none, the row before says it; the first says 0.
pub(super) struct LookUp {
    by_key: Vec<(u32, i64)>,
    last: i64,
}

impl LookUp {
    pub(super) fn new(pairs: impl Iterator<Item = (u32, i64)>) -> LookUp {
        let mut by_key: Vec<_> = pairs.collect();
        // Stable, so that the first of equal keys stays first.
        by_key.sort_by_key(|pair| pair.0);
        LookUp { by_key, last: 0 }
    }

    pub(super) fn next(&mut self, key: u32) -> i64 {
        let place = self.by_key.partition_point(|pair| pair.0 < key);
        if let Some(&(found, value)) = self.by_key.get(place)
            && found == key
        {
            self.last = value;
        }
        self.last
    }
}

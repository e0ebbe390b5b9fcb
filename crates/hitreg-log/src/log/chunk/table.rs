//! A table of a chunk: its series, their row counts, and its packed columns.

use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

use super::RecordSeries;
use super::texts::{ChunkTexts, TextPlaces};
use crate::log::column;
use crate::log::kinds::{NumberPacking, RecordLayout};
use crate::record::{EventTime, NumberForm, PlayerRecords, TextCode};

/// `[ids, rows, columns]`: the ids of the series (players or entities), their row counts, and the columns in the order
/// of the header. Trailing columns of zeros may be left out.
#[derive(Serialize, Deserialize)]
pub(in crate::log) struct PackedTable<C>(
    pub(in crate::log) Vec<u32>,
    pub(in crate::log) Vec<u32>,
    pub(in crate::log) Vec<C>,
);

impl PackedTable<ByteBuf> {
    /// Returns the table without empty columns at the end.
    pub(in crate::log) fn trimmed(ids: Vec<u32>, series: &[usize], mut columns: Vec<ByteBuf>) -> PackedTable<ByteBuf> {
        while columns.last().is_some_and(|last| last.is_empty()) {
            columns.pop();
        }
        PackedTable(ids, series.iter().map(|&rows| rows as u32).collect(), columns)
    }
}

/// Returns the times of the records that keys name, series by series.
pub(super) type NamedTimes<'a> = dyn Fn(&[i64], &[(u32, usize)]) -> Vec<i64> + 'a;

/// A table being encoded from records, one series after the other.
pub(in crate::log) struct TableWriter<'a, T> {
    parts: RecordSeries<'a, T>,
    series: Vec<usize>,
    columns: Vec<ByteBuf>,
}

impl<'a, T> TableWriter<'a, T> {
    /// Leaves out series without rows.
    pub(super) fn new(mut parts: RecordSeries<'a, T>) -> TableWriter<'a, T> {
        parts.retain(|(_, rows)| !rows.is_empty());
        let series = parts.iter().map(|(_, rows)| rows.len()).collect();
        TableWriter { parts, series, columns: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(in crate::log) fn iter(&self) -> impl Iterator<Item = &'a T> + '_ {
        self.parts.iter().flat_map(|(_, rows)| rows.iter())
    }

    /// Returns the rows, each with the id of its series.
    pub(super) fn with_ids(&self) -> impl Iterator<Item = (u32, &'a T)> + '_ {
        self.parts.iter().flat_map(|&(id, rows)| rows.iter().map(move |row| (id, row)))
    }

    fn values<V>(&self, value: impl Fn(&T) -> V) -> Vec<V> {
        let mut values = Vec::with_capacity(self.series.iter().sum());
        values.extend(self.iter().map(value));
        values
    }

    pub(in crate::log) fn whole(&mut self, value: impl Fn(&T) -> i64) {
        self.numbers(&self.values(value));
    }

    pub(super) fn numbers(&mut self, values: &[i64]) {
        self.raw(column::encode(values, &self.series));
    }

    pub(super) fn numbers_as(&mut self, form: NumberForm, values: &[i64]) {
        self.raw(column::encode_as(form, values, &self.series));
    }

    /// Adds a column of texts.
    pub(in crate::log) fn texts(&mut self, code: impl Fn(&T) -> TextCode, texts: &ChunkTexts<'_>) {
        let mut values = self.values(|row| code(row).0 as i64);
        texts.place(&mut values);
        self.numbers(&values);
    }

    pub(in crate::log) fn floats(&mut self, bits: &[u32]) {
        self.raw(column::encode_f32(bits, &self.series));
    }

    /// Adds a column that is not packed by rows.
    pub(in crate::log) fn raw(&mut self, bytes: Vec<u8>) {
        self.columns.push(ByteBuf::from(bytes));
    }

    /// Appends the columns of records in lists of these rows, in series of their own, and `more` columns of them.
    pub(super) fn nest<'n, N: RecordLayout>(
        &mut self,
        parts: RecordSeries<'n, N>,
        more: impl FnOnce(&mut TableWriter<'n, N>),
    ) {
        let mut nested = TableWriter::new(parts);
        nested.put(&|_, _| Vec::new());
        more(&mut nested);
        self.columns.extend(nested.columns);
    }

    pub(super) fn finish(self) -> PackedTable<ByteBuf> {
        PackedTable::trimmed(self.parts.iter().map(|(id, _)| *id).collect(), &self.series, self.columns)
    }
}

impl<T: RecordLayout> TableWriter<'_, T> {
    /// Encodes the columns with one number for each record. `named` returns the times of the records that these keys
    /// name, series by series.
    pub(super) fn put(&mut self, named: &NamedTimes<'_>) {
        let of = |name: &str| T::COLUMNS.iter().find(|column| column.name == name).map(|column| column.get);
        for column in T::COLUMNS {
            let values = self.values(column.get);
            match column.how {
                NumberPacking::Whole => self.numbers(&values),
                NumberPacking::Float => self.floats(&values.into_iter().map(|bits| bits as u32).collect::<Vec<_>>()),
                NumberPacking::To(other) | NumberPacking::ToNamed(other) => {
                    let mut references = of(other).map_or_else(Vec::new, |get| self.values(get));
                    if matches!(column.how, NumberPacking::ToNamed(_)) {
                        references = named(&references, &self.row_counts());
                    }
                    self.raw(column::encode_relative(&values, &references, &self.series));
                }
            }
        }
    }

    fn row_counts(&self) -> Vec<(u32, usize)> {
        self.parts.iter().map(|(id, rows)| (*id, rows.len())).collect()
    }
}

/// A table being decoded, column by column.
pub(in crate::log) struct ColumnReader<'a> {
    pub(super) name: &'a str,
    pub(super) declared: &'a [String],
    pub(super) ids: &'a [u32],
    pub(super) series: Vec<usize>,
    pub(super) rows: usize,
    columns: &'a [&'a Bytes],
}

impl<'a> ColumnReader<'a> {
    pub(super) fn new(
        name: &'a str,
        declared: &'a [String],
        PackedTable(ids, rows, columns): &'a PackedTable<&'a Bytes>,
    ) -> ColumnReader<'a> {
        // A series without a count gets no rows.
        let series: Vec<usize> = rows.iter().take(ids.len()).map(|&rows| rows as usize).collect();
        let rows = series.iter().fold(0usize, |sum, &rows| sum.saturating_add(rows));
        ColumnReader { name, declared, ids, series, rows, columns }
    }

    /// Returns a column's bytes; empty if the table leaves it out.
    pub(in crate::log) fn raw(&self, name: &str) -> &'a [u8] {
        let place = self.declared.iter().position(|declared| declared == name);
        place.map_or(&[], |place| self.at(place))
    }

    /// Returns a column's bytes by its index.
    pub(super) fn at(&self, place: usize) -> &'a [u8] {
        self.columns.get(place).map_or(&[], |bytes| bytes)
    }

    /// Returns the error text for an invalid column.
    pub(super) fn bad(&self, name: &str, what: impl std::fmt::Display) -> String {
        format!("table {}, column {name}: {what}", self.name)
    }

    /// Decodes the records, except their lists. `named` returns the times of the records that these keys name, series
    /// by series.
    pub(super) fn take<T: RecordLayout>(
        &self,
        named: impl Fn(&[i64], &[(u32, usize)]) -> Vec<i64>,
    ) -> Result<Vec<T>, String> {
        let mut records = vec![T::default(); self.rows];
        let of = |name: &str| T::COLUMNS.iter().find(|column| column.name == name).map(|column| column.get);
        for column in T::COLUMNS {
            let packed = self.raw(column.name);
            let values = match column.how {
                NumberPacking::Whole => column::decode(packed, &self.series, None),
                NumberPacking::Float => {
                    column::decode_f32(packed, &self.series).map(|bits| bits.into_iter().map(i64::from).collect())
                }
                NumberPacking::To(other) | NumberPacking::ToNamed(other) => {
                    let mut references: Vec<i64> =
                        of(other).map_or_else(Vec::new, |get| records.iter().map(get).collect());
                    if matches!(column.how, NumberPacking::ToNamed(_)) {
                        references = named(&references, &self.row_counts());
                    }
                    column::decode(packed, &self.series, Some(&references))
                }
            };
            let values = values.map_err(|what| self.bad(column.name, what))?;
            for (record, value) in records.iter_mut().zip(values) {
                if !(column.set)(record, value) {
                    return Err(self.bad(column.name, format_args!("{value} is out of range")));
                }
            }
        }
        Ok(records)
    }

    /// Decodes records in lists of these rows, in series of their own. Their column names begin with `prefix`.
    pub(super) fn nested<T: RecordLayout>(&self, prefix: &str, series: Vec<usize>) -> Result<Vec<T>, String> {
        let names: Vec<String> = T::COLUMNS.iter().map(|column| format!("{prefix}{}", column.name)).collect();
        let bytes: Vec<&Bytes> = names.iter().map(|name| Bytes::new(self.raw(name))).collect();
        let declared: Vec<String> = T::COLUMNS.iter().map(|column| column.name.to_owned()).collect();
        let rows = series.iter().fold(0usize, |sum, &rows| sum.saturating_add(rows));
        let nested = ColumnReader { name: self.name, declared: &declared, ids: &[], series, rows, columns: &bytes };
        nested.take::<T>(|_, _| Vec::new())
    }

    pub(super) fn row_counts(&self) -> Vec<(u32, usize)> {
        self.ids.iter().copied().zip(self.series.iter().copied()).collect()
    }

    /// Decodes texts, one for each row.
    pub(in crate::log) fn texts(&self, name: &str, texts: &TextPlaces) -> Result<Vec<TextCode>, String> {
        let mut values: Vec<i64> = self.narrow(name)?;
        texts.codes(&mut values).map_err(|what| self.bad(name, what))?;
        Ok(values.into_iter().map(|code| TextCode(code as u64)).collect())
    }

    /// Decodes floats, one for each row.
    pub(in crate::log) fn singles(&self, name: &str) -> Result<Vec<f32>, String> {
        let bits = column::decode_f32(self.raw(name), &self.series).map_err(|what| self.bad(name, what))?;
        Ok(bits.into_iter().map(f32::from_bits).collect())
    }

    /// Decodes integers, one for each row, into a narrower type.
    pub(in crate::log) fn narrow<V: TryFrom<i64>>(&self, name: &str) -> Result<Vec<V>, String> {
        self.narrow_list(name, &self.series)
    }

    /// Decodes integers in series of their own.
    pub(super) fn narrow_list<V: TryFrom<i64>>(&self, name: &str, series: &[usize]) -> Result<Vec<V>, String> {
        let values = column::decode(self.raw(name), series, None).map_err(|what| self.bad(name, what))?;
        let mut narrow = Vec::with_capacity(values.len());
        for value in values {
            narrow.push(V::try_from(value).map_err(|_| self.bad(name, format_args!("{value} is out of range")))?);
        }
        Ok(narrow)
    }

    /// Distributes the rows, one player after the other, to their players.
    pub(super) fn distribute<T>(
        &self,
        records: impl IntoIterator<Item = T>,
        players: &mut [PlayerRecords],
        of: impl Fn(&mut PlayerRecords) -> &mut Vec<T>,
    ) -> Result<(), String> {
        let mut records = records.into_iter();
        let all = players.len();
        for (&id, &rows) in self.ids.iter().zip(&self.series) {
            let player = players.get_mut(id as usize);
            let player = player.ok_or_else(|| {
                format!("table {}: a record of player {id}, but the session has {all} players", self.name)
            })?;
            of(player).extend(records.by_ref().take(rows));
        }
        Ok(())
    }
}

/// Finds the time of the record that another record names. If the chunk does not hold it, the result is that of the
/// previous row; initially 0.
pub(super) struct RecordLookup {
    by_key: Vec<(i64, i64)>,
    last: i64,
}

impl RecordLookup {
    /// Searches one player's records of a kind.
    pub(super) fn of<T: RecordLayout>(records: &[T]) -> RecordLookup {
        let key = T::COLUMNS.first().map(|first| first.get);
        let at = |record: &T| match record.when() {
            EventTime::At(at) => Some((key?(record), at.0)),
            EventTime::In(_) => None,
        };
        RecordLookup::among(records.iter().filter_map(at).collect())
    }

    /// Searches these keys and times.
    pub(super) fn among(mut by_key: Vec<(i64, i64)>) -> RecordLookup {
        // The sort is stable, so the first of equal keys stays first.
        by_key.sort_by_key(|pair| pair.0);
        RecordLookup { by_key, last: 0 }
    }

    pub(super) fn next(&mut self, key: i64) -> i64 {
        let place = self.by_key.partition_point(|pair| pair.0 < key);
        if let Some(&(found, value)) = self.by_key.get(place)
            && found == key
        {
            self.last = value;
        }
        self.last
    }
}

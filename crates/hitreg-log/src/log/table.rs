//! A table of a chunk: its series, their row counts, and its packed columns.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

use super::chunk::{ChunkTexts, RecordSeries, TextCodes};
use super::column::{self, Effort};
use super::kinds::{NumberPacking, RecordLayout};
use crate::record::{EventTime, NumberForm, PlayerRecords, TextCode};
use crate::sorted::SortedMap;

/// `[ids, rows, columns]`: the ids of the series (players or entities), their row counts, and the columns in the order
/// of the header. Trailing columns of zeros may be left out.
#[derive(Serialize, Deserialize)]
pub(super) struct PackedTable<C>(pub(super) Vec<u32>, pub(super) Vec<u32>, pub(super) Vec<C>);

impl PackedTable<ByteBuf> {
    /// Returns the table without empty columns at the end.
    pub(super) fn trimmed(ids: Vec<u32>, series: &[usize], mut columns: Vec<ByteBuf>) -> PackedTable<ByteBuf> {
        while columns.last().is_some_and(|last| last.is_empty()) {
            columns.pop();
        }
        PackedTable(ids, series.iter().map(|&rows| rows as u32).collect(), columns)
    }
}

/// Returns the times of the records to which keys refer, series by series.
type ReferencedTimes<'a> = dyn Fn(&[i64], &[(u32, usize)]) -> Vec<i64> + 'a;

/// Columns being encoded, with the ids of their series and the row count of each.
pub(super) struct ColumnWriter {
    ids: Vec<u32>,
    series: Vec<usize>,
    columns: Vec<ByteBuf>,
}

impl ColumnWriter {
    /// Returns the columns of rows that are grouped by series.
    pub(super) fn of_series(rows: &SortedMap<u32, Vec<usize>>) -> ColumnWriter {
        let (ids, series) = rows.iter().map(|(id, rows)| (*id, rows.len())).unzip();
        ColumnWriter { ids, series, columns: Vec::new() }
    }

    pub(super) fn numbers(&mut self, values: &[i64]) {
        self.raw(column::encode(values, &self.series));
    }

    /// Adds a column of numbers in a form. With `texts`, the numbers are codes of texts.
    pub(super) fn numbers_as(&mut self, form: NumberForm, mut values: Vec<i64>, texts: Option<&ChunkTexts<'_>>) {
        texts.into_iter().for_each(|texts| texts.to_indices(&mut values));
        self.raw(column::encode_as(form, &values, &self.series, Effort::Full));
    }

    /// Adds a column that is not packed by rows.
    pub(super) fn raw(&mut self, bytes: Vec<u8>) {
        self.columns.push(ByteBuf::from(bytes));
    }

    /// Adds a column of a record kind. `references` has the values of the column that `how` names.
    fn packed(&mut self, how: NumberPacking, values: &[i64], references: &[i64], times: &ReferencedTimes<'_>) {
        match how {
            NumberPacking::Whole => self.numbers(values),
            NumberPacking::Float => self.raw(column::encode_as(NumberForm::F32, values, &self.series, Effort::Full)),
            NumberPacking::To(_) => self.raw(column::encode_relative(values, references, &self.series)),
            NumberPacking::ToTimeOf(_) => {
                let times = times(references, &row_counts(&self.ids, &self.series));
                self.raw(column::encode_relative(values, &times, &self.series));
            }
        }
    }

    pub(super) fn finish(self) -> PackedTable<ByteBuf> {
        PackedTable::trimmed(self.ids, &self.series, self.columns)
    }
}

fn row_counts(ids: &[u32], series: &[usize]) -> Vec<(u32, usize)> {
    ids.iter().copied().zip(series.iter().copied()).collect()
}

/// A table being encoded from records, one series after the other.
pub(super) struct TableWriter<'a, T> {
    records: RecordSeries<'a, T>,
    /// The encoded columns. Code that does not depend on the type of the records is compiled once.
    pub(super) columns: ColumnWriter,
}

impl<'a, T> TableWriter<'a, T> {
    /// Leaves out series without rows.
    pub(super) fn new(mut records: RecordSeries<'a, T>) -> TableWriter<'a, T> {
        records.retain(|(_, rows)| !rows.is_empty());
        let (ids, series) = records.iter().map(|(id, rows)| (*id, rows.len())).unzip();
        TableWriter { records, columns: ColumnWriter { ids, series, columns: Vec::new() } }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a T> + '_ {
        self.records.iter().flat_map(|(_, rows)| rows.iter())
    }

    /// Returns the rows, each with the id of its series.
    pub(super) fn with_ids(&self) -> impl Iterator<Item = (u32, &'a T)> + '_ {
        self.records.iter().flat_map(|&(id, rows)| rows.iter().map(move |row| (id, row)))
    }

    fn values(&self, value: impl Fn(&T) -> i64) -> Vec<i64> {
        let mut values = Vec::with_capacity(self.columns.series.iter().sum());
        for (_, rows) in &self.records {
            for row in *rows {
                values.push(value(row));
            }
        }
        values
    }

    pub(super) fn whole(&mut self, value: impl Fn(&T) -> i64) {
        self.columns.numbers(&self.values(value));
    }

    /// Adds a column of texts.
    pub(super) fn texts(&mut self, code: impl Fn(&T) -> TextCode, texts: &ChunkTexts<'_>) {
        let values = self.values(|row| code(row).0 as i64);
        self.columns.numbers_as(NumberForm::Integer, values, Some(texts));
    }

    /// Appends the columns of records in lists of these rows, in series of their own, and `more` columns of them.
    pub(super) fn nest<'n, N: RecordLayout>(
        &mut self,
        records: RecordSeries<'n, N>,
        more: impl FnOnce(&mut TableWriter<'n, N>),
    ) {
        let mut nested = TableWriter::new(records);
        nested.put(&|_, _| Vec::new());
        more(&mut nested);
        self.columns.columns.extend(nested.columns.columns);
    }
}

impl<T: RecordLayout> TableWriter<'_, T> {
    /// Encodes the columns with one number for each record. `times` returns the times of the records to which these
    /// keys refer, series by series.
    pub(super) fn put(&mut self, times: &ReferencedTimes<'_>) {
        for column in T::COLUMNS {
            let values = self.values(column.get);
            let references = T::referenced(column).map_or_else(Vec::new, |get| self.values(get));
            self.columns.packed(column.how, &values, &references, times);
        }
    }

    /// Returns each row's series and key, by which other kinds refer to it.
    pub(super) fn keys(&self) -> Vec<(u32, i64)> {
        let keys = T::COLUMNS.first().map_or_else(Vec::new, |key| self.values(key.get));
        let ids = row_counts(&self.columns.ids, &self.columns.series);
        ids.into_iter().flat_map(|(id, rows)| std::iter::repeat_n(id, rows)).zip(keys).collect()
    }
}

/// A table being decoded, column by column.
pub(super) struct ColumnReader<'a> {
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
    pub(super) fn raw(&self, name: &str) -> &'a [u8] {
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

    /// Decodes the records, except their lists. `times` returns the times of the records to which these keys refer,
    /// series by series.
    pub(super) fn take<T: RecordLayout>(&self, times: &ReferencedTimes<'_>) -> Result<Vec<T>, String> {
        let mut records = vec![T::default(); self.rows];
        for column in T::COLUMNS {
            let references =
                T::referenced(column).map_or_else(Vec::new, |get| records.iter().map(get).collect::<Vec<i64>>());
            let values = self.packed(column.name, column.how, &references, times)?;
            for (record, value) in records.iter_mut().zip(values) {
                if !(column.set)(record, value) {
                    return Err(self.out_of_range(column.name, value));
                }
            }
        }
        Ok(records)
    }

    /// Decodes a column of a record kind. `references` has the values of the column that `how` names.
    fn packed(
        &self,
        name: &str,
        how: NumberPacking,
        references: &[i64],
        times: &ReferencedTimes<'_>,
    ) -> Result<Vec<i64>, String> {
        let packed = self.raw(name);
        let values = match how {
            NumberPacking::Whole => column::decode(packed, &self.series, None),
            NumberPacking::Float => column::decode_as(NumberForm::F32, packed, &self.series),
            NumberPacking::To(_) => column::decode(packed, &self.series, Some(references)),
            NumberPacking::ToTimeOf(_) => {
                column::decode(packed, &self.series, Some(&times(references, &self.row_counts())))
            }
        };
        values.map_err(|what| self.bad(name, what))
    }

    fn out_of_range(&self, name: &str, value: i64) -> String {
        self.bad(name, format_args!("{value} is out of range"))
    }

    /// Decodes records in lists of these rows, in series of their own. Their column names begin with `prefix`.
    pub(super) fn nested<T: RecordLayout>(&self, prefix: &str, series: Vec<usize>) -> Result<Vec<T>, String> {
        let declared = T::column_names();
        let bytes: Vec<&Bytes> = declared.iter().map(|name| Bytes::new(self.raw(&format!("{prefix}{name}")))).collect();
        let rows = series.iter().fold(0usize, |sum, &rows| sum.saturating_add(rows));
        let nested = ColumnReader { name: self.name, declared: &declared, ids: &[], series, rows, columns: &bytes };
        nested.take::<T>(&|_, _| Vec::new())
    }

    pub(super) fn row_counts(&self) -> Vec<(u32, usize)> {
        row_counts(self.ids, &self.series)
    }

    /// Decodes texts, one for each row.
    pub(super) fn texts(&self, name: &str, texts: &TextCodes) -> Result<Vec<TextCode>, String> {
        let mut values: Vec<i64> = self.narrow(name)?;
        texts.to_codes(&mut values).map_err(|what| self.bad(name, what))?;
        Ok(values.into_iter().map(|code| TextCode(code as u64)).collect())
    }

    /// Decodes floats, one for each row.
    pub(super) fn singles(&self, name: &str) -> Result<Vec<f32>, String> {
        let bits = self.numbers(NumberForm::F32, name, &self.series)?;
        Ok(bits.into_iter().map(|bits| f32::from_bits(bits as u32)).collect())
    }

    /// Decodes numbers of a form, in series of their own.
    pub(super) fn numbers(&self, form: NumberForm, name: &str, series: &[usize]) -> Result<Vec<i64>, String> {
        column::decode_as(form, self.raw(name), series).map_err(|what| self.bad(name, what))
    }

    /// Decodes integers, one for each row, into a narrower type.
    pub(super) fn narrow<V: TryFrom<i64>>(&self, name: &str) -> Result<Vec<V>, String> {
        self.narrow_list(name, &self.series)
    }

    /// Decodes integers in series of their own.
    pub(super) fn narrow_list<V: TryFrom<i64>>(&self, name: &str, series: &[usize]) -> Result<Vec<V>, String> {
        let values = self.numbers(NumberForm::Integer, name, series)?;
        let mut narrow = Vec::with_capacity(values.len());
        for value in values {
            narrow.push(V::try_from(value).map_err(|_| self.out_of_range(name, value))?);
        }
        Ok(narrow)
    }

    /// Returns the players who have rows, ascending, and their rows.
    pub(super) fn rows_of_players(&self, players: usize) -> Result<Vec<(usize, Range<usize>)>, String> {
        if let Some(id) = self.ids.iter().find(|id| **id as usize >= players) {
            let name = self.name;
            return Err(format!("table {name}: a record of player {id}, but the session has {players} players"));
        }
        let mut begin = 0;
        let rows = self.ids.iter().zip(&self.series).map(|(id, rows)| {
            begin += rows;
            (*id as usize, begin - rows..begin)
        });
        Ok(rows.collect())
    }

    /// Distributes the rows, one player after the other, to their players.
    pub(super) fn distribute<T>(
        &self,
        records: Vec<T>,
        players: &mut [PlayerRecords],
        of: impl Fn(&mut PlayerRecords) -> &mut Vec<T>,
    ) -> Result<(), String> {
        let mut records = records.into_iter();
        for (player, rows) in self.rows_of_players(players.len())? {
            of(&mut players[player]).extend(records.by_ref().take(rows.len()));
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

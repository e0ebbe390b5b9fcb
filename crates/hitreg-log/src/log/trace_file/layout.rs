//! One chunk of a trace: rows of one table as a MessagePack map.

use std::borrow::Cow;
use std::ops::Range;

use bytemuck::{NoUninit, cast_slice};
use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

use super::TraceLayout;
use super::packed_views::{self, DrawnMap, RecentStates};
use crate::log::chunk::put_messagepack;
use crate::log::column::{self, Effort};
use crate::log::container::NextChunk;
use crate::log::error::{CHUNK_MEMORY_BYTES_MAX, COLUMNS_MAX, WriteError};
use crate::log::index::PartRows;
use crate::record::{NumberForm, lowest_and_highest};
use crate::sorted::SortedSet;
use crate::trace::schema::views;
use crate::trace::{Column, ColumnData, Table};

/// Columns of type u32 with these names identify the series of a row. Packed columns are predicted within each series.
const SERIES: [&str; 2] = ["player", "entity"];

/// The most columns that may identify a chunk's series.
const SERIES_MAX: usize = 16;

/// The extra memory for unpacking one view, in bytes: its frame, its states and its lists.
const DRAWN_BYTES: usize = 144;

/// The most names whose codes fit into one byte.
const SMALL_CODES_MAX: usize = 256;

#[derive(PartialEq, Serialize, Deserialize)]
pub(in crate::log) struct RowMap<'a, C, B> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
    #[serde(borrow)]
    table: Cow<'a, str>,
    rows: u32,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    key: Vec<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    series: Vec<Cow<'a, str>>,
    columns: Vec<C>,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    drawn: Option<DrawnMap<B>>,
}

#[derive(PartialEq, Serialize, Deserialize)]
pub(in crate::log) struct ColumnMap<'a, B> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    unit: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    #[serde(borrow, default = "raw", skip_serializing_if = "is_raw")]
    transform: Cow<'a, str>,
    data: B,
}

fn raw<'a>() -> Cow<'a, str> {
    "raw".into()
}

fn is_raw(transform: &str) -> bool {
    transform == "raw"
}

/// A table in the index of a file: a map as in a chunk without rows, and without the chunk's place.
pub(in crate::log) type TableMap<'a, B> = RowMap<'a, ColumnMap<'a, B>, B>;

/// Returns the map of a table in an index.
pub(in crate::log) fn table_map(table: &Table) -> TableMap<'_, ByteBuf> {
    let column = |column| column_map(column, "raw", ByteBuf::new());
    let columns = table.columns.iter().map(column).collect();
    let key = table.key.iter().map(Cow::from).collect();
    let table = Cow::from(&table.name);
    RowMap { index: None, before: None, table, rows: 0, key, series: Vec::new(), columns, drawn: None }
}

/// Returns the table of a map in an index.
pub(in crate::log) fn empty_table(map: &TableMap<'_, &Bytes>) -> Result<Table, String> {
    check_map(map)?;
    Ok(without_rows(map))
}

fn column_map<'a, B>(column: &'a Column, transform: &'a str, data: B) -> ColumnMap<'a, B> {
    let names = if let ColumnData::Name { names, .. } = &column.data { names.clone() } else { Vec::new() };
    let (name, kind, unit) = (Cow::from(&column.name), Cow::from(kind(&column.data)), Cow::from(&column.unit));
    ColumnMap { name, kind, unit, names, transform: transform.into(), data }
}

/// Checks that the columns form a table.
pub(super) fn check(table: &Table) -> Result<(), WriteError> {
    let bad = |what: String| Err(WriteError::BadTable { table: table.name.clone(), what });
    if let Some(name) = table.key.iter().find(|name| table.column(name).is_none()) {
        return bad(format!("its key {name:?} is not one of its columns"));
    }
    for (place, column) in table.columns.iter().enumerate() {
        if table.columns[..place].iter().any(|other| other.name == column.name) {
            return bad(format!("there are two columns {:?}", column.name));
        }
        if column.data.len() != table.rows() {
            return bad(format!("column {:?} has {} rows and others {}", column.name, column.data.len(), table.rows()));
        }
        if let Err(what) = check_codes(&column.data) {
            return bad(format!("column {:?}: {what}", column.name));
        }
    }
    Ok(())
}

fn check_codes(data: &ColumnData) -> Result<(), String> {
    let ColumnData::Name { names, codes } = data else { return Ok(()) };
    match codes.iter().position(|&code| code as usize >= names.len()) {
        Some(row) => Err(format!("row {row} has code {}, but there are {} names", codes[row], names.len())),
        None => Ok(()),
    }
}

/// Chunks of views also hold the states that they are packed against, so longer chunks are more efficient.
const VIEWS_TIMES: usize = 4;

/// Returns how many rows of a table fit into this many bytes; at least one.
pub(super) fn rows_per_chunk(table: &Table, bytes: usize) -> usize {
    let bytes = if table.name == views::NAME { VIEWS_TIMES * bytes } else { bytes };
    let row: usize = table.columns.iter().map(|column| column.data.width()).sum();
    (bytes / row.max(1)).clamp(1, 1 << 20)
}

/// Returns what some rows of a table have for the index. Their times are those of the first column whose name ends with
/// `at_us`, or else their ticks.
pub(super) fn part_rows(table: &Table, rows: Range<usize>) -> PartRows {
    let times = match table.time_column().map(|column| &column.data) {
        Some(ColumnData::I64(times)) => lowest_and_highest(times[rows.clone()].iter().copied()),
        Some(ColumnData::U32(ticks)) => lowest_and_highest(ticks[rows.clone()].iter().map(|tick| i64::from(*tick))),
        _ => None,
    };
    PartRows { table: table.without_rows(), rows: rows.len() as u32, times, players: Vec::new() }
}

/// Returns how many bytes of memory a table needs.
pub(super) fn memory(table: &Table) -> usize {
    let names = |data: &ColumnData| match data {
        ColumnData::Name { names, .. } => names.iter().map(|name| name.len() + size_of::<String>()).sum(),
        _ => 0,
    };
    let column = |c: &Column| size_of::<Column>() + c.name.len() + c.unit.len() + c.data.len() * c.data.width();
    size_of::<Table>() + table.name.len() + table.columns.iter().map(|c| column(c) + names(&c.data)).sum::<usize>()
}

/// Returns how many bytes a table needs after `rows` are appended, when all rows have the columns of both.
pub(super) fn memory_together(table: &Table, rows: &Table) -> usize {
    let beyond = |columns: &[Column], of: &[Column]| -> usize {
        let given: SortedSet<&str> = of.iter().map(|column| &*column.name).collect();
        columns.iter().filter(|column| !given.contains(&*column.name)).map(|column| column.data.width()).sum()
    };
    let wider = table.rows().saturating_mul(beyond(&rows.columns, &table.columns));
    let longer = rows.rows().saturating_mul(beyond(&table.columns, &rows.columns));
    memory(table).saturating_add(memory(rows)).saturating_add(wider.saturating_add(longer))
}

/// Encodes some rows of a checked table, and appends them to bytes.
pub(super) fn encode(
    table: &Table,
    rows: Range<usize>,
    layout: TraceLayout,
    past: &RecentStates,
    next: NextChunk,
    to: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let packs = layout == TraceLayout::Packed;
    let drawn = if packs { packed_views::encode(table, rows.clone(), past) } else { None };
    let packs_columns = packs && drawn.is_none();
    let keys = table.columns.iter().filter(|_| packs_columns).filter_map(|column| key(column, &rows));
    let keys: Vec<(&str, &[u32])> = keys.collect();
    let grouping = RowGrouping::new(rows.len(), keys.iter().map(|(_, key)| *key));
    let columns = table.columns.iter().map(|column| {
        let (transform, data) = match key(column, &rows) {
            _ if drawn.is_some() => (packed_views::TRANSFORM, Vec::new()),
            _ if !packs => plain_bytes(&column.data, rows.clone()),
            Some((_, key)) => {
                let values: Vec<i64> = key.iter().map(|&v| i64::from(v)).collect();
                ("packed", column::encode_as(NumberForm::Integer, &values, &[rows.len()], Effort::Sample))
            }
            None => ("packed", grouping.pack(&column.data, rows.start)),
        };
        column_map(column, transform, ByteBuf::from(data))
    });
    let columns: Vec<_> = columns.collect();
    let map = RowMap {
        index: Some(next.index),
        before: Some(next.before),
        table: Cow::from(&table.name),
        rows: rows.len() as u32,
        key: table.key.iter().map(Cow::from).collect(),
        series: keys.iter().map(|(name, _)| Cow::from(*name)).collect(),
        columns,
        drawn,
    };
    put_messagepack(&map, to)
}

/// The transform of a column that is stored as runs of equal values.
const RUNS: &str = "runs";

/// The shortest mean length of the runs of such a column, in rows.
const RUN_ROWS: usize = 4;

/// How many rows are searched for runs before the search can end.
const COUNTED_TOGETHER: usize = 1 << 12;

/// Returns values as they are in memory, little-endian, and the transform: one by one, or in runs if these are long.
fn plain_bytes(data: &ColumnData, rows: Range<usize>) -> (&'static str, Vec<u8>) {
    match data {
        ColumnData::U32(values) => bytes_of(&values[rows], u32::to_le_bytes),
        ColumnData::U64(values) => bytes_of(&values[rows], u64::to_le_bytes),
        ColumnData::I64(values) => bytes_of(&values[rows], i64::to_le_bytes),
        // By their bits, floats are equal to themselves.
        ColumnData::F32(values) => bytes_of(cast_slice(&values[rows]), u32::to_le_bytes),
        ColumnData::F64(values) => bytes_of(cast_slice(&values[rows]), u64::to_le_bytes),
        ColumnData::Bool(values) => bytes_of(cast_slice(&values[rows]), u8::to_le_bytes),
        ColumnData::Name { codes, .. } if kind(data) == "u32" => bytes_of(&codes[rows], u32::to_le_bytes),
        ColumnData::Name { codes, .. } => {
            let codes: Vec<u8> = codes[rows].iter().map(|code| *code as u8).collect();
            bytes_of(&codes, u8::to_le_bytes)
        }
    }
}

fn bytes_of<V: NoUninit + PartialEq, const N: usize>(
    values: &[V],
    to_bytes: impl Fn(V) -> [u8; N],
) -> (&'static str, Vec<u8>) {
    let most = values.len() / RUN_ROWS;
    let (mut starts, mut counted) = (0, 0);
    // A column with short runs has them mostly from the start. Their starts are added up without a branch; a part is too
    // short for the sum to wrap.
    while starts <= most && counted + 1 < values.len() {
        let part = &values[counted..values.len().min(counted + COUNTED_TOGETHER)];
        let is_new = |sum: u32, (a, b): (&V, &V)| sum.wrapping_add(u32::from(a != b));
        starts += part.iter().zip(&part[1..]).fold(0, is_new) as usize;
        counted += part.len() - 1;
    }
    if starts < most {
        let mut bytes = Vec::with_capacity((starts + 1) * (size_of::<u32>() + N));
        for run in values.chunk_by(|a, b| a == b) {
            bytes.extend_from_slice(&(run.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&to_bytes(run[0]));
        }
        return (RUNS, bytes);
    }
    let bytes = match cfg!(target_endian = "little") {
        true => cast_slice(values).to_vec(),
        false => values.iter().flat_map(|value| to_bytes(*value)).collect(),
    };
    ("raw", bytes)
}

/// Returns the name of a column's type in files. A `name` has codes of one byte; codes of more names are a `u32` with
/// names.
fn kind(data: &ColumnData) -> &'static str {
    match data {
        ColumnData::Name { names, .. } if names.len() > SMALL_CODES_MAX => "u32",
        other => other.type_name(),
    }
}

/// Returns the rows of a column that identifies series; `None` for any other column.
fn key<'a>(column: &'a Column, rows: &Range<usize>) -> Option<(&'a str, &'a [u32])> {
    match &column.data {
        ColumnData::U32(values) if SERIES.contains(&&column.name[..]) => Some((&column.name, &values[rows.clone()])),
        _ => None,
    }
}

/// Returns a chunk's table with all columns and without rows, and its number of rows.
pub(super) fn shape(content: &[u8]) -> Result<(Table, u64), String> {
    let map = map_of(content)?;
    Ok((without_rows(&map), map.rows.into()))
}

fn without_rows(map: &TableMap<'_, &Bytes>) -> Table {
    let column = |column: &ColumnMap<'_, &Bytes>| {
        let names = column.names.clone();
        let data = match &*column.kind {
            "u64" => ColumnData::U64(Vec::new()),
            "i64" => ColumnData::I64(Vec::new()),
            "f32" => ColumnData::F32(Vec::new()),
            "f64" => ColumnData::F64(Vec::new()),
            "bool" => ColumnData::Bool(Vec::new()),
            "name" => ColumnData::Name { names, codes: Vec::new() },
            _ if !names.is_empty() => ColumnData::Name { names, codes: Vec::new() },
            _ => ColumnData::U32(Vec::new()),
        };
        Column::new(column.name.as_ref(), data).in_unit(column.unit.as_ref())
    };
    let table = Table::new(map.table.clone(), map.columns.iter().map(column).collect());
    table.keyed_by(map.key.iter().map(|name| &**name))
}

/// Returns whether two chunks hold the same rows of one table, packed in the same way.
pub(super) fn is_same(a: &[u8], b: &[u8]) -> Result<bool, String> {
    let [a, b] = [map_of(a)?, map_of(b)?].map(|map| TableMap { index: None, before: None, ..map });
    Ok(a == b)
}

/// Decodes the rows of a chunk. `only` selects columns by name; empty selects all.
pub(super) fn decode(content: &[u8], only: &[&str]) -> Result<Table, String> {
    rows_of(&map_of(content)?, only)
}

/// Decodes the rows of a chunk, with the results of [`shape`].
pub(super) fn decode_with_shape(content: &[u8], only: &[&str]) -> Result<(Table, u64, Table), String> {
    let map = map_of(content)?;
    Ok((without_rows(&map), map.rows.into(), rows_of(&map, only)?))
}

fn rows_of(map: &TableMap<'_, &Bytes>, only: &[&str]) -> Result<Table, String> {
    let rows = map.rows as usize;
    // Estimates the memory of a row: its values, its series, and two 8-byte numbers while a column is unpacked. Packed
    // views need more.
    let drawn_bytes = if map.drawn.is_some() { DRAWN_BYTES } else { 0 };
    let memory = rows.saturating_mul(8 * (map.columns.len() + map.series.len()) + 24 + drawn_bytes);
    if memory > CHUNK_MEMORY_BYTES_MAX {
        return Err(format!("its {rows} rows would take more than {} MiB of memory", CHUNK_MEMORY_BYTES_MAX >> 20));
    }
    let mut keys: Vec<Vec<u32>> = Vec::new();
    for name in &map.series {
        let column = map.columns.iter().find(|column| column.name == *name && column.kind == "u32");
        let column =
            column.ok_or_else(|| format!("its series are those of a column {name:?} that it does not have"))?;
        keys.push(u32s(column, &RowGrouping::alone(rows))?);
    }
    let (alone, grouped) = (RowGrouping::alone(rows), RowGrouping::new(rows, keys.iter().map(|key| &key[..])));
    let ways = packed_views::placement_names(map.columns.iter().map(|column| (&*column.name, &column.names[..])));
    let mut drawn = map.drawn.as_ref().map(|drawn| packed_views::decode(drawn, rows, ways)).transpose()?;
    let wanted = map.columns.iter().filter(|column| only.is_empty() || only.contains(&&*column.name));
    let columns = wanted.map(|column| {
        let data = if column.transform == packed_views::TRANSFORM {
            let unpacked = drawn.as_mut().and_then(|drawn| drawn.take(&column.name, &column.kind, &column.names));
            let data = unpacked.filter(|data| data.len() == rows);
            let data = data.ok_or_else(|| format!("column {:?} does not follow from the views", column.name))?;
            check_codes(&data).map(|()| data)
        } else {
            column_data(column, if map.series.contains(&column.name) { &alone } else { &grouped })
        };
        let data = data.map_err(|what| format!("column {:?}: {what}", column.name))?;
        Ok(Column::new(column.name.as_ref(), data).in_unit(column.unit.as_ref()))
    });
    let table = Table::new(map.table.clone(), columns.collect::<Result<_, String>>()?);
    Ok(table.keyed_by(map.key.iter().map(|name| &**name)))
}

/// Decodes a chunk's map and checks its declarations.
fn map_of(content: &[u8]) -> Result<TableMap<'_, &Bytes>, String> {
    let map = crate::serial::from_msgpack(content).map_err(|error| format!("it is not a map of rows ({error})"))?;
    check_map(&map)?;
    Ok(map)
}

/// Checks the declarations of a map.
fn check_map(map: &TableMap<'_, &Bytes>) -> Result<(), String> {
    if let Some((count, most, what)) =
        [(map.series.len(), SERIES_MAX, "series"), (map.columns.len(), COLUMNS_MAX, "columns")]
            .into_iter()
            .find(|(count, most, _)| count > most)
    {
        return Err(format!("it has {count} {what}, and may have {most}"));
    }
    if let Some(name) = map.key.iter().find(|name| !map.columns.iter().any(|column| column.name == **name)) {
        return Err(format!("its key {name:?} is not one of its columns"));
    }
    let mut names = SortedSet::new();
    match map.columns.iter().find(|column| !names.insert(&*column.name)) {
        Some(column) => Err(format!("there are two columns {:?}", column.name)),
        None => Ok(()),
    }
}

fn column_data(column: &ColumnMap<'_, &Bytes>, grouping: &RowGrouping) -> Result<ColumnData, String> {
    use NumberForm::{F32, F64, Integer};
    let data = match &*column.kind {
        "u32" if column.names.is_empty() => ColumnData::U32(u32s(column, grouping)?),
        "u32" => ColumnData::Name { names: column.names.clone(), codes: u32s(column, grouping)? },
        "u64" => ColumnData::U64(values(column, grouping, Integer, u64::from_le_bytes, |v| Some(v as u64))?),
        "i64" => ColumnData::I64(values(column, grouping, Integer, i64::from_le_bytes, Some)?),
        "name" => {
            let codes = values(column, grouping, Integer, |[code]: [u8; 1]| code.into(), |v| v.try_into().ok())?;
            ColumnData::Name { names: column.names.clone(), codes }
        }
        "f32" => {
            let float = |bits| Some(f32::from_bits(bits as u32));
            ColumnData::F32(values(column, grouping, F32, f32::from_le_bytes, float)?)
        }
        "f64" => {
            let float = |bits| Some(f64::from_bits(bits as u64));
            ColumnData::F64(values(column, grouping, F64, f64::from_le_bytes, float)?)
        }
        "bool" => {
            let flags = values(column, grouping, Integer, |[flag]: [u8; 1]| flag, |v| v.try_into().ok())?;
            match flags.iter().position(|flag| *flag > 1) {
                None => ColumnData::Bool(flags.into_iter().map(|flag| flag == 1).collect()),
                Some(row) => return Err(format!("the value of row {row} is neither 0 nor 1")),
            }
        }
        other => return Err(format!("its type is {other:?}, which is none of u32, u64, i64, f32, f64, bool, name")),
    };
    check_codes(&data)?;
    Ok(data)
}

fn u32s(column: &ColumnMap<'_, &Bytes>, grouping: &RowGrouping) -> Result<Vec<u32>, String> {
    values(column, grouping, NumberForm::Integer, u32::from_le_bytes, |v| v.try_into().ok())
}

/// Returns the values of a column: raw ones from their bytes, or packed ones from numbers of this form.
fn values<V: Clone + Default, const N: usize>(
    column: &ColumnMap<'_, &Bytes>,
    grouping: &RowGrouping,
    form: NumberForm,
    raw: impl Fn([u8; N]) -> V,
    packed: impl Fn(i64) -> Option<V>,
) -> Result<Vec<V>, String> {
    match &*column.transform {
        "raw" if column.data.len() != grouping.rows() * N => {
            Err(format!("it has {} bytes for {} rows of {N}", column.data.len(), grouping.rows()))
        }
        "raw" => Ok(column.data.as_chunks().0.iter().map(|bytes| raw(*bytes)).collect()),
        RUNS => values_of_runs(column.data, grouping.rows(), raw),
        "packed" => grouping.scatter(column::decode_as(form, column.data, &grouping.series)?, packed),
        other => Err(format!("its transform is {other:?}, which is none of raw, runs, packed")),
    }
}

fn values_of_runs<V: Clone, const N: usize>(
    bytes: &[u8],
    rows: usize,
    raw: impl Fn([u8; N]) -> V,
) -> Result<Vec<V>, String> {
    let mut values = Vec::with_capacity(rows);
    for run in bytes.chunks(size_of::<u32>() + N) {
        let parts = run.split_first_chunk().and_then(|(length, value)| Some((length, value.first_chunk()?)));
        let (length, value) = parts.ok_or("its last run is cut off")?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > rows - values.len() {
            return Err(format!("its runs have more than {rows} rows"));
        }
        values.resize(values.len() + length, raw(*value));
    }
    match values.len() == rows {
        true => Ok(values),
        false => Err(format!("its runs have {} rows in place of {rows}", values.len())),
    }
}

/// Rows grouped by series, in ascending order of the keys; within a series in table order.
struct RowGrouping {
    /// The chunk's row at each position; `None` if each row is in its place.
    order: Option<Vec<u32>>,
    pub(super) series: Vec<usize>,
}

/// The most different keys that are sorted by counting.
const COUNTED_KEYS_MAX: usize = 1 << 16;

impl RowGrouping {
    pub(super) fn new<'a>(rows: usize, keys: impl Iterator<Item = &'a [u32]>) -> RowGrouping {
        let keys: Vec<&[u32]> = keys.collect();
        if keys.is_empty() {
            return RowGrouping::alone(rows);
        }
        let mut order: Vec<u32> = (0..rows as u32).collect();
        for key in keys.iter().rev() {
            sort_by_key(&mut order, key);
        }
        let is_same = |a: &u32, b: &u32| keys.iter().all(|key| key[*a as usize] == key[*b as usize]);
        let series = order.chunk_by(is_same).map(<[u32]>::len).collect();
        RowGrouping { order: Some(order), series }
    }

    /// All rows in one series.
    fn alone(rows: usize) -> RowGrouping {
        RowGrouping { order: None, series: if rows == 0 { Vec::new() } else { vec![rows] } }
    }

    pub(super) fn rows(&self) -> usize {
        self.series.iter().sum()
    }

    /// Groups values by series.
    fn gather(&self, value: impl Fn(usize) -> i64) -> Vec<i64> {
        match &self.order {
            Some(order) => order.iter().map(|row| value(*row as usize)).collect(),
            None => (0..self.rows()).map(value).collect(),
        }
    }

    pub(super) fn pack(&self, data: &ColumnData, start: usize) -> Vec<u8> {
        use NumberForm::{F32, F64, Integer};
        match data {
            ColumnData::U32(v) => self.packed(Integer, |row| v[start + row].into()),
            ColumnData::U64(v) => self.packed(Integer, |row| v[start + row] as i64),
            ColumnData::I64(v) => self.packed(Integer, |row| v[start + row]),
            ColumnData::Name { codes, .. } => self.packed(Integer, |row| codes[start + row].into()),
            ColumnData::Bool(v) => self.packed(Integer, |row| v[start + row].into()),
            ColumnData::F64(v) => self.packed(F64, |row| v[start + row].to_bits() as i64),
            ColumnData::F32(v) => self.packed(F32, |row| v[start + row].to_bits().into()),
        }
    }

    fn packed(&self, form: NumberForm, value: impl Fn(usize) -> i64) -> Vec<u8> {
        column::encode_as(form, &self.gather(value), &self.series, Effort::Sample)
    }

    /// Restores the order of rows in the chunk.
    fn scatter<V: Clone + Default>(
        &self,
        packed: Vec<i64>,
        value: impl Fn(i64) -> Option<V>,
    ) -> Result<Vec<V>, String> {
        let wrong = |row: usize| format!("the value of row {row} is out of range");
        let Some(order) = &self.order else {
            let values = packed.into_iter().enumerate();
            return values.map(|(row, packed)| value(packed).ok_or_else(|| wrong(row))).collect();
        };
        let mut rows = vec![V::default(); order.len()];
        for (&row, packed) in order.iter().zip(packed) {
            rows[row as usize] = value(packed).ok_or_else(|| wrong(row as usize))?;
        }
        Ok(rows)
    }
}

/// Sorts rows by their key. Rows with equal keys stay in their order.
fn sort_by_key(order: &mut Vec<u32>, key: &[u32]) {
    let most = key.iter().max().map_or(0, |most| *most as usize);
    if most >= COUNTED_KEYS_MAX.min(2 * key.len()) {
        order.sort_unstable_by_key(|row| (key[*row as usize], *row));
        return;
    }
    let mut places = vec![0u32; most + 2];
    key.iter().for_each(|key| places[*key as usize + 1] += 1);
    for place in 1..places.len() {
        places[place] += places[place - 1];
    }
    let mut sorted = vec![0; order.len()];
    for row in &*order {
        let place = &mut places[key[*row as usize] as usize];
        sorted[*place as usize] = *row;
        *place += 1;
    }
    *order = sorted;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_must_have_all_rows_of_a_column() {
        let values = |bytes: &[u8]| values_of_runs(bytes, 5, |[value]: [u8; 1]| value);
        assert_eq!(values(&[2, 0, 0, 0, 7, 3, 0, 0, 0, 9]), Ok(vec![7, 7, 9, 9, 9]));
        assert_eq!(values(&[2, 0, 0, 0, 7]), Err("its runs have 2 rows in place of 5".to_owned()));
        assert_eq!(values(&[]), Err("its runs have 0 rows in place of 5".to_owned()));
        assert_eq!(values(&[255, 255, 255, 255, 7]), Err("its runs have more than 5 rows".to_owned()));
        assert_eq!(values(&[5, 0, 0, 0, 7, 1, 0, 0, 0, 7]), Err("its runs have more than 5 rows".to_owned()));
        assert_eq!(values(&[5, 0, 0, 0]), Err("its last run is cut off".to_owned()));
    }
}

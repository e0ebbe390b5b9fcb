//! A chunk's MessagePack map: its place in the file, and its tables by name.

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};

use super::states;
use super::table::{ColumnReader, PackedTable};
use super::texts::TEXTS;
use crate::log::container::Chain;
use crate::log::error::WriteError;
use crate::log::schema::Schema;
use crate::serial::MessagePackReader;
use crate::sorted::SortedMap;

/// The entries that begin every chunk after the first, in logs and traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ChunkPosition {
    /// The chunk's number; the header is chunk 0.
    pub(crate) index: u32,
    /// The digest of all chunks before it; foreign writers may leave it out.
    #[serde(default)]
    pub(crate) before: Option<u64>,
    /// Whether this is the last chunk, which holds no records.
    #[serde(default)]
    pub(crate) end: bool,
}

pub(crate) fn to_messagepack(map: &impl Serialize) -> Result<Vec<u8>, WriteError> {
    let mut bytes = Vec::new();
    put_messagepack(map, &mut bytes)?;
    Ok(bytes)
}

/// Appends a map to bytes.
pub(crate) fn put_messagepack(map: &impl Serialize, to: &mut Vec<u8>) -> Result<(), WriteError> {
    rmp_serde::encode::write_named(to, map).map_err(|error| WriteError::Io(std::io::Error::other(error)))
}

/// The tables of a chunk to write, without empty ones.
#[derive(Default)]
pub(super) struct ChunkTables(Vec<(String, PackedTable<ByteBuf>)>);

impl ChunkTables {
    pub(super) fn add(&mut self, name: impl Into<String>, table: Option<PackedTable<ByteBuf>>) {
        self.0.extend(table.map(|table| (name.into(), table)));
    }
}

/// The map of a chunk to write: its number, the digest of all chunks before it, its tables and its texts.
pub(super) struct ChunkMap<'a>(pub(super) u32, pub(super) Chain, pub(super) &'a ChunkTables, pub(super) &'a [&'a str]);

impl Serialize for ChunkMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ChunkMap(index, before, ChunkTables(tables), texts) = self;
        let has_texts = usize::from(!texts.is_empty());
        let mut map = serializer.serialize_map(Some(2 + has_texts + tables.len()))?;
        map.serialize_entry("index", index)?;
        map.serialize_entry("before", &before.0)?;
        if has_texts > 0 {
            map.serialize_entry(TEXTS, texts)?;
        }
        for (name, table) in tables {
            map.serialize_entry(name, table)?;
        }
        map.end()
    }
}

/// The tables of a decoded chunk, and its texts.
pub(super) struct DecodedTables<'a> {
    tables: SortedMap<&'a str, PackedTable<&'a Bytes>>,
    pub(super) texts: Vec<&'a str>,
}

impl<'a> DecodedTables<'a> {
    pub(super) fn of(&self, name: &str) -> Option<&PackedTable<&'a Bytes>> {
        self.tables.get(name)
    }

    /// Returns the columns of a table.
    pub(super) fn columns<'t>(&'t self, name: &'t str, schema: &'t Schema) -> Option<ColumnReader<'t>> {
        let table = self.tables.get(name)?;
        Some(ColumnReader::new(name, schema.columns(name).unwrap_or_default(), table))
    }

    /// Returns the number of rows of each table.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&'a str, usize)> + '_ {
        let sum = |PackedTable(_, rows, _): &PackedTable<&Bytes>| {
            rows.iter().fold(0usize, |sum, rows| sum.saturating_add(*rows as usize))
        };
        self.tables.iter().map(move |(name, table)| (*name, sum(table)))
    }
}

/// The most MessagePack values in a chunk of a log: tables, columns, and two for each series of each table.
const MOST_VALUES: u64 = 1 << 20;

/// Decodes a chunk's map. It ignores tables that the log does not declare.
pub(super) fn decode<'a>(content: &'a [u8], schema: &Schema, classes: usize) -> Result<DecodedTables<'a>, String> {
    crate::serial::count_values(MOST_VALUES, content).map_err(|error| format!("it is too large ({error})"))?;
    let read = Seed { schema, classes }.deserialize(&mut MessagePackReader::new(content));
    let read = read.map_err(|error| format!("it is not a chunk's map ({error})"))?;
    for (name, PackedTable(ids, rows, _)) in &read.tables {
        if ids.len() != rows.len() {
            return Err(format!("table {name} has {} series but rows for {}", ids.len(), rows.len()));
        }
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(format!("table {name}: series {} comes after {}", pair[1], pair[0]));
        }
    }
    Ok(read)
}

/// Returns whether the log declares a table.
pub(in crate::log) fn is_declared(table: &str, schema: &Schema, classes: usize) -> bool {
    states::class_of_table(table).is_some_and(|class| class < classes) || schema.columns(table).is_some()
}

struct Seed<'s> {
    schema: &'s Schema,
    classes: usize,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = DecodedTables<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<DecodedTables<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = DecodedTables<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a map of tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DecodedTables<'de>, A::Error> {
        let (mut tables, mut texts) = (SortedMap::new(), Vec::new());
        while let Some(name) = map.next_key::<&str>()? {
            if name == TEXTS {
                texts = map.next_value()?;
                continue;
            }
            if !is_declared(name, self.schema, self.classes) {
                map.next_value::<IgnoredAny>()?;
            } else if tables.insert(name, map.next_value::<PackedTable<&Bytes>>()?).is_some() {
                return Err(A::Error::custom(format_args!("table {name} appears twice")));
            }
        }
        Ok(DecodedTables { tables, texts })
    }
}

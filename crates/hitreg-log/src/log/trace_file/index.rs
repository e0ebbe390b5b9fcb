//! An index of a trace's chunks, to read its tables one by one.

use std::io::Read;

use super::{LogError, TraceReader, layout};
use crate::log::chunks::place;
use crate::log::frames::{FileFrames, FrameError, Unpacker};
use crate::trace::{ColumnData, Table, TraceHeader};

/// The index of a trace that was read once and is undamaged.
#[derive(Debug)]
pub struct TraceIndex {
    header: TraceHeader,
    tables: Vec<(Table, u64)>,
    chunks: Vec<Chunk>,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// The index in `tables`.
    table: usize,
    index: u32,
    offset: u64,
}

impl<R: Read> TraceReader<R> {
    /// Reads the trace to its end and indexes its rows, without unpacking columns.
    ///
    /// # Errors
    /// When the trace is cut off or damaged.
    pub fn index(mut self) -> Result<TraceIndex, LogError> {
        let (mut tables, mut chunks) = (Vec::<(Table, u64)>::new(), Vec::new());
        while let Some(content) = self.chunks.next()? {
            let (table, rows) = layout::shape(&content.bytes).map_err(|what| content.corrupt(what))?;
            let known = tables.iter().position(|(known, _)| known.name == table.name);
            let place = known.unwrap_or(tables.len());
            match tables.get_mut(place) {
                Some((known, before)) => {
                    if rows > 0 && *before > 0 {
                        check_next_part(known, &table).map_err(|what| content.corrupt(what))?;
                    }
                    if rows > 0 {
                        known.widen(table, *before == 0);
                    }
                    *before += rows;
                }
                None => tables.push((table, rows)),
            }
            if rows > 0 {
                chunks.push(Chunk { table: place, index: content.index, offset: content.offset });
            }
        }
        Ok(TraceIndex { header: self.header, tables, chunks })
    }
}

impl TraceIndex {
    /// Returns the trace's header.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Returns the tables with all columns and without rows, each with its number of rows.
    pub fn tables(&self) -> &[(Table, u64)] {
        &self.tables
    }

    /// Returns how many bytes of memory all rows together need.
    pub fn memory(&self) -> usize {
        let of = |(table, rows): &(Table, u64)| {
            let row: usize = table.columns.iter().map(|column| column.data.width()).sum();
            layout::memory(table).saturating_add(row.saturating_mul(usize::try_from(*rows).unwrap_or(usize::MAX)))
        };
        self.tables.iter().map(of).fold(0, usize::saturating_add)
    }

    /// Returns the offsets of a table's chunks, in bytes from the start of the file.
    pub fn parts_of(&self, table: &str) -> impl Iterator<Item = u64> + use<'_> {
        let place = self.tables.iter().position(|(known, _)| known.name == table);
        self.chunks.iter().filter(move |chunk| Some(chunk.table) == place).map(|chunk| chunk.offset)
    }

    /// Reads the rows of one chunk. `from` reads the file from `offset` on. `only` selects columns by name; empty
    /// selects all.
    ///
    /// # Errors
    /// When the file changed after it was indexed.
    pub fn part(&self, from: impl Read, offset: u64, only: &[&str]) -> Result<Table, LogError> {
        let known = self.chunks.iter().find(|chunk| chunk.offset == offset).map_or(0, |chunk| chunk.index);
        let corrupt = |what| LogError::Corrupt { offset, part: format!("chunk {known}"), what };
        let frame = match FileFrames::new(from, offset).next() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Err(corrupt("the file has become shorter".to_owned())),
            Err(FrameError::Io(error)) => return Err(error.into()),
            Err(error) => return Err(corrupt(error.to_string())),
        };
        let content = Unpacker::default().unpack(&frame).map_err(corrupt)?;
        match place(&content).map_err(corrupt)? {
            place if place.index == known => {}
            place => return Err(corrupt(format!("another chunk {} is in its place now", place.index))),
        }
        layout::decode(&content, only).map_err(corrupt)
    }
}

/// Checks whether more rows may have these columns. Only columns of names may appear, disappear, or get more names.
fn check_next_part(known: &Table, more: &Table) -> Result<(), String> {
    let another = |name: &str| format!("column {name:?} has another type or other names here than where it began");
    for column in &more.columns {
        match (known.column(&column.name).map(|known| &known.data), &column.data) {
            (Some(ColumnData::Name { names, .. }), ColumnData::Name { names: more, .. }) => {
                let common = names.len().min(more.len());
                if names[..common] != more[..common] {
                    return Err(another(&column.name));
                }
            }
            (Some(known), data) if known.type_name() == data.type_name() => {}
            (None, ColumnData::Name { .. }) => {}
            _ => return Err(another(&column.name)),
        }
    }
    let is_lacking = |known: &&crate::trace::Column| more.column(&known.name).is_none();
    match known.columns.iter().filter(is_lacking).find(|known| !matches!(known.data, ColumnData::Name { .. })) {
        Some(_) => Err(format!("table {:?} has other columns here than where it began", more.name)),
        None => Ok(()),
    }
}

//! A trace with its index, whose chunks are read in any order.

use std::io::{Read, Seek, SeekFrom};

use super::{LogError, TraceReader, layout, rows_of};
use crate::log::chunks::ChunkContent;
use crate::log::index::{FileIndex, IndexBuilder, IndexedRows, PartRows, chunk_at, content_of, frame_at, read_index};
use crate::trace::{ColumnData, ColumnSpan, Table, TraceHeader};

/// The header and the index of a trace.
#[derive(Debug)]
pub struct IndexedTrace {
    header: TraceHeader,
    index: FileIndex,
}

impl<R: Read> TraceReader<R> {
    /// Reads the trace to its end, and returns its index.
    fn build_index(mut self) -> Result<FileIndex, LogError> {
        let mut index = IndexBuilder::default();
        while let Some(content) = self.next_content()? {
            let (table, rows) = layout::shape(&content.bytes).map_err(|what| content.corrupt(what))?;
            if let Some(known) = index.table(&table.name).filter(|known| rows > 0 && known.rows() > 0) {
                check_columns(&known.table, &table).map_err(|what| content.corrupt(what))?;
            }
            let part = part_of(&content, &table)?;
            self.check.add(&content, &rows_of(&part));
            let rows = layout::part_rows(&part, 0..part.rows());
            index.add(content.index, vec![PartRows { table, ..rows }]);
        }
        Ok(index.finish(self.chunks.table))
    }
}

/// Decodes only the times of a chunk. `table` has its columns.
fn part_of(content: &ChunkContent, table: &Table) -> Result<Table, LogError> {
    let first = table.columns.first();
    let only = table.time_column().or(first).map(|column| &*column.name);
    let decoded = layout::decode(&content.bytes, only.as_slice());
    decoded.map_err(|what| content.corrupt(what))
}

impl IndexedTrace {
    /// Opens a trace. It reads only the header and the index, or the whole trace if it has no index.
    ///
    /// # Errors
    /// When the trace cannot be read, or what is read of it is damaged.
    pub fn open<R: Read + Seek>(mut from: R) -> Result<IndexedTrace, LogError> {
        let reader = TraceReader::new(&mut from)?;
        let (header, sealed) = (reader.header, reader.chunks.sealed);
        let index = if sealed && let Some(index) = read_index(&mut from)? {
            index
        } else {
            from.seek(SeekFrom::Start(0))?;
            TraceReader::new(&mut from)?.build_index()?
        };
        Ok(IndexedTrace { header, index })
    }

    /// Returns the trace's header.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Returns the index.
    pub fn index(&self) -> &FileIndex {
        &self.index
    }

    /// Returns the tables with all columns and without rows, each with its number of rows.
    pub fn tables(&self) -> impl Iterator<Item = (&Table, u64)> {
        self.index.tables().iter().map(|known| (&known.table, known.rows()))
    }

    /// Returns the numbers of the chunks that have rows of a table, in order. With `span`, chunks without a row in it may
    /// be missing.
    pub fn chunks_of(&self, table: &str, span: Option<ColumnSpan<'_>>) -> impl Iterator<Item = u32> + use<'_> {
        let known = self.index.table(table);
        let column = known.and_then(|known| known.table.time_column()).map(|column| &*column.name);
        let span = span.filter(|span| Some(span.column) == column).map(|span| (span.first, span.last));
        let is_near = move |part: &&IndexedRows| match (part.times, span) {
            (Some((first, last)), Some((from, to))) => first <= to && from <= last,
            _ => true,
        };
        let parts = known.into_iter().flat_map(|known| &known.parts);
        parts.filter(is_near).map(|part| part.chunk)
    }

    /// Returns whether a table has the same rows in the same chunks of another trace, by their packed bytes. `false` does
    /// not mean that the rows differ. `files` are those of both traces.
    ///
    /// # Errors
    /// When a chunk cannot be read, is damaged, or has other rows than the index lists.
    pub fn has_same_chunks(
        &self,
        other: &IndexedTrace,
        table: &str,
        [file, of_other]: [&mut (impl Read + Seek); 2],
    ) -> Result<bool, LogError> {
        let (Some(a), Some(b)) = (self.index.table(table), other.index.table(table)) else { return Ok(false) };
        let is_alike = |(a, b): (&IndexedRows, &IndexedRows)| (a.rows, a.times) == (b.rows, b.times);
        if a.table != b.table || a.parts.len() != b.parts.len() || !a.parts.iter().zip(&b.parts).all(is_alike) {
            return Ok(false);
        }
        for (a, b) in a.parts.iter().zip(&b.parts) {
            let frames =
                [frame_at(file, &self.index.sizes, a.chunk)?, frame_at(of_other, &other.index.sizes, b.chunk)?];
            let content = content_of(&frames[0], a.chunk)?;
            if a.chunk != b.chunk || frames[0].bytes != frames[1].bytes {
                let of_other = content_of(&frames[1], b.chunk)?;
                if !layout::is_same(&content.bytes, &of_other.bytes).map_err(|what| content.corrupt(what))? {
                    return Ok(false);
                }
            }
            let (shape, rows) = layout::shape(&content.bytes).map_err(|what| content.corrupt(what))?;
            self.index.check_count(&content, &shape.name, rows)?;
        }
        Ok(true)
    }

    /// Reads the rows of one chunk. `only` selects columns by name; empty selects all.
    ///
    /// # Errors
    /// When the chunk cannot be read, is damaged, or has other rows than the index lists.
    pub fn chunk(&self, mut from: impl Read + Seek, chunk: u32, only: &[&str]) -> Result<Table, LogError> {
        let (_, content) = chunk_at(&mut from, &self.index, chunk)?;
        let decoded = layout::decode_with_shape(&content.bytes, only).map_err(|what| content.corrupt(what))?;
        let (shape, rows, table) = decoded;
        if let Some(known) = self.index.table(&shape.name) {
            check_columns(&known.table, &shape).map_err(|what| content.corrupt(what))?;
        }
        let has_times = shape.time_column().is_none_or(|time| table.column(&time.name).is_some());
        match has_times {
            true => self.index.check(&content, &rows_of(&table), &|_| true)?,
            false => self.index.check_count(&content, &shape.name, rows)?,
        }
        Ok(table)
    }
}

/// Checks whether more rows may have these columns. Only columns of names may appear, disappear, or get more names.
fn check_columns(known: &Table, more: &Table) -> Result<(), String> {
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

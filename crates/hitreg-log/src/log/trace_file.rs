//! Traces in the container: each chunk holds rows of one table. Foreign builds write the plain layout. This library
//! packs the columns and predicts each row from the previous row of the same entity.

mod layout;
mod packed_views;

use std::io::{Read, Seek, SeekFrom, Write};

pub(super) use layout::{TableMap, empty_table, table_map};

use super::chunks::{ChunkContent, Chunks};
use super::container::ChunkSink;
use super::error::{LogError, WriteError};
use super::header::{self, FileKind, FormatVersion};
use super::index::{
    ChunkRows, FileIndex, IndexBuilder, IndexCheck, IndexedRows, PartRows, chunk_at, content_of, frame_at, read_index,
};
use crate::memory::MemoryLimit;
use crate::sorted::{SortedMap, SortedSet};
use crate::trace::{ColumnSpan, Table, Trace, TraceHeader};
use packed_views::RecentStates;

/// The most bytes of columns in memory in one chunk; a larger row gets a chunk of its own.
const CHUNK_BYTES: usize = 2 << 20;
/// The layout of the rows in the chunks of a trace. Readers read any mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceLayout {
    /// Columns are predicted and packed, for files that are kept.
    Packed,
    /// Columns are as in memory or in runs of equal values, for files that are read once: faster to write and to read,
    /// and about fifteen times as large.
    Raw,
}

impl TraceLayout {
    fn zstd_level(self) -> i32 {
        match self {
            TraceLayout::Packed => 3,
            TraceLayout::Raw => -100,
        }
    }
}

/// Writes a trace.
///
/// # Errors
/// When writing fails, or a table is invalid.
pub fn write_trace<W: Write>(out: W, trace: &Trace) -> Result<W, WriteError> {
    let mut writer = TraceWriter { forgets: false, ..TraceWriter::new(out, &trace.header)? };
    for (place, table) in trace.tables.iter().enumerate() {
        if trace.tables[..place].iter().any(|other| other.name == table.name) {
            let what = "there are two tables of this name".into();
            return Err(WriteError::BadTable { table: table.name.clone(), what });
        }
        writer.rows(table)?;
    }
    writer.finish()
}

/// Writes a trace in pieces.
pub struct TraceWriter<W> {
    sink: ChunkSink<W>,
    layout: TraceLayout,
    /// The names of the tables written so far.
    tables: SortedSet<String>,
    /// The recent states that views are packed against.
    past: RecentStates,
    /// Whether to drop old states.
    forgets: bool,
    /// The content of the last chunk, whose memory the next one uses.
    content: Vec<u8>,
}

crate::partial_debug!([W] TraceWriter<W> { tables });

impl<W: Write> TraceWriter<W> {
    /// Writes the header of a new trace.
    ///
    /// # Errors
    /// When writing fails.
    pub fn new(out: W, header: &TraceHeader) -> Result<TraceWriter<W>, WriteError> {
        TraceWriter::in_layout(TraceLayout::Packed, out, header)
    }

    fn in_layout(layout: TraceLayout, out: W, header: &TraceHeader) -> Result<TraceWriter<W>, WriteError> {
        let mut sink = ChunkSink::new(out, layout.zstd_level())?;
        sink.write_chunk("the header", &header::encode(FileKind::Trace, header)?, None, ChunkRows::new())?;
        let (tables, past) = (SortedSet::new(), RecentStates::default());
        Ok(TraceWriter { sink, layout, tables, past, forgets: true, content: Vec::new() })
    }

    /// Writes a table, or more rows of one. Tables keep the order of their first call, with or without rows.
    ///
    /// # Errors
    /// When writing fails, or the table is invalid.
    pub fn rows(&mut self, table: &Table) -> Result<(), WriteError> {
        layout::check(table)?;
        let (rows, step) = (table.rows(), layout::rows_per_chunk(table, CHUNK_BYTES));
        if rows == 0 && self.tables.contains(&table.name) {
            return Ok(());
        }
        self.tables.insert(table.name.clone());
        if self.layout == TraceLayout::Packed {
            self.past.add(table);
        }
        if self.forgets {
            self.past.forget();
        }
        for start in (0..rows.max(1)).step_by(step) {
            let part = start..rows.min(start + step);
            self.content.clear();
            layout::encode(table, part.clone(), self.layout, &self.past, self.sink.next(), &mut self.content)?;
            self.sink.write_chunk("a chunk of rows", &self.content, None, vec![layout::part_rows(table, part)])?;
        }
        Ok(())
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(self) -> Result<W, WriteError> {
        self.sink.finish()
    }
}

/// The most pieces of tables that may wait for the writer.
const QUEUED_PIECES_MAX: usize = 4;

/// Writes a trace while `make` produces its header and rows. Another thread packs, compresses and writes. Returns the
/// result of `make`.
///
/// # Errors
/// When writing fails, or a table is invalid.
pub fn write_trace_meanwhile<W: Write + Send, T>(
    layout: TraceLayout,
    out: W,
    make: impl FnOnce(&mut dyn FnMut(&TraceHeader, Table)) -> T,
) -> Result<T, WriteError> {
    let (jobs, waiting) = std::sync::mpsc::sync_channel::<(Option<TraceHeader>, Table)>(QUEUED_PIECES_MAX);
    let work = move || -> Result<(), WriteError> {
        let mut out = Some(out);
        let mut writer: Option<TraceWriter<W>> = None;
        for (header, table) in waiting {
            if let (Some(header), Some(out)) = (header, out.take_if(|_| writer.is_none())) {
                writer = Some(TraceWriter::in_layout(layout, out, &header)?);
            }
            writer.as_mut().map_or(Ok(()), |writer| writer.rows(&table))?;
        }
        writer.map_or(Ok(()), |writer| writer.finish().map(drop))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("trace writer".into());
        let thread = thread.spawn_scoped(scope, work).map_err(super::no_thread)?;
        let mut begun = false;
        let made = make(&mut |header, table| {
            let header = (!std::mem::replace(&mut begun, true)).then(|| header.clone());
            // A stopped writer returns its error from the join.
            let _ = jobs.send((header, table));
        });
        drop(jobs);
        match thread.join() {
            Ok(written) => written.map(|()| made),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Reads a trace of any length chunk by chunk.
pub struct TraceReader<R> {
    chunks: Chunks<R>,
    header: TraceHeader,
    format: FormatVersion,
    check: IndexCheck,
}

crate::partial_debug!([R] TraceReader<R> { header });

impl<R: Read> TraceReader<R> {
    /// Opens a trace and reads its header. The reads are small, so `from` should be buffered.
    ///
    /// # Errors
    /// When the file is not a trace that this build reads, or its header is damaged.
    pub fn new(from: R) -> Result<TraceReader<R>, LogError> {
        let (chunks, (header, format)) = Chunks::open(from, |content| header::decode(content, FileKind::Trace))?;
        Ok(TraceReader { chunks, header, format, check: IndexCheck::default() })
    }

    /// Returns the trace's header.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Returns the version of the trace's format.
    pub fn format(&self) -> FormatVersion {
        self.format
    }

    /// Returns the next rows of any table; `None` at the end of a complete, undamaged trace.
    ///
    /// # Errors
    /// When the trace is cut off or damaged here. Rows returned earlier are good.
    pub fn next_rows(&mut self) -> Result<Option<Table>, LogError> {
        let Some(content) = self.next_content()? else { return Ok(None) };
        let table = layout::decode(&content.bytes, &[]).map_err(|what| content.corrupt(what))?;
        self.check.add(&content, &rows_of(&table));
        Ok(Some(table))
    }

    fn next_content(&mut self) -> Result<Option<ChunkContent>, LogError> {
        self.check.next(&mut self.chunks, &|_| true)
    }
}

/// Returns what a chunk with these rows has for the index.
fn rows_of(table: &Table) -> ChunkRows {
    let part = layout::part_rows(table, 0..table.rows());
    if part.rows == 0 { ChunkRows::new() } else { vec![part] }
}

/// Reads a whole trace.
///
/// # Errors
/// When the bytes are not a trace that this build reads, when any bit changed, or when the file is cut off.
/// Also when the file needs more memory than the default limit ([`MemoryLimit`]).
pub fn read_trace(from: impl Read) -> Result<Trace, LogError> {
    read_trace_within(MemoryLimit::default(), from)
}

/// Reads a whole trace within another memory limit.
///
/// # Errors
/// As [`read_trace`].
pub fn read_trace_within(limit: MemoryLimit, from: impl Read) -> Result<Trace, LogError> {
    let mut reader = TraceReader::new(from)?;
    let mut trace = Trace { header: reader.header.clone(), tables: Vec::new() };
    let mut places: SortedMap<String, usize> = SortedMap::new();
    // The memory of each table. Rows with more columns make all rows of their table wider.
    let mut used: Vec<usize> = Vec::new();
    loop {
        let offset = reader.chunks.offset();
        let Some(rows) = reader.next_rows()? else { return Ok(trace) };
        let known = places.get(&rows.name).copied();
        match known {
            Some(place) => used[place] = layout::memory_together(&trace.tables[place], &rows),
            None => used.push(layout::memory(&rows)),
        }
        limit.check(used.iter().fold(0, |sum: usize, table| sum.saturating_add(*table)))?;
        if let Some(place) = known {
            let appended = trace.tables[place].append(rows);
            appended.map_err(|error| LogError::corrupt(offset, "a chunk of rows", error.0))?;
        } else {
            places.insert(rows.name.clone(), trace.tables.len());
            trace.tables.push(rows);
        }
    }
}

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
                known.table.check_columns(&table).map_err(|what| content.corrupt(what))?;
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
            known.table.check_columns(&shape).map_err(|what| content.corrupt(what))?;
        }
        let has_times = shape.time_column().is_none_or(|time| table.column(&time.name).is_some());
        match has_times {
            true => self.index.check(&content, &rows_of(&table), &|_| true)?,
            false => self.index.check_count(&content, &shape.name, rows)?,
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::container::NextChunk;
    use crate::trace::{Column, ColumnData};

    const FIRST: NextChunk = NextChunk { index: 1, before: 0 };

    /// Rows with many columns make all rows of their table wider, in either order.
    #[test]
    fn wider_rows_count_for_the_memory_limit() {
        let table = |columns: usize, rows: usize| {
            Table::new(
                "wide",
                (0..columns).map(|n| Column::new(format!("c{n}"), ColumnData::U32(vec![0; rows]))).collect(),
            )
        };
        for order in [[(4_000, 1), (4, 16_000)], [(4, 16_000), (4_000, 1)]] {
            let mut writer = TraceWriter::new(Vec::new(), &TraceHeader::default()).unwrap();
            order.iter().for_each(|(columns, rows)| writer.rows(&table(*columns, *rows)).unwrap());
            let file = writer.finish().unwrap();
            assert!(file.len() < 1 << 20, "{}", file.len());
            let read = read_trace_within(MemoryLimit::of_bytes(40 << 20), &file[..]);
            assert!(matches!(read, Err(LogError::NeedsMemory(_))), "{read:?}");
        }
    }

    /// Long rows of each type, whose values change in each row or stay for some.
    fn table_of_all_types(stays: usize) -> Table {
        fn column<V: Copy>(stays: usize, values: [V; 4]) -> Vec<V> {
            (0..9_001).map(|row| values[row / stays % 4]).collect()
        }
        let names = |count: u32| (0..count).map(|n| format!("name{n}")).collect();
        let columns = vec![
            Column::new("player", ColumnData::U32(column(stays, [1, 0, 1, u32::MAX]))),
            Column::new("count", ColumnData::U64(column(stays, [u64::MAX, 0, 1, 2]))),
            Column::new("at_us", ColumnData::I64(column(stays, [i64::MIN, -1, 0, i64::MAX]))),
            Column::new("x", ColumnData::F32(column(stays, [-0.0, 0.0, f32::INFINITY, 1.5]))),
            Column::new("y", ColumnData::F64(column(stays, [-0.0, f64::MIN_POSITIVE, 1e300, 0.1]))),
            Column::new("flag", ColumnData::Bool(column(stays, [true, false, true, false]))),
            Column::new("few", ColumnData::Name { names: names(2), codes: column(stays, [1, 0, 1, 0]) }),
            Column::new("many", ColumnData::Name { names: names(300), codes: column(stays, [299, 0, 256, 255]) }),
        ];
        Table::new("t", columns).keyed_by(["player"])
    }

    #[test]
    fn raw_traces_have_the_rows_of_packed_ones() {
        for (stays, has_runs) in [(1, false), (3, false), (5, true), (100, true), (10_000, true)] {
            let table = table_of_all_types(stays);
            let read = |layout| {
                let mut file = Vec::new();
                write_trace_meanwhile(layout, &mut file, |write| write(&TraceHeader::default(), table.clone()))
                    .unwrap();
                read_trace(&file[..]).unwrap()
            };
            let [packed, raw] = [TraceLayout::Packed, TraceLayout::Raw].map(read);
            assert_eq!(packed.tables, std::slice::from_ref(&table));
            assert_eq!(raw.digest(), packed.digest());
            let (past, mut content) = (RecentStates::default(), Vec::new());
            layout::encode(&table, 0..table.rows(), TraceLayout::Raw, &past, FIRST, &mut content).unwrap();
            let runs = content.windows(4).filter(|bytes| *bytes == b"runs").count();
            assert_eq!(runs, if has_runs { table.columns.len() } else { 0 }, "values that stay for {stays} rows");
        }
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        let table =
            |names: [&str; 2]| Table::new("t", names.map(|name| Column::new(name, ColumnData::U32(vec![7]))).into());
        let chunk = |names| {
            let (past, mut content) = (RecentStates::default(), Vec::new());
            layout::encode(&table(names), 0..1, TraceLayout::Packed, &past, FIRST, &mut content).unwrap();
            content
        };
        assert!(layout::decode(&chunk(["a", "b"]), &[]).is_ok() && layout::shape(&chunk(["a", "b"])).is_ok());
        let twice = chunk(["a", "a"]);
        assert_eq!(layout::decode(&twice, &[]), Err("there are two columns \"a\"".to_owned()));
        assert!(layout::shape(&twice).is_err());
    }
}

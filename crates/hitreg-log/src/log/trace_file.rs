//! Traces in the container: each chunk holds rows of one table. Foreign builds write the plain layout. This library
//! packs the columns and predicts each row from the previous row of the same entity.

mod grouping;
mod index;
mod layout;
mod packed_views;
mod past;

use std::io::{Read, Write};

use super::chunks::{ChunkContent, Chunks};
use super::container::ChunkSink;
use super::error::{LogError, WriteError};
use super::header::{self, FileKind, OpeningChunk};
use super::index::{ChunkRows, IndexCheck};
use super::version::FormatVersion;
use crate::memory::MemoryLimit;
use crate::sorted::{SortedMap, SortedSet};
use crate::trace::{Table, Trace, TraceHeader};
pub use index::IndexedTrace;
pub(super) use layout::{TableMap, empty_table, table_map};
use past::RecentStates;

/// The most bytes of columns in memory in one chunk; a larger row gets a chunk of its own.
const CHUNK_BYTES: usize = 2 << 20;
/// The layout of the rows in the chunks of a trace. Readers read any mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceLayout {
    /// Columns are predicted and packed, for files that are kept.
    Packed,
    /// Columns are as in memory, for files that are read once: faster to write and to read, and about ten times as large.
    Raw,
}

impl TraceLayout {
    fn zstd_level(self) -> i32 {
        match self {
            TraceLayout::Packed => 3,
            TraceLayout::Raw => -20,
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
        sink.chunk("the header", &header::encode(FileKind::Trace, header)?, None, ChunkRows::new())?;
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
            self.sink.chunk("a stretch of rows", &self.content, None, vec![layout::part_rows(table, part)])?;
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
const WAITING: usize = 4;

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
    let (jobs, waiting) = std::sync::mpsc::sync_channel::<(Option<TraceHeader>, Table)>(WAITING);
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

impl<R: Read> TraceReader<R> {
    /// Opens a trace and reads its header. The reads are small, so `from` should be buffered.
    ///
    /// # Errors
    /// When the file is not a trace that this build reads, or its header is damaged.
    pub fn new(from: R) -> Result<TraceReader<R>, LogError> {
        let (chunks, (header, format)) = Chunks::open(from, |content| {
            let OpeningChunk { header, format, sealed } = header::decode::<TraceHeader>(content, FileKind::Trace)?;
            Ok(((header, format), sealed))
        })?;
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
            appended.map_err(|what| LogError::corrupt(offset, "a stretch of rows", what))?;
        } else {
            places.insert(rows.name.clone(), trace.tables.len());
            trace.tables.push(rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Column, ColumnData};

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

    #[test]
    fn raw_traces_have_the_rows_of_packed_ones() {
        let many = (0..300).map(|n| format!("name{n}")).collect();
        let columns = vec![
            Column::new("player", ColumnData::U32(vec![1, 0, 1, u32::MAX])),
            Column::new("count", ColumnData::U64(vec![u64::MAX, 0, 1, 2])),
            Column::new("at_us", ColumnData::I64(vec![i64::MIN, -1, 0, i64::MAX])),
            Column::new("x", ColumnData::F32(vec![-0.0, 0.0, f32::INFINITY, 1.5])),
            Column::new("y", ColumnData::F64(vec![-0.0, f64::MIN_POSITIVE, 1e300, 0.1])),
            Column::new("flag", ColumnData::Bool(vec![true, false, false, true])),
            Column::new("few", ColumnData::Name { names: vec!["a".into(), "b".into()], codes: vec![1, 0, 0, 1] }),
            Column::new("many", ColumnData::Name { names: many, codes: vec![299, 0, 256, 255] }),
        ];
        let table = Table::new("t", columns).keyed_by(["player"]);
        let read = |layout| {
            let mut file = Vec::new();
            write_trace_meanwhile(layout, &mut file, |write| write(&TraceHeader::default(), table.clone())).unwrap();
            read_trace(&file[..]).unwrap()
        };
        let [packed, raw] = [TraceLayout::Packed, TraceLayout::Raw].map(read);
        assert_eq!(packed.tables, [table]);
        assert_eq!(raw.digest(), packed.digest());
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        let table =
            |names: [&str; 2]| Table::new("t", names.map(|name| Column::new(name, ColumnData::U32(vec![7]))).into());
        let before = crate::log::container::Chain::default();
        let chunk = |names| {
            let (past, mut content) = (RecentStates::default(), Vec::new());
            layout::encode(&table(names), 0..1, TraceLayout::Packed, &past, (1, before), &mut content).unwrap();
            content
        };
        assert!(layout::decode(&chunk(["a", "b"]), &[]).is_ok() && layout::shape(&chunk(["a", "b"])).is_ok());
        let twice = chunk(["a", "a"]);
        assert_eq!(layout::decode(&twice, &[]), Err("there are two columns \"a\"".to_owned()));
        assert!(layout::shape(&twice).is_err());
    }
}

//! Traces in the same container: each chunk holds rows of one table. Foreign builds write the plain layout; ours packs
//! the columns, predicting each row from the row before it of the same entity.

mod layout;

use std::collections::BTreeMap;
use std::io::{Read, Write};

use super::chunk::encode_end;
use super::chunks::Chunks;
use super::container::ChunkSink;
use super::error::{LogError, WriteError};
use super::header::{self, FileKind, Opening};
use super::limits::trace_budget;
use super::version::Version;
use crate::trace::schema::shots;
use crate::trace::{Column, Data, Table, Trace, TraceHeader};

/// Bytes of columns in memory that one chunk holds at most; a row that is larger is a chunk of its own.
const CHUNK_BYTES: usize = 2 << 20;
/// zstd's level for traces.
const LEVEL: i32 = 5;

/// Writes a trace.
///
/// # Errors
/// When it could not be written, or a table's columns do not fit together.
pub fn write_trace<W: Write>(out: W, trace: &Trace) -> Result<W, WriteError> {
    let mut sink = ChunkSink::new(out, LEVEL)?;
    sink.chunk("the header", &header::encode(FileKind::Trace, &trace.header)?)?;
    for (place, table) in trace.tables.iter().enumerate() {
        layout::check(table)?;
        if trace.tables[..place].iter().any(|other| other.name == table.name) {
            let what = "there are two tables of this name".into();
            return Err(WriteError::BadTable { table: table.name.clone(), what });
        }
        let (rows, step) = (table.rows(), layout::rows_per_chunk(table, CHUNK_BYTES));
        for start in (0..rows.max(1)).step_by(step) {
            let content = layout::encode(table, start..rows.min(start + step), sink.next())?;
            sink.chunk("a stretch of rows", &content)?;
        }
    }
    let end = encode_end(sink.next())?;
    sink.chunk("the end", &end)?;
    sink.finish()
}

/// Reads a trace chunk by chunk, however long it is.
pub struct TraceReader<R> {
    chunks: Chunks<R>,
    header: TraceHeader,
    format: Version,
}

impl<R: Read> TraceReader<R> {
    /// Opens a trace and reads its header. Reads are small: give it a buffered reader.
    ///
    /// # Errors
    /// When it is not a trace, or not one that this build reads, or its header is damaged.
    pub fn new(from: R) -> Result<TraceReader<R>, LogError> {
        let (chunks, (header, format)) = Chunks::open(from, |content| {
            let Opening { header, format, sealed } = header::decode::<TraceHeader>(content, FileKind::Trace)?;
            Ok(((header, format), sealed))
        })?;
        Ok(TraceReader { chunks, header, format })
    }

    /// The trace's header.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// The next rows of some table; `None` at the end of a trace that is whole and sound.
    ///
    /// # Errors
    /// When the trace is torn or damaged here. What was given out before is good.
    pub fn next_rows(&mut self) -> Result<Option<Table>, LogError> {
        let Some(content) = self.chunks.next()? else { return Ok(None) };
        let mut rows = layout::decode(&content.bytes).map_err(|what| content.corrupt(what))?;
        if self.format < MISSES_NAMED_ANEW {
            name_misses_anew(&mut rows);
        }
        Ok(Some(rows))
    }
}

/// The format since which a shot that met nobody is `missed`, and one that ended in the map `hit the world`.
const MISSES_NAMED_ANEW: Version = Version { major: 1, minor: 3 };

/// What became of shots, in today's words: they were `wide` and `blocked` before.
fn name_misses_anew(rows: &mut Table) {
    if rows.name != shots::NAME {
        return;
    }
    let columns = rows.columns.iter_mut().filter(|column| ["reason", "predicted_reason"].contains(&&*column.name));
    for column in columns {
        let Data::Name { names, .. } = &mut column.data else { continue };
        for name in names {
            match name.as_str() {
                "wide" => *name = "missed".to_owned(),
                "blocked" => *name = "hit the world".to_owned(),
                _ => {}
            }
        }
    }
}

/// Reads a whole trace.
///
/// # Errors
/// When the bytes are no trace that this build reads, when a bit of them has changed anywhere, when they stop early,
/// or when they would take more memory than [`trace_budget`] grants.
pub fn read_trace(from: impl Read) -> Result<Trace, LogError> {
    let mut reader = TraceReader::new(from)?;
    let mut trace = Trace { header: reader.header.clone(), tables: Vec::new() };
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut used = 0usize;
    loop {
        let offset = reader.chunks.offset();
        let Some(rows) = reader.next_rows()? else { return Ok(trace) };
        used = used.saturating_add(layout::memory(&rows));
        let limit_bytes = trace_budget(reader.chunks.offset());
        if used > limit_bytes {
            return Err(LogError::TooLarge { limit_bytes });
        }
        match places.get(&rows.name) {
            Some(&place) => append(&mut trace.tables[place], rows).map_err(|what| LogError::Corrupt {
                offset,
                part: "a stretch of rows".into(),
                what,
            })?,
            None => {
                places.insert(rows.name.clone(), trace.tables.len());
                trace.tables.push(rows);
            }
        }
    }
}

fn append(to: &mut Table, rows: Table) -> Result<(), String> {
    let same = |(a, b): (&Column, &Column)| a.name == b.name && a.data.type_name() == b.data.type_name();
    if to.columns.len() != rows.columns.len() || !to.columns.iter().zip(&rows.columns).all(same) {
        return Err(format!("table {:?} has other columns here than where it began", to.name));
    }
    for (to, from) in to.columns.iter_mut().zip(rows.columns) {
        match (&mut to.data, from.data) {
            (Data::U32(to), Data::U32(from)) => to.extend(from),
            (Data::U64(to), Data::U64(from)) => to.extend(from),
            (Data::I64(to), Data::I64(from)) => to.extend(from),
            (Data::F32(to), Data::F32(from)) => to.extend(from),
            (Data::Name { names, codes }, Data::Name { names: others, codes: from }) if *names == others => {
                codes.extend(from);
            }
            _ => return Err(format!("column {:?} has other names here than where it began", to.name)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_have_their_present_names() {
        let names = |names: [&str; 3]| Data::Name { names: names.map(str::to_owned).to_vec(), codes: vec![0, 1, 2] };
        let table = |name: &str, of: [&str; 3]| {
            let columns = ["reason", "predicted_reason", "weapon"].map(|column| Column::new(column, names(of)));
            Table::new(name, columns.into())
        };
        let (old, new) = (["hit", "blocked", "wide"], ["hit", "hit the world", "missed"]);
        let mut shots = table("shots", old);
        name_misses_anew(&mut shots);
        let now = |column: usize| shots.columns[column].data.clone();
        assert_eq!([now(0), now(1), now(2)], [names(new), names(new), names(old)]);
        let mut other = table("effects", old);
        name_misses_anew(&mut other);
        assert_eq!(other, table("effects", old), "another table's names are its own");
    }
}

//! A trace in a file, which keeps only the requested rows in memory.

use std::io::{BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{READ_AHEAD, StoreError, open_file, open_trace};
use crate::log::TraceIndex;
use crate::trace::{NextRows, SharedTrace, Table, TraceHeader, TraceSource};

/// The most bytes of a table's rows that wait for matching rows. Rows of a replay are in order within seconds: for 64
/// players that is a few MiB.
const MOST_WAITING: usize = 64 << 20;

/// A trace in a file that can be read repeatedly.
#[derive(Clone, Debug)]
pub struct TraceFile {
    path: PathBuf,
    index: Arc<TraceIndex>,
}

impl TraceFile {
    /// Indexes a trace in a file.
    ///
    /// # Errors
    /// When the file cannot be opened, or is not an undamaged trace.
    pub fn open(path: &Path) -> Result<TraceFile, StoreError> {
        let index = open_trace(path)?.index().map_err(|source| StoreError::content(path, source))?;
        Ok(TraceFile { path: path.to_owned(), index: Arc::new(index) })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the memory in bytes that all its rows take.
    pub fn memory(&self) -> usize {
        self.index.memory()
    }

    /// Reads the rows of the part at `offset`.
    fn part(&self, offset: u64, only: &[&str]) -> Result<Table, StoreError> {
        let mut file = open_file(&self.path)?;
        file.seek(SeekFrom::Start(offset)).map_err(|source| StoreError::open(&self.path, source))?;
        let part = self.index.part(BufReader::with_capacity(READ_AHEAD, file), offset, only);
        part.map_err(|source| StoreError::content(&self.path, source))
    }
}

impl TraceSource for TraceFile {
    fn header(&self) -> &TraceHeader {
        self.index.header()
    }

    fn tables(&self) -> Vec<(&Table, u64)> {
        self.index.tables().iter().map(|(table, rows)| (table, *rows)).collect()
    }

    fn rows<'s>(&'s self, table: &'s str, only: &'s [&'s str]) -> NextRows<'s> {
        let mut parts = self.index.parts_of(table);
        Box::new(move || {
            let part = parts.next().map(|offset| self.part(offset, only));
            part.transpose().map_err(|error| error.to_string())
        })
    }

    /// Valid as long as the file exists unchanged.
    fn shared(&self) -> Option<SharedTrace> {
        Some(Arc::new(self.clone()))
    }

    fn most_waiting(&self) -> usize {
        MOST_WAITING
    }
}

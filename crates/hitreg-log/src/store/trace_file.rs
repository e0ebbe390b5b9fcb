//! A trace in a file, which keeps only the requested rows in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::shown::naming_file;
use super::{StoreError, open, open_file, open_trace};
use crate::log::IndexedTrace;
use crate::trace::{ColumnSpan, NextRows, SharedTrace, Table, TraceHeader, TraceSource};

/// The most bytes of a table's rows that wait for matching rows. Rows of a replay are in order within seconds: for 64
/// players that is a few MiB.
const MOST_WAITING: usize = 64 << 20;

/// A trace in a file that can be read repeatedly.
#[derive(Clone, Debug)]
pub struct TraceFile {
    path: PathBuf,
    trace: Arc<IndexedTrace>,
}

impl TraceFile {
    /// Opens a trace in a file, and reads its index.
    ///
    /// # Errors
    /// When the file cannot be opened, is not a trace, or what is read of it is damaged.
    pub fn open(path: &Path) -> Result<TraceFile, StoreError> {
        let trace = IndexedTrace::open(open(path)?).map_err(|source| StoreError::trace_content(path, source))?;
        Ok(TraceFile { path: path.to_owned(), trace: Arc::new(trace) })
    }

    /// Reads the trace once to its end, as a check that nothing in it is damaged, and opens it.
    ///
    /// # Errors
    /// When the file cannot be opened, is not a trace, or any part of it is damaged.
    pub fn open_checked(path: &Path) -> Result<TraceFile, StoreError> {
        let mut reader = open_trace(path)?;
        while reader.next_rows().map_err(|source| StoreError::trace_content(path, source))?.is_some() {}
        TraceFile::open(path)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether a table has the same rows in another trace, by the packed bytes of their chunks. `false` does not
    /// mean that the rows differ.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged.
    pub fn has_same_rows(&self, other: &TraceFile, table: &str) -> Result<bool, StoreError> {
        let (mut a, mut b) = (open_file(&self.path)?, open_file(&other.path)?);
        let same = self.trace.has_same_chunks(&other.trace, table, [&mut a, &mut b]);
        same.map_err(|source| StoreError::trace_content(&self.path, source))
    }

    /// Returns the next rows of a table, as [`TraceSource::rows_between`] does.
    pub fn parts<'s>(
        &'s self,
        table: &str,
        only: &'s [&'s str],
        span: Option<ColumnSpan<'s>>,
    ) -> impl Iterator<Item = Result<Table, StoreError>> + use<'s> {
        let chunks: Vec<u32> = self.trace.chunks_of(table, span).collect();
        chunks.into_iter().map(move |chunk| {
            self.trace
                .chunk(open_file(&self.path)?, chunk, only)
                .map_err(|source| StoreError::trace_content(&self.path, source))
        })
    }
}

impl TraceSource for TraceFile {
    fn header(&self) -> &TraceHeader {
        self.trace.header()
    }

    fn tables(&self) -> Vec<(&Table, u64)> {
        self.trace.tables().collect()
    }

    fn rows_between<'s>(&'s self, table: &'s str, only: &'s [&'s str], span: Option<ColumnSpan<'s>>) -> NextRows<'s> {
        let mut parts = self.parts(table, only, span);
        let named = |error: StoreError| naming_file(&error.to_string(), &self.path);
        Box::new(move || parts.next().transpose().map_err(named))
    }

    fn in_file(&self) -> Option<&TraceFile> {
        Some(self)
    }

    /// Valid as long as the file exists unchanged.
    fn shared(&self) -> Option<SharedTrace> {
        Some(Arc::new(self.clone()))
    }

    fn most_waiting(&self) -> usize {
        MOST_WAITING
    }
}

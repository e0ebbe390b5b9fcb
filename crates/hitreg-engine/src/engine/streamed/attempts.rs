//! Runs a replay without encoding datagrams, and again with encoding if they might have made a difference.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::EngineError;
use hitreg_log::log::{TraceLayout, write_trace_meanwhile};
use hitreg_log::store::{self, Target};
use hitreg_log::trace::{Table, Trace, TraceHeader};

/// Collects the rows that `attempt` makes in memory, as [`retry_with_encoding`] runs it.
///
/// # Errors
/// Fails as `attempt` does.
pub(in crate::engine) fn collect_replayed<T>(
    mut attempt: impl FnMut(bool, &mut dyn FnMut(&TraceHeader, Table)) -> Result<Option<T>, EngineError>,
) -> Result<Trace, EngineError> {
    retry_with_encoding(&AtomicBool::new(false), |encoded| {
        let mut trace = Trace::default();
        let ran = attempt(encoded, &mut |header, rows| {
            trace.header.clone_from(header);
            // All rows of one replay have the same columns.
            trace.append(rows).unwrap_or_default();
        })?;
        Ok(ran.map(|_| trace))
    })
}

/// Writes a trace while `attempt` makes it, as [`retry_with_encoding`] runs it.
///
/// # Errors
/// Fails if the trace cannot be written, and as `attempt` does.
pub fn write_replayed<T>(
    target: &Target,
    layout: TraceLayout,
    mut attempt: impl FnMut(bool, &mut dyn FnMut(&TraceHeader, Table)) -> Result<Option<T>, EngineError>,
) -> Result<T, EngineError> {
    retry_with_encoding(&AtomicBool::new(false), |encoded| {
        let mut ran = Ok(None);
        let written = store::prepare(target, |out| {
            ran = write_trace_meanwhile(layout, out, |write| attempt(encoded, write))?;
            Ok(())
        })?;
        let ran = ran?;
        if ran.is_some() {
            written.put()?;
        }
        Ok(ran)
    })
}

/// Runs `attempt` without encoding datagrams, and again with encoding if the first result is `None`. `encoded` carries
/// that decision: callers that share it skip the first attempt.
///
/// # Errors
/// Fails as `attempt` does.
pub fn retry_with_encoding<T, E>(
    encoded: &AtomicBool,
    mut attempt: impl FnMut(bool) -> Result<Option<T>, E>,
) -> Result<T, E> {
    loop {
        if let Some(whole) = attempt(encoded.load(Ordering::Relaxed))? {
            return Ok(whole);
        }
        encoded.store(true, Ordering::Relaxed);
    }
}

//! An output that turns records into the tables of a trace, for a build that replays a log.

use super::FinishError;
use super::output::RecordOutput;
use crate::log::WriteError;
use crate::record::{Record, SessionHeader, SessionStretch, Texts};
use crate::recorded;
use crate::store::{self, Target};
use crate::trace::Digest;

/// Collects all records in memory and writes the trace at the end.
pub(super) struct PendingTrace {
    target: Target,
    log: Digest,
    capabilities: Vec<String>,
    header: SessionHeader,
    records: SessionStretch,
}

impl PendingTrace {
    pub(super) fn new(target: Target, log: Digest, capabilities: Vec<String>, header: SessionHeader) -> PendingTrace {
        PendingTrace { target, log, capabilities, records: SessionStretch::of(&header), header }
    }
}

impl RecordOutput for PendingTrace {
    // A replay is not live. `finish` sorts the records.
    fn takes_late_records(&self) -> bool {
        true
    }

    fn push(&mut self, record: &Record) -> Result<(), FinishError> {
        Ok(self.records.push(record, &self.header).map_err(WriteError::from)?)
    }

    fn texts(&mut self, texts: &Texts) {
        self.records.texts.clone_from(texts);
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError> {
        let mut session = self.records.with_header(self.header);
        session.sort_by_time();
        session.put_in_order();
        let mut trace = recorded::all_records(&session);
        // The build ran its server.
        trace.header.mode = "closed".to_owned();
        (trace.header.log_digest, trace.header.capabilities) = (self.log.to_string(), self.capabilities);
        Ok(store::save_trace(&self.target, &trace)?)
    }
}

//! Captured datagrams of Quake III's engine.

use std::path::Path;

use crate::engine::EngineError;
use crate::log::{Options, WhenFull};
use crate::quake3::{self, Overview, ServerLog};
use crate::store::{self, Recording, StoreError, Target};

/// A capture, and what else is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Quake3Capture<'a> {
    /// The capture.
    pub capture: &'a Path,
    /// The map, or an archive that holds it.
    pub map: Option<&'a Path>,
    /// The server's console log.
    pub server_log: Option<&'a Path>,
}

/// Imports a capture into a log that is written as it is read. Gives what the capture holds.
///
/// # Errors
/// When a file cannot be read or written, or the capture is none; names the file at fault.
pub fn import_quake3_udp(from: &Quake3Capture<'_>, target: &Target) -> Result<Overview, EngineError> {
    let capture = store::read_bytes(from.capture)?;
    let log = from.server_log.map(store::read_bytes).transpose()?;
    let log = ServerLog::parse(log.as_deref().unwrap_or_default());
    let fail = |source| EngineError::Quake3 { path: from.capture.to_owned(), source };
    let mut overview = quake3::survey(&capture, &log).map_err(fail)?;
    if let Some(path) = from.map {
        let map = quake3::map_from(&store::read_bytes(path)?, &overview.rules.map_name);
        overview.rules.map =
            Some(map.map_err(|error| EngineError::Quake3 { path: path.to_owned(), source: error.into() })?);
    }
    let header = quake3::header(&overview.rules, &overview.players, quake3::imported()).map_err(fail)?;
    let mut recording = Recording::begin_with(target, &header, Options::whole(), WhenFull::Wait)?;
    let mut failed: Option<StoreError> = None;
    quake3::import(&capture, &log, &mut |record| {
        if failed.is_none() {
            failed = recording.push(&record).err();
        }
    })
    .map_err(fail)?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(recording.finish().map(|()| overview)?),
    }
}

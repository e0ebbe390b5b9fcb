//! Captured datagrams and demos of Quake III's engine.

use std::path::Path;

use super::ImportFileError;
use crate::quake3::{self, ListenerCounts, Overview, Quake3ImportError, RecordingKind, ServerLog};
use hitreg_log::log::{Lookalike, QueuePolicy, WriterOptions};
use hitreg_log::store::{self, RecordingClaim, StoreError, Target};

/// A recording and the files that belong to it.
#[derive(Clone, Copy, Debug)]
pub struct Quake3Recording<'a> {
    /// The kind of recording.
    pub source: RecordingKind,
    /// The file of the recording.
    pub recording: &'a Path,
    /// The map, or an archive that holds it.
    pub map: Option<&'a Path>,
    /// Whether to accept a map of another name.
    pub force_map: bool,
    /// The server's console log.
    pub server_log: Option<&'a Path>,
}

/// Imports a recording. It writes the log while reading, and returns an overview of the recording.
///
/// # Errors
/// When a file cannot be read or written, or is not a valid recording. The error names the file.
pub fn import_quake3(from: &Quake3Recording<'_>, target: &Target) -> Result<Overview, ImportFileError> {
    let log = from.server_log.map(store::read_bytes).transpose()?;
    let log = ServerLog::parse(log.as_deref().unwrap_or_default());
    let fault_of = |path: &Path, source| ImportFileError::Quake3 { path: path.to_owned(), source };
    let fail = |source| fault_of(from.recording, source);
    let surveyed = quake3::survey(from.source, store::open_file(from.recording)?, &log);
    let mut overview = surveyed.or_else(|source| Err(other_file(from)?.unwrap_or_else(|| fail(source))))?;
    let ListenerCounts { hits, logged, logged_outside, .. } = overview.counts;
    if let Some(path) = from.server_log.filter(|_| logged + logged_outside == 0 && hits > 0) {
        return Err(fault_of(path, Quake3ImportError::ServerLog { hits }));
    }
    if let Some(path) = from.map {
        let played = &overview.rules.map_name;
        let is_it = |file: &Path| file.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case(played.as_str()));
        let is_level = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("bsp"));
        if is_level && !from.force_map && !is_it(path) {
            return Err(fault_of(path, Quake3ImportError::OtherMap { played: played.clone() }));
        }
        let map = quake3::map_from(&store::read_bytes(path)?, played);
        overview.rules.map = Some(map.map_err(|error| fault_of(path, error.into()))?);
    }
    let header = quake3::header(&overview.rules, &overview.players, from.source.origin()).map_err(fail)?;
    let recording = store::open_file(from.recording)?;
    let mut to = RecordingClaim::new(target)?.begin(&header, WriterOptions::whole(), QueuePolicy::Wait)?;
    let mut failed: Option<StoreError> = None;
    let imported = quake3::import(from.source, recording, &log, &mut |record| {
        if failed.is_none() {
            failed = to.push(&record).err();
        }
    });
    match (imported, failed) {
        (Err(source), _) => to.abandon().map_err(ImportFileError::from).and(Err(fail(source))),
        (Ok(()), Some(error)) => Err(to.discard(error).into()),
        (Ok(()), None) => Ok(to.finish_or_discard().map(|()| overview)?),
    }
}

/// The error for a file of another known kind.
fn other_file(from: &Quake3Recording<'_>) -> Result<Option<ImportFileError>, StoreError> {
    let (wanted, takes) = match from.source {
        RecordingKind::Capture => ("capture of datagrams", "captures, plain or as .zst (docs/openarena.md)"),
        RecordingKind::Demo => ("demo of Quake III", ".dm_68 and .dm_71 demos"),
    };
    let looks = store::looks_like(from.recording)?;
    let is_wanted = |looks: &Lookalike| from.source == RecordingKind::Capture && *looks == Lookalike::CAPTURE;
    let Some(looks) = looks.filter(|looks| !is_wanted(looks)) else { return Ok(None) };
    let (path, importer) = (from.recording.to_owned(), from.source.name());
    Ok(Some(ImportFileError::OtherFile { path, wanted, looks, importer, takes }))
}

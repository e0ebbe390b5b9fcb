//! Merges the logs of a server and its clients into one log.

use std::path::{Path, PathBuf};

use crate::{Engine, EngineError};
use hitreg_log::log::{LogError, LogReader, MergeWriter, WriteError, WriterOptions};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::merge::{AlignedClient, MergePlan, SessionCut, SideLogs};
use hitreg_log::record::{Outline, SessionChunk, SessionHeader, SessionId};
use hitreg_log::store::{self, StoreError, Target};
use hitreg_netcode::info::{InfoBuilder, SessionInfo, is_foreign};

/// The result of a merge. Logs are identified by their indices in the input.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedLog {
    /// The session's id.
    pub session: Option<SessionId>,
    /// Figures of the merged session.
    pub info: SessionInfo,
    /// The clients, in the order of players.
    pub clients: Vec<AlignedClient>,
    /// The number of usercmds in each client's log.
    pub usercmds: Vec<usize>,
    /// Set if records of a log are left out, because another log ends much earlier.
    pub cut: Option<SessionCut>,
    /// The logs that are cut off.
    pub cut_off: Vec<usize>,
    /// Whether the session is of a game with its own netcode.
    pub is_foreign: bool,
}

impl Engine<'_> {
    /// Merges the logs of a server and its clients, given in any order.
    ///
    /// # Errors
    /// Fails if a log cannot be read, the logs do not belong to one session, or the merged log cannot be written.
    pub fn merge(&self, paths: &[PathBuf], target: &Target) -> Result<MergedLog, EngineError> {
        let header = |path: &PathBuf| Ok(MergeReader::default().open(path)?.header().clone());
        let headers = paths.iter().map(header).collect::<Result<Vec<SessionHeader>, EngineError>>()?;
        paths.iter().zip(&headers).for_each(|(path, header)| (self.on_read)(path, header));
        let readers = paths.iter().map(|_| MergeReader::default()).collect();
        let mut files = MergeFiles { memory: self.games.memory(), paths, readers };
        let plan = MergePlan::of(&headers.iter().collect::<Vec<_>>(), &mut files)?;
        write(&plan, files, target, headers.first().and_then(session_of))
    }
}

/// The logs that are being read.
struct MergeFiles<'a> {
    memory: MemoryLimit,
    paths: &'a [PathBuf],
    readers: Vec<MergeReader>,
}

/// One log.
#[derive(Default)]
struct MergeReader {
    /// `None` while the log is closed.
    reader: Option<LogReader<Box<dyn std::io::Read>>>,
    used_bytes: usize,
    is_cut_off: bool,
}

impl MergeReader {
    fn open(&mut self, path: &Path) -> Result<&mut LogReader<Box<dyn std::io::Read>>, EngineError> {
        let file: Box<dyn std::io::Read> = Box::new(store::open(path)?);
        self.used_bytes = 0;
        Ok(self.reader.insert(LogReader::new(file).map_err(|source| EngineError::content(path, source))?))
    }
}

impl SideLogs for MergeFiles<'_> {
    type Error = EngineError;

    fn next(&mut self, log: usize) -> Result<Option<SessionChunk>, EngineError> {
        let (path, log) = (&self.paths[log], &mut self.readers[log]);
        if log.reader.is_none() {
            log.open(path)?;
        }
        let Some(reader) = &mut log.reader else { return Ok(None) };
        match reader.next_held(self.memory, &mut log.used_bytes) {
            Err(LogError::Torn(_)) => {
                log.is_cut_off = true;
                Ok(None)
            }
            read => read.map_err(|source| EngineError::content(path, source)),
        }
    }

    fn close(&mut self, log: usize) {
        self.readers[log].reader = None;
    }
}

fn session_of(header: &SessionHeader) -> Option<SessionId> {
    header.side.map(|side| side.session)
}

/// Reads the logs a second time and writes the merged session.
fn write(
    plan: &MergePlan,
    mut files: MergeFiles<'_>,
    target: &Target,
    session: Option<SessionId>,
) -> Result<MergedLog, EngineError> {
    let header = &plan.header;
    let cut_off = (0..files.readers.len()).filter(|log| files.readers[*log].is_cut_off).collect();
    let (mut figures, mut usercmds) = (InfoBuilder::new(header), vec![0; header.players.len()]);
    let unwritten = |source| EngineError::from(StoreError::write(target.path(), source));
    let mut merged = Ok(());
    let written = store::prepare(target, |out| {
        let mut writer = MergeWriter::new(out, header, plan.unknown.clone(), WriterOptions::whole())?;
        merged = plan.put_together(&mut files, &mut |chunk, until| {
            figures.add(Outline::of(&chunk));
            let frames = chunk.players.iter().map(|player| player.frames.len());
            usercmds.iter_mut().zip(frames).for_each(|(known, more)| *known += more);
            writer.add(chunk).and_then(|()| writer.write_until(until)).map_err(unwritten)
        });
        if merged.is_err() {
            return Err(WriteError::Abandoned);
        }
        writer.finish().map(drop)
    });
    merged?;
    written?.put()?;
    let (clients, cut) = (plan.clients.clone(), plan.cut);
    let is_foreign = is_foreign(header);
    Ok(MergedLog { session, info: figures.info(header), clients, usercmds, cut, cut_off, is_foreign })
}

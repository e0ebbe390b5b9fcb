//! Merges the logs of a server and its clients into one log. Regular files are streamed in parallel; other inputs are
//! loaded into memory.

use std::path::{Path, PathBuf};

use crate::engine::{Engine, EngineError};
use hitreg_log::log::{self, LogError, LogReader, StretchWriter, WriteError, WriterOptions};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::merge::{AlignedClient, MergePlan, PlanFailure, SessionCut, SideLogs, merge};
use hitreg_log::record::{Outline, SessionHeader, SessionId, SessionStretch};
use hitreg_log::store::{self, StoreError, Target};
use hitreg_netcode::info::{InfoBuilder, SessionInfo, is_foreign};

/// The maximum number of logs that are open at once. More logs are loaded into memory, one after another.
const OPEN_MOST: usize = 256;

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
        if paths.len() > OPEN_MOST {
            return in_memory(self.games.memory(), paths, target, self.read);
        }
        let readers = paths.iter().map(|path| MergeReader::open(path)).collect::<Result<_, _>>()?;
        let mut files = MergeFiles { memory: self.games.memory(), paths, readers };
        paths.iter().zip(&files.readers).for_each(|(path, log)| (self.read)(path, log.reader.header()));
        let headers: Vec<SessionHeader> = files.readers.iter().map(|log| log.reader.header().clone()).collect();
        match MergePlan::of(&headers.iter().collect::<Vec<_>>(), &mut files) {
            Ok(plan) => write(&plan, files, target, headers.first().and_then(session_of)),
            Err(PlanFailure::Merge(error)) => Err(error.into()),
            Err(PlanFailure::Read(error)) => Err(error),
            Err(PlanFailure::Whole) => {
                drop(files);
                in_memory(self.games.memory(), paths, target, |_, _| {})
            }
        }
    }
}

/// The logs that are being read.
struct MergeFiles<'a> {
    memory: MemoryLimit,
    paths: &'a [PathBuf],
    readers: Vec<MergeReader>,
}

/// One open log.
struct MergeReader {
    reader: LogReader<Box<dyn std::io::Read>>,
    used_bytes: usize,
    is_cut_off: bool,
}

impl MergeReader {
    fn open(path: &Path) -> Result<MergeReader, EngineError> {
        let file: Box<dyn std::io::Read> = Box::new(store::open(path)?);
        let reader = LogReader::new(file).map_err(|source| EngineError::content(path, source))?;
        Ok(MergeReader { reader, used_bytes: 0, is_cut_off: false })
    }
}

impl SideLogs for MergeFiles<'_> {
    type Error = EngineError;

    fn next(&mut self, log: usize) -> Result<Option<SessionStretch>, EngineError> {
        let MergeReader { reader, used_bytes, is_cut_off } = &mut self.readers[log];
        match reader.next_held(self.memory, used_bytes) {
            Err(LogError::Torn(_)) => {
                *is_cut_off = true;
                Ok(None)
            }
            read => read.map_err(|source| EngineError::content(&self.paths[log], source)),
        }
    }

    fn rewind(&mut self, log: usize) -> Result<(), EngineError> {
        let is_cut_off = self.readers[log].is_cut_off;
        self.readers[log] = MergeReader { is_cut_off, ..MergeReader::open(&self.paths[log])? };
        Ok(())
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
        let mut writer = StretchWriter::new(out, header, plan.unknown.clone(), WriterOptions::whole())?;
        merged = plan.put_together(&mut files, &mut |stretch, until| {
            figures.add(Outline::of(&stretch));
            let frames = stretch.players.iter().map(|player| player.frames.len());
            usercmds.iter_mut().zip(frames).for_each(|(known, more)| *known += more);
            writer.add(stretch).and_then(|()| writer.write_until(until)).map_err(unwritten)
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

/// Merges logs in memory.
fn in_memory(
    memory: MemoryLimit,
    paths: &[PathBuf],
    target: &Target,
    read: impl Fn(&Path, &SessionHeader),
) -> Result<MergedLog, EngineError> {
    let (mut sessions, mut cut_off) = (Vec::with_capacity(paths.len()), Vec::new());
    for (log, path) in paths.iter().enumerate() {
        let fail = |source| EngineError::content(path, source);
        let (session, torn) = log::read_prefix_within(memory, store::open(path)?).map_err(fail)?;
        read(path, &session.header);
        cut_off.extend(torn.map(|_| log));
        sessions.push(session);
    }
    let session = sessions.first().and_then(|session| session_of(&session.header));
    let merged = merge(sessions)?;
    store::save_log(target, &merged.session, WriterOptions::whole())?;
    let usercmds = merged.session.players.iter().map(|player| player.frames.len()).collect();
    let info = SessionInfo::of(&merged.session);
    let is_foreign = is_foreign(&merged.session.header);
    Ok(MergedLog { session, info, clients: merged.clients, usercmds, cut: merged.cut, cut_off, is_foreign })
}

//! Merges the logs of a server and its clients into one log. Regular files are streamed in parallel; other inputs are
//! loaded into memory.

use std::path::{Path, PathBuf};

use super::{Engine, EngineError, can_be_read_twice};
use hitreg_log::log::{self, LogError, LogReader, Options, StretchWriter, WriteError};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::merge::{Aligned, Cut, Logs, MergeError, NoPlan, Plan, merge};
use hitreg_log::record::{Header, Outline, SessionId, Stretch};
use hitreg_log::store::{self, StoreError, Target};
use hitreg_netcode::info::{Figures, Info};

/// The maximum number of logs that are open at once. More logs are loaded into memory, one after another.
const OPEN_MOST: usize = 256;

/// The result of a merge. Logs are identified by their indices in the input.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedLog {
    /// The session's id.
    pub session: Option<SessionId>,
    /// Figures of the merged session.
    pub info: Info,
    /// The clients, in the order of players.
    pub clients: Vec<Aligned>,
    /// The number of usercmds in each client's log.
    pub usercmds: Vec<usize>,
    /// Set if the session ends before the server's log does, because a client's log ends earlier.
    pub cut: Option<Cut>,
    /// The logs that are cut off.
    pub cut_off: Vec<usize>,
}

/// Why the logs were not merged.
#[derive(Debug, thiserror::Error)]
pub enum NotMerged {
    /// A log cannot be read, or the merged log cannot be written.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The logs do not belong to one session.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

impl From<StoreError> for NotMerged {
    fn from(error: StoreError) -> NotMerged {
        NotMerged::Engine(error.into())
    }
}

impl Engine<'_> {
    /// Merges the logs of a server and its clients, given in any order.
    ///
    /// # Errors
    /// Fails if a log cannot be read, the logs do not belong to one session, or the merged log cannot be written.
    pub fn merge(&self, paths: &[PathBuf], target: &Target) -> Result<MergedLog, NotMerged> {
        if paths.len() > OPEN_MOST || !paths.iter().all(|path| can_be_read_twice(path)) {
            return in_memory(paths, target, self.read);
        }
        let mut files = Files::open(paths)?;
        paths.iter().zip(&files.readers).for_each(|(path, log)| (self.read)(path, log.reader.header()));
        let headers: Vec<Header> = files.readers.iter().map(|log| log.reader.header().clone()).collect();
        match Plan::of(&headers.iter().collect::<Vec<_>>(), &mut files) {
            Ok(plan) => Ok(write(&plan, files, target, headers.first().and_then(session_of))?),
            Err(NoPlan::Merge(error)) => Err(error.into()),
            Err(NoPlan::Read(error)) => Err(error.into()),
            Err(NoPlan::Whole) => {
                drop(files);
                in_memory(paths, target, |_, _| {})
            }
        }
    }
}

/// The logs that are being read.
struct Files<'a> {
    paths: &'a [PathBuf],
    readers: Vec<Reader>,
}

/// One open log.
struct Reader {
    reader: LogReader<Box<dyn std::io::Read>>,
    used_bytes: usize,
    is_cut_off: bool,
}

impl Reader {
    fn open(path: &Path) -> Result<Reader, EngineError> {
        let file: Box<dyn std::io::Read> = Box::new(store::open(path)?);
        let reader = LogReader::new(file).map_err(|source| EngineError::content(path, source))?;
        Ok(Reader { reader, used_bytes: 0, is_cut_off: false })
    }
}

impl Files<'_> {
    fn open(paths: &[PathBuf]) -> Result<Files<'_>, EngineError> {
        let readers = paths.iter().map(|path| Reader::open(path)).collect::<Result<_, _>>()?;
        Ok(Files { paths, readers })
    }

    fn cut_off(&self) -> Vec<usize> {
        (0..self.readers.len()).filter(|log| self.readers[*log].is_cut_off).collect()
    }
}

impl Logs for Files<'_> {
    type Error = EngineError;

    fn next(&mut self, log: usize) -> Result<Option<Stretch>, EngineError> {
        let Reader { reader, used_bytes, is_cut_off } = &mut self.readers[log];
        match reader.next_held(MemoryLimit::current(), used_bytes) {
            Err(LogError::Torn(_)) => {
                *is_cut_off = true;
                Ok(None)
            }
            read => read.map_err(|source| EngineError::content(&self.paths[log], source)),
        }
    }

    fn rewind(&mut self, log: usize) -> Result<(), EngineError> {
        let is_cut_off = self.readers[log].is_cut_off;
        self.readers[log] = Reader { is_cut_off, ..Reader::open(&self.paths[log])? };
        Ok(())
    }
}

fn session_of(header: &Header) -> Option<SessionId> {
    header.side.map(|side| side.session)
}

/// Why the merged log was not written.
enum NotWritten {
    Read(EngineError),
    Write(WriteError),
}

impl From<EngineError> for NotWritten {
    fn from(error: EngineError) -> NotWritten {
        NotWritten::Read(error)
    }
}

impl From<WriteError> for NotWritten {
    fn from(error: WriteError) -> NotWritten {
        NotWritten::Write(error)
    }
}

/// Reads the logs a second time and writes the merged session.
fn write(
    plan: &Plan,
    mut files: Files<'_>,
    target: &Target,
    session: Option<SessionId>,
) -> Result<MergedLog, EngineError> {
    let header = plan.header();
    let cut_off = files.cut_off();
    let (mut figures, mut usercmds) = (Figures::new(header), vec![0; header.players.len()]);
    let mut unreadable = None;
    let written = store::prepare(target, |out| {
        let mut writer = StretchWriter::new(out, header, plan.unknown().to_vec(), Options::whole())?;
        let put = plan.put_together(&mut files, &mut |stretch, until| -> Result<(), NotWritten> {
            figures.add(Outline::of(&stretch, &header.unknown));
            let frames = stretch.players.iter().map(|player| player.frames.len());
            usercmds.iter_mut().zip(frames).for_each(|(known, more)| *known += more);
            writer.add(stretch)?;
            Ok(writer.write_until(until)?)
        });
        match put {
            Ok(()) => writer.finish().map(drop),
            Err(NotWritten::Write(error)) => Err(error),
            Err(NotWritten::Read(error)) => {
                unreadable = Some(error);
                Err(WriteError::Abandoned)
            }
        }
    });
    match unreadable {
        Some(error) => return Err(error),
        None => written?.put()?,
    }
    let (clients, cut) = (plan.clients().to_vec(), plan.cut());
    Ok(MergedLog { session, info: figures.info(header), clients, usercmds, cut, cut_off })
}

/// Merges logs in memory.
fn in_memory(paths: &[PathBuf], target: &Target, read: impl Fn(&Path, &Header)) -> Result<MergedLog, NotMerged> {
    let (mut sessions, mut cut_off) = (Vec::with_capacity(paths.len()), Vec::new());
    for (log, path) in paths.iter().enumerate() {
        let fail = |source| EngineError::content(path, source);
        let (session, torn) = log::read_prefix(store::open(path)?).map_err(fail)?;
        read(path, &session.header);
        cut_off.extend(torn.map(|_| log));
        sessions.push(session);
    }
    let session = sessions.first().and_then(|session| session_of(&session.header));
    let merged = merge(sessions)?;
    store::save_log(target, &merged.session, Options::whole())?;
    let usercmds = merged.session.players.iter().map(|player| player.frames.len()).collect();
    let info = Info::of(&merged.session);
    Ok(MergedLog { session, info, clients: merged.clients, usercmds, cut: merged.cut, cut_off })
}

//! `hitreg export --perfetto`: writes a timeline while reading a trace.

use std::io::Write;

use super::replayed::ReplayedTables;
use super::{FileExport, said, save};
use crate::cli::output::Output;
use crate::cli::trouble::CommandError;
use crate::cli::{CommandOutcome, CommandResult, files};
use crate::engine::Games;
use crate::log::FileKind;
use crate::perfetto::{self, PerfettoError, SHOWN};
use crate::store::{self, FileType, Target, TemporaryFolder, TraceFile};
use crate::trace::Trace;
use crate::trace::schema::{packets, snapshots};
use crate::traffic::{self, Packet};

/// The source of the events.
enum EventSource {
    /// The records of a log whose game this build does not know, and its packets.
    Recorded(Trace, Vec<Packet>),
    /// A trace in a file.
    File(TraceFile),
    /// A replay in a temporary file; whether its log's packets are beside it, and hold only received snapshots.
    Replay { trace: TraceFile, has_packets: bool, is_received: bool, _folder: TemporaryFolder },
}

pub(super) fn run(games: &Games, export: FileExport<'_>, output: &mut Output) -> CommandResult {
    match output.files.target_if(&export.args.output, FileType::Events)? {
        Some(target) => write(games, export, &target)?,
        None => EventSource::of(games, export)?.write(export, output.raw())?,
    }
    Ok(CommandOutcome::Done)
}

/// Writes the timeline of a file.
pub(super) fn write(games: &Games, export: FileExport<'_>, target: &Target) -> Result<(), CommandError> {
    let events = EventSource::of(games, export)?;
    save(target, &mut |out| events.write(export, out))
}

impl EventSource {
    fn of(games: &Games, export: FileExport<'_>) -> Result<EventSource, CommandError> {
        let path = export.file;
        if store::kind_of(path)? == FileKind::Trace {
            return Ok(EventSource::File(TraceFile::open(path)?));
        }
        let log = files::engine(games).survey(path)?;
        let of_its_own = export.args.what_if.is_plain();
        let game = match games.of_header(&log.header) {
            Ok(game) => game,
            Err(_) if of_its_own => {
                let (trace, packets) = said(games, path)?;
                return Ok(EventSource::Recorded(trace, packets));
            }
            Err(error) => return Err(CommandError::file(path, error)),
        };
        // The log's packets include their bytes. They match the replay only under the log's own settings.
        let sent = |name: &str| !of_its_own && [packets::NAME, snapshots::NAME].contains(&name);
        let wanted = |name: &str| SHOWN.contains(&name) || sent(name);
        let ReplayedTables { folder, .. } = ReplayedTables::of(game, export, &log, &wanted, of_its_own)?;
        let trace = TraceFile::open(folder.file(ReplayedTables::NAME).path())?;
        let is_received = traffic::is_received(&log.header);
        Ok(EventSource::Replay { trace, has_packets: of_its_own, is_received, _folder: folder })
    }

    fn write(&self, export: FileExport<'_>, out: &mut (dyn Write + Send)) -> Result<(), CommandError> {
        let written = match self {
            EventSource::Recorded(trace, packets) => perfetto::write(trace, packets.iter().copied().map(Ok), out),
            EventSource::Replay { trace, has_packets: true, is_received, .. } => {
                traffic::of_packet_tables(trace, *is_received)
                    .map_err(PerfettoError::Unread)
                    .and_then(|packets| perfetto::write(trace, packets, out))
            }
            EventSource::File(trace) | EventSource::Replay { trace, .. } => traffic::of_source(trace)
                .map_err(PerfettoError::Unread)
                .and_then(|packets| perfetto::write(trace, packets, out)),
        };
        written.map_err(|error| match error {
            PerfettoError::Unread(what) => CommandError::file(export.file, what),
            PerfettoError::Io(error) => error.into(),
        })
    }
}

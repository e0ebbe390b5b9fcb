//! `hitreg export --perfetto`: writes a timeline while reading a trace.

use std::io::Write;

use super::replayed::ReplayedTables;
use super::{ExportSource, FileExport, save};
use crate::cli::output::Output;
use crate::cli::trouble::CommandError;
use crate::cli::{CommandOutcome, CommandResult};
use crate::engine::Games;
use crate::perfetto::{self, PerfettoError, SHOWN};
use crate::store::{FileType, Target, TraceFile};
use crate::trace::schema::{packets, snapshots};
use crate::traffic::{self, SnapshotNumbers};

pub(super) fn run(games: &Games, export: FileExport<'_>, output: &mut Output) -> CommandResult {
    match output.files.target_if(&export.args.output, FileType::Events)? {
        Some(target) => write(games, export, &target)?,
        None => write_events(&source(games, export)?, export, output.raw())?,
    }
    Ok(CommandOutcome::Done)
}

/// Writes the timeline of a file.
pub(super) fn write(games: &Games, export: FileExport<'_>, target: &Target) -> Result<(), CommandError> {
    let source = source(games, export)?;
    save(target, &mut |out| write_events(&source, export, out))
}

fn source(games: &Games, export: FileExport<'_>) -> Result<ExportSource, CommandError> {
    // The log's packets include their bytes. They match the replay only under the log's own settings.
    let has_packets = export.args.what_if.is_plain();
    let sent = |name: &str| !has_packets && [packets::NAME, snapshots::NAME].contains(&name);
    let wanted = |name: &str| SHOWN.contains(&name) || sent(name);
    ExportSource::of(games, export, |game, log| ReplayedTables::of(game, export, log, &wanted, has_packets))
}

fn write_events(
    source: &ExportSource,
    export: FileExport<'_>,
    out: &mut (dyn Write + Send),
) -> Result<(), CommandError> {
    let of_trace = |trace: &TraceFile, out| {
        let packets = traffic::of_source(trace).map_err(PerfettoError::Unread)?;
        perfetto::write(trace, packets, SnapshotNumbers::Sent.missing(), out)
    };
    let written = match source {
        ExportSource::Recorded(trace, packets, numbers) => {
            perfetto::write(&**trace, packets.iter().copied().map(Ok), numbers.missing(), out)
        }
        ExportSource::File(trace) => of_trace(trace, out),
        ExportSource::Replay(replay) => {
            let trace = replay.trace()?;
            match replay.packets {
                Some(numbers) => traffic::of_packet_table(&trace)
                    .map_err(PerfettoError::Unread)
                    .and_then(|packets| perfetto::write(&trace, packets, numbers.missing(), out)),
                None => of_trace(&trace, out),
            }
        }
    };
    written.map_err(|error| match error {
        PerfettoError::Unread(what) => CommandError::file(export.file, what),
        PerfettoError::Io(error) => error.into(),
    })
}

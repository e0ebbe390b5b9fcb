//! Replays a log to a temporary trace with the requested tables, so that the rows are never all in memory.

use std::cell::RefCell;

use super::FileExport;
use crate::cli::files;
use crate::cli::progress::Progress;
use crate::cli::trouble::CommandError;
use crate::engine::{Playable, SurveyedLog, write_replayed};
use crate::log::TraceLayout;
use crate::record::SessionStretch;
use crate::replay::ReplayOptions;
use crate::store::{self, StoreError, TemporaryFolder, TraceFile};
use crate::trace::schema::{TABLES, TableSet, packets, snapshots};
use crate::trace::{Table, TraceHeader};
use crate::traffic::{self, Packet, PacketReader, SnapshotNumbers};

/// A temporary trace and its tables.
pub(super) struct ReplayedTables {
    /// The folder that contains [`ReplayedTables::NAME`].
    folder: TemporaryFolder,
    /// Each table without its rows, and its number of rows.
    pub(super) shapes: Vec<(Table, u64)>,
    /// The numbers of the log's snapshots; `None` without the log's packets.
    pub(super) packets: Option<SnapshotNumbers>,
}

impl ReplayedTables {
    /// The trace's file name in the folder.
    const NAME: &str = "replayed.hittrace";

    /// Replays the requested tables, and adds the log's packets if `with_packets` is set.
    pub(super) fn of(
        game: &dyn Playable,
        export: FileExport<'_>,
        log: &SurveyedLog,
        wanted: &dyn Fn(&str) -> bool,
        with_packets: bool,
    ) -> Result<ReplayedTables, CommandError> {
        let (options, _) = export.args.what_if.options(&log.header)?;
        let tables = TableSet::named(TABLES.map(|table| table.name).into_iter().filter(|name| wanted(name)));
        // If no table is requested, all tables are counted.
        let tables = if tables == TableSet::NONE { TableSet::ALL } else { tables };
        let options = ReplayOptions { network: true, tables, ..options };
        files::note_hole(export.file, log.survey.first_hole());
        let progress = match export.alone {
            true => Progress::of_session("replaying", log.survey.duration()),
            false => Progress::hidden(),
        };
        let folder = store::temporary_folder()?;
        let target = folder.file(ReplayedTables::NAME);
        let shapes = write_replayed(&target, TraceLayout::Raw, |encoded, write| {
            let (mut shapes, write) = (Vec::new(), RefCell::new(write));
            let mut rows = |header: &_, rows: Table| {
                note(&mut shapes, &rows);
                if wanted(&rows.name) {
                    write.borrow_mut()(header, rows);
                }
            };
            let put = |packets: &[Packet]| write.borrow_mut()(&TraceHeader::default(), traffic::packet_table(packets));
            let mut packets = with_packets.then(|| PacketReader::new(&log.header));
            let mut seen = |stretch: &SessionStretch| {
                if let Some(packets) = &mut packets {
                    let mut read = Vec::new();
                    packets.add(stretch, &mut |packet| read.push(packet));
                    put(&read);
                }
            };
            let options = (&options, encoded);
            let ran = log.attempt(game, options, &mut seen, &mut rows, &mut |at| progress.reached(at))?;
            if let Some(packets) = packets {
                let mut rest = Vec::new();
                packets.end(&mut |packet| rest.push(packet));
                put(&rest);
            }
            // A replay of the clients alone sends nothing, but the log says what was sent.
            let runs_no_server = !log.has_server() || export.args.what_if.is_open();
            let wants_network = tables.has(&packets::SCHEMA) || tables.has(&snapshots::SCHEMA);
            if ran.is_some() && wants_network && runs_no_server {
                log.recorded_network()?.into_iter().for_each(|table| rows(&TraceHeader::default(), table));
            }
            Ok(ran.map(|_| shapes))
        })?;
        let packets = with_packets.then(|| SnapshotNumbers::of(&log.header));
        Ok(ReplayedTables { folder, shapes: in_order(shapes), packets })
    }

    /// Opens the trace.
    pub(super) fn trace(&self) -> Result<TraceFile, StoreError> {
        TraceFile::open(self.folder.file(ReplayedTables::NAME).path())
    }
}

fn note(shapes: &mut Vec<(Table, u64)>, rows: &Table) {
    let count = rows.rows() as u64;
    match shapes.iter_mut().find(|(known, _)| known.name == rows.name) {
        Some((known, before)) => {
            if count > 0 {
                known.widen(rows.without_rows(), *before == 0);
            }
            *before += count;
        }
        None => shapes.push((rows.without_rows(), count)),
    }
}

/// Sorts the tables into their usual order, whatever the order of their first rows.
fn in_order(mut shapes: Vec<(Table, u64)>) -> Vec<(Table, u64)> {
    let place = |name: &str| TABLES.iter().position(|known| known.name == name).unwrap_or(TABLES.len());
    shapes.sort_by_key(|(table, _)| place(&table.name));
    shapes
}

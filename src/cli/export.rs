//! `hitreg export`: writes a trace's tables as JSONL or CSV, or the whole trace as events for Perfetto.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hitreg_analysis::row_text::{CsvWriter, JsonlWriter, RowOutput, RowWriter};
use serde::Serialize;

use super::corpus::{CorpusArgs, EachLog, WorkerArgs, are_several};
use super::figures::count;
use super::progress::Progress;
use super::replay_args::{WhatIfArgs, offered_tables};
use super::trouble::{engine_with_notes, note_gap};
use super::{CommandError, CommandOutcome, CommandResult, Output, OutputPath, Outputs};
use crate::engine::{Engine, EngineError, Games, Playable, ReplaySinks, SurveyedLog, write_replayed};
use crate::log::{FileKind, TraceLayout};
use crate::perfetto::{self, PerfettoError};
use crate::record::SessionChunk;
use crate::recorded;
use crate::replay::{ReplayAttempt, ReplayOptions};
use crate::store::{self, FileType, StoreError, Target, TemporaryFolder, TraceFile};
use crate::trace::schema::{TABLES, TableSchema, TableSet, packets, snapshots};
use crate::trace::{Digest, Table, Trace, TraceHeader, TraceSource};
use crate::traffic::{self, Packet, PacketReader, SnapshotNumbers};

/// Write a table of a trace as JSONL or CSV; a log is replayed first
///
/// Without --table, it lists the tables. Hashes have 16 hexadecimal digits. A missing value is null in JSONL and empty
/// in CSV. A log of another game is not replayed: its records are exported as tables, the packets and snapshots too.
///
/// Several files are exported in parallel. Then -o names a folder: the tables of match.hitlog go to its subfolder
/// `match`, and its timeline to match.json. A file that fails does not stop the others.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg export match.hitlog                       list the tables
  hitreg export match.hitlog --table shots
  hitreg export match.hitlog --table corrections --to csv -o corrections.csv
  hitreg export match.hittrace --all --to csv -o tables/
  hitreg export logs --table shots -o tables/      tables/LOG/shots.jsonl
  hitreg export match.hitlog --table shots --set interpolation.lerp_ms=50
  hitreg export match.hitlog --perfetto -o match.json")]
pub(super) struct Args {
    /// Traces, logs, directories to search for *.hitlog, quoted patterns, or @FILE with a path on each line
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The table to write
    #[arg(long, value_name = "NAME", conflicts_with = "all", value_parser = offered_tables(), hide_possible_values = true)]
    table: Option<String>,
    /// Write a timeline for Perfetto (ui.perfetto.dev) in Chrome's trace format: ticks, frames, acks, shots, packets
    #[arg(long, conflicts_with_all = ["table", "all", "to"])]
    perfetto: bool,
    /// Write all tables, one file each
    #[arg(long, requires = "output")]
    all: bool,
    /// Format of the rows [default: that of the output file's extension, or jsonl]
    #[arg(long, value_parser = row_format(), value_name = "jsonl|csv|parquet", hide_possible_values = true)]
    to: Option<RowFormat>,
    /// Output file; with --all or for several logs, a directory [default: standard output]
    #[arg(short, long, value_name = "PATH")]
    output: Option<OutputPath>,
    #[command(flatten)]
    what_if: WhatIfArgs,
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

/// A file to export.
#[derive(Clone, Copy)]
struct FileExport<'a> {
    args: &'a Args,
    file: &'a Path,
    /// Whether there is no other file, so that a progress bar is shown.
    alone: bool,
}

#[derive(Serialize)]
struct TableListing<'a> {
    table: &'a str,
    rows: u64,
    columns: Vec<&'a str>,
}

impl Args {
    fn format(&self) -> RowFormat {
        self.to.or_else(|| RowFormat::named(&self.extension()?).ok()).unwrap_or(RowFormat::Jsonl)
    }

    /// The extension of the file for one table, in small letters.
    fn extension(&self) -> Option<String> {
        let file = self.output.as_deref().filter(|_| self.table.is_some())?;
        Some(file.extension()?.to_str()?.to_ascii_lowercase())
    }

    /// Refuses `--format json`, which no rows have, and a format of rows that this build cannot write.
    fn check_rows(&self, output: &Output) -> Result<(), CommandError> {
        if self.to.is_none() && self.extension().as_deref() == Some("parquet") {
            RowFormat::named("parquet").map_err(CommandError::request)?;
        }
        match self.table.is_some() || self.all {
            true => output.check_no_result("rows: choose their format with --to jsonl, csv or parquet"),
            false => Ok(()),
        }
    }
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let export = match &args.files[..] {
        [file] if !are_several(&args.files) && !args.corpus.takes_a_part() => FileExport { args, file, alone: true },
        _ => {
            args.what_if.check()?;
            return run_corpus(games, args, output);
        }
    };
    export.check_what_if()?;
    if args.perfetto {
        output.check_no_result("a timeline: leave it out")?;
        return run_events(games, export, output);
    }
    args.check_rows(output)?;
    let target = match (&args.table, &args.output) {
        (Some(name), Some(path)) => Some(output.files.target(path, like_key(name, args.format()))?),
        _ => None,
    };
    let source = ExportSource::of_tables(games, export)?;
    match (&args.table, &args.output) {
        (Some(name), _) => match &target {
            Some(target) => source.save(name, export, target)?,
            None => source.write(name, export, output.raw())?,
        },
        (None, Some(directory)) if args.all => source.save_all(export, directory, &output.files)?,
        (None, Some(_)) if output.is_typed("output") => {
            return Err(CommandError::request("-o needs --table NAME or --all; without them, the tables are listed"));
        }
        (None, _) if output.is_typed("to") => {
            return Err(CommandError::request("--to needs --table NAME or --all; without them, the tables are listed"));
        }
        (None, _) => return list(&source.shapes(), output),
    }
    Ok(CommandOutcome::Done)
}

impl FileExport<'_> {
    /// Refuses other settings for a trace, which is the result of a replay, and impossible ones for a log.
    fn check_what_if(self) -> Result<(), CommandError> {
        match store::kind_of(self.file)? {
            FileKind::Trace if self.args.what_if.is_plain() => Ok(()),
            FileKind::Trace => Err(EngineError::already_replayed(self.file).into()),
            FileKind::Log | FileKind::Other => self.args.what_if.check(),
        }
    }
}

/// The source of tables and events.
enum ExportSource {
    /// The records and packets of a log whose game this build does not know.
    Recorded(Box<Trace>, Vec<Packet>, SnapshotNumbers),
    /// A trace in a file.
    File(TraceFile),
    /// A replay in a temporary file.
    Replay(ReplayedTables),
}

impl ExportSource {
    fn of(
        games: &Games,
        export: FileExport<'_>,
        replay: impl FnOnce(&dyn Playable, &SurveyedLog) -> Result<ReplayedTables, CommandError>,
    ) -> Result<ExportSource, CommandError> {
        let path = export.file;
        if store::kind_of(path)? == FileKind::Trace {
            return Ok(ExportSource::File(TraceFile::open(path)?));
        }
        let log = engine_with_notes(games).survey(path)?;
        match games.of_header(&log.header) {
            Ok(game) => Ok(ExportSource::Replay(replay(game, &log)?)),
            // The log's own records can be exported without its game.
            Err(_) if export.args.what_if.is_plain() => {
                let session = Engine::new(games).read_log(path)?.session;
                let mut trace = recorded::all_records(&session);
                trace.tables.extend(recorded::recorded_network(&session));
                trace.tables.extend(recorded::recorded_bytes(&session));
                trace.tables.extend(recorded::recorded_presence(&session));
                trace.tables.extend(recorded::recorded_gaps(&session));
                let packets = traffic::of_session(&session);
                Ok(ExportSource::Recorded(Box::new(trace), packets, SnapshotNumbers::of(&session.header)))
            }
            Err(error) => Err(CommandError::file(path, error)),
        }
    }

    /// The source of the requested tables.
    fn of_tables(games: &Games, export: FileExport<'_>) -> Result<ExportSource, CommandError> {
        let args = export.args;
        let wanted = |name: &str| args.all || args.table.as_deref() == Some(name);
        ExportSource::of(games, export, |game, log| {
            let made = ReplayedTables::of(game, export, log, &wanted, false)?;
            // The requested table is missing from this replay, for example `variables`. The error then lists all tables
            // that exist.
            let has = |name: &str| made.shapes.iter().any(|(table, _)| table.name == name);
            match args.table.as_deref().is_some_and(|name| TableSchema::of(name).is_some() && !has(name)) {
                true => ReplayedTables::of(game, export, log, &|_| false, false),
                false => Ok(made),
            }
        })
    }

    /// The tables, without rows, and their numbers of rows.
    fn shapes(&self) -> Vec<(&Table, u64)> {
        match self {
            ExportSource::Recorded(trace, ..) => trace.tables(),
            ExportSource::File(trace) => trace.tables(),
            ExportSource::Replay(replay) => replay.shapes.iter().map(|(table, rows)| (table, *rows)).collect(),
        }
    }

    fn save(&self, name: &str, export: FileExport<'_>, target: &Target) -> Result<(), CommandError> {
        let kind = like(find(&self.shapes(), name, export.file)?, export.args.format());
        save(&target.with_kind(kind), &mut |out| self.write(name, export, out))
    }

    /// Writes each table to its file in a folder.
    fn save_all(&self, export: FileExport<'_>, folder: &Path, outputs: &Outputs) -> Result<(), CommandError> {
        let shapes = self.shapes();
        let files = files_in(&shapes, export);
        store::create_folder(folder)?;
        let target = |(name, file): (String, String)| {
            let kind = like(find(&shapes, &name, export.file)?, export.args.format());
            Ok((name, outputs.target_at(&folder.join(file), kind)?))
        };
        let targets = files.into_iter().map(target).collect::<Result<Vec<_>, CommandError>>()?;
        targets.iter().try_for_each(|(name, target)| self.save(name, export, target))
    }

    fn write(&self, name: &str, export: FileExport<'_>, out: &mut (dyn Write + Send)) -> Result<(), CommandError> {
        let (shapes, args) = (self.shapes(), export.args);
        let shape = find(&shapes, name, export.file)?;
        let mut rows = row_writer(shape, args.format(), out)?;
        let trace = match self {
            ExportSource::Recorded(..) => {
                rows.write(Cow::Borrowed(shape))?;
                return Ok(rows.finish()?);
            }
            ExportSource::File(trace) => Cow::Borrowed(trace),
            ExportSource::Replay(replay) => Cow::Owned(replay.trace()?),
        };
        for part in trace.parts(name, &[], None) {
            rows.write(Cow::Owned(shape.filled(part?)))?;
        }
        Ok(rows.finish()?)
    }
}

/// Writes a file under a temporary name, and renames it once it is complete.
fn save(
    target: &Target,
    write: &mut dyn FnMut(&mut (dyn Write + Send)) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut unread = None;
    let saved = store::save(target, |out| match write(out) {
        Ok(()) => Ok(()),
        Err(CommandError::Output(error)) => Err(error.into()),
        Err(CommandError::ClosedPipe) => Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()),
        Err(trouble) => {
            unread = Some(trouble);
            Err(std::io::Error::other("it cannot be read").into())
        }
    });
    match unread {
        Some(trouble) => Err(trouble),
        None => Ok(saved?),
    }
}

fn find<'a>(tables: &[(&'a Table, u64)], name: &str, path: &Path) -> Result<&'a Table, CommandError> {
    tables.iter().find(|(table, _)| table.name == name).map(|(table, _)| *table).ok_or_else(|| {
        let known = tables.iter().map(|(table, _)| table.name.as_str()).collect::<Vec<_>>().join(", ");
        CommandError::file(path, format!("there is no table `{name}`; there are {known}"))
    })
}

/// The name and the file name of each table.
fn files_in(tables: &[(&Table, u64)], export: FileExport<'_>) -> Vec<(String, String)> {
    let ending = export.args.format().ending();
    let file = |(table, _): &(&Table, u64)| {
        let name = &table.name;
        // Some file systems do not tell capitals from small letters.
        let is_like = |other: &Table| other.name != *name && other.name.eq_ignore_ascii_case(name);
        let keeps_capitals = !tables.iter().any(|(other, _)| is_like(other));
        (name.clone(), format!("{}.{ending}", plain_name(name, keeps_capitals)))
    };
    tables.iter().map(file).collect()
}

/// The beginning of a file name for a table. Names in a trace are untrusted: other bytes than plain ones become `%` and
/// two hexadecimal digits, as in a URL.
fn plain_name(table: &str, keeps_capitals: bool) -> String {
    let escaped = |(place, byte): (usize, u8)| match byte {
        // Tables of classes have a dot in their names.
        b'.' if place > 0 => ".".to_owned(),
        b'A'..=b'Z' if keeps_capitals => char::from(byte).to_string(),
        b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    let name: String = table.bytes().enumerate().map(escaped).collect();
    // A long name is cut, and its digest tells it from others.
    match name.len() {
        0 => "%".to_owned(),
        1..=NAME_BYTES_MAX => name,
        _ => format!("{}%{:032x}", &name[..NAME_BYTES_MAX - 40], Digest::of_bytes(table.as_bytes()).0),
    }
}

/// The most bytes of a table's name in the name of its file.
const NAME_BYTES_MAX: usize = 200;

/// The kind of an earlier export of this table.
fn like(table: &Table, format: RowFormat) -> FileType {
    let columns = table.columns.iter().map(|column| column.name.clone()).collect();
    format.file_type(FileType::TraceTable { name: table.name.clone(), columns })
}

/// What is known of the kind before the table is: the columns that identify its rows. A custom table declares none, so
/// any file passes until its columns are known.
fn like_key(name: &str, format: RowFormat) -> FileType {
    let key = TableSchema::of(name).map_or(&[][..], |schema| schema.key);
    format.file_type(FileType::Table(key.iter().map(|column| (*column).to_owned()).collect()))
}

fn list(tables: &[(&Table, u64)], output: &mut Output) -> CommandResult {
    let listed: Vec<TableListing<'_>> = tables
        .iter()
        .map(|(table, rows)| TableListing {
            table: &table.name,
            rows: *rows,
            columns: table.columns.iter().map(|column| column.name.as_str()).collect(),
        })
        .collect();
    output.show(&listed, |page| {
        let row = |t: &TableListing<'_>| {
            let mut columns = t.columns.join(" ");
            if columns.len() > 52 {
                columns = columns[..columns.floor_char_boundary(49)].trim_end().to_owned() + "...";
            }
            [t.table.to_owned(), count(t.rows), columns]
        };
        page.table(&["table", ">rows", "columns"], listed.iter().map(row));
    })
}

fn run_corpus(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    if !args.perfetto && args.table.is_none() && !args.all {
        return Err(CommandError::request(
            "the list of tables is that of one log: name one log, or add --table NAME or --all",
        ));
    }
    let Some(folder) = &args.output else {
        return Err(CommandError::request("several logs need a folder for their outputs: add -o FOLDER"));
    };
    match args.perfetto {
        true => output.check_no_result("a timeline: leave it out")?,
        false => args.check_rows(output)?,
    }
    let corpus = args.corpus.corpus(&args.files)?;
    let outputs = &mut output.files;
    let timelines = match args.perfetto {
        true => outputs.target_of_each(folder, &corpus.logs, "json", &FileType::Events)?,
        false => Vec::new(),
    };
    let folders = if args.perfetto { Vec::new() } else { outputs.names_in(folder, &corpus.logs)? };
    let outputs = &*outputs;
    let exported = EachLog::run("exporting", &corpus, args.workers.threads(), &|number, file| {
        let export = FileExport { args, file, alone: false };
        export.check_what_if()?;
        if let Some(target) = timelines.get(number) {
            return write_timeline(games, export, target);
        }
        let source = ExportSource::of_tables(games, export)?;
        let Some(name) = &args.table else { return source.save_all(export, &folders[number], outputs) };
        find(&source.shapes(), name, file)?;
        store::create_folder(&folders[number])?;
        let format = args.format();
        let path = folders[number].join(format!("{name}.{}", format.ending()));
        source.save(name, export, &outputs.target_at(&path, like_key(name, format))?)
    })?;
    Ok(exported.report())
}

fn run_events(games: &Games, export: FileExport<'_>, output: &mut Output) -> CommandResult {
    match output.files.target_if(&export.args.output, FileType::Events)? {
        Some(target) => write_timeline(games, export, &target)?,
        None => write_events(&timeline_source(games, export)?, export, output.raw())?,
    }
    Ok(CommandOutcome::Done)
}

/// Writes the timeline of a file.
fn write_timeline(games: &Games, export: FileExport<'_>, target: &Target) -> Result<(), CommandError> {
    let source = timeline_source(games, export)?;
    save(target, &mut |out| write_events(&source, export, out))
}

fn timeline_source(games: &Games, export: FileExport<'_>) -> Result<ExportSource, CommandError> {
    // The log's packets include their bytes. They match the replay only under the log's own settings.
    let has_packets = export.args.what_if.is_plain();
    let sent = |name: &str| !has_packets && [packets::NAME, snapshots::NAME].contains(&name);
    let wanted = |name: &str| perfetto::TABLES.contains(&name) || sent(name);
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

/// A temporary trace and its tables.
struct ReplayedTables {
    /// The folder that contains [`ReplayedTables::NAME`].
    folder: TemporaryFolder,
    /// Each table without its rows, and its number of rows.
    shapes: Vec<(Table, u64)>,
    /// The numbers of the log's snapshots; `None` without the log's packets.
    packets: Option<SnapshotNumbers>,
}

impl ReplayedTables {
    /// The trace's file name in the folder.
    const NAME: &str = "replayed.hittrace";

    /// Replays the requested tables, and adds the log's packets if `with_packets` is set.
    fn of(
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
        note_gap(export.file, log.survey.first_gap());
        let progress = Progress::of_replay(log.survey.duration(), export.alone);
        let folder = store::temporary_folder()?;
        let target = folder.file(ReplayedTables::NAME);
        let shapes = write_replayed(&target, TraceLayout::Raw, |encodes, write| {
            let (mut shapes, write) = (Vec::new(), RefCell::new(write));
            let mut rows = |header: &_, rows: Table| {
                note_rows(&mut shapes, &rows);
                if wanted(&rows.name) {
                    write.borrow_mut()(header, rows);
                }
            };
            let put = |packets: &[Packet]| write.borrow_mut()(&TraceHeader::default(), traffic::packet_table(packets));
            let mut packets = with_packets.then(|| PacketReader::new(&log.header));
            let mut seen = |chunk: &SessionChunk| {
                if let Some(packets) = &mut packets {
                    let mut read = Vec::new();
                    packets.add(chunk, &mut |packet| read.push(packet));
                    put(&read);
                }
            };
            let attempt = ReplayAttempt { options: &options, encodes };
            let reached = &mut |at| progress.reached(at);
            let ran =
                log.replay_once(game, attempt, ReplaySinks { seen: &mut seen, to: &mut rows, progress: reached })?;
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
    fn trace(&self) -> Result<TraceFile, StoreError> {
        TraceFile::open(self.folder.file(ReplayedTables::NAME).path())
    }
}

fn note_rows(shapes: &mut Vec<(Table, u64)>, rows: &Table) {
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

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowFormat {
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values under a line of column names.
    Csv,
    /// Columns in zstd pages, for DuckDB, pandas and their like.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// A parser of formats. Parquet is an optional feature.
fn row_format() -> impl TypedValueParser<Value = RowFormat> {
    PossibleValuesParser::new(["jsonl", "csv", "parquet"]).try_map(|name| RowFormat::named(&name))
}

impl RowFormat {
    /// The format of this name, which is also its file extension.
    fn named(name: &str) -> Result<RowFormat, &'static str> {
        match name {
            "jsonl" => Ok(RowFormat::Jsonl),
            "csv" => Ok(RowFormat::Csv),
            #[cfg(feature = "parquet")]
            "parquet" => Ok(RowFormat::Parquet),
            #[cfg(not(feature = "parquet"))]
            "parquet" => Err("this hitreg was built without Parquet: build it with `--features parquet`"),
            _ => Err("the formats of rows are jsonl, csv and parquet"),
        }
    }

    /// The file extension.
    fn ending(self) -> &'static str {
        match self {
            RowFormat::Jsonl => "jsonl",
            RowFormat::Csv => "csv",
            #[cfg(feature = "parquet")]
            RowFormat::Parquet => "parquet",
        }
    }

    /// The kind of a file whose rows, as text, are of this kind.
    fn file_type(self, text: FileType) -> FileType {
        match self {
            RowFormat::Jsonl | RowFormat::Csv => text,
            #[cfg(feature = "parquet")]
            RowFormat::Parquet => FileType::Parquet,
        }
    }
}

/// Begins the output of a table with these columns.
fn row_writer<'a>(shape: &Table, format: RowFormat, out: RowOutput<'a>) -> io::Result<Box<dyn RowWriter + 'a>> {
    Ok(match format {
        RowFormat::Csv => Box::new(CsvWriter::new(shape, out)?),
        RowFormat::Jsonl => Box::new(JsonlWriter::new(shape, out)),
        #[cfg(feature = "parquet")]
        RowFormat::Parquet => Box::new(crate::parquet_file::ParquetWriter::new(shape, out)?),
    })
}

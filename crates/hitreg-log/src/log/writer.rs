//! Writes logs: record by record while a session runs, or a whole session at once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

use super::chunk::{self, SessionSlice};
use super::container::ChunkSink;
use super::error::{RECORD_BYTES_MAX, WriteError, no_thread};
use super::header;
use crate::record::{
    EventTime, GapCause, GapRecord, MisplacedRecord, OF_PLAYERS, OF_SESSION, Record, RecordStream, Session,
    SessionChunk, SessionHeader, Texts, UnknownKind, UnknownRecords,
};
use crate::units::{Micros, Tick};

/// The size of chunks, and the compression level. Change fields of [`WriterOptions::live`] or [`WriterOptions::whole`],
/// because later versions add options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// The zstd level, 1 to 22.
    pub level: i32,
    /// The zstd level of the header. A file has one header, but in a short log it is a large part of the file, so a
    /// higher level pays.
    pub header_level: i32,
    /// The most session time in a chunk.
    pub span: Micros,
    /// The most bytes of records in memory in a chunk. Values over 4 MiB count as 4 MiB.
    pub bytes: usize,
}

/// At level 19 a header takes five times as long to compress, and is 0.5 % smaller.
const HEADER_LEVEL: i32 = 15;

impl WriterOptions {
    /// Returns the options for recording: at most one second or 288 KiB of session is unwritten at any time.
    pub const fn live() -> WriterOptions {
        WriterOptions { level: 3, header_level: HEADER_LEVEL, span: Micros::from_s(1), bytes: 288 << 10 }
    }

    /// Returns the options for data that is stored elsewhere, as in `import` and `recover`: long chunks compress
    /// better.
    pub const fn whole() -> WriterOptions {
        WriterOptions { level: 15, header_level: HEADER_LEVEL, span: Micros::from_s(60), bytes: 4 << 20 }
    }
}

/// Writes a log while its session runs.
///
/// [`LogWriter::push`] appends to columns in memory, and compresses and writes a chunk when it is full.
/// [`BackgroundLogWriter`] does that on another thread. A writer dropped without [`LogWriter::finish`] leaves a
/// cut-off log, as a crash would.
pub struct LogWriter<W> {
    header: SessionHeader,
    /// The chunk that fills up.
    chunk: SessionChunk,
    fill: ChunkFill,
    sink: ChunkSink<W>,
}

crate::partial_debug!([W] LogWriter<W> { header });

impl<W: Write> LogWriter<W> {
    /// Writes the header of a new log.
    ///
    /// # Errors
    /// When writing fails, or the header does not fit into a chunk.
    pub fn new(out: W, header: &SessionHeader, options: WriterOptions) -> Result<LogWriter<W>, WriteError> {
        let sink = begin_log(out, header, options)?;
        let (chunk, fill) = (SessionChunk::of(header), ChunkFill::new(options));
        Ok(LogWriter { header: header.clone(), chunk, fill, sink })
    }

    /// Adds a record. The writer refuses a record that does not fit the header, and can continue.
    ///
    /// # Errors
    /// When the record does not fit, or writing a full chunk fails. After a failed write, every call fails.
    pub fn push(&mut self, record: Record) -> Result<(), WriteError> {
        if self.fill.add(record.when(), record.bytes())? {
            self.flush_chunk()?;
        }
        Ok(self.chunk.push(record, &self.header)?)
    }

    /// Sets the texts of the records: their text codes stand for these. A code without a text is written as an empty
    /// text.
    pub fn set_texts(&mut self, texts: &Texts) {
        self.chunk.texts.clone_from(texts);
    }

    /// Writes the records so far as a chunk of their own.
    ///
    /// # Errors
    /// When writing fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.fill.restart();
        self.flush_chunk()
    }

    /// Ends the log: writes the last chunks, the seal and the seek table.
    ///
    /// # Errors
    /// When writing fails; the log is then cut off.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        self.sink.finish()
    }

    fn flush_chunk(&mut self) -> Result<(), WriteError> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        write_chunk(&mut self.sink, &SessionSlice::whole(&self.chunk), &self.header)?;
        self.chunk.clear();
        Ok(())
    }
}

/// Writes the header of a new log.
fn begin_log<W: Write>(out: W, header: &SessionHeader, options: WriterOptions) -> Result<ChunkSink<W>, WriteError> {
    let mut sink = ChunkSink::new(out, options.level)?;
    sink.write_header(&header::encode_log(header)?, options.header_level)?;
    Ok(sink)
}

fn write_chunk<W: Write>(
    sink: &mut ChunkSink<W>,
    part: &SessionSlice<'_>,
    header: &SessionHeader,
) -> Result<(), WriteError> {
    let content = chunk::encode(part, header, sink.next())?;
    sink.write_chunk(chunk::CONTENT, &content, None, chunk::rows_by_table(part, header))
}

/// Writes a whole session, with the players' records merged in time order.
///
/// # Errors
/// When writing fails, or the session does not fit its own header.
pub fn write_session<W: Write>(out: W, session: &Session, options: WriterOptions) -> Result<W, WriteError> {
    check_session(session, &session.header)?;
    let mut sink = begin_log(out, &session.header, options)?;
    let mut timeline = Timeline::whole(session, &session.header.unknown, options);
    write_rest(&mut sink, &mut timeline, session, &session.header)?;
    sink.finish()
}

/// Writes all parts of a session that a timeline has not passed on yet.
fn write_rest<W: Write, H>(
    sink: &mut ChunkSink<W>,
    timeline: &mut Timeline,
    session: &Session<H>,
    header: &SessionHeader,
) -> Result<(), WriteError> {
    while let Some(part) = timeline.next(session, None)? {
        write_chunk(sink, &part, header)?;
    }
    timeline.last(session).map_or(Ok(()), |part| write_chunk(sink, &part, header))
}

/// Checks whether a session fits its header.
fn check_session<H>(session: &Session<H>, header: &SessionHeader) -> Result<(), MisplacedRecord> {
    let players = header.players.len();
    if session.players.len() != players {
        let id = crate::units::PlayerId(u16::try_from(session.players.len().max(1) - 1).unwrap_or(u16::MAX));
        return Err(MisplacedRecord::Player { id, players });
    }
    session.states.iter().try_for_each(|(key, cells)| key.check(cells.len(), header))
}

/// The most full chunks that may wait for a slow disk.
const WAITING_CHUNKS: usize = 16;

/// What to do when the queue of waiting chunks is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueuePolicy {
    /// The caller that adds the next record waits too.
    #[default]
    Wait,
    /// The chunk is dropped and the log records a gap, so the caller never waits.
    Drop,
}

/// The number of records in written chunks, of one file or of all files of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordCounter(Arc<AtomicU64>);

impl RecordCounter {
    /// Whether a record counts. A gap because of an overrun does not: the recorder itself adds it.
    pub(crate) fn counts(record: &Record) -> bool {
        !matches!(record, Record::Gap(GapRecord { why: GapCause::Overrun, .. }))
    }

    pub(crate) fn add(&self, records: u64) {
        self.0.fetch_add(records, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A job for the thread.
enum WriterJob {
    /// Writes a chunk that has so many records.
    Write(Box<SessionChunk>, u64, RecordCounter),
    End,
}

/// Writes a log while its session runs. A thread of its own packs, compresses and writes. A writer dropped without
/// [`BackgroundLogWriter::finish`] leaves a cut-off log, as a crash would.
pub struct BackgroundLogWriter<W> {
    header: SessionHeader,
    /// The chunk that fills up.
    chunk: SessionChunk,
    fill: ChunkFill,
    when_full: QueuePolicy,
    dropped: DroppedChunks,
    /// The number of records in the current chunk.
    current_records: u64,
    records: RecordCounter,
    jobs: SyncSender<WriterJob>,
    /// Written chunks, to be refilled.
    used: Receiver<SessionChunk>,
    /// The number of bytes in the file so far.
    written: Arc<AtomicU64>,
    /// `None` after its error was returned.
    thread: Option<JoinHandle<Result<W, WriteError>>>,
}

crate::partial_debug!([W] BackgroundLogWriter<W> { header });

/// The chunks dropped because the disk was too slow.
#[derive(Clone, Copy, Debug, Default)]
struct DroppedChunks {
    chunks: u64,
    /// The newest time in any chunk that was queued.
    queued_until: Option<Micros>,
    /// The first and the newest time in the current chunk.
    current_span: Option<(Micros, Micros)>,
    /// The start of the unrecorded gap, and the newest time dropped.
    gap: Option<(Micros, Micros)>,
}

impl DroppedChunks {
    fn add(&mut self, when: EventTime) {
        if let EventTime::At(at) = when {
            let (first, newest) = self.current_span.unwrap_or((at, at));
            self.current_span = Some((first.min(at), newest.max(at)));
        }
    }

    /// Returns the gap for the next chunk to record. Its ends are beyond the times of the dropped records.
    fn gap_record(&self) -> Option<GapRecord> {
        let (from, newest) = self.gap?;
        let after = newest + Micros(1);
        let to = self.current_span.map_or(after, |(first, _)| first.max(after));
        Some(GapRecord { from, to, player: None, why: GapCause::Overrun })
    }

    fn chunk_queued(&mut self) {
        self.gap = None;
        let newest = self.current_span.take().map(|(_, newest)| newest);
        self.queued_until = self.queued_until.max(newest);
    }

    fn chunk_dropped(&mut self) {
        self.chunks += 1;
        let Some((first, newest)) = self.current_span.take() else { return };
        let before = first - Micros(1);
        let from = self.gap.map_or(before, |(from, _)| from.min(before));
        let from = self.queued_until.map_or(from, |until| until.min(from));
        self.gap = Some((from, newest));
    }
}

impl<W: Write + Send + 'static> BackgroundLogWriter<W> {
    /// Writes the header of a new log and starts the thread.
    ///
    /// # Errors
    /// When writing fails, or no thread can be started.
    pub fn new(out: W, header: &SessionHeader, options: WriterOptions) -> Result<BackgroundLogWriter<W>, WriteError> {
        let sink = begin_log(out, header, options)?;
        let (jobs, waiting) = sync_channel(WAITING_CHUNKS);
        let (to_refill, used) = channel();
        let fields = header.clone();
        let written = Arc::new(AtomicU64::new(sink.offset()));
        let progress = Arc::clone(&written);
        let work = move || run_writer(sink, &fields, &waiting, &to_refill, &progress);
        let thread = std::thread::Builder::new().name("log writer".into()).spawn(work);
        let thread = Some(thread.map_err(no_thread)?);
        let (chunk, fill, dropped) = (SessionChunk::of(header), ChunkFill::new(options), DroppedChunks::default());
        let when_full = QueuePolicy::default();
        let header = header.clone();
        let (current_records, records) = (0, RecordCounter::default());
        Ok(BackgroundLogWriter {
            header,
            chunk,
            fill,
            when_full,
            dropped,
            current_records,
            records,
            jobs,
            used,
            written,
            thread,
        })
    }

    /// Sets what to do when the disk is too slow.
    #[must_use]
    pub fn when_full(self, when_full: QueuePolicy) -> BackgroundLogWriter<W> {
        BackgroundLogWriter { when_full, ..self }
    }

    /// Counts written records in this counter.
    #[must_use]
    pub(crate) fn count_records(self, records: RecordCounter) -> BackgroundLogWriter<W> {
        BackgroundLogWriter { records, ..self }
    }

    /// Adds a record. The writer refuses a record that does not fit the header, and can continue.
    ///
    /// # Errors
    /// When the record does not fit, or the thread has stopped after an error, which is returned once.
    pub fn push(&mut self, record: Record) -> Result<(), WriteError> {
        let counts = RecordCounter::counts(&record);
        self.push_uncounted(record)?;
        self.current_records += u64::from(counts);
        Ok(())
    }

    /// Adds a record that does not count, because an earlier file has it.
    pub(crate) fn push_uncounted(&mut self, record: Record) -> Result<(), WriteError> {
        let when = record.when();
        if self.fill.add(when, record.bytes())? {
            self.flush_chunk()?;
        }
        self.chunk.push(record, &self.header)?;
        self.dropped.add(when);
        Ok(())
    }

    /// Sets the texts of the records, as [`LogWriter::set_texts`](super::LogWriter::set_texts) does.
    pub fn set_texts(&mut self, texts: &Texts) {
        self.chunk.texts.clone_from(texts);
    }

    /// Returns the number of chunks dropped because the disk was too slow.
    pub fn dropped_chunks(&self) -> u64 {
        self.dropped.chunks
    }

    /// Returns the number of bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Queues the records so far as a chunk of their own.
    ///
    /// # Errors
    /// When the thread has stopped after an error, which is returned once.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.fill.restart();
        self.flush_chunk()
    }

    /// Queues the current chunk. The error is that of the thread, if it has stopped and its error was not returned yet.
    fn flush_chunk(&mut self) -> Result<(), WriteError> {
        self.queue_chunk(self.when_full).map_err(|error| {
            let thread = self.thread.take_if(|_| matches!(error, WriteError::ThreadGone));
            match thread.map(JoinHandle::join) {
                Some(Ok(Err(cause))) => cause,
                _ => error,
            }
        })
    }

    /// Ends the log, and waits until it is completely written.
    ///
    /// # Errors
    /// The first failed write; the log ends before it.
    pub fn finish(mut self) -> Result<W, WriteError> {
        if let Some(gap) = self.dropped.gap_record().filter(|_| self.chunk.is_empty()) {
            self.chunk.push(Record::Gap(gap), &self.header)?;
        }
        // The last chunk waits for as long as writing takes.
        let last = self.queue_chunk(QueuePolicy::Wait).and_then(|()| self.send(WriterJob::End));
        drop(self.jobs);
        // The thread's own error says more than that the thread has stopped.
        let thread = self.thread.ok_or(WriteError::ThreadGone)?;
        let out = thread.join().map_err(|_| WriteError::ThreadGone)??;
        last.map(|()| out)
    }

    fn queue_chunk(&mut self, when_full: QueuePolicy) -> Result<(), WriteError> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        if let Some(gap) = self.dropped.gap_record() {
            self.chunk.push(Record::Gap(gap), &self.header)?;
        }
        let mut next = self.used.try_recv().unwrap_or_else(|_| SessionChunk::of(&self.header));
        next.texts.clone_from(&self.chunk.texts);
        let (chunk, records) = (std::mem::replace(&mut self.chunk, next), std::mem::take(&mut self.current_records));
        let full = WriterJob::Write(Box::new(chunk), records, self.records.clone());
        match when_full {
            QueuePolicy::Wait => self.send(full)?,
            QueuePolicy::Drop => match self.jobs.try_send(full) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => {
                    self.dropped.chunk_dropped();
                    return Ok(());
                }
                Err(TrySendError::Disconnected(_)) => return Err(WriteError::ThreadGone),
            },
        }
        self.dropped.chunk_queued();
        Ok(())
    }

    fn send(&self, job: WriterJob) -> Result<(), WriteError> {
        self.jobs.send(job).map_err(|_| WriteError::ThreadGone)
    }
}

fn run_writer<W: Write>(
    mut sink: ChunkSink<W>,
    header: &SessionHeader,
    jobs: &Receiver<WriterJob>,
    to_refill: &Sender<SessionChunk>,
    written: &AtomicU64,
) -> Result<W, WriteError> {
    loop {
        match jobs.recv() {
            Ok(WriterJob::Write(mut chunk, records, counter)) => {
                write_chunk(&mut sink, &SessionSlice::whole(&chunk), header)?;
                counter.add(records);
                written.store(sink.offset(), Ordering::Relaxed);
                chunk.clear();
                // After the end, no receiver takes the chunk back, and it is dropped.
                let _ = to_refill.send(*chunk);
            }
            Ok(WriterJob::End) => return sink.finish(),
            Err(_) => return Err(WriteError::Abandoned),
        }
    }
}

/// Writes a session from the chunks of several sources, each in the order of its lists.
///
/// The caller says up to which time all sources have delivered. The writer writes and drops the records before that
/// time. The file is the same as [`write_session`] makes of all chunks together.
pub struct MergeWriter<W> {
    header: SessionHeader,
    /// The added records that are not in a chunk yet.
    held: SessionChunk,
    timeline: Timeline,
    sink: ChunkSink<W>,
}

crate::partial_debug!([W] MergeWriter<W> { header });

impl<W: Write> MergeWriter<W> {
    /// Writes the header of a new log. `unknown` holds the kinds of
    /// [`Session::unknown`](crate::record::Session::unknown) that will follow, in their order and without rows.
    ///
    /// # Errors
    /// When writing fails, or the header does not fit into a chunk.
    pub fn new(
        out: W,
        header: &SessionHeader,
        unknown: Vec<UnknownRecords>,
        options: WriterOptions,
    ) -> Result<MergeWriter<W>, WriteError> {
        let sink = begin_log(out, header, options)?;
        let held = SessionChunk { unknown, ..SessionChunk::of(header) };
        let timeline = Timeline::growing(&held, &header.unknown, options);
        Ok(MergeWriter { header: header.clone(), held, timeline, sink })
    }

    /// Sets the times of all ticks of the session, ascending. Chunks may then come in any order.
    pub(crate) fn set_ticks(&mut self, ticks: Vec<(Tick, Micros)>) {
        self.timeline.tick_times = ticks.into();
        self.timeline.grows = false;
    }

    /// Adds the next chunk of a source. Its ticks must follow those of earlier chunks. A state or execution must
    /// not refer to a tick that was left out, unless this is the only chunk.
    ///
    /// # Errors
    /// When it does not fit the header.
    pub fn add(&mut self, chunk: SessionChunk) -> Result<(), WriteError> {
        check_session(&chunk, &self.header)?;
        let mut ticks: Vec<(Tick, Micros)> = chunk.ticks.iter().map(|tick| (tick.tick, tick.at)).collect();
        ticks.sort_unstable();
        ticks.dedup_by_key(|(tick, _)| *tick);
        self.held.append(chunk);
        self.held.put_lists_in_order();
        let new_ticks = if self.timeline.grows { &ticks[..] } else { &[] };
        self.timeline.enqueue_added(&self.held, new_ticks);
        Ok(())
    }

    /// Writes full chunks of records before `until`. The caller must not add earlier records afterwards.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write_until(&mut self, until: Micros) -> Result<(), WriteError> {
        let mut has_written = false;
        while let Some(part) = self.timeline.next(&self.held, Some(until))? {
            write_chunk(&mut self.sink, &part, &self.header)?;
            has_written = true;
        }
        if has_written {
            self.timeline.forget(&mut self.held, until);
        }
        Ok(())
    }

    /// Ends the log: writes the last chunks, the seal and the seek table.
    ///
    /// # Errors
    /// When writing fails; the log is then cut off.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.timeline.finish_input(&self.held);
        write_rest(&mut self.sink, &mut self.timeline, &self.held, &self.header)?;
        self.sink.finish()
    }

    /// Returns the memory of the held records, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.held.bytes()
    }
}

// Cuts a session into chunks: ends chunks while recording, and merges a whole session in time order.

/// The fill state of the current chunk.
#[derive(Clone, Copy, Debug)]
struct ChunkFill {
    options: WriterOptions,
    first: Option<Micros>,
    bytes: usize,
}

impl ChunkFill {
    fn new(options: WriterOptions) -> ChunkFill {
        ChunkFill { options, first: None, bytes: 0 }
    }

    /// Starts the next chunk.
    fn restart(&mut self) {
        *self = ChunkFill::new(self.options);
    }

    /// Counts a record of `bytes` bytes. Returns true if the chunk must end before it.
    fn add(&mut self, when: EventTime, bytes: usize) -> Result<bool, WriteError> {
        let at = if let EventTime::At(at) = when { Some(at) } else { None };
        if bytes > RECORD_BYTES_MAX {
            return Err(WriteError::RecordTooLarge { bytes });
        }
        let span = match (self.first, at) {
            (Some(first), Some(at)) => at.0.abs_diff(first.0),
            _ => 0,
        };
        let too_long = span >= self.options.span.0.unsigned_abs();
        let too_large = self.bytes + bytes > self.options.bytes.min(RECORD_BYTES_MAX);
        let ends = self.bytes > 0 && (too_long || too_large);
        if ends {
            self.restart();
        }
        self.first = self.first.or(at);
        self.bytes += bytes;
        Ok(ends)
    }
}

/// The kinds of lists. The order is that of records with equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ListGroup {
    /// A list of a player.
    Player,
    States,
    Own,
    /// A list of a player whose records follow from a tick.
    AfterTick,
    Unknown,
}

/// The order of records with equal times: the group of their list, then the index of its kind, then the player.
type ListRank = (ListGroup, usize, usize);

/// A list of a session, and how much of it was taken.
#[derive(Clone, Debug)]
struct ListCursor {
    rank: ListRank,
    /// Whether the header declares the kind. Rows of other kinds are not written.
    is_declared: bool,
    /// From the current chunk's first record to the next record.
    range: Range<usize>,
    /// The time at which the next record is queued.
    queued: Option<Micros>,
}

/// A session in parts, in time order. The session is complete, or it grows after the records already taken.
struct Timeline {
    fill: ChunkFill,
    /// In the order of [`Session::lists`].
    taken: Vec<ListCursor>,
    /// The next record of each list that has one, the earliest first, with the index of the list.
    queue: BinaryHeap<Reverse<(Micros, ListRank, usize)>>,
    /// The times of ticks that records may still refer to, ascending.
    tick_times: VecDeque<(Tick, Micros)>,
    /// Whether more ticks may follow.
    grows: bool,
}

impl Timeline {
    /// Returns the timeline of a complete session. `kinds` are the unknown kinds that its header declares.
    fn whole<H>(session: &Session<H>, kinds: &[UnknownKind], options: WriterOptions) -> Timeline {
        let mut timeline = Timeline::growing(session, kinds, options);
        timeline.tick_times = tick_times(session).into();
        timeline.finish_input(session);
        timeline
    }

    /// Returns the timeline of a growing session. Its lists must already include all kinds that will follow.
    fn growing<H>(session: &Session<H>, kinds: &[UnknownKind], options: WriterOptions) -> Timeline {
        let after_tick = OF_PLAYERS.iter().position(|(name, _)| *name == "snapshots").unwrap_or(OF_PLAYERS.len());
        let group = |kind| if kind < after_tick { ListGroup::Player } else { ListGroup::AfterTick };
        let of_player = |player| (0..OF_PLAYERS.len()).map(move |kind| ((group(kind), kind, player), true));
        let is_declared = |name: &str| kinds.iter().any(|kind| kind.name == name);
        let unknown = session.unknown.iter().enumerate();
        let unknown = unknown.map(|(kind, of)| ((ListGroup::Unknown, kind, 0), is_declared(&of.kind)));
        let lists = (0..session.players.len()).flat_map(of_player);
        let lists = lists.chain((0..OF_SESSION.len()).map(|kind| ((ListGroup::Own, kind, 0), true)));
        let lists = lists.chain([((ListGroup::States, 0, 0), true)]).chain(unknown);
        let taken = lists.map(|(rank, is_declared)| ListCursor { rank, is_declared, range: 0..0, queued: None });
        let (taken, fill) = (taken.collect(), ChunkFill::new(options));
        Timeline { fill, taken, queue: BinaryHeap::new(), tick_times: VecDeque::new(), grows: true }
    }

    /// Handles growth of the session; `ticks` are its next ticks.
    fn enqueue_added<H>(&mut self, session: &Session<H>, ticks: &[(Tick, Micros)]) {
        self.tick_times.extend(ticks);
        self.enqueue_all(session);
    }

    /// Handles the end of growth.
    fn finish_input<H>(&mut self, session: &Session<H>) {
        self.grows = false;
        self.enqueue_all(session);
    }

    fn enqueue_all<H>(&mut self, session: &Session<H>) {
        for (index, list) in session.lists().enumerate().take(self.taken.len()) {
            let ListCursor { rank: (group, ..), queued, .. } = self.taken[index];
            // Lists that are sorted on arrival may have another record in front.
            if queued.is_none() || !matches!(group, ListGroup::Player | ListGroup::AfterTick) {
                self.enqueue(list, index);
            }
        }
    }

    fn enqueue(&mut self, list: &dyn RecordStream, index: usize) {
        let ListCursor { rank, is_declared, ref range, queued } = self.taken[index];
        if range.end >= list.len() || !is_declared {
            return;
        }
        let at = match list.when(range.end) {
            Some(EventTime::At(at)) => at,
            Some(EventTime::In(tick)) => match self.tick_time(tick) {
                Some(at) => at,
                None if self.grows && self.tick_times.back().is_none_or(|(last, _)| *last < tick) => return,
                None => UNTIMED,
            },
            None => UNTIMED,
        };
        if queued != Some(at) {
            self.queue.push(Reverse((at, rank, index)));
            self.taken[index].queued = Some(at);
        }
    }

    fn tick_time(&self, tick: Tick) -> Option<Micros> {
        let place = self.tick_times.binary_search_by_key(&tick, |&(tick, _)| tick).ok()?;
        Some(self.tick_times[place].1)
    }

    /// Returns the records taken since the last chunk.
    fn cut<'a, H>(&mut self, session: &'a Session<H>) -> SessionSlice<'a> {
        let cut = |ListCursor { range, .. }: &mut ListCursor| std::mem::replace(range, range.end..range.end);
        SessionSlice::new(session, self.taken.iter_mut().map(cut))
    }

    /// Returns the next full part of the records before `until`, or of all records; `None` if no more parts are full.
    fn next<'a, H>(
        &mut self,
        session: &'a Session<H>,
        until: Option<Micros>,
    ) -> Result<Option<SessionSlice<'a>>, WriteError> {
        let lists: Vec<&dyn RecordStream> = session.lists().collect();
        let is_due = |at: Micros| until.is_none_or(|until| at < until);
        while let Some(&Reverse((at, _, index))) = self.queue.peek().filter(|Reverse((at, ..))| is_due(*at)) {
            self.queue.pop();
            if self.taken[index].queued != Some(at) {
                continue;
            }
            self.taken[index].queued = None;
            let row = self.taken[index].range.end;
            let when = if at == UNTIMED { EventTime::In(Tick(0)) } else { EventTime::At(at) };
            let full = self.fill.add(when, lists[index].bytes(row..row + 1))?.then(|| self.cut(session));
            self.taken[index].range.end += 1;
            self.enqueue(lists[index], index);
            if full.is_some() {
                return Ok(full);
            }
        }
        Ok(None)
    }

    /// Returns the records taken for a part that is not full.
    fn last<'a, H>(&mut self, session: &'a Session<H>) -> Option<SessionSlice<'a>> {
        let last = (self.fill.bytes > 0).then(|| self.cut(session));
        self.fill.restart();
        last
    }

    /// Removes the records that parts already hold, and the ticks before `before`, from the session.
    fn forget<H>(&mut self, session: &mut Session<H>, before: Micros) {
        for (ListCursor { range, .. }, list) in self.taken.iter_mut().zip(session.lists_mut()) {
            list.drop_first(range.start);
            *range = 0..range.len();
        }
        while self.tick_times.front().is_some_and(|(_, at)| *at < before) {
            self.tick_times.pop_front();
        }
    }
}

/// The time of records without a time; they join the records taken last.
const UNTIMED: Micros = Micros(i64::MIN);

/// Returns the time of each tick from the server's ticks, or else from the snapshots.
pub(super) fn tick_times<H>(session: &Session<H>) -> Vec<(Tick, Micros)> {
    let mut times: Vec<(Tick, Micros)> = session.ticks.iter().map(|t| (t.tick, t.at)).collect();
    if times.is_empty() {
        let snapshots = session.players.iter().flat_map(|player| &player.snapshots);
        times.extend(snapshots.map(|s| (s.tick, s.at)));
    }
    times.sort_unstable();
    times.dedup_by_key(|&mut (tick, _)| tick);
    times
}

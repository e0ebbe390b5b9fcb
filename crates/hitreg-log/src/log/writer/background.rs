//! A log writer with a thread of its own, for sessions in real time.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

use super::{WriterOptions, begin, write_part};
use crate::log::chunk::{Bucket, SessionSlice};
use crate::log::container::ChunkSink;
use crate::log::error::{WriteError, no_thread};
use crate::log::timeline::ChunkFill;
use crate::record::{EventTime, GapCause, GapRecord, Record, SessionHeader, SessionStretch, Texts};
use crate::units::Micros;

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

/// A job for the thread.
enum WriterJob {
    Write(Box<SessionStretch>),
    End,
}

/// Writes a log while its session runs. A thread of its own packs, compresses and writes. A writer dropped without
/// [`BackgroundLogWriter::finish`] leaves a cut-off log, as a crash would.
pub struct BackgroundLogWriter<W> {
    header: SessionHeader,
    bucket: Bucket,
    filling: ChunkFill,
    when_full: QueuePolicy,
    dropped: DroppedChunks,
    jobs: SyncSender<WriterJob>,
    /// Written chunks, to be refilled.
    used: Receiver<SessionStretch>,
    /// `None` after its error was returned.
    thread: Option<JoinHandle<Result<W, WriteError>>>,
}

/// The chunks dropped because the disk was too slow.
#[derive(Clone, Copy, Debug, Default)]
struct DroppedChunks {
    chunks: u64,
    /// The newest time in any chunk that was queued.
    queued_until: Option<Micros>,
    /// The first and the newest time in the current chunk.
    filling: Option<(Micros, Micros)>,
    /// The start of the unrecorded gap, and the newest time dropped.
    gap: Option<(Micros, Micros)>,
}

impl DroppedChunks {
    fn note_time(&mut self, when: EventTime) {
        if let EventTime::At(at) = when {
            let (first, newest) = self.filling.unwrap_or((at, at));
            self.filling = Some((first.min(at), newest.max(at)));
        }
    }

    /// Returns the gap for the next chunk to record.
    fn record(&self) -> Option<GapRecord> {
        let (from, newest) = self.gap?;
        let to = self.filling.map_or(newest, |(first, _)| first.max(from));
        Some(GapRecord { from, to, player: None, why: GapCause::Overrun })
    }

    fn chunk_queued(&mut self) {
        self.gap = None;
        let newest = self.filling.take().map(|(_, newest)| newest);
        self.queued_until = self.queued_until.max(newest);
    }

    fn chunk_dropped(&mut self) {
        self.chunks += 1;
        let Some((first, newest)) = self.filling.take() else { return };
        let from = self.gap.map(|(from, _)| from).or(self.queued_until).unwrap_or(first);
        self.gap = Some((from, newest));
    }
}

impl<W: Write + Send + 'static> BackgroundLogWriter<W> {
    /// Writes the header of a new log and starts the thread.
    ///
    /// # Errors
    /// When writing fails, or no thread can be started.
    pub fn new(out: W, header: &SessionHeader, options: WriterOptions) -> Result<BackgroundLogWriter<W>, WriteError> {
        let sink = begin(out, header, options)?;
        let (jobs, waiting) = sync_channel(WAITING_CHUNKS);
        let (to_refill, used) = channel();
        let fields = header.clone();
        let work = move || write_all(sink, &fields, &waiting, &to_refill);
        let thread = std::thread::Builder::new().name("log writer".into()).spawn(work);
        let thread = Some(thread.map_err(no_thread)?);
        let (bucket, filling, dropped) = (Bucket::new(header), ChunkFill::new(options), DroppedChunks::default());
        let when_full = QueuePolicy::default();
        Ok(BackgroundLogWriter { header: header.clone(), bucket, filling, when_full, dropped, jobs, used, thread })
    }

    /// Sets what to do when the disk is too slow.
    #[must_use]
    pub fn when_full(self, when_full: QueuePolicy) -> BackgroundLogWriter<W> {
        BackgroundLogWriter { when_full, ..self }
    }

    /// Adds a record. The writer refuses a record that does not fit the header, and can continue.
    ///
    /// # Errors
    /// When the record does not fit, or the thread has stopped after an error, which is returned once.
    pub fn push(&mut self, record: &Record) -> Result<(), WriteError> {
        if self.filling.add(record.when(), record.bytes())? {
            let handed = self.hand_over(self.when_full);
            handed.map_err(|error| self.cause(error))?;
        }
        self.bucket.push(record, &self.header)?;
        self.dropped.note_time(record.when());
        Ok(())
    }

    /// Sets the texts of the records, as [`LogWriter::set_texts`](super::LogWriter::set_texts) does.
    pub fn set_texts(&mut self, texts: &Texts) {
        self.bucket.stretch.texts.clone_from(texts);
    }

    /// Returns the number of chunks dropped because the disk was too slow.
    pub fn dropped_chunks(&self) -> u64 {
        self.dropped.chunks
    }

    /// Queues the records so far as a chunk of their own.
    ///
    /// # Errors
    /// When the thread has stopped after an error, which is returned once.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.filling.restart();
        let handed = self.hand_over(self.when_full);
        handed.map_err(|error| self.cause(error))
    }

    /// The error of the thread, if it has stopped. It says more than that the thread has stopped.
    fn cause(&mut self, error: WriteError) -> WriteError {
        let thread = self.thread.take_if(|_| matches!(error, WriteError::ThreadGone));
        match thread.map(JoinHandle::join) {
            Some(Ok(Err(cause))) => cause,
            _ => error,
        }
    }

    /// Ends the log, and waits until it is completely written.
    ///
    /// # Errors
    /// The first failed write; the log ends before it.
    pub fn finish(mut self) -> Result<W, WriteError> {
        if let Some(gap) = self.dropped.record().filter(|_| self.bucket.stretch.is_empty()) {
            self.bucket.push(&Record::Gap(gap), &self.header)?;
        }
        // The last chunk waits for as long as writing takes.
        let last = self.hand_over(QueuePolicy::Wait).and_then(|()| self.send(WriterJob::End));
        drop(self.jobs);
        // The thread's own error says more than that the thread has stopped.
        let thread = self.thread.ok_or(WriteError::ThreadGone)?;
        let out = thread.join().map_err(|_| WriteError::ThreadGone)??;
        last.map(|()| out)
    }

    fn hand_over(&mut self, when_full: QueuePolicy) -> Result<(), WriteError> {
        if self.bucket.stretch.is_empty() {
            return Ok(());
        }
        if let Some(gap) = self.dropped.record() {
            self.bucket.push(&Record::Gap(gap), &self.header)?;
        }
        let used = self.used.try_recv().unwrap_or_else(|_| SessionStretch::of(&self.header));
        let full = WriterJob::Write(Box::new(self.bucket.exchange(used)));
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

fn write_all<W: Write>(
    mut sink: ChunkSink<W>,
    header: &SessionHeader,
    jobs: &Receiver<WriterJob>,
    to_refill: &Sender<SessionStretch>,
) -> Result<W, WriteError> {
    loop {
        match jobs.recv() {
            Ok(WriterJob::Write(stretch)) => {
                write_part(&mut sink, &SessionSlice::whole(&stretch), header)?;
                // After the end, no receiver takes the chunk back, and it is dropped.
                let _ = to_refill.send(*stretch);
            }
            Ok(WriterJob::End) => return sink.finish(),
            Err(_) => return Err(WriteError::Abandoned),
        }
    }
}

//! The same writer with the work on another thread, for sessions that run in real time.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

use super::{Options, write_end, write_part};
use crate::log::chunk::{Bucket, Part};
use crate::log::container::ChunkSink;
use crate::log::error::WriteError;
use crate::log::header;
use crate::log::timeline::Filling;
use crate::record::{GapCause, GapRecord, Header, OwnRow, Record, Stretch, When};
use crate::units::Micros;

/// How many full chunks may wait for a disk that is slower than the session.
const WAITING_CHUNKS: usize = 16;

/// What happens when all chunks that may wait are waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Whoever adds the next record waits, too.
    #[default]
    Wait,
    /// The chunk is dropped, and a gap in the log says so: nobody ever waits.
    Drop,
}

/// What the thread is to do next.
enum Job {
    Write(Stretch),
    End,
}

/// Writes a log while its session runs; laying out, compressing and writing happen on a thread of their own. Dropped
/// without [`BackgroundLogWriter::finish`] it leaves a torn log, as a crash would.
pub struct BackgroundLogWriter<W> {
    header: Header,
    bucket: Bucket,
    filling: Filling,
    when_full: WhenFull,
    dropped: Dropped,
    jobs: SyncSender<Job>,
    /// Chunks that have been written, to be filled again.
    used: Receiver<Stretch>,
    thread: JoinHandle<Result<W, WriteError>>,
}

/// What was dropped for want of time.
#[derive(Clone, Copy, Debug, Default)]
struct Dropped {
    chunks: u64,
    /// The newest time in a chunk that was handed over.
    kept_until: Option<Micros>,
    /// The first and the newest time in the chunk being filled.
    filling: Option<(Micros, Micros)>,
    /// Where the gap begins that the log does not tell yet, and the newest time that was dropped.
    gap: Option<(Micros, Micros)>,
}

impl Dropped {
    fn saw(&mut self, when: When) {
        if let When::At(at) = when {
            let (first, newest) = self.filling.unwrap_or((at, at));
            self.filling = Some((first.min(at), newest.max(at)));
        }
    }

    /// The gap as the next chunk tells it.
    fn record(&self) -> Option<GapRecord> {
        let (from, newest) = self.gap?;
        let to = self.filling.map_or(newest, |(first, _)| first.max(from));
        Some(GapRecord { from, to, player: None, why: GapCause::Overrun })
    }

    fn chunk_kept(&mut self) {
        self.gap = None;
        let newest = self.filling.take().map(|(_, newest)| newest);
        self.kept_until = self.kept_until.max(newest);
    }

    fn chunk_lost(&mut self) {
        self.chunks += 1;
        let Some((first, newest)) = self.filling.take() else { return };
        let from = self.gap.map(|(from, _)| from).or(self.kept_until).unwrap_or(first);
        self.gap = Some((from, newest));
    }
}

impl<W: Write + Send + 'static> BackgroundLogWriter<W> {
    /// Begins a log: writes its header and starts the thread.
    ///
    /// # Errors
    /// When the header cannot be written, or no thread can be started.
    pub fn new(out: W, header: &Header, options: Options) -> Result<BackgroundLogWriter<W>, WriteError> {
        let mut sink = ChunkSink::new(out, options.level)?;
        sink.header(&header::encode_log(header)?, options.header_level)?;
        let (jobs, waiting) = sync_channel(WAITING_CHUNKS);
        let (give_back, used) = channel();
        let fields = header.clone();
        let work = move || write_all(sink, &fields, &waiting, &give_back);
        let thread = std::thread::Builder::new().name("log writer".into()).spawn(work)?;
        let (bucket, filling, dropped) = (Bucket::new(header), Filling::new(options), Dropped::default());
        let when_full = WhenFull::default();
        Ok(BackgroundLogWriter { header: header.clone(), bucket, filling, when_full, dropped, jobs, used, thread })
    }

    /// The same with another answer to a slow disk.
    #[must_use]
    pub fn when_full(self, when_full: WhenFull) -> BackgroundLogWriter<W> {
        BackgroundLogWriter { when_full, ..self }
    }

    /// Adds a record. One that does not fit the header is refused and harms nothing.
    ///
    /// # Errors
    /// When the record does not fit, or the thread has stopped after an error, which [`BackgroundLogWriter::finish`]
    /// tells.
    pub fn push(&mut self, record: &Record) -> Result<(), WriteError> {
        if self.filling.add(record.when(), record.bytes())? {
            self.hand_over(self.when_full)?;
        }
        self.bucket.push(record, &self.header)?;
        self.dropped.saw(record.when());
        Ok(())
    }

    /// Adds a row of a kind or column that only the header knows, along with the record that it belongs to: no chunk ends
    /// between them.
    pub(crate) fn push_row(&mut self, at: Micros, row: &OwnRow, of: Option<&Record>) -> Result<(), WriteError> {
        let bytes = size_of_val(&row.values[..]) + of.map_or(0, Record::bytes);
        if self.filling.add(When::At(at), bytes)? {
            self.hand_over(self.when_full)?;
        }
        if let Some(record) = of {
            self.bucket.push(record, &self.header)?;
        }
        self.bucket.push_row(row, &self.header);
        self.dropped.saw(When::At(at));
        Ok(())
    }

    /// How many chunks were dropped because the disk was too slow.
    pub fn dropped_chunks(&self) -> u64 {
        self.dropped.chunks
    }

    /// Hands over what has been added so far, to be written as a chunk of its own.
    ///
    /// # Errors
    /// When the thread has stopped.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.filling.restart();
        self.hand_over(self.when_full)
    }

    /// Ends the log, and waits until all of it is written.
    ///
    /// # Errors
    /// The first thing that could not be written: the log ends before it.
    pub fn finish(mut self) -> Result<W, WriteError> {
        if let Some(gap) = self.dropped.record().filter(|_| self.bucket.stretch().is_empty()) {
            self.bucket.push(&Record::Gap(gap), &self.header)?;
        }
        // What is still there is written however long that takes.
        let last = self.hand_over(WhenFull::Wait).and_then(|()| self.send(Job::End));
        drop(self.jobs);
        // If the thread has stopped, its own error says more than that it has.
        let out = self.thread.join().map_err(|_| WriteError::ThreadGone)??;
        last.map(|()| out)
    }

    fn hand_over(&mut self, when_full: WhenFull) -> Result<(), WriteError> {
        if self.bucket.stretch().is_empty() {
            return Ok(());
        }
        if let Some(gap) = self.dropped.record() {
            self.bucket.push(&Record::Gap(gap), &self.header)?;
        }
        let used = self.used.try_recv().unwrap_or_else(|_| Stretch::of(&self.header));
        let full = Job::Write(self.bucket.exchange(used));
        match when_full {
            WhenFull::Wait => self.send(full)?,
            WhenFull::Drop => match self.jobs.try_send(full) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => {
                    self.dropped.chunk_lost();
                    return Ok(());
                }
                Err(TrySendError::Disconnected(_)) => return Err(WriteError::ThreadGone),
            },
        }
        self.dropped.chunk_kept();
        Ok(())
    }

    fn send(&self, job: Job) -> Result<(), WriteError> {
        self.jobs.send(job).map_err(|_| WriteError::ThreadGone)
    }
}

fn write_all<W: Write>(
    mut sink: ChunkSink<W>,
    header: &Header,
    jobs: &Receiver<Job>,
    give_back: &Sender<Stretch>,
) -> Result<W, WriteError> {
    loop {
        match jobs.recv() {
            Ok(Job::Write(stretch)) => {
                write_part(&mut sink, &Part::whole(&stretch), header)?;
                // Nobody takes it back after the end; then it is dropped here.
                let _ = give_back.send(stretch);
            }
            Ok(Job::End) => return write_end(sink),
            Err(_) => return Err(WriteError::Abandoned),
        }
    }
}

//! The same writer with the work on another thread, for sessions that run in real time.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use super::{Options, write_end, write_part};
use crate::log::chunk::{Bucket, Part};
use crate::log::container::ChunkSink;
use crate::log::error::WriteError;
use crate::log::header;
use crate::log::timeline::Filling;
use crate::record::{Header, Record, Stretch};

/// How many full chunks may wait; when the disk is slower than that for longer, [`BackgroundLogWriter::push`] waits.
const WAITING_CHUNKS: usize = 16;

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
    jobs: SyncSender<Job>,
    /// Chunks that have been written, to be filled again.
    used: Receiver<Stretch>,
    thread: JoinHandle<Result<W, WriteError>>,
}

impl<W: Write + Send + 'static> BackgroundLogWriter<W> {
    /// Begins a log: writes its header and starts the thread.
    ///
    /// # Errors
    /// When the header cannot be written, or no thread can be started.
    pub fn new(out: W, header: &Header, options: Options) -> Result<BackgroundLogWriter<W>, WriteError> {
        let mut sink = ChunkSink::new(out, options.level)?;
        sink.header(&header::encode_log(header)?)?;
        let (jobs, waiting) = sync_channel(WAITING_CHUNKS);
        let (give_back, used) = channel();
        let fields = header.clone();
        let work = move || write_all(sink, &fields, &waiting, &give_back);
        let thread = std::thread::Builder::new().name("log writer".into()).spawn(work)?;
        let (bucket, filling) = (Bucket::new(header), Filling::new(options));
        Ok(BackgroundLogWriter { header: header.clone(), bucket, filling, jobs, used, thread })
    }

    /// Adds a record. One that does not fit the header is refused and harms nothing.
    ///
    /// # Errors
    /// When the record does not fit, or the thread has stopped after an error, which [`BackgroundLogWriter::finish`]
    /// tells.
    pub fn push(&mut self, record: &Record) -> Result<(), WriteError> {
        if self.filling.add(record.when(), record.bytes())? {
            self.hand_over()?;
        }
        Ok(self.bucket.push(record, &self.header)?)
    }

    /// Hands over what has been added so far, to be written as a chunk of its own.
    ///
    /// # Errors
    /// When the thread has stopped.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.filling.restart();
        self.hand_over()
    }

    /// Ends the log, and waits until all of it is written.
    ///
    /// # Errors
    /// The first thing that could not be written: the log ends before it.
    pub fn finish(mut self) -> Result<W, WriteError> {
        let last = self.flush().and_then(|()| self.send(Job::End));
        drop(self.jobs);
        // If the thread has stopped, its own error says more than that it has.
        let out = self.thread.join().map_err(|_| WriteError::ThreadGone)??;
        last.map(|()| out)
    }

    fn hand_over(&mut self) -> Result<(), WriteError> {
        if self.bucket.stretch().is_empty() {
            return Ok(());
        }
        let used = self.used.try_recv().unwrap_or_else(|_| Stretch::of(&self.header));
        let full = self.bucket.exchange(used);
        self.send(Job::Write(full))
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

//! The API that an engine calls to record a session. A [`Description`] declares the session, a [`Recorder`] writes the
//! log, and each thread of the engine pushes records into its own [`Stream`]. The recorder needs no game type and no
//! pipelines: an engine calls it from its own netcode.
//!
//! ```
//! use hitreg_log::record::{CellKind, Class, ClassId, FieldSchema, Meaning, Scope};
//! use hitreg_log::recorder::{Description, Recorder, RecorderOptions};
//! use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
//! use hitreg_log::usercmd::Usercmd;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("duel.hitlog");
//! let x = FieldSchema::new("origin.x", CellKind::F32, Scope::Movement).meaning(Meaning::Position);
//! let about = Description::new("mygame").tick_hz(60).class(Class::new("player", vec![x])).player("p0");
//! let recorder = Recorder::create(&path, about, RecorderOptions::default())?;
//! let mut server = recorder.stream();
//! for tick in 1..=600 {
//!     let at = Micros(i64::from(tick) * 16_667);
//!     server.usercmd(PlayerId(0), at, Usercmd { seq: CommandSeq(tick), ..Usercmd::default() })?;
//!     server.tick(Tick(tick), at, Some(0x1234))?;
//!     server.body(Tick(tick), EntityId(0), ClassId(0), &[(tick as f32).to_bits()])?;
//!     # if tick % 60 == 0 { std::thread::sleep(std::time::Duration::from_millis(15)); }
//! }
//! let written = recorder.finish()?;
//! assert_eq!((written.records, written.lost_records), (1_800, 0));
//! # Ok(())
//! # }
//! ```
//!
//! A push copies one record into the stream's own ring buffer. With [`QueuePolicy::Drop`] it never waits for the disk. Only
//! ticks and new texts take a lock, and a stream wakes the recorder's thread once for each quarter of its ring. Two
//! background threads empty the rings. One sorts records by time and cuts them into chunks, the other packs, compresses and writes the
//! chunks. `record live` and `serve` use the same writer, [`BackgroundLogWriter`].
//!
//! [`BackgroundLogWriter`]: crate::log::BackgroundLogWriter

mod collector;
mod cut;
mod description;
mod output;
mod playback;
mod stream;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

pub use description::{CustomKind, Description, last_usercmd_as_received};
pub(crate) use description::{Y_AXIS, usercmds_as_received_of};
pub use output::Rotation;
pub use playback::{Playback, PlaybackError, PlaybackStep};
pub use stream::Stream;

use crate::log::{self, BackgroundLogWriter, LogError, QueuePolicy, RecordCounter, WriteError};
use crate::record::{MisplacedRecord, SessionHeader, TextError, TickRecord};
use crate::store::{FileType, RecordingClaim, StoreError, Targets};
use crate::trace::Digest;
use crate::units::{Micros, Tick};
use collector::{Collector, RecorderShared};
use output::{FlightBuffer, PendingTrace, RecordOutput, RotatingFiles};

/// Options of a recorder. The default is for a session that runs in real time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecorderOptions {
    /// The reorder window: how much older than the newest record a record may be. The recorder refuses older ones. The
    /// default is 250 ms.
    pub window: Micros,
    /// The capacity of each stream's ring, in records. The default is 4,096; values under 2 count as 2.
    pub ring: usize,
    /// What happens when a stream's ring is full or the disk is too slow. The default is [`QueuePolicy::Drop`];
    /// [`QueuePolicy::Wait`] is for sessions that do not run in real time.
    pub when_full: QueuePolicy,
    /// How the log writer cuts and packs chunks. The default is [`log::WriterOptions::live`].
    pub chunks: log::WriterOptions,
    /// When the recorder starts a new file; `None` writes a single file.
    pub rotation: Option<Rotation>,
}

impl Default for RecorderOptions {
    fn default() -> RecorderOptions {
        let (window, when_full, chunks) = (Micros::from_ms(250), QueuePolicy::Drop, log::WriterOptions::live());
        RecorderOptions { window, ring: 4096, when_full, chunks, rotation: None }
    }
}

impl RecorderOptions {
    /// Returns options for a session that does not run in real time: a push waits while the ring or the disk is busy. A
    /// stream that is further behind the others than [`RecorderOptions::window`] still loses its records.
    pub fn patient() -> RecorderOptions {
        RecorderOptions { when_full: QueuePolicy::Wait, ..RecorderOptions::default() }
    }
}

/// A log that is being written. Dropping it without [`Recorder::finish`] leaves an unfinished `.part` file, as a crash
/// would, with everything recorded up to that point.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<RecorderShared>,
    ring: usize,
    /// `None` after the end.
    thread: Option<JoinHandle<Result<(), FinishError>>>,
    /// Whether the thread ended with an error, which [`Recorder::end`] returned.
    has_failed: bool,
}

/// Counters of written, lost and dropped data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingSummary {
    /// Records in the file so far, each push once. A flight recorder and a trace count the records that they received.
    pub records: u64,
    /// Records lost because their stream's ring was full. Gap records in the log mark when.
    pub lost_records: u64,
    /// Chunks dropped because the disk was too slow. Gap records in the log mark when.
    pub dropped_chunks: u64,
    /// Records refused because they were older than the reorder window. Gap records in the log mark when.
    pub late_records: u64,
}

impl Recorder {
    /// Starts a log at `path`. Until [`Recorder::finish`] the file is called `NAME.hitlog.part`. If the process is
    /// killed, the file holds all but the last second, and `hitreg recover` turns it into a log.
    ///
    /// With [`RecorderOptions::rotation`] the recorder writes a series of files, `NAME-0001.hitlog` and so on, numbered after
    /// those on disk. Each is a complete log that begins after a tick. It starts with the present players, the bodies
    /// after that tick (as states of tick 0), and the usercmds that have not run.
    ///
    /// # Errors
    /// When the file cannot be written, a file of that name exists, the description is invalid, or no thread can be
    /// started.
    pub fn create(path: &Path, about: Description, options: RecorderOptions) -> Result<Recorder, FinishError> {
        let (header, kinds) = about.into_header()?;
        let (how, records) = ((options.chunks, options.when_full), RecordCounter::default());
        let out: Box<dyn RecordOutput> = match options.rotation {
            Some(rotation) => {
                Box::new(RotatingFiles::begin(path.to_owned(), header.clone(), rotation, how, records.clone())?)
            }
            None => {
                let target = Targets::default().file(path, FileType::Log)?;
                let begun = RecordingClaim::new(&target)?.begin(&header, how.0, how.1)?;
                Box::new(begun.count_records(records.clone()))
            }
        };
        Recorder::begin_live(out, records, header, kinds, options)
    }

    /// Starts a log in any writer. The log is complete only after [`Recorder::finish`].
    ///
    /// # Errors
    /// When the header cannot be written, the description is invalid, or no thread can be started.
    pub fn to(
        out: impl Write + Send + 'static,
        about: Description,
        options: RecorderOptions,
    ) -> Result<Recorder, FinishError> {
        let (header, kinds) = about.into_header()?;
        let out: Box<dyn Write + Send> = Box::new(out);
        let (out, records) = (BackgroundLogWriter::new(out, &header, options.chunks)?, RecordCounter::default());
        let out = out.when_full(options.when_full).count_records(records.clone());
        Recorder::begin_live(Box::new(out), records, header, kinds, options)
    }

    /// Starts a flight recorder: it keeps the last `span` of a session in memory, packed as in a log.
    /// [`Recorder::save`] writes it to a file. `span` is from 1 s to 1,000,000 s.
    ///
    /// # Errors
    /// When the description is invalid, the span is out of range, or no thread can be started.
    pub fn keep_last(span: Micros, about: Description, options: RecorderOptions) -> Result<Recorder, FinishError> {
        if !(Micros::from_s(1)..=Micros::from_s(1_000_000)).contains(&span) {
            return Err(FinishError::Span { span });
        }
        let (header, kinds) = about.into_header()?;
        let records = RecordCounter::default();
        let out = FlightBuffer::new(header.clone(), span, records.clone());
        Recorder::begin_live(Box::new(out), records, header, kinds, options)
    }

    /// Starts a trace: the output of a build that replays a log. The build pushes records with the same calls that
    /// record a session. [`Recorder::finish`] writes the trace, with the tables `ticks`, `bodies`, `executed`,
    /// `frames`, `shots` and `damage`, and one table for each custom kind. It replaces an existing trace. Records of any
    /// time may follow each other, and none is lost. `log` is the digest of the replayed log's bytes, such as
    /// [`Playback::shared`] returns.
    ///
    /// # Errors
    /// When the trace cannot be written, the description is invalid, or no thread can be started.
    pub fn trace(path: &Path, about: Description, log: Digest) -> Result<Recorder, FinishError> {
        let capabilities = about.capabilities.clone();
        let (header, kinds) = about.into_header()?;
        let target = Targets::default().replacing_recordings().file(path, FileType::Trace)?;
        let records = RecordCounter::default();
        let out = Box::new(PendingTrace::new(target, log, capabilities, header.clone(), records.clone()));
        // The ticks of a replay are those of the log, in any order.
        let shared = RecorderShared::new(header, kinds, records, QueuePolicy::Wait, None);
        Recorder::begin(out, shared, RecorderOptions::patient())
    }

    fn begin_live(
        out: Box<dyn RecordOutput>,
        records: RecordCounter,
        header: SessionHeader,
        kinds: Vec<CustomKind>,
        options: RecorderOptions,
    ) -> Result<Recorder, FinishError> {
        // The ticks of a client's log are those that it received, in any order.
        let is_of_client = header.side.is_some_and(|side| side.player.is_some());
        let ticks = (!is_of_client).then(Default::default);
        Recorder::begin(out, RecorderShared::new(header, kinds, records, options.when_full, ticks), options)
    }

    fn begin(
        out: Box<dyn RecordOutput>,
        shared: RecorderShared,
        options: RecorderOptions,
    ) -> Result<Recorder, FinishError> {
        let shared = Arc::new(shared);
        let collector = Collector::new(Arc::clone(&shared), out, options.window);
        let thread = std::thread::Builder::new().name("recorder".into()).spawn(move || collector.run());
        let thread = thread.map_err(|error| log::WriteError::Io(log::no_thread(error)))?;
        shared.set_thread(thread.thread().clone());
        Ok(Recorder { shared, ring: options.ring.max(2), thread: Some(thread), has_failed: false })
    }

    /// Returns a new stream for one thread to push into. A recorder can have any number of streams.
    pub fn stream(&self) -> Stream {
        let (ring, rest) = rtrb::RingBuffer::new(self.ring);
        self.shared.add(rest);
        Stream::new(Arc::clone(&self.shared), ring)
    }

    /// Returns the index of a custom kind by its name in the [`Description`].
    pub fn kind(&self, name: &str) -> Option<usize> {
        self.shared.kinds.iter().position(|kind| kind.name == name)
    }

    /// Returns the counters so far.
    pub fn written(&self) -> RecordingSummary {
        self.shared.written()
    }

    /// Writes what [`Recorder::keep_last`] holds in memory, including everything pushed before this call, as a log.
    /// The recording continues. The log begins after a tick, like a later file of a rotation. A gap record (`paused`)
    /// covers the part of the session before it.
    ///
    /// It waits for the recorder's thread. A signal handler must not call it: set a flag there, and save from the main loop.
    ///
    /// # Errors
    /// When this is no flight recorder, the recording has ended, or the log cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), FinishError> {
        let kept = self.shared.ask().and_then(|kept| kept.recv().ok());
        kept.ok_or(FinishError::NothingKept)?.save(path)
    }

    /// Ends the log. It blocks until everything pushed before is written. Later pushes into a stream return an error.
    ///
    /// # Errors
    /// The first write error; the log ends before the record that failed.
    pub fn finish(mut self) -> Result<RecordingSummary, FinishError> {
        self.end()?;
        Ok(self.shared.written())
    }

    /// Ends the log as [`Recorder::finish`] does. The recorder stays, for its counters.
    ///
    /// # Errors
    /// The first call returns the first write error; later calls return [`WriteError::Poisoned`].
    pub fn end(&mut self) -> Result<(), FinishError> {
        self.shared.end(true);
        self.join()
    }

    fn join(&mut self) -> Result<(), FinishError> {
        let ended = match self.thread.take() {
            Some(thread) => thread.join().unwrap_or_else(|_| Err(WriteError::ThreadGone.into())),
            None if self.has_failed => Err(WriteError::Poisoned.into()),
            None => Ok(()),
        };
        self.has_failed = ended.is_err();
        ended
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.end(false);
        // `drop` cannot return an error; callers that need it call `finish`.
        let _ = self.join();
    }
}

/// Why a push was refused. Earlier records are not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The record does not fit the description of the session.
    #[error(transparent)]
    Misfit(#[from] MisplacedRecord),
    /// The record is older than the reorder window.
    #[error("a record of {at} is too late: everything before {released} is written. Set a wider reorder window")]
    Late {
        /// Time of the record.
        at: Micros,
        /// Records before this time have been written.
        released: Micros,
    },
    /// The stream belongs to another recorder than the trace of this playback.
    #[error("this stream is not the one that `begin` returned")]
    ForeignStream,
    /// The stream's ring is full.
    #[error(
        "the recorder cannot keep up: this record is lost, and the log will have a gap record. Use a larger ring, or a recorder that waits"
    )]
    Overrun,
    /// The recording has ended.
    #[error("the recording is finished: nothing more is recorded")]
    Finished,
    /// The recording stopped because of a write error.
    #[error("the recording failed earlier; finishing it returns the reason")]
    Stopped,
    /// Ticks count from 1.
    #[error("there is no tick 0: ticks count from 1")]
    TickZero,
    /// Usercmds count from 1.
    #[error("there is no usercmd 0: usercmds count from 1")]
    UsercmdZero,
    /// The tick contradicts another one: with later times, ticks have higher numbers, and each number is pushed once.
    #[error(
        "tick {} at {} does not follow tick {} at {}: later ticks have higher numbers. When the server counts from 1 again, start a new recording or go on from the last number",
        tick.tick, tick.at, other.tick, other.at
    )]
    TickOrder {
        /// The refused tick.
        tick: TickRecord,
        /// The recorded tick that it contradicts.
        other: TickRecord,
    },
    /// The state or the executed usercmd belongs to a tick that was refused.
    #[error("tick {tick} was refused, and so are its states and usercmds")]
    OfRefusedTick {
        /// The refused tick.
        tick: Tick,
    },
    /// No custom kind has this number.
    #[error("there is no custom kind {kind}: the description declares {kinds}, numbered from 0")]
    NoKind {
        /// The requested number.
        kind: usize,
        /// Number of custom kinds.
        kinds: usize,
    },
    /// A row does not match the columns of its custom kind.
    #[error("a row of `{kind}` is {found}, and the description says {columns}")]
    Row {
        /// Name of the kind.
        kind: String,
        /// Types of the values in the row.
        found: String,
        /// Types of the declared columns.
        columns: String,
    },
    /// The record is larger than a reader accepts.
    #[error("a record takes {bytes} bytes, and one may take at most {most}")]
    TooLarge {
        /// Size of the record, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        most: usize,
    },
    /// A text cannot be recorded.
    #[error(transparent)]
    Text(#[from] TextError),
}

/// Why a recording could not start, or is incomplete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinishError {
    /// The file could not be created or finished.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The description is invalid.
    #[error("the description of the session: {0}")]
    Description(String),
    /// The span of a flight recorder is out of range.
    #[error("a flight recorder keeps from 1 s to 1000000 s, and not {} s", span.as_s_f64())]
    Span {
        /// The requested span.
        span: Micros,
    },
    /// The part kept in memory could not be read.
    #[error("the data kept in memory cannot be read: {source}")]
    Kept {
        /// The cause.
        source: LogError,
    },
    /// The recorder keeps nothing in memory, or has ended.
    #[error("this recorder has nothing to save: it is finished, or was not started with `keep_last`")]
    NothingKept,
}

//! What an engine calls to record a session: a [`Description`] of it, a [`Recorder`] that writes the log, and a [`Stream`] for
//! each thread that has something to tell. No game, no pipelines: the calls go into an engine's own netcode.
//!
//! ```
//! use hitreg_log::record::{CellKind, Class, ClassId, Field, Meaning, Scope};
//! use hitreg_log::recorder::{Description, Options, Recorder};
//! use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
//! use hitreg_log::usercmd::Usercmd;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("duel.hitlog");
//! let x = Field::new("origin.x", CellKind::F32, Scope::Movement).meaning(Meaning::Position);
//! let about = Description::new("mygame").tick_hz(60).class(Class::new("player", vec![x])).player("p0");
//! let recorder = Recorder::create(&path, about, Options::default())?;
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
//! A call costs the copy of a record into a ring that belongs to its stream alone: no lock, no system call. Two threads of the
//! recorder's own take it from there: one puts records into the order of their times and cuts them into chunks, the other lays
//! out, compresses and writes. What they share with `record live` and `serve` is [`BackgroundLogWriter`].
//!
//! [`BackgroundLogWriter`]: crate::log::BackgroundLogWriter

mod collector;
mod cut;
mod description;
mod error;
mod flight;
mod output;
mod rotating;
mod shared;
mod stream;
mod traced;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

pub use description::{Description, OwnKind, USERCMD_BYTES, usercmd_bytes};
pub use error::{FinishError, PushError};
pub use rotating::Rotation;
pub use stream::Stream;

use crate::log::{self, BackgroundLogWriter, WhenFull};
use crate::record::Header;
use crate::store::{Kind, Recording, Targets};
use crate::trace::Digest;
use crate::units::Micros;
use collector::Collector;
use cut::Cut;
use flight::Flight;
use output::Output;
use rotating::Rotating;
use shared::Shared;
use traced::Traced;

/// How a recorder goes about it. The default is for a session that runs in real time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How much later than a newer record one may come and still be put into its place. What comes later is refused.
    pub window: Micros,
    /// How many records a stream holds that nobody has taken from it yet.
    pub ring: usize,
    /// What happens when a stream's ring is full, or the disk is too slow. [`WhenFull::Wait`] is for sessions that do not run
    /// in real time.
    pub when_full: WhenFull,
    /// How chunks are cut and packed.
    pub chunks: log::Options,
    /// When a file gives way to the next; `None` for a single one.
    pub rotation: Option<Rotation>,
}

impl Default for Options {
    fn default() -> Options {
        let (window, when_full, chunks) = (Micros::from_ms(250), WhenFull::Drop, log::Options::live());
        Options { window, ring: 4096, when_full, chunks, rotation: None }
    }
}

impl Options {
    /// For sessions that are not recorded while they run: nothing is dropped.
    pub fn patient() -> Options {
        Options { when_full: WhenFull::Wait, ..Options::default() }
    }
}

/// A log being written. Dropped without [`Recorder::finish`] it leaves an unfinished recording, as a crash would, with all that
/// was recorded until then.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    ring: usize,
    thread: Option<JoinHandle<Result<(), FinishError>>>,
}

/// What became of all that was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Records that went into chunks.
    pub records: u64,
    /// Records that were lost because their stream's ring was full. Gaps in the log say when.
    pub lost_records: u64,
    /// Chunks that were dropped because the disk was too slow. Gaps in the log say when.
    pub dropped_chunks: u64,
    /// Records that came too late to be put into their place.
    pub late_records: u64,
}

impl Recorder {
    /// Begins a log at `path`. Until [`Recorder::finish`] it is `NAME.hitlog.part`; of a process that is killed all but the last
    /// second is there, and `hitreg recover` makes a log of it.
    ///
    /// With [`Options::rotation`] there are many of them, `NAME-0001.hitlog` and so on behind those that are there. Each is a whole log
    /// that begins after a tick: with who is there, the bodies after that tick (as states of tick 0), and the usercmds that have not run.
    ///
    /// # Errors
    /// When it cannot be written, something stands there already, or the description is not one.
    pub fn create(path: &Path, about: Description, options: Options) -> Result<Recorder, FinishError> {
        let (header, kinds) = about.into_header()?;
        let how = (options.chunks, options.when_full);
        let out: Box<dyn Output> = match options.rotation {
            Some(rotation) => {
                let cut = Cut::new(kinds.iter().position(OwnKind::is_usercmd_bytes));
                Box::new(Rotating::begin(path.to_owned(), header.clone(), cut, rotation, how)?)
            }
            None => {
                let target = Targets::new([], false).file(path, Kind::Log)?;
                Box::new(Recording::begin_with(&target, &header, how.0, how.1)?)
            }
        };
        Recorder::begin(out, header, kinds, options)
    }

    /// Begins a log that goes anywhere. It is whole only after [`Recorder::finish`].
    ///
    /// # Errors
    /// When its header cannot be written, or the description is not one.
    pub fn to(out: impl Write + Send + 'static, about: Description, options: Options) -> Result<Recorder, FinishError> {
        let (header, kinds) = about.into_header()?;
        let out = BackgroundLogWriter::new(out, &header, options.chunks)?.when_full(options.when_full);
        Recorder::begin(Box::new(out), header, kinds, options)
    }

    /// Keeps the last stretch of a session in memory, packed as in a log, and writes it only when asked to
    /// ([`Recorder::save`]).
    ///
    /// # Errors
    /// When the description is not one.
    pub fn keep_last(span: Micros, about: Description, options: Options) -> Result<Recorder, FinishError> {
        let (header, kinds) = about.into_header()?;
        let cut = Cut::new(kinds.iter().position(OwnKind::is_usercmd_bytes));
        Recorder::begin(Box::new(Flight::new(header.clone(), cut, span)), header, kinds, options)
    }

    /// Begins a trace: what a build makes of a log, pushed by the same calls that record a session. It is written by
    /// [`Recorder::finish`], with the tables `ticks`, `bodies`, `executed`, `frames`, `shots` and `damage`, and one for each kind of the
    /// team's own. A trace that stands there is replaced.
    ///
    /// # Errors
    /// When it cannot be written there, or the description is not one.
    pub fn trace(path: &Path, about: Description, log: Digest) -> Result<Recorder, FinishError> {
        let (header, kinds) = about.into_header()?;
        let target = Targets::new([], true).file(path, Kind::Trace)?;
        Recorder::begin(Box::new(Traced::new(target, log, header.clone())), header, kinds, Options::patient())
    }

    fn begin(
        out: Box<dyn Output>,
        header: Header,
        kinds: Vec<OwnKind>,
        options: Options,
    ) -> Result<Recorder, FinishError> {
        let shared = Arc::new(Shared::new(header, kinds, options.when_full));
        let collector = Collector::new(Arc::clone(&shared), out, options.window);
        let thread = std::thread::Builder::new().name("recorder".into()).spawn(move || collector.run());
        let thread = thread.map_err(log::WriteError::Io)?;
        shared.woken_by(thread.thread().clone());
        Ok(Recorder { shared, ring: options.ring.max(2), thread: Some(thread) })
    }

    /// A stream of records, for one thread to push into; there may be any number of them, for a player each or a thread each.
    pub fn stream(&self) -> Stream {
        let (ring, rest) = rtrb::RingBuffer::new(self.ring);
        self.shared.add(rest);
        Stream::new(Arc::clone(&self.shared), ring)
    }

    /// A kind of the team's own by its name in the [`Description`].
    pub fn kind(&self, name: &str) -> Option<usize> {
        self.shared.kinds.iter().position(|kind| kind.name == name)
    }

    /// What became so far of all that was recorded.
    pub fn written(&self) -> Written {
        self.shared.written()
    }

    /// Writes what [`Recorder::keep_last`] has kept, with all that was pushed before this call, as a log. The recording goes on. The log
    /// begins after a tick, as one of many files does; a gap (`paused`) says since when the session ran before.
    ///
    /// # Errors
    /// When nothing is kept, or the log cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), FinishError> {
        let kept = self.shared.ask().and_then(|kept| kept.recv().ok());
        kept.ok_or(FinishError::NothingKept)?.save(path)
    }

    /// Ends the log: all that was pushed before is written, whatever time that takes. Streams are told that it is over.
    ///
    /// # Errors
    /// The first thing that could not be written: the log ends before it.
    pub fn finish(mut self) -> Result<Written, FinishError> {
        self.shared.end(true);
        self.join()?;
        Ok(self.shared.written())
    }

    fn join(&mut self) -> Result<(), FinishError> {
        match self.thread.take() {
            Some(thread) => thread.join().map_err(|_| log::WriteError::ThreadGone)?,
            None => Ok(()),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.end(false);
        // Whoever drops a recorder does not ask how it went; `finish` is for those who do.
        let _ = self.join();
    }
}

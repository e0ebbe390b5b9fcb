//! Replays a log while reading it, and passes rows on as tables fill up. Memory use does not depend on the log's
//! length.
//!
//! A pass over the log first collects what the replay must know in advance ([`LogSurvey`]): the end of the log and the
//! longest flight time. The replay reads ahead by the longest flight time. It keeps only what pipelines and incomplete
//! rows still need: a packet until it arrives, a shot until the frames of its time are known.

use super::budget::check_work;
use super::feed::Feed;
use super::{
    KeyframeSchedule, LogSurvey, Mode, ReplayError, ReplayFindings, ReplayOptions, ReplayStart, check_server, closed,
    closed_header, may_be_judged, open, setup, trace_header,
};
use crate::pipeline::Netcode;
use hitreg_log::record::{Keyframe, Origin, SessionHeader, SessionStretch};
use hitreg_log::trace::{Table, TraceHeader};
use hitreg_log::units::Micros;

/// A log to replay.
pub struct ReplaySource<'a> {
    /// The log's header.
    pub header: &'a SessionHeader,
    /// The results of a pass over the log.
    pub survey: &'a LogSurvey,
    /// The keyframe at which the replay begins; `None` for the beginning of the log. The chunks then begin after the
    /// keyframe's chunk.
    pub start: Option<&'a ReplayStart>,
    /// When keyframes are due, and the function that receives them.
    pub keyframes: Option<(&'a KeyframeSchedule, &'a dyn Fn(Keyframe))>,
}

/// Reads a log from beginning to end and passes on each of its chunks.
pub type LogPass<'a, E = ReplayError> =
    &'a mut dyn FnMut(&mut dyn FnMut(SessionStretch) -> Result<(), E>) -> Result<(), E>;

impl<'a> ReplaySource<'a> {
    /// Returns a whole log, from its beginning and without keyframes.
    pub(super) fn of(header: &'a SessionHeader, survey: &'a LogSurvey) -> ReplaySource<'a> {
        ReplaySource { header, survey, start: None, keyframes: None }
    }

    /// Checks that its replay does not go through more than a session can hold. What begins in the middle was checked when its
    /// keyframes were made.
    fn check_work(&self) -> Result<(), ReplayError> {
        match self.start {
            None => check_work(self.header.players.len(), self.survey.frames(), self.survey.ticks.count),
            Some(_) => Ok(()),
        }
    }

    /// Whether the log has a server to run. Without one, only its clients run, in open loop.
    pub fn has_server(&self) -> bool {
        let found = check_server(self.header, self.survey.first_heard_player().is_some());
        !matches!(found, Err(ReplayError::NoServer | ReplayError::ClientSide))
    }

    /// Whether a closed loop can replay the log while reading it. Any other log must be in memory as a whole.
    pub fn streams(&self, options: &ReplayOptions) -> bool {
        self.survey.streams() && options.mode != Mode::Open
    }

    /// Whether the replay is an open loop that [`stream_clients`] can run while reading the log. Rejudging, parts and
    /// keyframe starts need the log in memory.
    pub fn streams_clients(&self, options: &ReplayOptions) -> bool {
        let is_open = match options.mode {
            Mode::Closed => false,
            Mode::Open => true,
            Mode::Auto => !self.has_server(),
        };
        let is_of_all = options.part.is_none() && options.judged_under.is_none() && self.start.is_none();
        is_open && is_of_all && self.survey.near().is_some()
    }
}

/// Replays a log in closed loop from its `chunks`. `to` gets the trace header with each piece of a table: first every
/// table in table order, possibly empty, then more rows in any order.
///
/// Returns `None` if encoding datagrams might have made a difference. Then everything that `to` got is void, and the
/// caller must run the replay again with `encoded`, which encodes every datagram.
///
/// # Errors
/// When this build cannot replay the log.
pub fn stream<G: Netcode>(
    source: &ReplaySource<'_>,
    chunks: &mut dyn Iterator<Item = SessionStretch>,
    (options, encoded): (&ReplayOptions, bool),
    to: &mut dyn FnMut(&TraceHeader, Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<Option<ReplayFindings>, ReplayError> {
    source.check_work()?;
    let setup = setup::<G>(source.header, options.settings.as_ref())?;
    may_be_judged(source.header, &setup.settings, options)?;
    if !source.survey.has_input() {
        return Err(ReplayError::NoInput);
    }
    if let Some(part) = options.part {
        part.check(source.survey.played())?;
    }
    let part = options.part.and_then(|part| part.header_range(source.survey.played()));
    let header = TraceHeader { part, ..closed_header(source.header, &setup, options) };
    let feed = Feed::new(chunks, source.survey);
    closed::stream::<G>(&feed, source, &setup, (options, encoded), &mut |table| to(&header, table), progress)
}

/// Replays each client of a log alone, as [`replay`](super::replay()) does in open loop. `pass` reads the log once,
/// and runs once for each player. `to` gets the same as in [`stream`].
///
/// # Errors
/// When this build cannot replay the log, or not [while reading it](ReplaySource::streams_clients).
pub fn stream_clients<G: Netcode>(
    source: &ReplaySource<'_>,
    pass: LogPass<'_>,
    options: &ReplayOptions,
    to: &mut dyn FnMut(&TraceHeader, Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayFindings, ReplayError> {
    source.check_work()?;
    let setup = setup::<G>(source.header, options.settings.as_ref())?;
    let imported = matches!(source.header.origin, Origin::Imported { .. });
    if !(source.survey.has_input() || (imported && source.survey.has_snapshots())) {
        return Err(ReplayError::NoInput);
    }
    let near = source.survey.near().ok_or(ReplayError::NotAsRead)?;
    let header = trace_header("open", source.header, &setup.settings);
    open::stream::<G, G::Client>(source, &setup, (options, near), pass, &mut |table| to(&header, table), progress)
}

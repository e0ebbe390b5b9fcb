//! A replay of a log that is read as it is used up, and whose rows go on as they are full: however long it is, it takes the
//! same memory.
//!
//! What comes later in the log and must be known sooner, a pass over it has told before ([`Survey`]): where it ends, and for how
//! long anything was on its way at most. So the replay reads ahead by that much, and what it knows of the past is what its
//! pipelines and the rows that wait for something ask for: a packet for its arrival, a shot for the frames of its moment.

use super::feed::Feed;
use super::{
    Due, HashDifference, Jumped, Mode, Options, ReplayError, Start, Survey, Traffic, check_server, closed,
    may_be_judged, open, own_settings, setup_of,
};
use crate::pipeline::{Netcode, RollbackError};
use hitreg_log::record::{Header, Keyframe, Origin, Stretch};
use hitreg_log::trace::{SessionSource, Table, TraceHeader};
use hitreg_log::units::Micros;

/// A log to be replayed.
pub struct Source<'a> {
    /// Its header.
    pub header: &'a Header,
    /// What a pass over it told.
    pub survey: &'a Survey,
    /// The keyframe that its replay begins with: the first of its chunks is [`Keyframe::stretch`].
    pub start: Option<&'a Start>,
    /// When keyframes are due, and where they go.
    pub keyframes: Option<(&'a Due, &'a dyn Fn(Keyframe))>,
}

/// What a replay came to, besides the rows that it put out.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// The first tick whose hash is not the recorded one.
    pub first_difference: Option<HashDifference>,
    /// How many recorded tick hashes there were to compare.
    pub hashes_compared: u64,
    /// How many of them were of ticks before the part that rows were put out of.
    pub hashes_before: u64,
    /// What went over the network, where datagrams were made.
    pub traffic: Traffic,
    /// How often the world was restored and run again.
    pub rollbacks: u32,
    /// The first rollback that came out differently.
    pub rollback_error: Option<RollbackError>,
    /// How far players of an open loop were moved on their own screens, those who were.
    pub jumps: Vec<Jumped>,
}

/// Reads a log from its beginning to its end, and hands on each of its chunks.
pub type Pass<'a, E = ReplayError> = &'a mut dyn FnMut(&mut dyn FnMut(Stretch) -> Result<(), E>) -> Result<(), E>;

impl Source<'_> {
    /// Whether it can be replayed closed loop as it is read; what cannot is replayed as a whole.
    pub fn streams(&self, options: &Options) -> bool {
        let same_rate = |recorded: &str| match &options.settings {
            Some(settings) => settings.to_pairs().iter().any(|(key, value)| key == TICK_HZ && value == recorded),
            None => true,
        };
        let own = own_settings(self.header).map(|settings| settings.to_pairs());
        let recorded = own.iter().flatten().find(|(key, _)| key == TICK_HZ);
        self.survey.streams() && options.mode != Mode::Open && recorded.is_some_and(|(_, rate)| same_rate(rate))
    }

    /// Whether it is replayed open loop, and can be as it is read: [`stream_clients`]. Shots that are judged again are judged by what
    /// is in memory, and so is what is told of a part.
    pub fn streams_clients(&self, options: &Options) -> bool {
        let is_open = match options.mode {
            Mode::Closed => false,
            Mode::Open => true,
            Mode::Auto => {
                let has_server = check_server(self.header, self.survey.hears());
                matches!(has_server, Err(ReplayError::NoServer | ReplayError::ClientSide))
            }
        };
        let is_of_all = options.part.is_none() && options.judged_under.is_none() && self.start.is_none();
        is_open && is_of_all && self.survey.near().is_some()
    }
}

const TICK_HZ: &str = "server.tick_hz";

/// Replays a log of which `chunks` gives the chunks. `to` gets the header of the trace and its rows: first each table with no row or
/// more, in the order of the tables, then more rows of any of them. `None` where datagrams may have made a difference, of which
/// `encoded` makes every one: then all that `to` got is void.
///
/// # Errors
/// When the log is not one that this build can replay.
pub fn stream<G: Netcode>(
    source: &Source<'_>,
    chunks: &mut dyn Iterator<Item = Stretch>,
    (options, encoded): (&Options, bool),
    to: &mut dyn FnMut(&TraceHeader, Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<Option<Ran>, ReplayError> {
    let setup = setup_of::<G>(source.header, options.settings.as_ref())?;
    may_be_judged(&setup.settings, options)?;
    if !source.survey.has_input() {
        return Err(ReplayError::NoInput);
    }
    if let Some(part) = options.part {
        let (first, last) = source.survey.played().unwrap_or_default();
        part.check(first, last)?;
    }
    let (mode, settings) = match &options.judged_under {
        Some(other) => ("closed, rejudged", other),
        None => ("closed", &*setup.settings),
    };
    let header = TraceHeader {
        game: G::NAME.to_owned(),
        mode: mode.to_owned(),
        log_digest: String::new(),
        settings: settings.to_pairs(),
        part: options.part.and_then(|part| part.told(source.survey.played())),
        session: Some(SessionSource::of(source.header)),
    };
    let feed = Feed::new(chunks, source.survey);
    closed::stream::<G>(&feed, source, &setup, (options, encoded), &mut |table| to(&header, table), progress)
}

/// Replays the clients of a log alone, as [`replay`](super::replay()) does in open loop. The log is read once for each player: `pass`
/// does that. `to` gets what [`stream`] hands on.
///
/// # Errors
/// When the log is not one that this build can replay, or not [so](Source::streams_clients).
pub fn stream_clients<G: Netcode>(
    source: &Source<'_>,
    pass: Pass<'_>,
    options: &Options,
    to: &mut dyn FnMut(&TraceHeader, Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<Ran, ReplayError> {
    let setup = setup_of::<G>(source.header, options.settings.as_ref())?;
    let imported = matches!(source.header.origin, Origin::Imported { .. });
    if !(source.survey.has_input() || (imported && source.survey.was_shown())) {
        return Err(ReplayError::NoInput);
    }
    let near = source.survey.near().ok_or(ReplayError::NotAsRead)?;
    let header = TraceHeader {
        game: G::NAME.to_owned(),
        mode: "open".to_owned(),
        log_digest: String::new(),
        settings: setup.settings.to_pairs(),
        part: None,
        session: Some(SessionSource::of(source.header)),
    };
    open::stream::<G, G::Client>(source, &setup, (options, near), pass, &mut |table| to(&header, table), progress)
}

//! A replay of a log that is read as it is used up, and whose rows go on as they are full: however long it is, it takes the
//! same memory.
//!
//! What comes later in the log and must be known sooner, a pass over it has told before ([`Survey`]): where it ends, and for how
//! long anything was on its way at most. So the replay reads ahead by that much, and what it knows of the past is what its
//! pipelines and the rows that wait for something ask for: a packet for its arrival, a shot for the frames of its moment.

use super::feed::Feed;
use super::{
    Due, HashDifference, Mode, Options, ReplayError, Start, Survey, Traffic, closed, may_be_judged, own_settings,
    setup_of,
};
use crate::pipeline::{Netcode, RollbackError};
use crate::record::{Allowance, Header, Keyframe, Stretch};
use crate::trace::{Table, TraceHeader};
use crate::units::Micros;

/// A log to be replayed.
pub struct Source<'a> {
    /// Its header.
    pub header: &'a Header,
    /// What a pass over it told.
    pub survey: &'a Survey,
    /// How much may be made of it.
    pub allowance: Allowance,
    /// The keyframe that its replay begins with: the first of its chunks is [`Keyframe::stretch`].
    pub start: Option<&'a Start>,
    /// When keyframes are due, and where they go.
    pub keyframes: Option<(&'a Due, &'a dyn Fn(Keyframe))>,
}

/// What a replay came to, besides the rows that it put out.
#[derive(Clone, Debug)]
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
}

impl Source<'_> {
    /// Whether it can be replayed so; what cannot is replayed as a whole.
    pub fn streams(&self, options: &Options) -> bool {
        let same_rate = |recorded: &str| match &options.settings {
            Some(settings) => settings.to_pairs().iter().any(|(key, value)| key == TICK_HZ && value == recorded),
            None => true,
        };
        let own = own_settings(self.header).map(|settings| settings.to_pairs());
        let recorded = own.iter().flatten().find(|(key, _)| key == TICK_HZ);
        self.survey.streams() && options.mode != Mode::Open && recorded.is_some_and(|(_, rate)| same_rate(rate))
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
    };
    let feed = Feed::new(chunks, source.survey);
    closed::stream::<G>(&feed, source, &setup, (options, encoded), &mut |table| to(&header, table), progress)
}

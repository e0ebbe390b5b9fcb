//! Keyframes: the whole state of a replay just after a tick, from which another replay can start. Frames and usercmds
//! that the log holds nearby are stored as references.

use std::rc::Rc;
use std::sync::Arc;

use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::feed::FeedCheckpoint;
use super::open::snapshot;
use super::survey::SurveyCheckpoint;
use super::{LogSurvey, ReplayError};
use crate::game::{Game, StateRows};
use crate::history::Frame;
use crate::link::Link;
use crate::pipeline::{ClientPipeline, Netcode};
use crate::session::{AfterTick, Machine, TransportKind};
use crate::state::{KnownRecords, KnownSnapshot, SharedValues, StateError, StateReader, StateWriter};
use hitreg_log::record::{Keyframe, Session, SessionChunk, SessionHeader};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{ClockTime, Micros, PlayerId, Tick};

/// The least that a keyframe's references may point back, in session time.
const REFERENCE_REACH_MIN: Micros = Micros::from_s(4);
/// The least with datagrams: both ends of a connection hold the states of its last 64 snapshots, and a slow server
/// sends only a few a second.
const DATAGRAM_REACH_MIN: Micros = Micros::from_s(16);
/// The version of the state's format. This build refuses any other version.
const VERSION: u32 = 10;

/// Returns how far before a keyframe its references may point, in session time: packets in flight refer to snapshots
/// that were sent before them.
pub(super) fn reach(survey: &LogSurvey, transport: TransportKind) -> Micros {
    let least = if transport == TransportKind::Datagrams { DATAGRAM_REACH_MIN } else { REFERENCE_REACH_MIN };
    let longest = survey.longest().0.clamp(0, i64::MAX / 8);
    least.max(Micros(2 * longest))
}

/// The ticks after which a replay writes keyframes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyframeSchedule {
    /// At this interval; the first after one interval.
    Every(Micros),
    /// After these ticks, in ascending order, each with its time.
    After(Vec<(Tick, Micros)>),
}

impl KeyframeSchedule {
    /// Returns the approximate time of the next keyframe after a tick; `None` after the last.
    pub(super) fn next(&self, (tick, at): (Tick, Micros)) -> Option<Micros> {
        match self {
            KeyframeSchedule::Every(every) => Some(at + *every),
            KeyframeSchedule::After(ticks) => {
                let next = ticks.partition_point(|(due, _)| *due <= tick);
                ticks.get(next).map(|(_, at)| *at)
            }
        }
    }
}

/// A keyframe at which a replay begins.
#[derive(Clone, Debug)]
pub struct ReplayStart {
    /// The tick before the keyframe.
    pub tick: Tick,
    /// The time of that tick.
    pub at: Micros,
    /// The number of the keyframe's chunk in its log. The replay reads the chunks after it.
    pub(super) next_chunk: usize,
    pub(super) fed: FeedCheckpoint,
    /// The survey of the log, as far as the keyframe holds it.
    pub survey: LogSurvey,
    /// The number of corrections of each player up to the keyframe: rows of the table `corrections` with a corrected
    /// field.
    pub corrections: Vec<u32>,
    /// How packets travelled in the replay that made the keyframe.
    pub(super) transport: TransportKind,
    digest: u64,
    state: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct KeyframeContent<'a> {
    version: u32,
    transport: TransportKind,
    survey: SurveyCheckpoint,
    fed: FeedCheckpoint,
    /// The number of corrections of each player so far.
    corrections: Vec<u32>,
    /// The digest of the state, written without references.
    digest: u64,
    #[serde(with = "serde_bytes", borrow)]
    state: &'a [u8],
}

/// Why a replay cannot begin at a keyframe.
#[derive(Debug, thiserror::Error)]
pub enum BadKeyframe {
    /// The content is not a keyframe.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] hitreg_log::serial::ReadError),
    /// The state has another format version.
    #[error("its state is of version {0}, and this build's is of version {VERSION}")]
    Version(u32),
    /// The number of players differs from the log's.
    #[error("it has {found} players, and the log has {players}")]
    Players {
        /// The keyframe's number of players.
        found: usize,
        /// The log's number of players.
        players: usize,
    },
    /// The log's settings do not allow the transport of the keyframe.
    #[error("its transport settings differ from the log's")]
    Transport,
    /// The state does not fit this session.
    #[error(transparent)]
    State(#[from] StateError),
    /// The restored state has another digest than the saved one.
    #[error("running on from it does not give the recorded states")]
    Other,
}

/// Returns whether the replay that made a keyframe encoded its datagrams, or gave them nominal sizes. A replay whose
/// states are compared with the keyframe must do the same. Content that is not a keyframe's counts as unencoded.
pub fn keyframe_has_sizes(keyframe: &Keyframe) -> bool {
    let content: Result<KeyframeContent<'_>, _> = hitreg_log::serial::from_msgpack(&keyframe.content);
    content.is_ok_and(|content| content.transport != TransportKind::Unencoded)
}

/// Returns the version of a keyframe's content if it is not this build's. The version comes first in all versions.
pub fn other_keyframe_version(keyframe: &Keyframe) -> Option<u32> {
    let ContentVersion(version) = hitreg_log::serial::from_msgpack(&keyframe.content).ok()?;
    (version != VERSION).then_some(version)
}

/// The first value of a keyframe's content.
struct ContentVersion(u32);

impl<'de> Deserialize<'de> for ContentVersion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ContentVersion, D::Error> {
        struct FirstValue;
        impl<'de> Visitor<'de> for FirstValue {
            type Value = ContentVersion;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("a keyframe's content")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<ContentVersion, A::Error> {
                let version = values.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
                while values.next_element::<IgnoredAny>()?.is_some() {}
                Ok(ContentVersion(version))
            }
        }
        from.deserialize_seq(FirstValue)
    }
}

impl ReplayStart {
    /// Reads a keyframe of a log with this header.
    ///
    /// # Errors
    /// When this build cannot start from the keyframe.
    pub fn read(keyframe: &Keyframe, header: &SessionHeader) -> Result<ReplayStart, ReplayError> {
        let (tick, at) = (keyframe.tick, keyframe.at);
        let fail = |why| ReplayError::Keyframe { tick, at: ClockTime(at), why };
        if let Some(version) = other_keyframe_version(keyframe) {
            return Err(fail(BadKeyframe::Version(version)));
        }
        let content: KeyframeContent<'_> =
            hitreg_log::serial::from_msgpack(&keyframe.content).map_err(|error| fail(error.into()))?;
        let KeyframeContent { version: _, transport, survey, fed, corrections, digest, state } = content;
        let players = header.players.len();
        let counts = [survey.players.len(), fed.players.len(), corrections.len()];
        if let Some(found) = counts.into_iter().find(|found| *found != players) {
            return Err(fail(BadKeyframe::Players { found, players }));
        }
        Ok(ReplayStart {
            tick,
            at,
            next_chunk: keyframe.next_chunk,
            fed,
            survey: LogSurvey::from_checkpoint(survey),
            corrections,
            transport,
            digest,
            state: state.to_vec(),
        })
    }

    /// Returns whether the replay that made the keyframe had packets and snapshots with sizes: datagrams or nominal
    /// ones. A replay from the keyframe has them too.
    pub fn has_sizes(&self) -> bool {
        self.transport != TransportKind::Unencoded
    }

    /// Restores the keyframe's state into a machine. `near` are the chunks around the keyframe.
    pub(super) fn put<G: Netcode, L: Link, C: ClientPipeline<G>>(
        &self,
        machine: &mut Machine<G, L, C>,
        header: &SessionHeader,
        near: &[Rc<SessionChunk>],
    ) -> Result<(), ReplayError> {
        let fail = |why| ReplayError::Keyframe { tick: self.tick, at: ClockTime(self.at), why };
        if machine.transport_kind() != self.transport {
            return Err(fail(BadKeyframe::Transport));
        }
        let known = known::<G>(header, near, self.at)?;
        let restored = StateReader::new(&self.state, known.values()).and_then(|mut from| {
            machine.restore(&known, &self.corrections, &mut from)?;
            from.end()
        });
        restored.map_err(|error| fail(error.into()))?;
        let digest = machine.resumed(self.at).and_then(|machine| digest(&machine));
        if digest == Some(self.digest) { Ok(()) } else { Err(fail(BadKeyframe::Other)) }
    }
}

/// Returns the digest of a machine's whole state; `None` if the state cannot be saved.
fn digest<G: Netcode, L: Link, C: ClientPipeline<G>>(machine: &AfterTick<'_, G, L, C>) -> Option<u64> {
    let mut to = StateWriter::new(SharedValues::default());
    machine.save(None, &mut to).then(|| to.digest())
}

/// Returns a keyframe's content just after a tick; `None` if the state cannot be saved.
pub(super) fn content<G: Netcode, L: Link, C: ClientPipeline<G>>(
    machine: &AfterTick<'_, G, L, C>,
    (header, survey, fed): (&SessionHeader, &LogSurvey, FeedCheckpoint),
    near: &[Rc<SessionChunk>],
) -> Result<Option<Vec<u8>>, ReplayError> {
    let Some(digest) = digest(machine) else { return Ok(None) };
    let known = known::<G>(header, near, machine.at)?;
    let mut to = StateWriter::new(known.values());
    machine.save(Some(&known), &mut to);
    let (transport, survey, state) = (machine.transport_kind(), survey.checkpoint(), &to.into_bytes()[..]);
    let corrections = machine.corrections().to_vec();
    let content = KeyframeContent { version: VERSION, transport, survey, fed, corrections, digest, state };
    Ok(rmp_serde::to_vec(&content).ok())
}

/// Returns the snapshot frames and usercmds of these chunks up to a time.
fn known<G: Game>(
    header: &SessionHeader,
    near: &[Rc<SessionChunk>],
    until: Micros,
) -> Result<KnownRecords<G::Body>, ReplayError> {
    let rows = StateRows::new::<G>(&header.classes)?;
    let mut session = Session::new(header.clone());
    for chunk in near {
        session.states.append(&chunk.states);
        for (all, player) in session.players.iter_mut().zip(&chunk.players) {
            all.frames.extend(player.frames.iter().filter(|frame| frame.at <= until).cloned());
            all.snapshots.extend(player.snapshots.iter().filter(|record| record.at <= until).cloned());
        }
    }
    session.put_in_order();
    let mut known = KnownRecords::default();
    let mut frames: SortedMap<Tick, Vec<Arc<Frame<G::Body>>>> = SortedMap::new();
    for (player, records) in session.players.iter().enumerate() {
        let player = PlayerId(player as u16);
        records.frames.iter().for_each(|frame| known.add_command(&frame.command));
        for record in &records.snapshots {
            // Snapshots of one tick with the same entities nearly always have the same content.
            let of_tick = frames.entry(record.tick).or_default();
            let has = |frame: &&Arc<Frame<G::Body>>| frame.entities.iter().map(|(id, _)| id).eq(&record.entities);
            let frame = match of_tick.iter().find(has) {
                Some(frame) => Arc::clone(frame),
                None => {
                    let Ok(snapshot) = snapshot::<G>(&session.states, &rows, player, record) else { continue };
                    of_tick.push(Arc::clone(&snapshot.frame));
                    snapshot.frame
                }
            };
            known.add_snapshot(player, record.seq, KnownSnapshot { frame, effects: record.effects.clone() });
        }
    }
    known.add_frames(&frames.into_values().flatten().collect::<Vec<_>>());
    Ok(known)
}

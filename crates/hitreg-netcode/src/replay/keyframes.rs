//! Keyframes: the whole state of a replay just after a tick, from which another replay goes on. What the log says near it anyway, frames
//! and usercmds, stands in it as a reference.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::feed::Fed;
use super::open::snapshot;
use super::survey::Gist;
use super::{ReplayError, Survey};
use crate::game::{Game, StateRows};
use crate::link::Link;
use crate::pipeline::{ClientPipeline, Netcode};
use crate::session::{AfterTick, Machine};
use crate::state::{BadState, Known, Restorer, Saver};
use hitreg_log::record::{Header, Keyframe, Session, Stretch};
use hitreg_log::units::{ClockTime, EntityId, Micros, PlayerId, Tick};

/// So far back from a keyframe the log's records are known to whoever goes on from it.
pub(super) const REACH: Micros = Micros::from_s(4);
/// What states are made of, and in which order. Another one is not gone on from.
const VERSION: u32 = 1;

/// After which ticks a replay writes its state down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Each so long after the last one, the first after as long.
    Every(Micros),
    /// After these, ascending, and at these times.
    After(Vec<(Tick, Micros)>),
}

impl Due {
    /// About when the next one is due after a tick; `None` after the last.
    pub(super) fn next(&self, (tick, at): (Tick, Micros)) -> Option<Micros> {
        match self {
            Due::Every(every) => Some(at + *every),
            Due::After(ticks) => {
                let next = ticks.partition_point(|(due, _)| *due <= tick);
                ticks.get(next).map(|(_, at)| *at)
            }
        }
    }
}

/// A keyframe that a replay begins with.
#[derive(Clone, Debug)]
pub struct Start {
    /// The tick that it follows.
    pub tick: Tick,
    /// When that was.
    pub at: Micros,
    /// The stretch that stands for it in its log.
    pub(super) stretch: usize,
    pub(super) fed: Fed,
    /// What is known of the log as a whole.
    pub survey: Survey,
    digest: u64,
    state: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    gist: Gist,
    fed: Fed,
    /// Of the state, written out without references.
    digest: u64,
    #[serde(with = "serde_bytes")]
    state: Vec<u8>,
}

/// Why a keyframe is not gone on from.
#[derive(Debug, thiserror::Error)]
pub enum BadKeyframe {
    /// It is none.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] hitreg_log::serial::ReadError),
    /// Another version of the pipelines wrote it.
    #[error("its state is of version {0}, and this build's is of version {VERSION}")]
    Version(u32),
    /// It is of another session.
    #[error("it has {found} players, and the log has {players}")]
    Players {
        /// How many it has.
        found: usize,
        /// How many the log has.
        players: usize,
    },
    /// It is no state of this session's.
    #[error(transparent)]
    State(#[from] BadState),
    /// What it leads to is not what it was made of.
    #[error("what it leads to is not what it was made of")]
    Other,
}

impl Start {
    /// Reads a keyframe of a log with this header.
    ///
    /// # Errors
    /// When it is none that this build can go on from.
    pub fn read(keyframe: &Keyframe, header: &Header) -> Result<Start, ReplayError> {
        let (tick, at) = (keyframe.tick, keyframe.at);
        let fail = |why| ReplayError::Keyframe { tick, at: ClockTime(at), why };
        let content: Content =
            hitreg_log::serial::from_msgpack(&keyframe.content).map_err(|error| fail(error.into()))?;
        let Content { version, gist, fed, digest, state } = content;
        if version != VERSION {
            return Err(fail(BadKeyframe::Version(version)));
        }
        let players = header.players.len();
        if let Some(found) = [gist.players(), fed.players()].into_iter().find(|found| *found != players) {
            return Err(fail(BadKeyframe::Players { found, players }));
        }
        let stretch = keyframe.stretch;
        Ok(Start { tick, at, stretch, fed, survey: Survey::of_gist(gist), digest, state })
    }

    /// Puts a machine where this keyframe was, among the stretches of the log around it.
    pub(super) fn put<G: Netcode, L: Link, C: ClientPipeline<G>>(
        &self,
        machine: &mut Machine<G, L, C>,
        header: &Header,
        near: &[Rc<Stretch>],
    ) -> Result<(), ReplayError> {
        let fail = |why| ReplayError::Keyframe { tick: self.tick, at: ClockTime(self.at), why };
        let known = known::<G>(header, near, self.at)?;
        let mut from = Restorer::new(&self.state, &known);
        machine.restore(&mut from).map_err(|error| fail(error.into()))?;
        from.end().map_err(|error| fail(error.into()))?;
        let digest = machine.resumed(self.at).and_then(|machine| digest(&machine));
        if digest == Some(self.digest) { Ok(()) } else { Err(fail(BadKeyframe::Other)) }
    }
}

/// The digest of all of a machine's state; `None` of one that cannot be written down.
pub(super) fn digest<G: Netcode, L: Link, C: ClientPipeline<G>>(machine: &AfterTick<'_, G, L, C>) -> Option<u64> {
    let mut saver = Saver::new(None);
    machine.save(&mut saver).then(|| xxh3_64(&saver.into_bytes()))
}

/// What a replay just after a tick is; `None` where that cannot be written down.
pub(super) fn content<G: Netcode, L: Link, C: ClientPipeline<G>>(
    machine: &AfterTick<'_, G, L, C>,
    (header, survey, fed): (&Header, &Survey, Fed),
    near: &[Rc<Stretch>],
) -> Result<Option<Vec<u8>>, ReplayError> {
    let Some(digest) = digest(machine) else { return Ok(None) };
    let known = known::<G>(header, near, machine.at)?;
    let mut saver = Saver::new(Some(&known));
    machine.save(&mut saver);
    let content = Content { version: VERSION, gist: survey.gist(), fed, digest, state: saver.into_bytes() };
    Ok(rmp_serde::to_vec(&content).ok())
}

/// The frames and usercmds of these stretches up to a time.
fn known<G: Game>(header: &Header, near: &[Rc<Stretch>], until: Micros) -> Result<Known<G::Body>, ReplayError> {
    let rows = StateRows::new::<G>(&header.classes)?;
    let mut session = Session::new(header.clone());
    for stretch in near {
        session.states.append(&stretch.states);
        for (all, player) in session.players.iter_mut().zip(&stretch.players) {
            all.frames.extend(player.frames.iter().filter(|frame| frame.at <= until));
            all.snapshots.extend(player.snapshots.iter().filter(|record| record.at <= until).cloned());
        }
    }
    session.put_in_order();
    let mut known = Known::default();
    let mut told: BTreeMap<Tick, Vec<&[EntityId]>> = BTreeMap::new();
    for (player, records) in session.players.iter().enumerate() {
        let player = PlayerId(player as u16);
        records.frames.iter().for_each(|frame| known.add_command(player, frame.command));
        for record in &records.snapshots {
            let of_tick = told.entry(record.tick).or_default();
            // Where two were told of the same entities, it is nearly always the same of them.
            if !of_tick.contains(&&record.entities[..])
                && let Ok(snapshot) = snapshot::<G>(&session.states, &rows, player, record)
            {
                of_tick.push(&record.entities);
                known.add_frame(Arc::clone(&snapshot.frame));
            }
        }
    }
    Ok(known)
}

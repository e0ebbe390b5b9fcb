//! The frames and usercmds that a log holds near a keyframe.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::game::{Body, Effect};
use crate::history::Frame;
use hitreg_log::units::{CommandSeq, EntityId, PlayerId, SnapshotSeq, Tick};
use hitreg_log::usercmd::Usercmd;

/// The most states of an entity among which a state is looked for, back from a tick.
const STATES_BACK: usize = 256;

/// The cells of an entity, by tick.
type StatesByTick = BTreeMap<Tick, Vec<Arc<[u32]>>>;

/// Frames, snapshots and usercmds that need not be saved, because the reader has them.
#[derive(Clone, Debug)]
pub struct KnownFrames<B> {
    /// The frames by tick. Those of one tick differ from each other.
    frames: BTreeMap<Tick, Vec<Arc<Frame<B>>>>,
    /// The cells of each entity by tick. Those of one tick differ from each other.
    states: BTreeMap<EntityId, StatesByTick>,
    snapshots: BTreeMap<(PlayerId, SnapshotSeq), KnownSnapshot<B>>,
    commands: BTreeMap<(PlayerId, CommandSeq), Usercmd>,
}

/// A snapshot that need not be saved.
#[derive(Clone, Debug)]
pub(crate) struct KnownSnapshot<B> {
    pub(crate) frame: Arc<Frame<B>>,
    pub(crate) effects: Vec<Effect>,
}

impl<B> Default for KnownFrames<B> {
    fn default() -> KnownFrames<B> {
        let (frames, states) = (BTreeMap::new(), BTreeMap::new());
        KnownFrames { frames, states, snapshots: BTreeMap::new(), commands: BTreeMap::new() }
    }
}

impl<B: Body> KnownFrames<B> {
    /// Adds a frame.
    pub fn add_frame(&mut self, frame: Arc<Frame<B>>) {
        for (entity, body) in &frame.entities {
            let cells = cells(body);
            let of_tick = self.states.entry(*entity).or_default().entry(frame.tick).or_default();
            if !of_tick.iter().any(|known| known[..] == cells) {
                of_tick.push(cells.into());
            }
        }
        self.frames.entry(frame.tick).or_default().push(frame);
    }

    /// Adds a player's snapshot, whose frame was added before.
    pub fn add_snapshot(&mut self, player: PlayerId, seq: SnapshotSeq, frame: Arc<Frame<B>>, effects: Vec<Effect>) {
        self.snapshots.insert((player, seq), KnownSnapshot { frame, effects });
    }

    /// Returns the added frame of a tick that has these entities.
    pub fn frame_with(&self, tick: Tick, entities: &[EntityId]) -> Option<&Arc<Frame<B>>> {
        let has = |frame: &&Arc<Frame<B>>| frame.entities.iter().map(|(id, _)| id).eq(entities);
        self.frames.get(&tick)?.iter().find(has)
    }

    pub(crate) fn snapshot(&self, player: PlayerId, seq: SnapshotSeq) -> Option<&KnownSnapshot<B>> {
        self.snapshots.get(&(player, seq))
    }

    /// Returns the states of an entity, back from a tick.
    fn states(&self, entity: EntityId, tick: Tick) -> impl Iterator<Item = &Arc<[u32]>> {
        let back = self.states.get(&entity).into_iter().flat_map(move |states| states.range(..=tick).rev());
        back.flat_map(|(_, of_tick)| of_tick).take(STATES_BACK)
    }

    /// Returns how far back from a tick an entity has this state.
    pub(super) fn place_of_state(&self, entity: EntityId, tick: Tick, cells: &[u32]) -> Option<usize> {
        self.states(entity, tick).position(|known| known[..] == *cells)
    }

    pub(super) fn state(&self, entity: EntityId, tick: Tick, place: u64) -> Option<Arc<[u32]>> {
        self.states(entity, tick).nth(usize::try_from(place).ok()?).cloned()
    }

    /// Adds a player's usercmd.
    pub fn add_command(&mut self, player: PlayerId, command: Usercmd) {
        self.commands.insert((player, command.seq), command);
    }

    /// Returns the index of a frame among those of its tick.
    pub(super) fn place_of(&self, frame: &Frame<B>) -> Option<usize> {
        self.frames.get(&frame.tick)?.iter().position(|known| same(known, frame))
    }

    pub(super) fn frame(&self, tick: Tick, which: u64) -> Option<Arc<Frame<B>>> {
        self.frames.get(&tick)?.get(usize::try_from(which).ok()?).cloned()
    }

    pub(super) fn has(&self, player: PlayerId, command: &Usercmd) -> bool {
        self.commands
            .get(&(player, command.seq))
            .is_some_and(|known| words(known) == words(command) && known.input.own == command.input.own)
    }

    pub(super) fn command(&self, player: PlayerId, seq: CommandSeq) -> Option<Usercmd> {
        self.commands.get(&(player, seq)).cloned()
    }
}

fn cells<B: Body>(body: &B) -> Vec<u32> {
    let mut cells = vec![0; B::CELLS];
    body.write(&mut cells);
    cells
}

/// Returns whether two frames are bit-identical.
fn same<B: Body>(a: &Frame<B>, b: &Frame<B>) -> bool {
    let alike = |((a, one), (b, other)): (&(_, B), &(_, B))| a == b && cells(one) == cells(other);
    a.server_time == b.server_time
        && a.entities.len() == b.entities.len()
        && a.entities.iter().zip(&b.entities).all(alike)
}

/// Returns the fields of a usercmd, bit for bit, except the game's own.
fn words(command: &Usercmd) -> [i64; 12] {
    let Usercmd { seq, lerp_msec, server_time, input } = command;
    let angles = input.viewangles.to_array().map(|angle| i64::from(angle.to_bits()));
    let moves = [input.forwardmove, input.sidemove, input.upmove].map(|speed| i64::from(speed.to_bits()));
    [
        seq.0.into(),
        (*lerp_msec).into(),
        server_time.0,
        input.msec.into(),
        angles[0],
        angles[1],
        angles[2],
        moves[0],
        moves[1],
        moves[2],
        input.buttons.into(),
        input.impulse.into(),
    ]
}

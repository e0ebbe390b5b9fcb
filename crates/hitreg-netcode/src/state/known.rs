//! The frames and usercmds that a log holds near a keyframe.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::game::Body;
use crate::history::Frame;
use hitreg_log::units::{CommandSeq, PlayerId, Tick};
use hitreg_log::usercmd::Usercmd;

/// Frames and usercmds that need not be saved, because the reader has them.
#[derive(Clone, Debug)]
pub struct KnownFrames<B> {
    /// The frames by tick. Those of one tick differ from each other.
    frames: BTreeMap<Tick, Vec<Arc<Frame<B>>>>,
    commands: BTreeMap<(PlayerId, CommandSeq), Usercmd>,
}

impl<B> Default for KnownFrames<B> {
    fn default() -> KnownFrames<B> {
        KnownFrames { frames: BTreeMap::new(), commands: BTreeMap::new() }
    }
}

impl<B: Body> KnownFrames<B> {
    /// Adds a frame.
    pub fn add_frame(&mut self, frame: Arc<Frame<B>>) {
        self.frames.entry(frame.tick).or_default().push(frame);
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
        self.commands.get(&(player, command.seq)).is_some_and(|known| words(known) == words(command))
    }

    pub(super) fn command(&self, player: PlayerId, seq: CommandSeq) -> Option<Usercmd> {
        self.commands.get(&(player, seq)).copied()
    }
}

/// Returns whether two frames are bit-identical.
fn same<B: Body>(a: &Frame<B>, b: &Frame<B>) -> bool {
    let cells = |body: &B| {
        let mut cells = vec![0; B::CELLS];
        body.write(&mut cells);
        cells
    };
    let alike = |((a, one), (b, other)): (&(_, B), &(_, B))| a == b && cells(one) == cells(other);
    a.server_time == b.server_time
        && a.entities.len() == b.entities.len()
        && a.entities.iter().zip(&b.entities).all(alike)
}

/// Returns all fields of a usercmd, bit for bit.
fn words(command: &Usercmd) -> [i64; 13] {
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
        input.extra.into(),
    ]
}

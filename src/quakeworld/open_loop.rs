//! Runs every prediction of a demo against the recorded truth: from the state that one packet acked, the usercmds up to
//! the next packet's ack.

use glam::Vec3;

use super::demo::{Demo, OwnState};
use super::hypotheses::Trial;
use super::map::Map;
use super::run::{Run, Runner};
use super::state::PlayerState;
use super::surroundings::Surroundings;
use super::usercmd::UserCmd;
use super::verdict::{OriginWire, Verdict, judge, reconcile};
use super::world::{Solid, World};

/// One prediction and its truth.
#[derive(Clone, Debug)]
pub struct Check {
    /// Index of the packet that acked the last command.
    pub packet: usize,
    /// Index of the packet that the prediction starts from.
    pub base: usize,
    /// Index of the first command run.
    pub first_command: usize,
    /// How many commands were run.
    pub commands: usize,
    /// The state predicted from.
    pub from: PlayerState,
    /// What was predicted, and what it touched.
    pub run: Run,
    /// What the server said.
    pub recorded: OwnState,
    /// The comparison.
    pub verdict: Verdict,
}

/// All predictions of `demo` on the level that `map` is, in order, given to `see`.
pub fn open_loop(demo: &Demo, map: &Map, mut see: impl FnMut(&Check, &[Solid])) {
    let wire = demo.server.origin_wire();
    let mut surroundings = Surroundings::default();
    let mut cmds: Vec<UserCmd> = Vec::new();
    let mut last: Option<(usize, PlayerState)> = None;
    for (index, packet) in demo.packets.iter().enumerate() {
        let Some(recorded) = packet.own else { continue };
        let first = &demo.levels[0].map;
        let same_map = demo.levels.get(usize::from(packet.level)).is_some_and(|level| level.map == *first);
        let Some((base, from)) = last.filter(|_| same_map) else {
            last = same_map.then(|| (index, start(&recorded, wire)));
            continue;
        };
        let commands = between(demo, demo.packets[base].ack, packet.ack);
        if commands.is_empty() {
            last = Some((index, reconcile(&from, &recorded, wire)));
            continue;
        }
        let solids = surroundings.known(demo, base, index);
        let world = World { map, solids };
        let vars = &demo.move_vars[usize::from(demo.packets[base].move_vars)];
        cmds.clear();
        cmds.extend(demo.commands[commands.clone()].iter().map(|sent| sent.cmd));
        let run = Runner { dialect: demo.server.dialect, vars, world }.run(&from, &cmds);
        let verdict = judge(&run.state, &recorded);
        let (first_command, commands) = (commands.start, commands.len());
        let check = Check { packet: index, base, first_command, commands, from, run, recorded, verdict };
        see(&check, solids);
        let mut state = settle(&world, reconcile(&run.state, &recorded, wire), &recorded);
        state.corpse |= verdict == Verdict::Miss && Trial { demo, map, check: &check }.lies_still();
        last = Some((index, state));
    }
}

fn start(recorded: &OwnState, wire: OriginWire) -> PlayerState {
    let mut state = PlayerState::at(recorded.origin);
    state.velocity = recorded.velocity.map(f32::from);
    reconcile(&state, recorded, wire)
}

/// A state that lies in solid moves to where it can stand and still be sent as recorded, if there is such a place.
fn settle(world: &World<'_>, mut state: PlayerState, recorded: &OwnState) -> PlayerState {
    const TRIES: [f32; 5] = [0.0, 0.04, -0.04, 0.09, -0.09];
    if world.has_room(Vec3::from_array(state.origin)) {
        return state;
    }
    for z in TRIES {
        for y in TRIES {
            for x in TRIES {
                let moved = Vec3::from_array(recorded.origin) + Vec3::new(x, y, z);
                if world.has_room(moved) {
                    state.origin = moved.to_array();
                    return state;
                }
            }
        }
    }
    state
}

/// The commands after `after` up to and with `until`.
pub fn between(demo: &Demo, after: i32, until: i32) -> std::ops::Range<usize> {
    let at = |seq: i32| demo.commands.partition_point(|sent| sent.seq <= seq);
    at(after)..at(until).max(at(after))
}

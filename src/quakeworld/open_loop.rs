//! Runs every prediction of a demo against the recorded truth: from the state that one packet acked, the usercmds up to
//! the next packet's ack.

use std::ops::Range;

use super::demo::{Demo, OwnState};
use super::hypotheses::Trial;
use super::map::Map;
use super::run::{Run, Runner};
use super::state::PlayerState;
use super::surroundings::{Bodies, Surroundings};
use super::usercmd::UserCmd;
use super::verdict::{Verdict, judge, resume, start};
use super::world::{Solid, World};

/// One prediction and its truth. Indices count in the demo's lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The packet that the prediction starts from.
    pub base: usize,
    /// The packet that acked the last command.
    pub packet: usize,
    /// The commands run; never empty.
    pub commands: Range<usize>,
    /// The state predicted from.
    pub from: PlayerState,
    /// What was predicted, and what it touched.
    pub run: Run,
    /// What the server said.
    pub recorded: OwnState,
    /// The comparison.
    pub verdict: Verdict,
}

/// All predictions of `demo` on the map of its first level, in order, given to `see` with the bodies that they met.
pub fn open_loop(demo: &Demo, map: &Map, bodies: Bodies, mut see: impl FnMut(&Check, &[Solid])) {
    let wire = demo.server.origin_wire();
    let mut surroundings = Surroundings::default();
    let mut cmds: Vec<UserCmd> = Vec::new();
    let mut last: Option<(usize, PlayerState)> = None;
    for (packet, received) in demo.packets.iter().enumerate() {
        let Some(recorded) = received.own else { continue };
        let known = last.filter(|_| on_first_map(demo, received.level));
        let Some((base, from)) = known else {
            last = on_first_map(demo, received.level).then(|| (packet, start(&recorded, wire)));
            continue;
        };
        let solids = surroundings.between(demo, base, packet, bodies);
        let world = World { map, solids };
        let commands = demo.commands_between(demo.packets[base].ack, received.ack);
        if commands.is_empty() {
            last = Some((packet, resume(&world, &from, &recorded, wire)));
            continue;
        }
        cmds.clear();
        cmds.extend(demo.commands[commands.clone()].iter().map(|sent| sent.cmd));
        let vars = &demo.move_vars[usize::from(demo.packets[base].move_vars)];
        let run = Runner { dialect: demo.server.dialect, vars, world }.run(&from, &cmds);
        let verdict = judge(&run.state, &recorded);
        let check = Check { base, packet, commands, from, run, recorded, verdict };
        see(&check, solids);
        let mut state = resume(&world, &run.state, &recorded, wire);
        state.corpse |= verdict == Verdict::Miss && Trial { demo, map, check: &check, solids }.lies_still();
        last = Some((packet, state));
    }
}

/// A restart of the same map is another level that can go on being predicted; another map is not.
fn on_first_map(demo: &Demo, level: u16) -> bool {
    let map = |level: usize| demo.levels.get(level).map(|level| level.map.as_str());
    map(usize::from(level)) == map(0)
}

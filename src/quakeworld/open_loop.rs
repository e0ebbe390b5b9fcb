//! Runs every prediction of a demo against the recorded truth: from the state that one packet acked, the usercmds up to
//! the next packet's ack.

use std::ops::Range;

use super::demo::{Demo, Event};
use super::map::Map;
use super::prediction::{Given, Prediction};
use super::run::Runner;
use super::state::PlayerState;
use super::surroundings::{Bodies, Surroundings};
use super::usercmd::UserCmd;
use super::verdict::{resume, start};
use super::world::World;

/// One prediction and where in the demo it lies; numbers are indices into the demo's lists.
#[derive(Clone, Debug)]
pub struct Check<'a> {
    /// The packet that the prediction starts from.
    pub base: usize,
    /// The packet that acked the last command.
    pub packet: usize,
    /// The commands run; never empty.
    pub commands: Range<usize>,
    /// The prediction.
    pub prediction: Prediction<'a>,
}

/// All predictions of `demo` on the map of its first level, in order, given to `see`.
pub fn open_loop(demo: &Demo, map: &Map, bodies: Bodies, mut see: impl FnMut(&Check<'_>)) {
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
        let earlier = &demo.packets[base];
        let world = World { map, solids: surroundings.between(demo, base, packet, bodies) };
        let commands = demo.commands_between(earlier.ack, received.ack);
        let Some(base_state) = earlier.own.filter(|_| !commands.is_empty()) else {
            last = Some((packet, resume(&world, &from, &recorded, wire)));
            continue;
        };
        cmds.clear();
        cmds.extend(demo.commands[commands.clone()].iter().map(|sent| sent.cmd));
        let vars = &demo.move_vars[usize::from(earlier.move_vars)];
        let prediction = Prediction::make(Given {
            runner: Runner { dialect: demo.server.dialect, vars, world },
            wire,
            from,
            base: base_state,
            before: commands.start.checked_sub(1).map(|index| demo.commands[index].cmd),
            commands: &cmds,
            players_before: earlier.others.of(&demo.others),
            events: events_between(demo, base, packet),
            recorded,
        });
        see(&Check { base, packet, commands, prediction });
        last = Some((packet, prediction.resume()));
    }
}

/// A restart of the same map is another level that can go on being predicted; another map is not.
fn on_first_map(demo: &Demo, level: u16) -> bool {
    let map = |level: usize| demo.levels.get(level).map(|level| level.map.as_str());
    map(usize::from(level)) == map(0)
}

/// What the packets after `base` told, up to and with `packet`.
fn events_between(demo: &Demo, base: usize, packet: usize) -> &[Event] {
    let start = demo.packets[base].events.end as usize;
    let end = demo.packets[packet].events.end as usize;
    demo.events.get(start..end).unwrap_or(&[])
}

//! Runs every prediction of a demo against the recorded truth: from the state that one packet acked, the usercmds up to
//! the next packet's ack.

use super::demo::{Demo, OwnState, ServerPacket};
use super::map::Map;
use super::run::{Run, run_commands};
use super::state::PlayerState;
use super::usercmd::UserCmd;
use super::verdict::{Verdict, judge, reconcile};
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
    let mut solids = Vec::new();
    let mut last: Option<(usize, PlayerState)> = None;
    for (index, packet) in demo.packets.iter().enumerate() {
        let Some(recorded) = packet.own else { continue };
        let Some((base, from)) = last else {
            last = Some((index, start(&recorded)));
            continue;
        };
        let commands = between(demo, demo.packets[base].ack, packet.ack);
        if commands.is_empty() {
            last = Some((index, reconcile(&from, &recorded, demo.server.extensions.float_origins())));
            continue;
        }
        solids_at(demo, &demo.packets[base], &mut solids);
        let world = World { map, solids: &solids };
        let vars = &demo.move_vars[usize::from(demo.packets[base].move_vars)];
        let cmds: Vec<UserCmd> = demo.commands[commands.clone()].iter().map(|sent| sent.cmd).collect();
        let run = run_commands(demo.server.dialect, vars, &world, &from, &cmds);
        let verdict = judge(&run.state, &recorded);
        let check = Check {
            packet: index,
            base,
            first_command: commands.start,
            commands: commands.len(),
            from,
            run,
            recorded,
            verdict,
        };
        see(&check, &solids);
        last = Some((index, reconcile(&run.state, &recorded, demo.server.extensions.float_origins())));
    }
}

fn start(recorded: &OwnState) -> PlayerState {
    let mut state = PlayerState::at(recorded.origin);
    state.velocity = recorded.velocity.map(f32::from);
    state.dead = recorded.dead;
    state.jump_held = recorded.jump_held.unwrap_or(false);
    state
}

/// The commands after `after` up to and with `until`.
pub fn between(demo: &Demo, after: i32, until: i32) -> std::ops::Range<usize> {
    let at = |seq: i32| demo.commands.partition_point(|sent| sent.seq <= seq);
    at(after)..at(until).max(at(after))
}

/// Fills `solids` with the brush models and players that the packet shows.
pub fn solids_at(demo: &Demo, packet: &ServerPacket, solids: &mut Vec<Solid>) {
    solids.clear();
    solids.extend(packet.movers.of(&demo.movers).iter().map(|m| Solid::Mover { model: m.model, origin: m.origin }));
    let alive = packet.others.of(&demo.others).iter().filter(|other| !other.dead);
    solids.extend(alive.map(|other| Solid::Player { slot: other.slot, origin: other.origin }));
}

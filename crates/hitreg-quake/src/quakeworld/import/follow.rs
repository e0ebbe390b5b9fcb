//! Replays a demo before there is a log, like a client that predicts among the bodies of the acking packets. It passes
//! on each stretch of usercmds between two acks, with its start state and the server's result. Differences between
//! servers show in these stretches.

use glam::Vec3;

use super::bodies::bodies_of;
use super::unsent::UnsentMovers;
use crate::quakeworld::body::QuakeWorldBody;
use crate::quakeworld::demo::{DemoEvent, QuakeWorldDemo};
use crate::quakeworld::movement::{
    Dialect, MoveOutcome, MoveRunner, QuakeWorldMoveVars, QuakeWorldPlayerState, QuakeWorldUsercmd, Surroundings,
    WorldSolid,
};
use crate::quakeworld::rounding::{out_of_solids, resume};
use crate::quakeworld::rules::QuakeWorldRules;
use crate::quakeworld::surroundings::solids;
use hitreg_log::units::EntityId;
use hitreg_netcode::game::shown_by_either;

/// Distance beyond which an explosion has no effect, in units.
const EFFECT_REACH: f32 = 300.0;

/// The usercmds that one packet acked, with the data to compare them with.
pub(crate) struct AckedUsercmds<'a> {
    pub(crate) from: QuakeWorldPlayerState,
    pub(crate) commands: Vec<QuakeWorldUsercmd>,
    pub(crate) solids: Vec<WorldSolid>,
    pub(crate) vars: &'a QuakeWorldMoveVars,
    rules: &'a QuakeWorldRules,
    /// The server's state after the last of them.
    pub(crate) recorded: QuakeWorldBody,
    /// The bodies in the previous packet.
    #[cfg(test)]
    pub(crate) before: &'a [(EntityId, QuakeWorldBody)],
    /// Events in the packet.
    pub(crate) events: &'a [DemoEvent],
}

impl AckedUsercmds<'_> {
    /// Returns whether the packet has no event that could act on the player.
    pub(super) fn is_quiet(&self) -> bool {
        let at = self.recorded.origin;
        self.events.iter().all(|event| match *event {
            DemoEvent::Choked(_) => true,
            DemoEvent::Effect { origin, .. } => at.distance(Vec3::from_array(origin)) > EFFECT_REACH,
            _ => false,
        })
    }

    /// Runs the usercmds with this movement code.
    pub(crate) fn run(&self, dialect: Dialect) -> MoveOutcome {
        self.run_among(dialect, &self.solids)
    }

    /// Runs the usercmds with one more solid. A start that rounding put inside the solid is moved out.
    pub(crate) fn run_with(&self, dialect: Dialect, solid: WorldSolid) -> MoveOutcome {
        let solids = [&self.solids[..], &[solid]].concat();
        let world = Surroundings { map: &self.rules.map, solids: &solids };
        let from = out_of_solids(&world, self.from, self.from.origin.into(), self.recorded.origin_wire());
        MoveRunner { dialect, vars: self.vars, world }.run(&from, &self.commands)
    }

    /// Runs the usercmds without the walls that were added to the map.
    pub(crate) fn run_without_walls(&self, dialect: Dialect) -> MoveOutcome {
        let others = self.solids.iter().filter(|solid| !matches!(solid, WorldSolid::Wall(_)));
        self.run_among(dialect, &others.copied().collect::<Vec<_>>())
    }

    fn run_among(&self, dialect: Dialect, solids: &[WorldSolid]) -> MoveOutcome {
        let world = Surroundings { map: &self.rules.map, solids };
        MoveRunner { dialect, vars: self.vars, world }.run(&self.from, &self.commands)
    }
}

/// State kept from the last packet with an own state.
struct LastPacket {
    ack: i32,
    sequence: u32,
    bodies: Vec<(EntityId, QuakeWorldBody)>,
    state: QuakeWorldPlayerState,
}

/// Passes to `visit` every stretch on the first level's map, with its result by the movement code of the rules, until
/// `visit` returns false.
pub(crate) fn follow(
    demo: &QuakeWorldDemo,
    rules: &QuakeWorldRules,
    mut visit: impl FnMut(&AckedUsercmds<'_>, &MoveOutcome) -> bool,
) {
    let mut last: Option<LastPacket> = None;
    let mut events = Vec::new();
    let unsent = UnsentMovers::find(demo, &rules.map);
    for (index, packet) in demo.packets.iter().enumerate() {
        let stale = last.as_ref().is_some_and(|last| packet.sequence <= last.sequence);
        if stale {
            continue;
        }
        events.extend_from_slice(&packet.events);
        let Some(own) = packet.own else { continue };
        let bodies = bodies_of(rules, packet, Some(&own), unsent.of(index));
        let LastPacket { ack, bodies: before, state: from, .. } = last.take().unwrap_or_else(|| LastPacket {
            ack: packet.ack,
            sequence: packet.sequence,
            bodies: bodies.clone(),
            state: QuakeWorldPlayerState { dead: own.dead, ..QuakeWorldPlayerState::at(own.origin) },
        });
        let player = rules.player.entity();
        let own_row = |bodies: &[(EntityId, QuakeWorldBody)]| {
            bodies.iter().find(|(entity, _)| *entity == player).map_or(QuakeWorldBody::default(), |(_, body)| *body)
        };
        let recorded = own_row(&bodies);
        let start = own_row(&before).moved(&from);
        let around = shown_by_either(&before, &bodies);
        let stretch = AckedUsercmds {
            from,
            commands: demo.commands[demo.commands_between(ack, packet.ack)].iter().map(|sent| sent.cmd).collect(),
            solids: solids(&rules.map, &around, &before, player, &start),
            vars: &rules.move_vars[usize::from(start.move_vars)],
            rules,
            recorded,
            #[cfg(test)]
            before: &before,
            events: &events,
        };
        let run = stretch.run(rules.server.dialect);
        if !stretch.commands.is_empty() && !visit(&stretch, &run) {
            return;
        }
        let world = Surroundings { map: &rules.map, solids: &stretch.solids };
        let state = resume(&world, &run.state, &recorded);
        last = Some(LastPacket { ack: packet.ack, sequence: packet.sequence, bodies, state });
        events.clear();
    }
}

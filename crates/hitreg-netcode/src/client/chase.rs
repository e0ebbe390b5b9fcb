//! Drawing from the last render position (Bernier 2001, "Display of Targets": "alternatively, the last render
//! position"). On each update, every entity starts to move from where it was drawn last to its place in the update,
//! within the interpolation time. An entity never stands still. If updates arrive faster than the interpolation time,
//! it never arrives, because each move starts from another position.

use super::draw::OthersDrawer;
use crate::game::{Body, Game, PlacedBody, PlacementKind};
use crate::history::is_teleport;
use crate::state::value;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, Micros, Tick};

pub(super) struct LagChase<B> {
    /// The target update, as its tick and the client's clock when it was first seen.
    goal: Option<(Tick, Micros)>,
    /// The start of each entity's move.
    set_out: SortedMap<EntityId, B>,
    last: SortedMap<EntityId, B>,
}

value!(LagChase<B: Body> { goal, set_out, last });

impl<B: Body> LagChase<B> {
    pub(super) fn new() -> LagChase<B> {
        LagChase { goal: None, set_out: SortedMap::new(), last: SortedMap::new() }
    }

    /// Draws everyone except the own player, at client clock `clock`.
    pub(super) fn draw<G: Game<Body = B>>(
        &mut self,
        others: &OthersDrawer<'_, G>,
        clock: Micros,
        takes: Micros,
        out: &mut Vec<(EntityId, PlacedBody<B>)>,
    ) {
        let Some(frame) = others.history.newest() else { return };
        let since = match self.goal.filter(|(goal, _)| *goal == frame.tick) {
            Some((_, since)) => since,
            None => {
                self.goal = Some((frame.tick, clock));
                self.set_out = std::mem::take(&mut self.last);
                clock
            }
        };
        let fraction = if takes == Micros::ZERO { 1.0 } else { (clock - since).0 as f32 / takes.0 as f32 };
        for (id, goal) in frame.entities.iter().filter(|(id, _)| *id != others.but) {
            let from = self.set_out.get(id).filter(|from| !is_teleport::<B>(from, goal, others.limits));
            let placed = match from {
                None => PlacedBody::new(goal.clone(), PlacementKind::Teleported),
                Some(_) if fraction >= 1.0 => PlacedBody::new(goal.clone(), PlacementKind::Held),
                Some(from) => PlacedBody::new(G::blend(from, goal, fraction.max(0.0)), PlacementKind::Interpolated),
            };
            self.last.insert(*id, placed.body.clone());
            out.push((*id, placed));
        }
    }
}

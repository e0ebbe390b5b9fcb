//! The keyframe of a server: its whole state between two ticks.

use super::Server;
use crate::game::Game;
use crate::state::{Restorer, StateError, StateValue, StateWriter};
use hitreg_log::units::PlayerId;

/// Saves the server. Returns false when events or snapshots still wait to be polled.
pub(super) fn save<G: Game>(server: &Server<G>, to: &mut StateWriter<'_, G::Body>) -> bool {
    let Server {
        rules,
        settings: _,
        seed: _,
        limits: _,
        world,
        tick,
        now,
        connections,
        inbox,
        snapshots,
        events,
        words: _,
        // Diagnostic only; not part of the simulation state.
        rollback: _,
        judged_under: _,
    } = server;
    let mut words = Vec::new();
    G::save(world, &mut words);
    let is_offered = matches!(G::load(rules, &words), Ok(Some(_)));
    if !is_offered || !inbox.is_empty() || !snapshots.is_empty() || !events.is_empty() {
        return false;
    }
    (*tick, *now).put(to);
    to.number(words.len() as u64);
    words.iter().for_each(|word| to.word(*word));
    for (player, connection) in connections.iter().enumerate() {
        to.of_player(PlayerId(player as u16));
        connection.save(to);
    }
    true
}

pub(super) fn restore<G: Game>(server: &mut Server<G>, from: &mut Restorer<'_, G::Body>) -> Result<(), StateError> {
    (server.tick, server.now) = StateValue::<G::Body>::get(from)?;
    let count = from.count(size_of::<u32>())?;
    let words = (0..count).map(|_| from.word()).collect::<Result<Vec<u32>, _>>()?;
    let players = server.connections.len();
    let world = G::load(&server.rules, &words)?.ok_or(StateError::Unknown { what: "a world" })?;
    let everyone = (0..players).map(|player| PlayerId(player as u16).entity());
    if !G::entities(&world).iter().map(|(id, _)| *id).take(players).eq(everyone) {
        return Err(StateError::Value { what: "the players of the world", found: players as u64 });
    }
    server.world = world;
    for (player, connection) in server.connections.iter_mut().enumerate() {
        from.of_player(PlayerId(player as u16));
        connection.restore(from)?;
    }
    Ok(())
}

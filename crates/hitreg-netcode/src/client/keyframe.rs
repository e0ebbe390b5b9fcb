//! The keyframe of a client: its whole state between two frames.

use super::{Client, Window};
use crate::game::{Game, PlacedBody, PlacementKind};
use crate::settings::InterpolationMode;
use crate::state::{Restorer, StateError, StateValue, StateWriter};
use hitreg_log::units::EntityId;

/// Saves the client.
pub(super) fn save<G: Game>(client: &Client<G>, to: &mut StateWriter<'_, G::Body>) {
    let Client {
        rules,
        settings,
        seed: _,
        player,
        limits: _,
        clock,
        input_time,
        history,
        newest,
        window,
        smoothing,
        categories,
        chase,
        acked,
        drawn,
        drawn_at,
        is_undrawn: _,
        meets_drawn: _,
        redundancy,
        packets,
    } = client;
    to.of_player(*player);
    history.put(to);
    (*newest, *acked, *packets).put(to);
    drawn_at.put(to);
    // The others are drawn again before anything reads them. Only entities that prediction meets as drawn are saved.
    let met: Vec<_> = drawn.iter().filter(|(id, _)| G::is_met_as_drawn(rules, *id)).collect();
    to.number(met.len() as u64);
    for (id, placed) in met {
        id.put(to);
        placed.body.put(to);
    }
    clock.save(to);
    smoothing.save(to);
    chase.save(to);
    if settings.interpolation.mode == InterpolationMode::Category {
        categories.save(history.newest().map(|newest| &**newest), to);
    }
    input_time.save(to);
    window.save(to, *acked);
    redundancy.save(to);
}

pub(super) fn restore<G: Game>(client: &mut Client<G>, from: &mut Restorer<'_, G::Body>) -> Result<(), StateError> {
    from.of_player(client.player);
    client.history = StateValue::<G::Body>::get(from)?;
    client.history.frames().clone().iter().for_each(|frame| client.note_met(frame));
    (client.newest, client.acked, client.packets) = StateValue::<G::Body>::get(from)?;
    client.drawn_at = StateValue::<G::Body>::get(from)?;
    let met: Vec<(EntityId, G::Body)> = StateValue::<G::Body>::get(from)?;
    client.drawn = met.into_iter().map(|(id, body)| (id, PlacedBody::new(body, PlacementKind::Held))).collect();
    client.clock.restore(from)?;
    client.smoothing.restore(from)?;
    client.chase.restore(from)?;
    if client.settings.interpolation.mode == InterpolationMode::Category {
        let newest = client.history.newest().map(|newest| &**newest);
        client.categories.restore(client.player, newest, from)?;
    }
    client.input_time.restore(from)?;
    Window::restore(&mut client.window, from)?;
    client.redundancy.restore(from)
}

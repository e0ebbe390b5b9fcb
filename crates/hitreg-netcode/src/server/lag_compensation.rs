//! Lag compensation (Bernier 2001, "Lag Compensation"; limits after ReHLDS and source-sdk-2013).
//!
//! The targets of a shot are those of the time that the shooter's screen showed: the server time on its clock when it
//! made the usercmd, less its interpolation. They come as an immutable list out of the history of frames that this
//! client was sent, placed by the same function that the client draws with.

use super::Server;
use super::connection::Connection;
use crate::game::{Body, Game, Placed};
use crate::pipeline::{Limit, Rewind};
use crate::settings::{Schedule, Settings};
use hitreg_log::units::{Micros, PlayerId};
use hitreg_log::usercmd::Usercmd;

impl<G: Game> Server<G> {
    pub(super) fn rewind(
        &self,
        shooter: PlayerId,
        arrived: Micros,
        command: &Usercmd,
        fire: &G::Fire,
        settings: &Settings,
    ) -> Rewind<G::Body> {
        let present =
            || G::entities(&self.world).iter().filter(|(id, _)| *id != shooter.entity()).cloned().collect::<Vec<_>>();
        if !settings.lag_compensation.enabled || G::is_projectile(fire) {
            return Rewind { by: Micros::ZERO, limit: Limit::Off, targets: present(), left_in_present: Vec::new() };
        }
        let connection = &self.connections[usize::from(shooter.0)];
        let (wanted, limit) = drawn_time(connection, arrived, command, settings);
        let (at, limit) = bounded(connection, wanted, self.now, limit, settings);
        if at >= self.now {
            return Rewind { by: Micros::ZERO, limit, targets: present(), left_in_present: Vec::new() };
        }
        let mut placed = Vec::new();
        connection.history.place_all::<G>(&self.rules, at, shooter.entity(), &self.limits, &mut placed);
        let mut left_in_present = Vec::new();
        let now = G::entities(&self.world);
        let targets = placed.into_iter().filter_map(|(id, past)| {
            let index = now.binary_search_by_key(&id, |(id, _)| *id).ok()?;
            let body = target(&past, &now[index].1);
            if body.is_none() {
                left_in_present.push(id);
            }
            Some((id, body.unwrap_or_else(|| now[index].1.clone())))
        });
        let targets = targets.collect();
        Rewind { by: self.now - at, limit, targets, left_in_present }
    }
}

/// The server time that the shooter's screen showed, if the usercmd can be believed. It can when the time on it is
/// within `max_claim_error_ms` of what the measured round trip implies; else that counts, so that nobody gains by lying.
fn drawn_time<G: Game>(
    connection: &Connection<G>,
    arrived: Micros,
    command: &Usercmd,
    settings: &Settings,
) -> (Micros, Limit) {
    let Some(round_trip) = connection.round_trip else {
        return (command.drawn_at(), Limit::None);
    };
    let implied = arrived - round_trip;
    let clock = match settings.server.schedule {
        Schedule::Arrival => command.server_time,
        // The usercmd carries the time of its tick; what the client's clock showed follows from what it drew.
        Schedule::Tick => command.drawn_at() + Micros::from_ms(connection.settings.drawn_behind_ms()),
    };
    let off = Micros((clock - implied).0.saturating_abs());
    if off <= Micros::from_ms(settings.lag_compensation.max_claim_error_ms) {
        (command.drawn_at(), Limit::None)
    } else {
        (implied - (clock - command.drawn_at()), Limit::Claim)
    }
}

fn bounded<G: Game>(
    connection: &Connection<G>,
    wanted: Micros,
    now: Micros,
    limit: Limit,
    settings: &Settings,
) -> (Micros, Limit) {
    let earliest = now - Micros::from_ms(settings.lag_compensation.max_unlag_ms);
    let (at, limit) = if wanted < earliest { (earliest, Limit::MaxUnlag) } else { (wanted, limit) };
    match connection.history.oldest() {
        Some(oldest) if at >= oldest.server_time => (at, limit),
        Some(oldest) => (oldest.server_time, Limit::Oldest),
        // Nothing was sent yet, so nothing was seen.
        None => (now, Limit::Oldest),
    }
}

/// A target in its past, or `None` where it must stay in the present: it was teleported, or died and came back, since.
fn target<B: Body>(past: &Placed<B>, now: &B) -> Option<B> {
    (past.body.teleports() == now.teleports()).then(|| past.body.clone())
}

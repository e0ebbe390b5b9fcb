//! Lag compensation (Bernier 2001, "Lag Compensation"; limits after ReHLDS and source-sdk-2013).
//!
//! A shot is judged against the targets at the time that the shooter's screen showed. That is the server time on the
//! shooter's clock when it made the usercmd, minus its interpolation delay. The targets come as an immutable list from
//! the history of frames sent to this client. The client draws with the same placement function.

use super::Server;
use super::connection::PlayerConnection;
use crate::game::{Body, Game};
use crate::history::body_of;
use crate::pipeline::{Limit, Rewind};
use crate::settings::{Schedule, Settings};
use hitreg_log::units::{EntityId, Micros, PlayerId};
use hitreg_log::usercmd::Usercmd;

/// What a shot's usercmd says of the time that the shooter saw.
pub(super) struct ShotClaim {
    /// The arrival of the usercmd; `None` for a stand-in, which nobody saw and which is judged in the present.
    arrived: Option<Micros>,
    /// The server time on the client's clock.
    clock: Micros,
    /// The server time for which the client drew the others.
    drawn_at: Micros,
    /// Whether the client drew the others as far behind its clock as its settings say.
    is_as_set: bool,
}

impl ShotClaim {
    /// The claim of a usercmd of a client with these settings.
    pub(super) fn of(arrived: Option<Micros>, command: &Usercmd, settings: &Settings) -> ShotClaim {
        let (drawn_at, behind_ms) = (command.drawn_at(), settings.drawn_behind_ms());
        let lerp_ms = i64::from(command.lerp_msec);
        let (clock, is_as_set) = match settings.server.schedule {
            Schedule::Arrival => (command.server_time, lerp_ms == behind_ms),
            // The usercmd carries its tick's time, which is ahead of the client's clock. The clock follows from what the
            // client drew.
            Schedule::Tick => (drawn_at + Micros::from_ms(behind_ms), lerp_ms >= behind_ms),
        };
        ShotClaim { arrived, clock, drawn_at, is_as_set }
    }

    /// The claim that the client would make if it drew the others as these settings say.
    pub(super) fn as_drawn_under(&self, settings: &Settings) -> ShotClaim {
        let drawn_at = self.clock - Micros::from_ms(settings.drawn_behind_ms());
        ShotClaim { drawn_at: if self.is_as_set { drawn_at } else { self.drawn_at }, ..*self }
    }
}

impl<G: Game> Server<G> {
    /// Returns the targets of a shot.
    pub(super) fn rewind(
        &self,
        shooter: PlayerId,
        claim: &ShotClaim,
        fire: &G::Fire,
        settings: &Settings,
    ) -> Rewind<G::Body> {
        let is_target = |(id, body): &&(EntityId, G::Body)| *id != shooter.entity() && !body.is_absent();
        let present = || G::entities(&self.world).iter().filter(is_target).cloned().collect::<Vec<_>>();
        if !settings.lag_compensation.enabled || G::is_projectile(fire) {
            return Rewind { by: Micros::ZERO, limit: Limit::Off, targets: present(), left_in_present: Vec::new() };
        }
        let Some(arrived) = claim.arrived else {
            return Rewind { by: Micros::ZERO, limit: Limit::None, targets: present(), left_in_present: Vec::new() };
        };
        let connection = &self.connections[usize::from(shooter.0)];
        let (wanted, limit) = drawn_time(connection, arrived, claim, settings);
        let (at, limit) = bounded(connection, wanted, self.now, limit, settings);
        if at >= self.now {
            return Rewind { by: Micros::ZERO, limit, targets: present(), left_in_present: Vec::new() };
        }
        let mut placed = Vec::new();
        connection.history.place_all::<G>(&self.setup.rules, at, shooter.entity(), &self.limits, &mut placed);
        let mut left_in_present = Vec::new();
        let now = G::entities(&self.world);
        let targets = placed.into_iter().filter_map(|(id, past)| {
            let present = body_of(now, id)?;
            // The avatar of a player who died since then is judged in the past. A hit finds it dead already.
            if present.is_absent() || past.body.teleports() == present.teleports() {
                return (!past.body.is_absent()).then_some((id, past.body));
            }
            // The target was teleported, or died and respawned, since then.
            left_in_present.push(id);
            Some((id, present.clone()))
        });
        let targets = targets.collect();
        Rewind { by: self.now - at, limit, targets, left_in_present }
    }
}

/// Returns the server time that the shooter's screen showed. The usercmd's time counts if it is within
/// `max_claim_error_ms` of the time that the measured round trip implies. Otherwise the implied time counts, so that a
/// client gains nothing by false times.
fn drawn_time<G: Game>(
    connection: &PlayerConnection<G>,
    arrived: Micros,
    claim: &ShotClaim,
    settings: &Settings,
) -> (Micros, Limit) {
    let Some(round_trip) = connection.round_trip else {
        return (claim.drawn_at, Limit::None);
    };
    let implied = arrived - round_trip;
    let off = Micros((claim.clock - implied).0.saturating_abs());
    if off <= Micros::from_ms(settings.lag_compensation.max_claim_error_ms) {
        (claim.drawn_at, Limit::None)
    } else {
        (implied - (claim.clock - claim.drawn_at), Limit::Claim)
    }
}

fn bounded<G: Game>(
    connection: &PlayerConnection<G>,
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
        // Before the first snapshot, the shooter has seen nothing.
        None => (now, Limit::Oldest),
    }
}

//! Lag compensation (Bernier 2001, "Lag Compensation"; limits after ReHLDS and source-sdk-2013).
//!
//! A shot is judged against the targets at the time that the shooter's screen showed. That is the server time on the
//! shooter's clock when it made the usercmd, minus its interpolation delay. The targets come as an immutable list from
//! the history of frames sent to this client, up to the newest that it had acked. The client draws with the same
//! placement function.

use super::Server;
use super::connection::{PacketArrival, PlayerConnection};
use crate::game::{Body, Game};
use crate::history::{PlacementLimits, body_of};
use crate::pipeline::{Limit, Rewind};
use crate::settings::Settings;
use hitreg_log::units::{EntityId, Micros, PlayerId};
use hitreg_log::usercmd::Usercmd;

/// What a shot's usercmd says of the time that the shooter saw.
pub(super) struct ShotClaim {
    /// The arrival of the usercmd; `None` for a stand-in, which nobody saw and which is judged in the present.
    arrived: Option<PacketArrival>,
    /// The server time for which the client drew the others.
    drawn_at: Micros,
    /// How far behind its clock the client draws the others by its settings.
    behind: Micros,
    /// Whether the usercmd says so, too.
    is_as_set: bool,
}

impl ShotClaim {
    /// The claim of a usercmd of a client with these settings.
    pub(super) fn of(arrived: Option<PacketArrival>, command: &Usercmd, settings: &Settings) -> ShotClaim {
        let (lerp_ms, behind_ms) = (i64::from(command.lerp_msec), settings.drawn_behind_ms());
        let is_as_set = lerp_ms == behind_ms || settings.stamps_ticks() && lerp_ms > behind_ms;
        ShotClaim { arrived, drawn_at: command.drawn_at(), behind: Micros::from_ms(behind_ms), is_as_set }
    }

    /// The claim that the client would make if it drew the others as these settings say.
    pub(super) fn as_drawn_under(&self, settings: &Settings) -> ShotClaim {
        let behind = Micros::from_ms(settings.drawn_behind_ms());
        let drawn_at = if self.is_as_set { self.drawn_at + self.behind - behind } else { self.drawn_at };
        ShotClaim { drawn_at, behind, ..*self }
    }
}

impl<G: Game> Server<G> {
    /// Returns the targets of a shot. `settings` are the shooter's.
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
        let (wanted, limit) = drawn_time(connection, arrived.at, claim, settings);
        let earliest = self.now - Micros::from_ms(settings.lag_compensation.max_unlag_ms);
        let (at, limit) = bounded(connection, wanted, [earliest, self.now], limit);
        // Without an ack, the shooter has seen nothing.
        let (Some(newest), true) = (arrived.newest, at < self.now) else {
            return Rewind { by: Micros::ZERO, limit, targets: present(), left_in_present: Vec::new() };
        };
        // The states of a snapshot older than the limit are not used either, whatever time the shooter drew from them.
        let limit = if limit == Limit::None && newest < earliest { Limit::MaxUnlag } else { limit };
        let (mut placed, limits) = (Vec::new(), PlacementLimits::of(settings));
        // Under a limit, it does not matter which frames the shooter had.
        let newest = if limit == Limit::None { newest } else { self.now };
        let (rules, but) = (&self.setup.rules, shooter.entity());
        connection.history.place_known::<G>(rules, at, newest, but, &limits, &mut placed);
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
/// `max_claim_error_ms` of the time that the measured round trip and the shooter's settings imply. Otherwise the implied
/// time counts, so that a client gains nothing by false times. A client that never acked a snapshot has no round trip.
fn drawn_time<G: Game>(
    connection: &PlayerConnection<G>,
    arrived: Micros,
    claim: &ShotClaim,
    settings: &Settings,
) -> (Micros, Limit) {
    let implied = arrived - connection.round_trip.unwrap_or(Micros::ZERO) - claim.behind;
    let off = Micros((claim.drawn_at - implied).0.saturating_abs());
    if off <= Micros::from_ms(settings.lag_compensation.max_claim_error_ms) {
        (claim.drawn_at, Limit::None)
    } else {
        (implied, Limit::Claim)
    }
}

fn bounded<G: Game>(
    connection: &PlayerConnection<G>,
    wanted: Micros,
    [earliest, now]: [Micros; 2],
    limit: Limit,
) -> (Micros, Limit) {
    let (at, limit) = if wanted < earliest { (earliest, Limit::MaxUnlag) } else { (wanted, limit) };
    match connection.history.oldest() {
        Some(oldest) if at >= oldest.server_time => (at, limit),
        Some(oldest) => (oldest.server_time, Limit::Oldest),
        // Before the first snapshot, the shooter has seen nothing.
        None => (now, Limit::Oldest),
    }
}

//! Lag compensation (Bernier 2001, "Lag Compensation"; limits after ReHLDS and source-sdk-2013).
//!
//! A shot is judged against the targets at the time that the shooter's screen showed. That is the server time on the
//! shooter's clock when it made the usercmd, minus its interpolation delay. The targets come as an immutable list from
//! the history of frames sent to this client, up to the newest that it had acked. The client draws with the same
//! placement function.

use std::sync::Arc;

use super::command_queue::ServerSink;
use super::connection::{PacketArrival, PlayerConnection};
use super::{RollbackStep, Server};
use crate::game::{Body, Game, GameInput, HitResult, PlacedBody, ShotVerdict};
use crate::history::{PlacementLimits, body_of};
use crate::pipeline::{JudgedShot, Rewind, RewindLimit, TickEvent};
use crate::settings::{Schedule, Settings};
use hitreg_log::units::{EntityId, Micros, PlayerId};
use hitreg_log::usercmd::Usercmd;

/// What a shot's usercmd says of the time that the shooter saw.
struct ShotClaim {
    /// The arrival of the usercmd. A stand-in has that of the usercmd after the gap.
    arrived: PacketArrival,
    /// The server time for which the client drew the others.
    drawn_at: Micros,
    /// How far behind its clock the client draws the others by its settings.
    behind: Micros,
    /// Whether the usercmd's `lerp_msec` agrees with the settings. Only then does a rejudged claim move with other
    /// settings.
    is_as_set: bool,
}

/// The time at which a shot is judged.
#[derive(Clone, Copy)]
struct LimitedTime {
    at: Micros,
    /// The limit that kept it from the wanted time.
    limit: RewindLimit,
}

impl ShotClaim {
    /// The claim of a usercmd of a client with these settings.
    fn of(arrived: PacketArrival, command: &Usercmd, settings: &Settings) -> ShotClaim {
        let (lerp_ms, behind_ms) = (i64::from(command.lerp_msec), settings.drawn_behind_ms());
        let is_as_set = lerp_ms == behind_ms || settings.server.schedule == Schedule::Tick && lerp_ms > behind_ms;
        ShotClaim { arrived, drawn_at: command.drawn_at(), behind: Micros::from_ms(behind_ms), is_as_set }
    }

    /// The claim that the client would make if it drew the others as these settings say.
    fn as_drawn_under(&self, settings: &Settings) -> ShotClaim {
        let behind = Micros::from_ms(settings.drawn_behind_ms());
        let drawn_at = if self.is_as_set { self.drawn_at + self.behind - behind } else { self.drawn_at };
        ShotClaim { drawn_at, behind, ..*self }
    }
}

impl<G: Game> Server<G> {
    /// Judges a shot of a usercmd, and applies the verdict to the world.
    pub(super) fn shoot(
        &mut self,
        player: PlayerId,
        arrived: PacketArrival,
        command: &Usercmd,
        index: u8,
        fire: G::Fire,
    ) {
        let settings = &self.connections[usize::from(player.0)].settings;
        let claim = ShotClaim::of(arrived, command, settings);
        let (rewind, verdict) = self.judge(player, &claim, &fire, settings);
        let rejudge = |settings: &Arc<Settings>| {
            let settings = settings.of_player(player);
            self.judge(player, &claim.as_drawn_under(&settings), &fire, &settings)
        };
        let reported = self.rejudge.reported.as_ref().map(rejudge);
        let rejudged = self.rejudge.added.iter().map(|settings| rejudge(settings).1).collect();
        let game_command = G::Input::read_usercmd(command);
        let mut sink = ServerSink { connections: &mut self.connections, events: &mut self.events, fires: Vec::new() };
        G::apply(&self.setup.rules, &mut self.world, player, &game_command, &fire, &verdict, &mut sink);
        if let Some(rollback) = &mut self.rollback {
            rollback.steps.push(RollbackStep::Shot(fire.clone(), verdict.clone()));
        }
        // The world got the server's own verdict. The event may report another.
        let (rewind, verdict) = reported.unwrap_or((rewind, verdict));
        let judged = JudgedShot { shooter: player, command: command.seq, index, fire, verdict, rewind, rejudged };
        self.events.push_back(TickEvent::Judged(judged));
    }

    fn judge(
        &self,
        shooter: PlayerId,
        claim: &ShotClaim,
        fire: &G::Fire,
        settings: &Settings,
    ) -> (Rewind<G::Body>, ShotVerdict) {
        let rewind = self.rewind(shooter, claim, fire, settings);
        let verdict = self.without_dead_targets(ShotVerdict::of::<G>(&self.setup.rules, fire, &rewind.targets));
        (rewind, verdict)
    }

    /// A player who is already dead takes no damage from a shot that hit an earlier position.
    fn without_dead_targets(&self, mut verdict: ShotVerdict) -> ShotVerdict {
        if verdict.reason != HitResult::Hit {
            return verdict;
        }
        let now = G::entities(&self.world);
        verdict.wounds.retain(|wound| body_of(now, wound.target).is_some_and(Body::is_alive));
        if verdict.wounds.is_empty() { ShotVerdict::miss(HitResult::AlreadyDead) } else { verdict }
    }

    /// Returns the targets of a shot. `settings` are the shooter's.
    fn rewind(&self, shooter: PlayerId, claim: &ShotClaim, fire: &G::Fire, settings: &Settings) -> Rewind<G::Body> {
        let is_target = |(id, body): &&(EntityId, G::Body)| *id != shooter.entity() && !body.is_absent();
        let in_present = |limit| {
            let targets = G::entities(&self.world).iter().filter(is_target).cloned().collect();
            Rewind { by: Micros::ZERO, limit, targets, left_in_present: Vec::new() }
        };
        // A projectile flies in the server's present, so its launch is not rewound.
        if !settings.lag_compensation.enabled || G::is_projectile(fire) {
            return in_present(RewindLimit::Off);
        }
        let connection = &self.connections[usize::from(shooter.0)];
        let earliest = self.now - Micros::from_ms(settings.lag_compensation.max_unlag_ms);
        let allowed = self.allowed_time(connection, accepted_time(claim, settings), earliest);
        let if_believed = self.allowed_time(connection, claim.drawn_at, earliest);
        // The claim's refusal is the reason only if it changed the result. If another limit gives the same time for the
        // claim, that limit is the reason.
        let limit = if allowed.at == if_believed.at { allowed.limit } else { RewindLimit::Claim };
        // Without an ack, the shooter has seen nothing.
        let Some(newest) = claim.arrived.newest.filter(|_| allowed.at < self.now) else {
            return in_present(limit);
        };
        // The states of a snapshot older than the limit are not used either, whatever time the shooter drew from them.
        let limit = if limit == RewindLimit::None && newest < earliest { RewindLimit::MaxUnlag } else { limit };
        let (mut placed, limits) = (Vec::new(), PlacementLimits::of(settings));
        // Under a limit, the shooter's view is not reproduced, so every frame up to now counts.
        let newest = if limit == RewindLimit::None { newest } else { self.now };
        let (rules, but) = (&self.setup.rules, shooter.entity());
        connection.history.place_known::<G>(rules, allowed.at, newest, but, &limits, &mut placed);
        self.rewind_to(allowed.at, limit, placed)
    }

    /// Returns the targets as they were placed at `at`. Targets that were teleported, or died and respawned, since then
    /// stay in the present. Source leaves them there by distance (`sv_lagcompensation_teleport_dist`), hitreg by the body's
    /// count of teleports and spawns.
    fn rewind_to(
        &self,
        at: Micros,
        limit: RewindLimit,
        placed: Vec<(EntityId, PlacedBody<G::Body>)>,
    ) -> Rewind<G::Body> {
        let mut left_in_present = Vec::new();
        let now = G::entities(&self.world);
        let targets = placed.into_iter().filter_map(|(id, past)| {
            let present = body_of(now, id)?;
            // The avatar of a player who died since then is judged in the past. A hit finds it dead already.
            if present.is_absent() || past.body.teleports() == present.teleports() {
                return (!past.body.is_absent()).then_some((id, past.body));
            }
            left_in_present.push(id);
            Some((id, present.clone()))
        });
        let targets = targets.collect();
        Rewind { by: self.now - at, limit, targets, left_in_present }
    }

    /// Returns the time within the limits that is nearest to the wanted one: `earliest`, and the client's history.
    fn allowed_time(&self, connection: &PlayerConnection<G>, wanted: Micros, earliest: Micros) -> LimitedTime {
        let at = wanted.max(earliest);
        match connection.history.oldest() {
            Some(oldest) if at < oldest.server_time => {
                LimitedTime { at: oldest.server_time, limit: RewindLimit::Oldest }
            }
            Some(_) if wanted < earliest => LimitedTime { at, limit: RewindLimit::MaxUnlag },
            Some(_) => LimitedTime { at, limit: RewindLimit::None },
            // Before the first snapshot, the shooter has seen nothing.
            None => LimitedTime { at: self.now, limit: RewindLimit::Oldest },
        }
    }
}

/// Returns the server time that the shooter's screen showed. The usercmd's time counts if it is within
/// `max_claim_error_ms` of the time that the measured round trip and the shooter's settings imply. Otherwise the implied
/// time counts, so that a client gains nothing by false times. The round trip is the newest one when the usercmd's
/// packet arrived: Half-Life runs usercmds then, and later packets of the tick may be faster. A client that never acked a
/// snapshot has no round trip.
fn accepted_time(claim: &ShotClaim, settings: &Settings) -> Micros {
    let implied = claim.arrived.at - claim.arrived.round_trip.unwrap_or(Micros::ZERO) - claim.behind;
    let off = Micros((claim.drawn_at - implied).0.saturating_abs());
    if off <= Micros::from_ms(settings.lag_compensation.max_claim_error_ms) { claim.drawn_at } else { implied }
}

//! Predictions of an imported QuakeWorld recording, held against the truth as a QuakeWorld server makes it: the movement
//! code among the bodies that the server had, lost packets replaced as it replaces them.

use glam::Vec3;

use super::cause::{self, Evidence, Hypothesis};
use super::demo::{Demo, EffectKind};
use super::game::{QuakeWorld, grade_of};
use super::open_loop::{Check, open_loop};
use super::prediction::Prediction;
use super::recorded::recorded_demo;
use super::rules::Rules;
use super::surroundings::Bodies;
use super::verdict::{Difference, ORIGIN_STEP, Verdict, difference};
use crate::game::{self, Body, Cause};
use crate::pipeline::{Comparison, Correction, FieldError};
use crate::record::Session;
use crate::replay::{Checked, Imported, ReplayError};
use crate::units::{CommandSeq, PlayerId};

impl crate::pipeline::Netcode for QuakeWorld {
    type Server = crate::server::Server<QuakeWorld>;
    type Client = crate::client::Client<QuakeWorld>;
}

impl Imported for QuakeWorld {
    fn check_predictions(
        session: &Session,
        rules: &Rules,
        player: PlayerId,
        see: &mut dyn FnMut(Checked),
    ) -> Option<Result<(), ReplayError>> {
        let demo = match recorded_demo(session, rules, player) {
            Ok(demo) => demo,
            Err(error) => return Some(Err(error)),
        };
        let fields = Fields::of_body();
        open_loop(&demo, &rules.map, Bodies::Acking, |check| {
            see(checked(&demo, rules, &fields, check));
        });
        Some(Ok(()))
    }
}

fn checked(demo: &Demo, rules: &Rules, fields: &Fields, check: &Check<'_>) -> Checked {
    let packet = &demo.packets[check.packet];
    let last = &demo.commands[check.commands.end - 1];
    // The demo comes from the log, so its numbers are some of the log's.
    let command = rules.log_seq(last.seq).unwrap_or(CommandSeq(0));
    let Difference { origin, velocity } = difference(&check.prediction.run.state, &check.prediction.given.recorded);
    let comparison = Comparison {
        command,
        commands: check.commands.len() as u32,
        grade: grade_of(check.prediction.verdict),
        error_units: Vec3::from_array(origin).length(),
        velocity_error: Vec3::from_array(velocity).length(),
        on_ground: check.prediction.given.from.on_ground,
    };
    let correction = (check.prediction.verdict == Verdict::Miss).then(|| {
        let (cause, evidence) = check.prediction.explain();
        let made = demo.commands.partition_point(|sent| sent.time_s <= packet.time_s);
        Correction {
            command,
            errors: fields.errors(&check.prediction),
            reran: made.saturating_sub(check.commands.end) as u32,
            cause: cause_of(cause),
            evidence: evidence_name(&evidence),
        }
    });
    Checked { at: rules.at(packet.time_s), comparison, correction }
}

/// Where origin and velocity stand among a body's cells.
struct Fields {
    origin: usize,
    velocity: usize,
}

impl Fields {
    fn of_body() -> Fields {
        let fields = super::body::BodyRow::fields();
        let of = |name: &str| fields.iter().position(|field| field.name == name).unwrap_or_default();
        Fields { origin: of("origin.x"), velocity: of("velocity.x") }
    }

    /// The cells that differ by more than the wire's rounding.
    fn errors(&self, prediction: &Prediction<'_>) -> Vec<FieldError> {
        let (state, recorded) = (&prediction.run.state, &prediction.given.recorded);
        let Difference { origin, velocity } = difference(state, recorded);
        let error = |field, predicted: f32, authoritative: f32| FieldError {
            field,
            predicted: predicted.to_bits(),
            authoritative: authoritative.to_bits(),
        };
        let origins = (0..3).filter(|&axis| origin[axis].abs() > ORIGIN_STEP);
        let velocities = (0..3).filter(|&axis| velocity[axis] != 0.0);
        let origins = origins.map(|axis| error(self.origin + axis, state.origin[axis], recorded.origin[axis]));
        let velocities = velocities
            .map(|axis| error(self.velocity + axis, state.velocity[axis], f32::from(recorded.velocity[axis])));
        origins.chain(velocities).collect()
    }
}

fn cause_of(cause: cause::Cause) -> Cause {
    match cause {
        cause::Cause::InputLost => Cause::InputLost,
        cause::Cause::InputLate => Cause::InputLate,
        cause::Cause::Teleport => Cause::Teleport,
        cause::Cause::SpawnOrDeath => Cause::SpawnOrDeath,
        cause::Cause::DamageOrKnockback => Cause::Knockback,
        cause::Cause::OtherPlayer => Cause::OtherPlayer,
        cause::Cause::Mover => Cause::Mover,
        cause::Cause::WaterEdge => Cause::WaterEdge,
        cause::Cause::Quantisation => Cause::Quantisation,
        cause::Cause::Unknown => Cause::Unknown,
    }
}

/// The kind of evidence, as tables name it.
fn evidence_name(evidence: &Evidence) -> game::Evidence {
    match evidence {
        Evidence::DamageMessage { .. } => "damage message",
        Evidence::PushedFrom { kind, .. } => match kind {
            EffectKind::Explosion => "pushed away from an explosion",
            EffectKind::Blood | EffectKind::LightningBlood => "pushed where blood was drawn",
            EffectKind::Teleport => "pushed where a teleporter flashed",
        },
        Evidence::DeathMark { .. } => "death mark",
        Evidence::Jump { turned: true, .. } => "jump beyond speed, view turned",
        Evidence::Jump { turned: false, .. } => "jump beyond speed",
        Evidence::Halted => "paused or over",
        Evidence::TouchedPlayer { .. } => "player touched",
        Evidence::TouchedMover { .. } => "mover touched",
        Evidence::WaterLevels { .. } => "water plane crossed",
        Evidence::Reproduced { hypothesis } => reproduced_name(hypothesis),
        Evidence::None => "none",
    }
}

fn reproduced_name(hypothesis: &Hypothesis) -> game::Evidence {
    match hypothesis {
        Hypothesis::Lost { first: None, .. } => "reproduced: packets lost",
        Hypothesis::Lost { first: Some(_), .. } => "reproduced: packets lost twice",
        Hypothesis::Corpse => "reproduced: corpse lay still",
        Hypothesis::StartsAt { .. } => "reproduced: start within rounding",
        Hypothesis::PlayersOnTheirWay { .. } => "reproduced: players on their way",
        Hypothesis::NoPlayers => "reproduced: no players in the way",
        Hypothesis::JumpHeld(_) => "reproduced: jump held otherwise",
        Hypothesis::Steering(_) => "reproduced: steering otherwise",
    }
}

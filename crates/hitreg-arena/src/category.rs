//! The drawing category of each field of the arena's bodies, and how clients advance bodies of each category.

use super::Arena;
use super::body::{ArenaBody, BodyKind};
use super::fall::fall;
use super::fire::ArenaFire;
use super::rules::ArenaRules;
use super::solid::{Solid, SolidHull};
use super::{apple, arrow, bell, rocket, walker};
use hitreg_log::units::{CommandSeq, Micros, PlayerId};
use hitreg_netcode::game::{Categorize, Category, FieldSchema};

impl Categorize for Arena {
    fn category(body: &ArenaBody, own: bool, field: &FieldSchema) -> Category {
        let variable = field.name.split('.').next().unwrap_or_default();
        match (body.kind, variable) {
            (BodyKind::Rocket, "origin") => Category::Simulated,
            (BodyKind::Player | BodyKind::Rocket, _) => Category::by_default(own, field.scope),
            (BodyKind::Tree, _) => Category::Constant,
            (BodyKind::Apple, "origin" | "velocity" | "on_ground") => Category::Simulated,
            (BodyKind::Bell, "event_in_us") => Category::SelfContained,
            (BodyKind::Bell, "kind" | "origin") => Category::Constant,
            (BodyKind::Walker, "origin" | "velocity" | "viewangles" | "on_ground") => Category::DeterministicAi,
            (BodyKind::Arrow, "origin" | "velocity") => Category::Inverted,
            (BodyKind::Apple | BodyKind::Bell | BodyKind::Walker | BodyKind::Arrow, _) => Category::Authoritative,
        }
    }

    /// Returns a body after `dt` of physics alone. It supports players too, although no category draws them so.
    /// Players usually stop, turn or jump in the meantime, and a jump shorter than a round trip would never be visible.
    fn simulate(rules: &ArenaRules, body: &ArenaBody, dt: Micros) -> ArenaBody {
        match body.kind {
            BodyKind::Apple => apple::simulate(rules, body, dt),
            BodyKind::Arrow => arrow::simulate(body, dt),
            BodyKind::Player if !body.on_ground => fall(rules, body.hull(), body, dt),
            BodyKind::Player | BodyKind::Rocket => {
                let to = body.origin + body.velocity * dt.as_s_f64() as f32;
                let hull = if body.kind == BodyKind::Rocket { SolidHull::Point } else { body.hull() };
                ArenaBody { origin: rules.map.solid().sweep(hull, body.origin, to).end, ..*body }
            }
            BodyKind::Tree | BodyKind::Bell | BodyKind::Walker => *body,
        }
    }

    fn carry_out(rules: &ArenaRules, body: &ArenaBody, dt: Micros) -> ArenaBody {
        walker::carry_out(rules, body, dt)
    }

    fn play(rules: &ArenaRules, defined: &ArenaBody, dt: Micros) -> ArenaBody {
        bell::play(rules, defined, dt)
    }

    fn final_state(_rules: &ArenaRules, body: &ArenaBody) -> Option<(ArenaBody, Micros)> {
        let left = Micros(i64::from(body.event_in_us.max(0)));
        (body.kind == BodyKind::Arrow).then(|| (arrow::simulate(body, left), left))
    }

    fn reaction(rules: &ArenaRules, fire: &ArenaFire) -> Option<ArenaBody> {
        // Only the server decides whom an arrow hits.
        arrow::loose(rules, fire, &[]).map(|(body, _)| body).or_else(|| rocket::loose(rules, fire))
    }

    fn came_from(body: &ArenaBody) -> Option<(PlayerId, CommandSeq)> {
        matches!(body.kind, BodyKind::Arrow | BodyKind::Rocket).then(|| arrow::came_from(body))
    }
}

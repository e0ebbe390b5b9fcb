//! A bot's perception: the players that it sees, after a reaction time, and where it last saw them.

use glam::Vec3;

use super::super::body::ArenaBody;
use super::super::fire::axes;
use super::super::rules::ArenaRules;
use hitreg_log::rng::Rng;
use hitreg_log::units::{EntityId, Micros};

/// Players nearer than this are noticed from behind too, in units.
const HEARD_UNITS: f32 = 260.0;

/// The cosine of half the field of view, which is 100 degrees wide.
const FIELD_COSINE: f32 = 0.64;

/// How long a bot remembers a player who is out of sight, in µs.
const MEMORY: Micros = Micros(2_500_000);

/// A player to fight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foe {
    pub(crate) id: EntityId,
    /// The body as last seen.
    pub(crate) body: ArenaBody,
    pub(crate) in_sight: bool,
    last_seen: Micros,
    noticed_at: Micros,
}

/// The attention of a bot.
#[derive(Clone, Debug)]
pub(crate) struct BotAttention {
    reaction: Micros,
    foe: Option<Foe>,
}

impl BotAttention {
    pub(crate) fn new(rng: &mut Rng) -> BotAttention {
        BotAttention { reaction: Micros::from_ms(160 + rng.below(140) as i64), foe: None }
    }

    pub(crate) fn forget(&mut self) {
        self.foe = None;
    }

    /// Looks at what the client draws, and returns the player to fight, once noticed.
    pub(crate) fn look(
        &mut self,
        rules: &ArenaRules,
        me: EntityId,
        eye: Vec3,
        viewangles: Vec3,
        others: &[(EntityId, ArenaBody)],
        now: Micros,
    ) -> Option<Foe> {
        self.keep_in_view(rules, eye, others, now);
        if self.foe.is_none_or(|foe| !foe.in_sight) {
            let forward = axes(viewangles).forward;
            let is_noticed = |body: &ArenaBody| {
                let to = body.origin - eye;
                let away = to.length();
                away < HEARD_UNITS || to.dot(forward) > away * FIELD_COSINE
            };
            let nearest = others
                .iter()
                .filter(|(id, body)| *id != me && body.is_target() && is_noticed(body) && sees(rules, eye, body))
                .min_by(|(_, a), (_, b)| a.origin.distance(eye).total_cmp(&b.origin.distance(eye)));
            if let Some((id, body)) = nearest {
                let noticed_at = now + self.reaction;
                self.foe = Some(Foe { id: *id, body: *body, in_sight: true, last_seen: now, noticed_at });
            }
        }
        self.foe.filter(|foe| now.0 >= foe.noticed_at.0)
    }

    fn keep_in_view(&mut self, rules: &ArenaRules, eye: Vec3, others: &[(EntityId, ArenaBody)], now: Micros) {
        let Some(foe) = &mut self.foe else { return };
        let body = others.iter().find(|(id, _)| *id == foe.id).map(|(_, body)| body);
        match body.filter(|body| body.is_target()) {
            None => self.foe = None,
            Some(body) => {
                foe.in_sight = sees(rules, eye, body);
                if foe.in_sight {
                    foe.body = *body;
                    foe.last_seen = now;
                } else if (now - foe.last_seen).0 > MEMORY.0 {
                    self.foe = None;
                }
            }
        }
    }
}

/// Returns whether the map leaves the line to the player's eye or middle free.
pub(crate) fn sees(rules: &ArenaRules, eye: Vec3, body: &ArenaBody) -> bool {
    rules.map.is_clear(eye, body.eye()) || rules.map.is_clear(eye, body.origin)
}

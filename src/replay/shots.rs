//! The `shots` table: what the shooter's client predicted, what the server judged, and the view error between them.

use std::collections::BTreeMap;

use super::columns::{Names, table};
use super::cover::Covers;
use crate::game::{Body, Game, Reason, Verdict};
use crate::geometry::angle_off;
use crate::pipeline::{Judged, Limit};
use crate::trace::{Data, Table};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use glam::Vec3;

/// Rows in the order in which the server judged; predicted shots that it never judged come last.
#[derive(Clone, Debug)]
pub(super) struct Shots {
    /// Shots that were predicted and are not judged yet, by (player, usercmd, index).
    pending: BTreeMap<(PlayerId, CommandSeq, u8), (Micros, &'static str, Verdict)>,
    shooter: Vec<u32>,
    command: Vec<u32>,
    index: Vec<u32>,
    at_us: Vec<i64>,
    tick: Vec<u32>,
    weapon: Names,
    predicted: Outcomes,
    judged: Outcomes,
    rewind_us: Vec<i64>,
    limit: Names,
    aimed_at: Names,
    aim_off_degrees: Vec<f32>,
    view_error_units: Vec<f32>,
    /// Whom each shot was about, and from where; what cannot be hidden from is left out.
    sight: Vec<Option<Sight>>,
    covers: Covers,
}

/// Who was shot at from where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub(super) at: Micros,
    pub(super) tick: Tick,
    pub(super) muzzle: Vec3,
    pub(super) target: EntityId,
    pub(super) was_hit: bool,
}

/// What one side thinks became of each shot.
#[derive(Clone, Debug)]
struct Outcomes {
    reason: Names,
    target: Names,
    hitgroup: Names,
    damage: Vec<i64>,
    pellets: Vec<u32>,
}

/// Who was on the shooter's screen: each entity and its drawn origin.
pub(super) type OnScreen<'a> = &'a mut dyn Iterator<Item = (EntityId, Vec3)>;

impl Shots {
    pub(super) fn new() -> Shots {
        Shots {
            pending: BTreeMap::new(),
            shooter: Vec::new(),
            command: Vec::new(),
            index: Vec::new(),
            at_us: Vec::new(),
            tick: Vec::new(),
            weapon: Names::default(),
            predicted: Outcomes::new("not predicted"),
            judged: Outcomes::new("not run"),
            rewind_us: Vec::new(),
            limit: Names::known(&Limit::NAMES),
            aimed_at: Names::known(&["none"]),
            aim_off_degrees: Vec::new(),
            view_error_units: Vec::new(),
            sight: Vec::new(),
            covers: Covers::default(),
        }
    }

    pub(super) fn predicted(
        &mut self,
        key: (PlayerId, CommandSeq, u8),
        at: Micros,
        weapon: &'static str,
        verdict: Verdict,
    ) {
        self.pending.insert(key, (at, weapon, verdict));
    }

    pub(super) fn judged<G: Game>(&mut self, at: Micros, tick: Tick, judged: &Judged<G>, on_screen: OnScreen<'_>) {
        let key = (judged.shooter, judged.command, judged.index);
        let predicted = self.pending.remove(&key).map(|(_, _, verdict)| verdict);
        self.row(key, at, tick, G::weapon_name(&judged.fire));
        self.predicted.push::<G>(predicted.as_ref());
        self.judged.push::<G>(Some(&judged.verdict));
        self.rewind_us.push(judged.rewind.by.0);
        self.limit.push_code(judged.rewind.limit as u8);
        let aimed = aimed_at(G::aim(&judged.fire), on_screen);
        let view_error = aimed.and_then(|aimed| {
            let left = judged.rewind.left_in_present.contains(&aimed.entity);
            let (_, body) = judged.rewind.targets.iter().find(|(id, _)| *id == aimed.entity)?;
            (!left && judged.verdict.reason != Reason::Launched).then(|| body.origin().distance(aimed.drawn))
        });
        self.aim(aimed, view_error);
        let was_hit = judged.verdict.reason == Reason::Hit;
        let target = match judged.verdict.main_wound() {
            Some(wound) if was_hit => Some(wound.target),
            _ => aimed.filter(|_| judged.rewind.by > Micros::ZERO).map(|aimed| aimed.entity),
        };
        let muzzle = G::aim(&judged.fire).0;
        let sight = target.map(|target| Sight { at, tick, muzzle, target, was_hit });
        self.sight.push(sight.filter(|_| judged.verdict.reason != Reason::Launched));
    }

    /// The shots in whose way a wall could be, in the order of rows.
    pub(super) fn sights(&self) -> &[Option<Sight>] {
        &self.sight
    }

    /// Says for each of [`Shots::sights`] how its target was covered.
    pub(super) fn set_covers(&mut self, covers: Covers) {
        self.covers = covers;
    }

    pub(super) fn impact<G: Game>(
        &mut self,
        key: (PlayerId, CommandSeq),
        at: Micros,
        tick: Tick,
        weapon: &'static str,
        verdict: &Verdict,
    ) {
        // An impact is a row of its own after the shot's, which has the launch.
        self.row((key.0, key.1, u8::MAX), at, tick, weapon);
        self.predicted.push::<G>(None);
        self.judged.push::<G>(Some(verdict));
        self.rewind_us.push(0);
        self.limit.push_code(Limit::Off as u8);
        self.aim(None, None);
        self.sight.push(None);
    }

    pub(super) fn table<G: Game>(mut self) -> Table {
        for (key, (at, weapon, verdict)) in std::mem::take(&mut self.pending) {
            self.row(key, at, Tick(0), weapon);
            self.predicted.push::<G>(Some(&verdict));
            self.judged.push::<G>(None);
            self.rewind_us.push(0);
            self.limit.push_code(Limit::Off as u8);
            self.aim(None, None);
        }
        let cover = self.covers.data(self.shooter.len());
        let impact = self.index.iter().map(|i| u32::from(*i == u32::from(u8::MAX))).collect();
        let mut columns = vec![
            ("shooter", Data::U32(self.shooter)),
            ("command", Data::U32(self.command)),
            ("index", Data::U32(self.index)),
            ("impact", Data::U32(impact)),
            ("at_us", Data::I64(self.at_us)),
            ("tick", Data::U32(self.tick)),
            ("weapon", self.weapon.data()),
            ("rewind_us", Data::I64(self.rewind_us)),
            ("limit", self.limit.data()),
            ("aimed_at", self.aimed_at.data()),
            ("aim_off_degrees", Data::F32(self.aim_off_degrees)),
            ("view_error_units", Data::F32(self.view_error_units)),
        ];
        let names =
            ["predicted_reason", "predicted_target", "predicted_hitgroup", "predicted_damage", "predicted_pellets"];
        columns.extend(names.into_iter().zip(self.predicted.data()));
        columns.extend(["reason", "target", "hitgroup", "damage", "pellets"].into_iter().zip(self.judged.data()));
        columns.extend(["visible_at_present", "in_cover_ms", "in_cover_units"].into_iter().zip(cover));
        table("shots", columns, Vec::new())
    }

    fn row(&mut self, key: (PlayerId, CommandSeq, u8), at: Micros, tick: Tick, weapon: &'static str) {
        self.shooter.push(u32::from(key.0.0));
        self.command.push(key.1.0);
        self.index.push(u32::from(key.2));
        self.at_us.push(at.0);
        self.tick.push(tick.0);
        self.weapon.push(weapon);
    }

    fn aim(&mut self, aimed: Option<Aimed>, view_error: Option<f32>) {
        match &aimed {
            Some(aimed) => self.aimed_at.push(&entity_name(aimed.entity)),
            None => self.aimed_at.push("none"),
        }
        self.aim_off_degrees.push(aimed.map_or(f32::NAN, |a| a.off.to_degrees()));
        self.view_error_units.push(view_error.unwrap_or(f32::NAN));
    }
}

impl Outcomes {
    fn new(nothing: &str) -> Outcomes {
        let reasons: Vec<&str> = Reason::NAMES.into_iter().chain([nothing]).collect();
        Outcomes {
            reason: Names::known(&reasons),
            target: Names::known(&["none"]),
            hitgroup: Names::known(&["none"]),
            damage: Vec::new(),
            pellets: Vec::new(),
        }
    }

    fn push<G: Game>(&mut self, verdict: Option<&Verdict>) {
        let wound = verdict.and_then(Verdict::main_wound);
        self.reason.push_code(verdict.map_or(Reason::NAMES.len() as u8, |v| v.reason as u8));
        match wound {
            Some(wound) => {
                self.target.push(&entity_name(wound.target));
                self.hitgroup.push(G::hitgroup_name(wound.hitgroup));
            }
            None => {
                self.target.push("none");
                self.hitgroup.push("none");
            }
        }
        self.damage.push(wound.map_or(0, |w| i64::from(w.damage)));
        self.pellets.push(wound.map_or(0, |w| u32::from(w.pellets)));
    }

    fn data(self) -> [Data; 5] {
        [self.reason.data(), self.target.data(), self.hitgroup.data(), Data::I64(self.damage), Data::U32(self.pellets)]
    }
}

/// The name of an entity in tables: `p3` for players and everything else alike, by number.
fn entity_name(entity: EntityId) -> String {
    format!("p{entity}")
}

#[derive(Clone, Copy)]
struct Aimed {
    entity: EntityId,
    drawn: Vec3,
    off: f32,
}

/// Whom a shot was meant for: who on the screen was nearest to its line.
fn aimed_at((from, direction): (Vec3, Vec3), on_screen: OnScreen<'_>) -> Option<Aimed> {
    on_screen
        .map(|(entity, drawn)| Aimed { entity, drawn, off: angle_off(from, direction, drawn) })
        .min_by(|a, b| a.off.total_cmp(&b.off))
}

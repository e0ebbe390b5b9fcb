//! Drawing: the others, the own avatar, and corrections that fade.

use std::sync::Arc;

use glam::Vec3;

use crate::game::{
    Body, Category, FIRST_LOCAL_ENTITY, FieldSchema, Game, Meaning, PlacedBody, PlacementKind, Rendering,
    fields_by_cell,
};
use crate::history::{Frame, History, PlacementLimits, between, beyond, fraction_of_way, is_teleport};
use crate::settings::{InterpolationMode, Settings};
use crate::state::{State, StateError, StateReader, StateValue, StateWriter, state, value};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

/// Entities as drawn.
pub(super) type Drawn<B> = Vec<(EntityId, PlacedBody<B>)>;

/// The ways of drawing the others (Bernier 2001, "Display of Targets"): the last snapshot, its extrapolation, the last
/// two snapshots, or the position history.
pub(super) struct OthersDrawer<'a, G: Game> {
    pub(super) rules: &'a G::Rules,
    pub(super) history: &'a History<G::Body>,
    pub(super) limits: &'a PlacementLimits,
    pub(super) max_extrapolation: Micros,
    pub(super) but: EntityId,
}

impl<G: Game> OthersDrawer<'_, G> {
    /// Draws the last snapshot, unchanged.
    pub(super) fn last(&self, out: &mut Drawn<G::Body>) {
        self.place_newest(out, |_, _, body| PlacedBody::new(body.clone(), PlacementKind::Held));
    }

    /// Extrapolates the last snapshot to `at`, the estimated present of the server.
    pub(super) fn extrapolated(&self, at: Micros, out: &mut Drawn<G::Body>) {
        let limits = PlacementLimits { extrapolate_max: Some(self.max_extrapolation), ..*self.limits };
        self.place_newest(out, |frame, _, body| beyond::<G>(self.rules, frame.server_time, body, at, &limits));
    }

    /// Interpolates between the last two snapshots only, always moving towards the last.
    pub(super) fn two_point(&self, at: Micros, out: &mut Drawn<G::Body>) {
        let before = self.history.before_newest();
        // The time may be before the only known state.
        let held = |body: &G::Body| PlacedBody::new(body.clone(), PlacementKind::Held);
        self.place_newest(out, |newest, id, body| {
            if at >= newest.server_time {
                return beyond::<G>(self.rules, newest.server_time, body, at, self.limits);
            }
            before.map_or_else(
                || held(body),
                |before| {
                    let fraction = fraction_of_way(before.server_time, newest.server_time, at);
                    between::<G>(before.get(id), body, fraction, self.limits)
                },
            )
        });
    }

    /// Returns whether an entity is in all snapshots from the one of tick `since` on, without a teleport between two.
    fn has_moved_since(&self, since: Tick, id: EntityId) -> bool {
        let frames = self.history.frames();
        let newer = frames.iter().rev().take_while(|frame| frame.tick > since).count();
        let states = frames.range(frames.len().saturating_sub(newer + 1)..).map(|frame| frame.get(id));
        states.clone().zip(states.skip(1)).all(|pair| match pair {
            (Some(before), Some(after)) => !is_teleport(before, after, self.limits),
            _ => false,
        })
    }

    /// Places every entity of the last snapshot except the client's own, in ascending order of id.
    fn place_newest(
        &self,
        out: &mut Drawn<G::Body>,
        place: impl Fn(&Frame<G::Body>, EntityId, &G::Body) -> PlacedBody<G::Body>,
    ) {
        let Some(frame) = self.history.newest() else { return };
        let seen = frame.entities.iter().filter(|(id, _)| *id != self.but);
        out.extend(seen.map(|(id, body)| (*id, place(frame, *id, body))));
    }
}

/// Drawing from the last render position (Bernier 2001, "Display of Targets": "alternatively, the last render
/// position"). On each update, every entity starts to move from where it was drawn last to its place in the update,
/// within the interpolation time. Only its position is delayed: all other fields, such as whether it is alive, are the
/// update's. An entity never stands still. If updates arrive faster than the interpolation time, it never arrives,
/// because each move starts from another position.
pub(super) struct LagChase<B> {
    /// The target update, as its tick and the client's clock when it was first seen.
    goal: Option<(Tick, Micros)>,
    /// The start of each entity's move.
    set_out: SortedMap<EntityId, B>,
    last: SortedMap<EntityId, B>,
}

value!(LagChase<B: Body> { goal, set_out, last });

impl<B: Body> LagChase<B> {
    pub(super) fn new() -> LagChase<B> {
        LagChase { goal: None, set_out: SortedMap::new(), last: SortedMap::new() }
    }

    /// Draws everyone except the own player, at client clock `clock`.
    pub(super) fn draw<G: Game<Body = B>>(
        &mut self,
        others: &OthersDrawer<'_, G>,
        clock: Micros,
        takes: Micros,
        out: &mut Drawn<B>,
    ) {
        let Some(frame) = others.history.newest() else { return };
        let since = match self.goal.filter(|(goal, _)| *goal == frame.tick) {
            Some((_, since)) => since,
            None => {
                let goal = self.goal.replace((frame.tick, clock));
                self.set_out = std::mem::take(&mut self.last);
                self.set_out.retain(|id, _| goal.is_some_and(|(goal, _)| others.has_moved_since(goal, *id)));
                clock
            }
        };
        let fraction = if takes == Micros::ZERO { 1.0 } else { (clock - since).0 as f32 / takes.0 as f32 };
        for (id, goal) in frame.entities.iter().filter(|(id, _)| *id != others.but) {
            let placed = match self.set_out.get(id) {
                None => PlacedBody::new(goal.clone(), PlacementKind::Teleported),
                Some(_) if fraction >= 1.0 => PlacedBody::new(goal.clone(), PlacementKind::Held),
                Some(from) => {
                    let position = G::blend(from, goal, fraction.max(0.0)).position();
                    PlacedBody::new(goal.moved_to(position), PlacementKind::Interpolated)
                }
            };
            self.last.insert(*id, placed.body.clone());
            out.push((*id, placed));
        }
    }
}

/// The longest time for which an unconfirmed effect of a usercmd is drawn. It equals the limit on how far a NeREIDS
/// client may be ahead of its server: input with a larger error is "not acceptable".
const UNCONFIRMED_MAX: Micros = Micros::from_ms(1_000);

/// The number of entity ids for unconfirmed effects of usercmds. After that the ids wrap.
const LOCAL_IDS: u16 = u16::MAX - FIRST_LOCAL_ENTITY.0;

/// The state that drawing depends on.
pub(super) struct DrawContext<G: Game> {
    pub(super) rules: Arc<G::Rules>,
    pub(super) player: PlayerId,
    /// The newest update.
    pub(super) newest: Arc<Frame<G::Body>>,
    /// The update before the newest.
    pub(super) before: Option<Arc<Frame<G::Body>>>,
    /// The newest usercmd that the newest update acks.
    pub(super) acked: CommandSeq,
    /// The local time, for everything that no longer depends on the server.
    pub(super) local: Micros,
    /// The server timeline.
    pub(super) server: Micros,
    /// The client timeline.
    pub(super) own: Micros,
}

/// The client's memory for drawing by category.
///
/// Drawing by category (NeREIDS). The [`Category`] of each field of each entity sets its timeline and its method of
/// drawing. "The client doesn't render every object in the same timeline."
pub(super) struct CategoryDrawer<G: Game> {
    /// The field of each cell.
    fields: Vec<FieldSchema>,
    /// The first cell of the origin.
    origin: usize,
    /// The entities of the newest update, in ascending order of id.
    known: Vec<DrawnEntity<G::Body>>,
    /// The tick of the newest update.
    known_at: Option<Tick>,
    /// Effects of the client's own usercmds that the server has not confirmed, in ascending order of id.
    reactions: Vec<Reaction<G::Body>>,
    local_bodies: u16,
    easing: EasedEntities,
}

/// One entity, since it was first received or since its last discontinuity, such as a teleport.
struct DrawnEntity<B> {
    entity: EntityId,
    /// The category of the origin.
    category: Category,
    /// The cells that have other categories.
    others: Vec<(usize, Category)>,
    /// Its first state.
    defined: B,
    /// The server time of its first state.
    defined_at: Micros,
    /// The start of its path towards an announced end state.
    start: B,
    /// The client timeline when it was first drawn.
    met_own: Micros,
    /// The local time when it was first drawn.
    met_local: Micros,
}

struct Reaction<B> {
    entity: EntityId,
    command: CommandSeq,
    /// Its last state.
    body: B,
    /// The local time of its last state.
    left: Micros,
}

impl<B: Body> StateValue for DrawnEntity<B> {
    fn put(&self, to: &mut StateWriter) {
        let DrawnEntity { entity, category, others, defined, defined_at, start, met_own, met_local } = self;
        (*entity, *category).put(to);
        others.put(to);
        defined.put(to);
        start.put(to);
        // Most clients receive the first state of an entity at the same time.
        to.time_of(*entity, *defined_at);
        (*met_own, *met_local).put(to);
    }

    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        let (entity, category) = StateValue::get(from)?;
        let (others, defined, start) = StateValue::get(from)?;
        let defined_at = from.time_of(entity)?;
        let (met_own, met_local) = StateValue::get(from)?;
        Ok(DrawnEntity { entity, category, others, defined, defined_at, start, met_own, met_local })
    }
}
value!(Reaction<B: Body> { entity, command, body, left });
state!(CategoryDrawer<G: Game> { known, known_at, reactions, local_bodies, easing } but { fields, origin } if is_valid);

impl<G: Game> CategoryDrawer<G> {
    fn is_valid(&self) -> bool {
        self.known.iter().flat_map(|known| &known.others).all(|(cell, _)| *cell < self.fields.len())
    }

    pub(super) fn new(settings: &Settings) -> CategoryDrawer<G> {
        // No other mode asks for categories.
        let is_used = settings.interpolation.mode == InterpolationMode::Category;
        let fields = if is_used { fields_by_cell::<G::Body>() } else { Vec::new() };
        CategoryDrawer {
            origin: fields.iter().position(|field| field.meaning == Meaning::Position).unwrap_or_default(),
            fields,
            known: Vec::new(),
            known_at: None,
            reactions: Vec::new(),
            local_bodies: 0,
            easing: EasedEntities::new(settings),
        }
    }

    /// Draws every entity except the client's own avatar, and the unconfirmed effects of its usercmds, in ascending
    /// order of id.
    pub(super) fn draw(&mut self, moment: &DrawContext<G>, out: &mut Drawn<G::Body>) {
        self.learn(moment);
        // An effect ends when the server acks its usercmd without confirming it, or does not ack the usercmd in time.
        self.reactions
            .retain(|reaction| reaction.command > moment.acked && moment.local - reaction.left <= UNCONFIRMED_MAX);
        let own = moment.player.entity();
        for ((id, body), known) in moment.newest.entities.iter().zip(&self.known).filter(|((id, _), _)| *id != own) {
            out.push((*id, Self::place(moment, known, body, None)));
        }
        let updated = moment.newest.server_time;
        // Where a Simulated entity would be drawn if the newest update had not arrived.
        let before = |id| {
            let before = moment.before.as_ref()?;
            Some(G::simulate(&moment.rules, before.get(id)?, after(before.server_time, moment.own)))
        };
        self.easing.ease(moment.local, updated, out, before);
        out.extend(self.reactions.iter().map(|reaction| (reaction.entity, reaction.place(moment))));
    }

    /// Draws the client's own avatar. `predicted` provides the fields that the client predicts. Returns `None` before
    /// the avatar's first update.
    pub(super) fn own(&self, moment: &DrawContext<G>, predicted: &G::Body) -> Option<PlacedBody<G::Body>> {
        let id = moment.player.entity();
        let known = self.known.iter().find(|known| known.entity == id)?;
        Some(Self::place(moment, known, moment.newest.get(id)?, Some(predicted)))
    }

    /// Starts to draw an effect that a usercmd has just caused.
    pub(super) fn react(
        &mut self,
        moment: &DrawContext<G>,
        command: CommandSeq,
        fire: &G::Fire,
        out: &mut Drawn<G::Body>,
    ) {
        let Some(body) = G::reaction(&moment.rules, fire) else { return };
        if self.reactions.is_empty() {
            self.local_bodies = 0;
        }
        if self.local_bodies == LOCAL_IDS {
            // More effects than there are ids in one second; no player could see them all.
            return;
        }
        let entity = EntityId(FIRST_LOCAL_ENTITY.0 + self.local_bodies);
        self.local_bodies += 1;
        let reaction = Reaction { entity, command, body, left: moment.local };
        out.push((entity, reaction.place(moment)));
        self.reactions.push(reaction);
    }

    /// Adds the entities that are new in the newest update, and removes the ones that left.
    fn learn(&mut self, moment: &DrawContext<G>) {
        if self.known_at.replace(moment.newest.tick) == Some(moment.newest.tick) {
            return;
        }
        let mut before = std::mem::take(&mut self.known).into_iter().peekable();
        for (id, body) in &moment.newest.entities {
            while before.next_if(|known| known.entity < *id).is_some() {}
            let same = before.next_if(|known| known.entity == *id && known.defined.teleports() == body.teleports());
            let known = same.unwrap_or_else(|| self.meet(moment, *id, body));
            self.known.push(known);
        }
    }

    fn meet(&mut self, moment: &DrawContext<G>, entity: EntityId, body: &G::Body) -> DrawnEntity<G::Body> {
        let own = entity == moment.player.entity();
        let all: Vec<Category> = self.fields.iter().map(|field| G::category(body, own, field)).collect();
        let category = all.get(self.origin).copied().unwrap_or(Category::Authoritative);
        DrawnEntity {
            entity,
            category,
            others: all.into_iter().enumerate().filter(|(_, other)| *other != category).collect(),
            defined: body.clone(),
            defined_at: moment.newest.server_time,
            start: self.take_over(moment, body).unwrap_or_else(|| body.clone()),
            met_own: moment.own,
            met_local: moment.local,
        }
    }

    /// Returns where the client drew its own effect of the same usercmd, so that the server's entity continues from
    /// there.
    fn take_over(&mut self, moment: &DrawContext<G>, body: &G::Body) -> Option<G::Body> {
        let (player, command) = G::came_from(body)?;
        let is_its = |reaction: &Reaction<G::Body>| player == moment.player && reaction.command == command;
        let reaction = self.reactions.remove(self.reactions.iter().position(is_its)?);
        Some(body.moved_to(reaction.place(moment).body.position()))
    }

    fn place(
        moment: &DrawContext<G>,
        known: &DrawnEntity<G::Body>,
        last: &G::Body,
        predicted: Option<&G::Body>,
    ) -> PlacedBody<G::Body> {
        let drawn = known.under(moment, known.category, last, predicted);
        if known.others.is_empty() {
            return drawn;
        }
        let mut cells = drawn.body.to_cells();
        let mut by_category: [Option<Vec<u32>>; Category::NAMES.len()] = Default::default();
        for (cell, category) in &known.others {
            let from = by_category[*category as usize]
                .get_or_insert_with(|| known.under(moment, *category, last, predicted).body.to_cells());
            cells[*cell] = from[*cell];
        }
        // Each cell comes from a valid body, and a body that accepts cells one by one accepts them together.
        PlacedBody { body: G::Body::read(&cells).unwrap_or_else(|_| drawn.body.clone()), ..drawn }
    }
}

impl<B: Body> DrawnEntity<B> {
    /// Places the whole body as if all of its fields had one category.
    fn under<G: Game<Body = B>>(
        &self,
        moment: &DrawContext<G>,
        category: Category,
        last: &B,
        predicted: Option<&B>,
    ) -> PlacedBody<B> {
        let (rules, updated_at) = (&*moment.rules, moment.newest.server_time);
        let (body, how, at) = match category {
            Category::Constant => (self.defined.clone(), PlacementKind::Held, self.defined_at),
            Category::SelfContained => {
                let at = self.met_own + (moment.local - self.met_local);
                (G::play(rules, &self.defined, after(self.defined_at, at)), PlacementKind::Extrapolated, at)
            }
            Category::Authoritative => (last.clone(), PlacementKind::Held, updated_at),
            Category::Controlled => match predicted {
                Some(predicted) => (predicted.clone(), PlacementKind::Extrapolated, moment.own),
                None => (last.clone(), PlacementKind::Held, updated_at),
            },
            Category::Simulated | Category::Reactive => {
                (G::simulate(rules, last, after(updated_at, moment.own)), PlacementKind::Extrapolated, moment.own)
            }
            Category::DeterministicAi => (
                G::carry_out(rules, last, after(updated_at, moment.server)),
                PlacementKind::Extrapolated,
                moment.server,
            ),
            Category::Inverted => match G::final_state(rules, last) {
                None => (last.clone(), PlacementKind::Held, updated_at),
                Some((end, left)) => {
                    let way = updated_at + left - self.met_own;
                    let gone = moment.own - self.met_own;
                    let fraction = if gone >= way { 1.0 } else { gone.0.max(0) as f32 / way.0 as f32 };
                    (G::blend(&self.start, &end, fraction), PlacementKind::Interpolated, moment.own)
                }
            },
        };
        PlacedBody { body, how, by: Some(Rendering { category, at }) }
    }
}

impl<B: Body> Reaction<B> {
    fn place<G: Game<Body = B>>(&self, moment: &DrawContext<G>) -> PlacedBody<B> {
        let body = G::simulate(&moment.rules, &self.body, after(self.left, moment.local));
        let by = Some(Rendering { category: Category::Reactive, at: moment.own });
        PlacedBody { body, how: PlacementKind::Extrapolated, by }
    }
}

/// Returns the time from `from` to `at`, or zero if `at` is earlier.
fn after(from: Micros, at: Micros) -> Micros {
    (at - from).max(Micros::ZERO)
}

/// Smoothing of corrections: the body is drawn where it was, and the offset fades (Quake III's `cg_errordecay`,
/// Source's `cl_smoothtime`). Simulated entities ease to their place in an update in the same way. NeREIDS describes
/// such discrepancies, for example when an apple has just started to fall.
pub(super) struct Smoothing {
    fade: Micros,
    max_units: f32,
    error: Vec3,
    since: Micros,
}

state!(Smoothing { error, since } but { fade, max_units });

impl Smoothing {
    /// Creates a smoothing that fades errors of up to `max_units` over `fade_ms`.
    pub(super) fn new(fade_ms: i64, max_units: i64) -> Smoothing {
        let fade = Micros::from_ms(fade_ms);
        Smoothing { fade, max_units: max_units as f32, error: Vec3::ZERO, since: Micros::ZERO }
    }

    /// Handles a correction. `error` is the origin as drawn minus the origin as it should now be drawn.
    pub(super) fn handle_correction(&mut self, now: Micros, error: Vec3) {
        self.error = if error.length() > self.max_units { Vec3::ZERO } else { error };
        self.since = now;
    }

    /// Returns the remaining offset, to be added to the predicted origin.
    pub(super) fn offset(&self, now: Micros) -> Vec3 {
        let age = now - self.since;
        if self.error == Vec3::ZERO || age >= self.fade {
            return Vec3::ZERO;
        }
        self.error * (1.0 - age.0 as f32 / self.fade.0 as f32)
    }
}

/// The smoothing of Simulated entities towards their place in updates.
struct EasedEntities {
    fade_ms: i64,
    max_units: i64,
    eased: SortedMap<EntityId, EasedEntity>,
}

/// One entity.
struct EasedEntity {
    /// The server time of the update that it was last drawn by, and its teleport count.
    updated: (Micros, u32),
    smoothing: Smoothing,
}

state!(EasedEntity { updated, smoothing } but {});

impl State for EasedEntities {
    fn save(&self, to: &mut StateWriter) {
        let EasedEntities { fade_ms: _, max_units: _, eased } = self;
        eased.keys().copied().collect::<Vec<_>>().put(to);
        eased.values().for_each(|eased| eased.save(to));
    }

    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError> {
        let entities = Vec::<EntityId>::get(from)?;
        self.eased = entities.into_iter().map(|entity| (entity, self.unmoved((Micros::ZERO, 0)))).collect();
        self.eased.values_mut().try_for_each(|eased| eased.restore(from))
    }
}

impl EasedEntities {
    pub(super) fn new(settings: &Settings) -> EasedEntities {
        let (fade_ms, max_units) = (settings.interpolation.ease_ms, settings.prediction.smooth_max_units);
        EasedEntities { fade_ms, max_units, eased: SortedMap::new() }
    }

    /// Returns an entity without an error.
    fn unmoved(&self, updated: (Micros, u32)) -> EasedEntity {
        EasedEntity { updated, smoothing: Smoothing::new(self.fade_ms, self.max_units) }
    }

    /// Moves Simulated entities to where they are drawn at local time `now`. `updated` is the server time of the
    /// update. `before` returns an entity as it would be by the update before.
    fn ease<B: Body>(
        &mut self,
        now: Micros,
        updated: Micros,
        drawn: &mut [(EntityId, PlacedBody<B>)],
        before: impl Fn(EntityId) -> Option<B>,
    ) {
        if self.fade_ms == 0 {
            return;
        }
        let is_simulated = |placed: &PlacedBody<B>| placed.by.is_some_and(|by| by.category == Category::Simulated);
        self.eased.retain(|id, _| drawn.iter().any(|(other, placed)| other == id && is_simulated(placed)));
        for (id, placed) in drawn.iter_mut().filter(|(_, placed)| is_simulated(placed)) {
            let of = placed.body.teleports();
            let new = self.unmoved((updated, of));
            let eased = self.eased.entry(*id).or_insert(new);
            if eased.updated.1 != of {
                eased.smoothing.handle_correction(now, Vec3::ZERO);
            } else if let Some(before) =
                before(*id).filter(|before| eased.updated.0 != updated && before.position() != placed.body.position())
            {
                let shown = before.moved_by(eased.smoothing.offset(now));
                eased.smoothing.handle_correction(now, shown.offset_from(&placed.body));
            }
            eased.updated = (updated, of);
            placed.body = placed.body.moved_by(eased.smoothing.offset(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::dot::DotBody;
    use crate::rink::{Rink, Skater};

    /// Draws the others of `history`, without extrapolation.
    fn others(history: &History<Skater>) -> OthersDrawer<'_, Rink> {
        const LIMITS: PlacementLimits = PlacementLimits { teleport_distance_units: 128.0, extrapolate_max: None };
        OthersDrawer { rules: &(), history, limits: &LIMITS, max_extrapolation: Micros::ZERO, but: EntityId(0) }
    }

    #[test]
    fn last_rendered_draws_a_player_dead_from_the_update_that_says_so() {
        let mut history = History::default();
        let mut chase = LagChase::new();
        let mut drawn_after = |x, alive| {
            let server_time = history.newest().map_or(Micros::ZERO, |newest| newest.server_time + Micros::from_ms(50));
            let skater = Skater { origin: Vec3::X * x, alive, ..Skater::default() };
            let entities = vec![(EntityId(1), skater)];
            history.push(Arc::new(Frame { tick: Tick(server_time.0 as u32), server_time, entities }));
            let others = others(&history);
            // Two client frames for each update: at its arrival, and when a quarter of the way is done.
            [0, 25].map(|late_ms| {
                let mut out = Vec::new();
                chase.draw(&others, server_time + Micros::from_ms(late_ms), Micros::from_ms(100), &mut out);
                (out[0].1.body.origin.x, out[0].1.body.alive)
            })
        };
        assert_eq!(drawn_after(0.0, true), [(0.0, true); 2]);
        assert_eq!(drawn_after(40.0, true), [(0.0, true), (10.0, true)]);
        assert_eq!(drawn_after(50.0, false), [(10.0, false), (20.0, false)]);
        assert_eq!(drawn_after(60.0, true), [(20.0, true), (30.0, true)]);
    }

    #[test]
    fn two_points_hold_the_only_known_state() {
        let mut history = History::default();
        let mut drawn_at = |x, at_ms| {
            let server_time = history.newest().map_or(Micros::ZERO, |newest| newest.server_time + Micros::from_ms(50));
            let entities = vec![(EntityId(1), Skater { origin: Vec3::X * x, ..Skater::default() })];
            history.push(Arc::new(Frame { tick: Tick(server_time.0 as u32), server_time, entities }));
            let others = others(&history);
            let mut out = Vec::new();
            others.two_point(Micros::from_ms(at_ms), &mut out);
            (out[0].1.body.origin.x, out[0].1.how)
        };
        assert_eq!(drawn_at(10.0, -5), (10.0, PlacementKind::Held));
        assert_eq!(drawn_at(20.0, 25), (15.0, PlacementKind::Interpolated));
        assert_eq!(drawn_at(500.0, 75), (500.0, PlacementKind::Teleported));
    }

    #[test]
    fn an_error_fades_and_a_teleport_does_not() {
        let prediction = Settings::default().prediction;
        let mut smoothing = Smoothing::new(prediction.smooth_ms, prediction.smooth_max_units);
        smoothing.handle_correction(Micros::from_ms(1000), Vec3::X * 10.0);
        let left = |ms| smoothing.offset(Micros::from_ms(ms)).x;
        assert_eq!([left(1000), left(1050), left(1100), left(1500)], [10.0, 5.0, 0.0, 0.0]);
        let mut at_once = |units| {
            smoothing.handle_correction(Micros::from_ms(2000), Vec3::X * units);
            smoothing.offset(Micros::from_ms(2000)).x
        };
        assert_eq!([at_once(500.0), at_once(64.0), at_once(64.01)], [0.0, 64.0, 0.0]);
    }
    #[test]
    fn an_entity_missing_for_a_frame_is_no_longer_eased() {
        let shown_after = |gone: bool| {
            let mut easing = EasedEntities { fade_ms: 100, max_units: 64, eased: SortedMap::new() };
            let mut drawn_at = |at_ms, server_ms, ids: &[u16]| {
                let by = Some(Rendering { category: Category::Simulated, at: Micros::ZERO });
                let placed = |id: &u16| {
                    (
                        EntityId(*id),
                        PlacedBody { by, ..PlacedBody::new(DotBody::default(), PlacementKind::Extrapolated) },
                    )
                };
                let mut drawn: Vec<_> = ids.iter().map(placed).collect();
                // By the update before, each entity would be 10 units away.
                easing.ease(Micros::from_ms(at_ms), Micros::from_ms(server_ms), &mut drawn, |_| {
                    Some(DotBody { origin: Vec3::X * 10.0, ..DotBody::default() })
                });
                drawn.iter().map(|(_, placed)| placed.body.origin.x).collect::<Vec<_>>()
            };
            assert_eq!(drawn_at(0, 0, &[1, 2]), [0.0, 0.0]);
            assert_eq!(drawn_at(10, 10, &[1, 2]), [10.0, 10.0]);
            assert_eq!(drawn_at(60, 10, if gone { &[2] } else { &[1, 2] }).last(), Some(&5.0));
            drawn_at(85, 10, &[1, 2])
        };
        assert_eq!((shown_after(false), shown_after(true)), (vec![2.5, 2.5], vec![0.0, 2.5]));
    }
}

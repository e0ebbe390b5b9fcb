//! Drawing by category (NeREIDS). The [`Category`] of each field of each entity sets its timeline and its method of
//! drawing. "The client doesn't render every object in the same timeline."

use std::sync::Arc;

use super::smooth::EasedEntities;
use crate::game::{
    Body, Category, FIRST_LOCAL_ENTITY, FieldSchema, Game, Meaning, PlacedBody, PlacementKind, Rendering,
    fields_by_cell,
};
use crate::history::Frame;
use crate::settings::Settings;
use crate::state::{StateError, StateReader, StateValue, StateWriter, state, value};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

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
        let fields = fields_by_cell::<G::Body>();
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
    pub(super) fn draw(&mut self, moment: &DrawContext<G>, out: &mut Vec<(EntityId, PlacedBody<G::Body>)>) {
        self.learn(moment);
        // An effect ends when the server acks its usercmd without confirming it, or does not ack the usercmd in time.
        self.reactions
            .retain(|reaction| reaction.command > moment.acked && moment.local - reaction.left <= UNCONFIRMED_MAX);
        let own = moment.player.entity();
        for ((id, body), known) in moment.newest.entities.iter().zip(&self.known).filter(|((id, _), _)| *id != own) {
            out.push((*id, Self::place(moment, known, body, None)));
        }
        let updated = moment.newest.server_time;
        self.easing.ease(moment.local, updated, out, |id| moment.body_before_newest_update(id));
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
        out: &mut Vec<(EntityId, PlacedBody<G::Body>)>,
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
        Some(body.moved_to(reaction.place(moment).body.place()))
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

impl<G: Game> DrawContext<G> {
    /// Returns a Simulated entity as it would be drawn if the newest update had not arrived.
    fn body_before_newest_update(&self, id: EntityId) -> Option<G::Body> {
        let before = self.before.as_ref()?;
        let body = before.get(id)?;
        Some(G::simulate(&self.rules, body, after(before.server_time, self.own)))
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

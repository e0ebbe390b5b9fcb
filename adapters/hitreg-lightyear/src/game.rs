//! What a log of a game declares, and the bodies of its world.

use std::fmt::Debug;
use std::marker::PhantomData;

use bevy_ecs::component::{Component, Mutable};
use bevy_ecs::query::QueryFilter;
use bevy_ecs::world::{EntityRef, EntityWorldMut, World};
use hitreg_log::fields::{EntityFields, Fields};
use hitreg_log::record::{CellKind, Class, FieldSchema, OwnValue, Scope};
use hitreg_log::recorder::Description;
use hitreg_log::units::Micros;
use lightyear::core::time::{Overstep, TickInstant};
use lightyear::prelude::input::native::ActionState;
use lightyear::prelude::{InterpolationDelay, Tick};
use serde::{Deserialize, Serialize};

/// An input of lightyear with fields of a log.
pub trait RecordedInput: Fields + Clone + Debug + Default + PartialEq + Send + Sync + 'static {}

impl<I: Fields + Clone + Debug + Default + PartialEq + Send + Sync + 'static> RecordedInput for I {}

/// The number of an entity in the log. Numbers below the number of players belong to players, and the others to anything
/// else that is recorded. No two living entities may have the same number.
///
/// A player's entity has the `ActionState` that the player controls. Spawn and despawn it outside the fixed schedules, for
/// example in an observer of `Connected`.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordedEntity(pub u16);

/// How many ticks behind its own tick the client of a player draws interpolated entities, on the player's entity. Rewind
/// targets by it: lightyear has the same delay only on the entity of the link, which replays lack.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq)]
pub struct DrawnDelay {
    /// The delay, with its fraction of a tick. 0 until the first input arrives.
    pub ticks: f64,
}

impl DrawnDelay {
    /// Returns the delay as lightyear's queries with lag compensation take it.
    pub fn interpolation_delay(self) -> InterpolationDelay {
        let instant = |tick, part| TickInstant::from_tick_and_overstep(Tick(tick), Overstep::from_f32(part));
        let delay = instant(self.ticks as u32, self.ticks.fract() as f32) - instant(0, 0.0);
        InterpolationDelay { delay: delay.into() }
    }
}

/// The usercmd field with the ticks of [`DrawnDelay`].
pub const DRAWN_DELAY: &str = "drawn_delay";

/// The components whose values are the fields of a class.
#[derive(Clone, Default)]
pub struct Components {
    fields: Vec<FieldSchema>,
    all: Vec<ComponentAccess>,
}

#[derive(Clone, Copy)]
struct ComponentAccess {
    values: fn(&EntityRef) -> Option<Vec<OwnValue>>,
    /// Sets the component from the first values, and returns the others.
    set: for<'a> fn(&mut EntityWorldMut, &'a [OwnValue]) -> &'a [OwnValue],
}

impl Components {
    /// Returns one component.
    pub fn of<C: Component<Mutability = Mutable> + Fields>() -> Components {
        Components::default().and::<C>()
    }

    /// Adds a component.
    #[must_use]
    pub fn and<C: Component<Mutability = Mutable> + Fields>(mut self) -> Components {
        self.fields.extend(C::fields());
        self.all.push(ComponentAccess {
            values: |entity| Some(entity.get::<C>()?.values()),
            set: |entity, values| {
                let (own, rest) = values.split_at(C::fields().len().min(values.len()));
                if let Some(mut component) = entity.get_mut::<C>() {
                    component.set(own);
                }
                rest
            },
        });
        self
    }

    /// Returns the values of an entity that has all the components.
    fn values(&self, entity: &EntityRef) -> Option<Vec<OwnValue>> {
        let values: Option<Vec<Vec<OwnValue>>> = self.all.iter().map(|access| (access.values)(entity)).collect();
        Some(values?.concat())
    }
}

/// What the recording and the replay of a game have in common. `I` is the input of lightyear's native input plugin.
#[derive(Clone)]
pub struct RecordedGame<I> {
    pub(crate) name: String,
    pub(crate) players: u16,
    pub(crate) hz: u32,
    classes: Vec<(String, Components)>,
    kinds: Vec<(String, Vec<(String, CellKind)>)>,
    input: PhantomData<fn() -> I>,
}

impl<I: RecordedInput> RecordedGame<I> {
    /// Describes a game for a number of players. `hz` is the tick rate, 1 to 1,000.
    pub fn new(name: impl Into<String>, players: u16, hz: u32) -> RecordedGame<I> {
        RecordedGame {
            name: name.into(),
            players,
            hz: hz.max(1),
            classes: Vec::new(),
            kinds: Vec::new(),
            input: PhantomData,
        }
    }

    /// Adds a class. An entity belongs to the first class whose components it all has. Declare the players' class first.
    #[must_use]
    pub fn class(mut self, name: impl Into<String>, components: Components) -> RecordedGame<I> {
        self.classes.push((name.into(), components));
        self
    }

    /// Declares a kind of rows of your own, for [`HitregRecorder::row`](crate::HitregRecorder::row). The first kind has
    /// index 0.
    #[must_use]
    pub fn kind(mut self, name: impl Into<String>, columns: &[(&str, CellKind)]) -> RecordedGame<I> {
        let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        self.kinds.push((name.into(), columns));
        self
    }

    /// The number of kinds of the game's own.
    pub(crate) fn own_kinds(&self) -> usize {
        self.kinds.len()
    }

    /// Returns the description of a session, for `Recorder::create` or `Recorder::keep_last`. Add settings, a seed or a
    /// map to it, but no players, classes or usercmd fields.
    pub fn describe(&self) -> Description {
        let about = I::fields().into_iter().fold(self.describe_game(), Description::usercmd_field);
        about.usercmd_field(FieldSchema::new(DRAWN_DELAY, CellKind::F64, Scope::Movement)).tick_hz(self.hz)
    }

    /// Returns the description without usercmd fields and settings, which a replay takes from the log.
    pub(crate) fn describe_game(&self) -> Description {
        let about =
            (0..self.players).fold(Description::new(&self.name), |about, player| about.player(format!("p{player}")));
        let classes = self.classes.iter().map(|(name, class)| Class::new(name.clone(), class.fields.clone()));
        let about = classes.fold(about, Description::class);
        self.kinds.iter().cloned().fold(about, |about, (name, columns)| about.kind(name, columns))
    }

    /// The time of a tick.
    pub(crate) fn at(&self, tick: u32) -> Micros {
        Micros(i64::from(tick) * 1_000_000 / i64::from(self.hz))
    }

    /// Returns the recorded entities of the world by their numbers. `is_present` says whether a player has joined.
    pub(crate) fn bodies(&self, world: &mut World, is_present: impl Fn(u16) -> bool) -> Vec<EntityFields> {
        self.bodies_with::<()>(world, is_present)
    }

    /// Returns those of the entities that pass a filter.
    pub(crate) fn bodies_with<F: QueryFilter>(
        &self,
        world: &mut World,
        is_present: impl Fn(u16) -> bool,
    ) -> Vec<EntityFields> {
        let mut entities = world.query_filtered::<(EntityRef, &RecordedEntity), F>();
        let mut bodies: Vec<EntityFields> = entities
            .iter(world)
            .filter(|(_, number)| number.0 >= self.players || is_present(number.0))
            .filter_map(|(entity, number)| {
                let classes = (0..).zip(&self.classes);
                let (class, values) =
                    classes.filter_map(|(class, (_, all))| Some((class, all.values(&entity)?))).next()?;
                Some(EntityFields { entity: number.0, class, values })
            })
            .collect();
        bodies.sort_by_key(|body| body.entity);
        bodies
    }

    /// Returns the names of a class's fields.
    pub(crate) fn field_names(&self, class: u16) -> impl Iterator<Item = String> {
        let class = self.classes.get(usize::from(class));
        class.into_iter().flat_map(|(_, class)| class.fields.iter().map(|field| field.name.clone()))
    }

    /// Sets the components of an entity to a recorded state.
    pub(crate) fn restore(&self, entity: &mut EntityWorldMut, body: &EntityFields) {
        let access = self.classes.get(usize::from(body.class)).map_or(&[][..], |(_, class)| &class.all);
        access.iter().fold(&body.values[..], |values, access| (access.set)(entity, values));
    }
}

/// Gives a player's entity an input, if lightyear has not yet done so: the default acts until the first input arrives.
pub(crate) fn insert_input<I: RecordedInput>(entity: &mut EntityWorldMut) {
    if !entity.contains::<ActionState<I>>() {
        entity.insert(ActionState::<I>::default());
    }
    entity.insert(DrawnDelay::default());
}

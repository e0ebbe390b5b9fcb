//! The rendering categories of NeREIDS, which say how a client obtains each variable that it draws ("NeREIDS Live
//! Protocol and plans", section "Client Rendering"). A client draws in more than one timeline. Its own avatar is where
//! its newest usercmd put it, and so are variables that it can predict. Everything else is where the server last
//! reported it. The document asks for categories that are "assignable to any variable held by entities, instead of the
//! whole entities". A game therefore gives the category of each field of a body ([`Categorize::category`]).
//!
//! There are two timelines. The *server timeline* is the client's clock, which the server's updates set. The *client
//! timeline* is the time of the client's own avatar: the server time at which a usercmd made now will run.

use super::{FieldSchema, Scope, Simulate};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, named};

named! {
    /// How a client obtains the value of a variable that it draws.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Category {
        /// "Are never modified, thus updates never need to be sent or waited for": the value from when the entity
        /// became known.
        Constant = "constant",
        /// "Once known, may be processed entirely on the client (e.g. playing a sound)": computed from the first state
        /// alone, by the client's own clock. See [`Categorize::play`].
        SelfContained = "self-contained",
        /// "Last update from the server need to be always used as if it was the current state": the newest update,
        /// unchanged.
        Authoritative = "authoritative",
        /// "Actions not yet acknowledged and known only client-side affecting the entity may be used": predicted, like
        /// the client's own avatar. For an entity that the client does not control, the client knows no more than the
        /// last update.
        Controlled = "controlled",
        /// "Last update from the server may be extrapolated up to the current client time": simulated physics, in the
        /// client timeline. See [`Categorize::simulate`].
        Simulated = "simulated",
        /// "Last update from the server contains enough high-level AI decision stuff, for the client to be able to
        /// extrapolate low-level AI reactions on the server timeline". See [`Categorize::carry_out`].
        DeterministicAi = "deterministic-ai",
        /// "Last action known only client-side on the entity (such as shooting of an arrow) may be extrapolated up to
        /// the current client time". The client predicts the effect of its own usercmd before the server confirms it,
        /// and the server's first report replaces it. See [`Categorize::reaction`].
        Reactive = "reactive",
        /// "Last update from the server refers to the final state of the entity at a given point in the future (such
        /// as: this arrow WILL hit that guy). Rendering needs interpolation." See [`Categorize::final_state`].
        Inverted = "inverted",
    }
}

impl Category {
    /// The category of a variable whose game gives none. The predicted variables of the own body are `Controlled`. All
    /// other variables are `Authoritative`.
    pub fn by_default(own: bool, scope: Scope) -> Category {
        match (own, scope) {
            (true, Scope::Movement | Scope::Weapons | Scope::ClientOnly) => Category::Controlled,
            (true, Scope::Status) | (false, _) => Category::Authoritative,
        }
    }
}

/// The category by which a body was drawn, and the server time of the drawn state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// The category of the body's place (`origin`). Other variables of the same body may have other categories.
    pub category: Category,
    /// The server time of the drawn place.
    pub at: Micros,
}

/// The first id of local bodies: effects of a client's own usercmds that only this client knows. Ids of the server's
/// entities are below.
pub const FIRST_LOCAL_ENTITY: EntityId = EntityId(0xf000);

/// How a client draws by category what it does not receive with every snapshot. Every item has a default.
pub trait Categorize: Simulate {
    /// The category of a variable. `own` is whether the body is the viewer's avatar. The answer may depend on the kind
    /// of entity. It must stay the same until [`Body::teleports`](super::Body::teleports) changes.
    fn category(_body: &Self::Body, own: bool, field: &FieldSchema) -> Category {
        Category::by_default(own, field.scope)
    }

    /// [`Category::Simulated`]: returns the body after `dt` of physics alone.
    fn simulate(rules: &Self::Rules, body: &Self::Body, dt: Micros) -> Self::Body {
        Self::extrapolate(rules, body, dt)
    }

    /// [`Category::DeterministicAi`]: returns the body after `dt` of its last decision. The decision and its time of
    /// application are in the body; nothing else of the body may be used.
    fn carry_out(_rules: &Self::Rules, body: &Self::Body, _dt: Micros) -> Self::Body {
        body.clone()
    }

    /// [`Category::SelfContained`]: returns the body `dt` after it became known with the state `defined`.
    fn play(_rules: &Self::Rules, defined: &Self::Body, _dt: Micros) -> Self::Body {
        defined.clone()
    }

    /// [`Category::Inverted`]: the state in which the body will end, and how much later. `None` if the body holds no
    /// such state.
    fn final_state(_rules: &Self::Rules, _body: &Self::Body) -> Option<(Self::Body, Micros)> {
        None
    }

    /// [`Category::Reactive`]: the body that a shot shows at once on its shooter's own screen. [`Categorize::simulate`]
    /// then moves it on. `None` if the shot shows no body.
    fn reaction(_rules: &Self::Rules, _fire: &Self::Fire) -> Option<Self::Body> {
        None
    }

    /// The usercmd that created an entity. That player's client stops drawing its own reaction when it sees this
    /// entity.
    fn came_from(_body: &Self::Body) -> Option<(PlayerId, CommandSeq)> {
        None
    }
}

/// A body at one time, and how its place was found.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedBody<B> {
    /// The body.
    pub body: B,
    /// How its place was found.
    pub how: PlacementKind,
    /// The category by which it was drawn; `None` in every `interpolation.mode` but `category`.
    pub by: Option<Rendering>,
}

impl<B> PlacedBody<B> {
    /// A body without a category.
    pub fn new(body: B, how: PlacementKind) -> PlacedBody<B> {
        PlacedBody { body, how, by: None }
    }
}

named! {
    /// How a body's place was found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum PlacementKind {
        /// Interpolated between two known states.
        Interpolated = "interpolated",
        /// Extrapolated from the last known state.
        Extrapolated = "extrapolated",
        /// The nearest known state, unchanged.
        Held = "held",
        /// New, or moved at once to where it was teleported.
        Teleported = "teleported",
    }
}

//! By which right a client draws a variable: the rendering categories of NeREIDS ("NeREIDS Live Protocol and plans",
//! section "Client Rendering"). A client does not draw everything in one timeline: its own avatar is where its newest usercmd
//! put it, what it can foresee is there with it, and the rest is where the server last said it was. The document asks
//! for categories that are "assignable to any variable held by entities, instead of the whole entities"; so they are
//! here: a game says the category of each field of a body ([`Categorize::category`]).
//!
//! There are two timelines. The *server timeline* is the client's clock, which the updates set. The *client timeline* is
//! where the client's own avatar is: the server time at which a usercmd that is made now will run.

use super::{Field, Scope, Simulate};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, named};

/// How a client comes by the value of a variable that it draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// "Are never modified, thus updates never need to be sent or waited for": as the entity was when it became known.
    Constant,
    /// "Once known, may be processed entirely on the client (e.g. playing a sound)": from the first state alone, by the
    /// client's own clock. See [`Categorize::play`].
    SelfContained,
    /// "Last update from the server need to be always used as if it was the current state": the newest update as it is.
    Authoritative,
    /// "Actions not yet acknowledged and known only client-side affecting the entity may be used": predicted, as one's
    /// own avatar is. Of what the client does not control nothing more is known than the last update.
    Controlled,
    /// "Last update from the server may be extrapolated up to the current client time": physics, in the client timeline.
    /// See [`Categorize::simulate`].
    Simulated,
    /// "Last update from the server contains enough high-level AI decision stuff, for the client to be able to
    /// extrapolate low-level AI reactions on the server timeline". See [`Categorize::carry_out`].
    DeterministicAi,
    /// "Last action known only client-side on the entity (such as shooting of an arrow) may be extrapolated up to the
    /// current client time": what the client's own usercmd caused, before the server knows of it, and no longer than
    /// until the server's word on it. See [`Categorize::reaction`].
    Reactive,
    /// "Last update from the server refers to the final state of the entity at a given point in the future (such as:
    /// this arrow WILL hit that guy). Rendering needs interpolation." See
    /// [`Categorize::final_state`].
    Inverted,
}

named!(Category {
    Constant = "constant",
    SelfContained = "self-contained",
    Authoritative = "authoritative",
    Controlled = "controlled",
    Simulated = "simulated",
    DeterministicAi = "deterministic-ai",
    Reactive = "reactive",
    Inverted = "inverted",
});

impl Category {
    /// The name that traces use.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What a variable is where a game does not say: of the own body what is predicted is Controlled, and what the server
    /// alone decides is Authoritative; of everything else all is Authoritative.
    pub fn by_default(own: bool, scope: Scope) -> Category {
        match (own, scope) {
            (true, Scope::Movement | Scope::Weapons | Scope::ClientOnly) => Category::Controlled,
            (true, Scope::Status) | (false, _) => Category::Authoritative,
        }
    }
}

/// By which category something was drawn, and when it is as it was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// The category of its place (`origin`). Other variables of the same body may have others.
    pub category: Category,
    /// The server time that the place is of.
    pub at: Micros,
}

/// The first id of bodies that only one client knows: what its own usercmds caused. The server's entities are below.
pub const FIRST_LOCAL_ENTITY: EntityId = EntityId(0xf000);

/// How clients that draw by category come by what they do not get with every snapshot. All of it may be left out.
pub trait Categorize: Simulate {
    /// The category of a variable: how a client that draws by category comes by it. `own` is whether the body is the
    /// viewer's avatar. The answer may depend on what kind of thing the body is, and must stay the same as long as it is
    /// the same thing (until [`Body::teleports`](super::Body::teleports) changes).
    fn category(_body: &Self::Body, own: bool, field: &Field) -> Category {
        Category::by_default(own, field.scope)
    }

    /// [`Category::Simulated`]: the body `dt` later if only physics acts on it.
    fn simulate(rules: &Self::Rules, body: &Self::Body, dt: Micros) -> Self::Body {
        Self::extrapolate(rules, body, dt)
    }

    /// [`Category::DeterministicAi`]: the body `dt` later, as its last decision (with its time of application, both in
    /// the body) has it. May use nothing of the body but decision and time.
    fn carry_out(_rules: &Self::Rules, body: &Self::Body, _dt: Micros) -> Self::Body {
        body.clone()
    }

    /// [`Category::SelfContained`]: the body `dt` after it became known with the state `defined`.
    fn play(_rules: &Self::Rules, defined: &Self::Body, _dt: Micros) -> Self::Body {
        defined.clone()
    }

    /// [`Category::Inverted`]: the state that the body will end in, and how much later. `None` where it holds none.
    fn final_state(_rules: &Self::Rules, _body: &Self::Body) -> Option<(Self::Body, Micros)> {
        None
    }

    /// [`Category::Reactive`]: the body that a shot shows at once on its shooter's own screen, which
    /// [`Categorize::simulate`] carries on from there. `None` for what nothing is seen of.
    fn reaction(_rules: &Self::Rules, _fire: &Self::Fire) -> Option<Self::Body> {
        None
    }

    /// Which usercmd an entity came from: that player's client stops drawing its own reaction when it sees this one.
    fn came_from(_body: &Self::Body) -> Option<(PlayerId, CommandSeq)> {
        None
    }
}

//! What a game implements to be recorded and replayed: a handful of pure functions, after id's `pmove`.
//!
//! The pipelines never look inside a world. They run commands through it, ask for its entities, and judge shots
//! against pasts that they hand in; all of it from arguments alone, so that the same arguments give the same result
//! on the server, in a client's prediction, and in a replay years later.

mod acked;
mod body;
mod category;
mod placed;
mod role;
mod shot;
mod states;

use glam::Vec3;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use acked::shown_by_either;
pub use acked::{Acked, Cause, Evidence, Grade, LostInput, Told};
pub use body::{BadCells, Body, Cells, body};
pub use category::{Category, FIRST_LOCAL_ENTITY, Rendering};
pub use placed::{How, Placed};
pub use role::Role;
pub use shot::{Verdict, Wound};
pub use states::{OtherFields, StateRows, unknown_states};

pub use crate::record::{CellKind, Class, ClassId, Effect, Field, Meaning, Reason, Scope};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use crate::usercmd::{Input, Usercmd};

/// A game, as the pipelines see it.
pub trait Game: Sized + Send + Sync + 'static {
    /// The name that a log carries; a build refuses a log of another game.
    const NAME: &'static str;

    /// All that does not change during a session: map, movement constants, weapons. Stored whole in the log.
    type Rules: Serialize + DeserializeOwned + Send + Sync + 'static;
    /// The authoritative state.
    type World: Clone + Send + 'static;
    /// One entity's state, as snapshots carry it and prediction advances it.
    type Body: Body;
    /// A weapon going off: all that is needed to judge the shot later, against any past.
    type Fire: Clone + std::fmt::Debug + Send + 'static;

    /// The classes that entities' states are recorded as, each with some of the body's fields; [`Game::class`] says which
    /// body is of which. What a class leaves out of a body is 0 when it is read back.
    fn classes() -> Vec<Class> {
        Class::only(Self::Body::fields())
    }

    /// The class of a body, by its place in [`Game::classes`].
    fn class(_body: &Self::Body) -> ClassId {
        ClassId(0)
    }

    /// The name of the map that the rules hold.
    fn map_name(rules: &Self::Rules) -> String;

    /// The world before the first tick, with a body for each of `players` players.
    fn spawn(rules: &Self::Rules, seed: Seed, players: u16) -> Self::World;

    /// A world whose players stand as these bodies say, for a session that begins in the middle of another one. Recorded
    /// bodies lack what only clients know. `None` where a game cannot begin anywhere but at its spawn.
    fn begin(_rules: &Self::Rules, _seed: Seed, _players: &[(EntityId, Self::Body)]) -> Option<Self::World> {
        None
    }

    /// Runs one usercmd on one body. Server and prediction both call this and nothing else to move a player.
    fn step_body(
        rules: &Self::Rules,
        scene: &Scene<'_, Self::Body>,
        body: &Self::Body,
        command: &Usercmd,
        out: &mut impl Sink<Self::Fire>,
    ) -> Self::Body;

    /// The world's entities in ascending order of id; players are the first ids.
    fn entities(world: &Self::World) -> &[(EntityId, Self::Body)];

    /// Puts back a player's body after [`Game::step_body`], with what follows from it on the server alone
    /// (picking things up, walking into a trigger).
    fn place_body(rules: &Self::Rules, world: &mut Self::World, player: PlayerId, body: Self::Body);

    /// Where a shot goes among `targets`, which are the others as the shooter saw them, or as they are now.
    fn judge(rules: &Self::Rules, fire: &Self::Fire, targets: &[(EntityId, Self::Body)]) -> Verdict;

    /// Whether any part of a body can be seen from a place, with the map in the way. `None` where the game does not say.
    fn sees(_rules: &Self::Rules, _from: Vec3, _body: &Self::Body) -> Option<bool> {
        None
    }

    /// The line along which a shot is aimed: from where, in which direction (a unit vector).
    fn aim(fire: &Self::Fire) -> (Vec3, Vec3);

    /// True for what flies on its own through the present (Bernier's footnote 9): such a shot is launched, never judged
    /// against a past.
    fn is_projectile(fire: &Self::Fire) -> bool;

    /// Lets a judged shot act on the present world: damage, knockback, or a projectile leaving its muzzle.
    fn apply(
        rules: &Self::Rules,
        world: &mut Self::World,
        shooter: PlayerId,
        command: &Usercmd,
        fire: &Self::Fire,
        verdict: &Verdict,
        out: &mut impl WorldSink,
    );

    /// Advances what the server moves by itself: projectiles, respawns, things on their way.
    fn step_world(rules: &Self::Rules, world: &mut Self::World, dt: Micros, out: &mut impl WorldSink);

    /// The body between two samples of it; `fraction` is in `0..=1`.
    fn blend(from: &Self::Body, to: &Self::Body, fraction: f32) -> Self::Body;

    /// The body carried on for `dt` after its last known state: in a straight line, unless the game knows better.
    fn extrapolate(_rules: &Self::Rules, body: &Self::Body, dt: Micros) -> Self::Body {
        body.moved_to(body.origin() + body.velocity() * dt.as_s_f64() as f32)
    }

    /// The category of a variable: how a client that draws by category comes by it. `own` is whether the body is the
    /// viewer's avatar. The answer may depend on what kind of thing the body is, and must stay the same as long as it is
    /// the same thing (until [`Body::teleports`] changes).
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

    /// [`Category::Reactive`]: the body that a shot gives off at once on its shooter's own screen, which
    /// [`Game::simulate`] carries on from there. `None` for what nothing is seen of.
    fn reaction(_rules: &Self::Rules, _fire: &Self::Fire) -> Option<Self::Body> {
        None
    }

    /// Which usercmd an entity came from: that player's client stops drawing its own reaction when it sees this one.
    fn came_from(_body: &Self::Body) -> Option<(PlayerId, CommandSeq)> {
        None
    }

    /// The world in 32-bit words: everything that can change a later tick, in a fixed order.
    /// The state hash is taken over these words, and a rollback restores from them, so what is left out is found.
    fn save(world: &Self::World, words: &mut Vec<u32>);

    /// The world back from [`Game::save`]'s words.
    ///
    /// # Errors
    /// When the words are not a whole world.
    fn load(rules: &Self::Rules, words: &[u32]) -> Result<Self::World, BadCells>;

    /// Whether the body stands on something; predictions are counted apart for ground and air.
    fn on_ground(body: &Self::Body) -> bool;

    /// How well a prediction agrees with what the server made of the same usercmd. `None` where the two cannot be compared,
    /// as where one of them is on a level that the rules do not hold.
    fn grade(predicted: &Self::Body, authoritative: &Self::Body) -> Option<Grade> {
        Some(Grade::of_distance(predicted, authoritative))
    }

    /// True where recorded states are rounded: then only a [`Grade::Miss`] is wrong. False where states are exact: then any
    /// difference of a predicted cell is.
    const RECORDS_ARE_ROUNDED: bool = false;

    /// The body to predict from after an ack: the server's, with what only the client knows. A game whose recorded states
    /// are rounded keeps of its prediction what the rounding cannot tell. The first state that a client has is its own prediction.
    fn resume(_rules: &Self::Rules, acked: &Acked<'_, Self::Body>) -> Self::Body {
        let mut body = acked.authoritative.clone();
        body.adopt_client_only(acked.predicted);
        body
    }

    /// What the bodies that moved by themselves since `before` do to a player's body before its next usercmd runs: a lift
    /// carries who stands on it. `scene` has them where they are now.
    fn carry(
        _rules: &Self::Rules,
        _scene: &Scene<'_, Self::Body>,
        _before: &[(EntityId, Self::Body)],
        body: &Self::Body,
    ) -> Self::Body {
        body.clone()
    }

    /// Whether somebody's shot hurt the body between two states of it: evidence that a push came from a shot.
    fn was_hurt(_before: &Self::Body, _after: &Self::Body) -> bool {
        false
    }

    /// Why a prediction was wrong, where the game knows better than the pipeline can tell.
    fn explain(_rules: &Self::Rules, _miss: &Acked<'_, Self::Body>) -> Option<(Cause, Evidence)> {
        None
    }

    /// Whether a recorded snapshot is one of this game's, beyond what [`Body::read`] sees.
    ///
    /// # Errors
    /// Says what does not fit.
    fn check_snapshot(_bodies: &[(EntityId, Self::Body)], _told: &Told<'_>) -> Result<(), BadCells> {
        Ok(())
    }

    /// The name of an [`Effect::kind`].
    fn effect_name(kind: u8) -> &'static str;

    /// The name of a [`Wound::hitgroup`].
    fn hitgroup_name(hitgroup: u8) -> &'static str;

    /// The name of the weapon that a shot came from.
    fn weapon_name(fire: &Self::Fire) -> &'static str;
}

/// A game that can play itself, for synthetic sessions.
pub trait Bots: Game {
    /// One bot's mind.
    type Bot: Send;

    /// The maps that the game has built in, each with its name and the bytes of its file. The first is the default.
    const MAPS: &'static [(&'static str, &'static str)] = &[];

    /// The bot of one player. The same seed and player give the same bot.
    fn bot(rules: &Self::Rules, seed: Seed, player: PlayerId) -> Self::Bot;

    /// The bots of the first so many players, the same as [`Bots::bot`] gives one by one. A game whose bots share what
    /// takes long to work out does it once here.
    fn bots(rules: &Self::Rules, seed: Seed, players: u16) -> Vec<Self::Bot> {
        (0..players).map(|player| Self::bot(rules, seed, PlayerId(player))).collect()
    }

    /// What the bot does in a client frame of `msec` milliseconds, from what its screen shows: its own predicted body
    /// (`None` before the first snapshot) and the others as drawn.
    fn think(
        bot: &mut Self::Bot,
        rules: &Self::Rules,
        own: Option<&Self::Body>,
        others: &[(EntityId, Placed<Self::Body>)],
        now: Micros,
        msec: u8,
    ) -> Input;
}

/// What a command is run among.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a, B> {
    /// The session's seed; with player and command number it seeds what is random in a command.
    pub seed: Seed,
    /// Whose command it is.
    pub player: PlayerId,
    /// All entities in ascending order of id, the player's own among them: the present on the server, the last
    /// snapshot in a client.
    pub entities: &'a [(EntityId, B)],
    /// Whether weapons run too. A client that predicts movement alone leaves them to the server.
    pub weapons: bool,
}

/// Takes what a command gives off while it runs.
pub trait Sink<F> {
    /// A sound or sight; the client plays it when it runs the command for the first time only.
    fn effect(&mut self, effect: Effect);
    /// A weapon going off.
    fn fire(&mut self, fire: F);
    /// Something that the body met on its way, kept as evidence for the cause of a misprediction.
    fn touch(&mut self, touch: Touch);
}

/// Takes what happens in the world outside of any command.
pub trait WorldSink {
    /// A sound or sight.
    fn effect(&mut self, effect: Effect);
    /// A projectile that reached something: the shot it came from, and what became of it.
    fn impact(&mut self, shooter: PlayerId, command: CommandSeq, weapon: &'static str, verdict: Verdict);
}

/// What a body met while a command ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touch {
    /// Another player.
    Player(EntityId),
    /// A door, lift or other moving part of the map.
    Mover(EntityId),
    /// A teleporter.
    Teleporter,
    /// The surface of water, crossed either way.
    WaterEdge,
}

//! A game's simulation: its world, and the functions that advance it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BadCells, Body, Verdict, Wall};
use hitreg_log::record::{Class, ClassId, Effect};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::Usercmd;

/// What every game has: a world that usercmds and ticks advance, and that can be saved and loaded.
pub trait Simulate: Sized + Send + Sync + 'static {
    /// The name that a log carries; a build refuses a log of another game.
    const NAME: &'static str;

    /// All that does not change during a session: map, movement constants, weapons. Stored whole in the log.
    type Rules: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The authoritative state. It need not be one that can be cloned: an engine's own world will do, in a
    /// [`Roster`](super::Roster).
    type World: Send + 'static;

    /// One entity's state, as snapshots carry it and prediction advances it.
    type Body: Body;

    /// A weapon going off: all that is needed to judge the shot later, against any past. A game without shots has
    /// [`Infallible`](std::convert::Infallible).
    type Fire: Clone + std::fmt::Debug + Send + 'static;

    /// The classes that entities' states are recorded as, each with some of the body's fields; [`Simulate::class`] says which
    /// body is of which. What a class leaves out of a body is 0 when it is read back.
    fn classes() -> Vec<Class> {
        Class::only(Self::Body::fields())
    }

    /// The class of a body, by its place in [`Simulate::classes`].
    fn class(_body: &Self::Body) -> ClassId {
        ClassId(0)
    }

    /// The name of the map that the rules hold.
    fn map_name(_rules: &Self::Rules) -> String {
        "the only one".to_owned()
    }

    /// The walls of the map, for whoever draws it from above. None where a game does not say.
    fn outline(_rules: &Self::Rules) -> Vec<Wall> {
        Vec::new()
    }

    /// The world before the first tick, with a body for each of `players` players.
    fn spawn(rules: &Self::Rules, seed: Seed, players: u16) -> Self::World;

    /// A world whose players stand as these bodies say, for a session that begins in the middle of another one. Recorded
    /// bodies lack what only clients know. `None` where a game cannot begin anywhere but at its spawn.
    fn begin(_rules: &Self::Rules, _seed: Seed, _players: &[(EntityId, Self::Body)]) -> Option<Self::World> {
        None
    }

    /// Runs one usercmd on one body. Prediction calls this and nothing else to move a player, and so does the server, unless
    /// [`Simulate::run`] says otherwise.
    fn step_body(
        rules: &Self::Rules,
        scene: &Scene<'_, Self::Body>,
        body: &Self::Body,
        command: &Usercmd,
        out: &mut impl Sink<Self::Fire>,
    ) -> Self::Body;

    /// Whether clients predict their way around an entity where they draw it, and not where they were told last that it is.
    fn is_met_as_drawn(_rules: &Self::Rules, _entity: EntityId) -> bool {
        false
    }

    /// The part of the map that moves a body that stands on it, if it stands on one. To be moved by it is no misprediction.
    fn carrier(_body: &Self::Body, _entities: &[(EntityId, Self::Body)]) -> Option<EntityId> {
        None
    }

    /// Whether a recorded usercmd's server time is the one at which its player's own client drew the others. Then a replay's
    /// client needs no clock of its own to draw what was on the screen.
    const DRAWN_AT_ITS_TIME: bool = false;

    /// The world's entities in ascending order of id; players are the first ids.
    fn entities(world: &Self::World) -> &[(EntityId, Self::Body)];

    /// Runs one usercmd on the server, where the whole world is in reach: what a body meets can be pushed, opened, or asked
    /// of the engine's physics. By itself it steps the player's body and puts it back. Whoever writes another sees to it
    /// that [`Simulate::step_body`] comes to the same, as far as a client can know.
    fn run(
        rules: &Self::Rules,
        seed: Seed,
        world: &mut Self::World,
        player: PlayerId,
        command: &Usercmd,
        out: &mut impl Sink<Self::Fire>,
    ) {
        let entities = Self::entities(world);
        if let Some((_, body)) = entities.get(usize::from(player.0)) {
            let scene = Scene { seed, player, entities, weapons: true };
            let next = Self::step_body(rules, &scene, body, command, out);
            Self::place_body(rules, world, player, next);
        }
    }

    /// Puts back a player's body after [`Simulate::step_body`], with what follows from it on the server alone
    /// (picking things up, walking into a trigger). Only [`Simulate::run`] calls it.
    fn place_body(_rules: &Self::Rules, _world: &mut Self::World, _player: PlayerId, _body: Self::Body) {
        panic!("{}: `Simulate` needs `place_body`, or a `run` of its own that does without", Self::NAME)
    }

    /// Advances what the server moves by itself: projectiles, respawns, things on their way.
    fn step_world(_rules: &Self::Rules, _world: &mut Self::World, _dt: Micros, _out: &mut impl WorldSink) {}

    /// The body between two samples of it; `fraction` is in `0..=1`. By itself all but the place is as in the later one.
    fn blend(from: &Self::Body, to: &Self::Body, fraction: f32) -> Self::Body {
        to.moved_to(from.origin().lerp(to.origin(), fraction))
    }

    /// The body carried on for `dt` after its last known state: in a straight line, unless the game knows better.
    fn extrapolate(_rules: &Self::Rules, body: &Self::Body, dt: Micros) -> Self::Body {
        body.moved_to(body.origin() + body.velocity() * dt.as_s_f64() as f32)
    }

    /// The world in 32-bit words: everything that can change a later tick, in a fixed order.
    /// The state hash is taken over these words, and a rollback restores from them, so what is left out is found.
    fn save(world: &Self::World, words: &mut Vec<u32>);

    /// The world back from [`Simulate::save`]'s words. `None` where a game does not offer that: then nothing can be rolled back.
    ///
    /// # Errors
    /// When the words are not a whole world.
    fn load(_rules: &Self::Rules, _words: &[u32]) -> Result<Option<Self::World>, BadCells> {
        Ok(None)
    }

    /// The name of an [`Effect::kind`].
    fn effect_name(_kind: u8) -> &'static str {
        "effect"
    }
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

/// Takes the effects, shots and touches of a command while it runs.
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

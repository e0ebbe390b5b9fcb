//! The traits that a game implements to be recorded and replayed: a handful of pure functions, after id's `pmove`.
//!
//! The pipelines never read a game's world directly. They run usercmds through these functions, ask for the world's
//! entities, and pass in the past against which a shot is judged. Every function depends on its arguments alone, so
//! equal arguments give equal results on the server, in a client's prediction, and in a later replay.

mod body;
mod category;
mod cells;
mod input;
mod judge;
mod reconcile;
mod roster;

pub(crate) use body::fields_by_cell;
pub use body::{BadCells, Body, CellRole, OtherFields, StateRows, body, unknown_fields};
pub use category::{Categorize, Category, FIRST_LOCAL_ENTITY, PlacedBody, PlacementKind, Rendering};
pub use cells::{CellMeaning, Cells, SpatialKind, cells, field, put_next, take_next};
pub(crate) use input::check_own_fields;
pub use input::{GameInput, input};
pub use judge::{
    DamageShare, ImportedSessions, Judge, RecordedHit, RecordedShot, Rejudge, RejudgeRules, RejudgedVerdict,
    ShotVerdict, SnapshotCheck,
};
pub(crate) use reconcile::moved_by_carrier;
pub use reconcile::{
    AckedPrediction, Evidence, Explanation, LostInput, PredictionGrade, Reconcile, SnapshotExtras, evidence,
    shown_by_either,
};
pub use roster::{EntityNumbers, EntityWorld, Roster};

pub use hitreg_log::record::{Cause, CellKind, Class, ClassId, Effect, FieldSchema, HitResult, Meaning, Scope, Wall};

use glam::Vec3;
use serde::Serialize;
use serde::de::DeserializeOwned;

use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::Usercmd;

/// A complete game as the pipelines use it. [`Simulate`] runs the world, [`Judge`] judges shots, [`Categorize`] says
/// how entities are drawn, and [`Reconcile`] says how predictions are compared and corrected. Every type that
/// implements the four traits is a `Game`; [`Categorize`] and [`Reconcile`] have defaults for all their items.
pub trait Game: Simulate + Judge + Categorize + Reconcile {}

impl<G: Simulate + Judge + Categorize + Reconcile> Game for G {}

/// The simulation of a game: a world that usercmds and ticks advance, and that can be saved and loaded.
pub trait Simulate: Sized + Send + Sync + 'static {
    /// The game's name in logs. A build refuses a log of another game.
    const NAME: &'static str;

    /// Everything that does not change during a session: map, movement constants, weapons. The log stores all of it.
    type Rules: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The authoritative state. It need not be `Clone`: an engine can keep its own world in a
    /// [`Roster`].
    type World: Send + 'static;

    /// One entity's state, which snapshots carry and prediction advances.
    type Body: Body;

    /// The input of one client frame. [`Input`](hitreg_log::usercmd::Input) has Bernier's fields; a game that needs
    /// others declares its type with [`input!`](macro@crate::game::input).
    type Input: GameInput;

    /// A shot, with everything needed to judge it later against any past. A game without shots uses
    /// [`Infallible`](std::convert::Infallible).
    type Fire: Clone + std::fmt::Debug + Send + 'static;

    /// How sessions that another server recorded are replayed; `None` for a game without an importer.
    const IMPORTED: Option<ImportedSessions<Self>> = None;

    /// The classes in which entities' states are recorded, each with some of the body's fields. [`Simulate::class`]
    /// gives the class of a body. A field that the class leaves out is 0 when the body is read back.
    fn classes() -> Vec<Class> {
        Class::only(Self::Body::fields())
    }

    /// The class of a body, as an index into [`Simulate::classes`].
    fn class(_body: &Self::Body) -> ClassId {
        ClassId(0)
    }

    /// The name of the map that the rules hold.
    fn map_name(_rules: &Self::Rules) -> String {
        "the only one".to_owned()
    }

    /// The walls of the map, for a view from above. Empty if a game does not provide them.
    fn outline(_rules: &Self::Rules) -> Vec<Wall> {
        Vec::new()
    }

    /// Creates the world before the first tick, with a body for each of `players` players.
    fn spawn(rules: &Self::Rules, seed: Seed, players: u16) -> Self::World;

    /// Creates a world whose players have these bodies, for a session that begins in the middle of another one.
    /// Recorded bodies lack client-only fields. `None` if a game can only begin at its spawn.
    fn begin(_rules: &Self::Rules, _seed: Seed, _players: &[(EntityId, Self::Body)]) -> Option<Self::World> {
        None
    }

    /// Runs one usercmd on one body. Prediction moves a player only through this function.
    fn step_body(
        rules: &Self::Rules,
        scene: &Scene<'_, Self::Body>,
        body: &Self::Body,
        command: &Usercmd<Self::Input>,
        out: &mut impl Sink<Self::Fire>,
    ) -> Self::Body;

    /// Whether prediction collides with an entity where the client draws it, not at its place in the last snapshot.
    fn collides_where_drawn(_rules: &Self::Rules, _entity: EntityId) -> bool {
        false
    }

    /// The entity that the body is on, if that entity moves the body, such as a lift. `entities` are those of a snapshot.
    ///
    /// Usercmds are predicted among entities that stand still. With each snapshot, the client moves the prediction as far
    /// as the carrier moved since the last snapshot, and compares it with the server's body. So movement by a carrier is
    /// no misprediction. It is exact if the server moves the body by the same vector as the carrier.
    fn carrier(_body: &Self::Body, _entities: &[(EntityId, Self::Body)]) -> Option<EntityId> {
        None
    }

    /// The world's entities in ascending order of id; players are the first ids.
    fn entities(world: &Self::World) -> &[(EntityId, Self::Body)];

    /// Runs one usercmd on the server, with access to the whole world. A body can push or open what it meets, and the
    /// game can use the engine's physics. It must agree with [`Simulate::step_body`], as far as a client can know the
    /// outcome. A game whose usercmds change only their player's body calls [`PlayerCommand::step_in_place`].
    fn run(command: &PlayerCommand<'_, Self>, world: &mut Self::World, out: &mut impl Sink<Self::Fire>);

    /// Advances what moves without a usercmd: projectiles, respawns, movers.
    fn step_world(_rules: &Self::Rules, _world: &mut Self::World, _dt: Micros, _out: &mut impl WorldSink) {}

    /// Interpolates between two samples of a body; `fraction` is in `0..=1`. The default interpolates the place and
    /// takes all other fields from `to`. A game whose stance or life changes only at the later sample takes them from
    /// `from`, as the arena does. Drawing from the last render position uses only the place.
    fn blend(from: &Self::Body, to: &Self::Body, fraction: f32) -> Self::Body {
        to.moved_to(from.position().lerp(to.position(), f64::from(fraction)))
    }

    /// Extrapolates a body for `dt` after its last known state. The default is a straight line.
    fn extrapolate(_rules: &Self::Rules, body: &Self::Body, dt: Micros) -> Self::Body {
        body.moved_by(body.velocity() * dt.as_s_f64() as f32)
    }

    /// Appends the world as 32-bit words: everything that can change a later tick, in a fixed order. The state hash
    /// covers these words and a rollback restores from them, so the rollback check finds state that is missing here.
    fn save(world: &Self::World, words: &mut Vec<u32>);

    /// Restores the world from the words of [`Simulate::save`]. `None` if a game does not implement it; rollback is
    /// then impossible.
    ///
    /// # Errors
    /// When the words are not a complete world.
    fn load(_rules: &Self::Rules, _words: &[u32]) -> Result<Option<Self::World>, BadCells> {
        Ok(None)
    }

    /// The name of an [`Effect::kind`].
    fn effect_name(_kind: u8) -> &'static str {
        "effect"
    }
}

/// Interpolates each angle, in degrees, the short way round. [`Simulate::blend`] calls it in games with view angles.
#[inline]
pub fn blend_angles(from: Vec3, to: Vec3, fraction: f32) -> Vec3 {
    let by = to - from;
    // Differences below half a turn need no correction.
    let turn = match by.abs().cmplt(Vec3::splat(180.0)).all() {
        true => by,
        false => by.map(|by| by - 360.0 * libm::roundf(by / 360.0)),
    };
    from + turn * fraction
}

/// One usercmd of a player, as the server runs it.
#[derive(Debug)]
pub struct PlayerCommand<'a, G: Simulate> {
    /// The game's rules.
    pub rules: &'a G::Rules,
    /// The session's seed.
    pub seed: Seed,
    /// The player who made the usercmd.
    pub player: PlayerId,
    /// The usercmd.
    pub command: &'a Usercmd<G::Input>,
}

impl<G: Simulate> PlayerCommand<'_, G> {
    /// Runs the usercmd on its player's body with [`Simulate::step_body`], and puts the new body in its place.
    /// `entities` are all bodies of the world in ascending order of id.
    pub fn step_in_place(&self, entities: &mut [(EntityId, G::Body)], out: &mut impl Sink<G::Fire>) {
        let index = usize::from(self.player.0);
        if let Some((_, body)) = entities.get(index) {
            let scene = Scene { seed: self.seed, player: self.player, entities, weapons: true };
            entities[index].1 = G::step_body(self.rules, &scene, body, self.command, out);
        }
    }
}

/// The surroundings in which a usercmd runs.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a, B> {
    /// The session's seed. Together with player and usercmd number, it seeds a usercmd's random numbers.
    pub seed: Seed,
    /// The player whose usercmd runs.
    pub player: PlayerId,
    /// All entities in ascending order of id, including the player's own: the present on the server, the last snapshot
    /// in a client.
    pub entities: &'a [(EntityId, B)],
    /// Whether weapons run too. A client that predicts movement alone leaves weapons to the server.
    pub weapons: bool,
}

/// Receives the effects, shots and touches of a usercmd while it runs.
pub trait Sink<F> {
    /// A sound or visual effect. The client plays it only when the usercmd runs for the first time.
    fn effect(&mut self, effect: Effect);
    /// A shot.
    fn fire(&mut self, fire: F);
    /// A touch on the body's way, kept as evidence for the cause of a misprediction.
    fn touch(&mut self, touch: Touch);
}

/// Receives what happens in the world outside of usercmds.
pub trait WorldSink {
    /// A sound or visual effect.
    fn effect(&mut self, effect: Effect);
    /// A projectile that hit something: the shot it came from, and the verdict.
    fn impact(&mut self, shooter: PlayerId, command: CommandSeq, weapon: &'static str, verdict: ShotVerdict);
}

/// A sink that discards everything, for a run whose caller needs only the resulting state.
#[derive(Debug)]
pub struct DiscardingSink;

impl<F> Sink<F> for DiscardingSink {
    fn effect(&mut self, _: Effect) {}
    fn fire(&mut self, _: F) {}
    fn touch(&mut self, _: Touch) {}
}

impl WorldSink for DiscardingSink {
    fn effect(&mut self, _: Effect) {}
    fn impact(&mut self, _: PlayerId, _: CommandSeq, _: &'static str, _: ShotVerdict) {}
}

/// What a body met while a usercmd ran.
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

/// A game whose bots can play it, for synthetic sessions.
pub trait Bots: Game {
    /// The state of one bot.
    type Bot: Send;

    /// The built-in maps: name and file contents of each. The function that makes the game's rules gets the map that the
    /// user names, or none.
    const MAPS: &'static [(&'static str, &'static str)] = &[];

    /// Creates the bot of one player. The same seed and player give the same bot.
    fn bot(rules: &Self::Rules, seed: Seed, player: PlayerId) -> Self::Bot;

    /// Creates the bots of the first `players` players, equal to those from [`Bots::bot`]. A game whose bots share an
    /// expensive computation does it once here.
    fn bots(rules: &Self::Rules, seed: Seed, players: u16) -> Vec<Self::Bot> {
        (0..players).map(|player| Self::bot(rules, seed, PlayerId(player))).collect()
    }

    /// Returns the bot's input for a client frame of `msec` milliseconds. The bot sees only what its screen shows: its
    /// own predicted body (`None` before the first snapshot) and the other entities as drawn.
    fn think(
        bot: &mut Self::Bot,
        rules: &Self::Rules,
        own: Option<&Self::Body>,
        others: &[(EntityId, PlacedBody<Self::Body>)],
        now: Micros,
        msec: u8,
    ) -> Self::Input;
}

/// The bodies of one moment, ascending by entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment<B> {
    /// Each body with its entity id.
    pub entities: Vec<(EntityId, B)>,
}

impl<B: Body + Default> Moment<B> {
    /// A moment before any player has entered: each of `players` players has the default body.
    pub fn empty(players: u16) -> Moment<B> {
        Moment { entities: (0..players).map(|player| (EntityId(player), B::default())).collect() }
    }
}

impl<B: Body> Moment<B> {
    /// Appends all bodies to `words`.
    pub fn save(&self, words: &mut Vec<u32>) {
        for (entity, body) in &self.entities {
            words.push(u32::from(entity.0));
            body.append_to(words);
        }
    }

    /// Reads a moment from the words that [`Moment::save`] wrote.
    ///
    /// # Errors
    /// When the words are not a saved moment.
    pub fn load(words: &[u32]) -> Result<Moment<B>, BadCells> {
        let read = |row: &[u32]| {
            let entity = row.first().copied().unwrap_or(u32::MAX);
            let bad = |_| BadCells { what: "an entity's number".to_owned(), found: entity };
            Ok((EntityId(u16::try_from(entity).map_err(bad)?), B::read(row.get(1..).unwrap_or(&[]))?))
        };
        Ok(Moment { entities: words.chunks(1 + B::CELLS).map(read).collect::<Result<_, _>>()? })
    }
}

//! The interface of servers and clients to their drivers. Both are state machines without I/O or clock: drivers pass in
//! packets and times, and poll the results. Drivers (virtual time, replays, real sockets) use only these traits.
//!
//! hitreg's own netcode is [`server::Server`](crate::server::Server) and [`client::Client`](crate::client::Client). A
//! game with its own netcode implements the traits and names its types in its [`Netcode`]. hitreg then records,
//! replays, compares and bisects it like any other game.

use std::sync::Arc;

use glam::Vec3;

use crate::game::{Effect, Explanation, Game, PlacedBody, PredictionGrade, ShotVerdict};
use crate::history::Frame;
use crate::packet::{ClientPacket, Snapshot};
use crate::settings::Settings;
use crate::state::{StateError, StateReader, StateWriter};
use hitreg_log::record::{Execution, Presence};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, Tick, named};
use hitreg_log::usercmd::{Input, Usercmd};

/// A game together with its netcode.
pub trait Netcode: Game {
    /// The server pipeline.
    type Server: ServerPipeline<Self>;
    /// The client pipeline.
    type Client: ClientPipeline<Self>;
}

/// The inputs from which every pipeline of a session is created.
#[derive(Debug)]
pub struct Setup<G: Game> {
    /// The game's rules.
    pub rules: Arc<G::Rules>,
    /// All settings. A pipeline ignores settings that it does not use.
    pub settings: Arc<Settings>,
    /// The random seed.
    pub seed: Seed,
}

impl<G: Game> Clone for Setup<G> {
    fn clone(&self) -> Setup<G> {
        Setup { rules: Arc::clone(&self.rules), settings: Arc::clone(&self.settings), seed: self.seed }
    }
}

impl<G: Game> Setup<G> {
    /// Returns the setup for one player's client, with that player's own settings.
    pub fn of_player(&self, player: PlayerId) -> Setup<G> {
        Setup { settings: self.settings.of_player(player), ..self.clone() }
    }
}

/// The server of a session. The same calls with the same arguments must give bit-identical results on any machine.
pub trait ServerPipeline<G: Game>: Sized + Send {
    /// Creates a server before its first tick, with `players` connected clients.
    fn new(setup: Setup<G>, players: u16) -> Self;

    /// Replaces the world that the game spawned, before the first tick.
    fn begin_from(&mut self, world: G::World);

    /// Takes a packet that arrived at `now`. Drops packets of players who are not connected.
    fn handle_packet(&mut self, now: Micros, player: PlayerId, packet: ClientPacket);

    /// Tells the server just before a tick that a player has left for good. Its body stays in the world. Drivers may repeat
    /// the call. A server that ignores it goes on to make snapshots for the player.
    fn handle_left(&mut self, _player: PlayerId) {}

    /// Runs one tick at `now`. The world advances by the time since the previous tick.
    fn tick(&mut self, now: Micros) -> TickOutcome;

    /// Returns the next snapshot to send. Its entities are in ascending order and without client-only fields.
    fn poll_snapshot(&mut self) -> Option<(PlayerId, Snapshot<G::Body>)>;

    /// Reports that the last polled snapshot is sent. Drivers do not call this when it cannot be sent. `frame` is the
    /// frame that the client has once the snapshot arrives: entities without room are as they were sent last. `bytes` is
    /// the total size of its datagrams, which a server with a rate limit counts; `None` when no limit can be reached.
    fn handle_sent(&mut self, player: PlayerId, frame: Arc<Frame<G::Body>>, bytes: Option<u16>);

    /// Returns the next event.
    fn poll_event(&mut self) -> Option<TickEvent<G>>;

    /// Returns the world after the last tick.
    fn world(&self) -> &G::World;

    /// Also judges every shot under other settings, from the first tick on. The results appear in the events; the world
    /// advances under its own settings. Returns false when the server does not support this.
    #[must_use = "false: the server does not support this"]
    fn rejudge_under(&mut self, _settings: RejudgeSettings) -> bool {
        false
    }

    /// Enables the rollback check. At every `every`-th tick, the world is restored from its saved words and run again,
    /// and must come out the same. Returns false when the server does not support this.
    #[must_use = "false: the server does not support this"]
    fn check_rollback(&mut self, _every: u32) -> bool {
        false
    }

    /// Returns the results of the rollback check so far; `None` when it is not enabled.
    fn rollbacks(&self) -> Option<Rollbacks> {
        None
    }

    /// Saves all state that can change later ticks. Called just after a tick, when nothing is left to poll. Returns
    /// false when the server cannot be saved.
    #[must_use = "false: the server cannot be saved"]
    fn save(&self, _to: &mut StateWriter) -> bool {
        false
    }

    /// Restores the state that another server with the same settings saved.
    ///
    /// # Errors
    /// When the bytes are not the state of such a server.
    fn restore(&mut self, _from: &mut StateReader) -> Result<(), StateError> {
        Err(StateError::Unknown { what: "a server" })
    }
}

/// The settings under which a server judges each shot again.
#[derive(Clone, Debug, Default)]
pub struct RejudgeSettings {
    /// The results under these replace the server's own in the events; `None` keeps the server's own.
    pub reported: Option<Arc<Settings>>,
    /// The verdicts under each of these are added to the events, in this order.
    pub added: Vec<Arc<Settings>>,
}

/// The client of one player. The same calls with the same arguments must give bit-identical results. If all times are
/// shifted by a constant, the results must be shifted by the same constant and equal otherwise.
pub trait ClientPipeline<G: Game>: Sized + Send {
    /// Creates the connected client of `player` before its first snapshot.
    fn new(setup: Setup<G>, player: PlayerId) -> Self;

    /// Numbers the usercmds from `first` on, as in an imported recording.
    fn number_from(&mut self, first: CommandSeq);

    /// Tells the client that the driver uses neither the explanations in a [`Correction`] nor its cancelled effects, and
    /// that it will not [save](ClientPipeline::save) the client. The client may then skip the search for causes.
    fn skip_causes(&mut self) {}

    /// Takes a snapshot that arrived at `now`. Returns `None` when it has no news about the player's own body.
    fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<G::Body>) -> Option<ReconcileOutcome>;

    /// Sets the clock to the value recorded at `now`. A client without a clock ignores this.
    fn set_clock(&mut self, _now: Micros, _server_time: Micros) {}

    /// Draws the others at `now`. Called once per client frame, before [`ClientPipeline::command`], because the drawn
    /// view is what the player sees while making the usercmd.
    fn draw_others(&mut self, now: Micros);

    /// Replaces [`ClientPipeline::draw_others`] in a frame whose screen the driver does not need. A client may then skip
    /// drawing, and [`ClientPipeline::drawn`] is empty.
    fn skip_drawing(&mut self, now: Micros) {
        self.draw_others(now);
    }

    /// Makes a usercmd from `input` at `now`, predicts it if prediction is on, and packs it.
    fn command(&mut self, now: Micros, input: &Input) -> ClientFrameOutput<G>;

    /// Reports that the last packet is sent, in a datagram of `bytes` bytes.
    fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16);

    /// Returns what the last [`ClientPipeline::draw_others`] drew, in ascending order of entity.
    fn drawn(&self) -> &[(EntityId, PlacedBody<G::Body>)];

    /// Returns the server time that the last [`ClientPipeline::draw_others`] drew.
    fn drawn_at(&self) -> Micros;

    /// Returns the player's own body as drawn; `None` before the first snapshot.
    fn predicted(&self) -> Option<&G::Body>;

    /// Saves all state that can change later frames, between two frames. Returns false when the client cannot be saved.
    #[must_use = "false: the client cannot be saved"]
    fn save(&self, _to: &mut StateWriter) -> bool {
        false
    }

    /// Restores the state that a client of the same player with the same settings saved.
    ///
    /// # Errors
    /// When the bytes are not the state of such a client.
    fn restore(&mut self, _from: &mut StateReader) -> Result<(), StateError> {
        Err(StateError::Unknown { what: "a client" })
    }
}

/// An event of a tick, in the order in which events happen.
#[derive(Debug)]
pub enum TickEvent<G: Game> {
    /// The server ran, replaced or dropped a usercmd.
    Executed {
        /// The player.
        player: PlayerId,
        /// The usercmd.
        command: CommandSeq,
        /// How the server handled it.
        how: Execution,
    },
    /// A player joined or left.
    Presence {
        /// The player.
        player: PlayerId,
        /// Whether the player joined or left.
        change: Presence,
    },
    /// A shot was judged.
    Judged(JudgedShot<G>),
    /// A projectile hit something.
    Impact {
        /// The player who fired it.
        shooter: PlayerId,
        /// The usercmd that fired it.
        command: CommandSeq,
        /// The weapon.
        weapon: &'static str,
        /// The outcome.
        verdict: ShotVerdict,
    },
}

/// One shot and the server's verdict.
#[derive(Debug)]
pub struct JudgedShot<G: Game> {
    /// The shooter.
    pub shooter: PlayerId,
    /// The usercmd that fired it.
    pub command: CommandSeq,
    /// The index of the shot within the usercmd, from 0.
    pub index: u8,
    /// The shot.
    pub fire: G::Fire,
    /// The server's verdict.
    pub verdict: ShotVerdict,
    /// The targets that it was judged against.
    pub rewind: Rewind<G::Body>,
    /// The verdicts under [`RejudgeSettings::added`], in order.
    pub rejudged: Vec<ShotVerdict>,
}

/// The outcome of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickOutcome {
    /// The tick.
    pub tick: Tick,
    /// The hash of the world after the tick.
    pub hash: u64,
}

/// The targets that a shot was judged against.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewind<B> {
    /// The rewind; zero when the targets are in the present.
    pub by: Micros,
    /// The limit that kept the rewind from reaching the shooter's view.
    pub limit: RewindLimit,
    /// The targets as judged, in ascending order of id.
    pub targets: Vec<(EntityId, B)>,
    /// The targets left in the present because they were teleported, or died and respawned, since the shooter's view.
    pub left_in_present: Vec<EntityId>,
}

named! {
    /// The limit that kept a rewind from the shooter's view. Of several, it is the one without which the result is another.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum RewindLimit {
        /// No limit applied.
        None = "none",
        /// Lag compensation is off, or the shot is a projectile.
        Off = "off",
        /// `lag_compensation.max_unlag_ms`: the rewind ended there, or the newest acked snapshot was older.
        MaxUnlag = "max_unlag",
        /// The usercmd's time disagreed with the latency measured up to its packet, so the latency was used, within the
        /// other limits.
        Claim = "claim",
        /// The history does not go back far enough, so the oldest frame was used.
        Oldest = "oldest",
    }
}

/// The results of a rollback check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollbacks {
    /// The number of times that the world was restored and run again.
    pub checked: u32,
    /// The first check that failed.
    pub failed: Option<RollbackError>,
}

/// A failed rollback check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RollbackError {
    /// The saved words are not a valid world.
    #[error("the world saved before tick {tick} cannot be loaded: {why}")]
    Load {
        /// The tick.
        tick: Tick,
        /// The reason.
        why: String,
    },
    /// The second run gave another world.
    #[error(
        "tick {tick}, restored and run again from {from} ticks before, hashes to {again:016x} instead of {first:016x}"
    )]
    Differs {
        /// The tick.
        tick: Tick,
        /// The number of ticks that were run again.
        from: u32,
        /// The hash of the tick in the session.
        first: u64,
        /// The hash of the tick after the rollback.
        again: u64,
    },
}

/// The output of one client frame.
#[derive(Debug)]
pub struct ClientFrameOutput<G: Game> {
    /// The usercmd that was made.
    pub command: Usercmd,
    /// The packet with this usercmd and repeats of earlier ones.
    pub packet: ClientPacket,
    /// The player's predicted own body; `None` before the first snapshot.
    pub predicted: Option<G::Body>,
    /// The own body as drawn, when drawing by category.
    pub own: Option<PlacedBody<G::Body>>,
    /// The origin at which the own body is drawn, in units: the predicted origin, or on the way to it after a
    /// correction.
    pub drawn_origin: Option<Vec3>,
    /// The number of usercmds run in this frame: one, unless some had to wait or run again.
    pub ran: u32,
    /// Effects of usercmds that ran for the first time.
    pub effects: Vec<Effect>,
    /// Shots of usercmds that ran for the first time, with the client's verdicts.
    pub shots: Vec<PredictedShot<G::Fire>>,
}

/// A shot and its client's verdict.
#[derive(Clone, Debug)]
pub struct PredictedShot<F> {
    /// The usercmd that fired it.
    pub command: CommandSeq,
    /// The index of the shot within the usercmd, from 0.
    pub index: u8,
    /// The shot.
    pub fire: F,
    /// The client's verdict.
    pub verdict: ShotVerdict,
}

/// The result of one snapshot.
#[derive(Debug)]
pub struct ReconcileOutcome {
    /// The comparison of the prediction for the acked usercmd with the server's state. `None` when nothing was
    /// predicted or nothing new was acked.
    pub comparison: Option<Comparison>,
    /// Set when the snapshot corrected a predicted field.
    pub correction: Option<Correction>,
    /// The time from making the acked usercmd to its ack.
    pub round_trip: Option<Micros>,
}

/// One correction of the predicted state.
#[derive(Clone, Debug)]
pub struct Correction {
    /// The acked usercmd.
    pub command: CommandSeq,
    /// All predicted fields that differ.
    pub errors: Vec<FieldMisprediction>,
    /// The number of usercmds that run again because of it.
    pub reran: u32,
    /// The cause, as far as the client knows. It can only suppose that the server did not run a usercmd.
    pub explanation: Explanation,
    /// The explanation if the server ran all usercmds as they were made.
    pub if_all_ran: Explanation,
    /// Whether a loss of usercmds gives a place less than half as far from the server's place as the predicted one.
    pub is_nearer_with_loss: bool,
    /// The usercmds of the prediction: the last one that had run before it, if known, and the acked ones.
    pub usercmds: Vec<Usercmd>,
    /// Effects that the client played but that did not happen on the server. The driver should stop them.
    pub cancelled_effects: Vec<(CommandSeq, Effect)>,
}

/// One field that was predicted wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldMisprediction {
    /// The field's index in [`Body::fields`](crate::game::Body::fields); `None` if one of the bodies is
    /// [absent](crate::game::Body::is_absent), with 1 as the value of the absent body.
    pub field: Option<usize>,
    /// The predicted value, as a [number](crate::game::CellKind::number).
    pub predicted: i64,
    /// The server's value, as a number.
    pub authoritative: i64,
}

/// The comparison of the prediction for an acked usercmd with the server's result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The acked usercmd.
    pub command: CommandSeq,
    /// The number of usercmds acked at once.
    pub commands: u32,
    /// The quality of the prediction.
    pub grade: PredictionGrade,
    /// Set when `grade` is that of running the usercmds again as the server ran them. It is then the grade of the
    /// prediction in play, among the bodies that the client knew at that time.
    pub as_played: Option<PredictionGrade>,
    /// The distance between the predicted and the authoritative origin, in units, including a recording's rounding.
    pub error_units: f32,
    /// The length of the velocity difference, in units/s, including a recording's rounding.
    pub velocity_error_units_per_s: f32,
    /// Whether the player stood on ground or on an object before.
    pub on_ground: bool,
}

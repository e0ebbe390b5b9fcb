//! The interface of servers and clients to their drivers. Both are state machines without I/O or clock: drivers pass in
//! packets and times, and poll the results. Drivers (virtual time, replays, real sockets) use only these traits.
//!
//! hitreg's own netcode is [`server::Server`](crate::server::Server) and [`client::Client`](crate::client::Client). A
//! game with its own netcode implements the traits and names its types in its [`Netcode`]. hitreg then records,
//! replays, compares and bisects it like any other game.

mod client;
mod server;

use std::sync::Arc;

pub use client::{ClientFrameOutput, Comparison, Correction, FieldMisprediction, ReconcileOutcome};
pub use server::{Event, JudgedShot, Limit, Rewind, RollbackError, Rollbacks, TickOutcome};

use crate::game::{Game, PlacedBody};
use crate::history::Frame;
use crate::packet::{ClientPacket, Snapshot};
use crate::settings::Settings;
use crate::state::{StateError, StateReader, StateWriter};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::Input;

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
    fn poll_event(&mut self) -> Option<Event<G>>;

    /// Returns the world after the last tick.
    fn world(&self) -> &G::World;

    /// Also judges every shot under these settings, from the first tick on. The results appear in the events; the world
    /// advances under its own settings. Returns false when the server does not support this.
    fn judge_under(&mut self, _settings: Arc<Settings>) -> bool {
        false
    }

    /// Also judges every shot under each of these settings, and adds the verdicts to its event. Returns false when the
    /// server does not support this.
    fn also_judge(&mut self, _settings: Vec<Arc<Settings>>) -> bool {
        false
    }

    /// Enables the rollback check. At every `every`-th tick, the world is restored from its saved words and run again,
    /// and must come out the same. Returns false when the server does not support this.
    fn check_rollback(&mut self, every: u32) -> bool;

    /// Returns the results of the rollback check so far; `None` when it is not enabled.
    fn rollbacks(&self) -> Option<Rollbacks>;

    /// Saves all state that can change later ticks. Called just after a tick, when nothing is left to poll. Returns
    /// false when the server cannot be saved.
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

/// The client of one player. The same calls with the same arguments must give bit-identical results. If all times are
/// shifted by a constant, the results must be shifted by the same constant and equal otherwise.
pub trait ClientPipeline<G: Game>: Sized + Send {
    /// Creates the connected client of `player` before its first snapshot.
    fn new(setup: Setup<G>, player: PlayerId) -> Self;

    /// Numbers the usercmds from `first` on, as in an imported recording.
    fn number_from(&mut self, first: CommandSeq);

    /// Takes a snapshot that arrived at `now`. Returns `None` when it has no news about the player's own body.
    fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<G::Body>) -> Option<ReconcileOutcome>;

    /// Sets the clock to the value recorded at `now`. A client without a clock ignores this.
    fn set_clock(&mut self, _now: Micros, _server_time: Micros) {}

    /// Draws the others at `now`. Called once per client frame, before [`ClientPipeline::command`], because the drawn
    /// view is what the player sees while making the usercmd.
    fn look(&mut self, now: Micros);

    /// Replaces [`ClientPipeline::look`] in a frame whose screen the driver does not look at. A client may then skip
    /// drawing, and [`ClientPipeline::drawn`] is empty.
    fn look_away(&mut self, now: Micros) {
        self.look(now);
    }

    /// Makes a usercmd from `input` at `now`, predicts it if prediction is on, and packs it.
    fn command(&mut self, now: Micros, input: &Input) -> ClientFrameOutput<G>;

    /// Reports that the last packet is sent, in a datagram of `bytes` bytes.
    fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16);

    /// Returns what the last [`ClientPipeline::look`] drew, in ascending order of entity.
    fn drawn(&self) -> &[(EntityId, PlacedBody<G::Body>)];

    /// Returns the server time that the last [`ClientPipeline::look`] drew.
    fn drawn_at(&self) -> Micros;

    /// Returns the player's own body as drawn; `None` before the first snapshot.
    fn predicted(&self) -> Option<&G::Body>;

    /// Saves all state that can change later frames, between two frames. Returns false when the client cannot be saved.
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

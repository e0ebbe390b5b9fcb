//! What a server and a client are to whoever drives them: state machines without I/O or clock, handed packets and times,
//! asked for what comes of it. Drivers (virtual time, replays, real sockets) know these traits alone.
//!
//! hitreg's own netcode is [`server::Server`](crate::server::Server) and [`client::Client`](crate::client::Client). A game
//! that has its own implements the traits for types of its own, and names them in its [`Netcode`]: it is then recorded,
//! replayed, compared and bisected like any other.

mod client;
mod server;

use std::sync::Arc;

pub use client::{Commanded, Comparison, Correction, FieldError, Reconciled};
pub use server::{Event, Judged, Limit, Rewind, RollbackError, Rollbacks, Ticked};

use crate::game::{Game, Placed};
use crate::packet::{ClientPacket, Snapshot};
use crate::settings::Settings;
use crate::state::{BadState, Restorer, Saver};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::Input;

/// A game, and the netcode that it is played with.
pub trait Netcode: Game {
    /// The server's side.
    type Server: ServerPipeline<Self>;
    /// The client's side.
    type Client: ClientPipeline<Self>;
}

/// What every pipeline of a session is made from.
#[derive(Debug)]
pub struct Setup<G: Game> {
    /// The game's rules.
    pub rules: Arc<G::Rules>,
    /// All settings. A pipeline that has no use for one leaves it alone.
    pub settings: Arc<Settings>,
    /// Where all chances start from.
    pub seed: Seed,
}

impl<G: Game> Clone for Setup<G> {
    fn clone(&self) -> Setup<G> {
        Setup { rules: Arc::clone(&self.rules), settings: Arc::clone(&self.settings), seed: self.seed }
    }
}

impl<G: Game> Setup<G> {
    /// The same for one player's client, with its own settings.
    pub fn of_player(&self, player: PlayerId) -> Setup<G> {
        Setup { settings: self.settings.of_player(player), ..self.clone() }
    }
}

/// The server of a session. The same calls with the same arguments must have the same results, to the bit, on any machine.
pub trait ServerPipeline<G: Game>: Sized + Send {
    /// A server whose `players` clients are connected, before its first tick.
    fn new(setup: Setup<G>, players: u16) -> Self;

    /// Puts another world in the place of the one that the game spawned, before the first tick.
    fn begin_from(&mut self, world: G::World);

    /// Takes a packet that arrived at `now`. Packets of players who are not connected are dropped.
    fn handle_packet(&mut self, now: Micros, player: PlayerId, packet: ClientPacket);

    /// Runs one tick at `now`. The time since the tick before it is what the world moves on by.
    fn tick(&mut self, now: Micros) -> Ticked;

    /// The next snapshot to send, in ascending order of entity and without what only clients know.
    fn poll_snapshot(&mut self) -> Option<(PlayerId, Snapshot<G::Body>)>;

    /// Takes note that the snapshot which was last polled goes out, in datagrams of so many bytes in all. A server that
    /// keeps to a rate counts them. It is not called where no rate can be reached.
    fn handle_sent(&mut self, player: PlayerId, bytes: u16);

    /// The next thing that happened.
    fn poll_event(&mut self) -> Option<Event<G>>;

    /// The world after the last tick.
    fn world(&self) -> &G::World;

    /// From the first tick on, judges every shot under these settings too: the events say what those make of it, and the world
    /// goes on as its own settings have it. False when this server cannot do that.
    fn judge_under(&mut self, _settings: Arc<Settings>) -> bool {
        false
    }

    /// Asks for a check at every `every`-th tick that the world, restored from its saved words and run again, comes out the
    /// same. False when this server cannot do that.
    fn check_rollback(&mut self, every: u32) -> bool;

    /// What the rollback check has done so far; `None` when it was not asked for.
    fn rollbacks(&self) -> Option<Rollbacks>;

    /// Writes down all that can change what comes, just after a tick, when nothing is left to be polled. False where it cannot.
    fn save(&self, _to: &mut Saver<'_, G::Body>) -> bool {
        false
    }

    /// Goes on from what another server with the same settings wrote down.
    ///
    /// # Errors
    /// When it is no state of such a server.
    fn restore(&mut self, _from: &mut Restorer<'_, G::Body>) -> Result<(), BadState> {
        Err(BadState::Unknown { what: "a server" })
    }
}

/// The client of one player. The same calls with the same arguments must have the same results, to the bit; and where all
/// times are moved by a constant, the same but for that.
pub trait ClientPipeline<G: Game>: Sized + Send {
    /// The client of `player`, connected, before its first snapshot.
    fn new(setup: Setup<G>, player: PlayerId) -> Self;

    /// Numbers the usercmds from `first` on, as an imported recording does.
    fn number_from(&mut self, first: CommandSeq);

    /// Takes a snapshot that arrived at `now`. `None` when it holds no news of the player's own body.
    fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<G::Body>) -> Option<Reconciled>;

    /// Sets the clock: a recording tells what it showed at `now`. A client that has no clock to set leaves that out.
    fn set_clock(&mut self, _now: Micros, _server_time: Micros) {}

    /// Draws the others at `now`. Called once a client frame, before [`ClientPipeline::command`]: what is drawn is what the
    /// player sees while the usercmd is made.
    fn look(&mut self, now: Micros);

    /// A client frame whose screen nobody looks at, in place of [`ClientPipeline::look`]: a client that needs nothing of what it
    /// would draw leaves it out, and [`ClientPipeline::drawn`] says nothing then.
    fn look_away(&mut self, now: Micros) {
        self.look(now);
    }

    /// Makes a usercmd of `input` at `now`, predicts it if the client predicts, and packs it.
    fn command(&mut self, now: Micros, input: &Input) -> Commanded<G>;

    /// Takes note that the packet which was made last goes out, in a datagram of so many bytes.
    fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16);

    /// What was drawn at the last [`ClientPipeline::look`], in ascending order of entity.
    fn drawn(&self) -> &[(EntityId, Placed<G::Body>)];

    /// The server time of what was drawn at the last [`ClientPipeline::look`].
    fn drawn_at(&self) -> Micros;

    /// The player's own body as its screen shows it; `None` before the first snapshot.
    fn predicted(&self) -> Option<&G::Body>;

    /// Writes down all that can change what comes, between two frames. False where it cannot.
    fn save(&self, _to: &mut Saver<'_, G::Body>) -> bool {
        false
    }

    /// Goes on from what the client of the same player with the same settings wrote down.
    ///
    /// # Errors
    /// When it is no state of such a client.
    fn restore(&mut self, _from: &mut Restorer<'_, G::Body>) -> Result<(), BadState> {
        Err(BadState::Unknown { what: "a client" })
    }
}

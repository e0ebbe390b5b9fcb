//! The client side of the handshake.

use super::super::{Key, VERSION};
use super::message::{Hello, Refusal, ServerAnswer};
use hitreg_log::units::{Micros, PlayerId};

/// The parameters of a client's connection attempt.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The name of the client's game.
    pub game: String,
    /// Game-defined data that the client sends with its request, at most
    /// [`ASKED_BYTES_MAX`](crate::wire::ASKED_BYTES_MAX) bytes.
    pub asked: Vec<u8>,
}

/// The client repeats an unanswered request after this time.
const RESEND_AFTER: Micros = Micros::from_ms(250);
/// The client gives up after this time without a slot.
const GIVE_UP_AFTER: Micros = Micros::from_s(10);

impl ConnectOptions {
    /// Requests a slot in this game.
    pub fn new(game: &str) -> ConnectOptions {
        ConnectOptions { game: game.to_owned(), asked: Vec::new() }
    }
}

/// A client that requests a slot. It is a state machine: times come in as arguments.
#[derive(Clone, Debug)]
pub struct ConnectMachine {
    options: ConnectOptions,
    salt: u64,
    began_at: Micros,
    send_at: Micros,
    challenge: Option<u64>,
    /// The last refusal that said that all slots are taken.
    full: Option<Refusal>,
    outcome: Option<ConnectOutcome>,
}

/// The result of a connection attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectOutcome {
    /// The server gave the client a slot.
    Accepted(AcceptedConnection),
    /// The server refused the client.
    Refused(Refusal),
    /// The server did not answer in time.
    Silent,
}

/// A slot on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedConnection {
    /// The key that seals all further datagrams.
    pub key: Key,
    /// The client's connection number, from 1. Definitions of entities that the client controls carry this number.
    pub connection: u16,
    /// The player of this client.
    pub player: PlayerId,
    /// The data that the server sends to every client on admission, such as settings and seed.
    pub welcome: Vec<u8>,
}

impl ConnectMachine {
    /// Starts an attempt at `now`. `salt` must be unpredictable and new for each attempt.
    pub fn new(options: ConnectOptions, salt: u64, now: Micros) -> ConnectMachine {
        ConnectMachine { options, salt, began_at: now, send_at: now, challenge: None, full: None, outcome: None }
    }

    /// Returns the datagram to send at `now`, if any.
    pub fn poll_datagram(&mut self, now: Micros) -> Option<Vec<u8>> {
        if self.outcome.is_none() && now - self.began_at >= GIVE_UP_AFTER {
            self.outcome = Some(self.full.take().map_or(ConnectOutcome::Silent, ConnectOutcome::Refused));
        }
        if self.outcome.is_some() || now < self.send_at {
            return None;
        }
        self.send_at = now + RESEND_AFTER;
        let ConnectOptions { game, asked } = self.options.clone();
        Some(Hello { version: VERSION, salt: self.salt, challenge: self.challenge, game, asked }.encode())
    }

    /// Takes a datagram that arrived at `now`. Ignores datagrams that do not answer this attempt.
    pub fn handle_datagram(&mut self, now: Micros, datagram: &[u8]) {
        let Ok(answer) = ServerAnswer::decode(datagram) else { return };
        if self.outcome.is_some() {
            return;
        }
        match answer {
            ServerAnswer::Challenge { salt, challenge } if salt == self.salt => {
                if self.challenge != Some(challenge) {
                    self.send_at = now;
                }
                self.challenge = Some(challenge);
            }
            ServerAnswer::Accepted { salt, key, connection, welcome }
                if salt == self.salt && self.challenge.is_some() =>
            {
                // Connection 0 is the server itself.
                let Some(player) = connection.checked_sub(1).map(PlayerId) else { return };
                self.outcome = Some(ConnectOutcome::Accepted(AcceptedConnection { key, connection, player, welcome }));
            }
            ServerAnswer::Refused { salt, why: Refusal::Expired } if salt == self.salt => {
                self.challenge = None;
            }
            // A full server can free a slot later: when a player leaves, or when an admitted client never confirms that
            // it is ready.
            ServerAnswer::Refused { salt, why: why @ Refusal::Full { .. } } if salt == self.salt => {
                self.full = Some(why);
                self.send_at = self.send_at.max(now + RESEND_AFTER);
            }
            ServerAnswer::Refused { salt, why } if salt == self.salt => {
                self.outcome = Some(ConnectOutcome::Refused(why))
            }
            _ => {}
        }
    }

    /// Returns the result; `None` while the attempt is running.
    pub fn outcome(&self) -> Option<&ConnectOutcome> {
        self.outcome.as_ref()
    }
}

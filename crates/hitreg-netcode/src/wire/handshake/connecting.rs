//! The client's side of connecting.

use super::super::{Key, VERSION};
use super::message::{Answer, Hello, Refusal};
use hitreg_log::units::{Micros, PlayerId};

/// How a client asks for a place.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The game that it plays.
    pub game: String,
    /// What it asks to have for itself, of at most [`ASKED_BYTES_MAX`](crate::wire::ASKED_BYTES_MAX): the game's business.
    pub asked: Vec<u8>,
    /// What was not answered is sent again after this.
    pub resend_after: Micros,
    /// After this without a place it gives up.
    pub give_up_after: Micros,
}

impl ConnectOptions {
    /// Asks four times a second for ten seconds.
    pub fn new(game: &str) -> ConnectOptions {
        ConnectOptions {
            game: game.to_owned(),
            asked: Vec::new(),
            resend_after: Micros::from_ms(250),
            give_up_after: Micros::from_s(10),
        }
    }
}

/// A client that wants a place. A state machine: times come in as arguments.
#[derive(Clone, Debug)]
pub struct Connecting {
    options: ConnectOptions,
    salt: u64,
    began_at: Micros,
    send_at: Micros,
    challenge: Option<u64>,
    /// The last answer, where that was that there is no place now.
    full: Option<Refusal>,
    outcome: Option<Outcome>,
}

/// How asking ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a place.
    Accepted(Accepted),
    /// Without.
    Refused(Refusal),
    /// Nobody answered in time.
    Silent,
}

/// A place on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Seals all that follows.
    pub key: Key,
    /// The client's connection, from 1; entities that it controls are defined with this number.
    pub connection: u16,
    /// Its player.
    pub player: PlayerId,
    /// What the server tells everybody: settings, seed, ...
    pub welcome: Vec<u8>,
}

impl Connecting {
    /// Begins at `now`. `salt` is a number that nobody can guess, new for each attempt.
    pub fn new(options: ConnectOptions, salt: u64, now: Micros) -> Connecting {
        Connecting { options, salt, began_at: now, send_at: now, challenge: None, full: None, outcome: None }
    }

    /// The datagram to send at `now`, if any.
    pub fn poll_datagram(&mut self, now: Micros) -> Option<Vec<u8>> {
        if self.outcome.is_none() && now - self.began_at >= self.options.give_up_after {
            self.outcome = Some(self.full.take().map_or(Outcome::Silent, Outcome::Refused));
        }
        if self.outcome.is_some() || now < self.send_at {
            return None;
        }
        self.send_at = now + self.options.resend_after;
        let ConnectOptions { game, asked, .. } = self.options.clone();
        Some(Hello { version: VERSION, salt: self.salt, challenge: self.challenge, game, asked }.encode())
    }

    /// Takes a datagram that came at `now`. What is no answer to this attempt is ignored.
    pub fn handle_datagram(&mut self, now: Micros, datagram: &[u8]) {
        let Ok(answer) = Answer::decode(datagram) else { return };
        if self.outcome.is_some() {
            return;
        }
        match answer {
            Answer::Challenge { salt, challenge } if salt == self.salt => {
                if self.challenge != Some(challenge) {
                    self.send_at = now;
                }
                self.challenge = Some(challenge);
            }
            Answer::Accepted { salt, key, connection, welcome } if salt == self.salt && self.challenge.is_some() => {
                // A connection of 0 is the server's own, and no client's.
                let Some(player) = connection.checked_sub(1).map(PlayerId) else { return };
                self.outcome = Some(Outcome::Accepted(Accepted { key, connection, player, welcome }));
            }
            Answer::Refused { salt, why: Refusal::Expired } if salt == self.salt => {
                self.challenge = None;
            }
            // Places come free: those of who leaves, and of who was let in and never said that he is ready.
            Answer::Refused { salt, why: why @ Refusal::Full { .. } } if salt == self.salt => {
                self.full = Some(why);
                self.send_at = self.send_at.max(now + self.options.resend_after);
            }
            Answer::Refused { salt, why } if salt == self.salt => self.outcome = Some(Outcome::Refused(why)),
            _ => {}
        }
    }

    /// How it ended; `None` while it goes on.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }
}

//! What is known of a session before its first record.

use serde::{Deserialize, Serialize};

use super::{Class, Field, Side, StoredRules, UnknownKind};
use crate::units::Seed;

/// What is known before the first record.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// `Simulate::NAME`.
    pub game: String,
    /// The game's rules in MessagePack, maps included: a log needs no other file to replay.
    pub rules: StoredRules,
    /// The map's name, for people.
    pub map: String,
    /// Where all random numbers start from.
    pub seed: Seed,
    /// The settings in force, every one of them, as `settings` prints them. Those that a build does not know are kept as
    /// they are.
    pub settings: Vec<(String, String)>,
    /// The preset that the settings came from.
    pub preset: Option<String>,
    /// Who plays; a player's number is the place in this list.
    pub players: Vec<PlayerInfo>,
    /// Where the session came from.
    pub origin: Origin,
    /// Set when the log holds one side of the session only.
    pub side: Option<Side>,
    /// The kinds of entities, and the cells of each one's states; a class's number is the place in this list.
    pub classes: Vec<Class>,
    /// The fields of a usercmd, but for its number and its server time; [`usercmd_fields`](super::usercmd_fields) unless a later version has
    /// recorded more.
    pub usercmd: Vec<Field>,
    /// What a later version of the format has recorded besides: kinds of records, and columns of known kinds.
    pub unknown: Vec<UnknownKind>,
}

impl Header {
    /// The cells of all classes, each once, in the order in which they come up: those of a body.
    pub fn body_fields(&self) -> Vec<Field> {
        let mut all: Vec<Field> = Vec::new();
        for field in self.classes.iter().flat_map(|class| &class.fields) {
            if !all.iter().any(|known| known.is_same_cell(field)) {
                all.push(field.clone());
            }
        }
        all
    }
}

/// One player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerInfo {
    /// A name made by the recorder (`p0`, `p1`); real nicknames only when they were asked for.
    pub name: String,
    /// True when the log holds this player's own usercmds; in an imported client recording only one player's are known.
    pub recorded: bool,
}

/// Where a session came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Run in virtual time.
    Synthetic,
    /// Recorded by hitreg's own server and clients over real sockets.
    Live,
    /// A real game's recording: one client's view. It has no server ticks and replays open loop only.
    Imported {
        /// The format that it came in, such as `qwd`.
        format: String,
    },
}

//! The header of a session: everything known before its first record.

use serde::{Deserialize, Serialize};

use super::schema::is_usercmd_column;
use super::{Class, FieldSchema, RecordedSide, StoredRules, UnknownKind};
use crate::units::Seed;

/// The header of a session. Logs store it as a map of its fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionHeader {
    /// Name of the game; `Simulate::NAME`.
    pub game: String,
    /// The game's rules in MessagePack, maps included, so that a log replays without other files.
    pub rules: StoredRules,
    /// Name of the map, for display.
    pub map: String,
    /// Random seed of the session.
    pub seed: Seed,
    /// All settings in force, as `settings` prints them. Settings that a build does not know are kept unchanged.
    pub settings: Vec<(String, String)>,
    /// The preset that the settings were based on.
    pub preset: Option<String>,
    /// The players; a player's number is the index in this list.
    pub players: Vec<PlayerInfo>,
    /// How the session was recorded.
    pub origin: Origin,
    /// The side that the log holds; `None` when it holds all of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<RecordedSide>,
    /// The entity classes and their fields; a class's number is the index in this list.
    pub classes: Vec<Class>,
    /// The fields of a usercmd except its number and its server time. They are
    /// [`usercmd_fields`](super::usercmd_fields), and any that the application or a later format version adds.
    pub usercmd: Vec<FieldSchema>,
    /// Custom kinds, and kinds and columns that a later format version added. Logs store them with the columns of all
    /// tables.
    #[serde(skip)]
    pub unknown: Vec<UnknownKind>,
}

impl SessionHeader {
    /// Returns the usercmd fields that the game declares, in the order of their cells in
    /// [`Input::own`](crate::usercmd::Input::own).
    pub fn own_usercmd_fields(&self) -> Vec<FieldSchema> {
        let mut own: Vec<FieldSchema> = Vec::new();
        for field in &self.usercmd {
            if !is_usercmd_column(&field.name) && !own.iter().any(|known| known.name == field.name) {
                own.push(field.clone());
            }
        }
        own
    }

    /// Returns the fields of a body: those of all classes, each once, in the order of their first occurrence.
    pub fn body_fields(&self) -> Vec<FieldSchema> {
        let mut all: Vec<FieldSchema> = Vec::new();
        for field in self.classes.iter().flat_map(|class| &class.fields) {
            if !all.iter().any(|known| known.is_same_cell(field)) {
                all.push(field.clone());
            }
        }
        all
    }
}

/// A player of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerInfo {
    /// A generated name (`p0`, `p1`), or a nickname if the recording was started with nicknames.
    pub name: String,
    /// Whether the log holds this player's own usercmds. An imported client recording holds only one player's.
    pub recorded: bool,
}

/// How a session was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Simulated in virtual time.
    Synthetic,
    /// Recorded live, by hitreg's own server and clients or by an engine.
    Live,
    /// Imported from a real game's recording: one client's view. It has no server ticks and replays open loop only.
    Imported {
        /// The source format, such as `qwd`.
        format: String,
    },
}

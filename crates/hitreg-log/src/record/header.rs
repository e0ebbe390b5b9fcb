//! The header of a session: everything known before its first record.

use std::any::Any;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::ByteBuf;

use super::schema::is_usercmd_column;
use super::{Class, FieldSchema, UnknownKind};
use crate::serial::{ReadError, from_msgpack};
use crate::units::{PlayerId, Seed};

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
    /// Whether usercmds have [bytes of their own](super::FrameRecord::bytes).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usercmd_bytes: bool,
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

/// The id that all logs of one session share, different for each session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub u64);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The side and the session of a log. Its times are on the clock of that side. `merge` combines all sides into one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSide {
    /// The session.
    pub session: SessionId,
    /// The client's player; `None` for the server.
    pub player: Option<PlayerId>,
}

/// The part of a session that a log holds, which determines how it can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogContents {
    /// The server and all clients.
    Whole,
    /// One client or several. Each can be replayed open loop on the snapshots that it received.
    Clients,
    /// The server only.
    Server,
}

impl SessionHeader {
    /// Returns the part of its session that the log holds.
    pub fn holds(&self) -> LogContents {
        match (&self.origin, self.side) {
            (_, Some(RecordedSide { player: None, .. })) => LogContents::Server,
            (_, Some(RecordedSide { player: Some(_), .. })) | (Origin::Imported { .. }, None) => LogContents::Clients,
            (Origin::Synthetic | Origin::Live, None) => LogContents::Whole,
        }
    }
}

/// Returns the value of a setting in a list of keys and values.
pub fn value_of_setting<'s>(settings: &'s [(String, String)], key: &str) -> Option<&'s str> {
    settings.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
}

// The names of settings of a single player, such as `p2.client.cmd_hz`.

/// Splits a name such as `p2.client.cmd_hz` into player and key; `None` if no player is named.
pub fn split_of_player(key: &str) -> Option<(PlayerId, &str)> {
    let (player, key) = key.strip_prefix('p')?.split_once('.')?;
    let is_number = player.bytes().all(|digit| digit.is_ascii_digit());
    Some((PlayerId(player.parse().ok().filter(|_| is_number)?), key))
}

/// Returns the player whose own setting it is; `None` for a setting of all players.
pub fn player_of(key: &str) -> Option<PlayerId> {
    split_of_player(key).map(|(player, _)| player)
}

// A game's rules in a log's header: the bytes, and a cache of the parsed rules.

/// A game's rules in MessagePack, maps included. All clones share one parsed copy, because preparing a map takes longer
/// than replaying a second of a session.
#[derive(Clone, Default)]
pub struct StoredRules {
    bytes: Vec<u8>,
    read: Arc<OnceLock<Arc<dyn Any + Send + Sync>>>,
}

impl StoredRules {
    /// Returns the parsed rules; parses them on the first call only.
    ///
    /// # Errors
    /// When the bytes do not hold such rules.
    pub fn read<R: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<R>, ReadError> {
        if let Some(Ok(known)) = self.read.get().map(|known| Arc::clone(known).downcast()) {
            return Ok(known);
        }
        let rules: Arc<R> = Arc::new(from_msgpack(&self.bytes)?);
        // Another thread may have parsed them in the meantime.
        let known = self.read.get_or_init(|| Arc::clone(&rules) as _);
        Ok(Arc::clone(known).downcast().unwrap_or(rules))
    }
}

impl From<Vec<u8>> for StoredRules {
    fn from(bytes: Vec<u8>) -> StoredRules {
        StoredRules { bytes, read: Arc::default() }
    }
}

impl Serialize for StoredRules {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.bytes)
    }
}

impl<'de> Deserialize<'de> for StoredRules {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<StoredRules, D::Error> {
        ByteBuf::deserialize(from).map(|bytes| bytes.into_vec().into())
    }
}

impl Deref for StoredRules {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl PartialEq for StoredRules {
    fn eq(&self, other: &StoredRules) -> bool {
        self.bytes == other.bytes
    }
}

impl std::fmt::Debug for StoredRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rules_are_parsed_once() {
        let rules = StoredRules::from(rmp_serde::to_vec(&vec![3u32, 4]).expect("MessagePack"));
        let copy = rules.clone();
        let (one, other) = (rules.read::<Vec<u32>>().expect("numbers"), copy.read::<Vec<u32>>().expect("numbers"));
        assert!(Arc::ptr_eq(&one, &other));
        assert_eq!(*rules.read::<Vec<u64>>().expect("they are these, too"), [3, 4]);
        assert!(rules.read::<String>().is_err());
        let others = StoredRules::from(rmp_serde::to_vec(&vec![5u32]).expect("MessagePack"));
        assert_eq!(*others.read::<Vec<u32>>().expect("a number"), [5]);
    }
}

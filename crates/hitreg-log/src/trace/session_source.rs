//! The recorded session, as a trace's header has it.

use serde::{Deserialize, Serialize};

use crate::record::{Origin, SessionHeader, SessionId};
use crate::units::Seed;

/// What a log and its traces say about the identity of the recorded session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSource {
    /// Name of the map; empty if unknown.
    pub map: String,
    /// Random seed of the session.
    pub seed: Seed,
    /// Whether the session was simulated in virtual time, so that seed and settings determine it.
    pub synthetic: bool,
    /// The session that both sides recorded; only if the log holds one side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<SessionId>,
    /// The name of each player; no names if all are the numbers of players.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub players: Vec<String>,
}

impl SessionSource {
    /// Returns the identity of a log's session.
    pub fn of(header: &SessionHeader) -> SessionSource {
        let has_names = header.players.iter().zip(0..).any(|(of, player)| is_nickname(&of.name, player));
        let names = header.players.iter().map(|of| of.name.clone());
        SessionSource {
            players: if has_names { names.collect() } else { Vec::new() },
            map: header.map.clone(),
            seed: header.seed,
            synthetic: header.origin == Origin::Synthetic,
            id: header.side.map(|side| side.session),
        }
    }

    /// Returns the names of players that have one besides their number: `p2 is Ann, p3 is Bob`; `None` without any.
    pub fn names_of(&self, players: impl IntoIterator<Item = u32>) -> Option<String> {
        let named = |player: u32| {
            let name = self.players.get(player as usize).filter(|name| is_nickname(name, player))?;
            Some(format!("p{player} is {name}"))
        };
        let names: Vec<String> = players.into_iter().filter_map(named).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// Whether a player's name is more than its number.
fn is_nickname(name: &str, player: u32) -> bool {
    !name.is_empty() && name != format!("p{player}")
}

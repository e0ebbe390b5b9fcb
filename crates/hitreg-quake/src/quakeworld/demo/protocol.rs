//! The protocol version and extensions of a connection, which change the layout of later messages (public QuakeWorld,
//! FTE and MVDSV protocol headers).

use serde::{Deserialize, Serialize};

/// The version of every QuakeWorld 2.x client and server.
pub(crate) const VERSION: i32 = 28;
/// Marker of a word of FTE extension flags before the version.
pub(crate) const FTE: i32 = i32::from_le_bytes(*b"FTEX");
/// Marker of a second word of FTE extension flags.
pub(crate) const FTE2: i32 = i32::from_le_bytes(*b"FTE2");
/// Marker of a word of MVDSV extension flags.
pub(crate) const MVD1: i32 = i32::from_le_bytes(*b"MVD1");

/// Extension flags in force. All zero is the original protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extensions {
    /// FTE's first word.
    pub fte: u32,
    /// FTE's second word.
    pub fte2: u32,
    /// MVDSV's word.
    pub mvd1: u32,
}

impl Extensions {
    const FTE_TRANS: u32 = 0x0000_0008;
    const FTE_MODELS: u32 = 0x0000_1000;
    const FTE_FLOAT_COORDS: u32 = 0x0000_8000;
    const FTE_COLOUR: u32 = 0x0008_0000;
    const FTE_SPAWN_STATIC: u32 = 0x0040_0000;
    const FTE_CHUNKED_DOWNLOADS: u32 = 0x2000_0000;
    const MVD1_FLOAT_COORDS: u32 = 1;
    const MVD1_HIGH_LAG_TELEPORT: u32 = 2;
    const MVD1_WEAPON_PREDICTION: u32 = 1 << 7;

    /// Returns whether FTE's transparency extension changes messages. The methods here cover all flags that the reader
    /// uses. Other flags either do not affect a client demo, or lead to a [`super::QwdError`] that names the message.
    pub(crate) fn trans(self) -> bool {
        self.fte & Self::FTE_TRANS != 0
    }

    pub(crate) fn models(self) -> bool {
        self.fte & Self::FTE_MODELS != 0
    }

    pub(crate) fn any_fte(self) -> bool {
        self.fte != 0
    }

    /// Returns whether every coordinate is a float and every angle has 16 bits.
    pub(crate) fn float_coords(self) -> bool {
        self.fte & Self::FTE_FLOAT_COORDS != 0
    }

    /// Returns whether origins of players and entities are floats, while other coordinates stay short.
    pub fn float_origins(self) -> bool {
        self.mvd1 & Self::MVD1_FLOAT_COORDS != 0 || self.float_coords()
    }

    pub(crate) fn colour(self) -> bool {
        self.fte & Self::FTE_COLOUR != 0
    }

    pub(crate) fn spawn_static(self) -> bool {
        self.fte & Self::FTE_SPAWN_STATIC != 0
    }

    pub(crate) fn chunked_downloads(self) -> bool {
        self.fte & Self::FTE_CHUNKED_DOWNLOADS != 0
    }

    pub(crate) fn high_lag_teleport(self) -> bool {
        self.mvd1 & Self::MVD1_HIGH_LAG_TELEPORT != 0
    }

    pub(crate) fn weapon_prediction(self) -> bool {
        self.mvd1 & Self::MVD1_WEAPON_PREDICTION != 0
    }
}

/// Optional behaviours that a server announces as `*z_ext` in its server info.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerExtensions(pub u32);

impl ServerExtensions {
    /// Returns whether the player's flags report a held jump.
    pub fn says_jump_held(self) -> bool {
        self.0 & 1 != 0
    }
}

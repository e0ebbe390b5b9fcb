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

/// An extension that the reader knows: an MVDSV flag, or one of FTE's first word. Other flags either do not affect a
/// client demo, or lead to a [`super::QwdError`] that names the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Transparency.
    Trans = 0x0000_0008,
    /// More than 256 models.
    Models = 0x0000_1000,
    /// Every coordinate is a float, and every angle has 16 bits.
    FloatCoords = 0x0000_8000,
    Colour = 0x0008_0000,
    SpawnStatic = 0x0040_0000,
    ChunkedDownloads = 0x2000_0000,
}

impl Extensions {
    const MVD1_FLOAT_COORDS: u32 = 1;
    pub(crate) const HIGH_LAG_TELEPORT: u32 = 2;
    pub(crate) const WEAPON_PREDICTION: u32 = 1 << 7;

    /// Returns whether an extension of FTE is in force.
    pub(crate) fn has(self, extension: Extension) -> bool {
        self.fte & extension as u32 != 0
    }

    /// Returns whether origins of players and entities are floats, while other coordinates stay short.
    pub fn float_origins(self) -> bool {
        self.mvd1 & Self::MVD1_FLOAT_COORDS != 0 || self.has(Extension::FloatCoords)
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

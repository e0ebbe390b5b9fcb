//! Why a demo does not become a session.

use super::packed::UnpackError;
use crate::bsp::quake::BspError;
use crate::quakeworld::demo::QwdError;
use hitreg_log::record::Misfit;
use hitreg_netcode::settings::SettingError;

/// Why a demo could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The demo or map file is packed and does not unpack.
    #[error("the {file}: {source}")]
    Unpack {
        /// `demo` or `map`.
        file: &'static str,
        /// What is wrong.
        source: UnpackError,
    },
    /// No demo of a QuakeWorld player.
    #[error("the demo: {0}")]
    Demo(#[from] QwdError),
    /// No Quake map.
    #[error("the map: {0}")]
    Map(#[from] BspError),
    /// A map of another name.
    #[error(
        "the demo was played on `{demo}`, and the map given is `{map}`; if it is the same under another name, force it"
    )]
    OtherMap {
        /// As the server named it.
        demo: String,
        /// As the file is named.
        map: String,
    },
    /// The player was where the map has walls.
    #[error(
        "this is not the map of the demo: {in_walls} of the player's {places} recorded places lie in its walls; force it to take it all the same"
    )]
    InWalls {
        /// Places in walls.
        in_walls: usize,
        /// Places looked at.
        places: usize,
    },
    /// A brush model that the map does not have.
    #[error(
        "this is not the map of the demo: it has {models} brush models, and packet {sequence} moves number {model}; force it to leave such out"
    )]
    NoSuchModel {
        /// The packet.
        sequence: u32,
        /// The model.
        model: u16,
        /// How many the map has.
        models: usize,
    },
    /// The player never entered the game.
    #[error("the demo holds no state of a player: it ends before the game begins")]
    NeverSpawned,
    /// A time beyond reason.
    #[error("{what} {index} is stamped {time_s} s, which is no time that a client can have run")]
    Time {
        /// `usercmd` or `packet`.
        what: &'static str,
        /// Which, from 0.
        index: usize,
        /// The stamp.
        time_s: f32,
    },
    /// Sequence numbers that run over.
    #[error("usercmd {index} is numbered {seq}, which does not follow from those before it")]
    Numbers {
        /// Which, from 0.
        index: usize,
        /// Its number.
        seq: i32,
    },
    /// The rules or a packet's events do not go into MessagePack.
    #[error("writing what the demo tells: {0}")]
    Encode(#[from] rmp_serde::encode::Error),
    /// The preset is not available.
    #[error(transparent)]
    Settings(#[from] SettingError),
    /// The session does not take a record.
    #[error(transparent)]
    Misfit(#[from] Misfit),
}

//! Errors of an import.

use super::packed::UnpackError;
use crate::bsp::quake::BspError;
use crate::quakeworld::demo::QwdError;
use hitreg_log::record::MisplacedRecord;
use hitreg_netcode::settings::SettingError;

/// Why a demo could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum DemoImportError {
    /// The demo or map file could not be decompressed.
    #[error("{source}")]
    Unpack {
        /// `demo` or `map`.
        file: &'static str,
        /// The cause.
        source: UnpackError,
    },
    /// The demo cannot be read.
    #[error(transparent)]
    Demo(#[from] QwdError),
    /// The map cannot be read.
    #[error("not a QuakeWorld map: {0}")]
    Map(#[from] BspError),
    /// The map has another name than the demo's.
    #[error("the demo was played on `{demo}`; if this is the same map under another name, give --force-map")]
    OtherMap {
        /// Name according to the server.
        demo: String,
        /// Name of the file.
        map: String,
    },
    /// The player was inside the map's walls.
    #[error(
        "this is not the map of the demo: {in_walls} of the player's {places} recorded places lie in its walls; give the map of the demo, or use this one anyway with --force-map"
    )]
    InWalls {
        /// Number of positions inside walls.
        in_walls: usize,
        /// Number of positions checked.
        places: usize,
    },
    /// A packet moves a brush model that the map does not have.
    #[error(
        "this is not the map of the demo: it has {models} brush models, and packet {sequence} moves number {model}; give --force-map to leave such out"
    )]
    NoSuchModel {
        /// Sequence number of the packet.
        sequence: u32,
        /// Number of the model.
        model: u16,
        /// Number of models in the map.
        models: usize,
    },
    /// The player never entered the game.
    #[error("the demo has no player states: it ends before the game begins")]
    NeverSpawned,
    /// A time is out of range.
    #[error("{what} {index} has the time {time_s} s, which is impossible: the demo is damaged")]
    Time {
        /// `usercmd` or `packet`.
        what: &'static str,
        /// Index, from 0.
        index: usize,
        /// The time found, in seconds.
        time_s: f32,
    },
    /// A sequence number is out of range.
    #[error("usercmd {index} is numbered {seq}, which does not follow from those before it")]
    Numbers {
        /// Index, from 0.
        index: usize,
        /// The number found.
        seq: i32,
    },
    /// The rules or a packet's events cannot be encoded in MessagePack.
    #[error("the demo's contents cannot be written: {0}")]
    Encode(#[from] rmp_serde::encode::Error),
    /// The preset is not available.
    #[error(transparent)]
    Settings(#[from] SettingError),
    /// A record does not fit the session.
    #[error(transparent)]
    Misfit(#[from] MisplacedRecord),
}

//! Converts a demo and its map to a session: decompresses both, checks that they belong together, and finds what the demo
//! shows about server and map.

mod bodies;
mod findings;
mod sessions;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::{ErrorKind, Read};

use glam::Vec3;
use lzma_rust2::{Action, Status, XzStream};

use super::demo::{DemoCut, ORIGIN_STEP, OtherPlayer, QuakeWorldDemo, QwdError, RecordedBy, ServerPacket};
use super::movement::{Surroundings, offsets};
use super::{LATEST_TIME_S, QuakeWorldRules, map_stem, micros};
use crate::bsp::MapError;
use crate::bsp::quake::QuakeMap;
use findings::{detect_traits, find_walls};
use hitreg_log::record::{MisplacedRecord, Session};
use hitreg_log::units::PlayerId;
use hitreg_netcode::settings::SettingError;
use sessions::session_of;

pub(crate) use findings::AckedUsercmds;
#[cfg(test)]
pub(crate) use findings::replay_acks;
pub use findings::{ServerTrait, TraitFinding};

/// Largest share of a living player's recorded positions, in percent, that may be inside the map's walls.
const IN_WALLS_PERCENT_MAX: usize = 20;

/// Options of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Name of the map's file, to compare with the demo's; `None` skips the comparison.
    pub map_name: Option<String>,
    /// Accepts a map that does not match the demo.
    pub force_map: bool,
}

/// The result of an import.
#[derive(Debug)]
pub struct ImportResult {
    /// The demo. Only a player's demo has predictions to check. What it holds of levels on other maps and after its end is
    /// not in the session.
    pub demo: QuakeWorldDemo,
    /// The session.
    pub session: Session,
    /// Behaviours in which this server may differ from others.
    pub findings: Vec<TraitFinding>,
    /// Number of walls that the played map had and the given one lacks.
    pub walls: usize,
}

/// Creates a session from a demo and its map. Both may be compressed with gzip or xz.
///
/// # Errors
/// When the demo or the map cannot be read, the map is not the demo's, or the demo has no play; see [`DemoImportError`].
pub fn import(demo: &[u8], map: &[u8], options: &ImportOptions) -> Result<ImportResult, DemoImportError> {
    let demo = demo_in(demo)?;
    let map = unpacked(map).map_err(|source| DemoImportError::Unpack { file: "map", source })?;
    let map = QuakeMap::parse(&map)?;
    if !options.force_map {
        check_name(&demo, options)?;
        check_walls(&demo, &map)?;
    }
    let mut rules = rules(&demo, map)?;
    let plays = demo.recorded_by == RecordedBy::Player;
    let findings = if plays { detect_traits(&demo, &mut rules) } else { Vec::new() };
    if plays {
        find_walls(&demo, &mut rules);
    }
    let session = session_of(&demo, &rules, options)?;
    Ok(ImportResult { demo, session, findings, walls: rules.map.walls.len() })
}

/// Returns the name of the map that a demo was played on, such as `dm3`. The demo may be compressed with gzip or xz.
///
/// # Errors
/// When the demo cannot be read; see [`DemoImportError`].
pub fn played_map(demo: &[u8]) -> Result<String, DemoImportError> {
    let demo = demo_in(demo)?;
    Ok(demo.levels.first().map_or("", |level| map_stem(&level.map)).to_owned())
}

/// Reads a demo, compressed or plain, up to its end or truncation.
fn demo_in(bytes: &[u8]) -> Result<QuakeWorldDemo, DemoImportError> {
    let unpack = |source| DemoImportError::Unpack { file: "demo", source };
    let Prefix { bytes, cut, is_followed } = unpacked_prefix(bytes).map_err(unpack)?;
    match (QuakeWorldDemo::parse(&bytes), cut) {
        (Ok(demo), None) => {
            let after_end = demo.after_end.or(is_followed.then_some(bytes.len()));
            Ok(QuakeWorldDemo { after_end, ..demo })
        }
        (Ok(demo), Some(_)) => {
            Ok(QuakeWorldDemo { cut: demo.cut.or(Some(DemoCut { offset: bytes.len(), bytes: 0 })), ..demo })
        }
        (Err(error), None) => Err(error.into()),
        (Err(_), Some(cut)) => Err(unpack(cut)),
    }
}

/// Returns, for tests, a demo and its rules with everything found out about server and map. `map` receives the map's
/// name.
#[cfg(test)]
pub(crate) fn prepared(demo: &[u8], map: impl FnOnce(&str) -> Vec<u8>) -> (QuakeWorldDemo, QuakeWorldRules) {
    let demo = QuakeWorldDemo::parse(&unpacked(demo).expect("unpacked")).expect("a demo");
    let map = QuakeMap::parse(&unpacked(&map(map_stem(&demo.levels[0].map))).expect("unpacked")).expect("a map");
    let mut rules = rules(&demo, map).expect("played");
    detect_traits(&demo, &mut rules);
    find_walls(&demo, &mut rules);
    (demo, rules)
}

fn check_name(demo: &QuakeWorldDemo, options: &ImportOptions) -> Result<(), DemoImportError> {
    let played = demo.levels.first().map_or("", |level| map_stem(&level.map));
    match &options.map_name {
        Some(given) if !played.is_empty() && !map_stem(given).eq_ignore_ascii_case(played) => {
            Err(DemoImportError::OtherMap { demo: played.to_owned(), map: map_stem(given).to_owned() })
        }
        _ => Ok(()),
    }
}

/// Checks that a player's positions are outside walls. Rounding can move a player into a wall, but by no more than its
/// step.
fn check_walls(demo: &QuakeWorldDemo, map: &QuakeMap) -> Result<(), DemoImportError> {
    let world = Surroundings { map, solids: &[] };
    let living_origins = demo.packets.iter().flat_map(|packet| {
        let own = packet.own.filter(|own| !own.dead).map(|own| own.origin);
        // Bots and gibbed heads have other boxes.
        let stands = |other: &&OtherPlayer| !(other.dead || other.gib || other.bot);
        let others = packet.others.iter().filter(stands).map(|other| other.origin);
        let others = others.filter(|_| demo.recorded_by != RecordedBy::Player);
        own.into_iter().chain(others)
    });
    const STEPS: [f32; 3] = [-ORIGIN_STEP, 0.0, ORIGIN_STEP];
    let (mut places, mut in_walls) = (0, 0);
    for origin in living_origins {
        let at = Vec3::from_array(origin);
        places += 1;
        in_walls += usize::from(!world.has_room(at) && !offsets(STEPS).any(|off| world.has_room(at + off)));
    }
    if in_walls * 100 > places * IN_WALLS_PERCENT_MAX {
        return Err(DemoImportError::InWalls { in_walls, places });
    }
    Ok(())
}

fn rules(demo: &QuakeWorldDemo, map: QuakeMap) -> Result<QuakeWorldRules, DemoImportError> {
    let shows = |packet: &&ServerPacket| match demo.recorded_by {
        RecordedBy::Player => packet.own.is_some(),
        RecordedBy::Spectator | RecordedBy::Server => !packet.others.is_empty(),
    };
    let first = demo.packets.iter().find(shows).ok_or(DemoImportError::NeverSpawned)?;
    let times = demo.commands.first().map(|sent| sent.time_s).into_iter().chain([first.time_s]);
    let start_s = times.fold(f32::INFINITY, f32::min);
    let first_seq = demo.commands.first().map_or(1, |sent| i64::from(sent.seq));
    Ok(QuakeWorldRules {
        server: demo.server.clone(),
        levels: demo.levels.clone(),
        move_vars: demo.move_vars.clone(),
        end: demo.end,
        map,
        player: PlayerId(demo.levels.first().map_or(0, |level| u16::from(level.player))),
        start_us: micros(start_s.clamp(-LATEST_TIME_S, LATEST_TIME_S)),
        seq_shift: u32::try_from(1 - first_seq.min(1)).unwrap_or(0),
    })
}

/// Why a demo could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    Map(#[from] MapError),
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

/// Size limit after decompression in bytes, above any demo or map. It prevents a small file from filling the memory.
const UNPACKED_BYTES_MAX: u64 = 64 << 20;
const XZ_DICTIONARY_KIB: u32 = 128 << 10;
const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// Why a compressed file could not be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The file is damaged or truncated, or needs more memory than allowed.
    #[error("it is packed with {format} and does not unpack: {source}")]
    Damaged {
        /// The compression format.
        format: &'static str,
        /// The decompression error.
        source: std::io::Error,
    },
    /// The decompressed file is too large.
    #[error("it is packed with {format} and unpacks to more than {UNPACKED_BYTES_MAX} bytes")]
    TooLarge {
        /// The compression format.
        format: &'static str,
    },
}

/// Returns the decompressed bytes of a gzip or xz file, or the bytes themselves for other files.
///
/// # Errors
/// When the data is damaged or truncated, or decompresses to more than 64 MiB.
pub fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, UnpackError> {
    let Prefix { bytes, cut, .. } = unpacked_prefix(bytes)?;
    cut.map_or(Ok(bytes), Err)
}

/// The content of a file that may be truncated.
struct Prefix<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// The decompression error at the end of a truncated file.
    pub(super) cut: Option<UnpackError>,
    /// Whether other bytes follow the compressed data.
    is_followed: bool,
}

/// Returns everything that can be decompressed from a file that may be truncated.
///
/// # Errors
/// As [`unpacked`], except for truncation.
fn unpacked_prefix(bytes: &[u8]) -> Result<Prefix<'_>, UnpackError> {
    if bytes.starts_with(GZIP) {
        let mut reader = GzipReader(Some(flate2::bufread::GzDecoder::new(bytes)), &[]);
        let unpacked = read_all("gzip", &mut reader)?;
        Ok(Prefix { is_followed: !reader.1.is_empty(), ..unpacked })
    } else if bytes.starts_with(XZ) {
        let mut reader = XzReader(Some(new_xz_stream()), bytes);
        let unpacked = read_all("xz", &mut reader)?;
        Ok(Prefix { is_followed: unpacked.cut.is_none() && !reader.1.is_empty(), ..unpacked })
    } else {
        Ok(Prefix { bytes: Cow::Borrowed(bytes), cut: None, is_followed: false })
    }
}

/// Decompresses the members of a gzip file, up to bytes that are no further member. It then holds these bytes.
struct GzipReader<'a>(Option<flate2::bufread::GzDecoder<&'a [u8]>>, &'a [u8]);

impl Read for GzipReader<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(to)?;
            if read > 0 {
                return Ok(read);
            }
            self.1 = self.0.take().map_or(&[], flate2::bufread::GzDecoder::into_inner);
            self.0 = self.1.starts_with(GZIP).then(|| flate2::bufread::GzDecoder::new(self.1));
        }
        Ok(0)
    }
}

fn new_xz_stream() -> XzStream {
    XzStream::new_mem_limit(false, XZ_DICTIONARY_KIB)
}

/// Decompresses the streams of an xz file up to the last usable byte, or to bytes that are no further stream. It holds
/// the rest of the file.
struct XzReader<'a>(Option<XzStream>, &'a [u8]);

impl Read for XzReader<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        while let Some(stream) = &mut self.0 {
            let mut done = stream.process(self.1, to, Action::Run)?;
            self.1 = &self.1[done.bytes_consumed..];
            if done.bytes_produced == 0 && done.status == Status::Ok {
                // Nothing is left to decompress: the end of the data is an error if the stream lacks some.
                done = stream.process(self.1, to, Action::Finish)?;
            }
            if done.bytes_produced > 0 {
                return Ok(done.bytes_produced);
            }
            // Zeros may follow a stream.
            let rest = self.1.iter().position(|byte| *byte != 0).unwrap_or(self.1.len());
            self.1 = &self.1[rest..];
            self.0 = self.1.starts_with(XZ).then(new_xz_stream);
        }
        Ok(0)
    }
}

fn read_all(format: &'static str, reader: &mut impl Read) -> Result<Prefix<'static>, UnpackError> {
    let mut out = Vec::new();
    let read = reader.take(UNPACKED_BYTES_MAX + 1).read_to_end(&mut out);
    let cut = match read.map_err(|source| (source.kind(), UnpackError::Damaged { format, source })) {
        Ok(_) => None,
        Err((ErrorKind::UnexpectedEof, cut)) => Some(cut),
        Err((_, damaged)) => return Err(damaged),
    };
    if out.len() as u64 > UNPACKED_BYTES_MAX {
        return Err(UnpackError::TooLarge { format });
    }
    Ok(Prefix { bytes: Cow::Owned(out), cut, is_followed: false })
}

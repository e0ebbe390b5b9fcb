//! Reads a demo and its map, checks that they belong together, and creates a session.

use glam::Vec3;

use super::error::DemoImportError;
use super::packed::{Prefix, unpacked, unpacked_prefix};
use super::sessions::session_of;
use super::variant::{TraitFinding, infer};
use super::walls::find_walls;
use crate::bsp::quake::QuakeMap;
use crate::quakeworld::demo::{
    DemoCut, ORIGIN_STEP, OtherLevels, OtherPlayer, QuakeWorldDemo, RecordedBy, ServerPacket,
};
use crate::quakeworld::movement::{Surroundings, offsets};
use crate::quakeworld::rules::{LATEST_TIME_S, QuakeWorldRules, micros, stem};
use hitreg_log::record::Session;
use hitreg_log::units::PlayerId;

/// Largest share of a living player's recorded positions, in percent, that may be inside the map's walls.
const MOST_IN_WALLS_PERCENT: usize = 20;

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
    /// Who made the recording. Only a player's demo has predictions to check.
    pub by: RecordedBy,
    /// The session.
    pub session: Session,
    /// What the demo holds of levels on other maps. It is not in the session.
    pub other_levels: OtherLevels,
    /// The truncation, if the demo is truncated.
    pub cut: Option<DemoCut>,
    /// Offset of the bytes after the end of the demo, which are not imported.
    pub after_end: Option<usize>,
    /// Number of packets that ack usercmds which the demo does not have yet.
    pub acks_ahead: u64,
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
    let plays = demo.by == RecordedBy::Player;
    let findings = if plays { infer(&demo, &mut rules) } else { Vec::new() };
    if plays {
        find_walls(&demo, &mut rules);
    }
    Ok(ImportResult {
        by: demo.by,
        session: session_of(&demo, &rules, options)?,
        other_levels: demo.other_levels,
        cut: demo.cut,
        after_end: demo.after_end,
        acks_ahead: demo.acks_ahead,
        findings,
        walls: rules.map.walls.len(),
    })
}

/// Returns the name of the map that a demo was played on, such as `dm3`. The demo may be compressed with gzip or xz.
///
/// # Errors
/// When the demo cannot be read; see [`DemoImportError`].
pub fn played_map(demo: &[u8]) -> Result<String, DemoImportError> {
    let demo = demo_in(demo)?;
    Ok(demo.levels.first().map_or("", |level| stem(&level.map)).to_owned())
}

/// Reads a demo, compressed or plain, up to its end or truncation.
fn demo_in(bytes: &[u8]) -> Result<QuakeWorldDemo, DemoImportError> {
    let unpack = |source| DemoImportError::Unpack { file: "demo", source };
    let Prefix { bytes, cut } = unpacked_prefix(bytes).map_err(unpack)?;
    match (QuakeWorldDemo::parse(&bytes), cut) {
        (Ok(demo), None) => Ok(demo),
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
    let map = QuakeMap::parse(&unpacked(&map(stem(&demo.levels[0].map))).expect("unpacked")).expect("a map");
    let mut rules = rules(&demo, map).expect("played");
    infer(&demo, &mut rules);
    find_walls(&demo, &mut rules);
    (demo, rules)
}

fn check_name(demo: &QuakeWorldDemo, options: &ImportOptions) -> Result<(), DemoImportError> {
    let played = demo.levels.first().map_or("", |level| stem(&level.map));
    match &options.map_name {
        Some(given) if !played.is_empty() && !stem(given).eq_ignore_ascii_case(played) => {
            Err(DemoImportError::OtherMap { demo: played.to_owned(), map: stem(given).to_owned() })
        }
        _ => Ok(()),
    }
}

/// Checks that a player's positions are outside walls. Rounding can move a player into a wall, but by no more than its
/// step.
fn check_walls(demo: &QuakeWorldDemo, map: &QuakeMap) -> Result<(), DemoImportError> {
    let world = Surroundings { map, solids: &[] };
    let living = demo.packets.iter().flat_map(|packet| {
        let own = packet.own.filter(|own| !own.dead).map(|own| own.origin);
        // Bots and gibbed heads have other boxes.
        let stands = |other: &&OtherPlayer| !(other.dead || other.gib || other.bot);
        let others = packet.others.iter().filter(stands).map(|other| other.origin);
        let others = others.filter(|_| demo.by != RecordedBy::Player);
        own.into_iter().chain(others)
    });
    const STEPS: [f32; 3] = [-ORIGIN_STEP, 0.0, ORIGIN_STEP];
    let (mut places, mut in_walls) = (0, 0);
    for origin in living {
        let at = Vec3::from_array(origin);
        places += 1;
        in_walls += usize::from(!world.has_room(at) && !offsets(STEPS).any(|off| world.has_room(at + off)));
    }
    if in_walls * 100 > places * MOST_IN_WALLS_PERCENT {
        return Err(DemoImportError::InWalls { in_walls, places });
    }
    Ok(())
}

fn rules(demo: &QuakeWorldDemo, map: QuakeMap) -> Result<QuakeWorldRules, DemoImportError> {
    let shows = |packet: &&ServerPacket| match demo.by {
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

//! Reads a client demo and its map, sees whether they belong together, and makes a session of them.

use glam::Vec3;

use super::error::ImportError;
use super::packed::{Prefix, unpacked, unpacked_prefix};
use super::sessions::session_of;
use super::variant::{Finding, infer};
use super::walls::find_walls;
use crate::bsp::quake::Map;
use crate::quakeworld::demo::{Cut, Demo, ORIGIN_STEP, OtherPlayer, RecordedBy, ServerPacket};
use crate::quakeworld::movement::World;
use crate::quakeworld::rules::{LATEST_TIME_S, Rules, micros, stem};
use hitreg_log::record::Session;
use hitreg_log::units::PlayerId;

/// The most of a living player's recorded places, in percent, that may lie in the map's walls.
const MOST_IN_WALLS_PERCENT: usize = 20;

/// How to import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The name of the map's file, to be held against the demo's; not compared when there is none.
    pub map_name: Option<String>,
    /// Takes the map even if it does not fit.
    pub force_map: bool,
}

/// What came of a demo.
#[derive(Debug)]
pub struct Imported {
    /// Who recorded: of a demo of anybody but a player there are no predictions to check.
    pub by: RecordedBy,
    /// All that it holds.
    pub session: Session,
    /// Where it was cut off, if it was.
    pub cut: Option<Cut>,
    /// What the server does that not every server does.
    pub findings: Vec<Finding>,
    /// How many walls the played map had that the given one lacks.
    pub walls: usize,
}

/// Makes a session of a demo and the map that it was played on; both may be packed with gzip or xz.
///
/// # Errors
/// A demo or map that cannot be read, a map that is not the demo's, a demo without play: see [`ImportError`].
pub fn import(demo: &[u8], map: &[u8], options: &ImportOptions) -> Result<Imported, ImportError> {
    let demo = demo_in(demo)?;
    let map = unpacked(map).map_err(|source| ImportError::Unpack { file: "map", source })?;
    let map = Map::parse(&map)?;
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
    Ok(Imported {
        by: demo.by,
        session: session_of(&demo, &rules, options)?,
        cut: demo.cut,
        findings,
        walls: rules.map.walls.len(),
    })
}

/// The name of the map that a demo was played on, which may be packed with gzip or xz: `dm3`.
///
/// # Errors
/// A demo that cannot be read: see [`ImportError`].
pub fn played_map(demo: &[u8]) -> Result<String, ImportError> {
    let demo = demo_in(demo)?;
    Ok(demo.levels.first().map_or("", |level| stem(&level.map)).to_owned())
}

/// The demo in a file's bytes, which may be packed, up to where either is cut off.
fn demo_in(bytes: &[u8]) -> Result<Demo, ImportError> {
    let unpack = |source| ImportError::Unpack { file: "demo", source };
    let Prefix { bytes, cut } = unpacked_prefix(bytes).map_err(unpack)?;
    match (Demo::parse(&bytes), cut) {
        (Ok(demo), None) => Ok(demo),
        (Ok(demo), Some(_)) => Ok(Demo { cut: demo.cut.or(Some(Cut { offset: bytes.len(), bytes: 0 })), ..demo }),
        (Err(error), None) => Err(error.into()),
        (Err(_), Some(cut)) => Err(unpack(cut)),
    }
}

/// For tests: a demo and its rules, with all that was found out about its server and map. `map` is given the map's name.
#[cfg(test)]
pub(crate) fn prepared(demo: &[u8], map: impl FnOnce(&str) -> Vec<u8>) -> (Demo, Rules) {
    let demo = Demo::parse(&unpacked(demo).expect("unpacked")).expect("a demo");
    let map = Map::parse(&unpacked(&map(stem(&demo.levels[0].map))).expect("unpacked")).expect("a map");
    let mut rules = rules(&demo, map).expect("played");
    infer(&demo, &mut rules);
    find_walls(&demo, &mut rules);
    (demo, rules)
}

fn check_name(demo: &Demo, options: &ImportOptions) -> Result<(), ImportError> {
    let played = demo.levels.first().map_or("", |level| stem(&level.map));
    match &options.map_name {
        Some(given) if !played.is_empty() && !stem(given).eq_ignore_ascii_case(played) => {
            Err(ImportError::OtherMap { demo: played.to_owned(), map: stem(given).to_owned() })
        }
        _ => Ok(()),
    }
}

/// Rounding to the wire puts a player into a wall now and then, but never farther than its step.
fn check_walls(demo: &Demo, map: &Map) -> Result<(), ImportError> {
    let world = World { map, solids: &[] };
    let first = |packet: &&ServerPacket| packet.level == 0;
    let living = demo.packets.iter().filter(first).flat_map(|packet| {
        let own = packet.own.filter(|own| !own.dead).map(|own| own.origin);
        // Bots and heads have other boxes.
        let stands = |other: &&OtherPlayer| !(other.dead || other.gib || other.bot);
        let others = packet.others.of(&demo.others).iter().filter(stands).map(|other| other.origin);
        let others = others.filter(|_| demo.by != RecordedBy::Player);
        own.into_iter().chain(others)
    });
    let signs = [-ORIGIN_STEP, 0.0, ORIGIN_STEP];
    let corners =
        || signs.into_iter().flat_map(|x| signs.into_iter().flat_map(move |y| signs.map(|z| Vec3::new(x, y, z))));
    let (mut places, mut in_walls) = (0, 0);
    for origin in living {
        let at = Vec3::from_array(origin);
        places += 1;
        in_walls += usize::from(!world.has_room(at) && !corners().any(|off| world.has_room(at + off)));
    }
    if in_walls * 100 > places * MOST_IN_WALLS_PERCENT {
        return Err(ImportError::InWalls { in_walls, places });
    }
    Ok(())
}

fn rules(demo: &Demo, map: Map) -> Result<Rules, ImportError> {
    let shows = |packet: &&ServerPacket| match demo.by {
        RecordedBy::Player => packet.own.is_some(),
        RecordedBy::Spectator | RecordedBy::Server => !packet.others.of(&demo.others).is_empty(),
    };
    let first = demo.packets.iter().find(shows).ok_or(ImportError::NeverSpawned)?;
    let times = demo.commands.first().map(|sent| sent.time_s).into_iter().chain([first.time_s]);
    let start_s = times.fold(f32::INFINITY, f32::min);
    let first_seq = demo.commands.first().map_or(1, |sent| i64::from(sent.seq));
    Ok(Rules {
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

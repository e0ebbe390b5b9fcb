//! Parses Quake's `.map` text.

use glam::Vec3;
use quake_map::{Entity, TextParseError};

use super::super::bounds::Bounds;
use super::super::brush::ConvexBrush;
use super::super::solid::SolidHull;
use super::shape::{ShapeError, closed_brush, plane_through};
use super::{ArenaMap, BellPlace, MOST_BRUSHES, MapSource, Props, SpawnPoint, Teleporter};

/// The entity classes whose brushes are solid.
const SOLID_CLASSES: [&str; 4] = ["worldspawn", "func_wall", "func_detail", "func_group"];

/// The reasons why a text is not a valid map. Entities, brushes and sides are counted from 0, in the order of the file.
#[derive(Debug, thiserror::Error)]
pub enum MapTextError {
    /// The text is not in the format.
    #[error("line {line}: {message}")]
    Syntax {
        /// The line, from 1.
        line: u64,
        /// The parser's message.
        message: String,
    },
    /// The text ends early.
    #[error("the text ends in the middle of an entity")]
    Unfinished,
    /// A brush is not a valid solid.
    #[error("entity {entity}, brush {brush}: {source}")]
    Brush {
        /// The entity.
        entity: usize,
        /// The brush.
        brush: usize,
        /// The reason.
        source: ShapeError,
    },
    /// The map has too many brushes.
    #[error("more than {MOST_BRUSHES} brushes")]
    TooManyBrushes,
    /// An entity with brushes has an unknown class.
    #[error("entity {entity}: {class} with brushes is not supported; supported are {}, and trigger_teleport", SOLID_CLASSES.join(", "))]
    UnknownBrushEntity {
        /// The entity.
        entity: usize,
        /// Its `classname`.
        class: String,
    },
    /// A value is missing or invalid.
    #[error("entity {entity}: {key} is {found}, it should be {expected}")]
    Value {
        /// The entity.
        entity: usize,
        /// The key.
        key: &'static str,
        /// The value found.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
    /// The `target` of a teleporter names no `info_teleport_destination`.
    #[error("entity {entity}: no info_teleport_destination has the targetname {target:?}")]
    NoDestination {
        /// The entity.
        entity: usize,
        /// The unknown name.
        target: String,
    },
    /// A standing player does not fit at a spawn point or destination.
    #[error("entity {entity}: a player does not fit at {at}")]
    NoRoom {
        /// The entity.
        entity: usize,
        /// The place in units.
        at: Vec3,
    },
    /// The map has too many props.
    #[error("more than {} props of a kind", super::props::MOST_PROPS)]
    TooManyProps,
    /// The map has no spawn point.
    #[error("the map has no spawn point (info_player_deathmatch or info_player_start)")]
    NoSpawnPoint,
}

impl From<TextParseError> for MapTextError {
    fn from(error: TextParseError) -> MapTextError {
        match error {
            TextParseError::Lexer(at) | TextParseError::Parser(at) => match at.line_number {
                Some(line) => MapTextError::Syntax { line: line.get(), message: at.message },
                None => MapTextError::Unfinished,
            },
            // Reading from memory cannot fail.
            TextParseError::Io(_) => MapTextError::Unfinished,
        }
    }
}

pub(super) fn parse(name: &str, mut text: &[u8]) -> Result<ArenaMap, MapTextError> {
    let source = quake_map::parse(&mut text)?;
    let entities: Vec<EntityReader<'_>> =
        source.entities.iter().enumerate().map(|(number, entity)| EntityReader { number, entity }).collect();
    let mut map = ArenaMap::new(MapSource {
        name: name.to_owned(),
        brushes: solid_brushes(&entities)?,
        spawn_points: Vec::new(),
        teleporters: Vec::new(),
        waypoints: Vec::new(),
        props: Props::default(),
    });
    map.stored.spawn_points = spawn_points(&entities, &map)?;
    map.stored.teleporters = teleporters(&entities, &map)?;
    for entity in entities.iter().filter(|entity| entity.class() == "info_waypoint") {
        map.stored.waypoints.push(entity.free_place(&map)?.origin.to_array());
    }
    map.stored.props = props(&entities, &map)?;
    if map.stored.props.are_few() { Ok(map) } else { Err(MapTextError::TooManyProps) }
}

fn props(entities: &[EntityReader<'_>], map: &ArenaMap) -> Result<Props, MapTextError> {
    let mut props = Props::default();
    for entity in entities {
        match entity.class() {
            "worldspawn" => match entity.value("launcher") {
                None => {}
                Some("arrows") => props.arrows = true,
                Some(_) => return Err(entity.bad_value("launcher", "arrows, or nothing for rockets")),
            },
            "prop_tree" => props.trees.push(entity.place()?.origin.to_array()),
            "prop_apple" => props.apples.push(entity.place()?.origin.to_array()),
            "prop_bell" => {
                let length_ms = entity.value("length_ms").and_then(|text| text.trim().parse::<u16>().ok());
                let length_ms = length_ms.filter(|ms| *ms > 0);
                let length_ms = length_ms.ok_or_else(|| entity.bad_value("length_ms", "1 to 65535"))?;
                props.bells.push(BellPlace { origin: entity.place()?.origin.to_array(), length_ms });
            }
            "prop_post" => props.posts.push(entity.free_place(map)?.origin.to_array()),
            _ => {}
        }
    }
    Ok(props)
}

fn solid_brushes(entities: &[EntityReader<'_>]) -> Result<Vec<ConvexBrush>, MapTextError> {
    let mut brushes = Vec::new();
    for entity in entities.iter().filter(|entity| !entity.entity.brushes.is_empty()) {
        let class = entity.class();
        if SOLID_CLASSES.contains(&class) {
            brushes.extend(entity.brushes()?);
        } else if class != "trigger_teleport" {
            return Err(MapTextError::UnknownBrushEntity { entity: entity.number, class: class.to_owned() });
        }
        if brushes.len() > MOST_BRUSHES {
            return Err(MapTextError::TooManyBrushes);
        }
    }
    Ok(brushes)
}

fn spawn_points(entities: &[EntityReader<'_>], map: &ArenaMap) -> Result<Vec<SpawnPoint>, MapTextError> {
    for class in ["info_player_deathmatch", "info_player_start"] {
        let places: Vec<SpawnPoint> = entities
            .iter()
            .filter(|entity| entity.class() == class)
            .map(|entity| entity.free_place(map))
            .collect::<Result<_, _>>()?;
        if !places.is_empty() {
            return Ok(places);
        }
    }
    Err(MapTextError::NoSpawnPoint)
}

fn teleporters(entities: &[EntityReader<'_>], map: &ArenaMap) -> Result<Vec<Teleporter>, MapTextError> {
    let mut teleporters = Vec::new();
    for entity in entities.iter().filter(|entity| entity.class() == "trigger_teleport") {
        let target = entity.value("target").unwrap_or_default();
        let destination = entities
            .iter()
            .find(|other| other.class() == "info_teleport_destination" && other.value("targetname") == Some(target))
            .ok_or_else(|| MapTextError::NoDestination { entity: entity.number, target: target.to_owned() })?;
        let bounds =
            entity.brushes()?.iter().fold(Bounds::EMPTY, |all, brush| all.union(brush.bounds_for(SolidHull::Point)));
        if entity.entity.brushes.is_empty() {
            return Err(entity.bad_value("brushes", "at least one brush"));
        }
        teleporters.push(Teleporter { min: bounds.min, max: bounds.max, to: destination.free_place(map)? });
    }
    Ok(teleporters)
}

/// One entity of the file, with its number.
struct EntityReader<'a> {
    number: usize,
    entity: &'a Entity,
}

impl<'a> EntityReader<'a> {
    fn class(&self) -> &'a str {
        self.value("classname").unwrap_or_default()
    }

    /// Returns a key's value; `None` when it is missing or not text.
    fn value(&self, key: &str) -> Option<&'a str> {
        let (_, value) = self.entity.edict.iter().find(|(name, _)| name.to_bytes() == key.as_bytes())?;
        value.to_str().ok()
    }

    fn brushes(&self) -> Result<Vec<ConvexBrush>, MapTextError> {
        let to_brush = |(brush, sides): (usize, &quake_map::Brush)| {
            let planes = sides.iter().enumerate().map(|(side, surface)| plane_through(surface.half_space, side));
            let fault = |source| MapTextError::Brush { entity: self.number, brush, source };
            planes.collect::<Result<Vec<_>, _>>().and_then(closed_brush).map_err(fault)
        };
        self.entity.brushes.iter().enumerate().map(to_brush).collect()
    }

    /// Returns a place where a standing player fits.
    fn free_place(&self, map: &ArenaMap) -> Result<SpawnPoint, MapTextError> {
        let place = self.place()?;
        let no_room = || MapTextError::NoRoom { entity: self.number, at: place.origin };
        place.raised_until_free(map.solid()).ok_or_else(no_room)
    }

    fn place(&self) -> Result<SpawnPoint, MapTextError> {
        let numbers: Vec<f32> = self
            .value("origin")
            .unwrap_or_default()
            .split_whitespace()
            .map(|number| number.parse::<f32>().ok().filter(|n| n.is_finite() && n.abs() <= 32_768.0))
            .collect::<Option<_>>()
            .unwrap_or_default();
        let [x, y, z] = numbers[..] else { return Err(self.bad_value("origin", "three numbers within 32768")) };
        let yaw_deg = match self.value("angle") {
            None => 0.0,
            Some(text) => {
                let yaw = text.trim().parse::<f32>().ok().filter(|yaw| yaw.is_finite());
                yaw.ok_or_else(|| self.bad_value("angle", "a number of degrees"))?
            }
        };
        Ok(SpawnPoint { origin: Vec3::new(x, y, z), yaw_deg })
    }

    fn bad_value(&self, key: &'static str, expected: &'static str) -> MapTextError {
        let found = self.value(key).map_or_else(|| "missing".to_owned(), |value| format!("{value:?}"));
        MapTextError::Value { entity: self.number, key, found, expected }
    }
}

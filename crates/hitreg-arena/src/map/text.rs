//! Parses Quake's `.map` text, and converts the planes of a level editor's brush to a solid for sweeps.

use glam::{DVec3, Vec3};
use quake_map::{Entity, TextParseError};

use crate::brush::{AXES, Bounds, BrushError, ConvexBrush, Facet, corners_of, cut_planes};
use crate::map::{ArenaMap, BRUSH_SIDES_MAX, BRUSHES_MAX, BellPlace, MapSource, Props, SpawnPoint, Teleporter};
use crate::solid::SolidHull;

/// The entity classes whose brushes are solid.
const SOLID_CLASSES: [&str; 4] = ["worldspawn", "func_wall", "func_detail", "func_group"];

/// The greatest distance of a brush from the world's origin, in units.
const REACH_UNITS: f64 = 32_768.0;

/// The least thickness of a brush across each of its sides, in units.
const THINNEST_UNITS: f64 = 1.0 / 8.0;

/// Corners nearer to a plane than this count as on it, in units.
const ON_PLANE_UNITS: f64 = 1.0 / 1_024.0;

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
    #[error("more than {BRUSHES_MAX} brushes")]
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
    #[error("more than {} props of a kind", super::PROPS_MAX)]
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
        if brushes.len() > BRUSHES_MAX {
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

/// The reasons why an editor's brush is not a valid solid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// The three points of a side lie on one line.
    #[error("side {side}: its three points span no plane")]
    NoPlane {
        /// The index of the side, from 0.
        side: usize,
    },
    /// The solid has fewer than four sides.
    #[error("it has {sides} sides, a solid needs at least 4")]
    TooFewSides {
        /// The number of sides.
        sides: usize,
    },
    /// The solid has too many sides.
    #[error("it has {sides} sides, the most is {BRUSH_SIDES_MAX}")]
    TooManySides {
        /// The number of sides.
        sides: usize,
    },
    /// The planes enclose no volume, or too little.
    #[error("its sides enclose nothing")]
    Degenerate,
    /// The solid is open, or reaches too far out.
    #[error("it is open, or reaches more than {REACH_UNITS} units from the origin")]
    TooLarge,
    /// A plane is invalid.
    #[error(transparent)]
    Brush(#[from] BrushError),
}

/// Returns the plane through three points, which are clockwise as seen from outside.
fn plane_through(points: [[f64; 3]; 3], side: usize) -> Result<Facet, ShapeError> {
    let [a, b, c] = points.map(DVec3::from);
    let across = (a - b).cross(c - b);
    let length = across.length();
    if !length.is_finite() || length < 1e-6 {
        return Err(ShapeError::NoPlane { side });
    }
    // Adding zero turns a negative zero into a positive one.
    let normal = across / length + 0.0;
    Ok(Facet { normal, distance: normal.dot(b) + 0.0 })
}

/// Creates a closed solid, and adds axis-aligned sides where it has none. Sweeps move each side out by the hull's
/// support. Without axis-aligned sides, that would extend the sharp end of a wedge far beyond its tip.
fn closed_brush(mut sides: Vec<Facet>) -> Result<ConvexBrush, ShapeError> {
    if sides.len() < 4 {
        return Err(ShapeError::TooFewSides { sides: sides.len() });
    }
    if sides.len() > BRUSH_SIDES_MAX - 6 {
        return Err(ShapeError::TooManySides { sides: sides.len() });
    }
    // Open solids are cut off beyond the limit.
    let planes: Vec<Facet> = sides.iter().copied().chain(cut_planes(REACH_UNITS * 2.0)).collect();
    let corners: Vec<DVec3> = corners_of(&planes, ON_PLANE_UNITS).collect();
    if corners.len() < 4 {
        return Err(ShapeError::Degenerate);
    }
    let is_thick = |side: &Facet| {
        let depth = corners.iter().map(|at| side.distance - side.normal.dot(*at)).fold(0.0, f64::max);
        depth >= THINNEST_UNITS
    };
    if !sides.iter().all(is_thick) {
        return Err(ShapeError::Degenerate);
    }
    if corners.iter().any(|at| at.abs().max_element() > REACH_UNITS) {
        return Err(ShapeError::TooLarge);
    }
    for axis in AXES {
        if !sides.iter().any(|side| side.normal.dot(axis) > 1.0 - 1e-9) {
            let distance = corners.iter().map(|at| at.dot(axis)).fold(f64::NEG_INFINITY, f64::max);
            sides.push(Facet { normal: axis, distance });
        }
    }
    Ok(ConvexBrush::new(sides)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(normal: [f64; 3], distance: f64) -> Facet {
        let (normal, length) = (DVec3::from(normal), DVec3::from(normal).length());
        Facet { normal: normal / length, distance: distance / length }
    }

    fn cube() -> Vec<Facet> {
        ConvexBrush::cuboid([-8.0; 3], [8.0; 3]).facets().to_vec()
    }

    #[test]
    fn a_cube_is_unchanged() {
        assert_eq!(closed_brush(cube()).unwrap().facets(), cube());
    }

    #[test]
    fn a_wedge_gets_an_upright_end() {
        let floor = side([0.0, 0.0, -1.0], 0.0);
        let back = side([0.0, 1.0, 0.0], 64.0);
        let slope = side([0.0, -1.0, 1.0], 0.0);
        let (east, west) = (side([1.0, 0.0, 0.0], 16.0), side([-1.0, 0.0, 0.0], 16.0));
        let brush = closed_brush(vec![floor, back, slope, east, west]).unwrap();
        let added = &brush.facets()[5..];
        assert_eq!(added.iter().map(|side| side.normal).collect::<Vec<_>>(), [DVec3::NEG_Y, DVec3::Z]);
        assert!(added[0].distance.abs() < 1e-9 && (added[1].distance - 64.0).abs() < 1e-9);
    }

    #[test]
    fn a_brush_without_volume_is_refused() {
        let mut inside_out = cube();
        inside_out[0].distance = -20.0;
        assert_eq!(closed_brush(inside_out), Err(ShapeError::Degenerate));
        let mut flat = cube();
        flat[0].distance = -7.95;
        assert_eq!(closed_brush(flat), Err(ShapeError::Degenerate));
        let open = cube()[..5].to_vec();
        assert_eq!(closed_brush(open), Err(ShapeError::TooLarge));
        assert_eq!(closed_brush(cube()[..3].to_vec()), Err(ShapeError::TooFewSides { sides: 3 }));
        let line = [[0.0; 3], [1.0; 3], [2.0; 3]];
        assert_eq!(plane_through(line, 4), Err(ShapeError::NoPlane { side: 4 }));
    }
}

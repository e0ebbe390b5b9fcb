//! A map as the game uses it: solids, spawn points, teleporters and props.

mod text;

use glam::Vec3;
use serde::{Deserialize, Serialize};

use crate::brush::{ConvexBrush, Facet};
use crate::solid::{Solid, SolidHull, SweepContact};
use crate::world::CollisionWorld;
use hitreg_netcode::game::Wall;
use hitreg_netcode::geometry::Polygon;
pub use text::{MapTextError, ShapeError};

/// The built-in maps, as names and texts.
pub(crate) const BUILT_IN: &[(&str, &str)] =
    &[("courtyard", include_str!("../maps/courtyard.map")), ("orchard", include_str!("../maps/orchard.map"))];

/// The most brushes of a map, which bounds the time to load a bad file.
const BRUSHES_MAX: usize = 8_192;

/// The most sides of a brush, for the same reason.
const BRUSH_SIDES_MAX: usize = 48;

/// The most props of one kind; a walker's posts are numbered in one byte.
const PROPS_MAX: usize = 255;

/// Sides whose normal is more vertical than this count as floor, roof or ramp.
const STEEP: f64 = 0.7;

/// A distance that no map reaches, in units.
const REACH_UNITS: f64 = 65_536.0;

/// A map, ready to play. It is stored as brushes and places; the data for sweeps is prepared on loading.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "MapSource", into = "MapSource")]
pub struct ArenaMap {
    stored: MapSource,
    solid: CollisionWorld,
}

impl ArenaMap {
    /// Returns the built-in map `courtyard`: a walled courtyard with cover, a corridor and a hall. It also has stairs
    /// and a ramp to their roof, a den that players enter by ducking, and a teleporter.
    pub fn courtyard() -> ArenaMap {
        ArenaMap::built_in(0)
    }

    /// Returns the built-in map `orchard`, which has an entity for each rendering category: trees with falling apples,
    /// a bell, a walker, and arrows for the launcher.
    pub fn orchard() -> ArenaMap {
        ArenaMap::built_in(1)
    }

    fn built_in(number: usize) -> ArenaMap {
        let (name, text) = BUILT_IN[number];
        ArenaMap::parse(name, text.as_bytes()).expect("the built-in maps parse: a test holds it")
    }

    /// Parses the text of a Quake `.map` file, with faces in the classic or the Valve 220 format.
    ///
    /// The brushes of `worldspawn`, `func_wall`, `func_detail` and `func_group` are solid. Players spawn at
    /// `info_player_deathmatch`, or at `info_player_start` if there are none. Its origin is the middle of the standing
    /// hull; one that is slightly lower, as for Quake's hull, is raised. A `trigger_teleport` leads to the
    /// `info_teleport_destination` that its `target` names. `info_waypoint` marks places for bots. `prop_tree`,
    /// `prop_apple`, `prop_bell` (with a `length_ms`) and `prop_post` are its [`Props`]. `"launcher" "arrows"` in
    /// `worldspawn` loads the launcher with arrows.
    ///
    /// # Errors
    /// See [`MapTextError`].
    pub fn parse(name: &str, text: &[u8]) -> Result<ArenaMap, MapTextError> {
        text::parse(name, text)
    }

    /// Returns the map's name.
    pub fn name(&self) -> &str {
        &self.stored.name
    }

    /// Returns all solid brushes, in their order in the file.
    pub fn brushes(&self) -> &[ConvexBrush] {
        &self.stored.brushes
    }

    /// Returns the spawn points; there is at least one.
    pub fn spawn_points(&self) -> &[SpawnPoint] {
        &self.stored.spawn_points
    }

    /// Returns the teleporters.
    pub fn teleporters(&self) -> &[Teleporter] {
        &self.stored.teleporters
    }

    /// Returns the places that bots walk between, in units: the middle of a standing hull.
    pub fn waypoints(&self) -> &[[f32; 3]] {
        &self.stored.waypoints
    }

    /// Returns the props.
    pub fn props(&self) -> &Props {
        &self.stored.props
    }

    /// Returns whether no solid is on the line between two points.
    pub(crate) fn is_clear(&self, from: Vec3, to: Vec3) -> bool {
        self.solid.sweep(SolidHull::Point, from, to).fraction == 1.0
    }

    /// Returns the collision world.
    pub fn solid(&self) -> &CollisionWorld {
        &self.solid
    }

    /// Returns the walls in top view: the steep sides of all brushes.
    pub fn walls(&self) -> Vec<Wall> {
        self.brushes().iter().flat_map(walls_of).collect()
    }

    fn new(stored: MapSource) -> ArenaMap {
        let solid = CollisionWorld::new(&stored.brushes);
        ArenaMap { stored, solid }
    }
}

impl std::fmt::Debug for ArenaMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ArenaMap {:?} of {} brushes", self.stored.name, self.stored.brushes.len())
    }
}

impl PartialEq for ArenaMap {
    fn eq(&self, other: &ArenaMap) -> bool {
        self.stored == other.stored
    }
}

/// A spawn point or destination.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpawnPoint {
    /// The middle of the standing hull, in units.
    pub origin: Vec3,
    /// The view direction in degrees, counter-clockwise from +x.
    pub yaw_deg: f32,
}

impl SpawnPoint {
    /// Raises the place until a standing player fits, by at most the difference between Quake's hull and Half-Life's.
    fn raised_until_free(self, solid: &CollisionWorld) -> Option<SpawnPoint> {
        const RAISE_UNITS_MAX: u32 = 16;
        (0..=RAISE_UNITS_MAX).find_map(|up| {
            let origin = self.origin + Vec3::Z * up as f32;
            (solid.inside(SolidHull::Standing, origin) == SweepContact::Nothing)
                .then_some(SpawnPoint { origin, ..self })
        })
    }
}

/// A box that teleports players who touch it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Teleporter {
    /// The box's lowest corner, in units.
    pub min: Vec3,
    /// The box's highest corner, in units.
    pub max: Vec3,
    /// The destination.
    pub to: SpawnPoint,
}

impl Teleporter {
    /// Returns whether a hull at `origin` reaches into the box.
    pub fn holds(&self, hull: SolidHull, origin: Vec3) -> bool {
        let half = hull.half_extent_units();
        (origin + half).cmpge(self.min).all() && (origin - half).cmple(self.max).all()
    }
}

/// The stored parts of a map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct MapSource {
    name: String,
    #[serde(with = "stored_brushes")]
    brushes: Vec<ConvexBrush>,
    spawn_points: Vec<SpawnPoint>,
    teleporters: Vec<Teleporter>,
    waypoints: Vec<[f32; 3]>,
    #[serde(default, skip_serializing_if = "Props::is_empty")]
    props: Props,
}

impl TryFrom<MapSource> for ArenaMap {
    type Error = MapTextError;
    fn try_from(stored: MapSource) -> Result<ArenaMap, MapTextError> {
        if stored.spawn_points.is_empty() {
            return Err(MapTextError::NoSpawnPoint);
        }
        if !stored.props.are_few() {
            return Err(MapTextError::TooManyProps);
        }
        Ok(ArenaMap::new(stored))
    }
}

impl From<ArenaMap> for MapSource {
    fn from(map: ArenaMap) -> MapSource {
        map.stored
    }
}

/// The props of a map, each kind in the order of the file. Places are in units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Props {
    /// The trees, by the middle of the trunk. Their solid parts are brushes.
    pub trees: Vec<[f32; 3]>,
    /// The twigs from which apples fall.
    pub apples: Vec<[f32; 3]>,
    /// The bells.
    pub bells: Vec<BellPlace>,
    /// The walker's round: the middle of a standing hull at each post. A map with at least two posts has a walker.
    pub posts: Vec<[f32; 3]>,
    /// Whether the launcher is loaded with arrows.
    pub arrows: bool,
}

/// The place of a bell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BellPlace {
    /// The origin in units.
    pub origin: [f32; 3],
    /// The length of its ringing in ms.
    pub length_ms: u16,
}

impl Props {
    /// Returns whether there are no props.
    pub fn is_empty(&self) -> bool {
        *self == Props::default()
    }

    pub(crate) fn are_few(&self) -> bool {
        [self.trees.len(), self.apples.len(), self.bells.len(), self.posts.len()].into_iter().all(|n| n <= PROPS_MAX)
    }
}

fn walls_of(brush: &ConvexBrush) -> impl Iterator<Item = Wall> {
    let steep = brush.facets().iter().enumerate().filter(|(_, facet)| facet.normal.z.abs() < STEEP);
    steep.filter_map(|(index, facet)| {
        let others = brush.facets().iter().enumerate().filter(|(other, _)| *other != index);
        let cut = |side: Option<Polygon>, (_, other): (usize, &Facet)| {
            let [_, behind] = side?.cut(other.normal, other.distance);
            behind
        };
        let side = others.fold(Some(Polygon::on_plane(facet.normal, facet.distance, REACH_UNITS)), cut)?;
        let (from, to, bottom, top) = side.seen_from_above(facet.normal)?;
        Some(Wall { from, to, bottom, top, of: None })
    })
}

/// Serialises brushes, each as its planes.
mod stored_brushes {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::{Serialize, Serializer};

    use super::{BRUSH_SIDES_MAX, BRUSHES_MAX, ConvexBrush, Facet};

    pub(super) fn serialize<S: Serializer>(brushes: &[ConvexBrush], serializer: S) -> Result<S::Ok, S::Error> {
        brushes.iter().map(ConvexBrush::facets).collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ConvexBrush>, D::Error> {
        let brushes: Vec<Vec<Facet>> = Vec::deserialize(deserializer)?;
        if brushes.len() > BRUSHES_MAX {
            return Err(D::Error::custom(format!("{} brushes; the most is {BRUSHES_MAX}", brushes.len())));
        }
        let to_brush = |(brush, facets): (usize, Vec<Facet>)| {
            if facets.len() > BRUSH_SIDES_MAX {
                let found = facets.len();
                return Err(D::Error::custom(format!("brush {brush}: {found} sides; the most is {BRUSH_SIDES_MAX}")));
            }
            ConvexBrush::new(facets).map_err(|source| D::Error::custom(format!("brush {brush}: {source}")))
        };
        brushes.into_iter().enumerate().map(to_brush).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_has_four_walls() {
        let walls: Vec<Wall> = walls_of(&ConvexBrush::cuboid([0.0, 10.0, 20.0], [100.0, 50.0, 70.0])).collect();
        assert_eq!(walls.len(), 4);
        assert!(walls.iter().all(|wall| (wall.bottom, wall.top) == (20.0, 70.0)), "{walls:?}");
        let length: f32 = walls.iter().map(|w| (w.to[0] - w.from[0]).abs() + (w.to[1] - w.from[1]).abs()).sum();
        assert_eq!(length, 280.0);
        assert!(ArenaMap::courtyard().walls().len() > 50);
    }
}

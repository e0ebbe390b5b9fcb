//! A map as the game uses it: solids, spawn points and teleporters.

mod outline;
mod props;
mod shape;
mod text;

use glam::Vec3;
use serde::{Deserialize, Serialize};

use super::brush::{BrushError, ConvexBrush, Facet};
use super::solid::{Solid, SolidHull, SweepContact};
use super::world::CollisionWorld;

pub use props::{BellPlace, Props};
pub use shape::ShapeError;
pub use text::MapTextError;

/// The built-in maps, as names and texts.
pub(crate) const BUILT_IN: &[(&str, &str)] =
    &[("courtyard", include_str!("../maps/courtyard.map")), ("orchard", include_str!("../maps/orchard.map"))];

/// The most brushes of a map, which bounds the time to load a bad file.
pub(crate) const MOST_BRUSHES: usize = 8_192;

/// The most sides of a brush, for the same reason.
pub(crate) const MOST_SIDES: usize = 48;

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
    #[serde(with = "super::vector")]
    pub origin: Vec3,
    /// The view direction in degrees, counter-clockwise from +x.
    pub yaw_deg: f32,
}

impl SpawnPoint {
    /// Raises the place until a standing player fits, by at most the difference between Quake's hull and Half-Life's.
    fn raised_until_free(self, solid: &CollisionWorld) -> Option<SpawnPoint> {
        const MOST_UNITS: u32 = 16;
        (0..=MOST_UNITS).find_map(|up| {
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
    #[serde(with = "super::vector")]
    pub min: Vec3,
    /// The box's highest corner, in units.
    #[serde(with = "super::vector")]
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

/// Serialises brushes, each as its planes.
mod stored_brushes {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::{Serialize, Serializer};

    use super::{BrushError, ConvexBrush, Facet, MOST_BRUSHES, MOST_SIDES};

    /// The reasons why stored brushes are invalid.
    #[derive(Debug, thiserror::Error)]
    enum StoredError {
        #[error("{found} brushes; the most is {MOST_BRUSHES}")]
        TooManyBrushes { found: usize },
        #[error("brush {brush}: {found} sides; the most is {MOST_SIDES}")]
        TooManySides { brush: usize, found: usize },
        #[error("brush {brush}: {source}")]
        Brush { brush: usize, source: BrushError },
    }

    pub(super) fn serialize<S: Serializer>(brushes: &[ConvexBrush], serializer: S) -> Result<S::Ok, S::Error> {
        brushes.iter().map(ConvexBrush::facets).collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ConvexBrush>, D::Error> {
        checked(Vec::deserialize(deserializer)?).map_err(D::Error::custom)
    }

    fn checked(brushes: Vec<Vec<Facet>>) -> Result<Vec<ConvexBrush>, StoredError> {
        if brushes.len() > MOST_BRUSHES {
            return Err(StoredError::TooManyBrushes { found: brushes.len() });
        }
        let to_brush = |(brush, facets): (usize, Vec<Facet>)| {
            if facets.len() > MOST_SIDES {
                return Err(StoredError::TooManySides { brush, found: facets.len() });
            }
            ConvexBrush::new(facets).map_err(|source| StoredError::Brush { brush, source })
        };
        brushes.into_iter().enumerate().map(to_brush).collect()
    }
}

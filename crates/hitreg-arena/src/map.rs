//! A map as the game uses it: what is solid, where players appear, and where teleporters lead.

mod outline;
mod props;
mod shape;
mod text;

use glam::Vec3;
use serde::{Deserialize, Serialize};

use super::brush::{Brush, BrushError, Facet};
use super::solid::{Hull, Solid, Touch};
use super::world::CollisionWorld;

pub use props::{BellPlace, Props};
pub use shape::ShapeError;
pub use text::MapError;

/// The built-in maps by name, as text.
pub(crate) const BUILT_IN: &[(&str, &str)] =
    &[("courtyard", include_str!("../maps/courtyard.map")), ("orchard", include_str!("../maps/orchard.map"))];

/// More brushes than this are refused, so that a bad file cannot keep the machine busy for minutes.
pub(crate) const MOST_BRUSHES: usize = 8_192;

/// More sides than this are refused in one brush, for the same reason.
pub(crate) const MOST_SIDES: usize = 48;

/// A map, ready to be played on. Stored as its brushes and places; what sweeps need is prepared when it is read.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct ArenaMap {
    stored: Stored,
    solid: CollisionWorld,
}

impl ArenaMap {
    /// The built-in map: a walled courtyard with cover, a corridor and a hall behind it, stairs and a ramp to their
    /// roof, a den that one can crawl into, and a teleporter.
    pub fn courtyard() -> ArenaMap {
        ArenaMap::built_in(0)
    }

    /// The other built-in map: an orchard where something is drawn by each of the rendering categories. Trees, a falling
    /// apple under each, a bell, a walker on its round, and arrows for the launcher.
    pub fn orchard() -> ArenaMap {
        ArenaMap::built_in(1)
    }

    fn built_in(number: usize) -> ArenaMap {
        let (name, text) = BUILT_IN[number];
        ArenaMap::parse(name, text.as_bytes()).expect("the built-in maps parse: a test holds it")
    }

    /// Reads the text of a Quake `.map` file, with faces of the classic or the Valve 220 kind.
    ///
    /// Solid are the brushes of `worldspawn`, `func_wall`, `func_detail` and `func_group`. Players appear at
    /// `info_player_deathmatch` (or `info_player_start`, where there is none of those), whose origin is the middle of the
    /// standing hull; one that is set a little lower, as for Quake's hull, is raised. A `trigger_teleport` leads to
    /// the `info_teleport_destination` that its `target` names. `info_waypoint` shows bots where one can be.
    /// `prop_tree`, `prop_apple`, `prop_bell` (with a `length_ms`) and `prop_post` are its [`Props`]; `"launcher"
    /// "arrows"` in `worldspawn` loads the launcher with arrows.
    ///
    /// # Errors
    /// See [`MapError`].
    pub fn parse(name: &str, text: &[u8]) -> Result<ArenaMap, MapError> {
        text::parse(name, text)
    }

    /// What the map is called.
    pub fn name(&self) -> &str {
        &self.stored.name
    }

    /// Everything that is solid, in the order in which it was read.
    pub fn brushes(&self) -> &[Brush] {
        &self.stored.brushes
    }

    /// Where players appear; there is at least one.
    pub fn spawn_points(&self) -> &[Place] {
        &self.stored.spawn_points
    }

    /// The teleporters.
    pub fn teleporters(&self) -> &[Teleporter] {
        &self.stored.teleporters
    }

    /// Places that bots walk between, in units; the middle of a standing hull.
    pub fn waypoints(&self) -> &[[f32; 3]] {
        &self.stored.waypoints
    }

    /// What else there is on the map.
    pub fn props(&self) -> &Props {
        &self.stored.props
    }

    /// What stops hulls and bullets.
    pub fn solid(&self) -> &CollisionWorld {
        &self.solid
    }

    fn new(stored: Stored) -> ArenaMap {
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

/// A place to appear at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The middle of the standing hull, in units.
    #[serde(with = "super::vector")]
    pub origin: Vec3,
    /// Where one looks, in degrees, counter-clockwise from +x.
    pub yaw_deg: f32,
}

impl Place {
    /// Raises the place to where a standing player fits, as far as the difference between Quake's hull and Half-Life's.
    fn raised_until_free(self, solid: &CollisionWorld) -> Option<Place> {
        const MOST_UNITS: u32 = 16;
        (0..=MOST_UNITS).find_map(|up| {
            let origin = self.origin + Vec3::Z * up as f32;
            (solid.inside(Hull::Standing, origin) == Touch::Nothing).then_some(Place { origin, ..self })
        })
    }
}

/// A box that sends whoever touches it somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Teleporter {
    /// The box's least corner, in units.
    #[serde(with = "super::vector")]
    pub min: Vec3,
    /// The box's greatest corner, in units.
    #[serde(with = "super::vector")]
    pub max: Vec3,
    /// Where it leads.
    pub to: Place,
}

impl Teleporter {
    /// Whether a hull at `origin` reaches into the box.
    pub fn holds(&self, hull: Hull, origin: Vec3) -> bool {
        let half = hull.half_extent_units();
        (origin + half).cmpge(self.min).all() && (origin - half).cmple(self.max).all()
    }
}

/// What a map is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredCells", into = "StoredCells")]
struct Stored {
    name: String,
    brushes: Vec<Brush>,
    spawn_points: Vec<Place>,
    teleporters: Vec<Teleporter>,
    waypoints: Vec<[f32; 3]>,
    #[serde(default, skip_serializing_if = "Props::is_empty")]
    props: Props,
}

impl TryFrom<Stored> for ArenaMap {
    type Error = MapError;
    fn try_from(stored: Stored) -> Result<ArenaMap, MapError> {
        if stored.spawn_points.is_empty() {
            return Err(MapError::NoSpawnPoint);
        }
        if !stored.props.are_few() {
            return Err(MapError::TooManyProps);
        }
        Ok(ArenaMap::new(stored))
    }
}

impl From<ArenaMap> for Stored {
    fn from(map: ArenaMap) -> Stored {
        map.stored
    }
}

/// The same with each brush as its planes.
#[derive(Serialize, Deserialize)]
struct StoredCells {
    name: String,
    brushes: Vec<Vec<Facet>>,
    spawn_points: Vec<Place>,
    teleporters: Vec<Teleporter>,
    waypoints: Vec<[f32; 3]>,
    #[serde(default, skip_serializing_if = "Props::is_empty")]
    props: Props,
}

/// Why stored brushes are none.
#[derive(Debug, thiserror::Error)]
enum StoredError {
    #[error("{found} brushes; the most is {MOST_BRUSHES}")]
    TooManyBrushes { found: usize },
    #[error("brush {brush}: {found} sides; the most is {MOST_SIDES}")]
    TooManySides { brush: usize, found: usize },
    #[error("brush {brush}: {source}")]
    Brush { brush: usize, source: BrushError },
}

impl TryFrom<StoredCells> for Stored {
    type Error = StoredError;
    fn try_from(cells: StoredCells) -> Result<Stored, StoredError> {
        if cells.brushes.len() > MOST_BRUSHES {
            return Err(StoredError::TooManyBrushes { found: cells.brushes.len() });
        }
        let to_brush = |(brush, facets): (usize, Vec<Facet>)| {
            if facets.len() > MOST_SIDES {
                return Err(StoredError::TooManySides { brush, found: facets.len() });
            }
            Brush::new(facets).map_err(|source| StoredError::Brush { brush, source })
        };
        let brushes = cells.brushes.into_iter().enumerate().map(to_brush).collect::<Result<_, _>>()?;
        let StoredCells { name, spawn_points, teleporters, waypoints, props, .. } = cells;
        Ok(Stored { name, brushes, spawn_points, teleporters, waypoints, props })
    }
}

impl From<Stored> for StoredCells {
    fn from(stored: Stored) -> StoredCells {
        let brushes = stored.brushes.iter().map(|brush| brush.facets().to_vec()).collect();
        let Stored { name, spawn_points, teleporters, waypoints, props, .. } = stored;
        StoredCells { name, brushes, spawn_points, teleporters, waypoints, props }
    }
}

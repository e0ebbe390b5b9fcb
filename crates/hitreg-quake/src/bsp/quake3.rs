//! Maps of Quake III's engine (BSP version 46) and the collision of boxes with them. Brushes and patches stop a box;
//! patches are curved surfaces, cut into flat pieces. The rules are those of the public ioquake3 sources (cm_load.c,
//! cm_trace.c, cm_patch.c).

mod archive;
mod bsp;
mod facets;
mod grid;
mod level;
mod sweep;
#[cfg(test)]
mod tests;
mod winding;

pub use archive::{check_maps, map_from};
pub use bsp::Quake3MapError;
pub use level::Quake3Map;
pub(crate) use level::{SubmodelIndex, contents, surface};
pub(crate) use sweep::{BoxSweep, SweepTrace};

//! Maps of id's engines, as their compilers write them, and collision against them. Both formats begin with a table of
//! lumps, which one reader handles. Quake maps ([`quake`], version 29) have trees of planes for one body size. Quake
//! III maps ([`quake3`], version 46) have brushes and curved surfaces for boxes of any size.

mod lumps;
pub(crate) mod quake;
pub(crate) mod quake3;
#[cfg(test)]
pub(crate) mod tests;

pub use lumps::LumpError;

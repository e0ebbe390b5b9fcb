//! Maps as the compilers of id's engines write them: what they consist of, and what stops that which moves through them. The
//! table of lumps that both begin with is read once; trees of planes for a body of one size ([`quake`], version 29) and
//! brushes and curved surfaces for a box of any ([`quake3`], version 46) are other things.

mod lumps;
pub(crate) mod quake;
pub(crate) mod quake3;
#[cfg(test)]
pub(crate) mod testing;

pub use lumps::LumpError;

//! The games of id Software in hitreg: [`quakeworld`] and [`quake3`], the importers of their recordings ([`mod@import`]) and the
//! network protocols that a proxy understands ([`protocols`]).

mod bsp;
pub mod import;
pub mod protocols;
pub mod quake3;
pub mod quakeworld;

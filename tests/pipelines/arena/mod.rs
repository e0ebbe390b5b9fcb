//! The built-in game: its map, its saved worlds, its bots.

mod brawl;
mod course;
mod maps;
mod shots;
mod worlds;

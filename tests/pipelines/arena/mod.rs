//! The built-in game from outside: its map can be played on, its world survives saving, its bots fight.

mod brawl;
mod course;
mod maps;
mod shots;
mod worlds;

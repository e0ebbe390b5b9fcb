//! The built-in game from outside: its map can be played on, its world survives saving, its bots fight.

#[path = "arena/brawl.rs"]
mod brawl;
#[path = "arena/course.rs"]
mod course;
#[path = "arena/maps.rs"]
mod maps;
#[path = "arena/shots.rs"]
mod shots;
#[path = "arena/worlds.rs"]
mod worlds;

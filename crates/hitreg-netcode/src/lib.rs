//! The netcode of a session: a [`game`], its [`settings`], the [`server`] and [`client`] pipelines, links between
//! them, and [`replay`].
//!
//! Pipelines do no I/O: time and datagrams come in as arguments, and they return datagrams and results. Server and
//! client never import each other.

pub mod client;
pub mod game;
pub mod geometry;
pub mod history;
pub mod info;
pub mod link;
pub mod pacing;
pub mod packet;
pub mod pipeline;
pub mod protocol;
pub mod replay;
pub mod score;
pub mod server;
pub mod session;
pub mod settings;
pub mod state;
pub mod wire;

/// Vectors and quaternions, as bodies have them.
pub use glam;
/// Usercmds, for [`game::input!`].
pub use hitreg_log::usercmd;

/// Appends a value to a queue of bounded length. Beyond `most` values, removes the oldest one and returns it.
#[inline]
pub(crate) fn push_bounded<T>(queue: &mut std::collections::VecDeque<T>, value: T, most: usize) -> Option<T> {
    queue.push_back(value);
    if queue.len() > most { queue.pop_front() } else { None }
}

/// The program in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
#[path = "tests/rink.rs"]
mod rink;

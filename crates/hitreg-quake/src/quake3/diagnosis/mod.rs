//! Finds the causes of corrections from what the server sent, what reproduces its state, and what blocked the player.

mod explain;

pub(crate) use explain::explain;

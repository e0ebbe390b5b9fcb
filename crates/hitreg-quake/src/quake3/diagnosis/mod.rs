//! Why a prediction missed: what the server told of it, what reproduces its state, what was in the way.

mod explain;

pub(crate) use explain::explain;

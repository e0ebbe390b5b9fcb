//! Finds the causes of corrections from the recording's events, the contacts, and what reproduces the recorded state.

mod explain;
mod hypotheses;
mod missed;
#[cfg(test)]
mod tests;

pub(crate) use explain::explain;
pub(crate) use hypotheses::lies_still;
pub(crate) use missed::MissedPrediction;

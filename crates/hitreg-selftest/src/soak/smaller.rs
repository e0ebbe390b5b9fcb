//! Makes a plan that broke something smaller, for as long as it breaks the same.

use super::Broken;
use super::plan::{Fault, Limits, Plan};

/// No session is made shorter than that, in ms.
const SHORTEST_MS: u32 = 100;

/// Less of a seed's plan that breaks the same property: without the faults that it does not need, with the fewest players,
/// as short as halving makes it. With what breaks in the end.
pub fn smaller(
    breaks: &dyn Fn(&Plan) -> Option<Broken>,
    seed: u64,
    limits: &Limits,
    broken: Broken,
) -> (Limits, Broken) {
    let (mut limits, mut broken) = (limits.clone(), broken);
    loop {
        let before = limits.clone();
        for candidate in candidates(seed, &limits) {
            let found = breaks(&Plan::of(seed, &candidate)).filter(|found| found.property == broken.property);
            if let Some(found) = found {
                (limits, broken) = (candidate, found);
                break;
            }
        }
        if limits == before {
            return (limits, broken);
        }
    }
}

/// What a plan could lose next, the most telling first.
fn candidates(seed: u64, limits: &Limits) -> Vec<Limits> {
    let plan = Plan::of(seed, limits);
    let without = |fault: &Fault| {
        let mut less = limits.clone();
        less.without.insert(*fault);
        less
    };
    let mut candidates: Vec<Limits> = plan.faults.iter().map(without).collect();
    let players = plan.players.len();
    candidates.extend((1..players).map(|fewer| Limits { players: Some(fewer), ..limits.clone() }));
    let shorter = [plan.length_ms / 2, plan.length_ms * 3 / 4].into_iter().filter(|ms| *ms >= SHORTEST_MS);
    candidates.extend(shorter.map(|ms| Limits { length_ms: Some(ms), ..limits.clone() }));
    candidates
}

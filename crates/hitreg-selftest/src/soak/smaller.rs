//! Reduces a plan that breaks a property, as long as it breaks the same property.

use super::BrokenProperty;
use super::plan::{PlanLimits, PlannedFault, SoakPlan};

/// The shortest session, in ms.
const SHORTEST_MS: u32 = 100;

/// Returns restrictions under which a seed's plan breaks the same property, and the failure. It removes faults that are
/// not needed, reduces players to the minimum, and halves the length as often as possible.
pub fn smaller(
    breaks: &dyn Fn(&SoakPlan) -> Option<BrokenProperty>,
    seed: u64,
    limits: &PlanLimits,
    broken: BrokenProperty,
) -> (PlanLimits, BrokenProperty) {
    let (mut limits, mut broken) = (limits.clone(), broken);
    loop {
        let before = limits.clone();
        for candidate in candidates(seed, &limits) {
            let found = breaks(&SoakPlan::of(seed, &candidate)).filter(|found| found.property == broken.property);
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

/// Returns the next restrictions to try, the most informative first.
fn candidates(seed: u64, limits: &PlanLimits) -> Vec<PlanLimits> {
    let plan = SoakPlan::of(seed, limits);
    let without = |fault: &PlannedFault| {
        let mut less = limits.clone();
        less.without.insert(*fault);
        less
    };
    let mut candidates: Vec<PlanLimits> = plan.faults.iter().map(without).collect();
    let players = plan.players.len();
    candidates.extend((1..players).map(|fewer| PlanLimits { players: Some(fewer), ..limits.clone() }));
    let shorter = [plan.length_ms / 2, plan.length_ms * 3 / 4].into_iter().filter(|ms| *ms >= SHORTEST_MS);
    candidates.extend(shorter.map(|ms| PlanLimits { length_ms: Some(ms), ..limits.clone() }));
    candidates
}

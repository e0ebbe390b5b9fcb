//! Sessions from seeds, checked for the properties of every session: a fixed number of seeds, and all seeds that ever
//! failed.

use hitreg_selftest::soak::{
    BrokenProperty, PlanLimits, PlannedFault, SoakCoverage, SoakMaps, SoakPlan, SoakProperty, run, smaller,
};

/// The number of seeds. `hitreg soak` runs any number.
const SEEDS: u64 = 60;

#[test]
fn every_property_holds_for_these_seeds() {
    let (stage, mut exercised) = (SoakMaps::default(), SoakCoverage::default());
    let kept = include_str!("../../fixtures/soak/seeds.txt").lines().filter(|line| !line.starts_with('#'));
    let kept = kept.map(|line| {
        line.split(' ').next().and_then(|seed| seed.parse().ok()).expect("a seed and its violated property")
    });
    for seed in kept.chain(1..=SEEDS) {
        match run(&stage, &SoakPlan::of(seed, &PlanLimits::default())) {
            Ok(found) => exercised.add(&found),
            Err(BrokenProperty { property, detail }) => {
                panic!("hitreg soak --seed {seed}: {}: {detail}", property.name())
            }
        }
    }
    // A property without a check would show nothing. Shrinking is slow and therefore rare.
    let never = |property: &&SoakProperty| **property != SoakProperty::Shrink && !exercised.held.contains_key(property);
    assert_eq!(SoakProperty::ALL.iter().find(never), None, "{exercised:?}");
}

#[test]
fn a_seed_gives_the_same_result_again() {
    let stage = SoakMaps::default();
    for seed in [2, 3] {
        let plan = SoakPlan::of(seed, &PlanLimits::default());
        assert_eq!(run(&stage, &plan), run(&stage, &plan));
    }
}

/// A planted fault that needs two players and an outage.
#[test]
fn a_failing_plan_is_shrunk_while_it_fails_alike() {
    let seed = (1..).find(|seed| {
        let plan = SoakPlan::of(*seed, &PlanLimits::default());
        plan.players.len() == 4
            && !plan.faults.contains(&PlannedFault::Lies)
            && plan.faults.len() > 4
            && plan.faults.contains(&PlannedFault::Outages)
    });
    let breaks = |plan: &SoakPlan| {
        let shows = plan.players.len() >= 2 && plan.faults.contains(&PlannedFault::Outages) && plan.length_ms >= 300;
        shows.then(|| BrokenProperty { property: SoakProperty::Replay, detail: format!("{} ms", plan.length_ms) })
    };
    let seed = seed.expect("a seed of many");
    let broken = breaks(&SoakPlan::of(seed, &PlanLimits::default())).expect("it breaks");
    let (limits, broken) = smaller(&|plan| breaks(plan), seed, &PlanLimits::default(), broken);
    let plan = SoakPlan::of(seed, &limits);
    assert_eq!((plan.players.len(), plan.faults.len(), broken), (2, 1, breaks(&plan).expect("it still breaks")));
    assert!(plan.length_ms < 600, "{}", plan.length_ms);
}

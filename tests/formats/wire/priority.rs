//! If a snapshot has no room for all entities, each is still sent in time, and no state is older than the one before.

use std::collections::BTreeMap;

use glam::Vec3;
use hitreg::units::{EntityId, Tick};
use hitreg::wire::OVERTAKES_AFTER;
use proptest::prelude::*;

use super::runners::{Runner, snapshot};
use super::snapshots::{LinkedPair, LossyLink};

/// A crowd that changes in each tick. `frags` counts the ticks, so that states can be ordered.
fn crowd(count: u16, seq: u32, busy: u16) -> Vec<(EntityId, Runner)> {
    (0..count)
        .map(|i| {
            let noise = seq.wrapping_mul(2_654_435_761).wrapping_add(u32::from(i) * 40_503);
            let far = Vec3::new(f32::from(i) * 700.0, 0.0, 0.0);
            let wild = Vec3::new(f32::from_bits(noise & 0x3fff_ffff | 0x3000_0000), seq as f32 * 0.37, 0.1);
            let mut body = Runner { origin: far + wild, frags: seq as i32, alive: true, ..Runner::default() };
            if i < busy {
                // Some bodies always have more important changes.
                body.teleports = seq;
                body.controller = seq as u16;
            }
            (EntityId(i), body)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn changes_are_sent_in_time_and_in_order(
        seed in any::<u64>(), count in 2u16..90, busy in 0u16..90, budget in 300usize..700, loss in 0.0f64..0.4,
        delay in 1u64..10,
    ) {
        let mut pair = LinkedPair::new(count, LossyLink::new(seed, loss, delay));
        let mut waits: BTreeMap<EntityId, u32> = BTreeMap::new();
        let mut newest = 0;
        let mut shown: BTreeMap<EntityId, i32> = BTreeMap::new();
        for seq in 1..400 {
            let sent = snapshot(seq, Tick(seq), crowd(count, seq, busy));
            let (encoded, arrived) = pair.step(seq, &sent, budget);
            // A snapshot always contains the client's own body.
            prop_assert_eq!(encoded.carried.first(), Some(&EntityId(0)));
            for id in &encoded.carried {
                waits.insert(*id, 0);
            }
            for id in &encoded.deferred {
                let waited = waits.entry(*id).or_default();
                *waited += 1;
                // One of the others is the client's own body, which is sent each time.
                let bound = OVERTAKES_AFTER + u32::from(count) - 2;
                prop_assert!(*waited <= bound, "entity {} waited {} packets of {} allowed", id, waited, bound);
            }
            prop_assert_eq!(encoded.carried.len() + encoded.deferred.len(), usize::from(count));
            for got in arrived.iter().filter(|got| got.seq.0 > newest).cloned().collect::<Vec<_>>() {
                newest = got.seq.0.max(newest);
                for (id, body) in &got.frame.entities {
                    let before = shown.insert(*id, body.frags).unwrap_or(0);
                    prop_assert!(body.frags >= before, "entity {} went from {} to {}", id, before, body.frags);
                    prop_assert!(body.frags as u32 <= got.seq.0);
                }
            }
        }
    }
}

#[test]
fn near_and_important_entities_are_sent_more_often() {
    let count = 60;
    let mut pair = LinkedPair::new(count, LossyLink::new(1, 0.0, 1));
    let mut sent_of = vec![0u32; usize::from(count)];
    for seq in 1..1_000 {
        let snapshot = snapshot(seq, Tick(seq), crowd(count, seq, 0));
        let (encoded, _) = pair.step(seq, &snapshot, 400);
        encoded.carried.iter().for_each(|id| sent_of[usize::from(id.0)] += 1);
    }
    let part = |range: std::ops::Range<usize>| sent_of[range].iter().sum::<u32>();
    assert_eq!(sent_of[0], 999);
    assert!(part(1..11) > part(50..60), "near {} far {}", part(1..11), part(50..60));
    assert!(sent_of.iter().all(|n| *n > 999 / (OVERTAKES_AFTER + 60)));
}

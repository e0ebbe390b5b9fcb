use super::*;
use crate::rink::Skater;
use crate::wire::{DecodeOutcome, Receiver};
use glam::Vec3;
use hitreg_log::rng::Rng;
use hitreg_log::units::{CommandSeq, Seed, Tick};

#[test]
fn an_entity_is_tracked_until_the_client_acks_its_removal() {
    let (mut sender, mut states) = (Sender::<Skater>::new(PlayerId(0), 1), SharedStates::default());
    let mut tracked = Vec::new();
    for (seq, entities, is_acked) in [(1, 3, true), (2, 1, false), (3, 1, true), (4, 1, false)] {
        let entities = (0..entities).map(|id| (EntityId(id), Skater::default())).collect();
        let frame = Frame { tick: Tick(seq), server_time: Micros::ZERO, entities };
        let snapshot = Snapshot::new(SnapshotSeq(seq), CommandSeq(0), Arc::new(frame));
        sender.encode(&snapshot, MESSAGE_BYTES_MAX, &mut states).expect("there is room");
        if is_acked {
            sender.handle_ack(&ReceivedSet { newest: SnapshotSeq(seq), before: 0 });
        }
        tracked.push(sender.tracks.len());
    }
    assert_eq!(tracked, [3, 3, 3, 1]);
}

/// Entities move, rest, disappear and appear again, alone and together, with room for few of them.
#[test]
fn a_client_that_loses_nothing_has_the_frames_that_the_sender_names() {
    let mut rng = Rng::new(Seed(1), 0);
    let (mut sender, mut receiver) = (Sender::<Skater>::new(PlayerId(0), 8), Receiver::default());
    let mut skaters = [Skater::default(); 90];
    let mut acks = VecDeque::from([receiver.received(); 3]);
    let [mut whole, mut late_removals] = [0, 0];
    for seq in 1..600 {
        for (id, skater) in skaters.iter_mut().enumerate() {
            let is_moving = if seq % 200 < 150 { id % 3 > 0 } else { id == 0 };
            skater.origin += Vec3::splat(f32::from(u8::from(is_moving)) * rng.signed_f32());
            skater.alive ^= id > 0 && is_moving && rng.chance(0.05);
        }
        let is_there = |(id, skater): &(EntityId, Skater)| id.0 == 0 || !skater.alive && seq % 50 > 10;
        let there = (0..).map(EntityId).zip(skaters).filter(is_there).collect();
        let frame = Frame { tick: Tick(seq), server_time: Micros(seq.into()), entities: there };
        let snapshot = Snapshot::new(SnapshotSeq(seq), CommandSeq(0), Arc::new(frame));
        let encoded = sender.encode(&snapshot, 120, &mut SharedStates::default()).expect("room for one");
        let decoded = receiver.decode(&encoded.datagram, CommandSeq(0)).expect("the sender encoded it");
        let DecodeOutcome::New(received) = decoded else { panic!("{decoded:?}") };
        assert_eq!(encoded.frame, received.snapshot.frame, "snapshot {seq}");
        assert_eq!(Arc::ptr_eq(&encoded.frame, &snapshot.frame), encoded.frame == snapshot.frame);
        whole += usize::from(encoded.deferred.is_empty());
        late_removals += encoded.deferred.iter().filter(|id| snapshot.frame.get(**id).is_none()).count();
        acks.push_back(receiver.received());
        sender.handle_ack(&acks.pop_front().expect("three are on their way"));
    }
    assert!(whole > 20 && late_removals > 20, "{whole} {late_removals}");
}

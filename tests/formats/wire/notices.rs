//! Warnings and effects arrive at most once.

use glam::Vec3;
use hitreg::game::Effect;
use hitreg::units::{CommandSeq, EntityId, PlayerId};
use hitreg::wire::{DecodeOutcome, OutOfSeqWarning, Receiver, Sender, SharedStates, Wrapping16};

use super::runners::{Runner, RunnerCrowd};

#[test]
fn warnings_definitions_and_waiting_effects_arrive() {
    let field = RunnerCrowd::new(1, 3);
    let mut sender: Sender<Runner> = Sender::new(PlayerId(1), 2);
    let mut receiver: Receiver<Runner> = Receiver::default();
    let warning = OutOfSeqWarning { index: Wrapping16(65_530), difference: -7 };
    sender.warn(warning);
    let mut snapshot = field.snapshot(1);
    let effect = |i: u8| Effect { kind: i, entity: EntityId(2), at: Vec3::splat(f32::from(i)), predictable: false };
    snapshot.effects = (0..200).map(effect).collect();
    let first = sender.encode(&snapshot, 1200, &mut SharedStates::default()).expect("the budget holds all bodies");
    assert!(first.effects_waiting > 0 && first.deferred.is_empty());
    let Ok(DecodeOutcome::New(got)) = receiver.decode(&first.datagram, CommandSeq(0)) else { panic!("it is new") };
    assert_eq!((got.warnings, got.snapshot.helper_ms), (vec![warning], None));
    // Players 1 and 2 have connections; the third body is a bot.
    assert_eq!(got.definitions, [(EntityId(1), Some(2)), (EntityId(0), Some(1)), (EntityId(2), None)]);
    let mut effects = got.snapshot.effects.clone();
    for seq in 2..10 {
        sender.handle_ack(&receiver.received());
        let next = sender
            .encode(&field.snapshot(seq), 1200, &mut SharedStates::default())
            .expect("the budget holds all bodies");
        let Ok(DecodeOutcome::New(got)) = receiver.decode(&next.datagram, CommandSeq(0)) else { panic!("it is new") };
        assert_eq!(got.warnings, []);
        effects.extend(got.snapshot.effects.iter());
    }
    assert_eq!(effects, (0..200).map(effect).collect::<Vec<_>>());
}

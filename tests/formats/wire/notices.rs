//! Notices arrive once and in order; warnings and effects arrive at most once.

use glam::Vec3;
use hitreg::game::Effect;
use hitreg::rng::Rng;
use hitreg::units::{CommandSeq, EntityId, PlayerId, Seed};
use hitreg::wire::{
    DecodeOutcome, NOTICES_MAX, Notice, NoticeError, OutOfSeqWarning, Receiver, Sender, SharedStates, TEXT_BYTES_MAX,
    Wrapping16,
};

use super::runners::{Runner, RunnerCrowd};
use super::snapshots::LossyLink;

fn notice(i: u16) -> Notice {
    let text = "ö".repeat(usize::from(i) % 64);
    match i % 3 {
        0 => Notice::RequestAck { request: Wrapping16(i), answer: vec![i as u8; usize::from(i) % 128] },
        1 => Notice::ChatOoc { sender: i, channel: i as u8, text },
        _ => Notice::ChatIc { entity: EntityId(i), style: 3, language: i as u8, text },
    }
}

#[test]
fn notices_arrive_once_and_in_order_despite_losses() {
    for (seed, loss) in [(1, 0.0), (2, 0.3), (3, 0.7)] {
        let mut field = RunnerCrowd::new(seed, 8);
        let mut sender: Sender<Runner> = Sender::new(PlayerId(0), 8);
        let mut receiver: Receiver<Runner> = Receiver::default();
        let mut line = LossyLink::new(seed, loss, 6);
        let mut rng = Rng::new(Seed(seed), 5);
        let (mut sent, mut heard) = (0, Vec::new());
        for now in 1..4_000 {
            field.step();
            line.arrived_up(now).iter().for_each(|received| sender.handle_ack(received));
            if sent < 300 && rng.chance(0.1) && sender.tell(notice(sent)).is_ok() {
                sent += 1;
            }
            let encoded = sender
                .encode(&field.snapshot(now), 600, &mut SharedStates::default())
                .expect("the budget holds one body");
            line.send_down(now, &encoded.datagram);
            for datagram in line.arrived_down(now) {
                let decoded = receiver.decode(&datagram, CommandSeq(now)).expect("the server sent it");
                let DecodeOutcome::New(received) = decoded else { continue };
                heard.extend(received.notices);
            }
            line.send_up(now, receiver.received());
        }
        assert_eq!(sent, 300, "loss {loss}");
        assert_eq!(heard, (0..sent).map(notice).collect::<Vec<_>>(), "loss {loss}");
    }
}

#[test]
fn notice_numbers_wrap() {
    let mut field = RunnerCrowd::new(1, 1);
    let mut sender: Sender<Runner> = Sender::new(PlayerId(0), 1);
    let mut receiver: Receiver<Runner> = Receiver::default();
    let mut heard = 0u32;
    for now in 1..1_400 {
        field.step();
        for _ in 0..50 {
            sender.tell(Notice::ChatOoc { sender: 0, channel: 0, text: String::new() }).expect("all are acked");
        }
        let encoded =
            sender.encode(&field.snapshot(now), 1200, &mut SharedStates::default()).expect("the budget holds one body");
        let decoded = receiver.decode(&encoded.datagram, CommandSeq(now)).expect("the server sent it");
        let DecodeOutcome::New(received) = decoded else { panic!("{decoded:?}") };
        heard += received.notices.len() as u32;
        sender.handle_ack(&receiver.received());
    }
    assert_eq!(heard, 1_399 * 50);
    assert!(heard > 65_536);
}

#[test]
fn too_long_or_too_many_notices_are_refused() {
    let mut sender: Sender<Runner> = Sender::new(PlayerId(0), 1);
    let long = Notice::ChatOoc { sender: 1, channel: 0, text: "x".repeat(TEXT_BYTES_MAX + 1) };
    assert_eq!(sender.tell(long), Err(NoticeError::TooLong(TEXT_BYTES_MAX + 1)));
    for i in 0..NOTICES_MAX {
        assert_eq!(sender.tell(notice(i as u16)), Ok(()));
    }
    assert_eq!(sender.tell(notice(0)), Err(NoticeError::Full));
}

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

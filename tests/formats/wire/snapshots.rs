//! Snapshots arrive unchanged, bit for bit, despite lost, late, doubled and truncated datagrams.

use std::collections::BTreeMap;

use glam::Vec3;
use hitreg::game::{Body, Effect};
use hitreg::packet::Snapshot;
use hitreg::rng::Rng;
use hitreg::units::{CommandSeq, EntityId, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg::wire::{DecodeOutcome, EncodeError, EncodedSnapshot, ReceivedSet, Receiver, Sender, SharedStates};
use proptest::prelude::*;

use super::runners::{Runner, RunnerCrowd, bits, cells, snapshot};

/// A link in both directions, in steps of a tick.
pub(crate) struct LossyLink {
    rng: Rng,
    pub(crate) loss: f64,
    /// The longest delay, in ticks.
    pub(crate) delay: u64,
    down: Vec<(u32, Vec<u8>)>,
    up: Vec<(u32, ReceivedSet)>,
}

impl LossyLink {
    pub(crate) fn new(seed: u64, loss: f64, delay: u64) -> LossyLink {
        LossyLink { rng: Rng::new(Seed(seed), 1), loss, delay, down: Vec::new(), up: Vec::new() }
    }

    pub(crate) fn send_down(&mut self, now: u32, datagram: &[u8]) {
        // Some datagrams arrive twice.
        for _ in 0..=u32::from(self.rng.chance(0.05)) {
            if !self.rng.chance(self.loss) {
                self.down.push((now + 1 + self.rng.below(self.delay) as u32, datagram.to_vec()));
            }
        }
    }

    pub(crate) fn send_up(&mut self, now: u32, received: ReceivedSet) {
        if !self.rng.chance(self.loss) {
            self.up.push((now + 1 + self.rng.below(self.delay) as u32, received));
        }
    }

    pub(crate) fn arrived_down(&mut self, now: u32) -> Vec<Vec<u8>> {
        let (arrived, on_the_way) = std::mem::take(&mut self.down).into_iter().partition(|(at, _)| *at <= now);
        self.down = on_the_way;
        arrived.into_iter().map(|(_, datagram): (u32, _)| datagram).collect()
    }

    pub(crate) fn arrived_up(&mut self, now: u32) -> Vec<ReceivedSet> {
        let (arrived, on_the_way) = std::mem::take(&mut self.up).into_iter().partition(|(at, _)| *at <= now);
        self.up = on_the_way;
        arrived.into_iter().map(|(_, received): (u32, _)| received).collect()
    }
}

/// A server's sender, a client's receiver, and the link.
pub(crate) struct LinkedPair {
    pub(crate) sender: Sender<Runner>,
    pub(crate) receiver: Receiver<Runner>,
    pub(crate) line: LossyLink,
    states: SharedStates<Runner>,
}

impl LinkedPair {
    pub(crate) fn new(players: u16, line: LossyLink) -> LinkedPair {
        let (sender, receiver) = (Sender::new(PlayerId(0), players), Receiver::default());
        LinkedPair { sender, receiver, line, states: SharedStates::default() }
    }

    /// Sends a snapshot. Returns the sent snapshot and the arrived frames.
    pub(crate) fn step(
        &mut self,
        now: u32,
        sent: &Snapshot<Runner>,
        budget: usize,
    ) -> (EncodedSnapshot<Runner>, Vec<Snapshot<Runner>>) {
        for received in self.line.arrived_up(now) {
            self.sender.handle_ack(&received);
        }
        let sent = Snapshot { helper_ms: Some(-5), ..sent.clone() };
        let encoded = self.sender.encode(&sent, budget, &mut self.states).expect("the budget holds one body");
        assert!(encoded.datagram.len() + 4 <= budget.min(1200));
        self.line.send_down(now, &encoded.datagram);
        let mut arrived = Vec::new();
        for datagram in self.line.arrived_down(now) {
            match self.receiver.decode(&datagram, CommandSeq(now)).expect("the server sent it") {
                DecodeOutcome::New(received) => {
                    assert_eq!(received.snapshot.helper_ms, Some(-5));
                    arrived.push(received.snapshot);
                }
                DecodeOutcome::Duplicate | DecodeOutcome::TooOld => {}
            }
        }
        self.line.send_up(now, self.receiver.received());
        (encoded, arrived)
    }
}

/// Changes the players: some leave, some return, some have impossible values, some rest.
fn randomize_players(rng: &mut Rng, base: &Snapshot<Runner>) -> Snapshot<Runner> {
    let phase = base.seq.0 / 40;
    let mut entities = base.frame.entities.clone();
    entities.retain(|(id, _)| id.0 == 0 || !(u32::from(id.0) + phase).is_multiple_of(5));
    for (_, body) in &mut entities {
        if rng.chance(0.02) {
            body.origin.x = [f32::NAN, -0.0, f32::INFINITY, f32::from_bits(1)][rng.below(4) as usize];
            body.teleports += 1;
        }
        if rng.chance(0.1) {
            body.health = rng.next_u64() as i32;
        }
    }
    let mut next = snapshot(base.seq.0, base.frame.tick, entities);
    next.choked = if rng.chance(0.1) { rng.below(256) as u8 } else { 0 };
    next.ack = CommandSeq(base.frame.tick.0.saturating_sub(rng.below(20) as u32));
    for i in 0..rng.below(3) {
        let near = next.frame.entities[rng.below(next.frame.entities.len() as u64) as usize].1.origin;
        let at = [near, near + Vec3::Z, Vec3::new(1.0, -2.5, 1e9)][rng.below(3) as usize];
        let entity = EntityId(rng.below(40) as u16);
        next.effects.push(Effect { kind: i as u8, entity, at, predictable: rng.chance(0.5) });
    }
    next
}

fn effect_bits(effects: &[Effect]) -> Vec<(u8, EntityId, [u32; 3], bool)> {
    effects.iter().map(|e| (e.kind, e.entity, e.at.to_array().map(f32::to_bits), e.predictable)).collect()
}

#[test]
fn snapshots_with_enough_room_arrive_bit_for_bit() {
    for (seed, loss, delay) in [(1, 0.0, 1), (2, 0.2, 1), (3, 0.05, 12), (4, 0.6, 8), (5, 0.95, 5)] {
        let mut field = RunnerCrowd::new(seed, 20);
        let mut rng = Rng::new(Seed(seed), 9);
        let mut pair = LinkedPair::new(20, LossyLink::new(seed, loss, delay));
        let mut sent = BTreeMap::new();
        let mut compared = 0;
        for seq in 1..2_000 {
            field.step();
            let snapshot = randomize_players(&mut rng, &field.snapshot(seq));
            sent.insert(snapshot.seq, snapshot.clone());
            let (encoded, arrived) = pair.step(seq, &snapshot, 1200);
            if !encoded.deferred.is_empty() {
                // Without acks, snapshots are complete and may exceed the limit, so the test then expects nothing.
                assert!(loss > 0.5 || seq < 30, "deferred {:?} at {seq}", encoded.deferred);
                sent.remove(&snapshot.seq);
            }
            for got in arrived {
                let Some(was) = sent.get(&got.seq) else { continue };
                assert_eq!(bits(&got.frame), bits(&was.frame), "snapshot {} at loss {loss}", got.seq);
                assert_eq!(effect_bits(&got.effects), effect_bits(&was.effects));
                assert_eq!((got.ack, got.choked), (was.ack, was.choked));
                compared += 1;
            }
        }
        assert!(f64::from(compared) > 1_800.0 * (1.0 - loss) - 40.0, "compared {compared} at loss {loss}");
    }
}

#[test]
fn sixteen_bit_numbers_wrap() {
    let mut field = RunnerCrowd::new(1, 2);
    let mut pair = LinkedPair::new(2, LossyLink::new(1, 0.3, 6));
    let mut compared = 0;
    for step in 0..3_000 {
        // Ticks, usercmds and snapshots wrap one after the other.
        let (tick, seq) = (0xffff_fc00u32.saturating_sub(0xffff_0000) + 64_000 + step, 65_000 + step);
        field.step();
        let sent = snapshot(seq, Tick(tick), field.runners.clone());
        let (_, arrived) = pair.step(tick, &sent, 1200);
        for got in arrived {
            assert_eq!(got.frame.tick.0 - got.seq.0, tick - seq);
            assert_eq!(got.ack.0, got.frame.tick.0);
            compared += 1;
        }
    }
    assert!(compared > 1_900, "{compared}");
}

#[test]
fn sessions_survive_long_outages_and_resting_players() {
    let mut field = RunnerCrowd::new(2, 6);
    let mut pair = LinkedPair::new(6, LossyLink::new(2, 0.0, 3));
    for seq in 1..4_000u32 {
        // The link is down for longer than the window, and players rest for longer than that.
        pair.line.loss = if (500..700).contains(&seq) { 1.0 } else { 0.0 };
        if !(1_000..2_500).contains(&seq) {
            field.step();
        }
        let sent = field.snapshot(seq);
        let (encoded, arrived) = pair.step(seq, &sent, 1200);
        for got in arrived.iter().filter(|got| got.seq == sent.seq) {
            assert_eq!(bits(&got.frame), bits(&sent.frame), "{seq}");
        }
        if (1_010..2_500).contains(&seq) {
            assert!(encoded.carried.is_empty(), "nothing moves at {seq}");
            assert!(encoded.datagram.len() < 30, "{} bytes for nothing", encoded.datagram.len());
        }
        if (2_501..2_503).contains(&seq) {
            assert!(encoded.datagram.len() < 250, "{} bytes: sent in full again", encoded.datagram.len());
        }
    }
    assert!(pair.receiver.states_held() <= 6 * 65);
}

#[test]
fn unencodable_snapshots_are_refused() {
    let field = RunnerCrowd::new(1, 4);
    let mut sender: Sender<Runner> = Sender::new(PlayerId(0), 4);
    let too_small = sender.encode(&field.snapshot(1), 40, &mut SharedStates::default());
    let Err(EncodeError::TooSmall { needed_bytes, budget_bytes: 40 }) = too_small else { panic!("{too_small:?}") };
    assert!(
        sender.encode(&field.snapshot(1), needed_bytes, &mut SharedStates::default()).is_ok(),
        "{needed_bytes} bytes do not suffice"
    );
    let again = sender.encode(&field.snapshot(1), 1200, &mut SharedStates::default());
    assert_eq!(again, Err(EncodeError::OutOfOrder { last: SnapshotSeq(1), next: SnapshotSeq(1) }));
}

#[test]
fn entities_over_a_limit_are_deferred() {
    let runner = |i: u16| (EntityId(i), Runner { health: i32::from(i), alive: true, ..Runner::default() });
    let mut pair = LinkedPair::new(1, LossyLink::new(1, 0.0, 1));
    let mut complete = None;
    for seq in 1..60 {
        let sent = snapshot(seq, Tick(seq), (0..900).map(runner).collect());
        let (encoded, arrived) = pair.step(seq, &sent, 1200);
        assert!(encoded.datagram[11] > 0);
        if arrived.iter().any(|got| bits(&got.frame) == bits(&sent.frame) || got.frame.entities.len() == 900) {
            complete.get_or_insert(seq);
        }
    }
    assert!(complete.is_some_and(|seq| seq < 30), "{complete:?}");
}

/// Bodies with any bits that their fields allow.
fn any_runner() -> impl Strategy<Value = Runner> {
    prop::collection::vec(prop_oneof![Just(0u32), Just(1), any::<u32>()], Runner::CELLS).prop_map(|mut words| {
        for (word, field) in words.iter_mut().zip(Runner::fields()) {
            let narrow = ["ms", "buttons", "reserve", "controller"].iter().any(|w| field.name.contains(w));
            match field.name.as_str() {
                "on_ground" | "ducked" | "in_duck" | "step_left" | "alive" => *word &= 1,
                "weapon" | "clip" => *word &= 0xff,
                _ if narrow => *word &= 0xffff,
                _ => {}
            }
        }
        Runner::read(&words).expect("every word is a value of its field")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_bodies_arrive_bit_for_bit(
        frames in prop::collection::vec(prop::collection::btree_map(0u16..200, any_runner(), 0..5), 1..12),
        lost in any::<u16>(),
    ) {
        let mut sender: Sender<Runner> = Sender::new(PlayerId(0), 2);
        let mut receiver: Receiver<Runner> = Receiver::default();
        for (i, frame) in frames.iter().enumerate() {
            let entities = frame.iter().map(|(id, body)| (EntityId(*id), *body)).collect();
            let sent = snapshot(i as u32 + 1, Tick(i as u32 + 7), entities);
            let encoded = sender.encode(&sent, 1200, &mut SharedStates::default()).expect("few bodies");
            if lost & (1 << i) == 0 {
                let decoded = receiver.decode(&encoded.datagram, CommandSeq(7)).expect("the server sent it");
                let DecodeOutcome::New(got) = decoded else { panic!("{decoded:?}") };
                if encoded.deferred.is_empty() {
                    prop_assert_eq!(bits(&got.snapshot.frame), bits(&sent.frame));
                }
                for (id, body) in got.snapshot.frame.entities.iter().filter(|(id, _)| encoded.carried.contains(id)) {
                    prop_assert_eq!(Some(cells(body)), sent.frame.get(*id).map(cells));
                }
                sender.handle_ack(&receiver.received());
            }
        }
    }
}

/// The update messages of a runner who walks after a definition with constant frags and health.
#[test]
fn acks_name_the_newest_and_the_32_snapshots_before() {
    let mut sender = Sender::<Runner>::new(PlayerId(0), 2);
    let mut receiver = Receiver::<Runner>::default();
    let mut output = Vec::new();
    for seq in 1..=40 {
        let moved = |x| Runner { origin: Vec3::new(x, seq as f32, 0.0), ..Runner::default() };
        let sent = snapshot(seq, Tick(seq), vec![(EntityId(0), moved(1.0)), (EntityId(1), moved(2.0))]);
        let encoded = sender.encode(&sent, 1_200, &mut SharedStates::default()).expect("room");
        // The second and the fifth datagram are lost.
        if ![2, 5].contains(&seq) {
            assert!(matches!(receiver.decode(&encoded.datagram, CommandSeq(0)), Ok(DecodeOutcome::New(_))));
        }
        output.push((receiver.received(), receiver.states_held()));
    }
    let at = |seq: usize| (output[seq - 1].0.newest.0, output[seq - 1].0.before);
    assert_eq!([at(1), at(2), at(3), at(4), at(5)], [(1, 0), (1, 0), (3, 0b10), (4, 0b101), (4, 0b101)]);
    assert_eq!([at(6), at(7)], [(6, 0b10110), (7, 0b10_1101)]);
    assert_eq!([at(34), at(38), at(40)], [(34, !(1 << 31 | 1 << 28)), (38, u32::MAX), (40, u32::MAX)]);
    assert_eq!([output[0].1, output[2].1], [2, 4]);
}

fn updates_of(frags: i32, health: i32) -> Vec<Vec<u8>> {
    let mut sender = Sender::<Runner>::new(PlayerId(0), 1);
    let mut receiver = Receiver::<Runner>::default();
    let mut datagrams = Vec::new();
    for seq in 1..20 {
        let tree = Runner { origin: Vec3::new(40.0, seq as f32, 0.0), frags, health, ..Runner::default() };
        let sent = snapshot(seq, Tick(seq), vec![(EntityId(0), Runner::default()), (EntityId(7), tree)]);
        let encoded = sender.encode(&sent, 1_200, &mut SharedStates::default()).expect("room");
        let Ok(DecodeOutcome::New(received)) = receiver.decode(&encoded.datagram, CommandSeq(0)) else { panic!("new") };
        assert_eq!(received.snapshot.frame, sent.frame);
        sender.handle_ack(&receiver.received());
        datagrams.push(encoded.datagram);
    }
    datagrams
}

#[test]
fn unchanged_cells_are_sent_once() {
    let (few, many) = (updates_of(1, 2), updates_of(-1_000_000, 123_456_789));
    assert_ne!(few[0], many[0], "the definition has it");
    assert_eq!(few[1..], many[1..], "and no update after it, not even its length");
}

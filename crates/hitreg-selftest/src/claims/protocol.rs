//! Separate parts of the NeREIDS live protocol: datagrams, priorities, the clock.

use std::sync::Arc;

use glam::Vec3;

use super::experiment::Experiment;
use super::{Claim, ClaimError, NamedFigures, count, greatest, least};
use hitreg_log::record::Execution;
use hitreg_log::rng::Rng;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg_netcode::game::{Body, body};
use hitreg_netcode::history::Frame;
use hitreg_netcode::pacing::{Calibration, Steering, SteeringOptions};
use hitreg_netcode::packet::Snapshot;
use hitreg_netcode::wire::{DecodeOutcome, Receiver, Sender, SharedStates, Urgency, Wrapping16};

pub(super) const CLAIMS: &[Claim] = &[
    claim!(Nereids, "calibration-converges", calibration_converges),
    claim!(Nereids, "frame-index-wraps", frame_index_wraps),
    claim!(Nereids, "entity-definition", entity_definition),
    claim!(Nereids, "update-priority", update_priority),
];

body! {
    /// A walking creature.
    pub(super) struct Creature {
        Movement origin: Vec3,
        Movement velocity: Vec3,
        Movement viewangles: Vec3,
        Movement on_ground: bool,
        Status teleports: u32,
        Status alive: bool,
    }
}

fn frame_index_wraps(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let mut sender = Sender::<Creature>::new(PlayerId(0), 1);
    let mut receiver = Receiver::<Creature>::default();
    let (mut count_sent, mut right, mut backwards) = (0usize, 0usize, 0usize);
    let mut first_with: SortedMap<u16, Micros> = SortedMap::new();
    let mut wrapped_after = None;
    let mut last: Option<Tick> = None;
    for seq in 1..=2_000u32 {
        // One snapshot every 64 ticks, from shortly before the first wrap to after the second.
        let counter = 65_000 + seq * 64;
        let sent = snapshot(seq, Tick(counter), vec![(EntityId(0), walker(seq, 0.0))]);
        let Ok(encoded) = sender.encode(&sent, 1_200, &mut SharedStates::default()) else { continue };
        count_sent += 1;
        let Ok(DecodeOutcome::New(received)) = receiver.decode(&encoded.datagram, CommandSeq(counter)) else {
            continue;
        };
        sender.handle_ack(&receiver.received());
        let index = Wrapping16::of(counter);
        let got = if experiment.is_off() { Tick(u32::from(index.0)) } else { received.snapshot.frame.tick };
        right += usize::from(got.0 == counter);
        backwards += usize::from(last.is_some_and(|last| got < last));
        let time = received.snapshot.frame.server_time;
        if let Some(first) = first_with.insert(index.0, time) {
            wrapped_after = wrapped_after.or(Some((time - first).as_s_f64()));
        }
        last = Some(got);
    }
    Ok(vec![
        ("frames sent", count(count_sent)),
        ("frames read correctly", count(right)),
        ("steps back in time", count(backwards)),
        ("time until an index repeats", wrapped_after),
    ])
}

fn entity_definition(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    // Without players, the server controls every entity.
    let mut sender = Sender::<Creature>::new(PlayerId(1), if experiment.is_off() { 0 } else { 2 });
    let mut receiver = Receiver::<Creature>::default();
    let mut definitions = Vec::new();
    let mut held = Vec::new();
    for seq in 1..=6u32 {
        let mut entities: Vec<_> = (0..3).map(|id| (EntityId(id), walker(seq, 0.0))).collect();
        if seq > 3 {
            entities.truncate(2);
        }
        let sent = Snapshot { helper_ms: Some(40), ..snapshot(seq, Tick(seq), entities) };
        let Ok(encoded) = sender.encode(&sent, 1_200, &mut SharedStates::default()) else { continue };
        if let Ok(DecodeOutcome::New(received)) = receiver.decode(&encoded.datagram, CommandSeq(seq)) {
            definitions.extend(received.definitions);
            held.push(received.snapshot.frame.entities.len());
        }
        sender.handle_ack(&receiver.received());
    }
    let controller = |id| definitions.iter().find(|(entity, _)| *entity == EntityId(id)).map(|(_, c)| *c);
    let number = |controller: Option<Option<u16>>| controller.map(|c| f64::from(c.unwrap_or(0)));
    Ok(vec![
        ("definitions", count(definitions.len())),
        ("controller: first player's entity", number(controller(0))),
        ("controller: client's own entity", number(controller(1))),
        ("controller: AI's entity", number(controller(2))),
        ("entities known before the removal", held.get(2).map(|n| *n as f64)),
        ("entities known after the removal", held.last().map(|n| *n as f64)),
    ])
}

fn update_priority(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    const CROWD: u16 = 60;
    const EVENTFUL: u16 = 3;
    let mut sender = Sender::<Creature>::new(PlayerId(0), CROWD);
    if experiment.is_off() {
        sender.prioritize(|urgency| Urgency { waited: 0, ..*urgency }.score());
    }
    let mut receiver = Receiver::<Creature>::default();
    let mut waits = vec![0u32; usize::from(CROWD)];
    let mut longest = 0;
    let mut carried = vec![0usize; usize::from(CROWD)];
    for seq in 1..=1_000u32 {
        let teleports = |id| if id == EVENTFUL { seq } else { 0 };
        let creature = |id| Creature { teleports: teleports(id), ..walker(seq, f32::from(id) * 700.0) };
        let entities = (0..CROWD).map(|id| (EntityId(id), creature(id))).collect();
        let sent = snapshot(seq, Tick(seq), entities);
        let Ok(encoded) = sender.encode(&sent, 300, &mut SharedStates::default()) else { continue };
        encoded.carried.iter().for_each(|id| carried[usize::from(id.0)] += 1);
        encoded.carried.iter().for_each(|id| waits[usize::from(id.0)] = 0);
        for id in &encoded.deferred {
            waits[usize::from(id.0)] += 1;
            longest = longest.max(waits[usize::from(id.0)]);
        }
        let _ = receiver.decode(&encoded.datagram, CommandSeq(seq));
        sender.handle_ack(&receiver.received());
    }
    let sum = |range: std::ops::Range<usize>| carried[range].iter().sum::<usize>() as f64;
    Ok(vec![
        ("snapshots with the client's own avatar", count(carried[0])),
        ("updates, ten nearest / ten farthest", Some(sum(1..11) / sum(50..60))),
        ("updates, with events / without events", Some(sum(3..4) / sum(4..5))),
        ("wait, max", Some(f64::from(longest))),
    ])
}

fn calibration_converges(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let mut settled: Vec<f64> = Vec::new();
    let mut corrections: Vec<f64> = Vec::new();
    let mut moved: Vec<f64> = Vec::new();
    for (seed, offset_ms) in [(1, -2_000), (2, -700), (3, 0), (4, 900), (5, 2_000)] {
        let run = SteeringOutcome::run(Seed(seed), Micros::from_ms(offset_ms), experiment.is_off());
        settled.push(run.settled_at.as_ms_f64());
        corrections.push(f64::from(run.corrections));
        moved.push(run.moved_after.as_ms_f64());
    }
    let seen = experiment.play()?;
    let made: Vec<_> = seen.inspected(0).map(|frame| (frame.at, frame.command.server_time)).collect();
    // Frames come at fixed times, so an irregular step in server time shows that the clock was moved.
    let shifts = made.windows(2).filter(|pair| (pair[1].1 - pair[0].1) != (pair[1].0 - pair[0].0)).count();
    let is_inspected = |command| seen.frame_of(PlayerId(0), command).is_some_and(|f| seen.inspects(f.at));
    let not_run = seen.executed.iter().filter(|done| done.player.0 == 0 && is_inspected(done.command));
    let not_run = not_run.filter(|done| done.how != Execution::Run).count();
    let spiky = experiment.play_variant("exponential")?;
    let clock: Vec<f64> = spiky.inspected(0).map(|f| (f.command.server_time - f.at).as_ms_f64()).collect();
    let range = greatest(&clock).zip(least(&clock)).map(|(most, least)| most - least);
    let steps: Vec<f64> = clock.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    Ok(vec![
        ("session inputs after 5 s", count(made.len())),
        ("clock corrections after 5 s", count(shifts)),
        ("session inputs that missed their tick", count(not_run)),
        ("settling time, max", greatest(&settled)),
        ("corrections in a minute, max", greatest(&corrections)),
        ("clock movement after 5 s, max", greatest(&moved)),
        ("exponential jitter: largest step of the clock after 5 s", greatest(&steps)),
        ("exponential jitter: range of the clock after 5 s", range),
    ])
}

/// The course of a client's clock over one minute.
struct SteeringOutcome {
    /// The time after which it stayed within 15 ms of its target.
    settled_at: Micros,
    corrections: u32,
    /// The total of its corrections after five seconds.
    moved_after: Micros,
}

impl SteeringOutcome {
    /// Simulates a client 60 ms from the server, with up to 50 ms of jitter in each direction. Its clock starts with an
    /// error of `offset`. With `believes_all`, it corrects immediately by every helper.
    fn run(seed: Seed, offset: Micros, believes_all: bool) -> SteeringOutcome {
        let (delay, jitter) = (Micros::from_ms(60), Micros::from_ms(50));
        let options = SteeringOptions::nereids();
        let mut rng = Rng::new(seed, 7);
        let mut steering = Steering::new(options, offset, Micros::ZERO);
        let mut calibration = Calibration::default();
        let mut up: Vec<(Micros, Tick)> = Vec::new();
        let mut down: Vec<(Micros, i16)> = Vec::new();
        let mut last: Option<Tick> = None;
        let mut before = offset;
        let mut run = SteeringOutcome { settled_at: Micros::ZERO, corrections: 0, moved_after: Micros::ZERO };
        for now in (0..60_000).map(Micros::from_ms) {
            let frame = steering.frame(now);
            if last.replace(frame) != Some(frame) {
                up.push((now + delay + Micros(rng.below(jitter.0 as u64) as i64), frame));
            }
            for (at, frame) in up.extract_if(.., |(at, _)| *at <= now) {
                calibration.handle_frame(at, Micros(i64::from(frame.0) * options.tick.0));
            }
            if now.0 % options.tick.0 == 0 {
                let helper = calibration.helper_ms();
                down.extend(helper.map(|ms| (now + delay + Micros(rng.below(jitter.0 as u64) as i64), ms)));
            }
            for (_, helper) in down.extract_if(.., |(at, _)| *at <= now) {
                if believes_all {
                    let error = options.lead - Micros::from_ms(i64::from(helper));
                    steering = Steering::new(options, steering.read(now) - now + error, now);
                    run.corrections += 1;
                } else {
                    steering.handle_helper(now, helper, delay + delay + jitter + jitter);
                    run.corrections = steering.corrections();
                }
            }
            let offset = steering.read(now) - now;
            let lead = offset - delay - Micros(jitter.0 / 2);
            if (lead - options.lead).0.abs() > 15_000 {
                run.settled_at = now;
            }
            if now > Micros::from_s(5) {
                run.moved_after += Micros((offset - before).0.abs());
            }
            before = offset;
        }
        run
    }
}

/// Returns a creature that moves all the time.
fn walker(seq: u32, away_units: f32) -> Creature {
    Creature {
        origin: Vec3::new(away_units + seq as f32 * 0.37, 0.0, 36.0),
        velocity: Vec3::new(11.84, seq as f32 * 0.01, 0.0),
        alive: true,
        on_ground: true,
        ..Creature::default()
    }
}

/// Returns a snapshot of a session with 31.25 ticks per second.
pub(super) fn snapshot<B: Body>(seq: u32, tick: Tick, entities: Vec<(EntityId, B)>) -> Snapshot<B> {
    let frame = Frame { tick, server_time: Micros(i64::from(tick.0) * 32_000), entities };
    Snapshot::new(SnapshotSeq(seq), CommandSeq(tick.0), Arc::new(frame))
}

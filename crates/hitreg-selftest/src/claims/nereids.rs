//! The NeREIDS live protocol: redundancy, scheduling by tick and the calibrated clock in whole sessions, and datagrams,
//! priorities and the clock by themselves.

use std::sync::Arc;

use glam::Vec3;

use crate::claims::experiment::Experiment;
use crate::claims::watch::{ObservedExecution, ObservedFrame, SessionWatch};
use crate::claims::{Claim, ClaimError, NamedFigures, changes, count, greatest, intervals_ms, least, median, share};
use hitreg_log::record::{ArrivalRecord, Execution};
use hitreg_log::rng::Rng;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::stats::percentile;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg_netcode::game::{Body, Cause, body};
use hitreg_netcode::history::Frame;
use hitreg_netcode::pacing::{Calibration, Steering, SteeringOptions};
use hitreg_netcode::packet::Snapshot;
use hitreg_netcode::wire::{DecodeOutcome, Receiver, Sender, SharedStates, Urgency, Wrapping16};

pub(super) const CLAIMS: &[Claim] = &[
    claim!(Nereids, "every-tick", played every_tick),
    claim!(Nereids, "three-lost-in-a-row", of ["three", "four"] three_lost),
    claim!(Nereids, "input-waits-for-its-tick", of ["three-ticks"] input_waits),
    claim!(Nereids, "loss-of-5-percent", played loss_of_5_percent),
    claim!(Nereids, "computed-once", played computed_once),
    claim!(Nereids, "out-of-sequence-warnings", warnings),
    claim!(Nereids, "warnings-set-the-clock", played warnings_set_the_clock),
    claim!(Nereids, "calibration-helper", of ["uniform", "exponential"] calibration_helper),
    claim!(Nereids, "perceived-avatar", played perceived_avatar),
    claim!(Nereids, "calibration-converges", calibration_converges),
    claim!(Nereids, "frame-index-wraps", frame_index_wraps),
    claim!(Nereids, "entity-definition", entity_definition),
    claim!(Nereids, "update-priority", update_priority),
];

/// The plan of adaptive redundancy. Player 0 sends.
pub(super) const REDUNDANCY_CLAIMS: &[Claim] = &[
    claim!(Nereids, "redundancy-adapts", redundancy_adapts),
    claim!(Nereids, "redundancy-and-bandwidth", of ["four", "two", "one"] redundancy_and_bandwidth),
];

fn every_tick(seen: &SessionWatch) -> NamedFigures {
    let carried: Vec<f64> = seen.inspected(0).map(|frame| frame.carried as f64).collect();
    vec![
        ("interval between inputs", median(intervals_ms(seen.inspected(0).map(|frame| frame.at)))),
        ("interval between snapshots", median(intervals_ms(seen.sent_to(0).map(|sent| sent.at)))),
        ("ticks of input in each packet", median(&carried)),
    ]
}

fn three_lost([three, four]: [&SessionWatch; 2]) -> NamedFigures {
    vec![
        ("packets lost in a row", count(lost_packets(three).len())),
        ("input lost", count(lost_input(three).len())),
        ("packets lost in a row, second part", count(lost_packets(four).len())),
        ("input lost, second part", count(lost_input(four).len())),
    ]
}

fn input_waits([seen]: [&SessionWatch; 1]) -> NamedFigures {
    // The time from arrival at the server to the tick.
    let wait = |done: &ObservedExecution| {
        let frame = seen.frame_of(done.player, done.command)?;
        let ran = seen.ticks.get(done.tick.0 as usize - 1)?.at;
        let arrived = frame.at + Micros::from_ms(40);
        seen.inspects(frame.at).then(|| (ran - arrived).as_ms_f64())
    };
    vec![("arrival to tick", median(seen.executed.iter().filter_map(wait)))]
}

fn loss_of_5_percent(seen: &SessionWatch) -> NamedFigures {
    let inputs = seen.all_inspected().count();
    let lost = lost_packets(seen);
    let in_a_row = |player: PlayerId, command: CommandSeq| {
        // The input was in the packet with its own number and in the three packets after it.
        (0..4).all(|later| lost.contains(&(player, command.0 + later)))
    };
    let lost_input = lost_input(seen);
    let explained = lost_input.iter().filter(|(player, command)| in_a_row(*player, *command)).count();
    let received = seen.received.iter().filter(|snapshot| snapshot.at >= seen.inspect.0);
    let corrections: Vec<Cause> = received.filter_map(|s| Some(s.correction.as_ref()?.explanation.cause)).collect();
    let of = |cause: Cause| corrections.iter().filter(|c| **c == cause).count();
    vec![
        ("inputs", count(inputs)),
        ("packets lost", count(lost.len())),
        ("input lost without four losses in a row", count(lost_input.len() - explained)),
        ("input lost by four losses in a row", count(explained)),
        ("corrections", count(corrections.len())),
        ("of those, caused by a push", count(of(Cause::Knockback))),
        ("of those, by another player", count(of(Cause::OtherPlayer))),
        ("of those, caused by lost input", count(of(Cause::InputLost))),
        ("of those, without a cause", count(of(Cause::Unknown))),
    ]
}

fn computed_once(seen: &SessionWatch) -> NamedFigures {
    let tick = |index: u32| seen.ticks.get(index as usize - 1);
    let late = seen.executed.iter().filter(|done| done.how != Execution::Run).count();
    let over = seen.executed.iter().filter(|done| done.how == Execution::Run).filter(|done| {
        let for_time = seen.frame_of(done.player, done.command).map(|frame| frame.command.server_time);
        let before = done.tick.0.checked_sub(1).filter(|n| *n > 0).and_then(tick).map(|tick| tick.at);
        for_time.zip(before).is_some_and(|(for_time, before)| for_time <= before)
    });
    let rewound = seen.shots.iter().filter(|shot| shot.rewound_by > Micros::ZERO).count();
    let changed = seen.received.iter().filter(|snapshot| {
        let then = seen.tick_at(snapshot.server_time);
        then.is_none_or(|tick| {
            tick.bodies.iter().zip(&snapshot.bodies).any(|((a, body), (b, sent))| {
                let mut body = *body;
                Body::strip_client_only(&mut body);
                a != b || body != *sent
            })
        })
    });
    vec![
        ("inputs that arrived too late", count(late)),
        ("inputs run after their tick", count(over.count())),
        ("shots", count(seen.shots.len())),
        ("shots applied in the past", count(rewound)),
        ("frames that differ on clients", count(changed.count())),
    ]
}

fn warnings(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let prepared = experiment.variant("scene")?;
    let honest = prepared.stamped(0)?;
    let late = prepared.stamped(-1_000)?;
    let early = prepared.stamped(2_000)?;
    // Frames that are almost too early. Each value gets its own session, because the client's clock adapts to the
    // feedback. Each input is sent once; otherwise one that is too early would be accepted when it is repeated.
    let once = experiment.variant("once")?;
    let about_32 = (20..44).map(|frames| once.stamped(32 * frames));
    let about_32: Vec<SessionWatch> = about_32.collect::<Result<_, _>>()?;
    let settled = Micros::from_s(6);
    let differences = |seen: &SessionWatch| -> Vec<f64> {
        seen.sent_to(0).flat_map(|sent| &sent.warnings).map(|w| f64::from(*w)).collect()
    };
    let after = honest.sent.iter().filter(|sent| sent.at > settled).map(|sent| sent.warnings.len()).sum();
    Ok(vec![
        ("warnings to settled honest clients", count(after)),
        ("just late: frames ahead, min", least(differences(&honest))),
        ("just late: frames ahead, max", greatest(differences(&honest))),
        ("too late: frames ahead, max", greatest(differences(&late))),
        ("too early: frames ahead, min", least(differences(&early))),
        ("about 1 s early: frames ahead of accepted input, max", greatest(about_32.iter().filter_map(ahead_of_run))),
        (
            "about 1 s early: frames ahead of refused input, min",
            least(about_32.iter().flat_map(differences).filter(|ahead| *ahead > 0.0)),
        ),
    ])
}

/// Returns the greatest number of frames by which player 0's executed input was ahead on arrival.
fn ahead_of_run(seen: &SessionWatch) -> Option<f64> {
    let ran = seen.executed.iter().filter(|done| done.player == PlayerId(0) && done.how == Execution::Run);
    let ahead = ran.filter_map(|done| {
        let packet =
            |(player, arrival): &&(PlayerId, ArrivalRecord)| *player == done.player && arrival.number == done.command.0;
        let came = seen.reached.iter().find(packet)?.1.at;
        let next = seen.ticks.partition_point(|tick| tick.at <= came) as f64 + 1.0;
        Some(f64::from(done.tick.0) - next)
    });
    greatest(ahead)
}

fn warnings_set_the_clock(seen: &SessionWatch) -> NamedFigures {
    let warned = seen.received_by(0).zip(seen.sent_to(0));
    let warned = warned.filter(|(_, sent)| !sent.warnings.is_empty()).count();
    let ran = |frame: &&ObservedFrame| {
        let of = |done: &&ObservedExecution| done.player == frame.player && done.command == frame.command.seq;
        seen.executed.iter().find(of).is_some_and(|done| done.how == Execution::Run)
    };
    let first = seen.received_by(0).next().map(|snapshot| snapshot.at);
    let in_time = seen.frames_of(0).find(ran).map(|frame| frame.at);
    vec![
        ("snapshots with warnings", count(warned)),
        ("first update to first timely input", in_time.zip(first).map(|(at, first)| (at - first).as_ms_f64())),
    ]
}

fn calibration_helper([seen, exponential]: [&SessionWatch; 2]) -> NamedFigures {
    let helpers = |seen: &SessionWatch| -> Vec<Option<f64>> {
        let sent = seen.sent_to(0).filter(|sent| seen.inspects(sent.at));
        sent.map(|sent| sent.helper_ms.map(f64::from)).collect()
    };
    let sent: Vec<f64> = helpers(seen).into_iter().flatten().collect();
    let under_spikes = helpers(exponential);
    let unknown = under_spikes.iter().filter(|helper| helper.is_none()).count();
    let under_spikes: Vec<f64> = under_spikes.into_iter().flatten().collect();
    // The unfiltered lead of each packet's newest input.
    let raw: Vec<f64> = seen
        .reached
        .iter()
        .filter(|(player, arrival)| player.0 == 0 && seen.inspects(arrival.at))
        .filter_map(|(player, arrival)| {
            let stamp = seen.frame_of(*player, CommandSeq(arrival.number))?.command.server_time;
            let tick = seen.ticks.get(seen.ticks.partition_point(|tick| tick.at < stamp))?;
            Some((tick.at - arrival.at).as_ms_f64())
        })
        .collect();
    vec![
        ("snapshots with the helper", count(sent.len())),
        ("helper, min", least(&sent)),
        ("helper, median", median(&sent)),
        ("change between inputs, unfiltered", change(&raw)),
        ("change of the helper", change(&sent)),
        ("spread of the helper", spread(sent)),
        ("exponential jitter: helper, median", median(&under_spikes)),
        ("exponential jitter: snapshots without the helper", count(unknown)),
        ("exponential jitter: spread of the helper", spread(under_spikes)),
    ]
}

fn perceived_avatar(seen: &SessionWatch) -> NamedFigures {
    let sent: Vec<(Micros, bool)> =
        seen.sent_to(0).filter_map(|sent| Some((sent.at, sent.saw_avatar_right?))).collect();
    let disagreed: Vec<Micros> = sent.iter().filter(|(_, is_right)| !is_right).map(|(at, _)| *at).collect();
    let lasted = disagreed.first().zip(disagreed.last()).map(|(first, last)| (*last - *first).as_ms_f64());
    vec![
        ("inputs with the server's avatar", count(sent.len() - disagreed.len())),
        ("inputs with another avatar, after a push", count(disagreed.len())),
        ("duration of this, as seen by the server", lasted),
    ]
}

/// Returns the packets that were lost within the inspected time.
fn lost_packets(seen: &SessionWatch) -> Vec<(PlayerId, u32)> {
    let reached: SortedSet<(PlayerId, u32)> =
        seen.reached.iter().map(|(player, arrival)| (*player, arrival.number)).collect();
    // A client sends one packet for each usercmd, so both have the same numbers.
    let sent = seen.all_inspected().map(|frame| (frame.player, frame.command.seq.0));
    sent.filter(|key| !reached.contains(key)).collect()
}

/// Returns the usercmds made within the inspected time that never ran.
fn lost_input(seen: &SessionWatch) -> Vec<(PlayerId, CommandSeq)> {
    let made: SortedSet<_> = seen.all_inspected().map(|frame| (frame.player, frame.command.seq)).collect();
    let ran = seen.executed.iter().filter(|done| done.how == Execution::Run);
    let ran: SortedSet<_> = ran.map(|done| (done.player, done.command)).collect();
    made.into_iter().filter(|usercmd| !ran.contains(usercmd)).collect()
}

/// Returns the 95th percentile of the changes between successive values.
fn change(values: &[f64]) -> Option<f64> {
    let mut changes = changes(values);
    changes.sort_unstable_by(f64::total_cmp);
    percentile(&changes, 95.0)
}

/// Returns the difference between the 95th and the 5th percentile.
fn spread(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    Some(percentile(&values, 95.0)? - percentile(&values, 5.0)?)
}

fn redundancy_adapts(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let at = |line: &str, level: u8| Ok::<_, ClaimError>(share_at(&experiment.play_variant(line)?, level));
    // The rate of each redundancy level. The tight line has room for 2:1 but not for 3:1.
    let takes = |fixed: &str| Ok::<_, ClaimError>(bytes_per_s(&experiment.play_variant(fixed)?).unwrap_or_default());
    let (three, two, one) = (takes("three")?, takes("two")?, takes("one")?);
    let (tight, tighter) = ((three + two) / 2.0, (two + one) / 2.0);
    let over =
        |line: &str, rate: f64, level: u8| Ok::<_, ClaimError>(share_at(&experiment.play_over(line, rate)?, level));
    Ok(vec![
        ("4:1 on a line with 5 % loss", at("lossy", 4)?),
        ("4:1 on a line with 70 ms of jitter", at("jittery", 4)?),
        ("3:1 on a clean line", at("clean", 3)?),
        ("2:1 on a tight line", over("clean", tight, 2)?),
        ("1:1 on a tighter line", over("clean", tighter, 1)?),
        ("1:1 on the tighter line with 150 ms of jitter", over("jittery-more", tighter, 1)?),
    ])
}

fn redundancy_and_bandwidth([four, two, one]: [&SessionWatch; 3]) -> NamedFigures {
    vec![
        ("4:1", bytes_per_s(four)),
        ("2:1", bytes_per_s(two)),
        ("1:1", bytes_per_s(one)),
        ("4:1 over 2:1", bytes_per_s(four).zip(bytes_per_s(two)).map(|(four, two)| four / two)),
    ]
}

/// Returns the share of packets with this number of usercmds, in percent.
fn share_at(seen: &SessionWatch, level: u8) -> Option<f64> {
    share(seen.packets_of(0).filter(|packet| packet.count == level).count(), seen.packets_of(0).count())
}

fn bytes_per_s(seen: &SessionWatch) -> Option<f64> {
    let bytes: usize = seen.packets_of(0).map(|packet| usize::from(packet.bytes)).sum();
    (bytes > 0).then(|| seen.per_s(bytes))
}

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
        let got = if experiment.is_off { Tick(u32::from(index.0)) } else { received.snapshot.frame.tick };
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
    let mut sender = Sender::<Creature>::new(PlayerId(1), if experiment.is_off { 0 } else { 2 });
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
    if experiment.is_off {
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
        let run = SteeringOutcome::run(Seed(seed), Micros::from_ms(offset_ms), experiment.is_off);
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
    Ok(vec![
        ("session inputs after 5 s", count(made.len())),
        ("clock corrections after 5 s", count(shifts)),
        ("session inputs that missed their tick", count(not_run)),
        ("settling time, max", greatest(&settled)),
        ("corrections in a minute, max", greatest(&corrections)),
        ("clock movement after 5 s, max", greatest(&moved)),
        ("exponential jitter: largest step of the clock after 5 s", greatest(changes(&clock))),
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

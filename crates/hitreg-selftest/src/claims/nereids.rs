//! The NeREIDS live protocol in whole sessions: redundancy, scheduling by tick, the calibrated clock.

use super::experiment::Experiment;
use super::watch::{ObservedExecution, ObservedFrame, SessionWatch};
use super::{Claim, ClaimError, NamedFigures, count, greatest, least, median};
use hitreg_log::record::{ArrivalRecord, Execution};
use hitreg_log::sorted::SortedSet;
use hitreg_log::stats::percentile;
use hitreg_log::units::{CommandSeq, Micros, PlayerId};
use hitreg_netcode::game::Cause;

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
];

fn every_tick(seen: &SessionWatch) -> NamedFigures {
    let spacing = |times: Vec<Micros>| median(times.windows(2).map(|p| (p[1] - p[0]).as_ms_f64()));
    let carried: Vec<f64> = seen.inspected(0).map(|frame| frame.carried as f64).collect();
    vec![
        ("interval between inputs", spacing(seen.inspected(0).map(|frame| frame.at).collect())),
        ("interval between snapshots", spacing(seen.sent_to(0).map(|sent| sent.at).collect())),
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
    let corrections: Vec<Cause> = received.filter_map(|s| Some(s.correction.as_ref()?.cause)).collect();
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
        let then = seen.ticks.iter().find(|tick| tick.at == snapshot.server_time);
        then.is_none_or(|tick| {
            tick.bodies.iter().zip(&snapshot.bodies).any(|((a, body), (b, sent))| {
                let mut body = *body;
                hitreg_netcode::game::Body::strip_client_only(&mut body);
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
    let mut changes: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    changes.sort_unstable_by(f64::total_cmp);
    percentile(&changes, 95.0)
}

/// Returns the difference between the 95th and the 5th percentile.
fn spread(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    Some(percentile(&values, 95.0)? - percentile(&values, 5.0)?)
}

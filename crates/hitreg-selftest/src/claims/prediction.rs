//! Clients with and without prediction.

use glam::Vec3;

use crate::claims::experiment::Experiment;
use crate::claims::watch::{ObservedFrame, SessionWatch, body_of};
use crate::claims::{Claim, ClaimError, NamedFigures, count, greatest, least, median};
use hitreg_arena::{ArenaBody, ArenaEffect, WeaponId};
use hitreg_log::record::Execution;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};
use hitreg_log::usercmd::buttons;
use hitreg_netcode::game::Effect;

pub(super) const CLAIMS: &[Claim] = &[
    claim!(Prediction, "sound-cut", played sound_cut),
    claim!(Prediction, "dumb-client", played dumb_client),
    claim!(Prediction, "prediction-at-once", played prediction_at_once),
    claim!(Prediction, "five-in-flight", played five_in_flight),
    claim!(Prediction, "frame-times", frame_times),
    claim!(Prediction, "server-corrects", played server_corrects),
    claim!(Prediction, "correction-smoothed", played correction_smoothed),
    claim!(Prediction, "client-says-where-it-is", of ["honest", "lying"] client_says_where_it_is),
    claim!(Prediction, "effects-once", played effects_once),
    claim!(Prediction, "effects-not-told", of ["weapons", "movement"] effects_not_told),
    claim!(Prediction, "eye-height", played eye_height),
    claim!(Prediction, "weapons-predicted", played weapons_predicted),
    claim!(Prediction, "weapon-logic-shared", played weapon_logic_shared),
    claim!(Prediction, "push-latency", of ["beyond", "half", "none", "beyond-at-20", "half-at-20"] push_latency),
];

fn dumb_client(seen: &SessionWatch) -> NamedFigures {
    vec![("key to movement", key_to_movement(seen))]
}

fn prediction_at_once(seen: &SessionWatch) -> NamedFigures {
    let checked: Vec<f32> = seen.received_by(0).filter_map(|s| Some(s.comparison?.error_units)).collect();
    let wrong = checked.iter().filter(|error| **error > 0.0).count();
    vec![
        ("key to movement", key_to_movement(seen)),
        ("predictions compared with the server", count(checked.len())),
        ("wrong predictions", count(wrong)),
    ]
}

fn five_in_flight(seen: &SessionWatch) -> NamedFigures {
    let from = Micros::from_s(1);
    let mut acked = 0;
    let mut in_flight: Vec<f64> = Vec::new();
    let mut snapshots = seen.received_by(0).peekable();
    for frame in seen.frames_of(0) {
        while let Some(snapshot) = snapshots.next_if(|s| s.at <= frame.at) {
            acked = snapshot.ack.0;
        }
        if frame.at >= from {
            in_flight.push(f64::from(frame.command.seq.0 - acked));
        }
    }
    let corrected = seen.corrected(0).find(|s| s.at >= from);
    let again = corrected.and_then(|s| seen.frames_of(0).find(|frame| frame.at >= s.at)).map(|f| f64::from(f.ran));
    vec![
        ("usercmds in flight, median", median(&in_flight)),
        ("usercmds in flight, max", greatest(&in_flight)),
        ("usercmds run after a correction", again),
    ]
}

fn frame_times(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let play = |variant| experiment.play_variant(if experiment.is_off { "regular" } else { variant });
    let regular = play("regular")?;
    let [irregular, capped, hitches, loaded] = ["irregular", "capped", "hitches", "loaded"].map(play);
    let (irregular, capped, hitches, loaded) = (irregular?, capped?, hitches?, loaded?);
    // The simulated time of a frame minus the time for which it is shown.
    let off = |seen: &SessionWatch| {
        let frames: Vec<&ObservedFrame> = seen.inspected(0).collect();
        let off = |pair: &[&ObservedFrame]| {
            (f64::from(pair[0].command.input.msec) - (pair[1].at - pair[0].at).as_ms_f64()).abs()
        };
        frames.windows(2).map(off).collect::<Vec<f64>>()
    };
    let in_all = |seen: &&SessionWatch| {
        let (first, last) = (seen.inspected(0).next()?, seen.inspected(0).next_back()?);
        let simulated: f64 = seen.inspected(0).skip(1).map(|frame| f64::from(frame.command.input.msec)).sum();
        Some((simulated - (last.at - first.at).as_ms_f64()).abs())
    };
    let all = [&irregular, &capped, &hitches, &loaded];
    let wrong = all.iter().flat_map(|seen| seen.corrected(0)).count();
    let capped = off(&capped);
    let late = capped.iter().filter(|off| **off > 1.0).count() as f64;
    Ok(vec![
        ("regular frames: frame time error, max", greatest(off(&regular))),
        ("irregular frames: frame time error, max", greatest(off(&irregular))),
        ("capped frame rate: errors over 1 ms", Some(100.0 * late / capped.len() as f64)),
        ("frames with hitches: frame time error, max", greatest(off(&hitches))),
        ("loaded computer: frame time error, median", median(off(&loaded))),
        ("all: total error, max", greatest(all.iter().filter_map(in_all))),
        ("all: corrections", count(wrong)),
    ])
}

fn server_corrects(seen: &SessionWatch) -> NamedFigures {
    let lost = seen.executed.iter().find(|done| done.player.0 == 0 && done.how == Execution::Missing);
    let made = lost.and_then(|done| seen.frame_of(done.player, done.command)).map(|frame| frame.at);
    let corrected = seen.corrected(0).next();
    let after = corrected.zip(made).map(|(snapshot, made)| (snapshot.at - made).as_ms_f64());
    // The drawn origins before and after the correction, once both have run the same usercmds.
    let shift = corrected.and_then(|s| s.comparison).map(|c| f64::from(c.error_units));
    let end = seen.frames_of(0).last().and_then(|frame| frame.own);
    let there = seen.ticks.last().and_then(|tick| body_of(&tick.bodies, 0)).map(|body| body.origin);
    let left = end.zip(there).map(|(own, there)| f64::from(own.origin.distance(there)));
    vec![
        ("lost usercmd to correction", after),
        ("shift of the player's own position", shift),
        ("corrections", count(seen.corrected(0).count())),
        ("difference at the end", left),
    ]
}

fn correction_smoothed(seen: &SessionWatch) -> NamedFigures {
    let corrected = seen.corrected(0).next();
    let shift = corrected.and_then(|s| s.comparison).map(|c| f64::from(c.error_units));
    let off: Vec<(Micros, f64)> = seen
        .inspected(0)
        .filter_map(|frame| Some((frame.at, f64::from(frame.own_drawn?.distance(frame.own?.origin)))))
        .collect();
    let last = off.iter().rfind(|(_, off)| *off > 0.01).map(|(at, _)| *at);
    let drawn: Vec<Vec3> = seen.inspected(0).filter_map(|frame| frame.own_drawn).collect();
    let ways: Vec<f64> = drawn.windows(2).map(|pair| f64::from(pair[1].distance(pair[0]))).collect();
    vec![
        ("shift of the player's own position", shift),
        ("distance from the corrected position, max", greatest(off.iter().map(|(_, off)| *off))),
        ("correction to its display", corrected.zip(last).map(|(s, last)| (last - s.at).as_ms_f64())),
        ("movement in one frame, min", least(&ways)),
        ("movement in one frame, max", greatest(&ways)),
    ]
}

fn client_says_where_it_is([honest, lied]: [&SessionWatch; 2]) -> NamedFigures {
    let world = |seen: &SessionWatch| seen.ticks.iter().map(|tick| tick.bodies.clone()).collect::<Vec<_>>();
    let differing = world(honest).iter().zip(&world(lied)).filter(|(a, b)| a != b).count();
    let sent = |seen: &SessionWatch, is_right: bool| {
        count(seen.sent_to(0).filter(|s| s.saw_avatar_right == Some(is_right)).count())
    };
    vec![
        ("lying client: inputs known to be wrong", sent(lied, false)),
        ("honest client: inputs known to be wrong", sent(honest, false)),
        ("honest client: inputs known to be right", sent(honest, true)),
        ("ticks", count(honest.ticks.len())),
        ("ticks changed by the lie", count(differing)),
    ]
}

fn effects_once(seen: &SessionWatch) -> NamedFigures {
    let is_shot = |effect: &&Effect| effect.kind == ArenaEffect::Pistol as u8 && effect.entity == EntityId(0);
    let fired = seen.shots_of(0).count();
    let heard = seen.frames_of(0).flat_map(|frame| &frame.effects).filter(is_shot).count();
    let reran = seen.received_by(0).filter_map(|s| s.correction.as_ref()).map(|c| c.reran as usize).sum();
    vec![
        ("shots fired", count(fired)),
        ("usercmds that ran again", count(reran)),
        ("sounds of the shots on the own client", count(heard)),
        ("sounds per shot", (fired > 0).then(|| heard as f64 / fired as f64)),
    ]
}

fn effects_not_told([weapons, movement]: [&SessionWatch; 2]) -> NamedFigures {
    let own = |effect: &&Effect| effect.predictable && effect.entity == EntityId(0);
    let sent = |seen: &SessionWatch, player| seen.received_by(player).flat_map(|s| &s.effects).filter(own).count();
    let played = |seen: &SessionWatch| seen.frames_of(0).flat_map(|frame| &frame.effects).filter(own).count();
    let heard = played(movement) + sent(movement, 0);
    vec![
        ("effects played by the predicting client", count(played(weapons))),
        ("of those, also sent by the server", count(sent(weapons, 0))),
        ("sent to another player", count(sent(weapons, 1))),
        ("heard twice if only movement is predicted", count(heard.abs_diff(sent(movement, 1)))),
    ]
}

fn eye_height(seen: &SessionWatch) -> NamedFigures {
    // The state at the start of the frame. All usercmds are acked, so it is the acked state with the client-only
    // fields.
    let eyes: Vec<(Micros, f32)> = seen
        .frames
        .iter()
        .zip(&seen.meant)
        .filter(|(frame, _)| frame.player == PlayerId(0) && frame.at >= Micros::from_ms(500))
        .filter_map(|(frame, meant)| meant.own_before.map(|own| (frame.at, own.origin.z + own.view_ofs_z)))
        .collect();
    let step = greatest(eyes.windows(2).map(|pair| f64::from((pair[1].1 - pair[0].1).abs())));
    let corrections = seen.corrected(0).count();
    let standing = seen.frames.iter().zip(&seen.meant).find(|(frame, _)| frame.at >= Micros::from_ms(900));
    let standing = standing.and_then(|(_, meant)| meant.own_before).map(|own| f64::from(own.view_ofs_z));
    let crouched = eyes.last().zip(eyes.first()).map(|(last, first)| f64::from(first.1 - last.1));
    vec![
        ("corrections while crouching", count(corrections)),
        ("eye height before crouching", standing),
        ("eye height: largest step between frames", step),
        ("eye height: total change", crouched),
    ]
}

fn weapons_predicted(seen: &SessionWatch) -> NamedFigures {
    let from_key = |key: &dyn Fn(&ObservedFrame) -> bool, shows: &dyn Fn(&ArenaBody) -> bool| {
        let pressed = seen.frames_of(0).find(|frame| frame.own.is_some() && key(frame))?;
        let shown = seen.frames_of(0).find(|frame| frame.at >= pressed.at && frame.own.as_ref().is_some_and(shows))?;
        Some((shown.at - pressed.at).as_ms_f64())
    };
    let switches = |frame: &ObservedFrame| frame.command.input.impulse == 2;
    let fires = |frame: &ObservedFrame| frame.command.input.buttons & buttons::ATTACK != 0;
    let reloads = |frame: &ObservedFrame| frame.command.input.buttons & buttons::RELOAD != 0;
    let checked = seen.received_by(0).filter(|s| s.comparison.is_some()).count();
    let corrected = seen.corrected(0).count();
    vec![
        ("key to holstering", from_key(&switches, &|own| own.next_weapon == WeaponId::Shotgun)),
        ("key to weapon change", from_key(&switches, &|own| own.weapon == WeaponId::Shotgun)),
        (
            "key to loss of ammunition",
            from_key(&fires, &|own| own.weapon == WeaponId::Shotgun && own.clip.shotgun == 7),
        ),
        ("key to delay of the next attack", from_key(&fires, &|own| own.next_attack_ms > 0)),
        ("key to reloading", from_key(&reloads, &|own| own.reload_ms > 0)),
        ("acknowledged states checked", count(checked)),
        ("corrections", count(corrected)),
    ]
}

fn weapon_logic_shared(seen: &SessionWatch) -> NamedFigures {
    let fired: Vec<_> = seen.shots_of(0).map(|shot| shot.command).collect();
    let shown = seen.frames_of(0).flat_map(|frame| &frame.shots);
    let never = shown.filter(|(command, _)| !fired.contains(command)).count();
    let corrections = seen.corrected(0).count();
    vec![
        ("shots on the server", count(fired.len())),
        ("predicted shots that the server never fired", count(never)),
        ("corrections", count(corrections)),
    ]
}

fn push_latency([beyond, half, none, beyond_at_20, half_at_20]: [&SessionWatch; 5]) -> NamedFigures {
    // The body has its full speed.
    let from = Micros::from_ms(2_000);
    let lag_ms = |(half, full): (&ObservedFrame, &ObservedFrame)| {
        let speed = full.own.as_ref()?.velocity.truncate().length();
        Some(1_000.0 * f64::from(full.own_drawn?.distance(half.own_drawn?) / speed))
    };
    let frames = half_at_20.frames_of(0).zip(beyond_at_20.frames_of(0)).filter(|(frame, _)| frame.at >= from);
    let lags: Option<Vec<f64>> = frames.map(lag_ms).collect();
    let lags = lags.filter(|lags| !lags.is_empty());
    let of = |pick: fn(f64, f64) -> f64| lags.iter().flatten().copied().reduce(pick);
    vec![
        ("least lag of the body at -50", of(f64::min)),
        ("greatest lag of the body at -50", of(f64::max)),
        ("key to movement at -1000", key_to_movement(beyond)),
        ("key to movement at -50", key_to_movement(half)),
        ("key to movement at 0", key_to_movement(none)),
    ]
}

/// Returns the time in ms from the first usercmd of player 0 with movement to the first frame in which the own body is drawn elsewhere.
pub(super) fn key_to_movement(seen: &SessionWatch) -> Option<f64> {
    let pressed = seen.frames_of(0).find(|f| f.command.input.forwardmove != 0.0 && f.own_drawn.is_some())?;
    let before = seen.frames_of(0).take_while(|f| f.at < pressed.at).last()?.own_drawn?;
    let moved = |drawn: Vec3| (drawn - before).truncate().length() > 0.01;
    let shown = seen.frames_of(0).find(|f| f.at >= pressed.at && f.own_drawn.is_some_and(moved))?;
    Some((shown.at - pressed.at).as_ms_f64())
}

/// Player 0 fires twice, and the usercmd of the first shot is lost.
fn sound_cut(seen: &SessionWatch) -> NamedFigures {
    let heard: Vec<(CommandSeq, Micros)> = seen
        .inspected(0)
        .filter(|frame| frame.plays(ArenaEffect::Pistol))
        .map(|frame| (frame.command.seq, frame.at))
        .collect();
    let cut: Vec<(CommandSeq, Micros)> = seen
        .received_by(0)
        .filter_map(|snapshot| Some((snapshot.at, snapshot.correction.as_ref()?)))
        .flat_map(|(at, correction)| correction.cancelled_effects.iter().map(move |(of, effect)| (*of, effect, at)))
        .filter(|(_, effect, _)| effect.kind == ArenaEffect::Pistol as u8)
        .map(|(of, _, at)| (of, at))
        .collect();
    let took = heard.first().zip(cut.first()).filter(|(heard, cut)| heard.0 == cut.0);
    vec![
        ("shots heard", count(heard.len())),
        ("shots run by the server", count(seen.shots_of(0).count())),
        ("shots cut", count(cut.len())),
        ("first shot: sound to cut", took.map(|(heard, cut)| (cut.1 - heard.1).as_ms_f64())),
    ]
}

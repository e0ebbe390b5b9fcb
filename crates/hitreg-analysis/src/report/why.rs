//! Explains one shot or one correction to the person who asks about it.

use super::figures::{clipped, count, counted, measure, measure_within, rounded_ms, seconds, within};
use super::page::{Page, one_line, printable};
use super::why_scene::WhyDrawing;
use crate::summary::agreement;
use crate::text_diff::TextDiff;
use crate::why::{
    ClientReplay, CorrectionExplanation, FieldError, JudgedOutcome, LineOffset, PlacingSnapshots, PositionKind,
    RejudgedShot, Relocation, ReportedHit, ShotExplanation, ShotResult, SnapshotName, TargetPosition, UsercmdPath, Why,
    other_drawing_mode,
};
use serde::Serialize;

use hitreg_log::record::value_of_setting;
use hitreg_log::recorder::last_usercmd_as_received;
use hitreg_log::trace::schema::{ABSENT, NOT_PREDICTED};

/// The page about a shot or a correction. `settings` are the settings of the trace.
pub fn why_page(why: &Why, settings: &[(String, String)], otherwise: &[RejudgedShot]) -> Page {
    let mut page = Page::default();
    match why {
        Why::Shot(shot) => about_shot(&mut page, why, shot, settings, otherwise),
        Why::Correction(correction) => about_correction(&mut page, why, correction, settings),
    }
    page
}

/// The answer in one or two sentences.
pub fn why_answer(why: &Why, settings: &[(String, String)]) -> String {
    match why {
        Why::Shot(shot) => shot_answer(shot, settings),
        Why::Correction(correction) => correction_answer(correction),
    }
}

/// The picture of a shot or correction as SVG; `None` if the trace has no positions.
pub fn why_svg(why: &Why, settings: &[(String, String)]) -> Option<String> {
    WhyDrawing::of(why).map(|scene| scene.svg(&title(why), &why_answer(why, settings)))
}

pub(super) fn title(why: &Why) -> String {
    match why {
        Why::Shot(shot) => {
            let what = if shot.is_impact { "impact of" } else { "shot" };
            let weapon = if shot.weapon.is_empty() { String::new() } else { format!(" ({})", name(&shot.weapon)) };
            let at = shot.judged.as_ref().and_then(|judged| judged.at_us).or(shot.made.and_then(|made| made.at_us));
            format!("{what} {}{weapon}{}", shot.name(), at_time(at))
        }
        Why::Correction(correction) => {
            let CorrectionExplanation { player, number, of, at_us, .. } = &**correction;
            format!("correction {} of {} of p{player}{}", count(u64::from(*number)), count(*of as u64), at_time(*at_us))
        }
    }
}

fn at_time(at_us: Option<i64>) -> String {
    at_us.map_or(String::new(), |at| format!(" at {}", seconds(at)))
}

/// Shortens a name that comes from a file.
pub(super) fn name(text: &str) -> String {
    clipped(text, 24)
}

pub(super) fn known(text: Option<String>) -> String {
    text.unwrap_or_else(|| "not known".to_owned())
}

/// The time at which a player's client made a usercmd; `None` if the log has the time of its arrival.
pub(super) fn made(frame_us: Option<i64>, (player, number, settings): (u32, u32, &[(String, String)])) -> Option<i64> {
    frame_us.filter(|_| last_usercmd_as_received(settings, player).is_none_or(|last| last.0 < number))
}

/// A usercmd's number and time.
pub(super) fn usercmd(frame_us: Option<i64>, of: (u32, u32, &[(String, String)])) -> String {
    let (_, number, _) = of;
    match frame_us {
        Some(at) if made(frame_us, of).is_none() => format!("#{number}, arrived at {}", seconds(at)),
        Some(at) => format!("#{number}, made at {}", seconds(at)),
        None => format!("#{number}; its time is not recorded"),
    }
}

pub(super) fn picture(page: &mut Page, why: &Why) {
    let Some(scene) = WhyDrawing::of(why) else {
        let reason = match why {
            Why::Shot(shot) if !shot.has_view_angles => {
                "all view angles are 0 and the trace has no other aim, so no line of fire is known"
            }
            Why::Shot(_) => "the trace has no line of fire for it, or no positions of the target",
            Why::Correction(_) => "no row of `errors` says how far origin.x, origin.y or origin.z was off",
        };
        page.blank();
        return page.faint(2, &format!("no picture: {reason}"));
    };
    let side = scene.seen_from_side();
    let above = if why.axes().is_flat { "In the plane" } else { "From above" };
    let views = [(above, Some(&scene)), ("From the side", side.as_ref())];
    for (name, scene) in views.into_iter().filter_map(|(name, scene)| Some((name, scene?))) {
        page.heading(name);
        for line in scene.lines() {
            page.line(&format!("  {line}"));
        }
        for line in scene.legend() {
            page.note(2, &line);
        }
    }
}

/// The aim of a shot without a line of fire. A trace holds only the angle between the target and the aim of a game that
/// aims without view angles.
fn without_line(shot: &ShotExplanation) -> String {
    match &shot.aimed_at {
        Some((who, Some(off))) => format!("{} degrees off {}; the trace has no direction", measure(*off), name(who)),
        _ => "not known: all view angles are 0 and the trace has no other aim".to_owned(),
    }
}

fn about_shot(
    page: &mut Page,
    why: &Why,
    shot: &ShotExplanation,
    settings: &[(String, String)],
    otherwise: &[RejudgedShot],
) {
    page.line(&title(why));
    page.note(2, &shot_answer(shot, settings));

    page.heading(&format!("On p{}'s screen", shot.shooter));
    let frame_us = shot.made.and_then(|made| made.at_us);
    page.pair("usercmd", &usercmd(frame_us, (shot.shooter, shot.command, settings)));
    let looks = shot.line.map(|line| format!("pitch {:.2}, yaw {:.2} degrees", line.pitch, line.yaw));
    let looks = looks.or_else(|| (!shot.has_view_angles && !shot.is_impact).then(|| without_line(shot)));
    page.pair_if("aim", looks.as_deref());
    let about = shot.about.as_deref().map(name);
    let target = about.as_ref().zip(chosen(shot)).map(|(who, by)| format!("{who}: {by}"));
    page.pair_if("target", target.as_deref());
    if let Some(who) = &about {
        let drawn = shot.drawn.as_ref().map(|drawn| {
            let at = drawn.at_us.map_or(String::new(), |at| format!(" as of server time {}", seconds(at)));
            let age = drawn.age_us.filter(|_| made(frame_us, (shot.shooter, shot.command, settings)).is_some());
            let age = age.map_or(String::new(), |age| format!(", {} old", rounded_ms(age)));
            let category = drawn.category.as_ref().map_or(String::new(), |category| format!(" ({})", name(category)));
            format!("{}{category}{at}{age}", name(&drawn.how))
        });
        page.pair(&format!("drew {}", clipped(who, 8)), &known(drawn));
    }
    page.pair_if("between", shot.drawn_from.as_ref().map(made_of).as_deref());
    page.pair("result", &came(&shot.screen));

    page.heading("On the server");
    let made_us = made(frame_us, (shot.shooter, shot.command, settings));
    page.pair_if("sent", shot.carried.as_ref().map(|carried| travelled(carried, made_us)).as_deref());
    match &shot.judged {
        Some(judged) => about_judged(page, shot, judged, settings),
        None => page.pair("executed", &unjudged(shot)),
    }
    if let Some(impact) = &shot.impact {
        page.pair("impact", &came(impact));
    }
    if let Some(who) = about.filter(|_| !shot.places.is_empty()) {
        places(page, shot, &who);
    }
    elsewhere(page, shot);
    picture(page, why);
    if !otherwise.is_empty() {
        page.heading("The same shot under other settings");
        for other in otherwise {
            let would_be = other.server.as_ref().map_or("not judged".to_owned(), came);
            page.note(2, &format!("{}: {would_be} ({})", other.what, other.setting));
        }
        page.faint(2, &super::what_if_line(hitreg_log::record::WhatIf::Rejudge));
    }
}

/// The reason why no server judged a shot.
fn unjudged(shot: &ShotExplanation) -> String {
    match shot.without_server {
        Some(ClientReplay::OneClient) => {
            return "not known: the log is one client's side, without the server. Merge it with the server's log (`hitreg \
                    merge`), and run `why` on the merged log"
                .to_owned();
        }
        Some(ClientReplay::OpenLoop) => return "not known: an open-loop replay has no server".to_owned(),
        None => {}
    }
    let Some((tick, how)) = &shot.executed else {
        return not_handled(shot.carried.as_ref()).to_owned();
    };
    match how.as_str() {
        "run" => format!("in tick {tick}, without firing"),
        "late" => format!("never: the usercmd arrived after its tick, in tick {tick}"),
        "over_budget" => format!("never: refused in tick {tick}, because the player had used up its simulation time"),
        "stood_in" => stand_in(*tick),
        _ => format!("never: the usercmd had not arrived in tick {tick}"),
    }
}

/// Why no tick of a log has a usercmd.
fn not_handled(carried: Option<&UsercmdPath>) -> &'static str {
    match carried {
        Some(UsercmdPath { arrived_us: Some(_), .. }) => {
            "not known: the usercmd arrived, and no tick of the log has it"
        }
        Some(UsercmdPath { is_lost: true, .. }) => "never: the usercmd did not arrive",
        _ => "never: the usercmd had not arrived at the end of the recording, or ran without firing",
    }
}

/// How the server handled a usercmd that had not arrived when it was due.
fn stand_in(tick: u32) -> String {
    format!("never: the usercmd had not arrived; the server repeated the one before in tick {tick}")
}

/// How the target was chosen.
fn chosen(shot: &ShotExplanation) -> Option<&'static str> {
    match shot.aimed_by.as_deref().filter(|_| !shot.is_impact)? {
        "hit" => Some("the server hit this target"),
        "predicted_hit" => Some("the shooter's screen showed a hit"),
        "nearest" => Some("no hit; the target drawn nearest to the line of fire"),
        _ => None,
    }
}

/// The snapshots from which a target was placed.
fn made_of(from: &PlacingSnapshots) -> String {
    let at = |snapshot: &SnapshotName| format!("#{} ({})", snapshot.seq, seconds(snapshot.server_time_us));
    match (&from.after, from.fraction) {
        (Some(after), Some(fraction)) => {
            format!("snapshots {} and {}, {:.0} %", at(&from.before), at(after), fraction * 100.0)
        }
        _ => format!("snapshot {}, the last received, and no later one", at(&from.before)),
    }
}

fn travelled(carried: &UsercmdPath, made_us: Option<i64>) -> String {
    let first = if carried.packets > 1 { format!("in {} packets, the first ", carried.packets) } else { String::new() };
    let waited = made_us.map(|made| carried.sent_us.saturating_sub(made)).filter(|waited| *waited != 0);
    let waited = waited.map_or(String::new(), |waited| format!(", {} after the client made it", rounded_ms(waited)));
    let arrived = match carried.arrived_us {
        Some(at) => format!("arrived at {}, {} later", seconds(at), rounded_ms(at.saturating_sub(carried.sent_us))),
        None if carried.is_lost => "never arrived".to_owned(),
        None => "arrival time not known".to_owned(),
    };
    format!("{first}at {}{waited}; {arrived}", seconds(carried.sent_us))
}

/// The words about a shot for which the report page has no numbers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ShotWords {
    /// What happened to a usercmd whose shot was not judged, or that the server replaced.
    executed: Option<String>,
    /// The rewind limit and how it applied.
    limit_words: Option<String>,
    /// Why the view error is not known.
    without_view_error: Option<String>,
}

impl ShotWords {
    pub(crate) fn of(shot: &ShotExplanation, settings: &[(String, String)]) -> ShotWords {
        let judged = shot.judged.as_ref();
        ShotWords {
            executed: match judged {
                None => Some(unjudged(shot)),
                Some(judged) => ran(judged),
            },
            limit_words: judged.filter(|_| !shot.is_impact).map(|judged| limit(shot, judged, settings)),
            without_view_error: shot.view_error_units.is_none().then(|| without_view_error(shot)),
        }
    }
}

/// How the server handled the usercmd of a judged shot, if it did not just run it.
fn ran(judged: &JudgedOutcome) -> Option<String> {
    match judged.ran.as_ref()? {
        (_, how) if how == "run" => None,
        (tick, _) if judged.is_stand_in() => Some(stand_in(*tick)),
        (tick, how) => Some(format!("{} in tick {tick}", name(how).replace('_', " "))),
    }
}

fn about_judged(page: &mut Page, shot: &ShotExplanation, judged: &JudgedOutcome, settings: &[(String, String)]) {
    let made_us = made(shot.made.and_then(|made| made.at_us), (shot.shooter, shot.command, settings));
    let when = |tick: Option<u32>, at_us: Option<i64>| {
        let after = made_us
            .zip(at_us)
            .map(|(made, at)| format!(", {} after the client made it", rounded_ms(at.saturating_sub(made))));
        let time = match (tick, at_us.map(seconds)) {
            (Some(tick), Some(at)) => format!("tick {tick} ({at})"),
            (Some(tick), None) => format!("tick {tick}"),
            (None, Some(at)) => format!("at {at}"),
            (None, None) => "time not recorded".to_owned(),
        };
        format!("{time}{}", after.unwrap_or_default())
    };
    let judged_at = when(judged.tick, judged.at_us);
    let executed = match &judged.ran {
        Some((tick, _)) => ran(judged).or_else(|| Some(when(Some(*tick), judged.ran_at_us))),
        None => (!shot.is_impact).then(|| judged_at.clone()),
    };
    page.pair("executed", &known(executed));
    page.pair_if("impact", Some(&*judged_at).filter(|_| shot.is_impact));
    if !shot.is_impact {
        rewound(page, shot, judged, settings);
    }
    page.pair("result", &came(&shot.server));
    page.pair_if("recorded", shot.given.as_ref().map(given).as_deref());
    let covered = judged.in_cover_ms.map(|ms| format!("; out of sight on its own screen for {} ms", measure(ms)));
    let who = shot.about.as_deref().map_or("the target".to_owned(), name);
    let visible = match judged.visible_at_present.as_str() {
        "yes" => Some(format!("yes: {who} was in sight when the server ran the shot")),
        "no" => Some(format!("no: {who} was out of sight when the server ran the shot")),
        _ => None,
    };
    page.pair_if("now visible", visible.map(|seen| format!("{seen}{}", covered.unwrap_or_default())).as_deref());
}

/// The rewind of a shot, and the error that is left.
fn rewound(page: &mut Page, shot: &ShotExplanation, judged: &JudgedOutcome, settings: &[(String, String)]) {
    let back = judged.rewind_us.map(|rewind| match (rewind, judged.at_us) {
        (0, _) if shot.server.reason == "launched" => "0 ms: launched in the present".to_owned(),
        (0, _) => "0 ms: judged at the present positions".to_owned(),
        (rewind, Some(at)) => {
            let in_present = shot.relocated.filter(|relocated| relocated.is_judged_in_present);
            let left = in_present.and(shot.about.as_deref());
            let left = left.map_or(String::new(), |who| format!(", but {} in the present", name(who)));
            format!("{}, to {}{left}", rounded_ms(rewind), seconds(at.saturating_sub(rewind)))
        }
        (rewind, None) => rounded_ms(rewind),
    });
    page.pair("rewound", &known(back));
    page.pair_if("between", shot.judged_from.as_ref().map(made_of).as_deref());
    page.pair("rewind limit", &limit(shot, judged, settings));
    let error = match (shot.view_error_units, &shot.about) {
        (Some(error), Some(who)) => {
            format!("{} units between {1} as drawn and {1} as judged", measure(error), name(who))
        }
        _ => without_view_error(shot),
    };
    page.pair("view error", &error);
}

/// The reason why a shot has no view error.
fn without_view_error(shot: &ShotExplanation) -> String {
    let shooter = shot.shooter;
    let reason = match shot.about.as_deref().map(name) {
        _ if shot.server.reason == "launched" => return "none: a projectile is not judged at launch".to_owned(),
        _ if !shot.has_views => format!("there is no record of what p{shooter}'s screen drew"),
        None => "no target was drawn".to_owned(),
        Some(who) if shot.drawn.is_none() => format!("p{shooter}'s screen did not draw {who}"),
        Some(who) => match shot.relocated {
            Some(Relocation { how, tick, at_us, .. }) => {
                return format!(
                    "not measured across a teleport or spawn: {who} {how} at {} (tick {tick})",
                    seconds(at_us)
                );
            }
            None => format!("{who} teleported or spawned since, or was not judged"),
        },
    };
    format!("not known: {reason}")
}

/// The hit that the recorded server reported for a shot.
fn given(given: &ReportedHit) -> String {
    let Some(target) = &given.target else { return "the recorded server reported no hit".to_owned() };
    let whom = if target == "?" { "an unknown player" } else { target };
    let damage = given.damage.map_or(String::new(), |damage| format!(" for {} damage", measure(damage)));
    let off = match (given.off_units, given.beyond_spread_units) {
        (Some(off), Some(beyond)) if off > 0.0 => {
            format!("; judged here, the shot misses by {} units, {} beyond its spread", measure(off), measure(beyond))
        }
        _ => String::new(),
    };
    format!("the recorded server reported a hit on {whom}{damage}{off}")
}

/// Adds a note if the server judged another aim than the shooter's screen showed.
fn elsewhere(page: &mut Page, shot: &ShotExplanation) {
    let Some((who, Some(ran))) = &shot.aimed_at else { return };
    let Some(drawn) = shot.place_of(PositionKind::Drawn).filter(|_| shot.about.as_ref() == Some(who)) else { return };
    let Some(off) = &drawn.off else { return };
    let has_height = shot.line.is_some_and(|line| line.has_height);
    let apart = (off.degrees() - ran).abs().to_radians() * off.distance_from_eyes();
    if has_height && apart > SAME_UNITS + drawn.uncertainty_units {
        let [seen, ran] = [off.degrees(), *ran].map(measure);
        let shooter = shot.shooter;
        let reason = match shot.judged.as_ref().is_some_and(JudgedOutcome::is_stand_in) {
            true => "The server judged the usercmd before, which it repeated. That".to_owned(),
            false => {
                format!("The server had p{shooter} at another place than p{shooter}'s screen. From there, the")
            }
        };
        page.note(2, &format!(
            "{reason} aim was {ran} degrees off {} as drawn, instead of {seen}. Distances in this table are from the line of \
             fire on the screen.",
            name(who)
        ));
    }
}

/// Two aims count as equal if they pass the target at most this far apart, in units.
const SAME_UNITS: f32 = 0.02;

/// The table of the target's places: drawn, judged and present.
fn places(page: &mut Page, shot: &ShotExplanation, who: &str) {
    if !shot.has_view_angles {
        let row = |place: &TargetPosition| {
            let position = place.origin.map(|origin| {
                let axes = origin.to_array().map(|axis| within(axis, 2, place.uncertainty_units));
                axes.join(", ")
            });
            let at = known(place.at_us.map(seconds));
            [place.which.name().to_owned(), at, known(position), place.known_by.to_owned()]
        };
        let columns = [">server time", ">position", "source"];
        page.section(&format!("Where {who} was"), &columns, shot.places.iter().map(row));
        return;
    }
    let row = |place: &TargetPosition| {
        let off = place.off.as_ref();
        let distance = off.map(|off| format!("{} units", measure_within(off.distance_units, place.uncertainty_units)));
        let direction = off.map_or(String::new(), |off| direction(off, place.uncertainty_units));
        let at = known(place.at_us.map(seconds));
        [place.which.name().to_owned(), at, known(distance), direction, place.known_by.to_owned()]
    };
    let columns = [">server time", ">from line", "", "source"];
    page.section(&format!("Where {who} was"), &columns, shot.places.iter().map(row));
    page.faint(
        2,
        &format!(
            "from line: distance from p{}'s line of fire to {who}'s origin, without the weapon's spread; left, right, \
             above and below as p{0} sees it",
            shot.shooter
        ),
    );
    let without_height = shot.line.is_some_and(|line| !line.has_height && !line.axes.is_flat);
    if without_height {
        page.faint(2, "distances from above only: the trace lacks the height of the eyes (own.view_ofs_z, or view_ofs_z of `bodies`)");
    }
}

/// The direction to the target as seen along the aim: `3.10 left, 2.00 below`.
fn direction(off: &LineOffset, uncertainty: f32) -> String {
    let part = |units: f32, side: &str| format!("{} {side}", measure_within(units.abs(), uncertainty));
    let across = part(off.right_units, off.side());
    let up = off.up_units.map(|up| part(up, if up < 0.0 { "below" } else { "above" }));
    let behind = off.is_behind().then(|| "behind".to_owned());
    [Some(across), up, behind].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A result in words: `hit p3, head, 80 damage`.
fn came(came: &ShotResult) -> String {
    let mut text = if came.reason.is_empty() { "not known".to_owned() } else { name(&came.reason) };
    text.extend(came.target.iter().map(|target| format!(" {}", name(target))));
    text.extend(came.hitgroup.iter().map(|hitgroup| format!(", {}", name(hitgroup))));
    text.extend(came.damage.filter(|damage| *damage != 0).map(|damage| format!(", {damage} damage")));
    text.extend(came.also_hit.iter().map(|others| format!("; also {}", clipped(others, ALSO_HIT_LETTERS_MAX))));
    text
}

/// The most letters of the other targets of a shot.
const ALSO_HIT_LETTERS_MAX: usize = 240;

/// The longest rewind.
const MAX_UNLAG_MS: &str = "lag_compensation.max_unlag_ms";

fn max_unlag_us(settings: &[(String, String)]) -> Option<i64> {
    value_of_setting(settings, MAX_UNLAG_MS)?.parse::<i64>().ok()?.checked_mul(1000)
}

/// Whether a rewind ended before the longest one.
fn is_within_limit(judged: &JudgedOutcome, settings: &[(String, String)]) -> bool {
    judged.rewind_us.zip(max_unlag_us(settings)).is_some_and(|(rewind, most)| rewind < most)
}

/// The limit of a shot's rewind, and how it applied.
fn limit(shot: &ShotExplanation, judged: &JudgedOutcome, settings: &[(String, String)]) -> String {
    let setting = |key: &str| value_of_setting(settings, key);
    let with_value = |key: &str| setting(key).map_or(key.to_owned(), |value| format!("{key} ({value} ms)"));
    let longest = with_value(MAX_UNLAG_MS);
    match judged.limit.as_str() {
        "none" => "not reached".to_owned(),
        "off" if setting("lag_compensation.enabled") == Some("false") => "lag compensation is off".to_owned(),
        "off" if shot.server.reason == "launched" => "lag compensation does not rewind for a projectile".to_owned(),
        "off" => "lag compensation is off, or the shot is a projectile".to_owned(),
        "max_unlag" if is_within_limit(judged, settings) => format!(
            "not reached. But p{}'s newest acked snapshot was older than {longest}, so the server used newer ones",
            shot.shooter
        ),
        "max_unlag" => match setting(MAX_UNLAG_MS) {
            Some(most) => format!("reached: {MAX_UNLAG_MS} is {most} ms"),
            None => format!("reached: {MAX_UNLAG_MS}"),
        },
        "claim" => {
            let asked = judged.at_us.zip(shot.made.and_then(|made| made.drawn_at_us()));
            let asked = asked.map_or("the usercmd's time".to_owned(), |(at, drawn)| {
                format!("the usercmd asked for {}; its time", rounded_ms(at.saturating_sub(drawn)))
            });
            let cut = format!(". It ended at {longest}; a higher value rewinds further from the usercmd's time");
            format!(
                "{asked} is over {} off the round trip measured up to its packet, so the server used the round trip{}",
                with_value("lag_compensation.max_claim_error_ms"),
                if judged.rewind_us == max_unlag_us(settings) { &cut } else { "" }
            )
        }
        "oldest" => "reached: the history does not go further back".to_owned(),
        "" => "not known".to_owned(),
        other => name(other),
    }
}

pub(crate) fn shot_answer(shot: &ShotExplanation, settings: &[(String, String)]) -> String {
    let ran_without_firing = shot.judged.is_none() && shot.executed.as_ref().is_some_and(|(_, how)| how == "run");
    let server = if ran_without_firing { "the usercmd ran without firing".to_owned() } else { came(&shot.server) };
    let shooter = shot.shooter;
    if shot.is_impact {
        return format!(
            "{}. This is the impact of the projectile of p{shooter}#{}; clients do not predict impacts.",
            capital(&server),
            shot.command
        );
    }
    let who = shot.about.as_deref().map_or("the target".to_owned(), name);
    let aim = shot.place_of(PositionKind::Drawn).and_then(|drawn| {
        let off = drawn.off.as_ref()?;
        let behind = if off.is_behind() { format!(", behind p{shooter},") } else { String::new() };
        let (across, side) = (measure_within(off.right_units.abs(), drawn.uncertainty_units), off.side());
        Some(format!("{who}'s origin was {across} units {side} of the line of fire{behind}"))
    });
    let screen = match shot.screen.reason.as_str() {
        "hit" => format!("p{shooter}'s screen showed: {}", came(&shot.screen)),
        "missed" | "hit the world" => format!("p{shooter}'s screen showed: {}", name(&shot.screen.reason)),
        "launched" => format!("p{shooter}'s screen showed the launch"),
        "already dead" => format!("on p{shooter}'s screen, the target was already dead"),
        NOT_PREDICTED => "the client did not predict the shot".to_owned(),
        _ => format!("the result on p{shooter}'s screen is not known"),
    };
    let targets = [&shot.screen, &shot.server].map(|result| result.target.as_deref().unwrap_or_default());
    let reasons = [&*shot.screen.reason, &shot.server.reason];
    let agrees = shot.judged.is_some() && agreement(reasons, targets) == Some(true);
    let screen = match targets[1] {
        _ if !agrees => screen,
        _ if came(&shot.screen) == server => "client and server agree".to_owned(),
        "" => format!("client and server agree on the miss; {screen}"),
        _ => format!("client and server agree on the target hit; {screen}"),
    };
    let aim = aim.filter(|_| shot.screen.reason != "hit" && shot.server.reason != "launched");
    let screen = aim.map_or(screen.clone(), |aim| format!("{screen}; {aim} on p{shooter}'s screen"));
    let server_words = match &shot.judged {
        None if let Some(without) = shot.without_server => {
            let reason = match without {
                ClientReplay::OneClient => "the log is one client's side, without the server",
                ClientReplay::OpenLoop => "the replay has no server",
            };
            return format!("Not judged here, because {reason}. {}.", capital(&screen));
        }
        None => "the server never judged it".to_owned(),
        Some(_) if shot.server.reason == "launched" => return format!("{}. {}.", capital(&server), capital(&screen)),
        Some(judged) => judged_words(shot, judged, settings),
    };
    format!("{}. {}. {}.", capital(&server), capital(&screen), capital(&server_words))
}

/// The text with a capital first letter, except for players such as `p1`.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some('p') if letters.as_str().starts_with(|next: char| next.is_ascii_digit()) => text.to_owned(),
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

fn judged_words(shot: &ShotExplanation, judged: &JudgedOutcome, settings: &[(String, String)]) -> String {
    if judged.is_stand_in() {
        let repeated = "the usercmd had not arrived, so the server repeated the one before and judged its aim";
        return format!("{repeated}, with the view of the next one");
    }
    let Some((who, error)) = shot.about.as_ref().zip(shot.view_error_units) else {
        let relocated = shot.about.as_deref().zip(shot.relocated);
        return relocated.map_or("the view error is not known".to_owned(), |(who, relocated)| {
            relocated_words(shot, &name(who), &relocated)
        });
    };
    let (who, shooter) = (name(who), shot.shooter);
    if error == 0.0 {
        return format!("the server judged {who} exactly where p{shooter} saw {who}");
    }
    let apart = format!("the server judged {who} {} units from where p{shooter} saw {who}", measure(error));
    match judged.limit.as_str() {
        "none" | "" => format!("{apart}{}", unlimited_error_words(shot, judged, &who, settings)),
        "claim" => format!("{apart}, because it refused the usercmd's time"),
        "max_unlag" if is_within_limit(judged, settings) => {
            format!("{apart}, because p{shooter}'s newest acked snapshot was too old")
        }
        _ => format!("{apart} (rewind limit: {})", limit(shot, judged, settings)),
    }
}

/// Where the server judged a target that teleported or spawned after the shooter's view of it.
fn relocated_words(shot: &ShotExplanation, who: &str, relocated: &Relocation) -> String {
    let shooter = shot.shooter;
    let what = format!("{who} {} at {}, after p{shooter}'s view of {who}", relocated.how, seconds(relocated.at_us));
    if !relocated.is_judged_in_present {
        return format!("{what}, so the server judged {who} at a place after that");
    }
    let [drawn, judged] =
        [PositionKind::Drawn, PositionKind::Judged].map(|which| shot.place_of(which).and_then(|place| place.origin));
    let apart = drawn.zip(judged).map(|(drawn, judged)| (judged - drawn).as_vec3().length());
    let apart =
        apart.map_or(String::new(), |apart| format!(", {} units from where p{shooter} saw {who}", measure(apart)));
    format!("{what}, so the server judged {who} in the present{apart}")
}

/// A view error below this distance is one of rounding, in units.
const ROUNDING_UNITS: f32 = 0.01;

/// The reason for a view error although no limit bounded the rewind.
fn unlimited_error_words(
    shot: &ShotExplanation,
    judged: &JudgedOutcome,
    who: &str,
    settings: &[(String, String)],
) -> String {
    let shooter = shot.shooter;
    if shot.view_error_units.is_some_and(|error| error < ROUNDING_UNITS) {
        return ", by rounding".to_owned();
    }
    if let Some(mode) = other_drawing_mode(settings, shooter) {
        return format!(
            ", because p{shooter}'s client drew with interpolation.mode={}, and the server rewinds as for `history`",
            name(mode)
        );
    }
    let unreceived: Vec<String> =
        shot.unreceived.iter().flatten().map(|snapshot| format!("#{}", snapshot.seq)).collect();
    if !unreceived.is_empty() {
        let noun = if unreceived.len() == 1 { "snapshot" } else { "snapshots" };
        let numbers = unreceived.join(" and ");
        return format!(", because p{shooter}'s client drew {who} without {noun} {numbers}, not received by then");
    }
    let times = judged.rewound_to_us().zip(shot.drawn.as_ref().and_then(|drawn| drawn.at_us));
    match times.map_or(0, |(rewound_to, drawn)| rewound_to.saturating_sub(drawn)) {
        0 if shot.carried.is_none() => {
            "; the trace lacks the reason: a log with packets shows which snapshots a client lacked".to_owned()
        }
        0 => "; the reason is not known".to_owned(),
        off => {
            let side = if off > 0 { "after" } else { "before" };
            let off_ms = measure(off.unsigned_abs() as f32 / 1000.0);
            let whole = if off.unsigned_abs() < 1000 { ", because `lerp_msec` has whole ms" } else { "" };
            format!(": the usercmd named a time {off_ms} ms {side} the drawn one{whole}")
        }
    }
}

pub(crate) fn correction_answer(correction: &CorrectionExplanation) -> String {
    let cause = if correction.cause.is_empty() { "cause not known".to_owned() } else { cause(correction) };
    if let Some(body) = absent_body(correction) {
        return format!("{cause}: for usercmd #{}, {body}.", correction.command);
    }
    let first = correction.errors.first().map_or(String::new(), |first| format!(", {} first", name(&first.field)));
    let fields = match correction.errors.len() as u64 {
        0 => String::new(),
        fields => format!("; {} corrected", counted(fields, "field")),
    };
    let error = correction.error_units.map(|error| format!("{} units off", measure(error)));
    let error = error.unwrap_or_else(|| "with an unknown error".to_owned());
    format!("{cause}: usercmd #{} was predicted {error}{fields}{first}.", correction.command)
}

/// The absent body, in words, if one of the bodies is absent.
fn absent_body(correction: &CorrectionExplanation) -> Option<&'static str> {
    let absent = correction.errors.iter().find(|error| error.field == ABSENT)?;
    match absent.difference() > 0.0 {
        true => Some("the server has no body of the player, and the client predicted one"),
        false => Some("the server has a body of the player, and the client predicted none"),
    }
}

/// The cause of a correction, in words.
fn cause(correction: &CorrectionExplanation) -> String {
    match correction.cause.as_str() {
        "" => "not known".to_owned(),
        cause => name(cause).replace('_', " "),
    }
}

fn about_correction(page: &mut Page, why: &Why, correction: &CorrectionExplanation, settings: &[(String, String)]) {
    page.line(&title(why));
    page.note(2, &correction_answer(correction));
    page.blank();
    page.pair("usercmd", &usercmd(correction.made_us, (correction.player, correction.command, settings)));
    let took = made(correction.made_us, (correction.player, correction.command, settings))
        .zip(correction.at_us)
        .map(|(made, ack)| format!(", {} later", rounded_ms(ack.saturating_sub(made))));
    let acked = known(correction.at_us.map(seconds));
    page.pair("acked", &format!("at {acked}{}", took.unwrap_or_default()));
    let with = correction.commands.map(|commands| {
        let ground = match correction.on_ground {
            Some(true) => " (on ground)",
            Some(false) => " (in air)",
            None => "",
        };
        format!("{}{ground}", counted(u64::from(commands), "usercmd"))
    });
    page.pair("spans", &known(with));
    page.pair("cause", &cause(correction));
    page.pair("evidence", &evidence_in_words(&correction.evidence));
    if let Some(body) = absent_body(correction) {
        page.pair("body", body);
        page.pair("run again", &known(correction.reran.map(|reran| counted(u64::from(reran), "usercmd"))));
        return picture(page, why);
    }
    let [place, velocity] = [(correction.error_units, "units"), (correction.velocity_error_units_per_s, "units/s")]
        .map(|(error, unit)| known(error.map(|error| format!("{} {unit}", measure(error)))));
    page.pair("error", &format!("position {place}; velocity {velocity}"));
    page.pair("run again", &known(correction.reran.map(|reran| counted(u64::from(reran), "usercmd"))));
    let row = |error: &FieldError| {
        let [predicted, actual] = [&error.predicted, &error.authoritative].map(|value| value.to_string());
        let difference = error.whole_difference().map_or_else(
            || known(Some(error.difference()).filter(|by| !by.is_nan()).map(measure)),
            |whole| whole.to_string(),
        );
        [name(&error.field), predicted, actual, difference]
    };
    if !correction.errors.is_empty() {
        let rows = correction.errors.iter().take(FIELDS_MAX).map(row);
        page.section("field", &[">predicted", ">actual", ">difference"], rows);
    }
    if correction.errors.len() > FIELDS_MAX {
        page.note(2, &format!("and {}", counted((correction.errors.len() - FIELDS_MAX) as u64, "more field")));
    }
    body_diff(page, correction);
    picture(page, why);
}

/// The predicted body, and the actual values of the corrected fields, if the whole predicted body is known. The trace
/// does not have the actual values of the other fields; not all of them were compared.
fn body_diff(page: &mut Page, correction: &CorrectionExplanation) {
    let text = |came: bool| -> String {
        let error = |field: &str| correction.errors.iter().find(|error| came && error.field == field);
        let line = |(field, value): &(String, String)| {
            let value = error(field).map_or(value.clone(), |error| error.authoritative.to_string());
            format!("{}\n", one_line(&format!("{field} = {value}")))
        };
        correction.predicted.iter().map(line).collect()
    };
    let mut found = TextDiff::default();
    found.add(["@@ body: predicted (-), actual (+), predicted only ( ) @@", "@@"], &text(false), &text(true), 2);
    if !found.is_empty() {
        page.blank();
        page.text_diff(&found, BODY_LINES_MAX, "in the table `frames`");
    }
}

const BODY_LINES_MAX: usize = 40;

/// The evidence for a cause, in words. Games can have evidence of their own.
pub(crate) fn evidence_in_words(evidence: &str) -> String {
    match evidence {
        "snapshot" => "the server's snapshot says so".to_owned(),
        "touched" => "the player touched it when the usercmds ran".to_owned(),
        "reproduced" => AGREES.to_owned(),
        "executed" => "the server did not run every usercmd as the client made it".to_owned(),
        "none" => "none".to_owned(),
        "not looked into" => "not examined, after many corrections without a known cause".to_owned(),
        "" => "not known".to_owned(),
        other => match other.strip_prefix("reproduced: ") {
            Some(assumption) => format!("{AGREES}: {}", printable(assumption)),
            None => printable(other).into_owned(),
        },
    }
}

const AGREES: &str = "running the usercmds again this way gives the server's state";

const FIELDS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::CellValue;

    #[test]
    fn a_result_names_all_targets() {
        let [target, hitgroup, also_hit] = ["p0", "head", "p10 legs 20; p3 arm 16 by 2 pellets"].map(str::to_owned);
        let (hitgroup, also_hit) = (Some(hitgroup), Some(also_hit));
        let hit = ShotResult { reason: "hit".to_owned(), target: Some(target), hitgroup, damage: Some(60), also_hit };
        assert_eq!(came(&hit), "hit p0, head, 60 damage; also p10 legs 20; p3 arm 16 by 2 pellets");
    }

    #[test]
    fn a_usercmd_that_no_tick_handled_is_explained_by_its_packets() {
        let path = |arrived_us, is_lost| UsercmdPath { sent_us: 0, arrived_us, is_lost, packets: 1 };
        assert_eq!(
            not_handled(Some(&path(Some(5), false))),
            "not known: the usercmd arrived, and no tick of the log has it"
        );
        assert_eq!(not_handled(Some(&path(None, true))), "never: the usercmd did not arrive");
        for unknown in [None, Some(&path(None, false))] {
            assert!(not_handled(unknown).starts_with("never: the usercmd had not arrived at the end"));
        }
    }

    #[test]
    fn a_place_behind_the_shooter_is_named_so() {
        let off = |ahead_units| LineOffset { ahead_units, right_units: 3.0, up_units: None, distance_units: 3.0 };
        assert_eq!([off(9.0), off(-9.0)].map(|off| direction(&off, 0.0)), ["3.00 right", "3.00 right, behind"]);
    }

    #[test]
    fn the_answer_names_the_absent_body() {
        let answer = |predicted, authoritative| {
            let [predicted, authoritative] = [predicted, authoritative].map(CellValue::Float);
            let error = FieldError { field: ABSENT.to_owned(), predicted, authoritative };
            correction_answer(&CorrectionExplanation {
                player: 0,
                number: 1,
                of: 1,
                command: 9,
                made_us: None,
                at_us: None,
                commands: None,
                result: "miss".to_owned(),
                on_ground: None,
                error_units: None,
                velocity_error_units_per_s: None,
                reran: None,
                cause: "spawn_or_death".to_owned(),
                evidence: "snapshot".to_owned(),
                errors: vec![error],
                predicted: Vec::new(),
                axes: Default::default(),
            })
        };
        let death =
            "spawn or death: for usercmd #9, the server has no body of the player, and the client predicted one.";
        assert_eq!(answer(0.0, 1.0), death);
        assert!(answer(1.0, 0.0).ends_with("the server has a body of the player, and the client predicted none."));
    }
}

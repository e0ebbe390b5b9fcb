//! Explains one shot or one correction to the person who asks about it.

use super::figures::{clipped, count, seconds};
use super::page::Page;
use super::why_correction::{about_correction, correction_answer};
use super::why_scene::WhyDrawing;
use super::why_shot::{about_shot, shot_answer};
use crate::why::{CorrectionExplanation, RejudgedShot, Why};
use hitreg_log::recorder::are_usercmds_as_received;

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
            format!("{what} p{}#{}{weapon}{}", shot.shooter, shot.command, at_time(at))
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
pub(super) fn made(frame_us: Option<i64>, (player, settings): (u32, &[(String, String)])) -> Option<i64> {
    frame_us.filter(|_| !are_usercmds_as_received(settings, player))
}

/// A usercmd's number and time.
pub(super) fn usercmd(number: u32, frame_us: Option<i64>, of: (u32, &[(String, String)])) -> String {
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

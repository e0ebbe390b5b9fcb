//! The page of shots whose results differ: changed shots, and shots that hit in neither trace.

use super::figures::{count, counted, seconds};
use super::page::Page;
use crate::diff::{ChangedShot, HitChanges, ShotChange, ShotOutcome};
use crate::why::hitgroup_in_words;
use hitreg_log::trace::schema::{NOT_PREDICTED, NOT_RUN};

/// The matrix of hits, by row of `shots`, and at most `most` shots whose results differ, each with its number, which `hitreg diff --why`
/// takes.
pub(super) fn hits(page: &mut Page, hits: &HitChanges, most: usize) {
    let in_both = hits.in_both();
    if in_both + hits.only_a + hits.only_b + hits.neither == 0 {
        return;
    }
    let row = |what: &str, hit: u64, not: u64| [what.to_owned(), count(hit), count(not)];
    let rows = [row("hit in A", in_both, hits.only_a), row("not hit in A", hits.only_b, hits.neither)];
    page.section("rows of shots", &[">hit in B", ">not hit in B"], rows);
    let other = [(hits.other_target, "other target"), (hits.other_wound, "other hitgroup, damage or pellets")];
    let words: Vec<String> =
        other.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))).collect();
    if !words.is_empty() {
        page.note(2, &format!("hit in both, but: {}", words.join(", ")));
    }
    if hits.other_reason > 0 {
        page.note(
            2,
            &format!("hit in neither, but for another reason or on one side only: {}", count(hits.other_reason)),
        );
    }
    let (mut changed, mut misses) = (hits.outcomes_changed(), hits.other_reason);
    for (number, shot) in (1..).zip(hits.changed.first()).take(most) {
        both_sides(page, number, &shot);
        let of_kind = if shot.change == ShotChange::OtherReason { &mut misses } else { &mut changed };
        *of_kind = of_kind.saturating_sub(1);
    }
    if let Some(more) = more(changed, misses) {
        page.note(2, &format!("and {more} (--format json has all)"));
    }
}

/// The shots that a list leaves out; `None` without any. A shot that hit in neither trace is no changed shot.
pub(super) fn more(changed: u64, misses: u64) -> Option<String> {
    let changed = (changed > 0).then(|| counted(changed, "more changed shot"));
    let misses = (misses > 0).then(|| format!("{} more that hit in neither", count(misses)));
    let more: Vec<String> = changed.into_iter().chain(misses).collect();
    (!more.is_empty()).then(|| more.join(", "))
}

/// A shot whose results differ, in one line: `p3 #59 pistol, 0.984 s: hit in B only`.
pub(super) fn change(shot: &ChangedShot) -> String {
    let of_either = shot.a.as_ref().or(shot.b.as_ref());
    let ran = of_either.is_none_or(|outcome| &*outcome.reason != NOT_RUN);
    let change = match shot.change {
        ShotChange::OnlyA => "hit in A only",
        ShotChange::OnlyB => "hit in B only",
        ShotChange::OtherTarget => "other target",
        ShotChange::OtherWound => "other hitgroup, damage or pellets",
        ShotChange::OtherReason if shot.a.is_none() && ran => "fired in B only, no hit",
        ShotChange::OtherReason if shot.b.is_none() && ran => "fired in A only, no hit",
        ShotChange::OtherReason if shot.a.is_none() => "predicted in B only, not run",
        ShotChange::OtherReason if shot.b.is_none() => "predicted in A only, not run",
        ShotChange::OtherReason => "hit in neither, other reason",
    };
    let impact = if shot.is_impact { " impact" } else { "" };
    let at = shot.at_us.map_or(String::new(), |at| format!(", {}", seconds(at)));
    format!("p{} #{}{}{impact}{at}: {change}", shot.shooter, shot.command, weapons(shot))
}

/// The weapon of a shot after a space: ` pistol`, or ` launcher in A, pistol in B`. Empty if the game has no names of weapons.
fn weapons(shot: &ChangedShot) -> String {
    let of_sides = [("A", &shot.a), ("B", &shot.b)];
    let named = of_sides.into_iter().filter_map(|(side, outcome)| Some((side, &*outcome.as_ref()?.weapon)));
    let named: Vec<(&str, &str)> = named.filter(|(_, weapon)| !weapon.is_empty()).collect();
    match named[..] {
        [] => String::new(),
        [(_, a), (_, b)] if a != b => format!(" {a} in A, {b} in B"),
        [(_, weapon), ..] => format!(" {weapon}"),
    }
}

fn both_sides(page: &mut Page, number: u64, shot: &ChangedShot) {
    page.note(2, &format!("{number}. {}", change(shot)));
    let pellets = [&shot.a, &shot.b].map(|outcome| outcome.as_ref().and_then(|outcome| outcome.pellets));
    let other_pellets = shot.change == ShotChange::OtherWound && pellets[0] != pellets[1];
    for (side, outcome, pellets) in [("A", &shot.a, pellets[0]), ("B", &shot.b, pellets[1])] {
        let words = outcome.as_ref().map_or("not fired".to_owned(), words);
        let pellets = pellets.filter(|_| other_pellets).map_or(String::new(), |of| format!(", pellets: {of}"));
        page.note(4, &format!("{side} {words}{pellets}"));
    }
}

/// The result of a shot: `hit p2 chest 24, rewound 120.0 ms, view error 0.000; on screen: hit p2`.
fn words(outcome: &ShotOutcome) -> String {
    let mut text = verdict(outcome);
    if let Some(rewind) = outcome.rewind_us.filter(|rewind| *rewind != 0) {
        text.push_str(&format!(", rewound {:.1} ms", rewind as f64 / 1000.0));
        if !matches!(&*outcome.limit, "" | "none" | "off") {
            text.push_str(&format!(" ({})", outcome.limit));
        }
    }
    if let Some(error) = outcome.view_error_units {
        text.push_str(&format!(", view error {error:.3}"));
    }
    if !matches!(&*outcome.predicted_reason, "" | NOT_PREDICTED) {
        text.push_str(&format!("; on screen: {}", on_screen(outcome)));
    }
    text
}

/// The server's verdict on a shot: `hit p2 chest 24`, or the reason of a miss.
pub fn verdict(outcome: &ShotOutcome) -> String {
    let mut text = outcome.reason.to_string();
    if !matches!(&*outcome.target, "" | "none") {
        text.push_str(&format!(" {}", outcome.target));
        text.extend(hitgroup_in_words(&outcome.hitgroup).iter().map(|hitgroup| format!(" {hitgroup}")));
        text.extend(outcome.damage.map(|damage| format!(" {damage}")));
        text.extend(outcome.also_hit.iter().map(|others| format!("; also {others}")));
    }
    text
}

/// The result of a shot on the shooter's screen: `hit p2`, or the reason of a miss.
pub fn on_screen(outcome: &ShotOutcome) -> String {
    match &*outcome.predicted_target {
        "" | "none" => outcome.predicted_reason.to_string(),
        target => format!("{} {target}", outcome.predicted_reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(reason: &str, pellets: i64) -> ShotOutcome {
        let [weapon, reason, target, hitgroup] = ["gun", reason, "p1", "chest"].map(Into::into);
        let (damage, pellets) = (Some(12), Some(pellets));
        ShotOutcome { weapon, reason, target, hitgroup, damage, pellets, ..ShotOutcome::default() }
    }

    #[test]
    fn pellets_are_named_if_they_alone_differ_and_a_shot_that_never_ran_was_not_fired() {
        let shot = |change: ShotChange, a: ShotOutcome, b: Option<ShotOutcome>| ChangedShot {
            shooter: 0,
            command: 3,
            index: 0,
            is_impact: false,
            at_us: None,
            change,
            a: Some(a),
            b,
        };
        let mut page = Page::default();
        both_sides(&mut page, 1, &shot(ShotChange::OtherWound, outcome("hit", 3), Some(outcome("hit", 2))));
        let text = page.text();
        assert!(
            text.contains("A hit p1 chest 12, pellets: 3") && text.contains("B hit p1 chest 12, pellets: 2"),
            "{text}"
        );
        let several = ShotOutcome { also_hit: Some("p4 arm 16".into()), ..outcome("hit", 1) };
        assert_eq!(verdict(&several), "hit p1 chest 12; also p4 arm 16");
        // A recorded hitgroup is a number.
        let recorded = ["0", "3"].map(|number| verdict(&ShotOutcome { hitgroup: number.into(), ..outcome("hit", 1) }));
        assert_eq!(recorded, ["hit p1 12", "hit p1 hitgroup 3 12"]);
        let words = |reason: &str| change(&shot(ShotChange::OtherReason, outcome(reason, 1), None));
        assert_eq!(words("missed"), "p0 #3 gun: fired in A only, no hit");
        assert_eq!(words(NOT_RUN), "p0 #3 gun: predicted in A only, not run");
        // A usercmd that came late may fire another weapon.
        let with = |weapon: &str| ShotOutcome { weapon: weapon.into(), ..outcome("hit", 1) };
        let words = |a: &str, b: &str| change(&shot(ShotChange::OnlyB, with(a), Some(with(b))));
        assert_eq!(words("launcher", "gun"), "p0 #3 launcher in A, gun in B: hit in B only");
        assert_eq!(words("gun", "gun"), "p0 #3 gun: hit in B only");
        assert_eq!(words("", ""), "p0 #3: hit in B only");
    }
}

//! Extra figures for recordings of another game: how often its players were moved on their own screens, and the hits
//! that its server reported, judged again.

use serde::Serialize;

use crate::cli::figures::{count, counted, measure, ms, share};
use crate::cli::page::Page;
use crate::replay::PlayerJumps;
use crate::stats::{CountedValues, Spread};
use crate::trace::Trace;
use crate::trace::schema::shots;
use hitreg_log::sorted::SortedMap;

/// The visible corrections of a player's own position.
#[derive(Serialize)]
pub(super) struct JumpReport {
    player: u16,
    /// The number of visible corrections.
    count: usize,
    units: Spread,
}

/// The maximum number of players in the text output. The JSON has all players.
const MOST_PLAYERS: usize = 8;

impl JumpReport {
    /// Smaller corrections are invisible. Quake III's clients do not count them either (`cg_showmiss`).
    const LEAST_UNITS: f32 = 0.1;

    pub(super) fn of(jumped: &[PlayerJumps]) -> Vec<JumpReport> {
        let of_player = |PlayerJumps { player, units }: &PlayerJumps| {
            let mut seen = CountedValues::default();
            let mut count = 0;
            for (units, times) in units.iter().filter(|(units, _)| *units > Self::LEAST_UNITS) {
                count += times as usize;
                (0..times).for_each(|_| seen.add(units));
            }
            Some(JumpReport { player: player.0, count, units: seen.spread()? })
        };
        jumped.iter().filter_map(of_player).collect()
    }

    pub(super) fn print(page: &mut Page, jumps: &[JumpReport]) {
        if jumps.is_empty() {
            return;
        }
        page.heading(&format!(
            "Visible corrections: snapshots that moved a player on its own screen by over {} units",
            Self::LEAST_UNITS
        ));
        let row = |jumps: &JumpReport| {
            let [p50, p95, max] = [jumps.units.p50, jumps.units.p95, jumps.units.max].map(measure);
            [format!("p{}", jumps.player), count(jumps.count as u64), p50, p95, max]
        };
        page.table(&["", ">times", ">p50", ">p95", ">max"], jumps.iter().take(MOST_PLAYERS).map(row));
    }
}

/// A hit that another server reported.
#[derive(Serialize)]
pub(super) struct RejudgedHit {
    shooter: u32,
    command: u32,
    /// The index of the hit within its usercmd.
    index: u32,
    at_us: i64,
    weapon: String,
    /// The player that the server reported as hit; `?` if unknown.
    target: String,
    /// The player that is hit here; `null` if the shot is unknown.
    judged: Option<String>,
    /// Why the hit is not judged; `null` if it is.
    not_judged: Option<UnjudgedReason>,
    /// The player that would have been hit without a rewind.
    at_present: Option<String>,
    rewind_us: i64,
    /// How far the shot misses the target here, in units, and beyond its spread. `null` if the shot is unknown.
    off_units: Option<f32>,
    beyond_spread_units: Option<f32>,
    /// Distance between where the shooter's screen showed the target and where the server judged it.
    view_error_units: Option<f32>,
}

/// Why a hit is not judged again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum UnjudgedReason {
    /// The weapon has no line of fire.
    Melee,
    /// No shot is known at that time.
    NoShot,
}

impl RejudgedHit {
    /// A shot that misses by no more than this counts as a hit. Coordinates are single-precision, and maps are large.
    const THROUGH_UNITS: f32 = 0.01;

    /// The reported hits, without those of projectiles. `melee` are the game's weapons without a line of fire.
    pub(super) fn of(trace: &Trace, melee: &[&str]) -> Vec<RejudgedHit> {
        let shots = shots::Columns::of(trace);
        let measure = |column: &[f32], row: usize| column.get(row).copied().filter(|value| !value.is_nan());
        let given = (0..shots.rows).zip(shots.given_target.iter()).filter(|(_, target)| *target != "none");
        let at_once = given.filter(|(row, _)| shots.impact.get(*row) != Some(&1));
        let hit = |(row, target): (usize, &str)| {
            let at_present = shots.present_target.get(row);
            let off_units = measure(shots.off_units, row);
            let why =
                if melee.contains(&shots.weapon.get(row)) { UnjudgedReason::Melee } else { UnjudgedReason::NoShot };
            Some(RejudgedHit {
                shooter: *shots.shooter.get(row)?,
                command: *shots.command.get(row)?,
                index: *shots.index.get(row)?,
                at_us: *shots.at_us.get(row)?,
                weapon: shots.weapon.get(row).to_owned(),
                target: target.to_owned(),
                judged: off_units.map(|_| shots.target.get(row).to_owned()),
                not_judged: off_units.is_none().then_some(why),
                at_present: (!matches!(at_present, "" | "none")).then(|| at_present.to_owned()),
                rewind_us: *shots.rewind_us.get(row)?,
                off_units,
                beyond_spread_units: measure(shots.beyond_spread_units, row),
                view_error_units: measure(shots.view_error_units, row),
            })
        };
        at_once.filter_map(hit).collect()
    }

    fn is_explained(&self) -> bool {
        self.judged.as_ref().is_some_and(|judged| *judged == self.target || (self.target == "?" && judged != "none"))
    }

    /// Whether the shots of all hits are unknown. Then nothing is known about missed shots either.
    fn are_of_no_shot(hits: &[&RejudgedHit]) -> bool {
        let known = |hit: &RejudgedHit| hit.rewind_us != 0 || hit.at_present.is_some() || hit.off_units.is_some();
        !hits.is_empty() && !hits.iter().any(|hit| known(hit))
    }

    fn hits_at_present(&self) -> bool {
        self.at_present.as_ref().is_some_and(|target| *target == self.target || self.target == "?")
    }

    /// Prints the hits. `has_map` is whether the log has usercmds and the map.
    pub(super) fn print(page: &mut Page, hits: &[RejudgedHit], has_map: bool) {
        if hits.is_empty() {
            return;
        }
        page.heading("Hits that the recorded server reported, judged again here");
        let is_melee = |hit: &&RejudgedHit| hit.not_judged == Some(UnjudgedReason::Melee);
        let (melee, hits): (Vec<&RejudgedHit>, Vec<&RejudgedHit>) = hits.iter().partition(is_melee);
        if !melee.is_empty() {
            let of = counted(melee.len() as u64, "hit");
            page.note(2, &format!("{of} with the {} not judged: a melee weapon has no line of fire", melee[0].weapon));
        }
        if hits.is_empty() {
            return;
        }
        if RejudgedHit::are_of_no_shot(&hits) && !has_map {
            let text = "none of the {} can be judged: this needs a capture of the datagrams, and the map that was played: \
                        `hitreg import quake3-udp CAPTURE --map FILE -o LOG`";
            page.note(2, &text.replace("{}", &count(hits.len() as u64)));
            return;
        }
        let head = ["", ">hits", ">same target", ">within spread", ">without rewind", ">view error p50", ">p95"];
        let mut by_weapon: SortedMap<&str, Vec<&RejudgedHit>> = SortedMap::new();
        for hit in &hits {
            by_weapon.entry(&hit.weapon).or_default().push(hit);
        }
        let row = |name: &str, hits: &[&RejudgedHit]| {
            let of = |is_one: fn(&RejudgedHit) -> bool| {
                share(hits.iter().filter(|hit| is_one(hit)).count() as u64, hits.len() as u64)
            };
            let error = Spread::of(hits.iter().filter_map(|hit| hit.view_error_units));
            let error = error.map_or(["-"; 2].map(str::to_owned), |error| [error.p50, error.p95].map(measure));
            let within =
                |hit: &RejudgedHit| hit.beyond_spread_units.is_some_and(|off| off <= RejudgedHit::THROUGH_UNITS);
            let shares = [of(|hit| hit.is_explained()), of(within), of(|hit| hit.hits_at_present())];
            [name.to_owned(), count(hits.len() as u64)].into_iter().chain(shares).chain(error)
        };
        let all = row("all", &hits);
        page.table(&head, by_weapon.iter().map(|(weapon, hits)| row(weapon, hits)).chain([all]));
        let mut others = hits.iter().filter(|hit| !hit.is_explained());
        for hit in others.by_ref().take(MOST_UNEXPLAINED) {
            let target = if hit.target == "?" { "an unknown player" } else { &hit.target };
            let what = match hit.off_units {
                Some(off) => format!(
                    "judged here with a rewind of {}, the shot misses it by {} units and hits {}",
                    ms(hit.rewind_us),
                    measure(off),
                    hit.judged.as_deref().filter(|whom| *whom != "none").unwrap_or("no player")
                ),
                _ => "no shot is known at that time".to_owned(),
            };
            page.note(
                2,
                &format!(
                    "not explained: p{} #{} hit {target} with the {} at {:.3} s: {what}",
                    hit.shooter,
                    hit.command,
                    hit.weapon,
                    hit.at_us as f64 / 1e6
                ),
            );
        }
        let more = others.count();
        if more > 0 {
            page.faint(2, &format!("and {} more not explained (listed with --format json)", count(more as u64)));
        }
    }
}

/// The maximum number of unexplained hits that are listed.
const MOST_UNEXPLAINED: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(weapon: &str, off_units: Option<f32>) -> RejudgedHit {
        let why = if weapon == "gauntlet" { UnjudgedReason::Melee } else { UnjudgedReason::NoShot };
        RejudgedHit {
            shooter: 0,
            command: 1,
            index: 0,
            at_us: 0,
            weapon: weapon.to_owned(),
            target: "p1".to_owned(),
            judged: off_units.map(|_| "p1".to_owned()),
            not_judged: off_units.is_none().then_some(why),
            at_present: None,
            rewind_us: 0,
            off_units,
            beyond_spread_units: off_units,
            view_error_units: None,
        }
    }

    fn printed(hits: &[RejudgedHit], has_map: bool) -> String {
        let mut page = Page::default();
        RejudgedHit::print(&mut page, hits, has_map);
        format!("{page:?}").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn hits_of_a_melee_weapon_are_not_wrong_targets() {
        let gauntlet = [hit("gauntlet", None), hit("gauntlet", None)];
        let text = printed(&gauntlet, true);
        assert!(text.contains("2 hits with the gauntlet not judged: a melee weapon has no line of fire"), "{text}");
        assert!(!text.contains("capture") && !text.contains("not explained"), "{text}");
        let both = printed(&[hit("gauntlet", None), hit("railgun", Some(0.0))], true);
        assert!(
            both.contains(&share(1, 1)) && !both.contains(&share(1, 2)) && !both.contains("not explained"),
            "{both}"
        );
    }

    #[test]
    fn the_advice_about_capture_and_map_needs_their_absence() {
        let unknown = [hit("railgun", None)];
        assert!(printed(&unknown, false).contains("import quake3-udp CAPTURE --map FILE"));
        let text = printed(&unknown, true);
        assert!(text.contains("no shot is known at that time") && !text.contains("CAPTURE"), "{text}");
    }
}

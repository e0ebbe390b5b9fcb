//! What a recording of another game's server and clients tells besides: how often its players were moved on their own screens,
//! and the hits that the server gave, judged again as it judges.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::figures::{count, measure, ms, share};
use crate::cli::page::{Align, Cell, Page};
use crate::game::HitAgain;
use crate::replay::Jump;
use crate::stats::Spread;
use crate::trace::schema::views;
use crate::trace::{Series, Trace};

/// What a player saw of his own mispredictions.
#[derive(Serialize)]
pub(super) struct Jumps {
    player: u16,
    /// Those that are seen.
    count: usize,
    units: Spread,
}

/// The other players are in the JSON.
const MOST_PLAYERS: usize = 8;

impl Jumps {
    /// Nobody sees less; Quake III's clients do not count it either (`cg_showmiss`).
    const LEAST_UNITS: f32 = 0.1;

    pub(super) fn of(jumps: &[Jump]) -> Vec<Jumps> {
        let of_player = |jumps: &[Jump]| {
            let seen: Vec<f32> =
                jumps.iter().map(|jump| jump.units).filter(|units| *units > Self::LEAST_UNITS).collect();
            Some(Jumps { player: jumps.first()?.player.0, count: seen.len(), units: Spread::of(seen)? })
        };
        jumps.chunk_by(|one, next| one.player == next.player).filter_map(of_player).collect()
    }

    pub(super) fn print(page: &mut Page, jumps: &[Jumps]) {
        if jumps.is_empty() {
            return;
        }
        page.heading(&format!(
            "On their own screens: moved by more than {} units when a snapshot came",
            Self::LEAST_UNITS
        ));
        let right = Align::Right;
        let head = [("", Align::Left), ("times", right), ("p50", right), ("p95", right), ("greatest", right)];
        let row = |jumps: &Jumps| -> Vec<Cell> {
            let Spread { p50, p95, max } = jumps.units;
            let units = [p50, p95, max].map(measure);
            [format!("p{}", jumps.player), count(jumps.count as u64)].into_iter().chain(units).map(Cell::from).collect()
        };
        page.table(&head, &jumps.iter().take(MOST_PLAYERS).map(row).collect::<Vec<_>>());
    }
}

/// A hit that another server gave.
#[derive(Serialize)]
pub(super) struct Hit {
    shooter: u16,
    at_us: i64,
    weapon: &'static str,
    target: Option<u16>,
    /// The usercmd that fired; none where no shot is known by then, or nobody knows where the target was. So are all that follow.
    command: Option<u32>,
    rewind_us: Option<i64>,
    /// How far beside the target the shot passes where the server judged it.
    off_units: Option<f32>,
    beyond_spread_units: Option<f32>,
    off_present_units: Option<f32>,
    /// From where the shooter's screen showed it to where the server judged it.
    view_error_units: Option<f32>,
}

impl Hit {
    /// A shot goes through what it passes by no more: coordinates are single floats, and maps are wide.
    const THROUGH_UNITS: f32 = 0.01;

    pub(super) fn of(hits: &[HitAgain], trace: &Trace) -> Vec<Hit> {
        let views = views::Columns::of(trace);
        let rows = Series::of_two([views.player, views.entity], views.command);
        let [x, y, z] = views.origin;
        let hit = |hit: &HitAgain| {
            let judged = hit.judged;
            let drawn = judged.and_then(|judged| {
                let row = rows.at([hit.shooter.0.into(), judged.target.0.into()], judged.command.0).next()?;
                let drawn = glam::Vec3::new(*x.get(row)?, *y.get(row)?, *z.get(row)?);
                Some(drawn.distance(judged.origin))
            });
            Hit {
                shooter: hit.shooter.0,
                at_us: hit.at.0,
                weapon: hit.weapon,
                target: hit.target.map(|target| target.0),
                command: judged.map(|judged| judged.command.0),
                rewind_us: judged.map(|judged| judged.rewind.0),
                off_units: judged.map(|judged| judged.off_units),
                beyond_spread_units: judged.map(|judged| judged.beyond_spread_units),
                off_present_units: judged.and_then(|judged| judged.off_present_units),
                view_error_units: drawn,
            }
        };
        hits.iter().map(hit).collect()
    }

    pub(super) fn print(page: &mut Page, hits: &[Hit]) {
        if hits.is_empty() {
            return;
        }
        page.heading("Hits that the server gave, judged again as it judges: through the target");
        let right = Align::Right;
        let head = [
            ("", Align::Left),
            ("hits", right),
            ("rewound", right),
            ("within the spread", right),
            ("not rewound", right),
            ("view error p50", right),
            ("p95", right),
        ];
        let mut by_weapon: BTreeMap<&str, Vec<&Hit>> = BTreeMap::new();
        for hit in hits {
            by_weapon.entry(hit.weapon).or_default().push(hit);
        }
        let row = |name: &str, hits: &[&Hit]| -> Vec<Cell> {
            let through = |off: fn(&Hit) -> Option<f32>| {
                let through = hits.iter().filter(|hit| off(hit).is_some_and(|off| off <= Self::THROUGH_UNITS));
                share(through.count() as u64, hits.len() as u64)
            };
            let error = Spread::of(hits.iter().filter_map(|hit| hit.view_error_units));
            let error = error.map_or(["-"; 2].map(str::to_owned), |error| [error.p50, error.p95].map(measure));
            let shares = [
                through(|hit| hit.off_units),
                through(|hit| hit.beyond_spread_units),
                through(|hit| hit.off_present_units),
            ];
            let cells = [name.to_owned(), count(hits.len() as u64)].into_iter().chain(shares).chain(error);
            cells.map(Cell::from).collect()
        };
        let mut rows: Vec<Vec<Cell>> = by_weapon.iter().map(|(weapon, hits)| row(weapon, hits)).collect();
        rows.push(row("all", &hits.iter().collect::<Vec<_>>()));
        page.table(&head, &rows);
        let is_explained = |hit: &&Hit| hit.off_units.is_some_and(|off| off <= Self::THROUGH_UNITS);
        let mut others = hits.iter().filter(|hit| !is_explained(hit));
        for hit in others.by_ref().take(MOST_UNEXPLAINED) {
            let target = hit.target.map_or("somebody".to_owned(), |target| format!("p{target}"));
            let what = match (hit.command, hit.off_units, hit.rewind_us) {
                (Some(command), Some(off), Some(rewind)) => {
                    format!("#{command} passes {} units beside it, {} back", measure(off), ms(rewind))
                }
                _ => "no shot is known by then".to_owned(),
            };
            page.note(
                2,
                &format!(
                    "not explained: p{} hit {target} with the {} at {:.3} s: {what}",
                    hit.shooter,
                    hit.weapon,
                    hit.at_us as f64 / 1e6
                ),
            );
        }
        let more = others.count();
        if more > 0 {
            page.faint(2, &format!("and {} more not explained (--format json)", count(more as u64)));
        }
    }
}

/// How many hits are listed that are not explained.
const MOST_UNEXPLAINED: usize = 5;

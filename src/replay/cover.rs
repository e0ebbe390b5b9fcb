//! Who was hit behind a corner: for each judged shot, whether its target could still be seen from the shooter's muzzle where
//! the server had it, and how long and how far its own player had it out of sight by then.

use glam::Vec3;

use super::columns::{CellRows, Names};
use super::frames::Frames;
use super::shots::Sight;
use crate::game::{Body, Game};
use crate::trace::Data;
use crate::units::{EntityId, Micros};

/// Nobody is looked after further back than this: more than any rewind reaches, and the longest flight of a packet.
const LONGEST: Micros = Micros::from_s(3);

/// How the target of each shot was covered, in three columns.
#[derive(Clone, Debug)]
pub(super) struct Covers {
    visible: Names,
    ms: Vec<f32>,
    units: Vec<f32>,
}

/// Every body after every tick, in the order of ticks.
pub(super) struct Present<'a> {
    pub(super) ticks: &'a [u32],
    pub(super) entities: &'a [u32],
    pub(super) cells: &'a CellRows,
}

impl Default for Covers {
    fn default() -> Covers {
        Covers { visible: Names::known(&["unknown", "yes", "no"]), ms: Vec::new(), units: Vec::new() }
    }
}

impl Covers {
    /// Looks at every shot. A shot without a sight, and every shot of a game that does not say who sees whom, is unknown.
    pub(super) fn of_shots<G: Game>(
        rules: &G::Rules,
        sights: &[Option<Sight>],
        present: &Present<'_>,
        frames: &Frames,
    ) -> Covers {
        let players = sights.iter().flatten().map(|s| usize::from(s.target.0) + 1).max().unwrap_or(0);
        let rows = frames.rows_by_player(players);
        let mut covers = Covers::default();
        for sight in sights {
            let visible = sight.and_then(|s| G::sees(rules, s.muzzle, &present.body::<G::Body>(&s)?));
            let hidden = match (sight, visible) {
                (Some(sight), Some(false)) if sight.was_hit => {
                    hidden::<G>(rules, sight, frames, &rows[usize::from(sight.target.0)])
                }
                _ => None,
            };
            covers.visible.push_code(visible.map_or(0, |visible| if visible { 1 } else { 2 }));
            covers.ms.push(hidden.map_or(f32::NAN, |(time, _)| time.as_ms_f64() as f32));
            covers.units.push(hidden.map_or(f32::NAN, |(_, units)| units));
        }
        covers
    }

    /// The columns; rows beyond the shots that were looked at are unknown.
    pub(super) fn data(&mut self, rows: usize) -> [Data; 3] {
        let Covers { mut visible, mut ms, mut units } = std::mem::take(self);
        for _ in ms.len()..rows {
            visible.push_code(0);
        }
        ms.resize(rows, f32::NAN);
        units.resize(rows, f32::NAN);
        [visible.data(), Data::F32(ms), Data::F32(units)]
    }
}

impl Present<'_> {
    /// Where a shot's target was after the last tick before the one in which the shot was judged.
    fn body<B: Body>(&self, sight: &Sight) -> Option<B> {
        let tick = sight.tick.0.checked_sub(1)?;
        let begin = self.ticks.partition_point(|t| *t < tick);
        let of_tick = self.ticks[begin..].iter().take_while(|t| **t == tick).count();
        let is_target = |row: &usize| EntityId(self.entities[*row] as u16) == sight.target;
        B::read(self.cells.row((begin..begin + of_tick).find(is_target)?)?).ok()
    }
}

/// For how long and how far the target of a shot had been out of the muzzle's sight on its own screen when the shot was
/// judged: nothing at all if it could be seen there. `None` when its own screen is not known.
fn hidden<G: Game>(rules: &G::Rules, sight: &Sight, frames: &Frames, rows: &[usize]) -> Option<(Micros, f32)> {
    let shown = rows.partition_point(|row| frames.at(*row) <= sight.at);
    let (_, last) = frames.own::<G::Body>(*rows.get(shown.checked_sub(1)?)?)?;
    let mut since: Option<(Micros, Vec3)> = None;
    for row in rows[..shown].iter().rev() {
        let Some((at, own)) = frames.own::<G::Body>(*row) else { break };
        // Before it was put where it is, it was somewhere else altogether.
        let same_life = own.teleports() == last.teleports() && own.is_alive() == last.is_alive();
        if !same_life || sight.at - at > LONGEST || G::sees(rules, sight.muzzle, &own)? {
            break;
        }
        since = Some((at, own.origin()));
    }
    Some(since.map_or((Micros::ZERO, 0.0), |(at, place)| (sight.at - at, place.distance(last.origin()))))
}

//! Who was hit behind a corner: for each judged shot, whether its target could still be seen from the shooter's muzzle where
//! the server had it, and how long and how far its own player had it out of sight by then.

use glam::Vec3;

use super::columns::CellRows;
use super::frames::Frames;
use super::shots::Sight;
use crate::game::{Body, Game};
use crate::units::{EntityId, Micros};

/// Nobody is looked after further back than this: more than any rewind reaches, and the longest flight of a packet.
const LONGEST: Micros = Micros::from_s(3);

/// How the target of a shot was covered; unknown unless said otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cover {
    /// Whether it could be seen from the muzzle where the server had it.
    pub(super) visible: Option<bool>,
    /// For how long, and how far, its own player had it in cover.
    pub(super) hidden: Option<(Micros, f32)>,
}

/// Every body after every tick, in the order of ticks.
pub(super) struct Present<'a> {
    pub(super) ticks: &'a [u32],
    pub(super) entities: &'a [u32],
    pub(super) cells: &'a CellRows,
}

/// Looks at every shot. A shot without a sight, and every shot of a game that does not say who sees whom, is unknown.
pub(super) fn covers<G: Game>(
    rules: &G::Rules,
    sights: &[Option<Sight>],
    present: &Present<'_>,
    frames: &Frames,
) -> Vec<Cover> {
    let players = sights.iter().flatten().map(|s| usize::from(s.target.0) + 1).max().unwrap_or(0);
    let rows = frames.rows_by_player(players);
    let cover = |sight: &Option<Sight>| {
        let Some(sight) = sight else { return Cover::default() };
        let visible = present.body::<G::Body>(sight).and_then(|body| G::sees(rules, sight.muzzle, &body));
        let hidden = match visible {
            Some(false) if sight.was_hit => hidden::<G>(rules, sight, frames, &rows[usize::from(sight.target.0)]),
            _ => None,
        };
        Cover { visible, hidden }
    };
    sights.iter().map(cover).collect()
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

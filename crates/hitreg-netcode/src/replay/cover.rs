//! Finds hits behind cover. For each judged shot: could the shooter's muzzle see the target at its present position on
//! the server? And on the target's own screen, how long and how far had it been out of sight?
//!
//! It keeps the bodies after the last tick, and some seconds of each player's own screen. Rows of shots wait for the
//! frames at the time of the shot, and are completed with the next frame.

use std::collections::VecDeque;
use std::sync::Arc;

use glam::{DVec3, Vec3};

use super::shots::ShotView;
use crate::game::{Body, Game};
use hitreg_log::units::{EntityId, Micros, PlayerId, Tick};

/// The longest look into the past. It exceeds any rewind and any usual packet flight.
pub(super) const LONGEST: Micros = Micros::from_s(3);

/// The recent bodies that judged shots may concern.
pub(super) struct CoverTracker {
    eyes: CoverView,
    /// The number of cells of a body.
    width: usize,
    /// The last tick; `entities` and `cells` are the bodies after it.
    tick: Tick,
    entities: Vec<EntityId>,
    cells: Vec<u32>,
    /// Each player's own body on its own screen.
    own: Vec<OwnFrames>,
}

/// Whether a place sees a body, given as cells.
type SightFn = dyn Fn(Vec3, &[u32]) -> Option<bool> + Send;

/// The game's functions on bodies, given as cells.
struct CoverView {
    sees: Box<SightFn>,
    state: fn(&[u32]) -> Option<LifeState>,
}

/// A body's position, and the life in which it was there.
#[derive(Clone, Copy, PartialEq)]
struct LifeState {
    life: (u32, bool),
    place: DVec3,
}

/// A player's own body frame by frame; frames without a body have no cells.
#[derive(Clone, Default)]
struct OwnFrames {
    frames: VecDeque<(Micros, bool)>,
    cells: VecDeque<u32>,
}

impl CoverTracker {
    pub(super) fn new<G: Game>(players: usize, rules: Arc<G::Rules>) -> CoverTracker {
        let sees = move |muzzle, cells: &[u32]| G::sees(&rules, muzzle, &G::Body::read(cells).ok()?);
        let state = |cells: &[u32]| {
            let body = G::Body::read(cells).ok()?;
            Some(LifeState { life: (body.teleports(), body.is_alive()), place: body.place() })
        };
        CoverTracker {
            eyes: CoverView { sees: Box::new(sees), state },
            width: G::Body::CELLS,
            tick: Tick(0),
            entities: Vec::new(),
            cells: Vec::new(),
            own: vec![OwnFrames::default(); players],
        }
    }

    /// Starts the bodies after a tick.
    pub(super) fn ticked(&mut self, tick: Tick) {
        self.tick = tick;
        self.entities.clear();
        self.cells.clear();
    }

    /// Adds the cells of a body after the tick.
    pub(super) fn body(&mut self, entity: EntityId, cells: &[u32]) {
        self.entities.push(entity);
        self.cells.extend_from_slice(cells);
    }

    /// Adds a player's frame, with the cells of its own body. Shots since `oldest` may still need the frames before
    /// them.
    pub(super) fn frame(&mut self, player: PlayerId, at: Micros, oldest: Micros, own: Option<&[u32]>) {
        let Some(OwnFrames { frames, cells }) = self.own.get_mut(usize::from(player.0)) else { return };
        // The last frame before that time stays, because it shows the screen until the next one.
        while frames.get(1).is_some_and(|(next, _)| next.0 < oldest.0.saturating_sub(LONGEST.0)) {
            if let Some((_, true)) = frames.pop_front() {
                cells.drain(..self.width);
            }
        }
        frames.push_back((at, own.is_some()));
        cells.extend(own.unwrap_or_default());
    }

    /// Returns whether the muzzle could see the target where it was after the previous tick.
    pub(super) fn visible(&self, sight: &ShotView) -> Option<bool> {
        if Some(self.tick.0) != sight.tick.0.checked_sub(1) {
            return None;
        }
        let row = self.entities.iter().position(|entity| *entity == sight.target)?;
        (self.eyes.sees)(sight.muzzle, &self.cells[row * self.width..(row + 1) * self.width])
    }

    /// Returns for how long and how far the target had been hidden from the muzzle on its own screen at the time of
    /// the shot. Both are 0 if the target was visible; `None` if its own screen is unknown.
    pub(super) fn hidden(&self, sight: &ShotView) -> Option<(Micros, f32)> {
        let OwnFrames { frames, cells } = self.own.get(usize::from(sight.target.0))?;
        let shown = frames.partition_point(|(at, _)| *at <= sight.at);
        let mut end = frames.range(..shown).filter(|(_, has_body)| *has_body).count() * self.width;
        let mut last: Option<LifeState> = None;
        let mut since: Option<(Micros, DVec3)> = None;
        for (at, has_body) in frames.range(..shown).rev() {
            let body: Option<Vec<u32>> = has_body.then(|| cells.range(end - self.width..end).copied().collect());
            let Some((body, state)) = body.and_then(|body| (self.eyes.state)(&body).map(|state| (body, state))) else {
                break;
            };
            end -= self.width;
            let last = last.get_or_insert(state);
            // Positions before a teleport or an earlier life do not count.
            if state.life != last.life || sight.at - *at > LONGEST || (self.eyes.sees)(sight.muzzle, &body)? {
                break;
            }
            since = Some((*at, state.place));
        }
        let last = last?;
        Some(since.map_or((Micros::ZERO, 0.0), |(at, place)| (sight.at - at, (place - last.place).as_vec3().length())))
    }
}

impl std::fmt::Debug for CoverTracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoverTracker")
            .field("tick", &self.tick)
            .field("entities", &self.entities)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rink::{Rink, Skater};

    /// A body below the floor, hidden from everywhere above.
    fn below(x: f32) -> Skater {
        Skater { origin: Vec3::new(x, 0.0, -4_000.0), alive: true, ..Skater::default() }
    }

    fn hidden(frames: &[(i64, f32)], shot_ms: i64) -> Option<(Micros, f32)> {
        let mut covers = CoverTracker::new::<Rink>(2, Arc::new(()));
        for (ms, x) in frames {
            let mut cells = [0; Skater::CELLS];
            below(*x).write(&mut cells);
            covers.frame(PlayerId(1), Micros::from_ms(*ms), Micros::ZERO, Some(&cells));
        }
        let muzzle = Vec3::new(0.0, 0.0, 40.0);
        covers.hidden(&ShotView { at: Micros::from_ms(shot_ms), tick: Tick(1), muzzle, target: EntityId(1) })
    }

    #[test]
    fn the_frame_of_the_shots_own_moment_counts() {
        let frames = [(0, 0.0), (100, 10.0), (200, 20.0), (300, 30.0)];
        assert_eq!(hidden(&frames, 200), Some((Micros::from_ms(200), 20.0)));
        assert_eq!(hidden(&frames, 199), Some((Micros::from_ms(199), 10.0)));
    }

    #[test]
    fn the_search_for_a_frame_has_a_limit() {
        let longest = LONGEST.0 / 1000;
        assert_eq!(hidden(&[(0, 0.0), (longest, 30.0)], longest), Some((LONGEST, 30.0)));
        assert_eq!(hidden(&[(0, 0.0), (longest, 30.0)], longest + 1), Some((Micros::from_ms(1), 0.0)));
        assert_eq!(hidden(&[], 5), None);
    }
}

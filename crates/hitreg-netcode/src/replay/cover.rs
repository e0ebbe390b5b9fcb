//! Who was hit behind a corner: for each judged shot, whether its target could still be seen from the shooter's muzzle where
//! the server had it, and how long and how far its own player had it out of sight by then.
//!
//! Of the past it keeps what a shot may ask for: the bodies after the last tick, and some seconds of every player's own
//! screen. A shot is told apart from the frames of its own moment, so its answer comes with the next one.

use std::collections::VecDeque;
use std::sync::Arc;

use glam::Vec3;

use super::shots::Sight;
use crate::game::{Body, Game};
use hitreg_log::units::{EntityId, Micros, PlayerId, Tick};

/// Nobody is looked after further back than this: more than any rewind reaches, and the longest flight of a packet.
const LONGEST: Micros = Micros::from_s(3);

/// What is known of bodies that shots may have been about.
pub(super) struct Covers {
    eyes: Eyes,
    width: usize,
    /// After the last tick.
    tick: Tick,
    entities: Vec<EntityId>,
    cells: Vec<u32>,
    /// Each player's own body as it saw it.
    own: Vec<Own>,
}

/// Whether a body in cells is seen from a place.
type Sees = dyn Fn(Vec3, &[u32]) -> Option<bool> + Send;

/// What a game says of a body in cells.
struct Eyes {
    sees: Box<Sees>,
    state: fn(&[u32]) -> Option<State>,
}

/// Where a body was in which life.
#[derive(Clone, Copy, PartialEq)]
struct State {
    life: (u32, bool),
    origin: Vec3,
}

/// The own body of a player, frame by frame; without cells where it had none.
#[derive(Clone, Default)]
struct Own {
    frames: VecDeque<(Micros, bool)>,
    cells: VecDeque<u32>,
}

impl Covers {
    pub(super) fn new<G: Game>(players: usize, rules: Arc<G::Rules>) -> Covers {
        let sees = move |muzzle, cells: &[u32]| G::sees(&rules, muzzle, &G::Body::read(cells).ok()?);
        let state = |cells: &[u32]| {
            let body = G::Body::read(cells).ok()?;
            Some(State { life: (body.teleports(), body.is_alive()), origin: body.origin() })
        };
        Covers {
            eyes: Eyes { sees: Box::new(sees), state },
            width: G::Body::CELLS,
            tick: Tick(0),
            entities: Vec::new(),
            cells: Vec::new(),
            own: vec![Own::default(); players],
        }
    }

    /// The server finished a tick.
    pub(super) fn ticked(&mut self, tick: Tick) {
        self.tick = tick;
        self.entities.clear();
        self.cells.clear();
    }

    /// The cells of a body after it.
    pub(super) fn body(&mut self, entity: EntityId, cells: &[u32]) {
        self.entities.push(entity);
        self.cells.extend_from_slice(cells);
    }

    /// A player's frame, and its own body in it. Shots since `oldest` may still ask for what came before them.
    pub(super) fn frame(&mut self, player: PlayerId, at: Micros, oldest: Micros, own: Option<&[u32]>) {
        let Some(Own { frames, cells }) = self.own.get_mut(usize::from(player.0)) else { return };
        // The last one before that says what was on the screen until then.
        while frames.get(1).is_some_and(|(next, _)| next.0 < oldest.0.saturating_sub(LONGEST.0)) {
            if let Some((_, true)) = frames.pop_front() {
                cells.drain(..self.width);
            }
        }
        frames.push_back((at, own.is_some()));
        if let Some(own) = own {
            cells.extend(own);
        }
    }

    /// Whether a shot's target could be seen where it was after the last tick before the one in which it is being judged.
    pub(super) fn visible(&self, sight: &Sight) -> Option<bool> {
        if Some(self.tick.0) != sight.tick.0.checked_sub(1) {
            return None;
        }
        let row = self.entities.iter().position(|entity| *entity == sight.target)?;
        (self.eyes.sees)(sight.muzzle, &self.cells[row * self.width..(row + 1) * self.width])
    }

    /// For how long and how far the target of a shot had been out of the muzzle's sight on its own screen when the shot was
    /// judged: nothing at all if it could be seen there. `None` when its own screen is not known.
    pub(super) fn hidden(&self, sight: &Sight) -> Option<(Micros, f32)> {
        let Own { frames, cells } = self.own.get(usize::from(sight.target.0))?;
        let shown = frames.partition_point(|(at, _)| *at <= sight.at);
        let mut end = frames.range(..shown).filter(|(_, has_body)| *has_body).count() * self.width;
        let mut last: Option<State> = None;
        let mut since: Option<(Micros, Vec3)> = None;
        for (at, has_body) in frames.range(..shown).rev() {
            let body: Option<Vec<u32>> = has_body.then(|| cells.range(end - self.width..end).copied().collect());
            let Some((body, state)) = body.and_then(|body| (self.eyes.state)(&body).map(|state| (body, state))) else {
                break;
            };
            end -= self.width;
            let last = last.get_or_insert(state);
            // Before it was put where it is, it was somewhere else altogether.
            if state.life != last.life || sight.at - *at > LONGEST || (self.eyes.sees)(sight.muzzle, &body)? {
                break;
            }
            since = Some((*at, state.origin));
        }
        let last = last?;
        Some(since.map_or((Micros::ZERO, 0.0), |(at, place)| (sight.at - at, place.distance(last.origin))))
    }
}

impl std::fmt::Debug for Covers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Covers").field("tick", &self.tick).field("entities", &self.entities).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Arena, ArenaBody, ArenaRules};

    /// Somebody below the floor, where nobody sees him.
    fn below(x: f32) -> Vec<u32> {
        let body = ArenaBody { origin: Vec3::new(x, 0.0, -4_000.0), alive: true, ..ArenaBody::default() };
        let mut cells = vec![0; ArenaBody::CELLS];
        body.write(&mut cells);
        cells
    }

    fn hidden(frames: &[(i64, f32)], shot_ms: i64) -> Option<(Micros, f32)> {
        let mut covers = Covers::new::<Arena>(2, Arc::new(ArenaRules::default()));
        for (ms, x) in frames {
            covers.frame(PlayerId(1), Micros::from_ms(*ms), Micros::ZERO, Some(&below(*x)));
        }
        let muzzle = Vec3::new(0.0, 0.0, 40.0);
        covers.hidden(&Sight { at: Micros::from_ms(shot_ms), tick: Tick(1), muzzle, target: EntityId(1) })
    }

    #[test]
    fn the_frame_of_the_shots_own_moment_counts() {
        let frames = [(0, 0.0), (100, 10.0), (200, 20.0), (300, 30.0)];
        assert_eq!(hidden(&frames, 200), Some((Micros::from_ms(200), 20.0)));
        assert_eq!(hidden(&frames, 199), Some((Micros::from_ms(199), 10.0)));
    }

    #[test]
    fn nobody_is_looked_after_further_back_than_that() {
        let longest = LONGEST.0 / 1000;
        assert_eq!(hidden(&[(0, 0.0), (longest, 30.0)], longest), Some((LONGEST, 30.0)));
        assert_eq!(hidden(&[(0, 0.0), (longest, 30.0)], longest + 1), Some((Micros::from_ms(1), 0.0)));
        assert_eq!(hidden(&[], 5), None);
    }
}

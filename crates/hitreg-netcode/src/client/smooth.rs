//! Smoothing of corrections: the body is drawn where it was, and the offset fades (Quake III's `cg_errordecay`,
//! Source's `cl_smoothtime`). Simulated entities ease to their place in an update in the same way. NeREIDS describes
//! such discrepancies, for example when an apple has just started to fall.

use glam::Vec3;

use crate::game::{Body, Category, PlacedBody};
use crate::settings::Settings;
use crate::state::{State, StateError, StateReader, StateValue, StateWriter, state};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, Micros};

pub(super) struct Smoothing {
    fade: Micros,
    max_units: f32,
    error: Vec3,
    since: Micros,
}

state!(Smoothing { error, since } but { fade, max_units });

impl Smoothing {
    /// Creates a smoothing that fades errors of up to `max_units` over `fade_ms`.
    pub(super) fn new(fade_ms: i64, max_units: i64) -> Smoothing {
        let fade = Micros::from_ms(fade_ms);
        Smoothing { fade, max_units: max_units as f32, error: Vec3::ZERO, since: Micros::ZERO }
    }

    /// Handles a correction. `error` is the origin as drawn minus the origin as it should now be drawn.
    pub(super) fn handle_correction(&mut self, now: Micros, error: Vec3) {
        self.error = if error.length() > self.max_units { Vec3::ZERO } else { error };
        self.since = now;
    }

    /// Returns the remaining offset, to be added to the predicted origin.
    pub(super) fn offset(&self, now: Micros) -> Vec3 {
        let age = now - self.since;
        if self.error == Vec3::ZERO || age >= self.fade {
            return Vec3::ZERO;
        }
        self.error * (1.0 - age.0 as f32 / self.fade.0 as f32)
    }
}

/// The smoothing of Simulated entities towards their place in updates.
pub(super) struct EasedEntities {
    fade_ms: i64,
    max_units: i64,
    eased: SortedMap<EntityId, EasedEntity>,
}

/// One entity.
struct EasedEntity {
    /// The server time of the update that it was last drawn by, and its teleport count.
    updated: (Micros, u32),
    smoothing: Smoothing,
}

state!(EasedEntity { updated, smoothing } but {});

impl State for EasedEntities {
    fn save(&self, to: &mut StateWriter) {
        let EasedEntities { fade_ms: _, max_units: _, eased } = self;
        eased.keys().copied().collect::<Vec<_>>().put(to);
        eased.values().for_each(|eased| eased.save(to));
    }

    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError> {
        let entities = Vec::<EntityId>::get(from)?;
        self.eased = entities.into_iter().map(|entity| (entity, self.unmoved((Micros::ZERO, 0)))).collect();
        self.eased.values_mut().try_for_each(|eased| eased.restore(from))
    }
}

impl EasedEntities {
    pub(super) fn new(settings: &Settings) -> EasedEntities {
        let (fade_ms, max_units) = (settings.interpolation.ease_ms, settings.prediction.smooth_max_units);
        EasedEntities { fade_ms, max_units, eased: SortedMap::new() }
    }

    /// Returns an entity without an error.
    fn unmoved(&self, updated: (Micros, u32)) -> EasedEntity {
        EasedEntity { updated, smoothing: Smoothing::new(self.fade_ms, self.max_units) }
    }

    /// Moves Simulated entities to where they are drawn at local time `now`. `updated` is the server time of the
    /// update. `before` returns an entity as it would be by the update before.
    pub(super) fn ease<B: Body>(
        &mut self,
        now: Micros,
        updated: Micros,
        drawn: &mut [(EntityId, PlacedBody<B>)],
        before: impl Fn(EntityId) -> Option<B>,
    ) {
        if self.fade_ms == 0 {
            return;
        }
        let is_simulated = |placed: &PlacedBody<B>| placed.by.is_some_and(|by| by.category == Category::Simulated);
        self.eased.retain(|id, _| drawn.iter().any(|(other, placed)| other == id && is_simulated(placed)));
        for (id, placed) in drawn.iter_mut().filter(|(_, placed)| is_simulated(placed)) {
            let of = placed.body.teleports();
            let new = self.unmoved((updated, of));
            let eased = self.eased.entry(*id).or_insert(new);
            if eased.updated.1 != of {
                eased.smoothing.handle_correction(now, Vec3::ZERO);
            } else if let Some(before) =
                before(*id).filter(|before| eased.updated.0 != updated && before.place() != placed.body.place())
            {
                let shown = before.moved_by(eased.smoothing.offset(now));
                eased.smoothing.handle_correction(now, shown.offset_from(&placed.body));
            }
            eased.updated = (updated, of);
            placed.body = placed.body.moved_by(eased.smoothing.offset(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::dot::DotBody;
    use crate::game::{PlacementKind, Rendering};

    #[test]
    fn an_error_fades_and_a_teleport_does_not() {
        let prediction = Settings::default().prediction;
        let mut smoothing = Smoothing::new(prediction.smooth_ms, prediction.smooth_max_units);
        smoothing.handle_correction(Micros::from_ms(1000), Vec3::X * 10.0);
        let left = |ms| smoothing.offset(Micros::from_ms(ms)).x;
        assert_eq!([left(1000), left(1050), left(1100), left(1500)], [10.0, 5.0, 0.0, 0.0]);
        let mut at_once = |units| {
            smoothing.handle_correction(Micros::from_ms(2000), Vec3::X * units);
            smoothing.offset(Micros::from_ms(2000)).x
        };
        assert_eq!([at_once(500.0), at_once(64.0), at_once(64.01)], [0.0, 64.0, 0.0]);
    }
    #[test]
    fn an_entity_missing_for_a_frame_is_no_longer_eased() {
        let shown_after = |gone: bool| {
            let mut easing = EasedEntities { fade_ms: 100, max_units: 64, eased: SortedMap::new() };
            let mut drawn_at = |at_ms, server_ms, ids: &[u16]| {
                let by = Some(Rendering { category: Category::Simulated, at: Micros::ZERO });
                let placed = |id: &u16| {
                    (
                        EntityId(*id),
                        PlacedBody { by, ..PlacedBody::new(DotBody::default(), PlacementKind::Extrapolated) },
                    )
                };
                let mut drawn: Vec<_> = ids.iter().map(placed).collect();
                // By the update before, each entity would be 10 units away.
                easing.ease(Micros::from_ms(at_ms), Micros::from_ms(server_ms), &mut drawn, |_| {
                    Some(DotBody { origin: Vec3::X * 10.0, ..DotBody::default() })
                });
                drawn.iter().map(|(_, placed)| placed.body.origin.x).collect::<Vec<_>>()
            };
            assert_eq!(drawn_at(0, 0, &[1, 2]), [0.0, 0.0]);
            assert_eq!(drawn_at(10, 10, &[1, 2]), [10.0, 10.0]);
            assert_eq!(drawn_at(60, 10, if gone { &[2] } else { &[1, 2] }).last(), Some(&5.0));
            drawn_at(85, 10, &[1, 2])
        };
        assert_eq!((shown_after(false), shown_after(true)), (vec![2.5, 2.5], vec![0.0, 2.5]));
    }
}

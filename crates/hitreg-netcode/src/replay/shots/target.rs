//! Finds the target of a shot. The view error is measured to this target.

use glam::{DVec3, Vec3};

use super::ScreenEntities;
use crate::game::{Reason, ShotVerdict};
use crate::geometry::angle_off;
use hitreg_log::units::EntityId;

/// An entity as a screen drew it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::replay) struct ScreenEntity {
    pub(in crate::replay) entity: EntityId,
    pub(in crate::replay) place: DVec3,
    /// The number of its teleports and spawns so far.
    pub(in crate::replay) teleports: u32,
}

/// The target of a shot.
#[derive(Clone, Copy)]
pub(super) struct ShotTarget {
    pub(super) entity: EntityId,
    pub(super) by: AimedBy,
    /// The target on the shooter's screen; `None` if it was not drawn.
    pub(super) drawn: Option<ScreenEntity>,
    /// The angle between the shot's line and the drawn target, in radians; NaN if the target was not drawn.
    pub(super) off: f32,
}

/// How the target of a shot is known: the codes of the column `aimed_by`. Code 0 means no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AimedBy {
    /// The server's verdict names the target.
    Hit = 1,
    /// The shot missed on the server. The verdict on the shooter's screen names the target.
    PredictedHit = 2,
    /// The shot missed on both. The target is the one that was drawn nearest to the line.
    Nearest = 3,
}

/// The target of a shot: the entity that was hit, or of a miss, the one that was drawn nearest to the line among those
/// that the shot could hit.
pub(super) fn aimed_at(
    (from, direction): (Vec3, Vec3),
    mut on_screen: ScreenEntities<'_>,
    server: &ShotVerdict,
    screen: Option<&ShotVerdict>,
    can_hit: impl Fn(EntityId) -> bool,
) -> Option<ShotTarget> {
    let off = |drawn: ScreenEntity| angle_off(from, direction, drawn.place.as_vec3());
    let hit = |verdict: &ShotVerdict| verdict.main_wound().filter(|_| verdict.reason == Reason::Hit).map(|w| w.target);
    let by_server = hit(server).map(|target| (target, AimedBy::Hit));
    let hit = by_server.or_else(|| Some((hit(screen?)?, AimedBy::PredictedHit)));
    if let Some((entity, by)) = hit {
        let drawn = Iterator::find(&mut on_screen, |drawn| drawn.entity == entity);
        return Some(ShotTarget { entity, by, drawn, off: drawn.map_or(f32::NAN, off) });
    }
    let targets = on_screen.filter(|drawn| can_hit(drawn.entity));
    let (drawn, off) = targets.map(|drawn| (drawn, off(drawn))).min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some(ShotTarget { entity: drawn.entity, by: AimedBy::Nearest, drawn: Some(drawn), off })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::DamageShare;

    fn hit(target: u16) -> ShotVerdict {
        let wound = DamageShare { target: EntityId(target), hitgroup: 0, damage: 7, pellets: 1 };
        ShotVerdict { reason: Reason::Hit, wounds: vec![wound] }
    }

    #[test]
    fn the_target_is_the_hit_player_then_that_on_screen_then_the_nearest() {
        let miss = ShotVerdict::miss(Reason::Missed);
        let target = |server: &ShotVerdict, screen: Option<&ShotVerdict>| {
            let drawn = [(2, DVec3::new(10.0, 0.1, 0.0)), (4, DVec3::new(9.0, 1.0, 0.0)), (3, DVec3::X * 9.0)];
            let drawn = drawn.map(|(id, place)| (EntityId(id), place));
            let mut drawn = drawn.map(|(entity, place)| ScreenEntity { entity, place, teleports: 0 }).into_iter();
            let aimed =
                aimed_at((Vec3::ZERO, Vec3::X), &mut drawn, server, screen, |id| id != EntityId(3)).expect("a target");
            (aimed.entity.0, aimed.by, aimed.drawn.is_some())
        };
        assert_eq!(target(&miss, Some(&miss)), (2, AimedBy::Nearest, true), "a shot cannot hit entity 3");
        assert_eq!(target(&miss, Some(&hit(4))), (4, AimedBy::PredictedHit, true));
        assert_eq!(target(&hit(4), Some(&hit(2))), (4, AimedBy::Hit, true));
        assert_eq!(target(&hit(9), None), (9, AimedBy::Hit, false), "the screen did not draw who was hit");
    }
}

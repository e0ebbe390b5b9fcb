//! The `shots` table: what the shooter's client predicted, what the server judged, and the view error between them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use glam::{DVec3, Vec3};

use super::Part;
use crate::game::{Body, DamageShare, Game, HitResult, RecordedShot, ShotVerdict};
use crate::geometry::angle_off;
use crate::pipeline::{JudgedShot, RewindLimit};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::IMPACT;
use hitreg_log::trace::schema::shots::{Row, Writer};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

/// Fills the table in the order of the server's judging; predicted shots that the server never judged come last.
#[derive(Debug)]
pub(super) struct ShotTable {
    /// The number of players.
    players: usize,
    /// The newest usercmd of each player that the server ran.
    ran: Vec<CommandSeq>,
    /// Predicted shots that are not judged yet.
    pending: SortedMap<ShotKey, PendingShot>,
    pub(super) rows: Writer,
    /// Rows whose cover columns wait for the target's frames at the time of the shot.
    waiting: Vec<(usize, ShotView)>,
}

/// What identifies a shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShotKey {
    pub(super) shooter: PlayerId,
    pub(super) command: CommandSeq,
    /// The index of the shot within the usercmd, from 0.
    pub(super) index: u8,
}

impl ShotKey {
    pub(super) fn of<G: Game>(judged: &JudgedShot<G>) -> ShotKey {
        ShotKey { shooter: judged.shooter, command: judged.command, index: judged.index }
    }
}

/// A predicted shot that is not judged yet.
#[derive(Debug)]
struct PendingShot {
    at: Micros,
    weapon: &'static str,
    /// The client's verdict.
    verdict: ShotVerdict,
}

/// The line of sight of a judged shot: time, tick, muzzle and target.
#[derive(Clone, Copy, Debug)]
struct ShotView {
    pub(super) at: Micros,
    pub(super) tick: Tick,
    muzzle: Vec3,
    target: EntityId,
}

/// The entities on the shooter's screen.
type ScreenEntities<'a> = &'a mut dyn Iterator<Item = ScreenEntity>;

impl ShotTable {
    pub(super) fn new(players: usize) -> ShotTable {
        let ran = vec![CommandSeq(0); players];
        ShotTable { players, ran, pending: SortedMap::new(), rows: Writer::default(), waiting: Vec::new() }
    }

    /// The server ran a usercmd.
    pub(super) fn ran(&mut self, player: PlayerId, command: CommandSeq) {
        if let Some(newest) = self.ran.get_mut(usize::from(player.0)) {
            *newest = command.max(*newest);
        }
    }

    /// The client predicted a shot. A prediction that comes after the server ran the usercmd is none: with
    /// `prediction.push_latency_ms` near 0, a client runs usercmds late.
    pub(super) fn predicted(&mut self, key: ShotKey, at: Micros, weapon: &'static str, verdict: ShotVerdict) {
        if self.ran.get(usize::from(key.shooter.0)).is_none_or(|ran| key.command > *ran) {
            self.pending.insert(key, PendingShot { at, weapon, verdict });
        }
    }

    pub(super) fn judged<G: Game>(
        &mut self,
        at: Micros,
        tick: Tick,
        judged: &JudgedShot<G>,
        on_screen: ScreenEntities<'_>,
        covers: &CoverTracker,
    ) {
        let key = ShotKey::of(judged);
        let predicted = self.pending.remove(&key).map(|pending| pending.verdict);
        let targets = &judged.rewind.targets;
        let can_hit = |entity| targets.iter().any(|(id, body)| *id == entity && G::is_target(body));
        let aimed = aimed_at(G::aim(&judged.fire), on_screen, &judged.verdict, predicted.as_ref(), can_hit);
        let view_error = aimed.filter(|_| judged.verdict.reason != HitResult::Launched).and_then(|aimed| {
            let left = judged.rewind.left_in_present.contains(&aimed.entity);
            let (_, body) = targets.iter().find(|(id, _)| *id == aimed.entity)?;
            // The distance to the place of a respawn says nothing about the shooter's view.
            let same_life = aimed.drawn.filter(|drawn| !left && drawn.teleports == body.teleports());
            same_life.map(|drawn| (body.position() - drawn.position).as_vec3().length())
        });
        self.push::<G>(TraceShot {
            tick,
            predicted: predicted.as_ref(),
            judged: Some(&judged.verdict),
            rewind_by: judged.rewind.by,
            rewind_limit: judged.rewind.limit,
            aimed,
            view_error,
            ..TraceShot::unjudged(key, at, G::weapon_name(&judged.fire))
        });
        let was_hit = judged.verdict.reason == HitResult::Hit;
        let target = aimed.filter(|_| was_hit || judged.rewind.by > Micros::ZERO).map(|aimed| aimed.entity);
        let muzzle = G::aim(&judged.fire).0;
        let sight = target.filter(|_| judged.verdict.reason != HitResult::Launched);
        let Some(sight) = sight.map(|target| ShotView { at, tick, muzzle, target }) else { return };
        // A shot that hits the target at its present place has reached it, also beside the points that are tested.
        let is_seen = was_hit && judged.rewind.by == Micros::ZERO;
        let (row, visible) = (self.rows.rows() - 1, covers.visible(&sight).map(|visible| visible || is_seen));
        self.rows.visible_at_present.codes[row] = visible.map_or(0, |visible| if visible { 1 } else { 2 });
        if was_hit && visible == Some(false) {
            self.waiting.push((row, sight));
        }
    }

    /// Adds a shot with a verdict, and nothing of the shooter's screen.
    pub(super) fn push_verdict<G: Game>(
        &mut self,
        key: ShotKey,
        at: Micros,
        tick: Tick,
        weapon: &'static str,
        verdict: &ShotVerdict,
    ) {
        self.push::<G>(TraceShot { tick, judged: Some(verdict), ..TraceShot::unjudged(key, at, weapon) });
    }

    /// Adds a judged shot of a recording. The columns of cover stay empty.
    pub(super) fn push_rejudged<G: Game>(&mut self, shot: &RecordedShot, on_screen: ScreenEntities<'_>) {
        let judged = shot.judged.as_ref();
        let place = |entity| judged.and_then(|judged| judged.targets.iter().find(|(id, _)| *id == entity));
        let aimed = judged
            .and_then(|judged| aimed_at(judged.aim, on_screen, &shot.verdict, None, |entity| place(entity).is_some()));
        let flies = shot.is_impact || shot.verdict.reason == HitResult::Launched;
        let view_error = aimed.filter(|_| !flies).and_then(|aimed| {
            let (_, judged) = place(aimed.entity)?;
            aimed.drawn.map(|drawn| judged.distance(drawn.position.as_vec3()))
        });
        let rewind_by = judged.map_or(Micros::ZERO, |judged| judged.rewind);
        let rewind_limit = match judged {
            Some(judged) if judged.is_cut => RewindLimit::MaxUnlag,
            Some(judged) if judged.is_compensated => RewindLimit::None,
            _ => RewindLimit::Off,
        };
        let key = ShotKey { shooter: shot.shooter, command: shot.command, index: shot.index };
        self.push::<G>(TraceShot {
            tick: shot.tick,
            judged: Some(&shot.verdict),
            rewind_by,
            rewind_limit,
            aimed,
            view_error,
            again: Some(shot),
            ..TraceShot::unjudged(key, shot.at, shot.weapon)
        });
    }

    /// Returns the time of the first shot whose cover is not yet known.
    pub(super) fn oldest_waiting(&self) -> Option<Micros> {
        self.waiting.first().map(|(_, sight)| sight.at)
    }

    /// Fills in the cover of shots before `now`, because all earlier frames are known.
    pub(super) fn settle(&mut self, now: Micros, covers: &CoverTracker) {
        let rows = &mut self.rows;
        self.waiting.retain(|(row, sight)| {
            if sight.at >= now {
                return true;
            }
            if let Some((time, units)) = covers.hidden(sight) {
                rows.in_cover_ms[*row] = time.as_ms_f64() as f32;
                rows.in_cover_units[*row] = units;
            }
            false
        });
    }

    /// Drops a predicted shot that was judged after the replayed part.
    pub(super) fn drop_predicted<G: Game>(&mut self, judged: &JudgedShot<G>) {
        self.pending.remove(&ShotKey::of(judged));
    }

    /// Forgets the rows that wait for cover, because their rows are discarded.
    pub(super) fn discard_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Adds the predicted shots of this part that were never judged.
    pub(super) fn end<G: Game>(&mut self, part: Part) {
        let pending = std::mem::take(&mut self.pending).into_iter().filter(|(_, shot)| part.has(shot.at));
        for (key, PendingShot { at, weapon, verdict }) in pending {
            self.push::<G>(TraceShot { predicted: Some(&verdict), ..TraceShot::unjudged(key, at, weapon) });
        }
    }

    /// Returns the number of rows if all are complete; 0 while any row waits for cover.
    pub(super) fn rows(&self) -> usize {
        if self.waiting.is_empty() { self.rows.rows() } else { 0 }
    }

    fn push<G: Game>(&mut self, shot: TraceShot<'_>) {
        let TraceShot { key: ShotKey { shooter, command, index }, aimed, predicted, judged, .. } = shot;
        let name = |target: Option<EntityId>, unknown: &str| {
            target.map_or(unknown.to_owned(), |target| target.name(self.players))
        };
        let (seen, wounded) = (ShotEffect::of::<G>(predicted, self.players), ShotEffect::of::<G>(judged, self.players));
        let reported = shot.again.and_then(|again| again.reported);
        let again = shot.again.and_then(|again| again.judged.as_ref());
        self.rows.push(Row {
            shooter: shooter.0.into(),
            command: command.0,
            index: index.into(),
            impact: shot.again.map_or(index == IMPACT, |again| again.is_impact).into(),
            at_us: shot.at.0,
            tick: shot.tick.0,
            weapon: shot.weapon,
            rewind_us: shot.rewind_by.0,
            limit: shot.rewind_limit as u8,
            aimed_at: &name(aimed.map(|aimed| aimed.entity), "none"),
            aimed_by: aimed.map_or(0, |aimed| aimed.by as u8),
            aim_off_degrees: aimed.map_or(f32::NAN, |aimed| aimed.off.to_degrees()),
            view_error_units: shot.view_error.unwrap_or(f32::NAN),
            predicted_reason: seen.reason,
            predicted_target: &name(seen.target, "none"),
            predicted_hitgroup: seen.hitgroup,
            predicted_damage: seen.damage,
            predicted_pellets: seen.pellets,
            predicted_also_hit: &seen.also_hit,
            reason: wounded.reason,
            target: &name(wounded.target, "none"),
            hitgroup: wounded.hitgroup,
            damage: wounded.damage,
            pellets: wounded.pellets,
            also_hit: &wounded.also_hit,
            visible_at_present: 0,
            in_cover_ms: f32::NAN,
            in_cover_units: f32::NAN,
            given_target: &reported.map_or("none".to_owned(), |hit| name(hit.target, "?")),
            given_damage: reported.filter(|hit| hit.damage != 0).map(|hit| hit.damage as f32),
            present_target: &name(again.and_then(|again| again.at_present), "none"),
            off_units: again.and_then(|again| again.off_units).map(|(off, _)| off),
            beyond_spread_units: again.and_then(|again| again.off_units).map(|(_, beyond)| beyond),
        });
    }
}

/// The values of a row, except cover.
struct TraceShot<'a> {
    key: ShotKey,
    at: Micros,
    tick: Tick,
    weapon: &'static str,
    predicted: Option<&'a ShotVerdict>,
    judged: Option<&'a ShotVerdict>,
    rewind_by: Micros,
    rewind_limit: RewindLimit,
    aimed: Option<ShotTarget>,
    view_error: Option<f32>,
    again: Option<&'a RecordedShot>,
}

impl TraceShot<'_> {
    fn unjudged(key: ShotKey, at: Micros, weapon: &'static str) -> Self {
        TraceShot {
            key,
            at,
            tick: Tick(0),
            weapon,
            predicted: None,
            judged: None,
            rewind_by: Micros::ZERO,
            rewind_limit: RewindLimit::Off,
            aimed: None,
            view_error: None,
            again: None,
        }
    }
}

/// A verdict as the columns of one side, client or server.
struct ShotEffect {
    reason: u8,
    target: Option<EntityId>,
    hitgroup: &'static str,
    damage: i64,
    pellets: u32,
    also_hit: Cow<'static, str>,
}

impl ShotEffect {
    fn of<G: Game>(verdict: Option<&ShotVerdict>, players: usize) -> ShotEffect {
        let wound = verdict.and_then(ShotVerdict::main_wound);
        let other = |other: &&DamageShare| Some(other.target) != wound.map(|wound| wound.target);
        let others = verdict.into_iter().flat_map(|verdict| verdict.wounds.iter().filter(other));
        let others: Vec<String> = others.map(|other| wound_text::<G>(other, players)).collect();
        ShotEffect {
            // The code after all reasons means that there is no verdict.
            reason: verdict.map_or(HitResult::NAMES.len() as u8, |v| v.reason as u8),
            target: wound.map(|wound| wound.target),
            hitgroup: wound.map_or("none", |wound| G::hitgroup_name(wound.hitgroup)),
            damage: wound.map_or(0, |wound| wound.damage.into()),
            pellets: wound.map_or(0, |wound| wound.pellets.into()),
            also_hit: if others.is_empty() { "none".into() } else { others.join("; ").into() },
        }
    }
}

/// A wound as text: `p3 torso 20`, or `p4 arm 16 by 2 pellets`.
fn wound_text<G: Game>(wound: &DamageShare, players: usize) -> String {
    let pellets = if wound.pellets > 1 { format!(" by {} pellets", wound.pellets) } else { String::new() };
    format!("{} {} {}{pellets}", wound.target.name(players), G::hitgroup_name(wound.hitgroup), wound.damage)
}

/// An entity as a screen drew it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ScreenEntity {
    pub(super) entity: EntityId,
    pub(super) position: DVec3,
    /// The number of its teleports and spawns so far.
    pub(super) teleports: u32,
}

/// The target of a shot.
#[derive(Clone, Copy)]
struct ShotTarget {
    entity: EntityId,
    by: AimedBy,
    /// The target on the shooter's screen; `None` if it was not drawn.
    drawn: Option<ScreenEntity>,
    /// The angle between the shot's line and the drawn target, in radians; NaN if the target was not drawn.
    off: f32,
}

/// How the target of a shot is known: the codes of the column `aimed_by`. Code 0 means no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AimedBy {
    /// The server's verdict names the target.
    Hit = 1,
    /// The shot missed on the server. The verdict on the shooter's screen names the target.
    PredictedHit = 2,
    /// The shot missed on both. The target is the one that was drawn nearest to the line.
    Nearest = 3,
}

/// The target of a shot: the entity that was hit, or of a miss, the one that was drawn nearest to the line among those
/// that the shot could hit.
fn aimed_at(
    (from, direction): (Vec3, Vec3),
    mut on_screen: ScreenEntities<'_>,
    server: &ShotVerdict,
    screen: Option<&ShotVerdict>,
    can_hit: impl Fn(EntityId) -> bool,
) -> Option<ShotTarget> {
    let off = |drawn: ScreenEntity| angle_off(from, direction, drawn.position.as_vec3());
    let hit =
        |verdict: &ShotVerdict| verdict.main_wound().filter(|_| verdict.reason == HitResult::Hit).map(|w| w.target);
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

/// The longest look into the past. It exceeds any rewind and any usual packet flight.
pub(super) const SIGHT_SEARCH_MAX: Micros = Micros::from_s(3);

/// The recent bodies that judged shots may concern.
///
/// Finds hits behind cover. For each judged shot: could the shooter's muzzle see the target at its present position on
/// the server? And on the target's own screen, how long and how far had it been out of sight?
///
/// It keeps the bodies after the last tick, and some seconds of each player's own screen. Rows of shots wait for the
/// frames at the time of the shot, and are completed with the next frame.
pub(super) struct CoverTracker {
    /// The game's functions on bodies, given as cells.
    sees: Box<SightFn>,
    state: fn(&[u32]) -> Option<LifeState>,
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

/// A body's position, and the life in which it was there.
#[derive(Clone, Copy, PartialEq)]
struct LifeState {
    life: (u32, bool),
    position: DVec3,
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
            Some(LifeState { life: (body.teleports(), body.is_alive()), position: body.position() })
        };
        CoverTracker {
            sees: Box::new(sees),
            state,
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
        while frames.get(1).is_some_and(|(next, _)| next.0 < oldest.0.saturating_sub(SIGHT_SEARCH_MAX.0)) {
            if let Some((_, true)) = frames.pop_front() {
                cells.drain(..self.width);
            }
        }
        frames.push_back((at, own.is_some()));
        cells.extend(own.unwrap_or_default());
    }

    /// Returns whether the muzzle could see the target where it was after the previous tick.
    fn visible(&self, sight: &ShotView) -> Option<bool> {
        if Some(self.tick.0) != sight.tick.0.checked_sub(1) {
            return None;
        }
        let row = self.entities.iter().position(|entity| *entity == sight.target)?;
        (self.sees)(sight.muzzle, &self.cells[row * self.width..(row + 1) * self.width])
    }

    /// Returns for how long and how far the target had been hidden from the muzzle on its own screen at the time of
    /// the shot. Both are 0 if the target was visible; `None` if its own screen is unknown.
    fn hidden(&self, sight: &ShotView) -> Option<(Micros, f32)> {
        let OwnFrames { frames, cells } = self.own.get(usize::from(sight.target.0))?;
        let shown = frames.partition_point(|(at, _)| *at <= sight.at);
        let mut end = frames.range(..shown).filter(|(_, has_body)| *has_body).count() * self.width;
        let mut last: Option<LifeState> = None;
        let mut since: Option<(Micros, DVec3)> = None;
        for (at, has_body) in frames.range(..shown).rev() {
            let body: Option<Vec<u32>> = has_body.then(|| cells.range(end - self.width..end).copied().collect());
            let Some((body, state)) = body.and_then(|body| (self.state)(&body).map(|state| (body, state))) else {
                break;
            };
            end -= self.width;
            let last = last.get_or_insert(state);
            // Positions before a teleport or an earlier life do not count.
            if state.life != last.life || sight.at - *at > SIGHT_SEARCH_MAX || (self.sees)(sight.muzzle, &body)? {
                break;
            }
            since = Some((*at, state.position));
        }
        let last = last?;
        let hidden = since.map(|(at, from)| (sight.at - at, (from - last.position).as_vec3().length()));
        Some(hidden.unwrap_or((Micros::ZERO, 0.0)))
    }
}

hitreg_log::partial_debug!(CoverTracker { tick, entities });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{RecordedHit, RejudgedVerdict};
    use crate::replay::{ReplayOptions, replay};
    use crate::rink::{Rink, Skater};
    use crate::session::scenario::Scenario;
    use crate::session::{SessionRecorder, record_synthetic};
    use hitreg_log::record::Session;
    use hitreg_log::trace::schema::shots::Columns;

    fn again(rewind_ms: i64, is_cut: bool, damage: i32) -> RecordedShot {
        let judged = RejudgedVerdict {
            aim: (Vec3::ZERO, Vec3::X),
            rewind: Micros::from_ms(rewind_ms),
            is_compensated: rewind_ms > 0,
            is_cut,
            targets: vec![(EntityId(4), Vec3::X * 50.0)],
            at_present: None,
            off_units: None,
        };
        RecordedShot {
            shooter: PlayerId(1),
            command: CommandSeq(7),
            index: 0,
            is_impact: false,
            at: Micros::from_ms(900),
            tick: Tick(40),
            weapon: "rifle",
            verdict: ShotVerdict::miss(HitResult::Missed),
            reported: Some(RecordedHit { target: Some(EntityId(4)), damage }),
            judged: Some(judged),
        }
    }

    fn drawn(entity: u16, x: f32) -> ScreenEntity {
        ScreenEntity { entity: EntityId(entity), position: DVec3::X * f64::from(x), teleports: 0 }
    }

    /// [`Rink::judge`] says that every shot hits.
    #[test]
    fn server_and_client_launch_projectiles_without_asking_the_judge() {
        let (scenario, rules) = (Scenario { players: 2, seconds: 2.0, ..Scenario::default() }, Arc::new(()));
        let mut session = Session::new(scenario.header::<Rink>(&()).expect("a header"));
        record_synthetic::<Rink>(&scenario, &rules, &mut SessionRecorder::new(&mut session)).expect("a scenario");
        let trace =
            replay::<Rink>(&session, &ReplayOptions::default(), &mut |_| {}).expect("a log of this build").trace;
        let shots = Columns::of(&trace);
        let fired = |row: &usize| shots.impact[*row] == 0 && shots.reason.get(*row) != "not run";
        let (pucks, strikes): (Vec<usize>, Vec<usize>) =
            (0..shots.rows).filter(fired).partition(|row| shots.command[*row].is_multiple_of(8));
        assert!(pucks.len() > 10 && strikes.len() > 10);
        let are = |rows: &[usize], reason: &str| {
            let known = ["not predicted", reason];
            rows.iter().all(|row| shots.reason.get(*row) == reason && known.contains(&shots.predicted_reason.get(*row)))
        };
        assert!(are(&pucks, "launched") && are(&strikes, "hit"));
    }

    #[test]
    fn a_rejudged_shot_names_the_limit_of_its_rewind() {
        let mut shots = ShotTable::new(4);
        for shot in [again(0, false, 0), again(80, false, 12), again(80, true, 0)] {
            // Drawn entities outside the judged targets do not count, however near they are.
            let mut drawn = [drawn(2, 10.0), drawn(4, 56.0)].into_iter();
            shots.push_rejudged::<Rink>(&shot, &mut drawn);
        }
        let table = shots.rows.take(Vec::new());
        let rows = Columns::read(&table);
        let limits: Vec<&str> = (0..3).map(|row| rows.limit.get(row)).collect();
        assert_eq!(limits, ["off", "none", "max_unlag"]);
        assert_eq!(rows.rewind_us.to_vec(), [0, 80_000, 80_000]);
        assert_eq!(rows.view_error_units.to_vec(), [6.0; 3]);
        assert_eq!(rows.aimed_by.iter().collect::<Vec<_>>(), ["nearest"; 3]);
        let damage: Vec<Option<f32>> = rows.given_damage.iter().map(|d| Some(*d).filter(|d| !d.is_nan())).collect();
        assert_eq!(damage, [None, Some(12.0), None]);
        // The session has four players.
        assert_eq!((rows.aimed_at.get(0), rows.given_target.get(0)), ("entity 4", "entity 4"));
    }

    #[test]
    fn projectiles_have_no_view_error() {
        let mut shots = ShotTable::new(4);
        let launch = RecordedShot { verdict: ShotVerdict::miss(HitResult::Launched), ..again(0, false, 0) };
        for shot in [
            launch,
            RecordedShot {
                is_impact: true,
                verdict: ShotVerdict { reason: HitResult::Hit, wounds: Vec::new() },
                ..again(0, false, 0)
            },
        ] {
            shots.push_rejudged::<Rink>(&shot, &mut [drawn(4, 56.0)].into_iter());
        }
        let table = shots.rows.take(Vec::new());
        assert!(Columns::read(&table).view_error_units.iter().all(|error| error.is_nan()));
    }

    #[test]
    fn a_shot_waits_for_the_frames_at_its_time() {
        let mut shots = ShotTable::new(4);
        shots.push_rejudged::<Rink>(&again(0, false, 0), &mut std::iter::empty());
        let at = Micros::from_ms(900);
        let sight = ShotView { at, tick: Tick(40), muzzle: Vec3::ZERO, target: EntityId(4) };
        shots.waiting.push((0, sight));
        let covers = CoverTracker::new::<Rink>(5, Arc::new(()));
        shots.settle(at, &covers);
        assert_eq!((shots.oldest_waiting(), shots.rows()), (Some(at), 0));
        shots.settle(at + Micros(1), &covers);
        assert_eq!((shots.oldest_waiting(), shots.rows()), (None, 1));
    }

    fn hit(target: u16) -> ShotVerdict {
        let wound = DamageShare { target: EntityId(target), hitgroup: 0, damage: 7, pellets: 1 };
        ShotVerdict { reason: HitResult::Hit, wounds: vec![wound] }
    }

    #[test]
    fn the_target_is_the_hit_player_then_that_on_screen_then_the_nearest() {
        let miss = ShotVerdict::miss(HitResult::Missed);
        let target = |server: &ShotVerdict, screen: Option<&ShotVerdict>| {
            let drawn = [(2, DVec3::new(10.0, 0.1, 0.0)), (4, DVec3::new(9.0, 1.0, 0.0)), (3, DVec3::X * 9.0)];
            let drawn = drawn.map(|(id, place)| (EntityId(id), place));
            let mut drawn = drawn.map(|(entity, position)| ScreenEntity { entity, position, teleports: 0 }).into_iter();
            let aimed =
                aimed_at((Vec3::ZERO, Vec3::X), &mut drawn, server, screen, |id| id != EntityId(3)).expect("a target");
            (aimed.entity.0, aimed.by, aimed.drawn.is_some())
        };
        assert_eq!(target(&miss, Some(&miss)), (2, AimedBy::Nearest, true), "a shot cannot hit entity 3");
        assert_eq!(target(&miss, Some(&hit(4))), (4, AimedBy::PredictedHit, true));
        assert_eq!(target(&hit(4), Some(&hit(2))), (4, AimedBy::Hit, true));
        assert_eq!(target(&hit(9), None), (9, AimedBy::Hit, false), "the screen did not draw who was hit");
    }

    #[test]
    fn a_row_has_all_wounds_of_its_shot() {
        let wound = |target, damage, pellets| DamageShare { target: EntityId(target), hitgroup: 0, damage, pellets };
        let also_hit = |wounds: &[DamageShare]| {
            let mut shots = ShotTable::new(4);
            let verdict = ShotVerdict { reason: HitResult::Hit, wounds: wounds.to_vec() };
            shots.push_rejudged::<Rink>(&RecordedShot { verdict, ..again(0, false, 0) }, &mut std::iter::empty());
            let table = shots.rows.take(Vec::new());
            table.column("also_hit")?;
            let rows = Columns::read(&table);
            let (target, whole) = (rows.target.get(0), rows.whole_damage(0));
            Some(format!("{target} {}, also {}, {whole} in all", rows.damage[0], rows.also_hit.get(0)))
        };
        assert_eq!(also_hit(&[wound(2, 60, 3)]), None);
        let several = also_hit(&[wound(0, 20, 1), wound(2, 60, 3), wound(7, 16, 2)]);
        assert_eq!(several.as_deref(), Some("p2 60, also p0 body 20; entity 7 body 16 by 2 pellets, 96 in all"));
    }

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
        let longest = SIGHT_SEARCH_MAX.0 / 1000;
        assert_eq!(hidden(&[(0, 0.0), (longest, 30.0)], longest), Some((SIGHT_SEARCH_MAX, 30.0)));
        assert_eq!(hidden(&[(0, 0.0), (longest, 30.0)], longest + 1), Some((Micros::from_ms(1), 0.0)));
        assert_eq!(hidden(&[], 5), None);
    }
}

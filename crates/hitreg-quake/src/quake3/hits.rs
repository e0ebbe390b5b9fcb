//! Judges the server's hits again by its own rules. Targets are rewound to the time of the usercmd that fired,
//! interpolated between the server frames around it. The shot's lines are then tested against their boxes (unlagged's
//! design, in OpenArena's g_unlagged.c).

use glam::Vec3;

use super::aim::{FireLines, Weapon, cut, launches, off, weapon_name};
use super::body::{Quake3Body, Quake3Input};
use super::movement::{EntitySolid, MoveWorld, SolidShape};
use super::protocol::{entity, player};
use super::{Quake3, Quake3Rules, around, box_of, moved};
use crate::bsp::quake3::{BoxSweep, contents};
use hitreg_log::record::{FrameRecord, Session, ShotRecord, SnapshotRecord};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::IMPACT;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg_netcode::game::{
    BadCells, Body as _, DamageShare, GameInput as _, HitResult, RecordedHit, RecordedShot, RejudgeRules,
    RejudgedVerdict, ShotVerdict, StateRows,
};

/// Value of `weaponstate` (bg_public.h): the weapon fires or waits to fire again.
const FIRING: u32 = 3;
/// Eye height of a ducking player, in units.
const DUCKED_EYES: i32 = 12;
/// The longest interval between frames to interpolate across.
const FRAME_INTERVAL_MAX: Micros = Micros::from_ms(150);
/// Tolerance of a hit, in units, because coordinates are single precision and maps are large.
const THROUGH: f32 = 0.01;
/// The longest time that one usercmd runs, in ms.
const USERCMD_MS_MAX: i32 = 200;

/// Returns all shots of hitscan weapons in the order of players and times, and the hits that other causes produced.
/// Without the map, no line of fire is known, and only the shots that hit are returned.
pub(super) fn rejudge_shots(
    rules: &Quake3Rules,
    session: &Session,
    judged_under: &RejudgeRules,
) -> Result<Vec<RecordedShot>, BadCells> {
    let Ok(rows) = StateRows::new::<Quake3>(&session.header.classes) else { return Ok(Vec::new()) };
    let lookup = BodyLookup { rules, session, rows };
    let ways = lookup.ways()?;
    let furthest = judged_under.furthest;
    let mut all = Vec::new();
    for (index, records) in session.players.iter().enumerate() {
        let shooter = PlayerId(index as u16);
        let drawn_later = judged_under.drawn_later.get(index).copied().unwrap_or_default();
        let mut taken = SortedSet::new();
        let mut reported: Vec<&ShotRecord> = records.judged.iter().collect();
        for (number, pair) in (2..).zip(records.snapshots.windows(2)) {
            let (before, snapshot) = (&pair[0], &pair[1]);
            // Snapshots may share a time. Each hit belongs to the first of them that acks its usercmd.
            let next = records.snapshots.get(number).map(|snapshot| snapshot.at);
            let is_last = next != Some(snapshot.at);
            let is_given = |hit: &&ShotRecord| hit.at == snapshot.at && (is_last || hit.command <= snapshot.ack);
            let (given, later): (Vec<_>, Vec<_>) = reported.into_iter().partition(is_given);
            reported = later;
            let own = lookup.body(snapshot.tick, shooter, shooter.entity())?;
            let held = own.map_or(0, |own| own.player(player("weapon")));
            let frame = Micros(1_000_000 / i64::from(rules.server_hz.max(1)));
            let present = snapshot.server_time - frame;
            // The server's clock stands at the last frame until the next one has run all usercmds.
            let at = snapshot.at - frame;
            let fired = match Weapon::of(held) {
                Some(weapon) => lookup.fired(shooter, weapon, [before, snapshot])?,
                None => FiredUsercmds::default(),
            };
            let shots = lookup.shots(shooter, &fired, before)?;
            let scene = ShotScene { ways: &ways, shooter, present, furthest, drawn_later };
            let judged: Vec<(BodyPositions, ShotVerdict)> = shots.iter().map(|shot| shot.judge(&scene)).collect();
            let (hits, others) = assign_hits(given, &shots, &judged, fired.usercmds.len());
            let only_reported = |command, index, is_impact, hits: &[&ShotRecord]| RecordedShot {
                shooter,
                command,
                index,
                is_impact,
                at: if is_impact { snapshot.at } else { at },
                tick: snapshot.tick,
                weapon: weapon_name(held),
                verdict: ShotVerdict { reason: HitResult::Hit, wounds: wounds_of(hits) },
                reported: reported_hit(hits),
                judged: None,
            };
            if shots.is_empty() {
                for (command, hits) in fired.usercmds.iter().zip(&hits).filter(|(_, hits)| !hits.is_empty()) {
                    taken.insert((*command, 0));
                    all.push(only_reported(*command, 0, false, hits));
                }
            }
            for ((shot, hits), (standing, verdict)) in shots.into_iter().zip(hits).zip(judged) {
                let given = reported_hit(&hits);
                let off_units = given.map(|given| shot.off(&standing, given.target, hits.len() - 1));
                let off_units = off_units.filter(|(off, _)| off.is_finite());
                let at_present = shot.judge(&ShotScene { furthest: None, ..scene }).1;
                let targets = standing.iter().map(|(id, stood)| (*id, stood.origin)).collect();
                let time = shot.time_in(&scene);
                taken.insert((shot.command, 0));
                all.push(RecordedShot {
                    shooter,
                    command: shot.command,
                    index: 0,
                    is_impact: false,
                    at,
                    tick: snapshot.tick,
                    weapon: shot.weapon.name,
                    verdict,
                    reported: given,
                    judged: Some(RejudgedVerdict {
                        aim: (shot.lines.from, (shot.lines.middle - shot.lines.from).normalize()),
                        rewind: present - time,
                        is_compensated: furthest.is_some(),
                        is_cut: furthest.is_some() && time > shot.asked(&scene),
                        targets,
                        at_present: at_present.main_wound().map(|wound| wound.target),
                        off_units,
                    }),
                });
            }
            for hit in others {
                // One usercmd may have caused several hits. The first index is the shot itself, if usercmds are known;
                // the last index is an impact's.
                let is_impact = launches(held);
                let is_free = |index: &u8| !taken.contains(&(hit.command, *index));
                let index = match is_impact {
                    true => (1..=IMPACT).rev().find(is_free),
                    false => (u8::from(!records.frames.is_empty())..IMPACT).find(is_free),
                };
                let index = index.unwrap_or(IMPACT - 1);
                taken.insert((hit.command, index));
                all.push(only_reported(hit.command, index, is_impact, &[hit]));
            }
        }
    }
    Ok(all)
}

/// Assigns each hit to the shot whose line hits its target or passes it most closely. Without lines, the hits are those
/// of the fired usercmds in order. Returns the hits of each usercmd, and the hits of none.
fn assign_hits<'s>(
    given: Vec<&'s ShotRecord>,
    shots: &[FiredShot],
    judged: &[(BodyPositions, ShotVerdict)],
    usercmds: usize,
) -> (Vec<Vec<&'s ShotRecord>>, Vec<&'s ShotRecord>) {
    let mut hits: Vec<Vec<&ShotRecord>> = vec![Vec::new(); usercmds];
    let mut others = Vec::new();
    for (number, hit) in given.into_iter().enumerate() {
        let off = |index: &usize| shots[*index].off(&judged[*index].0, hit.target, hits[*index].len());
        let nearest = (0..shots.len()).min_by(|one, other| off(one).0.total_cmp(&off(other).0));
        match nearest.or_else(|| Some(number.min(usercmds.checked_sub(1)?))) {
            Some(index) => hits[index].push(hit),
            None => others.push(hit),
        }
    }
    (hits, others)
}

/// Returns the hit that the server reported of a shot: of its targets, the one with the greatest single damage.
fn reported_hit(hits: &[&ShotRecord]) -> Option<RecordedHit> {
    hits.iter().max_by_key(|hit| hit.damage).map(|hit| RecordedHit {
        target: hit.target,
        damage: hits.iter().filter(|other| other.target == hit.target).map(|other| other.damage).sum(),
    })
}

/// Returns the wounds of reported hits, those of one target together.
fn wounds_of(hits: &[&ShotRecord]) -> Vec<DamageShare> {
    let mut wounds: SortedMap<EntityId, DamageShare> = SortedMap::new();
    for (target, damage) in hits.iter().filter_map(|hit| Some((hit.target?, hit.damage))) {
        let wound = wounds.entry(target).or_insert(DamageShare { target, hitgroup: 0, damage: 0, pellets: 0 });
        (wound.damage, wound.pellets) = (wound.damage + damage, wound.pellets.saturating_add(1));
    }
    wounds.into_values().collect()
}

/// The session's information on bodies.
struct BodyLookup<'a> {
    rules: &'a Quake3Rules,
    session: &'a Session,
    rows: StateRows,
}

/// The usercmds between two snapshots that fired, in order.
#[derive(Default)]
struct FiredUsercmds<'a> {
    usercmds: Vec<CommandSeq>,
    /// The weapon, the shooter's body before all usercmds between the snapshots, and these usercmds; `None` if none
    /// fired.
    ran: Option<(Weapon, Quake3Body, &'a [FrameRecord])>,
}

/// A shot fired by a usercmd.
struct FiredShot {
    command: CommandSeq,
    /// Server time to which the recorded server rewound the targets, within its limit.
    time: Micros,
    weapon: Weapon,
    lines: FireLines,
    /// Fraction of each line, 0 to 1, up to the first map surface.
    reach: Vec<f32>,
}

/// The data that a shot is judged with.
#[derive(Clone, Copy)]
struct ShotScene<'a> {
    ways: &'a BodyPaths,
    shooter: PlayerId,
    /// Time at which the usercmd ran, by the server's frames.
    present: Micros,
    /// The largest rewind; `None` without lag compensation.
    furthest: Option<Micros>,
    /// How much further in the past than recorded the shooter draws the others.
    drawn_later: Micros,
}

/// Positions of the other players for a shot, ascending by entity.
type BodyPositions = Vec<(EntityId, BodyPosition)>;

/// A player's position at a server frame.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BodyPosition {
    origin: Vec3,
    mins: Vec3,
    maxs: Vec3,
    teleports: u32,
    is_alive: bool,
}

/// Positions of all players by server time.
type BodyPaths = SortedMap<EntityId, SortedMap<Micros, BodyPosition>>;

impl<'a> BodyLookup<'a> {
    fn body(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> Result<Option<Quake3Body>, BadCells> {
        let mut sent = self.session.states.sent(tick, viewer, entity);
        sent.find_map(|(class, cells)| self.rows.read::<Quake3>(class, cells).transpose()).transpose()
    }

    /// Returns the positions of all players from the states that any client received. States sent to other players also
    /// give their size.
    fn ways(&self) -> Result<BodyPaths, BadCells> {
        let mut ways = BodyPaths::new();
        for (index, records) in self.session.players.iter().enumerate() {
            let viewer = PlayerId(index as u16);
            for snapshot in &records.snapshots {
                for id in snapshot.entities.iter().filter(|id| id.0 < self.rules.places) {
                    let body = self.body(snapshot.tick, viewer, *id)?;
                    let Some(body) = body.filter(|body| !body.is_absent()) else { continue };
                    let way = ways.entry(*id).or_default();
                    match body.is_own() {
                        true => _ = way.entry(snapshot.server_time).or_insert_with(|| BodyPosition::of(&body)),
                        false => _ = way.insert(snapshot.server_time, BodyPosition::of(&body)),
                    }
                }
            }
        }
        Ok(ways)
    }

    /// Returns the usercmds of a player's weapon that fired between two snapshots.
    fn fired(
        &self,
        shooter: PlayerId,
        weapon: Weapon,
        [from, to]: [&SnapshotRecord; 2],
    ) -> Result<FiredUsercmds<'a>, BadCells> {
        let [before, after] = [from, to].map(|snapshot| self.body(snapshot.tick, shooter, shooter.entity()));
        let (Some(own), Some(after)) = (before?, after?) else { return Ok(FiredUsercmds::default()) };
        if own.is_absent() || after.is_absent() {
            return Ok(FiredUsercmds::default());
        }
        let frames = &self.session.players[usize::from(shooter.0)].frames;
        let place = |ack: CommandSeq| frames.partition_point(|frame| frame.command.seq <= ack);
        let ran = &frames[place(from.ack)..place(to.ack).max(place(from.ack))];
        let usercmds = fired(&weapon, ran, &own, &after);
        Ok(FiredUsercmds { ran: (!usercmds.is_empty()).then_some((weapon, own, ran)), usercmds })
    }

    /// Returns the shots that usercmds after a snapshot fired; none without the map.
    fn shots(
        &self,
        shooter: PlayerId,
        fired: &FiredUsercmds<'_>,
        from: &SnapshotRecord,
    ) -> Result<Vec<FiredShot>, BadCells> {
        let Some((weapon, mut own, ran)) = fired.ran.filter(|_| self.rules.map.is_some()) else {
            return Ok(Vec::new());
        };
        let mut entities = Vec::new();
        for id in &from.entities {
            entities.extend(self.body(from.tick, shooter, *id)?.map(|body| (*id, body)));
        }
        let solids = around(&entities, shooter.entity()).0;
        let parts: Vec<EntitySolid> =
            solids.into_iter().filter(|solid| matches!(solid.shape, SolidShape::Model(_))).collect();
        let mut shots = Vec::new();
        for frame in ran {
            let command = &frame.command;
            let input = Quake3Input::read(&command.input);
            own = moved(self.rules, &entities, shooter.entity(), &own, &input, &mut Vec::new());
            if fired.usercmds.contains(&command.seq) {
                let lines = weapon.lines(&own, input.sent_time_ms);
                let time = command.server_time + Micros::from_ms(weapon.handicap_ms.into());
                let reach = lines.ends.iter().map(|end| self.reach(&parts, lines.from, *end)).collect();
                shots.push(FiredShot { command: command.seq, time, weapon, lines, reach });
            }
        }
        Ok(shots)
    }

    fn reach(&self, parts: &[EntitySolid], start: Vec3, end: Vec3) -> f32 {
        let sweep = BoxSweep { start, end, mins: Vec3::ZERO, maxs: Vec3::ZERO, mask: contents::SOLID };
        let world = self.rules.map.as_ref().map(|map| MoveWorld { map, solids: parts, triggers: &[] });
        world.map_or(1.0, |world| world.sweep(&sweep).0.fraction)
    }
}

/// Returns the usercmds that fired, in order. It starts with the remaining wait after the last usercmd and goes backwards. Each
/// usercmd adds its duration to the wait, and each shot subtracts the interval of the weapon.
fn fired(weapon: &Weapon, ran: &[FrameRecord], before: &Quake3Body, after: &Quake3Body) -> Vec<CommandSeq> {
    let mut waits = after.player(player("weapon_time")) as i32;
    if after.player(player("weaponstate")) != FIRING {
        return Vec::new();
    }
    let time = |frame: &FrameRecord| Quake3Input::read(&frame.command.input).sent_time_ms;
    let begin = before.player(player("command_time")) as i32;
    let starts = std::iter::once(begin).chain(ran.iter().map(time));
    let took: Vec<i32> = ran.iter().zip(starts).map(|(frame, start)| time(frame).wrapping_sub(start)).collect();
    let mut fired = Vec::new();
    for (frame, took) in ran.iter().zip(took).rev() {
        let took = took.clamp(0, USERCMD_MS_MAX);
        waits += took;
        // The weapon fires when the wait is over; any excess wait shortens the next one.
        if (weapon.again_ms + 1..=weapon.again_ms + took).contains(&waits) {
            fired.push(frame.command.seq);
            waits -= weapon.again_ms;
        }
    }
    fired.reverse();
    fired
}

impl FiredShot {
    /// Returns the server time that its usercmd asks for.
    fn asked(&self, scene: &ShotScene<'_>) -> Micros {
        self.time - scene.drawn_later
    }

    /// Returns the server time to which its targets are rewound, within the limit.
    fn time_in(&self, scene: &ShotScene<'_>) -> Micros {
        // A handicap cannot move the time past the present (g_unlagged.c).
        let asked = self.asked(scene).min(scene.present);
        scene.furthest.map_or(scene.present, |furthest| asked.max(scene.present - furthest))
    }

    /// Returns the positions of the other players for the shot, and its result.
    fn judge(&self, scene: &ShotScene<'_>) -> (BodyPositions, ShotVerdict) {
        let time = self.time_in(scene);
        let others = scene.ways.iter().filter(|(id, _)| **id != scene.shooter.entity());
        let standing: BodyPositions = others.filter_map(|(id, way)| Some((*id, at(way, time)?))).collect();
        let mut pellets: SortedMap<EntityId, u8> = SortedMap::new();
        let mut is_hidden = false;
        for (end, reach) in self.lines.ends.iter().zip(&self.reach) {
            let through = standing.iter().filter(|(_, stood)| stood.is_alive);
            let through = through.filter_map(|(id, stood)| Some((*id, stood.entered(self.lines.from, *end)?)));
            let nearest = through.min_by(|one, other| one.1.total_cmp(&other.1));
            match nearest {
                Some((id, along)) if along <= *reach => *pellets.entry(id).or_default() += 1,
                Some(_) => is_hidden = true,
                None => {}
            }
        }
        let wound = |(target, pellets): (EntityId, u8)| DamageShare {
            target,
            hitgroup: 0,
            damage: self.weapon.damage * i32::from(pellets),
            pellets,
        };
        let was_hit = !pellets.is_empty();
        // A hit on a player who has died since the time of the rewind counts nothing.
        let is_dead = |target: &EntityId| {
            let now = scene.ways.get(target).and_then(|way| way.range(..=scene.present).next_back());
            now.is_some_and(|(_, stood)| !stood.is_alive)
        };
        let wounds: Vec<DamageShare> = pellets.into_iter().filter(|(id, _)| !is_dead(id)).map(wound).collect();
        let reason = match (wounds.is_empty(), was_hit, is_hidden) {
            (false, ..) => HitResult::Hit,
            (true, true, _) => HitResult::AlreadyDead,
            (true, false, true) => HitResult::HitWorld,
            (true, false, false) => HitResult::Missed,
        };
        (standing, ShotVerdict { reason, wounds })
    }

    /// Returns two distances by which the shot misses a target: of its own lines, and of the outermost line within the
    /// spread. The nearest `before` lines are skipped, because they account for earlier hits. Without a known target it
    /// uses the nearest one.
    fn off(&self, standing: &BodyPositions, target: Option<EntityId>, before: usize) -> (f32, f32) {
        let of_one = |(_, stood): &(EntityId, BodyPosition)| {
            let (mins, maxs) = (stood.origin + stood.mins, stood.origin + stood.maxs);
            let mut all: Vec<f32> = self.lines.ends.iter().map(|end| off(self.lines.from, *end, mins, maxs)).collect();
            all.sort_unstable_by(f32::total_cmp);
            let middle = off(self.lines.from, self.lines.middle, mins, maxs);
            let spread = self.weapon.slope() * self.lines.from.distance(stood.origin);
            (all.get(before).or(all.last()).copied().unwrap_or(f32::INFINITY), (middle - spread).max(0.0))
        };
        let targets = standing.iter().filter(|(id, _)| target.is_none_or(|target| target == *id));
        let nearest = targets.map(of_one).min_by(|one, other| one.0.total_cmp(&other.0));
        nearest.unwrap_or((f32::INFINITY, f32::INFINITY))
    }
}

/// Returns a player's position between two server frames; `None` if no client received these frames.
fn at(way: &SortedMap<Micros, BodyPosition>, time: Micros) -> Option<BodyPosition> {
    let (from, before) = way.range(..=time).next_back()?;
    if *from == time {
        return Some(*before);
    }
    let (to, after) = way.range(time..).next()?;
    if before.teleports != after.teleports {
        // After a teleport, the player counts as at the new position for the whole interval.
        return Some(*after);
    }
    let gap = *to - *from;
    let fraction = (time - *from).0 as f32 / gap.0 as f32;
    let between = |of: fn(&BodyPosition) -> Vec3| of(before).lerp(of(after), fraction);
    let stood = BodyPosition {
        origin: between(|stood| stood.origin),
        mins: between(|stood| stood.mins),
        maxs: between(|stood| stood.maxs),
        teleports: after.teleports,
        is_alive: before.is_alive && after.is_alive,
    };
    (gap <= FRAME_INTERVAL_MAX).then_some(stood)
}

impl BodyPosition {
    fn of(body: &Quake3Body) -> BodyPosition {
        let is_ducked = body.player(player("viewheight")) as i32 == DUCKED_EYES;
        let (mins, maxs) = match body.is_own() {
            true => (Vec3::new(-15.0, -15.0, -24.0), Vec3::new(15.0, 15.0, if is_ducked { 16.0 } else { 32.0 })),
            false => box_of(body.entity(entity("solid"))),
        };
        // The server keeps positions as other players receive them, in whole units.
        let origin = if body.is_own() { cut(body.position_f32()) } else { body.position_f32() };
        BodyPosition { origin, mins, maxs, teleports: body.teleports(), is_alive: body.is_alive() }
    }

    /// Returns the fraction of a line, 0 to 1, at which it enters the box.
    fn entered(&self, from: Vec3, to: Vec3) -> Option<f32> {
        let (mins, maxs) = (self.origin + self.mins - THROUGH, self.origin + self.maxs + THROUGH);
        let way = to - from;
        let (mut near, mut far) = (0.0_f32, 1.0_f32);
        for axis in 0..3 {
            if way[axis] == 0.0 {
                if !(mins[axis]..=maxs[axis]).contains(&from[axis]) {
                    return None;
                }
                continue;
            }
            let [one, other] = [mins[axis], maxs[axis]].map(|side| (side - from[axis]) / way[axis]);
            (near, far) = (near.max(one.min(other)), far.min(one.max(other)));
        }
        (near <= far).then_some(near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_positions_only_between_frames() {
        let stood = |x: f32, teleports: u32| BodyPosition {
            origin: Vec3::new(x, 0.0, 0.0),
            mins: Vec3::splat(-15.0),
            maxs: Vec3::splat(15.0),
            teleports,
            is_alive: true,
        };
        let places = [(0, stood(0.0, 0)), (50, stood(10.0, 0)), (100, stood(500.0, 4)), (400, stood(700.0, 4))];
        let way: SortedMap<Micros, BodyPosition> =
            places.into_iter().map(|(ms, stood)| (Micros::from_ms(ms), stood)).collect();
        let x = |ms: i64| at(&way, Micros::from_ms(ms)).map(|stood| stood.origin.x);
        assert_eq!(
            [x(-1), x(0), x(20), x(50), x(70), x(200), x(401)],
            [None, Some(0.0), Some(4.0), Some(10.0), Some(500.0), None, None]
        );
    }
}

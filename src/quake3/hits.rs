//! The hits that a server gave, judged again as it judges: the targets go back to the time of the usercmd that fired, between the
//! frames of the server that lie around it, and the shot's own lines are held against their boxes there (unlagged's
//! design, in OpenArena's g_unlagged.c).

use std::collections::BTreeMap;

use glam::Vec3;

use super::aim::{Lines, Weapon, cut, off};
use super::body::BodyRow;
use super::game::{Quake3, moved};
use super::protocol::{entity, player};
use super::rules::Rules;
use super::surroundings::box_of;
use crate::game::{BadCells, Body as _, HitAgain, JudgedAgain, StateRows};
use crate::record::{FrameRecord, Session, ShotRecord, SnapshotRecord};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

/// A value of `weaponstate` (bg_public.h): the weapon fires, or waits until it may again.
const FIRING: u32 = 3;
/// The height of the eyes of who ducks.
const DUCKED_EYES: i32 = 12;
/// No straight line is drawn between frames that are farther apart.
const LONGEST_GAP: Micros = Micros::from_ms(150);
/// The most that one usercmd runs, in ms.
const LONGEST_MS: i32 = 200;

/// All hits of weapons that hit at once, in the order of players and times. Nothing where the server does not go back.
pub(super) fn hits_again(rules: &Rules, session: &Session) -> Result<Vec<HitAgain>, BadCells> {
    if !rules.unlagged || rules.map.is_none() {
        return Ok(Vec::new());
    }
    let Ok(rows) = StateRows::new::<Quake3>(&session.header.classes) else { return Ok(Vec::new()) };
    let told = Told { rules, session, rows };
    let ways = told.ways()?;
    let mut hits = Vec::new();
    for (index, records) in session.players.iter().enumerate() {
        let shooter = PlayerId(index as u16);
        for pair in records.snapshots.windows(2) {
            let given: Vec<&ShotRecord> = records.judged.iter().filter(|hit| hit.at == pair[1].at).collect();
            if given.is_empty() {
                continue;
            }
            let Some((weapon, shots)) = told.shots(shooter, [&pair[0], &pair[1]])? else { continue };
            let frame = Micros(1_000_000 / i64::from(rules.server_hz.max(1)));
            let present = pair[1].server_time - frame;
            for (place, hit) in given.iter().enumerate() {
                let of_target = given[..place].iter().filter(|other| other.target == hit.target).count();
                let others = (0..rules.places).map(EntityId).filter(|id| *id != shooter.entity());
                let targets: Vec<EntityId> = hit.target.map_or_else(|| others.collect(), |target| vec![target]);
                let judge = |(shot, target): (&Shot, &EntityId)| shot.judge(&ways, *target, present, of_target);
                let judged = shots.iter().flat_map(|shot| targets.iter().map(move |target| (shot, target)));
                let best = judged.filter_map(judge).min_by(|one, other| one.off_units.total_cmp(&other.off_units));
                hits.push(HitAgain { shooter, at: hit.at, weapon: weapon.name, target: hit.target, judged: best });
            }
        }
    }
    Ok(hits)
}

/// What a session tells of bodies.
struct Told<'a> {
    rules: &'a Rules,
    session: &'a Session,
    rows: StateRows,
}

/// A shot that a usercmd fired.
struct Shot {
    command: CommandSeq,
    /// The time to which its targets go back.
    time: Micros,
    weapon: Weapon,
    lines: Lines,
}

/// Where somebody stood at a frame of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stood {
    origin: Vec3,
    mins: Vec3,
    maxs: Vec3,
    teleports: u32,
}

/// Who stood where, by server time.
type Ways = BTreeMap<EntityId, BTreeMap<Micros, Stood>>;

impl Told<'_> {
    fn body(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> Result<Option<BodyRow>, BadCells> {
        let mut sent = self.session.states.sent(tick, viewer, entity);
        sent.find_map(|(class, cells)| self.rows.read::<Quake3>(class, cells).transpose()).transpose()
    }

    /// All players, as anybody was told of them: what others are told says how large they are, too.
    fn ways(&self) -> Result<Ways, BadCells> {
        let mut ways = Ways::new();
        for (index, records) in self.session.players.iter().enumerate() {
            let viewer = PlayerId(index as u16);
            for snapshot in &records.snapshots {
                for id in snapshot.entities.iter().filter(|id| id.0 < self.rules.places) {
                    let Some(body) = self.body(snapshot.tick, viewer, *id)? else { continue };
                    let way = ways.entry(*id).or_default();
                    match body.is_own() {
                        true => _ = way.entry(snapshot.server_time).or_insert_with(|| Stood::of(&body)),
                        false => _ = way.insert(snapshot.server_time, Stood::of(&body)),
                    }
                }
            }
        }
        Ok(ways)
    }

    /// The weapon that somebody has at a snapshot, and its shots since the one before; `None` where it does not hit at once.
    fn shots(
        &self,
        shooter: PlayerId,
        [from, to]: [&SnapshotRecord; 2],
    ) -> Result<Option<(Weapon, Vec<Shot>)>, BadCells> {
        let [before, after] = [from, to].map(|snapshot| self.body(snapshot.tick, shooter, shooter.entity()));
        let (Some(mut own), Some(after)) = (before?, after?) else { return Ok(None) };
        let Some(weapon) = Weapon::of(after.player(player("weapon"))) else { return Ok(None) };
        let frames = &self.session.players[usize::from(shooter.0)].frames;
        let place = |ack: CommandSeq| frames.partition_point(|frame| frame.command.seq <= ack);
        let ran = &frames[place(from.ack)..place(to.ack).max(place(from.ack))];
        let fired = fired(&weapon, ran, &own, &after);
        let mut entities = Vec::new();
        for id in &from.entities {
            entities.extend(self.body(from.tick, shooter, *id)?.map(|body| (*id, body)));
        }
        let mut shots = Vec::new();
        for frame in ran {
            let command = &frame.command;
            own = moved(self.rules, &entities, shooter.entity(), &own, &command.input, &mut Vec::new());
            if fired.contains(&command.seq) {
                let lines = weapon.lines(&own, command.input.extra as i32);
                let time = command.server_time + Micros::from_ms(weapon.handicap_ms.into());
                shots.push(Shot { command: command.seq, time, weapon, lines });
            }
        }
        Ok(Some((weapon, shots)))
    }
}

/// Which usercmds fired, from how long the weapon still waits after the last of them: each takes its time from that.
fn fired(weapon: &Weapon, ran: &[FrameRecord], before: &BodyRow, after: &BodyRow) -> Vec<CommandSeq> {
    let mut waits = after.player(player("weapon_time")) as i32;
    if after.player(player("weaponstate")) != FIRING {
        return Vec::new();
    }
    let time = |frame: &FrameRecord| frame.command.input.extra as i32;
    let begin = before.player(player("command_time")) as i32;
    let starts = std::iter::once(begin).chain(ran.iter().map(time));
    let took: Vec<i32> = ran.iter().zip(starts).map(|(frame, start)| time(frame).wrapping_sub(start)).collect();
    let mut fired = Vec::new();
    for (frame, took) in ran.iter().zip(took).rev() {
        let took = took.clamp(0, LONGEST_MS);
        waits += took;
        // It fires when it waits no longer, and what it waited too long is taken from the next.
        if (weapon.again_ms + 1..=weapon.again_ms + took).contains(&waits) {
            fired.push(frame.command.seq);
            waits -= weapon.again_ms;
        }
    }
    fired
}

impl Shot {
    /// Holds it against one target. `before` is how many of its pellets have hit that target already.
    fn judge(&self, ways: &Ways, target: EntityId, present: Micros, before: usize) -> Option<JudgedAgain> {
        let way = ways.get(&target)?;
        let stood = at(way, self.time)?;
        let off_of = |stood: &Stood| {
            let (mins, maxs) = (stood.origin + stood.mins, stood.origin + stood.maxs);
            let mut all: Vec<f32> = self.lines.ends.iter().map(|end| off(self.lines.from, *end, mins, maxs)).collect();
            all.sort_by(f32::total_cmp);
            let middle = off(self.lines.from, self.lines.middle, mins, maxs);
            let spread = self.weapon.slope() * self.lines.from.distance(stood.origin);
            (all.get(before).or(all.last()).copied().unwrap_or(f32::INFINITY), (middle - spread).max(0.0))
        };
        let (off_units, beyond_spread_units) = off_of(&stood);
        let now = at(way, present).map(|stood| off_of(&stood));
        Some(JudgedAgain {
            command: self.command,
            target,
            origin: stood.origin,
            rewind: present - self.time,
            off_units,
            beyond_spread_units,
            off_present_units: now.map(|(off, _)| off),
        })
    }
}

/// Where somebody was between two frames of the server; `None` where nobody was told of these.
fn at(way: &BTreeMap<Micros, Stood>, time: Micros) -> Option<Stood> {
    let (from, before) = way.range(..=time).next_back()?;
    if *from == time {
        return Some(*before);
    }
    let (to, after) = way.range(time..).next()?;
    if before.teleports != after.teleports {
        // Who is put elsewhere has been there always.
        return Some(*after);
    }
    let gap = *to - *from;
    let fraction = (time - *from).0 as f32 / gap.0 as f32;
    let between = |of: fn(&Stood) -> Vec3| of(before).lerp(of(after), fraction);
    let stood = Stood {
        origin: between(|stood| stood.origin),
        mins: between(|stood| stood.mins),
        maxs: between(|stood| stood.maxs),
        teleports: after.teleports,
    };
    (gap <= LONGEST_GAP).then_some(stood)
}

impl Stood {
    fn of(body: &BodyRow) -> Stood {
        let is_ducked = body.player(player("viewheight")) as i32 == DUCKED_EYES;
        let (mins, maxs) = match body.is_own() {
            true => (Vec3::new(-15.0, -15.0, -24.0), Vec3::new(15.0, 15.0, if is_ducked { 16.0 } else { 32.0 })),
            false => box_of(body.entity(entity("solid"))),
        };
        // The others are told of a player in whole units, and the server keeps that.
        let origin = if body.is_own() { cut(body.origin()) } else { body.origin() };
        Stood { origin, mins, maxs, teleports: body.teleports() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_is_between_two_frames_and_nowhere_beyond_them() {
        let stood = |x: f32, teleports: u32| Stood {
            origin: Vec3::new(x, 0.0, 0.0),
            mins: Vec3::splat(-15.0),
            maxs: Vec3::splat(15.0),
            teleports,
        };
        let places = [(0, stood(0.0, 0)), (50, stood(10.0, 0)), (100, stood(500.0, 4)), (400, stood(700.0, 4))];
        let way: BTreeMap<Micros, Stood> = places.into_iter().map(|(ms, stood)| (Micros::from_ms(ms), stood)).collect();
        let x = |ms: i64| at(&way, Micros::from_ms(ms)).map(|stood| stood.origin.x);
        assert_eq!(
            [x(-1), x(0), x(20), x(50), x(70), x(200), x(401)],
            [None, Some(0.0), Some(4.0), Some(10.0), Some(500.0), None, None]
        );
    }
}

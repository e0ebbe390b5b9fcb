//! Matches hits with victims. The server tells a shooter its number of hits and the last victim's health before the hit. The
//! server's console log has victims and their damage: one line for each hit with `g_debugDamage 1` (OpenArena's g_combat.c).
//! Together they give shooter, victim and damage. Without a log, event entities that all clients in sight receive identify
//! some victims: bullet impacts on players, and deaths (OpenArena's bg_public.h, g_weapon.c and g_combat.c).

use std::sync::Arc;

use super::NewestTicks;
use super::client::HeardClient;
use crate::quake3::InfoString;
use crate::quake3::protocol::{EntityCells, Quake3Snapshot, entity, player_list};
use hitreg_log::record::{DamageRecord, HitResult, ShotRecord};
use hitreg_log::units::{EntityId, PlayerId};

/// The list of player data that survives deaths, and two of its cells. They hold the number of hits, and the last
/// victim's health in the high byte (bg_public.h and g_combat.c of OpenArena).
const PERSISTANT: usize = 1;
const HITS: usize = player_list(PERSISTANT) + 1;
const VICTIMS_HEALTH: usize = player_list(PERSISTANT) + 7;

/// The server log, matched with hits reported to shooters.
#[derive(Debug, Default)]
pub(super) struct HitLog {
    log: ServerLog,
    /// The damage lines of the recorded level, by time.
    hurt: Vec<DamageLine>,
    /// The shooter of each log line, if known.
    attackers: Vec<Option<PlayerId>>,
    /// Number of log lines already passed.
    passed: usize,
    /// Number of passed lines from before the recording.
    before: u64,
}

impl HitLog {
    pub(super) fn new(log: ServerLog) -> HitLog {
        HitLog { log, ..HitLog::default() }
    }

    /// Takes the damage lines of the recorded level. `settings` are the server's at its gamestate.
    pub(super) fn begin_level(&mut self, settings: &InfoString) {
        self.hurt = self.log.of_level(settings);
        self.attackers = vec![None; self.hurt.len()];
    }

    /// Returns the number of log lines within the recording so far, how many of them have a known shooter, and the
    /// number of the other lines.
    pub(super) fn logged(&self) -> [u64; 3] {
        let within = self.passed as u64 - self.before;
        [within, self.attackers.iter().flatten().count() as u64, self.hurt.len() as u64 - within]
    }

    /// Returns the hits that a snapshot reports for the first time. `since` is the server time of the previous
    /// snapshot.
    pub(super) fn of(&mut self, client: &mut HeardClient, snapshot: &Quake3Snapshot) -> Vec<ShotRecord> {
        let now = (snapshot.player[HITS], snapshot.server_time);
        // The server copies the counter of a followed player into the spectator's own.
        let shown = snapshot.is_own(client.player).then_some(now);
        let before = std::mem::replace(&mut client.hits, shown);
        let (before, since) = before.filter(|_| shown.is_some()).unwrap_or(now);
        // Hits on team mates decrease the counter. A returning player starts with the previous value.
        let new = (now.0.wrapping_sub(before) as i32).clamp(0, i32::from(u8::MAX)) as u8;
        let health = (snapshot.player[VICTIMS_HEALTH] >> 8) as u8;
        let lines = self.lines(client.player, (since, snapshot.server_time), health, usize::from(new));
        let victims = client.events.victims(client.player, snapshot);
        let shot = |hit: u8| {
            // The log covers the last hits.
            let place = |known: usize| known.checked_sub(usize::from(new - hit));
            let line = place(lines.len()).and_then(|place| lines.get(place));
            let victim = place(victims.len()).and_then(|place| victims.get(place));
            let (command, index) = client.hit();
            ShotRecord {
                command,
                index,
                reason: HitResult::Hit,
                target: line.map(|line| EntityId(line.victim)).or(victim.copied()),
                damage: line.map_or(0, |line| line.damage),
                ..ShotRecord::default()
            }
        };
        (0..new).map(shot).collect()
    }

    /// Returns the log lines of a shooter's newest hits, at most `count`: the last one with that victim's health, and
    /// those leading to it.
    fn lines(&mut self, shooter: PlayerId, (from, to): (i32, i32), health: u8, count: usize) -> Vec<DamageLine> {
        let place = |time| self.hurt.partition_point(|line| line.server_time < time);
        let mut places = place(from)..place(to);
        let mut found: Vec<DamageLine> = Vec::new();
        while found.len() < count {
            let is_mine = |at: &usize| {
                let (line, is_free) = (&self.hurt[*at], self.attackers[*at].is_none());
                is_free
                    && match found.last() {
                        None => line.victim != shooter.0 && line.health as u8 == health,
                        // A weapon with several pellets hits the same victim repeatedly.
                        Some(next) => line.victim == next.victim && line.health - line.damage == next.health,
                    }
            };
            let Some(place) = places.clone().rev().find(is_mine) else { break };
            self.attackers[place] = Some(shooter);
            found.push(self.hurt[place]);
            places.end = place;
        }
        found.reverse();
        found
    }

    /// Returns the log's damage between the first snapshot and a server time for which all shooters have been told, each
    /// line once. Its tick is the first whose snapshots show it.
    pub(super) fn until(&mut self, server_time: i32, ticks: &NewestTicks) -> Vec<DamageRecord> {
        let mut records = Vec::new();
        while let Some(line) = self.hurt.get(self.passed).filter(|line| line.server_time < server_time) {
            let shown = ticks.after(line.server_time).filter(|_| ticks.has_begun(line.server_time));
            if let Some((tick, at)) = shown {
                let (victim, amount) = (EntityId(line.victim), line.damage);
                let (attacker, armour) = (self.attackers[self.passed], u16::try_from(line.armor).ok());
                records.push(DamageRecord { tick, at, victim, attacker, amount, armour, ..DamageRecord::default() });
            }
            self.before += u64::from(shown.is_none());
            self.passed += 1;
        }
        records
    }
}

/// The `kind` of an entity with event 0; further events follow.
const EVENTS: u32 = 13;
const BULLET_MET_FLESH: u32 = EVENTS + 48;
const OBITUARY: u32 = EVENTS + 60;

/// The event entities of the newest snapshot. Servers send each for several snapshots.
#[derive(Debug, Default)]
pub(super) struct SeenEvents {
    shown: Vec<(u16, Arc<EntityCells>)>,
}

impl SeenEvents {
    /// Returns the victims of a shooter that a snapshot reports for the first time, one for each bullet; deaths come
    /// last.
    fn victims(&mut self, shooter: PlayerId, snapshot: &Quake3Snapshot) -> Vec<EntityId> {
        let is_event = |(_, cells): &&(u16, Arc<EntityCells>)| cells[entity("kind")] >= EVENTS;
        let now: Vec<(u16, Arc<EntityCells>)> = snapshot.entities.iter().filter(is_event).cloned().collect();
        let before = std::mem::replace(&mut self.shown, now);
        let new = self.shown.iter().filter(|event| !before.contains(event)).map(|(_, cells)| cells);
        let by_shooter = |cells: &&Arc<EntityCells>, attacker: usize| cells[attacker] == u32::from(shooter.0);
        let of_kind = |kind: u32, attacker: &'static str, victim: &'static str| {
            let (attacker, victim) = (entity(attacker), entity(victim));
            let matching =
                new.clone().filter(move |cells| cells[entity("kind")] == kind && by_shooter(cells, attacker));
            matching.map(move |cells| EntityId(cells[victim] as u16))
        };
        let bullets = of_kind(BULLET_MET_FLESH, "other_entity_num", "event_parm");
        let mut victims: Vec<EntityId> = bullets.collect();
        for dead in of_kind(OBITUARY, "other_entity_num2", "other_entity_num") {
            // A victim killed by a bullet has both events.
            if dead.0 != shooter.0 && !victims.contains(&dead) {
                victims.push(dead);
            }
        }
        victims
    }
}

/// One damage line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamageLine {
    /// Server time, in ms.
    pub server_time: i32,
    /// The entity that was hit.
    pub victim: u16,
    /// Its health before the hit.
    pub health: i32,
    /// Lost health.
    pub damage: i32,
    /// Lost armour.
    pub armor: i32,
}

/// The damage lines of a server log, by level.
#[derive(Clone, Debug, Default)]
pub struct ServerLog {
    levels: Vec<LoggedLevel>,
}

/// A level of a server log.
#[derive(Clone, Debug, Default)]
struct LoggedLevel {
    /// The settings at each start of the level. A restart does not end a level, and server times go on.
    starts: Vec<InfoString>,
    /// Damage by time.
    hurt: Vec<DamageLine>,
}

/// The line before a level.
const NEW_LEVEL: &[u8] = b"------ Server Initialization ------";
/// The beginning of the line with the settings at the start of a level.
const LEVEL_SETTINGS: &[u8] = b"InitGame: ";
/// Settings that identify a level: its map, and the time of day of its start in OpenArena.
const IDENTITY: [&str; 2] = ["mapname", "g_timestamp"];

impl ServerLog {
    /// Parses a server's console log; ignores other lines.
    pub fn parse(text: &[u8]) -> ServerLog {
        let mut levels = vec![LoggedLevel::default()];
        for text in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end) {
            if text == NEW_LEVEL {
                levels.push(LoggedLevel::default());
            }
            let Some(level) = levels.last_mut() else { continue };
            level.starts.extend(text.strip_prefix(LEVEL_SETTINGS).map(InfoString::new));
            level.hurt.extend(damage_line(text));
        }
        levels.iter_mut().for_each(|level| level.hurt.sort_by_key(|hurt| hurt.server_time));
        ServerLog { levels }
    }

    /// Returns the damage of the level with these server settings, by time. A part of a log without settings fits any
    /// level.
    fn of_level(&self, settings: &InfoString) -> Vec<DamageLine> {
        let is_it = |start: &InfoString| IDENTITY.iter().all(|key| start.text(key) == settings.text(key));
        let fits = |level: &&LoggedLevel| level.starts.is_empty() || level.starts.iter().any(is_it);
        self.levels.iter().rev().find(fits).map(|level| level.hurt.clone()).unwrap_or_default()
    }
}

/// Parses `9250: client:0 health:110 damage:45 armor:0`.
fn damage_line(line: &[u8]) -> Option<DamageLine> {
    let line = std::str::from_utf8(line).ok()?;
    let (time, rest) = line.split_once(": client:")?;
    let mut words = rest.split(' ');
    let victim = words.next()?.parse().ok()?;
    let mut value = |name: &str| words.next()?.strip_prefix(name)?.parse().ok();
    let (health, damage, armor) = (value("health:")?, value("damage:")?, value("armor:")?);
    Some(DamageLine { server_time: time.parse().ok()?, victim, health, damage, armor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_lines_are_read_and_nothing_else() {
        let text =
            b"say: 9: client:1\n9250: client:0 health:110 damage:45 armor:2\r\n\xff\xfe\n9250: client:0 health\n";
        let hurt = DamageLine { server_time: 9250, victim: 0, health: 110, damage: 45, armor: 2 };
        assert_eq!(ServerLog::parse(text).of_level(&InfoString::new(b"\\mapname\\any")), [hurt]);
    }

    /// Server times begin again with each level, but go on when a level restarts.
    #[test]
    fn damage_belongs_to_a_level() {
        let level = |map, starts: [&str; 2], time| {
            let start = |of| format!("InitGame: \\mapname\\{map}\\g_timestamp\\{of}\r\n");
            let damage = |time| format!("{time}: client:1 health:9 damage:1 armor:0\n");
            let [first, second] = starts.map(start);
            let mark = "------ Server Initialization ------\n";
            [mark, &first, &damage(time), "ShutdownGame:\n", &second, &damage(time + 1)].concat()
        };
        let log = [level("one", ["1", "2"], 100), level("two", ["3", "4"], 50), level("one", ["5", "6"], 70)].concat();
        let log = ServerLog::parse(log.as_bytes());
        let times = |map, start| {
            let settings = InfoString::new(format!("\\g_timestamp\\{start}\\mapname\\{map}").as_bytes());
            log.of_level(&settings).iter().map(|hurt| hurt.server_time).collect::<Vec<_>>()
        };
        assert_eq!([times("one", 1), times("one", 2)], [[100, 101], [100, 101]]);
        assert_eq!([times("two", 4), times("one", 5)], [[50, 51], [70, 71]]);
        assert_eq!([times("two", 1), times("three", 3)], [[0; 0]; 2]);
    }
}

//! Matches hits with victims. The server tells a shooter its number of hits and the last victim's health before the
//! hit. The server log has victims and their damage. Together they give shooter, victim and damage. Without a log,
//! event entities that all clients see identify some victims.

use super::client::HeardClient;
use super::ticks::NewestTicks;
use crate::quake3::protocol::{Quake3Snapshot, player_list};
use crate::quake3::rules::InfoString;
use crate::quake3::server_log::{DamageLine, ServerLog};
use hitreg_log::record::{DamageRecord, Reason, ShotRecord};
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
                reason: Reason::Hit,
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

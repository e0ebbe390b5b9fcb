//! Reads damage from a server's console log: one line for each hit with `g_debugDamage 1` (OpenArena's g_combat.c). The
//! server prints a line before it reduces the health. The line names only the victim.

use super::rules::InfoString;

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
const START: &[u8] = b"InitGame: ";
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
            level.starts.extend(text.strip_prefix(START).map(InfoString::new));
            level.hurt.extend(line(text));
        }
        levels.iter_mut().for_each(|level| level.hurt.sort_by_key(|hurt| hurt.server_time));
        ServerLog { levels }
    }

    /// Returns the damage of the level with these server settings, by time. A part of a log without settings fits any
    /// level.
    pub(crate) fn of_level(&self, settings: &InfoString) -> Vec<DamageLine> {
        let is_it = |start: &InfoString| IDENTITY.iter().all(|key| start.text(key) == settings.text(key));
        let fits = |level: &&LoggedLevel| level.starts.is_empty() || level.starts.iter().any(is_it);
        self.levels.iter().rev().find(fits).map(|level| level.hurt.clone()).unwrap_or_default()
    }
}

/// Parses `9250: client:0 health:110 damage:45 armor:0`.
fn line(line: &[u8]) -> Option<DamageLine> {
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

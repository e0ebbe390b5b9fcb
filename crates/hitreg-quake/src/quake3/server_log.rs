//! Reads damage from a server's console log: one line for each hit with `g_debugDamage 1` (OpenArena's g_combat.c). The
//! server prints a line before it reduces the health. The line names only the victim.

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

/// The damage lines of a server log, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerLog {
    /// Damage by time.
    pub hurt: Vec<DamageLine>,
}

impl ServerLog {
    /// Parses a server's console log; ignores other lines.
    pub fn parse(text: &[u8]) -> ServerLog {
        let mut hurt: Vec<DamageLine> = text.split(|byte| *byte == b'\n').filter_map(line).collect();
        hurt.sort_by_key(|hurt| hurt.server_time);
        ServerLog { hurt }
    }

    /// Returns the lines from one server time up to, but excluding, another.
    pub(crate) fn between(&self, from: i32, to: i32) -> std::ops::Range<usize> {
        let first = self.hurt.partition_point(|hurt| hurt.server_time < from);
        let end = self.hurt.partition_point(|hurt| hurt.server_time < to);
        first..end.max(first)
    }
}

/// Parses `9250: client:0 health:110 damage:45 armor:0`.
fn line(line: &[u8]) -> Option<DamageLine> {
    let line = std::str::from_utf8(line.trim_ascii_end()).ok()?;
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
        let log = ServerLog::parse(text);
        assert_eq!(log.hurt, [hurt]);
        assert_eq!((log.between(9250, 9251), log.between(9200, 9250), log.between(9999, 1)), (0..1, 0..0, 1..1));
    }
}

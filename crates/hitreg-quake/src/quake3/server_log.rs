//! What a server wrote down of who was hurt: one line a hit under `g_debugDamage 1` (OpenArena's g_combat.c). The server prints them
//! before it takes the health away, and names the victim alone.

/// One line: somebody was hurt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hurt {
    /// The server's time, in ms.
    pub server_time: i32,
    /// The entity that was hurt.
    pub victim: u16,
    /// Its health before.
    pub health: i32,
    /// What it lost of that.
    pub damage: i32,
    /// What its armour took.
    pub armor: i32,
}

/// The damage lines of a server's log, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerLog {
    /// By time.
    pub hurt: Vec<Hurt>,
}

impl ServerLog {
    /// Reads a server's console log; lines about anything else are passed over.
    pub fn parse(text: &[u8]) -> ServerLog {
        let mut hurt: Vec<Hurt> = text.split(|byte| *byte == b'\n').filter_map(line).collect();
        hurt.sort_by_key(|hurt| hurt.server_time);
        ServerLog { hurt }
    }

    /// The lines from one server time up to, but not at, another.
    pub(crate) fn between(&self, from: i32, to: i32) -> std::ops::Range<usize> {
        let first = self.hurt.partition_point(|hurt| hurt.server_time < from);
        let end = self.hurt.partition_point(|hurt| hurt.server_time < to);
        first..end.max(first)
    }
}

/// `9250: client:0 health:110 damage:45 armor:0`
fn line(line: &[u8]) -> Option<Hurt> {
    let line = std::str::from_utf8(line.trim_ascii_end()).ok()?;
    let (time, rest) = line.split_once(": client:")?;
    let mut words = rest.split(' ');
    let victim = words.next()?.parse().ok()?;
    let mut value = |name: &str| words.next()?.strip_prefix(name)?.parse().ok();
    let (health, damage, armor) = (value("health:")?, value("damage:")?, value("armor:")?);
    Some(Hurt { server_time: time.parse().ok()?, victim, health, damage, armor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_lines_are_read_and_nothing_else() {
        let text =
            b"say: 9: client:1\n9250: client:0 health:110 damage:45 armor:2\r\n\xff\xfe\n9250: client:0 health\n";
        let hurt = Hurt { server_time: 9250, victim: 0, health: 110, damage: 45, armor: 2 };
        let log = ServerLog::parse(text);
        assert_eq!(log.hurt, [hurt]);
        assert_eq!((log.between(9250, 9251), log.between(9200, 9250), log.between(9999, 1)), (0..1, 0..0, 1..1));
    }
}

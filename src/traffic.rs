//! Every packet between the server and its clients, as a log has it, or as a trace says.

use crate::record::{ArrivalRecord, Fates, Session};
use crate::trace::Trace;
use crate::trace::schema::{packets, snapshots};

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Whose.
    pub player: u32,
    /// Whether it went to the server.
    pub is_up: bool,
    /// When it left.
    pub sent_us: i64,
    /// How long it was on its way; `None` where it never arrived.
    pub took_us: Option<i64>,
    /// How many bytes it has, where that is known.
    pub bytes: Option<u32>,
    /// How many updates were held back before it.
    pub choked: u32,
}

/// Those that a log has, by player and direction, in the order of their numbers. What was sent after the last that is known to have
/// arrived may have been on its way, and is left out; so is a direction of which no arrival is known.
pub fn of_session(session: &Session) -> Vec<Packet> {
    let mut all = Vec::new();
    for (player, records) in (0..).zip(&session.players) {
        let up = records.sent.iter().map(|sent| (sent.number, sent.at.0, sent.bytes, 0));
        add(&mut all, (player, true), up, &records.reached);
        let down = records.snapshots.iter().map(|sent| (sent.seq.0, sent.at.0, sent.bytes, sent.choked));
        add(&mut all, (player, false), down, &records.received);
    }
    all
}

fn add(
    all: &mut Vec<Packet>,
    (player, is_up): (u32, bool),
    sent: impl Iterator<Item = (u32, i64, u16, u8)>,
    arrivals: &[ArrivalRecord],
) {
    let fates = Fates::new(arrivals);
    let newest = arrivals.iter().map(|arrival| arrival.number).max();
    all.extend(sent.filter(|(number, ..)| newest.is_some_and(|newest| *number <= newest)).map(
        |(number, sent_us, bytes, choked)| Packet {
            player,
            is_up,
            sent_us,
            took_us: fates.of(number).next().map(|at| at.0.saturating_sub(sent_us)),
            bytes: Some(bytes.into()),
            choked: choked.into(),
        },
    ));
}

/// Those that a trace says, in the same way.
pub fn of_trace(trace: &Trace) -> Vec<Packet> {
    let (up, down) = (packets::Columns::of(trace), snapshots::Columns::of(trace));
    let took = |took: &[f32], row: usize| took.get(row).filter(|ms| ms.is_finite()).map(|ms| (ms * 1e3) as i64);
    let mut all = Vec::new();
    for row in 0..up.rows.min(up.at_us.len()) {
        all.push(Packet {
            player: up.player.get(row).copied().unwrap_or_default(),
            is_up: true,
            sent_us: up.at_us[row],
            took_us: took(up.took_ms, row),
            bytes: up.bytes.get(row).copied(),
            choked: 0,
        });
    }
    for row in 0..down.rows.min(down.at_us.len()) {
        all.push(Packet {
            player: down.player.get(row).copied().unwrap_or_default(),
            is_up: false,
            sent_us: down.at_us[row],
            took_us: took(down.took_ms, row),
            bytes: down.bytes.get(row).copied(),
            choked: down.choked.get(row).copied().unwrap_or_default(),
        });
    }
    all.sort_by_key(|packet| (packet.player, !packet.is_up, packet.sent_us));
    let mut last_arrived = std::collections::BTreeMap::new();
    for packet in all.iter().filter(|packet| packet.took_us.is_some()) {
        last_arrived.insert((packet.player, packet.is_up), packet.sent_us);
    }
    all.retain(|packet| last_arrived.get(&(packet.player, packet.is_up)).is_some_and(|last| packet.sent_us <= *last));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::schema::packets::{Row, Writer};

    #[test]
    fn what_may_be_on_its_way_is_not_lost() {
        let mut writer = Writer::default();
        for (packet, took_ms) in [(1, 20.0), (2, f32::NAN), (3, 21.5), (4, f32::NAN)] {
            let at_us = i64::from(packet) * 1_000;
            let arrived = u32::from(!f32::is_nan(took_ms));
            writer.push(Row {
                player: 7,
                packet,
                at_us,
                arrived,
                took_ms,
                newest: packet,
                usercmds: 1,
                ack: 0,
                bytes: None,
            });
        }
        let found = of_trace(&Trace { tables: vec![writer.finish(Vec::new())], ..Trace::default() });
        let took: Vec<_> = found.iter().map(|packet| packet.took_us).collect();
        assert_eq!(took, [Some(20_000), None, Some(21_500)]);
        assert!(found.iter().all(|packet| packet.player == 7 && packet.is_up && packet.bytes.is_none()));
    }
}

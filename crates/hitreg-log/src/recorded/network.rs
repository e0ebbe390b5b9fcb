//! Converts recorded packets, snapshots and their arrivals into the tables `packets` and `snapshots`. Logs
//! without any size have no column of sizes.

use crate::record::{ArrivalRecord, Session};
use crate::sorted::SortedMap;
use crate::trace::Table;
use crate::trace::schema::{packets, snapshots};
use crate::units::Micros;

/// Returns the table `packets`. Arrivals of packets that no client recorded have no row.
pub(super) fn packets(session: &Session) -> Table {
    let mut table = packets::Writer::default();
    let has_sizes = session.players.iter().flat_map(|player| &player.sent).any(|packet| packet.bytes > 0);
    for (player, records) in (0..).zip(&session.players) {
        let arrivals = Arrivals::of(&records.reached);
        for packet in &records.sent {
            let (arrived, took_ms) = arrivals.of_packet(packet.number, packet.at);
            table.push(packets::Row {
                player,
                packet: packet.number,
                at_us: packet.at.0,
                arrived,
                took_ms,
                newest: packet.newest.0,
                usercmds: packet.count.into(),
                ack: packet.ack.0,
                bytes: has_sizes.then_some(packet.bytes.into()),
            });
        }
    }
    table.finish(Vec::new())
}

/// Returns the table `snapshots`. Arrivals of snapshots that no server recorded have no row.
pub(super) fn snapshots(session: &Session) -> Table {
    let mut table = snapshots::Writer::default();
    let has_sizes = session.players.iter().flat_map(|player| &player.snapshots).any(|sent| sent.bytes > 0);
    for (player, records) in (0..).zip(&session.players) {
        let arrivals = Arrivals::of(&records.received);
        for sent in &records.snapshots {
            let (arrived, took_ms) = arrivals.of_packet(sent.seq.0, sent.at);
            let timing = sent.timing.as_deref();
            table.push(snapshots::Row {
                player,
                snapshot: sent.seq.0,
                at_us: sent.at.0,
                arrived,
                took_ms,
                ack: sent.ack.0,
                entities: sent.entities.len() as u32,
                effects: sent.effects.len() as u32,
                choked: sent.choked.into(),
                helper_ms: timing.and_then(|timing| timing.helper_ms).map_or(f32::NAN, f32::from),
                warnings: timing.map_or(0, |timing| timing.warnings.len() as u32),
                bytes: has_sizes.then_some(sent.bytes.into()),
                saw_avatar_right: None,
                bits: None,
            });
        }
    }
    table.finish(Vec::new())
}

/// The number of arrivals of each packet, and the time of the first one.
struct Arrivals(SortedMap<u32, (u32, Micros)>);

impl Arrivals {
    fn of(records: &[ArrivalRecord]) -> Arrivals {
        let mut arrivals = SortedMap::new();
        for record in records {
            let (count, first) = arrivals.entry(record.number).or_insert((0u32, record.at));
            (*count, *first) = (count.saturating_add(1), record.at.min(*first));
        }
        Arrivals(arrivals)
    }

    /// Returns the number of arrivals, and the transit time of the first one in ms; NaN for a packet without arrivals.
    fn of_packet(&self, number: u32, sent: Micros) -> (u32, f32) {
        self.0
            .get(&number)
            .map_or((0, f32::NAN), |(count, first)| (*count, Micros(first.0.saturating_sub(sent.0)).as_ms_f64() as f32))
    }
}

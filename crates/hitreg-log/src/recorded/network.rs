//! Converts recorded packets, snapshots and their arrivals into the tables `packets` and `snapshots`. Logs
//! without any size have no column of sizes.

use crate::record::{ArrivalTable, Session};
use crate::trace::Table;
use crate::trace::schema::{packets, snapshots};
use crate::units::{Micros, PlayerId};

/// Returns the table `packets`. Arrivals of packets that no client recorded have no row.
pub(super) fn packets(session: &Session) -> Table {
    let mut table = packets::Writer::default();
    let has_sizes = session.players.iter().flat_map(|player| &player.sent).any(|packet| packet.bytes > 0);
    for (player, records) in (0..).map(PlayerId).zip(&session.players) {
        let arrivals = ArrivalTable::new(&records.reached);
        for packet in &records.sent {
            let (arrived, took_ms) = transit(&arrivals, packet.number, packet.at);
            let bytes = has_sizes.then_some(packet.bytes.into());
            table.push(packets::Row { arrived, took_ms, bytes, ..packets::Row::of_packet(player, packet) });
        }
    }
    table.finish(Vec::new())
}

/// Returns the table `snapshots`. Arrivals of snapshots that no server recorded have no row.
pub(super) fn snapshots(session: &Session) -> Table {
    let mut table = snapshots::Writer::default();
    let has_sizes = session.players.iter().flat_map(|player| &player.snapshots).any(|sent| sent.bytes > 0);
    for (player, records) in (0..).zip(&session.players) {
        let arrivals = ArrivalTable::new(&records.received);
        for sent in &records.snapshots {
            let (arrived, took_ms) = transit(&arrivals, sent.seq.0, sent.at);
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
                left_out: None,
                saw_avatar_right: None,
                bits: None,
            });
        }
    }
    table.finish(Vec::new())
}

/// Returns the number of a packet's arrivals, and the transit time of the first one in ms; NaN for a packet without
/// arrivals.
fn transit(arrivals: &ArrivalTable, number: u32, sent: Micros) -> (u32, f32) {
    let first = arrivals.of(number).next();
    let took_ms = first.map_or(f32::NAN, |first| Micros(first.0.saturating_sub(sent.0)).as_ms_f64() as f32);
    (arrivals.of(number).count() as u32, took_ms)
}

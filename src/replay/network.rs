//! The `packets` and `snapshots` tables: what went over the network, and what became of it.

use std::collections::BTreeMap;

use crate::packet::Snapshot;
use crate::record::PacketRecord;
use crate::session::Packed;
use crate::trace::Table;
use crate::trace::schema::{packets, snapshots};
use crate::units::{Micros, PlayerId};

#[derive(Debug)]
pub(super) struct Network {
    /// Whether sizes are those of datagrams.
    with_sizes: bool,
    packets: packets::Writer,
    snapshots: snapshots::Writer,
    /// The row of each packet that is on its way, by player and number.
    up: BTreeMap<(PlayerId, u32), usize>,
    down: BTreeMap<(PlayerId, u32), usize>,
}

impl Network {
    pub(super) fn new(with_sizes: bool) -> Network {
        Network {
            with_sizes,
            packets: packets::Writer::default(),
            snapshots: snapshots::Writer::default(),
            up: BTreeMap::new(),
            down: BTreeMap::new(),
        }
    }

    pub(super) fn packet_sent(&mut self, player: PlayerId, packet: &PacketRecord) {
        self.up.insert((player, packet.number), self.packets.packet.len());
        self.packets.push(packets::Row {
            player: player.0.into(),
            packet: packet.number,
            at_us: packet.at.0,
            arrived: 0,
            took_ms: f32::NAN,
            newest: packet.newest.0,
            usercmds: packet.count.into(),
            ack: packet.ack.0,
            bytes: self.with_sizes.then_some(packet.bytes.into()),
        });
    }

    pub(super) fn packet_reached(&mut self, player: PlayerId, number: u32, at: Micros) {
        let Some(row) = self.up.get(&(player, number)).copied() else { return };
        let packets::Writer { at_us, arrived, took_ms, .. } = &mut self.packets;
        arrives(row, at, at_us, arrived, took_ms);
    }

    pub(super) fn snapshot_sent<B>(&mut self, player: PlayerId, at: Micros, snapshot: &Snapshot<B>, packed: Packed) {
        self.down.insert((player, snapshot.seq.0), self.snapshots.snapshot.len());
        self.snapshots.push(snapshots::Row {
            player: player.0.into(),
            snapshot: snapshot.seq.0,
            at_us: at.0,
            arrived: 0,
            took_ms: f32::NAN,
            ack: snapshot.ack.0,
            entities: snapshot.frame.entities.len() as u32,
            effects: snapshot.effects.len() as u32,
            choked: snapshot.choked.into(),
            helper_ms: snapshot.helper_ms.map_or(f32::NAN, f32::from),
            warnings: snapshot.warnings.len() as u32,
            bytes: self.with_sizes.then_some(packed.bytes.into()),
            saw_avatar_right: packed.saw_avatar_right.filter(|_| self.with_sizes).map(u8::from),
        });
    }

    pub(super) fn snapshot_received(&mut self, player: PlayerId, number: u32, at: Micros) {
        let Some(row) = self.down.get(&(player, number)).copied() else { return };
        let snapshots::Writer { at_us, arrived, took_ms, .. } = &mut self.snapshots;
        arrives(row, at, at_us, arrived, took_ms);
    }

    pub(super) fn tables(self) -> [Table; 2] {
        [self.packets.finish(Vec::new()), self.snapshots.finish(Vec::new())]
    }
}

/// It arrives; how long it took is the first time's.
fn arrives(row: usize, at: Micros, sent_us: &[i64], arrived: &mut [u32], took_ms: &mut [f32]) {
    if arrived[row] == 0 {
        took_ms[row] = Micros(at.0.saturating_sub(sent_us[row])).as_ms_f64() as f32;
    }
    arrived[row] += 1;
}

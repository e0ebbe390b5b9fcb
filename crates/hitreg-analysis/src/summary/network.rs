//! The network traffic of a trace.

use serde::Serialize;

use super::sum;
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::{CountedValues, Delivery, Spread};
use hitreg_log::trace::schema::{CellType as _, OptionalBits, packets, snapshots};

/// The network traffic of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkSummary {
    /// Packets from the clients to the server.
    pub up: DirectionSummary,
    /// The mean number of usercmds per packet, repeats included.
    pub usercmds_per_packet: f64,
    /// Snapshots from the server to the clients.
    pub down: DirectionSummary,
    /// Snapshots that the server held back because of the client's rate limit.
    pub choked: u64,
    /// Usercmds that arrived out of sequence, for which the server sent warnings.
    pub warnings: u64,
    /// The bytes of snapshots by use, if datagrams were encoded. The keys are variable categories for values, `naming`
    /// for the ids of entities and variables, effects, `events` for warnings and notices, and `headers`. Single bits
    /// count as eighths.
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    pub bytes_for: SortedMap<&'static str, f64>,
}

/// The packets in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DirectionSummary {
    /// The number of packets sent, without those of `players_unknown`. If no arrival is known, all packets count.
    pub sent: u64,
    /// Players whose arrivals are not known, because the log of their side is missing.
    pub players_unknown: u64,
    /// Packets that never arrived although a later packet of the same connection did. `None` if no arrival is known, as
    /// in the log of one side.
    pub lost: Option<u64>,
    /// Packets sent after the last packet that arrived. They count as neither lost nor received.
    pub in_flight: u64,
    /// The time in flight, in ms.
    pub took_ms: Option<Spread>,
    /// The bytes of the packets, if datagrams were encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl DirectionSummary {
    /// Sets the number of lost packets of a part of a session. Later packets, which the part does not have, decide it.
    pub fn decide(&mut self, lost: u64) {
        if let Some(known) = self.lost {
            let undelivered = known + self.in_flight;
            let lost = lost.clamp(known, undelivered);
            (self.lost, self.in_flight) = (Some(lost), undelivered - lost);
        }
    }
}

/// Accumulates packets and snapshots.
#[derive(Clone, Debug, Default)]
pub(super) struct NetworkSums {
    up: DirectionSums,
    down: DirectionSums,
    usercmds_sent: u64,
    choked: u64,
    warnings: u64,
    /// The bits of snapshots, by use.
    bits_for: SortedMap<&'static str, u64>,
    /// Whether the trace has a table of packets.
    has_packets: bool,
}

/// Accumulates the packets of one direction.
#[derive(Clone, Debug, Default)]
struct DirectionSums {
    /// By player.
    deliveries: SortedMap<u32, Delivery>,
    took_ms: CountedValues,
    bytes: Option<u64>,
}

impl NetworkSums {
    pub(super) fn add_packets(&mut self, rows: &packets::Columns<'_>) {
        self.has_packets = true;
        self.usercmds_sent += sum(rows.usercmds);
        self.up.add(rows.player, rows.arrived, rows.took_ms, rows.bytes);
    }

    pub(super) fn add_snapshots(&mut self, rows: &snapshots::Columns<'_>) {
        self.down.add(rows.player, rows.arrived, rows.took_ms, rows.bytes);
        self.choked += sum(rows.choked);
        self.warnings += sum(rows.warnings);
        for (part, bits) in OptionalBits::PARTS.iter().zip(rows.bits).filter(|(_, bits)| !bits.is_empty()) {
            *self.bits_for.entry(part.trim_start_matches('.')).or_default() += sum(bits);
        }
    }

    /// The traffic so far; `None` without a table of packets.
    pub(super) fn summary(&self) -> Option<NetworkSummary> {
        self.has_packets.then(|| NetworkSummary {
            up: self.up.direction(|_| true),
            usercmds_per_packet: self.usercmds_sent as f64 / self.up.sent().max(1) as f64,
            // A client that recorded what it received also recorded what it sent.
            down: self.down.direction(|player| self.up.deliveries.contains_key(player)),
            choked: self.choked,
            warnings: self.warnings,
            bytes_for: self.bits_for.iter().map(|(part, bits)| (*part, *bits as f64 / 8.0)).collect(),
        })
    }
}

impl DirectionSums {
    fn add(&mut self, players: &[u32], arrived: &[u32], took_ms: &[f32], bytes: &[u32]) {
        for (row, times) in arrived.iter().enumerate() {
            let player = players.get(row).copied().unwrap_or_default();
            self.deliveries.entry(player).or_default().add(*times > 0);
        }
        took_ms.iter().for_each(|ms| self.took_ms.add(*ms));
        if !bytes.is_empty() {
            *self.bytes.get_or_insert(0) += sum(bytes);
        }
    }

    fn sent(&self) -> u64 {
        self.deliveries.values().map(|delivery| delivery.sent).sum()
    }

    /// The figures of the direction. `has_receiver` says whether the trace has the records of a player's receiver, which
    /// it has if a packet arrived.
    fn direction(&self, has_receiver: impl Fn(&u32) -> bool) -> DirectionSummary {
        let has_arrivals = self.deliveries.is_empty() || self.deliveries.values().any(|delivery| delivery.received > 0);
        let is_known =
            |player: &u32, delivery: &Delivery| has_arrivals && (delivery.received > 0 || has_receiver(player));
        let all = || self.deliveries.iter();
        let known: Vec<&Delivery> = all().filter(|(player, of)| is_known(player, of)).map(|(_, of)| of).collect();
        let sum = |of: fn(&Delivery) -> u64| known.iter().map(|delivery| of(delivery)).sum::<u64>();
        DirectionSummary {
            sent: if has_arrivals { sum(|delivery| delivery.sent) } else { self.sent() },
            players_unknown: (self.deliveries.len() - known.len()) as u64,
            lost: has_arrivals.then(|| sum(Delivery::lost)),
            in_flight: sum(Delivery::in_flight),
            took_ms: self.took_ms.spread(),
            bytes: self.bytes,
        }
    }
}

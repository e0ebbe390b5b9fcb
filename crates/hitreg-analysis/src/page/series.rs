//! Measures over time. A long session has more values than a page can draw, so neighbouring values are merged, and of
//! the packets only every n-th that arrived is kept.

use serde::Serialize;

use super::packed::{PackedColumn, PageColumns};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{packets, snapshots};
use hitreg_log::trace::{TraceSource, each_part};
use hitreg_log::traffic::Packet;

/// The rounding of the times of packets and acks, in microseconds.
pub(super) const TIME_UNIT_US: i64 = 50;

/// Values that are merged in pairs once there are too many. All series of one kind merge equally many values.
#[derive(Debug)]
pub(super) struct PlayerSeries<T> {
    of: SortedMap<u32, (Vec<T>, usize)>,
    /// How many values are merged into one.
    pub(super) merged: usize,
    most: usize,
    kept: usize,
    merge: fn(&mut T, &T),
}

impl<T> PlayerSeries<T> {
    /// At most `most` values of all players. `merge` adds a later value to an earlier one.
    pub(super) fn new(most: usize, merge: fn(&mut T, &T)) -> PlayerSeries<T> {
        PlayerSeries { of: SortedMap::new(), merged: 1, most, kept: 0, merge }
    }

    pub(super) fn push(&mut self, player: u32, value: T) {
        let (values, count) = self.of.entry(player).or_default();
        match values.last_mut().filter(|_| !count.is_multiple_of(self.merged)) {
            Some(last) => (self.merge)(last, &value),
            None => {
                values.push(value);
                self.kept += 1;
            }
        }
        *count += 1;
        // A page without merging shows every value.
        if self.kept > self.most {
            self.merge_pairs();
        }
    }

    fn merge_pairs(&mut self) {
        self.merged *= 2;
        self.kept = 0;
        for (values, _) in self.of.values_mut() {
            let mut merged: Vec<T> = Vec::with_capacity(values.len().div_ceil(2));
            for (place, value) in values.drain(..).enumerate() {
                match merged.last_mut().filter(|_| place % 2 == 1) {
                    Some(last) => (self.merge)(last, &value),
                    None => merged.push(value),
                }
            }
            *values = merged;
            self.kept += values.len();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[T])> {
        self.of.iter().map(|(player, (values, _))| (*player, &values[..]))
    }
}

/// One ack, or several merged ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub(super) at_us: i64,
    /// The prediction error; `None` if it is not known. The largest of merged acks.
    pub(super) error: Option<i64>,
    /// Whether the error is from a spawn, a death or a teleport, which do not measure prediction.
    pub(super) is_relocation: bool,
}

impl Ack {
    pub(super) fn merge(&mut self, later: &Ack) {
        if later.error > self.error {
            (self.error, self.is_relocation) = (later.error, later.is_relocation);
        }
    }
}

/// The least of some counted values that at least this share of them does not exceed; `None` without values.
pub(super) fn at_share<V: Copy>(counts: &SortedMap<V, u64>, share: f64) -> Option<V> {
    let all: u64 = counts.values().sum();
    let rank = (libm::ceil(share * all as f64) as u64).max(1);
    let mut seen = 0;
    let found = counts.iter().find(|(_, count)| {
        seen += **count;
        seen >= rank
    });
    found.map(|(value, _)| *value)
}

/// Every n-th of some items.
#[derive(Debug)]
pub(super) struct Sample<T> {
    items: Vec<T>,
    every: usize,
    count: usize,
}

impl<T> Default for Sample<T> {
    fn default() -> Sample<T> {
        Sample { items: Vec::new(), every: 1, count: 0 }
    }
}

impl<T> Sample<T> {
    pub(super) fn push(&mut self, item: T) {
        if self.count.is_multiple_of(self.every) {
            self.items.push(item);
        }
        self.count += 1;
    }

    fn thin(&mut self) {
        self.every *= 2;
        let mut places = 0..;
        self.items.retain(|_| places.next().is_some_and(|place: usize| place.is_multiple_of(2)));
    }

    /// Keeps every second of the items so far, and as many of the later ones.
    pub(super) fn thin_over(&mut self, most: usize) {
        while self.items.len() > most {
            self.thin();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    pub(super) fn every(&self) -> usize {
        self.every
    }
}

/// A player's packets in one direction, in the page's format.
#[derive(Debug, Serialize)]
pub(super) struct PagePackets {
    player: u32,
    way: &'static str,
    sent_us: PackedColumn,
    /// Negative if the packet never arrived.
    transit_us: PackedColumn,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<PackedColumn>,
    choked: PackedColumn,
    /// What all packets amount to, if some of them are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<AllPackets>,
}

/// The figures of a player's packets in one direction.
#[derive(Debug, Serialize)]
struct AllPackets {
    missing: usize,
    /// One of this many packets that arrived is drawn.
    every: usize,
    /// The bytes of each [`BIN_US`], from the time of the first packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<PackedColumn>,
    first_us: i64,
    bin_us: i64,
}

/// The time over which bytes are summed, as in `web/series.js`.
const BIN_US: i64 = 250_000;

/// The most bins of a player's packets in one direction: ten hours. Later bytes count in the last bin.
const MOST_BINS: usize = 144_000;

#[derive(Debug, Default)]
struct OneWayPackets {
    /// Packets that arrived without anything held back before them.
    arrived: Sample<Packet>,
    /// Packets that did not arrive, and those with updates held back before them.
    marked: Sample<Packet>,
    missing: usize,
    first_us: Option<i64>,
    bins: Vec<u64>,
    lacks_bytes: bool,
}

/// The packets of a page.
#[derive(Debug)]
pub(super) struct Packets {
    of: SortedMap<(u32, bool), OneWayPackets>,
    /// Packets that did not arrive, until a later one arrives.
    waiting: SortedMap<(u32, bool), Vec<Packet>>,
    most: usize,
    arrived: usize,
    marked: usize,
}

impl Packets {
    pub(super) fn new(most: usize) -> Packets {
        Packets { of: SortedMap::new(), waiting: SortedMap::new(), most, arrived: 0, marked: 0 }
    }

    /// Adds a packet of a trace. Those after the last that arrived may be in transit at the end, so they are left out.
    fn add(&mut self, packet: Packet) {
        let direction = (packet.player, packet.is_up);
        if packet.took_us.is_none() {
            return self.waiting.entry(direction).or_default().push(packet);
        }
        if let Some(waiting) = self.waiting.get_mut(&direction) {
            let missing: Vec<Packet> = waiting.extract_if(.., |before| before.sent_us <= packet.sent_us).collect();
            missing.into_iter().for_each(|before| self.push(before));
        }
        self.push(packet);
    }

    /// Adds a packet that arrived or is known to be lost.
    pub(super) fn push(&mut self, packet: Packet) {
        let of = self.of.entry((packet.player, !packet.is_up)).or_default();
        let first = *of.first_us.get_or_insert(packet.sent_us / TIME_UNIT_US * TIME_UNIT_US);
        let bin = usize::try_from((packet.sent_us.saturating_sub(first)) / BIN_US).unwrap_or(0).min(MOST_BINS);
        if of.bins.len() <= bin {
            of.bins.resize(bin + 1, 0);
        }
        of.bins[bin] += u64::from(packet.bytes.unwrap_or_default());
        of.lacks_bytes |= packet.bytes.is_none();
        of.missing += usize::from(packet.took_us.is_none());
        let is_marked = packet.took_us.is_none() || packet.choked > 0;
        let (sample, kept) =
            if is_marked { (&mut of.marked, &mut self.marked) } else { (&mut of.arrived, &mut self.arrived) };
        let before = sample.items.len();
        sample.push(packet);
        *kept += sample.items.len() - before;
        if self.arrived > self.most {
            self.of.values_mut().for_each(|of| of.arrived.thin());
            self.arrived = self.of.values().map(|of| of.arrived.items.len()).sum();
        }
        if self.marked > self.most {
            self.of.values_mut().for_each(|of| of.marked.thin());
            self.marked = self.of.values().map(|of| of.marked.items.len()).sum();
        }
    }

    /// Adds the packets of a trace.
    pub(super) fn add_rows(&mut self, trace: &dyn TraceSource) -> Result<(), String> {
        let took = |took: &[f32], row: usize| took.get(row).filter(|ms| ms.is_finite()).map(|ms| (ms * 1e3) as i64);
        let of = |column: &[u32], row: usize| column.get(row).copied();
        each_part(trace, packets::NAME, (&["player", "at_us", "took_ms", "bytes"], None), &mut |rows| {
            let up = packets::Columns::read(rows);
            for (row, sent_us) in up.at_us.iter().copied().enumerate() {
                let (player, took_us) = (of(up.player, row).unwrap_or_default(), took(up.took_ms, row));
                self.add(Packet { player, is_up: true, sent_us, took_us, bytes: of(up.bytes, row), choked: 0 });
            }
            Ok(())
        })?;
        each_part(trace, snapshots::NAME, (&["player", "at_us", "took_ms", "bytes", "choked"], None), &mut |rows| {
            let down = snapshots::Columns::read(rows);
            for (row, sent_us) in down.at_us.iter().copied().enumerate() {
                let (player, took_us) = (of(down.player, row).unwrap_or_default(), took(down.took_ms, row));
                let (bytes, choked) = (of(down.bytes, row), of(down.choked, row).unwrap_or_default());
                self.add(Packet { player, is_up: false, sent_us, took_us, bytes, choked });
            }
            Ok(())
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    #[cfg(test)]
    pub(super) fn missing(&self) -> usize {
        self.of.values().map(|of| of.missing).sum()
    }

    /// One of how many packets is kept: of those that arrived, and of those that did not or were held back.
    pub(super) fn every(&self) -> [usize; 2] {
        let most = |of: fn(&OneWayPackets) -> usize| self.of.values().map(of).max().unwrap_or(1);
        [most(|of| of.arrived.every), most(|of| of.marked.every)]
    }

    pub(super) fn pack(self, columns: &mut PageColumns) -> Vec<PagePackets> {
        self.of.into_iter().map(|((player, is_down), of)| of.pack((player, is_down), columns)).collect()
    }
}

impl OneWayPackets {
    fn pack(self, (player, is_down): (u32, bool), columns: &mut PageColumns) -> PagePackets {
        let every = self.arrived.every.max(self.marked.every);
        let mut packets: Vec<Packet> = self.arrived.iter().chain(self.marked.iter()).copied().collect();
        packets.sort_by_key(|packet| packet.sent_us);
        let took = |packet: &Packet| packet.took_us.map_or(-1, |took| took.max(0) / TIME_UNIT_US);
        let unit = TIME_UNIT_US as f64;
        let bytes = |packet: &Packet| i64::from(packet.bytes.unwrap_or_default());
        let sums = || self.bins.iter().map(|bytes| i64::try_from(*bytes).unwrap_or(i64::MAX));
        PagePackets {
            player,
            way: if is_down { "down" } else { "up" },
            sent_us: columns.push_steady(packets.iter().map(|packet| packet.sent_us / TIME_UNIT_US), unit),
            transit_us: columns.push(packets.iter().map(took), unit),
            bytes: (!self.lacks_bytes).then(|| columns.push(packets.iter().map(bytes), 1.0)),
            choked: columns.push(packets.iter().map(|packet| i64::from(packet.choked)), 1.0),
            all: (every > 1).then(|| AllPackets {
                missing: self.missing,
                every,
                bytes: (!self.lacks_bytes).then(|| columns.push(sums(), 1.0)),
                first_us: self.first_us.unwrap_or_default(),
                bin_us: BIN_US,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(at_us: i64, error: i64) -> Ack {
        Ack { at_us, error: Some(error), is_relocation: error > 500 }
    }

    /// Both sides of the limit: at it every value stays, above it neighbours are merged.
    #[test]
    fn values_over_the_limit_are_merged_and_the_largest_stays() {
        for (values, merged, kept) in [(100, 1, 100), (101, 2, 51), (201, 4, 51), (1000, 16, 63)] {
            let mut series = PlayerSeries::new(100, Ack::merge);
            (0..values).for_each(|n| series.push(3, ack(n, if n == 77 { 900 } else { 50 })));
            let (_, of_player) = series.iter().next().expect("a player");
            assert_eq!((series.merged, of_player.len()), (merged, kept), "{values}");
            let largest = of_player.iter().max_by_key(|ack| ack.error).expect("an ack");
            assert_eq!((largest.error, largest.is_relocation), (Some(900), true));
            assert_eq!(of_player.iter().filter(|ack| ack.is_relocation).count(), 1);
            assert!(of_player.iter().enumerate().all(|(n, ack)| ack.at_us == (n * merged) as i64));
        }
    }

    /// The packets of a trace are those that the other commands list.
    #[test]
    fn rows_of_a_trace_become_its_packets() {
        let mut writer = packets::Writer::default();
        for n in 0..40u32 {
            let took_ms = if n % 5 == 2 || n > 36 { f32::NAN } else { 20.0 + n as f32 };
            let (arrived, at_us) = (u32::from(took_ms.is_finite()), i64::from(n) * 1_000);
            writer.push(packets::Row {
                player: n % 2,
                packet: n,
                at_us,
                arrived,
                took_ms,
                newest: n,
                usercmds: 1,
                ack: 0,
                bytes: Some(9),
            });
        }
        let trace = hitreg_log::trace::Trace { tables: vec![writer.finish(Vec::new())], ..Default::default() };
        let mut found = Packets::new(usize::MAX);
        found.add_rows(&trace).expect("rows");
        let of = |of: &OneWayPackets| -> Vec<Packet> { of.arrived.iter().chain(of.marked.iter()).copied().collect() };
        let mut found: Vec<Packet> = found.of.values().flat_map(of).collect();
        found.sort_by_key(|packet| (packet.player, packet.sent_us));
        assert_eq!(found, hitreg_log::traffic::of_trace(&trace));
        assert!(found.iter().any(|packet| packet.took_us.is_none()));
    }

    /// Both sides of the limit: all packets, or every n-th that arrived and all that did not.
    #[test]
    fn packets_over_the_limit_are_thinned_but_missing_ones_stay() {
        let packet = |n: i64| {
            let took_us = (n % 50 != 7).then_some(40_000);
            Packet { player: 1, is_up: true, sent_us: n * 15_000, took_us, bytes: Some(10), choked: 0 }
        };
        for (count, every, drawn) in [(98, 1, 98), (105, 2, 54), (1000, 16, 62 + 20)] {
            let mut packets = Packets::new(96);
            (0..count).for_each(|n| packets.push(packet(n)));
            assert_eq!(packets.every(), [every, 1], "{count}");
            let mut columns = PageColumns::default();
            let packed = serde_json::to_value(&packets.pack(&mut columns)[0]).expect("JSON");
            assert_eq!(packed["sent_us"]["rows"], drawn, "{count}");
            assert_eq!(packed["all"]["missing"].as_i64(), (every > 1).then_some((count + 42) / 50), "{count}");
            assert_eq!(packed["all"]["bytes"].is_object(), every > 1, "the sums of all bytes");
        }
    }
}

//! The network on a page: packets, round trips and gaps. They are those of the log, which has the sizes of its datagrams,
//! or else those of the trace.

use serde::Serialize;

use super::PageInput;
use super::packed::{PackedColumn, PageColumns, whole};
use super::series::{KindSamples, PlayerSeries, TIME_UNIT_US, at_share};
use crate::round_trips::each_snapshot_trip;
use hitreg_log::record::{GapRecord, Outline, SessionChunk};
use hitreg_log::round_trips::SnapshotRoundTrips;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{packets, snapshots};
use hitreg_log::trace::{TraceReadError, TraceSource, each_part};
use hitreg_log::traffic::{Packet, transit_us};

/// What happened on the network in the shown part.
pub(super) struct NetworkRows {
    pub(super) packets: Packets,
    /// The round trips as `info` counts them, by the snapshots that arrived.
    pub(super) trips: RoundTrips,
    /// The missing parts of the session.
    pub(super) gaps: Vec<GapRecord>,
}

impl NetworkRows {
    /// Reads the log or the trace once. The page shows at most so many packets and round trips.
    pub(super) fn of(
        shown: &PageInput<'_>,
        most_packets: usize,
        most_trips: usize,
    ) -> Result<NetworkRows, TraceReadError> {
        let (mut packets, mut trips, mut gaps) = (Packets::new(most_packets), RoundTrips::new(most_trips), Vec::new());
        let Some(log) = shown.log else {
            packets.add_rows(shown.trace)?;
            each_snapshot_trip(shown.trace, &mut |player, at, took| trips.push(player, at.0, took.0))?;
            return Ok(NetworkRows { packets, trips, gaps: shown.trace.header().gaps.clone() });
        };
        let mut finders: SortedMap<u32, SnapshotRoundTrips> = SortedMap::new();
        let mut read = |chunk: &SessionChunk| {
            gaps.extend(chunk.gaps.iter().filter(|gap| log.shows(gap.from) || log.shows(gap.to)).copied());
            for (player, mut outline) in (0..).zip(Outline::of(chunk).players) {
                // As in the trace of a part: its usercmds, and its snapshots, whenever these arrive.
                outline.frames.retain(|(_, made)| log.shows(*made));
                outline.snapshots.retain(|(_, sent, _)| log.shows(*sent));
                let of_player = finders.entry(player).or_default();
                of_player.add(&outline, &mut |at, took| trips.push(player, at.0, took.0));
            }
        };
        log.each_packet(&mut read, &mut |packet| packets.push(packet))?;
        Ok(NetworkRows { packets, trips, gaps })
    }
}

/// A player's packets in one direction, in the page's format.
#[derive(Debug, Serialize)]
pub(super) struct PagePackets {
    player: u32,
    way: &'static str,
    sent_us: PackedColumn,
    /// Negative without an arrival.
    transit_us: PackedColumn,
    /// 1 if a later packet arrived and this one did not.
    is_missing: PackedColumn,
    /// The number of missing packets; `None` if no arrival is known.
    missing: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<PackedColumn>,
    /// The number of updates that were held back before each packet.
    choked: PackedColumn,
    /// The number of updates that were held back before all packets.
    choked_updates: u64,
    /// What all packets amount to, if some of them are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<AllPackets>,
}

/// The figures of a player's packets in one direction.
#[derive(Debug, Serialize)]
struct AllPackets {
    /// The bytes of each [`BIN_US`], from the time of the first packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<PackedColumn>,
    first_us: i64,
    bin_us: i64,
}

/// The time over which bytes are summed, as in `web/series.js`.
const BIN_US: i64 = 250_000;

/// The most bins of a player's packets in one direction: ten hours. Later bytes count in the last bin.
const BINS_MAX: usize = 144_000;

/// A player's packets in one direction: the figures of all of them.
#[derive(Debug, Default)]
struct OneWayPackets {
    missing: usize,
    choked_updates: u64,
    has_arrivals: bool,
    first_us: Option<i64>,
    /// The bytes of the packets whose size is known, by time.
    bins: Vec<u64>,
}

/// A kind of packets of which a page draws every n-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PacketKind {
    pub(super) is_down: bool,
    pub(super) is_missing: bool,
    /// Whether updates were held back before the packet.
    pub(super) is_choked: bool,
}

impl PacketKind {
    /// All kinds of one direction.
    fn of_way(is_down: bool) -> [PacketKind; 4] {
        [(false, false), (false, true), (true, false), (true, true)].map(|(is_missing, is_choked)| PacketKind {
            is_down,
            is_missing,
            is_choked,
        })
    }
}

/// The packets of a page.
#[derive(Debug)]
pub(super) struct Packets {
    of: SortedMap<(u32, bool), OneWayPackets>,
    /// Packets that did not arrive, until a later one arrives.
    waiting: SortedMap<(u32, bool), Vec<Packet>>,
    /// Packets that are not missing and have no updates held back before them.
    arrived: KindSamples<PacketKind, Packet>,
    /// The other packets.
    marked: KindSamples<PacketKind, Packet>,
}

impl Packets {
    /// At most `most` packets that arrived, and as many that are missing or have updates held back before them.
    pub(super) fn new(most: usize) -> Packets {
        let [arrived, marked] = [most, most].map(KindSamples::new);
        Packets { of: SortedMap::new(), waiting: SortedMap::new(), arrived, marked }
    }

    /// Adds a packet of a trace.
    fn add(&mut self, packet: Packet) {
        let direction = (packet.player, packet.is_up);
        if packet.took_us.is_none() {
            return self.waiting.entry(direction).or_default().push(packet);
        }
        if let Some(waiting) = self.waiting.get_mut(&direction) {
            let missing: Vec<Packet> = waiting.extract_if(.., |before| before.sent_us <= packet.sent_us).collect();
            missing.into_iter().for_each(|before| self.push(Packet { is_missing: true, ..before }));
        }
        self.push(packet);
    }

    /// Adds a packet whose arrival, if there was one, is known.
    pub(super) fn push(&mut self, packet: Packet) {
        let of = self.of.entry((packet.player, !packet.is_up)).or_default();
        let first = *of.first_us.get_or_insert(packet.sent_us / TIME_UNIT_US * TIME_UNIT_US);
        let bin = usize::try_from((packet.sent_us.saturating_sub(first)) / BIN_US).unwrap_or(0).min(BINS_MAX);
        if of.bins.len() <= bin {
            of.bins.resize(bin + 1, 0);
        }
        of.bins[bin] += u64::from(packet.bytes.unwrap_or_default());
        of.missing += usize::from(packet.is_missing);
        of.has_arrivals |= packet.took_us.is_some();
        of.choked_updates += u64::from(packet.choked);
        let (is_missing, is_choked) = (packet.is_missing, packet.choked > 0);
        let kind = PacketKind { is_down: !packet.is_up, is_missing, is_choked };
        let samples = if is_missing || is_choked { &mut self.marked } else { &mut self.arrived };
        samples.push(kind, packet.player, packet);
    }

    /// Adds the packets of a trace.
    fn add_rows(&mut self, trace: &dyn TraceSource) -> Result<(), TraceReadError> {
        let took = |took: &[f32], row: usize| took.get(row).and_then(|ms| transit_us(*ms));
        let of = |column: &[u32], row: usize| column.get(row).copied();
        each_part(trace, packets::NAME, (&["player", "at_us", "took_ms", "bytes"], None), &mut |rows| {
            let up = packets::Columns::read(rows);
            for (row, sent_us) in up.at_us.iter().copied().enumerate() {
                let (player, took_us) = (of(up.player, row).unwrap_or_default(), took(up.took_ms, row));
                let bytes = of(up.bytes, row);
                self.add(Packet { player, is_up: true, sent_us, took_us, bytes, ..Packet::default() });
            }
            Ok(())
        })?;
        each_part(trace, snapshots::NAME, (&["player", "at_us", "took_ms", "bytes", "choked"], None), &mut |rows| {
            let down = snapshots::Columns::read(rows);
            for (row, sent_us) in down.at_us.iter().copied().enumerate() {
                let (player, took_us) = (of(down.player, row).unwrap_or_default(), took(down.took_ms, row));
                let (bytes, choked) = (of(down.bytes, row), of(down.choked, row).unwrap_or_default());
                self.add(Packet { player, sent_us, took_us, bytes, choked, ..Packet::default() });
            }
            Ok(())
        })?;
        // No later packet arrived, so these may have been in transit at the end.
        std::mem::take(&mut self.waiting).into_values().flatten().for_each(|packet| self.push(packet));
        Ok(())
    }

    /// Whether an arrival is known.
    pub(super) fn have_arrivals(&self) -> bool {
        self.of.values().any(|of| of.has_arrivals)
    }

    #[cfg(test)]
    pub(super) fn missing(&self) -> usize {
        self.of.values().map(|of| of.missing).sum()
    }

    /// The kinds of packets, each with n if every n-th is drawn.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (PacketKind, usize)> {
        self.arrived.kinds().chain(self.marked.kinds()).map(|(kind, every)| (*kind, every))
    }

    /// The drawn packets of a player in one direction, in the order of their sending.
    fn drawn(&self, (player, is_down): (u32, bool)) -> Vec<Packet> {
        let of_kind = |kind| [&self.arrived, &self.marked].map(|samples| samples.of(&kind, player)).concat();
        let mut packets: Vec<Packet> = PacketKind::of_way(is_down).into_iter().flat_map(of_kind).collect();
        packets.sort_by_key(|packet| packet.sent_us);
        packets
    }

    pub(super) fn pack(self, columns: &mut PageColumns) -> Vec<PagePackets> {
        let is_thinned = |is_down| self.kinds().any(|(kind, every)| kind.is_down == is_down && every > 1);
        let of_player = |(direction, of): (&(u32, bool), &OneWayPackets)| {
            of.pack(*direction, &self.drawn(*direction), is_thinned(direction.1), columns)
        };
        self.of.iter().map(of_player).collect()
    }
}

impl OneWayPackets {
    fn pack(
        &self,
        (player, is_down): (u32, bool),
        packets: &[Packet],
        is_thinned: bool,
        columns: &mut PageColumns,
    ) -> PagePackets {
        let took = |packet: &Packet| packet.took_us.map_or(-1, |took| took.max(0) / TIME_UNIT_US);
        let unit = TIME_UNIT_US as f64;
        let bytes = |packet: &Packet| i64::from(packet.bytes.unwrap_or_default());
        let sums = || self.bins.iter().map(|bytes| i64::try_from(*bytes).unwrap_or(i64::MAX));
        // The log of a receiver has no size for a packet that did not arrive.
        let has_bytes = self.bins.iter().any(|bytes| *bytes > 0);
        PagePackets {
            player,
            way: if is_down { "down" } else { "up" },
            sent_us: columns.push_steady(packets.iter().map(|packet| packet.sent_us / TIME_UNIT_US), unit),
            transit_us: columns.push(packets.iter().map(took), unit),
            is_missing: columns.push(packets.iter().map(|packet| i64::from(packet.is_missing)), 1.0),
            missing: self.has_arrivals.then_some(self.missing),
            bytes: has_bytes.then(|| columns.push(packets.iter().map(bytes), 1.0)),
            choked: columns.push(packets.iter().map(|packet| i64::from(packet.choked)), 1.0),
            choked_updates: self.choked_updates,
            all: is_thinned.then(|| AllPackets {
                bytes: has_bytes.then(|| columns.push(sums(), 1.0)),
                first_us: self.first_us.unwrap_or_default(),
                bin_us: BIN_US,
            }),
        }
    }
}

/// A player's round trips, by the times at which the acks arrived.
#[derive(Debug, Serialize)]
pub(super) struct RoundTripColumns {
    player: u32,
    at_us: PackedColumn,
    /// Rounded for the chart, unlike the figures of all round trips.
    took_us: PackedColumn,
    all: AllRoundTrips,
}

/// The figures of all round trips of a player.
#[derive(Debug, Serialize)]
struct AllRoundTrips {
    p50_us: Option<i64>,
    p95_us: Option<i64>,
    /// The largest jitter of merged round trips; `None` if none are merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter_us: Option<PackedColumn>,
}

/// One round trip, or several merged ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    /// When the ack arrived.
    pub(super) at_us: i64,
    /// Time from making the usercmd to its ack. The longest of merged ones.
    pub(super) took_us: i64,
    /// The jitter at this ack, in microseconds. The largest of merged ones.
    jitter_us: i64,
}

impl RoundTrip {
    pub(super) fn merge(&mut self, later: &RoundTrip) {
        self.took_us = self.took_us.max(later.took_us);
        self.jitter_us = self.jitter_us.max(later.jitter_us);
    }
}

/// The round trips of all players.
#[derive(Debug)]
pub(super) struct RoundTrips {
    pub(super) over_time: PlayerSeries<RoundTrip>,
    pub(super) of: SortedMap<u32, RoundTripCounts>,
}

impl RoundTrips {
    pub(super) fn new(most: usize) -> RoundTrips {
        RoundTrips { over_time: PlayerSeries::new(most, RoundTrip::merge), of: SortedMap::new() }
    }

    /// Adds the next round trip of a player. Clocks that disagree may give a negative one, which is left out.
    pub(super) fn push(&mut self, player: u32, at_us: i64, took_us: i64) {
        if took_us >= 0 {
            let jitter_us = self.of.entry(player).or_default().add(took_us);
            self.over_time.push(player, RoundTrip { at_us, took_us, jitter_us });
        }
    }

    /// These round trips, or others if there are none.
    pub(super) fn or(self, others: RoundTrips) -> RoundTrips {
        if self.of.is_empty() { others } else { self }
    }
}

/// The round trips of a player: all of them by length, and the jitter.
#[derive(Debug, Default)]
pub(super) struct RoundTripCounts {
    /// By their microseconds.
    counts: SortedMap<i64, u64>,
    last_us: Option<i64>,
    jitter_us: f64,
}

impl RoundTripCounts {
    /// Adds a round trip, and returns the jitter as in RTP: a sixteenth of each change from one round trip to the next.
    fn add(&mut self, took_us: i64) -> i64 {
        *self.counts.entry(took_us).or_default() += 1;
        if let Some(last) = self.last_us.replace(took_us) {
            self.jitter_us += (took_us.abs_diff(last) as f64 - self.jitter_us) / 16.0;
        }
        self.jitter_us as i64
    }
}

pub(super) fn pack_round_trips(trips: &RoundTrips, columns: &mut PageColumns) -> Vec<RoundTripColumns> {
    let unit = TIME_UNIT_US as f64;
    let percentile_us = |player, share| trips.of.get(&player).and_then(|of_player| at_share(&of_player.counts, share));
    let of_player = |(player, over_time): (u32, &[RoundTrip])| RoundTripColumns {
        player,
        at_us: columns.push_steady(over_time.iter().map(|trip| trip.at_us / TIME_UNIT_US), unit),
        took_us: columns.push(over_time.iter().map(|trip| whole(trip.took_us as f64, unit)), unit),
        all: AllRoundTrips {
            p50_us: percentile_us(player, 0.5),
            p95_us: percentile_us(player, 0.95),
            jitter_us: (trips.over_time.merged > 1)
                .then(|| columns.push(over_time.iter().map(|trip| trip.jitter_us), 1.0)),
        },
    };
    trips.over_time.iter().map(of_player).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageLog;
    use crate::page::series::acks_of;
    use crate::page::side::tests::log_of;
    use crate::page::tracks::TrackPrecision;
    use hitreg_log::record::{ArrivalRecord, PacketRecord, PlayerRecords, Session, SessionHeader};
    use hitreg_log::sorted::SortedSet;
    use hitreg_log::trace::schema::{corrections, frames};
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};
    use hitreg_log::units::Micros;

    /// A log of which the first second is shown.
    struct FirstSecond(Vec<SessionChunk>, SessionHeader);

    impl PageLog for FirstSecond {
        fn header(&self) -> &SessionHeader {
            &self.1
        }

        fn each(&self, to: &mut dyn FnMut(&SessionChunk) -> bool) -> Result<(), TraceReadError> {
            _ = self.0.iter().all(to);
            Ok(())
        }

        fn shows(&self, at: Micros) -> bool {
            at < Micros::from_s(1)
        }

        fn between(&self, _: Micros, _: Micros) -> Result<Session, TraceReadError> {
            Err(TraceReadError("not needed".to_owned()))
        }
    }

    /// A packet after the shown part arrives, so those in it were lost.
    #[test]
    fn an_outage_lasts_until_a_packet_arrives_after_the_part() {
        let sent = |number: u32| PacketRecord {
            number,
            at: Micros::from_ms(i64::from(number) * 400),
            ..PacketRecord::default()
        };
        let chunk = |number: u32, arrivals: &[u32]| {
            let arrival = |number: &u32| ArrivalRecord { number: *number, at: Micros::from_s(9) };
            let reached = arrivals.iter().map(arrival).collect();
            let records = PlayerRecords { sent: vec![sent(number)], reached, ..PlayerRecords::default() };
            SessionChunk { players: vec![records], ..SessionChunk::default() }
        };
        let lost = |last: &[u32]| {
            let header = log_of(&["p0"]).header;
            let log = FirstSecond(vec![chunk(1, &[]), chunk(2, &[]), chunk(3, &[]), chunk(4, last)], header);
            let trace = Trace::default();
            let shown = PageInput { name: "", map: "", trace: &trace, log: Some(&log), rejudged: &[], notes: &[] };
            NetworkRows::of(&shown, 100, 100).unwrap().packets.missing()
        };
        assert_eq!([lost(&[4]), lost(&[])], [2, 0]);
    }

    /// The client uses the first two snapshots. The third repeats an ack, the fourth comes late, and the fifth is lost.
    #[test]
    fn late_and_repeated_acks_end_no_round_trip() {
        let column = |name: &str, cells: &[u32]| Column::new(name, ColumnData::U32(cells.into()));
        let times = |cells: &[i64]| Column::new("at_us", ColumnData::I64(cells.into()));
        let made = vec![column("player", &[3, 3]), column("command", &[1, 2]), times(&[10_000, 20_000])];
        let acked = vec![column("player", &[3, 3]), column("command", &[1, 2]), times(&[60_000, 80_000])];
        let sent = vec![
            column("player", &[3; 5]),
            column("snapshot", &[1, 2, 4, 3, 5]),
            times(&[30_000, 50_000, 90_000, 70_000, 95_000]),
            Column::new("took_ms", ColumnData::F32(vec![30.0, 30.0, 30.0, 60.0, f32::NAN])),
            column("ack", &[1, 2, 2, 2, 2]),
        ];
        let of_tables = |tables: Vec<Table>| {
            let trace = Trace { tables, ..Trace::default() };
            let shown = PageInput { name: "", map: "", trace: &trace, log: None, rejudged: &[], notes: &[] };
            let (_, of_acks) = acks_of(&trace, TrackPrecision::of_world(1.0), 100, &mut SortedSet::new()).unwrap();
            let trips = NetworkRows::of(&shown, 100, 100).unwrap().trips.or(of_acks);
            let took_us = |(_, trips): (u32, &[RoundTrip])| trips.iter().map(|trip| trip.took_us).collect::<Vec<_>>();
            trips.over_time.iter().flat_map(took_us).collect::<Vec<_>>()
        };
        let tables = || vec![Table::new(frames::NAME, made.clone()), Table::new(corrections::NAME, acked.clone())];
        assert_eq!(of_tables(tables()), [50_000, 60_000]);
        let without_acks = vec![Table::new(frames::NAME, made.clone()), Table::new(snapshots::NAME, sent)];
        assert_eq!(of_tables(without_acks), [50_000, 60_000]);
    }

    #[test]
    fn percentiles_count_every_round_trip() {
        let mut trips = RoundTripCounts::default();
        assert_eq!(at_share(&trips.counts, 0.5), None);
        for n in 1..=200 {
            trips.add(n * 1_000 - 1);
        }
        assert_eq!([0.5, 0.95].map(|share| at_share(&trips.counts, share)), [Some(99_999), Some(189_999)]);
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
        let mut found: Vec<Packet> = found.of.keys().flat_map(|direction| found.drawn(*direction)).collect();
        found.sort_by_key(|packet| (packet.player, packet.sent_us));
        assert_eq!(found, hitreg_log::traffic::of_trace(&trace));
        assert!([true, false].iter().all(|is_missing| {
            found.iter().any(|packet| packet.took_us.is_none() && packet.is_missing == *is_missing)
        }));
    }

    /// Both sides of the limit: all packets, or every n-th of the most frequent kind. Each kind has its first packet, and the
    /// figures are those of all packets.
    #[test]
    fn packets_over_the_limit_are_thinned_by_kind_and_counted_exactly() {
        let packet = |n: i64| {
            let (is_missing, took_us) = (n % 50 == 7, (n % 50 != 7).then_some(40_000));
            let (sent_us, bytes, choked) = (n * 15_000, Some(10), u32::from(n == 9) * 3);
            Packet { player: 1, is_up: true, sent_us, took_us, is_missing, bytes, choked, ..Packet::default() }
        };
        let kind = |is_missing, is_choked| PacketKind { is_down: false, is_missing, is_choked };
        for (count, arrived, missing, drawn) in [(98, 1, 1, 98), (105, 2, 1, 51 + 2 + 1), (8_000, 128, 2, 62 + 80 + 1)]
        {
            let mut packets = Packets::new(96);
            (0..count).for_each(|n| packets.push(packet(n)));
            let kinds = [(kind(false, false), arrived), (kind(false, true), 1), (kind(true, false), missing)];
            assert_eq!(packets.kinds().collect::<Vec<_>>(), kinds, "{count}");
            let mut columns = PageColumns::default();
            let packed = serde_json::to_value(&packets.pack(&mut columns)[0]).expect("JSON");
            assert_eq!(packed["sent_us"]["rows"], drawn, "{count}");
            assert_eq!(packed["missing"].as_i64(), Some((count + 42) / 50), "{count}");
            assert_eq!(packed["choked_updates"], 3, "{count}");
            assert_eq!(packed["all"]["bytes"].is_object(), arrived > 1, "the sums of all bytes");
        }
    }
}

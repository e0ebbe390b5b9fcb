//! The network on a page: packets, round trips and gaps. They are those of the log, which has the sizes of its datagrams,
//! or else those of the trace.

use super::PageInput;
use super::round_trips::RoundTrips;
use super::series::Packets;
use crate::round_trips::each_snapshot_trip;
use hitreg_log::record::{GapRecord, Outline, SessionStretch};
use hitreg_log::round_trips::SnapshotRoundTrips;
use hitreg_log::sorted::SortedMap;

/// What happened on the network in the shown part.
pub(super) struct NetworkRows {
    pub(super) packets: Packets,
    /// The round trips as `info` counts them, by the snapshots that arrived.
    pub(super) trips: RoundTrips,
    /// The gaps of the log.
    pub(super) gaps: Vec<GapRecord>,
}

impl NetworkRows {
    /// Reads the log or the trace once. The page shows at most so many packets and round trips.
    pub(super) fn of(shown: &PageInput<'_>, most_packets: usize, most_trips: usize) -> Result<NetworkRows, String> {
        let (mut packets, mut trips, mut gaps) = (Packets::new(most_packets), RoundTrips::new(most_trips), Vec::new());
        let Some(log) = shown.log else {
            packets.add_rows(shown.trace)?;
            each_snapshot_trip(shown.trace, &mut |player, at, took| trips.push(player, at.0, took.0))?;
            return Ok(NetworkRows { packets, trips, gaps });
        };
        let mut finders: SortedMap<u32, SnapshotRoundTrips> = SortedMap::new();
        let mut read = |stretch: &SessionStretch| {
            gaps.extend(stretch.gaps.iter().filter(|gap| log.shows(gap.from) || log.shows(gap.to)).copied());
            for (player, outline) in (0..).zip(&Outline::of(stretch).players) {
                finders.entry(player).or_default().add(outline, &mut |at, took| {
                    if log.shows(at) {
                        trips.push(player, at.0, took.0);
                    }
                });
            }
        };
        log.each_packet(&mut read, &mut |packet| packets.push(packet))?;
        Ok(NetworkRows { packets, trips, gaps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageLog;
    use crate::page::round_trips::RoundTrip;
    use crate::page::side::tests::log_of;
    use crate::page::usercmds::acks_of;
    use crate::page::world::TrackPrecision;
    use hitreg_log::record::{ArrivalRecord, PacketRecord, PlayerRecords, Session, SessionHeader};
    use hitreg_log::sorted::SortedSet;
    use hitreg_log::trace::schema::{corrections, frames, snapshots};
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};
    use hitreg_log::units::Micros;

    /// A log of which the first second is shown.
    struct FirstSecond(Vec<SessionStretch>, SessionHeader);

    impl PageLog for FirstSecond {
        fn header(&self) -> &SessionHeader {
            &self.1
        }

        fn each(&self, to: &mut dyn FnMut(&SessionStretch) -> bool) -> Result<(), String> {
            _ = self.0.iter().all(to);
            Ok(())
        }

        fn shows(&self, at: Micros) -> bool {
            at < Micros::from_s(1)
        }

        fn between(&self, _: Micros, _: Micros) -> Result<Session, String> {
            Err("not needed".to_owned())
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
        let stretch = |number: u32, arrivals: &[u32]| {
            let arrival = |number: &u32| ArrivalRecord { number: *number, at: Micros::from_s(9) };
            let reached = arrivals.iter().map(arrival).collect();
            let records = PlayerRecords { sent: vec![sent(number)], reached, ..PlayerRecords::default() };
            SessionStretch { players: vec![records], ..SessionStretch::default() }
        };
        let lost = |last: &[u32]| {
            let header = log_of(&["p0"]).header;
            let log = FirstSecond(vec![stretch(1, &[]), stretch(2, &[]), stretch(3, &[]), stretch(4, last)], header);
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
}

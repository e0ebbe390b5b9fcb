//! Round trips in the rows of a replay, and the times of its last ticks and usercmds. A round trip is the time from making
//! a usercmd to receiving its ack.

use std::collections::VecDeque;

use hitreg_log::record::PlayerOutline;
use hitreg_log::round_trips::{NewestAck, SnapshotRoundTrips};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{corrections, frames, snapshots, ticks};
use hitreg_log::trace::{Table, TraceHeader, TraceReadError, TraceSource, each_part};
use hitreg_log::traffic::transit_us;
use hitreg_log::units::Micros;

/// Pairs acks with their usercmds, in the rows of a replay.
#[derive(Debug, Default)]
pub(crate) struct RoundTripFinder {
    /// When each player made each usercmd.
    made_at: SortedMap<u32, RecentTimes>,
    newest_us: i64,
    /// The acks since the last rows of `ticks`.
    acks: Vec<Table>,
    /// The acks of each player, by the snapshots.
    acked: SortedMap<u32, SnapshotAcks>,
    /// Whether the replay is open loop: clients come one after the other, without ticks.
    is_open: bool,
}

/// The acks of one player's snapshots.
#[derive(Debug, Default)]
struct SnapshotAcks {
    newest: NewestAck,
    /// Acks that a later snapshot may overtake: the time of arrival, the usercmd, and when it was made.
    waiting: Vec<(Micros, u32, Micros)>,
}

/// The most usercmds in memory.
const USERCMDS_MAX: usize = 1 << 20;

/// Passes on the round trips of the acks in `corrections`.
///
/// # Errors
/// A message when the trace cannot be read.
pub(crate) fn each_round_trip(trace: &dyn TraceSource, found: &mut dyn FnMut(FoundTrip)) -> Result<(), TraceReadError> {
    each_ack(trace, &ACKS_WITH_COUNTS, &mut |acks, row, trip_us| {
        let trip = trip_us.map(|us| FoundTrip { player: acks.player[row], ms: ms(us), is_snapshot: false });
        trip.into_iter().for_each(&mut *found);
    })
}

/// The columns of acks, and of frames, that a round trip follows from.
const ACKS: [&str; 3] = ["player", "command", "at_us"];
/// The columns of [`each_ack`].
pub(crate) const ACKS_WITH_COUNTS: [&str; 4] = ["player", "command", "at_us", "commands"];

fn ms(us: i64) -> f32 {
    (us as f64 / 1e3) as f32
}

/// Passes on each ack in `corrections`: the columns, which include [`ACKS_WITH_COUNTS`], its row, and its round trip in
/// microseconds if the usercmd is known and the ack is its first. It reads usercmds only as far as the acks, so that a
/// trace of any length needs little memory.
///
/// # Errors
/// A message when the trace cannot be read.
pub(crate) fn each_ack(
    trace: &dyn TraceSource,
    columns: &[&str],
    found: &mut dyn FnMut(&corrections::Columns<'_>, usize, Option<i64>),
) -> Result<(), TraceReadError> {
    let mut finder = RoundTripFinder::default();
    let mut pass = |finder: &RoundTripFinder, acks: &corrections::Columns<'_>| {
        // A table that lacks one of these columns has no acks.
        let rows = [acks.player.len(), acks.command.len(), acks.at_us.len()].into_iter().min().unwrap_or_default();
        (0..rows).for_each(|row| found(acks, row, finder.trip_us(acks, row)));
    };
    let mut frames = trace.rows(frames::NAME, &ACKS);
    let mut is_more = true;
    each_part(trace, corrections::NAME, (columns, None), &mut |rows| {
        let acks = corrections::Columns::read(rows);
        while is_more && !finder.has_usercmds_of(&acks) && finder.usercmds() < USERCMDS_MAX {
            match frames()? {
                Some(rows) => finder.add(&rows, &mut |_| {}),
                None => is_more = false,
            }
        }
        pass(&finder, &acks);
        // Players may come one after the other, each with the times of the whole session.
        finder.forget_acked(&acks);
        Ok(())
    })
}

/// Passes on the player, the arrival and the duration of each round trip, as [`SnapshotRoundTrips`] finds them in a log. It
/// reads usercmds only as far as the acks, like [`each_ack`].
///
/// # Errors
/// A message when the trace cannot be read.
pub(crate) fn each_snapshot_trip(
    trace: &dyn TraceSource,
    found: &mut dyn FnMut(u32, Micros, Micros),
) -> Result<(), TraceReadError> {
    let mut finders: SortedMap<u32, SnapshotRoundTrips> = SortedMap::new();
    let mut made = NewUsercmds::default();
    let mut frames = trace.rows(frames::NAME, &ACKS);
    let columns = ["player", "snapshot", "at_us", "took_ms", "ack"];
    each_part(trace, snapshots::NAME, (&columns, None), &mut |rows| {
        let sent = snapshots::Columns::read(rows);
        while !made.has_all(sent.player, sent.ack) && made.count < USERCMDS_MAX {
            match frames()? {
                Some(rows) => made.add(&rows),
                None => break,
            }
        }
        let mut outlines = made.take();
        for (row, ((player, number), ack)) in sent.player.iter().zip(sent.snapshot).zip(sent.ack).enumerate() {
            if let Some((at, arrived)) = sent_and_arrived(&sent, row) {
                let outline = outlines.entry(*player).or_default();
                outline.snapshots.push((*number, at, *ack));
                outline.received.push((*number, arrived));
            }
        }
        for (player, mut outline) in outlines {
            outline.received.sort_by_key(|(_, at)| *at);
            finders.entry(player).or_default().add(&outline, &mut |at, took| found(player, at, took));
        }
        Ok(())
    })
}

/// Usercmds that were read and not yet passed on.
#[derive(Default)]
struct NewUsercmds {
    outlines: SortedMap<u32, PlayerOutline>,
    count: usize,
    /// The number of each player's last usercmd, also of those passed on.
    last: SortedMap<u32, u32>,
}

impl NewUsercmds {
    fn add(&mut self, rows: &Table) {
        let made = frames::Columns::read(rows);
        for ((player, command), at_us) in made.player.iter().zip(made.command).zip(made.at_us) {
            self.outlines.entry(*player).or_default().frames.push((*command, Micros(*at_us)));
            self.last.insert(*player, *command);
        }
        self.count += made.rows;
    }

    /// Whether all these usercmds were read, or later ones of the same players.
    fn has_all(&self, players: &[u32], commands: &[u32]) -> bool {
        let last = |player| self.last.get(player).copied().unwrap_or_default();
        players.iter().zip(commands).all(|(player, command)| last(player) >= *command)
    }

    fn take(&mut self) -> SortedMap<u32, PlayerOutline> {
        self.count = 0;
        std::mem::take(&mut self.outlines)
    }
}

/// A round trip.
#[derive(Debug)]
pub(crate) struct FoundTrip {
    /// The player.
    pub(crate) player: u32,
    /// The duration, in ms.
    pub(crate) ms: f32,
    /// Whether the ack is a row of `snapshots`. They repeat the acks of `corrections`, and exist without prediction.
    pub(crate) is_snapshot: bool,
}

impl RoundTripFinder {
    /// Starts with a replay that has written no rows yet.
    pub(crate) fn of(trace: &TraceHeader) -> RoundTripFinder {
        RoundTripFinder { is_open: trace.is_open(), ..RoundTripFinder::default() }
    }

    /// Adds rows, and passes on the round trips that are complete. Rows of `ticks` show that all earlier rows have been
    /// added. In open loop, rows of `frames` show that all usercmds of earlier acks have been added, and acks may come
    /// long after their usercmds.
    pub(crate) fn add(&mut self, rows: &Table, found: &mut dyn FnMut(FoundTrip)) {
        match rows.name.as_str() {
            ticks::NAME => {
                self.look(found);
                self.forget(self.newest_us);
            }
            frames::NAME => self.add_frames(&frames::Columns::read(rows), found),
            corrections::NAME | snapshots::NAME => self.acks.push(rows.clone()),
            _ => {}
        }
    }

    fn add_frames(&mut self, frames: &frames::Columns<'_>, found: &mut dyn FnMut(FoundTrip)) {
        for ((player, command), at_us) in frames.player.iter().zip(frames.command).zip(frames.at_us) {
            self.made_at.entry(*player).or_default().add(*command, *at_us);
            self.newest_us = self.newest_us.max(*at_us);
        }
        if self.is_open {
            self.look(found);
            if self.usercmds() > USERCMDS_MAX {
                // Players without acks come before the last one, each with the times of the whole session.
                self.made_at.retain(|player, _| frames.player.last() == Some(player));
            }
        }
    }

    /// Whether all acked usercmds have been added, or later ones of the same players.
    fn has_usercmds_of(&self, acks: &corrections::Columns<'_>) -> bool {
        let newest = |player| self.made_at.get(player).and_then(RecentTimes::last).unwrap_or_default();
        acks.player.iter().zip(acks.command).all(|(player, command)| newest(player) >= *command)
    }

    /// When a usercmd was made; the newest one if players used its number again.
    fn made(&self, player: u32, command: u32) -> Option<i64> {
        self.made_at.get(&player).and_then(|made| made.get(command))
    }

    /// The round trip that an ack ends. An ack of no further usercmd repeats an earlier one.
    fn trip_us(&self, acks: &corrections::Columns<'_>, row: usize) -> Option<i64> {
        let (player, command) = (*acks.player.get(row)?, *acks.command.get(row)?);
        let is_first = acks.commands.get(row) != Some(&0);
        let made = self.made(player, command).filter(|_| is_first)?;
        Some(acks.at_us.get(row)?.saturating_sub(made))
    }

    fn usercmds(&self) -> usize {
        self.made_at.values().map(RecentTimes::len).sum()
    }

    /// Removes each player's usercmds long before its last ack.
    fn forget_acked(&mut self, acks: &corrections::Columns<'_>) {
        let last: SortedMap<u32, i64> = acks.player.iter().copied().zip(acks.at_us.iter().copied()).collect();
        for (player, at_us) in last {
            self.made_at.entry(player).or_default().forget(at_us);
        }
    }

    /// Removes usercmds that were made long before `newest_us`.
    fn forget(&mut self, newest_us: i64) {
        self.made_at.values_mut().for_each(|made| made.forget(newest_us));
    }

    /// Passes on the round trips of all acks so far. In open loop, it removes the usercmds long before a player's last ack.
    pub(crate) fn look(&mut self, found: &mut dyn FnMut(FoundTrip)) {
        let acks = std::mem::take(&mut self.acks);
        for table in &acks {
            match table.name == snapshots::NAME {
                true => self.look_at_snapshots(&snapshots::Columns::read(table), found),
                false => {
                    let acks = corrections::Columns::read(table);
                    for row in 0..acks.rows {
                        if let Some(us) = self.trip_us(&acks, row) {
                            found(FoundTrip { player: acks.player[row], ms: ms(us), is_snapshot: false });
                        }
                    }
                }
            }
        }
        if self.is_open {
            acks.iter().for_each(|table| self.forget_acked(&corrections::Columns::read(table)));
        }
    }

    /// Passes on the round trips that are left, after all rows.
    pub(crate) fn finish(&mut self, found: &mut dyn FnMut(FoundTrip)) {
        self.look(found);
        let players: Vec<u32> = self.acked.keys().copied().collect();
        for player in players {
            self.acked.entry(player).or_default().pass_on(player, Micros(i64::MAX), found);
        }
    }

    /// Passes on the round trips that end with the first ack of a usercmd.
    fn look_at_snapshots(&mut self, sent: &snapshots::Columns<'_>, found: &mut dyn FnMut(FoundTrip)) {
        let mut last_sent: SortedMap<u32, Micros> = SortedMap::new();
        for (row, (player, ack)) in sent.player.iter().zip(sent.ack).enumerate() {
            let Some((at, arrived)) = sent_and_arrived(sent, row) else { continue };
            last_sent.insert(*player, at);
            if let Some(made) = self.made(*player, *ack) {
                self.acked.entry(*player).or_default().waiting.push((arrived, *ack, Micros(made)));
            }
        }
        for (player, at) in last_sent {
            self.acked.entry(player).or_default().pass_on(player, at, found);
        }
    }
}

impl SnapshotAcks {
    /// Passes on the round trips that ended before `until`, in the order of their arrivals.
    fn pass_on(&mut self, player: u32, until: Micros, found: &mut dyn FnMut(FoundTrip)) {
        self.waiting.sort_unstable();
        let count = self.waiting.partition_point(|(arrived, ..)| *arrived < until);
        for (arrived, ack, made) in self.waiting.drain(..count) {
            if self.newest.is_first((made, ack)) {
                found(FoundTrip { player, ms: ms(arrived.0.saturating_sub(made.0)), is_snapshot: true });
            }
        }
    }
}

/// When the snapshot in a row was sent, and when it arrived first; `None` if it did not arrive.
fn sent_and_arrived(sent: &snapshots::Columns<'_>, row: usize) -> Option<(Micros, Micros)> {
    let (at_us, took_us) = (sent.at_us.get(row)?, transit_us(*sent.took_ms.get(row)?)?);
    Some((Micros(*at_us), Micros(at_us.saturating_add(took_us))))
}

/// How long times are kept. It exceeds the time between related rows of two tables in a streamed replay, and the delay
/// of drawing.
pub(crate) const TIMES_KEPT: Micros = Micros::from_s(64);
/// Older times are removed once in this time, because each removal passes over all of them.
const REMOVAL_INTERVAL: Micros = Micros::from_s(4);

/// Times in µs by number: those of ticks, or of a player's usercmds.
#[derive(Debug)]
pub(crate) struct RecentTimes {
    /// Numbers with their times, in ascending order of number.
    at_us: VecDeque<(u32, i64)>,
    /// When older times are removed next.
    removal_us: i64,
}

impl Default for RecentTimes {
    fn default() -> RecentTimes {
        RecentTimes { at_us: VecDeque::new(), removal_us: i64::MIN }
    }
}

impl RecentTimes {
    /// Adds a time. A later one of the same number replaces an earlier one.
    pub(crate) fn add(&mut self, number: u32, at_us: i64) {
        // Numbers nearly always come in order.
        let is_next = self.last().is_none_or(|last| last < number);
        match if is_next { Err(self.at_us.len()) } else { self.place_of(number) } {
            Ok(place) => self.at_us[place].1 = at_us,
            Err(place) => self.at_us.insert(place, (number, at_us)),
        }
    }

    /// Returns the time of a tick or usercmd.
    pub(crate) fn get(&self, number: u32) -> Option<i64> {
        Some(self.at_us[self.place_of(number).ok()?].1)
    }

    /// Returns the greatest number.
    pub(crate) fn last(&self) -> Option<u32> {
        self.at_us.back().map(|(number, _)| *number)
    }

    /// Returns the index of a number, or the index at which to insert it.
    fn place_of(&self, number: u32) -> Result<usize, usize> {
        self.at_us.binary_search_by_key(&number, |(number, _)| *number)
    }

    /// Returns the number of times.
    pub(crate) fn len(&self) -> usize {
        self.at_us.len()
    }

    /// Removes times that are much older than `newest_us`. Call it when all rows so far have found their times.
    pub(crate) fn forget(&mut self, newest_us: i64) {
        if newest_us >= self.removal_us {
            self.removal_us = newest_us.saturating_add(REMOVAL_INTERVAL.0);
            self.at_us.retain(|(_, at_us)| *at_us >= newest_us.saturating_sub(TIMES_KEPT.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::trace::{Column, ColumnData, ColumnSpan, NextRows};

    /// A trace whose tables are read in parts.
    struct PartTrace {
        header: TraceHeader,
        parts: Vec<Table>,
    }

    impl TraceSource for PartTrace {
        fn header(&self) -> &TraceHeader {
            &self.header
        }

        fn tables(&self) -> Vec<(&Table, u64)> {
            Vec::new()
        }

        fn rows_between<'s>(&'s self, name: &'s str, _: &'s [&'s str], _: Option<ColumnSpan<'s>>) -> NextRows<'s> {
            let mut parts = self.parts.iter().filter(move |part| part.name == name);
            Box::new(move || Ok(parts.next().cloned()))
        }
    }

    fn part(name: &str, rows: &[(u32, u32, i64)]) -> Table {
        let columns = [
            ("player", ColumnData::U32(rows.iter().map(|row| row.0).collect())),
            ("command", ColumnData::U32(rows.iter().map(|row| row.1).collect())),
            ("at_us", ColumnData::I64(rows.iter().map(|row| row.2).collect())),
        ];
        Table::new(name, columns.map(|(name, data)| Column::new(name, data)).into())
    }

    /// In open loop, players come one after the other, and rows of acks fill up more slowly than rows of usercmds.
    #[test]
    fn acks_of_each_client_that_runs_alone_have_round_trips() {
        let made = |player: u32| (1..=6_000_u32).map(move |n| (player, n, i64::from(n) * 50_000));
        let made: Vec<(u32, u32, i64)> = (0..3).flat_map(made).collect();
        let acked: Vec<_> = made.iter().map(|(player, number, at_us)| (*player, *number, at_us + 70_000)).collect();
        for acks_at_once in [18_000, 7_000, 500] {
            let open = TraceHeader { mode: "open".into(), ..TraceHeader::default() };
            let (mut finder, mut counts, mut passed_on) = (RoundTripFinder::of(&open), [0; 3], 0);
            let mut found = |trip: FoundTrip| {
                assert_eq!(trip.ms, 70.0);
                counts[trip.player as usize] += 1;
            };
            for (place, rows) in made.chunks(700).enumerate() {
                while acks_at_once * (passed_on + 1) <= place * 700 {
                    let acks = &acked[acks_at_once * passed_on..][..acks_at_once];
                    finder.add(&part(corrections::NAME, acks), &mut found);
                    passed_on += 1;
                }
                finder.add(&part(frames::NAME, rows), &mut found);
            }
            finder.add(&part(corrections::NAME, &acked[acks_at_once * passed_on..]), &mut found);
            finder.look(&mut found);
            assert_eq!(counts, [6_000; 3], "{acks_at_once} acks at once");
        }
    }

    /// A repeated ack that corrects the body is a row, but ends no round trip.
    #[test]
    fn repeated_acks_end_no_round_trip() {
        let made = part(frames::NAME, &[(0, 1, 10_000), (0, 2, 20_000)]);
        let mut acks = part(corrections::NAME, &[(0, 1, 80_000), (0, 1, 95_000), (0, 2, 110_000)]);
        acks.columns.push(Column::new("commands", ColumnData::U32(vec![1, 0, 1])));
        let mut trips = Vec::new();
        let mut finder = RoundTripFinder::default();
        [&made, &acks].into_iter().for_each(|rows| finder.add(rows, &mut |_| {}));
        finder.look(&mut |trip| trips.push(trip.ms));
        assert_eq!(trips, [70.0, 90.0]);
        let trace = PartTrace { header: TraceHeader::default(), parts: vec![made, acks] };
        each_round_trip(&trace, &mut |trip| trips.push(trip.ms)).expect("rows");
        assert_eq!(trips, [70.0, 90.0, 70.0, 90.0]);
    }

    /// Two players of 300 s; the second joins after 150 s. Parts of acks are longer than parts of usercmds.
    #[test]
    fn all_acks_of_a_long_trace_have_round_trips() {
        let made: Vec<(u32, u32, i64)> = (1..=30_000_u32)
            .flat_map(|n| [(0, n, i64::from(n) * 10_000), (1, n.saturating_sub(15_000), i64::from(n) * 10_000)])
            .filter(|(_, command, _)| *command > 0)
            .collect();
        let acked =
            made.iter().map(|(player, command, at)| (*player, *command, at + 50_000 + 40_000 * i64::from(*player)));
        let acked: Vec<(u32, u32, i64)> = acked.collect();
        let by_player = |rows: &[(u32, u32, i64)]| {
            let mut rows = rows.to_vec();
            rows.sort_by_key(|(player, ..)| *player);
            rows
        };
        for (made, acked) in [(made.clone(), acked.clone()), (by_player(&made), by_player(&acked))] {
            let parts = made.chunks(700).map(|rows| part(frames::NAME, rows));
            let parts = parts.chain(acked.chunks(9_970).map(|rows| part(corrections::NAME, rows))).collect();
            let mut counts = [0; 2];
            each_round_trip(&PartTrace { header: TraceHeader::default(), parts }, &mut |trip| {
                assert_eq!(trip.ms, 50.0 + 40.0 * trip.player as f32);
                counts[trip.player as usize] += 1;
            })
            .expect("rows");
            assert_eq!(counts, [30_000, 15_000]);
        }
    }

    #[test]
    fn a_time_is_known_for_64_s_and_removed_by_68_s() {
        let s = |s: u32| i64::from(s) * 1_000_000;
        let mut times = RecentTimes::default();
        for second in 0..300 {
            times.add(second, s(second));
            times.forget(s(second));
            assert_eq!(times.get(second.saturating_sub(64)), Some(s(second.saturating_sub(64))));
            assert!(times.at_us.len() <= 69, "{} times", times.at_us.len());
        }
        assert_eq!((times.get(200), times.last()), (None, Some(299)));
    }

    #[test]
    fn numbers_may_come_in_any_order_and_twice() {
        let mut times = RecentTimes::default();
        [(5, 50), (2, 20), (9, 90), (2, 21), (7, 70)].iter().for_each(|(number, at_us)| times.add(*number, *at_us));
        assert_eq!([2, 5, 6, 7, 9].map(|number| times.get(number)), [Some(21), Some(50), None, Some(70), Some(90)]);
        assert_eq!((times.len(), times.last()), (4, Some(9)));
    }
}

//! Merges the logs of a session's sides, the server's and every client's, into one session. Each side recorded with its
//! own clock.
//!
//! A client's pipeline depends only on differences of its own times. Adding one constant offset in whole microseconds
//! to them changes nothing in it. The server depends only on the arrival times of the client's packets. So a merged
//! session replays bit for bit with any offset at which every packet arrives after it was sent.

mod bounds;
mod error;
mod offset;
mod packets;
mod plan;
mod sides;
mod survey;

use crate::recorder::usercmds_as_made;
use crate::sorted::SortedSet;

pub use error::MergeError;
pub use offset::Offset;
pub use plan::{MergePlan, PlanFailure, SideLogs};

use crate::record::{
    ClockOwner, FrameRecord, OF_PLAYERS, PlayerRecords, RecordStream, Session, Texts, TickRecord, USERCMD_BYTES,
    UnknownRecords,
};
use crate::units::{CommandSeq, Micros, PlayerId, Tick};
use offset::OffsetError;
use sides::{SideIndex, is_in_time};

/// A merged session.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedSession {
    /// The session, on the server's clock.
    pub session: Session,
    /// The clients, in the order of players.
    pub clients: Vec<AlignedClient>,
    /// Set when the session ends before the server's log does, because a client's log ends earlier.
    pub cut: Option<SessionCut>,
}

/// A client with the offset of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignedClient {
    /// The client's player.
    pub player: PlayerId,
    /// Index of the client's log; `None` without a log. The server's log then provides the packets that it heard.
    pub log: Option<usize>,
    /// Offset from the client's clock to the server's; `None` when the server never heard the client, or without a log.
    pub offset: Option<Offset>,
    /// Whether the log has no packets, so that ticks with equal numbers give the offset.
    pub is_by_ticks: bool,
    /// Whether the server received packets that are older than the log. The earlier usercmds are the server's.
    pub begins_late: bool,
}

/// The end of a session that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionCut {
    /// The last tick of the session.
    pub tick: Tick,
    /// Time of that tick on the server's clock.
    pub at: Micros,
    /// The player whose log ends there: the server received later packets that this log does not have.
    pub player: PlayerId,
}

/// Merges the sides of one session, given in any order. A client without a log takes part as the server heard it, if
/// the server recorded that.
///
/// # Errors
/// When the logs are not the sides of one session, a side is missing or given twice, or no clock offset fits.
pub fn merge(logs: Vec<Session>) -> Result<MergedSession, MergeError> {
    let (mut session, mut sides) = split_by_side(logs)?;
    let mut clients = Vec::with_capacity(sides.len());
    for (player, (side, server)) in (0..).map(PlayerId).zip(sides.iter_mut().zip(&session.players)) {
        clients.push(match side {
            Some(side) => {
                let is_by_ticks = side.has_no_packets();
                let offset = align(side, (server, &session.ticks), player)?;
                let (is_by_ticks, begins_late) = (is_by_ticks && offset.is_some(), side.begins_late(server));
                AlignedClient { player, log: Some(side.log), offset, is_by_ticks, begins_late }
            }
            None => AlignedClient { player, log: None, offset: None, is_by_ticks: false, begins_late: false },
        });
    }
    for (client, server) in clients.iter().zip(&session.players) {
        if let Some(log) = client.log.filter(|_| client.begins_late && server.frames.is_empty()) {
            return Err(MergeError::BeginsLate { log, player: client.player });
        }
    }
    let (end, cut) = common_end(&session, &sides)?;
    let mut has_arrivals = false;
    for (player, side) in sides.into_iter().enumerate() {
        let Some(mut side) = side else {
            has_arrivals |= !session.players[player].frames.is_empty();
            continue;
        };
        let has_bytes = side.unknown.iter().any(|records| records.kind == USERCMD_BYTES);
        let own = has_bytes.then(|| side.own_usercmds());
        let server = &mut session.players[player];
        if side.has_no_packets() {
            has_arrivals |= side.keep_known_usercmds(server);
        } else if clients[player].begins_late {
            has_arrivals |= side.keep_earlier_usercmds(server);
        }
        session.players[player].take(ClockOwner::Client, side.records);
        session.players[player].heard.clear();
        session.header.players[player].recorded = true;
        // Unknown columns of client records belong to the client's clock. Of entirely unknown kinds the clock is
        // unknown: the merge keeps the server's rows and drops the clients'.
        if let Some(own) = own {
            let bytes = session.unknown.iter_mut().filter(|records| records.kind == USERCMD_BYTES);
            bytes.for_each(|records| drop_bytes(records, player as u32, &own));
        }
        side.unknown.into_iter().for_each(|records| session.append_unknown(records));
        session.texts.append(&side.texts);
    }
    session.put_in_order();
    let (tick, at) = end;
    session.end_at(tick, at);
    session.header.side = None;
    if !has_arrivals {
        usercmds_as_made(&mut session.header.settings);
    }
    Ok(MergedSession { session, clients, cut })
}

/// The client's own records from its log.
struct ClientSide {
    log: usize,
    records: PlayerRecords,
    /// Columns of those records that this build does not know, and rows of custom kinds.
    unknown: Vec<UnknownRecords>,
    ticks: Vec<TickRecord>,
    texts: Texts,
}

impl ClientSide {
    /// Whether the log has usercmds but no packets: its program does not record them.
    fn has_no_packets(&self) -> bool {
        self.records.sent.is_empty() && !self.records.frames.is_empty()
    }

    /// Whether the server received packets that are older than the log.
    fn begins_late(&self, server: &PlayerRecords) -> bool {
        let first = self.records.sent.first();
        first.is_some_and(|first| server.reached.iter().any(|arrival| arrival.number < first.number))
    }

    fn own_usercmds(&self) -> SortedSet<CommandSeq> {
        self.records.frames.iter().map(|frame| frame.command.seq).collect()
    }

    /// Keeps the server's usercmds from before the first one in the client's log. Returns whether there are any.
    fn keep_earlier_usercmds(&mut self, server: &mut PlayerRecords) -> bool {
        let first = self.records.frames.iter().map(|frame| frame.command.seq).min();
        let earlier = server.frames.drain(..).filter(|frame| first.is_some_and(|first| frame.command.seq < first));
        let earlier: Vec<FrameRecord> = earlier.collect();
        let keeps_any = !earlier.is_empty();
        self.records.frames.splice(..0, earlier);
        keeps_any
    }

    /// Without packets, the server's records show which usercmds arrived. Of those that the client's log lacks, the
    /// server's own are kept. Returns whether there are any.
    fn keep_known_usercmds(&mut self, server: &mut PlayerRecords) -> bool {
        let own = self.own_usercmds();
        let heard = server.frames.iter().map(|frame| frame.command.seq);
        let last = heard.chain(server.executed.iter().map(|executed| executed.command)).max();
        without_later(&mut self.records, last);
        let of_client = self.records.frames.len();
        self.records.frames.extend(server.frames.drain(..).filter(|frame| !own.contains(&frame.command.seq)));
        let keeps_any = self.records.frames.len() > of_client;
        self.records.frames.sort_by_key(|frame| frame.command.seq);
        keeps_any
    }

    fn move_by(&mut self, by: Micros) {
        self.records.move_by(ClockOwner::Client, by);
        self.unknown.iter_mut().for_each(|records| records.move_by(by));
    }
}

/// Whether a server's log has all input of a player: as it arrived, or because nobody was there.
fn has_input(records: &PlayerRecords) -> bool {
    records.is_empty() || !records.frames.is_empty() || !records.heard.is_empty()
}

/// Returns the server's log, and each player's client side if there is one.
fn split_by_side(logs: Vec<Session>) -> Result<(Session, Vec<Option<ClientSide>>), MergeError> {
    let sides = SideIndex::of(&logs.iter().map(|session| &session.header).collect::<Vec<_>>())?;
    if let Some(log) = logs.iter().position(|session| !session.time_span().is_none_or(is_in_time)) {
        return Err(MergeError::OutOfTime { log });
    }
    let known = &logs[sides.server].players;
    sides.check_missing(|player| known.get(player).is_none_or(has_input))?;
    let mut logs: Vec<Option<Session>> = logs.into_iter().map(Some).collect();
    let mut of = |(player, log): (usize, &Option<usize>)| {
        let log = (*log)?;
        let mut session = logs[log].take()?;
        let is_kept = |records: &UnknownRecords| is_of_clients(records) || sides.own_kind(records).is_some();
        Some(ClientSide {
            log,
            unknown: std::mem::take(&mut session.unknown).into_iter().filter(is_kept).collect(),
            records: without_unsent(session.players.get_mut(player).map(std::mem::take).unwrap_or_default()),
            ticks: session.ticks,
            texts: session.texts,
        })
    };
    let clients = sides.clients.iter().enumerate().map(&mut of).collect();
    let mut server = logs[sides.server].take().ok_or(MergeError::NoServer)?;
    server.header.unknown = sides.kinds;
    Ok((server, clients))
}

/// Removes the server's extra bytes of the usercmds that the client's log has.
fn drop_bytes(records: &mut UnknownRecords, player: u32, own: &SortedSet<CommandSeq>) {
    let command = |row: usize| records.columns.get(1).map(|commands| CommandSeq(commands.values[row] as u32));
    let is_own = |row: usize| command(row).is_none_or(|command| own.contains(&command));
    let is_kept = |row: &usize| records.series[*row] != player || !is_own(*row);
    let kept: Vec<usize> = (0..records.len()).filter(is_kept).collect();
    *records = records.rows(&kept);
}

/// Returns whether these are columns of records that clients record.
fn is_of_clients(records: &UnknownRecords) -> bool {
    OF_PLAYERS.iter().any(|(name, by)| *name == records.kind && *by == ClockOwner::Client)
}

/// Drops the frames after the last recorded packet. A truncated log can end between a frame and its packet. Without the
/// packet's fate the frame cannot be replayed.
fn without_unsent(mut records: PlayerRecords) -> PlayerRecords {
    if let Some(last) = records.sent.last().map(|packet| packet.newest) {
        without_later(&mut records, Some(last));
    }
    records
}

fn without_later(records: &mut PlayerRecords, last_sent: Option<CommandSeq>) {
    records.frames.retain(|frame| Some(frame.command.seq) <= last_sent);
}

/// Shifts a client's times to the server's clock.
fn align(
    side: &mut ClientSide,
    (server, ticks): (&PlayerRecords, &[TickRecord]),
    player: PlayerId,
) -> Result<Option<Offset>, MergeError> {
    let found = match side.has_no_packets() {
        true => offset::by_ticks(&side.ticks, ticks),
        false => offset::offset(&side.records, server),
    };
    let found = judged(found, !server.reached.is_empty(), (side.log, player))?;
    match found {
        Some(found) => side.move_by(found.offset),
        None => (side.records, side.unknown) = (PlayerRecords::default(), Vec::new()),
    }
    Ok(found)
}

/// Turns a missing offset into an error, unless the server never heard the client. Then the result is `None`, because
/// the client does not affect the session.
fn judged(
    found: Result<Offset, OffsetError>,
    is_heard: bool,
    (log, player): (usize, PlayerId),
) -> Result<Option<Offset>, MergeError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(OffsetError::Unbounded) if !is_heard => Ok(None),
        Err(OffsetError::Unbounded) => Err(MergeError::Unbounded { log, player }),
        Err(OffsetError::Drift { apart, rate_us_per_s, is_steady }) => {
            Err(MergeError::Drift { log, player, apart, rate_us_per_s, is_steady })
        }
    }
}

/// Returns the last tick up to which the clients' logs contain every packet that the server received since they began.
fn common_end(
    session: &Session,
    sides: &[Option<ClientSide>],
) -> Result<((Tick, Micros), Option<SessionCut>), MergeError> {
    let last = session.ticks.last().ok_or(MergeError::NoTicks)?;
    let unknown = |(player, (server, side)): (usize, (&PlayerRecords, &Option<ClientSide>))| {
        let side = side.as_ref().filter(|side| !side.has_no_packets())?;
        let is_known = |number| side.records.sent.binary_search_by_key(&number, |packet| packet.number).is_ok();
        let begins = side.records.sent.first().map_or(0, |packet| packet.number);
        let first = server.reached.iter().find(|arrival| arrival.number >= begins && !is_known(arrival.number))?;
        Some((first.at, PlayerId(player as u16), side.log))
    };
    let unknown = session.players.iter().zip(sides).enumerate().filter_map(unknown);
    let Some((until, player, log)) = unknown.min().filter(|(until, ..)| *until <= last.at) else {
        return Ok(((last.tick, last.at), None));
    };
    let ticks = session.ticks.partition_point(|tick| tick.at < until);
    let end = ticks.checked_sub(1).and_then(|index| session.ticks.get(index)).ok_or(MergeError::NothingLeft { log })?;
    Ok(((end.tick, end.at), Some(SessionCut { tick: end.tick, at: end.at, player })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ArrivalRecord, PacketRecord, SessionStretch, SnapshotRecord};
    use crate::recorder::Description;
    use crate::units::SnapshotSeq;
    use crate::usercmd::Usercmd;

    fn at(number: u32) -> Micros {
        Micros(i64::from(number) * 10_000)
    }

    fn frame(number: u32, at: Micros) -> FrameRecord {
        FrameRecord { at, command: Usercmd { seq: CommandSeq(number), ..Usercmd::default() } }
    }

    /// The logs of a server of 20 ticks and of a client whose log begins with usercmd and packet `begins`.
    fn sides(begins: u32) -> Vec<Session> {
        let about = || Description::new("mygame").player("p0").usercmds_as_received();
        let mut server = Session::new(about().server_side(7).into_header().unwrap().0);
        let mut client = Session::new(about().client_side(7, PlayerId(0)).into_header().unwrap().0);
        for number in 1..=20 {
            server.ticks.push(TickRecord { tick: Tick(number), at: at(number), hash: None });
            let of_server = &mut server.players[0];
            of_server.frames.push(frame(number, at(number) - Micros(1_000)));
            of_server.reached.push(ArrivalRecord { number, at: at(number) - Micros(1_000) });
            let snapshot =
                SnapshotRecord { seq: SnapshotSeq(number), tick: Tick(number), at: at(number), ..Default::default() };
            of_server.snapshots.push(snapshot);
            if number >= begins {
                let (of_client, sent_at) = (&mut client.players[0], at(number) - Micros(3_000));
                of_client.frames.push(frame(number, sent_at));
                let newest = CommandSeq(number);
                of_client.sent.push(PacketRecord { number, at: sent_at, newest, count: 1, ..PacketRecord::default() });
                of_client.received.push(ArrivalRecord { number, at: at(number) + Micros(2_000) });
            }
        }
        vec![server, client]
    }

    /// The settings say that usercmds have the times of their arrivals as long as any usercmd does.
    #[test]
    fn usercmds_of_clients_have_the_times_of_their_frames() {
        let as_received = |logs: Vec<Session>| {
            let settings = merge(logs).expect("merged").session.header.settings;
            crate::recorder::are_usercmds_as_received(&settings)
        };
        assert!(!as_received(sides(1)), "all usercmds are the client's");
        assert!(as_received(sides(5)), "the first usercmds are the server's");
        let without_packets = |mut logs: Vec<Session>| {
            logs[1].players[0].sent.clear();
            logs[1].ticks = logs[0].ticks.clone();
            logs
        };
        assert!(!as_received(without_packets(sides(1))));
        assert!(as_received(without_packets(sides(5))));
        assert!(as_received(vec![sides(1).swap_remove(0)]), "there is no client's log");
    }

    #[test]
    fn a_log_that_begins_late_lacks_only_its_own_beginning() {
        let merged = merge(sides(12)).unwrap();
        assert_eq!((merged.cut, merged.clients[0].begins_late, merged.session.ticks.len()), (None, true, 20));
        let frames = &merged.session.players[0].frames;
        assert_eq!(frames.iter().map(|frame| frame.command.seq.0).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
        let received = |number: u32| frames[number as usize - 1].at == at(number) - Micros(1_000);
        assert_eq!((received(11), received(12)), (true, false), "each by the log that has it first");
        assert!(!merge(sides(1)).unwrap().clients[0].begins_late);
    }

    #[test]
    fn a_later_missing_packet_is_the_end_of_a_log() {
        let mut logs = sides(5);
        logs[1].players[0].sent.truncate(8);
        let merged = merge(logs).unwrap();
        assert_eq!(merged.cut.map(|cut| cut.tick), Some(Tick(12)));
    }

    #[test]
    fn a_missing_beginning_needs_the_servers_usercmds() {
        let mut logs = sides(12);
        logs[0].players[0].frames.clear();
        assert_eq!(merge(logs).unwrap_err(), MergeError::BeginsLate { log: 1, player: PlayerId(0) });
    }

    /// Logs in one stretch each, and whether each was read.
    struct WholeLogs(Vec<(Session, bool)>);

    impl SideLogs for WholeLogs {
        type Error = std::convert::Infallible;

        fn next(&mut self, log: usize) -> Result<Option<SessionStretch>, Self::Error> {
            let (session, is_read) = &mut self.0[log];
            let is_first = !std::mem::replace(is_read, true);
            Ok(is_first.then(|| session.clone().without_header()))
        }

        fn rewind(&mut self, log: usize) -> Result<(), Self::Error> {
            self.0[log].1 = false;
            Ok(())
        }
    }

    #[test]
    fn streams_leave_a_log_that_begins_late_to_the_merge_in_memory() {
        let planned = |logs: Vec<Session>| {
            let headers: Vec<_> = logs.iter().map(|log| log.header.clone()).collect();
            let mut logs = WholeLogs(logs.into_iter().map(|log| (log, false)).collect());
            MergePlan::of(&headers.iter().collect::<Vec<_>>(), &mut logs)
        };
        assert!(matches!(planned(sides(12)), Err(PlanFailure::Whole)));
        assert!(planned(sides(1)).is_ok_and(|plan| plan.cut.is_none()));
    }
}

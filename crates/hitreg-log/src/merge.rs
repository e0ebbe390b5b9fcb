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

use std::collections::BTreeSet;

pub use error::MergeError;
pub use offset::Offset;
pub use plan::{MergePlan, PlanFailure, SideLogs};

use crate::record::{
    ClockOwner, OF_PLAYERS, PlayerRecords, Session, Texts, TickRecord, USERCMD_BYTES, UnknownKind, UnknownRecords,
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
                let offset = align(side, (server, &session.ticks), &session.header.unknown, player)?;
                AlignedClient { player, log: Some(side.log), offset, is_by_ticks: is_by_ticks && offset.is_some() }
            }
            None => AlignedClient { player, log: None, offset: None, is_by_ticks: false },
        });
    }
    let (end, cut) = common_end(&session, &sides)?;
    for (player, side) in sides.into_iter().enumerate() {
        let Some(mut side) = side else { continue };
        if side.has_no_packets() {
            side.keep_known_usercmds(&mut session.players[player]);
        }
        session.players[player].take(ClockOwner::Client, side.records);
        session.players[player].heard.clear();
        session.header.players[player].recorded = true;
        // Unknown columns of client records belong to the client's clock. Of entirely unknown kinds the clock is
        // unknown: the merge keeps the server's rows and drops the clients'.
        if side.unknown.iter().any(|records| records.kind == USERCMD_BYTES) {
            let bytes = session.unknown.iter_mut().filter(|records| records.kind == USERCMD_BYTES);
            bytes.for_each(|records| records.drop_series(player as u32));
        }
        side.unknown.into_iter().for_each(|records| session.append_unknown(records));
        session.texts.append(&side.texts);
    }
    session.put_in_order();
    let (tick, at) = end;
    session.end_at(tick, at);
    session.header.side = None;
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

    /// Without packets, the server's records show which usercmds arrived. Of those that the client's log lacks, the
    /// server's own are kept.
    fn keep_known_usercmds(&mut self, server: &mut PlayerRecords) {
        let own: BTreeSet<CommandSeq> = self.records.frames.iter().map(|frame| frame.command.seq).collect();
        let heard = server.frames.iter().map(|frame| frame.command.seq);
        let last = heard.chain(server.executed.iter().map(|executed| executed.command)).max();
        without_later(&mut self.records, last);
        self.records.frames.extend(server.frames.drain(..).filter(|frame| !own.contains(&frame.command.seq)));
        self.records.frames.sort_by_key(|frame| frame.command.seq);
    }

    fn move_by(&mut self, by: Micros, kinds: &[UnknownKind]) {
        self.records.move_by(ClockOwner::Client, by);
        for records in &mut self.unknown {
            if let Some(kind) = kinds.iter().find(|kind| kind.name == records.kind) {
                records.move_by(kind, by);
            }
        }
    }
}

/// Whether a server's log has all input of a player: as it arrived, or because nobody was there.
fn has_input(records: &PlayerRecords) -> bool {
    let is_unknown = records.streams().into_iter().all(|stream| stream.is_empty());
    is_unknown || !records.frames.is_empty() || !records.heard.is_empty()
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
    kinds: &[UnknownKind],
    player: PlayerId,
) -> Result<Option<Offset>, MergeError> {
    let found = match side.has_no_packets() {
        true => offset::by_ticks(&side.ticks, ticks),
        false => offset::offset(&side.records, server),
    };
    let found = judged(found, !server.reached.is_empty(), (side.log, player))?;
    match found {
        Some(found) => side.move_by(found.offset, kinds),
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

/// Returns the last tick up to which the clients' logs contain every packet that the server received.
fn common_end(
    session: &Session,
    sides: &[Option<ClientSide>],
) -> Result<((Tick, Micros), Option<SessionCut>), MergeError> {
    let last = session.ticks.last().ok_or(MergeError::NoTicks)?;
    let unknown = |(player, (server, side)): (usize, (&PlayerRecords, &Option<ClientSide>))| {
        let side = side.as_ref().filter(|side| !side.has_no_packets())?;
        let is_known = |number| side.records.sent.binary_search_by_key(&number, |packet| packet.number).is_ok();
        let first = server.reached.iter().find(|arrival| !is_known(arrival.number))?;
        Some((first.at, PlayerId(player as u16), side.log))
    };
    let unknown = session.players.iter().zip(sides).enumerate().filter_map(unknown);
    let Some((until, player, log)) = first_unknown(unknown, last.at) else {
        return Ok(((last.tick, last.at), None));
    };
    let ticks = session.ticks.partition_point(|tick| tick.at < until);
    let end = ticks.checked_sub(1).and_then(|index| session.ticks.get(index)).ok_or(MergeError::NothingLeft { log })?;
    Ok(((end.tick, end.at), Some(SessionCut { tick: end.tick, at: end.at, player })))
}

/// Returns the earliest of the clients' first packets that reached the server and are in no client's log, up to the
/// time of the last tick.
fn first_unknown(
    of_clients: impl Iterator<Item = (Micros, PlayerId, usize)>,
    last: Micros,
) -> Option<(Micros, PlayerId, usize)> {
    of_clients.min().filter(|(until, _, _)| *until <= last)
}

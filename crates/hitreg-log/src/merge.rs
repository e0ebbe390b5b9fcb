//! One session from the logs of its sides: the server's and every client's, each recorded with its own clock.
//!
//! A client's pipeline sees differences of its own times only, so that one constant offset for each client, in whole
//! microseconds, changes nothing in it; and the server sees of a client's times nothing but when its packets arrive. So any
//! offset at which every packet arrives after it was sent gives a session that replays bit for bit.

mod bounds;
mod error;
mod offset;
mod plan;
mod sides;
mod survey;
mod way;

pub use error::MergeError;
pub use offset::Offset;
pub use plan::{Logs, NoPlan, Plan};

use crate::record::{By, OF_PLAYERS, PlayerRecords, Session, UnknownRecords};
use crate::units::{CommandSeq, Micros, PlayerId, Tick};
use offset::NoOffset;
use sides::{Sides, is_in_time};

/// A session put together.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The session, on the server's clock.
    pub session: Session,
    /// Its clients, in the order of players.
    pub clients: Vec<Aligned>,
    /// Set when the session ends before the server's log does, because a client's log ends earlier.
    pub cut: Option<Cut>,
}

/// One client in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// Its player.
    pub player: PlayerId,
    /// Which of the logs was its; `None` where there is none, and the server's says what it heard.
    pub log: Option<usize>,
    /// How far its clock is from the server's; `None` of one that never did anything, or has no log.
    pub offset: Option<Offset>,
}

/// Where a session was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The last tick that is left.
    pub tick: Tick,
    /// Its time on the server's clock.
    pub at: Micros,
    /// Whose log ends there: the server got packets later that are not in it.
    pub player: PlayerId,
}

/// Makes one session of its sides, in any order. A client whose log is missing plays as the server heard it, where the server
/// wrote that down.
///
/// # Errors
/// When they are not the sides of one session, one is missing or there twice, or the clocks do not fit together.
pub fn merge(logs: Vec<Session>) -> Result<Merged, MergeError> {
    let (mut session, mut sides) = sort_out(logs)?;
    let mut clients = Vec::with_capacity(sides.len());
    for (player, (side, server)) in (0..).map(PlayerId).zip(sides.iter_mut().zip(&session.players)) {
        clients.push(match side {
            Some(side) => Aligned { player, log: Some(side.log), offset: align(side, server, player)? },
            None => Aligned { player, log: None, offset: None },
        });
    }
    let (end, cut) = common_end(&session, &sides)?;
    for (player, side) in sides.into_iter().enumerate() {
        let Some(side) = side else { continue };
        session.players[player].take(By::Client, side.records);
        session.players[player].heard.clear();
        session.header.players[player].recorded = true;
        // What a later version knows of these records goes with them. Of kinds that this build does not know at all, it does
        // not know whose clock they are on: the server's stay, the clients' are passed over.
        side.unknown.into_iter().for_each(|records| session.append_unknown(records));
    }
    let (tick, at) = end;
    session.end_at(tick, at);
    session.header.side = None;
    Ok(Merged { session, clients, cut })
}

/// What a client's log holds of its own.
struct ClientSide {
    log: usize,
    records: PlayerRecords,
    /// Columns of those records that this build does not know.
    unknown: Vec<UnknownRecords>,
}

/// The server's log, and each player's where there is one.
fn sort_out(logs: Vec<Session>) -> Result<(Session, Vec<Option<ClientSide>>), MergeError> {
    let sides = Sides::of(&logs.iter().map(|session| &session.header).collect::<Vec<_>>())?;
    if let Some(log) = logs.iter().position(|session| !session.times().all(is_in_time)) {
        return Err(MergeError::OutOfTime { log });
    }
    let heard = &logs[sides.server].players;
    sides.check_missing(|player| heard.get(player).is_some_and(PlayerRecords::is_heard_only))?;
    let mut logs: Vec<Option<Session>> = logs.into_iter().map(Some).collect();
    let mut of = |(player, log): (usize, &Option<usize>)| {
        let log = (*log)?;
        let mut session = logs[log].take()?;
        Some(ClientSide {
            log,
            unknown: std::mem::take(&mut session.unknown).into_iter().filter(is_of_clients).collect(),
            records: without_unsent(session.players.get_mut(player).map(std::mem::take).unwrap_or_default()),
        })
    };
    let clients = sides.clients.iter().enumerate().map(&mut of).collect();
    let server = logs[sides.server].take().ok_or(MergeError::NoServer)?;
    Ok((server, clients))
}

/// Whether these are columns of records that clients keep.
fn is_of_clients(records: &UnknownRecords) -> bool {
    OF_PLAYERS.iter().any(|(name, by)| *name == records.kind && *by == By::Client)
}

/// A log that was cut off may end between a frame and the packet that carried it. What became of that packet it does not
/// say, so that the frame cannot be replayed.
fn without_unsent(mut records: PlayerRecords) -> PlayerRecords {
    let last = records.sent.last().map(|packet| packet.newest);
    without_later(&mut records, last);
    records
}

fn without_later(records: &mut PlayerRecords, last_sent: Option<CommandSeq>) {
    records.frames.retain(|frame| Some(frame.command.seq) <= last_sent);
}

/// Brings a client's times to the server's clock.
fn align(side: &mut ClientSide, server: &PlayerRecords, player: PlayerId) -> Result<Option<Offset>, MergeError> {
    let found = judged(offset::offset(&side.records, server), !server.reached.is_empty(), (side.log, player))?;
    match found {
        Some(found) => side.records.move_by(By::Client, found.offset),
        None => side.records = PlayerRecords::default(),
    }
    Ok(found)
}

/// What the offset found says of a client of whom the server heard or did not. `None` where nothing of it was ever heard, and so
/// nothing of it matters.
fn judged(
    found: Result<Offset, NoOffset>,
    is_heard: bool,
    (log, player): (usize, PlayerId),
) -> Result<Option<Offset>, MergeError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(NoOffset::Unbounded) if !is_heard => Ok(None),
        Err(NoOffset::Unbounded) => Err(MergeError::Unbounded { log, player }),
        Err(NoOffset::Drift { apart, rate_us_per_s, is_steady }) => {
            Err(MergeError::Drift { log, player, apart, rate_us_per_s, is_steady })
        }
    }
}

/// The last tick up to which every client's log has all that the server heard from it.
fn common_end(session: &Session, sides: &[Option<ClientSide>]) -> Result<((Tick, Micros), Option<Cut>), MergeError> {
    let last = session.ticks.last().ok_or(MergeError::NoTicks)?;
    let unknown = |(player, (server, side)): (usize, (&PlayerRecords, &Option<ClientSide>))| {
        let side = side.as_ref()?;
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
    Ok(((end.tick, end.at), Some(Cut { tick: end.tick, at: end.at, player })))
}

/// The first packet up to the last tick that reached the server and is in no client's log, of those that are the first of their
/// clients.
fn first_unknown(
    of_clients: impl Iterator<Item = (Micros, PlayerId, usize)>,
    last: Micros,
) -> Option<(Micros, PlayerId, usize)> {
    of_clients.min().filter(|(until, _, _)| *until <= last)
}

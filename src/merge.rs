//! One session from the logs of its sides: the server's and every client's, each recorded with its own clock.
//!
//! A client's pipeline sees differences of its own times only, so that one constant offset for each client, in whole
//! microseconds, changes nothing in it; and the server sees of a client's times nothing but when its packets arrive. So any
//! offset at which every packet arrives after it was sent gives a session that replays bit for bit.

mod error;
mod offset;

pub use error::MergeError;
pub use offset::Offset;

use crate::record::{By, Header, OF_PLAYERS, PlayerRecords, Session, UnknownRecords};
use crate::settings::player_of;
use crate::units::{Micros, PlayerId, Tick};
use offset::NoOffset;

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

/// So far from zero times can be, in µs, that no sum of three of them is out of bounds.
const TIME_MAX: i64 = 1 << 60;

/// The server's log, and each player's where there is one.
fn sort_out(logs: Vec<Session>) -> Result<(Session, Vec<Option<ClientSide>>), MergeError> {
    let mut server: Option<(usize, Session)> = None;
    let mut sides = Vec::new();
    for (log, session) in logs.into_iter().enumerate() {
        let side = session.header.side.ok_or(MergeError::NotASide { log })?;
        if !session.times().all(|at| (-TIME_MAX..=TIME_MAX).contains(&at.0)) {
            return Err(MergeError::OutOfTime { log });
        }
        match (side.player, &server) {
            (Some(player), _) => sides.push((player, log, session)),
            (None, None) => server = Some((log, session)),
            (None, Some((first, _))) => return Err(MergeError::TwoServers { first: *first, log }),
        }
    }
    let (_, server) = server.ok_or(MergeError::NoServer)?;
    for (player, log, session) in &sides {
        check_header(&server.header, &session.header, *log)?;
        if usize::from(player.0) >= server.players.len() {
            return Err(MergeError::OtherBuild { log: *log, what: "number of players" });
        }
    }
    sides.sort_by_key(|(player, log, _)| (*player, *log));
    if let Some(pair) = sides.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(MergeError::SamePlayer { first: pair[0].1, log: pair[1].1, player: pair[0].0 });
    }
    let is_there = |player: &PlayerId| sides.iter().any(|(there, _, _)| there == player);
    let is_known = |(player, heard): &(PlayerId, &PlayerRecords)| is_there(player) || heard.is_heard_only();
    let everyone = (0..).map(PlayerId).zip(&server.players);
    let missing: Vec<PlayerId> = everyone.filter(|one| !is_known(one)).map(|(player, _)| player).collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing { players: missing, all: server.players.len() });
    }
    let is_clients =
        |records: &UnknownRecords| OF_PLAYERS.iter().any(|(name, by)| *name == records.kind && *by == By::Client);
    let of = |(player, log, mut session): (PlayerId, usize, Session)| ClientSide {
        log,
        unknown: std::mem::take(&mut session.unknown).into_iter().filter(is_clients).collect(),
        records: without_unsent(session.of(player).map(std::mem::take).unwrap_or_default()),
    };
    let mut clients: Vec<Option<ClientSide>> = server.players.iter().map(|_| None).collect();
    for (player, log, session) in sides {
        clients[usize::from(player.0)] = Some(of((player, log, session)));
    }
    Ok((server, clients))
}

/// A log that was cut off may end between a frame and the packet that carried it. What became of that packet it does not
/// say, so that the frame cannot be replayed.
fn without_unsent(mut records: PlayerRecords) -> PlayerRecords {
    let last = records.sent.last().map(|packet| packet.newest);
    records.frames.retain(|frame| Some(frame.command.seq) <= last);
    records
}

/// Checks that a client's log is of the same session, and was recorded under the same rules.
fn check_header(server: &Header, client: &Header, log: usize) -> Result<(), MergeError> {
    let session = |header: &Header| header.side.map(|side| side.session);
    // What other players have for themselves a client need not know.
    let own = client.side.and_then(|side| side.player);
    let shared = |header: &Header| -> Vec<(String, String)> {
        let is_shared = |(key, _): &&(String, String)| player_of(key).is_none_or(|player| Some(player) == own);
        header.settings.iter().filter(is_shared).cloned().collect()
    };
    if session(server) != session(client) {
        return Err(MergeError::OtherSession { log });
    }
    let same = [
        ("game", server.game == client.game),
        ("rules", server.rules == client.rules),
        ("seed", server.seed == client.seed),
        ("settings", shared(server) == shared(client)),
        ("kinds of records", server.unknown == client.unknown),
        ("number of players", server.players.len() == client.players.len()),
        ("classes of entities", server.classes == client.classes),
    ];
    match same.into_iter().find(|(_, is_same)| !is_same) {
        Some((what, _)) => Err(MergeError::OtherBuild { log, what }),
        None => Ok(()),
    }
}

/// Brings a client's times to the server's clock.
fn align(side: &mut ClientSide, server: &PlayerRecords, player: PlayerId) -> Result<Option<Offset>, MergeError> {
    let log = side.log;
    let found = match offset::offset(&side.records, server) {
        Ok(found) => found,
        // Nothing of it was ever heard, and so nothing of it matters.
        Err(NoOffset::Unbounded) if server.reached.is_empty() => {
            side.records = PlayerRecords::default();
            return Ok(None);
        }
        Err(NoOffset::Unbounded) => return Err(MergeError::Unbounded { log, player }),
        Err(NoOffset::Drift { apart, rate_us_per_s, is_steady }) => {
            return Err(MergeError::Drift { log, player, apart, rate_us_per_s, is_steady });
        }
    };
    side.records.move_by(By::Client, found.offset);
    Ok(Some(found))
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
    let first_unknown = session.players.iter().zip(sides).enumerate().filter_map(unknown).min();
    let Some((until, player, log)) = first_unknown.filter(|(until, _, _)| *until <= last.at) else {
        return Ok(((last.tick, last.at), None));
    };
    let ticks = session.ticks.partition_point(|tick| tick.at < until);
    let end = ticks.checked_sub(1).and_then(|index| session.ticks.get(index)).ok_or(MergeError::NothingLeft { log })?;
    Ok(((end.tick, end.at), Some(Cut { tick: end.tick, at: end.at, player })))
}

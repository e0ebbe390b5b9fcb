//! Merges the logs of a session's sides, the server's and every client's, into one session. Each side recorded with its
//! own clock.
//!
//! A client's pipeline depends only on differences of its own times. Adding one constant offset in whole microseconds
//! to them changes nothing in it. The server depends only on the arrival times of the client's packets. So a merged
//! session replays bit for bit with any offset at which every packet arrives after it was sent.

mod error;
mod offset;
mod streamed;

pub use error::MergeError;
pub use offset::Offset;
pub use streamed::{MergePlan, PlanFailure, SideLogs};

use serde::Serialize;

use crate::record::{
    ClockOwner, FrameRecord, GapCause, GapRecord, OF_PLAYERS, PlayerRecords, RecordStream, Session, SessionHeader,
    SessionStretch, Texts, TickRecord, USERCMD_BYTES, UnknownKind, UnknownRecords, player_of, value_of_setting, widest,
};
use crate::recorder::usercmds_as_received_of;
use crate::sorted::SortedSet;
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// A merged session.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedSession {
    /// The session, on the server's clock.
    pub session: Session,
    /// The clients, in the order of players.
    pub clients: Vec<AlignedClient>,
    /// Set when records of a log are left out, because another log ends much earlier.
    pub cut: Option<SessionCut>,
}

/// A client with the offset of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Whether the log has states, which are left out: the session has the server's.
    pub has_states: bool,
}

/// Merges the sides of one session, given in any order. A client without a log takes part as the server heard it, if
/// the server recorded that.
///
/// # Errors
/// When the logs are not the sides of one session, a side is missing or given twice, or no clock offset fits.
pub fn merge(logs: Vec<Session>) -> Result<MergedSession, MergeError> {
    let ends: Vec<Option<Micros>> = logs.iter().map(Session::full_time_span).map(|span| Some(span?.1)).collect();
    let (server_log, mut session, mut sides) = split_by_side(logs)?;
    let mut clients = Vec::with_capacity(sides.len());
    for (player, (side, server)) in (0..).map(PlayerId).zip(sides.iter_mut().zip(&session.players)) {
        clients.push(match side {
            Some(side) => {
                let is_by_ticks = side.has_no_packets();
                let offset = align(side, (server, &session.ticks), player)?;
                let (is_by_ticks, begins_late) = (is_by_ticks && offset.is_some(), side.begins_late(server));
                if begins_late {
                    side.note_missing_beginning(server, player);
                }
                let has_states = side.has_states;
                AlignedClient { player, log: Some(side.log), offset, is_by_ticks, begins_late, has_states }
            }
            None => AlignedClient { player, ..AlignedClient::default() },
        });
    }
    for (client, server) in clients.iter().zip(&session.players) {
        if let Some(log) = client.log.filter(|_| client.begins_late && server.frames.is_empty()) {
            return Err(MergeError::BeginsLate { log, player: client.player });
        }
    }
    let last = *session.ticks.last().ok_or(MergeError::NoTicks)?;
    let ends = (ends[server_log], longest(&clients, &ends));
    let last_before = |until: Micros| {
        let ticks = session.ticks.partition_point(|tick| tick.at < until);
        Ok::<_, MergeError>(ticks.checked_sub(1).map(|index| session.ticks[index]))
    };
    let end = SessionEnd::of(last, unknown_packets(&session, &sides), ends, last_before)?;
    let mut received = Vec::new();
    for (player, side) in sides.into_iter().enumerate() {
        let Some(mut side) = side else {
            let has_received = !session.players[player].frames.is_empty();
            received.extend(has_received.then_some((PlayerId(player as u16), None)));
            continue;
        };
        let has_bytes = side.unknown.iter().any(|records| records.kind == USERCMD_BYTES);
        let own = has_bytes.then(|| side.own_usercmds());
        let server = &mut session.players[player];
        let as_received = match (side.has_no_packets(), clients[player].begins_late) {
            (true, _) => side.keep_known_usercmds(server).then_some(None),
            (false, true) => side.keep_earlier_usercmds(server).map(Some),
            (false, false) => None,
        };
        received.extend(as_received.map(|until| (PlayerId(player as u16), until)));
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
        session.gaps.append(&mut side.gaps);
        session.texts.append(&side.texts);
    }
    session.put_in_order();
    session.end_at(end.tick, end.until);
    session.header.side = None;
    usercmds_as_received_of(&mut session.header.settings, received.into_iter());
    Ok(MergedSession { session, clients, cut: end.cut })
}

/// The client's own records from its log.
struct ClientSide {
    log: usize,
    records: PlayerRecords,
    /// Columns of those records that this build does not know, and rows of custom kinds.
    unknown: Vec<UnknownRecords>,
    ticks: Vec<TickRecord>,
    gaps: Vec<GapRecord>,
    texts: Texts,
    has_states: bool,
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

    /// Adds a gap up to the log's first record, in place of those that a flight recorder left there.
    fn note_missing_beginning(&mut self, server: &PlayerRecords, player: PlayerId) {
        let span = |of: &PlayerRecords| widest(of.streams().into_iter().filter_map(|list| list.span(0..list.len())));
        let Some(((from, _), (to, _))) = span(server).zip(span(&self.records)) else { return };
        self.gaps.retain(|gap| gap.to > to);
        self.gaps.push(GapRecord { from, to, player: Some(player), why: GapCause::BeganLate });
    }

    fn own_usercmds(&self) -> SortedSet<CommandSeq> {
        self.records.frames.iter().map(|frame| frame.command.seq).collect()
    }

    /// Keeps the server's usercmds from before the first one in the client's log. Returns the last of them.
    fn keep_earlier_usercmds(&mut self, server: &mut PlayerRecords) -> Option<CommandSeq> {
        let first = self.records.frames.iter().map(|frame| frame.command.seq).min();
        let earlier = server.frames.drain(..).filter(|frame| first.is_some_and(|first| frame.command.seq < first));
        let earlier: Vec<FrameRecord> = earlier.collect();
        let last = earlier.iter().map(|frame| frame.command.seq).max();
        self.records.frames.splice(..0, earlier);
        last
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
        self.gaps.move_by(by);
    }
}

/// Whether a server's log has all input of a player: as it arrived, or because nobody was there.
fn has_input(records: &PlayerRecords) -> bool {
    records.is_empty() || !records.frames.is_empty() || !records.heard.is_empty()
}

/// Returns the server's index and log, and each player's client side if there is one.
fn split_by_side(logs: Vec<Session>) -> Result<(usize, Session, Vec<Option<ClientSide>>), MergeError> {
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
            gaps: GapRecord::of_log(session.gaps, PlayerId(player as u16)),
            texts: session.texts,
            has_states: !session.states.is_empty(),
        })
    };
    let clients = sides.clients.iter().enumerate().map(&mut of).collect();
    let mut server = logs[sides.server].take().ok_or(MergeError::NoServer)?;
    server.header.unknown = sides.kinds;
    Ok((sides.server, server, clients))
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
    let whose = (side.log, player);
    let found = match side.has_no_packets() {
        true => offset::by_ticks(&side.ticks, ticks),
        false => offset::offset(&side.records, server, whose)?,
    };
    let found = check_offset(found, !server.reached.is_empty(), whose)?;
    match found {
        Some(found) => side.move_by(found.offset),
        None => (side.records, side.unknown, side.gaps) = Default::default(),
    }
    Ok(found)
}

/// Turns a missing offset into an error, unless the server never heard the client. Then the client does not affect the
/// session.
fn check_offset(
    found: Option<Offset>,
    is_heard: bool,
    (log, player): (usize, PlayerId),
) -> Result<Option<Offset>, MergeError> {
    if found.is_none() && is_heard { Err(MergeError::Unbounded { log, player }) } else { Ok(found) }
}

/// Returns the end of the longest client's log on the server's clock. `ends` are those of all logs on their own clocks.
fn longest(clients: &[AlignedClient], ends: &[Option<Micros>]) -> Option<Micros> {
    let end = |client: &AlignedClient| Some(ends[client.log?]? + client.offset?.offset);
    clients.iter().filter_map(end).max()
}

/// Returns the first packet of each client that the server received and that is missing after the beginning of the
/// client's log.
fn unknown_packets(session: &Session, sides: &[Option<ClientSide>]) -> impl Iterator<Item = UnknownPacket> {
    let unknown = |(player, (server, side)): (u16, (&PlayerRecords, &Option<ClientSide>))| {
        let side = side.as_ref().filter(|side| !side.has_no_packets())?;
        let is_known = |number| side.records.sent.binary_search_by_key(&number, |packet| packet.number).is_ok();
        let begins = side.records.sent.first().map_or(0, |packet| packet.number);
        let first = server.reached.iter().find(|arrival| arrival.number >= begins && !is_known(arrival.number))?;
        let (log, is_heard) = (side.log, has_input(server));
        Some(UnknownPacket { arrived_at: first.at, player: PlayerId(player), log, is_heard })
    };
    (0..).zip(session.players.iter().zip(sides)).filter_map(unknown)
}

/// How much longer than the server's log a client's log may be. With a longer one, the server's log ends early.
///
/// A client records on for a round trip after the server's last record. A killed server leaves its clients recording
/// until they time out.
const LATER_MOST: Micros = Micros::from_s(2);

/// The end of a session that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SessionCut {
    /// The last tick of the session.
    pub tick: Tick,
    /// Time of that tick on the server's clock.
    #[serde(rename = "at_us")]
    pub at: Micros,
    /// The player whose log lacks packets that the server received later. `None` if the server's log ends there, and a
    /// client's log continues for more than two seconds.
    pub player: Option<PlayerId>,
    /// Time of the last tick of a merge without this player's log. `None` without a player, or if the server's log
    /// lacks the player's usercmds.
    #[serde(rename = "without_us")]
    pub without: Option<Micros>,
}

/// Which records of the logs a merged session keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SessionEnd {
    /// The last tick. Executions and states of later ticks are not kept: the server's log ends inside such a tick.
    tick: Tick,
    /// The time of the last record.
    until: Micros,
    cut: Option<SessionCut>,
}

/// A packet that the server received and that the client's log lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UnknownPacket {
    arrived_at: Micros,
    player: PlayerId,
    log: usize,
    /// Whether the server's log has all input of the player.
    is_heard: bool,
}

impl SessionEnd {
    /// Returns the end of a session with this last tick. `ends` are the ends of the server's log and of the longest
    /// client's log, both on the server's clock. `last_before` returns the last tick before a time.
    fn of<E: From<MergeError>>(
        last: TickRecord,
        unknown: impl Iterator<Item = UnknownPacket>,
        (server, clients): (Option<Micros>, Option<Micros>),
        mut last_before: impl FnMut(Micros) -> Result<Option<TickRecord>, E>,
    ) -> Result<SessionEnd, E> {
        // The server runs nothing after its last tick, so later packets do not matter.
        let mut unknown: Vec<UnknownPacket> = unknown.filter(|packet| packet.arrived_at <= last.at).collect();
        unknown.sort_unstable();
        if let [first, later @ ..] = &unknown[..] {
            let tick = last_before(first.arrived_at)?.ok_or(MergeError::NothingLeft { log: first.log })?;
            let without = match later.first().filter(|_| first.is_heard) {
                Some(next) => last_before(next.arrived_at)?.map(|tick| tick.at),
                None => first.is_heard.then_some(last.at),
            };
            let cut = SessionCut { tick: tick.tick, at: tick.at, player: Some(first.player), without };
            return Ok(SessionEnd { tick: cut.tick, until: cut.at, cut: Some(cut) });
        }
        let early = server.zip(clients).filter(|(server, clients)| *clients - *server > LATER_MOST);
        Ok(SessionEnd {
            tick: last.tick,
            until: early.map_or(Micros(i64::MAX), |(server, _)| server),
            cut: early.map(|_| SessionCut { tick: last.tick, at: last.at, player: None, without: None }),
        })
    }
}

// Assigns logs to sides and selects the records that each contributes to the merged session.

/// The most that times may differ from zero, in µs. Sums of three such times do not overflow.
const TIME_MAX: i64 = 1 << 60;

/// Returns whether a time is within `TIME_MAX` of zero.
fn is_in_time((first, last): (Micros, Micros)) -> bool {
    -TIME_MAX <= first.0 && last.0 <= TIME_MAX
}

/// The beginning of the settings with which the recorder describes a log.
const RECORDER_SETTINGS: &str = "recorder.";

/// The logs of a session, by their indices in the caller's list.
#[derive(Clone, Debug)]
struct SideIndex {
    server: usize,
    /// Log of each player's client, if there is one.
    clients: Vec<Option<usize>>,
    /// The unknown kinds of the merged session: the server's, then custom kinds that only clients declare.
    kinds: Vec<UnknownKind>,
}

impl SideIndex {
    /// Finds the server's log and each client's, and checks that all belong to one session with the same rules.
    fn of(headers: &[&SessionHeader]) -> Result<SideIndex, MergeError> {
        let mut server: Option<usize> = None;
        let mut sides = Vec::new();
        for (log, header) in headers.iter().enumerate() {
            let side = header.side.ok_or(MergeError::NotASide { log })?;
            match (side.player, server) {
                (Some(player), _) => sides.push((player, log)),
                (None, None) => server = Some(log),
                (None, Some(first)) => return Err(MergeError::TwoServers { first, log }),
            }
        }
        let server = server.ok_or(MergeError::NoServer)?;
        let players = headers[server].players.len();
        for (player, log) in &sides {
            check_header(headers[server], headers[*log], *log)?;
            if usize::from(player.0) >= players {
                return Err(MergeError::OtherBuild { log: *log, what: "number of players" });
            }
        }
        sides.sort_unstable();
        if let Some(pair) = sides.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(MergeError::SamePlayer { first: pair[0].1, log: pair[1].1, player: pair[0].0 });
        }
        let mut clients = vec![None; players];
        sides.into_iter().for_each(|(player, log)| clients[usize::from(player.0)] = Some(log));
        let mut kinds = headers[server].unknown.clone();
        for log in clients.iter().flatten() {
            for kind in headers[*log].unknown.iter().filter(|kind| kind.is_custom()) {
                if !kinds.iter().any(|known| known.name == kind.name) {
                    kinds.push(kind.clone());
                }
            }
        }
        Ok(SideIndex { server, clients, kinds })
    }

    /// Returns an error if a player has no log, and the server's log lacks its input. `has_input` tells whether the
    /// server's log has all input of a player: it may be a slot that nobody used.
    fn check_missing(&self, has_input: impl Fn(usize) -> bool) -> Result<(), MergeError> {
        let is_missing = |(player, log): &(usize, &Option<usize>)| log.is_none() && !has_input(*player);
        let missing = self.clients.iter().enumerate().filter(is_missing);
        let players: Vec<PlayerId> = missing.map(|(player, _)| PlayerId(player as u16)).collect();
        if players.is_empty() { Ok(()) } else { Err(MergeError::Missing { players, all: self.clients.len() }) }
    }

    /// Returns the player whose log it is; `None` for the server's.
    fn player_of(&self, log: usize) -> Option<usize> {
        self.clients.iter().position(|of| *of == Some(log))
    }

    /// Returns the custom kind of these records; `None` if no game declares it.
    fn own_kind(&self, records: &UnknownRecords) -> Option<&UnknownKind> {
        self.kinds.iter().find(|kind| kind.name == records.kind && kind.is_custom())
    }

    /// Returns the part of a stretch that goes into the merged session. Of entirely unknown kinds the clock is unknown:
    /// the merge keeps the server's rows and drops the clients'.
    fn share(&self, log: usize, mut stretch: SessionStretch) -> SessionStretch {
        let mut taken: Vec<PlayerRecords> = self.clients.iter().map(|_| PlayerRecords::default()).collect();
        match self.player_of(log) {
            Some(player) => {
                let records = stretch.players.get_mut(player).map(std::mem::take).unwrap_or_default();
                taken[player].take(ClockOwner::Client, records);
                let unknown = stretch.unknown.into_iter().filter(is_of_clients).collect();
                let gaps = GapRecord::of_log(stretch.gaps, PlayerId(player as u16));
                SessionStretch { players: taken, unknown, gaps, texts: stretch.texts, ..SessionStretch::default() }
            }
            None => {
                for ((taken, log), records) in taken.iter_mut().zip(&self.clients).zip(stretch.players) {
                    match log {
                        Some(_) => taken.take(ClockOwner::Server, PlayerRecords { heard: Vec::new(), ..records }),
                        None => *taken = records,
                    }
                }
                SessionStretch { players: taken, ..stretch }
            }
        }
    }
}

/// Returns whether the kinds that both sides declare are equal. One side may have custom kinds of its own.
fn have_equal_kinds(server: &[UnknownKind], client: &[UnknownKind]) -> bool {
    let is_in = |kind: &UnknownKind, others: &[UnknownKind]| match others.iter().find(|other| other.name == kind.name) {
        Some(other) => other == kind,
        None => kind.is_custom(),
    };
    server.iter().all(|kind| is_in(kind, client)) && client.iter().all(|kind| is_in(kind, server))
}

/// Checks that a client's log belongs to the server's session and has the same rules.
fn check_header(server: &SessionHeader, client: &SessionHeader, log: usize) -> Result<(), MergeError> {
    let session = |header: &SessionHeader| header.side.map(|side| side.session);
    if session(server) != session(client) {
        return Err(MergeError::OtherSession { log });
    }
    // A side need not know all settings, such as those of other players. Those of the recorder concern one log.
    let own = client.side.and_then(|side| side.player);
    let is_shared =
        |key: &str| player_of(key).is_none_or(|player| Some(player) == own) && !key.starts_with(RECORDER_SETTINGS);
    for (key, here) in client.settings.iter().filter(|(key, _)| is_shared(key)) {
        if let Some(there) = value_of_setting(&server.settings, key).filter(|there| there != here) {
            let (key, here, there) = (key.clone(), here.clone(), there.to_owned());
            return Err(MergeError::OtherSetting { log, key, here, there });
        }
    }
    let same = [
        ("game", server.game == client.game),
        ("rules", server.rules == client.rules),
        ("seed", server.seed == client.seed),
        ("kinds of records", have_equal_kinds(&server.unknown, &client.unknown)),
        ("fields of usercmds", server.usercmd == client.usercmd),
        ("number of players", server.players.len() == client.players.len()),
        ("classes of entities", server.classes == client.classes),
    ];
    match same.into_iter().find(|(_, is_same)| !is_same) {
        Some((what, _)) => Err(MergeError::OtherBuild { log, what }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{
        ArrivalRecord, DamageRecord, ExecutionRecord, PacketRecord, PlayerInfo, PresenceRecord, SessionStretch,
        ShotRecord, SnapshotRecord, StateKey,
    };
    use crate::recorder::Description;
    use crate::units::{SnapshotSeq, Tick};
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

    /// The settings say which of a player's usercmds have the times of their arrivals.
    #[test]
    fn usercmds_of_clients_have_the_times_of_their_frames() {
        let as_received = |logs: Vec<Session>| {
            let settings = merge(logs).expect("merged").session.header.settings;
            crate::recorder::last_usercmd_as_received(&settings, 0).map(|last| last.0)
        };
        assert_eq!(as_received(sides(1)), None, "all usercmds are the client's");
        assert_eq!(as_received(sides(5)), Some(4), "the first usercmds are the server's");
        let without_packets = |mut logs: Vec<Session>| {
            logs[1].players[0].sent.clear();
            logs[1].ticks = logs[0].ticks.clone();
            logs
        };
        assert_eq!(as_received(without_packets(sides(1))), None);
        assert_eq!(as_received(without_packets(sides(5))), Some(u32::MAX));
        assert_eq!(as_received(vec![sides(1).swap_remove(0)]), Some(u32::MAX), "there is no client's log");
    }

    /// A missing log concerns its player alone.
    #[test]
    fn only_the_usercmds_of_a_player_without_a_log_have_the_times_of_their_arrivals() {
        let mut logs = sides(1);
        for log in &mut logs {
            log.header.players.push(PlayerInfo { name: "p1".to_owned(), recorded: true });
            log.players.push(PlayerRecords::default());
        }
        logs[0].players[1].frames.push(frame(1, at(2)));
        let settings = merge_both_ways(logs).session.header.settings;
        let of = |player| crate::recorder::last_usercmd_as_received(&settings, player).is_some();
        assert_eq!((of(0), of(1)), (false, true), "{settings:?}");
    }

    #[test]
    fn a_log_that_begins_late_lacks_only_its_own_beginning() {
        let merged = merge(sides(12)).unwrap();
        assert_eq!((merged.cut, merged.clients[0].begins_late, merged.session.ticks.len()), (None, true, 20));
        let frames = &merged.session.players[0].frames;
        assert_eq!(frames.iter().map(|frame| frame.command.seq.0).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
        let received = |number: u32| frames[number as usize - 1].at == at(number) - Micros(1_000);
        assert_eq!((received(11), received(12)), (true, false), "each by the log that has it first");
        let begins = GapRecord {
            from: at(1) - Micros(1_000),
            to: at(12) - Micros(3_000),
            player: Some(PlayerId(0)),
            why: GapCause::BeganLate,
        };
        assert_eq!(merged.session.gaps, [begins], "the packets from before are not lost");
        assert_eq!(merged.session.first_hole(), None, "the server's log has the usercmds");
        let mut saved = sides(12);
        saved[1].gaps = vec![GapRecord { from: at(3), to: at(11), why: GapCause::Paused, player: None }];
        assert_eq!(merge(saved).unwrap().session.gaps, [begins], "a flight recorder notes a gap there");
        let whole = merge(sides(1)).unwrap();
        assert_eq!((whole.clients[0].begins_late, &whole.session.gaps[..]), (false, &[][..]));
    }

    /// A gap that ends after the session is not kept.
    #[test]
    fn gaps_of_a_client_are_those_of_its_player() {
        let (mut logs, clock) = (sides(1), Micros(-7_000));
        let gap = |from: u32, to: u32, player| {
            let player = Option::map(player, PlayerId);
            GapRecord { from: at(from), to: at(to), player, ..GapRecord::default() }
        };
        logs[0].gaps = vec![gap(2, 9, None)];
        let of_client = &mut logs[1];
        of_client.gaps = vec![gap(4, 5, Some(1)), gap(5, 6, None), gap(7, 9, Some(0)), gap(12, 13, None)];
        of_client.players[0].sent.truncate(12);
        of_client.states.push(StateKey { tick: Tick(3), ..StateKey::default() }, &[1]);
        of_client.gaps.move_by(clock);
        of_client.players[0].move_by(ClockOwner::Client, clock);
        let MergedSession { session, clients, .. } = merge_both_ways(logs);
        assert!(clients[0].has_states && session.states.is_empty());
        assert_eq!(session.gaps, [gap(5, 6, Some(0)), gap(2, 9, None), gap(7, 9, Some(0))]);
    }

    #[test]
    fn a_later_missing_packet_is_the_end_of_a_log() {
        let mut logs = sides(1);
        logs[1].players[0].sent.truncate(12);
        let cut = |logs| merge_both_ways(logs).cut.map(|cut| (cut.tick, cut.without));
        assert_eq!(cut(logs.clone()), Some((Tick(12), Some(at(20)))), "the server's log has the usercmds");
        logs[0].players[0].frames.clear();
        assert_eq!(cut(logs), Some((Tick(12), None)));
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

    /// Merges logs in memory and as streams, and checks that both give the same.
    fn merge_both_ways(logs: Vec<Session>) -> MergedSession {
        let headers: Vec<_> = logs.iter().map(|log| log.header.clone()).collect();
        let mut streams = WholeLogs(logs.iter().map(|log| (log.clone(), false)).collect());
        let plan = MergePlan::of(&headers.iter().collect::<Vec<_>>(), &mut streams).expect("a plan");
        let mut streamed = Session::new(plan.header.clone());
        let put = plan.put_together(&mut streams, &mut |stretch, _| {
            streamed.append(stretch);
            Ok::<_, std::convert::Infallible>(())
        });
        put.expect("logs in memory");
        let merged = merge(logs).expect("merged");
        assert_eq!((&merged.session.header, &merged.clients, merged.cut), (&plan.header, &plan.clients, plan.cut));
        streamed.put_in_order();
        assert_eq!((&merged.session.players, &merged.session.damage), (&streamed.players, &streamed.damage));
        assert_eq!(merged.session.gaps, streamed.gaps);
        merged
    }

    /// A round can end with an intermission without ticks.
    #[test]
    fn records_after_the_last_tick_are_kept() {
        let (mut logs, last) = (sides(1), at(20));
        let of_server = &mut logs[0].players[0];
        of_server.judged.push(ShotRecord { at: last + Micros(50), ..ShotRecord::default() });
        of_server.snapshots[19].at = last + Micros(100);
        of_server.reached.push(ArrivalRecord { number: 21, at: last + Micros(400_000) });
        of_server.presence.push(PresenceRecord { at: last + Micros::from_s(3), ..PresenceRecord::default() });
        logs[0].damage.push(DamageRecord { at: last + Micros(60), ..DamageRecord::default() });
        let of_client = &mut logs[1].players[0];
        of_client.frames.push(frame(21, last + Micros(390_000)));
        let packet =
            PacketRecord { number: 21, at: last + Micros(390_000), newest: CommandSeq(21), ..of_client.sent[0] };
        of_client.sent.push(packet);
        let (server, client) = (logs[0].clone(), logs[1].clone());
        let merged = merge_both_ways(logs);
        let (all, offset) = (&merged.session.players[0], merged.clients[0].offset.expect("packets").offset);
        assert_eq!((merged.cut, &merged.session.damage), (None, &server.damage));
        assert_eq!((&all.judged, &all.snapshots), (&server.players[0].judged, &server.players[0].snapshots));
        assert_eq!((&all.reached, &all.presence), (&server.players[0].reached, &server.players[0].presence));
        assert_eq!((all.frames.len(), all.sent.len(), all.received.len()), (21, 21, 20));
        let received = client.players[0].received.last().map(|arrival| arrival.at + offset);
        assert_eq!(all.received.last().map(|arrival| arrival.at), received);
    }

    /// The client's log may lack what arrives after the last tick: the server does not run it.
    #[test]
    fn a_packet_that_is_missing_after_the_last_tick_cuts_nothing() {
        let mut logs = sides(1);
        let late = ArrivalRecord { number: 30, at: at(20) + Micros(9_000) };
        logs[0].players[0].reached.push(late);
        let merged = merge_both_ways(logs);
        assert_eq!((merged.cut, merged.session.players[0].reached.last()), (None, Some(&late)));
    }

    /// A killed server leaves clients that record until they time out.
    #[test]
    fn a_client_that_records_on_without_its_server_is_cut() {
        let with_last_frame = |after: Micros| {
            let mut logs = sides(1);
            logs[0].players[0].snapshots[19].at = at(20) + Micros(100);
            // Of a tick that the log does not have.
            let inside = ExecutionRecord { tick: Tick(21), command: CommandSeq(20), ..ExecutionRecord::default() };
            logs[0].players[0].executed.push(inside);
            let of_client = &mut logs[1].players[0];
            let sent_at = at(20) + after;
            of_client.frames.push(frame(21, sent_at));
            let packet = PacketRecord { number: 21, at: sent_at, newest: CommandSeq(21), ..of_client.sent[0] };
            of_client.sent.push(packet);
            of_client.received[19].at = at(20) + Micros(3_000);
            merge_both_ways(logs)
        };
        let counts = |merged: &MergedSession| {
            let all = &merged.session.players[0];
            (all.frames.len(), all.sent.len(), all.received.len(), all.snapshots.len(), all.executed.len())
        };
        let goes_on = with_last_frame(Micros::from_s(1));
        assert_eq!((goes_on.cut, counts(&goes_on)), (None, (21, 21, 20, 20, 0)));
        let early = with_last_frame(Micros::from_s(3));
        assert_eq!(early.cut, Some(SessionCut { tick: Tick(20), at: at(20), player: None, without: None }));
        assert_eq!(counts(&early), (20, 20, 19, 20, 0), "the last arrival is later than the server's last record");
    }
}

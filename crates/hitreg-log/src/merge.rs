//! Merges the logs of a session's sides, the server's and every client's, into one session. Each side recorded with its
//! own clock.
//!
//! A client's pipeline depends only on differences of its own times. Adding one constant offset in whole microseconds
//! to them changes nothing in it. The server depends only on the arrival times of the client's packets. So a merged
//! session replays bit for bit with any offset at which every packet arrives after it was sent.

mod error;
mod offset;
mod packets;
mod plan;
mod survey;

pub use error::{MergeError, MergeErrorKind};
pub use offset::ClockOffset;
pub use plan::{MergePlan, SideLogs};

use serde::Serialize;

use crate::record::{
    ClockOwner, GapRecord, OF_PLAYERS, PlayerRecords, Session, SessionChunk, SessionHeader, TickRecord, UnknownKind,
    UnknownRecords, player_of, value_of_setting,
};
use crate::units::{Micros, PlayerId, Tick};

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
    pub offset: Option<ClockOffset>,
    /// Whether the log has no packets, so that ticks with equal numbers give the offset.
    pub is_by_ticks: bool,
    /// Whether the server received packets or usercmds that are older than the log. The earlier usercmds are the server's.
    pub begins_late: bool,
    /// Whether the log has states, which are left out: the session has the server's.
    pub has_states: bool,
    /// The most by which the time of a client frame is before that of an earlier one; zero if times never run backward.
    /// If they do, the client's clock was set back, and no single offset fits all its times.
    pub set_back: Micros,
    /// How many usercmds are in the log and in the server's log as received.
    pub compared_usercmds: usize,
    /// How many of these have other buttons, angles or speeds in the server's log. The session has the client's.
    pub differing_usercmds: usize,
    /// Time of the last tick of a merge without the log. `None` without a log, or if the server's log lacks the usercmds.
    pub without: Option<Micros>,
}

/// Merges the sides of one session in memory, given in any order. A client without a log takes part as the server heard
/// it, if the server recorded that. [`MergePlan`] merges logs that need not fit into memory.
///
/// # Errors
/// When the logs are not the sides of one session, a side is missing or given twice, or no clock offset fits.
pub fn merge(logs: Vec<Session>) -> Result<MergedSession, MergeError> {
    let (headers, mut logs) = SessionLogs::of(logs);
    let plan = MergePlan::new(&headers.iter().collect::<Vec<_>>(), &mut logs, true)?;
    let mut session = Session::new(plan.header.clone());
    plan.put_together(&mut logs, &mut |chunk, _| {
        session.append(chunk);
        Ok(())
    })?;
    session.put_in_order();
    Ok(MergedSession { session, clients: plan.clients, cut: plan.cut })
}

/// Logs in memory, each one chunk, and whether each was read.
struct SessionLogs(Vec<(SessionChunk, bool)>);

impl SessionLogs {
    fn of(logs: Vec<Session>) -> (Vec<SessionHeader>, SessionLogs) {
        let headers = logs.iter().map(|log| log.header.clone()).collect();
        (headers, SessionLogs(logs.into_iter().map(|log| (log.without_header(), false)).collect()))
    }
}

impl SideLogs for SessionLogs {
    type Error = MergeError;

    fn next(&mut self, log: usize) -> Result<Option<SessionChunk>, MergeError> {
        let (session, is_read) = &mut self.0[log];
        let is_first = !std::mem::replace(is_read, true);
        Ok(is_first.then(|| session.clone()))
    }

    fn close(&mut self, log: usize) {
        self.0[log].1 = false;
    }
}

/// How much longer than the server's log a client's log may be. With a longer one, the server's log ends early.
///
/// A client records on for a round trip after the server's last record. A killed server leaves its clients recording
/// until they time out.
const CLIENT_EXCESS_MAX: Micros = Micros::from_s(2);

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
    /// Returns the time of the last tick of a merge without the log of a player. The server's log has all its input.
    fn without(&self, player: PlayerId, last: TickRecord) -> Option<Micros> {
        match self.cut {
            Some(cut) if cut.player == Some(player) => cut.without,
            Some(cut) => Some(cut.at),
            None => Some(last.at),
        }
    }

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
            let tick = last_before(first.arrived_at)?.ok_or(MergeErrorKind::NothingLeft.of(first.log))?;
            let without = match later.first().filter(|_| first.is_heard) {
                Some(next) => last_before(next.arrived_at)?.map(|tick| tick.at),
                None => first.is_heard.then_some(last.at),
            };
            let cut = SessionCut { tick: tick.tick, at: tick.at, player: Some(first.player), without };
            return Ok(SessionEnd { tick: cut.tick, until: cut.at, cut: Some(cut) });
        }
        let early = server.zip(clients).filter(|(server, clients)| *clients - *server > CLIENT_EXCESS_MAX);
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
    /// Whether usercmds of the merged session may have bytes: in any log.
    usercmd_bytes: bool,
}

impl SideIndex {
    /// Finds the server's log and each client's, and checks that all belong to one session with the same rules.
    fn of(headers: &[&SessionHeader]) -> Result<SideIndex, MergeError> {
        let mut server: Option<usize> = None;
        let mut sides = Vec::new();
        for (log, header) in headers.iter().enumerate() {
            let side = header.side.ok_or(MergeErrorKind::NotASide.of(log))?;
            match (side.player, server) {
                (Some(player), _) => sides.push((player, log)),
                (None, None) => server = Some(log),
                (None, Some(first)) => return Err(MergeErrorKind::TwoServers { first }.of(log)),
            }
        }
        let server = server.ok_or(MergeError { log: None, kind: MergeErrorKind::NoServer })?;
        let players = headers[server].players.len();
        for (player, log) in &sides {
            check_header(headers[server], headers[*log], *log)?;
            if usize::from(player.0) >= players {
                return Err(MergeErrorKind::OtherBuild { what: "number of players" }.of(*log));
            }
        }
        sides.sort_unstable();
        if let Some(pair) = sides.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(MergeErrorKind::SamePlayer { first: pair[0].1, player: pair[0].0 }.of(pair[1].1));
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
        let usercmd_bytes = headers.iter().any(|header| header.usercmd_bytes);
        Ok(SideIndex { server, clients, kinds, usercmd_bytes })
    }

    /// Returns an error if a player has no log, and the server's log lacks its input. `has_input` tells whether the
    /// server's log has all input of a player: it may be a slot that nobody used.
    fn check_missing(&self, has_input: impl Fn(usize) -> bool) -> Result<(), MergeError> {
        let is_missing = |(player, log): &(usize, &Option<usize>)| log.is_none() && !has_input(*player);
        let missing = self.clients.iter().enumerate().filter(is_missing);
        let players: Vec<PlayerId> = missing.map(|(player, _)| PlayerId(player as u16)).collect();
        if players.is_empty() {
            return Ok(());
        }
        Err(MergeError { log: None, kind: MergeErrorKind::Missing { players, all: self.clients.len() } })
    }

    /// Returns the server's log and those of the clients in the order of players.
    fn all(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.server).chain(self.clients.iter().copied().flatten())
    }

    /// Returns the player whose log it is; `None` for the server's.
    fn player_of(&self, log: usize) -> Option<usize> {
        self.clients.iter().position(|of| *of == Some(log))
    }

    /// Returns the part of a chunk that may go into the merged session. The server's part includes the input that it
    /// received. Of entirely unknown kinds the clock is unknown: the merge keeps the server's rows and drops the
    /// clients'.
    fn share(&self, log: usize, mut chunk: SessionChunk) -> SessionChunk {
        let Some(player) = self.player_of(log) else {
            for (records, _) in chunk.players.iter_mut().zip(&self.clients).filter(|(_, log)| log.is_some()) {
                let frames = std::mem::take(&mut records.frames);
                records.take(ClockOwner::Client, PlayerRecords { frames, ..PlayerRecords::default() });
            }
            return chunk;
        };
        let mut players = vec![PlayerRecords::default(); self.clients.len()];
        let own = chunk.players.get_mut(player).map(std::mem::take).unwrap_or_default();
        players[player].take(ClockOwner::Client, own);
        let of_clients = |records: &UnknownRecords| {
            let is_column = OF_PLAYERS.contains(&(&*records.kind, ClockOwner::Client));
            is_column || self.kinds.iter().any(|kind| kind.name == records.kind && kind.is_custom())
        };
        let unknown = chunk.unknown.into_iter().filter(of_clients).collect();
        let gaps = GapRecord::of_log(chunk.gaps, PlayerId(player as u16));
        SessionChunk { players, unknown, gaps, texts: chunk.texts, ..SessionChunk::default() }
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
        return Err(MergeErrorKind::OtherSession.of(log));
    }
    // A side need not know all settings, such as those of other players. Those of the recorder concern one log.
    let own = client.side.and_then(|side| side.player);
    let is_shared =
        |key: &str| player_of(key).is_none_or(|player| Some(player) == own) && !key.starts_with(RECORDER_SETTINGS);
    for (key, here) in client.settings.iter().filter(|(key, _)| is_shared(key)) {
        if let Some(there) = value_of_setting(&server.settings, key).filter(|there| there != here) {
            let (key, here, there) = (key.clone(), here.clone(), there.to_owned());
            return Err(MergeErrorKind::OtherSetting { key, here, there }.of(log));
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
        Some((what, _)) => Err(MergeErrorKind::OtherBuild { what }.of(log)),
        // The client's usercmds replace the server's.
        None if server.usercmd_bytes && !client.usercmd_bytes => Err(MergeErrorKind::NoBytes.of(log)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{
        ArrivalRecord, DamageRecord, ExecutionRecord, FrameRecord, GapCause, PacketRecord, PlayerInfo, PresenceRecord,
        RecordStream, ShotRecord, SnapshotRecord, StateKey,
    };
    use crate::recorder::Description;
    use crate::units::{CommandSeq, SnapshotSeq};
    use crate::usercmd::Usercmd;

    fn at(number: u32) -> Micros {
        Micros(i64::from(number) * 10_000)
    }

    fn frame(number: u32, at: Micros) -> FrameRecord {
        FrameRecord { at, command: Usercmd { seq: CommandSeq(number), ..Usercmd::default() }, ..FrameRecord::default() }
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

    /// The client's usercmds replace the server's, so only the client's bytes are kept without loss.
    #[test]
    fn usercmds_may_have_bytes_on_the_clients_side_only() {
        let with_bytes = |begins: u32, sides_with_bytes: &[usize]| {
            let mut logs = sides(begins);
            for side in sides_with_bytes {
                logs[*side].header.usercmd_bytes = true;
                logs[*side].players[0].frames.iter_mut().for_each(|frame| frame.bytes = vec![7].into());
            }
            logs
        };
        let counts = |merged: MergedSession| {
            let frames = &merged.session.players[0].frames;
            let bytes = frames.iter().filter(|frame| !frame.bytes.is_empty()).count();
            (merged.session.header.usercmd_bytes, frames.len(), bytes)
        };
        assert_eq!(counts(merge_both_ways(with_bytes(1, &[1]))), (true, 20, 20));
        assert_eq!(counts(merge(with_bytes(12, &[1])).expect("merged")), (true, 20, 9), "the first are the server's");
        assert_eq!(counts(merge_both_ways(with_bytes(1, &[0, 1]))), (true, 20, 20));
        assert_eq!(counts(merge_both_ways(with_bytes(1, &[]))), (false, 20, 0));
        assert_eq!(merge(with_bytes(1, &[0])).unwrap_err(), MergeErrorKind::NoBytes.of(1));
        let server_alone = vec![with_bytes(1, &[0]).swap_remove(0)];
        assert_eq!(counts(merge(server_alone).expect("merged")), (true, 20, 20));
    }

    #[test]
    fn a_client_clock_that_was_set_back_is_noticed() {
        assert_eq!(merge_both_ways(sides(1)).clients[0].set_back, Micros::ZERO);
        let mut logs = sides(1);
        logs[1].players[0].frames[10..].iter_mut().for_each(|frame| frame.at = frame.at - Micros(15_000));
        assert_eq!(merge_both_ways(logs).clients[0].set_back, Micros(5_000), "frames are 10 ms apart");
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
        assert_eq!(merged.session.first_gap(), None, "the server's log has the usercmds");
        let mut saved = sides(12);
        saved[1].gaps = vec![GapRecord { from: at(3), to: at(11), why: GapCause::Paused, player: None }];
        assert_eq!(merge(saved).unwrap().session.gaps, [begins], "a flight recorder notes a gap there");
        let whole = merge(sides(1)).unwrap();
        assert_eq!((whole.clients[0].begins_late, &whole.session.gaps[..]), (false, &[][..]));
    }

    fn numbers(frames: &[FrameRecord]) -> Vec<u32> {
        frames.iter().map(|frame| frame.command.seq.0).collect()
    }

    /// The server's part after tick 10, with a usercmd that has not run, and the client's log from packet `begins`.
    fn sides_of_part(begins: u32) -> Vec<Session> {
        let mut logs = sides(begins);
        let server = &mut logs[0];
        server.header.settings.push((crate::record::BEGINS_AFTER_TICK.to_owned(), "10".to_owned()));
        server.ticks.retain(|tick| tick.tick > Tick(10));
        let of_server = &mut server.players[0];
        of_server.frames.retain(|frame| frame.command.seq >= CommandSeq(10));
        of_server.reached.retain(|arrival| arrival.number > 10);
        of_server.snapshots.retain(|snapshot| snapshot.seq > SnapshotSeq(10));
        of_server.presence.push(PresenceRecord { tick: Tick(1), at: at(1), ..PresenceRecord::default() });
        logs
    }

    /// Usercmds and packets from before the part are neither counted nor lost.
    #[test]
    fn a_part_of_the_servers_log_begins_the_session() {
        let mut logs = sides_of_part(1);
        let before = |from: u32, to: u32| GapRecord { from: at(from), to: at(to), ..GapRecord::default() };
        logs[1].gaps = vec![before(2, 3), before(5, 14)];
        let merged = merge_both_ways(logs);
        let of = &merged.session.players[0];
        assert_eq!(numbers(&of.frames), (10..=20).collect::<Vec<_>>(), "usercmd 10 had not run");
        assert_eq!(of.sent.iter().map(|sent| sent.number).collect::<Vec<_>>(), (11..=20).collect::<Vec<_>>());
        assert_eq!(of.received.iter().map(|got| got.number).collect::<Vec<_>>(), (11..=20).collect::<Vec<_>>());
        let begins_at = at(11) - Micros(1_000);
        let begun = GapRecord { player: Some(PlayerId(0)), from: begins_at, ..before(5, 14) };
        assert_eq!((merged.clients[0].begins_late, &merged.session.gaps[..]), (false, &[begun][..]));
        assert_eq!(merge_both_ways(sides_of_part(1)).session.gaps, []);
    }

    /// A recorder can cut a client's log between a usercmd and its packet.
    #[test]
    fn a_usercmd_that_only_the_server_has_is_kept() {
        let mut logs = sides_of_part(11);
        logs[0].players[0].frames.retain(|frame| frame.command.seq > CommandSeq(10));
        logs[1].players[0].frames.remove(0);
        let merged = merge(logs).expect("merged");
        assert_eq!((merged.cut, merged.clients[0].begins_late), (None, true));
        assert_eq!(numbers(&merged.session.players[0].frames), (11..=20).collect::<Vec<_>>());
        let settings = &merged.session.header.settings;
        assert_eq!(crate::recorder::last_usercmd_as_received(settings, 0), Some(CommandSeq(11)));
        assert_eq!(merged.session.gaps, [], "the client's log has a packet from before the part's first record");
        let merged = merge(sides_of_part(14)).expect("merged");
        let gap = merged.session.gaps.first().expect("a gap");
        assert_eq!((gap.from, gap.why), (at(11) - Micros(1_000), GapCause::BeganLate), "not from the joining on");
        assert_eq!(merged.session.first_gap(), None);
    }

    /// The client's log has no records between packets 7 and 13.
    fn sides_with_gap() -> Vec<Session> {
        let mut logs = sides(1);
        let sent = logs[1].players[0].sent.clone();
        let is_kept = |number: u32| !(8..13).contains(&number);
        let of_client = &mut logs[1].players[0];
        of_client.frames.retain(|frame| is_kept(frame.command.seq.0));
        of_client.sent.retain(|packet| is_kept(packet.number));
        of_client.received.retain(|arrival| is_kept(arrival.number));
        logs[1].gaps = vec![GapRecord { from: sent[6].at, to: sent[12].at, why: GapCause::Overrun, player: None }];
        logs
    }

    #[test]
    fn packets_in_a_gap_of_a_client_do_not_end_the_session() {
        let merged = merge(sides_with_gap()).expect("merged");
        let (frames, offset) = (&merged.session.players[0].frames, merged.clients[0].offset.expect("packets").offset);
        assert_eq!((merged.cut, numbers(frames)), (None, (1..=20).collect::<Vec<_>>()), "the server's are there");
        assert!(frames.iter().zip(1..).all(|(frame, number)| frame.at == at(number) - Micros(3_000) + offset));
        let gaps: Vec<_> = merged.session.gaps.iter().map(|gap| (gap.player, gap.why)).collect();
        assert_eq!(gaps, [(Some(PlayerId(0)), GapCause::Overrun)]);
        assert_eq!(merged.clients[0].without, Some(at(20)), "the server's log has all usercmds");
        assert_eq!(crate::recorder::last_usercmd_as_received(&merged.session.header.settings, 0), None);
        assert!(planned(sides_with_gap()).0.in_memory, "the usercmds of both logs are compared");
        let mut logs = sides_with_gap();
        logs[0].players[0].frames.clear();
        let merged = merge_both_ways(logs);
        assert_eq!(
            (merged.cut, merged.clients[0].without),
            (None, None),
            "the session has the gap, and nothing fills it"
        );
        let mut logs = sides_with_gap();
        logs[1].gaps.clear();
        let cut = merge(logs).expect("merged").cut.map(|cut| cut.tick);
        assert_eq!(cut, Some(Tick(7)), "nothing explains the missing packets");
    }

    /// The recorder notes its gap from the last record before it to the first after it.
    #[test]
    fn a_gap_explains_only_the_packets_that_are_missing_in_it() {
        let cut = |(from, to): (i64, i64)| {
            let mut logs = sides_with_gap();
            let [gap] = &mut logs[1].gaps[..] else { panic!("one gap") };
            (gap.from, gap.to) = (gap.from + Micros::from_ms(from), gap.to - Micros::from_ms(to));
            merge(logs).expect("merged").cut.map(|cut| cut.tick)
        };
        assert_eq!([cut((0, 0)), cut((15, 15)), cut((20, 20))], [None; 3], "packets are 10 ms apart");
        assert_eq!([cut((29, 29)), cut((29, 0)), cut((0, 29))], [Some(Tick(7)); 3]);
    }

    /// Usercmd numbers begin again after number 10.
    #[test]
    fn nothing_fills_a_gap_of_a_client_whose_usercmd_numbers_begin_again() {
        let mut logs = sides_with_gap();
        for log in &mut logs {
            let of = &mut log.players[0];
            let again = |seq: &mut CommandSeq| seq.0 = if seq.0 > 10 { seq.0 - 10 } else { seq.0 };
            of.frames.iter_mut().for_each(|frame| again(&mut frame.command.seq));
            of.sent.iter_mut().for_each(|packet| again(&mut packet.newest));
        }
        let expected: Vec<u32> = (1..=7).chain(3..=10).collect();
        assert_eq!(numbers(&logs[1].players[0].frames), expected);
        let merged = merge(logs).expect("merged");
        let frames = &merged.session.players[0].frames;
        assert_eq!((numbers(frames), merged.cut), (expected, None));
        assert!(frames.is_sorted_by_key(|frame| frame.at));
    }

    #[test]
    fn usercmds_that_differ_from_those_that_the_server_received_are_counted() {
        let counts = |change: &dyn Fn(&mut crate::usercmd::Input)| {
            let mut logs = sides(1);
            logs[1].players[0].frames[4..7].iter_mut().for_each(|frame| change(&mut frame.command.input));
            let client = merge_both_ways(logs).clients[0];
            (client.compared_usercmds, client.differing_usercmds)
        };
        assert_eq!(counts(&|_| {}), (20, 0));
        assert_eq!(counts(&|input| input.buttons = 1), (20, 3));
        assert_eq!(counts(&|input| input.forwardmove = 200.0), (20, 3));
        assert_eq!(counts(&|input| input.viewangles.y = 180.0), (20, 3));
        assert_eq!(counts(&|input| input.viewangles.y = 359.0), (20, 0), "a server may have steps of 1/256 turn");
        assert_eq!(merge(vec![sides(1).swap_remove(0)]).expect("merged").clients[0].compared_usercmds, 0);
        // Numbers that begin again belong to different usercmds.
        let mut logs = sides(1);
        let again = frame(1, at(20) - Micros(2_000));
        logs[1].players[0].frames.push(again);
        assert_eq!(merge(logs).expect("merged").clients[0].compared_usercmds, 0);
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
        assert_eq!(merge(logs).unwrap_err(), MergeErrorKind::BeginsLate { player: PlayerId(0) }.of(1));
    }

    /// The plan for logs in memory, which it reads as streams if possible.
    fn planned(logs: Vec<Session>) -> (MergePlan, SessionLogs) {
        let (headers, mut logs) = SessionLogs::of(logs);
        (MergePlan::of(&headers.iter().collect::<Vec<_>>(), &mut logs).expect("a plan"), logs)
    }

    #[test]
    fn a_log_that_begins_late_is_merged_in_memory() {
        assert!(planned(sides(12)).0.in_memory);
        let plan = planned(sides(1)).0;
        assert!(plan.cut.is_none() && !plan.in_memory);
    }

    /// Merges logs in memory and as streams, and checks that both give the same.
    fn merge_both_ways(logs: Vec<Session>) -> MergedSession {
        let (plan, mut streams) = planned(logs.clone());
        assert!(!plan.in_memory);
        let mut streamed = Session::new(plan.header.clone());
        let put = plan.put_together(&mut streams, &mut |chunk, _| {
            streamed.append(chunk);
            Ok(())
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

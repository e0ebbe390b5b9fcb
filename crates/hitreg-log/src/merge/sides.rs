//! Assigns logs to sides and selects the records that each contributes to the merged session.

use super::MergeError;
use crate::record::player_of;
use crate::record::{ClockOwner, PlayerRecords, SessionHeader, SessionStretch, UnknownKind, UnknownRecords};
use crate::units::{Micros, PlayerId};

/// The most that times may differ from zero, in µs. Sums of three such times do not overflow.
const TIME_MAX: i64 = 1 << 60;

/// Returns whether a time is within `TIME_MAX` of zero.
pub(super) fn is_in_time((first, last): (Micros, Micros)) -> bool {
    -TIME_MAX <= first.0 && last.0 <= TIME_MAX
}

/// The beginning of the settings with which the recorder describes a log.
const RECORDER_SETTINGS: &str = "recorder.";

/// The logs of a session, by their indices in the caller's list.
#[derive(Clone, Debug)]
pub(super) struct SideIndex {
    pub(super) server: usize,
    /// Log of each player's client, if there is one.
    pub(super) clients: Vec<Option<usize>>,
    /// The unknown kinds of the merged session: the server's, then custom kinds that only clients declare.
    pub(super) kinds: Vec<UnknownKind>,
}

impl SideIndex {
    /// Finds the server's log and each client's, and checks that all belong to one session with the same rules.
    pub(super) fn of(headers: &[&SessionHeader]) -> Result<SideIndex, MergeError> {
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
    pub(super) fn check_missing(&self, has_input: impl Fn(usize) -> bool) -> Result<(), MergeError> {
        let is_missing = |(player, log): &(usize, &Option<usize>)| log.is_none() && !has_input(*player);
        let missing = self.clients.iter().enumerate().filter(is_missing);
        let players: Vec<PlayerId> = missing.map(|(player, _)| PlayerId(player as u16)).collect();
        if players.is_empty() { Ok(()) } else { Err(MergeError::Missing { players, all: self.clients.len() }) }
    }

    /// Returns the player whose log it is; `None` for the server's.
    pub(super) fn player_of(&self, log: usize) -> Option<usize> {
        self.clients.iter().position(|of| *of == Some(log))
    }

    /// Returns the custom kind of these records; `None` if no game declares it.
    pub(super) fn own_kind(&self, records: &UnknownRecords) -> Option<&UnknownKind> {
        self.kinds.iter().find(|kind| kind.name == records.kind && kind.is_custom())
    }

    /// Returns the header of the merged session.
    pub(super) fn header(&self, server: &SessionHeader) -> SessionHeader {
        let mut header = SessionHeader { side: None, unknown: self.kinds.clone(), ..server.clone() };
        for (player, log) in header.players.iter_mut().zip(&self.clients) {
            player.recorded |= log.is_some();
        }
        header
    }

    /// Returns the part of a stretch that goes into the merged session. Of entirely unknown kinds the clock is unknown:
    /// the merge keeps the server's rows and drops the clients'.
    pub(super) fn share(&self, log: usize, mut stretch: SessionStretch) -> SessionStretch {
        let mut taken: Vec<PlayerRecords> = self.clients.iter().map(|_| PlayerRecords::default()).collect();
        match self.player_of(log) {
            Some(player) => {
                let records = stretch.players.get_mut(player).map(std::mem::take).unwrap_or_default();
                taken[player].take(ClockOwner::Client, records);
                let known = stretch.unknown.into_iter().filter(super::is_of_clients).collect();
                SessionStretch { players: taken, unknown: known, texts: stretch.texts, ..SessionStretch::default() }
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
        let there = server.settings.iter().find(|(known, _)| known == key).map(|(_, value)| value);
        if let Some(there) = there.filter(|there| *there != here) {
            let (key, here, there) = (key.clone(), here.clone(), there.clone());
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

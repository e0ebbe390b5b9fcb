//! Where a merged session ends.

use super::MergeError;
use crate::record::{Session, TickRecord};
use crate::units::{Micros, PlayerId, Tick};

/// How much longer than the server's log a client's log may be. With a longer one, the server's log ends early.
///
/// A client records on for a round trip after the server's last record. A killed server leaves its clients recording
/// until they time out.
const LATER_MOST: Micros = Micros::from_s(2);

/// The end of a session that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionCut {
    /// The last tick of the session.
    pub tick: Tick,
    /// Time of that tick on the server's clock.
    pub at: Micros,
    /// The player whose log ends there: the server received later packets that this log does not have. `None` if the
    /// server's log ends there, and a client's log continues for more than two seconds.
    pub player: Option<PlayerId>,
}

/// Which records of the logs a merged session keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionEnd {
    /// The last tick. Executions and states of later ticks are not kept: the server's log ends inside such a tick.
    tick: Tick,
    /// The time of the last record.
    pub(super) until: Micros,
    pub(super) cut: Option<SessionCut>,
}

/// A packet that the server received and that the client's log lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UnknownPacket {
    pub(super) arrived_at: Micros,
    pub(super) player: PlayerId,
    pub(super) log: usize,
}

impl SessionEnd {
    /// Returns the end of a session with this last tick. `ends` are the ends of the server's log and of the longest
    /// client's log, both on the server's clock. `last_before` returns the last tick before a time.
    pub(super) fn of<E: From<MergeError>>(
        last: TickRecord,
        unknown: impl Iterator<Item = UnknownPacket>,
        (server, clients): (Option<Micros>, Option<Micros>),
        last_before: impl FnOnce(Micros) -> Result<Option<TickRecord>, E>,
    ) -> Result<SessionEnd, E> {
        // The server runs nothing after its last tick, so later packets do not matter.
        if let Some(first) = unknown.min().filter(|packet| packet.arrived_at <= last.at) {
            let tick = last_before(first.arrived_at)?.ok_or(MergeError::NothingLeft { log: first.log })?;
            let cut = SessionCut { tick: tick.tick, at: tick.at, player: Some(first.player) };
            return Ok(SessionEnd { tick: cut.tick, until: cut.at, cut: Some(cut) });
        }
        let early = server.zip(clients).filter(|(server, clients)| *clients - *server > LATER_MOST);
        Ok(SessionEnd {
            tick: last.tick,
            until: early.map_or(Micros(i64::MAX), |(server, _)| server),
            cut: early.map(|_| SessionCut { tick: last.tick, at: last.at, player: None }),
        })
    }

    /// Removes the later records.
    pub(super) fn apply<H>(&self, session: &mut Session<H>) {
        session.end_at(self.tick, self.until);
    }
}

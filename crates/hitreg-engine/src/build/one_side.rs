//! Logs of one side of a session, which a build cannot replay as a session.

use super::UntestableBuild;
use hitreg_log::record::{LogContents, PlayerRecords, Session, SessionHeader};
use hitreg_log::trace::TraceHeader;
use hitreg_netcode::replay::LogSurvey;

/// A log that holds one side of a session, and lacks what a closed loop needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OneSidedLog {
    /// The server's log, without usercmds.
    #[error("this is the server's side of a session, without usercmds: merge all sides with `hitreg merge` first")]
    Server,
    /// One client's log. A build can only replay it in open loop.
    #[error("this is one client's side of a session, without the server: merge all sides with `hitreg merge` first")]
    Client,
}

impl OneSidedLog {
    /// Returns the missing side of a log in memory; `None` if a build can replay the log in closed loop.
    pub fn of(session: &Session) -> Option<OneSidedLog> {
        let has_usercmds = |player: &PlayerRecords| !player.frames.is_empty() || !player.heard.is_empty();
        OneSidedLog::of_header(&session.header, session.players.iter().any(has_usercmds))
    }

    /// Returns the same for a log that was surveyed.
    pub fn of_surveyed(header: &SessionHeader, survey: &LogSurvey) -> Option<OneSidedLog> {
        OneSidedLog::of_header(header, survey.usercmds() > 0)
    }

    fn of_header(header: &SessionHeader, has_usercmds: bool) -> Option<OneSidedLog> {
        match (header.holds(), header.side) {
            (LogContents::Server, _) if !has_usercmds => Some(OneSidedLog::Server),
            (LogContents::Clients, Some(_)) => Some(OneSidedLog::Client),
            _ => None,
        }
    }

    /// The result for a log that no build can replay.
    pub(super) fn check_log(side: Option<OneSidedLog>) -> Result<(), UntestableBuild> {
        match side {
            Some(OneSidedLog::Server) => Err(UntestableBuild::one_sided(OneSidedLog::Server)),
            Some(OneSidedLog::Client) | None => Ok(()),
        }
    }

    /// Rejects the trace of a client's log that claims to hold the server.
    pub(super) fn check_trace(side: Option<OneSidedLog>, trace: &TraceHeader) -> Result<(), UntestableBuild> {
        match side {
            Some(side) if !trace.is_open() => Err(UntestableBuild::one_sided(side)),
            _ => Ok(()),
        }
    }
}

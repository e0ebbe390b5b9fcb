//! Errors of a merge.

use crate::units::{Micros, PlayerId};

/// Why logs cannot be merged. The index of a log is its position in the caller's list.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{kind}")]
pub struct MergeError {
    /// Index of the log that the error is about; `None` if it is not about one log.
    pub log: Option<usize>,
    /// What is wrong.
    pub kind: MergeErrorKind,
}

/// What is wrong with the logs of a merge.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeErrorKind {
    /// The log holds all of a session, or an imported one.
    #[error(
        "this log is not one side of a session: merge the logs of a server and of its clients, each recorded with its side"
    )]
    NotASide,
    /// All given logs are clients'.
    #[error("none of these logs is the server's: add the log that the server recorded")]
    NoServer,
    /// Two logs are servers'.
    #[error(
        "this is a second server's log, or another part of the same: merge takes one log of each side. Merge each part of the \
         server with the clients' logs; those are used from the part's beginning to its end"
    )]
    TwoServers {
        /// Index of the first.
        first: usize,
    },
    /// The log belongs to another session.
    #[error("this log is of another session than the server's: merge the logs of one run of the server")]
    OtherSession,
    /// Two logs are the same client's.
    #[error(
        "this log is of player {player}, and so is another one: merge takes one log of each side. Of a client that restarted \
         or split its log, give the log that covers most of the server's log"
    )]
    SamePlayer {
        /// Index of the first.
        first: usize,
        /// The client's player.
        player: PlayerId,
    },
    /// Some clients' logs are missing.
    #[error(
        "no log of {}, and no usercmds of them in the server's log: the session has {all} players. Give each client's log; \
         without one, the server must have received and recorded the player's usercmds",
        names(players)
    )]
    Missing {
        /// The players of those clients.
        players: Vec<PlayerId>,
        /// Number of players in the session.
        all: usize,
    },
    /// The log was recorded under other rules than the server's.
    #[error("its {what} must equal the server's: record both sides with the same build of the game")]
    OtherBuild {
        /// What differs.
        what: &'static str,
    },
    /// The server's usercmds have bytes, and the client's, which replace them, have none.
    #[error(
        "its usercmds have no bytes, and the server's have bytes, which a merge would lose: record bytes on the clients, or on \
         both sides"
    )]
    NoBytes,
    /// The log was recorded under another setting than the server's.
    #[error("its setting {key} is {here}, and the server's is {there}: merge the logs of one run")]
    OtherSetting {
        /// The setting.
        key: String,
        /// Its value in the log.
        here: String,
        /// Its value in the server's log.
        there: String,
    },
    /// The log holds times outside the valid range.
    #[error("it holds times of more than 30,000 years: this is an error of the program that wrote the log")]
    OutOfTime,
    /// No packet bounds the client's clock offset in one of the directions.
    #[error(
        "player {player}'s clock offset is unknown: one direction has no packet in both logs, and this log has no ticks of the \
         server's"
    )]
    Unbounded {
        /// The client's player.
        player: PlayerId,
    },
    /// No single offset fits, because the clocks drift.
    #[error("{}", drift(*player, *apart, *rate_us_per_s, *is_steady))]
    Drift {
        /// The client's player.
        player: PlayerId,
        /// The least time by which some packets would arrive before they were sent.
        apart: Micros,
        /// The steady drift rate that fits best, in µs per second.
        rate_us_per_s: f64,
        /// Whether all packets fit at that rate.
        is_steady: bool,
    },
    /// The server's log has no ticks.
    #[error("the server's log holds no tick: the session had not begun")]
    NoTicks,
    /// A client's log begins late, and the server's log does not have the usercmds from before.
    #[error(
        "this log begins late: the server received earlier packets of player {player}. Leave this log out if the server \
         recorded the packets that it received"
    )]
    BeginsLate {
        /// The client's player.
        player: PlayerId,
    },
    /// A client's log lacks a packet that the server received before its first tick.
    #[error("this log lacks a packet that the server received before its first tick, so no tick can be replayed")]
    NothingLeft,
}

impl MergeErrorKind {
    /// Returns the error about this log.
    pub fn of(self, log: usize) -> MergeError {
        MergeError { log: Some(log), kind: self }
    }
}

/// Returns `player 3`, or `players 3, 5 and 6`.
fn names(players: &[PlayerId]) -> String {
    match players {
        [] => "nobody".to_owned(),
        [one] => format!("player {one}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(ToString::to_string).collect();
            format!("players {} and {last}", first.join(", "))
        }
    }
}

/// Below this, times that were taken at the wrong moment explain an offset that does not fit.
const LATE_STAMP_US: i64 = 20_000;

fn drift(player: PlayerId, apart: Micros, rate_us_per_s: f64, is_steady: bool) -> String {
    let apart = apart.0;
    if is_steady {
        format!(
            "player {player}'s clock and the server's drift apart by {:.0} µs a second, so that no one offset fits: \
             packets would arrive {apart} µs before they were sent; record shorter sessions, or let both keep time by NTP",
            rate_us_per_s.abs()
        )
    } else if apart < LATE_STAMP_US {
        format!(
            "player {player}'s packets would arrive up to {apart} µs before they were sent: record `Sent` and `Snapshot` with a \
             time taken before the packet is sent, and arrivals with a time taken after it is read. If a clock was set \
             meanwhile, record the session again"
        )
    } else {
        format!(
            "player {player}'s clock or the server's was set during the session, or its machine slept. No one offset fits: \
             packets would arrive {apart} µs before they were sent. Record the session again, or leave this log out if \
             the server recorded the packets that it received"
        )
    }
}

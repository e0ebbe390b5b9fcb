//! Why logs do not make one session.

use crate::units::{Micros, PlayerId};

/// Logs that do not make one session. Logs are named by their places in what was given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// It holds all of a session, or an imported one.
    #[error("this log is not one side of a session: `merge` takes what `hitreg serve` and `hitreg join` recorded")]
    NotASide {
        /// The log.
        log: usize,
    },
    /// Only clients' logs were given.
    #[error("none of these logs is the server's: give the log that `hitreg serve` recorded, too")]
    NoServer,
    /// Two servers' logs were given.
    #[error("this is a second server's log: a session has one server")]
    TwoServers {
        /// The first of them.
        first: usize,
        /// The second.
        log: usize,
    },
    /// A log of another session.
    #[error("this log is of another session than the server's: take the logs of one run of `hitreg serve`")]
    OtherSession {
        /// The log.
        log: usize,
    },
    /// The same client twice.
    #[error("this log is of player {player}, of whom there is another log already: give each client's log once")]
    SamePlayer {
        /// The first of them.
        first: usize,
        /// The second.
        log: usize,
        /// Whose they are.
        player: PlayerId,
    },
    /// Clients whose logs were not given.
    #[error("no log of {}: the session has {all} players, and each client's log is needed", names(players))]
    Missing {
        /// Whose.
        players: Vec<PlayerId>,
        /// How many play.
        all: usize,
    },
    /// Recorded under other rules than the server's.
    #[error("its {what} is not the server's: both sides need the same version of hitreg")]
    OtherBuild {
        /// The log.
        log: usize,
        /// What differs.
        what: &'static str,
    },
    /// Times that no clock shows.
    #[error("it holds times of more than 30,000 years, which no recording of hitreg's does")]
    OutOfTime {
        /// The log.
        log: usize,
    },
    /// There is nothing to set its clock by.
    #[error("player {player}'s clock cannot be set: no packet of one of the directions is in both logs")]
    Unbounded {
        /// The log.
        log: usize,
        /// Whose it is.
        player: PlayerId,
    },
    /// There is no offset that fits.
    #[error("{}", drift(*player, *apart, *rate_us_per_s, *is_steady))]
    Drift {
        /// The log.
        log: usize,
        /// Whose it is.
        player: PlayerId,
        /// By how much packets would arrive before they were sent at least.
        apart: Micros,
        /// The steady rate that fits them best, in µs a second.
        rate_us_per_s: f64,
        /// Whether all of them fit at that rate.
        is_steady: bool,
    },
    /// The server's log is empty.
    #[error("the server's log holds no tick: the session had not begun")]
    NoTicks,
    /// A client's log ends before the first tick that could be replayed.
    #[error(
        "this log has nothing of what the server heard from its client, so that nothing of the session can be replayed"
    )]
    NothingLeft {
        /// The log.
        log: usize,
    },
}

impl MergeError {
    /// The log that it is about, if it is about one.
    pub fn log(&self) -> Option<usize> {
        match self {
            MergeError::NotASide { log }
            | MergeError::TwoServers { log, .. }
            | MergeError::OtherSession { log }
            | MergeError::SamePlayer { log, .. }
            | MergeError::OtherBuild { log, .. }
            | MergeError::OutOfTime { log }
            | MergeError::Unbounded { log, .. }
            | MergeError::Drift { log, .. }
            | MergeError::NothingLeft { log } => Some(*log),
            MergeError::NoServer | MergeError::Missing { .. } | MergeError::NoTicks => None,
        }
    }
}

/// `player 3`, `players 3, 5 and 6`.
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

fn drift(player: PlayerId, apart: Micros, rate_us_per_s: f64, is_steady: bool) -> String {
    let apart = apart.0;
    if is_steady {
        format!(
            "player {player}'s clock and the server's drift apart by {:.0} µs a second, so that no one offset fits: \
             packets would arrive {apart} µs before they were sent; record shorter sessions, or let both keep time by NTP",
            rate_us_per_s.abs()
        )
    } else {
        format!(
            "player {player}'s clock and the server's do not run evenly (one of them was set, or its machine slept), so \
             that no one offset fits: packets would arrive {apart} µs before they were sent"
        )
    }
}

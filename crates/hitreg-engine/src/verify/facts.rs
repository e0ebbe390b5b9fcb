//! The facts of a log against which its replays are judged.

use hitreg_analysis::summary::Coverage;
use hitreg_log::record::{CellKind, LogContents, PlayerRecords, Session, SessionHeader};
use hitreg_log::units::{Micros, Tick};
use hitreg_netcode::replay::{LogSurvey, TickCounts};

/// The facts of a log against which its replays are judged.
#[derive(Clone, Debug, Default)]
pub struct LogFacts {
    pub(super) ticks: u64,
    pub(super) with_hash: u64,
    /// Whether any hash is not 0.
    pub(super) has_hashes: bool,
    pub(super) usercmds: u64,
    pub(super) active_usercmds: u64,
    /// A contradiction in the log.
    pub(super) contradiction: Option<String>,
    pub(super) hole: Option<MissingPart>,
    pub(super) has_server: bool,
}

/// The first missing part of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct MissingPart {
    pub(super) from: Micros,
    pub(super) to: Micros,
    pub(super) ticks_before: u64,
}

impl LogFacts {
    /// The facts of a session.
    pub fn of(session: &Session) -> LogFacts {
        let with_hash = session.ticks.iter().filter_map(|tick| tick.hash);
        let hole = session.first_hole().map(|gap| MissingPart {
            from: gap.from,
            to: gap.to,
            ticks_before: session.ticks.iter().filter(|tick| tick.at <= gap.from).count() as u64,
        });
        LogFacts {
            ticks: session.ticks.len() as u64,
            with_hash: with_hash.clone().count() as u64,
            has_hashes: with_hash.clone().any(|hash| hash != 0),
            usercmds: usercmds(session),
            active_usercmds: active(session),
            contradiction: contradiction(session),
            hole,
            has_server: session.header.holds() == LogContents::Whole,
        }
    }

    /// The facts of a log that is read chunk by chunk and has no missing part.
    pub fn of_log(header: &SessionHeader, survey: &LogSurvey) -> LogFacts {
        let TickCounts { count, with_hash, has_hashes, out_of_order, .. } = survey.ticks;
        let contradiction = match out_of_order {
            Some([before, after]) => Some(disorder(before, after)),
            None => survey.is_all_nan().then(|| ALL_NAN.to_owned()),
        };
        LogFacts {
            ticks: count,
            with_hash,
            has_hashes,
            usercmds: survey.usercmds(),
            active_usercmds: survey.active_usercmds(),
            contradiction,
            hole: None,
            has_server: header.holds() == LogContents::Whole,
        }
    }

    /// The counts of a replay of the whole log. Usercmds are counted in the log if the replay has no active one: a
    /// server's own log has no client frames, and another build's trace may lack their table.
    #[must_use]
    pub fn completed(&self, exercised: Coverage) -> Coverage {
        match exercised.active_usercmds {
            0 => Coverage { usercmds: self.usercmds, active_usercmds: self.active_usercmds, ..exercised },
            _ => exercised,
        }
    }
}

/// A contradiction in the session; `None` if there is none.
fn contradiction(session: &Session) -> Option<String> {
    if let Some(pair) = session.ticks.windows(2).find(|pair| pair[1].tick <= pair[0].tick || pair[1].at < pair[0].at) {
        return Some(disorder(pair[0].tick, pair[1].tick));
    }
    let classes = &session.header.classes;
    let mut floats = session.states.iter().flat_map(|(key, cells)| {
        let fields = classes.get(usize::from(key.class.0)).map_or(&[][..], |class| &class.fields);
        fields.iter().zip(cells).filter(|(field, _)| field.kind == CellKind::F32).map(|(_, cell)| f32::from_bits(*cell))
    });
    let first = floats.next();
    (first.is_some_and(f32::is_nan) && floats.all(f32::is_nan)).then(|| ALL_NAN.to_owned())
}

const ALL_NAN: &str = "every recorded state is NaN";

fn disorder(before: Tick, after: Tick) -> String {
    format!("its ticks are out of order: after tick {before} comes tick {after}")
}

fn usercmds(session: &Session) -> u64 {
    session.players.iter().map(|player| player.usercmds().count() as u64).sum()
}

/// Usercmds with a key down, a button pressed, an impulse, or input of the game's own.
fn active(session: &Session) -> u64 {
    let usercmds = session.players.iter().flat_map(PlayerRecords::usercmds);
    usercmds.filter(|command| command.input.is_active()).count() as u64
}

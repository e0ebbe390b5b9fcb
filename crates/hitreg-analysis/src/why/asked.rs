//! What may be asked for, and what is near it where it is not there.

use std::collections::BTreeSet;
use std::str::FromStr;

use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::shots;
use hitreg_log::units::{ClockTime, Micros};

/// A shot that was judged further away in time is not the one that somebody means.
const NEAR: Micros = Micros::from_s(10);

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A shot by its name.
    Shot(ShotName),
    /// The shot that was judged nearest to a time.
    At {
        /// The time.
        at_us: i64,
        /// Only this player's shots count.
        player: Option<u32>,
    },
    /// One of a player's corrections.
    Correction {
        /// Whose.
        player: u32,
        /// The first is 1.
        number: u32,
    },
}

/// `p0#95`, or `p0#95.1` where a usercmd fired more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShotName {
    /// Who shot.
    pub shooter: u32,
    /// The usercmd that fired.
    pub command: u32,
    /// Which shot of that usercmd; the first one where it is left out.
    pub index: Option<u32>,
}

impl serde::Serialize for ShotName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What was asked for is not in the trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotThere {
    /// Nobody shot.
    #[error("there is no shot in it: only a closed-loop replay, or a build that judges, has some")]
    NoShots,
    /// This player did not shoot.
    #[error("p{player} did not shoot; there are shots by {}", .shooters.join(", "))]
    NoShooter {
        /// Who was asked for.
        player: u32,
        /// Who did.
        shooters: Vec<String>,
    },
    /// The usercmd did not fire.
    #[error("there is no shot {asked}; the nearest are {}", .nearest.join(", "))]
    NoShot {
        /// What was asked for.
        asked: String,
        /// The shots of that player with the nearest usercmds.
        nearest: Vec<String>,
    },
    /// Nobody shot near that time.
    #[error("no shot was judged within {} s of {}; the nearest is {nearest}, at {}", NEAR.0 / 1_000_000, ClockTime(*asked), ClockTime(*at))]
    NotNear {
        /// The time.
        asked: Micros,
        /// The nearest shot.
        nearest: ShotName,
        /// When it was judged.
        at: Micros,
    },
    /// There are fewer corrections.
    #[error("p{player} has {count} corrections, and not so many as {number}; with corrections: {}", list(.players))]
    NoCorrection {
        /// Whose was asked for.
        player: u32,
        /// Which.
        number: u32,
        /// How many there are.
        count: usize,
        /// Who has how many.
        players: Vec<String>,
    },
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "nobody".to_owned() } else { items.join(", ") }
}

impl FromStr for ShotName {
    type Err = String;

    fn from_str(text: &str) -> Result<ShotName, String> {
        let read = || {
            let (shooter, rest) = text.split_once('#')?;
            let (command, index) = match rest.split_once('.') {
                Some((command, index)) => (command, Some(index.parse().ok()?)),
                None => (rest, None),
            };
            Some(ShotName { shooter: player(shooter).ok()?, command: command.parse().ok()?, index })
        };
        read()
            .ok_or_else(|| format!("`{text}` names no shot; one is named like p0#95: player and number of the usercmd"))
    }
}

impl std::fmt::Display for ShotName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p{}#{}", self.shooter, self.command)?;
        self.index.filter(|index| *index > 0).map_or(Ok(()), |index| write!(f, ".{index}"))
    }
}

/// Reads `p3`, or `3`.
///
/// # Errors
/// When it is neither.
pub fn player(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix('p').unwrap_or(text);
    number.parse().map_err(|_| format!("`{text}` names no player; they are named like p3"))
}

impl ShotName {
    /// The row of the `shots` table.
    pub(super) fn row(self, trace: &Trace) -> Result<usize, NotThere> {
        let shots = shots::Columns::of(trace);
        let mut of_shooter = rows_of(&shots, Some(self.shooter))?;
        let is_asked = |row: &usize| {
            super::cell(shots.command, *row) == Some(self.command)
                && self.index.is_none_or(|index| super::cell(shots.index, *row) == Some(index))
        };
        // A projectile's impact comes after its launch, whichever of them the server judged first.
        let found = of_shooter.iter().copied().filter(is_asked);
        let found = found.min_by_key(|row| super::cell(shots.index, *row));
        found.ok_or_else(|| {
            of_shooter.sort_by_key(|row| super::cell(shots.command, *row).unwrap_or(0).abs_diff(self.command));
            let mut nearest: Vec<u32> =
                of_shooter.iter().take(4).filter_map(|row| super::cell(shots.command, *row)).collect();
            nearest.sort_unstable();
            nearest.dedup();
            let nearest = nearest.iter().map(|command| format!("p{}#{command}", self.shooter)).collect();
            NotThere::NoShot { asked: self.to_string(), nearest }
        })
    }
}

/// The shot that was judged nearest to a time; of a projectile, its launch.
pub(super) fn row_at(trace: &Trace, at_us: i64, player: Option<u32>) -> Result<usize, NotThere> {
    let shots = shots::Columns::of(trace);
    let rows = rows_of(&shots, player)?;
    let off = |row: &usize| {
        let at = super::cell(shots.at_us, *row);
        (at.map_or(u64::MAX, |at| at.abs_diff(at_us)), super::cell(shots.impact, *row), *row)
    };
    let row = rows.into_iter().min_by_key(off).ok_or(NotThere::NoShots)?;
    let cells = [shots.shooter, shots.command].map(|column| super::cell(column, row));
    if let ([Some(shooter), Some(command)], Some(at)) = (cells, super::cell(shots.at_us, row))
        && at.abs_diff(at_us) > NEAR.0.unsigned_abs()
    {
        let nearest = ShotName { shooter, command, index: None };
        return Err(NotThere::NotNear { asked: Micros(at_us), nearest, at: Micros(at) });
    }
    Ok(row)
}

fn rows_of(shots: &shots::Columns<'_>, player: Option<u32>) -> Result<Vec<usize>, NotThere> {
    let rows = (0..shots.shooter.len()).filter(|row| player.is_none_or(|player| shots.shooter[*row] == player));
    let rows: Vec<usize> = rows.collect();
    match (rows.is_empty(), player) {
        (false, _) => Ok(rows),
        (true, Some(player)) if !shots.shooter.is_empty() => {
            let shooters: BTreeSet<u32> = shots.shooter.iter().copied().collect();
            Err(NotThere::NoShooter { player, shooters: shooters.iter().map(|player| format!("p{player}")).collect() })
        }
        (true, _) => Err(NotThere::NoShots),
    }
}

//! Whether two files are of one recorded session, so that a comparison of them has a meaning. The headers decide where
//! they can. Files of different games, seeds or maps are of different sessions. Files of one log, of one live session, or
//! of one synthetic scenario are of one session. Otherwise the usercmds decide: parts, copies and merges of one session
//! have the same sequences of input, whatever their numbers.

use xxhash_rust::xxh3::Xxh3Default;

use hitreg_analysis::diff::DiffError;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{ColumnRole, frames};
use hitreg_log::trace::{ColumnData, Table, TraceHeader, TraceSource, each_part};

/// Number of consecutive usercmds of a player that are compared together. One usercmd of a game with few inputs occurs
/// in every session.
const SEQUENCE_USERCMDS: usize = 8;
/// Number of different sequences that are kept for each side: those with the smallest hashes.
const KEPT_SEQUENCES_MAX: usize = 4096;
/// Number of different sequences that a decision needs.
const DECIDING_SEQUENCES_MIN: usize = 32;

/// Returns the difference that makes two files ones of different sessions, by what the files say.
pub(super) fn header_difference([a, b]: &[TraceHeader; 2]) -> Option<String> {
    if !a.game.is_empty() && !b.game.is_empty() && a.game != b.game {
        return Some(format!("the game is {} in A, {} in B", a.game, b.game));
    }
    let (Some(a), Some(b)) = (&a.session, &b.session) else { return None };
    if a.seed != b.seed {
        return Some(format!("the seed is {} in A, {} in B", a.seed.0, b.seed.0));
    }
    if !a.map.is_empty() && !b.map.is_empty() && a.map != b.map {
        return Some(format!("the map is {} in A, {} in B", a.map, b.map));
    }
    None
}

/// Returns whether two files say that they are of one session. In a synthetic scenario the bots may give other usercmds
/// under other settings.
pub(super) fn is_one_session([a, b]: &[TraceHeader; 2]) -> bool {
    let is_same_log = a.is_of_same_log(b) == Some(true);
    let (Some(session_a), Some(session_b)) = (&a.session, &b.session) else {
        return is_same_log;
    };
    is_same_log || session_a.id.is_some() && session_a.id == session_b.id || session_a.synthetic && session_b.synthetic
}

/// Returns the difference that makes two traces ones of different sessions, by their players' usercmds. Too few
/// different usercmds decide nothing.
///
/// # Errors
/// When a trace cannot be read.
pub(super) fn usercmd_difference([a, b]: [&dyn TraceSource; 2]) -> Result<Option<String>, DiffError> {
    let (a, b) = (sequences(a)?, sequences(b)?);
    let limit = |side: &SortedSet<u64>| {
        if side.len() < KEPT_SEQUENCES_MAX { u64::MAX } else { side.last().copied().unwrap_or(0) }
    };
    let limit = limit(&a).min(limit(&b));
    let [of_a, of_b] = [&a, &b].map(|side| side.range(..=limit).count());
    let fewer = of_a.min(of_b);
    let common = a.range(..=limit).filter(|hash| b.contains(hash)).count();
    let differs = fewer >= DECIDING_SEQUENCES_MIN && common * 2 < fewer;
    Ok(differs.then(|| {
        let share = common * 100 / fewer;
        format!("only {share} % of one file's usercmds are in the other")
    }))
}

/// Returns the hashes of the players' sequences of usercmds, the [`KEPT_SEQUENCES_MAX`] smallest.
fn sequences(trace: &dyn TraceSource) -> Result<SortedSet<u64>, DiffError> {
    let input: Vec<&str> = frames::SCHEMA
        .columns
        .iter()
        .filter(|column| column.role == ColumnRole::Input)
        .map(|column| column.name)
        .collect();
    let columns: Vec<&str> = ["player"].into_iter().chain(input.iter().copied()).collect();
    let mut kept = SortedSet::new();
    let mut latest: SortedMap<u32, [u64; SEQUENCE_USERCMDS]> = SortedMap::new();
    each_part(trace, frames::SCHEMA.name, (&columns, None), &mut |rows| {
        for (row, player) in rows.u32s("player").iter().enumerate() {
            let sequence = latest.entry(*player).or_default();
            sequence.rotate_left(1);
            sequence[SEQUENCE_USERCMDS - 1] = hash_of(rows, &input, row);
            // A sequence that is not yet full, or of a player whose input rests, is no evidence.
            if sequence.contains(&0) || sequence.iter().all(|hash| *hash == sequence[0]) {
                continue;
            }
            let mut hasher = Xxh3Default::new();
            sequence.iter().for_each(|hash| hasher.update(&hash.to_le_bytes()));
            kept.insert(hasher.digest());
            if kept.len() > KEPT_SEQUENCES_MAX {
                kept.pop_last();
            }
        }
        Ok(())
    })
    .map_err(DiffError::Unread)?;
    Ok(kept)
}

/// Returns the hash of the input in a row; never 0.
fn hash_of(rows: &Table, input: &[&str], row: usize) -> u64 {
    let mut hasher = Xxh3Default::new();
    for name in input {
        let cell = match rows.column(name).map(|column| &column.data) {
            Some(ColumnData::U32(values)) => values.get(row).copied(),
            Some(ColumnData::F32(values)) => values.get(row).map(|value| value.to_bits()),
            _ => None,
        };
        hasher.update(&cell.unwrap_or(0).to_le_bytes());
    }
    hasher.digest().max(1)
}

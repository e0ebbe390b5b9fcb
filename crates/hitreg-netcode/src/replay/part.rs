//! A part of a session, and the rows of a trace that belong to it.

use super::ReplayError;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{corrections, errors, frames, ticks};
use hitreg_log::trace::{Table, Trace};
use hitreg_log::units::{ClockTime, Micros};

/// The least time before a part on which its rows depend. Long flights make it longer.
pub(super) const LOOKED_BACK: Micros = Micros::from_s(4);

/// A time range of a session. Its end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first time of the part.
    pub from: Micros,
    /// The end of the part, exclusive.
    pub to: Micros,
}

impl Part {
    /// The whole of any session.
    pub const WHOLE: Part = Part { from: Micros(i64::MIN), to: Micros(i64::MAX) };

    /// Replaces an open beginning by the session's first time, and limits the end to the session's end.
    #[must_use]
    pub fn within(self, played: Option<(Micros, Micros)>) -> Part {
        let (first, last) = played.unwrap_or_default();
        let from = if self.from == Part::WHOLE.from { first } else { self.from };
        Part { from, to: self.to.min(Micros(last.0.saturating_add(1))) }
    }

    /// Returns the range for the trace's header; `None` if the part is the whole session.
    pub fn header_range(self, played: Option<(Micros, Micros)>) -> Option<[Micros; 2]> {
        let (whole, Part { from, to }) = (Part::WHOLE.within(played), self.within(played));
        (from > whole.from || to < whole.to).then_some([from, to])
    }

    /// Whether a time belongs to the part.
    pub fn has(self, at: Micros) -> bool {
        self.from <= at && (at < self.to || self.to == Part::WHOLE.to)
    }

    /// Refuses a part that ends before it begins, or that is not within the session. The end may exceed the last time by
    /// up to one second, to allow rounding.
    ///
    /// # Errors
    /// When the part is not valid. The error says why.
    pub fn check(self, played: Option<(Micros, Micros)>) -> Result<(), ReplayError> {
        let (first, last) = played.unwrap_or_default();
        let Part { from, to } = self;
        let asked = [from, to].map(|at| (at != Part::WHOLE.from && at != Part::WHOLE.to).then_some(at));
        let over = asked[0].filter(|at| *at > last).or(asked[1].filter(|at| at.0.saturating_sub(last.0) > 1_000_000));
        match over.or(asked[1].filter(|at| *at <= first)) {
            Some(at) => {
                Err(ReplayError::NotInSession { at: ClockTime(at), first: ClockTime(first), last: ClockTime(last) })
            }
            None if from >= to => Err(ReplayError::EmptyPart { from: ClockTime(from), to: ClockTime(to) }),
            None => Ok(()),
        }
    }

    /// Keeps only the rows of this part. A row without a time has the time of its tick (`bodies`, `executed`), frame
    /// (`views`, `variables`) or correction (`errors`).
    pub fn cut(self, trace: &mut Trace) {
        let times = |name: &str, columns: &[&str]| -> SortedMap<Vec<u32>, i64> {
            let Some(table) = trace.table(name) else { return SortedMap::new() };
            (0..table.rows()).zip(table.i64s("at_us")).map(|(row, at)| (key(table, columns, row), *at)).collect()
        };
        let (by_tick, by_command): (&[&str], &[&str]) = (&["tick"], &["player", "command"]);
        let of_ticks = times(ticks::NAME, by_tick);
        let of_frames = times(frames::NAME, by_command);
        let of_acks = times(corrections::NAME, by_command);
        for table in &mut trace.tables {
            let by_key = |columns: &[&str], times: &SortedMap<Vec<u32>, i64>| -> Vec<bool> {
                let at = |row: usize| times.get::<Vec<u32>>(&key(table, columns, row));
                (0..table.rows()).map(|row| at(row).is_some_and(|at| self.has(Micros(*at)))).collect()
            };
            let keep = match &*table.name {
                errors::NAME => by_key(by_command, &of_acks),
                _ if table.column("at_us").is_some() => {
                    table.i64s("at_us").iter().map(|at| self.has(Micros(*at))).collect()
                }
                _ if table.column("tick").is_some() => by_key(by_tick, &of_ticks),
                _ => by_key(by_command, &of_frames),
            };
            *table = table.select_where(keep.into_iter(), |keep| keep);
        }
    }
}

/// The values of a row's key columns.
fn key(table: &Table, columns: &[&str], row: usize) -> Vec<u32> {
    columns.iter().filter_map(|column| table.u32s(column).get(row).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_the_whole_session_is_not_one_of_a_part() {
        let played = Some((Micros::from_s(1), Micros::from_s(60)));
        let end = Micros(60_000_001);
        let header_range = |from, to| Part { from, to }.header_range(played);
        assert_eq!(Part::WHOLE.header_range(played), None);
        assert_eq!([header_range(Micros::ZERO, Part::WHOLE.to), header_range(Part::WHOLE.from, end)], [None, None]);
        assert_eq!(header_range(Micros::from_s(2), Part::WHOLE.to), Some([Micros::from_s(2), end]));
        assert_eq!(header_range(Micros::from_s(2), end + Micros::from_s(1)), Some([Micros::from_s(2), end]));
        assert_eq!(header_range(Part::WHOLE.from, Micros::from_s(60)), Some([Micros::from_s(1), Micros::from_s(60)]));
    }

    #[test]
    fn a_part_is_within_its_session() {
        let part = |from, to| Part { from: Micros::from_s(from), to: Micros::from_s(to) };
        let is_good = |part: Part| part.check(Some((Micros::ZERO, Micros::from_ms(59_500)))).is_ok();
        assert!([part(0, 60), part(59, 60), Part { from: Part::WHOLE.from, ..part(0, 1) }].into_iter().all(is_good));
        assert!(is_good(Part { to: Part::WHOLE.to, ..part(59, 0) }));
        assert!(part(0, 60).has(Micros(59_999_999)) && !part(0, 60).has(Micros::from_s(60)));
        assert!(Part::WHOLE.has(Micros(i64::MAX)) && Part::WHOLE.has(Micros(i64::MIN)));
        assert!(![part(1, 1), part(2, 1), part(60, 61), part(1, 61)].into_iter().any(is_good));
    }
}

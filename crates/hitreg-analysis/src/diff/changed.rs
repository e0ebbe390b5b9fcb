//! The list of changed shots. It can be as long as the list of all shots. For traces in files, only the first changed
//! shots are kept in memory, and the others are read again on request.

use std::borrow::Cow;
use std::sync::Arc;

use serde::ser::{Error, SerializeSeq};
use serde::{Serialize, Serializer};

use super::clock::TickTimes;
use super::exactness::TraceComparison;
use super::fold::each_step;
use super::hits::{ChangedShot, HitChanges, ShotChange, TextTable};
use super::keys::RowKey;
use super::mark::RowRank;
use super::options::DiffOptions;
use super::pairing::Pairing;
use super::steps::{ReorderTolerance, StepStop};
use hitreg_log::trace::schema::shots;
use hitreg_log::trace::{SharedTrace, TraceSource};

/// The shots whose result differs between the traces, in the order of their time.
#[derive(Clone, Default)]
pub struct ChangedShots {
    /// The first changed shots.
    first: EarliestShots,
    /// The first changed shots that hit in at least one of the traces.
    first_hits: EarliestShots,
    count: usize,
    /// Reads the other shots again; `None` if all are kept.
    again: Option<Arc<ShotComparison>>,
}

impl ChangedShots {
    /// How many shots are kept for traces in files.
    pub const MOST: usize = 1 << 13;
    /// How many of the first changed hits are kept in any case, even if other changes come before them.
    pub const MOST_HITS: usize = 16;

    /// An empty list. It keeps only the first shots, if `again` can read the others.
    pub(super) fn kept(again: Option<ShotComparison>) -> ChangedShots {
        let most = |most: usize| EarliestShots { most: again.is_some().then_some(most), ..EarliestShots::default() };
        let (first, first_hits) = (most(ChangedShots::MOST), most(ChangedShots::MOST_HITS));
        ChangedShots { first, first_hits, again: again.map(Arc::new), count: 0 }
    }

    pub(super) fn note(&mut self, rank: &RowRank, shot: &ChangedShot) {
        self.count += 1;
        self.first.note(rank, shot);
        if shot.change != ShotChange::OtherReason {
            self.first_hits.note(rank, shot);
        }
    }

    /// Puts the shots in order, after the last.
    pub(super) fn end(&mut self) {
        self.first.end();
        self.first_hits.end();
    }

    /// How many shots changed.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no shot changed.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The shots in memory: the first [`ChangedShots::MOST`], or all shots if the traces are in memory.
    pub fn first(&self) -> impl Iterator<Item = ChangedShot> + '_ {
        self.first.kept.iter().map(|ranked| ranked.shot.clone())
    }

    /// The first changed shots that hit in at least one of the traces, at most [`ChangedShots::MOST_HITS`].
    pub fn first_hits(&self) -> impl Iterator<Item = ChangedShot> + '_ {
        self.first_hits.kept.iter().map(|ranked| ranked.shot.clone())
    }

    /// One changed shot by its index; `None` after the last.
    ///
    /// # Errors
    /// When the shot is not in memory and the traces cannot be read again; the error is a text.
    pub fn get(&self, place: usize) -> Result<Option<ChangedShot>, String> {
        self.iter().nth(place).transpose()
    }

    /// All changed shots. If the traces cannot be read again, the error is the last item.
    pub fn iter(&self) -> impl Iterator<Item = Result<ChangedShot, String>> + '_ {
        let (mut some, mut place, mut left) = (Cow::Borrowed(&self.first.kept[..]), 0, self.count);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            if place == some.len() {
                let next = some.last().zip(self.again.as_ref()).map(|(last, again)| again.after(&last.rank));
                match next.unwrap_or_else(|| Ok(Vec::new())) {
                    Ok(next) => (some, place) = (Cow::Owned(next), 0),
                    Err(unread) => {
                        left = 0;
                        return Some(Err(unread));
                    }
                }
            }
            place += 1;
            let Some(RankedShot { shot, .. }) = some.get(place - 1) else {
                left = 0;
                return Some(Err("there are fewer shots in the traces than before".to_owned()));
            };
            Some(Ok(shot.clone()))
        })
    }
}

/// A changed shot with its place in the order of the list.
#[derive(Clone)]
pub(super) struct RankedShot {
    rank: RowRank,
    shot: ChangedShot,
}

/// Keeps the earliest of the shots that it receives.
#[derive(Clone, Default)]
struct EarliestShots {
    kept: Vec<RankedShot>,
    /// The limit on the number of shots; `None` keeps all.
    most: Option<usize>,
    /// The rank of the last kept shot. A later shot is dropped.
    last: Option<RowRank>,
}

impl EarliestShots {
    fn note(&mut self, rank: &RowRank, shot: &ChangedShot) {
        if self.last.as_ref().is_some_and(|last| rank.cmp(last).is_gt()) {
            return;
        }
        self.kept.push(RankedShot { rank: rank.clone(), shot: shot.clone() });
        if let Some(most) = self.most.filter(|most| self.kept.len() >= 2 * most) {
            self.keep_first(most);
            self.last = self.kept.last().map(|last| last.rank.clone());
        }
    }

    fn keep_first(&mut self, most: usize) {
        self.kept.sort_unstable_by(|x, y| x.rank.cmp(&y.rank));
        self.kept.truncate(most);
    }

    fn end(&mut self) {
        self.keep_first(self.most.unwrap_or(usize::MAX));
    }
}

impl PartialEq for ChangedShots {
    fn eq(&self, other: &ChangedShots) -> bool {
        self.iter().eq(other.iter())
    }
}

impl std::fmt::Debug for ChangedShots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut list = f.debug_list();
        self.iter().for_each(|shot| {
            match shot {
                Ok(shot) => list.entry(&shot),
                Err(unread) => list.entry(&unread),
            };
        });
        list.finish()
    }
}

impl Serialize for ChangedShots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.count))?;
        for shot in self.iter() {
            list.serialize_element(&shot.map_err(S::Error::custom)?)?;
        }
        list.end()
    }
}

/// Reads the shots of both traces again, to find changed shots that were not kept.
pub(super) struct ShotComparison {
    traces: [SharedTrace; 2],
    options: DiffOptions,
    patience: ReorderTolerance,
}

impl ShotComparison {
    /// `None` if the traces cannot be read again later.
    pub(super) fn of(compared: &TraceComparison<'_>, patience: ReorderTolerance) -> Option<ShotComparison> {
        let [a, b] = compared.traces.map(TraceSource::shared);
        Some(ShotComparison { traces: [a?, b?], options: compared.options.clone(), patience })
    }

    /// The next changed shots after the one with this rank.
    fn after(&self, last: &RowRank) -> Result<Vec<RankedShot>, String> {
        let traces = self.traces.each_ref().map(|trace| &**trace as &dyn TraceSource);
        let tables = traces.map(TraceSource::tables);
        let shape = |side: usize| tables[side].iter().map(|(table, _)| *table).find(|table| table.name == shots::NAME);
        let (Some(a), Some(b)) = (shape(0), shape(1)) else { return Ok(Vec::new()) };
        let clocks = [TickTimes::of(traces[0])?, TickTimes::of(traces[1])?];
        let key = RowKey::of(a, b);
        let mut next = EarliestShots { most: Some(ChangedShots::MOST), ..EarliestShots::default() };
        let mut texts = TextTable::default();
        let went =
            each_step(traces, [a, b], (&key, [&clocks[0], &clocks[1]]), self.patience, &mut |rows, times, before| {
                let Ok(pairing) = Pairing::of(rows, before, key.clone(), times) else { return true };
                HitChanges::default().add(&pairing, &self.options, &mut texts, &mut |spot, shot| {
                    let rank = pairing.rank(spot);
                    if rank.cmp(last).is_gt() {
                        next.note(&rank, shot);
                    }
                });
                true
            });
        match went {
            Ok(()) => {
                next.end();
                Ok(next.kept)
            }
            Err(StepStop::Unread(what)) => Err(what),
            Err(StepStop::OutOfOrder | StepStop::TimesGoBack) => {
                Err("the shots have another order than before".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::hits::Outcome;
    use crate::diff::mark::KeyPart;

    /// Shots with numbers of every width, and with names that are prefixes of each other.
    fn shots() -> Vec<(RowRank, ChangedShot)> {
        let mut texts = TextTable::default();
        let numbers = [None, Some(0), Some(-1), Some(63), Some(-64), Some(1 << 40), Some(i64::MAX), Some(i64::MIN)];
        let names = ["", "p", "p\0", "p\0\0a", "p\u{1}", "p1", "none"];
        let mut all = Vec::new();
        for (round, at_us) in numbers.into_iter().enumerate() {
            for (name, part) in names.into_iter().zip(numbers.into_iter().rev()) {
                let mut text = (0..).map(|place| texts.of(names[(place + round) % 7]));
                let mut text = || text.next().expect("a name");
                let outcome = Outcome {
                    at_us,
                    tick: part,
                    damage: None,
                    pellets: numbers[all.len() % 8],
                    rewind_us: at_us,
                    view_error_units: Some(round as f32 - 0.5).filter(|_| round % 3 > 0),
                    weapon: text(),
                    reason: text(),
                    target: text(),
                    ..Outcome::default()
                };
                let key =
                    vec![KeyPart::Number(part.unwrap_or_default()), KeyPart::Name(name.to_owned()), KeyPart::Number(3)];
                let rank = RowRank { at_us, key, is_pair: round % 2 == 0, row: all.len() as u64 };
                let change = [ShotChange::OnlyA, ShotChange::OtherWound, ShotChange::OtherReason][all.len() % 3];
                let [a, b] = [0, 1].map(|side| Some(outcome.clone()).filter(|_| all.len() % 3 != side));
                let (index, is_impact) = (all.len() as u32, round % 4 == 0);
                all.push((rank, ChangedShot { shooter: 7, command: u32::MAX, index, is_impact, change, a, b }));
            }
        }
        all
    }

    #[test]
    fn changed_shots_come_back_in_order_of_rank() {
        let mut all = shots();
        let (mut noted, mut few) =
            (ChangedShots::default(), EarliestShots { most: Some(5), ..EarliestShots::default() });
        all.iter().rev().for_each(|(rank, shot)| {
            noted.note(rank, shot);
            few.note(rank, shot);
        });
        noted.end();
        few.end();
        all.sort_by(|x, y| x.0.cmp(&y.0));
        let expected: Vec<ChangedShot> = all.into_iter().map(|(_, shot)| shot).collect();
        assert_eq!(noted.iter().collect::<Result<Vec<_>, _>>(), Ok(expected.clone()));
        assert_eq!((noted.len(), noted.get(5)), (expected.len(), Ok(expected.get(5).cloned())));
        assert_eq!(noted.get(expected.len()), Ok(None));
        assert!(few.kept.iter().map(|ranked| &ranked.shot).eq(&expected[..5]));
        let hits = expected.iter().filter(|shot| shot.change != ShotChange::OtherReason);
        assert!(noted.first_hits().eq(hits.cloned()));
        assert_eq!(serde_json::to_string(&noted).expect("JSON"), serde_json::to_string(&expected).expect("JSON"));
    }
}

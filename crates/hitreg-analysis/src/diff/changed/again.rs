//! Reads the shots of both traces again, to find changed shots that were not kept.

use super::super::clock::TickTimes;
use super::super::fold::each_step;
use super::super::hits::{HitChanges, TextTable};
use super::super::keys::RowKey;
use super::super::mark::RowRank;
use super::super::options::DiffOptions;
use super::super::pairing::Pairing;
use super::super::steps::{ReorderTolerance, StepStop};
use super::{ChangedShots, EarliestShots, RankedShot};
use hitreg_log::trace::schema::shots;
use hitreg_log::trace::{SharedTrace, TraceSource};

/// Both traces, and the options of the comparison.
pub(in crate::diff) struct ShotComparison {
    traces: [SharedTrace; 2],
    options: DiffOptions,
    patience: ReorderTolerance,
}

impl ShotComparison {
    /// `None` if the traces cannot be read again later.
    pub(in crate::diff) fn of(
        [a, b]: [&dyn TraceSource; 2],
        options: &DiffOptions,
        patience: ReorderTolerance,
    ) -> Option<ShotComparison> {
        Some(ShotComparison { traces: [a.shared()?, b.shared()?], options: options.clone(), patience })
    }

    /// The next changed shots after the one with this rank.
    pub(super) fn after(&self, last: &RowRank) -> Result<Vec<RankedShot>, String> {
        let traces = self.traces.each_ref().map(|trace| &**trace as &dyn TraceSource);
        let tables = traces.map(TraceSource::tables);
        let shape = |side: usize| tables[side].iter().map(|(table, _)| *table).find(|table| table.name == shots::NAME);
        let (Some(a), Some(b)) = (shape(0), shape(1)) else { return Ok(Vec::new()) };
        let clocks = [TickTimes::of(traces[0])?, TickTimes::of(traces[1])?];
        let key = RowKey::of(a, b, &self.options);
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
            Ok(()) => Ok(next.end()),
            Err(StepStop::Unread(what)) => Err(what),
            Err(StepStop::OutOfOrder | StepStop::TimesGoBack) => {
                Err("the shots have another order than before".to_owned())
            }
        }
    }
}

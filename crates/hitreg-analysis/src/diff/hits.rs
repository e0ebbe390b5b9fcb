//! Counts shots by their results in both traces, and lists the changed ones. The list can be as long as the list of all
//! shots. For traces in files, only the first changed shots are kept in memory, and the others are read again on request.

use std::borrow::Cow;
use std::sync::Arc;

use serde::ser::{Error, SerializeSeq};
use serde::{Serialize, Serializer};

use super::cell::CellValue;
use super::clock::TickTimes;
use super::columns::TraceComparison;
use super::join::RowKey;
use super::options::DiffOptions;
use super::pairing::{Pairing, RowRank};
use super::steps::{ReorderTolerance, StepStop};
use super::table::each_step;
use hitreg_log::sorted::SortedSet;
use hitreg_log::trace::schema::shots;
use hitreg_log::trace::{SharedTrace, Table, TraceReadError, TraceSource};

/// Counts of rows of the table `shots` by their result in A and in B. Each row counts in one of the first six: each shot,
/// each launch and impact of a projectile, and each shot that no server ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HitChanges {
    /// Hit the same targets in the same hitgroups for the same damage.
    pub both: u64,
    /// Hit in A only.
    pub only_a: u64,
    /// Hit in B only.
    pub only_b: u64,
    /// Hit in both traces, but different targets.
    pub other_target: u64,
    /// Hit the same target, but with another hitgroup, damage or number of pellets, or hit other targets besides.
    pub other_wound: u64,
    /// Hit in neither trace.
    pub neither: u64,
    /// The part of `neither` whose reason for the miss differs, or which one trace lacks.
    pub other_reason: u64,
    /// Shots that B lacks, whatever their result.
    pub shots_only_in_a: u64,
    /// Shots that A lacks, whatever their result.
    pub shots_only_in_b: u64,
    /// Number of shots that the replay judged in A or in B. If it is 0, the other counts say nothing about hits.
    pub judged: u64,
    /// Number of hits in A and in B that only the recorded server reported, so that no replay judged them.
    #[serde(skip)]
    pub reported: u64,
    /// All shots whose results differ, in the order of their time: the changed shots, and those of `other_reason`.
    pub changed: ChangedShots,
}

/// How a shot's result changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShotChange {
    /// Hit in A only.
    OnlyA,
    /// Hit in B only.
    OnlyB,
    /// Hit different targets.
    OtherTarget,
    /// Hit the same target with another hitgroup, damage or number of pellets, or hit other targets besides.
    OtherWound,
    /// Missed for another reason, or was fired in one trace only.
    OtherReason,
}

/// The columns in which two hits differ: the target, then the wound.
const OUTCOME_COLUMNS: [&str; 5] = ["target", "hitgroup", "damage", "pellets", "also_hit"];

impl HitChanges {
    /// Shots and impacts that hit in both traces.
    pub(crate) fn in_both(&self) -> u64 {
        self.both + self.other_target + self.other_wound
    }

    /// Shots and impacts whose outcome changed: hit or miss, target, or wound.
    pub fn outcomes_changed(&self) -> u64 {
        self.only_a + self.only_b + self.other_target + self.other_wound
    }

    /// Counts the shots of some rows, and passes each changed shot to `changed`. With
    /// [`DiffOptions::overlap_only`], only shots that both traces have.
    pub(crate) fn add(
        &mut self,
        pairing: &Pairing<'_>,
        options: &DiffOptions,
        texts: &mut TextTable,
        changed: &mut dyn FnMut(RowRank, ChangedShot),
    ) {
        let tables = [pairing.a, pairing.b];
        let [of_a, of_b] = tables.map(|table| ReadShots::of(table, texts));
        let compares = |name| !options.overlap_only || tables.iter().all(|table| table.column(name).is_some());
        let compared = OUTCOME_COLUMNS.map(compares);
        let pairs = (0..pairing.join.len()).map(|pair| pairing.spot(pair));
        for spot in pairs.chain(pairing.lone(options)) {
            let a = spot.a.map(|row| of_a.outcome(row as usize));
            let b = spot.b.map(|row| of_b.outcome(row as usize));
            self.shots_only_in_a += u64::from(b.is_none());
            self.shots_only_in_b += u64::from(a.is_none());
            let rows =
                || [(&of_a, spot.a), (&of_b, spot.b)].into_iter().filter_map(|(of, row)| Some((of, row? as usize)));
            self.judged += u64::from(rows().any(|(of, row)| of.shots.is_judged(row)));
            self.reported += u64::from(rows().all(|(of, row)| of.shots.is_reported(row)));
            if let (Some(change), Some((side, row))) = (self.count(a.as_ref(), b.as_ref(), compared), spot.row()) {
                let at_us = match change {
                    ShotChange::OnlyA => a.as_ref().and_then(|of| of.at_us),
                    ShotChange::OnlyB => b.as_ref().and_then(|of| of.at_us),
                    ShotChange::OtherTarget | ShotChange::OtherWound | ShotChange::OtherReason => None,
                }
                .or(spot.at_us);
                let rank = RowRank { at_us, ..pairing.rank(&spot) };
                changed(rank, ChangedShot::of((pairing.table(side), row), at_us, change, a, b));
            }
        }
    }

    /// Counts a shot, and returns how it changed, if it did. `compared` says which of the [`OUTCOME_COLUMNS`] count.
    fn count(
        &mut self,
        a: Option<&ShotOutcome>,
        b: Option<&ShotOutcome>,
        compared: [bool; OUTCOME_COLUMNS.len()],
    ) -> Option<ShotChange> {
        let hit = |outcome: Option<&ShotOutcome>| outcome.is_some_and(|o| &*o.reason == "hit");
        match (hit(a), hit(b), a, b) {
            (true, true, Some(a), Some(b)) if compared[0] && a.target != b.target => {
                self.other_target += 1;
                Some(ShotChange::OtherTarget)
            }
            (true, true, Some(a), Some(b)) if a.wound(compared) != b.wound(compared) => {
                self.other_wound += 1;
                Some(ShotChange::OtherWound)
            }
            (true, true, ..) => {
                self.both += 1;
                None
            }
            (true, false, ..) => {
                self.only_a += 1;
                Some(ShotChange::OnlyA)
            }
            (false, true, ..) => {
                self.only_b += 1;
                Some(ShotChange::OnlyB)
            }
            (false, false, a, b) => {
                self.neither += 1;
                let other = a.map(|o| &o.reason) != b.map(|o| &o.reason);
                self.other_reason += u64::from(other);
                other.then_some(ShotChange::OtherReason)
            }
        }
    }
}

/// A shot whose result differs between the traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedShot {
    /// The player who shot.
    pub shooter: u32,
    /// The usercmd that fired.
    pub command: u32,
    /// The shot's index within that usercmd.
    pub index: u32,
    /// Whether it is the impact of a projectile.
    pub is_impact: bool,
    /// When the server judged it, in microseconds of session time: on the side where it hit, or on the earlier side.
    pub at_us: Option<i64>,
    /// What changed.
    pub change: ShotChange,
    /// The result in A; `None` if the shot was not fired there.
    pub a: Option<ShotOutcome>,
    /// The result in B; `None` if the shot was not fired there.
    pub b: Option<ShotOutcome>,
}

/// All names that occur, each stored once and shared by the shots that have it.
#[derive(Default)]
pub(crate) struct TextTable(SortedSet<Arc<str>>);

impl TextTable {
    pub(super) fn of(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let text: Arc<str> = name.into();
        self.0.insert(Arc::clone(&text));
        text
    }
}

/// The result of a shot.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShotOutcome {
    /// The session time at which the server judged it, in microseconds.
    pub at_us: Option<i64>,
    /// The tick in which the server judged it.
    pub tick: Option<i64>,
    /// The weapon.
    pub weapon: Arc<str>,
    /// `hit`, or the reason of the miss.
    pub reason: Arc<str>,
    /// The target: `p3`, or `none`.
    pub target: Arc<str>,
    /// The hitgroup that was hit.
    pub hitgroup: Arc<str>,
    /// The damage, in health points.
    pub damage: Option<i64>,
    /// The number of pellets that hit.
    pub pellets: Option<i64>,
    /// The other targets that were hit, as in the table `shots`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub also_hit: Option<Arc<str>>,
    /// How far the targets were rewound, in microseconds.
    pub rewind_us: Option<i64>,
    /// What limited the rewind.
    pub limit: Arc<str>,
    /// Distance between where the shooter's client drew the target and where the server judged it, in units.
    pub view_error_units: Option<f32>,
    /// The result that the shooter's client predicted.
    pub predicted_reason: Arc<str>,
    /// The target that the shooter's client predicted.
    pub predicted_target: Arc<str>,
}

impl ChangedShot {
    fn of(
        (table, row): (&Table, usize),
        at_us: Option<i64>,
        change: ShotChange,
        a: Option<ShotOutcome>,
        b: Option<ShotOutcome>,
    ) -> ChangedShot {
        let number = |name| integer(table, name, row).and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
        let (shooter, command, index) = (number("shooter"), number("command"), number("index"));
        ChangedShot { shooter, command, index, is_impact: number("impact") == 1, at_us, change, a, b }
    }
}

/// The shots of a table, with names as shared texts.
struct ReadShots<'t> {
    table: &'t Table,
    shots: shots::Columns<'t>,
    /// The name columns of an outcome, in the order of its fields.
    names: [(Vec<Arc<str>>, &'t [u32]); 8],
}

impl<'t> ReadShots<'t> {
    fn of(table: &'t Table, texts: &mut TextTable) -> ReadShots<'t> {
        let shots = shots::Columns::read(table);
        let columns = [
            shots.weapon,
            shots.reason,
            shots.target,
            shots.hitgroup,
            shots.also_hit,
            shots.limit,
            shots.predicted_reason,
            shots.predicted_target,
        ];
        let names = columns.map(|column| (column.names.iter().map(|name| texts.of(name)).collect(), column.codes));
        ReadShots { table, shots, names }
    }

    fn outcome(&self, row: usize) -> ShotOutcome {
        let name = |(names, codes): &(Vec<Arc<str>>, &[u32])| {
            codes.get(row).and_then(|code| names.get(*code as usize)).cloned().unwrap_or_default()
        };
        let [weapon, reason, target, hitgroup, also_hit, limit, predicted_reason, predicted_target] =
            self.names.each_ref().map(name);
        let number = |name| integer(self.table, name, row);
        ShotOutcome {
            at_us: number("at_us"),
            tick: number("tick"),
            weapon,
            reason,
            target,
            hitgroup,
            damage: self.shots.known_damage(row),
            pellets: number("pellets"),
            also_hit: Some(also_hit).filter(|others| !matches!(&**others, "" | "none")),
            rewind_us: self.shots.known_rewind_us(row),
            limit: if self.shots.is_judged(row) { limit } else { Arc::default() },
            view_error_units: self.shots.view_error_units.get(row).copied().filter(|v| !v.is_nan()),
            predicted_reason,
            predicted_target,
        }
    }
}

impl ShotOutcome {
    /// Those of the [`OUTCOME_COLUMNS`] after the target that are compared.
    fn wound(
        &self,
        [_, hitgroup, damage, pellets, also_hit]: [bool; OUTCOME_COLUMNS.len()],
    ) -> (Option<&str>, Option<i64>, Option<i64>, Option<&str>) {
        (
            hitgroup.then_some(&*self.hitgroup),
            self.damage.filter(|_| damage),
            self.pellets.filter(|_| pellets),
            self.also_hit.as_deref().filter(|_| also_hit),
        )
    }
}

fn integer(table: &Table, name: &str, row: usize) -> Option<i64> {
    match table.column(name).and_then(|column| CellValue::at(column, row)) {
        Some(CellValue::Integer(value)) => Some(value),
        _ => None,
    }
}

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
    pub const KEPT_MAX: usize = 1 << 13;
    /// How many of the first changed hits are kept in any case, even if other changes come before them.
    pub const KEPT_HITS_MAX: usize = 16;

    /// An empty list. It keeps only the first shots, if `again` can read the others.
    pub(super) fn kept(again: Option<ShotComparison>) -> ChangedShots {
        let most = |most: usize| EarliestShots { most: again.is_some().then_some(most), ..EarliestShots::default() };
        let (first, first_hits) = (most(ChangedShots::KEPT_MAX), most(ChangedShots::KEPT_HITS_MAX));
        ChangedShots { first, first_hits, again: again.map(Arc::new), count: 0 }
    }

    pub(super) fn note(&mut self, rank: RowRank, shot: ChangedShot) {
        self.count += 1;
        if shot.change != ShotChange::OtherReason {
            self.first_hits.note(rank.clone(), shot.clone());
        }
        self.first.note(rank, shot);
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

    /// The shots in memory: the first [`ChangedShots::KEPT_MAX`], or all shots if the traces are in memory.
    pub fn first(&self) -> impl Iterator<Item = ChangedShot> + '_ {
        self.first.kept.iter().map(|ranked| ranked.shot.clone())
    }

    /// The first changed shots that hit in at least one of the traces, at most [`ChangedShots::KEPT_HITS_MAX`].
    pub fn first_hits(&self) -> impl Iterator<Item = ChangedShot> + '_ {
        self.first_hits.kept.iter().map(|ranked| ranked.shot.clone())
    }

    /// One changed shot by its index; `None` after the last.
    ///
    /// # Errors
    /// When the shot is not in memory and the traces cannot be read again; the error is a text.
    pub fn get(&self, place: usize) -> Result<Option<ChangedShot>, TraceReadError> {
        self.iter().nth(place).transpose()
    }

    /// All changed shots. If the traces cannot be read again, the error is the last item.
    pub fn iter(&self) -> impl Iterator<Item = Result<ChangedShot, TraceReadError>> + '_ {
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
                return Some(Err(TraceReadError("there are fewer shots in the traces than before".to_owned())));
            };
            Some(Ok(shot.clone()))
        })
    }
}

/// A changed shot with its place in the order of the list.
#[derive(Clone)]
struct RankedShot {
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
    fn note(&mut self, rank: RowRank, shot: ChangedShot) {
        if self.last.as_ref().is_some_and(|last| rank.cmp(last).is_gt()) {
            return;
        }
        self.kept.push(RankedShot { rank, shot });
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
    tolerance: ReorderTolerance,
}

impl ShotComparison {
    /// `None` if the traces cannot be read again later.
    pub(super) fn of(compared: &TraceComparison<'_>, tolerance: ReorderTolerance) -> Option<ShotComparison> {
        let [a, b] = compared.traces.map(TraceSource::shared);
        Some(ShotComparison { traces: [a?, b?], options: compared.options.clone(), tolerance })
    }

    /// The next changed shots after the one with this rank.
    fn after(&self, last: &RowRank) -> Result<Vec<RankedShot>, TraceReadError> {
        let traces = self.traces.each_ref().map(|trace| &**trace as &dyn TraceSource);
        let tables = traces.map(TraceSource::tables);
        let shape = |side: usize| tables[side].iter().map(|(table, _)| *table).find(|table| table.name == shots::NAME);
        let (Some(a), Some(b)) = (shape(0), shape(1)) else { return Ok(Vec::new()) };
        let clocks = [TickTimes::of(traces[0])?, TickTimes::of(traces[1])?];
        let key = RowKey::of(a, b);
        let mut next = EarliestShots { most: Some(ChangedShots::KEPT_MAX), ..EarliestShots::default() };
        let mut texts = TextTable::default();
        let went =
            each_step(traces, [a, b], &key, [&clocks[0], &clocks[1]], self.tolerance, &mut |rows, times, before| {
                let Ok(pairing) = Pairing::of(rows, before, &key, times) else { return true };
                HitChanges::default().add(&pairing, &self.options, &mut texts, &mut |rank, shot| {
                    if rank.cmp(last).is_gt() {
                        next.note(rank, shot);
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
                Err(TraceReadError("the shots have another order than before".to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::pairing::KeyPart;
    use hitreg_log::trace::{Column, ColumnData};

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
                let outcome = ShotOutcome {
                    at_us,
                    tick: part,
                    damage: None,
                    pellets: numbers[all.len() % 8],
                    rewind_us: at_us,
                    view_error_units: Some(round as f32 - 0.5).filter(|_| round % 3 > 0),
                    weapon: text(),
                    reason: text(),
                    target: text(),
                    ..ShotOutcome::default()
                };
                let key =
                    vec![KeyPart::Number(part.unwrap_or_default()), KeyPart::Name(name.to_owned()), KeyPart::Number(3)];
                let rank = RowRank { at_us, key, is_pair: round % 2 == 0, row: all.len() as u64 };
                let change = [ShotChange::OnlyA, ShotChange::OtherWound, ShotChange::OtherReason][all.len() % 3];
                let [a, b] = [0, 1].map(|side| Some(outcome.clone()).filter(|_| all.len() % 3 != side));
                let (index, is_impact) = (all.len() as u32, round % 4 == 0);
                all.push((rank, ChangedShot { shooter: 7, command: u32::MAX, index, is_impact, at_us, change, a, b }));
            }
        }
        all
    }

    /// Without the map, a replay of a real game knows only hits, and no launches of rockets.
    #[test]
    fn nothing_judged_a_hit_or_impact_that_was_only_reported() {
        let names = |name: &str, codes: Vec<u32>| {
            Column::new(name, ColumnData::Name { names: ["hit", "none", "?"].map(str::to_owned).into(), codes })
        };
        let impact = Column::new("impact", ColumnData::U32(vec![0, 1, 0, 1]));
        let columns = vec![impact, names("reason", vec![0; 4]), names("given_target", vec![2, 2, 1, 1])];
        let table = Table::new(shots::NAME, columns);
        let read = ReadShots::of(&table, &mut TextTable::default());
        assert_eq!([0, 1, 2, 3].map(|row| read.shots.is_judged(row)), [false, false, true, true]);
    }

    #[test]
    fn changed_shots_come_back_in_order_of_rank() {
        let mut all = shots();
        let (mut noted, mut few) =
            (ChangedShots::default(), EarliestShots { most: Some(5), ..EarliestShots::default() });
        all.iter().rev().for_each(|(rank, shot)| {
            noted.note(rank.clone(), shot.clone());
            few.note(rank.clone(), shot.clone());
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

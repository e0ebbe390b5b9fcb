//! Compares the columns of a joined table in one pass, and sums up the differences: whether they persist or heal, how far
//! they spread, and the largest errors.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::Serialize;

use super::cell::{CellComparison, CellPair, DifferenceClass, NumberComparison, floats, integers};
use super::columns::{ColumnPair, Rule, TraceComparison};
use super::join::{OwnerMap, PairRun};
use super::pairing::{Owner, Pairing, RowMark, RowPlace, by_time};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::JoinRule;

/// The result of one pass. Pairs are named by their index in the join.
pub(crate) struct ScanResult {
    /// The owners of the pairs.
    pub(crate) owners: Vec<Owner>,
    /// The last compared pair of each owner.
    pub(crate) last: Vec<Option<usize>>,
    /// For each compared column: the differences by owner.
    pub(crate) columns: Vec<(String, OwnerRuns)>,
    /// The result for each pair.
    pub(crate) pairs: Vec<PairResult>,
    /// The index of each pair's owner.
    owner_of: Vec<u32>,
    /// The time of each pair.
    times: Vec<i64>,
    /// Whether the pairs of each owner are in the order in which they happened.
    in_order: bool,
}

/// The differences in one column, for each owner of [`ScanResult::owners`]. Owners without differences have no rows.
type OwnerRuns = Vec<DifferenceRun<usize>>;

/// The differences in one column of one owner.
#[derive(Clone, Debug)]
pub(crate) struct DifferenceRun<S> {
    pub(crate) rows: u64,
    pub(crate) drifted: u64,
    pub(crate) class: DifferenceClass,
    pub(crate) first: S,
    pub(crate) last: S,
    pub(crate) largest: Option<(f64, S)>,
}

/// The result for one pair of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PairResult {
    /// A cell differs.
    pub(crate) differs: bool,
    /// A cell differs within tolerance.
    pub(crate) within: bool,
    /// The rows have different times, so nothing else was compared.
    pub(crate) other_time: bool,
}

/// How many rows are compared by their bits at once.
const BLOCK_ROWS: usize = 1024;
/// Fewer rows are compared one by one.
const SKIPPED_ROWS: usize = 64;

impl ScanResult {
    pub(crate) fn of(pairing: &Pairing<'_>, compared: &TraceComparison<'_>) -> ScanResult {
        let mut scan = ScanResult::of_owners(pairing);
        for column in &pairing.a.columns {
            let is_time = column.name == "at_us" && pairing.key.join_rule == JoinRule::AtSameTime;
            if is_time || pairing.key.columns.contains(&column.name) || !compared.options.on.has_column(&column.name) {
                continue;
            }
            if let Some(cells) = ColumnPair::of(pairing.a, pairing.b, &column.name, compared) {
                let runs = scan.column(pairing, &cells);
                scan.columns.push((column.name.clone(), runs));
            }
        }
        scan
    }

    /// Finds the owner of each pair, and the pairs of rows with different times.
    fn of_owners(pairing: &Pairing<'_>) -> ScanResult {
        let count = pairing.join.len();
        let mut found = PairOwners::default();
        let mut scan = ScanResult {
            owners: Vec::new(),
            last: Vec::new(),
            columns: Vec::new(),
            pairs: vec![PairResult::default(); count],
            owner_of: Vec::with_capacity(count),
            times: Vec::with_capacity(count),
            in_order: true,
        };
        // The last pair of each owner.
        let mut before: Vec<usize> = Vec::new();
        let timed = pairing.key.join_rule != JoinRule::Always;
        let mut parts = [Vec::new(), Vec::new()];
        for &PairRun { first, a, b, rows } in &pairing.join.runs {
            parts.iter_mut().zip(0..).for_each(|(part, place)| pairing.read_owners(place, a..a + rows, part));
            for (row, whose) in parts[0].iter().copied().zip(parts[1].iter().copied()).enumerate() {
                let (pair, i, j) = (first + row, a + row, b + row);
                let place = found.place(whose);
                scan.owner_of.push(place as u32);
                scan.times.push(pairing.time(i, j));
                if place == before.len() {
                    scan.last.push(None);
                    before.push(pair);
                }
                let known = std::mem::replace(&mut before[place], pair);
                scan.in_order &= known == pair || is_later(&scan.times, pairing, pair, known);
                if timed && !pairing.same_time(i, j) {
                    scan.pairs[pair].other_time = true;
                } else if scan.in_order
                    || scan.last[place].is_none_or(|last| is_later(&scan.times, pairing, pair, last))
                {
                    scan.last[place] = Some(pair);
                }
            }
        }
        scan.owners = found.owners.iter().map(|whose| pairing.owner_of_parts(*whose)).collect();
        scan
    }

    /// Whether a pair was compared and is equal.
    pub(crate) fn agrees(&self, pair: usize) -> bool {
        !self.pairs[pair].differs && !self.pairs[pair].other_time
    }

    /// Compares the cells of a column. Common kinds of columns have loops of their own, for speed.
    fn column(&mut self, pairing: &Pairing<'_>, column: &ColumnPair<'_>) -> OwnerRuns {
        const EXACTLY: NumberComparison = NumberComparison { within: None, is_angle: false, has_size: false };
        const AROUND: NumberComparison = NumberComparison { is_angle: true, ..EXACTLY };
        match (&column.rule, &column.cells) {
            (Rule::Plain(NumberComparison { within: None, is_angle: false, .. }), CellPair::F32(a, b)) => {
                self.cells(pairing, column, |i, j, rows| {
                    let (a, b) = (&a[i..][..rows], &b[j..][..rows]);
                    move |row| floats(a[row], b[row], EXACTLY)
                })
            }
            (Rule::Plain(NumberComparison { within: None, .. }), CellPair::F32(a, b)) => {
                self.cells(pairing, column, |i, j, rows| {
                    let (a, b) = (&a[i..][..rows], &b[j..][..rows]);
                    move |row| floats(a[row], b[row], AROUND)
                })
            }
            (Rule::Plain(measure), CellPair::F32(a, b)) => self.cells(pairing, column, |i, j, rows| {
                let (a, b) = (&a[i..][..rows], &b[j..][..rows]);
                move |row| floats(a[row], b[row], *measure)
            }),
            (Rule::Plain(NumberComparison { within: None, .. }), CellPair::U32(a, b)) => {
                self.cells(pairing, column, |i, j, rows| {
                    let (a, b) = (&a[i..][..rows], &b[j..][..rows]);
                    move |row| integers(a[row].into(), b[row].into(), None)
                })
            }
            (Rule::Plain(NumberComparison { within: None, .. }), CellPair::I64(a, b)) => {
                self.cells(pairing, column, |i, j, rows| {
                    let (a, b) = (&a[i..][..rows], &b[j..][..rows]);
                    move |row| integers(a[row], b[row], None)
                })
            }
            _ => self.cells(pairing, column, |i, j, _| move |row| column.compare(i + row, j + row)),
        }
    }

    /// Adds up the differences of a column. `compare` prepares the comparison of some rows, from a row of A and a row of B on.
    fn cells<C: Fn(usize) -> CellComparison>(
        &mut self,
        pairing: &Pairing<'_>,
        column: &ColumnPair<'_>,
        compare: impl Fn(usize, usize, usize) -> C,
    ) -> OwnerRuns {
        let mut runs = vec![DifferenceRun::default(); self.owners.len()];
        for run in &pairing.join.runs {
            for start in (0..run.rows).step_by(BLOCK_ROWS) {
                let rows = BLOCK_ROWS.min(run.rows - start);
                let (a, b) = (run.a + start, run.b + start);
                if rows < SKIPPED_ROWS || !column.same_bits(a, b, rows) {
                    let block = PairRun { first: run.first + start, a, b, rows };
                    self.add_block(pairing, column, block, &compare, &mut runs);
                }
            }
        }
        runs
    }

    /// Compares the cells of some pairs. It is a function of its own, so that the loop has enough registers.
    #[inline(never)]
    fn add_block<C: Fn(usize) -> CellComparison>(
        &mut self,
        pairing: &Pairing<'_>,
        column: &ColumnPair<'_>,
        PairRun { first, a, b, rows }: PairRun,
        compare: impl Fn(usize, usize, usize) -> C,
        runs: &mut OwnerRuns,
    ) {
        let (pairs, owner_of) = (&mut self.pairs[first..][..rows], &self.owner_of[first..][..rows]);
        let compare = compare(a, b, rows);
        for row in 0..rows {
            let (class, error) = match compare(row) {
                CellComparison::Same => continue,
                _ if pairs[row].other_time || !column.is_compared(a + row, b + row) => continue,
                CellComparison::Within => {
                    pairs[row].within = true;
                    continue;
                }
                CellComparison::Differs { class, error } => (class, error),
            };
            pairs[row].differs = true;
            let run = &mut runs[owner_of[row] as usize];
            match self.in_order || run.rows == 0 {
                true => run.add_later(class, error, first + row),
                false => run.add(|x, y| is_later(&self.times, pairing, x, y), class, error, first + row),
            }
        }
    }
}

/// Whether a pair happened after another, by the times of all pairs first.
#[inline]
fn is_later(times: &[i64], pairing: &Pairing<'_>, pair: usize, than: usize) -> bool {
    let in_time = times[pair].cmp(&times[than]);
    in_time.then_with(|| pairing.cmp(&pairing.spot(pair), &pairing.spot(than))).is_gt()
}

/// The owners of pairs, in the order of their first pairs.
#[derive(Default)]
struct PairOwners {
    /// The numbers of each owner in the columns that name it; 0 for a column that the table lacks.
    owners: Vec<(i64, i64)>,
    places: OwnerMap<OwnerMap<u32>>,
    /// For each owner: the owner of the pair that followed its last pair. Mostly, the same follows again.
    next: Vec<usize>,
    /// The owner of the last pair.
    last: usize,
}

impl PairOwners {
    /// The place of the next pair's owner in `owners`.
    fn place(&mut self, whose: (i64, i64)) -> usize {
        let expected = self.next.get(self.last).copied();
        let place = match expected {
            Some(place) if self.owners[place] == whose => place,
            _ => self.found(whose),
        };
        self.last = place;
        place
    }

    fn found(&mut self, whose: (i64, i64)) -> usize {
        let of_first = self.places.or_insert_with(whose.0, OwnerMap::default);
        let place = *of_first.or_insert_with(whose.1, || self.owners.len() as u32) as usize;
        if place == self.owners.len() {
            self.owners.push(whose);
            self.next.push(place);
        }
        self.next[self.last] = place;
        place
    }
}

impl Default for DifferenceRun<usize> {
    fn default() -> Self {
        DifferenceRun { rows: 0, drifted: 0, class: DifferenceClass::Drift, first: 0, last: 0, largest: None }
    }
}

impl DifferenceRun<usize> {
    /// Adds a pair. `is_later` says whether a pair happened after another.
    #[inline(never)]
    fn add(
        &mut self,
        is_later: impl Fn(usize, usize) -> bool,
        class: DifferenceClass,
        error: Option<f64>,
        pair: usize,
    ) {
        let (first, last, largest) = (self.first, self.last, self.largest);
        self.add_later(class, error, pair);
        self.first = if is_later(first, pair) { pair } else { first };
        self.last = if is_later(last, pair) { last } else { pair };
        if let (Some((most, at)), Some(error)) = (largest, error)
            && error.total_cmp(&most).is_eq()
            && is_later(at, pair)
        {
            self.largest = Some((error, pair));
        }
    }

    /// Adds a pair that happened after all others.
    fn add_later(&mut self, class: DifferenceClass, error: Option<f64>, pair: usize) {
        if self.rows == 0 {
            self.first = pair;
        }
        self.rows += 1;
        self.drifted += u64::from(class == DifferenceClass::Drift);
        self.class = self.class.max(class);
        self.last = pair;
        if let Some(error) = error
            && self.largest.is_none_or(|(most, _)| error > most)
        {
            self.largest = Some((error, pair));
        }
    }
}

impl DifferenceRun<Arc<RowMark>> {
    /// Converts a run to marks, which remain valid after its rows are dropped.
    pub(crate) fn of(run: &DifferenceRun<usize>, mut mark: impl FnMut(usize) -> Arc<RowMark>) -> Self {
        let DifferenceRun { rows, drifted, class, first, last, largest } = *run;
        let largest = largest.map(|(error, pair)| (error, mark(pair)));
        DifferenceRun { rows, drifted, class, first: mark(first), last: mark(last), largest }
    }

    /// Merges a run of other rows.
    pub(crate) fn join(
        &mut self,
        other: &DifferenceRun<usize>,
        pairing: &Pairing<'_>,
        mut mark: impl FnMut(usize) -> Arc<RowMark>,
    ) {
        self.rows += other.rows;
        self.drifted += other.drifted;
        self.class = self.class.max(other.class);
        // Rows mostly come in the order of their times, and a mark costs more than a time.
        if by_time(pairing.spot(other.first).at_us, self.first.at_us()).is_le() {
            let first = mark(other.first);
            if first.cmp(&self.first).is_lt() {
                self.first = first;
            }
        }
        let last = mark(other.last);
        if last.cmp(&self.last).is_gt() {
            self.last = last;
        }
        if let Some((error, pair)) = other.largest
            && self.largest.as_ref().is_none_or(|(most, _)| error.total_cmp(most).is_ge())
        {
            let other = (error, mark(pair));
            if self.largest.as_ref().is_none_or(|known| larger(&other, known).is_gt()) {
                self.largest = Some(other);
            }
        }
    }
}

/// Orders errors by size. Among equal errors, the earlier one is the greater.
fn larger(x: &(f64, Arc<RowMark>), y: &(f64, Arc<RowMark>)) -> Ordering {
    x.0.total_cmp(&y.0).then_with(|| y.1.cmp(&x.1))
}

/// Differences in one column, by the owner of the rows.
pub(crate) type ColumnRuns = SortedMap<Owner, DifferenceRun<Arc<RowMark>>>;

/// The differences in one column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldDiff {
    /// The column.
    pub field: String,
    /// How many rows differ in it.
    pub rows: u64,
    /// How many of these rows have only drifted.
    pub drifted: u64,
    /// The worst class of its differences.
    pub class: DifferenceClass,
    /// For how many entities or players it differs.
    pub series: u64,
    /// The first differing row.
    pub first: RowPlace,
    /// The last differing row.
    pub last: RowPlace,
    /// The largest error, in the column's unit; `None` for names, hashes and values that cannot be subtracted.
    pub largest: Option<LargestError>,
    /// Whether all entities and players agree again after their last difference, up to the end.
    pub healed: bool,
}

/// The largest error of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LargestError {
    /// The error, in the column's unit.
    pub error: f64,
    /// The place of the row.
    pub place: RowPlace,
}

/// The differences in one column of one entity or player.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesDiff {
    /// The column.
    pub field: String,
    /// The player, if the table has rows by player.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<u32>,
    /// The entity, if the table has rows by entity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<u32>,
    /// How many rows differ.
    pub rows: u64,
    /// The first differing row.
    pub first: RowPlace,
    /// The last differing row.
    pub last: RowPlace,
    /// The largest error, in the column's unit.
    pub largest: Option<f64>,
    /// Whether later rows of this entity or player agree again, up to the end.
    pub healed: bool,
}

/// How far a divergence has spread at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DivergenceSpread {
    /// The session time.
    pub at_us: Option<i64>,
    /// How many entities or players have differed up to this time.
    pub series: u64,
    /// How many columns have differed up to this time.
    pub fields: u64,
}

impl FieldDiff {
    pub(crate) fn all(columns: &[(String, ColumnRuns)]) -> Vec<FieldDiff> {
        let of_column = |(name, runs): &(String, ColumnRuns)| {
            let first = runs.values().map(|r| &r.first).min_by(|x, y| x.cmp(y))?;
            let last = runs.values().map(|r| &r.last).max_by(|x, y| x.cmp(y))?;
            let largest = runs.values().filter_map(|r| r.largest.as_ref()).max_by(|x, y| larger(x, y));
            Some(FieldDiff {
                field: name.clone(),
                rows: runs.values().map(|r| r.rows).sum(),
                drifted: runs.values().map(|r| r.drifted).sum(),
                class: runs.values().map(|r| r.class).max()?,
                series: runs.len() as u64,
                first: first.place.clone(),
                last: last.place.clone(),
                largest: largest.map(|(error, mark)| LargestError { error: *error, place: mark.place.clone() }),
                healed: false,
            })
        };
        columns.iter().filter_map(of_column).collect()
    }
}

impl SeriesDiff {
    /// The differences by column and owner. `last` holds the last compared pair of each owner.
    pub(crate) fn all(columns: &[(String, ColumnRuns)], last: &SortedMap<Owner, Arc<RowMark>>) -> Vec<SeriesDiff> {
        let runs = columns.iter().flat_map(|(name, runs)| runs.iter().map(move |(owner, run)| (name, owner, run)));
        let series = runs.map(|(name, owner, run)| SeriesDiff {
            field: name.clone(),
            player: run.first.place.player,
            entity: run.first.place.entity,
            rows: run.rows,
            first: run.first.place.clone(),
            last: run.last.place.clone(),
            largest: run.largest.as_ref().map(|(error, _)| *error),
            healed: last.get(owner).is_some_and(|last| last.cmp(&run.last).is_gt()),
        });
        series.collect()
    }
}

impl DivergenceSpread {
    /// One point for each time at which the divergence reached another entity, player or column.
    pub(crate) fn of(columns: &[(String, ColumnRuns)]) -> Vec<DivergenceSpread> {
        let runs = columns.iter().enumerate();
        let mut firsts: Vec<(&Arc<RowMark>, Owner, usize)> = runs
            .flat_map(|(column, (_, runs))| runs.iter().map(move |(owner, run)| (&run.first, *owner, column)))
            .collect();
        firsts.sort_by(|x, y| x.0.cmp(y.0).then(x.2.cmp(&y.2)));
        let (mut owners, mut columns) = (SortedSet::new(), SortedSet::new());
        let mut spread: Vec<DivergenceSpread> = Vec::new();
        for (mark, owner, column) in firsts {
            let grew = owners.insert(owner) | columns.insert(column);
            let reached =
                DivergenceSpread { at_us: mark.at_us(), series: owners.len() as u64, fields: columns.len() as u64 };
            match spread.last_mut() {
                Some(last) if last.at_us == mark.at_us() => *last = reached,
                _ if grew => spread.push(reached),
                _ => {}
            }
        }
        spread
    }
}

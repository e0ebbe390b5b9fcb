//! The keys of a table's rows, and the join of both traces' rows by key. Rows are never joined by position.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;

use super::cell::{ordered, ordered_double};
use super::pairing::{KeyPart, Owner};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{JoinRule, TableSchema};
use hitreg_log::trace::{Column, ColumnData, Table};

/// The columns that identify the rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowKey {
    /// The columns, in the order in which rows of the same time are sorted.
    pub(crate) columns: Vec<String>,
    /// Indices in `columns` of the owner: the entity or player whose row it is. The rows of one owner form a series.
    pub(crate) series: Vec<usize>,
    /// When rows with the same key may be compared.
    pub(crate) join_rule: JoinRule,
}

/// Owner columns in tables that a build adds.
const OWNER_COLUMNS: [&str; 3] = ["entity", "player", "shooter"];

impl RowKey {
    /// The key of a table that both traces have. An added table that names no key uses all its columns in order.
    pub(crate) fn of(a: &Table, b: &Table) -> RowKey {
        let known = TableSchema::of(&a.name);
        let columns = match (known, [a, b].into_iter().find(|table| !table.key.is_empty())) {
            (Some(known), _) => known.key.iter().map(|column| (*column).to_owned()).collect(),
            (None, Some(says)) => says.key.clone(),
            (None, None) => {
                a.columns.iter().map(|column| &column.name).filter(|name| b.column(name).is_some()).cloned().collect()
            }
        };
        let whose = |name: &String| match known {
            Some(known) => known.series.contains(&name.as_str()),
            None => OWNER_COLUMNS.contains(&name.as_str()),
        };
        let series = (0..columns.len()).filter(|&i| whose(&columns[i])).take(2).collect();
        let join_rule = match known.map_or(JoinRule::WithTheirTime, |known| known.joined) {
            // The time of such rows is a value of their own, which is compared like the others.
            JoinRule::WithTheirTime if [a, b].iter().all(|table| table.column("at_us").is_some()) => JoinRule::Always,
            join_rule => join_rule,
        };
        RowKey { columns, series, join_rule }
    }
}

/// The keys of all rows of a table in both traces, as numbers with the same order on both sides.
pub(crate) struct KeyCells<'t> {
    columns: Vec<KeyColumn<'t>>,
    /// Whether the key begins with the owner of a row. Else all rows have one owner for the join.
    starts_with_owner: bool,
}

/// One key column in both traces.
struct KeyColumn<'t> {
    numbers: KeyNumbers<'t>,
    /// The names that the numbers index, in a column of names.
    names: Option<Vec<String>>,
}

/// The numbers of A and of B in one key column.
enum KeyNumbers<'t> {
    Narrow([&'t [u32]; 2]),
    Wide([Cow<'t, [i64]>; 2]),
}

impl KeyNumbers<'_> {
    #[inline]
    fn get(&self, side: TraceSide, row: usize) -> i64 {
        match self {
            KeyNumbers::Narrow(numbers) => numbers[side as usize][row].into(),
            KeyNumbers::Wide(numbers) => numbers[side as usize][row],
        }
    }

    /// Calls `take` for each run of rows with the same number.
    fn each_run(&self, side: TraceSide, rows: Range<usize>, mut take: impl FnMut(OwnerRun)) {
        fn each<T: Copy + PartialEq + Into<i64>>(numbers: &[T], mut start: usize, mut take: impl FnMut(OwnerRun)) {
            for run in numbers.chunk_by(|a, b| a == b) {
                let rows = start..start + run.len();
                start = rows.end;
                take(OwnerRun { owner: run[0].into(), rows });
            }
        }
        match self {
            KeyNumbers::Narrow(numbers) => each(&numbers[side as usize][rows.clone()], rows.start, &mut take),
            KeyNumbers::Wide(numbers) => each(&numbers[side as usize][rows.clone()], rows.start, &mut take),
        }
    }

    /// Whether keys ascend, so that none occurs twice. `self` has the numbers of one key column, `rest` the columns after
    /// it.
    fn ascend(&self, rest: &[KeyColumn<'_>], side: TraceSide, rows: Range<usize>) -> bool {
        fn ascend<T: Copy + Ord>(
            numbers: &[T],
            mut start: usize,
            mut of_rest: impl FnMut(Range<usize>) -> bool,
        ) -> bool {
            numbers.is_sorted()
                && numbers.chunk_by(|a, b| a == b).all(|run| {
                    let rows = start..start + run.len();
                    start = rows.end;
                    rows.len() == 1 || of_rest(rows)
                })
        }
        let of_rest =
            |rows: Range<usize>| rest.split_first().is_some_and(|(next, rest)| next.numbers.ascend(rest, side, rows));
        match self {
            KeyNumbers::Narrow(numbers) => ascend(&numbers[side as usize][rows.clone()], rows.start, of_rest),
            KeyNumbers::Wide(numbers) => ascend(&numbers[side as usize][rows.clone()], rows.start, of_rest),
        }
    }

    /// How many of `rows` rows are equal, from row `i` of A and row `j` of B on.
    fn common_run(&self, i: usize, j: usize, rows: usize) -> usize {
        fn common<T: PartialEq>(a: &[T], b: &[T]) -> usize {
            if a == b { a.len() } else { a.iter().zip(b).take_while(|(a, b)| a == b).count() }
        }
        match self {
            KeyNumbers::Narrow([a, b]) => common(&a[i..][..rows], &b[j..][..rows]),
            KeyNumbers::Wide([a, b]) => common(&a[i..][..rows], &b[j..][..rows]),
        }
    }
}

/// One of the two traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceSide {
    /// The first trace.
    A,
    /// The second trace.
    B,
}

impl<'t> KeyCells<'t> {
    /// # Errors
    /// When a table lacks a column of the key, or the column's type cannot be a key; the error is a text.
    pub(crate) fn of(key: &RowKey, a: &'t Table, b: &'t Table) -> Result<KeyCells<'t>, String> {
        let mut columns = Vec::with_capacity(key.columns.len());
        for name in &key.columns {
            let missing = |side| format!("{side} lacks the key column `{name}`");
            let column_a = a.column(name).ok_or_else(|| missing("A"))?;
            let column_b = b.column(name).ok_or_else(|| missing("B"))?;
            columns.push(KeyColumn::of(column_a, column_b)?);
        }
        Ok(KeyCells { columns, starts_with_owner: key.series.contains(&0) })
    }

    pub(crate) fn part(&self, part: usize, side: TraceSide, row: usize) -> i64 {
        self.columns[part].numbers.get(side, row)
    }

    /// Appends one part of the keys of rows.
    pub(crate) fn read(&self, part: usize, side: TraceSide, rows: Range<usize>, numbers: &mut Vec<i64>) {
        match &self.columns[part].numbers {
            KeyNumbers::Narrow(of) => numbers.extend(of[side as usize][rows].iter().map(|number| i64::from(*number))),
            KeyNumbers::Wide(of) => numbers.extend_from_slice(&of[side as usize][rows]),
        }
    }

    /// The rows of one owner, whose parts of the key have these indices, among the first rows of a side.
    pub(crate) fn rows_of(&self, side: TraceSide, rows: usize, series: &[usize], owner: Owner) -> Vec<u32> {
        let parts: Vec<(usize, Option<i64>)> = series.iter().copied().zip([owner.first, owner.second]).collect();
        let is_of = |row: &u32| parts.iter().all(|(part, of)| Some(self.part(*part, side, *row as usize)) == *of);
        (0..rows as u32).filter(is_of).collect()
    }

    /// The whole key of a row.
    pub(crate) fn of_row(&self, side: TraceSide, row: usize) -> Vec<KeyPart> {
        let part = |KeyColumn { numbers, names }: &KeyColumn<'_>| {
            let number = numbers.get(side, row);
            let name = names.as_ref().and_then(|names| names.get(usize::try_from(number).ok()?));
            name.map_or(KeyPart::Number(number), |name| KeyPart::Name(name.clone()))
        };
        self.columns.iter().map(part).collect()
    }

    /// Calls `take` for each run of rows of one owner. `part` is the part of the key with the owner; without it, all rows
    /// have one owner.
    pub(crate) fn each_run(
        &self,
        part: Option<usize>,
        side: TraceSide,
        rows: Range<usize>,
        mut take: impl FnMut(OwnerRun),
    ) {
        match part {
            Some(part) => self.columns[part].numbers.each_run(side, rows, take),
            None if rows.is_empty() => {}
            None => take(OwnerRun { owner: 0, rows }),
        }
    }

    /// The rows of each owner, if its keys ascend, so that no key occurs twice.
    fn owner_runs(&self, side: TraceSide, rows: Range<usize>) -> Option<Vec<OwnerRun>> {
        // Without a key, all rows are alike.
        let (first, rest) = self.columns.split_first()?;
        let (mut runs, mut last, mut ascend) = (Vec::new(), OwnerMap::<usize>::default(), true);
        self.each_run(self.starts_with_owner.then_some(0), side, rows, |OwnerRun { owner, rows }| {
            let before = last.get(owner).copied();
            ascend &= before.is_none_or(|before| self.cmp((side, before), (side, rows.start)).is_lt())
                && first.numbers.ascend(rest, side, rows.clone());
            last.set(owner, rows.end - 1);
            runs.push(OwnerRun { owner, rows });
        });
        ascend.then_some(runs)
    }

    /// Whether a key may occur twice on a side.
    pub(crate) fn may_repeat(&self, rows: [usize; 2]) -> bool {
        let is_unique = |side: TraceSide| self.owner_runs(side, 0..rows[side as usize]).is_some();
        !(is_unique(TraceSide::A) && is_unique(TraceSide::B))
    }

    /// How many of `rows` rows have the same keys on both sides, from row `i` of A and row `j` of B on.
    fn common_run(&self, i: usize, j: usize, rows: usize) -> usize {
        // Longer and longer parts, so that a short run does not cost a look at all rows.
        let (mut same, mut more) = (0, 16);
        while same < rows {
            let part = more.min(rows - same);
            let common = |so_far, column: &KeyColumn<'_>| column.numbers.common_run(i + same, j + same, so_far);
            let found = self.columns.iter().fold(part, common);
            same += found;
            if found < part {
                break;
            }
            more *= 4;
        }
        same
    }

    #[inline]
    pub(crate) fn cmp(&self, x: (TraceSide, usize), y: (TraceSide, usize)) -> std::cmp::Ordering {
        let mut parts =
            self.columns.iter().map(|KeyColumn { numbers, .. }| numbers.get(x.0, x.1).cmp(&numbers.get(y.0, y.1)));
        parts.find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    }
}

impl<'t> KeyColumn<'t> {
    fn of(a: &'t Column, b: &'t Column) -> Result<KeyColumn<'t>, String> {
        if let (
            ColumnData::Name { names: names_a, codes: codes_a },
            ColumnData::Name { names: names_b, codes: codes_b },
        ) = (&a.data, &b.data)
        {
            let mut names: Vec<&String> = names_a.iter().chain(names_b).collect();
            names.sort_unstable();
            names.dedup();
            let index = |name: &String| names.binary_search(&name).map_or(-1, |i| i as i64);
            let number = |list: &[String], codes: &[u32]| -> Vec<i64> {
                let indices: Vec<i64> = list.iter().map(index).collect();
                codes.iter().map(|c| indices.get(*c as usize).copied().unwrap_or(-1)).collect()
            };
            let numbers = [number(names_a, codes_a), number(names_b, codes_b)].map(Cow::Owned);
            let names = Some(names.into_iter().cloned().collect());
            return Ok(KeyColumn { numbers: KeyNumbers::Wide(numbers), names });
        }
        if let (ColumnData::U32(a), ColumnData::U32(b)) = (&a.data, &b.data) {
            return Ok(KeyColumn { numbers: KeyNumbers::Narrow([a, b]), names: None });
        }
        match (plain(&a.data), plain(&b.data)) {
            (Some((kind_a, a)), Some((kind_b, b))) if kind_a == kind_b => {
                Ok(KeyColumn { numbers: KeyNumbers::Wide([a, b]), names: None })
            }
            _ => Err(format!("its key `{}` is {} in A and {} in B", a.name, a.data.type_name(), b.data.type_name())),
        }
    }
}

/// Converts a column to comparable numbers. Integers of any width compare with each other, and floats with floats of
/// their width.
fn plain(data: &ColumnData) -> Option<(u8, Cow<'_, [i64]>)> {
    Some(match data {
        ColumnData::U32(v) => (0, v.iter().map(|x| i64::from(*x)).collect()),
        ColumnData::I64(v) => (0, Cow::Borrowed(v)),
        ColumnData::U64(v) => (0, v.iter().map(|x| *x as i64).collect()),
        ColumnData::F32(v) => (1, v.iter().map(|x| if x.is_nan() { i64::MAX } else { ordered(*x).into() }).collect()),
        ColumnData::F64(v) => (2, v.iter().map(|x| if x.is_nan() { i64::MAX } else { ordered_double(*x) }).collect()),
        ColumnData::Bool(v) => (0, v.iter().map(|x| i64::from(*x)).collect()),
        ColumnData::Name { .. } => return None,
    })
}

/// Pairs of rows with equal keys. If a key occurs more than once, rows are paired in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowJoin {
    /// All pairs.
    pub(crate) runs: Vec<PairRun>,
    /// Rows that B lacks, in any order.
    pub(crate) only_a: Vec<u32>,
    /// Rows that A lacks, in any order.
    pub(crate) only_b: Vec<u32>,
}

/// Pairs of consecutive rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairRun {
    /// The index of the first pair.
    pub(crate) first: usize,
    /// The first row in A.
    pub(crate) a: usize,
    /// The first row in B.
    pub(crate) b: usize,
    /// The number of pairs.
    pub(crate) rows: usize,
}

/// Consecutive rows of one owner.
pub(crate) struct OwnerRun {
    pub(crate) owner: i64,
    pub(crate) rows: Range<usize>,
}

impl RowJoin {
    /// Joins two tables with these numbers of rows.
    pub(crate) fn of(keys: &KeyCells<'_>, rows_a: usize, rows_b: usize) -> RowJoin {
        let mut joined = RowJoin::default();
        let same = keys.common_run(0, 0, rows_a.min(rows_b));
        joined.push(0, 0, same);
        if same == rows_a && same == rows_b {
            return joined;
        }
        let rest = [same..rows_a, same..rows_b];
        // Without a second row of the same key, any two rows of one key are a pair.
        let runs = [TraceSide::A, TraceSide::B].map(|side| keys.owner_runs(side, rest[side as usize].clone()));
        match runs {
            [Some(runs_a), Some(runs_b)] => joined.by_owner(keys, runs_a, runs_b),
            _ => joined.by_key(keys, rest),
        }
        joined
    }

    /// Joins rows whose keys ascend for each owner.
    fn by_owner(&mut self, keys: &KeyCells<'_>, runs_a: Vec<OwnerRun>, runs_b: Vec<OwnerRun>) {
        let mut of_b = OwnerMap::<VecDeque<Range<usize>>>::default();
        for OwnerRun { owner, rows } in runs_b {
            of_b.or_insert_with(owner, VecDeque::new).push_back(rows);
        }
        for OwnerRun { owner, rows: mut a } in runs_a {
            while !a.is_empty()
                && let Some(left) = of_b.get_mut(owner)
                && let Some(b) = left.front_mut()
            {
                match keys.cmp((TraceSide::B, b.start), (TraceSide::A, a.start)) {
                    Ordering::Less => self.only_b.extend(b.next().map(|row| row as u32)),
                    Ordering::Greater => self.only_a.extend(a.next().map(|row| row as u32)),
                    Ordering::Equal => {
                        let same = keys.common_run(a.start, b.start, a.len().min(b.len()));
                        self.push(a.start, b.start, same);
                        (a.start, b.start) = (a.start + same, b.start + same);
                    }
                }
                if b.start == b.end {
                    left.pop_front();
                }
            }
            self.only_a.extend(a.map(|row| row as u32));
        }
        let left = of_b.iter().flat_map(|(_, runs)| runs.iter().cloned().flatten());
        self.only_b.extend(left.map(|row| row as u32));
    }

    /// Joins rows in any order.
    fn by_key(&mut self, keys: &KeyCells<'_>, [a, b]: [Range<usize>; 2]) {
        let owner = |side, row| if keys.starts_with_owner { keys.part(0, side, row) } else { 0 };
        let sorted = |side: TraceSide, rows: Range<usize>| {
            let mut by_owner = SortedMap::<i64, Vec<u32>>::new();
            for row in rows {
                let rows = by_owner.entry(owner(side, row)).or_default();
                insert_sorted(rows, row as u32, |x, y| keys.cmp((side, x as usize), (side, y as usize)));
            }
            let sort = move |mut rows: Vec<u32>| {
                rows.sort_by(|x, y| keys.cmp((side, *x as usize), (side, *y as usize)));
                rows
            };
            by_owner.into_values().flat_map(sort).peekable()
        };
        let (mut left, mut right) = (sorted(TraceSide::A, a), sorted(TraceSide::B, b));
        while let (Some(&i), Some(&j)) = (left.peek(), right.peek()) {
            match keys.cmp((TraceSide::A, i as usize), (TraceSide::B, j as usize)) {
                Ordering::Less => self.only_a.extend(left.next()),
                Ordering::Greater => self.only_b.extend(right.next()),
                Ordering::Equal => {
                    self.push(i as usize, j as usize, 1);
                    left.next();
                    right.next();
                }
            }
        }
        self.only_a.extend(left);
        self.only_b.extend(right);
    }

    /// Pairs rows of equal keys by their values first, and only the others in their order. `is_equal` compares a row of A
    /// with one of B.
    pub(crate) fn prefer_equal(self, keys: &KeyCells<'_>, is_equal: impl Fn(usize, usize) -> bool) -> RowJoin {
        let (mut pairs, unlike): (Vec<_>, Vec<_>) = self.pairs().partition(|(a, b)| is_equal(*a, *b));
        let of_side = |side: TraceSide, only: &[u32]| {
            let paired = unlike.iter().map(|(a, b)| if side == TraceSide::A { *a } else { *b });
            let mut rows: Vec<usize> = paired.chain(only.iter().map(|row| *row as usize)).collect();
            rows.sort_by(|x, y| keys.cmp((side, *x), (side, *y)).then(x.cmp(y)));
            rows
        };
        let (a, b) = (of_side(TraceSide::A, &self.only_a), of_side(TraceSide::B, &self.only_b));
        let mut joined = RowJoin::default();
        let mut left = &b[..];
        for of_a in a.chunk_by(|x, y| keys.cmp((TraceSide::A, *x), (TraceSide::A, *y)).is_eq()) {
            let cmp = |b: &usize| keys.cmp((TraceSide::B, *b), (TraceSide::A, of_a[0]));
            let (passed, others) = left.split_at(left.iter().take_while(|b| cmp(b).is_lt()).count());
            let (of_b, later) = others.split_at(others.iter().take_while(|b| cmp(b).is_eq()).count());
            left = later;
            joined.only_b.extend(passed.iter().map(|row| *row as u32));
            joined.pair_of_key(of_a, of_b, &is_equal, &mut pairs);
        }
        joined.only_b.extend(left.iter().map(|row| *row as u32));
        pairs.sort_unstable();
        pairs.into_iter().for_each(|(a, b)| joined.push(a, b, 1));
        joined
    }

    /// Pairs the rows of one key: those with equal values first.
    fn pair_of_key(
        &mut self,
        of_a: &[usize],
        of_b: &[usize],
        is_equal: &impl Fn(usize, usize) -> bool,
        pairs: &mut Vec<(usize, usize)>,
    ) {
        let (mut rest_a, mut rest_b) = (Vec::new(), of_b.to_vec());
        if of_a.len().saturating_mul(of_b.len()) > COMPARISONS_MAX {
            rest_a = of_a.to_vec();
        } else {
            for a in of_a {
                match rest_b.iter().position(|b| is_equal(*a, *b)) {
                    Some(place) => pairs.push((*a, rest_b.remove(place))),
                    None => rest_a.push(*a),
                }
            }
        }
        let in_both = rest_a.len().min(rest_b.len());
        self.only_a.extend(rest_a.drain(in_both..).map(|row| row as u32));
        self.only_b.extend(rest_b.drain(in_both..).map(|row| row as u32));
        pairs.extend(rest_a.into_iter().zip(rest_b));
    }

    fn push(&mut self, a: usize, b: usize, rows: usize) {
        let first = self.len();
        match self.runs.last_mut() {
            _ if rows == 0 => {}
            Some(last) if last.a + last.rows == a && last.b + last.rows == b => last.rows += rows,
            _ => self.runs.push(PairRun { first, a, b, rows }),
        }
    }

    /// How many pairs there are.
    pub(crate) fn len(&self) -> usize {
        self.runs.last().map_or(0, |run| run.first + run.rows)
    }

    /// The rows of a pair in A and in B.
    pub(crate) fn pair(&self, index: usize) -> (usize, usize) {
        let run = &self.runs[self.runs.partition_point(|run| run.first <= index) - 1];
        (run.a + (index - run.first), run.b + (index - run.first))
    }

    /// All pairs.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.runs.iter().flat_map(|run| (run.a..run.a + run.rows).zip(run.b..))
    }
}

/// The most comparisons of rows with one key. With more, the rows are paired in their order.
const COMPARISONS_MAX: usize = 1 << 14;

/// How many rows a row may be out of order to be put in its place at once.
const INSERT_BACK_MAX: usize = 16;

/// Adds a row to rows that are nearly in order. A row that belongs far from the end is appended.
fn insert_sorted(rows: &mut Vec<u32>, row: u32, cmp: impl Fn(u32, u32) -> Ordering) {
    let later =
        rows.iter().rev().take(INSERT_BACK_MAX + 1).take_while(|other| cmp(**other, row) == Ordering::Greater).count();
    let place = if later > INSERT_BACK_MAX { rows.len() } else { rows.len() - later };
    rows.insert(place, row);
}

/// The owners below this number have an entry in a list.
const LISTED_OWNERS_MAX: usize = 4096;

/// Values by owner. Owners are mostly small numbers, which are found without a search.
#[derive(Clone, Debug)]
pub(crate) struct OwnerMap<V> {
    low: Vec<Option<V>>,
    others: SortedMap<i64, V>,
}

impl<V> Default for OwnerMap<V> {
    fn default() -> OwnerMap<V> {
        OwnerMap { low: Vec::new(), others: SortedMap::new() }
    }
}

impl<V> OwnerMap<V> {
    #[inline]
    pub(crate) fn get(&self, owner: i64) -> Option<&V> {
        match list_index(owner) {
            Some(index) => self.low.get(index)?.as_ref(),
            None => self.others.get(&owner),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, owner: i64) -> Option<&mut V> {
        match list_index(owner) {
            Some(index) => self.low.get_mut(index)?.as_mut(),
            None => self.others.get_mut(&owner),
        }
    }

    /// The value of an owner, which is `first` for a new owner.
    #[inline]
    pub(crate) fn or_insert_with(&mut self, owner: i64, first: impl FnOnce() -> V) -> &mut V {
        let Some(index) = list_index(owner) else { return self.others.entry(owner).or_insert_with(first) };
        if index >= self.low.len() {
            self.low.resize_with(index + 1, || None);
        }
        self.low[index].get_or_insert_with(first)
    }

    /// Sets the value of an owner.
    #[inline]
    pub(crate) fn set(&mut self, owner: i64, value: V) {
        let Some(index) = list_index(owner) else {
            self.others.insert(owner, value);
            return;
        };
        if index >= self.low.len() {
            self.low.resize_with(index + 1, || None);
        }
        self.low[index] = Some(value);
    }

    /// The values of all owners.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.low.iter_mut().flatten().chain(self.others.values_mut())
    }

    /// All owners with their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &V)> {
        let low = (0..).zip(&self.low).filter_map(|(owner, value)| Some((owner, value.as_ref()?)));
        low.chain(self.others.iter().map(|(owner, value)| (*owner, value)))
    }
}

#[inline]
fn list_index(owner: i64) -> Option<usize> {
    usize::try_from(owner).ok().filter(|index| *index < LISTED_OWNERS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::sorted::SortedSet;
    use hitreg_log::trace::schema::JoinRule;
    use hitreg_log::trace::{Column, ColumnData, Table};
    use proptest::prelude::*;

    fn table(rows: &[(u32, u32)]) -> Table {
        let [players, commands]: [Vec<u32>; 2] =
            [|row: &(u32, u32)| row.0, |row: &(u32, u32)| row.1].map(|of| rows.iter().map(of).collect());
        let columns = [("player", players), ("command", commands)];
        Table::new("t", columns.map(|(name, values)| Column::new(name, ColumnData::U32(values))).into())
    }

    fn key() -> RowKey {
        let columns = ["player", "command"].map(str::to_owned).into();
        RowKey { columns, series: vec![0], join_rule: JoinRule::Always }
    }

    fn joined(a: &[(u32, u32)], b: &[(u32, u32)]) -> RowJoin {
        RowJoin::of(&KeyCells::of(&key(), &table(a), &table(b)).unwrap(), a.len(), b.len())
    }

    /// The pairs by definition: the first rows of a key with each other, then the second rows, and so on.
    fn expected(a: &[(u32, u32)], b: &[(u32, u32)]) -> Vec<(usize, usize)> {
        let nth = |rows: &[(u32, u32)], row: usize| rows[..row].iter().filter(|key| **key == rows[row]).count();
        let of = |i: usize| (0..b.len()).find(|j| b[*j] == a[i] && nth(b, *j) == nth(a, i));
        (0..a.len()).filter_map(|i| Some((i, of(i)?))).collect()
    }

    fn check(a: &[(u32, u32)], b: &[(u32, u32)]) {
        let joined = joined(a, b);
        let mut pairs: Vec<(usize, usize)> = joined.pairs().collect();
        assert!((0..joined.len()).all(|pair| joined.pair(pair) == pairs[pair]));
        pairs.sort_unstable();
        assert_eq!(pairs, expected(a, b));
        for (only, side, rows) in [(&joined.only_a, 0, a.len()), (&joined.only_b, 1, b.len())] {
            let paired = |row: &u32| pairs.iter().any(|(i, j)| [*i, *j][side] == *row as usize);
            let mut only = only.clone();
            only.sort_unstable();
            assert!(only.iter().copied().eq((0..rows as u32).filter(|row| !paired(row))));
        }
    }

    proptest! {
        /// Rows of few players, with or without repeated keys, of which each side lacks some.
        #[test]
        fn rows_are_joined_by_key_whatever_their_order(
            rows in prop::collection::vec((0u32..3, any::<bool>(), any::<bool>(), 0usize..300), 0..400), repeats in any::<bool>(),
        ) {
            let mut next = [0u32; 3];
            let mut keys: Vec<(u32, u32)> = Vec::new();
            for (player, ..) in &rows {
                next[*player as usize] += 1;
                keys.push((*player, if repeats { next[*player as usize] % 4 } else { next[*player as usize] }));
            }
            let of = |side: usize| -> Vec<(u32, u32)> {
                let has = |row: &(u32, bool, bool, usize)| row.3 > 9 || [row.1, row.2][side];
                keys.iter().zip(&rows).filter(|(_, row)| has(row)).map(|(key, _)| *key).collect()
            };
            let (a, mut b) = (of(0), of(1));
            check(&a, &b);
            if let Some(row) = rows.first().filter(|_| b.len() > 1) {
                let moved = b.remove(row.3 % b.len());
                b.push(moved);
                check(&a, &b);
            }
            check(&a, &[]);
        }
    }

    /// The value of a row is a number that both sides may have.
    fn with_values(rows: &[(u32, u32, u32)]) -> (Vec<(u32, u32)>, Vec<u32>) {
        rows.iter().map(|(player, command, value)| ((*player, *command), *value)).unzip()
    }

    proptest! {
        /// As many rows as possible are paired with equal ones, and then as many as possible with any of their key.
        #[test]
        fn rows_of_one_key_are_paired_by_their_values(
            a in prop::collection::vec((0u32..3, 0u32..5, 0u32..3), 0..60),
            b in prop::collection::vec((0u32..3, 0u32..5, 0u32..3), 0..60),
        ) {
            let ((keys_a, values_a), (keys_b, values_b)) = (with_values(&a), with_values(&b));
            let (table_a, table_b) = (table(&keys_a), table(&keys_b));
            let keys = KeyCells::of(&key(), &table_a, &table_b).unwrap();
            let all = RowJoin::of(&keys, a.len(), b.len());
            let joined = all.prefer_equal(&keys, |i, j| values_a[i] == values_b[j]);
            let pairs: Vec<(usize, usize)> = joined.pairs().collect();
            prop_assert!(pairs.is_sorted() && pairs.iter().all(|(i, j)| keys_a[*i] == keys_b[*j]));
            for (only, side, rows) in [(&joined.only_a, 0, a.len()), (&joined.only_b, 1, b.len())] {
                let mut once: Vec<usize> = pairs.iter().map(|(i, j)| [*i, *j][side]).collect();
                once.extend(only.iter().map(|row| *row as usize));
                once.sort_unstable();
                prop_assert!(once.into_iter().eq(0..rows));
            }
            for of in keys_a.iter().collect::<SortedSet<_>>() {
                let count = |keys: &[(u32, u32)]| keys.iter().filter(|key| *key == of).count();
                let of_value = |rows: &[(u32, u32, u32)], value| rows.iter().filter(|row| **row == (of.0, of.1, value)).count();
                let equal = (0..3).map(|value| of_value(&a, value).min(of_value(&b, value))).sum::<usize>();
                let of_key = || pairs.iter().filter(|(i, _)| keys_a[*i] == *of);
                prop_assert_eq!(of_key().count(), count(&keys_a).min(count(&keys_b)));
                prop_assert_eq!(of_key().filter(|(i, j)| values_a[*i] == values_b[*j]).count(), equal);
            }
        }
    }

    /// As when the records of a log, player by player, are compared with a replay that began earlier.
    #[test]
    fn rows_by_player_are_joined_with_rows_by_time() {
        let by_player: Vec<(u32, u32)> =
            (0..16).flat_map(|player| (300..600).map(move |command| (player, command))).collect();
        let by_time: Vec<(u32, u32)> =
            (0..650).flat_map(|command| (0..16).map(move |player| (player, command))).collect();
        check(&by_player, &by_time);
        check(&by_time, &by_player);
        assert_eq!(joined(&by_player, &by_time).len(), by_player.len());
    }

    #[test]
    fn a_long_gap_does_not_break_the_join() {
        let rows =
            |commands: std::ops::Range<u32>| -> Vec<(u32, u32)> { commands.map(|command| (1, command)).collect() };
        check(&rows(0..900), &rows(700..950));
        let mut b = rows(0..10);
        b.extend(rows(500..900));
        check(&rows(0..900), &b);
        assert_eq!(joined(&rows(0..9), &rows(3..12)).runs, [PairRun { first: 0, a: 3, b: 0, rows: 6 }]);
    }

    #[test]
    fn owners_of_any_number_have_values() {
        let owners = [0, 7, -1, 4095, 4096, i64::MAX, i64::MIN];
        let mut map = OwnerMap::default();
        for owner in owners {
            assert_eq!(map.get(owner), None);
            assert_eq!(*map.or_insert_with(owner, || owner), owner);
            assert_eq!(*map.or_insert_with(owner, || 5), owner);
            map.set(owner, owner / 2);
        }
        map.set(9, 1);
        map.set(-9, 2);
        assert!(owners.iter().all(|owner| map.get(*owner) == Some(&(owner / 2))));
        assert!(owners.iter().all(|owner| map.get_mut(*owner) == Some(&mut (owner / 2))));
        assert_eq!((map.get(9), map.get(-9), map.iter().count()), (Some(&1), Some(&2), owners.len() + 2));
    }
}

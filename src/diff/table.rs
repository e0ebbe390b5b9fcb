//! One table of both traces.

use serde::Serialize;

use super::clock::Clock;
use super::divergence::Divergence;
use super::exactness::Exactness;
use super::follow::{FieldDiff, Growth, SeriesDiff};
use super::keys::{Key, Side};
use super::options::DiffOptions;
use super::pairing::{Pairing, Spot};
use super::scan::Scan;
use super::shape::{Shape, unsound};
use crate::trace::Table;
use crate::trace::schema::Joined;

/// One table of both traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TableDiff {
    /// Its name.
    pub name: String,
    /// The judgement.
    pub status: Status,
    /// Why it cannot be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// The columns by which its rows are told apart.
    pub key: Vec<String>,
    /// Where their columns are not the same.
    pub shape: Shape,
    /// How many rows there are, and what became of them.
    pub rows: Rows,
    /// The first difference in session time.
    pub first: Option<Divergence>,
    /// What differs, by column.
    pub fields: Vec<FieldDiff>,
    /// What differs, by column and entity or player.
    pub series: Vec<SeriesDiff>,
    /// How far it has spread by which time.
    pub spread: Vec<Growth>,
}

/// The judgement on one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The same rows with the same values, whatever their order.
    #[default]
    Same,
    /// Some values differ, all of them within tolerance.
    WithinTolerance,
    /// It differs.
    Differs,
    /// B has no such table.
    OnlyInA,
    /// A has no such table.
    OnlyInB,
    /// It cannot be judged.
    Untestable,
}

/// How many rows there are, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// In A.
    pub a: u64,
    /// In B.
    pub b: u64,
    /// Pairs that were compared.
    pub compared: u64,
    /// Pairs of which a value differs.
    pub differing: u64,
    /// Pairs of which values differ within tolerance only.
    pub within_tolerance: u64,
    /// Rows that B lacks.
    pub only_in_a: u64,
    /// Rows that A lacks.
    pub only_in_b: u64,
    /// Pairs that are not compared because they are of different times.
    pub other_time: u64,
}

/// A compared table, with what other tables need of it.
pub(crate) struct Compared<'a> {
    pub(crate) diff: TableDiff,
    pub(crate) pairing: Option<Pairing<'a>>,
    pub(crate) scan: Scan,
}

impl<'a> Compared<'a> {
    /// A table that is the same to the bit in both traces.
    pub(crate) fn same(table: &'a Table, key: &Key) -> Compared<'a> {
        let count = table.rows() as u64;
        let rows = Rows { a: count, b: count, compared: count, ..Rows::default() };
        let diff = TableDiff { name: table.name.clone(), key: key.columns.clone(), rows, ..TableDiff::default() };
        match unsound("A", table) {
            Some(reason) => Compared::untestable(diff, reason),
            None => Compared { diff, pairing: None, scan: Scan::default() },
        }
    }

    /// A table that one trace lacks.
    pub(crate) fn only(side: Side, table: &'a Table) -> Compared<'a> {
        let count = table.rows() as u64;
        let (status, rows) = match side {
            Side::A => (Status::OnlyInA, Rows { a: count, ..Rows::default() }),
            Side::B => (Status::OnlyInB, Rows { b: count, ..Rows::default() }),
        };
        let diff = TableDiff { name: table.name.clone(), status, rows, ..TableDiff::default() };
        Compared { diff, pairing: None, scan: Scan::default() }
    }

    /// A table that a trace has more than once.
    pub(crate) fn twice(table: &'a Table) -> Compared<'a> {
        let diff = TableDiff { name: table.name.clone(), ..TableDiff::default() };
        Compared::untestable(diff, "a trace has it more than once".to_owned())
    }

    fn untestable(mut diff: TableDiff, reason: String) -> Compared<'a> {
        diff.status = Status::Untestable;
        diff.untestable = Some(reason);
        diff.rows.compared = 0;
        Compared { diff, pairing: None, scan: Scan::default() }
    }
}

/// Compares a table that both traces have.
pub(crate) fn compare<'a>(
    a: &'a Table,
    b: &'a Table,
    clocks: [&Clock; 2],
    options: &DiffOptions,
    exactness: &Exactness<'_>,
) -> Compared<'a> {
    let key = Key::of(a, b, options);
    let mut diff = TableDiff { name: a.name.clone(), key: key.columns.clone(), ..TableDiff::default() };
    diff.rows.a = a.rows() as u64;
    diff.rows.b = b.rows() as u64;
    diff.shape = Shape::of(a, b);
    let how_joined = key.joined;
    let paired = match unsound("A", a).or_else(|| unsound("B", b)) {
        Some(reason) => Err(reason),
        None => Pairing::of(a, b, key, clocks),
    };
    let pairing = match paired {
        Ok(pairing) => pairing,
        Err(reason) => return Compared::untestable(diff, reason),
    };
    let scan = Scan::of(&pairing, exactness);
    count(&mut diff.rows, &pairing, &scan);
    diff.status = status(&diff, how_joined, options);
    if diff.status == Status::Untestable {
        diff.untestable = Some("no two of its rows are of the same time".to_owned());
    }
    let first = first_spot(&pairing, &scan, options);
    diff.first = first.map(|spot| Divergence::of(&pairing, clocks, &scan, exactness, &spot));
    diff.fields = FieldDiff::all(&pairing, clocks, &scan);
    diff.series = SeriesDiff::all(&pairing, clocks, &scan);
    diff.spread = Growth::of(&pairing, &scan);
    for field in &mut diff.fields {
        field.healed = diff.series.iter().filter(|s| s.field == field.field).all(|s| s.healed);
    }
    Compared { diff, pairing: Some(pairing), scan }
}

fn count(rows: &mut Rows, pairing: &Pairing<'_>, scan: &Scan) {
    let count = |which: &dyn Fn(&super::scan::Pair) -> bool| scan.pairs.iter().filter(|p| which(p)).count() as u64;
    rows.other_time = count(&|p| p.other_time);
    rows.compared = scan.pairs.len() as u64 - rows.other_time;
    rows.differing = count(&|p| p.differs);
    rows.within_tolerance = count(&|p| p.within && !p.differs);
    rows.only_in_a = pairing.joined.only_a.len() as u64;
    rows.only_in_b = pairing.joined.only_b.len() as u64;
}

fn status(diff: &TableDiff, joined: Joined, options: &DiffOptions) -> Status {
    let rows = &diff.rows;
    let lacks = rows.only_in_a + rows.only_in_b > 0 || diff.shape.lacks(&diff.name, options.on);
    let at_other_times = joined == Joined::AtSameTime && rows.other_time > 0;
    if rows.differing > 0 || at_other_times || diff.shape.types_differ(options.on) || (lacks && !options.overlap_only) {
        Status::Differs
    } else if joined == Joined::WithTheirTime && rows.compared == 0 && rows.other_time > 0 {
        // Nothing of it could be compared, which is not the same as being equal.
        Status::Untestable
    } else if rows.within_tolerance > 0 {
        Status::WithinTolerance
    } else {
        Status::Same
    }
}

/// The first thing that differs: a value, a row that is missing, or a pair that is of different times.
fn first_spot(pairing: &Pairing<'_>, scan: &Scan, options: &DiffOptions) -> Option<Spot> {
    let values = scan.columns.iter().flat_map(|(_, runs)| runs.values()).map(|run| run.first);
    let missing_of = |side, rows: &'_ [u32]| -> Vec<Spot> {
        if options.overlap_only { Vec::new() } else { rows.iter().map(|row| pairing.spot_of(side, *row)).collect() }
    };
    let missing =
        missing_of(Side::A, &pairing.joined.only_a).into_iter().chain(missing_of(Side::B, &pairing.joined.only_b));
    let timed = pairing.key.joined == Joined::AtSameTime;
    let other_time = (0..scan.pairs.len()).filter(|&p| timed && scan.pairs[p].other_time).map(|p| pairing.spot(p));
    values.chain(missing).chain(other_time).min_by(|x, y| pairing.cmp(x, y))
}

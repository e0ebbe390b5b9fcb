//! How exactly each column of a table is compared.

use std::collections::BTreeSet;
use std::ops::Range;

use super::cell::{Cells, Class, Compared};
use super::clock::numbers;
use super::options::{On, Tolerances};
use crate::trace::{Data, Table};

/// How exactly a table is compared.
pub(crate) struct Exactness<'a> {
    pub(crate) tolerances: &'a Tolerances,
    pub(crate) on: On,
    /// Ticks whose bodies differ, and all of them within tolerance: their state hashes have to differ.
    pub(crate) tolerated_ticks: &'a BTreeSet<u32>,
}

/// A column of both traces, and when two of its cells are the same.
pub(crate) struct Column<'a> {
    cells: Cells<'a>,
    rule: Rule<'a>,
    /// Where one trace predicted a body and the other did not, there is no body to compare with.
    has_body: Option<[&'a [u32]; 2]>,
}

/// When two cells are the same.
enum Rule<'a> {
    /// Within the column's own tolerance, if it has one.
    Plain(Option<f64>),
    /// State hashes, by the ticks of A.
    Hash { ticks: &'a [u32], tolerated: &'a BTreeSet<u32> },
    /// The values of many fields, by the field codes of A: each has the tolerance of its field.
    ByField { codes: &'a [u8], within: Vec<Option<f64>> },
    /// The bits of another column's values: they tell only what these do not.
    BitsOf { values: Cells<'a>, codes: &'a [u8], within: Vec<Option<f64>> },
}

impl<'a> Column<'a> {
    /// `None` when a trace does not have it, or has it as another type.
    pub(crate) fn of(a: &'a Table, b: &'a Table, name: &str, exactness: &Exactness<'a>) -> Option<Column<'a>> {
        let cells = Cells::of(&a.column(name)?.data, &b.column(name)?.data)?;
        let rule = match (a.name.as_str(), a.column("field").map(|c| &c.data)) {
            ("errors", Some(Data::Name { names, codes })) => {
                let within = names.iter().map(|field| exactness.tolerances.of(field)).collect();
                let values = name.strip_suffix("_bits").and_then(|value| both(a, b, value));
                match values {
                    Some(values) => Rule::BitsOf { values, codes, within },
                    None => Rule::ByField { codes, within },
                }
            }
            ("ticks", _) if name == "hash" => {
                Rule::Hash { ticks: numbers(a, "tick"), tolerated: exactness.tolerated_ticks }
            }
            _ => Rule::Plain(exactness.tolerances.of(name)),
        };
        let is_of_body = a.name == "frames" && (name.starts_with("own.") || name.starts_with("drawn."));
        let has_body = match both(a, b, "has_body") {
            Some(Cells::U32(a, b)) if is_of_body => Some([a, b]),
            _ => None,
        };
        Some(Column { cells, rule, has_body })
    }

    /// Whether a stretch of rows is the same to the bit on both sides. False says nothing yet.
    pub(crate) fn same_bits(&self, rows: Range<usize>) -> bool {
        self.cells.same_bits(rows)
    }

    /// Compares row `i` of A with row `j` of B.
    pub(crate) fn compare(&self, i: usize, j: usize) -> Compared {
        if self.has_body.is_some_and(|[a, b]| a[i] != b[j]) {
            return Compared::Same;
        }
        let of_field = |codes: &[u8], within: &[Option<f64>]| {
            codes.get(i).and_then(|code| within.get(usize::from(*code))).copied().flatten()
        };
        match &self.rule {
            Rule::Plain(within) => self.cells.compare(i, j, *within),
            Rule::ByField { codes, within } => self.cells.compare(i, j, of_field(codes, within)),
            Rule::Hash { ticks, tolerated } => match self.cells.compare(i, j, None) {
                Compared::Differs { .. } if ticks.get(i).is_some_and(|tick| tolerated.contains(tick)) => {
                    Compared::Within
                }
                compared => compared,
            },
            Rule::BitsOf { values, codes, within } => match self.cells.compare(i, j, None) {
                Compared::Same | Compared::Within => Compared::Same,
                Compared::Differs { .. } => match values.compare(i, j, of_field(codes, within)) {
                    // A counter beyond what a float can tell apart.
                    Compared::Same => Compared::Differs { class: Class::Difference, error: None },
                    Compared::Within => Compared::Within,
                    // The column of the values tells it already.
                    Compared::Differs { .. } => Compared::Same,
                },
            },
        }
    }
}

fn both<'a>(a: &'a Table, b: &'a Table, name: &str) -> Option<Cells<'a>> {
    Cells::of(&a.column(name)?.data, &b.column(name)?.data)
}

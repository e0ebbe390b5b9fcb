//! Records that this build does not know: custom kinds, and additions of a later format version. hitreg stores them as
//! numbers. A rewritten log therefore still has them.

use super::{CellKind, FieldSchema, TextCode, lowest_and_highest};
use crate::units::Micros;

/// Name of the custom kind that holds the extra bytes of usercmds, eight bytes a row. Its second column is the usercmd.
pub const USERCMD_BYTES: &str = "usercmd_bytes";

/// A record kind that this build does not know, or the unknown columns of a known kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    /// Name of the kind.
    pub name: String,
    /// Names of its columns. For a known kind, only the unknown columns.
    pub columns: Vec<String>,
    /// The declarations of its columns, of those that have one.
    pub fields: Vec<FieldSchema>,
}

impl UnknownKind {
    /// Returns the declaration of a column; `None` if it has none.
    pub fn field(&self, column: &str) -> Option<&FieldSchema> {
        self.fields.iter().find(|field| field.name == column)
    }

    /// Returns whether a game declares the kind, so that `at_us` is its only time.
    pub(crate) fn is_custom(&self) -> bool {
        !self.fields.is_empty() && self.columns.iter().any(|name| name == "at_us") && !self.is_known_kind()
    }

    /// Returns whether the kind itself is known and only some of its columns are not.
    pub fn is_known_kind(&self) -> bool {
        super::OF_PLAYERS.iter().map(|(name, _)| *name).chain(super::OF_SESSION).any(|name| name == self.name)
    }
}

impl std::fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.is_known_kind() {
            true => write!(f, "column {} of `{}`", self.columns.join(", "), self.name),
            false => write!(f, "records of kind `{}`", self.name),
        }
    }
}

/// The records of one unknown kind, or the values of known records in unknown columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownRecords {
    /// Name of the kind.
    pub kind: String,
    /// Series of each row: a player's number, or whatever else the kind groups its rows by.
    pub series: Vec<u32>,
    /// For a known kind, the record of that series that each row extends, by the first column of its kind; otherwise 0.
    pub keys: Vec<i64>,
    /// The columns, in the order of [`UnknownKind::columns`].
    pub columns: Vec<UnknownColumn>,
}

/// The type of a column's numbers, as far as their form shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumberForm {
    /// Integers.
    #[default]
    Integer,
    /// The bits of IEEE 754 singles.
    F32,
    /// The bits of IEEE 754 doubles.
    F64,
}

/// A column of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownColumn {
    /// The form of the values.
    pub form: NumberForm,
    /// One value for each row.
    pub values: Vec<i64>,
}

impl UnknownColumn {
    /// Notes the form of further values. A column of zeros does not show its form.
    pub(crate) fn see(&mut self, form: NumberForm) {
        if self.form == NumberForm::Integer {
            self.form = form;
        }
    }
}

/// One value of a field or of a custom kind's column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OwnValue {
    /// An integer or a flag; `u64` as its bits.
    Number(i64),
    /// A single.
    Float(f32),
    /// A double.
    Double(f64),
    /// A text of the session.
    Text(TextCode),
}

macro_rules! numbers {
    ($($type:ty),*) => { $(
        impl From<$type> for OwnValue {
            fn from(number: $type) -> OwnValue {
                OwnValue::Number(number as i64)
            }
        }
    )* };
}
numbers!(i32, u32, i64, u64, bool);

impl From<f32> for OwnValue {
    fn from(float: f32) -> OwnValue {
        OwnValue::Float(float)
    }
}

impl From<TextCode> for OwnValue {
    fn from(text: TextCode) -> OwnValue {
        OwnValue::Text(text)
    }
}

impl From<f64> for OwnValue {
    fn from(double: f64) -> OwnValue {
        OwnValue::Double(double)
    }
}

impl OwnValue {
    pub(crate) fn number(self) -> i64 {
        match self {
            OwnValue::Number(number) => number,
            OwnValue::Float(float) => i64::from(float.to_bits()),
            OwnValue::Double(double) => double.to_bits() as i64,
            OwnValue::Text(code) => code.0 as i64,
        }
    }

    pub(crate) fn form(self) -> NumberForm {
        match self {
            OwnValue::Number(_) | OwnValue::Text(_) => NumberForm::Integer,
            OwnValue::Float(_) => NumberForm::F32,
            OwnValue::Double(_) => NumberForm::F64,
        }
    }

    /// Returns whether a field or column of this type has the value.
    pub(crate) fn is_of(self, kind: CellKind) -> bool {
        let is_text = matches!(self, OwnValue::Text(_)) == (kind == CellKind::Text);
        is_text && self.form() == kind.form() && kind.put(self.number(), &mut Vec::with_capacity(2))
    }
}

/// A row of one of [`SessionHeader::unknown`](super::SessionHeader::unknown).
#[derive(Clone, Debug, PartialEq)]
pub struct CustomRow {
    /// Index of the kind in [`SessionHeader::unknown`](super::SessionHeader::unknown).
    pub kind: usize,
    /// As in [`UnknownRecords::series`].
    pub series: u32,
    /// One value for each column.
    pub values: Vec<OwnValue>,
}

impl UnknownRecords {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Returns the column with the session time of each row. Only rows of an unknown kind with a column `at_us` have one.
    /// `kinds` are those of the session.
    fn time_column(&self, kinds: &[UnknownKind]) -> Option<usize> {
        let kind = kinds.iter().find(|kind| kind.name == self.kind && !kind.is_known_kind())?;
        kind.columns.iter().position(|name| name == "at_us").filter(|at| *at < self.columns.len())
    }

    /// Returns the session time of each row, if the kind has times.
    pub(crate) fn times(&self, kinds: &[UnknownKind]) -> Option<&[i64]> {
        self.time_column(kinds).map(|at| &self.columns[at].values[..])
    }

    /// Returns the earliest and the latest session time, if the kind has times.
    pub(crate) fn time_span(&self, kinds: &[UnknownKind]) -> Option<(Micros, Micros)> {
        lowest_and_highest(self.times(kinds)?.iter().map(|at| Micros(*at)))
    }

    /// Appends later rows of the same kind.
    pub(crate) fn append(&mut self, mut later: UnknownRecords) {
        self.series.append(&mut later.series);
        self.keys.append(&mut later.keys);
        for (column, mut more) in self.columns.iter_mut().zip(later.columns) {
            column.see(more.form);
            column.values.append(&mut more.values);
        }
    }

    /// Returns a copy with only these rows, in this order.
    pub(crate) fn rows(&self, rows: &[usize]) -> UnknownRecords {
        let pick = |values: &[i64]| rows.iter().map(|&row| values[row]).collect();
        let column = |column: &UnknownColumn| UnknownColumn { values: pick(&column.values), ..*column };
        UnknownRecords {
            kind: self.kind.clone(),
            series: rows.iter().map(|&row| self.series[row]).collect(),
            keys: pick(&self.keys),
            columns: self.columns.iter().map(column).collect(),
        }
    }

    /// Removes the first `count` rows.
    pub(crate) fn drop_first(&mut self, count: usize) {
        let count = count.min(self.len());
        self.series.drain(..count);
        self.keys.drain(..count);
        self.columns.iter_mut().for_each(|column| drop(column.values.drain(..count)));
    }

    /// Sorts the rows by time, if the kind has times.
    pub(crate) fn put_in_order(&mut self, kinds: &[UnknownKind]) {
        let Some(times) = self.times(kinds).filter(|times| !times.is_sorted()) else { return };
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&row| (times[row], row));
        *self = self.rows(&order);
    }

    /// Shifts the times of the rows, if the kind has times.
    pub(crate) fn move_by(&mut self, kinds: &[UnknownKind], by: Micros) {
        if let Some(at) = self.time_column(kinds) {
            self.columns[at].values.iter_mut().for_each(|at| *at = at.saturating_add(by.0));
        }
    }

    /// Removes the rows later than `end`, if the kind has times.
    pub(crate) fn end_at(&mut self, kinds: &[UnknownKind], end: Micros) {
        let Some(times) = self.times(kinds) else { return };
        let kept: Vec<usize> = (0..self.len()).filter(|&row| times[row] <= end.0).collect();
        *self = self.rows(&kept);
    }

    /// Returns the size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        (size_of::<u32>() + size_of::<i64>() * (1 + self.columns.len())) * self.len()
    }
}

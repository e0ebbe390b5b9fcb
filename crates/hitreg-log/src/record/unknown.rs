//! Records that this build does not know: custom kinds, and additions of a later format version. hitreg stores them as
//! numbers. A rewritten log therefore still has them.

use std::ops::Range;

use super::{CellKind, EventTime, FieldSchema, RecordStream, TextCode, lowest_and_highest};
use crate::units::Micros;

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
    pub fn is_custom(&self) -> bool {
        !self.fields.is_empty() && self.time_column().is_some()
    }

    /// Returns the index of the column with the session time of each row. Only unknown kinds have one.
    pub fn time_column(&self) -> Option<usize> {
        self.columns.iter().position(|name| name == "at_us").filter(|_| !self.is_known_kind())
    }

    /// Returns whether the kind itself is known and only some of its columns are not.
    pub fn is_known_kind(&self) -> bool {
        is_known_kind(&self.name)
    }
}

/// Returns whether every log has the kind.
pub(super) fn is_known_kind(name: &str) -> bool {
    super::OF_PLAYERS.iter().map(|(known, _)| *known).chain(super::OF_SESSION).any(|known| known == name)
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
    /// The column with the session time of each row: [`UnknownKind::time_column`].
    pub time_column: Option<usize>,
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
    /// An integer or a flag.
    Number(i64),
    /// A `u64`.
    Unsigned(u64),
    /// A single.
    Float(f32),
    /// A double.
    Double(f64),
    /// A text of the session.
    Text(TextCode),
}

macro_rules! own_values {
    ($($variant:ident($own:ty): $($type:ty)*;)*) => { $($(
        impl From<$type> for OwnValue {
            fn from(value: $type) -> OwnValue {
                OwnValue::$variant(value as $own)
            }
        }
    )*)* };
}
own_values! {
    Number(i64): u8 u16 u32 i8 i16 i32 i64 bool;
    Unsigned(u64): u64;
    Float(f32): f32;
    Double(f64): f64;
    Text(TextCode): TextCode;
}

impl OwnValue {
    /// Returns the value as [`CellKind::number`] does.
    pub(crate) fn number(self) -> i64 {
        match self {
            OwnValue::Number(number) => number,
            OwnValue::Unsigned(number) => number as i64,
            OwnValue::Float(float) => i64::from(float.to_bits()),
            OwnValue::Double(double) => double.to_bits() as i64,
            OwnValue::Text(code) => code.0 as i64,
        }
    }

    /// Returns an integer or a flag with its sign; `None` for other values.
    pub(crate) fn integer(self) -> Option<i128> {
        match self {
            OwnValue::Number(number) => Some(number.into()),
            OwnValue::Unsigned(number) => Some(number.into()),
            OwnValue::Float(_) | OwnValue::Double(_) | OwnValue::Text(_) => None,
        }
    }

    pub(crate) fn form(self) -> NumberForm {
        match self {
            OwnValue::Number(_) | OwnValue::Unsigned(_) | OwnValue::Text(_) => NumberForm::Integer,
            OwnValue::Float(_) => NumberForm::F32,
            OwnValue::Double(_) => NumberForm::F64,
        }
    }

    /// Returns whether a field or column of this type has the value.
    pub(crate) fn is_of(self, kind: CellKind) -> bool {
        match self {
            OwnValue::Number(_) | OwnValue::Unsigned(_) => {
                self.integer().zip(kind.integers()).is_some_and(|(number, range)| range.contains(&number))
            }
            OwnValue::Float(_) => kind == CellKind::F32,
            OwnValue::Double(_) => kind == CellKind::F64,
            OwnValue::Text(_) => kind == CellKind::Text,
        }
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

    /// Returns the session time of each row, if the kind has times.
    pub(crate) fn times(&self) -> Option<&[i64]> {
        self.columns.get(self.time_column?).map(|column| &column.values[..])
    }

    /// Adds the kind and the columns of these records to the kinds that are known.
    pub(crate) fn note_kind(&self, known: &mut Vec<UnknownRecords>) {
        let empty = |column: &UnknownColumn| UnknownColumn { form: column.form, values: Vec::new() };
        match known.iter_mut().find(|known| known.kind == self.kind) {
            Some(known) => {
                let both = known.columns.iter_mut().zip(&self.columns);
                both.for_each(|(known, column)| known.see(column.form));
            }
            None => known.push(UnknownRecords {
                kind: self.kind.clone(),
                columns: self.columns.iter().map(empty).collect(),
                time_column: self.time_column,
                ..UnknownRecords::default()
            }),
        }
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
            time_column: self.time_column,
        }
    }
}

/// Only kinds with a time column have times.
impl RecordStream for UnknownRecords {
    fn len(&self) -> usize {
        self.series.len()
    }

    fn when(&self, index: usize) -> Option<EventTime> {
        self.times()?.get(index).map(|at| EventTime::At(Micros(*at)))
    }

    fn span(&self, range: Range<usize>) -> Option<(Micros, Micros)> {
        lowest_and_highest(self.times()?.get(range)?.iter().map(|at| Micros(*at)))
    }

    fn bytes(&self, range: Range<usize>) -> usize {
        (size_of::<u32>() + size_of::<i64>() * (1 + self.columns.len())) * range.len()
    }

    fn drop_first(&mut self, count: usize) {
        let count = count.min(self.len());
        self.series.drain(..count);
        self.keys.drain(..count);
        self.columns.iter_mut().for_each(|column| drop(column.values.drain(..count)));
    }

    fn retain(&mut self, keep: &dyn Fn(EventTime) -> bool) {
        let Some(times) = self.times() else { return };
        let kept: Vec<usize> = (0..self.len()).filter(|&row| keep(EventTime::At(Micros(times[row])))).collect();
        *self = self.rows(&kept);
    }

    fn move_by(&mut self, by: Micros) {
        if let Some(column) = self.time_column.and_then(|at| self.columns.get_mut(at)) {
            column.values.iter_mut().for_each(|at| *at = at.saturating_add(by.0));
        }
    }

    fn sort_by_time(&mut self) {
        let Some(times) = self.times().filter(|times| !times.is_sorted()) else { return };
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&row| (times[row], row));
        *self = self.rows(&order);
    }
}

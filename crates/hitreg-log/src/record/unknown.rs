//! What a later version of the format has recorded and this build does not know: it is kept as numbers, so that a log that
//! is written again still has it.

use crate::units::Micros;

/// A record kind of which this build knows nothing, or the columns of a known kind that it does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    /// The kind's name.
    pub name: String,
    /// The names of its columns: all of them, or of a known kind those that are unknown.
    pub columns: Vec<String>,
}

impl UnknownKind {
    /// Whether only some of its columns are unknown.
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

/// The records of one unknown kind, or what known records have in columns that are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownRecords {
    /// The kind's name.
    pub kind: String,
    /// Whose each row is: a player's number, or what else the kind counts its series by.
    pub series: Vec<u32>,
    /// Of known kinds, which record of that series it belongs to, by the first column of its kind; else 0.
    pub keys: Vec<i64>,
    /// The columns, in the order of [`UnknownKind::columns`].
    pub columns: Vec<UnknownColumn>,
}

/// A column of numbers of which no more is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownColumn {
    /// Whether they are the bits of IEEE 754 singles.
    pub is_float: bool,
    /// One for each row.
    pub values: Vec<i64>,
}

/// One number of a kind of record that a team declares for itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number; a hash by its bits.
    Number(i64),
    /// A measure.
    Float(f32),
}

impl Value {
    pub(crate) fn cell(self) -> i64 {
        match self {
            Value::Number(number) => number,
            Value::Float(float) => i64::from(float.to_bits()),
        }
    }
}

/// A row of one of [`Header::unknown`](super::Header::unknown) on its way into a log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OwnRow {
    /// The kind's place there.
    pub(crate) kind: usize,
    /// As in [`UnknownRecords::series`].
    pub(crate) series: u32,
    /// As in [`UnknownRecords::keys`].
    pub(crate) key: i64,
    /// One for each column.
    pub(crate) values: Vec<Value>,
}

impl UnknownRecords {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// When each of them happened, where the kind has the column `at_us`, which holds session times in every kind.
    pub(crate) fn times(&self, kind: &UnknownKind) -> Option<&[i64]> {
        let at = kind.columns.iter().position(|name| name == "at_us")?;
        self.columns.get(at).map(|column| &column.values[..]).filter(|_| !kind.is_known_kind())
    }

    /// Appends later ones of the same kind.
    pub(crate) fn append(&mut self, mut later: UnknownRecords) {
        self.series.append(&mut later.series);
        self.keys.append(&mut later.keys);
        for (column, mut more) in self.columns.iter_mut().zip(later.columns) {
            column.is_float |= more.is_float;
            column.values.append(&mut more.values);
        }
    }

    /// Only these rows, in this order.
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

    /// Forgets the first of them.
    pub(crate) fn drop_first(&mut self, count: usize) {
        let count = count.min(self.len());
        self.series.drain(..count);
        self.keys.drain(..count);
        self.columns.iter_mut().for_each(|column| drop(column.values.drain(..count)));
    }

    /// Puts them into the order of their times, where the kind has times.
    pub(crate) fn put_in_order(&mut self, kind: &UnknownKind) {
        let Some(times) = self.times(kind).filter(|times| !times.is_sorted()) else { return };
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&row| times[row]);
        *self = self.rows(&order);
    }

    /// Leaves out those that are later than `end`, where the kind has times.
    pub(crate) fn end_at(&mut self, kind: &UnknownKind, end: Micros) {
        let Some(times) = self.times(kind) else { return };
        let kept: Vec<usize> = (0..self.len()).filter(|&row| times[row] <= end.0).collect();
        *self = self.rows(&kept);
    }

    /// What they take in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        (size_of::<u32>() + size_of::<i64>() * (1 + self.columns.len())) * self.len()
    }
}

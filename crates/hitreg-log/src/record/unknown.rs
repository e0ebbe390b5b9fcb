//! Records that this build does not know: custom kinds, and additions of a later format version. hitreg stores them as
//! numbers. A rewritten log therefore still has them.

use crate::units::Micros;

/// A record kind that this build does not know, or the unknown columns of a known kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    /// Name of the kind.
    pub name: String,
    /// Names of its columns. For a known kind, only the unknown columns.
    pub columns: Vec<String>,
}

impl UnknownKind {
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

/// A column of numbers of unknown meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownColumn {
    /// Whether the values are the bits of IEEE 754 singles.
    pub is_float: bool,
    /// One value for each row.
    pub values: Vec<i64>,
}

/// One number in a row of a custom kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OwnValue {
    /// An integer; hashes as their bits.
    Number(i64),
    /// A float.
    Float(f32),
}

impl OwnValue {
    pub(crate) fn cell(self) -> i64 {
        match self {
            OwnValue::Number(number) => number,
            OwnValue::Float(float) => i64::from(float.to_bits()),
        }
    }
}

/// A row of one of [`SessionHeader::unknown`](super::SessionHeader::unknown) before it is added to a log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CustomRow {
    /// Index of the kind in [`SessionHeader::unknown`](super::SessionHeader::unknown).
    pub(crate) kind: usize,
    /// As in [`UnknownRecords::series`].
    pub(crate) series: u32,
    /// As in [`UnknownRecords::keys`].
    pub(crate) key: i64,
    /// One value for each column.
    pub(crate) values: Vec<OwnValue>,
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

    /// Returns the session time of each row, for kinds with a column `at_us`.
    pub(crate) fn times(&self, kind: &UnknownKind) -> Option<&[i64]> {
        let at = kind.columns.iter().position(|name| name == "at_us")?;
        self.columns.get(at).map(|column| &column.values[..]).filter(|_| !kind.is_known_kind())
    }

    /// Appends later rows of the same kind.
    pub(crate) fn append(&mut self, mut later: UnknownRecords) {
        self.series.append(&mut later.series);
        self.keys.append(&mut later.keys);
        for (column, mut more) in self.columns.iter_mut().zip(later.columns) {
            column.is_float |= more.is_float;
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
    pub(crate) fn put_in_order(&mut self, kind: &UnknownKind) {
        let Some(times) = self.times(kind).filter(|times| !times.is_sorted()) else { return };
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&row| times[row]);
        *self = self.rows(&order);
    }

    /// Removes the rows later than `end`, if the kind has times.
    pub(crate) fn end_at(&mut self, kind: &UnknownKind, end: Micros) {
        let Some(times) = self.times(kind) else { return };
        let kept: Vec<usize> = (0..self.len()).filter(|&row| times[row] <= end.0).collect();
        *self = self.rows(&kept);
    }

    /// Returns the size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        (size_of::<u32>() + size_of::<i64>() * (1 + self.columns.len())) * self.len()
    }
}

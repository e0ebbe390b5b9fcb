//! The rows of a chunk, grouped by series, so that columns are predicted within each series.

use crate::log::column::{self, Effort};
use crate::record::NumberForm;
use crate::trace::ColumnData;

/// Rows grouped by series, in ascending order of the keys; within a series in table order.
pub(super) struct RowGrouping {
    /// The chunk's row at each position; `None` if each row is in its place.
    order: Option<Vec<u32>>,
    pub(super) series: Vec<usize>,
}

/// The most different keys that are sorted by counting.
const MOST_COUNTED: usize = 1 << 16;

impl RowGrouping {
    pub(super) fn new<'a>(rows: usize, keys: impl Iterator<Item = &'a [u32]>) -> RowGrouping {
        let keys: Vec<&[u32]> = keys.collect();
        if keys.is_empty() {
            return RowGrouping::alone(rows);
        }
        let mut order: Vec<u32> = (0..rows as u32).collect();
        for key in keys.iter().rev() {
            sort_by_key(&mut order, key);
        }
        let is_same = |a: &u32, b: &u32| keys.iter().all(|key| key[*a as usize] == key[*b as usize]);
        let series = order.chunk_by(is_same).map(<[u32]>::len).collect();
        RowGrouping { order: Some(order), series }
    }

    /// All rows in one series.
    pub(super) fn alone(rows: usize) -> RowGrouping {
        RowGrouping { order: None, series: if rows == 0 { Vec::new() } else { vec![rows] } }
    }

    pub(super) fn rows(&self) -> usize {
        self.series.iter().sum()
    }

    /// Groups values by series.
    fn gather(&self, value: impl Fn(usize) -> i64) -> Vec<i64> {
        match &self.order {
            Some(order) => order.iter().map(|row| value(*row as usize)).collect(),
            None => (0..self.rows()).map(value).collect(),
        }
    }

    pub(super) fn pack(&self, data: &ColumnData, start: usize) -> Vec<u8> {
        use NumberForm::{F32, F64, Integer};
        match data {
            ColumnData::U32(v) => self.packed(Integer, |row| v[start + row].into()),
            ColumnData::U64(v) => self.packed(Integer, |row| v[start + row] as i64),
            ColumnData::I64(v) => self.packed(Integer, |row| v[start + row]),
            ColumnData::Name { codes, .. } => self.packed(Integer, |row| codes[start + row].into()),
            ColumnData::Bool(v) => self.packed(Integer, |row| v[start + row].into()),
            ColumnData::F64(v) => self.packed(F64, |row| v[start + row].to_bits() as i64),
            ColumnData::F32(v) => self.packed(F32, |row| v[start + row].to_bits().into()),
        }
    }

    fn packed(&self, form: NumberForm, value: impl Fn(usize) -> i64) -> Vec<u8> {
        column::encode_as(form, &self.gather(value), &self.series, Effort::Sample)
    }

    /// Restores the order of rows in the chunk.
    pub(super) fn scatter<V: Clone + Default>(
        &self,
        packed: Vec<i64>,
        value: impl Fn(i64) -> Option<V>,
    ) -> Result<Vec<V>, String> {
        let wrong = |row: usize| format!("the value of row {row} is out of range");
        let Some(order) = &self.order else {
            let values = packed.into_iter().enumerate();
            return values.map(|(row, packed)| value(packed).ok_or_else(|| wrong(row))).collect();
        };
        let mut rows = vec![V::default(); order.len()];
        for (&row, packed) in order.iter().zip(packed) {
            rows[row as usize] = value(packed).ok_or_else(|| wrong(row as usize))?;
        }
        Ok(rows)
    }
}

/// Sorts rows by their key. Rows with equal keys stay in their order.
fn sort_by_key(order: &mut Vec<u32>, key: &[u32]) {
    let most = key.iter().max().map_or(0, |most| *most as usize);
    if most >= MOST_COUNTED.min(2 * key.len()) {
        order.sort_unstable_by_key(|row| (key[*row as usize], *row));
        return;
    }
    let mut places = vec![0u32; most + 2];
    key.iter().for_each(|key| places[*key as usize + 1] += 1);
    for place in 1..places.len() {
        places[place] += places[place - 1];
    }
    let mut sorted = vec![0; order.len()];
    for row in &*order {
        let place = &mut places[key[*row as usize] as usize];
        sorted[*place as usize] = *row;
        *place += 1;
    }
    *order = sorted;
}

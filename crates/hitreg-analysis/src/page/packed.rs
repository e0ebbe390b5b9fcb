//! Packs columns of whole numbers, and records of one kind, into few bytes. `web/data.js` reads them.
//!
//! Each value of a column is stored as its distance from a prediction, which uses the one or two values before it. The
//! distance is a varint of seven bits per byte.
//!
//! Records with the same fields, such as shots, share a shape. Numbers are stored as their distance from the same field of
//! the record before, measures as four bytes or, if these are too coarse, as eight, and each different text once.

use serde::Serialize;
use serde_json::Value;

use hitreg_log::sorted::SortedMap;
use hitreg_log::varint::{put_varint, zigzag};

/// All columns of a page, one after the other.
#[derive(Debug, Default)]
pub(super) struct PageColumns {
    pub(super) bytes: Vec<u8>,
}

/// The location of a column.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct PackedColumn {
    at: usize,
    rows: usize,
    /// How many earlier values the prediction uses.
    order: u8,
    /// The size of the number 1, in the column's unit.
    unit: f64,
    /// The value of the number 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) origin: f64,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl PageColumns {
    /// Adds a column whose values are close to the value before.
    pub(super) fn push(&mut self, values: impl IntoIterator<Item = i64>, unit: f64) -> PackedColumn {
        self.add(values, unit, 1)
    }

    /// Adds a column whose values change steadily.
    pub(super) fn push_steady(&mut self, values: impl IntoIterator<Item = i64>, unit: f64) -> PackedColumn {
        self.add(values, unit, 2)
    }

    fn add(&mut self, values: impl IntoIterator<Item = i64>, unit: f64, order: u8) -> PackedColumn {
        let (at, mut rows, mut before, mut step) = (self.bytes.len(), 0, 0i64, 0i64);
        for value in values {
            let moved = value.wrapping_sub(before);
            let surprise = if order == 2 { moved.wrapping_sub(step) } else { moved };
            (before, step, rows) = (value, moved, rows + 1);
            put_varint(&mut self.bytes, zigzag(surprise));
        }
        PackedColumn { at, rows, order, unit, origin: 0.0 }
    }

    /// Adds bytes, and returns their place.
    pub(super) fn put(&mut self, bytes: &[u8]) -> usize {
        self.bytes.extend_from_slice(bytes);
        self.bytes.len() - bytes.len()
    }
}

/// Converts a measured value to a whole number of units. NaN and values beyond the page's range are clamped.
pub(super) fn whole(value: impl Into<f64>, unit: f64) -> i64 {
    libm::round(value.into() / unit).clamp(-EXACT_SUM_MAX, EXACT_SUM_MAX) as i64
}

/// Sums of numbers up to this size are exact in a browser.
pub(super) const EXACT_SUM_MAX: f64 = (1u64 << 40) as f64;

#[cfg(test)]
impl PackedColumn {
    /// The values of a column, as `web/data.js` restores them.
    pub(super) fn restored(&self, columns: &PageColumns) -> Vec<f64> {
        use hitreg_log::varint::{Cursor, unzigzag};
        let (mut bytes, mut before, mut step) = (Cursor::new(&columns.bytes[self.at..]), 0i64, 0i64);
        let mut number = || unzigzag(bytes.varint().expect("a number"));
        let value = |_| {
            step = if self.order == 2 { step + number() } else { number() };
            before += step;
            self.origin + before as f64 * self.unit
        };
        (0..self.rows).map(value).collect()
    }
}

/// Packed records, in the page's format.
#[derive(Debug, Serialize)]
pub(super) struct PackedRecords {
    /// The number of records.
    records: usize,
    /// Each shape: an object or array whose leaves are the numbers of fields; -1 is null and -2 an empty array.
    shapes: Vec<Value>,
    /// The kind of each field: `i` for whole numbers, `b` for yes or no, `f` for measures that four bytes
    /// hold, `d` for other measures and whole numbers in eight, `t` for texts.
    kinds: String,
    /// The different texts.
    texts: Vec<String>,
    /// The place of the whole numbers, the shape of each record first.
    numbers_at: usize,
    /// The place of the measures.
    measures_at: usize,
}

/// Packs records while they are added.
#[derive(Debug, Default)]
pub(super) struct RecordPacker {
    records: usize,
    shapes: SortedMap<String, usize>,
    /// The number of each field, by its path and kind.
    fields: SortedMap<(String, char), usize>,
    kinds: String,
    /// The last whole number of each field.
    last: Vec<i64>,
    last_shape: i64,
    texts: SortedMap<String, usize>,
    numbers: Vec<u8>,
    measures: Vec<u8>,
}

/// Whole numbers up to this size, and the distances between them, are exact in a browser.
const EXACT_DISTANCE_MAX: u64 = 1 << 51;

impl RecordPacker {
    /// Adds a record.
    ///
    /// # Errors
    /// When it cannot be serialized.
    pub(super) fn push(&mut self, record: &impl Serialize) -> Result<(), String> {
        let record = serde_json::to_value(record).map_err(|error| error.to_string())?;
        let mut values = Vec::new();
        let shape = self.shape(&record, &mut String::new(), &mut values).to_string();
        let next = self.shapes.len();
        let shape = *self.shapes.entry(shape).or_insert(next) as i64;
        put_varint(&mut self.numbers, zigzag(shape - std::mem::replace(&mut self.last_shape, shape)));
        self.numbers.append(&mut values);
        self.records += 1;
        Ok(())
    }

    /// The shape of a value. Adds the bytes of its whole numbers.
    fn shape(&mut self, value: &Value, path: &mut String, numbers: &mut Vec<u8>) -> Value {
        match value {
            Value::Null => (-1).into(),
            Value::Array(items) if items.is_empty() => (-2).into(),
            Value::Array(items) => {
                let of = |(place, item): (usize, &Value)| self.within(&place.to_string(), item, path, numbers);
                Value::Array(items.iter().enumerate().map(of).collect())
            }
            Value::Object(fields) => {
                let of = |(name, field): (&String, &Value)| (name.clone(), self.within(name, field, path, numbers));
                Value::Object(fields.iter().map(of).collect())
            }
            Value::Bool(is_so) => self.number(path, 'b', i64::from(*is_so), numbers),
            Value::String(text) => {
                let next = self.texts.len();
                let code = match self.texts.get(text) {
                    Some(code) => *code,
                    None => *self.texts.entry(text.clone()).or_insert(next),
                };
                self.number(path, 't', code as i64, numbers)
            }
            Value::Number(number) => match number.as_i64().filter(|whole| whole.unsigned_abs() <= EXACT_DISTANCE_MAX) {
                Some(whole) => self.number(path, 'i', whole, numbers),
                None => {
                    let measure = number.as_f64().unwrap_or(f64::NAN);
                    let kind = match f64::from(measure as f32) != measure {
                        true => {
                            self.measures.extend(measure.to_le_bytes());
                            'd'
                        }
                        false => {
                            self.measures.extend((measure as f32).to_le_bytes());
                            'f'
                        }
                    };
                    self.field(path, kind).into()
                }
            },
        }
    }

    fn within(&mut self, name: &str, value: &Value, path: &mut String, numbers: &mut Vec<u8>) -> Value {
        let length = path.len();
        path.push('/');
        path.push_str(name);
        let shape = self.shape(value, path, numbers);
        path.truncate(length);
        shape
    }

    fn number(&mut self, path: &str, kind: char, value: i64, numbers: &mut Vec<u8>) -> Value {
        let field = self.field(path, kind);
        let last = std::mem::replace(&mut self.last[field], value);
        put_varint(numbers, zigzag(value.wrapping_sub(last)));
        field.into()
    }

    fn field(&mut self, path: &str, kind: char) -> usize {
        let key = (path.to_owned(), kind);
        if let Some(field) = self.fields.get(&key) {
            return *field;
        }
        self.kinds.push(kind);
        self.last.push(0);
        self.fields.insert(key, self.last.len() - 1);
        self.last.len() - 1
    }

    /// Adds the bytes to the page.
    pub(super) fn finish(self, columns: &mut PageColumns) -> PackedRecords {
        let parsed = |shape: &String| serde_json::from_str(shape).unwrap_or_default();
        PackedRecords {
            records: self.records,
            shapes: in_order(&self.shapes).into_iter().map(parsed).collect(),
            kinds: self.kinds,
            texts: in_order(&self.texts).into_iter().cloned().collect(),
            numbers_at: columns.put(&self.numbers),
            measures_at: columns.put(&self.measures),
        }
    }
}

/// The keys in the order of their numbers.
fn in_order(of: &SortedMap<String, usize>) -> Vec<&String> {
    let mut keys: Vec<(&String, usize)> = of.iter().map(|(key, number)| (key, *number)).collect();
    keys.sort_unstable_by_key(|(_, number)| *number);
    keys.into_iter().map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_constant_steps_take_a_byte_each() {
        let mut columns = PageColumns::default();
        let steady = columns.push_steady((0..100).map(|tick| 1_000_000 + tick * 15_625), 1.0);
        let far = columns.push([i64::MIN, i64::MAX, 0], 1.0);
        assert_eq!((steady.at, steady.rows, far.rows), (0, 100, 3));
        assert!(far.at < 108, "{far:?}");
        assert_eq!([whole(f32::INFINITY, 0.5), whole(1.3, 0.5), whole(f32::NAN, 1.0)], [1 << 40, 3, 0]);
    }

    /// Doubles keep their digits, and only doubles take eight bytes.
    #[test]
    fn measures_are_exact() {
        let mut packer = RecordPacker::default();
        packer
            .push(&serde_json::json!({ "single": -21.978_502_f32, "double": 45.232_956_794_132_63 }))
            .expect("packed");
        assert_eq!((packer.kinds.as_str(), packer.measures.len()), ("df", 12));
    }

    /// The distance from a number that a browser cannot hold would change all later numbers.
    #[test]
    fn whole_numbers_too_large_for_a_browser_are_measures() {
        let most = EXACT_DISTANCE_MAX as i64;
        for (damage, is_whole) in
            [(most, true), (-most, true), (most + 1, false), (-most - 1, false), (i64::MAX / 3, false)]
        {
            let mut packer = RecordPacker::default();
            for damage in [10, damage, 25] {
                packer.push(&serde_json::json!({ "damage": damage })).expect("packed");
            }
            assert_eq!(packer.last, if is_whole { vec![25] } else { vec![25, 0] }, "{damage}");
            assert_eq!(packer.kinds, if is_whole { "i" } else { "id" });
            let measures = if is_whole { Vec::new() } else { (damage as f64).to_le_bytes().to_vec() };
            assert_eq!(packer.measures, measures);
        }
    }
}

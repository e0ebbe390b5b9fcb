//! Compares two cells of the same column: equal, within tolerance, drifted, or different.

use std::ops::Range;

use serde::{Serialize, Serializer};

use crate::row_text::EXACT_INTEGER_MAX;
use hitreg_log::trace::schema::NO_HASH;
use hitreg_log::trace::{Column, ColumnData};

/// Floats at most this many representable values apart have drifted: the same arithmetic ran in another order or at
/// another precision.
const DRIFT_ULPS: u64 = 64;
/// Floats at most this far apart have drifted, however many representable values lie between them near zero.
const DRIFT_ABSOLUTE: f64 = 1e-3;

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceClass {
    /// Floats at most 64 representable values or 0.001 apart.
    Drift,
    /// Hashes differ, which shows that something differs but not by how much.
    Hash,
    /// Any other difference.
    Difference,
}

/// One value of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum CellValue {
    /// A count, number, flag or time.
    Integer(i64),
    /// A hash.
    Hash(u64),
    /// A number that may exceed [`CellValue::Integer`].
    Unsigned(u64),
    /// A measured quantity.
    Float(f32),
    /// A measured quantity in double precision.
    Double(f64),
    /// A flag.
    Flag(bool),
    /// One of a column's names.
    Name(String),
}

impl CellValue {
    /// The value in one row of a column; `None` after the column's last row.
    pub(crate) fn at(column: &Column, row: usize) -> Option<CellValue> {
        Some(match &column.data {
            ColumnData::U32(v) => CellValue::Integer(i64::from(*v.get(row)?)),
            ColumnData::U64(v) if column.is_hash() => CellValue::Hash(*v.get(row)?),
            ColumnData::U64(v) => CellValue::Unsigned(*v.get(row)?),
            ColumnData::I64(v) => CellValue::Integer(*v.get(row)?),
            ColumnData::F32(v) => CellValue::Float(*v.get(row)?),
            ColumnData::F64(v) => CellValue::Double(*v.get(row)?),
            ColumnData::Bool(v) => CellValue::Flag(*v.get(row)?),
            ColumnData::Name { names, codes } => CellValue::Name(names.get(*codes.get(row)? as usize)?.clone()),
        })
    }

    /// The value as a whole number, if it is one and all its digits are known.
    pub(crate) fn whole(&self) -> Option<i128> {
        let of_float =
            |value: f64, most: i128| Some(value as i128).filter(|whole| *whole as f64 == value && whole.abs() <= most);
        match self {
            CellValue::Integer(value) => Some(i128::from(*value)),
            CellValue::Unsigned(value) | CellValue::Hash(value) => Some(i128::from(*value)),
            CellValue::Float(value) => of_float(f64::from(*value), SINGLE_WHOLE_MAX),
            CellValue::Double(value) => of_float(*value, DOUBLE_WHOLE_MAX),
            CellValue::Flag(_) | CellValue::Name(_) => None,
        }
    }

    /// A tick, or the number of a player, entity or usercmd.
    pub(super) fn number(&self) -> Option<u32> {
        match self {
            CellValue::Integer(v) => u32::try_from(*v).ok(),
            _ => None,
        }
    }

    /// Whether two values are equal to the bit. NaN equals NaN.
    pub fn same(&self, other: &CellValue) -> bool {
        match (self, other) {
            (CellValue::Float(a), CellValue::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (CellValue::Double(a), CellValue::Double(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            _ => self == other,
        }
    }
}

/// The greatest whole number up to which a single float holds all.
pub(crate) const SINGLE_WHOLE_MAX: i128 = 1 << f32::MANTISSA_DIGITS;
/// The greatest whole number up to which a double holds all.
pub(crate) const DOUBLE_WHOLE_MAX: i128 = 1 << f64::MANTISSA_DIGITS;

impl std::fmt::Display for CellValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CellValue::Integer(v) => write!(f, "{v}"),
            CellValue::Hash(v) => write!(f, "{v:016x}"),
            CellValue::Unsigned(v) => write!(f, "{v}"),
            CellValue::Float(v) => write!(f, "{v}"),
            CellValue::Double(v) => write!(f, "{v}"),
            CellValue::Flag(v) => write!(f, "{v}"),
            CellValue::Name(v) => write!(f, "{v}"),
        }
    }
}

impl Serialize for CellValue {
    /// Writes numbers as JSON numbers. Hashes and non-finite floats become text, because JSON has neither. So do `u64`
    /// values and integers beyond 2^53, because many readers keep only 53 bits of a number.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CellValue::Integer(v) if v.unsigned_abs() <= EXACT_INTEGER_MAX => serializer.serialize_i64(*v),
            CellValue::Flag(v) => serializer.serialize_bool(*v),
            CellValue::Float(v) if v.is_finite() => serializer.serialize_f32(*v),
            CellValue::Double(v) if v.is_finite() => serializer.serialize_f64(*v),
            CellValue::Integer(_)
            | CellValue::Hash(_)
            | CellValue::Unsigned(_)
            | CellValue::Float(_)
            | CellValue::Double(_)
            | CellValue::Name(_) => serializer.collect_str(self),
        }
    }
}

/// How the numbers of a column are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NumberComparison {
    /// The tolerance: the largest difference that counts as equal.
    pub(crate) within: Option<f64>,
    /// Whether the numbers are degrees, which wrap around: from 355 to 0 is 5.
    pub(crate) is_angle: bool,
    /// Whether `u64` values are numbers, and not hashes.
    pub(crate) has_size: bool,
}

/// The result of comparing two cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CellComparison {
    Same,
    Within,
    Differs { class: DifferenceClass, error: Option<f64> },
}

/// The same column of both traces.
pub(crate) enum CellPair<'a> {
    U32(&'a [u32], &'a [u32]),
    U64(&'a [u64], &'a [u64]),
    I64(&'a [i64], &'a [i64]),
    F32(&'a [f32], &'a [f32]),
    F64(&'a [f64], &'a [f64]),
    Bool(&'a [bool], &'a [bool]),
    Names { a: &'a [u32], b: &'a [u32], names: [&'a [String]; 2] },
}

impl<'a> CellPair<'a> {
    /// Pairs the columns; `None` if their types differ.
    pub(crate) fn of(a: &'a ColumnData, b: &'a ColumnData) -> Option<CellPair<'a>> {
        Some(match (a, b) {
            (ColumnData::U32(a), ColumnData::U32(b)) => CellPair::U32(a, b),
            (ColumnData::U64(a), ColumnData::U64(b)) => CellPair::U64(a, b),
            (ColumnData::I64(a), ColumnData::I64(b)) => CellPair::I64(a, b),
            (ColumnData::F32(a), ColumnData::F32(b)) => CellPair::F32(a, b),
            (ColumnData::F64(a), ColumnData::F64(b)) => CellPair::F64(a, b),
            (ColumnData::Bool(a), ColumnData::Bool(b)) => CellPair::Bool(a, b),
            (ColumnData::Name { names: names_a, codes: a }, ColumnData::Name { names: names_b, codes: b }) => {
                CellPair::Names { a, b, names: [names_a, names_b] }
            }
            _ => return None,
        })
    }

    /// Whether rows of A and B are equal to the bit. A false result does not mean that they differ.
    pub(crate) fn same_bits(&self, of_a: Range<usize>, of_b: Range<usize>) -> bool {
        match self {
            CellPair::U32(a, b) => a[of_a] == b[of_b],
            CellPair::U64(a, b) => a[of_a] == b[of_b],
            CellPair::I64(a, b) => a[of_a] == b[of_b],
            CellPair::F32(a, b) => {
                let pairs = a[of_a].iter().zip(&b[of_b]);
                pairs.fold(0, |differing, (a, b)| differing | (a.to_bits() ^ b.to_bits())) == 0
            }
            CellPair::F64(a, b) => {
                let pairs = a[of_a].iter().zip(&b[of_b]);
                pairs.fold(0, |differing, (a, b)| differing | (a.to_bits() ^ b.to_bits())) == 0
            }
            CellPair::Bool(a, b) => a[of_a] == b[of_b],
            CellPair::Names { a, b, names: [names_a, names_b] } => names_a == names_b && a[of_a] == b[of_b],
        }
    }

    /// Whether row `i` of A or row `j` of B has no hash, in a column of hashes.
    pub(crate) fn lacks_hash(&self, i: usize, j: usize) -> bool {
        matches!(self, CellPair::U64(a, b) if a[i] == NO_HASH || b[j] == NO_HASH)
    }

    /// Compares row `i` of A with row `j` of B.
    pub(crate) fn compare(&self, i: usize, j: usize, measure: NumberComparison) -> CellComparison {
        match self {
            CellPair::U32(a, b) => integers(i64::from(a[i]), i64::from(b[j]), measure.within),
            CellPair::I64(a, b) => integers(a[i], b[j], measure.within),
            CellPair::F32(a, b) => floats(a[i], b[j], measure),
            CellPair::F64(a, b) => doubles(a[i], b[j], measure),
            CellPair::Bool(a, b) if a[i] == b[j] => CellComparison::Same,
            CellPair::Bool(..) => CellComparison::Differs { class: DifferenceClass::Difference, error: None },
            CellPair::U64(a, b) if measure.has_size => apart(a[i].abs_diff(b[j]), measure.within),
            CellPair::U64(a, b) if a[i] == b[j] => CellComparison::Same,
            CellPair::U64(..) => CellComparison::Differs { class: DifferenceClass::Hash, error: None },
            CellPair::Names { a, b, names: [names_a, names_b] } => {
                if names_a.get(a[i] as usize) == names_b.get(b[j] as usize) {
                    CellComparison::Same
                } else {
                    CellComparison::Differs { class: DifferenceClass::Difference, error: None }
                }
            }
        }
    }
}

#[inline]
pub(crate) fn integers(a: i64, b: i64, tolerance: Option<f64>) -> CellComparison {
    apart(a.abs_diff(b), tolerance)
}

#[inline]
fn apart(by: u64, tolerance: Option<f64>) -> CellComparison {
    if by == 0 {
        return CellComparison::Same;
    }
    let error = by as f64;
    match tolerance {
        Some(within) if error <= within => CellComparison::Within,
        _ => CellComparison::Differs { class: DifferenceClass::Difference, error: Some(error) },
    }
}

#[inline]
pub(crate) fn floats(a: f32, b: f32, measure: NumberComparison) -> CellComparison {
    // NaN means "none" in a trace, whatever its payload.
    if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) {
        return CellComparison::Same;
    }
    measured((f64::from(a) - f64::from(b)).abs(), ulps_apart(a, b), measure)
}

fn doubles(a: f64, b: f64, measure: NumberComparison) -> CellComparison {
    if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) {
        return CellComparison::Same;
    }
    measured((a - b).abs(), double_ulps_apart(a, b), measure)
}

#[inline]
fn measured(apart: f64, ulps: u64, measure: NumberComparison) -> CellComparison {
    let error = if measure.is_angle { shortest_way(apart) } else { apart };
    if measure.within.is_some_and(|within| error <= within) {
        return CellComparison::Within;
    }
    if !error.is_finite() {
        return CellComparison::Differs { class: DifferenceClass::Difference, error: None };
    }
    let drifted = error <= DRIFT_ABSOLUTE || ulps <= DRIFT_ULPS;
    let class = if drifted { DifferenceClass::Drift } else { DifferenceClass::Difference };
    CellComparison::Differs { class, error: Some(error) }
}

/// The shortest way round the circle, in degrees.
fn shortest_way(degrees: f64) -> f64 {
    // The remainder is slow, and rarely needed.
    let once_round = if degrees < 360.0 { degrees } else { degrees % 360.0 };
    once_round.min(360.0 - once_round)
}

/// How many representable values lie between two floats; 0 and -0 are one apart.
#[inline]
pub(crate) fn ulps_apart(a: f32, b: f32) -> u64 {
    ordered(a).abs_diff(ordered(b)).into()
}

/// As [`ulps_apart`].
pub(crate) fn double_ulps_apart(a: f64, b: f64) -> u64 {
    ordered_double(a).abs_diff(ordered_double(b))
}

/// The float's rank among all floats in ascending order, as `f32::total_cmp` orders them.
#[inline]
pub(crate) fn ordered(value: f32) -> i32 {
    let bits = value.to_bits() as i32;
    if bits < 0 { bits ^ i32::MAX } else { bits }
}

/// As [`ordered`].
pub(crate) fn ordered_double(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(a: f32, b: f32) -> Option<DifferenceClass> {
        match floats(a, b, NumberComparison::default()) {
            CellComparison::Differs { class, .. } => Some(class),
            CellComparison::Same | CellComparison::Within => None,
        }
    }

    #[test]
    fn one_bit_in_the_last_place_is_drift_and_a_unit_is_not() {
        assert_eq!(class(1e6, f32::from_bits(1e6f32.to_bits() + 64)), Some(DifferenceClass::Drift));
        assert_eq!(class(1e6, f32::from_bits(1e6f32.to_bits() + 65)), Some(DifferenceClass::Difference));
        assert_eq!(class(0.0, 1e-9), Some(DifferenceClass::Drift));
        assert_eq!(class(0.0, -0.0), Some(DifferenceClass::Drift));
        assert_eq!(class(1.0, 2.0), Some(DifferenceClass::Difference));
        assert_eq!(class(1.0, f32::NAN), Some(DifferenceClass::Difference));
        assert_eq!(class(f32::MAX, f32::INFINITY), Some(DifferenceClass::Difference));
        assert_eq!(class(f32::NAN, -f32::NAN), None);
    }

    #[test]
    fn doubles_differ_by_their_bits() {
        let class = |a: f64, b: f64| match doubles(a, b, NumberComparison::default()) {
            CellComparison::Differs { class, .. } => Some(class),
            CellComparison::Same | CellComparison::Within => None,
        };
        let next = |value: f64, by: u64| f64::from_bits(value.to_bits() + by);
        assert_eq!(class(1e15, next(1e15, 64)), Some(DifferenceClass::Drift));
        assert_eq!(class(1e15, next(1e15, 65)), Some(DifferenceClass::Difference));
        assert_eq!((class(0.0, -0.0), double_ulps_apart(0.0, -0.0)), (Some(DifferenceClass::Drift), 1));
        assert_eq!(class(1.0, f64::NAN), Some(DifferenceClass::Difference));
        assert_eq!(class(f64::NAN, -f64::NAN), None);
        assert_eq!(CellValue::Double(0.1 + 0.2).to_string(), "0.30000000000000004");
    }

    #[test]
    fn ids_have_a_distance_and_hashes_have_none() {
        let (a, b) = ([u64::MAX], [u64::MAX - 3]);
        let compare = |has_size| {
            CellPair::U64(&a, &b).compare(0, 0, NumberComparison { has_size, ..NumberComparison::default() })
        };
        assert_eq!(compare(true), CellComparison::Differs { class: DifferenceClass::Difference, error: Some(3.0) });
        assert_eq!(compare(false), CellComparison::Differs { class: DifferenceClass::Hash, error: None });
        let value = |name: &str| CellValue::at(&Column::new(name, ColumnData::U64(a.to_vec())), 0).unwrap();
        let values = [value("id"), value("state_hash")];
        let expected = ["18446744073709551615", "ffffffffffffffff"];
        assert_eq!(values.each_ref().map(ToString::to_string), expected);
        assert_eq!(serde_json::to_value(&values).unwrap(), serde_json::json!(expected), "JSON numbers have 53 bits");
        let integers = [1 << 53, 1 - (1 << 55)].map(CellValue::Integer);
        let expected = serde_json::json!([1_i64 << 53, "-36028797018963967"]);
        assert_eq!(serde_json::to_value(&integers).unwrap(), expected);
    }

    #[test]
    fn differences_of_angles_take_the_short_way() {
        let turn =
            |a, b, within| floats(a, b, NumberComparison { within, is_angle: true, ..NumberComparison::default() });
        let differs = |error| CellComparison::Differs { class: DifferenceClass::Difference, error: Some(error) };
        assert_eq!(turn(355.0, 0.0, None), differs(5.0));
        assert_eq!(
            [turn(-179.0, 179.0, None), turn(1.0, 719.0, None), turn(0.0, 180.0, None)],
            [2.0, 2.0, 180.0].map(differs)
        );
        assert_eq!([turn(355.0, 0.0, Some(5.0)), turn(355.0, 1.0, Some(5.0))], [CellComparison::Within, differs(6.0)]);
        // The same direction in other bits has an error of 0, but it is not equal.
        assert_eq!(turn(0.0, 360.0, None), CellComparison::Differs { class: DifferenceClass::Drift, error: Some(0.0) });
        assert_eq!(
            turn(0.0, f32::INFINITY, Some(9.0)),
            CellComparison::Differs { class: DifferenceClass::Difference, error: None }
        );
        assert_eq!(floats(355.0, 0.0, NumberComparison::default()), differs(355.0));
    }

    #[test]
    fn distances_of_floats_count_across_zero() {
        assert_eq!(ulps_apart(0.0, -0.0), 1);
        assert_eq!(ulps_apart(f32::from_bits(1), -f32::from_bits(1)), 3);
        assert_eq!(ulps_apart(1.0, 1.0 + f32::EPSILON), 1);
    }

    #[test]
    fn the_widest_integers_have_a_distance() {
        let error = u64::MAX as f64;
        let expected = CellComparison::Differs { class: DifferenceClass::Difference, error: Some(error) };
        assert_eq!(integers(i64::MIN, i64::MAX, Some(1.0)), expected);
    }
}

//! Compares two cells of the same column: equal, within tolerance, drifted, or different.

use serde::{Serialize, Serializer};

use hitreg_log::trace::{Column, Data};

/// Floats at most this many representable values apart have drifted: the same arithmetic ran in another order or at
/// another precision.
pub(crate) const DRIFT_ULPS: u64 = 64;
/// Floats at most this far apart have drifted, however many representable values lie between them near zero.
pub(crate) const DRIFT_ABSOLUTE: f64 = 1e-3;

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Floats at most `DRIFT_ULPS` representable values or `DRIFT_ABSOLUTE` apart.
    Drift,
    /// Hashes differ, which shows that something differs but not by how much.
    Hash,
    /// Any other difference.
    Difference,
}

/// One value of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count, number, flag or time.
    Integer(i64),
    /// A hash.
    Hash(u64),
    /// A measured quantity.
    Float(f32),
    /// One of a column's names.
    Name(String),
}

impl Value {
    /// The value in one row of a column; `None` after the column's last row.
    pub(crate) fn at(column: &Column, row: usize) -> Option<Value> {
        Some(match &column.data {
            Data::U32(v) => Value::Integer(i64::from(*v.get(row)?)),
            Data::U64(v) => Value::Hash(*v.get(row)?),
            Data::I64(v) => Value::Integer(*v.get(row)?),
            Data::F32(v) => Value::Float(*v.get(row)?),
            Data::Name { names, codes } => Value::Name(names.get(*codes.get(row)? as usize)?.clone()),
        })
    }
}

impl Value {
    /// Whether two values are equal to the bit. NaN equals NaN.
    pub fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            _ => self == other,
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Integer(v) => write!(f, "{v}"),
            Value::Hash(v) => write!(f, "{v:016x}"),
            Value::Float(v) => write!(f, "{v}"),
            Value::Name(v) => write!(f, "{v}"),
        }
    }
}

impl Serialize for Value {
    /// Writes numbers as JSON numbers. Hashes and non-finite floats become text, because JSON has neither.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Integer(v) => serializer.serialize_i64(*v),
            Value::Float(v) if v.is_finite() => serializer.serialize_f32(*v),
            Value::Hash(_) | Value::Float(_) | Value::Name(_) => serializer.collect_str(self),
        }
    }
}

/// How the numbers of a column are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Measure {
    /// The tolerance: the largest difference that counts as equal.
    pub(crate) within: Option<f64>,
    /// Whether the numbers are degrees, which wrap around: from 355 to 0 is 5.
    pub(crate) is_angle: bool,
}

/// The result of comparing two cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Compared {
    Same,
    Within,
    Differs { class: Class, error: Option<f64> },
}

/// The same column of both traces.
pub(crate) enum Cells<'a> {
    U32(&'a [u32], &'a [u32]),
    U64(&'a [u64], &'a [u64]),
    I64(&'a [i64], &'a [i64]),
    F32(&'a [f32], &'a [f32]),
    Names { a: &'a [u32], b: &'a [u32], names: [&'a [String]; 2] },
}

impl<'a> Cells<'a> {
    /// Pairs the columns; `None` if their types differ.
    pub(crate) fn of(a: &'a Data, b: &'a Data) -> Option<Cells<'a>> {
        Some(match (a, b) {
            (Data::U32(a), Data::U32(b)) => Cells::U32(a, b),
            (Data::U64(a), Data::U64(b)) => Cells::U64(a, b),
            (Data::I64(a), Data::I64(b)) => Cells::I64(a, b),
            (Data::F32(a), Data::F32(b)) => Cells::F32(a, b),
            (Data::Name { names: names_a, codes: a }, Data::Name { names: names_b, codes: b }) => {
                Cells::Names { a, b, names: [names_a, names_b] }
            }
            _ => return None,
        })
    }

    /// Whether a range of rows is equal to the bit on both sides. A false result does not mean that they differ.
    pub(crate) fn same_bits(&self, rows: std::ops::Range<usize>) -> bool {
        match self {
            Cells::U32(a, b) => a[rows.clone()] == b[rows],
            Cells::U64(a, b) => a[rows.clone()] == b[rows],
            Cells::I64(a, b) => a[rows.clone()] == b[rows],
            Cells::F32(a, b) => {
                let differing =
                    a[rows.clone()].iter().zip(&b[rows]).fold(0, |d, (a, b)| d | (a.to_bits() ^ b.to_bits()));
                differing == 0
            }
            Cells::Names { a, b, names: [names_a, names_b] } => names_a == names_b && a[rows.clone()] == b[rows],
        }
    }

    /// Compares row `i` of A with row `j` of B.
    pub(crate) fn compare(&self, i: usize, j: usize, measure: Measure) -> Compared {
        match self {
            Cells::U32(a, b) => integers(i64::from(a[i]), i64::from(b[j]), measure.within),
            Cells::I64(a, b) => integers(a[i], b[j], measure.within),
            Cells::F32(a, b) => floats(a[i], b[j], measure),
            Cells::U64(a, b) if a[i] == b[j] => Compared::Same,
            Cells::U64(..) => Compared::Differs { class: Class::Hash, error: None },
            Cells::Names { a, b, names: [names_a, names_b] } => {
                if names_a.get(a[i] as usize) == names_b.get(b[j] as usize) {
                    Compared::Same
                } else {
                    Compared::Differs { class: Class::Difference, error: None }
                }
            }
        }
    }
}

fn integers(a: i64, b: i64, tolerance: Option<f64>) -> Compared {
    if a == b {
        return Compared::Same;
    }
    let error = a.abs_diff(b) as f64;
    match tolerance {
        Some(within) if error <= within => Compared::Within,
        _ => Compared::Differs { class: Class::Difference, error: Some(error) },
    }
}

fn floats(a: f32, b: f32, measure: Measure) -> Compared {
    // NaN means "none" in a trace, whatever its payload.
    if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) {
        return Compared::Same;
    }
    let apart = (f64::from(a) - f64::from(b)).abs();
    let error = if measure.is_angle { shortest_way(apart) } else { apart };
    match measure.within {
        Some(within) if error <= within => return Compared::Within,
        _ => {}
    }
    let drifted = error <= DRIFT_ABSOLUTE || (error.is_finite() && ulps_apart(a, b) <= DRIFT_ULPS);
    let class = if drifted { Class::Drift } else { Class::Difference };
    Compared::Differs { class, error: Some(error).filter(|e| e.is_finite()) }
}

/// The shortest way round the circle, in degrees.
fn shortest_way(degrees: f64) -> f64 {
    let once_round = degrees % 360.0;
    once_round.min(360.0 - once_round)
}

/// How many representable values lie between two floats; 0 and -0 are one apart.
pub(crate) fn ulps_apart(a: f32, b: f32) -> u64 {
    ordered(a).abs_diff(ordered(b))
}

/// The float's rank among all floats in ascending order, as `f32::total_cmp` orders them.
pub(crate) fn ordered(value: f32) -> i64 {
    let bits = i64::from(value.to_bits() as i32);
    if bits < 0 { -1 - (bits & 0x7fff_ffff) } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(a: f32, b: f32) -> Option<Class> {
        match floats(a, b, Measure::default()) {
            Compared::Differs { class, .. } => Some(class),
            Compared::Same | Compared::Within => None,
        }
    }

    #[test]
    fn one_bit_in_the_last_place_is_drift_and_a_unit_is_not() {
        assert_eq!(class(1e6, f32::from_bits(1e6f32.to_bits() + 64)), Some(Class::Drift));
        assert_eq!(class(1e6, f32::from_bits(1e6f32.to_bits() + 65)), Some(Class::Difference));
        assert_eq!(class(0.0, 1e-9), Some(Class::Drift));
        assert_eq!(class(0.0, -0.0), Some(Class::Drift));
        assert_eq!(class(1.0, 2.0), Some(Class::Difference));
        assert_eq!(class(1.0, f32::NAN), Some(Class::Difference));
        assert_eq!(class(f32::MAX, f32::INFINITY), Some(Class::Difference));
        assert_eq!(class(f32::NAN, -f32::NAN), None);
    }

    #[test]
    fn angles_go_the_shortest_way_round() {
        let turn = |a, b, within| floats(a, b, Measure { within, is_angle: true });
        let differs = |error| Compared::Differs { class: Class::Difference, error: Some(error) };
        assert_eq!(turn(355.0, 0.0, None), differs(5.0));
        assert_eq!(
            [turn(-179.0, 179.0, None), turn(1.0, 719.0, None), turn(0.0, 180.0, None)],
            [2.0, 2.0, 180.0].map(differs)
        );
        assert_eq!([turn(355.0, 0.0, Some(5.0)), turn(355.0, 1.0, Some(5.0))], [Compared::Within, differs(6.0)]);
        // The same direction in other bits has an error of 0, but it is not equal.
        assert_eq!(turn(0.0, 360.0, None), Compared::Differs { class: Class::Drift, error: Some(0.0) });
        assert_eq!(turn(0.0, f32::INFINITY, Some(9.0)), Compared::Differs { class: Class::Difference, error: None });
        assert_eq!(floats(355.0, 0.0, Measure::default()), differs(355.0));
    }

    #[test]
    fn floats_are_counted_apart_across_zero() {
        assert_eq!(ulps_apart(0.0, -0.0), 1);
        assert_eq!(ulps_apart(f32::from_bits(1), -f32::from_bits(1)), 3);
        assert_eq!(ulps_apart(1.0, 1.0 + f32::EPSILON), 1);
    }

    #[test]
    fn the_widest_integers_have_a_distance() {
        let error = u64::MAX as f64;
        let expected = Compared::Differs { class: Class::Difference, error: Some(error) };
        assert_eq!(integers(i64::MIN, i64::MAX, Some(1.0)), expected);
    }
}

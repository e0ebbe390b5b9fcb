//! Maps IEEE 754 singles and doubles to integers, so that close values have close integers.

use crate::varint::Cursor;

/// The meaning of a column's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatForm {
    /// The values themselves.
    Integer,
    /// Distances from another column's values.
    Relative,
    /// Singles in steps of 2^-shift, such as fixed-point values from a wire, 16-bit angles and integral speeds.
    Fixed {
        /// The number of binary places.
        shift: i8,
    },
    /// Any singles, numbered in the order of their values.
    Ordered,
    /// Doubles in steps of 2^-shift.
    Fixed64 {
        /// The number of binary places.
        shift: i8,
    },
    /// Any doubles, numbered in the order of their values.
    Ordered64,
}

impl FloatForm {
    /// The form of an empty column; zeros are the same in all forms.
    pub(crate) const ZERO: FloatForm = FloatForm::Integer;

    pub(crate) fn code(self) -> u8 {
        match self {
            FloatForm::Integer => 0,
            FloatForm::Relative => 1,
            FloatForm::Fixed { .. } => 2,
            FloatForm::Ordered => 3,
            FloatForm::Fixed64 { .. } => 4,
            FloatForm::Ordered64 => 5,
        }
    }

    /// Returns the cost of the form's parameter, in 256ths of a bit.
    pub(crate) fn cost(self) -> u64 {
        if matches!(self, FloatForm::Fixed { .. } | FloatForm::Fixed64 { .. }) { 256 * 8 } else { 0 }
    }

    pub(crate) fn write_parameter(self, out: &mut Vec<u8>) {
        if let FloatForm::Fixed { shift } | FloatForm::Fixed64 { shift } = self {
            out.push(shift as u8);
        }
    }

    pub(crate) fn read(code: u8, from: &mut Cursor<'_>) -> Result<FloatForm, String> {
        match code {
            0 => Ok(FloatForm::Integer),
            1 => Ok(FloatForm::Relative),
            2 => Ok(FloatForm::Fixed { shift: from.byte()? as i8 }),
            3 => Ok(FloatForm::Ordered),
            4 => Ok(FloatForm::Fixed64 { shift: from.byte()? as i8 }),
            5 => Ok(FloatForm::Ordered64),
            _ => Err(format!("its form is {code}")),
        }
    }

    /// Converts the numbers to the bits of singles.
    pub(crate) fn f32_bits(self, values: &[i64]) -> Result<Vec<u32>, String> {
        let mut all = vec![0; values.len()];
        let cells = all.iter_mut().zip(values);
        match self {
            FloatForm::Fixed { shift } => {
                let scale = power_of_two(-i32::from(shift));
                cells.for_each(|(cell, value)| *cell = ((*value as f64 * scale) as f32).to_bits());
            }
            FloatForm::Ordered => {
                for (cell, value) in cells {
                    *cell = unordered(*value).ok_or_else(|| format!("{value} is not the place of any float"))?;
                }
            }
            FloatForm::Integer if values.iter().all(|value| *value == 0) => {}
            FloatForm::Integer | FloatForm::Relative => return Err("it holds whole numbers where floats belong".into()),
            FloatForm::Fixed64 { .. } | FloatForm::Ordered64 => {
                return Err("it holds doubles where singles belong".into());
            }
        }
        Ok(all)
    }

    /// Converts the numbers to the bits of doubles.
    pub(crate) fn f64_bits(self, mut values: Vec<i64>) -> Result<Vec<i64>, String> {
        match self {
            FloatForm::Fixed64 { shift } => {
                let scale = power_of_two(-i32::from(shift));
                values.iter_mut().for_each(|value| *value = (*value as f64 * scale).to_bits() as i64);
            }
            FloatForm::Ordered64 => {
                values.iter_mut().for_each(|value| *value = if *value < 0 { i64::MIN | -(*value + 1) } else { *value });
            }
            FloatForm::Integer if values.iter().all(|value| *value == 0) => {}
            FloatForm::Integer | FloatForm::Relative => return Err("it holds whole numbers where floats belong".into()),
            FloatForm::Fixed { .. } | FloatForm::Ordered => return Err("it holds singles where doubles belong".into()),
        }
        Ok(values)
    }
}

/// Passes the forms of singles to a function: first as multiples if they have that form, then in the order of values.
pub(crate) fn with_forms_of_f32<T>(bits: &[u32], write: impl FnOnce(&[(FloatForm, &[i64])]) -> T) -> T {
    let ordered: Vec<i64> = bits.iter().map(|&bits| ordered(bits)).collect();
    match fixed(bits) {
        Some((shift, fixed)) => write(&[(FloatForm::Fixed { shift }, &fixed), (FloatForm::Ordered, &ordered)]),
        None => write(&[(FloatForm::Ordered, &ordered)]),
    }
}

/// Passes the forms of doubles to a function, as [`with_forms_of_f32`] does those of singles.
pub(crate) fn with_forms_of_f64<T>(bits: &[i64], write: impl FnOnce(&[(FloatForm, &[i64])]) -> T) -> T {
    let ordered: Vec<i64> = bits.iter().map(|&bits| ordered64(bits)).collect();
    match fixed64(bits) {
        Some((shift, fixed)) => write(&[(FloatForm::Fixed64 { shift }, &fixed), (FloatForm::Ordered64, &ordered)]),
        None => write(&[(FloatForm::Ordered64, &ordered)]),
    }
}

/// Expresses doubles as [`fixed`] does singles, in multiples up to 2^62.
fn fixed64(bits: &[i64]) -> Option<(i8, Vec<i64>)> {
    let shift = fixed_shift::<52, 11>(bits.iter().map(|&bits| bits as u64), 61)?;
    let scale = power_of_two(i32::from(shift));
    Some((shift, bits.iter().map(|&bits| (f64::from_bits(bits as u64) * scale) as i64).collect()))
}

/// Returns the position of a double's bits in the order of values, as [`ordered`] for singles.
pub(crate) fn ordered64(bits: i64) -> i64 {
    if bits >= 0 { bits } else { -(bits & i64::MAX) - 1 }
}

/// Expresses singles as multiples of the coarsest power of two that divides them all. Returns `None` if a bit would be
/// lost (NaN, infinities, negative zero, denormals), or if the multiples would exceed 2^41.
fn fixed(bits: &[u32]) -> Option<(i8, Vec<i64>)> {
    let shift = fixed_shift::<23, 8>(bits.iter().map(|&bits| bits.into()), 40)?;
    let scale = power_of_two(i32::from(shift));
    Some((shift, bits.iter().map(|&bits| (f64::from(f32::from_bits(bits)) * scale) as i64).collect()))
}

/// Returns the power of two by which floats of this layout become whole numbers. The highest bit of all is at most
/// `widest` places above the lowest.
fn fixed_shift<const MANTISSA: u32, const EXPONENT: u32>(bits: impl Iterator<Item = u64>, widest: i32) -> Option<i8> {
    let (special, bias) = ((1 << EXPONENT) - 1, (1 << (EXPONENT - 1)) - 1);
    let (mut lowest, mut highest) = (i32::MAX, i32::MIN);
    for bits in bits.filter(|bits| *bits != 0) {
        let exponent = ((bits >> MANTISSA) & special) as i32;
        if exponent == 0 || exponent == special as i32 {
            return None;
        }
        let mantissa = bits & ((1 << MANTISSA) - 1) | 1 << MANTISSA;
        lowest = lowest.min(exponent - bias - MANTISSA as i32 + mantissa.trailing_zeros() as i32);
        highest = highest.max(exponent - bias);
        if highest - lowest > widest {
            return None;
        }
    }
    if lowest == i32::MAX { Some(0) } else { i8::try_from(-lowest).ok() }
}

/// Returns 2^power for the powers of a single.
fn power_of_two(power: i32) -> f64 {
    f64::from_bits(((1023 + power) as u64) << 52)
}

/// Returns the position of a bit pattern in the order of values: negative values below 0, negative zero at -1.
pub(crate) fn ordered(bits: u32) -> i64 {
    let magnitude = i64::from(bits & 0x7FFF_FFFF);
    if bits >> 31 == 0 { magnitude } else { -magnitude - 1 }
}

#[inline]
fn unordered(value: i64) -> Option<u32> {
    let (sign, magnitude) = if value < 0 { (1 << 31, -(value + 1)) } else { (0, value) };
    let magnitude = u32::try_from(magnitude).ok()?;
    (magnitude >> 31 == 0).then_some(sign | magnitude)
}

//! Maps IEEE 754 singles and doubles to integers, so that close values have close integers. All bits of floats are given
//! as `i64`, those of singles without their sign extended.

use crate::record::NumberForm;
use crate::varint::Cursor;

/// The precision of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatWidth {
    Single = 0,
    Double = 1,
}

/// The meaning of a column's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnForm {
    /// The values themselves. Zeros are the same in all forms.
    Integer,
    /// Distances from another column's values.
    Relative,
    /// Floats in steps of 2^-shift, such as fixed-point values from a wire, 16-bit angles and integral speeds.
    Fixed(FloatWidth, i8),
    /// Any floats, numbered in the order of their values.
    Ordered(FloatWidth),
}

impl ColumnForm {
    pub(crate) fn code(self) -> u8 {
        match self {
            ColumnForm::Integer => 0,
            ColumnForm::Relative => 1,
            ColumnForm::Fixed(width, _) => 2 + 2 * width as u8,
            ColumnForm::Ordered(width) => 3 + 2 * width as u8,
        }
    }

    /// Returns the cost of the form's parameter, in 256ths of a bit.
    pub(crate) fn cost(self) -> u64 {
        if matches!(self, ColumnForm::Fixed(..)) { 256 * 8 } else { 0 }
    }

    pub(crate) fn write_parameter(self, out: &mut Vec<u8>) {
        if let ColumnForm::Fixed(_, shift) = self {
            out.push(shift as u8);
        }
    }

    pub(crate) fn read(code: u8, from: &mut Cursor<'_>) -> Result<ColumnForm, String> {
        let width = if code < 4 { FloatWidth::Single } else { FloatWidth::Double };
        match code {
            0 => Ok(ColumnForm::Integer),
            1 => Ok(ColumnForm::Relative),
            2 | 4 => Ok(ColumnForm::Fixed(width, from.byte()? as i8)),
            3 | 5 => Ok(ColumnForm::Ordered(width)),
            _ => Err(format!("its form is {code}")),
        }
    }

    /// Converts the numbers to the bits of floats.
    pub(crate) fn bits(self, wanted: FloatWidth, mut values: Vec<i64>) -> Result<Vec<i64>, String> {
        match self {
            ColumnForm::Fixed(width, shift) if width == wanted => {
                let scale = power_of_two(-i32::from(shift));
                values.iter_mut().for_each(|value| *value = width.bits_of(*value as f64 * scale));
            }
            ColumnForm::Ordered(width) if width == wanted => {
                for value in &mut values {
                    *value = width.unordered(*value).ok_or_else(|| format!("{value} is not the place of any float"))?;
                }
            }
            ColumnForm::Integer if values.iter().all(|value| *value == 0) => {}
            ColumnForm::Integer | ColumnForm::Relative => {
                return Err("it holds whole numbers where floats belong".into());
            }
            ColumnForm::Fixed(..) | ColumnForm::Ordered(_) => {
                return Err(match wanted {
                    FloatWidth::Single => "it holds doubles where singles belong".into(),
                    FloatWidth::Double => "it holds singles where doubles belong".into(),
                });
            }
        }
        Ok(values)
    }
}

impl FloatWidth {
    /// Returns the width of floats of this form; `None` for integers.
    pub(crate) fn of(form: NumberForm) -> Option<FloatWidth> {
        match form {
            NumberForm::Integer => None,
            NumberForm::F32 => Some(FloatWidth::Single),
            NumberForm::F64 => Some(FloatWidth::Double),
        }
    }

    pub(crate) fn form(self) -> NumberForm {
        match self {
            FloatWidth::Single => NumberForm::F32,
            FloatWidth::Double => NumberForm::F64,
        }
    }

    fn value_of(self, bits: i64) -> f64 {
        match self {
            FloatWidth::Single => f32::from_bits(bits as u32).into(),
            FloatWidth::Double => f64::from_bits(bits as u64),
        }
    }

    fn bits_of(self, value: f64) -> i64 {
        match self {
            FloatWidth::Single => (value as f32).to_bits().into(),
            FloatWidth::Double => value.to_bits() as i64,
        }
    }

    /// Returns the highest bit.
    const fn sign(self) -> u64 {
        match self {
            FloatWidth::Single => 1 << 31,
            FloatWidth::Double => 1 << 63,
        }
    }

    /// Returns the position of a bit pattern in the order of values: negative values below 0, negative zero at -1.
    #[inline]
    pub(crate) fn ordered(self, bits: i64) -> i64 {
        let magnitude = (bits as u64 & (self.sign() - 1)) as i64;
        if bits as u64 & self.sign() == 0 { magnitude } else { -magnitude - 1 }
    }

    #[inline]
    fn unordered(self, value: i64) -> Option<i64> {
        let (sign, magnitude) = if value < 0 { (self.sign(), -(value + 1)) } else { (0, value) };
        let magnitude = magnitude as u64;
        (magnitude < self.sign()).then_some((sign | magnitude) as i64)
    }

    /// Expresses floats as multiples of the coarsest power of two that divides them all. Returns `None` if a bit would be
    /// lost (NaN, infinities, negative zero, denormals), or if the multiples would exceed 2^41, or 2^62 for doubles.
    pub(crate) fn fixed(self, bits: &[i64]) -> Option<(i8, Vec<i64>)> {
        let shift = match self {
            FloatWidth::Single => fixed_shift::<23, 8>(bits, 40)?,
            FloatWidth::Double => fixed_shift::<52, 11>(bits, 61)?,
        };
        let scale = power_of_two(i32::from(shift));
        Some((shift, bits.iter().map(|&bits| (self.value_of(bits) * scale) as i64).collect()))
    }
}

/// Returns the power of two by which floats of this layout become whole numbers. The highest bit of all is at most
/// `widest` places above the lowest.
fn fixed_shift<const MANTISSA: u32, const EXPONENT: u32>(bits: &[i64], widest: i32) -> Option<i8> {
    let (special, bias) = ((1 << EXPONENT) - 1, (1 << (EXPONENT - 1)) - 1);
    let (mut lowest, mut highest) = (i32::MAX, i32::MIN);
    for bits in bits.iter().filter(|bits| **bits != 0).map(|bits| *bits as u64) {
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

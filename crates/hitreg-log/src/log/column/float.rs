//! IEEE 754 singles as whole numbers, so that neighbours in value are neighbours in number.

use crate::varint::Cursor;

/// What the numbers of a column stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Themselves.
    Integer,
    /// Distances from another column's values.
    Relative,
    /// Singles in steps of 2^-shift: what came over a wire in fixed point, angles of 16 bits, whole speeds.
    Fixed {
        /// How many binary places.
        shift: i8,
    },
    /// Singles of any bit pattern, numbered in the order of their values.
    Ordered,
}

impl Form {
    /// What an empty column is: zeros are the same in all forms.
    pub(crate) const ZERO: Form = Form::Integer;

    pub(crate) fn code(self) -> u8 {
        match self {
            Form::Integer => 0,
            Form::Relative => 1,
            Form::Fixed { .. } => 2,
            Form::Ordered => 3,
        }
    }

    /// What saying it costs, in 256ths of a bit.
    pub(crate) fn cost(self) -> u64 {
        if matches!(self, Form::Fixed { .. }) { 256 * 8 } else { 0 }
    }

    pub(crate) fn write_parameter(self, out: &mut Vec<u8>) {
        if let Form::Fixed { shift } = self {
            out.push(shift as u8);
        }
    }

    pub(crate) fn read(code: u8, from: &mut Cursor<'_>) -> Result<Form, String> {
        match code {
            0 => Ok(Form::Integer),
            1 => Ok(Form::Relative),
            2 => Ok(Form::Fixed { shift: from.byte()? as i8 }),
            3 => Ok(Form::Ordered),
            _ => Err(format!("its form is {code}")),
        }
    }

    /// The bits of the singles that numbers stand for.
    pub(crate) fn f32_bits(self, values: &[i64]) -> Result<Vec<u32>, String> {
        let mut all = vec![0; values.len()];
        let cells = all.iter_mut().zip(values);
        match self {
            Form::Fixed { shift } => {
                let scale = power_of_two(-i32::from(shift));
                cells.for_each(|(cell, value)| *cell = ((*value as f64 * scale) as f32).to_bits());
            }
            Form::Ordered => {
                for (cell, value) in cells {
                    *cell = unordered(*value).ok_or_else(|| format!("{value} is not the place of any float"))?;
                }
            }
            Form::Integer if values.iter().all(|value| *value == 0) => {}
            Form::Integer | Form::Relative => return Err("it holds whole numbers where floats belong".into()),
        }
        Ok(all)
    }
}

/// The singles as multiples of the coarsest power of two that divides them all. `None` where that loses a bit
/// (NaN, infinities, negative zero, denormals) or the numbers would grow beyond 2^41.
pub(crate) fn fixed(bits: &[u32]) -> Option<(Form, Vec<i64>)> {
    const WIDEST: i32 = 40;
    let (mut lowest, mut highest) = (i32::MAX, i32::MIN);
    for &bits in bits.iter().filter(|&&bits| bits != 0) {
        let exponent = ((bits >> 23) & 0xFF) as i32;
        if exponent == 0 || exponent == 0xFF {
            return None;
        }
        let mantissa = bits & 0x7F_FFFF | 0x80_0000;
        lowest = lowest.min(exponent - 150 + mantissa.trailing_zeros() as i32);
        highest = highest.max(exponent - 127);
        if highest - lowest > WIDEST {
            return None;
        }
    }
    let shift = if lowest == i32::MAX { 0 } else { i8::try_from(-lowest).ok()? };
    let scale = power_of_two(i32::from(shift));
    let values = bits.iter().map(|&bits| (f64::from(f32::from_bits(bits)) * scale) as i64).collect();
    Some((Form::Fixed { shift }, values))
}

/// 2^power for powers that a single can have.
fn power_of_two(power: i32) -> f64 {
    f64::from_bits(((1023 + power) as u64) << 52)
}

/// The place of a bit pattern in the order of values: negative ones below 0, from -1 for negative zero.
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

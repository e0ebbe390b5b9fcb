//! Packs residuals as bytes that zstd compresses well.

use super::cost::Histogram;
use crate::varint::{Cursor, put_varint, unzigzag, zigzag};

/// The layout of residuals. All residuals are zigzag-coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// All equal: one varint.
    Constant = 0,
    /// One varint for each residual.
    Varints = 1,
    /// The lowest bytes of all residuals, then the second bytes of all, and so on.
    Planes = 2,
    /// Only the positions and values of the residuals other than 0.
    Sparse = 3,
}

impl Packing {
    /// Returns the packing for the two bits of a column's code.
    pub(crate) fn from_code(code: u8) -> Packing {
        [Packing::Constant, Packing::Varints, Packing::Planes, Packing::Sparse][usize::from(code & 3)]
    }
}

/// Returns the cheapest packing and its cost in 256ths of a bit.
pub(crate) fn choose(residuals: &[i64]) -> (Packing, u64) {
    let first = residuals.first().copied().unwrap_or(0);
    if residuals.iter().all(|&value| value == first) {
        return (Packing::Constant, 256 * 8);
    }
    let zigzags: Vec<u64> = residuals.iter().map(|&value| zigzag(value)).collect();
    let planes = planes_cost(&zigzags);
    let varints = varints_cost(&zigzags);
    let sparse = sparse_cost(&zigzags);
    let least = planes.min(varints).min(sparse);
    if least == sparse {
        (Packing::Sparse, least)
    } else if least == varints {
        (Packing::Varints, least)
    } else {
        (Packing::Planes, least)
    }
}

/// [`Packing::Sparse`] fits if at most one in this many residuals is not 0.
const SELDOM: usize = 8;

/// Returns the packing chosen by a sample, or another if the chosen one does not suit all residuals.
pub(crate) fn fitting(chosen: Packing, residuals: &[i64]) -> Packing {
    let first = residuals.first().copied().unwrap_or(0);
    if residuals.iter().all(|&value| value == first) {
        return Packing::Constant;
    }
    if !matches!(chosen, Packing::Constant | Packing::Sparse) {
        return chosen;
    }
    // In the sample nearly all residuals are 0.
    let others = residuals.iter().filter(|value| **value != 0).count();
    if others * SELDOM <= residuals.len() { Packing::Sparse } else { choose(residuals).0 }
}

/// The cost of a run of bytes unlike those before it.
const START: u64 = 256 * 24;

fn planes_cost(zigzags: &[u64]) -> u64 {
    let plane = |plane: usize| Histogram::of(zigzags.iter().map(|value| (value >> (8 * plane)) as u8)).cost();
    START + 256 * 8 + (0..width(zigzags.iter().copied())).map(plane).sum::<u64>()
}

fn varints_cost(zigzags: &[u64]) -> u64 {
    let mut histogram = Histogram::new();
    for &value in zigzags {
        let mut value = value;
        while value >= 0x80 {
            histogram.add(value as u8 | 0x80);
            value >>= 7;
        }
        histogram.add(value as u8);
    }
    START + histogram.cost()
}

/// Gaps and values count at full size: they are few, so entropy coding gains little.
fn sparse_cost(zigzags: &[u64]) -> u64 {
    let bytes = |value: u64| u64::from((64 - value.leading_zeros()).div_ceil(7).max(1));
    let mut total = 2;
    let mut gap = 0u64;
    for &value in zigzags {
        if value == 0 {
            gap += 1;
        } else {
            total += bytes(gap) + bytes(value);
            gap = 0;
        }
    }
    // A byte of either kind costs about seven bits after entropy coding.
    256 * 7 * total
}

fn width(zigzags: impl Iterator<Item = u64>) -> usize {
    let all = zigzags.fold(0, |all, value| all | value);
    (8 - all.leading_zeros() as usize / 8).max(1)
}

/// Appends the residuals.
pub(crate) fn write(packing: Packing, residuals: &[i64], out: &mut Vec<u8>) {
    match packing {
        Packing::Constant => put_varint(out, zigzag(residuals.first().copied().unwrap_or(0))),
        Packing::Varints => residuals.iter().for_each(|&value| put_varint(out, zigzag(value))),
        Packing::Planes => write_planes(residuals, out),
        Packing::Sparse => write_sparse(residuals, out),
    }
}

fn write_planes(residuals: &[i64], out: &mut Vec<u8>) {
    let width = width(residuals.iter().map(|&value| zigzag(value)));
    out.push(width as u8);
    for plane in 0..width {
        out.extend(residuals.iter().map(|&value| (zigzag(value) >> (8 * plane)) as u8));
    }
}

fn write_sparse(residuals: &[i64], out: &mut Vec<u8>) {
    let mut values = Vec::new();
    let mut gaps = Vec::new();
    let mut gap = 0;
    let mut count = 0;
    for &value in residuals {
        if value == 0 {
            gap += 1;
        } else {
            put_varint(&mut gaps, std::mem::take(&mut gap));
            put_varint(&mut values, zigzag(value));
            count += 1;
        }
    }
    put_varint(out, count);
    out.append(&mut gaps);
    out.append(&mut values);
}

/// Reads residuals into `values`, which are 0.
pub(crate) fn read(packing: Packing, values: &mut [i64], from: &mut Cursor<'_>) -> Result<(), String> {
    match packing {
        Packing::Constant => values.fill(unzigzag(from.varint()?)),
        Packing::Varints if values.len() > from.left() => return Err("it ends too early".into()),
        Packing::Varints => {
            for value in values {
                *value = unzigzag(from.varint()?);
            }
        }
        Packing::Planes => read_planes(values, from)?,
        Packing::Sparse => read_sparse(values, from)?,
    }
    Ok(())
}

fn read_planes(values: &mut [i64], from: &mut Cursor<'_>) -> Result<(), String> {
    let rows = values.len();
    let width = usize::from(from.byte()?);
    if !(1..=8).contains(&width) {
        return Err(format!("its numbers are {width} bytes wide"));
    }
    let planes = from.take(rows.checked_mul(width).ok_or("it has too many rows")?)?;
    for (place, plane) in planes.chunks_exact(rows.max(1)).enumerate() {
        for (value, &byte) in values.iter_mut().zip(plane) {
            *value |= (u64::from(byte) << (8 * place)) as i64;
        }
    }
    values.iter_mut().for_each(|value| *value = unzigzag(*value as u64));
    Ok(())
}

fn read_sparse(values: &mut [i64], from: &mut Cursor<'_>) -> Result<(), String> {
    let rows = values.len();
    let count = usize::try_from(from.varint()?).unwrap_or(usize::MAX);
    if count > rows || count > from.left() {
        return Err(format!("{count} of its {rows} values are said to be other than 0"));
    }
    let mut places = Vec::with_capacity(count);
    let mut next = 0usize;
    for _ in 0..count {
        let gap = usize::try_from(from.varint()?).unwrap_or(usize::MAX);
        let place = next.checked_add(gap).filter(|&place| place < rows).ok_or("a value lies beyond its end")?;
        places.push(place);
        next = place + 1;
    }
    for place in places {
        values[place] = unzigzag(from.varint()?);
    }
    Ok(())
}

//! The residuals of a column: values less their predictions within a series, packed as bytes that zstd compresses well.

use crate::varint::{Cursor, put_varint, unzigzag, zigzag};

/// The prediction of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Predictor {
    /// Always 0.
    Zero = 0,
    /// The previous value.
    Delta = 1,
    /// The previous value plus the previous difference.
    DeltaOfDelta = 2,
}

impl Predictor {
    pub(crate) const ALL: [Predictor; 3] = [Predictor::Zero, Predictor::Delta, Predictor::DeltaOfDelta];

    /// Weighs a column's cost. The same motion often appears in several columns, such as a turn in the usercmd and in
    /// the states that others see. If both columns use the same predictor, zstd finds the repetition. So the rarer one
    /// must be clearly better: a surcharge of a quarter made real demos 7 % smaller.
    pub(crate) fn weigh(self, cost: u64) -> u64 {
        if self == Predictor::DeltaOfDelta { cost + cost / 4 } else { cost }
    }

    pub(crate) fn from_code(code: u8) -> Result<Predictor, String> {
        Predictor::ALL.get(usize::from(code)).copied().ok_or_else(|| format!("its order of prediction is {code}"))
    }
}

/// A column after prediction. All arithmetic wraps at 64 bits.
pub(crate) struct Residuals {
    pub(crate) predictor: Predictor,
    /// The divisor of all values in `rest`.
    pub(crate) divisor: u64,
    /// The first value of each non-empty series, as the distance from the first value of the previous series. Empty
    /// without prediction.
    firsts: Vec<i64>,
    /// The residuals of all other values, divided by `divisor`.
    pub(crate) rest: Vec<i64>,
}

impl Residuals {
    pub(crate) fn new(values: &[i64], series: &[usize], predictor: Predictor) -> Residuals {
        let mut residuals =
            Residuals { predictor, divisor: 1, firsts: Vec::new(), rest: Vec::with_capacity(values.len()) };
        if predictor == Predictor::Zero {
            residuals.rest.extend_from_slice(values);
        } else {
            residuals.predict(values, series);
        }
        residuals.divide();
        residuals
    }

    fn predict(&mut self, mut values: &[i64], series: &[usize]) {
        let mut last_first = 0i64;
        for &rows in series {
            let (run, others) = values.split_at(rows);
            values = others;
            let Some(&first) = run.first() else { continue };
            self.firsts.push(first.wrapping_sub(last_first));
            last_first = first;
            let steps = run.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
            if self.predictor == Predictor::Delta {
                self.rest.extend(steps);
            } else {
                let mut before = 0i64;
                self.rest.extend(steps.map(|step| step.wrapping_sub(std::mem::replace(&mut before, step))));
            }
        }
    }

    /// Divides the residuals by their greatest common divisor: 1000 for milliseconds, 45 for a step of a wire angle.
    fn divide(&mut self) {
        let mut common = 0u64;
        for &value in &self.rest {
            common = greatest_common_divisor(value.unsigned_abs(), common);
            if common == 1 {
                return;
            }
        }
        let Ok(unit @ 2..) = i64::try_from(common) else { return };
        self.rest.iter_mut().for_each(|value| *value /= unit);
        self.divisor = common;
    }

    pub(crate) fn write_firsts(&self, out: &mut Vec<u8>) {
        self.firsts.iter().for_each(|&first| put_varint(out, zigzag(first)));
    }

    /// Returns the cost of the first values, in 256ths of a bit.
    pub(crate) fn first_cost(&self) -> u64 {
        self.firsts.iter().map(|&first| 256 * (8 + u64::from(64 - zigzag(first).leading_zeros()))).sum()
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Reads the first value of each non-empty series.
pub(crate) fn read_firsts(from: &mut Cursor<'_>, predictor: Predictor, series: &[usize]) -> Result<Vec<i64>, String> {
    if predictor == Predictor::Zero {
        return Ok(Vec::new());
    }
    let mut last = 0i64;
    let begun = series.iter().filter(|&&rows| rows > 0);
    begun
        .map(|_| {
            last = last.wrapping_add(unzigzag(from.varint()?));
            Ok(last)
        })
        .collect()
}

/// Restores the values from their residuals, which come after as many other numbers as there are first values.
pub(crate) fn restore_values(predictor: Predictor, divisor: u64, firsts: &[i64], values: &mut [i64], series: &[usize]) {
    let mut next = firsts.len();
    if divisor != 1 {
        values[next..].iter_mut().for_each(|value| *value = value.wrapping_mul(divisor as i64));
    }
    if predictor == Predictor::Zero {
        return;
    }
    let mut start = 0;
    for (&rows, &first) in series.iter().filter(|&&rows| rows > 0).zip(firsts) {
        let (mut value, mut step) = (first, 0i64);
        values[start] = first;
        // A residual is read before a value takes its place, or in the same iteration.
        for row in start + 1..start + rows {
            let residual = values[next];
            next += 1;
            step = if predictor == Predictor::Delta { residual } else { step.wrapping_add(residual) };
            value = value.wrapping_add(step);
            values[row] = value;
        }
        start += rows;
    }
}

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

    /// Returns the packing chosen by a sample, or another if the chosen one does not suit all residuals.
    pub(crate) fn fitting(self, residuals: &[i64]) -> Packing {
        let first = residuals.first().copied().unwrap_or(0);
        if residuals.iter().all(|&value| value == first) {
            return Packing::Constant;
        }
        if !matches!(self, Packing::Constant | Packing::Sparse) {
            return self;
        }
        // In the sample nearly all residuals are 0.
        let others = residuals.iter().filter(|value| **value != 0).count();
        if others * SPARSE_SHARE <= residuals.len() { Packing::Sparse } else { Packing::choose(residuals).0 }
    }

    /// Appends the residuals.
    pub(crate) fn write(self, residuals: &[i64], out: &mut Vec<u8>) {
        match self {
            Packing::Constant => put_varint(out, zigzag(residuals.first().copied().unwrap_or(0))),
            Packing::Varints => residuals.iter().for_each(|&value| put_varint(out, zigzag(value))),
            Packing::Planes => write_planes(residuals, out),
            Packing::Sparse => write_sparse(residuals, out),
        }
    }

    /// Reads residuals into `values`, which are 0.
    pub(crate) fn read(self, values: &mut [i64], from: &mut Cursor<'_>) -> Result<(), String> {
        match self {
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
}

/// [`Packing::Sparse`] fits if at most one in this many residuals is not 0.
const SPARSE_SHARE: usize = 8;

/// The cost of a run of bytes unlike those before it.
const NEW_RUN_COST: u64 = 256 * 24;

fn planes_cost(zigzags: &[u64]) -> u64 {
    let plane = |plane: usize| Histogram::of(zigzags.iter().map(|value| (value >> (8 * plane)) as u8)).cost();
    NEW_RUN_COST + 256 * 8 + (0..width(zigzags.iter().copied())).map(plane).sum::<u64>()
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
    NEW_RUN_COST + histogram.cost()
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

/// Counts how often each byte value occurs, to estimate the cost of the bytes after entropy coding: their order-0
/// entropy (Shannon 1948). It uses integers, so every machine makes the same choice.
struct Histogram {
    counts: [u32; 256],
    total: u32,
}

impl Histogram {
    fn new() -> Histogram {
        Histogram { counts: [0; 256], total: 0 }
    }

    /// Counts all these bytes.
    fn of(bytes: impl ExactSizeIterator<Item = u8>) -> Histogram {
        let mut counts = [0; 256];
        let total = bytes.len() as u32;
        bytes.for_each(|byte| counts[usize::from(byte)] += 1);
        Histogram { counts, total }
    }

    #[inline]
    fn add(&mut self, byte: u8) {
        self.counts[usize::from(byte)] += 1;
        self.total += 1;
    }

    /// Returns the total entropy in 256ths of a bit.
    fn cost(&self) -> u64 {
        let parts: u64 = self.counts.iter().filter(|&&c| c > 1).map(|&c| weighted_log2(c)).sum();
        weighted_log2(self.total).saturating_sub(parts)
    }
}

/// Returns `c * log2(c)` in 256ths.
fn weighted_log2(c: u32) -> u64 {
    u64::from(c) * u64::from(log2_256ths(c))
}

/// Returns log2 in 256ths, linear between powers of two: at most 0.09 too low.
fn log2_256ths(c: u32) -> u32 {
    let Some(power) = c.checked_ilog2() else { return 0 };
    let fraction = (u64::from(c) << 8 >> power) as u32 & 0xFF;
    power * 256 + fraction
}

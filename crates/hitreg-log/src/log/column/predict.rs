//! Predicts values within a series, and computes the residuals.

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
    /// the states that others see. If both columns use the same order, zstd finds the repetition. So the rarer order
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
    pub(crate) order: Predictor,
    /// The divisor of all values in `rest`.
    pub(crate) unit: u64,
    /// The first value of each non-empty series, as the distance from the first value of the previous series. Empty
    /// without prediction.
    firsts: Vec<i64>,
    /// The residuals of all other values, divided by `unit`.
    pub(crate) rest: Vec<i64>,
}

impl Residuals {
    pub(crate) fn new(values: &[i64], series: &[usize], order: Predictor) -> Residuals {
        let mut residuals = Residuals { order, unit: 1, firsts: Vec::new(), rest: Vec::with_capacity(values.len()) };
        if order == Predictor::Zero {
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
            if self.order == Predictor::Delta {
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
        self.unit = common;
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
pub(crate) fn read_firsts(from: &mut Cursor<'_>, order: Predictor, series: &[usize]) -> Result<Vec<i64>, String> {
    if order == Predictor::Zero {
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
pub(crate) fn undo(order: Predictor, unit: u64, firsts: &[i64], values: &mut [i64], series: &[usize]) {
    let mut next = firsts.len();
    if unit != 1 {
        values[next..].iter_mut().for_each(|value| *value = value.wrapping_mul(unit as i64));
    }
    if order == Predictor::Zero {
        return;
    }
    let mut start = 0;
    for (&rows, &first) in series.iter().filter(|&&rows| rows > 0).zip(firsts) {
        let (mut value, mut step) = (first, 0i64);
        values[start] = first;
        // A residual is read before a value takes its place, or in the same turn.
        for place in start + 1..start + rows {
            let residual = values[next];
            next += 1;
            step = if order == Predictor::Delta { residual } else { step.wrapping_add(residual) };
            value = value.wrapping_add(step);
            values[place] = value;
        }
        start += rows;
    }
}

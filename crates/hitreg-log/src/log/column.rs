//! Packs columns of numbers without loss, before zstd compresses them.
//!
//! The rows of a column belong to series (one for each player or entity), one series after the other. The encoder
//! predicts each value from earlier values of its series and stores the residual. It tries the predictions and
//! packings and takes the cheapest; the column's first byte names it. `docs/format.md` describes the layout under
//! "Packed columns".

mod residuals;

pub(crate) use crate::varint::Cursor;

use crate::record::NumberForm;
use crate::varint::put_varint;
use residuals::{Packing, Predictor, Residuals, read_firsts, restore_values};

/// How the encoder determines the cheapest candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// By all numbers.
    Full,
    /// By a sample: several times as fast, and nearly as small.
    Sample,
}

/// Packs integers with full effort.
pub(crate) fn encode(values: &[i64], series: &[usize]) -> Vec<u8> {
    encode_as(NumberForm::Integer, values, series, Effort::Full)
}

/// Packs integers either directly or as distances from a reference value in each row, whichever is smaller.
pub(crate) fn encode_relative(values: &[i64], references: &[i64], series: &[usize]) -> Vec<u8> {
    let distances: Vec<i64> = values.iter().zip(references).map(|(v, r)| v.wrapping_sub(*r)).collect();
    Candidate::best(&[(ColumnForm::Relative, &distances), (ColumnForm::Integer, values)], series)
}

/// Packs the values of a column as numbers of this form; floats are given as their bits.
pub(crate) fn encode_as(form: NumberForm, values: &[i64], series: &[usize], effort: Effort) -> Vec<u8> {
    if effort == Effort::Sample
        && let Some(packed) = Candidate::constant_series(form, values, series)
    {
        return packed;
    }
    let best = match effort {
        Effort::Full => Candidate::best,
        Effort::Sample => Candidate::best_of_sample,
    };
    match FloatWidth::of(form) {
        None => best(&[(ColumnForm::Integer, values)], series),
        Some(width) => {
            let ordered: Vec<i64> = values.iter().map(|bits| width.ordered(*bits)).collect();
            match width.fixed(values) {
                Some((shift, fixed)) => {
                    best(&[(ColumnForm::Fixed(width, shift), &fixed), (ColumnForm::Ordered(width), &ordered)], series)
                }
                None => best(&[(ColumnForm::Ordered(width), &ordered)], series),
            }
        }
    }
}

/// Unpacks a column of integers; `references` are those given to [`encode_relative`].
pub(crate) fn decode(packed: &[u8], series: &[usize], references: Option<&[i64]>) -> Result<Vec<i64>, String> {
    let (form, mut values) = unpack(packed, series)?;
    match (form, references) {
        (ColumnForm::Integer, _) => {}
        (ColumnForm::Relative, Some(references)) => {
            for (value, reference) in values.iter_mut().zip(references) {
                *value = value.wrapping_add(*reference);
            }
        }
        (ColumnForm::Relative, None) => return Err("it is relative, but has nothing to relate to".into()),
        (ColumnForm::Fixed(..) | ColumnForm::Ordered(_), _) => {
            return Err("it holds floats where whole numbers belong".into());
        }
    }
    Ok(values)
}

/// Unpacks numbers of this form; floats as their bits.
pub(crate) fn decode_as(form: NumberForm, packed: &[u8], series: &[usize]) -> Result<Vec<i64>, String> {
    let Some(width) = FloatWidth::of(form) else { return decode(packed, series, None) };
    let (form, values) = unpack(packed, series)?;
    form.to_float_bits(width, values)
}

/// Unpacks 32-bit cells of any form; integers may be signed or unsigned.
pub(crate) fn decode_cells(packed: &[u8], series: &[usize]) -> Result<Vec<u32>, String> {
    let (form, values) = unpack(packed, series)?;
    if form != ColumnForm::Integer {
        return Ok(form.to_float_bits(FloatWidth::Single, values)?.into_iter().map(|bits| bits as u32).collect());
    }
    let mut cells = vec![0; values.len()];
    for (cell, value) in cells.iter_mut().zip(&values) {
        let signed = i32::try_from(*value).ok().map(|value| value as u32);
        let whole = signed.or_else(|| u32::try_from(*value).ok());
        *cell = whole.ok_or_else(|| format!("{value} is not a 32-bit cell"))?;
    }
    Ok(cells)
}

/// Unpacks a column of unknown type. Returns the form of its numbers, and the numbers; floats as their bits.
pub(crate) fn decode_any(packed: &[u8], series: &[usize]) -> Result<(NumberForm, Vec<i64>), String> {
    let (form, values) = unpack(packed, series)?;
    match form {
        ColumnForm::Integer => Ok((NumberForm::Integer, values)),
        ColumnForm::Relative => Err("it is relative, and nothing says to what".into()),
        ColumnForm::Fixed(width, _) | ColumnForm::Ordered(width) => {
            Ok((width.form(), form.to_float_bits(width, values)?))
        }
    }
}

/// One way to write a column.
struct Candidate {
    form: ColumnForm,
    residuals: Residuals,
    packing: Packing,
    cost: u64,
}

/// A sample has [`SAMPLE_RUNS`] runs of [`SAMPLE_RUN_ROWS`] numbers, at equal distances.
const SAMPLE_RUNS: usize = 16;
const SAMPLE_RUN_ROWS: usize = 48;

impl Candidate {
    fn best(forms: &[(ColumnForm, &[i64])], series: &[usize]) -> Vec<u8> {
        if is_all_zero(forms) {
            return Vec::new();
        }
        Candidate::cheapest(forms, series).map(|best| best.write()).unwrap_or_default()
    }

    /// Chooses by a sample, and writes all numbers that way.
    fn best_of_sample(forms: &[(ColumnForm, &[i64])], series: &[usize]) -> Vec<u8> {
        let Some((_, values)) = forms.first().filter(|(_, values)| values.len() > 2 * SAMPLE_RUNS * SAMPLE_RUN_ROWS)
        else {
            return Candidate::best(forms, series);
        };
        if is_all_zero(forms) {
            return Vec::new();
        }
        let apart = (values.len() - SAMPLE_RUN_ROWS) / (SAMPLE_RUNS - 1);
        let sample = |values: &[i64]| -> Vec<i64> {
            (0..SAMPLE_RUNS)
                .flat_map(|run| values[run * apart..run * apart + SAMPLE_RUN_ROWS].iter().copied())
                .collect()
        };
        let samples: Vec<_> = forms.iter().map(|(form, values)| (*form, sample(values))).collect();
        let samples: Vec<_> = samples.iter().map(|(form, values)| (*form, &values[..])).collect();
        let best = Candidate::cheapest(&samples, &[SAMPLE_RUN_ROWS; SAMPLE_RUNS]);
        let Some(Candidate { form, residuals: Residuals { predictor, .. }, packing, .. }) = best else {
            return Vec::new();
        };
        // A value that is constant in the sample changes rarely in the column.
        let predictor = if packing == Packing::Constant { Predictor::Delta } else { predictor };
        let values = forms.iter().find(|(of, _)| *of == form).map_or(*values, |(_, values)| values);
        let residuals = Residuals::new(values, series, predictor);
        let packing = packing.fitting(&residuals.rest);
        Candidate { form, residuals, packing, cost: 0 }.write()
    }

    /// Packs values that are constant within each series; `None` if any series changes.
    fn constant_series(form: NumberForm, values: &[i64], series: &[usize]) -> Option<Vec<u8>> {
        let (mut rest, mut firsts) = (values, Vec::with_capacity(series.len()));
        for &rows in series {
            let (run, others) = rest.split_at(rows);
            rest = others;
            let Some(first) = run.first() else { continue };
            if !run.iter().all(|value| value == first) {
                return None;
            }
            firsts.push(*first);
        }
        let form = FloatWidth::of(form).map_or(ColumnForm::Integer, ColumnForm::Ordered);
        if let ColumnForm::Ordered(width) = form {
            firsts.iter_mut().for_each(|first| *first = width.ordered(*first));
        }
        if firsts.iter().all(|first| *first == 0) {
            return Some(Vec::new());
        }
        let residuals = Residuals::new(&firsts, &vec![1; firsts.len()], Predictor::Delta);
        Some(Candidate { form, residuals, packing: Packing::Constant, cost: 0 }.write())
    }

    fn cheapest(forms: &[(ColumnForm, &[i64])], series: &[usize]) -> Option<Candidate> {
        let candidates = forms.iter().flat_map(|&(form, values)| {
            Predictor::ALL.map(|predictor| {
                let residuals = Residuals::new(values, series, predictor);
                let (packing, cost) = Packing::choose(&residuals.rest);
                let cost = predictor.weigh(cost + residuals.first_cost() + form.cost());
                Candidate { form, residuals, packing, cost }
            })
        });
        candidates.min_by_key(|candidate| candidate.cost)
    }

    fn write(&self) -> Vec<u8> {
        // Bits 0 and 1: predictor; 2 and 3: packing; 4 to 7: form.
        let mut out = vec![self.residuals.predictor as u8 | (self.packing as u8) << 2 | self.form.code() << 4];
        self.form.write_parameter(&mut out);
        put_varint(&mut out, self.residuals.divisor);
        self.residuals.write_firsts(&mut out);
        self.packing.write(&self.residuals.rest, &mut out);
        out
    }
}

fn is_all_zero(forms: &[(ColumnForm, &[i64])]) -> bool {
    forms.iter().all(|(form, values)| !matches!(form, ColumnForm::Relative) && values.iter().all(|&v| v == 0))
}

fn unpack(packed: &[u8], series: &[usize]) -> Result<(ColumnForm, Vec<i64>), String> {
    let rows = series.iter().sum();
    if packed.is_empty() {
        return Ok((ColumnForm::Integer, vec![0; rows]));
    }
    let mut from = Cursor::new(packed);
    let code = from.byte()?;
    let predictor = Predictor::from_code(code & 3)?;
    let packing = Packing::from_code((code >> 2) & 3);
    let form = ColumnForm::read(code >> 4, &mut from)?;
    let divisor = from.varint()?;
    let firsts = read_firsts(&mut from, predictor, series)?;
    // `values` starts with room for the first values, and the residuals follow. Restoring then overwrites a residual only
    // after reading it.
    let mut values = vec![0; rows];
    packing.read(&mut values[firsts.len()..], &mut from)?;
    from.end()?;
    restore_values(predictor, divisor, &firsts, &mut values, series);
    Ok((form, values))
}

// Maps IEEE 754 singles and doubles to integers, so that close values have close integers. All bits of floats are given
// as `i64`, those of singles without their sign extended.

/// The precision of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FloatWidth {
    Single = 0,
    Double = 1,
}

/// The meaning of a column's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnForm {
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
    fn code(self) -> u8 {
        match self {
            ColumnForm::Integer => 0,
            ColumnForm::Relative => 1,
            ColumnForm::Fixed(width, _) => 2 + 2 * width as u8,
            ColumnForm::Ordered(width) => 3 + 2 * width as u8,
        }
    }

    /// Returns the cost of the form's parameter, in 256ths of a bit.
    fn cost(self) -> u64 {
        if matches!(self, ColumnForm::Fixed(..)) { 256 * 8 } else { 0 }
    }

    fn write_parameter(self, out: &mut Vec<u8>) {
        if let ColumnForm::Fixed(_, shift) = self {
            out.push(shift as u8);
        }
    }

    fn read(code: u8, from: &mut Cursor<'_>) -> Result<ColumnForm, String> {
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
    fn to_float_bits(self, wanted: FloatWidth, mut values: Vec<i64>) -> Result<Vec<i64>, String> {
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
    fn of(form: NumberForm) -> Option<FloatWidth> {
        match form {
            NumberForm::Integer => None,
            NumberForm::F32 => Some(FloatWidth::Single),
            NumberForm::F64 => Some(FloatWidth::Double),
        }
    }

    fn form(self) -> NumberForm {
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
    fn ordered(self, bits: i64) -> i64 {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers of all sizes, and runs as in recordings.
    fn values() -> impl Strategy<Value = Vec<i64>> {
        let wild = proptest::collection::vec(any::<i64>(), 0..40);
        let tame = proptest::collection::vec(-300i64..300, 0..200);
        let steps = (any::<i64>(), -9i64..9, 0usize..200)
            .prop_map(|(first, step, n)| (0..n as i64).map(|i| first.wrapping_add(i.wrapping_mul(step))).collect());
        let sparse = proptest::collection::vec(prop_oneof![9 => Just(0i64), 1 => any::<i64>()], 0..200);
        prop_oneof![wild, tame, steps, sparse]
    }

    fn cut(rows: usize, at: usize) -> Vec<usize> {
        let first = if rows == 0 { 0 } else { at % (rows + 1) };
        vec![first, 0, rows - first]
    }

    proptest! {
        #[test]
        fn whole_numbers_survive_a_round_trip(values in values(), at in any::<usize>()) {
            let series = cut(values.len(), at);
            prop_assert_eq!(decode(&encode(&values, &series), &series, None).unwrap(), values);
        }

        #[test]
        fn relative_numbers_survive_a_round_trip(values in values(), at in any::<usize>(), by in any::<i64>()) {
            let series = cut(values.len(), at);
            let references: Vec<i64> = values.iter().map(|v| v.wrapping_mul(by)).collect();
            let packed = encode_relative(&values, &references, &series);
            prop_assert_eq!(decode(&packed, &series, Some(&references)).unwrap(), values);
        }

        #[test]
        fn floats_come_back_bit_for_bit(
            bits in prop_oneof![
                proptest::collection::vec(any::<u32>(), 0..60),
                proptest::collection::vec((-40_000i32..40_000).prop_map(|n| (n as f32 / 8.0).to_bits()), 0..60),
                proptest::collection::vec((0u16..).prop_map(|n| (f32::from(n) * (360.0 / 65536.0)).to_bits()), 0..60),
            ],
            at in any::<usize>(),
        ) {
            let series = cut(bits.len(), at);
            let wide: Vec<i64> = bits.iter().map(|bits| i64::from(*bits)).collect();
            let packed = encode_as(NumberForm::F32, &wide, &series, Effort::Full);
            prop_assert_eq!(&decode_as(NumberForm::F32, &packed, &series).unwrap(), &wide);
            prop_assert_eq!(&decode_cells(&packed, &series).unwrap(), &bits);
        }

        #[test]
        fn doubles_come_back_bit_for_bit(
            bits in prop_oneof![
                proptest::collection::vec(any::<i64>(), 0..60),
                proptest::collection::vec(any::<f64>().prop_map(|value| value.to_bits() as i64), 0..60),
                proptest::collection::vec((-4e15f64..4e15).prop_map(|n| (n.trunc() / 1024.0).to_bits() as i64), 0..60),
                proptest::collection::vec((-1e4f64..1e4).prop_map(|n| n.to_bits() as i64), 0..60),
            ],
            times in 1usize..100,
            at in any::<usize>(),
        ) {
            let bits = bits.repeat(times);
            let series = cut(bits.len(), at);
            for effort in [Effort::Full, Effort::Sample] {
                let packed = encode_as(NumberForm::F64, &bits, &series, effort);
                prop_assert_eq!(&decode_as(NumberForm::F64, &packed, &series).unwrap(), &bits);
                let (form, any) = decode_any(&packed, &series).unwrap();
                prop_assert_eq!(&any, &bits);
                prop_assert!(packed.is_empty() || form == NumberForm::F64);
            }
        }

        /// Holds for any sample, however the other values differ from it.
        #[test]
        fn quickly_packed_numbers_survive_a_round_trip(
            base in values(), times in 1usize..400, others in proptest::collection::vec((any::<usize>(), any::<i64>()), 0..6),
            at in any::<usize>(),
        ) {
            let mut values = base.repeat(times.min(60_000 / base.len().max(1)));
            let rows = values.len();
            others.iter().filter(|_| rows > 0).for_each(|(row, value)| values[row % rows] = *value);
            let series = cut(values.len(), at);
            let bits: Vec<i64> = values.iter().map(|value| i64::from(*value as u32)).collect();
            for (form, values) in [(NumberForm::Integer, values), (NumberForm::F32, bits)] {
                let packed = encode_as(form, &values, &series, Effort::Sample);
                prop_assert_eq!(&decode_as(form, &packed, &series).unwrap(), &values);
            }
        }

        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..80), rows in 0usize..100) {
            let _ = decode(&bytes, &[rows], Some(&vec![7; rows]));
            let _ = decode_cells(&bytes, &[rows]);
            let _ = decode_any(&bytes, &[rows]);
        }
    }

    #[test]
    fn rare_changes_that_a_sample_misses_are_small() {
        let mut values = vec![100; 20_000];
        values[10_000..].fill(70);
        values[5_001] = 3;
        let floats: Vec<i64> = values.iter().map(|value| (*value as f32).to_bits().into()).collect();
        let series = [6_000, 0, 14_000];
        let pack = |form, values: &[i64], series: &[usize]| encode_as(form, values, series, Effort::Sample);
        let sizes = [pack(NumberForm::Integer, &values, &series), pack(NumberForm::F32, &floats, &series)];
        assert!(sizes.iter().all(|packed| packed.len() <= 32), "{:?}", sizes.map(|packed| packed.len()));
        let same = pack(NumberForm::F32, &floats[..5_000], &[4_000, 1_000]);
        assert_eq!(decode_as(NumberForm::F32, &same, &[4_000, 1_000]).unwrap(), floats[..5_000]);
        assert!(same.len() < 16, "{}", same.len());
    }

    #[test]
    fn a_steady_clock_takes_almost_no_bytes() {
        let times: Vec<i64> = (0..64).map(|i| 1_000_000 + i * 15_625).collect();
        assert!(encode(&times, &[64]).len() <= 10);
    }

    #[test]
    fn wire_angles_take_the_size_of_their_integers() {
        let turns = (0..64u16).map(|i| (f32::from(i * i) * (360.0 / 65536.0)).to_bits().into());
        assert!(encode_as(NumberForm::F32, &turns.collect::<Vec<i64>>(), &[64], Effort::Full).len() <= 64 + 12);
    }
}

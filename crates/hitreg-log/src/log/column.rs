//! Packs columns of numbers without loss, before zstd compresses them.
//!
//! The rows of a column belong to series (one for each player or entity), one series after the other. The encoder
//! predicts each value from earlier values of its series and stores the residual. It tries the predictions and
//! packings and takes the cheapest; the column's first byte names it. `docs/format.md` describes the layout under
//! "Packed columns".

mod float;
mod residuals;

use float::{ColumnForm, FloatWidth};

use residuals::{Packing, Predictor, Residuals, read_firsts, undo};

use crate::record::NumberForm;
pub(crate) use crate::varint::Cursor;
use crate::varint::put_varint;

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
        && let Some(packed) = Candidate::unchanging(form, values, series)
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
    form.bits(width, values)
}

/// Unpacks 32-bit cells of any form; integers may be signed or unsigned.
pub(crate) fn decode_cells(packed: &[u8], series: &[usize]) -> Result<Vec<u32>, String> {
    let (form, values) = unpack(packed, series)?;
    if form != ColumnForm::Integer {
        return Ok(form.bits(FloatWidth::Single, values)?.into_iter().map(|bits| bits as u32).collect());
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
        ColumnForm::Fixed(width, _) | ColumnForm::Ordered(width) => Ok((width.form(), form.bits(width, values)?)),
    }
}

/// One way to write a column.
struct Candidate {
    form: ColumnForm,
    residuals: Residuals,
    packing: Packing,
    cost: u64,
}

/// A sample has [`STRETCHES`] runs of [`STRETCH`] numbers, at equal distances.
const STRETCHES: usize = 16;
const STRETCH: usize = 48;

impl Candidate {
    fn best(forms: &[(ColumnForm, &[i64])], series: &[usize]) -> Vec<u8> {
        if is_all_zero(forms) {
            return Vec::new();
        }
        Candidate::cheapest(forms, series).map(|best| best.write()).unwrap_or_default()
    }

    /// Chooses by a sample, and writes all numbers that way.
    fn best_of_sample(forms: &[(ColumnForm, &[i64])], series: &[usize]) -> Vec<u8> {
        let Some((_, values)) = forms.first().filter(|(_, values)| values.len() > 2 * STRETCHES * STRETCH) else {
            return Candidate::best(forms, series);
        };
        if is_all_zero(forms) {
            return Vec::new();
        }
        let apart = (values.len() - STRETCH) / (STRETCHES - 1);
        let sample = |values: &[i64]| -> Vec<i64> {
            (0..STRETCHES).flat_map(|place| values[place * apart..place * apart + STRETCH].iter().copied()).collect()
        };
        let samples: Vec<_> = forms.iter().map(|(form, values)| (*form, sample(values))).collect();
        let samples: Vec<_> = samples.iter().map(|(form, values)| (*form, &values[..])).collect();
        let best = Candidate::cheapest(&samples, &[STRETCH; STRETCHES]);
        let Some(Candidate { form, residuals: Residuals { order, .. }, packing, .. }) = best else { return Vec::new() };
        // A value that is constant in the sample changes rarely in the column.
        let order = if packing == Packing::Constant { Predictor::Delta } else { order };
        let values = forms.iter().find(|(of, _)| *of == form).map_or(*values, |(_, values)| values);
        let residuals = Residuals::new(values, series, order);
        let packing = packing.fitting(&residuals.rest);
        Candidate { form, residuals, packing, cost: 0 }.write()
    }

    /// Packs values that are constant within each series; `None` if any series changes.
    fn unchanging(form: NumberForm, values: &[i64], series: &[usize]) -> Option<Vec<u8>> {
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
            Predictor::ALL.map(|order| {
                let residuals = Residuals::new(values, series, order);
                let (packing, cost) = Packing::choose(&residuals.rest);
                let cost = order.weigh(cost + residuals.first_cost() + form.cost());
                Candidate { form, residuals, packing, cost }
            })
        });
        candidates.min_by_key(|candidate| candidate.cost)
    }

    fn write(&self) -> Vec<u8> {
        let mut out = vec![self.residuals.order as u8 | (self.packing as u8) << 2 | self.form.code() << 4];
        self.form.write_parameter(&mut out);
        put_varint(&mut out, self.residuals.unit);
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
    let order = Predictor::from_code(code & 3)?;
    let packing = Packing::from_code((code >> 2) & 3);
    let form = ColumnForm::read(code >> 4, &mut from)?;
    let unit = from.varint()?;
    let firsts = read_firsts(&mut from, order, series)?;
    // The residuals come after room for the first values, so that the values take their place.
    let mut values = vec![0; rows];
    packing.read(&mut values[firsts.len()..], &mut from)?;
    from.end()?;
    undo(order, unit, &firsts, &mut values, series);
    Ok((form, values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn whole_numbers_come_back(values in values(), at in any::<usize>()) {
            let series = cut(values.len(), at);
            prop_assert_eq!(decode(&encode(&values, &series), &series, None).unwrap(), values);
        }

        #[test]
        fn relative_numbers_come_back(values in values(), at in any::<usize>(), by in any::<i64>()) {
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
        fn quickly_packed_numbers_come_back(
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

//! Packs columns of numbers without loss, before zstd compresses them.
//!
//! The rows of a column belong to series (one for each player or entity), one series after the other. The encoder
//! predicts each value from earlier values of its series and stores the residual. It tries the predictions and
//! packings and takes the cheapest; the column's first byte names it. `docs/format.md` describes the layout under
//! "Packed columns".

mod cost;
mod float;
mod packing;
mod predict;

use float::FloatForm;
use packing::Packing;
use predict::{Predictor, Residuals};

use crate::record::NumberForm;
pub(crate) use crate::varint::Cursor;
use crate::varint::put_varint;

/// Packs integers.
pub(crate) fn encode(values: &[i64], series: &[usize]) -> Vec<u8> {
    Candidate::best(&[(FloatForm::Integer, values)], series)
}

/// Packs integers by the cost of a sample: several times as fast as [`encode`], and nearly as small.
pub(crate) fn encode_quickly(values: &[i64], series: &[usize]) -> Vec<u8> {
    Candidate::unchanging(FloatForm::Integer, values, series, |value| *value)
        .unwrap_or_else(|| Candidate::best_of_sample(&[(FloatForm::Integer, values)], series))
}

/// Packs integers either directly or as distances from a reference value in each row, whichever is smaller.
pub(crate) fn encode_relative(values: &[i64], references: &[i64], series: &[usize]) -> Vec<u8> {
    let distances: Vec<i64> = values.iter().zip(references).map(|(v, r)| v.wrapping_sub(*r)).collect();
    Candidate::best(&[(FloatForm::Relative, &distances), (FloatForm::Integer, values)], series)
}

/// Packs the bits of IEEE 754 singles.
pub(crate) fn encode_f32(bits: &[u32], series: &[usize]) -> Vec<u8> {
    float::with_forms_of_f32(bits, |forms| Candidate::best(forms, series))
}

/// Packs the bits of IEEE 754 singles by the cost of a sample.
pub(crate) fn encode_f32_quickly(bits: &[u32], series: &[usize]) -> Vec<u8> {
    Candidate::unchanging(FloatForm::Ordered, bits, series, |bits| float::ordered(*bits))
        .unwrap_or_else(|| float::with_forms_of_f32(bits, |forms| Candidate::best_of_sample(forms, series)))
}

/// Packs the bits of IEEE 754 doubles.
pub(crate) fn encode_f64(bits: &[i64], series: &[usize]) -> Vec<u8> {
    float::with_forms_of_f64(bits, |forms| Candidate::best(forms, series))
}

/// Packs the bits of IEEE 754 doubles by the cost of a sample.
pub(crate) fn encode_f64_quickly(bits: &[i64], series: &[usize]) -> Vec<u8> {
    Candidate::unchanging(FloatForm::Ordered64, bits, series, |bits| float::ordered64(*bits))
        .unwrap_or_else(|| float::with_forms_of_f64(bits, |forms| Candidate::best_of_sample(forms, series)))
}

/// Packs the values of a column as numbers of this form.
pub(crate) fn encode_as(form: NumberForm, values: &[i64], series: &[usize]) -> Vec<u8> {
    match form {
        NumberForm::Integer => encode(values, series),
        NumberForm::F32 => encode_f32(&values.iter().map(|bits| *bits as u32).collect::<Vec<_>>(), series),
        NumberForm::F64 => encode_f64(values, series),
    }
}

/// Unpacks a column of integers; `references` are those given to [`encode_relative`].
pub(crate) fn decode(packed: &[u8], series: &[usize], references: Option<&[i64]>) -> Result<Vec<i64>, String> {
    let (form, mut values) = unpack(packed, series)?;
    match (form, references) {
        (FloatForm::Integer, _) => {}
        (FloatForm::Relative, Some(references)) => {
            for (value, reference) in values.iter_mut().zip(references) {
                *value = value.wrapping_add(*reference);
            }
        }
        (FloatForm::Relative, None) => return Err("it is relative, but has nothing to relate to".into()),
        (FloatForm::Fixed { .. } | FloatForm::Ordered | FloatForm::Fixed64 { .. } | FloatForm::Ordered64, _) => {
            return Err("it holds floats where whole numbers belong".into());
        }
    }
    Ok(values)
}

/// Unpacks the bits of IEEE 754 doubles.
pub(crate) fn decode_f64(packed: &[u8], series: &[usize]) -> Result<Vec<i64>, String> {
    let (form, values) = unpack(packed, series)?;
    form.f64_bits(values)
}

/// Unpacks the bits of IEEE 754 singles.
pub(crate) fn decode_f32(packed: &[u8], series: &[usize]) -> Result<Vec<u32>, String> {
    let (form, values) = unpack(packed, series)?;
    form.f32_bits(&values)
}

/// Unpacks 32-bit cells of any form; integers may be signed or unsigned.
pub(crate) fn decode_cells(packed: &[u8], series: &[usize]) -> Result<Vec<u32>, String> {
    let (form, values) = unpack(packed, series)?;
    if form != FloatForm::Integer {
        return form.f32_bits(&values);
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
        FloatForm::Integer => Ok((NumberForm::Integer, values)),
        FloatForm::Relative => Err("it is relative, and nothing says to what".into()),
        FloatForm::Fixed { .. } | FloatForm::Ordered => {
            Ok((NumberForm::F32, form.f32_bits(&values)?.into_iter().map(i64::from).collect()))
        }
        FloatForm::Fixed64 { .. } | FloatForm::Ordered64 => Ok((NumberForm::F64, form.f64_bits(values)?)),
    }
}

/// One way to write a column.
struct Candidate {
    form: FloatForm,
    residuals: Residuals,
    packing: Packing,
    cost: u64,
}

/// A sample has [`STRETCHES`] runs of [`STRETCH`] numbers, at equal distances.
const STRETCHES: usize = 16;
const STRETCH: usize = 48;

impl Candidate {
    fn best(forms: &[(FloatForm, &[i64])], series: &[usize]) -> Vec<u8> {
        if is_all_zero(forms) {
            return Vec::new();
        }
        Candidate::cheapest(forms, series).map(|best| best.write()).unwrap_or_default()
    }

    /// Chooses by a sample, and writes all numbers that way.
    fn best_of_sample(forms: &[(FloatForm, &[i64])], series: &[usize]) -> Vec<u8> {
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
        let packing = packing::fitting(packing, &residuals.rest);
        Candidate { form, residuals, packing, cost: 0 }.write()
    }

    /// Packs values that are constant within each series; `None` if any series changes.
    fn unchanging<T: PartialEq>(
        form: FloatForm,
        values: &[T],
        series: &[usize],
        number: impl Fn(&T) -> i64,
    ) -> Option<Vec<u8>> {
        let (mut rest, mut firsts) = (values, Vec::with_capacity(series.len()));
        for &rows in series {
            let (run, others) = rest.split_at(rows);
            rest = others;
            let Some(first) = run.first() else { continue };
            if !run.iter().all(|value| value == first) {
                return None;
            }
            firsts.push(number(first));
        }
        if firsts.iter().all(|first| *first == 0) {
            return Some(Vec::new());
        }
        let residuals = Residuals::new(&firsts, &vec![1; firsts.len()], Predictor::Delta);
        Some(Candidate { form, residuals, packing: Packing::Constant, cost: 0 }.write())
    }

    fn cheapest(forms: &[(FloatForm, &[i64])], series: &[usize]) -> Option<Candidate> {
        let candidates = forms.iter().flat_map(|&(form, values)| {
            Predictor::ALL.map(|order| {
                let residuals = Residuals::new(values, series, order);
                let (packing, cost) = packing::choose(&residuals.rest);
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
        packing::write(self.packing, &self.residuals.rest, &mut out);
        out
    }
}

fn is_all_zero(forms: &[(FloatForm, &[i64])]) -> bool {
    forms.iter().all(|(form, values)| !matches!(form, FloatForm::Relative) && values.iter().all(|&v| v == 0))
}

fn unpack(packed: &[u8], series: &[usize]) -> Result<(FloatForm, Vec<i64>), String> {
    let rows = series.iter().sum();
    if packed.is_empty() {
        return Ok((FloatForm::ZERO, vec![0; rows]));
    }
    let mut from = Cursor::new(packed);
    let code = from.byte()?;
    let order = Predictor::from_code(code & 3)?;
    let packing = Packing::from_code((code >> 2) & 3);
    let form = FloatForm::read(code >> 4, &mut from)?;
    let unit = from.varint()?;
    let firsts = predict::read_firsts(&mut from, order, series)?;
    // The residuals come after room for the first values, so that the values take their place.
    let mut values = vec![0; rows];
    packing::read(packing, &mut values[firsts.len()..], &mut from)?;
    from.end()?;
    predict::undo(order, unit, &firsts, &mut values, series);
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
            let packed = encode_f32(&bits, &series);
            prop_assert_eq!(&decode_f32(&packed, &series).unwrap(), &bits);
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
            for packed in [encode_f64(&bits, &series), encode_f64_quickly(&bits, &series)] {
                prop_assert_eq!(&decode_f64(&packed, &series).unwrap(), &bits);
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
            prop_assert_eq!(&decode(&encode_quickly(&values, &series), &series, None).unwrap(), &values);
            let bits: Vec<u32> = values.iter().map(|value| *value as u32).collect();
            prop_assert_eq!(decode_f32(&encode_f32_quickly(&bits, &series), &series).unwrap(), bits);
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
        let floats: Vec<u32> = values.iter().map(|value| (*value as f32).to_bits()).collect();
        let series = [6_000, 0, 14_000];
        let sizes = [encode_quickly(&values, &series), encode_f32_quickly(&floats, &series)];
        assert!(sizes.iter().all(|packed| packed.len() <= 32), "{:?}", sizes.map(|packed| packed.len()));
        let same = encode_f32_quickly(&floats[..5_000], &[4_000, 1_000]);
        assert_eq!(decode_f32(&same, &[4_000, 1_000]).unwrap(), floats[..5_000]);
        assert!(same.len() < 16, "{}", same.len());
    }

    #[test]
    fn a_steady_clock_takes_almost_no_bytes() {
        let times: Vec<i64> = (0..64).map(|i| 1_000_000 + i * 15_625).collect();
        assert!(encode(&times, &[64]).len() <= 10);
    }

    #[test]
    fn wire_angles_take_the_size_of_their_integers() {
        let turns: Vec<u32> = (0..64u16).map(|i| (f32::from(i * i) * (360.0 / 65536.0)).to_bits()).collect();
        assert!(encode_f32(&turns, &[64]).len() <= 64 + 12);
    }
}

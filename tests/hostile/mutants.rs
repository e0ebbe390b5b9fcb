//! Seeded mutants of files: values are changed, repeated, removed and moved, and all checksums are valid.
#![expect(clippy::disallowed_methods, reason = "the environment selects longer runs")]

use hitreg::rng::Rng;
use hitreg::units::Seed;
use rmpv::Value;

use super::container::{encoded, pack_chunks, unpack_chunks};
use super::crafted::{run_all_bounded, short_log, short_trace};

/// The number of seeds without `HITREG_FUZZ_SECONDS`.
const SEEDS: u64 = 12;

/// Numbers at the limits of types.
const EXTREME: [u64; 12] =
    [0, 1, 2, 127, 128, 255, 65_535, 65_536, 0x7FFF_FFFF, 0xFFFF_FFFF, i64::MAX as u64, u64::MAX];

/// The byte limit of repetitions.
const REPEATED_BYTES_MAX: usize = 4 << 20;

/// Changes one value of a chunk.
pub(crate) fn mutate_value(value: &mut Value, rng: &mut Rng) {
    match value {
        Value::Map(entries) if !entries.is_empty() && rng.chance(0.95) => {
            let index = rng.below(entries.len() as u64) as usize;
            mutate_value(&mut entries[index].1, rng);
        }
        Value::Array(items) if !items.is_empty() => match rng.below(6) {
            0 => {
                let item = items[rng.below(items.len() as u64) as usize].clone();
                let count: usize = 1 << rng.below(18);
                items.resize(items.len() + count.min(REPEATED_BYTES_MAX / encoded(&item).len()), item);
            }
            1 => {
                items.remove(rng.below(items.len() as u64) as usize);
            }
            2 => items.reverse(),
            _ => {
                let index = rng.below(items.len() as u64) as usize;
                mutate_value(&mut items[index], rng);
            }
        },
        Value::Binary(bytes) if !bytes.is_empty() => match rng.below(5) {
            0 => bytes.clear(),
            1 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
            _ => {
                // The first bytes say how the rest is packed, so they change more often.
                let reach = if rng.chance(0.5) { 8 } else { usize::MAX };
                let index = rng.below(bytes.len().min(reach) as u64) as usize;
                bytes[index] = rng.next_u64() as u8;
            }
        },
        Value::Integer(_) => *value = Value::from(EXTREME[rng.below(EXTREME.len() as u64) as usize]),
        Value::Boolean(is) => *is = !*is,
        Value::String(_) => {
            let texts = ["", "states", "player", "../../x", "a\nb\u{1b}[2J", "nan", "1e308", "-1", "u32", "raw"];
            *value = Value::from(texts[rng.below(texts.len() as u64) as usize]);
        }
        other => *other = Value::from(rng.next_u64()),
    }
}

/// A file with up to four changed values.
pub(crate) fn mutant(chunks: &[Value], rng: &mut Rng) -> Vec<u8> {
    let mut chunks = chunks.to_vec();
    for _ in 0..=rng.below(4) {
        let index = match rng.below(8) {
            0 => 0,
            1 => {
                let index = 1 + rng.below(chunks.len() as u64 - 1) as usize;
                let chunk = chunks[index].clone();
                let count: usize = 1 << rng.below(8);
                chunks.resize(chunks.len() + count.min(REPEATED_BYTES_MAX / encoded(&chunk).len()), chunk);
                index
            }
            _ => rng.below(chunks.len() as u64) as usize,
        };
        mutate_value(&mut chunks[index], rng);
    }
    pack_chunks(&chunks)
}

fn try_seeds(file: &[u8], of_traces: bool) {
    let chunks = unpack_chunks(file);
    let first = std::env::var("HITREG_FUZZ_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seconds = std::env::var("HITREG_FUZZ_SECONDS").ok().map(|seconds| seconds.parse().expect("a number"));
    let (started, first) = (std::time::Instant::now(), first.unwrap_or(0));
    for seed in first.. {
        let is_over = match seconds {
            Some(seconds) => started.elapsed().as_secs() >= seconds,
            None => seed >= first + SEEDS,
        };
        if is_over {
            return;
        }
        let mutant = mutant(&chunks, &mut Rng::new(Seed(seed), 0));
        if mutant.len() < 1 << 20 {
            let tried = std::panic::catch_unwind(|| run_all_bounded(&mutant, of_traces, None));
            assert!(tried.is_ok(), "seed {seed}: HITREG_FUZZ_SEED={seed} tries it again");
        }
    }
}

#[test]
fn mutants_of_logs_stay_within_bounds() {
    try_seeds(&short_log(), false);
}

#[test]
fn mutants_of_traces_stay_within_bounds() {
    try_seeds(&short_trace(), true);
}

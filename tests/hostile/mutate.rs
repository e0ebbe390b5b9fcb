//! Seeded mutants of bytes and texts: truncated, flipped, repeated and shuffled parts, and extreme numbers.

use hitreg::rng::Rng;

/// Extreme numbers for texts.
const EXTREME: [&str; 14] = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "nan",
    "inf",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "0.0000001",
    "65536",
    "true",
    "\"\"",
    "[[]]",
];

/// The byte limit of repetitions.
const REPEATED_BYTES_MAX: usize = 1 << 20;

/// The bytes with changes in up to eight places.
pub(crate) fn bytes(good: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=rng.below(8) {
        let length = bytes.len() as u64;
        let at = rng.below(length.max(1)) as usize;
        match rng.below(8) {
            0 => bytes.truncate(at),
            1 | 2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
            3 | 4 => {
                let odd = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, rng.next_u64() as u32];
                let odd = odd[rng.below(odd.len() as u64) as usize].to_le_bytes();
                for (byte, with) in bytes.iter_mut().skip(at).zip(odd.iter().take(1 << rng.below(3))) {
                    *byte = *with;
                }
            }
            5 => {
                let part =
                    bytes[at.min(bytes.len())..].iter().take(1 + rng.below(64) as usize).copied().collect::<Vec<_>>();
                let times = 1 << rng.below(8);
                let all = part.repeat(times);
                bytes.splice(at.min(bytes.len())..at.min(bytes.len()), all);
            }
            6 => {
                let to = (at + rng.below(64) as usize).min(bytes.len());
                bytes.drain(at.min(to)..to);
            }
            _ => bytes.extend((0..rng.below(64)).map(|_| rng.next_u64() as u8)),
        }
    }
    bytes
}

/// The text with changed words and lines, and sometimes with changed bytes.
pub(crate) fn text(good: &str, rng: &mut Rng) -> String {
    if rng.chance(0.2) {
        return String::from_utf8_lossy(&bytes(good.as_bytes(), rng)).into_owned();
    }
    let mut lines: Vec<String> = good.lines().map(str::to_owned).collect();
    for _ in 0..=rng.below(6) {
        let at = rng.below(lines.len().max(1) as u64) as usize;
        let Some(line) = lines.get(at).cloned() else { continue };
        match rng.below(5) {
            0 => lines.extend(vec![line.clone(); (1 << rng.below(12)).min(REPEATED_BYTES_MAX / (line.len() + 1))]),
            1 => drop(lines.remove(at)),
            2 => lines[at] = line.repeat((1 << rng.below(8)).min(REPEATED_BYTES_MAX / (line.len() + 1))),
            _ => {
                let words: Vec<&str> = line.split(' ').collect();
                let word = rng.below(words.len() as u64) as usize;
                let odd = EXTREME[rng.below(EXTREME.len() as u64) as usize];
                lines[at] = words
                    .iter()
                    .enumerate()
                    .map(|(n, w)| if n == word { odd } else { w })
                    .collect::<Vec<_>>()
                    .join(" ");
            }
        }
    }
    lines.join("\n")
}

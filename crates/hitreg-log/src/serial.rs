//! The reader of MessagePack.

mod reader;

use serde::Deserialize;

pub(crate) use reader::MessagePackReader;

/// The error of a reader: the bytes do not hold the expected value.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

impl serde::de::Error for ReadError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        ReadError(message.to_string())
    }
}

/// The default limit of values in one MessagePack document, nested values included. A value of one byte can take dozens
/// of bytes in memory.
pub(crate) const MOST_VALUES: u64 = 1 << 20;

/// Reads a value from MessagePack and ignores bytes after it.
///
/// # Errors
/// When the bytes are not MessagePack, hold another type, or hold more than `MOST_VALUES`.
pub fn from_msgpack<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ReadError> {
    count_values(MOST_VALUES, bytes)?;
    T::deserialize(&mut MessagePackReader::new(bytes))
}

/// Refuses MessagePack with more than `most` values, before the caller allocates anything for them. Malformed
/// MessagePack passes: the reader reports it.
pub(crate) fn count_values(most: u64, bytes: &[u8]) -> Result<(), ReadError> {
    let (mut rest, mut seen, mut awaited) = (bytes, 0u64, 1u64);
    while awaited > 0 {
        let Some((inner, skipped)) = value(rest) else { return Ok(()) };
        awaited = (awaited - 1).saturating_add(inner);
        seen += 1;
        if seen.saturating_add(awaited) > most {
            return Err(ReadError(format!("it holds more than {most} values")));
        }
        let Some(after) = rest.get(skipped..) else { return Ok(()) };
        rest = after;
    }
    Ok(())
}

/// Returns how many values the first value contains, and how many bytes precede them.
fn value(bytes: &[u8]) -> Option<(u64, usize)> {
    let (marker, rest) = bytes.split_first()?;
    let length = |wide: usize| {
        let bytes = rest.get(..wide)?;
        Some(bytes.iter().fold(0usize, |length, byte| length << 8 | usize::from(*byte)))
    };
    let plain = |bytes: usize| Some((0, 1 + bytes));
    let bytes = |wide: usize, more: usize| Some((0, (1 + wide + more).saturating_add(length(wide)?)));
    let values = |wide: usize, each: u64| Some((length(wide)? as u64 * each, 1 + wide));
    match *marker {
        0x80..=0x8f => Some((u64::from(marker & 0x0f) * 2, 1)),
        0x90..=0x9f => Some((u64::from(marker & 0x0f), 1)),
        0xa0..=0xbf => plain(usize::from(marker & 0x1f)),
        0xc4 | 0xd9 => bytes(1, 0),
        0xc5 | 0xda => bytes(2, 0),
        0xc6 | 0xdb => bytes(4, 0),
        0xc7..=0xc9 => bytes(1 << (marker - 0xc7), 1),
        0xca | 0xce | 0xd2 => plain(4),
        0xcb | 0xcf | 0xd3 => plain(8),
        0xcc | 0xd0 => plain(1),
        0xcd | 0xd1 => plain(2),
        0xd4..=0xd8 => plain(1 + (1 << (marker - 0xd4))),
        0xdc => values(2, 1),
        0xdd => values(4, 1),
        0xde => values(2, 2),
        0xdf => values(4, 2),
        _ => plain(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_values_are_counted() {
        fn has(values: u64, value: impl serde::Serialize) -> bool {
            let bytes = rmp_serde::to_vec_named(&value).expect("MessagePack");
            count_values(values, &bytes).is_ok() && count_values(values - 1, &bytes).is_err()
        }
        assert!(has(1, 7u8) && has(1, -70_000i64) && has(1, 1.5f64) && has(1, "text".repeat(100)));
        assert!(has(4, ("a", Some(true), None::<u8>)));
        assert!(has(1 + 70_000, vec!["x".repeat(40); 70_000]) && has(1 + 300, vec![i64::MIN; 300]));
        assert!(has(1 + 2 * 40, (0..40u32).map(|key| (key, key)).collect::<crate::sorted::SortedMap<_, _>>()));
        assert!(has(2, [serde_bytes::ByteBuf::from(vec![0xDD; 70_000])]));
    }

    #[test]
    fn a_value_that_claims_many_items_is_refused_by_its_first_bytes() {
        assert!(count_values(1_000, &[0xDD, 0xFF, 0xFF, 0xFF, 0xFF]).is_err());
        assert!(from_msgpack::<Vec<String>>(&[vec![0xDD, 0, 0x20, 0, 0], vec![0xA0; 1 << 21]].concat()).is_err());
    }
}

//! The reader of MessagePack.

use serde::de::{
    DeserializeSeed, EnumAccess, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

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
pub(crate) const VALUES_MAX: u64 = 1 << 20;

/// Reads a value from MessagePack and ignores bytes after it.
///
/// # Errors
/// When the bytes are not MessagePack, hold another type, or hold more than 1,048,576 values.
pub fn from_msgpack<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ReadError> {
    count_values(VALUES_MAX, bytes)?;
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

// Each type needs only the calls of its own kind. A deserializer that tries all calls for each type compiles to three
// times as much code.

/// The most values within each other.
const NESTING_MAX: u8 = 128;

/// Reads values from the start of its bytes.
pub(crate) struct MessagePackReader<'a> {
    rest: &'a [u8],
    /// How many more values may be within each other.
    nests: u8,
}

/// The first part of a value: all of it, or the number of values within.
enum Head<'a> {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    F32(f32),
    F64(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    List(u32),
    Map(u32),
    Extension,
}

impl Head<'_> {
    fn unexpected(&self, expected: &dyn Expected) -> ReadError {
        let found = match self {
            Head::Nil => Unexpected::Unit,
            Head::Bool(value) => Unexpected::Bool(*value),
            Head::Unsigned(value) => Unexpected::Unsigned(*value),
            Head::Signed(value) => Unexpected::Signed(*value),
            Head::F32(value) => Unexpected::Float(f64::from(*value)),
            Head::F64(value) => Unexpected::Float(*value),
            Head::Text(value) => Unexpected::Str(value),
            Head::Bytes(value) => Unexpected::Bytes(value),
            Head::List(_) => Unexpected::Seq,
            Head::Map(_) => Unexpected::Map,
            Head::Extension => Unexpected::Other("extension"),
        };
        ReadError::invalid_type(found, expected)
    }
}

impl<'a> MessagePackReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        MessagePackReader { rest: bytes, nests: NESTING_MAX }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| ReadError::custom("it ends early"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// A number of `width` bytes, the highest first.
    fn unsigned(&mut self, width: usize) -> Result<u64, ReadError> {
        Ok(self.take(width)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn length(&mut self, width: usize) -> Result<u32, ReadError> {
        self.unsigned(width).map(|length| length as u32)
    }

    fn bytes(&mut self, length: u32) -> Result<Head<'a>, ReadError> {
        self.take(length as usize).map(Head::Bytes)
    }

    fn text(&mut self, length: u32) -> Result<Head<'a>, ReadError> {
        let text = str::from_utf8(self.take(length as usize)?);
        text.map(Head::Text).map_err(|_| ReadError::custom("a text is not UTF-8"))
    }

    /// Reads the head of the next value. An extension is read whole.
    fn head(&mut self) -> Result<Head<'a>, ReadError> {
        let marker = self.take(1)?[0];
        Ok(match marker {
            0x00..=0x7f => Head::Unsigned(u64::from(marker)),
            0x80..=0x8f => Head::Map(u32::from(marker & 0x0f)),
            0x90..=0x9f => Head::List(u32::from(marker & 0x0f)),
            0xa0..=0xbf => self.text(u32::from(marker & 0x1f))?,
            0xc0 => Head::Nil,
            0xc2 | 0xc3 => Head::Bool(marker == 0xc3),
            0xc4..=0xc6 => {
                let length = self.length(1 << (marker - 0xc4))?;
                self.bytes(length)?
            }
            0xc7..=0xc9 => {
                let length = self.length(1 << (marker - 0xc7))?;
                self.take(length as usize)?;
                self.take(1)?;
                Head::Extension
            }
            0xca => Head::F32(f32::from_bits(self.length(4)?)),
            0xcb => Head::F64(f64::from_bits(self.unsigned(8)?)),
            0xcc..=0xcf => Head::Unsigned(self.unsigned(1 << (marker - 0xcc))?),
            0xd0 => Head::Signed(i64::from(self.unsigned(1)? as i8)),
            0xd1 => Head::Signed(i64::from(self.unsigned(2)? as i16)),
            0xd2 => Head::Signed(i64::from(self.unsigned(4)? as i32)),
            0xd3 => Head::Signed(self.unsigned(8)? as i64),
            0xd4..=0xd8 => {
                self.take(1 + (1 << (marker - 0xd4)))?;
                Head::Extension
            }
            0xd9..=0xdb => {
                let length = self.length(1 << (marker - 0xd9))?;
                self.text(length)?
            }
            0xdc => Head::List(self.length(2)?),
            0xdd => Head::List(self.length(4)?),
            0xde => Head::Map(self.length(2)?),
            0xdf => Head::Map(self.length(4)?),
            0xe0..=0xff => Head::Signed(i64::from(marker as i8)),
            0xc1 => return Err(ReadError::custom("it is not MessagePack")),
        })
    }

    /// Skips the next value, and those within.
    fn skip(&mut self) -> Result<(), ReadError> {
        let mut awaited = 1u64;
        while awaited > 0 {
            let (inner, bytes) = value(self.rest).ok_or_else(|| ReadError::custom("it ends early"))?;
            self.take(bytes)?;
            awaited = (awaited - 1).saturating_add(inner);
        }
        Ok(())
    }

    /// Reads values that are within another. `read` gets the number of values of a list or a map, and takes all of them.
    fn nested<T>(
        &mut self,
        length: u32,
        read: impl FnOnce(Items<'_, 'a>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let nests = self.nests.checked_sub(1);
        self.nests = nests.ok_or_else(|| ReadError::custom(format_args!("over {NESTING_MAX} values are nested")))?;
        let mut left = length;
        let value = read(Items { reader: self, left: &mut left })?;
        self.nests += 1;
        if left > 0 {
            return Err(ReadError::custom(format_args!("a list or map has {left} values too many")));
        }
        Ok(value)
    }
}

impl<'de> Deserializer<'de> for &mut MessagePackReader<'de> {
    type Error = ReadError;

    // The visitor of each of these types refuses all values of other types.
    forward_to_deserialize_any! {
        bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 char str string seq tuple tuple_struct map struct
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Text(value) => visitor.visit_borrowed_str(value),
            Head::Bytes(value) => visitor.visit_borrowed_bytes(value),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Nil | Head::List(0) => visitor.visit_unit(),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Nil => visitor.visit_unit(),
            Head::Bool(value) => visitor.visit_bool(value),
            Head::Unsigned(value) => visitor.visit_u64(value),
            Head::Signed(value) => visitor.visit_i64(value),
            Head::F32(value) => visitor.visit_f32(value),
            Head::F64(value) => visitor.visit_f64(value),
            Head::Text(value) => visitor.visit_borrowed_str(value),
            Head::Bytes(value) => visitor.visit_borrowed_bytes(value),
            Head::List(length) => self.nested(length, |items| visitor.visit_seq(items)),
            Head::Map(length) => self.nested(length, |items| visitor.visit_map(items)),
            other @ Head::Extension => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.rest.first() == Some(&0xc0) {
            self.skip()?;
            return visitor.visit_none();
        }
        self.nested(0, |items| visitor.visit_some(items.reader))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Text(variant) => visitor.visit_enum(variant.into_deserializer()),
            Head::Map(1) => self.nested(0, |items| visitor.visit_enum(Variant(items.reader))),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Text(name) => visitor.visit_borrowed_str(name),
            Head::Unsigned(number) => visitor.visit_u64(number),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.skip()?;
        visitor.visit_unit()
    }
}

/// The values of a list, or the keys and values of a map.
struct Items<'r, 'a> {
    reader: &'r mut MessagePackReader<'a>,
    left: &'r mut u32,
}

impl<'a> SeqAccess<'a> for Items<'_, 'a> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        if *self.left == 0 {
            return Ok(None);
        }
        *self.left -= 1;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(*self.left as usize)
    }
}

impl<'a> MapAccess<'a> for Items<'_, 'a> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(*self.left as usize)
    }
}

/// A variant of an enum, and its value.
struct Variant<'r, 'a>(&'r mut MessagePackReader<'a>);

impl<'a> EnumAccess<'a> for Variant<'_, 'a> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<(T::Value, Self), ReadError> {
        let variant = seed.deserialize(&mut *self.0)?;
        Ok((variant, self))
    }
}

impl<'a> VariantAccess<'a> for Variant<'_, 'a> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        serde::Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.0.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.0.deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

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

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Nothing,
        Newtype(i64),
        Tuple(u8, f32),
        Fields { name: String, of: Option<Box<Shape>> },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Unit;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Wrapped(u32);

    type Numbers = (u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct All {
        numbers: Vec<Numbers>,
        texts: BTreeMap<String, (bool, char, Option<u16>)>,
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
        shapes: Vec<Shape>,
        wrapped: Wrapped,
        unit: (Unit, ()),
        options: [Option<Option<i8>>; 2],
    }

    fn shape() -> impl Strategy<Value = Shape> {
        let leaf = prop_oneof![
            Just(Shape::Nothing),
            any::<i64>().prop_map(Shape::Newtype),
            any::<(u8, f32)>().prop_map(|(a, b)| Shape::Tuple(a, b)),
        ];
        leaf.prop_recursive(5, 20, 1, |inner| {
            let of = prop::option::of(inner.prop_map(Box::new));
            (any::<String>(), of).prop_map(|(name, of)| Shape::Fields { name, of })
        })
    }

    fn all() -> impl Strategy<Value = All> {
        let shapes = prop::collection::vec(shape(), 0..20);
        let texts = any::<BTreeMap<String, (bool, char, Option<u16>)>>();
        (any::<Vec<Numbers>>(), texts, any::<Vec<u8>>(), shapes, any::<(u32, Option<i8>)>()).prop_map(
            |(numbers, texts, bytes, shapes, (wrapped, option))| {
                let (wrapped, unit, options) = (Wrapped(wrapped), (Unit, ()), [None, option.map(Some)]);
                All { numbers, texts, bytes, shapes, wrapped, unit, options }
            },
        )
    }

    proptest! {
        #[test]
        fn values_are_read_as_they_were_written(value in all(), cut: prop::sample::Index) {
            let named = rmp_serde::to_vec_named(&value).expect("written");
            let unnamed = rmp_serde::to_vec(&value).expect("written");
            prop_assert_eq!(&from_msgpack::<All>(&named).expect("read"), &value);
            prop_assert_eq!(&from_msgpack::<All>(&unnamed).expect("read"), &value);
            // Fields that the reader does not know are skipped.
            prop_assert_eq!(from_msgpack::<BTreeMap<String, serde::de::IgnoredAny>>(&named).expect("read").len(), 7);
            prop_assert!(from_msgpack::<All>(&named[..cut.index(named.len())]).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = from_msgpack::<All>(&bytes);
            let _ = from_msgpack::<serde::de::IgnoredAny>(&bytes);
            let _ = from_msgpack::<Vec<Shape>>(&bytes);
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        let pack = |value: &dyn Fn() -> Result<Vec<u8>, rmp_serde::encode::Error>| value().expect("written");
        let (text, number) = (pack(&|| rmp_serde::to_vec("text")), pack(&|| rmp_serde::to_vec(&300)));
        let message = |error: ReadError| error.to_string();
        let error = from_msgpack::<u32>(&text).map_err(message);
        assert_eq!(error, Err("invalid type: string \"text\", expected u32".to_owned()));
        assert!(from_msgpack::<u8>(&number).is_err() && from_msgpack::<String>(&number).is_err());
        assert!(from_msgpack::<Shape>(&text).is_err() && from_msgpack::<[u8; 2]>(&[0x93, 1, 2, 3]).is_err());
        // An extension, a byte that has no meaning, and a text that is not UTF-8.
        assert!(from_msgpack::<u32>(&[0xd4, 1, 2]).is_err() && from_msgpack::<u32>(&[0xc1]).is_err());
        assert!(from_msgpack::<String>(&[0xa1, 0xff]).is_err());
        assert!(from_msgpack::<(serde::de::IgnoredAny, u8)>(&[0x92, 0xc7, 2, 0, 1, 2, 7]).is_ok());
    }

    #[test]
    fn nested_values_are_read_up_to_the_limit() {
        #[derive(Deserialize)]
        struct Lists(#[expect(dead_code, reason = "only read")] Vec<Lists>);
        let nested = |depth: usize| [vec![0x91; depth - 1], vec![0x90]].concat();
        assert!(from_msgpack::<Lists>(&nested(usize::from(NESTING_MAX))).is_ok());
        assert!(from_msgpack::<Lists>(&nested(usize::from(NESTING_MAX) + 1)).is_err());
        // Values that are skipped have no limit.
        assert!(from_msgpack::<serde::de::IgnoredAny>(&nested(100_000)).is_ok());
    }
}

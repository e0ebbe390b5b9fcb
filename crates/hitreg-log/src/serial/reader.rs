//! A deserializer of MessagePack.
//!
//! Each type needs only the calls of its own kind. A deserializer that tries all calls for each type compiles to three
//! times as much code.

#[cfg(test)]
mod tests;

use serde::Deserializer;
use serde::de::{
    DeserializeSeed, EnumAccess, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};

use super::{ReadError, value};

/// The most values within each other.
const MOST_NESTED: u8 = 128;

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
        MessagePackReader { rest: bytes, nests: MOST_NESTED }
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
        self.nests = nests.ok_or_else(|| ReadError::custom(format_args!("over {MOST_NESTED} values are nested")))?;
        let mut left = length;
        let value = read(Items { reader: self, left: &mut left })?;
        self.nests += 1;
        if left > 0 {
            return Err(ReadError::custom(format_args!("a list or map has {left} values too many")));
        }
        Ok(value)
    }

    fn number<V: Visitor<'a>>(&mut self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Unsigned(value) => visitor.visit_u64(value),
            Head::Signed(value) => visitor.visit_i64(value),
            Head::F32(value) => visitor.visit_f32(value),
            Head::F64(value) => visitor.visit_f64(value),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn text_or_bytes<V: Visitor<'a>>(&mut self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Text(value) => visitor.visit_borrowed_str(value),
            Head::Bytes(value) => visitor.visit_borrowed_bytes(value),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn unit<V: Visitor<'a>>(&mut self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Nil | Head::List(0) => visitor.visit_unit(),
            other => Err(other.unexpected(&visitor)),
        }
    }
}

/// Forwards calls to one method.
macro_rules! forward {
    ($to:ident: $($call:ident)*) => { $(
        fn $call<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ReadError> {
            self.$to(visitor)
        }
    )* };
}

impl<'a> Deserializer<'a> for &mut MessagePackReader<'a> {
    type Error = ReadError;

    forward!(number: deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_i8 deserialize_i16);
    forward!(number: deserialize_i32 deserialize_i64 deserialize_f32 deserialize_f64);
    forward!(text_or_bytes: deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf);
    forward!(unit: deserialize_unit);

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ReadError> {
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

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Bool(value) => visitor.visit_bool(value),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.rest.first() == Some(&0xc0) {
            self.skip()?;
            return visitor.visit_none();
        }
        self.nested(0, |items| visitor.visit_some(items.reader))
    }

    fn deserialize_unit_struct<V: Visitor<'a>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        self.unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::List(length) => self.nested(length, |items| visitor.visit_seq(items)),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Map(length) => self.nested(length, |items| visitor.visit_map(items)),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Map(length) => self.nested(length, |items| visitor.visit_map(items)),
            Head::List(length) => self.nested(length, |items| visitor.visit_seq(items)),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'a>>(
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

    fn deserialize_identifier<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.head()? {
            Head::Text(name) => visitor.visit_borrowed_str(name),
            Head::Unsigned(number) => visitor.visit_u64(number),
            other => Err(other.unexpected(&visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, ReadError> {
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

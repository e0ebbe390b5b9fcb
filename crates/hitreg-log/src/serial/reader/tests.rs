//! Values are written by `rmp-serde` and read here.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::serial::from_msgpack;

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
    assert!(from_msgpack::<Lists>(&nested(usize::from(MOST_NESTED))).is_ok());
    assert!(from_msgpack::<Lists>(&nested(usize::from(MOST_NESTED) + 1)).is_err());
    // Values that are skipped have no limit.
    assert!(from_msgpack::<serde::de::IgnoredAny>(&nested(100_000)).is_ok());
}

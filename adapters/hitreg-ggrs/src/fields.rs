//! Inputs and bodies as fields of a log.

use hitreg_log::record::{CellKind, FieldSchema, OwnValue, Scope};

/// A type whose members are fields of a log: an input, or the state of an entity. The macro [`fields!`](crate::fields!)
/// implements it for structs. Plain integers have one field, `input`.
pub trait Fields {
    /// Returns the declarations.
    fn fields() -> Vec<FieldSchema>;

    /// Returns the values, one for each field.
    fn values(&self) -> Vec<OwnValue>;

    /// Sets the members from values, one for each field.
    fn set(&mut self, values: &[OwnValue]);
}

/// A type that a field can hold. Texts are not supported.
pub trait FieldValue: Copy {
    /// The type of the field.
    const KIND: CellKind;

    /// Returns the value for the log.
    fn to_own(self) -> OwnValue;

    /// Returns the value from a log. A value of another type becomes 0.
    fn from_own(value: OwnValue) -> Self;
}

macro_rules! integers {
    ($($type:ty as $wide:ty, $kind:ident;)*) => { $(
        impl FieldValue for $type {
            const KIND: CellKind = CellKind::$kind;

            fn to_own(self) -> OwnValue {
                <$wide>::from(self).into()
            }

            fn from_own(value: OwnValue) -> $type {
                if let OwnValue::Number(number) = value { number as $type } else { 0 }
            }
        }

        impl Fields for $type {
            fn fields() -> Vec<FieldSchema> {
                vec![FieldSchema::new("input", Self::KIND, Scope::Movement)]
            }

            fn values(&self) -> Vec<OwnValue> {
                vec![self.to_own()]
            }

            fn set(&mut self, values: &[OwnValue]) {
                *self = values.first().map_or(0, |value| Self::from_own(*value));
            }
        }
    )* };
}
integers! {
    u8 as u32, U32;
    u16 as u32, U32;
    u32 as u32, U32;
    u64 as u64, U64;
    i8 as i32, I32;
    i16 as i32, I32;
    i32 as i32, I32;
    i64 as i64, I64;
}

macro_rules! others {
    ($($type:ty, $kind:ident, $value:pat => $from:expr;)*) => { $(
        impl FieldValue for $type {
            const KIND: CellKind = CellKind::$kind;

            fn to_own(self) -> OwnValue {
                self.into()
            }

            fn from_own(value: OwnValue) -> $type {
                if let $value = value { $from } else { <$type>::default() }
            }
        }
    )* };
}
others! {
    bool, Bool, OwnValue::Number(number) => number != 0;
    f32, F32, OwnValue::Float(float) => float;
    f64, F64, OwnValue::Double(double) => double;
}

/// Implements [`Fields`] for a struct, by the types of its members. A member that is not listed is not recorded.
///
/// A member may have a meaning and a name: [`Meaning`](hitreg_log::record::Meaning) says what hitreg's pages do with the
/// field, and some names have a meaning of their own, such as `origin.x`.
///
/// ```
/// #[derive(Clone, Copy, Default, PartialEq)]
/// struct Pad { thrust: i8, fire: bool }
/// hitreg_ggrs::fields!(Pad { thrust: i8, fire: bool });
///
/// #[derive(Default)]
/// struct Ship { x: f32, spin: f32 }
/// hitreg_ggrs::fields!(Ship { x: f32 as Position "origin.x", spin: f32 as Angle });
///
/// use hitreg_ggrs::Fields;
/// let mut copy = Ship::default();
/// copy.set(&Ship { x: 1.5, spin: 90.0 }.values());
/// assert_eq!((copy.x, copy.spin), (1.5, 90.0));
/// assert_eq!(Ship::fields()[0].name, "origin.x");
/// ```
#[macro_export]
macro_rules! fields {
    ($type:ty { $($member:ident: $kind:ty $(as $meaning:ident $($name:literal)?)?),* $(,)? }) => {
        impl $crate::Fields for $type {
            fn fields() -> Vec<$crate::hitreg_log::record::FieldSchema> {
                use $crate::hitreg_log::record::{FieldSchema, Scope};
                vec![$({
                    // The last name counts: the declared one, if there is one.
                    let names = [stringify!($member) $($(, $name)?)?];
                    FieldSchema::new(names[names.len() - 1], <$kind as $crate::FieldValue>::KIND, Scope::Movement)
                        $(.meaning($crate::hitreg_log::record::Meaning::$meaning))?
                }),*]
            }

            fn values(&self) -> Vec<$crate::hitreg_log::record::OwnValue> {
                vec![$($crate::FieldValue::to_own(self.$member)),*]
            }

            fn set(&mut self, values: &[$crate::hitreg_log::record::OwnValue]) {
                let mut values = values.iter();
                $(
                    if let Some(value) = values.next() {
                        self.$member = <$kind as $crate::FieldValue>::from_own(*value);
                    }
                )*
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Everything {
        a: u8,
        b: i16,
        c: u64,
        d: i64,
        e: f32,
        f: f64,
        g: bool,
    }
    fields!(Everything { a: u8, b: i16, c: u64, d: i64, e: f32 as Velocity, f: f64 as Position "origin.x", g: bool });

    #[test]
    fn values_return_to_their_members() {
        let all = Everything { a: 255, b: -1, c: u64::MAX, d: i64::MIN, e: -0.5, f: 0.1, g: true };
        let mut copy = Everything::default();
        copy.set(&all.values());
        assert_eq!(copy, all);
        let kinds: Vec<_> = Everything::fields().iter().map(|field| field.kind.name()).collect();
        assert_eq!(kinds, ["u32", "i32", "u64", "i64", "f32", "f64", "bool"]);
        assert_eq!((&*Everything::fields()[5].name, Everything::fields()[4].unit()), ("origin.x", "units/s"));
    }

    #[test]
    fn an_integer_is_an_input() {
        let mut input = 0u16;
        input.set(&513u16.values());
        assert_eq!((input, &*u16::fields()[0].name), (513, "input"));
        input.set(&[]);
        assert_eq!(input, 0);
    }
}

//! Values as 32-bit cells, from which bodies are built: numbers, glam's vectors, arrays, options, and a game's own
//! types composed of them ([`cells!`](macro@crate::game::cells)).

use glam::{DVec2, DVec3, EulerRot, Quat, Vec2, Vec3, Vec4};

use super::{BadCells, CellKind, FieldSchema, Meaning, Scope};

/// A declaration's `as` clause: a meaning, and a unit if it is not the usual one.
pub type CellMeaning = Option<(Meaning, Option<&'static str>)>;

/// A type that is stored in one or more cells.
pub trait Cells: Sized {
    /// The number of cells.
    const COUNT: usize;
    /// Describes the value as a field called `name`, or as several whose names begin with it, in the order of the cells.
    /// `said` overrides the type's own meaning.
    fn fields(name: &str, scope: Scope, said: CellMeaning) -> Vec<FieldSchema>;
    /// Writes exactly [`Cells::COUNT`] words.
    fn put(&self, cells: &mut [u32]);
    /// Reads exactly [`Cells::COUNT`] words; `Err` holds the invalid word.
    ///
    /// # Errors
    /// When a word is not a value of this type.
    fn get(cells: &[u32]) -> Result<Self, u32>;
}

/// Describes one field. Its meaning is `usual`, unless `said` overrides it.
pub fn field(name: &str, kind: CellKind, scope: Scope, said: CellMeaning, usual: Meaning) -> FieldSchema {
    let (meaning, unit) = said.unwrap_or((usual, None));
    let field = FieldSchema::new(name, kind, scope).meaning(meaning);
    match unit {
        Some(unit) => field.in_unit(unit),
        None => field,
    }
}

/// Writes a value to the first cells, and moves past them.
#[inline]
pub fn put_next<T: Cells>(value: &T, cells: &mut &mut [u32]) {
    let (own, rest) = std::mem::take(cells).split_at_mut(T::COUNT);
    value.put(own);
    *cells = rest;
}

/// Reads a field's value from the first cells, and moves past them.
///
/// # Errors
/// When a word is not a value of the field.
#[inline]
pub fn take_next<T: Cells>(field: &str, cells: &mut &[u32]) -> Result<T, BadCells> {
    let (own, rest) = cells.split_at(T::COUNT);
    *cells = rest;
    T::get(own).map_err(|found| BadCells { what: field.to_owned(), found })
}

macro_rules! one_cell {
    ($type:ty, $kind:ident, $meaning:ident, |$v:ident| $put:expr, |$w:ident| $get:expr) => {
        impl Cells for $type {
            const COUNT: usize = 1;
            fn fields(name: &str, scope: Scope, said: CellMeaning) -> Vec<FieldSchema> {
                vec![field(name, CellKind::$kind, scope, said, Meaning::$meaning)]
            }
            fn put(&self, cells: &mut [u32]) {
                let $v = *self;
                cells[0] = $put;
            }
            fn get(cells: &[u32]) -> Result<Self, u32> {
                let $w = cells[0];
                $get
            }
        }
    };
}

one_cell!(f32, F32, Plain, |v| v.to_bits(), |w| Ok(f32::from_bits(w)));
one_cell!(i32, I32, Plain, |v| v as u32, |w| Ok(w as i32));
one_cell!(i16, I32, Plain, |v| i32::from(v) as u32, |w| i16::try_from(w as i32).map_err(|_| w));
one_cell!(i8, I32, Plain, |v| i32::from(v) as u32, |w| i8::try_from(w as i32).map_err(|_| w));
one_cell!(u32, U32, Plain, |v| v, |w| Ok(w));
one_cell!(u16, U32, Plain, |v| u32::from(v), |w| u16::try_from(w).map_err(|_| w));
one_cell!(u8, U32, Plain, |v| u32::from(v), |w| u8::try_from(w).map_err(|_| w));
one_cell!(bool, U32, Flag, |v| u32::from(v), |w| match w {
    0 => Ok(false),
    1 => Ok(true),
    _ => Err(w),
});

macro_rules! two_cells {
    ($type:ty, $kind:ident, |$v:ident| $bits:expr, |$b:ident| $value:expr) => {
        /// One field of two cells: the low word, then the high word.
        impl Cells for $type {
            const COUNT: usize = 2;
            fn fields(name: &str, scope: Scope, said: CellMeaning) -> Vec<FieldSchema> {
                vec![field(name, CellKind::$kind, scope, said, Meaning::Plain)]
            }
            fn put(&self, cells: &mut [u32]) {
                let $v = *self;
                let bits: u64 = $bits;
                (cells[0], cells[1]) = (bits as u32, (bits >> 32) as u32);
            }
            fn get(cells: &[u32]) -> Result<Self, u32> {
                let $b = u64::from(cells[1]) << 32 | u64::from(cells[0]);
                Ok($value)
            }
        }
    };
}

two_cells!(u64, U64, |v| v, |b| b);
two_cells!(i64, I64, |v| v as u64, |b| b as i64);
two_cells!(f64, F64, |v| v.to_bits(), |b| f64::from_bits(b));

macro_rules! floats {
    ($type:ident of $float:ident: $($part:ident)+) => {
        impl Cells for $type {
            const COUNT: usize = [$(stringify!($part)),+].len() * $float::COUNT;
            fn fields(name: &str, scope: Scope, said: CellMeaning) -> Vec<FieldSchema> {
                let part = |part| $float::fields(&format!("{name}.{part}"), scope, said);
                [$(stringify!($part)),+].map(part).concat()
            }
            #[inline]
            fn put(&self, cells: &mut [u32]) {
                for (cells, value) in cells.chunks_exact_mut($float::COUNT).zip([$(self.$part),+]) {
                    value.put(cells);
                }
            }
            fn get(cells: &[u32]) -> Result<Self, u32> {
                let mut values = cells.chunks_exact($float::COUNT).map($float::get);
                $(let $part = values.next().unwrap_or(Ok(0.0))?;)+
                Ok($type::from_array([$($part),+]))
            }
        }
    };
}

floats!(Vec2 of f32: x y);
floats!(Vec3 of f32: x y z);
floats!(Vec4 of f32: x y z w);
floats!(Quat of f32: x y z w);
floats!(DVec2 of f64: x y);
floats!(DVec3 of f64: x y z);

/// The cells of the elements, named `name.0`, `name.1` and so on.
impl<T: Cells, const N: usize> Cells for [T; N] {
    const COUNT: usize = N * T::COUNT;
    fn fields(name: &str, scope: Scope, said: CellMeaning) -> Vec<FieldSchema> {
        (0..N).flat_map(|place| T::fields(&format!("{name}.{place}"), scope, said)).collect()
    }
    fn put(&self, cells: &mut [u32]) {
        for (place, value) in self.iter().enumerate() {
            value.put(&mut cells[place * T::COUNT..(place + 1) * T::COUNT]);
        }
    }
    fn get(cells: &[u32]) -> Result<Self, u32> {
        let value = |place| T::get(&cells[place * T::COUNT..(place + 1) * T::COUNT]);
        let values = (0..N).map(value).collect::<Result<Vec<T>, u32>>()?;
        values.try_into().map_err(|values: Vec<T>| values.len() as u32)
    }
}

/// A flag with the field's own name, which says whether the value is present, followed by the value's cells. Those
/// cells are 0 if the value is absent.
impl<T: Cells> Cells for Option<T> {
    const COUNT: usize = 1 + T::COUNT;
    fn fields(name: &str, scope: Scope, said: CellMeaning) -> Vec<FieldSchema> {
        let mut fields = bool::fields(name, scope, None);
        let values = T::fields(name, scope, said);
        // A value whose field has the flag's name gets the name `NAME.is`.
        let is_taken = values.iter().any(|field| field.name == name);
        fields.extend(if is_taken { T::fields(&format!("{name}.is"), scope, said) } else { values });
        fields
    }
    fn put(&self, cells: &mut [u32]) {
        cells.fill(0);
        if let Some(value) = self {
            cells[0] = 1;
            value.put(&mut cells[1..]);
        }
    }
    fn get(cells: &[u32]) -> Result<Self, u32> {
        Ok(if bool::get(&cells[..1])? { Some(T::get(&cells[1..])?) } else { None })
    }
}

/// A place, a velocity or an orientation, in two or three dimensions.
pub trait SpatialKind: Copy {
    /// Converts to three dimensions, without loss. A `Vec2` fills x and y. An orientation becomes pitch, yaw and roll in
    /// degrees.
    fn in_space(self) -> DVec3;
    /// Returns a value of this type from three dimensions; the inverse of [`SpatialKind::in_space`].
    #[must_use]
    fn moved_in_space(self, there: DVec3) -> Self;
}

impl SpatialKind for Vec3 {
    fn in_space(self) -> DVec3 {
        self.as_dvec3()
    }
    fn moved_in_space(self, there: DVec3) -> Vec3 {
        there.as_vec3()
    }
}

impl SpatialKind for Vec2 {
    fn in_space(self) -> DVec3 {
        self.as_dvec2().extend(0.0)
    }
    fn moved_in_space(self, there: DVec3) -> Vec2 {
        there.truncate().as_vec2()
    }
}

impl SpatialKind for DVec3 {
    fn in_space(self) -> DVec3 {
        self
    }
    fn moved_in_space(self, there: DVec3) -> DVec3 {
        there
    }
}

impl SpatialKind for DVec2 {
    fn in_space(self) -> DVec3 {
        self.extend(0.0)
    }
    fn moved_in_space(self, there: DVec3) -> DVec2 {
        there.truncate()
    }
}

/// An angle about the up axis, in degrees.
impl SpatialKind for f32 {
    fn in_space(self) -> DVec3 {
        DVec3::new(0.0, f64::from(self), 0.0)
    }
    fn moved_in_space(self, there: DVec3) -> f32 {
        there.y as f32
    }
}

/// A rotation from looking along x, with z up.
impl SpatialKind for Quat {
    fn in_space(self) -> DVec3 {
        let (yaw, pitch, roll) = self.to_euler(EulerRot::ZYX);
        Vec3::new(pitch.to_degrees(), yaw.to_degrees(), roll.to_degrees()).as_dvec3()
    }
    fn moved_in_space(self, there: DVec3) -> Quat {
        let there = there.as_vec3();
        Quat::from_euler(EulerRot::ZYX, there.y.to_radians(), there.x.to_radians(), there.z.to_radians())
    }
}

/// An absent value reads as zero and stays absent.
impl<T: SpatialKind> SpatialKind for Option<T> {
    fn in_space(self) -> DVec3 {
        self.map_or(DVec3::ZERO, T::in_space)
    }
    fn moved_in_space(self, there: DVec3) -> Option<T> {
        self.map(|place| place.moved_in_space(there))
    }
}

/// Declares a type that is stored in cells: a struct whose fields are `Cells`, or an enum without
/// data. The meaning after `as` says what a field measures, with a unit if it is not the usual one.
///
/// ```
/// use hitreg_netcode::game::{Cells, Scope, cells};
/// use hitreg_netcode::glam::Vec2;
///
/// cells! {
///     /// Keeps off what hits it, for a while.
///     pub struct Shield {
///         strength: u16,
///         until_ms: u32 as Time,
///         pushes: [Vec2; 2] as Velocity,
///     }
/// }
/// cells! {
///     /// What there is.
///     pub enum Kind { Ship, Rock }
/// }
/// let fields = Option::<Shield>::fields("shield", Scope::Status, None);
/// let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
/// assert_eq!(names[..4], ["shield", "shield.strength", "shield.until_ms", "shield.pushes.0.x"]);
/// assert_eq!((fields[2].unit(), fields[3].unit()), ("ms", "units/s"));
/// assert_eq!((Kind::get(&[1]), Kind::get(&[2])), (Ok(Kind::Rock), Err(2)));
/// ```
#[macro_export]
macro_rules! hitreg_cells {
    (
        $(#[$doc:meta])* $vis:vis struct $name:ident {
            $( $(#[$field_doc:meta])* $field_vis:vis $field:ident : $type:ty $(as $meaning:ident $(($unit:literal))?)? ),* $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        $vis struct $name {
            $( $(#[$field_doc])* $field_vis $field: $type, )*
        }

        impl $crate::game::Cells for $name {
            const COUNT: usize = 0 $( + <$type as $crate::game::Cells>::COUNT )*;
            fn fields(
                name: &str,
                scope: $crate::game::Scope,
                said: $crate::game::CellMeaning,
            ) -> Vec<$crate::game::FieldSchema> {
                let mut fields = Vec::with_capacity(Self::COUNT);
                $(
                    let own = $crate::hitreg_cells!(@said $($meaning $(($unit))?)?);
                    let part = format!("{name}.{}", stringify!($field));
                    fields.extend(<$type as $crate::game::Cells>::fields(&part, scope, own.or(said)));
                )*
                fields
            }
            fn put(&self, cells: &mut [u32]) {
                $(
                    let (own, cells) = cells.split_at_mut(<$type as $crate::game::Cells>::COUNT);
                    $crate::game::Cells::put(&self.$field, own);
                )*
                debug_assert!(cells.is_empty());
            }
            fn get(cells: &[u32]) -> Result<Self, u32> {
                $(
                    let (own, cells) = cells.split_at(<$type as $crate::game::Cells>::COUNT);
                    let $field = <$type as $crate::game::Cells>::get(own)?;
                )*
                debug_assert!(cells.is_empty());
                Ok($name { $( $field, )* })
            }
        }
    };
    (
        $(#[$doc:meta])* $vis:vis enum $name:ident {
            $(#[$first_doc:meta])* $first:ident $( , $(#[$variant_doc:meta])* $variant:ident )* $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis enum $name {
            $(#[$first_doc])* #[default] $first,
            $( $(#[$variant_doc])* $variant, )*
        }

        impl $crate::game::Cells for $name {
            const COUNT: usize = 1;
            fn fields(
                name: &str,
                scope: $crate::game::Scope,
                said: $crate::game::CellMeaning,
            ) -> Vec<$crate::game::FieldSchema> {
                let kind = $crate::game::CellKind::U32;
                vec![$crate::game::field(name, kind, scope, said, $crate::game::Meaning::Name)]
            }
            fn put(&self, cells: &mut [u32]) {
                cells[0] = *self as u32;
            }
            fn get(cells: &[u32]) -> Result<Self, u32> {
                [$name::$first $( , $name::$variant )*].get(cells[0] as usize).copied().ok_or(cells[0])
            }
        }
    };
    (@said) => { None };
    (@said $meaning:ident) => { Some(($crate::game::Meaning::$meaning, None)) };
    (@said $meaning:ident ($unit:literal)) => { Some(($crate::game::Meaning::$meaning, Some($unit))) };
}

pub use crate::hitreg_cells as cells;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{Body, body};

    fn names<T: Cells>() -> Vec<String> {
        T::fields("a", Scope::Status, None).into_iter().map(|field| field.name).collect()
    }

    fn comes_back<T: Cells + PartialEq + std::fmt::Debug>(value: T) {
        let mut cells = vec![7; T::COUNT];
        value.put(&mut cells);
        assert_eq!(T::get(&cells).as_ref(), Ok(&value), "{cells:?}");
        let fields = T::fields("a", Scope::Status, None);
        assert_eq!(fields.iter().map(|field| field.kind.cells()).sum::<usize>(), T::COUNT);
    }

    #[test]
    fn values_come_back_from_their_cells() {
        comes_back(u64::MAX - 5);
        comes_back(i64::MIN + 1);
        comes_back(-0.1_f64);
        comes_back([-3_i8, 4]);
        comes_back(DVec3::new(1e9 + 0.1, -0.0, 0.3));
        comes_back(Quat::from_xyzw(0.1, 0.2, 0.3, 0.9));
        comes_back([[Vec2::new(1.0, -2.0); 3]; 2]);
        comes_back([Some(3_u64), None]);
        comes_back(Some(Some(false)));
        assert_eq!(i16::get(&[40_000]), Err(40_000));
        assert_eq!(Option::<bool>::get(&[1, 2]), Err(2));
        assert_eq!(Option::<u8>::get(&[2, 0]), Err(2));
    }

    #[test]
    fn a_value_of_64_bits_is_one_field() {
        let kinds = |fields: Vec<FieldSchema>| fields.iter().map(|field| field.kind).collect::<Vec<_>>();
        let of = |fields: fn(&str, Scope, CellMeaning) -> Vec<FieldSchema>| kinds(fields("a", Scope::Status, None));
        assert_eq!([of(u64::fields), of(i64::fields)].concat(), [CellKind::U64, CellKind::I64]);
        assert_eq!(of(DVec2::fields), [CellKind::F64; 2]);
        let mut cells = [0; 2];
        (-0.1_f64).put(&mut cells);
        assert_eq!(CellKind::F64.number(&cells) as u64, (-0.1_f64).to_bits());
    }

    #[test]
    fn field_names_are_unique() {
        assert_eq!(names::<Option<u64>>(), ["a", "a.is"]);
        assert_eq!(names::<Option<DVec2>>(), ["a", "a.x", "a.y"]);
        assert_eq!(names::<[Option<u8>; 2]>(), ["a.0", "a.0.is", "a.1", "a.1.is"]);
        assert_eq!(names::<Option<Option<bool>>>(), ["a", "a.is", "a.is.is"]);
    }

    #[test]
    fn attributes_apply_to_values_and_not_to_presence_cells() {
        let fields = Option::<[f32; 2]>::fields("wait", Scope::Weapons, Some((Meaning::Time, Some("s"))));
        let units: Vec<_> = fields.iter().map(|field| (field.meaning, field.unit())).collect();
        assert_eq!(units, [(Meaning::Flag, ""), (Meaning::Time, "s"), (Meaning::Time, "s")]);
    }

    #[test]
    fn a_body_can_have_places_in_double_precision() {
        body! {
            struct Moon {
                Movement origin: DVec3,
                Movement velocity: Option<DVec2>,
            }
        }
        let moon = Moon { origin: DVec3::new(1e9 + 0.1, 0.0, 0.3), velocity: Some(DVec2::X) };
        assert_eq!((moon.position_f32(), moon.velocity()), (Vec3::new(1e9, 0.0, 0.3), Vec3::X));
        assert_eq!(moon.moved_to(moon.position()), moon);
        let moved = moon.moved_by(Vec3::X * 0.5);
        assert_eq!((moved.origin.x, moved.offset_from(&moon)), (1e9 + 0.6, Vec3::X * 0.5));
    }

    #[test]
    fn a_rotation_is_the_same_in_angles() {
        let turned = Quat::from_rotation_z(0.5) * Quat::from_rotation_y(-0.25);
        let angles = turned.in_space().as_vec3();
        assert!((angles - Vec3::new(-0.25_f32.to_degrees(), 0.5_f32.to_degrees(), 0.0)).length() < 1e-3, "{angles}");
        assert!(turned.moved_in_space(angles.as_dvec3()).dot(turned) > 0.999_99);
        assert_eq!(
            (45.0_f32.in_space(), Vec2::X.in_space(), None::<Vec2>.in_space()),
            (DVec3::new(0.0, 45.0, 0.0), DVec3::X, DVec3::ZERO)
        );
    }
}

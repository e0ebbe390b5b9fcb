//! A body is a row of named 32-bit cells. Logs store the cells, traces show them, diffs name them, and the state hash
//! runs over them, so that a game declares its fields once.

use glam::Vec3;

use super::{CellKind, Field, Meaning, Role};

/// Cells that are not a state of the game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {found} is not a value it can have")]
pub struct BadCells {
    /// What was being read.
    pub what: String,
    /// The word that it cannot be.
    pub found: u32,
}

/// One entity's state. Declare it with [`body!`](macro@crate::game::body); write it by hand only for what that cannot say.
pub trait Body: Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// How many cells it has.
    const CELLS: usize;
    /// Its cells' names and kinds, in order.
    fn fields() -> Vec<Field>;
    /// Writes the cells; `cells` has exactly [`Body::CELLS`] words.
    fn write(&self, cells: &mut [u32]);
    /// Reads the cells back; exact inverse of [`Body::write`].
    ///
    /// # Errors
    /// When there are not exactly [`Body::CELLS`] words, or one is no value of its field.
    fn read(cells: &[u32]) -> Result<Self, BadCells>;
    /// What a field means to the clients that it is sent to: where the live protocol has it, and how important it is. Server
    /// and client must have the same roles: they are part of the game's version.
    fn role(field: &Field) -> Role {
        Role::by_default(field)
    }
    /// Where it is, in units.
    fn origin(&self) -> Vec3;
    /// How it moves, in units/s.
    fn velocity(&self) -> Vec3;
    /// Where it looks, in degrees.
    fn viewangles(&self) -> Vec3;
    /// The same body at another place.
    fn moved_to(&self, origin: Vec3) -> Self;
    /// Changes whenever the body is put somewhere else at once (teleport, respawn); nothing is interpolated across.
    fn teleports(&self) -> u32;
    /// False for the dead; they are drawn, but cannot be hit.
    fn is_alive(&self) -> bool;
    /// What the server sends: [`Scope::ClientOnly`](crate::record::Scope::ClientOnly) fields take their default.
    fn strip_client_only(&mut self);
    /// Copies the [`Scope::ClientOnly`](crate::record::Scope::ClientOnly) fields from what the client predicted for the same command.
    fn adopt_client_only(&mut self, predicted: &Self);
}

/// A type that is stored in one or more cells.
pub trait Cells: Sized {
    /// How many.
    const COUNT: usize;
    /// Each cell's name suffix and kind.
    const PARTS: &'static [(&'static str, CellKind)];
    /// What cells of the type measure, unless their field says otherwise.
    const MEANING: Meaning = Meaning::Plain;
    /// Writes exactly [`Cells::COUNT`] words.
    fn put(&self, cells: &mut [u32]);
    /// Reads exactly [`Cells::COUNT`] words; `Err` holds the word that it cannot be.
    ///
    /// # Errors
    /// When a word is not a value of this type.
    fn get(cells: &[u32]) -> Result<Self, u32>;
}

macro_rules! one_cell {
    ($type:ty, $kind:ident $(as $meaning:ident)?, |$v:ident| $put:expr, |$w:ident| $get:expr) => {
        impl Cells for $type {
            const COUNT: usize = 1;
            const PARTS: &'static [(&'static str, CellKind)] = &[("", CellKind::$kind)];
            $(const MEANING: Meaning = Meaning::$meaning;)?
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

one_cell!(f32, F32, |v| v.to_bits(), |w| Ok(f32::from_bits(w)));
one_cell!(i32, I32, |v| v as u32, |w| Ok(w as i32));
one_cell!(u32, U32, |v| v, |w| Ok(w));
one_cell!(u16, U32, |v| u32::from(v), |w| u16::try_from(w).map_err(|_| w));
one_cell!(u8, U32, |v| u32::from(v), |w| u8::try_from(w).map_err(|_| w));
one_cell!(bool, U32 as Flag, |v| u32::from(v), |w| match w {
    0 => Ok(false),
    1 => Ok(true),
    _ => Err(w),
});

impl Cells for Vec3 {
    const COUNT: usize = 3;
    const PARTS: &'static [(&'static str, CellKind)] =
        &[(".x", CellKind::F32), (".y", CellKind::F32), (".z", CellKind::F32)];
    fn put(&self, cells: &mut [u32]) {
        cells[0] = self.x.to_bits();
        cells[1] = self.y.to_bits();
        cells[2] = self.z.to_bits();
    }
    fn get(cells: &[u32]) -> Result<Self, u32> {
        Ok(Vec3::new(f32::from_bits(cells[0]), f32::from_bits(cells[1]), f32::from_bits(cells[2])))
    }
}

/// Declares a struct whose fields are cells, with the parts of [`Body`] that follow from the list.
///
/// Each field says its [`Scope`](super::Scope). The struct must have `origin`, `velocity` and `viewangles` (`Vec3`),
/// `teleports` (`u32`) and `alive` (`bool`); what these mean is known. Other fields mean what their type does
/// ([`Cells::MEANING`]), or what stands behind `as`, with a unit where it is not the usual one. Behind the struct a game may name its own [`Body::role`]: `role = my_role;`.
///
/// ```
/// use glam::Vec3;
/// use hitreg::game::{Body, body};
///
/// body! {
///     /// A disc that glides.
///     pub struct Disc {
///         Movement origin: Vec3,
///         Movement velocity: Vec3,
///         Status viewangles: Vec3,
///         Status teleports: u32,
///         Status alive: bool,
///         Weapons refire_us: u32 as Time("us"),
///     }
/// }
/// assert_eq!(Disc::CELLS, 12);
/// assert_eq!((&*Disc::fields()[4].name, Disc::fields()[4].unit()), ("velocity.y", "units/s"));
/// assert_eq!(Disc::fields()[11].unit(), "us");
/// ```
#[macro_export]
macro_rules! hitreg_body {
    (
        $(#[$doc:meta])* $vis:vis struct $name:ident {
            $( $(#[$field_doc:meta])* $scope:ident $field:ident : $type:ty
                $(as $meaning:ident $(($unit:literal))?)? ),* $(,)?
        }
        $( role = $role:path; )?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        $vis struct $name {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        impl $crate::game::Body for $name {
            const CELLS: usize = 0 $( + <$type as $crate::game::Cells>::COUNT )*;

            fn fields() -> Vec<$crate::game::Field> {
                let mut fields = Vec::with_capacity(Self::CELLS);
                $(
                    let meaning = $crate::hitreg_body!(@meaning $field, $type $(, $meaning)?);
                    let unit = None::<&str> $($(.or(Some($unit)))?)?;
                    for (suffix, kind) in <$type as $crate::game::Cells>::PARTS {
                        let name = format!("{}{suffix}", stringify!($field));
                        let field = $crate::game::Field::new(name, *kind, $crate::game::Scope::$scope).meaning(meaning);
                        fields.push(match unit {
                            Some(unit) => field.in_unit(unit),
                            None => field,
                        });
                    }
                )*
                fields
            }

            $(
                fn role(field: &$crate::game::Field) -> $crate::game::Role {
                    $role(field)
                }
            )?

            fn write(&self, cells: &mut [u32]) {
                let mut at = 0;
                $(
                    let count = <$type as $crate::game::Cells>::COUNT;
                    <$type as $crate::game::Cells>::put(&self.$field, &mut cells[at..at + count]);
                    at += count;
                )*
                debug_assert_eq!(at, Self::CELLS);
            }

            fn read(cells: &[u32]) -> Result<Self, $crate::game::BadCells> {
                if cells.len() != Self::CELLS {
                    return Err($crate::game::BadCells {
                        what: concat!("the number of cells of ", stringify!($name)).to_owned(),
                        found: cells.len() as u32,
                    });
                }
                let mut at = 0;
                $(
                    let count = <$type as $crate::game::Cells>::COUNT;
                    let $field = <$type as $crate::game::Cells>::get(&cells[at..at + count]).map_err(|found| {
                        $crate::game::BadCells { what: stringify!($field).to_owned(), found }
                    })?;
                    at += count;
                )*
                debug_assert_eq!(at, Self::CELLS);
                Ok($name { $( $field, )* })
            }

            fn origin(&self) -> ::glam::Vec3 {
                self.origin
            }

            fn velocity(&self) -> ::glam::Vec3 {
                self.velocity
            }

            fn viewangles(&self) -> ::glam::Vec3 {
                self.viewangles
            }

            fn moved_to(&self, origin: ::glam::Vec3) -> Self {
                $name { origin, ..*self }
            }

            fn teleports(&self) -> u32 {
                self.teleports
            }

            fn is_alive(&self) -> bool {
                self.alive
            }

            fn strip_client_only(&mut self) {
                $( $crate::hitreg_body!(@when_client_only $scope, self.$field = Default::default()); )*
            }

            #[allow(unused_variables, reason = "not every body has fields that only clients know")]
            fn adopt_client_only(&mut self, predicted: &Self) {
                $( $crate::hitreg_body!(@when_client_only $scope, self.$field = predicted.$field); )*
            }
        }
    };
    (@meaning origin, $type:ty) => { $crate::game::Meaning::Position };
    (@meaning velocity, $type:ty) => { $crate::game::Meaning::Velocity };
    (@meaning viewangles, $type:ty) => { $crate::game::Meaning::Angle };
    (@meaning teleports, $type:ty) => { $crate::game::Meaning::Counter };
    (@meaning $field:ident, $type:ty) => { <$type as $crate::game::Cells>::MEANING };
    (@meaning $field:ident, $type:ty, $meaning:ident) => { $crate::game::Meaning::$meaning };
    (@when_client_only ClientOnly, $do:expr) => { $do };
    (@when_client_only $scope:ident, $do:expr) => {};
}

pub use crate::hitreg_body as body;

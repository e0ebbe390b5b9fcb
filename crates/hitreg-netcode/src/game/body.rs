//! A body is a row of named 32-bit cells. Logs store the cells, traces show them, diffs name them, and the state hash
//! runs over them, so that a game declares its fields once.

use glam::Vec3;

use super::{Field, Role};

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
    /// The engine's own number for it, which no other entity has; 0 where it has none, and for nobody.
    fn id(&self) -> u64 {
        0
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
    /// What the server sends: [`Scope::ClientOnly`](hitreg_log::record::Scope::ClientOnly) fields take their default.
    fn strip_client_only(&mut self);
    /// Copies the [`Scope::ClientOnly`](hitreg_log::record::Scope::ClientOnly) fields from what the client predicted for the same command.
    fn adopt_client_only(&mut self, predicted: &Self);
}

/// Declares a struct whose fields are [`Cells`](crate::game::Cells), with the parts of [`Body`] that follow from the list.
///
/// Each field says its [`Scope`](super::Scope). What these fields mean is known; those that a body lacks are as nothing:
///
/// | field | type | is |
/// | --- | --- | --- |
/// | `origin`, `velocity` | `Vec3`, on a plane `Vec2`; in an `Option` where it may have none | [`Body::origin`], [`Body::velocity`] |
/// | `viewangles` | `Vec3` in degrees, `f32` (yaw), `Quat` (z up); in an `Option` | [`Body::viewangles`] |
/// | `teleports` | `u32` | [`Body::teleports`] |
/// | `alive` | `bool` | [`Body::is_alive`]; what lacks it is alive |
/// | `id` | `u64` | [`Body::id`]: another one is another entity, and 0 is not alive |
///
/// Other fields mean what their type does, or what stands behind `as`, with a unit where it is not the usual one. Behind the struct a
/// game may name its own [`Body::role`]: `role = my_role;`.
///
/// ```
/// use hitreg_netcode::game::{Body, body};
/// use hitreg::glam::{Vec2, Vec3};
///
/// body! {
///     /// A disc that glides.
///     pub struct Disc {
///         Movement origin: Vec3,
///         Movement velocity: Vec3,
///         Status alive: bool,
///         Weapons refire_us: u32 as Time("us"),
///     }
/// }
/// assert_eq!(Disc::CELLS, 8);
/// assert_eq!((&*Disc::fields()[4].name, Disc::fields()[4].unit()), ("velocity.y", "units/s"));
/// assert_eq!(Disc::fields()[7].unit(), "us");
///
/// body! {
///     /// A bird's eye view of what may carry something.
///     pub struct Ant {
///         Status id: u64,
///         Movement origin: Vec2,
///         Status load: Option<f32>,
///     }
/// }
/// let ant = Ant { id: 1 << 40, origin: Vec2::X, load: None };
/// assert_eq!((ant.origin(), ant.velocity(), ant.is_alive()), (Vec3::X, Vec3::ZERO, true));
/// assert_ne!(ant.teleports(), Ant { id: 2 << 40, ..ant }.teleports());
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
                    let said = $crate::hitreg_body!(@said $field $(, $meaning $(($unit))?)?);
                    let (name, scope) = (stringify!($field), $crate::game::Scope::$scope);
                    fields.extend(<$type as $crate::game::Cells>::fields(name, scope, said));
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

            fn id(&self) -> u64 {
                0 $( + $crate::hitreg_body!(@only id, $field, self.$field, 0) )*
            }

            #[inline]
            fn origin(&self) -> $crate::glam::Vec3 {
                None::<$crate::glam::Vec3>
                    $( .or($crate::hitreg_body!(@place origin, $field, self.$field)) )*
                    .unwrap_or_default()
            }

            #[inline]
            fn velocity(&self) -> $crate::glam::Vec3 {
                None::<$crate::glam::Vec3>
                    $( .or($crate::hitreg_body!(@place velocity, $field, self.$field)) )*
                    .unwrap_or_default()
            }

            #[inline]
            fn viewangles(&self) -> $crate::glam::Vec3 {
                None::<$crate::glam::Vec3>
                    $( .or($crate::hitreg_body!(@place viewangles, $field, self.$field)) )*
                    .unwrap_or_default()
            }

            #[inline]
            #[allow(unused_variables, unused_mut, reason = "not every body is in a place")]
            fn moved_to(&self, origin: $crate::glam::Vec3) -> Self {
                let mut moved = *self;
                $( $crate::hitreg_body!(@move $field, moved.$field, origin); )*
                moved
            }

            #[inline]
            fn teleports(&self) -> u32 {
                // Another entity is elsewhere.
                let entity = (self.id().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
                entity $( .wrapping_add($crate::hitreg_body!(@only teleports, $field, self.$field, 0)) )*
            }

            #[inline]
            fn is_alive(&self) -> bool {
                true $( && $crate::hitreg_body!(@only alive, $field, self.$field, true) )*
                    $( && $crate::hitreg_body!(@only id, $field, self.$field != 0, true) )*
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
    (@said $field:ident, $meaning:ident) => { Some(($crate::game::Meaning::$meaning, None)) };
    (@said $field:ident, $meaning:ident ($unit:literal)) => { Some(($crate::game::Meaning::$meaning, Some($unit))) };
    (@said origin) => { Some(($crate::game::Meaning::Position, None)) };
    (@said velocity) => { Some(($crate::game::Meaning::Velocity, None)) };
    (@said viewangles) => { Some(($crate::game::Meaning::Angle, None)) };
    (@said teleports) => { Some(($crate::game::Meaning::Counter, None)) };
    (@said id) => { Some(($crate::game::Meaning::Name, None)) };
    (@said $field:ident) => { None };
    (@only id, id, $value:expr, $else:expr) => { $value };
    (@only teleports, teleports, $value:expr, $else:expr) => { $value };
    (@only alive, alive, $value:expr, $else:expr) => { $value };
    (@only $known:ident, $field:ident, $value:expr, $else:expr) => { $else };
    (@place origin, origin, $value:expr) => { Some($crate::game::Spatial::in_space($value)) };
    (@place velocity, velocity, $value:expr) => { Some($crate::game::Spatial::in_space($value)) };
    (@place viewangles, viewangles, $value:expr) => { Some($crate::game::Spatial::in_space($value)) };
    (@place $known:ident, $field:ident, $value:expr) => { None };
    (@move origin, $value:expr, $to:expr) => { $value = $crate::game::Spatial::put_there($value, $to) };
    (@move $field:ident, $value:expr, $to:expr) => {};
    (@when_client_only ClientOnly, $do:expr) => { $do };
    (@when_client_only $scope:ident, $do:expr) => {};
}

pub use crate::hitreg_body as body;

//! Enums whose variants have names in files and on command lines.

/// The error for a name that no variant has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is called `{0}`")]
pub struct UnknownName(pub String);

/// Declares an enum with the name of each variant, and gives it `NAMES`, `ALL`, `name()` and `FromStr`. Files store a
/// variant as its index in `NAMES`.
///
/// The short form, without `enum`, names the variants of an enum that another macro declares.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $type:ident { $( $(#[$variant_meta:meta])* $variant:ident = $name:literal ),+ $(,)? }
    ) => {
        $(#[$meta])*
        $vis enum $type { $( $(#[$variant_meta])* $variant, )+ }

        $crate::named!($type { $($variant = $name),+ });
    };
    ($type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// Names of the variants, in declaration order.
            pub const NAMES: &[&str] = &[$($name),+];
            /// All variants, in declaration order.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            /// Returns the name in files, in reports and on command lines.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }

        const _: () = {
            let mut place = 0;
            while place < $type::ALL.len() {
                assert!($type::ALL[place] as usize == place, "names stand in the order of the variants");
                place += 1;
            }
        };

        impl std::str::FromStr for $type {
            type Err = $crate::units::UnknownName;

            fn from_str(name: &str) -> Result<$type, $crate::units::UnknownName> {
                match name {
                    $($name => Ok($type::$variant),)+
                    _ => Err($crate::units::UnknownName(name.to_owned())),
                }
            }
        }
    };
}

//! The names of variants, as files and command lines have them, listed once.

/// A name that nothing has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is called `{0}`")]
pub struct UnknownName(pub String);

/// Gives an enum's variants their names: `NAMES`, `ALL`, `Into<&'static str>` and `FromStr`. They are listed in the order of the
/// variants, because a variant's number is its place among the names in files.
#[macro_export]
macro_rules! named {
    ($type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// The names of the variants, in their order.
            pub const NAMES: &[&str] = &[$($name),+];
            /// All variants, in their order.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];
        }

        const _: () = {
            let mut place = 0;
            while place < $type::ALL.len() {
                assert!($type::ALL[place] as usize == place, "names stand in the order of the variants");
                place += 1;
            }
        };

        impl From<$type> for &'static str {
            fn from(value: $type) -> &'static str {
                match value {
                    $($type::$variant => $name,)+
                }
            }
        }

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

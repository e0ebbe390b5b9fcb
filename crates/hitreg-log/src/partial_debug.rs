//! `Debug` for types of which some fields have none.

/// Implements `Debug` for a type, and shows only the listed fields. Type parameters are declared in brackets, as in
/// `partial_debug!([R] LogReader<R> { header })`.
#[macro_export]
#[doc(hidden)]
macro_rules! partial_debug {
    ([$($generics:tt)*] $type:ident $(<$($argument:tt),+>)? { $($field:ident),* }) => {
        impl<$($generics)*> std::fmt::Debug for $type $(<$($argument),+>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))$(.field(stringify!($field), &self.$field))*.finish_non_exhaustive()
            }
        }
    };
    ($type:ident $($rest:tt)*) => { $crate::partial_debug!([] $type $($rest)*); };
}

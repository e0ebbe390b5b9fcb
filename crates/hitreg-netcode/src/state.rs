//! Serialisation of pipeline state, so that a replay can start from a keyframe.
//!
//! A state lists its fields once, with `value!`, `variants!` or `state!`; a missing field is a compile error. Bodies,
//! frames, usercmds and effects are stored once and referenced by index ([`SharedValues`]). The log's own records near
//! the keyframe come first, so that a state only refers to them.

mod known;
mod reader;
mod shared;
mod values;
mod writer;

pub(crate) use known::{KnownRecords, KnownSnapshot};
pub use reader::{StateError, StateReader};
pub use shared::SharedValues;
pub use writer::StateWriter;

/// A value that can be restored from bytes alone.
pub trait StateValue: Sized {
    /// Writes the value.
    fn put(&self, to: &mut StateWriter);
    /// Reads the value.
    ///
    /// # Errors
    /// When the bytes are not a valid value.
    fn get(from: &mut StateReader) -> Result<Self, StateError>;
}

/// State that is restored in place, because parts of it follow from the settings and are not saved.
pub(crate) trait State {
    fn save(&self, to: &mut StateWriter);
    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError>;
}

impl<T: StateValue> State for T {
    fn save(&self, to: &mut StateWriter) {
        self.put(to);
    }

    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError> {
        *self = T::get(from)?;
        Ok(())
    }
}

/// Implements [`State`] for a structure from the names of its saved fields, and of the fields that are not saved.
/// `if` names a check of the restored state.
macro_rules! state {
    ($type:ident $(<$b:ident: $bound:ident>)? { $($field:ident),* $(,)? } but { $($kept:ident),* $(,)? } $(if $check:ident)?) => {
        impl $(<$b: $bound>)? $crate::state::State for $type $(<$b>)? {
            fn save(&self, to: &mut $crate::state::StateWriter) {
                let $type { $($field,)* $($kept: _,)* } = self;
                $( $crate::state::State::save($field, to); )*
            }

            fn restore(&mut self, from: &mut $crate::state::StateReader) -> Result<(), $crate::state::StateError> {
                $( $crate::state::State::restore(&mut self.$field, from)?; )*
                $( $crate::state::check(self.$check(), stringify!($type))?; )?
                Ok(())
            }
        }
    };
}
pub(crate) use state;

/// Implements [`StateValue`] for a structure from the names of all its fields. `if` names a check of the read value.
macro_rules! value {
    ($type:ident $(<$b:ident: $bound:ident>)? { $($field:ident),* $(,)? } $(if $check:ident)?) => {
        impl $(<$b: $bound>)? $crate::state::StateValue for $type $(<$b>)? {
            fn put(&self, to: &mut $crate::state::StateWriter) {
                let $type { $($field,)* } = self;
                $( $crate::state::StateValue::put($field, to); )*
            }

            fn get(from: &mut $crate::state::StateReader) -> Result<Self, $crate::state::StateError> {
                let value = $type { $($field: $crate::state::StateValue::get(from)?,)* };
                $( $crate::state::check(value.$check(), stringify!($type))?; )?
                Ok(value)
            }
        }
    };
}
pub(crate) use value;

/// Implements [`StateValue`] for an enumeration from the codes, names and fields of all its variants.
macro_rules! variants {
    ($type:ident $(<$b:ident: $bound:ident>)? {
        $($code:literal => $variant:ident $(($($item:ident),*))? $({ $($field:ident),* })?,)*
    }) => {
        impl $(<$b: $bound>)? $crate::state::StateValue for $type $(<$b>)? {
            fn put(&self, to: &mut $crate::state::StateWriter) {
                match self {
                    $( $type::$variant $(($($item),*))? $({ $($field),* })? => {
                        <u8 as $crate::state::StateValue>::put(&$code, to);
                        $( $( $crate::state::StateValue::put($item, to); )* )?
                        $( $( $crate::state::StateValue::put($field, to); )* )?
                    } )*
                }
            }

            fn get(from: &mut $crate::state::StateReader) -> Result<Self, $crate::state::StateError> {
                match <u8 as $crate::state::StateValue>::get(from)? {
                    $( $code => {
                        $( $( let $item = $crate::state::StateValue::get(from)?; )* )?
                        $( $( let $field = $crate::state::StateValue::get(from)?; )* )?
                        Ok($type::$variant $(($($item),*))? $({ $($field),* })?)
                    } )*
                    _ => Err($crate::state::StateError::Invalid(stringify!($type))),
                }
            }
        }
    };
}
pub(crate) use variants;

/// Returns an error for a `what` that is not valid.
pub(crate) fn check(is_valid: bool, what: &'static str) -> Result<(), StateError> {
    if is_valid { Ok(()) } else { Err(StateError::Invalid(what)) }
}

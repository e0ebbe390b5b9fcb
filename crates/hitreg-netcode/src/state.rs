//! Serialisation of pipeline state, so that a replay can start from a keyframe.
//!
//! `fields!` destructures a structure completely, so that a missing field is a compile error. Sent frames and usercmds
//! that the log holds near the keyframe are stored as references ([`KnownFrames`]).

mod known;
mod restorer;
mod saver;
mod values;

pub use known::KnownFrames;
pub(crate) use known::KnownSnapshot;
pub use restorer::{Restorer, StateError};
pub(crate) use saver::DeltaKind;
pub use saver::StateWriter;

/// A value that can be restored from bytes alone.
pub trait StateValue<B>: Sized {
    /// Writes the value.
    fn put(&self, to: &mut StateWriter<'_, B>);
    /// Reads the value.
    ///
    /// # Errors
    /// When the bytes are not a valid value.
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError>;
}

/// Implements `save` and `restore` for a structure. The arguments are fields that are values, fields that are restored
/// in place, and fields that follow from the settings and are not saved.
macro_rules! fields {
    ($body:ty, $type:ident { $($field:ident),* $(,)? } in place { $($part:ident),* $(,)? } but { $($kept:ident),* $(,)? }) => {
        pub(crate) fn save(&self, to: &mut $crate::state::StateWriter<'_, $body>) {
            let $type { $($field,)* $($part,)* $($kept: _,)* } = self;
            $( $crate::state::StateValue::<$body>::put($field, to); )*
            $( $part.save(to); )*
        }

        pub(crate) fn restore(
            &mut self,
            from: &mut $crate::state::Restorer<'_, $body>,
        ) -> Result<(), $crate::state::StateError> {
            let $type { $($field,)* $($part,)* $($kept: _,)* } = self;
            $( *$field = $crate::state::StateValue::<$body>::get(from)?; )*
            $( $part.restore(from)?; )*
            Ok(())
        }
    };
}
pub(crate) use fields;

/// Implements [`StateValue`] for a structure from the names of all its fields.
macro_rules! value {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl<B: $crate::game::Body> $crate::state::StateValue<B> for $type {
            fn put(&self, to: &mut $crate::state::StateWriter<'_, B>) {
                let $type { $($field,)* } = self;
                $( $crate::state::StateValue::<B>::put($field, to); )*
            }
            fn get(from: &mut $crate::state::Restorer<'_, B>) -> Result<Self, $crate::state::StateError> {
                Ok($type { $($field: $crate::state::StateValue::<B>::get(from)?,)* })
            }
        }
    };
}
pub(crate) use value;

//! The state of pipelines as bytes, and back, so that a replay can begin where another one was.
//!
//! `fields!` takes a structure apart by all its fields, so that one that is left out is an error of the
//! compiler. What a log says anyway near such a moment stands as a reference to it ([`Known`]): frames that were sent, and usercmds.

mod known;
mod restorer;
mod saver;
mod values;

pub use known::Known;
pub use restorer::{BadState, Restorer};
pub use saver::Saver;

/// A value that can be made from bytes alone.
pub trait Value<B>: Sized {
    /// Writes it.
    fn put(&self, to: &mut Saver<'_, B>);
    /// Reads it back.
    ///
    /// # Errors
    /// When the bytes are none of such a value.
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, BadState>;
}

/// Makes `save` and `restore` of a structure from the names of its fields: values, then structures that are restored in place, and
/// what is as the settings have it.
macro_rules! fields {
    ($body:ty, $type:ident { $($field:ident),* $(,)? } in place { $($part:ident),* $(,)? } but { $($kept:ident),* $(,)? }) => {
        pub(crate) fn save(&self, to: &mut $crate::state::Saver<'_, $body>) {
            let $type { $($field,)* $($part,)* $($kept: _,)* } = self;
            $( $crate::state::Value::<$body>::put($field, to); )*
            $( $part.save(to); )*
        }

        pub(crate) fn restore(
            &mut self,
            from: &mut $crate::state::Restorer<'_, $body>,
        ) -> Result<(), $crate::state::BadState> {
            let $type { $($field,)* $($part,)* $($kept: _,)* } = self;
            $( *$field = $crate::state::Value::<$body>::get(from)?; )*
            $( $part.restore(from)?; )*
            Ok(())
        }
    };
}
pub(crate) use fields;

/// Makes a [`Value`] of a structure from the names of all its fields.
macro_rules! value {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl<B: $crate::game::Body> $crate::state::Value<B> for $type {
            fn put(&self, to: &mut $crate::state::Saver<'_, B>) {
                let $type { $($field,)* } = self;
                $( $crate::state::Value::<B>::put($field, to); )*
            }
            fn get(from: &mut $crate::state::Restorer<'_, B>) -> Result<Self, $crate::state::BadState> {
                Ok($type { $($field: $crate::state::Value::<B>::get(from)?,)* })
            }
        }
    };
}
pub(crate) use value;

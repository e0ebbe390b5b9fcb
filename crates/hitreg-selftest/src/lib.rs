//! hitreg measures itself: [`claims`] of the founding documents on the real pipelines, and a [`soak`] test.

pub mod claims;
pub mod soak;

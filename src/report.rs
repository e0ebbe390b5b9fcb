//! Results as people and CI read them: text of at most 80 columns, and JUnit. Nothing here prints; the results
//! themselves serialize to JSON.

mod bisect_text;
mod diff_junit;
mod diff_text;
mod divergence_text;
mod follow_text;
mod hits_text;
mod side_by_side;
mod text;

pub use bisect_text::bisect_text;
pub use diff_junit::diff_junit;
pub use diff_text::{diff_line, diff_text};

//! Results for people and CI: a model of a page, its text of at most 80 columns, and JUnit reports. Nothing here
//! prints. The results themselves serialize to JSON.

mod bisect;
mod corpus;
mod diff;
mod diff_answer;
mod diff_junit;
mod divergence;
pub mod figures;
mod follow;
mod histogram;
mod hits;
pub mod layout;
mod markdown;
pub mod page;
pub mod printable;
mod side_by_side;
mod sweep;
mod text_diff;
mod why;
mod why_correction;
mod why_scene;
mod why_shot;

pub use bisect::bisect_page;
pub(crate) use corpus::{GROUP_COLUMNS, cause_cells, corpus_subject, group_cells};
pub use corpus::{builds_page, corpus_page, print_problems, print_thresholds, verdict_line};
pub use diff::{diff_line, diff_page};
pub use diff_answer::diff_answer;
pub use diff_junit::diff_junit;
pub(crate) use divergence::divergence_place;
pub use histogram::{distributions, round_trips};
pub use hits::{on_screen, verdict};
pub use page::Page;
pub use sweep::sweep_page;
pub use why::{why_answer, why_page, why_svg};
pub(crate) use why_correction::correction_answer;
pub(crate) use why_shot::shot_answer;

/// The line that says how counts of hits were made.
pub fn what_if_line(what_if: hitreg_log::record::WhatIf) -> String {
    format!("{} (--what-if {}; docs/what-if.md).", what_if.meaning(), what_if.name())
}

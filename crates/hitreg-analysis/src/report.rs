//! Results for people and CI: a model of a page, its text of at most 80 columns, and JUnit reports. Nothing here
//! prints. The results themselves serialize to JSON.

mod corpus;
mod diff;
mod divergence;
pub mod figures;
mod hits;
pub mod layout;
pub mod page;
mod sweep;
mod why;
mod why_scene;

pub(crate) use corpus::{GROUP_COLUMNS, cause_cells, copies_note, corpus_subject, group_cells};
pub use corpus::{builds_page, corpus_page, print_problems, print_thresholds, verdict_line};
pub use diff::{diff_answer, diff_junit, diff_line, diff_page};
pub use divergence::bisect_page;
pub(crate) use divergence::divergence_place;
pub use figures::{distributions, round_trips};
pub use hits::{on_screen, verdict};
pub use page::Page;
pub use sweep::sweep_page;
pub(crate) use why::{ShotWords, correction_answer, evidence_in_words, shot_answer};
pub use why::{why_answer, why_page, why_svg};

/// The line that says how counts of hits were made.
pub fn what_if_line(what_if: hitreg_log::record::WhatIf) -> String {
    format!("{} (--what-if {}; docs/what-if.md).", what_if.meaning(), what_if.name())
}

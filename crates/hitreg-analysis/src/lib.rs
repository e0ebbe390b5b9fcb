//! Analyses of traces: [`mod@diff`], [`why`], [`golden`], [`summary`], [`fairness`] and [`bisect`]. Results are shown
//! by [`report`] as text, by [`page`] as HTML and by [`perfetto`]; [`row_text`] writes the rows themselves.
//!
//! Every result comes from the tables of a trace. This crate runs no game and opens no file.

pub mod bisect;
pub mod corpus;
pub mod diff;
pub mod drawing;
pub mod fairness;
pub mod golden;
pub mod page;
pub mod perfetto;
pub mod report;
mod round_trips;
pub mod row_text;
pub mod summary;
pub mod swept;
pub mod text_diff;
pub mod why;

/// The program in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

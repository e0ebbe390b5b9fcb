//! What one asks of traces: [`mod@diff`], [`why`], [`golden`], [`summary`], [`fairness`], [`bisect`]; and how answers are shown:
//! [`report`] as text, [`page`] as HTML, [`perfetto`] and, with the feature `parquet`, `parquet_file`.
//!
//! Every answer is read from the tables of a trace. This crate runs no game and opens no file.

pub mod bisect;
pub mod diff;
pub mod drawing;
pub mod fairness;
pub mod golden;
pub mod page;
#[cfg(feature = "parquet")]
pub mod parquet_file;
pub mod perfetto;
pub mod report;
pub mod summary;
pub mod swept;
pub mod text_diff;
pub mod why;

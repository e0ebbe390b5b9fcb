//! Results of a corpus: rows of `verify` and `diff` over many logs, their summary, and thresholds for it.
//!
//! Rows are lines of JSON, and rows of several runs concatenate. [`CorpusSummary`] has the figures of any set of rows.

mod band;
mod command;
mod rows;
mod side;
mod summary;
mod threshold;
mod weapon_change;

pub use band::LatencyBand;
pub use command::{NO_CACHE, THIS_BUILD, command_line};
pub use rows::{
    CauseRow, LogRow, RESULTS_VERSION, ResultRow, ShotRow, WeaponRow, name_of, read_row, sample_rows, write_row,
};
pub(crate) use side::paired;
pub use side::{SideFigures, compared_rows};
pub use summary::{
    CorpusSummary, CorpusSummaryBuilder, CorrectionCause, ShotGroup, SideCounts, UnjudgedLog, VerdictCounts,
    ViewErrors, WorstLog,
};
pub use threshold::{MeasuredFigures, Threshold, ThresholdFigure, ThresholdResult};
pub(crate) use weapon_change::LEAST_CHANGED_LOGS;
pub use weapon_change::WeaponChange;

//! Options that select what a comparison covers, and its tolerances.

use crate::diff::{DiffOptions, DiffScope, Tolerance};

/// What counts as a difference.
#[derive(clap::Args)]
#[command(next_help_heading = "What counts")]
pub(in crate::cli) struct CompareArgs {
    /// Look at one side of the game alone: state, hits, corrections, views, or any
    #[arg(long, value_name = "WHAT", value_parser = parse_on, default_value = "any")]
    on: DiffScope,
    /// Take numbers of a column as the same that are this close; may be given more than once
    #[arg(long, value_name = "COLUMN=NUMBER")]
    tolerance: Vec<Tolerance>,
    /// Compare only the tables, columns and rows that both have, as for a build that writes some of them
    #[arg(long)]
    overlap: bool,
}

impl CompareArgs {
    pub(in crate::cli) fn options(&self) -> DiffOptions {
        DiffOptions {
            tolerances: self.tolerance.iter().cloned().collect(),
            on: self.on,
            overlap_only: self.overlap,
            ..DiffOptions::default()
        }
    }

    /// A phrase for the compared difference, such as `state differs`; `from` and the other side follow.
    pub(in crate::cli) fn meaning(&self) -> String {
        let what = match self.on {
            DiffScope::Any => "trace differs",
            DiffScope::State => "state differs",
            DiffScope::Hits => "hits differ",
            DiffScope::Corrections => "corrections differ",
            DiffScope::Views => "views differ",
            DiffScope::Network => "what went over the network differs",
        };
        let beyond = if self.tolerance.is_empty() { "" } else { ", beyond the tolerances," };
        format!("its {what}{beyond}")
    }

    /// The value of `--on`.
    pub(in crate::cli) fn on_name(&self) -> &'static str {
        self.on.into()
    }

    /// A text of these options that distinguishes one search from another.
    pub(in crate::cli) fn words(&self) -> String {
        format!("{:?} {:?} {}", self.on, self.tolerance, self.overlap)
    }
}

fn parse_on(text: &str) -> Result<DiffScope, String> {
    text.parse().map_err(|_| format!("it should be one of {}", DiffScope::NAMES.join(", ")))
}

//! Options that select what a comparison covers, and its tolerances.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::diff::{DiffOptions, DiffScope, Tolerance};

/// What counts as a difference.
#[derive(clap::Args)]
#[command(next_help_heading = "Comparison")]
pub(in crate::cli) struct CompareArgs {
    /// Compare only this aspect: any, state, hits, corrections, views or network
    #[arg(long, value_name = "WHAT", value_parser = scope(), hide_possible_values = true, default_value = "any")]
    on: DiffScope,
    /// Treat two numbers of a column as equal if they differ by at most NUMBER; repeatable
    #[arg(long, value_name = "COLUMN=NUMBER")]
    tolerance: Vec<Tolerance>,
    /// Compare only tables, columns and rows that both sides have, for builds that write partial traces
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
            DiffScope::Network => "network traffic differs",
        };
        let beyond = if self.tolerance.is_empty() { "" } else { ", beyond the tolerances," };
        format!("its {what}{beyond}")
    }

    /// The value of `--on`.
    pub(in crate::cli) fn on_name(&self) -> &'static str {
        self.on.name()
    }

    /// These options, as on the command line.
    pub(in crate::cli) fn typed_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.on != DiffScope::Any {
            words.extend(["--on".to_owned(), self.on_name().to_owned()]);
        }
        for Tolerance { column, within } in &self.tolerance {
            words.extend(["--tolerance".to_owned(), format!("{column}={within}")]);
        }
        words.extend(self.overlap.then(|| "--overlap".to_owned()));
        words
    }

    /// A text of these options that distinguishes one search from another.
    pub(in crate::cli) fn words(&self) -> String {
        format!("{:?} {:?} {}", self.on, self.tolerance, self.overlap)
    }
}

fn scope() -> impl TypedValueParser<Value = DiffScope> {
    PossibleValuesParser::new(DiffScope::NAMES).try_map(|name| name.parse::<DiffScope>())
}

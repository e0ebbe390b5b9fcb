//! Options that replay a log under other settings than its own.

use super::trouble::Trouble;
use crate::record::Session;
use crate::replay::{Mode, Options, own_settings};

/// How a log is replayed.
#[derive(clap::Args)]
pub(super) struct WhatIf {
    /// Replay under another value of a setting; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Replay under a preset instead of the log's own settings
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Which pipelines run: server and clients, or clients alone on the recorded snapshots
    #[arg(long, value_enum, value_name = "closed|open", hide_possible_values = true)]
    mode: Option<Loop>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Loop {
    /// Server and clients.
    Closed,
    /// Clients alone.
    Open,
}

impl WhatIf {
    /// Whether nothing is asked for but the log's own replay.
    pub(super) fn is_plain(&self) -> bool {
        self.set.is_empty() && self.preset.is_none() && self.mode.is_none()
    }

    /// The replay's options, and which of the log's settings they change, as `key=value`.
    pub(super) fn options(&self, session: &Session) -> Result<(Options, Vec<String>), Trouble> {
        let recorded =
            own_settings(&session.header).map_err(|error| Trouble::Request(format!("the log's settings: {error}")))?;
        let mut settings = match &self.preset {
            Some(name) => recorded.under_preset(name)?,
            None => recorded.clone(),
        };
        for pair in &self.set {
            settings.set_pair(pair)?;
        }
        let changed: Vec<String> = settings
            .to_pairs()
            .into_iter()
            .zip(recorded.to_pairs())
            .filter(|(now, before)| now != before)
            .map(|((key, value), _)| format!("{key}={value}"))
            .collect();
        let mode = match self.mode {
            None => Mode::Auto,
            Some(Loop::Closed) => Mode::Closed,
            Some(Loop::Open) => Mode::Open,
        };
        let settings = (!changed.is_empty()).then_some(settings);
        Ok((Options { mode, settings, ..Options::default() }, changed))
    }
}

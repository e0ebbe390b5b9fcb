//! Options that replay a log under changed settings.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::offered;
use super::trouble::CommandError;
use crate::engine::ReplaySpec;
use crate::record::SessionHeader;
use crate::replay::{Mode, ReplayOptions, WhatIf as Question, own_settings};

/// How a log is replayed.
#[derive(clap::Args)]
pub(super) struct WhatIfArgs {
    /// Replay under another value of a setting; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = offered::settings(), hide_possible_values = true)]
    set: Vec<String>,
    /// Replay under a preset instead of the log's own settings
    #[arg(long, value_name = "NAME", value_parser = offered::presets(), hide_possible_values = true)]
    preset: Option<String>,
    /// How changed settings apply: `replay` runs the recorded input under them, `rejudge` changes only the hit test of
    /// each recorded shot
    #[arg(
        long,
        value_parser = one_of(OF_ONE_RUN),
        value_name = "replay|rejudge",
        hide_possible_values = true,
        default_value = "replay"
    )]
    what_if: Question,
    /// Closed loop runs server and clients; open loop runs only clients, on the recorded snapshots
    #[arg(long, value_enum, value_name = "closed|open", hide_possible_values = true)]
    mode: Option<LoopMode>,
}

/// A parser for one of these values of `--what-if`.
pub(super) fn one_of(questions: &'static [Question]) -> impl TypedValueParser<Value = Question> {
    PossibleValuesParser::new(questions.iter().map(|question| question.name()))
        .try_map(|name| name.parse::<Question>().map_err(|_| format!("`{name}` is not a value of --what-if")))
}

/// The values of `--what-if` for a single replay.
pub(super) const OF_ONE_RUN: &[Question] = &[Question::Replay, Question::Rejudge];

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LoopMode {
    /// Server and clients.
    Closed,
    /// Clients alone.
    Open,
}

impl WhatIfArgs {
    /// Whether the log is replayed under its own settings.
    pub(super) fn is_plain(&self) -> bool {
        self.set.is_empty() && self.preset.is_none() && self.mode.is_none() && self.what_if == Question::Replay
    }

    /// The requested changes of settings, as `key=value` or `preset NAME`.
    pub(super) fn changed(&self) -> Vec<String> {
        self.preset.iter().map(|name| format!("preset {name}")).chain(self.set.iter().cloned()).collect()
    }

    /// Refuses `--what-if rejudge` without other settings.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        match self.what_if == Question::Rejudge && self.set.is_empty() && self.preset.is_none() {
            true => Err(CommandError::request(
                "--what-if rejudge needs other settings: add --set KEY=VALUE or --preset NAME",
            )),
            false => Ok(()),
        }
    }

    /// The options of the replay, and the changed settings as `key=value`.
    pub(super) fn options(&self, header: &SessionHeader) -> Result<(ReplayOptions, Vec<String>), CommandError> {
        self.check()?;
        let recorded =
            own_settings(header).map_err(|error| CommandError::request(format!("the log's settings: {error}")))?;
        let settings = recorded.with_changes(self.preset.as_deref(), &self.set)?;
        let changes = settings.changes_from(&recorded).into_iter();
        let changed: Vec<String> = changes.map(|(key, value)| format!("{key}={value}")).collect();
        let mode = match self.mode {
            None => Mode::Auto,
            Some(LoopMode::Closed) => Mode::Closed,
            Some(LoopMode::Open) => Mode::Open,
        };
        let settings = (!changed.is_empty()).then_some(settings);
        let options =
            ReplayOptions { mode, ..ReplayOptions::default() }.under(settings, self.what_if == Question::Rejudge);
        Ok((options, changed))
    }

    /// The replay by another build.
    pub(super) fn by_build(&self, build: &Path) -> ReplaySpec {
        ReplaySpec {
            build: Some(build.to_owned()),
            preset: self.preset.clone(),
            set: self.set.clone(),
            open: self.is_open(),
            rejudge: self.what_if == Question::Rejudge,
            ..ReplaySpec::default()
        }
    }

    /// Whether only the clients run, as requested.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.mode, Some(LoopMode::Open))
    }

    /// How changed settings are applied.
    pub(super) fn question(&self) -> Question {
        self.what_if
    }
}

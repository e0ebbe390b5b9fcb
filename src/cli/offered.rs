//! Completion values for arguments that also accept other text. The code that uses an argument reports invalid values,
//! with better messages than a list of allowed values gives.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use crate::settings::{KEYS, PRESETS};
use crate::trace::schema::TABLES;

/// The names of the presets.
pub(super) fn presets() -> SuggestedValues {
    SuggestedValues(|| PRESETS.iter().map(|preset| preset.name.to_owned()).collect())
}

/// The settings, as `KEY=`.
pub(super) fn settings() -> SuggestedValues {
    SuggestedValues(|| KEYS.iter().map(|key| format!("{}=", key.name)).collect())
}

/// The keys of the settings.
pub(super) fn keys() -> SuggestedValues {
    SuggestedValues(|| KEYS.iter().map(|key| key.name.to_owned()).collect())
}

/// The names of the tables in hitreg's own traces.
pub(super) fn tables() -> SuggestedValues {
    SuggestedValues(|| TABLES.iter().map(|table| table.name.to_owned()).collect())
}

/// A parser that accepts any text and offers completions.
#[derive(Clone, Debug)]
pub(super) struct SuggestedValues(fn() -> Vec<String>);

impl TypedValueParser for SuggestedValues {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

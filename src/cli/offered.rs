//! Values that shells offer to complete, for arguments that take others as well: what is wrong with those is said by whoever
//! reads them, and better than a list could.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use crate::settings::{KEYS, PRESETS};
use crate::trace::schema::TABLES;

/// Presets, by name.
pub(super) fn presets() -> Offered {
    Offered(|| PRESETS.iter().map(|preset| preset.name.to_owned()).collect())
}

/// Settings, as `KEY=`.
pub(super) fn settings() -> Offered {
    Offered(|| KEYS.iter().map(|key| format!("{}=", key.name)).collect())
}

/// Settings, as `KEY`.
pub(super) fn keys() -> Offered {
    Offered(|| KEYS.iter().map(|key| key.name.to_owned()).collect())
}

/// Tables that hitreg's own traces have.
pub(super) fn tables() -> Offered {
    Offered(|| TABLES.iter().map(|table| table.name.to_owned()).collect())
}

/// Takes any text, and offers some.
#[derive(Clone, Debug)]
pub(super) struct Offered(fn() -> Vec<String>);

impl TypedValueParser for Offered {
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

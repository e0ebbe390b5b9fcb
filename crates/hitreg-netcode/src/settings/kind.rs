//! The kinds of setting values, and their parsing.

use serde::Serialize;

use hitreg_log::units::Hz;

/// The values that a key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ValueKind {
    /// `true` or `false`.
    Flag,
    /// An integer within bounds.
    Number {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
        /// Its unit.
        unit: &'static str,
    },
    /// A rate in Hz within bounds, with at most three decimals.
    Rate {
        /// The minimum in whole Hz.
        min: i64,
        /// The maximum in whole Hz.
        max: i64,
        /// Hz.
        unit: &'static str,
    },
    /// A word.
    Choice {
        /// The accepted words.
        choices: &'static [&'static str],
    },
}

/// A value of a setting, as text.
pub(super) trait SettingText: Sized {
    fn text(&self) -> String;

    fn from_text(text: &str) -> Option<Self>;

    /// Replaces the value. Returns `false` if the text is no value.
    fn replace(&mut self, text: &str) -> bool {
        Self::from_text(text).map(|value| *self = value).is_some()
    }
}

impl SettingText for bool {
    fn text(&self) -> String {
        self.to_string()
    }

    fn from_text(text: &str) -> Option<bool> {
        match text {
            "true" | "1" => Some(true),
            // Console variables of engines are 0 or 1.
            "false" | "0" => Some(false),
            _ => None,
        }
    }
}

impl SettingText for i64 {
    fn text(&self) -> String {
        self.to_string()
    }

    fn from_text(text: &str) -> Option<i64> {
        text.parse().ok()
    }
}

impl SettingText for Hz {
    fn text(&self) -> String {
        self.to_string()
    }

    fn from_text(text: &str) -> Option<Hz> {
        Hz::parse(text)
    }
}

impl ValueKind {
    /// Returns the accepted values as text, for errors and listings: `a whole number of ms from 0 to 1000`.
    pub fn takes(self) -> String {
        match self {
            ValueKind::Flag => "true or false".to_owned(),
            ValueKind::Number { min, max, unit } => format!("a whole number of {unit} from {min} to {max}"),
            ValueKind::Rate { min, max, unit } => {
                format!("a number of {unit} from {min} to {max}, with at most three decimals")
            }
            ValueKind::Choice { choices } => format!("one of {}", choices.join(", ")),
        }
    }

    /// Returns the accepted value nearest to a text. Numbers out of bounds are clamped. Returns `None` when no value is
    /// near.
    pub(super) fn nearest(self, text: &str) -> Option<String> {
        let number = || text.parse::<f64>().ok().filter(|number| number.is_finite());
        let bounded = match self {
            ValueKind::Number { min, max, .. } => match text.parse::<i64>() {
                Ok(whole) => whole.clamp(min, max),
                Err(_) if number()? > max as f64 => max,
                Err(_) if number()? < min as f64 => min,
                Err(_) => return None,
            },
            ValueKind::Rate { min, .. } if number()? < min as f64 => min,
            ValueKind::Rate { max, .. } if number()? > max as f64 => max,
            ValueKind::Rate { .. } | ValueKind::Flag | ValueKind::Choice { .. } => {
                return self.accepts(text).then(|| text.to_owned());
            }
        };
        Some(bounded.to_string())
    }

    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            ValueKind::Flag => bool::from_text(text).is_some(),
            ValueKind::Number { min, max, .. } => text.parse().is_ok_and(|number| (min..=max).contains(&number)),
            ValueKind::Rate { min, max, .. } => {
                Hz::parse(text).is_some_and(|hz| (min * 1000..=max * 1000).contains(&hz.milli()))
            }
            ValueKind::Choice { choices } => choices.contains(&text),
        }
    }
}

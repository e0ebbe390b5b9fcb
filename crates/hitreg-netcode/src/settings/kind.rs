//! The kinds of setting values, and their parsing.

use hitreg_log::units::Hz;

/// The values that a key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    },
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// The value of a key.
#[derive(Clone, Copy)]
pub(super) enum SettingValue {
    Flag(bool),
    Number(i64),
    Rate(Hz),
    Word(&'static str),
}

impl ValueKind {
    /// Returns the accepted values as text, for errors and listings: `a whole number of ms from 0 to 1000`.
    pub fn takes(self) -> String {
        match self {
            ValueKind::Flag => "true or false".to_owned(),
            ValueKind::Number { min, max, unit } => format!("a whole number of {unit} from {min} to {max}"),
            ValueKind::Rate { min, max } => format!("a number of Hz from {min} to {max}, with at most three decimals"),
            ValueKind::Choice(words) => format!("one of {}", words.join(", ")),
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
            ValueKind::Rate { .. } | ValueKind::Flag | ValueKind::Choice(_) => {
                return self.parse(text).map(|_| text.to_owned());
            }
        };
        Some(bounded.to_string())
    }

    pub(super) fn parse(self, text: &str) -> Option<SettingValue> {
        match self {
            // Console variables of engines are 0 or 1.
            ValueKind::Flag => match text {
                "true" | "1" => Some(SettingValue::Flag(true)),
                "false" | "0" => Some(SettingValue::Flag(false)),
                _ => None,
            },
            ValueKind::Number { min, max, .. } => {
                text.parse().ok().filter(|n| (min..=max).contains(n)).map(SettingValue::Number)
            }
            ValueKind::Rate { min, max } => {
                Hz::parse(text).filter(|hz| (min * 1000..=max * 1000).contains(&hz.milli())).map(SettingValue::Rate)
            }
            ValueKind::Choice(words) => words.iter().find(|w| **w == text).map(|w| SettingValue::Word(w)),
        }
    }
}

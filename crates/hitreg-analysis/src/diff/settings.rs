//! Settings that differ between two traces, and settings whose change had no effect.

use serde::Serialize;

use super::{DiffOptions, DiffScope, TraceDiff, TraceVerdict};
use hitreg_log::record::split_of_player;
use hitreg_log::sorted::SortedSet;
use hitreg_log::units::{ClockTime, Micros};

/// A setting with different values in both traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedSetting {
    /// Its key.
    pub key: String,
    /// Its value in A.
    pub a: String,
    /// Its value in B.
    pub b: String,
}

/// The settings of two traces that differ, with both values. A player without an own value of a setting has the common
/// one.
pub fn settings_that_differ([a, b]: [&[(String, String)]; 2]) -> Vec<ChangedSetting> {
    let of = |settings: &[(String, String)], key: &str| {
        let value = |key: &str| settings.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
        let common = || split_of_player(key).and_then(|(_, common)| value(common));
        value(key).or_else(common).unwrap_or_else(|| "unset".to_owned())
    };
    let keys: SortedSet<&String> = a.iter().chain(b).map(|(key, _)| key).collect();
    let both = keys.into_iter().map(|key| ChangedSetting { key: key.clone(), a: of(a, key), b: of(b, key) });
    both.filter(|changed| changed.a != changed.b).collect()
}

impl TraceDiff {
    /// Records that the change of a setting made no difference, in the whole log or up to a time.
    pub fn changed_nothing(&mut self, setting: ChangedSetting, options: &DiffOptions, until: Option<Micros>) {
        let note = setting.to_string();
        self.notes.retain(|known| *known != note);
        let ChangedSetting { key, a, b } = &setting;
        let up_to = until.map_or(String::new(), |until| format!(" up to {}", ClockTime(until)));
        self.notes.push(format!("{key} {a} → {b} changed nothing {}{up_to}", scope(options)));
        self.settings_without_effect.push(setting);
    }

    /// The notes, except notes that only list changed settings.
    pub(crate) fn notes_besides_settings(&self) -> Vec<&String> {
        let changed = settings_that_differ([&self.settings[0], &self.settings[1]]);
        let changed: SortedSet<String> = changed.iter().map(ChangedSetting::to_string).collect();
        self.notes.iter().filter(|note| !changed.contains(*note)).collect()
    }

    /// Notes the settings that differ. If nothing else differs, none of them had an effect.
    pub(super) fn note_settings(&mut self, settings: Vec<ChangedSetting>, options: &DiffOptions) {
        for setting in settings {
            match self.verdict {
                TraceVerdict::Same => self.changed_nothing(setting, options, None),
                TraceVerdict::Differs | TraceVerdict::Untestable => self.notes.push(setting.to_string()),
            }
        }
    }
}

impl std::fmt::Display for ChangedSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {} in A, {} in B", self.key, self.a, self.b)
    }
}

/// Describes the compared part of the traces.
fn scope(options: &DiffOptions) -> String {
    let what = match options.on {
        DiffScope::Any => "in this log",
        DiffScope::State => "in the state",
        DiffScope::Hits => "in the hits",
        DiffScope::Corrections => "in the corrections",
        DiffScope::Views => "in the views",
        DiffScope::Network => "on the network",
    };
    let beyond = if options.tolerances.is_empty() { "" } else { " beyond the tolerance" };
    format!("{what}{beyond}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_without_an_own_value_has_the_common_one() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let common = pairs(&[("interpolation.lerp_ms", "100")]);
        let own = pairs(&[
            ("interpolation.lerp_ms", "100"),
            ("p1.interpolation.lerp_ms", "100"),
            ("p2.interpolation.lerp_ms", "50"),
            ("p2.other", "1"),
        ]);
        let changed = settings_that_differ([&common, &own]).iter().map(ChangedSetting::to_string).collect::<Vec<_>>();
        assert_eq!(changed, ["p2.interpolation.lerp_ms is 100 in A, 50 in B", "p2.other is unset in A, 1 in B"]);
    }
}

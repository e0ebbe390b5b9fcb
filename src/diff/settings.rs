//! Settings that two traces were made under and that differ; and those of them that changed nothing.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{DiffOptions, On, TraceDiff, Verdict};
use crate::trace::TraceHeader;

/// A setting that is not the same in both traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedSetting {
    /// Its key.
    pub key: String,
    /// Its value in A.
    pub a: String,
    /// Its value in B.
    pub b: String,
}

/// The settings that two traces were made under and that differ, with both values.
pub fn settings_that_differ(a: &TraceHeader, b: &TraceHeader) -> Vec<ChangedSetting> {
    let of = |header: &TraceHeader, key: &str| {
        header.settings.iter().find(|(k, _)| k == key).map_or("unset", |(_, v)| v.as_str()).to_owned()
    };
    let keys: BTreeSet<&String> = a.settings.iter().chain(&b.settings).map(|(key, _)| key).collect();
    let both = keys.into_iter().map(|key| ChangedSetting { key: key.clone(), a: of(a, key), b: of(b, key) });
    both.filter(|changed| changed.a != changed.b).collect()
}

impl TraceDiff {
    /// Says of a setting that its change alone made no difference, however that was found out.
    pub fn changed_nothing(&mut self, setting: ChangedSetting, options: &DiffOptions) {
        let note = differs(&setting);
        self.notes.retain(|known| *known != note);
        let ChangedSetting { key, a, b } = &setting;
        self.notes.push(format!("{key} {a} → {b} changed nothing {}", scope(options)));
        self.settings_without_effect.push(setting);
    }

    /// Notes the settings that differ. Where nothing else does, none of them had any effect.
    pub(super) fn note_settings(&mut self, settings: Vec<ChangedSetting>, options: &DiffOptions) {
        for setting in settings {
            match self.verdict {
                Verdict::Same => self.changed_nothing(setting, options),
                Verdict::Differs | Verdict::Untestable => self.notes.push(differs(&setting)),
            }
        }
    }
}

fn differs(setting: &ChangedSetting) -> String {
    format!("{} is {} in A, {} in B", setting.key, setting.a, setting.b)
}

/// What was looked at, in words.
fn scope(options: &DiffOptions) -> String {
    let what = match options.on {
        On::Any => "in this log",
        On::State => "in the state",
        On::Hits => "in the hits",
        On::Corrections => "in the corrections",
        On::Views => "in the views",
        On::Network => "on the network",
    };
    let beyond = if options.tolerances.is_empty() { "" } else { " beyond the tolerance" };
    format!("{what}{beyond}")
}

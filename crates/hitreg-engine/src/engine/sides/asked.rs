//! Whether a build did what it was asked for, by what its trace says of itself.

use super::{Held, Way};
use crate::build::Untestable;
use crate::engine::{Engine, EngineError};
use hitreg_log::record::Header;
use hitreg_netcode::replay::{WhatIf, own_settings};
use hitreg_netcode::settings::Settings;

impl Way {
    /// What a build is asked for: nothing beyond the contract unless something was.
    pub(super) fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(name) = &self.preset {
            options.extend(["--preset".to_owned(), name.clone()]);
        }
        options.extend(self.set.iter().flat_map(|pair| ["--set".to_owned(), pair.clone()]));
        if self.open {
            options.extend(["--mode".to_owned(), "open".to_owned()]);
        }
        if self.rejudge && !(self.preset.is_none() && self.set.is_empty()) {
            options.extend(["--what-if".to_owned(), WhatIf::Rejudge.name().to_owned()]);
        }
        options
    }

    /// A build's trace, if it is what the build was asked for: one that passes an option over has answered another question.
    pub(super) fn as_asked(
        &self,
        engine: &Engine<'_>,
        log: &Header,
        trace: Held,
    ) -> Result<Result<Held, Untestable>, EngineError> {
        let says = trace.source().header();
        let because = |asked: String, found: &str| {
            let reason = format!("it was asked for {asked}, and its trace says {found}: it passes that over");
            Ok(Err(Untestable::because(reason)))
        };
        if self.open && says.mode != "open" {
            return because("--mode open".into(), &format!("mode {}", says.mode));
        }
        if self.rejudge {
            return Ok(Ok(trace));
        }
        for (key, value) in self.changed(engine, log)? {
            match says.settings.iter().find(|(known, _)| *known == key) {
                Some((_, found)) if *found == value => {}
                Some((_, found)) => return because(format!("{key}={value}"), found),
                None => return because(format!("{key}={value}"), "nothing of it"),
            }
        }
        Ok(Ok(trace))
    }

    /// The settings that are to be others than the log's, as a trace says them.
    fn changed(&self, engine: &Engine<'_>, log: &Header) -> Result<Vec<(String, String)>, EngineError> {
        let Some(settings) = self.settings(engine, log)? else { return Ok(Vec::new()) };
        let recorded = own_settings(log)?.to_pairs();
        let mut changed: Vec<_> = settings.to_pairs().into_iter().filter(|pair| !recorded.contains(pair)).collect();
        let own =
            self.set.iter().filter_map(|pair| pair.split_once('=')).map(|(key, value)| (key.trim(), value.trim()));
        let own = own.filter(|(key, _)| self.is_builds_own(engine, log, key));
        changed.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
        Ok(changed)
    }

    /// Whether a setting is for the build alone to know: the log has it, or its game is none of this program's. What is named
    /// like one of hitreg's own is mistyped.
    pub(super) fn is_builds_own(&self, engine: &Engine<'_>, log: &Header, key: &str) -> bool {
        let recorded = &log.settings;
        self.build.is_some()
            && !Settings::is_known(key)
            && (recorded.iter().any(|(known, _)| known == key)
                || (engine.games.of_header(log).is_err() && !Settings::is_named_like_one(key)))
    }
}

//! Checks from a build's trace whether the build applied the requested options.

use super::{ReplaySpec, SideTrace};
use crate::build::UntestableBuild;
use crate::engine::{BuildOutcome, Engine, EngineError};
use hitreg_log::record::SessionHeader;
use hitreg_netcode::replay::{WhatIf, own_settings};
use hitreg_netcode::settings::Settings;

impl ReplaySpec {
    /// The options to pass to a build. Empty unless this side changes something.
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

    /// Accepts the trace of a build if it applied the requested options. A build that ignores an option is untestable.
    pub(super) fn check_applied_options(
        &self,
        engine: &Engine<'_>,
        log: &SessionHeader,
        trace: SideTrace,
    ) -> BuildOutcome<SideTrace> {
        let says = trace.source().header();
        let because = |asked: String, found: &str| {
            let reason = format!("the build ignores {asked}: its trace has {found}");
            Ok(Err(UntestableBuild::because(reason)))
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
                None => return because(format!("{key}={value}"), "no such setting"),
            }
        }
        Ok(Ok(trace))
    }

    /// The settings that this side changes, as a trace lists them.
    fn changed(&self, engine: &Engine<'_>, log: &SessionHeader) -> Result<Vec<(String, String)>, EngineError> {
        let Some(settings) = self.settings(engine, log)? else { return Ok(Vec::new()) };
        let recorded = own_settings(log)?.to_pairs();
        let mut changed: Vec<_> = settings.to_pairs().into_iter().filter(|pair| !recorded.contains(pair)).collect();
        let own =
            self.set.iter().filter_map(|pair| pair.split_once('=')).map(|(key, value)| (key.trim(), value.trim()));
        let own = own.filter(|(key, _)| self.is_builds_own(engine, log, key));
        changed.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
        Ok(changed)
    }

    /// Whether only the build can know this setting. That holds if the log has it, or if this program does not know the
    /// game. A name that resembles one of hitreg's own settings counts as a typing error.
    pub(super) fn is_builds_own(&self, engine: &Engine<'_>, log: &SessionHeader, key: &str) -> bool {
        let recorded = &log.settings;
        self.build.is_some()
            && !Settings::is_known(key)
            && (recorded.iter().any(|(known, _)| known == key)
                || (engine.games.of_header(log).is_err() && !Settings::is_named_like_one(key)))
    }
}

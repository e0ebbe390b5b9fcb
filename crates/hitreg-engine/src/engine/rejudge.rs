//! Judges the shots of a session under other rules: with lag compensation switched, and with the longest rewind limit.

use super::EngineError;
use hitreg_analysis::why::{RejudgeRules, RejudgedShots};
use hitreg_log::record::SessionHeader;
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::shots;
use hitreg_netcode::replay::{ReplayError, ReplayOptions, own_settings, rejudged_table};
use hitreg_netcode::settings::{SettingError, Settings};

/// The value of the `limit` column for shots whose rewind was limited.
const MAX_UNLAG: &str = "max_unlag";
/// The setting of the rewind limit.
const MAX_UNLAG_MS: &str = "lag_compensation.max_unlag_ms";

/// The shots of one side's trace under other rules, or the reason why they could not be judged.
pub type SideRejudgement = Result<Vec<RejudgedShots>, ReplayError>;

/// The rules under which the shots of a replay are judged again.
#[derive(Clone, Debug)]
pub(super) struct OtherRules(Vec<(RejudgeRules, Settings)>);

impl OtherRules {
    /// The rules that differ from those of a replay with these options.
    ///
    /// # Errors
    /// Fails if the settings of the session are invalid.
    pub(super) fn of(header: &SessionHeader, options: &ReplayOptions) -> Result<OtherRules, SettingError> {
        let own = own_settings(header)?;
        let under = options.judged_under.as_ref().or(options.settings.as_ref()).unwrap_or(&own);
        let is_on = under.lag_compensation.enabled;
        let what = if is_on { "without lag compensation" } else { "with lag compensation" };
        let mut rules = vec![(what, format!("lag_compensation.enabled={}", !is_on), None)];
        let (key, now_ms) = (MAX_UNLAG_MS, under.lag_compensation.max_unlag_ms);
        let longest = Settings::nearest(key, &i64::MAX.to_string()).filter(|longest| *longest != now_ms.to_string());
        if let Some(longest) = longest.filter(|_| is_on) {
            rules.push(("with the longest rewind limit", format!("{key}={longest}"), Some(MAX_UNLAG)));
        }
        let with_settings = |(what, setting, limit): (&'static str, String, Option<&'static str>)| {
            let mut other = under.clone();
            other.set_pair(&setting)?;
            Ok((RejudgeRules { what, setting, limit }, other))
        };
        Ok(OtherRules(rules.into_iter().map(with_settings).collect::<Result<_, SettingError>>()?))
    }

    /// Replays with these options, and also judges under these rules. If the game's server cannot, the result is a replay
    /// without them, and the reason.
    ///
    /// # Errors
    /// Fails as `replay` does.
    pub(super) fn replayed<T>(
        &self,
        options: &ReplayOptions,
        mut replay: impl FnMut(&ReplayOptions) -> Result<T, EngineError>,
    ) -> Result<(T, Result<(), ReplayError>), EngineError> {
        let also_judged = self.0.iter().map(|(_, settings)| settings.clone()).collect();
        match replay(&ReplayOptions { also_judged, ..options.clone() }) {
            Err(EngineError::Replay { source: source @ ReplayError::NoRejudging(_), .. }) => {
                Ok((replay(options)?, Err(source)))
            }
            replayed => Ok((replayed?, Ok(()))),
        }
    }

    /// Takes the shots under these rules out of the trace of a [replay](OtherRules::replayed) that judged them. An open
    /// loop judges under one set of rules, so `replay` runs it again under each of the others, for its `shots`.
    ///
    /// # Errors
    /// Fails as `replay` does.
    pub(super) fn of_trace<E>(
        &self,
        trace: &mut Trace,
        options: &ReplayOptions,
        replay: impl Fn(&ReplayOptions) -> Result<Trace, E>,
    ) -> Result<Vec<RejudgedShots>, E> {
        let mut taken = Vec::new();
        for (place, (rules, settings)) in self.0.iter().enumerate() {
            let name = rejudged_table(place);
            let table = match trace.tables.iter().position(|table| table.name == name) {
                Some(place) => trace.tables.remove(place),
                None => {
                    let options = ReplayOptions { judged_under: Some(settings.clone()), ..options.clone() };
                    let tables = replay(&options)?.tables;
                    tables.into_iter().find(|table| table.name == shots::NAME).unwrap_or_default()
                }
            };
            taken.push(RejudgedShots::of(rules.clone(), &table));
        }
        Ok(taken)
    }
}

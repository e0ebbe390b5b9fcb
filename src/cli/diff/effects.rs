//! Which of several settings that differ made no difference: each is tried alone, on both sides.

use rayon::prelude::*;

use crate::cli::files::Log;
use crate::cli::games::{Games, Playable};
use crate::cli::interrupt;
use crate::cli::trouble::Trouble;
use crate::diff::{ChangedSetting, DiffOptions, TraceDiff, Verdict, diff, settings_that_differ};
use crate::replay::{Mode, Options};
use crate::settings::Settings;
use crate::trace::Trace;

/// Adds to a comparison of two replays of one log the settings that change nothing, neither A when they alone become what
/// they are in B, nor B when they alone become what they are in A. A single setting needs no trial.
pub(in crate::cli) fn look_for_effects(
    games: &Games,
    log: &Log,
    mode: Mode,
    sides: [&Trace; 2],
    options: &DiffOptions,
    found: &mut TraceDiff,
) -> Result<(), Trouble> {
    let changed = settings_that_differ(&sides[0].header, &sides[1].header);
    let (true, Ok(game)) = (found.verdict == Verdict::Differs && changed.len() > 1, games.of(&log.session)) else {
        return Ok(());
    };
    let stop = interrupt::stop()?;
    let alone = Alone { game, log, mode, options };
    let has_none = |setting: &&ChangedSetting| {
        let sides = [(sides[0], &setting.b), (sides[1], &setting.a)];
        !stop.is_stopped() && sides.into_iter().all(|(side, value)| alone.changes_nothing(side, &setting.key, value))
    };
    let without: Vec<ChangedSetting> = changed.par_iter().filter(has_none).cloned().collect();
    interrupt::check(&stop)?;
    for setting in without {
        found.changed_nothing(setting, options);
    }
    Ok(())
}

struct Alone<'a> {
    game: &'a dyn Playable,
    log: &'a Log,
    mode: Mode,
    options: &'a DiffOptions,
}

impl Alone<'_> {
    /// Whether a side plays the same with another value of one of its settings. False when that cannot be told.
    fn changes_nothing(&self, side: &Trace, key: &str, value: &str) -> bool {
        let settings = Settings::from_pairs(&side.header.settings).and_then(|mut settings| {
            settings.set_pair(&format!("{key}={value}"))?;
            Ok(settings)
        });
        let Ok(settings) = settings else { return false };
        let options = Options { mode: self.mode, settings: Some(settings), rollback_every: None };
        let Ok(replayed) = self.game.replay(&self.log.session, &options, &mut |_| {}) else { return false };
        diff(side, &replayed.trace, self.options).is_ok_and(|found| found.verdict == Verdict::Same)
    }
}

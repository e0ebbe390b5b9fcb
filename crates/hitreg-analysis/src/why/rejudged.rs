//! The results of shots under other rules: the same session, with each shot judged again.

use serde::Serialize;

use super::shot::came;
use super::{ShotExplanation, ShotResult, cell};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::shots;

/// The result of a shot under another setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RejudgedShot {
    /// A description of the rules, such as `without lag compensation`.
    pub what: String,
    /// The changed setting, as `key=value`.
    pub setting: String,
    /// The result of the shot; `None` if it would not have been judged.
    pub server: Option<ShotResult>,
}

/// Rules for judging shots: the log's settings with one setting changed.
#[derive(Clone, Debug)]
pub struct RejudgeRules {
    /// A description of the rules.
    pub what: &'static str,
    /// The changed setting, as `key=value`.
    pub setting: String,
    /// Limits the rules to shots whose rewind met this limit; `None` for all shots.
    pub limit: Option<&'static str>,
}

/// The results of all shots under other rules.
#[derive(Clone, Debug)]
pub struct RejudgedShots {
    rules: RejudgeRules,
    /// By shooter, usercmd and index of the shot.
    came: SortedMap<[u32; 3], ShotResult>,
}

impl RejudgedShots {
    /// Reads the results from the shots of a replay under these rules.
    pub fn of(rules: RejudgeRules, shots: &Table) -> RejudgedShots {
        let table = shots::Columns::read(shots);
        let shot = |row: usize| {
            let name = [table.shooter, table.command, table.index].map(|column| cell(column, row));
            let [Some(shooter), Some(command), Some(index)] = name else { return None };
            Some(([shooter, command, index], came([table.reason, table.target, table.hitgroup], table.damage, row)))
        };
        RejudgedShots { rules, came: (0..table.rows).filter_map(shot).collect() }
    }
}

impl ShotExplanation {
    /// The results of this shot under other rules. Empty if the server only launched it or never judged it, or if only
    /// the recorded server reported it.
    pub fn otherwise(&self, rejudged: &[RejudgedShots]) -> Vec<RejudgedShot> {
        let judged = self.judged.as_ref().filter(|_| self.is_decided_at_once());
        let Some(judged) = judged else { return Vec::new() };
        let asked = rejudged.iter().filter(|rejudged| rejudged.rules.limit.is_none_or(|limit| limit == judged.limit));
        let otherwise = |RejudgedShots { rules, came }: &RejudgedShots| RejudgedShot {
            what: rules.what.to_owned(),
            setting: rules.setting.clone(),
            server: came.get(&[self.shooter, self.command, self.index]).cloned(),
        };
        asked.map(otherwise).collect()
    }

    fn is_decided_at_once(&self) -> bool {
        self.server.reason != "launched" && !self.is_impact && !self.is_reported
    }
}

//! What other settings would have made of shots: the same session, each of its shots judged again.

use std::collections::BTreeMap;

use serde::Serialize;

use super::shot::came;
use super::{Came, Shot, cell};
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::shots;

/// What other settings would have made of a shot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Otherwise {
    /// In words: `without lag compensation`.
    pub what: String,
    /// The setting, as `key=value`.
    pub setting: String,
    /// What would have become of the shot; `None` where it would not have been judged.
    pub server: Option<Came>,
}

/// The settings that shots are judged by, one of them another.
#[derive(Clone, Debug)]
pub struct Rules {
    /// In words.
    pub what: &'static str,
    /// The setting that is another, as `key=value`.
    pub setting: String,
    /// Of which shots it is asked: those that met this limit; `None` for all.
    pub limit: Option<&'static str>,
}

/// What became of all shots under other rules.
#[derive(Clone, Debug)]
pub struct Rejudged {
    rules: Rules,
    /// By shooter, usercmd, and which of its shots.
    came: BTreeMap<[u32; 3], Came>,
}

impl Rejudged {
    /// Takes them from the trace of a replay under those rules.
    pub fn of(rules: Rules, trace: &Trace) -> Rejudged {
        let table = shots::Columns::of(trace);
        let shot = |row: usize| {
            let name = [table.shooter, table.command, table.index].map(|column| cell(column, row));
            let [Some(shooter), Some(command), Some(index)] = name else { return None };
            Some(([shooter, command, index], came([table.reason, table.target, table.hitgroup], table.damage, row)))
        };
        Rejudged { rules, came: (0..table.rows).filter_map(shot).collect() }
    }
}

impl Shot {
    /// What other rules would have made of it; nothing where the server only launched it or never judged it, or where the
    /// recorded server only reported it.
    pub fn otherwise(&self, rejudged: &[Rejudged]) -> Vec<Otherwise> {
        let judged = self.judged.as_ref().filter(|_| self.is_decided_at_once());
        let Some(judged) = judged else { return Vec::new() };
        let asked = rejudged.iter().filter(|rejudged| rejudged.rules.limit.is_none_or(|limit| limit == judged.limit));
        let otherwise = |Rejudged { rules, came }: &Rejudged| Otherwise {
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

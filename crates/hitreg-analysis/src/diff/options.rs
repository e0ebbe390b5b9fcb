//! What a comparison covers, and how exactly it compares.

use std::str::FromStr;

use hitreg_log::trace::schema::{
    ColumnRole, TABLES, TableSchema, TableSet, TableSubject, bodies, executed, frames, shots, ticks,
};
use hitreg_log::trace::{Table, TraceReadError};
use hitreg_log::units::named;

/// What a comparison covers, and how exactly it compares. The default compares everything bit by bit.
///
/// Change fields of the default, because later versions add options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiffOptions {
    /// The tolerances, by column.
    pub tolerances: Tolerances,
    /// The compared part of the traces.
    pub on: DiffScope,
    /// Compares only what both traces hold: a missing table, column or row is no difference. For traces that are
    /// incomplete by design, such as the states that a log recorded.
    pub overlap_only: bool,
    /// Leaves out the counts of tables that are equal or not compared, for an answer that shows only differences. Traces
    /// in files are then compared without unpacking what is equal.
    pub brief: bool,
}

named! {
    /// The part of the traces that is compared.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum DiffScope {
        /// Every table.
        #[default]
        Any = "any",
        /// The authoritative state: `ticks` and `bodies`.
        State = "state",
        /// The result of each shot: target, hitgroup, damage, or the reason of a miss.
        Hits = "hits",
        /// Reconciliation: `corrections` and `errors`.
        Corrections = "corrections",
        /// What was drawn: `views` and `variables`.
        Views = "views",
        /// What went over the network: `packets` and `snapshots`.
        Network = "network",
    }
}

impl DiffScope {
    pub(crate) fn has_table(self, name: &str) -> bool {
        let about = match self {
            DiffScope::Any => return true,
            DiffScope::State => TableSubject::State,
            DiffScope::Hits => TableSubject::Hits,
            DiffScope::Corrections => TableSubject::Corrections,
            DiffScope::Views => TableSubject::Views,
            DiffScope::Network => TableSubject::Network,
        };
        TableSchema::of(name).is_some_and(|table| table.about == about)
    }

    /// The tables that a comparison reads: the compared tables, and the tables with the times of rows and the usercmds
    /// around them.
    pub fn tables(self) -> TableSet {
        let around = [ticks::NAME, bodies::NAME, executed::NAME, frames::NAME];
        let is_used = |name: &&str| self.has_table(name) || around.contains(name);
        TableSet::named(TABLES.iter().map(|table| table.name).filter(is_used))
    }

    pub(crate) fn has_column(self, name: &str) -> bool {
        self != DiffScope::Hits || shots::SCHEMA.names_of(ColumnRole::Outcome).any(|outcome| outcome == name)
    }
}

/// How far apart numbers may be and still count as equal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tolerances(Vec<Tolerance>);

/// The tolerance of one column. Its text is `origin=0.1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tolerance {
    /// A column (`rewind_us`), or a prefix of several. `origin` covers `origin.x`, `origin.y` and `origin.z`, and also
    /// `own.origin.x` and so on. `pitch`, `yaw` and `roll` also cover `viewangles.x`, `.y` and `.z`.
    pub column: String,
    /// The greatest difference that counts as equal, in the column's unit; finite and not negative. Angles are in
    /// degrees, the shortest way round.
    pub within: f64,
}

/// Why traces cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DiffError {
    /// A tolerance is invalid, or no compared column has its name; says what to write.
    #[error("{0}")]
    Tolerance(String),
    /// A trace cannot be read again, or its rows are too far out of order. Holds the reason.
    #[error(transparent)]
    Unread(#[from] TraceReadError),
}

impl FromStr for Tolerance {
    type Err = DiffError;

    fn from_str(text: &str) -> Result<Tolerance, DiffError> {
        let no_tolerance =
            || DiffError::Tolerance(format!("`{text}` is not a tolerance: write COLUMN=NUMBER, such as origin=0.1"));
        let (column, number) = text.split_once('=').ok_or_else(no_tolerance)?;
        let (column, number) = (column.trim(), number.trim());
        if column.is_empty() {
            return Err(no_tolerance());
        }
        let bad = || {
            DiffError::Tolerance(format!(
                "the tolerance of `{column}` is {number}: it must be a finite number that is not negative"
            ))
        };
        let within: f64 = number.parse().map_err(|_| bad())?;
        if !within.is_finite() || within < 0.0 {
            return Err(bad());
        }
        Ok(Tolerance { column: column.to_owned(), within })
    }
}

impl FromIterator<Tolerance> for Tolerances {
    fn from_iter<T: IntoIterator<Item = Tolerance>>(tolerances: T) -> Tolerances {
        Tolerances(tolerances.into_iter().collect())
    }
}

impl Tolerances {
    /// Whether there are no tolerances, so that everything is compared bit by bit.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tolerance of a column. If several cover it, the last one applies.
    pub fn of(&self, column: &str) -> Option<f64> {
        self.0.iter().rev().find(|t| t.covers(column)).map(|t| t.within)
    }

    /// Checks that each tolerance covers a compared column of at least one trace.
    pub(crate) fn check(&self, tables: &[&Table], on: DiffScope) -> Result<(), DiffError> {
        let names = || tables.iter().flat_map(|table| &table.columns).map(|column| column.name.as_str());
        let compared = || {
            let tables = tables.iter().filter(|table| on.has_table(&table.name));
            tables
                .flat_map(|table| &table.columns)
                .map(|column| column.name.as_str())
                .filter(|name| on.has_column(name))
        };
        // A replay for such a comparison may have made only the tables that it needs.
        let declared = || TABLES.iter().flat_map(|table| table.columns).map(|column| column.name);
        for tolerance in &self.0 {
            let column = &tolerance.column;
            if compared().any(|name| tolerance.covers(name)) {
                continue;
            }
            let is_known = names().any(|name| tolerance.covers(name))
                || (on != DiffScope::Any && declared().any(|name| tolerance.covers(name)));
            return Err(DiffError::Tolerance(match is_known {
                true => format!(
                    "--tolerance of `{column}` has no effect, because --on {} does not compare that column: change --on or \
                     leave it out",
                    on.name()
                ),
                false => {
                    let nearest = nearest(column, names()).map_or(String::new(), |n| format!(" (did you mean `{n}`?)"));
                    format!("--tolerance: neither trace has a column `{column}`{nearest}")
                }
            }));
        }
        Ok(())
    }
}

impl Tolerance {
    fn covers(&self, column: &str) -> bool {
        let is_or_begins = |name: &str| {
            name.strip_prefix(self.column.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let own = column.strip_prefix("own.");
        let other_name = match own.unwrap_or(column) {
            "viewangles.x" => Some("pitch"),
            "viewangles.y" => Some("yaw"),
            "viewangles.z" => Some("roll"),
            _ => None,
        };
        [Some(column), own, other_name].into_iter().flatten().any(is_or_begins)
    }
}

fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let front = |name: &'a str| name.strip_prefix("own.").unwrap_or(name).split('.').next().unwrap_or(name);
    names
        .map(|name| (strsim::jaro_winkler(word, front(name)), front(name)))
        .max_by(|x, y| x.0.total_cmp(&y.0).then_with(|| y.1.cmp(x.1)))
        .filter(|(similarity, _)| *similarity > 0.7)
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_covers_the_parts_of_its_column() {
        let tolerances: Tolerances = ["origin=0.1", "rewind_us=500"].map(|t| t.parse().expect(t)).into_iter().collect();
        let of = |column| tolerances.of(column);
        assert_eq!([of("origin.x"), of("own.origin.z"), of("origin")], [Some(0.1); 3]);
        assert_eq!([of("rewind_us"), of("origins.x"), of("velocity.x")], [Some(500.0), None, None]);
        let yaw: Tolerances = std::iter::once("yaw=1".parse().expect("a tolerance")).collect();
        let of = |column| yaw.of(column);
        assert_eq!([of("yaw"), of("viewangles.y"), of("own.viewangles.y")], [Some(1.0); 3]);
        assert_eq!([of("pitch"), of("viewangles.x"), of("own.yawn")], [None; 3]);
    }

    #[test]
    fn invalid_tolerances_are_refused() {
        for text in ["origin", "=1", "origin=", "origin=-1", "origin=NaN", "origin=inf"] {
            assert!(text.parse::<Tolerance>().is_err(), "{text}");
        }
    }
}

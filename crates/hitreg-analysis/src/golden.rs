//! A golden: the reviewed, expected outcome beside a log. It is a text file for code reviews. Besides the digests that
//! decide, it has the most important counts and every shot in words.

use std::fmt::Write;

use serde::Serialize;

use crate::diff::CellValue;
use crate::summary::{Summary, SummaryBuilder};
use crate::text_diff::TextDiff;
use hitreg_log::trace::digest::{self, TableDigest};
use hitreg_log::trace::schema::{NOT_PREDICTED, TABLES, shots};
use hitreg_log::trace::{ColumnData, Digest, Table, Trace, TraceHeader};
use hitreg_log::units::named;

/// The beginning of the first line of every golden. The version follows.
const TITLE: &str = "hitreg golden ";
/// The version of the goldens that this crate writes and compares.
const VERSION: &str = "1";

/// Why a golden cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoldenError {
    /// A merge stopped at a conflict.
    #[error(
        "line {line} is a merge conflict marker: take log and golden of one side (`git checkout --theirs LOG GOLDEN`), \
         and verify that log"
    )]
    Conflict {
        /// The first line with a marker, from 1.
        line: usize,
    },
    /// The text does not begin as a golden does.
    #[error("this is no golden of hitreg: move it away, and write one with `verify LOG --accept`")]
    Foreign,
    /// Another version of hitreg wrote it.
    #[error(
        "a golden of version {version}, and this hitreg compares version {VERSION}: use the hitreg that wrote it, or \
         move it away and write one with `verify LOG --accept`"
    )]
    Version {
        /// The golden's version.
        version: String,
    },
    /// It belongs to a log of another game.
    #[error(
        "a golden of the game `{game}`, and the log is of `{of_log}`: restore the log's golden, or move this one away \
         and write one with `verify LOG --accept`"
    )]
    Game {
        /// The golden's game.
        game: String,
        /// The log's game.
        of_log: String,
    },
}

/// Checks that a text is a golden that this version can compare.
///
/// # Errors
/// When it has merge conflict markers, is no golden, or is of another version.
pub fn check(text: &str) -> Result<(), GoldenError> {
    let is_marker = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
    if let Some(place) = text.lines().position(is_marker) {
        return Err(GoldenError::Conflict { line: place + 1 });
    }
    match text.strip_prefix(TITLE).and_then(|rest| rest.lines().next()).map(str::trim_end) {
        Some(VERSION) => Ok(()),
        Some(version) => Err(GoldenError::Version { version: version.to_owned() }),
        None => Err(GoldenError::Foreign),
    }
}

/// Checks that a golden is of this game. A build may name no game.
///
/// # Errors
/// When it is of another game.
pub fn check_game(golden: &str, of_log: &str) -> Result<(), GoldenError> {
    let named = golden.lines().nth(1).and_then(|line| line.strip_prefix("game ")?.rsplit_once(", "));
    match named {
        Some((game, _)) if !game.is_empty() && game != one_line(of_log) => {
            Err(GoldenError::Game { game: game.to_owned(), of_log: of_log.to_owned() })
        }
        Some(_) | None => Ok(()),
    }
}

/// The outcome of a replay, collected from its rows: digests, counts and every shot in words.
#[derive(Clone, Debug)]
pub struct ReplaySummary {
    /// The replay's log, mode and settings.
    pub header: TraceHeader,
    tables: Vec<TableDigest>,
    /// The figures of all rows so far.
    pub figures: SummaryBuilder,
    /// The shots in words; `None` if no golden is needed.
    shots: Option<String>,
}

impl ReplaySummary {
    /// The outcome of a replay before its first rows.
    pub fn new(header: TraceHeader) -> ReplaySummary {
        ReplaySummary { figures: SummaryBuilder::of(&header), header, tables: Vec::new(), shots: None }
    }

    /// The same for a golden, which takes the shots in words.
    pub fn for_golden(header: TraceHeader) -> ReplaySummary {
        ReplaySummary { shots: Some(String::new()), ..ReplaySummary::new(header) }
    }

    /// The outcome of a whole trace.
    pub fn of(trace: &Trace) -> ReplaySummary {
        let mut summary = ReplaySummary::for_golden(trace.header.clone());
        trace.tables.iter().for_each(|table| summary.add(table));
        summary
    }

    /// Adds rows of a table.
    pub fn add(&mut self, rows: &Table) {
        let known = self.tables.iter().position(|known| known.name() == rows.name);
        let place = known.unwrap_or_else(|| {
            self.tables.push(TableDigest::new(&rows.name, self.header.is_open()));
            self.tables.len() - 1
        });
        self.tables[place].add(rows);
        self.figures.add(rows);
        if let Some(text) = self.shots.as_mut().filter(|_| rows.name == shots::NAME) {
            (0..rows.rows()).for_each(|row| text.extend([&shot(rows, row), "\n"]));
        }
    }

    /// The digest of the trace.
    pub fn digest(&self) -> Digest {
        digest::of_tables(self.tables.iter().filter(|table| digest::counts(table.name())).map(TableDigest::digest))
    }

    /// The headline figures.
    pub fn summary(&self) -> Summary {
        self.figures.summary()
    }

    /// The first table whose digest differs from another replay's.
    pub fn first_unlike(&self, other: &ReplaySummary) -> Option<&str> {
        let same = |table: &&TableDigest| {
            let there = other.tables.iter().find(|there| there.name() == table.name());
            there.is_some_and(|there| there.digest() == table.digest())
        };
        self.tables.iter().find(|table| !same(table)).map(TableDigest::name)
    }

    /// The text of the golden; `None` if it was not requested.
    pub fn golden(&self) -> Option<String> {
        // A streamed replay adds each table at its first rows, so the tables are sorted here.
        let place = |table: &&TableDigest| TABLES.iter().position(|known| known.name == table.name());
        let mut tables: Vec<&TableDigest> = self.tables.iter().filter(|table| digest::counts(table.name())).collect();
        tables.sort_by_key(|table| place(table).unwrap_or(TABLES.len()));
        let shots = self.shots.as_deref()?;
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(&one_line(&line));
            text.push('\n');
        };
        line(format!("{TITLE}{VERSION}"));
        line(format!("game {}, {} loop", self.header.game, self.header.mode));
        line(format!("trace {}", self.digest()));
        line(String::new());
        for table in tables {
            let (name, rows, digest) = (table.name(), table.rows(), table.digest());
            line(format!("{name:<12} {rows:>9} rows  {digest}"));
        }
        line(String::new());
        for (what, count) in counts(&self.summary()) {
            line(format!("{what:<24} {count:>9}"));
        }
        if self.tables.iter().any(|table| table.name() == shots::NAME) {
            line(String::new());
            text.push_str(shots);
        }
        Some(text)
    }
}

/// The number of usercmds in a golden; `None` if it has no such line.
pub fn usercmds_of(golden: &str) -> Option<u64> {
    golden.lines().find_map(|line| line.strip_prefix("usercmds ")?.trim().parse().ok())
}

/// The difference between the accepted and the replayed golden, as a unified diff of each part without line numbers.
/// Counts come first, because they sum up what happened. Digests come last. `None` if the goldens are equal.
pub fn difference(accepted: &str, replayed: &str) -> Option<TextDiff> {
    if accepted == replayed {
        return None;
    }
    let (accepted, replayed) = (GoldenSections::of(accepted), GoldenSections::of(replayed));
    let mut found = TextDiff::default();
    found.say("--- accepted");
    found.say("+++ replayed");
    for (name, before, after) in [
        ("counts", accepted.counts, replayed.counts),
        ("shots", accepted.shots, replayed.shots),
        ("digests", accepted.digests, replayed.digests),
    ] {
        found.add([&format!("@@ {name} @@"); 2], &before, &after, CONTEXT_LINES);
    }
    Some(found)
}

named! {
    /// The kind of difference between two goldens. A difference is of the last kind that applies.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GoldenChange {
        /// The goldens are equal.
        Same = "same",
        /// Only digests of tables: states, times or errors, but no count and no shot.
        Digests = "digests",
        /// Counts, such as corrections by cause, but no shot.
        Counts = "counts",
        /// Shots with equal outcomes: their tick, rewind or view error.
        Shots = "shots",
        /// The outcomes of shots: hit or miss, target, hitgroup, damage, or a shot in one golden only.
        Hits = "hits",
        /// There was no golden.
        New = "new",
    }
}

impl GoldenChange {
    /// The kind of difference between a golden, if there is one, and its replacement.
    pub fn of(accepted: Option<&str>, replayed: &str) -> GoldenChange {
        let Some(accepted) = accepted else { return GoldenChange::New };
        let [before, after] = [accepted, replayed].map(GoldenSections::of);
        if outcomes(&before.shots) != outcomes(&after.shots) {
            GoldenChange::Hits
        } else if before.shots != after.shots {
            GoldenChange::Shots
        } else if before.counts != after.counts {
            GoldenChange::Counts
        } else if before.digests != after.digests {
            GoldenChange::Digests
        } else {
            GoldenChange::Same
        }
    }

    /// The meaning of the kind.
    pub fn meaning(self) -> &'static str {
        match self {
            GoldenChange::Same => "nothing differs",
            GoldenChange::Digests => "only digests of tables differ",
            GoldenChange::Counts => "counts differ, but no shot",
            GoldenChange::Shots => "shots differ, but not their outcomes",
            GoldenChange::Hits => "outcomes of shots differ",
            GoldenChange::New => "there was no golden",
        }
    }
}

/// What begins the rewind in the line of a shot.
const REWOUND: &str = "; rewound ";
/// What begins the view error in the line of a shot, which may have no rewind.
const VIEW_ERROR: &str = ", view error ";

/// The shooter, the usercmd and the outcome of each shot. Goldens list shots in the order of their ticks, which are not
/// part of an outcome.
fn outcomes(shots: &str) -> Vec<&str> {
    let of = |shot| {
        let after_tick = str::strip_prefix(shot, "tick ").and_then(|rest| rest.split_once(' '));
        let outcome = after_tick.map_or(shot, |(_, outcome)| outcome);
        [REWOUND, VIEW_ERROR].iter().fold(outcome, |text, end| text.split_once(end).map_or(text, |(before, _)| before))
    };
    let mut all: Vec<&str> = shots.lines().map(of).collect();
    all.sort_unstable();
    all
}

/// A golden, split by the meaning of its lines.
#[derive(Default)]
struct GoldenSections {
    shots: String,
    counts: String,
    digests: String,
}

impl GoldenSections {
    /// Splits at empty lines: the header and the tables' digests, then the counts, then the shots.
    fn of(golden: &str) -> GoldenSections {
        let mut parts = GoldenSections::default();
        for (number, part) in golden.split("\n\n").enumerate() {
            let lines = part.trim_end_matches('\n');
            let into = match number {
                0 | 1 => &mut parts.digests,
                2 => &mut parts.counts,
                _ => &mut parts.shots,
            };
            if !lines.is_empty() {
                into.push_str(lines);
                into.push('\n');
            }
        }
        parts
    }
}

/// How many equal lines are shown before and after a change.
const CONTEXT_LINES: usize = 2;

/// The counts that are known.
fn counts(summary: &Summary) -> Vec<(String, u64)> {
    let (p, s, e) = (&summary.prediction, &summary.shots, &summary.exercised);
    let mut counts = vec![
        ("ticks".to_owned(), e.ticks),
        ("usercmds".to_owned(), e.usercmds),
        ("predictions checked".to_owned(), p.checked),
        ("predictions exact".to_owned(), p.exact),
        ("predictions near".to_owned(), p.near),
    ];
    counts.extend(p.misses_by_cause.iter().map(|(cause, count)| (format!("misses: {cause}"), *count)));
    let known = |what: &str, count: Option<u64>| count.map(|count| (what.to_owned(), count));
    counts.extend(known("shots fired", s.fired));
    let kinds = s.kinds().filter(|(_, number)| *number > 0);
    counts.extend(kinds.map(|(kind, number)| (format!("shots: {kind}"), number)));
    counts.extend(known("shots hit on screen", s.predicted_hit));
    counts.extend(known("shots hit", s.hit));
    counts
}

/// A text without line breaks, which names of a game may have.
fn one_line(text: &str) -> String {
    text.replace('\r', "\\r").replace('\n', "\\n")
}

/// One shot in words:
/// `tick 210 p1 #197 rifle at p0: hit p0 chest 24; screen: hit p0; rewound 151.2 ms, view error 0.000`.
fn shot(shots: &Table, row: usize) -> String {
    let get = |name: &str| value(shots, name, row);
    let mut text = format!("tick {} p{} #{}", get("tick"), get("shooter"), get("command"));
    // A game without names of weapons or hitgroups leaves no gaps.
    let words = |words: &[String]| -> String {
        words.iter().filter(|word| !word.is_empty()).map(|word| format!(" {word}")).collect()
    };
    text.push_str(&words(&[get("weapon")]));
    if get("impact") == "1" {
        text.push_str(" impact");
    }
    let _ = write!(text, ":{}", words(&[get("reason")]));
    if get("target") != "none" {
        text.push_str(&words(&[get("target"), get("hitgroup"), get("damage")]));
        if !matches!(&*get("also_hit"), "-" | "none") {
            let _ = write!(text, "; also {}", get("also_hit"));
        }
    }
    if get("predicted_reason") != NOT_PREDICTED {
        let _ = write!(text, "; on screen: {}", get("predicted_reason"));
        if get("predicted_target") != "none" {
            let _ = write!(text, " {}", get("predicted_target"));
        }
    }
    // The outcome of a shot ends at the first of these, so no name may have them.
    let mut text = one_line(&text);
    for end in [REWOUND, VIEW_ERROR].map(str::trim_end) {
        text = text.replace(end, &format!("{}{}", end[..1].escape_unicode(), &end[1..]));
    }
    if let Some(ColumnData::I64(rewind)) = shots.column("rewind_us").map(|c| &c.data)
        && rewind[row] > 0
    {
        let _ = write!(text, "{REWOUND}{:.3} ms", rewind[row] as f64 / 1000.0);
    }
    if let Some(ColumnData::F32(error)) = shots.column("view_error_units").map(|c| &c.data)
        && !error[row].is_nan()
    {
        let _ = write!(text, "{VIEW_ERROR}{:.3}", error[row]);
    }
    text
}

fn value(table: &Table, name: &str, row: usize) -> String {
    let value = table.column(name).and_then(|column| CellValue::at(column, row));
    value.map_or("-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::trace::Column;

    #[test]
    fn a_shot_without_names_of_weapon_and_hitgroup_has_single_spaces() {
        let number = |name: &str, value| Column::new(name, ColumnData::U32(vec![value]));
        let word =
            |name: &str, word: &str| Column::new(name, ColumnData::Name { names: vec![word.into()], codes: vec![0] });
        let table = |weapon: &str, hitgroup: &str| {
            let numbers = [("tick", 3), ("shooter", 2), ("command", 787), ("impact", 0), ("damage", 24)];
            let words = [
                ("weapon", weapon),
                ("hitgroup", hitgroup),
                ("reason", "hit"),
                ("target", "p0"),
                ("predicted_reason", "not predicted"),
            ];
            let columns = numbers.map(|(name, value)| number(name, value)).into_iter();
            Table::new(shots::NAME, columns.chain(words.map(|(name, value)| word(name, value))).collect())
        };
        assert_eq!(shot(&table("", ""), 0), "tick 3 p2 #787: hit p0 24");
        assert_eq!(shot(&table("rifle", "chest"), 0), "tick 3 p2 #787 rifle: hit p0 chest 24");
        let mut several = table("rifle", "chest");
        several.columns.push(word("also_hit", "p4 arm 16"));
        assert_eq!(shot(&several, 0), "tick 3 p2 #787 rifle: hit p0 chest 24; also p4 arm 16");
    }

    /// A name may have line breaks, and the words that end an outcome.
    #[test]
    fn any_name_leaves_a_shot_on_one_line_with_its_whole_outcome() {
        for weapon in
            ["Büchse, \"lang\"\nzwei\n\ndrei", "a\r\nb", "x; rewound 2.000 ms", "x; rewound", ", view error 1"]
        {
            let trace = |hits: [&str; 2]| {
                let number = |name: &str, values: [u32; 2]| Column::new(name, ColumnData::U32(values.into()));
                let names = |name: &str, names: [&str; 2]| {
                    Column::new(name, ColumnData::Name { names: names.map(Into::into).into(), codes: vec![0, 1] })
                };
                let columns = vec![
                    number("shooter", [0, 1]),
                    number("command", [7, 8]),
                    number("index", [0, 0]),
                    number("tick", [3, 4]),
                    number("impact", [1, 1]),
                    names("weapon", [weapon, weapon]),
                    names("reason", hits),
                    names("target", hits.map(|hit| if hit == "hit" { "p1" } else { "none" })),
                ];
                let table = Table::new(shots::NAME, columns).keyed_by(["shooter", "command", "index"]);
                Trace { header: TraceHeader::default(), tables: vec![table] }
            };
            let golden = |hits| ReplaySummary::of(&trace(hits)).golden().expect("a golden");
            let [accepted, replayed] = [["hit", "missed"], ["missed", "hit"]].map(golden);
            assert_eq!(accepted.lines().filter(|line| line.starts_with("tick ")).count(), 2, "{accepted}");
            assert!(accepted.lines().last().is_some_and(|line| line.contains(" impact: missed")), "{accepted}");
            assert_eq!(GoldenChange::of(Some(&accepted), &replayed), GoldenChange::Hits, "{accepted}");
        }
    }

    #[test]
    fn a_game_may_have_any_name() {
        let header = TraceHeader { game: "two\nlines, \"x\"".to_owned(), ..TraceHeader::default() };
        let golden = ReplaySummary::for_golden(header.clone()).golden().expect("a golden");
        assert_eq!(check_game(&golden, &header.game), Ok(()));
        assert!(check_game(&golden, "two").is_err());
    }

    fn golden(digest: &str, hits: u32, shots: &[&str]) -> String {
        let shots: String = shots.iter().map(|shot| format!("{shot}\n")).collect();
        format!("hitreg golden 1\ngame g\ntrace {digest}\n\nticks 1 {digest}\n\nusercmds 9\nhits {hits}\n\n{shots}")
    }

    #[test]
    fn a_difference_is_of_its_most_important_kind() {
        let of = |accepted: Option<&str>, replayed: &str| GoldenChange::of(accepted, replayed);
        let shot = "tick 1 p0 #1 rifle: hit p1 chest 9; rewound 80.000 ms, view error 0.000";
        let before = golden("aa", 1, &[shot]);
        for (kind, after) in [
            (GoldenChange::Same, before.clone()),
            (GoldenChange::Digests, golden("bb", 1, &[shot])),
            (GoldenChange::Counts, golden("bb", 2, &[shot])),
            (GoldenChange::Shots, golden("bb", 2, &[&shot.replace("80.000", "81.000")])),
            (GoldenChange::Shots, golden("bb", 2, &[&shot.replace("tick 1", "tick 12")])),
            (GoldenChange::Hits, golden("bb", 2, &[&shot.replace("p0 #1", "p0 #2")])),
            (GoldenChange::Hits, golden("bb", 2, &[&shot.replace("chest 9", "head 36")])),
            (GoldenChange::Hits, golden("bb", 2, &[])),
        ] {
            assert_eq!(of(Some(&before), &after), kind);
        }
        let unrewound = |error: &str| golden("aa", 1, &[&format!("tick 1 p0 #1 rifle: missed, view error {error}")]);
        assert_eq!(of(Some(&unrewound("49.616")), &unrewound("49.617")), GoldenChange::Shots);
        assert_eq!(of(None, &before), GoldenChange::New);
        assert_eq!(of(Some("not a golden\n"), &before), GoldenChange::Hits);
    }

    #[test]
    fn differences_are_shown_in_context_with_counts_first() {
        let before = golden("aa", 1, &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
        let after = golden("bb", 2, &["a", "b", "c", "D", "e", "f", "g", "h", "i", "j", "k"]);
        assert_eq!(difference(&before, &before), None);
        let expected = "--- accepted\n+++ replayed\n@@ counts @@\n usercmds 9\n-hits 1\n+hits 2\n\
            @@ shots @@\n b\n c\n-d\n+D\n e\n f\n@@ shots @@\n i\n j\n+k\n\
            @@ digests @@\n hitreg golden 1\n game g\n-trace aa\n-ticks 1 aa\n+trace bb\n+ticks 1 bb\n";
        assert_eq!(difference(&before, &after).map(|found| found.to_string()).as_deref(), Some(expected));
        // Text that is not a golden differs, whichever part it is in.
        assert!(difference("not a golden\n", &after).is_some_and(|found| found.to_string().contains("-not a golden")));
    }
}

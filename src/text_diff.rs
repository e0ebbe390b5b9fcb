//! Two texts held against each other line by line, for a person to read: what differs between a few lines that do not, and
//! which words of a line came in another's place.

use std::fmt::{self, Display, Formatter};

use serde::{Serialize, Serializer};
use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, InlineChange};

/// How two texts differ. Written out it is a unified diff without line numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextDiff {
    /// The lines that are shown.
    pub lines: Vec<Line>,
}

/// A line of one text or of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which text has it.
    pub of: Of,
    /// Its words, in order.
    pub words: Vec<Words>,
}

/// Where a line is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Neither text: it says what comes next.
    Neither,
    /// Both.
    Both,
    /// The first alone.
    Before,
    /// The second alone.
    After,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The words.
    pub text: String,
    /// Whether they are what is another in a line that else is the same.
    pub changed: bool,
}

/// Changes of more lines are shown without their words held against each other: nobody reads which words of hundreds of lines
/// were another's, and it takes long to find.
const MOST_LINES: usize = 60;

impl TextDiff {
    /// Adds a line of neither text.
    pub fn say(&mut self, text: &str) {
        self.lines.push(Line { of: Of::Neither, words: vec![Words { text: text.to_owned(), changed: false }] });
    }

    /// Adds where two texts differ, with so many lines around each place, and a line before the first and before each other that says
    /// where it is.
    pub fn add(&mut self, heads: [&str; 2], before: &str, after: &str, context: usize) {
        let lines = similar::TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(before, after);
        for (number, place) in lines.grouped_ops(context).into_iter().enumerate() {
            self.say(heads[number.min(1)]);
            for change in &place {
                let few = change.old_range().len() + change.new_range().len() <= MOST_LINES;
                match few && change.tag() == DiffTag::Replace {
                    // No clock says what is found: there is no deadline.
                    true => self.lines.extend(lines.iter_inline_changes_deadline(change, None).map(Line::of)),
                    false => self.lines.extend(whole(&lines, change)),
                }
            }
        }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

fn whole<'d>(lines: &'d similar::TextDiff<'_, '_, str>, change: &'d DiffOp) -> impl Iterator<Item = Line> + use<'d> {
    lines.iter_changes(change).map(|line| Line::of(line.into()))
}

impl Line {
    fn of(line: InlineChange<'_, str>) -> Line {
        let of = match line.tag() {
            ChangeTag::Equal => Of::Both,
            ChangeTag::Delete => Of::Before,
            ChangeTag::Insert => Of::After,
        };
        let words = line
            .values()
            .iter()
            .map(|(changed, text)| Words { text: text.trim_end_matches(['\n', '\r']).to_owned(), changed: *changed });
        Line { of, words: words.filter(|words| !words.text.is_empty()).collect() }
    }

    /// What stands before it.
    pub fn sign(&self) -> &'static str {
        match self.of {
            Of::Neither => "",
            Of::Both => " ",
            Of::Before => "-",
            Of::After => "+",
        }
    }
}

impl Display for TextDiff {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            f.write_str(line.sign())?;
            line.words.iter().try_for_each(|words| f.write_str(&words.text))?;
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl Serialize for TextDiff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_stands_between_lines_that_do_not_and_its_words_are_known() {
        let (before, after) = ("a\nb\nlerp_ms = 100\nd\ne\nf\ng\n", "a\nb\nlerp_ms = 50\nd\ne\nf\ng\nh\n");
        let mut diff = TextDiff::default();
        diff.add(["@@"; 2], before, before, 1);
        assert!(diff.is_empty());
        diff.add(["@@"; 2], before, after, 1);
        assert_eq!(diff.to_string(), "@@\n b\n-lerp_ms = 100\n+lerp_ms = 50\n d\n@@\n g\n+h\n");
        let changed = |line: &Line| line.words.iter().filter(|words| words.changed).map(|w| w.text.clone()).collect();
        let changed: Vec<String> = diff.lines.iter().map(changed).collect();
        assert_eq!(changed, ["", "", "100", "50", "", "", "", ""]);
    }

    #[test]
    fn changes_of_many_lines_come_in_one_piece_and_at_once() {
        let text = |from: u32| (from..from + 20_000).map(|n| format!("tick {n}\n")).collect::<String>();
        let mut diff = TextDiff::default();
        diff.add(["@@"; 2], &text(0), &text(50_000), 2);
        assert_eq!(diff.lines.len(), 40_001);
        assert!(diff.lines.iter().flat_map(|line| &line.words).all(|words| !words.changed));
    }
}

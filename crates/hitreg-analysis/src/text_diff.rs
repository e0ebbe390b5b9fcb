//! A line diff of two texts for human readers: changed lines with a few lines of context, and the changed words within
//! a line.

use std::fmt::{self, Display, Formatter};

use serde::{Serialize, Serializer};
use similar::algorithms::{Capture, Compact, Replace, patience};
use similar::{DiffOp, DiffTag, group_diff_ops};

/// The differences of two texts. Its text form is a unified diff without line numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextDiff {
    /// The lines of the diff.
    pub lines: Vec<DiffLine>,
}

/// A line of one text or of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// The origin of the line.
    pub of: LineOrigin,
    /// The parts of the line, in order.
    pub words: Vec<LinePart>,
}

/// The origin of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOrigin {
    /// Neither text: a heading.
    Neither,
    /// Both texts.
    Both,
    /// The first text only.
    Before,
    /// The second text only.
    After,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePart {
    /// Text of the part.
    pub text: String,
    /// Whether the part differs between two otherwise similar lines.
    pub changed: bool,
}

/// The most lines of a change for which words are compared. Word changes in longer changes are unreadable and slow to
/// find.
const WORD_LINES_MAX: usize = 60;
/// The lowest similarity of words, from 0 to 1, for lines to count as related.
const SIMILARITY_MIN: f32 = 0.5;

impl TextDiff {
    /// Adds a heading.
    pub fn say(&mut self, text: &str) {
        self.lines.push(DiffLine {
            of: LineOrigin::Neither,
            words: vec![LinePart { text: text.to_owned(), changed: false }],
        });
    }

    /// Adds the differences of two texts with `context` lines around each. The first heading precedes the first
    /// difference, the second precedes each other one.
    pub fn add(&mut self, heads: [&str; 2], before: &str, after: &str, context: usize) {
        let lines = [before, after].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
        for (number, place) in group_diff_ops(differ(&lines), context).into_iter().enumerate() {
            self.say(heads[number.min(1)]);
            for change in &place {
                let [before, after] = [&lines[0][change.old_range()], &lines[1][change.new_range()]];
                match change.tag() {
                    DiffTag::Equal => {
                        self.lines.extend(before.iter().map(|line| DiffLine::whole(LineOrigin::Both, line)))
                    }
                    DiffTag::Replace if before.len() + after.len() <= WORD_LINES_MAX => self.add_words(before, after),
                    DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                        self.lines.extend(before.iter().map(|line| DiffLine::whole(LineOrigin::Before, line)));
                        self.lines.extend(after.iter().map(|line| DiffLine::whole(LineOrigin::After, line)));
                    }
                }
            }
        }
    }

    /// Adds lines that replaced others, and marks the changed words.
    fn add_words(&mut self, before: &[&str], after: &[&str]) {
        let both = [before, after].map(|lines| lines.iter().flat_map(|line| words(line)).collect::<Vec<_>>());
        let changes = differ(&both);
        let is_alike = similar::diff_ratio(&changes, both[0].len(), both[1].len()) >= SIMILARITY_MIN;
        let mut changed = [0, 1].map(|side| vec![false; both[side].len()]);
        for change in changes.iter().filter(|change| is_alike && change.tag() != DiffTag::Equal) {
            changed[0][change.old_range()].fill(true);
            changed[1][change.new_range()].fill(true);
        }
        for (of, lines, changed) in [(LineOrigin::Before, before, &changed[0]), (LineOrigin::After, after, &changed[1])]
        {
            let mut changed = changed.iter();
            self.lines.extend(lines.iter().map(|line| DiffLine::of(of, words(line).zip(changed.by_ref().copied()))));
        }
    }

    /// Returns whether there are no differences.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Returns the edits from the first list to the second.
fn differ([before, after]: &[Vec<&str>; 2]) -> Vec<DiffOp> {
    let (before, after) = (&before[..], &after[..]);
    let mut changes = Compact::new(Replace::new(Capture::new()), before, after);
    let Ok(()) = patience::diff(&mut changes, before, 0..before.len(), after, 0..after.len());
    changes.into_inner().into_inner().into_ops()
}

/// Splits a line into words and the whitespace between them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.trim_end_matches(['\n', '\r']).split_inclusive(char::is_whitespace).flat_map(|word| {
        let (word, space) = word.split_at(word.trim_end().len());
        [word, space].into_iter().filter(|part| !part.is_empty())
    })
}

impl DiffLine {
    fn whole(of: LineOrigin, line: &str) -> DiffLine {
        DiffLine::of(of, std::iter::once((line.trim_end_matches(['\n', '\r']), false)))
    }

    fn of<'t>(of: LineOrigin, words: impl Iterator<Item = (&'t str, bool)>) -> DiffLine {
        let mut line = DiffLine { of, words: Vec::<LinePart>::new() };
        for (text, changed) in words.filter(|(text, _)| !text.is_empty()) {
            match line.words.last_mut().filter(|last| last.changed == changed) {
                Some(last) => last.text.push_str(text),
                None => line.words.push(LinePart { text: text.to_owned(), changed }),
            }
        }
        line
    }

    /// Returns the sign before the line: `+`, `-`, a space, or nothing.
    pub fn sign(&self) -> &'static str {
        match self.of {
            LineOrigin::Neither => "",
            LineOrigin::Both => " ",
            LineOrigin::Before => "-",
            LineOrigin::After => "+",
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
    fn differences_have_context_and_changed_words() {
        let (before, after) = ("a\nb\nlerp_ms = 100\nd\ne\nf\ng\n", "a\nb\nlerp_ms = 50\nd\ne\nf\ng\nh\n");
        let mut diff = TextDiff::default();
        diff.add(["@@"; 2], before, before, 1);
        assert!(diff.is_empty());
        diff.add(["@@"; 2], before, after, 1);
        assert_eq!(diff.to_string(), "@@\n b\n-lerp_ms = 100\n+lerp_ms = 50\n d\n@@\n g\n+h\n");
        let changed =
            |line: &DiffLine| line.words.iter().filter(|words| words.changed).map(|w| w.text.clone()).collect();
        let changed: Vec<String> = diff.lines.iter().map(changed).collect();
        assert_eq!(changed, ["", "", "100", "50", "", "", "", ""]);
    }

    #[test]
    fn changes_of_many_lines_are_one_block_and_fast() {
        let text = |from: u32| (from..from + 20_000).map(|n| format!("tick {n}\n")).collect::<String>();
        let mut diff = TextDiff::default();
        diff.add(["@@"; 2], &text(0), &text(50_000), 2);
        assert_eq!(diff.lines.len(), 40_001);
        assert!(diff.lines.iter().flat_map(|line| &line.words).all(|words| !words.changed));
    }
}

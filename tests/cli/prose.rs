//! The language of README, docs and help: a list of phrases to avoid, and limits on the length of sentences and cells.
//! Also, every page of docs that the code names must exist.

use std::fs;
use std::path::{Path, PathBuf};

use super::folder::Folder;

/// Phrases that make text hard to read. Each has a shorter word, or needs a subject or a noun.
/// `a|b` is either word, `*` is any word, `…` is up to ten words.
const AVOIDED: [&str; 40] = [
    "anew",
    "as it was|is",
    "as they were|are",
    "by itself|themselves",
    "by then",
    "by|from|to whom",
    "came|come|comes|play|plays|replay|replays otherwise",
    "came|come|comes|play|plays|replay|replays out otherwise",
    "come|comes to",
    "give|gives off",
    "go|goes before",
    "gone through",
    "has a|no right to",
    "held against",
    "hold|holds … against",
    "in whose",
    "is|are|was|were no|none * of|by",
    "is|are|was|were|be told",
    "is whole",
    "made worse",
    "nobody",
    "of one's own",
    "of which",
    "of whom",
    "otherwise than",
    "put together|beside",
    "says that it is of",
    "so much|many|far and|of|time",
    "somebody",
    "stand|stands there|in|here|beside|behind|before",
    "stands for itself",
    "taken apart",
    "that alone",
    "that which",
    "those that|who|whom",
    "what|whatever is|was|has|are|stands|comes|differs … is|are|was|were",
    "wherefore",
    "whoever",
    "whosoever",
    "whomever",
];

/// The greatest number of words of `…`.
const GAP: usize = 10;

/// The greatest number of words in a sentence that does not count as long.
const SENTENCE: usize = 28;
/// The greatest number of words in a table cell that does not count as long.
const CELL: usize = 25;

/// The limits of a group of texts.
struct Limits {
    phrases_per_1000: f64,
    long_per_1000: f64,
    cells: usize,
}

const LIMITS: Limits = Limits { phrases_per_1000: 0.6, long_per_1000: 4.0, cells: 5 };

/// The findings in a group of texts.
#[derive(Default)]
struct ProseFindings {
    words: usize,
    phrases: Vec<String>,
    long: Vec<String>,
    cells: Vec<String>,
}

impl ProseFindings {
    fn sentence(&mut self, place: &str, text: &str) {
        let words = self.count(place, text);
        if words > SENTENCE {
            self.long.push(format!("{place}: {words} words: {text}"));
        }
    }

    fn cell(&mut self, place: &str, text: &str) {
        let words = self.count(place, text);
        if words > CELL {
            self.cells.push(format!("{place}: {words} words: {text}"));
        }
    }

    /// Counts the words of a text, and finds its avoided phrases.
    fn count(&mut self, place: &str, text: &str) -> usize {
        let word = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let words: Vec<String> = text.split_whitespace().map(word).collect();
        for phrase in AVOIDED {
            let pattern: Vec<&str> = phrase.split(' ').collect();
            let found = (0..words.len()).filter(|&at| begins_with(&words[at..], &pattern));
            self.phrases.extend(found.map(|_| format!("{place}: \"{phrase}\": {text}")));
        }
        self.words += words.len();
        words.len()
    }

    fn check(&self, limits: &Limits) {
        let per_1000 = |found: &[String]| 1000.0 * found.len() as f64 / self.words.max(1) as f64;
        assert!(self.words > 1_000, "there is text to check");
        assert!(per_1000(&self.phrases) <= limits.phrases_per_1000, "phrases to avoid:\n{}", self.phrases.join("\n"));
        assert!(per_1000(&self.long) <= limits.long_per_1000, "long sentences:\n{}", self.long.join("\n"));
        assert!(self.cells.len() <= limits.cells, "long cells:\n{}", self.cells.join("\n"));
    }
}

/// Whether the words begin with a phrase of `AVOIDED`.
fn begins_with(words: &[String], pattern: &[&str]) -> bool {
    match pattern {
        [] => true,
        ["…", rest @ ..] => (0..=GAP.min(words.len())).any(|gap| begins_with(&words[gap..], rest)),
        [one, rest @ ..] => words.split_first().is_some_and(|(word, words)| {
            (*one == "*" || one.split('|').any(|other| other == word)) && begins_with(words, rest)
        }),
    }
}

/// The text with each code span as one word, and links as their words.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let spans = parts.iter().enumerate().map(|(index, part)| if index % 2 == 1 { "X" } else { part });
    let mut text: String = spans.collect();
    while let Some((start, end)) = text.find("](").and_then(|at| Some((at, at + text[at..].find(')')?))) {
        text.replace_range(start..=end, "");
    }
    text
}

/// Splits a paragraph into sentences.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let last = sentences.last_mut().expect("one");
        let begins = word.starts_with(|c: char| c.is_uppercase() || "*`[(".contains(c));
        if begins && last.ends_with(['.', '!', '?', ':', ';']) {
            sentences.push(word.to_owned());
        } else {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
    }
    sentences
}

/// Adds a page of Markdown.
fn add_page(found: &mut ProseFindings, name: &str, text: &str) {
    let (mut is_code, mut paragraph) = (false, String::new());
    for (number, line) in text.lines().chain([""]).enumerate() {
        let place = format!("{name}:{}", number + 1);
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        is_code ^= is_fence;
        if is_code || is_fence {
            continue;
        }
        let numbered = trimmed.split_once(". ").filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
        let item =
            ["- ", "* ", "+ "].iter().find_map(|mark| trimmed.strip_prefix(mark)).or(numbered.map(|(_, item)| item));
        let is_table = trimmed.starts_with('|');
        if item.is_some() || is_table || trimmed.is_empty() || trimmed.starts_with('#') {
            sentences(&paragraph).iter().for_each(|sentence| found.sentence(&place, sentence));
            paragraph.clear();
        }
        if is_table {
            let line = without_code(trimmed);
            let cells = line.trim_matches('|').split('|').map(str::trim);
            cells.filter(|cell| cell.contains(char::is_alphanumeric)).for_each(|cell| found.cell(&place, cell));
        } else if !trimmed.starts_with('#') {
            paragraph.push_str(&without_code(item.unwrap_or(trimmed)));
            paragraph.push(' ');
        }
    }
}

/// The first words of blocks in a help text that are not prose.
const CODE: [&str; 4] = ["Usage:", "Examples:", "A scenario file:", "With git bisect"];

/// Adds a help text: its paragraphs, the texts of its options, and its list of commands, without usage and examples.
fn add_help(found: &mut ProseFindings, command: &str, text: &str) {
    let place = format!("hitreg {command} --help");
    for block in text.split("\n\n") {
        let block = block.trim_end();
        let title = block.lines().next().unwrap_or_default();
        if CODE.iter().any(|start| title.starts_with(start)) {
            continue;
        }
        let mut paragraph = String::new();
        for line in block.lines() {
            let trimmed = line.trim_start();
            let indent = line.len() - trimmed.len();
            let is_name = (2..=6).contains(&indent) && trimmed.starts_with(['-', '<', '[']);
            let is_command = title == "Commands:" && indent == 2;
            if is_name || is_command || line.ends_with(':') && indent == 0 {
                sentences(&paragraph).iter().for_each(|sentence| found.sentence(&place, sentence));
                paragraph.clear();
            }
            if is_command {
                paragraph = trimmed.split_once("  ").map_or("", |(_, about)| about.trim()).to_owned() + " ";
            } else if !is_name {
                paragraph.push_str(&without_code(trimmed));
                paragraph.push(' ');
            }
        }
        sentences(&paragraph).iter().for_each(|sentence| found.sentence(&place, sentence));
    }
}

#[test]
fn pages_are_in_plain_english() {
    let mut pages: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "bindings/python/README.md"].map(PathBuf::from).to_vec();
    pages.extend(files_below(Path::new("docs"), &["md"]));
    let crates = ["crates", "adapters"].into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    pages.extend(crates.map(|entry| entry.unwrap().path().join("README.md")));
    let mut found = ProseFindings::default();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        add_page(&mut found, &page.display().to_string(), &text);
    }
    add_header(&mut found, "crates/hitreg-capi/include/hitreg.h");
    found.check(&LIMITS);
}

/// Adds the comments of a C header.
fn add_header(found: &mut ProseFindings, path: &str) {
    let text = fs::read_to_string(path).unwrap();
    let comments = text.lines().map(|line| line.trim().strip_prefix("//").unwrap_or_default().trim_start());
    add_page(found, path, &comments.collect::<Vec<_>>().join("\n"));
}

#[test]
fn help_is_in_plain_english() {
    let folder = Folder::empty();
    let (mut found, mut commands) = (ProseFindings::default(), vec![String::new()]);
    while let Some(command) = commands.pop() {
        let help = folder.done(&format!("{command} --help"));
        let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
        let names = listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
        let names = names.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_whitespace().next());
        commands.extend(names.filter(|name| *name != "help").map(|name| format!("{command} {name}").trim().to_owned()));
        add_help(&mut found, &command, &help);
    }
    found.check(&LIMITS);
}

#[test]
fn the_check_finds_phrases_and_long_sentences() {
    let mut found = ProseFindings::default();
    add_page(&mut found, "a", "It is told anew.\n\n```\nanew\n```\n\n| `anew` | by then |\n| --- | --- |\n");
    assert_eq!(found.phrases.len(), 3, "{:?}", found.phrases);
    add_page(&mut found, "a", &format!("One {}. Two.\n\n| {} |\n", "word ".repeat(29), "word ".repeat(26)));
    assert_eq!((found.long.len(), found.cells.len()), (1, 1), "{:?} {:?}", found.long, found.cells);
    let mut found = ProseFindings::default();
    add_page(
        &mut found,
        "a",
        "1. They come to whom?\n2. What the log has now is: what is in it was lost. It holds A and B against C.\n",
    );
    assert_eq!(found.phrases.len(), 4, "{:?}", found.phrases);
    let mut found = ProseFindings::default();
    let help = "About anew\n\nUsage: hitreg anew\n\nCommands:\n  one  Nobody\n  two  Some\n       body\n\nOptions:\n  -o, --output <ANEW>\n          \
                Whoever writes\n\nExamples:\n  hitreg anew\n";
    add_help(&mut found, "a", help);
    assert_eq!(found.phrases.len(), 3, "{:?}", found.phrases);
}

#[test]
fn every_page_that_the_code_names_exists() {
    let mut named = 0;
    for folder in ["src", "crates", "tests", "examples", "benches"] {
        for file in files_below(Path::new(folder), &["rs", "js", "h", "toml", "py", "sh", "mjs"]) {
            let text = fs::read_to_string(&file).unwrap();
            for (at, _) in text.match_indices("docs/") {
                let is_name = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
                let name: String = text[at..].chars().take_while(is_name).collect();
                let Some(name) = name.find(".md").map(|end| &name[..end + 3]) else { continue };
                assert!(Path::new(name).is_file(), "{}: there is no {name}", file.display());
                named += 1;
            }
        }
    }
    assert!(named > 20, "pages are named in the code: {named}");
}

/// A caller in C or Rust has no command line.
#[test]
fn errors_of_the_log_library_name_no_option() {
    let mut errors = 0;
    for file in files_below(Path::new("crates/hitreg-log/src"), &["rs"]) {
        let text = fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("#[error(") {
            let message = &text[at..at + text[at..].find(")]").unwrap()];
            let names_option = [" -o ", "hitreg serve"].into_iter().any(|word| message.contains(word));
            // Whole commands of hitreg and of builds are for everybody.
            let is_command = ["run: hitreg ", "replay LOG -o TRACE"].into_iter().any(|word| message.contains(word));
            assert!(!names_option || is_command, "{}: {message}", file.display());
            errors += 1;
        }
    }
    assert!(errors > 50, "errors of the library: {errors}");
}

/// All files below a folder with one of these extensions.
fn files_below(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path, extensions));
        } else if path.extension().is_some_and(|own| extensions.iter().any(|extension| own == *extension)) {
            files.push(path);
        }
    }
    files.sort();
    files
}

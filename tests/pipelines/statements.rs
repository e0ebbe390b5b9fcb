//! The table of statements in docs/claims.md. Each statement has a place in the code and a test, and all names in the
//! table exist.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use hitreg::settings::{PRESETS, SettingError, Settings};

#[test]
fn names_in_the_table_of_statements_exist() {
    let page = read_to_string(root("docs/claims.md")).expect("the page");
    let (_, table) = page.split_once("## Every statement of the documents").expect("the table");
    let rows = rows(table);
    let wrong: Vec<String> = rows.iter().flat_map(|row| Sources::default().errors_in(row)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let numbers: Vec<String> = rows.iter().map(|row| row.number.clone()).collect();
    assert_eq!(numbers, (1..=numbers.len()).map(|number| number.to_string()).collect::<Vec<_>>());
    let how = |begins: &[&str]| rows.iter().filter(|row| begins.iter().any(|b| row.how.starts_with(b))).count();
    let output = format!(
        "Of {} statements {} are as written, {} differ, none in part, and {} not ours; none is\nmissing.",
        rows.len(),
        how(&["as "]),
        how(&["differs"]),
        how(&["not ours"])
    );
    assert!(table.contains(&output), "{output}");
}

#[test]
fn a_wrong_name_in_the_table_is_found() {
    let right = "| 1 | one server | `server.rs` (`tick`), `server.update_hz` | `every-tick`, `pipelines/schedule.rs` | as written |";
    assert_eq!(errors_in(right), Vec::<String>::new());
    for (name, other) in [
        ("`server.rs`", "`servant.rs`"),
        ("`tick`", "`tack`"),
        ("`server.update_hz`", "`server.update_herz`"),
        ("`server.update_hz`", "`server.update_hz=many`"),
        ("`server.update_hz`", "preset `quake9`"),
        ("`server.update_hz`", "`Body::teleportation`"),
        ("`server.update_hz`", "`join --update-herz`"),
        ("`every-tick`", "`every-tack`"),
        ("`every-tick`", "`evry-*`"),
        ("`pipelines/schedule.rs`", "`pipelines/shedule.rs`"),
        ("`pipelines/schedule.rs`", "`no_such_test` in `pipelines/schedule.rs`"),
        ("`every-tick`, `pipelines/schedule.rs`", ""),
        ("as written", "as well"),
    ] {
        let wrong = right.replace(name, other);
        assert_eq!(errors_in(&wrong).len(), 1, "{wrong}");
    }
}

fn errors_in(line: &str) -> Vec<String> {
    let [row] = &rows(line)[..] else { panic!("no row: {line}") };
    Sources::default().errors_in(row)
}

/// A row of the table.
struct StatementRow {
    number: String,
    place: String,
    shown_by: String,
    how: String,
}

fn rows(table: &str) -> Vec<StatementRow> {
    let row = |line: &str| {
        let cells: Vec<String> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let [number, _, place, shown_by, how] = cells.try_into().ok()?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(StatementRow { number, place, shown_by, how })
    };
    table.lines().filter(|line| line.starts_with("| ")).filter_map(row).collect()
}

/// The files in which names are looked up.
#[derive(Default)]
struct Sources {
    /// The files of the last file name.
    named: Vec<PathBuf>,
}

impl Sources {
    /// The errors of a row.
    fn errors_in(mut self, row: &StatementRow) -> Vec<String> {
        let known = ["as written", "as 93 to 99", "differs", "not ours"];
        let mut wrong = Vec::new();
        if !known.iter().any(|how| row.how.starts_with(how)) {
            wrong.push(format!("{}: it is `{}`", row.number, row.how));
        }
        if row.shown_by.is_empty() && !row.how.starts_with("not ours") {
            wrong.push(format!("{}: nothing shows it", row.number));
        }
        for (before, name) in quoted(&row.place) {
            if !self.is_place(before, name) {
                wrong.push(format!("{}: there is no place `{name}`", row.number));
            }
        }
        self.named.clear();
        let shown_by = quoted(&row.shown_by);
        for (at, (before, name)) in shown_by.iter().enumerate() {
            // A test belongs to the file named after it.
            let file = shown_by.get(at + 1).filter(|(between, _)| *between == " in ").map(|(_, file)| *file);
            if !self.shows(before, name, file) {
                wrong.push(format!("{}: no claim or test `{name}`", row.number));
            }
        }
        wrong
    }

    fn is_place(&mut self, before: &str, name: &str) -> bool {
        if before.ends_with("preset ") {
            return PRESETS.iter().any(|preset| preset.name == name);
        }
        if let Some((_, option)) = name.split_once("--") {
            return has_word(&files_in(&root("src/cli")), &option.replace('-', "_"));
        }
        let files = files_of(name);
        if !files.is_empty() {
            self.named = files;
            return true;
        }
        if let Some(setting) = name.strip_prefix("p2.").or(Some(name)).filter(|name| name.contains('.')) {
            return is_setting(setting);
        }
        match self.named.is_empty() || name.contains("::") {
            true => {
                let files: Vec<PathBuf> = source_folders().iter().flat_map(|folder| files_in(folder)).collect();
                name.split("::").all(|word| has_word(&files, word))
            }
            false => has_word(&self.named, name),
        }
    }

    fn shows(&mut self, before: &str, name: &str, file: Option<&str>) -> bool {
        if let Some(file) = file {
            return has_word(&files_of(file), &format!("fn {name}"));
        }
        if before.ends_with("table ") {
            return hitreg::trace::schema::TABLES.iter().any(|table| table.name == name);
        }
        let mut claims = hitreg_selftest::claims::all().map(|claim| claim.name);
        if let Some(begins) = name.strip_suffix('*') {
            return claims.any(|claim| claim.starts_with(begins));
        }
        let files = files_of(name);
        if !files.is_empty() {
            self.named = files;
            return true;
        }
        let is_in_parentheses = before.ends_with('(') && !self.named.is_empty();
        claims.any(|claim| claim == name) || (is_in_parentheses && has_word(&self.named, name))
    }
}

/// The texts in backticks, each with the text between it and the one before.
fn quoted(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    parts.as_chunks().0.iter().map(|[before, name]| (*before, *name)).collect()
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The source folders of the workspace's packages.
fn source_folders() -> Vec<PathBuf> {
    let crates = std::fs::read_dir(root("crates")).expect("the crates").map(|entry| entry.expect("a crate").path());
    crates.chain([root("")]).map(|package| package.join("src")).collect()
}

/// The files of a name: a source or test file, or all files of a folder. `arena/pmove` is in the crate `hitreg-arena`.
fn files_of(name: &str) -> Vec<PathBuf> {
    let name = name.trim_end_matches('/');
    let in_crate = name.split_once('/').map(|(first, rest)| (root(&format!("crates/hitreg-{first}/src")), rest));
    let in_source = source_folders().into_iter().map(|folder| (folder, name));
    let in_tests = [root("tests"), root("tests/pipelines")].map(|folder| (folder, name));
    in_source
        .chain(in_tests)
        .chain(in_crate)
        .flat_map(|(folder, name)| [folder.join(name), folder.join(format!("{name}.rs"))])
        .flat_map(|path| files_in(&path))
        .collect()
}

fn files_in(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.flat_map(|entry| files_in(&entry.path())).collect()
}

fn has_word(files: &[PathBuf], word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    files.iter().any(|file| {
        let text = read_to_string(file).unwrap_or_default();
        text.match_indices(word)
            .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next()))
    })
}

fn is_setting(name: &str) -> bool {
    let (key, value) = name.split_once('=').map_or((name, None), |(key, value)| (key, Some(value)));
    let set = Settings::default().set(key, value.unwrap_or_default());
    set.is_ok() || (value.is_none() && !matches!(set, Err(SettingError::UnknownKey { .. })))
}

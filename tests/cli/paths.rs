//! docs/paths.md names existing files and functions, and has correct counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The files of each hop of a command.
type Hops = Vec<BTreeSet<PathBuf>>;

/// The source file that the page names as `netcode/client.rs` or `cli/record.rs`.
fn source(name: &str) -> PathBuf {
    let of_crate = name.split_once('/').map(|(first, rest)| (format!("crates/hitreg-{first}/src"), rest));
    match of_crate.filter(|(sources, _)| Path::new(sources).is_dir()) {
        Some((sources, rest)) => Path::new(&sources).join(rest),
        None => Path::new("src").join(name),
    }
}

/// The numbers in a text such as `hops 1–2 and 4–7`.
fn numbers(text: &str) -> Vec<usize> {
    let words = text.split([' ', ',']).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let ends = words.map(|word| word.split_once('–').unwrap_or((word, word)));
    ends.flat_map(|(first, last)| first.parse().expect("a hop")..=last.parse().expect("a hop")).collect()
}

/// The code spans of a text.
fn spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The files of one hop: named in it with their functions, or those of the named hops of another command.
fn files(cell: &str, known: &BTreeMap<String, Hops>) -> BTreeSet<PathBuf> {
    let spans = spans(cell);
    if let Some((hops, _)) = cell.strip_prefix("hops ").and_then(|rest| rest.split_once(" of ")) {
        let of = known.get(spans[0]).unwrap_or_else(|| panic!("{cell}: the command comes later on the page"));
        return numbers(hops).iter().flat_map(|hop| of[hop - 1].clone()).collect();
    }
    let [name, function] = spans[..] else { panic!("{cell}: name a file and a function") };
    let path = source(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for part in function.split("::") {
        assert!(words.contains(part), "{name}: there is no {part}");
    }
    BTreeSet::from([path])
}

#[test]
fn paths_page_has_correct_files_functions_and_counts() {
    let page = std::fs::read_to_string("docs/paths.md").expect("the page");
    let mut commands: BTreeMap<String, Hops> = BTreeMap::new();
    for section in page.split("\n## How a ").skip(1) {
        let title = section.lines().next().expect("a title");
        let name = spans(title)[0].trim_end_matches(" A B").to_owned();
        let mut hops = Hops::new();
        for row in section.lines().filter_map(|line| line.strip_prefix("| ")) {
            let cells: Vec<&str> = row.split(" | ").collect();
            let Ok(number) = cells[0].parse::<usize>() else { continue };
            hops.push(files(cells[1], &commands));
            assert_eq!(number, hops.len(), "hops of {name} are numbered: {row}");
        }
        let all: BTreeSet<&PathBuf> = hops.iter().flatten().collect();
        let arena = all.iter().filter(|path| path.starts_with("crates/hitreg-arena")).count();
        let count = format!("| `{name}` | {} | {} | {arena} |", hops.len(), all.len());
        assert!(page.contains(&count), "the table should have: {count}");
        commands.insert(name, hops);
    }
    assert_eq!(commands.len(), 3, "three commands");
    let of = |name: &str| commands[name].iter().flatten().collect::<BTreeSet<_>>();
    let (verify, diff) = (of("verify"), of("diff"));
    let all = commands.values().flatten().flatten().collect::<BTreeSet<_>>().len();
    let shared = verify.intersection(&diff).count();
    let counts = format!("pass {all} files. `diff` shares {shared} of its files with `verify`.");
    assert!(page.contains(&counts), "the page should say: {counts}");
    for name in spans(&page).into_iter().filter(|name| name.ends_with(".rs")) {
        let is_path = name.starts_with("crates/");
        assert!(if is_path { Path::new(name).is_file() } else { source(name).is_file() }, "there is no {name}");
    }
}

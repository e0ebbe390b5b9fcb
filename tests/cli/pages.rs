//! Pages whose commands are run: the README and the tutorials. Each command must print what its page shows.
//!
//! A page is run from top to bottom in an empty folder. In a `console` block, a line `$ COMMAND` runs in a shell. It
//! goes on in the next line after a backslash. The lines below it are its output: `...` stands for any lines. Speeds and names of builds depend on the machine, so any are right. In a tutorial, lines
//! of a `c` block must be lines of `examples/c/game.c`, and a `rust` block must be `examples/boats`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::folder::{Folder, text};

macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        $(
            #[test]
            fn $test() {
                run($page);
            }
        )*

        const PAGES: &[&str] = &[$($page),*];
    };
}

pages! {
    the_readme_shows_real_output: "README.md",
    tutorial_engine: "docs/tutorials/engine.md",
    tutorial_rust_game: "docs/tutorials/rust-game.md",
    tutorial_missed_shot: "docs/tutorials/missed-shot.md",
    tutorial_rubber_banding: "docs/tutorials/rubber-banding.md",
    tutorial_desync: "docs/tutorials/desync.md",
    tutorial_real_game: "docs/tutorials/real-game.md",
    tutorial_ci: "docs/tutorials/ci.md",
}

#[test]
fn every_tutorial_with_commands_is_run() {
    for entry in fs::read_dir(root().join("docs/tutorials")).expect("docs/tutorials") {
        let page = format!("docs/tutorials/{}", entry.expect("a page").file_name().display());
        let has_commands = fs::read_to_string(root().join(&page)).expect("a page").contains("```console");
        assert_eq!(has_commands, PAGES.contains(&page.as_str()), "{page}");
    }
}

#[test]
fn outputs_are_matched_line_by_line() {
    let matches = |expected: &[&str], output: &[&str]| {
        matches_output(&expected.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(), output)
    };
    assert!(matches(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["a", "..."], &["a"]));
    assert!(matches(&["20 s at 7 times real time, 1"], &["20 s at 1,300 times real time, 1"]));
    assert!(!matches(&["20 s at 7 times real time, 1"], &["20 s at 7 times real time, 2"]));
    assert!(matches(&["diff of this build (1a) --b-set"], &["diff of this build (2b) --b-set"]));
    assert!(!matches(&["diff of this build (1a) --b-set"], &["diff of this build (1a) --a-set"]));
    assert!(!matches(&["a"], &["a", "b"]));
    assert!(!matches(&["a", "b"], &["a"]));
    assert!(!matches(&["a", "...", "d"], &["a", "b"]));

    let commands = commands_of(&["$ a \\", "    b", "out \\", "put", "", "$ c"]);
    let commands: Vec<_> = commands.iter().map(|page| (page.command.as_str(), page.output.join("|"))).collect();
    assert_eq!(commands, [("a \\\n    b", "out \\|put".to_owned()), ("c", String::new())]);
}

/// A command of a page, and the output that the page shows.
struct PageCommand {
    command: String,
    output: Vec<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a page's commands. `HITREG_PAGES=write cargo test --test cli pages::` writes outputs that differ into the pages.
#[expect(clippy::disallowed_methods, reason = "an environment variable makes tests write the expected output")]
fn run(page: &str) {
    let path = root().join(page);
    let markdown = fs::read_to_string(&path).expect("a page");
    let writes = std::env::var_os("HITREG_PAGES").is_some_and(|value| value == "write");
    let folder = Folder::empty();
    let Some(library) = library(&markdown) else {
        return crate::note::skipped("libhitreg_capi.a is not built (`cargo test` builds it)");
    };
    if markdown.contains("$ boats ") {
        crate::pucks::example("boats");
    }
    let mut written = String::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        written.push_str(&format!("{line}\n"));
        if line == "```c" && page != "README.md" {
            let game = fs::read_to_string(root().join("examples/c/game.c")).expect("the example");
            let is_in_game = |line: &&str| game.lines().any(|of_game| of_game == *line);
            for line in lines.by_ref().take_while(|line| *line != "```") {
                assert!(is_in_game(&line), "{page}: not in examples/c/game.c: {line}");
                written.push_str(&format!("{line}\n"));
            }
            written.push_str("```\n");
        } else if line == "```rust" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let game = fs::read_to_string(root().join("examples/boats/main.rs")).expect("the example");
            assert!(game.lines().eq(block.iter().copied()), "{page}: not examples/boats/main.rs");
            written.push_str(&format!("{game}```\n"));
        } else if line == "```console" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            for (place, PageCommand { command, output }) in commands_of(&block).into_iter().enumerate() {
                let printed = printed_by(&command, &folder, library.as_deref());
                let printed: Vec<&str> = printed.lines().collect();
                let is_right = matches_output(&output, &printed);
                assert!(
                    is_right || writes,
                    "{page}: `{command}` printed:\n{}\nnot:\n{}",
                    printed.join("\n"),
                    output.join("\n")
                );
                let shown = if is_right { output } else { printed.iter().map(|line| (*line).to_owned()).collect() };
                let gap = if place > 0 { "\n" } else { "" };
                written.push_str(&format!("{gap}$ {command}\n"));
                shown.iter().for_each(|line| written.push_str(&format!("{line}\n")));
            }
            written.push_str("```\n");
        }
    }
    if writes {
        fs::write(path, written).expect("the page");
    }
}

/// The C library, if the page uses it. `None` if it is needed and not built.
fn library(markdown: &str) -> Option<Option<PathBuf>> {
    if !markdown.contains("$HITREG_LIBRARY") {
        return Some(None);
    }
    // `cargo test` leaves the library in `deps`.
    let built = Path::new(env!("CARGO_BIN_EXE_hitreg")).parent()?;
    let places = [built.join("libhitreg_capi.a"), built.join("deps/libhitreg_capi.a")];
    let newest = |place: &PathBuf| place.metadata().and_then(|file| file.modified()).ok();
    places.into_iter().filter(|place| newest(place).is_some()).max_by_key(newest).map(Some)
}

/// The commands of a block. Empty lines before a command or at the end are not part of an output.
fn commands_of(block: &[&str]) -> Vec<PageCommand> {
    let mut commands: Vec<PageCommand> = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push(PageCommand { command: command.to_owned(), output: Vec::new() }),
            (None, Some(last)) if last.output.is_empty() && last.command.ends_with('\\') => {
                last.command.push_str(&format!("\n{line}"));
            }
            (None, Some(last)) => last.output.push((*line).to_owned()),
            (None, None) => panic!("an output without a command: {line}"),
        }
    }
    for PageCommand { output, .. } in &mut commands {
        while output.last().is_some_and(|line| line.is_empty()) {
            output.pop();
        }
    }
    commands
}

/// What a command prints.
#[expect(clippy::disallowed_methods, reason = "pages use programs on the PATH")]
fn printed_by(command: &str, folder: &Folder, library: Option<&Path>) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_hitreg")).parent().expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path);
    let path = std::env::join_paths([bin.to_owned(), bin.join("examples")].into_iter().chain(path)).expect("a PATH");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{command} 2>&1")]).current_dir(&folder.dir).stdin(Stdio::null());
    shell
        .env("XDG_CACHE_HOME", folder.cache.path())
        .env("PATH", path)
        .env("HITREG_SOURCE", root())
        .env_remove("GITHUB_STEP_SUMMARY");
    if let Some(library) = library {
        shell.env("HITREG_LIBRARY", library);
    }
    let output = shell.output().expect("a shell");
    assert_ne!(output.status.code(), Some(127), "{command}: {}", text(&output.stdout));
    text(&output.stdout).trim_end().to_owned()
}

/// Whether an output is the one that a page shows.
fn matches_output(expected: &[String], output: &[&str]) -> bool {
    match (expected.split_first(), output.split_first()) {
        (None, None) => true,
        (Some((any, rest)), _) if any == "..." => {
            (0..=output.len()).any(|skipped| matches_output(rest, &output[skipped..]))
        }
        (Some((wanted, wanted_rest)), Some((line, rest))) => {
            matches_line(wanted, line) && matches_output(wanted_rest, rest)
        }
        _ => false,
    }
}

fn matches_line(wanted: &str, line: &str) -> bool {
    without_machine(wanted) == without_machine(line)
}

/// A line without its speed and its build's name, which depend on the machine.
fn without_machine(line: &str) -> String {
    if let Some((before, after)) = line.split_once(" times real time") {
        let number = before.rfind(' ').map_or(0, |space| space + 1);
        return format!("{} times real time{after}", &before[..number]);
    }
    match line.split_once("this build (") {
        Some((before, after)) => format!("{before}this build{}", after.split_once(')').map_or("", |(_, rest)| rest)),
        None => line.to_owned(),
    }
}

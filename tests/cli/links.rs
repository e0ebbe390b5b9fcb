//! Links of the Markdown pages, and of the book that mdBook makes of them. Links to other sites are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use super::folder::{Folder, text};

/// A page's links, and the anchors that other links can name.
#[derive(Default)]
struct LinkedPage {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

impl LinkedPage {
    fn of_markdown(text: &str) -> LinkedPage {
        let mut page = LinkedPage::default();
        let mut fence: Option<&str> = None;
        for line in text.lines() {
            let marks = line.trim_start();
            let marks = &marks[..marks.len() - marks.trim_start_matches(['`', '~']).len()];
            match fence {
                Some(opened) if marks.starts_with(opened) => fence = None,
                Some(_) => {}
                None if marks.len() >= 3 => fence = Some(marks),
                None => page.add_line(line),
            }
        }
        page
    }

    fn add_line(&mut self, line: &str) {
        if let Some(title) = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')) {
            let anchor = anchor_of(title);
            let other = (1..).map(|number| format!("{anchor}-{number}"));
            let free = [anchor.clone()].into_iter().chain(other).find(|anchor| !self.anchors.contains(anchor));
            self.anchors.extend(free);
        }
        let without_code: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        let is_definition = without_code.starts_with('[');
        let definition = without_code.split_once("]: ").filter(|_| is_definition).map(|(_, link)| link.trim());
        self.links.extend(definition.map(str::to_owned));
        self.links.extend(between(&without_code, "](", ")"));
        self.add_attributes(&without_code);
    }

    fn of_html(text: &str) -> LinkedPage {
        let mut page = LinkedPage::default();
        page.add_attributes(text);
        page
    }

    fn add_attributes(&mut self, text: &str) {
        for attribute in [" href=\"", " src=\"", " srcset=\""] {
            self.links.extend(between(text, attribute, "\""));
        }
        self.anchors.extend(between(text, " id=\"", "\""));
    }
}

/// The texts between two marks.
fn between(text: &str, start: &str, end: &str) -> Vec<String> {
    let found = text.split(start).skip(1).filter_map(|rest| rest.split_once(end));
    found.map(|(found, _)| found.to_owned()).collect()
}

/// The anchor of a heading: its letters, digits and hyphens, in lower case.
fn anchor_of(title: &str) -> String {
    let mut words = title.to_owned();
    while let Some((start, end)) = words.find("](").and_then(|at| Some((at, at + words[at..].find(')')?))) {
        words.replace_range(start..=end, "");
    }
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    words.trim().to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Checks links between files. Returns the broken ones, and the number of links to other sites.
fn broken_links(pages: &BTreeMap<PathBuf, LinkedPage>) -> (Vec<String>, usize) {
    let (mut broken, mut other_sites) = (Vec::new(), 0);
    for (path, page) in pages {
        for link in &page.links {
            if ["http://", "https://", "mailto:", "data:"].iter().any(|scheme| link.starts_with(scheme)) {
                eprintln!("{}: not followed: {link}", path.display());
                other_sites += 1;
                continue;
            }
            let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(file, name)| (file, Some(name)));
            let file = file.split_once('?').map_or(file, |(file, _)| file);
            let target = match file {
                "" => path.clone(),
                file => normal(&path.parent().expect("a folder").join(file)),
            };
            let has_anchor = |name| pages.get(&target).is_none_or(|target| target.anchors.contains(name));
            if !target.exists() {
                broken.push(format!("{}: there is no {link}", path.display()));
            } else if !anchor.is_none_or(|name| name.is_empty() || has_anchor(name)) {
                broken.push(format!("{}: no heading for {link}", path.display()));
            }
        }
    }
    (broken, other_sites)
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if normal.file_name().is_some() => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}

/// All files below a folder with this extension, without what builds and package managers write.
fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && !matches!(name, "target" | "node_modules" | "bin" | "obj") {
            files.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|own| own == extension) {
            files.push(path);
        }
    }
    files
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading() {
    let files = files_below(root(), "md").into_iter();
    let page = |path: PathBuf| (path.clone(), LinkedPage::of_markdown(&fs::read_to_string(path).expect("a page")));
    let pages: BTreeMap<PathBuf, LinkedPage> = files.map(page).collect();
    let (broken, other_sites) = broken_links(&pages);
    assert!(pages.len() > 50 && other_sites > 2, "{} pages, {other_sites} links to other sites", pages.len());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_of_docs_is_in_the_summary_and_the_index() {
    let docs = root().join("docs");
    for list in ["SUMMARY.md", "README.md"] {
        let page = LinkedPage::of_markdown(&fs::read_to_string(docs.join(list)).expect("a page"));
        let linked: BTreeSet<PathBuf> = page.links.iter().map(|link| normal(&docs.join(link))).collect();
        let is_listed = |path: &PathBuf| linked.contains(path) || path.parent() == Some(&docs) && is_list(path);
        let missing: Vec<PathBuf> = files_below(&docs, "md").into_iter().filter(|path| !is_listed(path)).collect();
        assert!(missing.is_empty(), "{list} has no {missing:?}");
    }
}

#[test]
fn pictures_have_a_light_and_a_dark_form_and_are_small() {
    let pictures = files_below(&root().join("docs/pictures"), "png");
    assert!(pictures.len() >= 6, "{pictures:?}");
    for picture in pictures {
        let name = picture.file_name().and_then(|name| name.to_str()).expect("a name");
        let (subject, form) = name.strip_suffix(".png").and_then(|name| name.rsplit_once('-')).expect("a form");
        let other = if form == "light" { "dark" } else { "light" };
        assert!(picture.with_file_name(format!("{subject}-{other}.png")).is_file(), "{name} has no {other} form");
        assert!(picture.metadata().expect("a file").len() <= 200_000, "{name} is over 200 kB");
    }
}

fn is_list(path: &Path) -> bool {
    path.ends_with("SUMMARY.md") || path.ends_with("README.md")
}

/// Builds the book as readers do, and checks each link of its pages.
#[test]
fn the_book_is_built_and_has_no_broken_links() {
    for program in ["mdbook", "python3"] {
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !version.is_ok_and(|status| status.success()) {
            return super::note::skipped(&format!("{program} is not installed"));
        }
    }
    let folder = Folder::empty();
    let book = folder.path("book");
    let output = Command::new("mdbook").arg("build").arg("--dest-dir").arg(&book).arg(root()).output().expect("mdbook");
    let messages = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{messages}");
    assert!(!messages.contains("WARN") && !messages.contains("ERROR"), "{messages}");

    let page = |path: PathBuf| (path.clone(), LinkedPage::of_html(&fs::read_to_string(path).expect("a page")));
    let pages: BTreeMap<PathBuf, LinkedPage> = files_below(&book, "html").into_iter().map(page).collect();
    for path in files_below(&root().join("docs"), "md") {
        let own = path.strip_prefix(root().join("docs")).expect("a page of docs");
        let html = book.join(own).with_extension("html");
        let html = if own.ends_with("README.md") { html.with_file_name("index.html") } else { html };
        assert!(own.ends_with("SUMMARY.md") || pages.contains_key(&html), "the book has no {}", own.display());
    }
    let (broken, _) = broken_links(&pages);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let mut names = fs::read_dir(&book).expect("the book").map(|entry| entry.expect("an entry").file_name());
    assert!(names.any(|name| name.to_string_lossy().starts_with("searchindex")), "the book has a search");
    let source = fs::read_to_string(book.join("source/examples/c/game.c.html")).expect("a page of a source file");
    assert!(source.contains("hitreg_push_tick"), "the text of the source file");
}

#[test]
fn broken_links_are_found() {
    let folder = Folder::empty();
    let page = "# A `b` [c](d.md)!\n\n## Two\n\n## Two\n\n[x](#a-b-c) [x](#two-1) [x](#two-2) `[x](no.md)`\n\n\
                ```text\n[x](no.md)\n# No\n```\n\n[ref]: no-file.md\n[x](b.md#no) [x](https://example.org) [x](#no)\n";
    fs::write(folder.path("a.md"), page).expect("written");
    fs::write(folder.path("b.md"), "# B\n<img alt=\"\" src=\"no.png\">\n").expect("written");
    fs::write(folder.path("d.md"), "").expect("written");
    let page = |name: &str| {
        let path = folder.path(name);
        (path.clone(), LinkedPage::of_markdown(&fs::read_to_string(path).expect("a page")))
    };
    let (broken, other_sites) = broken_links(&["a.md", "b.md", "d.md"].into_iter().map(page).collect());
    let short: Vec<String> = broken.iter().map(|line| line.rsplit('/').next().unwrap_or_default().to_owned()).collect();
    let wanted = [
        "a.md: no heading for #two-2",
        "a.md: there is no no-file.md",
        "a.md: no heading for b.md#no",
        "a.md: no heading for #no",
        "b.md: there is no no.png",
    ];
    assert_eq!((short, other_sites), (wanted.map(str::to_owned).to_vec(), 1));
}

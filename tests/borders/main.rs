//! Rules that cargo does not enforce: server and client never import each other, and only the C ABI has `unsafe`.

use std::path::{Path, PathBuf};

/// All Rust sources of a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Fails if a line of code contains one of the words.
fn refuse(files: &[PathBuf], words: &[&str]) {
    assert!(!files.is_empty(), "there is nothing to look at");
    for file in files {
        let text = std::fs::read_to_string(file).expect("a source");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let word = words.iter().find(|word| code.contains(**word));
            assert!(word.is_none(), "{}:{}: {line}", file.display(), number + 1);
        }
    }
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates")
}

#[test]
fn server_and_client_never_import_each_other() {
    let netcode = crates().join("hitreg-netcode/src");
    let room = |name: &str| {
        let mut files = sources(&netcode.join(name));
        files.push(netcode.join(format!("{name}.rs")));
        files
    };
    refuse(&room("server"), &["crate::client", "client::{"]);
    refuse(&room("client"), &["crate::server", "server::{"]);
}

#[test]
fn only_the_c_abi_allows_unsafe() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let top = std::fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
    assert!(top.contains("unsafe_code = \"forbid\""));
    for entry in std::fs::read_dir(crates()).expect("the crates") {
        let manifest = entry.expect("a crate").path().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        let inherits = text.contains("[lints]\nworkspace = true");
        let is_border = manifest.parent().is_some_and(|folder| folder.ends_with("hitreg-capi"));
        assert!(inherits != is_border, "{}", manifest.display());
    }
}

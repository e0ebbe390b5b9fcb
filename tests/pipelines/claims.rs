//! Every claim holds, and no claim holds without its mechanism.

use std::process::Command;
use std::sync::OnceLock;

use hitreg_selftest::claims::{Claim, ClaimResult, MechanismState, all};
use rayon::prelude::*;

#[test]
fn every_claim_holds() {
    let page = all_results();
    let holds = |claim: &Claim| page.lines().any(|line| line.split_whitespace().eq(["holds", claim.name]));
    let failed: Vec<&str> = all().filter(|claim| !holds(claim)).map(|claim| claim.name).collect();
    assert!(failed.is_empty(), "{failed:?}: {page}");
}

#[test]
fn no_claim_holds_without_its_mechanism() {
    let check =
        |claim: &&Claim| claim.check(MechanismState::Off).unwrap_or_else(|error| panic!("{}: {error}", claim.name));
    let claims: Vec<&Claim> = all().collect();
    let held: Vec<ClaimResult> = claims.par_iter().map(check).filter(|result| result.holds).collect();
    assert!(held.is_empty(), "these show nothing: {held:#?}");
}

#[test]
fn names_are_unique_and_every_file_is_a_claim() {
    let mut names: Vec<&str> = all().map(|claim| claim.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "two claims of one name");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/hitreg-selftest/claims");
    for entry in std::fs::read_dir(folder).expect("the claims' folder") {
        let file = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        if let Some(name) = file.strip_suffix(".toml") {
            assert!(names.contains(&name), "crates/hitreg-selftest/claims/{file} is of no claim");
        }
    }
}

#[test]
fn every_claim_is_in_the_table_of_statements() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/claims.md")).expect("the page");
    let (_, table) = page.split_once("## Every statement of the documents").expect("the table");
    let lacking: Vec<&str> =
        all().map(|claim| claim.name).filter(|name| !table.contains(&format!("`{name}`"))).collect();
    assert!(lacking.is_empty(), "docs/claims.md says of no statement that these show it: {lacking:?}");
}

#[test]
fn pages_of_results_match_the_snapshots() {
    assert_reads("claims", all_results());
    assert_reads("claims_detail", &output_of(&["claims", "five-in-flight"], 0));
    assert_reads("claims_off", &output_of(&["claims", "dumb-client", "--off"], 1));
    assert_reads("claims_json", &output_of(&["claims", "dumb-client", "--format", "json"], 0));
    output_of(&["claims", "--list"], 0);
    assert_eq!(output_of(&["claims", "dum-client"], 128), "");
}

/// The page of all claims. It takes seconds, so tests share it.
fn all_results() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| output_of(&["claims"], 0))
}

/// The output of `hitreg claims`.
fn output_of(args: &[&str], code: i32) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_hitreg")).args(args).output().expect("the command runs");
    assert_eq!(run.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("UTF-8")
}

fn assert_reads(name: &str, text: &str) {
    if !name.ends_with("json") {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "wider than the page: {line}");
            assert_eq!(line, line.trim_end(), "blanks at the end of a line");
        }
    }
    insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

//! Runs last by its name and reports the number of skipped tests, with the reasons.

#[expect(dead_code, reason = "the program that lists the notes writes none")]
mod note;

use std::collections::BTreeMap;

fn main() {
    let notes = note::notes();
    let text = std::fs::read_to_string(&notes).unwrap_or_default();
    drop(std::fs::remove_file(&notes));
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (test, why) in text.lines().filter_map(|line| line.split_once(": ")) {
        reasons.entry(why).or_default().push(test);
    }
    let count: usize = reasons.values().map(Vec::len).sum();
    println!("\nskipped: {count} tests of this run");
    for (why, tests) in reasons {
        println!("  {}: {why}\n    {}", tests.len(), tests.join("\n    "));
    }
}
